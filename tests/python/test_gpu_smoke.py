# SPDX-License-Identifier: Apache-2.0
"""The networks of the smoke trainings learn on a GPU: a real one, or the simulated CUDA
(tests/cuda_sim). `ninja test-gpu` and `ninja test-cuda-sim` run them; without a GPU they are
skipped."""

import os
import subprocess
import sys

import pytest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(SOURCE, "tests", "cuda_sim"))
import cusim  # noqa: E402  (the path must be set first)

pytestmark = cusim.needs_gpu()


@pytest.mark.parametrize("network, options", [
    ("mlp", []), ("cnn", ["--steps", "60", "--batch", "32", "--needed", "0.8"])])
def test_networks_learn_digits(network, options):
    """To the accuracy that the training wants; of few steps, less."""
    train = os.path.join(SOURCE, "smoke", "train.py")
    words = [train, network, "--quiet", "--device", "/gpu:0", *options]
    done = subprocess.run([sys.executable, *words],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True)
    assert done.returncode == 0 and "reached" in done.stdout, done.stdout
