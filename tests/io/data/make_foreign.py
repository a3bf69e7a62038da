#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes foreign.h5: dtypes, filters and types of h5py that Treenail does not write itself."""

import os

import h5py
import numpy as np


def main() -> None:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "foreign.h5")
    with h5py.File(path, "w", track_order=False) as file:
        file["big_endian"] = np.array([1.5, -2.0, 1e300], dtype=">f8")
        file["group/half"] = np.array([0.5, -2.0], dtype="float16")
        file["flags"] = np.array([True, False, True])
        file["complex"] = np.array([1 + 2j, -1j], dtype="complex64")
        file.create_dataset("words", data=["ab", "c"], dtype=h5py.string_dtype())
        file["fixed"] = np.array([b"abc", b"de"], dtype="S3")
        file["scalar"] = np.int64(7)
        file.create_dataset("packed", data=np.arange(1000, dtype="int32").reshape(100, 10),
                            chunks=(30, 4), compression="gzip", shuffle=True)
        file["record"] = np.zeros(2, dtype=[("a", "f4"), ("b", "f8")])
        file["nothing"] = h5py.Empty("f4")
        file["quad"] = np.zeros(2, dtype=np.longdouble)


if __name__ == "__main__":
    main()
