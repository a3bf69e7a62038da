# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of stateful ops at the ISA levels below the best one, as test_level_agreement.py does for all other ops."""

from pathlib import Path

import pytest

import backend

HERE = Path(__file__).parent


@pytest.mark.parametrize("level", backend.other_levels())
def test_level(level):
    names = ("test_variables.py", "test_training.py", "test_random.py")
    files = [str(HERE / name) for name in names]
    backend.run_at_level(level, ["-m", "pytest", "-q", "-p", "no:cacheprovider", *files])
