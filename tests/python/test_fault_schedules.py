# SPDX-License-Identifier: Apache-2.0
"""Training by servers under random schedules of faults: none hangs; each ends with the bits of one
process, or with an error that names the task that was lost (fault_schedules.py).

TREENAIL_FAULT_SEEDS="200" asks for more than 4 schedules of each mode, TREENAIL_FAULT_SEED="17" for
those from the seed 17 on.
"""

import os
import subprocess
import sys

import pytest

import treenail as tn

BUILD = os.path.abspath(os.environ.get("TREENAIL_BUILD_DIR", ""))
TRANSPORT = os.path.join(BUILD, "tests", "plugins", "libtreenail-memory-transport.so")
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fault_schedules.py")
FIRST = int(os.environ.get("TREENAIL_FAULT_SEED", "0"))
COUNT = int(os.environ.get("TREENAIL_FAULT_SEEDS", "4"))
pytestmark = [
    pytest.mark.skipif("hdf5" not in tn.build_info()["features"],
                       reason="this build has no HDF5"),
    pytest.mark.skipif(not os.path.exists(TRANSPORT),
                       reason="TREENAIL_BUILD_DIR names no build with its tests")]


@pytest.fixture
def library_directory(tmp_path):
    """That of the build, with the transport without a network in place of gRPC's."""
    version = tn.__version__.split(".")[0]
    own = os.path.join(BUILD, "lib", "treenail-" + version)
    (tmp_path / "adapters").mkdir()
    for each in os.listdir(own):
        if each != "adapters":
            (tmp_path / each).symlink_to(os.path.join(own, each))
    for each in os.listdir(os.path.join(own, "adapters")):
        if each != "libtreenail-grpc.so":
            (tmp_path / "adapters" / each).symlink_to(os.path.join(own, "adapters", each))
    (tmp_path / "adapters" / "libtreenail-grpc.so").symlink_to(TRANSPORT)
    return str(tmp_path)


@pytest.mark.parametrize("mode", ["in_graph", "asynchronous", "sync_replicas", "in_step", "parts"])
def test_random_schedules(mode, library_directory):
    done = subprocess.run([sys.executable, PROGRAM, mode, str(FIRST), str(COUNT)],
                          capture_output=True, text=True, timeout=60 + 30 * COUNT,
                          env=dict(os.environ, TREENAIL_LIBRARY_DIR=library_directory))
    assert done.returncode == 0, "%s\n%s" % (done.stdout[-2000:], done.stderr[-8000:])
    lines = done.stdout.splitlines()
    assert len(lines) == COUNT and all(mode + ": " in line for line in lines), done.stdout
