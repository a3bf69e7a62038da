# SPDX-License-Identifier: Apache-2.0
"""Running a program in an image without a daemon: by runc or crun, whichever holds the limits here.

That is tried, not concluded: a container is created, the limits are read back from its control
groups, and only a runtime that passed starts the program.
"""

import contextlib
import errno
import fcntl
import json
import math
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Optional, Sequence, Tuple

from image_build import IMAGE_NEEDS, check_space, locked, ran, scratch
from oci_layout import Layout
from package_build import Unusable

RUNTIMES = ("crun", "runc")  # crun starts faster; runc also knows hybrid control groups
PERIOD = 100000  # microseconds, as in the kernel's default
LEAST_MEMORY = 32 << 20
DATA = "/data"
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


@dataclass(frozen=True)
class Limits:
    """memory in bytes, cpus as a number that need not be whole, pids as processes and threads."""

    memory: int
    cpus: float
    pids: int

    def shown(self) -> str:
        return "%.6g MiB, %g CPUs, %d processes" % (self.memory / (1 << 20), self.cpus, self.pids)


@dataclass(frozen=True)
class Job:
    """What is run, and how."""

    command: Tuple[str, ...]
    limits: Limits
    user: Tuple[int, int]
    bind: str = ""
    writable: bool = True
    environment: Tuple[str, ...] = ()
    network: str = "none"


def parse_memory(text: str) -> int:
    """512M, 1.5G, or bytes; whole pages."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", text, re.IGNORECASE)
    value = int(float(found.group(1)) * (1 << _UNITS[found.group(2).upper()])) if found else 0
    if value < LEAST_MEMORY:
        raise Unusable("--memory is '%s': bytes, or a number with K, M, G or T, and at least 32M "
                       "are needed" % text)
    return value - value % os.sysconf("SC_PAGE_SIZE")


def parse_cpus(text: str) -> float:
    """A number of CPUs, at most those that this process may use."""
    there = len(os.sched_getaffinity(0))
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.01 <= value <= there:
        raise Unusable("--cpus is '%s': a number from 0.01 to %d, the CPUs there are, is needed"
                       % (text, there))
    return value


def parse_bind(text: str) -> Tuple[str, bool]:
    """DIRECTORY or DIRECTORY:ro -> its absolute path, and whether it may be written."""
    path, colon, mode = text.rpartition(":")
    if not colon or mode not in ("ro", "rw"):
        path, mode = text, "rw"
    if not os.path.isdir(path):
        raise Unusable("--bind: %s is no directory" % path)
    return os.path.realpath(path), mode == "rw"


def parse_user(text: str) -> Tuple[int, int]:
    """UID or UID:GID; root is refused."""
    found = re.fullmatch(r"(\d{1,9})(?::(\d{1,9}))?", text)
    user = int(found.group(1)) if found else 0
    group = int(found.group(2) or user) if found else 0
    if not user or not group:
        raise Unusable("--user is '%s': UID or UID:GID are needed, numbers above 0, for nothing "
                       "runs as root in a container" % text)
    return user, group


def allowed(path: str, user: Tuple[int, int], wanted: int) -> bool:
    """Do the permission bits of the file let this user do that (4 read, 2 write, 1 enter)?"""
    facts = os.stat(path)
    shift = 6 if facts.st_uid == user[0] else 3 if facts.st_gid == user[1] else 0
    return stat.S_IMODE(facts.st_mode) >> shift & wanted == wanted


def check_bind(job: Job) -> None:
    """A directory that the program cannot use is said now, not by a traceback inside."""
    if job.bind and not allowed(job.bind, job.user, 7 if job.writable else 5):
        raise Unusable(
            "--bind: %s belongs to %d:%d with mode %o, and the program runs as %d:%d, which may "
            "not %s there: change owner or mode, give --user UID, or bind it read-only (:ro)" % (
                job.bind, os.stat(job.bind).st_uid, os.stat(job.bind).st_gid,
                stat.S_IMODE(os.stat(job.bind).st_mode), *job.user,
                "write" if job.writable else "read"))


@contextlib.contextmanager
def unpacked(layout: Layout, tag: str) -> Iterator[str]:
    """The root of an image, unpacked once and then shared by all who run it; nobody writes there.
    A lock on the directory tells ci/image gc that it is used."""
    root = os.path.join(layout.path + ".roots", layout.descriptor(tag)["digest"].split(":")[1])
    while True:
        if not os.path.isdir(root):
            _unpack(layout, tag, root)
        try:
            handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_SH)
            if os.path.isdir(root):  # else gc removed it just before
                yield root
                return
        finally:
            os.close(handle)


def _unpack(layout: Layout, tag: str, root: str) -> None:
    os.makedirs(os.path.dirname(root), exist_ok=True)
    with locked(layout), scratch(layout) as place:
        if not os.path.isdir(root):
            check_space(place, IMAGE_NEEDS)
            ran("umoci", "raw", "unpack", "--image", "%s:%s" % (layout.path, tag),
                os.path.join(place, "rootfs"))
            os.rename(os.path.join(place, "rootfs"), root)


def remove_unused_roots(layout: Layout) -> Tuple[int, int]:
    """Removes unpacked roots that no tag names; how many, and how many are still used."""
    folder, removed, busy = layout.path + ".roots", 0, 0
    needed = {entry["digest"].split(":")[1] for entry in layout.tags().values()}
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        if name in needed:
            continue
        handle = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(os.path.join(folder, name))
            removed += 1
        except BlockingIOError:
            busy += 1
        finally:
            os.close(handle)
    return removed, busy


def swaps() -> bool:
    """Can this machine swap? Then swap must be limited, too."""
    return len(_read("/proc/swaps").splitlines()) > 1


def bundle_config(spec: Dict[str, Any], job: Job, root: str, group: str, swap: bool
                  ) -> Dict[str, Any]:
    """umoci's runtime configuration of the image made narrow: an unprivileged user without any
    capability, a root that is read-only, no network, and the limits."""
    process, linux = spec["process"], spec["linux"]
    process["terminal"] = sys.stdin.isatty() and sys.stdout.isatty()
    process["user"] = {"uid": job.user[0], "gid": job.user[1], "umask": 0o022}
    process["capabilities"] = {name: [] for name in process["capabilities"]}
    process["noNewPrivileges"] = True
    names = {word.partition("=")[0] for word in job.environment}
    process["env"] = [word for word in process["env"]
                      if word.partition("=")[0] not in names] + list(job.environment)
    if job.command:
        process["args"] = list(job.command)
    process["cwd"] = DATA if job.bind else process["cwd"]
    spec["root"] = {"path": root, "readonly": True}
    spec["hostname"] = "treenail"
    spec["mounts"].append({"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": [
        "nosuid", "nodev", "mode=1777", "size=%d" % job.limits.memory]})
    if job.bind:
        spec["mounts"].append({
            "destination": DATA, "type": "bind", "source": job.bind,
            "options": ["bind", "nosuid", "nodev", "rw" if job.writable else "ro"]})
    if job.network == "host":
        linux["namespaces"] = [n for n in linux["namespaces"] if n["type"] != "network"]
    linux["namespaces"].append({"type": "cgroup"})
    memory = {"limit": job.limits.memory}
    if swap:
        memory["swap"] = job.limits.memory
    linux["resources"].update(
        memory=memory, pids={"limit": job.limits.pids},
        cpu={"quota": round(job.limits.cpus * PERIOD), "period": PERIOD})
    linux["cgroupsPath"] = group  # below the caller's own group, whose limits hold, too
    return spec


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read().strip()
    except OSError as reason:
        if reason.errno in (errno.ENOENT, errno.ENOTDIR, errno.EOPNOTSUPP):
            return ""
        raise


def group_file(pid: int, controller: str, names: Tuple[str, str], root: str = "/") -> str:
    """The text of a file of the control group that a process is in: names are those of version 1
    and 2; "" where the controller is in neither."""
    groups = dict(line.split(":", 2)[1:] for line in _read(
        os.path.join(root, "proc/%d/cgroup" % pid)).splitlines())
    for line in _read(os.path.join(root, "proc/self/mountinfo")).splitlines():
        place, _, kind = line.partition(" - ")
        words = kind.split()
        point = os.path.join(root, place.split()[4].lstrip("/"))
        if words[0] == "cgroup" and controller in words[2].split(","):
            for controllers, group in groups.items():
                if controller in controllers.split(","):
                    return _read(os.path.join(point, group.lstrip("/"), names[0]))
        if words[0] == "cgroup2" and "" in groups:
            text = _read(os.path.join(point, groups[""].lstrip("/"), names[1]))
            if text:
                return text
    return ""


def not_in_force(pid: int, limits: Limits, root: str = "/") -> str:
    """Which of the limits do the control groups of this process not hold? "": all are in force."""
    memory = group_file(pid, "memory", ("memory.limit_in_bytes", "memory.max"), root)
    pids = group_file(pid, "pids", ("pids.max", "pids.max"), root)
    cpu = group_file(pid, "cpu", ("cpu.cfs_quota_us", "cpu.max"), root).split()
    if len(cpu) == 1:  # version 1 has a file for each
        cpu += [group_file(pid, "cpu", ("cpu.cfs_period_us", ""), root)]
    found = (("memory", memory, str(limits.memory)), ("processes", pids, str(limits.pids)),
             ("CPUs", " ".join(cpu), "%d %d" % (round(limits.cpus * PERIOD), PERIOD)))
    return "; ".join("%s: the control group has '%s', not %s" % (
        name, there or "no such limit", asked) for name, there, asked in found if there != asked)


def spoken(text: str) -> str:
    """The last line that a runtime said, without the form of runc's log."""
    line = (text.splitlines() or [""])[-1]
    found = re.search(r'msg="((?:[^"\\]|\\.)*)"', line)
    return re.sub(r"\\(.)", r"\1", found.group(1)) if found else line


class Container:
    """One container of a runtime; its state lies in a directory of its own."""

    def __init__(self, runtime: str, folder: str, name: str):
        self.bundle, self.name = folder, name
        self.command = [runtime, "--root", os.path.join(folder, runtime)]

    def problem(self, limits: Limits) -> str:
        """Creates it without starting the program; why it cannot hold the limits here, or ""."""
        create = [*self.command, "create", "--bundle", self.bundle, self.name]
        with tempfile.TemporaryFile() as said:  # no pipe: the container keeps it open
            done = subprocess.run(create, stdin=subprocess.DEVNULL, stdout=said,
                                  stderr=subprocess.STDOUT, check=False)
            said.seek(0)
            text = said.read().decode(errors="replace").strip()
        try:
            if done.returncode:
                return spoken(text) or "exit status %d" % done.returncode
            state = subprocess.run([*self.command, "state", self.name], stdout=subprocess.PIPE,
                                   check=True).stdout
            return not_in_force(json.loads(state)["pid"], limits)
        finally:
            self.delete()

    def delete(self) -> None:
        subprocess.run([*self.command, "delete", "--force", self.name], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)

    def run(self) -> int:
        """The program's exit status. At Ctrl-C and TERM the runtime tells the program, which is
        killed when it is still there five seconds later."""
        with subprocess.Popen([*self.command, "run", "--bundle", self.bundle, self.name]) as going:
            try:
                return going.wait()
            except KeyboardInterrupt:
                going.terminate()
                with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
                    going.wait(5)
                raise
            finally:
                self.delete()


def _tried(container: Container, spec: Dict[str, Any], limits: Limits) -> str:
    """Why the container cannot hold its limits here, or "". A program that cannot be started is
    the caller's matter, which no other runtime will mend."""
    path = os.path.join(container.bundle, "config.json")
    process = dict(spec["process"], terminal=False)
    problem = ""
    try:
        for arguments in (process["args"], ["true"]):
            with open(path, "w", encoding="utf-8") as stream:
                json.dump(dict(spec, process=dict(process, args=arguments)), stream)
            first, problem = problem, container.problem(limits)
            if not problem:
                break
    finally:
        with open(path, "w", encoding="utf-8") as stream:
            json.dump(spec, stream)
    if first and not problem:
        raise Unusable("%s cannot be started: %s" % (process["args"][0], first))
    return problem


def chosen_runtime(folder: str, spec: Dict[str, Any], limits: Limits, name: str,
                   runtimes: Sequence[str]) -> Tuple[Container, str]:
    """The first runtime that holds the limits here, and what is to be said of the choice."""
    reasons = []
    for runtime in runtimes:
        if not shutil.which(runtime):
            reasons.append("%s: not installed" % runtime)
            continue
        container = Container(runtime, folder, name)
        problem = _tried(container, spec, limits)
        if not problem:
            return container, "%s%s" % (
                runtime, " (%s)" % "; ".join(reasons) if reasons else "")
        reasons.append("%s: %s" % (runtime, problem))
    raise Unusable("no container runtime holds the limits (%s) on this machine:\n  %s" % (
        limits.shown(), "\n  ".join(reasons)))


def run(layout: Layout, tag: str, job: Job, runtime: Optional[str], quiet: bool) -> int:
    """Runs the job in the image; the exit status of its program."""
    check_bind(job)
    name = "treenail-%d" % os.getpid()
    with unpacked(layout, tag) as root, tempfile.TemporaryDirectory(prefix="treenail-") as folder:
        path = os.path.join(folder, "config.json")
        ran("umoci", "raw", "runtime-config", "--image", "%s:%s" % (layout.path, tag),
            "--rootfs", root, path)
        with open(path, encoding="utf-8") as stream:
            spec = bundle_config(json.load(stream), job, root, name, swaps())
        container, choice = chosen_runtime(folder, spec, job.limits, name,
                                           [runtime] if runtime else RUNTIMES)
        if not quiet:
            print("image: %s in %s; in force: %s" % (choice, tag, job.limits.shown()),
                  file=sys.stderr, flush=True)
        status = container.run()
    if status == 128 + signal.SIGKILL and not quiet:
        print("image: the program was killed (SIGKILL); beyond its %d MiB of memory the kernel "
              "does so" % (job.limits.memory >> 20), file=sys.stderr)
    return status
