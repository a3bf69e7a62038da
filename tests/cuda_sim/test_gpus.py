# SPDX-License-Identifier: Apache-2.0
"""The tests of GPUs on the simulated CUDA, in a process that has it for its driver."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import treenail as tn

BUILD = Path(tn._core.__file__).resolve().parents[2]
CHECK = Path(__file__).resolve().parent / "check.py"
PARTS = 4


@pytest.mark.skipif(not (BUILD / "tests/cuda_sim/libcuda.so.1").exists(),
                    reason="this build has no simulated CUDA: it needs a CUDA toolkit, and "
                    "`ninja tests`")
@pytest.mark.parametrize("part", range(PARTS))
def test_gpus(part):
    """With warps of 32 threads; `ninja test-cuda-sim` has those of 64 and longer ones, too."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("TREENAIL_CUDA_SIM_", "TREENAIL_TEST_SHARD"))}
    found = subprocess.run([sys.executable, str(CHECK), "--build", str(BUILD), "--warp", "32",
                            "--quick", "--part", "%d/%d" % (part, PARTS)],
                           env=environment, text=True, check=False, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
    assert found.returncode == 0, found.stdout
    assert " passed" in found.stdout and "skipped" not in found.stdout, found.stdout
