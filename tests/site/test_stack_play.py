# SPDX-License-Identifier: Apache-2.0
"""What site.yml takes when only a part of it is asked for."""

import glob
import os
import re
import shutil
import subprocess

import pytest

from plays import ANSIBLE

pytestmark = pytest.mark.skipif(not shutil.which("ansible-playbook"),
                                reason="ansible is not installed")
MECHANICS = "component : Take it as its mode says"


def tasks(*words):
    """The tasks of site.yml that would be looked at, in order."""
    done = subprocess.run(["ansible-playbook", "-i", "inventory/local.yml", "site.yml",
                           "--list-tasks", *words], cwd=ANSIBLE, stdout=subprocess.PIPE, text=True,
                          check=True)
    return [task for task in re.findall(r"^ +(.+?)\tTAGS: ", done.stdout, re.MULTILINE)
            if "Validating arguments" not in task]


def test_fetch_fills_the_cache_and_builds_nothing():
    found = tasks("--tags", "fetch")
    assert "stack : Fetch, unpack and patch the sources" in found
    assert MECHANICS not in found and "smoke : Train" not in found


def test_modules_are_there_before_a_toolchain_that_may_be_one():
    found = tasks()
    assert found.index("modules : Keep where it is initialised") < found.index(
        "toolchain : Ask the compiler for its version")


def test_one_component_is_taken_by_its_tag():
    assert tasks("--tags", "hdf5").count(MECHANICS) == 1
    components = glob.glob(os.path.join(ANSIBLE, "roles/*/component.yml"))
    assert tasks().count(MECHANICS) == len(components) > 1
