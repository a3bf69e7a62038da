# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of stateful ops at the ISA levels below the best one, as test_cases.py does for all other ops."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import backend

HERE = Path(__file__).parent


@pytest.mark.parametrize("level", backend.other_levels())
@pytest.mark.parametrize("name", ["test_variables.py", "test_training.py", "test_random.py"])
def test_level(name, level):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / name)],
        env=dict(os.environ, TREENAIL_CPU_ISA=level),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
