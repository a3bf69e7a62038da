# SPDX-License-Identifier: Apache-2.0
"""Random graphs, always the same ones, on a GPU: every node there that has a kernel there, each
held to NumPy, and all ways of running them to the same bits. `ninja test-gpu` and
`ninja test-cuda-sim` run them; without a GPU they are skipped."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "cuda_sim"))
import cusim  # noqa: E402  (the path must be set first)

pytestmark = cusim.needs_gpu()


@pytest.mark.parametrize("profile, graphs", [("", 30), ("variables", 10), ("gradient", 10)])
def test_graphs_of_fixed_seeds(profile, graphs):
    """fuzz.py itself says where the GPU is not there."""
    words = ["--device", "/gpu:0", "--hang-seconds", "600", "--graphs", str(graphs)]
    done = subprocess.run([sys.executable, str(HERE / "fuzz.py"), *words,
                           *(["--profile", profile] if profile else [])],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True)
    assert done.returncode == 0, done.stdout[-20000:]
