# SPDX-License-Identifier: Apache-2.0
"""A checkpoint is an HDF5 file for everybody: h5py reads the one in tests/io as format 1."""

import os
import shutil
import struct
import subprocess
import sys

import numpy as np
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed")

SOURCE = os.environ.get("TREENAIL_SOURCE_DIR",
                        os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PATH = os.path.join(SOURCE, "tests", "io", "data", "format1.ckpt")
sys.path.insert(0, os.path.join(SOURCE, "tests/packages"))
from event_file import crc32c  # noqa: E402  (the path must be set first)


@pytest.fixture(name="checkpoint")
def open_checkpoint():
    with h5py.File(PATH, "r") as file:
        yield file


def test_first_block_is_as_documented():
    with open(PATH, "rb") as file:
        data = file.read()
    magic, version, zero, length, crc = struct.unpack_from("<8sIIQI", data)
    assert magic == b"\x89TNC\r\n\x1a\n"
    assert (version, zero) == (1, 0)
    assert length == len(data) - 512
    assert crc == crc32c(data[512:])
    assert not any(data[28:508])
    assert struct.unpack_from("<I", data, 508)[0] == crc32c(data[:508])


@pytest.mark.parametrize("name", [
    "float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "bool", "complex64", "complex128"])
def test_dtypes_are_numpys(checkpoint, name):
    assert checkpoint[name].dtype == np.dtype(name)
    assert checkpoint[name].attrs["treenail_dtype"] == name.encode()


def test_values(checkpoint):
    largest = np.array([0, 0, 1, 2**64 - 1], "uint64")
    np.testing.assert_array_equal(checkpoint["uint64"][()], largest)
    np.testing.assert_array_equal(checkpoint["bool"][()], [True, False, True])
    np.testing.assert_array_equal(checkpoint["complex128"][()], [0.1 - 0.2j])
    np.testing.assert_array_equal(checkpoint["float16"][()].view("uint16"),
                                  [1, 0x3C00, 0x7BFF, 0xFC00, 0x8000])
    np.testing.assert_array_equal(checkpoint["bfloat16"][()], [0x3F80, 0xC000, 1, 0x7F80])
    assert checkpoint["scalar"][()] == 2.5
    assert checkpoint["empty"].shape == (0, 5)


def test_strings(checkpoint):
    assert [text.decode() for text in checkpoint["text"][()]] == ["grüß", "", "b"]
    assert [bytes(data) for data in checkpoint["bytes"][()]] == [b"a\0b", b"\xff\xfe", b""]


def test_names_that_collide(checkpoint):
    thirds = np.arange(12, dtype="float32").reshape(3, 4) / np.float32(3)
    np.testing.assert_array_equal(checkpoint["layer/w"][()], thirds)
    assert checkpoint["layer/w+/Momentum"].attrs["treenail_name"] == b"layer/w/Momentum"
    assert checkpoint["+/leading"].attrs["treenail_name"] == b"/leading"


@pytest.mark.skipif(shutil.which("h5dump") is None, reason="h5dump (hdf5-tools) is not installed")
def test_h5dump_reads_it():
    done = subprocess.run(["h5dump", "-d", "/layer/w", PATH], stdout=subprocess.PIPE, check=True)
    assert b"H5T_IEEE_F32LE" in done.stdout
