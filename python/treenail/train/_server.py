# SPDX-License-Identifier: Apache-2.0
"""Servers: a process that takes part in a cluster, for sessions of this process and of others."""

from __future__ import annotations

import os
import threading
from operator import index

from treenail import _treenail as _core
from treenail._session_options import ConfigProto, device_limits
from treenail.train._cluster_spec import ClusterSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def _tasks_of(cluster: ClusterSpec) -> list:
    """(job, number, address) of each task."""
    return [(job, number, cluster.task_address(job, number))
            for job in cluster.jobs for number in cluster.task_indices(job)]


def _the_one(tasks: list, job: str | None, number: int | None) -> tuple:
    jobs = sorted({name for name, _, _ in tasks})
    if not jobs:
        raise ValueError("the cluster has no tasks")
    if job is None:
        if len(jobs) != 1:
            raise ValueError("job_name must say which of %s this is" % ", ".join(jobs))
        job = jobs[0]
    if number is None:
        numbers = [n for name, n, _ in tasks if name == job]
        if len(numbers) != 1:
            raise ValueError("task_index must say which of the %d tasks of job %r this is"
                             % (len(numbers), job))
        number = numbers[0]
    return job, index(number)


def _names(what: str, names: Any) -> list:
    if isinstance(names, str):
        raise TypeError("%s is a list of names, but got the str %r" % (what, names))
    return [os.fspath(name) for name in names]


def _transport(way: str, reason: str, values: int, size: int) -> str:
    if way == "shared memory":
        return "%s, %d values, %d bytes lent" % (way, values, size)
    said = "%s, %d values, %d bytes" % (way, values, size) if way == "MPI" else way
    return said + (": " + reason if reason else "")


class Server:
    """A task of a cluster: its devices and variables, and a master for sessions.

    server_or_cluster_def: the cluster, a tn.train.ClusterSpec or {job: [address, ...]}; another
    Server stands for its own.
    job_name, task_index: which task of it this process is; may be left out where there is but one.
    protocol: "grpc" or None. config: a ConfigProto, for device_count and keepalive_in_ms.
    start: listen at once.
    listen: "host:port" to listen on instead of the task's own address; port 0 takes any that is
    free.
    credentials: a file that says by which certificate or token this server and its callers know
    each other, and then all is encrypted; "": the one that TREENAIL_CREDENTIALS names, or none.
    open_to: names of clients that are let in besides the cluster's tasks; none: all who are known.
    plain_text: without credentials anybody who reaches the port can use the server, so that an
    address beyond this machine is refused unless this says that the network and all in it are
    trusted.
    allow_ops, allow_paths: what clients of other processes may have it run besides what computes:
    operations by name, and those on files below these directories. Sessions of this process may do
    all that it can do, here.
    limits: {name: number}, of "sessions" (1000 of each client), "plans" (1000 of each session),
    "partial_runs" (1000 of each client), "nodes" (1000000 of a plan), "memory_bytes" (of a step; 0:
    none), "held_bytes" (of each client; four fifths of the process's memory where clients are told
    apart, else 0: none), "step_seconds" (0: none), "idle_seconds" (86400), "message_bytes"
    (17179869184).

    docs/security.md has more. Raises TypeError and ValueError for what is no cluster or has several
    tasks to choose from, NotFoundError and InvalidArgumentError for a task, an address, a file or a
    name that is none, PermissionDeniedError as above and for secrets that others can read,
    UnavailableError where the address is taken, UnimplementedError without gRPC.
    """

    def __init__(self, server_or_cluster_def: Any, job_name: str | None = None,
                 task_index: int | None = None, protocol: str | None = None,
                 config: ConfigProto | None = None, start: bool = True, listen: str = "",
                 plain_text: bool = False, credentials: str = "", open_to: Sequence[str] = (),
                 allow_ops: Sequence[str] = (), allow_paths: Sequence[str] = (),
                 limits: dict[str, int] | None = None) -> None:
        if protocol not in (None, "grpc"):
            raise ValueError('protocol must be "grpc", not %r' % (protocol,))
        if config is not None and not isinstance(config, ConfigProto):
            raise TypeError("config must be a tn.ConfigProto, but got %r" % (config,))
        if isinstance(server_or_cluster_def, Server):
            server_or_cluster_def = server_or_cluster_def.cluster
        self._cluster = ClusterSpec(server_or_cluster_def)
        tasks = _tasks_of(self._cluster)
        self._job, self._index = _the_one(tasks, job_name, task_index)
        config = config or ConfigProto()
        devices = device_limits(config.device_count)
        self._arguments = (tasks, self._job, self._index, listen, plain_text, devices,
                           config.keepalive_in_ms, credentials, _names("open_to", open_to),
                           _names("allow_ops", allow_ops), _names("allow_paths", allow_paths),
                           dict(limits or {}))
        self._server: Any = None
        self._stopped = threading.Event()
        if start:
            self.start()

    @property
    def cluster(self) -> ClusterSpec:
        """The cluster that this is a task of."""
        return self._cluster

    @property
    def target(self) -> str:
        """What a tn.Session is opened with to run at this server: "grpc://host:port".

        Raises RuntimeError before start() and after stop()."""
        if self._server is None:
            raise RuntimeError("the server does not run: call start()")
        return self._server.target

    @property
    def transports(self) -> dict:
        """How values come from the tasks that this one has received from: {"/job:ps/...": text}.

        "shared memory, n values, b bytes lent" from a task on this host; else "MPI, n values, b
        bytes" where large ones come over that, or "messages"; both with the reason, where one is
        known, why not by a better way. Raises RuntimeError before start() and after stop()."""
        if self._server is None:
            raise RuntimeError("the server does not run: call start()")
        return {task: _transport(*found) for task, *found in self._server.transports}

    @property
    def held_bytes(self) -> dict[str, int]:
        """{identity: bytes} of the clients that have had something here; "" where none is known.

        Variables and other state, queues, values on the way, constants, the memory of steps: what
        the limit "held_bytes" is of. Raises RuntimeError before start() and after stop()."""
        if self._server is None:
            raise RuntimeError("the server does not run: call start()")
        return self._server.held_bytes

    def start(self) -> None:
        """Listens; nothing where it does so already."""
        if self._server is None:
            self._server = _core.ClusterServer(*self._arguments)
            self._stopped.clear()

    def stop(self) -> None:
        """Cancels what runs here and listens no more; variables go, where start() is not called
        again."""
        if self._server is not None:
            self._server.stop()
            self._server = None
        self._stopped.set()

    def join(self) -> None:
        """Waits until stop() is called by another thread: a parameter server for ever."""
        while not self._stopped.wait(3600):
            pass

    @staticmethod
    def create_local_server(config: ConfigProto | None = None, start: bool = True) -> Server:
        """A cluster of this process alone, at a free port of this machine."""
        return Server({"local": ["localhost:0"]}, config=config, start=start)

    def __repr__(self) -> str:
        return "<tn.train.Server /job:%s/task:%d%s>" % (
            self._job, self._index, "" if self._server else ", stopped")


__all__ = ["Server"]
