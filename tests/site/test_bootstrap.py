# SPDX-License-Identifier: Apache-2.0
"""What the role python asks of a host before any module of Ansible can run there."""

import os
import shutil

import pytest

pytest.importorskip("ansible", reason="Ansible is not installed")
from plays import play  # noqa: E402

pytestmark = pytest.mark.skipif(not shutil.which("ansible-playbook"),
                                reason="ansible-playbook is not installed")


def bootstrapped(folder, programs, number=0, **variables):
    """(what failed, what was changed, how apt-get was called) of a host that has these programs
    and a user of that number."""
    (folder / "bin").mkdir()
    called = folder / "called"
    called.write_text("")
    for name in programs:
        (folder / "bin" / name).write_text('#!/bin/sh\necho "%s $*" >> %s\n' % (name, called))
    (folder / "bin/id").write_text("#!/bin/sh\necho %d\n" % number)
    for path in (folder / "bin").iterdir():
        path.chmod(0o755)
    for name in ("env", "ansible-playbook"):
        (folder / "bin" / name).symlink_to(shutil.which(name))
    report = play(folder, "python", {"h": dict(
        variables, ansible_connection="local", ansible_become=False)}, tasks_from="bootstrap",
        facts={"os_family": "Debian"}, environment={"PATH": str(folder / "bin")})
    return report.failure("h"), report.changed("h"), called.read_text()


REFUSED = [
    (["sudo"], 0, "su", "h: what is built is built by a user of its own, whom root becomes by su, "
     "and the host has no su. Install su or set ansible_become_method"),
    (["su"], 0, "sudo", "and the host has no sudo. Install sudo or set ansible_become_method=su"),
    (["su"], 1000, "sudo", "h: packages must be installed and a user made, me is not root there, "
     "and the host has no sudo. Install sudo, connect as root, or set ansible_become_method=su"),
    ([], 1000, "su", "and the host has neither sudo nor su. Install su, connect as root, or set"),
]


@pytest.mark.parametrize("programs, number, method, words", REFUSED)
def test_a_host_on_which_nobody_can_become_another_user(programs, number, method, words, tmp_path):
    failure, _, _ = bootstrapped(tmp_path, programs, number, ansible_become_method=method,
                                 ansible_user="me")
    assert words in failure


@pytest.mark.parametrize("programs, number, wanted", [
    (["sudo"], 0, ""), (["sudo", "setfacl"], 1000, ""),
    (["sudo"], 1000, "apt-get -q update\napt-get -q -y install --no-install-recommends acl\n")])
def test_only_between_two_that_are_not_root_an_acl_is_needed(programs, number, wanted, tmp_path):
    if not os.path.exists("/usr/bin/python3"):
        pytest.skip("there is no /usr/bin/python3")
    failure, changed, called = bootstrapped(tmp_path, [*programs, "apt-get"], number)
    assert (failure, called) == ("", wanted)
    assert changed == (["Install what Ansible needs"] if wanted else [])
