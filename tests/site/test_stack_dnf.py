# SPDX-License-Identifier: Apache-2.0
"""The plays on the family of Fedora and RHEL, with a dnf that records how it is called."""

import hashlib
import os
import shutil

import pytest

pytest.importorskip("ansible", reason="Ansible is not installed")
import yaml  # noqa: E402  (Ansible brings it)
from fake_dnf import FakeDnf  # noqa: E402
from plays import ANSIBLE, play  # noqa: E402

pytestmark = pytest.mark.skipif(not shutil.which("ansible-playbook"),
                                reason="ansible-playbook is not installed")
LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3",
         "ansible_become": False}
ROCKY = {"os_family": "RedHat", "distribution": "Rocky", "distribution_major_version": "9",
         "pkg_mgr": "dnf", "machine": "x86_64"}


class Host(FakeDnf):
    """A host of that family."""

    def play(self, role, tasks_from="main", facts=None, **variables):
        self.forget()
        facts = dict(ROCKY, **(facts or {}))
        names = {"ansible_" + name: value for name, value in facts.items()}
        return play(self.folder, role, {"h": dict(LOCAL, **names, **variables)}, facts=facts,
                    tasks_from=tasks_from, environment={
                        "PATH": "%s/bin:%s" % (self.folder, os.environ["PATH"]),
                        "ANSIBLE_LIBRARY": "%s/library:%s/library" % (self.folder, ANSIBLE)})


def said(report):
    return [result["msg"] for name, _, result in report.tasks
            if name == "Say what is enabled" and "msg" in result]


def test_crb_and_epel_are_enabled_once_and_the_play_says_so(tmp_path):
    host = Host(tmp_path, "baseos", "appstream")
    report = host.play("stack", "repositories")
    assert report.failure("h") == ""
    assert host.calls() == [
        "dnf -q repolist", "install dnf-plugins-core", "dnf -q config-manager --set-enabled crb",
        "install epel-release"]
    assert said(report) == ["h: enabling CRB and EPEL, where packages of the stack are"]
    again = host.play("stack", "repositories")
    assert host.calls() == ["dnf -q repolist"] and again.changed("h") == [] and not said(again)


def test_what_is_enabled_already_is_left_alone(tmp_path):
    host = Host(tmp_path, "baseos", "appstream", "crb")
    assert said(host.play("stack", "repositories")) == [
        "h: enabling EPEL, where packages of the stack are"]
    assert host.calls() == ["dnf -q repolist", "install epel-release"]


def test_rhel_itself_has_other_names(tmp_path):
    host = Host(tmp_path, "rhel-9-for-x86_64-baseos-rpms")
    rhel = {"distribution": "RedHat"}
    assert host.play("stack", "repositories", rhel).failure("h") == (
        "h: EPEL must be enabled, and RHEL's own repositories do not have epel-release. Name its "
        "rpm, a file or a URL, in stack__epel_release, or enable EPEL yourself")
    assert host.calls() == ["dnf -q repolist"], "refused before anything is changed"
    host.play("stack", "repositories", rhel, stack__epel_release="/srv/epel-release.rpm")
    assert host.calls()[1:] == [
        "install dnf-plugins-core", "subscription-manager repos --enable "
        "codeready-builder-for-rhel-9-x86_64-rpms", "install /srv/epel-release.rpm"]
    host.play("stack", "repositories", rhel)
    assert host.calls() == ["dnf -q repolist"]


def test_a_site_that_enables_nothing_by_itself_is_told(tmp_path):
    host = Host(tmp_path, "baseos", "epel-modular")
    assert host.play("stack", "repositories", stack__repositories="keep").failure("h") == (
        "h: CRB and EPEL must be enabled, for packages of the stack are there, and "
        "stack__repositories is 'keep'. Enable them, or let stack__repositories be 'enable'")
    assert host.calls() == ["dnf -q repolist"]


@pytest.mark.parametrize("facts", [
    {"distribution": "Fedora"}, {"os_family": "Debian", "distribution": "Debian"}])
def test_where_one_repository_has_everything_nothing_is_asked(tmp_path, facts):
    host = Host(tmp_path)
    assert host.play("stack", "repositories", facts).failure("h") == "" and host.calls() == []


def test_sources_that_only_apt_has_are_asked_of_the_cache_first(tmp_path):
    """NumPy's could come from PyPI."""
    cache = tmp_path / "cache"
    cache.mkdir()
    text = b"fftw"
    plan = [{"name": name, "mode": "build", "sources": [
        {"kind": kind, "name": name, "version": "1", "sha256": sha256}]}
        for name, kind, sha256 in (("openblas", "deb", "0" * 64), ("numpy", "pypi", "1" * 64),
                                   ("fftw", "deb-orig", hashlib.sha256(text).hexdigest()))]
    host = Host(tmp_path)

    def refusal():
        return host.play("stack", "cache", stack_plan=plan, stack__cache=str(cache)).failure("h")

    told = refusal()
    assert told.startswith("h: the sources of openblas, fftw come from apt or the cache, this "
                           "host has no apt, and %s has none of them." % cache)
    assert "in openblas__sources, fftw__sources, or let the mode be package" in told
    (cache / "whatever.tar.gz").write_bytes(text)
    assert refusal().startswith("h: the sources of openblas come from")
    del plan[0]
    assert refusal() == ""


def packages_of(role):
    with open(os.path.join(ANSIBLE, "roles", role, "vars/RedHat.yml"), encoding="utf-8") as stream:
        return yaml.safe_load(stream)


@pytest.mark.parametrize("role, keys", [
    ("toolchain", ["_toolchain_packages gcc", "_toolchain_tools"]),
    ("modules", ["_modules_packages lmod"]), ("python", ["_python_packages"])])
def test_roles_install_what_this_family_calls_it(tmp_path, role, keys):
    host = Host(tmp_path)
    host.play(role, stack__builder="nobody")
    names = []
    for key, *choice in map(str.split, keys):
        found = packages_of(role)[key]
        names += found[choice[0]] if choice else found
    assert names and host.calls() == ["install " + " ".join(sorted(names))]
