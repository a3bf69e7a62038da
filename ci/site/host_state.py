# SPDX-License-Identifier: Apache-2.0
"""The state directory of ci/hosts, and its journal.

Every resource is written down before it is made; `undo` goes through the journal backwards, and
takes what is not there for undone. So whatever became of `up`, `down` finds all of it.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shlex
import signal
import time

import host_network
import host_trees
from host_machine import (HostsError, call, end, end_all_inside, is_running, remove_tree, started,
                          unmount)


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as stream:
        return stream.read().strip()


def _undo_process(entry: dict) -> None:
    if entry["boot"] == boot_id():
        end(entry)


def _undo_mount(entry: dict) -> None:
    end_all_inside(entry["path"])
    unmount(entry["path"])


def _undo_masters(entry: dict) -> None:
    """ssh connections that a client (Ansible) keeps open for later commands."""
    with contextlib.suppress(FileNotFoundError):
        for leaf in os.listdir(entry["path"]):
            call("ssh", "-O", "exit", "-o", "ControlPath=" + os.path.join(entry["path"], leaf),
                 "nobody", check=False)


UNDO = {"process": _undo_process, "mount": _undo_mount, "masters": _undo_masters,
        "tree": lambda entry: remove_tree(entry["path"]),
        "namespace": lambda entry: host_network.remove_namespace(entry["name"]),
        "link": lambda entry: host_network.remove_link(entry["name"]),
        "internet": host_network.remove_internet, "emulation": host_trees.remove_emulation}


class State:
    """One set of hosts. `id` is short and the directory's own: it names what is made elsewhere."""

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)
        self.id = "tn" + hashlib.sha256(self.path.encode()).hexdigest()[:6]
        # Sockets lie here, for a socket's path may have 107 bytes at most.
        self.run = os.path.join(host_network.RUN, self.id)
        self._journal = os.path.join(self.path, "journal")
        self._hosts = os.path.join(self.path, "hosts.json")

    def at(self, *names: str) -> str:
        return os.path.join(self.path, *names)

    @contextlib.contextmanager
    def locked(self):
        """One `up` or `down` at a time."""
        if os.path.isdir(self.path) and not self.is_ours():
            raise HostsError("%s is not empty, and ci/hosts did not make it; choose another --state"
                             % self.path)
        try:
            os.makedirs(self.path, exist_ok=True)
            stream = open(self.at("lock"), "w", encoding="utf-8")
        except OSError as error:
            raise HostsError("%s cannot be used: %s" % (self.path, error.strerror)) from None
        with stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                gone = os.stat(stream.name).st_ino != os.fstat(stream.fileno()).st_ino
            except (BlockingIOError, FileNotFoundError):
                gone = True
            if gone:
                raise HostsError("another ci/hosts is at work in %s" % self.path)
            try:
                yield
            finally:
                self._leave()

    def is_ours(self) -> bool:
        """The directory is empty, or has a journal or a lock of ours."""
        names = os.listdir(self.path)
        return not names or "journal" in names or names == ["lock"]

    def _leave(self) -> None:
        """Takes the directory away when nothing is up."""
        if not self.entries():
            for path in (self.at("lock"), self._journal):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(path)
            for path in (self.path, host_network.RUN):
                with contextlib.suppress(OSError):  # not empty: something of somebody else's
                    os.rmdir(path)

    # ---- the journal

    def record(self, kind: str, **facts) -> dict:
        """To be called before the resource is made. Not synced to the disk: what would outlive a
        crash of the machine is files below the state alone."""
        entry = dict(facts, kind=kind)
        with open(self._journal, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(entry) + "\n")
        return entry

    def entries(self) -> list:
        """What the journal holds; a line that was cut off stands for something not yet made."""
        found = []
        with contextlib.suppress(FileNotFoundError):
            with open(self._journal, encoding="utf-8") as stream:
                for line in stream:
                    if line.endswith("\n"):
                        found.append(json.loads(line))
        return found

    def tree(self, *names: str) -> str:
        """A new, empty directory below the state that `undo` removes."""
        path = self.at(*names)
        self.record("tree", path=path)
        os.makedirs(path)
        return path

    def write(self, name: str, text: str, mode: int = 0o644) -> str:
        """A file of the state, as a whole."""
        path = self.at(name)
        self.record("tree", path=path)
        with open(path, "w", encoding="utf-8") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(text)
        return path

    def process(self, words: list, log: str) -> dict:
        return started(words, lambda process: self.record("process", boot=boot_id(), **process),
                       log)

    def undo(self) -> None:
        """Undoes everything. What resists stays in the journal, and is told together."""
        signals = {number: signal.signal(number, signal.SIG_IGN)
                   for number in (signal.SIGINT, signal.SIGTERM)}
        left, troubles = [], []
        try:
            for entry in reversed(self.entries()):
                try:
                    UNDO[entry["kind"]](entry)
                except (HostsError, OSError) as error:
                    left.insert(0, entry)
                    troubles.append(str(error))
            self._rewrite(left)
        finally:
            for number, handler in signals.items():
                signal.signal(number, handler)
        if troubles:
            raise HostsError("not everything could be undone; deal with it and run "
                             "`ci/hosts down --state %s` again:\n  %s" % (
                                 shlex.quote(self.path), "\n  ".join(dict.fromkeys(troubles))))

    def _rewrite(self, entries: list) -> None:
        temporary = self._journal + ".new"
        with open(temporary, "w", encoding="utf-8") as stream:
            stream.writelines(json.dumps(entry) + "\n" for entry in entries)
        os.replace(temporary, self._journal)
        with contextlib.suppress(FileNotFoundError):
            os.remove(self._hosts)

    # ---- what is up

    def save(self, facts: dict) -> None:
        """Marks the end of `up`."""
        temporary = self._hosts + ".new"
        with open(temporary, "w", encoding="utf-8") as stream:
            json.dump(dict(facts, made=int(time.time())), stream, indent=1)
        os.replace(temporary, self._hosts)

    def load(self) -> dict:
        """What `save` was given; {} when nothing is up, or only a part is."""
        try:
            with open(self._hosts, encoding="utf-8") as stream:
                return json.load(stream)
        except FileNotFoundError:
            return {}

    def host(self, name: str) -> dict:
        hosts = {host["name"]: host for host in self.load().get("hosts", [])}
        if not hosts:
            raise HostsError("no hosts are up in %s" % self.path)
        if name not in hosts:
            raise HostsError("there is no host '%s' in %s; it has %s" % (
                name, self.path, ", ".join(hosts)))
        return hosts[name]


def is_up(host: dict) -> bool:
    """Its first process runs; of a chroot: its root is mounted or was copied."""
    if "process" in host:
        return is_running(host["process"])
    return os.path.isdir(os.path.join(host["root"], "usr"))
