# SPDX-License-Identifier: Apache-2.0
"""Proofs that ci/hosts makes the hosts it promises, that Ansible reaches them, and that nothing is
left of them afterwards, nor of an `up` that was cut off."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import plays
from proving import SOURCE, Failed, NotRun, need, proof, run

HOSTS = os.path.join(SOURCE, "ci/hosts")


def hosts(*words, status=0):
    """What `ci/hosts` said."""
    return run([HOSTS, *words], status=status)


def check_machine():
    if os.getuid() != 0:
        raise NotRun("only root can make hosts")
    need("mmdebstrap", "mmdebstrap")
    need("ip", "iproute2")


def check_slurm():
    """Of what a cluster of ci/hosts needs, this is for --slurm."""
    check_machine()
    need("slurmctld", "slurm")
    need("munged", "munge")


# ---- nothing is left -------------------------------------------------------------------------


def processes():
    """Number and start time of each process that runs, with its command."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        base = "/proc/" + name
        try:
            with open(base + "/stat", encoding="utf-8", errors="replace") as stream:
                fields = stream.read().rpartition(")")[2].split()
            with open(base + "/cmdline", "rb") as stream:
                command = stream.read().replace(b"\0", b" ").decode(errors="replace")
            root = os.readlink(base + "/root")
        except OSError:
            continue
        if fields[0] not in "ZX":
            found["process %s, started at %s" % (name, fields[19])] = "%s in %s" % (command, root)
    return found


def snapshot():
    """What hosts consist of, each with what it is called."""
    found = processes()
    with open("/proc/self/mountinfo", encoding="utf-8") as stream:
        found.update(("mount " + line.split()[0], line) for line in stream)
    for line in run(["ip", "netns", "list"]).splitlines():
        found["namespace " + line] = line
    for row in json.loads(run(["ip", "-json", "link"])):
        found["link " + row["ifname"]] = row["ifname"]
    for folder in ("/proc/sys/fs/binfmt_misc", "/run/treenail-hosts"):
        if os.path.isdir(folder):
            found.update((os.path.join(folder, leaf), leaf) for leaf in os.listdir(folder))
    if shutil.which("iptables"):
        for line in run(["iptables", "-w", "-t", "nat", "-S"]).splitlines():
            found["rule " + line] = line
    return found


def marks(state):
    """What names everything of a state: its directory and its short name."""
    sys.path.insert(0, os.path.join(SOURCE, "ci/site"))
    import host_state
    return state, host_state.State(state).id


@contextlib.contextmanager
def nothing_left(state):
    """Fails when, after what is done within, anything of the state is there that was not before.
    Whatever else the machine does meanwhile goes by other names."""
    before, own = snapshot(), marks(state)
    try:
        yield
    finally:
        hosts("down", "--state", state)
    left = ["%s: %s" % (key, text.strip()) for key, text in snapshot().items()
            if key not in before and any(mark in text for mark in own)]
    if left or os.path.exists(state):
        raise Failed("still there: " + "; ".join(left or [state]))


def seen(state):
    """Whether nothing_left would see what is up now: of each kind, something has its mark."""
    own = marks(state)
    return {key.split()[0] for key, text in snapshot().items() if any(mark in text for mark in own)}


@contextlib.contextmanager
def up(name, *words):
    """Hosts in a state directory of that name, while the body runs; nothing is left of them."""
    check_machine()
    state = os.path.abspath("proof-" + name)
    hosts("down", "--state", state)
    with nothing_left(state):
        begin = time.monotonic()
        hosts("up", "--state", state, *words)
        yield state, time.monotonic() - begin


# ---- what hosts are --------------------------------------------------------------------------


def inside(state, host, command):
    return hosts("run", "--state", state, host, "--", "sh", "-c", command).strip()


def pinged(state, count):
    """Ansible reaches every host of the inventory."""
    need("ansible-community", "ansible")
    text = run(["ansible", "all", "-i", os.path.join(state, "inventory.yml"), "-m", "ping"],
               environment={"ANSIBLE_NOCOLOR": "1"})
    if text.count('"ping": "pong"') != count:
        raise Failed(text)


def quick_no_op(state, *words):
    """`up` of the same hosts changes nothing; of others, it is refused. The seconds it took."""
    begin = time.monotonic()
    text = hosts("up", "--state", state, *words)
    seconds = time.monotonic() - begin
    if "already up" not in text:
        raise Failed(text)
    text = hosts("up", "--state", state, *words, "--bare", status=1)
    if "other hosts are up in" not in text:
        raise Failed(text)
    return seconds


@proof
def hosts_chroot():
    """ci/hosts: chroots that Ansible reaches, with files of their own; nothing is left of them"""
    words = ("--chroot", "one", "--chroot", "two")
    with up("hosts-chroot", *words) as (state, seconds):
        pinged(state, 2)
        inside(state, "one", "echo one > /etc/own")
        if inside(state, "two", "test -e /etc/own || echo none") != "none":
            raise Failed("what one chroot writes is in the other")
        if "Debian" not in inside(state, "one", "cat /etc/os-release"):
            raise Failed("the root is not a Debian's")
        # What still runs in a chroot ends with it.
        subprocess.Popen([HOSTS, "run", "--state", state, "two", "--", "sleep", "100000"],
                         start_new_session=True)
        again = quick_no_op(state, *words)
    return "two up in %.1f s, again in %.1f s; pinged; nothing left" % (seconds, again)


@proof
def hosts_ssh():
    """ci/hosts: hosts over ssh with own address, name, processes and files; nothing is left"""
    need("ssh", "openssh-client")
    with up("hosts-ssh", "--ssh", "2") as (state, seconds):
        pinged(state, 2)
        addresses = set()
        for host, other in (("ssh1", "ssh2"), ("ssh2", "ssh1")):
            if inside(state, host, "hostname") != host:
                raise Failed("%s calls itself %s" % (host, inside(state, host, "hostname")))
            if inside(state, host, "cat /proc/1/comm") != "sshd":
                raise Failed("%s sees processes that are not its own" % host)
            addresses.add(inside(state, host, "getent hosts " + host))
            reach(state, host, other, 22, True)
            reach(state, host, "192.0.2.1", 80, False)  # kept for documentation: nobody's address
        inside(state, "ssh1", "echo one > /etc/own")
        if inside(state, "ssh2", "test -e /etc/own || echo none") != "none" or len(addresses) != 2:
            raise Failed("two hosts share files or an address: %s" % addresses)
        again = quick_no_op(state, "--ssh", "2")
        if not seen(state) >= {"process", "mount", "namespace", "link"}:
            raise Failed("of what is up, only these would be missed: %s" % seen(state))
    return "two up in %.1f s, again in %.1f s; pinged; nothing left" % (seconds, again)


def reach(state, host, name, port, wanted):
    """Whether a program on the host gets a connection; without a route it is told so at once."""
    program = ("import socket\ntry:\n    socket.create_connection(('%s', %d)).close()\n"
               "    print('reached')\nexcept OSError as error:\n    print(error)" % (name, port))
    text = hosts("run", "--state", state, host, "--", "python3", "-c", program).strip()
    if (text == "reached") != wanted or (not wanted and "unreachable" not in text):
        raise Failed("%s to %s: %s" % (host, name, text))


@proof
def hosts_bare():
    """ci/hosts --bare: hosts without Python, which the role python bootstraps by sudo and by su"""
    need("ansible-community", "ansible")
    with up("hosts-bare", "--ssh", "2", "--internet", "--bare") as (state, _):
        for host in ("ssh1", "ssh2"):
            if inside(state, host, "command -v python3 || echo none") != "none":
                raise Failed("a bare host has Python")
        for wanted in (["Install what Ansible needs"], []):
            report = _bootstrapped(state)
            for host in ("ssh1", "ssh2"):
                if report.failure(host) or report.changed(host) != wanted:
                    raise Failed("bootstrap of %s changed %s and says '%s'" % (
                        host, report.changed(host), report.failure(host)))
        pinged(state, 2)
    return "no Python; installed by the role through --internet, by sudo and by su; again " \
        "without a change; pinged"


def _bootstrapped(state):
    """The report of the role's bootstrap: root becomes root, by sudo on ssh1 and by su on ssh2."""
    with tempfile.TemporaryDirectory() as folder:
        return plays.play(
            folder, "python", {"ssh1": {"ansible_become_method": "sudo"},
                               "ssh2": {"ansible_become_method": "su"}},
            "-i", os.path.join(state, "inventory.yml"), tasks_from="bootstrap",
            facts={"os_family": "Debian"},  # none are gathered without Python
            environment={"ANSIBLE_BECOME_ALLOW_SAME_USER": "1"})


@proof
def hosts_arm64():
    """ci/hosts: an arm64 chroot under qemu-user that Ansible reaches; nothing is left of it"""
    need("qemu-aarch64-static", "qemu-user-static")
    need("arch-test", "arch-test")
    with up("hosts-arm64", "--chroot", "arm:arm64") as (state, seconds):
        pinged(state, 1)
        machine = inside(state, "arm", "uname -m; dpkg --print-architecture")
        if machine.split() != ["aarch64", "arm64"]:
            raise Failed("the machine is called " + machine)
        rights = inside(state, "arm", "install -m 4755 /usr/bin/id /tmp/id && "
                        "su nobody -s /bin/sh -c '/tmp/id -u'")
        if rights != "0":
            raise Failed("a program of root's runs with the rights of user " + rights)
    return "up in %.1f s; pinged; sudo would work; nothing left" % seconds


@proof
def hosts_cut_off():
    """ci/hosts up, killed or interrupted in its midst: `down` finds everything and undoes it"""
    words = ("--chroot", "one", "--ssh", "1")
    with up("hosts-cut-off", *words) as (state, _):
        with open(os.path.join(state, "journal"), encoding="utf-8") as stream:
            steps = len(stream.readlines())
    for number in (signal.SIGKILL, signal.SIGINT):
        for step in range(1, steps, 3):
            with nothing_left(state):
                cut_off(state, words, step, number)
    return "%d steps, SIGKILL and SIGINT at every third of them" % steps


def cut_off(state, words, step, number):
    """Signals `up` when its journal has so many lines; a signal other than SIGKILL leaves nothing
    for `down` to do."""
    going = subprocess.Popen([HOSTS, "up", "--state", state, *words], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
    journal = os.path.join(state, "journal")
    while going.poll() is None:
        with contextlib.suppress(FileNotFoundError):
            with open(journal, "rb") as stream:
                if stream.read().count(b"\n") >= step:
                    break
    going.send_signal(number)
    text = going.communicate()[0].decode(errors="replace")
    if number == signal.SIGINT and going.returncode == 130 and os.path.exists(state):
        raise Failed("interrupted at step %d, %s is still there:\n%s" % (step, state, text))
    if going.returncode not in (0, 130, -number):
        raise Failed("cut off at step %d: exit status %d\n%s" % (step, going.returncode, text))
