# SPDX-License-Identifier: Apache-2.0
"""The role smoke on hosts that do not have every door."""

import os
import shutil

import pytest

pytest.importorskip("ansible", reason="Ansible is not installed")
from plays import play  # noqa: E402

pytestmark = pytest.mark.skipif(not shutil.which("ansible-playbook"),
                                reason="ansible-playbook is not installed")


def test_a_door_that_the_host_lacks_is_left_out_and_named(tmp_path):
    """A site may do without sudo: builder__commands: []."""
    for name in ("sh", "env", "grep", "sort"):
        os.makedirs(str(tmp_path / "bin"), exist_ok=True)
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    (tmp_path / "python").write_text(
        '#!/bin/sh\nPATH=%s/bin exec /usr/bin/python3 "$@"\n' % tmp_path)
    (tmp_path / "bin/stack-env").write_text(
        '#!/bin/sh\nexec env -i HDF5_DIR=/x PATH="$PATH" "$@"\n')
    for name in ("python", "bin/stack-env"):
        (tmp_path / name).chmod(0o755)
    report = play(tmp_path, "smoke", {"h": {
        "ansible_connection": "local", "ansible_become": False, "stack_environment": str(tmp_path),
        "stack__builder": "root", "ansible_python_interpreter": str(tmp_path / "python"),
        "smoke__entries": ["task", "sudo", "cron"]}}, tasks_from="entries",
        facts={"os_family": "Debian"})
    assert report.failure("h") == ""
    results = {name: result for name, _, result in report.tasks}
    assert results["Say which are not tried"]["msg"] == (
        "h has no sudo: stack-env is not tried by it")
    entered = [(item["item"], item["stdout"]) for item in results["Enter by each door"]["results"]]
    assert entered == [("task", "HDF5_DIR=/x"), ("cron", "HDF5_DIR=/x")]
