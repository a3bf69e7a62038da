# SPDX-License-Identifier: Apache-2.0
"""Proof of ansible/ on the family of Fedora and RHEL, as far as a Debian machine can give one: the
whole play in check mode on a host that looks like Rocky Linux 9 to Ansible's own facts."""

import json
import os
import shutil
import subprocess
import sys

from fake_dnf import FakeDnf
from proving import SOURCE, Failed, NotRun, need, proof

ANSIBLE = os.path.join(SOURCE, "ansible")
OS_RELEASE = """NAME="Rocky Linux"
VERSION="9.4 (Blue Onyx)"
ID="rocky"
ID_LIKE="rhel centos fedora"
VERSION_ID="9.4"
PRETTY_NAME="Rocky Linux 9.4 (Blue Onyx)"
"""


def _wanted():
    """Names of packages by the roles' own data."""
    import yaml

    def data(*parts):
        with open(os.path.join(ANSIBLE, "roles", *parts), encoding="utf-8") as stream:
            return yaml.safe_load(stream)

    found = set()
    for name in os.listdir(os.path.join(ANSIBLE, "roles")):
        if os.path.exists(os.path.join(ANSIBLE, "roles", name, "component.yml")):
            record = data(name, "component.yml")
            mode = record["modes"][0]
            found.update(record["build_packages" if mode == "build" else "packages"]["RedHat"])
            found.update(record.get("suite", {}).get(mode, {}).get("short", {}).get(
                "packages", {}).get("RedHat", []))
    toolchain, modules, python = (data(role, "vars/RedHat.yml")
                                  for role in ("toolchain", "modules", "python"))
    return ["dnf -q repolist", "install dnf-plugins-core", "install epel-release", *(
        "install " + " ".join(sorted(names)) for names in (
            modules["_modules_packages"]["lmod"],
            toolchain["_toolchain_packages"]["gcc"] + toolchain["_toolchain_tools"],
            python["_python_packages"], found))]


@proof
def stack_redhat():
    """Ansible: the whole play in check mode on what looks like Rocky Linux 9; what dnf is asked"""
    if os.getuid() != 0:
        raise NotRun("only root can lay files over /etc")
    need("ansible-playbook", "ansible-core")
    folder = os.path.abspath("stack-redhat")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    os.chmod(folder, 0o755)
    dnf = FakeDnf(folder, "appstream", "baseos")
    dnf.write("etc/os-release", OS_RELEASE)
    dnf.write("etc/redhat-release", "Rocky Linux release 9.4 (Blue Onyx)\n")
    variables = {"stack__prefix": folder + "/stack", "stack__cache": folder + "/cache",
                 "stack__reports": folder + "/reports", "stack__builder": "nobody",
                 "builder__home": "/nonexistent", "builder__commands": [],
                 "modules__init": "/dev/null", "ansible_python_interpreter": sys.executable}
    # In a mount namespace of its own: the machine stays what it is.
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-ec",
         'mount -t overlay -o "lowerdir=$0/etc:/etc" overlay /etc; '
         'mount -t overlay -o "lowerdir=$0/bin:/usr/bin" overlay /usr/bin; exec "$@"', folder,
         "ansible-playbook", "site.yml", "--check", "-e", json.dumps(variables)],
        cwd=ANSIBLE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=dict(os.environ, ANSIBLE_LIBRARY="%s/library:%s/library" % (folder, ANSIBLE),
                 ANSIBLE_NOCOLOR="1"), check=False)
    text = done.stdout.decode(errors="replace")
    if done.returncode:
        raise Failed(text[-4000:])
    if os.path.exists(variables["stack__prefix"]):
        raise Failed("check mode made " + variables["stack__prefix"])
    calls = dnf.calls()
    wanted = _wanted()
    if calls != wanted:
        raise Failed("dnf was asked\n  %s\nand should have been asked\n  %s" % (
            "\n  ".join(calls), "\n  ".join(wanted)))
    return "CRB and EPEL, then %d packages in %d calls" % (
        sum(len(line.split()) - 1 for line in calls[3:]), len(calls[3:]))
