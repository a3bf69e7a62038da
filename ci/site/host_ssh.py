# SPDX-License-Identifier: Apache-2.0
"""Test hosts reached over ssh: a root, a network leg, a hostname and processes of their own, and
sshd, with keys made for this set of hosts alone."""

import os
import shutil
import socket
import time

from host_machine import HostsError, call, is_running
import host_trees

INIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ssh_host.sh")


def make_key(state) -> str:
    """The key that opens every host of this state."""
    path = state.at("key")
    for name in (path, path + ".pub"):
        state.record("tree", path=name)
    call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", state.id, "-f", path)
    return path


def _install_keys(root: str, key: str) -> str:
    """Lets the key in; the host's own new public key."""
    folder = os.path.join(root, "root/.ssh")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    shutil.copy(key + ".pub", os.path.join(folder, "authorized_keys"))
    own = os.path.join(root, "etc/ssh")
    for leaf in os.listdir(own):
        if leaf.startswith("ssh_host_"):
            os.remove(os.path.join(own, leaf))
    path = os.path.join(own, "ssh_host_ed25519_key")
    call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path)
    with open(path + ".pub", encoding="utf-8") as stream:
        return " ".join(stream.read().split()[:2])


def ssh_host(state, name: str, base: str, leg: dict, addresses: dict, key: str) -> dict:
    """Starts one host; `answering` waits for it."""
    root = host_trees.layer(state, name, base)
    host_trees.name_host(root, name, addresses)
    public = _install_keys(root, key)
    log = state.at("log", name + ".log")
    process = state.process(
        ["nsenter", "--net=/run/netns/" + leg["namespace"], "unshare", "--mount", "--uts", "--ipc",
         "--pid", "--fork", "--kill-child", "--mount-proc=" + os.path.join(root, "proc"), "sh",
         INIT, name, root], log)
    return dict(leg, name=name, kind="ssh", root=root, process=process, log=log, public=public)


def answering(host: dict, patience: float = 30.0) -> None:
    """Waits until the host's sshd greets."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and is_running(host["process"]):
        try:
            with socket.create_connection((host["address"], 22), timeout=1) as connection:
                if connection.recv(4) == b"SSH-":
                    return
        except OSError:
            time.sleep(0.05)
    with open(host["log"], encoding="utf-8", errors="replace") as stream:
        raise HostsError("%s does not answer on %s port 22; its log ends with:\n%s" % (
            host["name"], host["address"], stream.read()[-1500:]))
