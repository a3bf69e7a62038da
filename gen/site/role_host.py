# SPDX-License-Identifier: Apache-2.0
"""A Debian in a chroot that the proofs run roles on, by Ansible's chroot connection."""

import os
import shutil
import tempfile

import chroots
import plays
from proving import Failed, NotRun, debian_repository, need, run

# Debian's rpm has its database in the home directory: a role and a command must mean the same one.
_ROOTS = {"HOME": "/root"}
REDHAT = {"os_family": "RedHat", "distribution": "Rocky", "pkg_mgr": "dnf"}


def needs():
    """What the machine must have."""
    chroots.needs()
    if not shutil.which("ansible-playbook"):
        raise NotRun("ansible-playbook is not installed; apt-get install ansible")
    need("mmdebstrap", "mmdebstrap")


def made(root):
    """A new host in this directory."""
    release, _ = debian_repository()
    chroots.made(root, release, "--variant=apt", "--include=python3,python3-apt")
    return Host(root)


class Host:
    """`root`: its root directory."""

    def __init__(self, root):
        self.root = root

    def path(self, *names):
        return os.path.join(self.root, *(name.lstrip("/") for name in names))

    def played(self, role, *words, facts=None, **variables):
        """The report of the role on this host."""
        variables.update({"ansible_connection": "community.general.chroot",
                          "ansible_host": self.root,
                          "ansible_python_interpreter": "/usr/bin/python3"})
        with tempfile.TemporaryDirectory() as folder:
            return plays.play(folder, role, {"host": variables}, *words, facts=facts,
                              environment=_ROOTS, before=chroots.mounted(self.root, []))

    def play(self, role, *words, **more):
        """The names of the tasks that changed something; a failed task fails the proof."""
        report = self.played(role, *words, **more)
        if report.failure("host"):
            raise Failed("the role %s: %s" % (role, report.failure("host")))
        return report.changed("host")

    def refuses(self, role, sentence, **variables):
        """The role must fail with this sentence, having changed nothing before."""
        report = self.played(role, **variables)
        if sentence not in report.failure("host") or report.changed("host"):
            raise Failed("the role %s should say '%s' and change nothing; it says '%s' and "
                         "changes %s" % (role, sentence, report.failure("host"),
                                         report.changed("host")))

    def converged(self, role, **more):
        """Runs the role, and again, which must change nothing. Returns the changes of the first."""
        first = self.play(role, **more)
        again = self.play(role, **more)
        if not first or again:
            raise Failed("the role %s changed %s, then %s" % (role, first, again))
        return first

    def inside(self, *words, user="root", status=0):
        """The output of a command there."""
        return run(chroots.entering(self.root, words, user, environment=dict(
            _ROOTS, DEBIAN_FRONTEND="noninteractive")), status=status)
