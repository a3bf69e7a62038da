# SPDX-License-Identifier: Apache-2.0
"""Plays of ansible/ on test hosts, for proofs."""

import glob
import json
import os
import shutil
import subprocess

from hosts_proof import check_machine, hosts, inside
from proving import SOURCE, Failed, need

ANSIBLE = os.path.join(SOURCE, "ansible")


class Site:
    """Test hosts, and plays run on them."""

    def __init__(self, name, *words):
        check_machine()
        need("ansible-community", "ansible")
        self.base = os.path.abspath(name)
        self.state = os.path.join(self.base, "hosts")
        self.reports = os.path.join(self.base, "reports")
        shutil.rmtree(self.reports, ignore_errors=True)
        os.makedirs(self.reports)
        self.words = words

    def __enter__(self):
        # A proof that was killed left its own, with what they had built.
        hosts("down", "--state", self.state)
        hosts("up", "--state", self.state, *self.words)
        return self

    def __exit__(self, *_):
        hosts("down", "--state", self.state)

    def inside(self, host, command):
        """The output of a line of shell there."""
        return inside(self.state, host, command)

    def fill(self, host, *names):
        """The sources of components from PyPI, put into a host's cache by this machine, whose pip
        knows where its index is: the options that name them."""
        from stack_fixture import module, stack  # Ansible's packages
        records = stack.stack_records(os.path.join(ANSIBLE, "roles"))
        fetch = module("library/stack_source.py").fetched
        options = {}
        for name in names:
            record = records[name]
            options[name + "__sources"] = [
                s for s in record["versions"][record["version"]]["sources"] if "pypi" in s]
            fetch(name, stack.sources(name, options[name + "__sources"]), os.path.join(
                self.state, "roots", host, "var/cache/treenail-stack"))
        return options

    def play(self, name, *words, network=True, status=0, playbook="site.yml", ansible=ANSIBLE):
        """The report of a play: what changed, which steps ran, what failed."""
        command = ["ansible-playbook", "-i", os.path.join(self.state, "inventory.yml"), playbook,
                   "-e", "stack__reports=" + self.reports, *words]
        if not network:
            command = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh",
                       *command]
        before = set(glob.glob(os.path.join(self.reports, "report-*.json")))
        log = os.path.join(self.base, name + ".log")
        with open(log, "wb") as stream:
            done = subprocess.run(command, cwd=ansible, stdout=stream, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, check=False, env=dict(
                                      os.environ, NO_COLOR="1"))
        made = set(glob.glob(os.path.join(self.reports, "report-*.json"))) - before
        if (done.returncode == 0) != (status == 0) or len(made) != 1:
            with open(log, encoding="utf-8", errors="replace") as stream:
                raise Failed("%s: exit status %d, %d reports; %s ends with:\n%s" % (
                    name, done.returncode, len(made), log, stream.read()[-4000:]))
        with open(made.pop(), encoding="utf-8") as stream:
            report = json.load(stream)
        print("%s: %d s" % (name, report["seconds"]), flush=True)
        return report

    def manifest(self, host):
        """What the last play left of a host's stack."""
        with open(os.path.join(self.reports, "manifest-%s.json" % host), encoding="utf-8") as text:
            return json.load(text)

    def prefixes(self, host):
        """{component: its prefix} of what the manifest has built."""
        return {c["name"]: c["prefix"] for c in self.manifest(host)["components"] if c["prefix"]}


def built(report):
    """Components of which a step ran."""
    return {step["component"] for step in report["steps"] if step["ran"]}


def changes(report):
    return sum(host["changed"] for host in report["hosts"].values())


def skipped(*kept):
    """Options that leave out everything but these."""
    return {name + "__mode": "skip" for name in (
        "openblas", "fftw", "hdf5", "numpy", "h5py", "scipy", "treenail") if name not in kept}
