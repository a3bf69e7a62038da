# SPDX-License-Identifier: Apache-2.0
"""What ci/hosts asks of the machine: programs, processes that can be told apart from others that
got their number later, mounts and room on disk."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [path for path in (os.path.join(TOP, "gen/packaging"),
                                  os.path.join(TOP, "gen/tools"), TOP) if path not in sys.path]
from gen.distro import this_distro  # noqa: E402  (the path must be set first)


class HostsError(Exception):
    """A sentence for the person at the terminal: what was given, and what is needed."""


def say(text: str) -> None:
    print(text, flush=True)


def need(program: str, dependency: str) -> None:
    """Raises with the package's name, a row of gen/deps.py, where the program is not there."""
    if not shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
        raise HostsError("%s is not installed; %s" % (
            program, this_distro().install_hint(dependency)))


def call(*words: str, check: bool = True, **options) -> str:
    """The output of a command; where it fails, an error with the end of what it said."""
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **options)
    text = done.stdout.decode(errors="replace")
    if check and done.returncode:
        raise HostsError("%s: exit status %d: %s" % (
            " ".join(map(str, words)), done.returncode, text.strip()[-2000:]))
    return text


def table(*words: str) -> list:
    """The rows of an `ip -json` command."""
    return json.loads(call("ip", "-json", *words) or "[]")


# ---- processes -------------------------------------------------------------------------------


def start_time(pid: int, proc: str = "/proc") -> str:
    """When the process began, in clock ticks since the machine did; "" when there is none or only
    its exit status is left. Pid and this together name one process for good."""
    try:
        with open(os.path.join(proc, str(pid), "stat"), encoding="utf-8",
                  errors="replace") as stream:
            fields = stream.read().rpartition(")")[2].split()  # the name may hold anything
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def is_running(process: dict) -> bool:
    """process: what `started` returns."""
    return bool(process["start"]) and start_time(process["pid"]) == process["start"]


def started(words: list, record, log: str) -> dict:
    """Starts a daemon in a session of its own; `record` is called with its pid and start time
    before the first of `words` runs, so that no process is ever left that nobody wrote down."""
    with open(log, "ab") as output:
        child = subprocess.Popen(["sh", "-c", 'read -r go && exec "$@" </dev/null', "sh",
                                  *map(str, words)], stdin=subprocess.PIPE, stdout=output,
                                 stderr=subprocess.STDOUT, start_new_session=True)
    with child.stdin:  # closed without a word, it ends the shell
        process = {"pid": child.pid, "start": start_time(child.pid)}
        record(process)
        child.stdin.write(b"go\n")
    return process


def children(pid: int) -> list:
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="utf-8") as stream:
            return [int(word) for word in stream.read().split()]
    except OSError:
        return []


def ended(process: dict, patience: float) -> bool:
    """Whether it ends within so many seconds."""
    deadline = time.monotonic() + patience
    while is_running(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def end(process: dict) -> None:
    """Kills the process if it is still the one that was recorded, and waits until it is gone. Its
    children go first: a parent reaps them, and ends by itself when it only waited for them."""
    if not is_running(process):
        return
    offspring = [{"pid": pid, "start": start_time(pid)} for pid in children(process["pid"])]
    for member in offspring:
        if is_running(member):
            os.kill(member["pid"], signal.SIGKILL)
    if offspring and ended(process, 1):
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(process["pid"], signal.SIGKILL)
    if not ended(process, 10):
        raise HostsError("process %d does not end, though killed" % process["pid"])


def all_inside(root: str) -> list:
    """Processes with their root directory at or below `root`."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            place = os.readlink("/proc/%s/root" % name)
        except OSError:
            continue
        if place == root or place.startswith(root + "/"):
            found.append({"pid": int(name), "start": start_time(int(name))})
    return found


def end_all_inside(root: str) -> None:
    """Kills what runs there, and what that has started meanwhile."""
    found = all_inside(root)
    while found:
        for process in found:
            end(process)
        found = all_inside(root)


def users_of(path: str) -> str:
    """Processes with an open file or working directory below `path`, for a message."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        base = "/proc/" + name
        try:
            links = [base + "/cwd"] + ["%s/fd/%s" % (base, fd) for fd in os.listdir(base + "/fd")]
            targets = [os.readlink(link) for link in links]
            with open(base + "/comm", encoding="utf-8") as stream:
                comm = stream.read().strip()
        except OSError:
            continue
        if any(target == path or target.startswith(path + "/") for target in targets):
            found.append("%s (%s)" % (name, comm))
    return ", ".join(found)


# ---- mounts and disk -------------------------------------------------------------------------


def _plain(field: str) -> str:
    """A field of mountinfo, where blanks and backslashes are octal."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, character)
    return field


def mounts_at(path: str, mountinfo: str = "/proc/self/mountinfo") -> list:
    """Mount points at and below `path`, the deepest and latest first."""
    with open(mountinfo, encoding="utf-8") as stream:
        points = [_plain(line.split()[4]) for line in stream]
    return [point for point in reversed(points)
            if point == path or point.startswith(path.rstrip("/") + "/")]


def unmount(path: str, patience: float = 10) -> None:
    """Everything mounted at and below `path`. It may be busy for a moment with a process that is
    gone already: the kernel lets go of a killed one's files when it gets to it."""
    deadline = time.monotonic() + patience
    for point in mounts_at(path):
        while True:
            done = subprocess.run(["umount", point], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False)
            if not done.returncode:
                break
            users = users_of(path)
            if users or time.monotonic() > deadline:
                raise HostsError("%s cannot be unmounted: %s" % (
                    point, "in use by process " + users if users
                    else done.stdout.decode(errors="replace").strip()))
            time.sleep(0.1)


def remove_tree(path: str) -> None:
    """A directory that ci/hosts made; never anything that is mounted in it."""
    unmount(path)
    if os.path.lexists(path):
        call("rm", "-rf", "--one-file-system", "--", path)


def need_room(path: str, megabytes: int, what: str) -> None:
    free = shutil.disk_usage(path).free // 2 ** 20
    if free < megabytes:
        raise HostsError("%s needs %d MB, and %s has %d MB left" % (what, megabytes, path, free))
