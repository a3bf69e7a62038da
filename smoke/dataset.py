# SPDX-License-Identifier: Apache-2.0
"""The images that the smoke trainings learn from: UCI digits beside this file, or MNIST in its IDX
files.

What must hold: the test images are never trained on, and everything a training sees depends on its
seed alone.
"""

from __future__ import annotations

import gzip
import os
import struct

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))

_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
# (images, labels) of the training and of the test part, as MNIST, Fashion-MNIST and EMNIST name
# them.
_IDX_NAMES = (("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
              ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"))


class DataError(Exception):
    """Data that cannot be read; the text says what was found and what is needed."""


class Dataset:
    """Images [n, height, width, 1], float32 in [0, 1], and labels [n], int64: to train on and to
    test with."""

    def __init__(self, name: str, train: tuple, test: tuple) -> None:
        self.name = name
        self.train_images, self.train_labels = train
        self.test_images, self.test_labels = test
        self.classes = int(max(self.train_labels.max(), self.test_labels.max())) + 1

    @property
    def shape(self) -> tuple:
        """(height, width) of an image."""
        return self.train_images.shape[1:3]

    def batch(self, step: int, size: int, seed: int) -> tuple:
        """Images and labels of one training step, counted from 0: each pass over the data has an
        order of its own."""
        per_pass = len(self.train_labels) // size
        order = np.random.RandomState(seed + step // per_pass).permutation(len(self.train_labels))
        begin = step % per_pass * size
        chosen = order[begin:begin + size]
        return self.train_images[chosen], self.train_labels[chosen]


def held_out() -> np.ndarray:
    """Row numbers of the test images of digits.csv."""
    return np.loadtxt(os.path.join(HERE, "held_out.txt"), dtype=np.int64)


def load_digits(path: str = os.path.join(HERE, "digits.csv")) -> Dataset:
    """The UCI digits: 1,198 images to train on, 599 to test with (DATA.md)."""
    rows = np.loadtxt(path, delimiter=",", dtype=np.int64)
    if rows.shape != (1797, 65) or rows.min() < 0 or rows[:, :64].max() > 16 or rows[:,
                                                                                     64].max() > 9:
        raise DataError("%s holds no UCI digits: needed are 1797 lines of 64 pixels (0 to 16) and "
                        "a label (0 to 9)" % path)
    images = (rows[:, :64] / 16).astype(np.float32).reshape(-1, 8, 8, 1)
    labels = rows[:, 64]
    test = held_out()
    train = np.setdiff1d(np.arange(len(rows)), test)
    return Dataset("UCI digits", (images[train], labels[train]), (images[test], labels[test]))


def read_idx(path: str) -> np.ndarray:
    """The array in an IDX file (http://yann.lecun.com/exdb/mnist/), which may be compressed by
    gzip.

    Raises DataError for anything else, and for a file that is shorter or longer than its header
    says.
    """
    with open(path, "rb") as stream:
        data = stream.read()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError) as error:
            raise DataError("%s: damaged gzip data (%s)" % (path, error)) from None
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _IDX_TYPES or not 1 <= data[3] <= 8:
        raise DataError("%s is no IDX file: it begins with %s, needed are two zero bytes, a type "
                        "(8, 9, 11 to 14) and a rank (1 to 8)"
                        % (path, data[:4].hex(" ") or "nothing"))
    rank, dtype = data[3], np.dtype(_IDX_TYPES[data[2]])
    if len(data) < 4 + 4 * rank:
        raise DataError("%s ends within its header" % path)
    dims = struct.unpack(">%dI" % rank, data[4:4 + 4 * rank])
    count = dtype.itemsize
    for dim in dims:
        count *= dim
    if len(data) != 4 + 4 * rank + count:
        raise DataError("%s has %d bytes of data, its header (%s) needs %d"
                        % (path, len(data) - 4 - 4 * rank, "x".join(map(str, dims)), count))
    return np.frombuffer(data, dtype, offset=4 + 4
                         * rank).reshape(dims).astype(dtype.newbyteorder("="))


def _find(directory: str, name: str) -> str:
    for candidate in (name, name + ".gz", name.replace("-idx", ".idx"),
                      name.replace("-idx", ".idx") + ".gz"):
        path = os.path.join(directory, candidate)
        if os.path.exists(path):
            return path
    raise DataError("%s holds no %s (nor %s.gz)" % (directory, name, name))


def load_idx(directory: str) -> Dataset:
    """MNIST, or any data set in the same four files."""
    parts = []
    for images_name, labels_name in _IDX_NAMES:
        images, labels = read_idx(_find(directory, images_name)), read_idx(_find(directory,
                                                                                 labels_name))
        if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels) or not len(labels):
            raise DataError("%s: images of shape %s and labels of shape %s do not belong together"
                            % (directory, images.shape, labels.shape))
        parts.append(((images / 255).astype(np.float32)[..., np.newaxis], labels.astype(np.int64)))
    return Dataset("IDX files in " + directory, *parts)


def load(source: str) -> Dataset:
    """"digits", or a directory with the four files of MNIST."""
    return load_digits() if source == "digits" else load_idx(source)
