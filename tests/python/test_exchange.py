# SPDX-License-Identifier: Apache-2.0
"""tests/packages/exchange.py, which carries files between machines, here between two processes."""

import os
import subprocess
import sys

import numpy as np
import pytest

import treenail as tn

PROGRAM = os.path.join(os.path.dirname(__file__), "../packages/exchange.py")
sys.path.insert(0, os.path.dirname(PROGRAM))
from event_file import message, records  # noqa: E402  (the path must be set first)


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


def test_a_damaged_event_file_is_seen(tmp_path):
    """A length, a sum or a byte of another order; a record that is cut short."""
    with tn.summary.FileWriter(str(tmp_path)) as writer:
        writer.add_summary(b"\x0a\x00", 7)
    path, = tmp_path.iterdir()
    good = path.read_bytes()
    assert [message(record).get(2) for record in records(good)] == [None, [7]]
    for bad, said in ((good[:8][::-1] + good[8:], "sum of"), (good[:-5], "ends in a record"),
                      (good[:8] + good[8:12][::-1] + good[12:], "sum of"),
                      (good[:20] + bytes([good[20] ^ 1]) + good[21:], "sum of")):
        with pytest.raises(AssertionError, match=said):
            records(bad)
