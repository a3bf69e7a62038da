# SPDX-License-Identifier: Apache-2.0
"""The role smoke on hosts that do not have every door."""

import os
import shutil

import pytest

pytest.importorskip("ansible", reason="Ansible is not installed")
from plays import play  # noqa: E402

pytestmark = pytest.mark.skipif(not shutil.which("ansible-playbook"),
                                reason="ansible-playbook is not installed")


LOW = {"name": "low", "mode": "build", "isa": "x86-64", "module": "low/1-x86-64", "needs": []}
LOADED = "exec env -i LOADEDMODULES=low/1 HDF5_DIR=/x"


def entered(tmp_path, stack_env, entries, plan=(LOW,)):
    """What came of the doors, with this as stack-env and no sudo: builder__commands: []."""
    for name in ("sh", "env", "grep", "sort"):
        os.makedirs(str(tmp_path / "bin"), exist_ok=True)
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    (tmp_path / "python").write_text(
        '#!/bin/sh\nPATH=%s/bin exec /usr/bin/python3 "$@"\n' % tmp_path)
    (tmp_path / "bin/stack-env").write_text("#!/bin/sh\n" + stack_env)
    for name in ("python", "bin/stack-env"):
        (tmp_path / name).chmod(0o755)
    return play(tmp_path, "smoke", {"h": {
        "ansible_connection": "local", "ansible_become": False, "stack_environment": str(tmp_path),
        "stack__builder": "root", "ansible_python_interpreter": str(tmp_path / "python"),
        "smoke__entries": entries, "stack_plan": list(plan)}}, tasks_from="entries",
        facts={"os_family": "Debian"})


def test_a_door_that_the_host_lacks_is_left_out_and_named(tmp_path):
    stack_env = LOADED + ' DOOR=$LOGNAME PATH="$PATH" "$@"'
    report = entered(tmp_path, stack_env, ["task", "sudo", "cron"])
    assert report.failure("h") == ""
    results = {name: result for name, _, result in report.tasks}
    assert results["Say which are not tried"]["msg"] == (
        "h has no sudo: stack-env is not tried by it")
    came = [(item["item"], item["stdout"]) for item in results["Enter by each door"]["results"]]
    assert came == [(door, "HDF5_DIR=/x\nLOADEDMODULES=low/1") for door in ("task", "cron")]


def test_another_environment_by_one_door_is_refused(tmp_path):
    text = entered(tmp_path, LOADED + ' CPATH=/$LOGNAME PATH="$PATH" "$@"',
                   ["task", "cron"]).failure("h")
    assert "stack-env gives another environment by cron:\nCPATH=/builder\nHDF5_DIR=/x\n" in text


def test_a_stack_env_that_fails_by_every_door_is_refused(tmp_path):
    text = entered(tmp_path, "echo no modules here >&2; exit 127", ["task", "cron"]).failure("h")
    assert "no modules here" in text


def test_a_stack_env_that_loads_nothing_is_refused(tmp_path):
    stack_env = 'exec env -i HDF5_DIR=/x PATH="$PATH" "$@"'
    text = entered(tmp_path, stack_env, ["task"]).failure("h")
    assert "stack-env loads no modules by task; its modules are low/1-x86-64" in text


def test_a_stack_of_packages_loads_nothing(tmp_path):
    stack_env = 'exec env -i HDF5_DIR=/x PATH="$PATH" "$@"'
    package = dict(LOW, mode="package", module="")
    assert entered(tmp_path, stack_env, ["task"], [package]).failure("h") == ""
