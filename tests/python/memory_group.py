# SPDX-License-Identifier: Apache-2.0
"""A memory control group for processes of a test: what happens where the kernel gives no more."""

import contextlib
import itertools
import os
import time

import pytest

_numbers = itertools.count()


def _own_group():
    """This process's directory of memory groups, how the files of limit and use are called, and
    what stands before the figures that count the groups below, too."""
    with open("/proc/self/cgroup", encoding="utf-8") as stream:
        paths = dict(line.strip().split(":", 2)[1:] for line in stream)
    if "memory" in paths:
        directory = "/sys/fs/cgroup/memory" + paths["memory"]
        return directory, "limit_in_bytes", "usage_in_bytes", "total_"
    return "/sys/fs/cgroup" + paths.get("", "/"), "max", "current", ""


class MemoryGroup:
    """within: a command that starts another one in the group."""

    def __init__(self, directory, limit, in_use, prefix):
        self.within = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', directory]
        self._limit = os.path.join(directory, "memory." + limit)
        self._in_use = os.path.join(directory, "memory." + in_use)
        self._figures = os.path.join(directory, "memory.stat")
        self._prefix = prefix

    def limit(self, count):
        """Let the processes that are there have so many bytes in all."""
        with open(self._limit, "w", encoding="ascii") as stream:
            stream.write(str(count))

    def leave(self, count):
        """Let them have so many bytes more than they have now, files that the kernel keeps for them
        left out."""
        with open(self._in_use, encoding="ascii") as stream:
            in_use = int(stream.read())
        with open(self._figures, encoding="ascii") as stream:
            figures = dict(line.split() for line in stream)
        cached = sum(int(figures[self._prefix + name]) for name in ("inactive_file", "active_file"))
        self.limit(in_use - cached + count)


@contextlib.contextmanager
def memory_group(limit):
    """A group of `limit` bytes, whose processes must have ended when the block does."""
    try:
        parent, *names = _own_group()
        directory = os.path.join(parent, "treenail-test-%d-%d" % (os.getpid(), next(_numbers)))
        os.mkdir(directory)
    except OSError as error:
        pytest.skip("no memory control group can be made: %s" % error)
    try:
        group = MemoryGroup(directory, *names)
        try:
            group.limit(limit)
        except OSError as error:
            pytest.skip("the memory of a control group cannot be limited: %s" % error)
        yield group
    finally:
        for _ in range(100):  # the kernel takes a moment to see that its processes are gone
            with contextlib.suppress(OSError):
                os.rmdir(directory)
                break
            time.sleep(0.02)
