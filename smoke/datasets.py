# SPDX-License-Identifier: Apache-2.0
"""Reading what the smoke networks train on: the shipped digits, or MNIST's IDX files."""

import gzip
import os
import struct
from typing import BinaryIO, NamedTuple, Optional

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
IDX_DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


class DataError(ValueError):
    """A data file is missing or is not what it should be; the text names it."""


class Dataset(NamedTuple):
    """Images are float32 [count, height, width, 1] in [0, 1]; labels int64 [count] in [0, 10)."""

    name: str
    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load_digits(directory: Optional[str] = None) -> Dataset:
    """The 1,797 UCI digits, split by held_out.txt (data/README.md has source and licence)."""
    directory = directory or os.path.join(HERE, "data")
    rows = np.loadtxt(os.path.join(directory, "digits.csv"), delimiter=",", dtype=np.int64)
    if rows.shape != (1797, 65):
        raise DataError("digits.csv has shape %s, needed are 1797 rows of 65 numbers" % (rows.shape,))
    held_out = _held_out(directory)
    images = (rows[:, :64].astype(np.float32) / 16).reshape(-1, 8, 8, 1)
    labels = rows[:, 64]
    train = np.setdiff1d(np.arange(len(rows)), held_out)
    return Dataset("UCI digits", images[train], labels[train], images[held_out], labels[held_out])


def _held_out(directory: str) -> np.ndarray:
    with open(os.path.join(directory, "held_out.txt"), encoding="ascii") as lines:
        words = [w for line in lines if not line.startswith("#") for w in line.split()]
    return np.array([int(w) for w in words], np.int64)


def read_idx(path: str) -> np.ndarray:
    """One IDX file, plain or .gz (format: http://yann.lecun.com/exdb/mnist)."""
    opener = gzip.open if path.endswith(".gz") else open
    try:
        with opener(path, "rb") as stream:
            return _parse_idx(stream, path)
    except (OSError, EOFError) as error:
        raise DataError("%s cannot be read: %s" % (path, error)) from error


def _parse_idx(stream: BinaryIO, path: str) -> np.ndarray:
    head = stream.read(4)
    if len(head) != 4 or head[:2] != b"\0\0" or head[2] not in IDX_DTYPES or not 1 <= head[3] <= 4:
        raise DataError("%s is not an IDX file: it begins %r" % (path, head))
    sizes = stream.read(4 * head[3])
    if len(sizes) != 4 * head[3]:
        raise DataError("%s ends within its header" % path)
    shape = struct.unpack(">%dI" % head[3], sizes)
    dtype = np.dtype(IDX_DTYPES[head[2]])
    wanted = int(np.prod([int(s) for s in shape], dtype=object)) * dtype.itemsize
    data = stream.read()
    if len(data) != wanted:
        raise DataError("%s announces %s: %d bytes, but holds %d" % (path, shape, wanted, len(data)))
    return np.frombuffer(data, dtype).reshape(shape)


def load_mnist(directory: str) -> Dataset:
    """The four MNIST files of a folder, plain or .gz."""
    def find(stem: str) -> str:
        for ending in ("", ".gz"):
            for name in (stem, stem.replace("-idx", ".idx")):
                path = os.path.join(directory, name + ending)
                if os.path.exists(path):
                    return path
        raise DataError("%s has no %s (nor %s.gz); MNIST is the four files "
                        "{train,t10k}-images-idx3-ubyte and {train,t10k}-labels-idx1-ubyte"
                        % (directory, stem, stem))

    def part(prefix: str):
        images = read_idx(find(prefix + "-images-idx3-ubyte"))
        labels = read_idx(find(prefix + "-labels-idx1-ubyte"))
        if images.ndim != 3 or labels.shape != images.shape[:1]:
            raise DataError("%s: images %s and labels %s do not belong together"
                            % (directory, images.shape, labels.shape))
        if labels.size and int(labels.max()) > 9:
            raise DataError("%s: a label is %d, needed are 0 to 9" % (directory, labels.max()))
        return images[..., None].astype(np.float32) / 255, labels.astype(np.int64)

    train_images, train_labels = part("train")
    test_images, test_labels = part("t10k")
    return Dataset("MNIST", train_images, train_labels, test_images, test_labels)
