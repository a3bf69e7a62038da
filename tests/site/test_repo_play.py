# SPDX-License-Identifier: Apache-2.0
"""repo.yml as the stage publish and a site call it: which hosts and tasks it takes, what it
refuses; a publication on this machine, signed by a key of the test."""

import json
import os
import re
import shutil
import subprocess

import pytest

pytest.importorskip("ansible", reason="Ansible is not installed")
import yaml  # noqa: E402  (Ansible brings it)
from plays import ANSIBLE, surroundings  # noqa: E402
from repository_fixtures import ThrowAwayKey, deb, sha256  # noqa: E402
from test_repo import needs_tools  # noqa: E402

pytestmark = pytest.mark.skipif(not shutil.which("ansible-playbook"),
                                reason="ansible-playbook is not installed")
EXAMPLE = os.path.join(ANSIBLE, "inventory/repo.yml")
PLAYBOOK = ("ansible-playbook", os.path.join(ANSIBLE, "repo.yml"))
LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3",
         "ansible_become": False}


def play(folder, inventory, *words, status=0, program=PLAYBOOK):
    """What ansible-playbook says of repo.yml."""
    if isinstance(inventory, dict):
        path = folder / "hosts.json"
        path.write_text(json.dumps(inventory))
        inventory = path
    done = subprocess.run(
        [*program, "-i", str(inventory), *words],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder,
        encoding="utf-8", check=False, env=surroundings(str(folder)))
    assert (done.returncode == 0) == (status == 0), done.stdout
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("words, plays", [
    ([], ["Look for a server", "Publish packages", "Set up the clients"]),
    (["--tags", "publish"], ["Look for a server", "Publish packages"]),
    (["--tags", "clients"], ["Set up the clients"])], ids=["all", "publish", "clients"])
def test_which_plays_are_taken(tmp_path, words, plays):
    said = play(tmp_path, EXAMPLE, "--list-tasks", *words)
    found = re.findall(r"play #\d+ \(\w+\): (.*?) TAGS: \[\w+\] tasks:(.*?)(?= play #|$)", said)
    # The arguments of a role are looked at by a task with the tag always.
    assert [name for name, tasks in found if re.search(r"TAGS: \[\w+\]", tasks)] == plays


def test_the_example_names_a_server_and_clients(tmp_path):
    play(tmp_path, EXAMPLE, "--syntax-check")
    hosts = re.findall(r"play #\d .*?hosts \(\d\): (\S+)", play(tmp_path, EXAMPLE, "--list-hosts"))
    assert hosts == ["localhost", "packages.example.org", "login1.example.org"]


def test_its_variables_are_those_of_the_role():
    with open(os.path.join(ANSIBLE, "roles/repo/defaults/main.yml"), encoding="utf-8") as stream:
        known = yaml.safe_load(stream)
    with open(EXAMPLE, encoding="utf-8") as stream:
        groups = yaml.safe_load(stream)
    used = [name for group in groups.values() for name in group["vars"]]
    assert set(used) <= set(known) and len(used) > 4


def test_nothing_is_published_without_a_server(tmp_path):
    hosts = {"repo_clients": {"hosts": {"h": LOCAL}}}
    for words in ((), ("--tags", "publish")):
        said = play(tmp_path, hosts, *words, status=1)
        assert "hosts.json) has no host in the group `repo_servers`, which is where packages are " \
            "published: name another by -i or in ANSIBLE_INVENTORY" in said


def test_nothing_is_published_without_a_key(tmp_path):
    said = play(tmp_path, {"repo_servers": {"hosts": {"h": LOCAL}}}, "--tags", "publish",
                status=1)
    assert "A repository is signed: repo__gnupg_home is '' and repo__key_id is ''; give the " \
        "GNUPGHOME on h and a key's fingerprint" in said
    assert " changed=0 " in said


def test_clients_are_set_up_without_a_server(tmp_path):
    """As far as what they lack."""
    said = play(tmp_path, {"repo_clients": {"hosts": {"h": LOCAL}}}, "--tags", "clients", status=1)
    assert "repo__url is ''" in said


@needs_tools
def test_a_night_replaces_the_one_before_and_a_release_does_not(tmp_path):
    """With what the example's server has, in whose place stands this machine."""
    with open(EXAMPLE, encoding="utf-8") as stream:
        example = yaml.safe_load(stream)
    key = ThrowAwayKey()
    try:
        servers = dict(example["repo_servers"]["vars"], repo__gnupg_home=key.home,
                       repo__key_id=key.fingerprint, repo__root=str(tmp_path / "srv"),
                       repo__formats=["deb"])
        hosts = {"all": {"vars": example["all"]["vars"]},
                 "repo_servers": {"vars": servers, "hosts": {"h": LOCAL}}}

        def publish(content):
            path = deb(str(tmp_path / content), content=content)
            play(tmp_path, hosts, "--tags", "publish", "-e", json.dumps(
                {"repo__packages": [os.path.dirname(path)], "repo__channel": "nightly"}))
            sums = (tmp_path / "srv/deb/dists/nightly/SHA256SUMS").read_text()
            assert sums == "%s  %s\n" % (sha256(path), os.path.basename(path))

        publish("one")
        assert (tmp_path / "treenail.asc").read_text() == key.public()
        publish("two")
        said = play(tmp_path, hosts, "repo_servers", "-m", "debug", "-a", "var=repo__replace", "-e",
                    "repo__channel=release", program=["ansible"])
        assert '"repo__replace": false' in said.lower()
    finally:
        key.remove()
