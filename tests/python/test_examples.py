# SPDX-License-Identifier: Apache-2.0
"""Every program of examples/, in a process of its own with few steps: each holds what it learned to
a bound itself. They are short."""

import os
import subprocess
import sys

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(TOP, "examples")
PROGRAMS = sorted(leaf for leaf in os.listdir(FOLDER)
                  if leaf.endswith(".py") and leaf != "targets.py")
LONGEST = 80


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_example_learns(program):
    done = subprocess.run([sys.executable, os.path.join(FOLDER, program), "--steps", "20"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert len(done.stdout.splitlines()) >= 3, "it shows nothing: " + done.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_example_is_short(program):
    with open(os.path.join(FOLDER, program), encoding="utf-8") as stream:
        assert len(stream.readlines()) <= LONGEST
