# SPDX-License-Identifier: Apache-2.0
"""Hosts of a network of this machine's own: network namespaces with an address each, for tests of
what happens between machines. Needs root and iproute2."""

import os
import shutil
import subprocess


def why_not():
    """What hinders such hosts here, or ''."""
    if os.geteuid():
        return "only root makes network namespaces"
    if shutil.which("ip") is None:
        return "there is no ip (iproute2)"
    name = "tn%d-probe" % os.getpid()
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if made.returncode:
        return "no network namespace can be made here: " + made.stderr.strip()
    subprocess.run(["ip", "netns", "delete", name], check=True)
    return ""


class Hosts:
    """Two hosts with a cable between them: addresses[i], and within(i), the command that runs
    another one on it."""

    def __init__(self):
        number = os.getpid()
        self.names = ["tn%d-%d" % (number, i) for i in range(2)]
        net = "10.%d.%d" % (200 + number % 50, number // 50 % 250)
        self.addresses = [net + ".1", net + ".2"]
        self._ends = ["v%dn%d" % (number, i) for i in range(2)]
        for name in self.names:
            _ip("netns", "add", name)
        _ip("link", "add", self._ends[0], "netns", self.names[0], "type", "veth", "peer", "name",
            self._ends[1], "netns", self.names[1])
        for name, end, address in zip(self.names, self._ends, self.addresses):
            _ip("-n", name, "address", "add", address + "/24", "dev", end)
            _ip("-n", name, "link", "set", end, "up")
            _ip("-n", name, "link", "set", "lo", "up")

    def within(self, host):
        return ["ip", "netns", "exec", self.names[host]]

    def cable(self, state):
        """Pulls it ("down") or plugs it ("up"): nothing is told, and nothing comes."""
        _ip("-n", self.names[0], "link", "set", self._ends[0], state)

    def close(self):
        for name in self.names:
            _ip("netns", "delete", name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
