# SPDX-License-Identifier: Apache-2.0
"""tests/packages/exchange.py, which carries files between machines, here between two processes."""

import os
import subprocess
import sys

import numpy as np
import pytest

import treenail as tn

PROGRAM = os.path.join(os.path.dirname(__file__), "../packages/exchange.py")


def exchange(*words):
    return subprocess.run([sys.executable, PROGRAM, *map(str, words)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)


@pytest.mark.skipif(not {"hdf5", "png"} <= set(tn.build_info()["adapters"]),
                    reason="this build has no HDF5 or no libpng")
def test_what_is_written_is_read(tmp_path):
    assert exchange("write", tmp_path).returncode == 0
    done = exchange("read", tmp_path)
    assert done.returncode == 0 and "as expected" in done.stdout, done.stdout
    results = dict(np.load(tmp_path / "results.npz"))
    results["steps"] = results["steps"] + 1
    np.savez(tmp_path / "results.npz", **results)
    done = exchange("read", tmp_path)
    assert done.returncode == 1 and "steps" in done.stdout, done.stdout
