# SPDX-License-Identifier: Apache-2.0
"""Joining and leaving the group of processes that this one computes with."""

from __future__ import annotations

import atexit
import os

from treenail import _treenail as _core
from treenail.distributed import _launcher
from treenail.distributed._addresses import of_cluster, of_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TRANSPORTS = ("auto", "shared_memory", "mpi", "grpc", "none")
_place: dict = {}  # local_rank and local_size of the group that was joined
_registered: list = []


def init(transport: str = "auto", rank: int | None = None, size: int | None = None,
         directory: str | None = None, timeout: float | None = None,
         join_timeout: float = 60.0, cluster: Any = None, plain_text: bool = False,
         listen: str = "", keepalive_in_ms: int = 0) -> None:
    """Joins the group of processes that a launcher started, or TF_CONFIG tells of, or one of this
    process alone.

    transport: "auto" takes what the launcher offers: MPI under mpirun and srun, gRPC where there is
    none, shared memory where all ranks are on one host; "shared_memory", "mpi" and "grpc" insist;
    "none" is a group of one process.
    rank, size, directory: of a group in shared memory, where no launcher says so (or the variables
    TREENAIL_RANK, TREENAIL_SIZE and TREENAIL_GROUP_DIRECTORY do). The directory is made; it is this
    group's alone. timeout: seconds that a collective may wait for other ranks (by default
    TREENAIL_COLLECTIVE_TIMEOUT, else 600; 0: for as long as they live). join_timeout: seconds until
    all must have joined. cluster: of a group that meets by gRPC, a tn.distribute.cluster_resolver,
    or the addresses "host:port" of all ranks in a list, or a tn.train.ClusterSpec (or dict) whose
    jobs "chief" and "worker" are the ranks, in this order; with the last two `rank` says which this
    is. Each rank listens at its address, by plain text: beyond this machine only where plain_text
    says that the network and all in it are trusted. listen: "host:port" to listen on instead, where
    what others call is forwarded. keepalive_in_ms: of a group that meets by gRPC, after how long a
    rank that is silent, or whose link is cut, counts as lost; 0: after ten seconds.

    Nothing happens where the process has joined already. Raises ValueError for arguments that do
    not go together, FailedPreconditionError where the launcher announces several processes but
    they cannot be brought together, PermissionDeniedError as above, DeadlineExceededError and
    UnavailableError where not all come.
    """
    if transport not in _TRANSPORTS:
        raise ValueError("transport is %r; needed is one of %s"
                         % (transport, ", ".join(map(repr, _TRANSPORTS))))
    if _core.group() is not None:
        return
    if not 0 <= keepalive_in_ms <= 86_400_000:
        raise ValueError("keepalive_in_ms must be in [0, 86400000], got %r" % (keepalive_in_ms,))
    limits = float(join_timeout), _collective_timeout(timeout)
    network = str(listen), bool(plain_text), int(keepalive_in_ms)
    if cluster is not None:
        if directory is not None or transport not in ("auto", "grpc"):
            raise ValueError("cluster is of transport 'grpc', not %r, and needs no directory"
                             % transport)
        _join_cluster(of_cluster(cluster, rank), transport, network, limits)
    elif rank is not None or size is not None or directory is not None:
        _join_stated(transport, rank, size, directory, limits)
    else:
        _join_announced(transport, network, limits)
    if not _registered:
        _registered.append(atexit.register(shutdown))


def _collective_timeout(timeout: float | None) -> float:
    if timeout is None:
        text = os.environ.get("TREENAIL_COLLECTIVE_TIMEOUT") or "600"
        try:
            timeout = float(text)
        except ValueError:
            raise ValueError("the environment variable TREENAIL_COLLECTIVE_TIMEOUT is %r; needed "
                             "is a number of seconds" % text) from None
    if not 0 <= float(timeout) < 1e9:
        raise ValueError("timeout is %r; needed are seconds, 0 or more" % (timeout,))
    return float(timeout)


def _join_stated(transport: str, rank: int | None, size: int | None, directory: str | None,
                 limits: tuple) -> None:
    if transport not in ("auto", "shared_memory"):
        raise ValueError("rank, size and directory are of transport 'shared_memory', not %r"
                         % transport)
    if rank is None or size is None or directory is None:
        raise ValueError("rank, size and directory belong together: given are %r, %r and %r"
                         % (rank, size, directory))
    _core.join_shared_memory(rank, size, os.fspath(directory), *limits)
    _place.update(local_rank=rank, local_size=size)


def _join_cluster(found: tuple, transport: str, network: tuple, limits: tuple) -> None:
    addresses, rank = found
    place = _core.join_ranks(rank, addresses, transport != "grpc", *network, *limits)
    _place.update(local_rank=place[0], local_size=place[1])


def _join_announced(transport: str, network: tuple, limits: tuple) -> None:
    said = None if transport == "none" else _launcher.announced()
    if transport == "grpc" or (said is None and transport == "auto"):
        found = of_environment(required=transport == "grpc")
        if found is not None:
            _join_cluster(found, transport, network, limits)
            return
    if said is None or (said.size == 1 and transport != "mpi"):
        if transport == "mpi":
            raise ValueError("no launcher has started this process; mpirun or srun is needed")
        if transport == "shared_memory":
            raise ValueError("no launcher says which ranks share memory: state rank, size and "
                             "directory")
        _core.join_single()
        _place.update(local_rank=0, local_size=1)
        return
    directory = os.environ.get("TREENAIL_GROUP_DIRECTORY")
    if said.launcher == _launcher.LAUNCHERS[0][0] and transport != "mpi":
        if not directory:
            raise ValueError("TREENAIL_RANK and TREENAIL_SIZE are set; TREENAIL_GROUP_DIRECTORY, "
                             "where the ranks meet, is needed as well")
        _join_stated("shared_memory", said.rank, said.size, directory, limits)
        return
    from treenail.errors import UnimplementedError
    try:
        place = _core.join_mpi(said.size, transport != "mpi", *limits)
    except UnimplementedError:  # no MPI that this build knows
        if transport == "mpi":
            raise
        if said.local_size == said.size and said.job:
            _join_on_host(said, limits)
            return
        found = of_environment(required=False)
        if found is None:
            raise
        _join_cluster(found, transport, network, limits)
        return
    _place.update(local_rank=place[0], local_size=place[1])


def _join_on_host(said: Any, limits: tuple) -> None:
    """Ranks of one host need nobody to bring them together: the launcher's job names the place."""
    base = os.environ.get("XDG_RUNTIME_DIR") or "/tmp"
    name = "treenail-%d-%s" % (os.getuid(), "".join(c if c.isalnum() else "-" for c in said.job))
    _join_stated("shared_memory", said.rank, said.size, os.path.join(base, name), limits)


def shutdown() -> None:
    """Leaves the group, once what was asked of it is done; called when Python ends as well. What
    others then still want of this rank fails with UnavailableError."""
    _core.leave_group()
    _place.clear()


def is_initialized() -> bool:
    """Whether the process has joined a group."""
    return _core.group() is not None


def _group() -> tuple:
    found = _core.group()
    if found is None:
        from treenail.errors import FailedPreconditionError
        raise FailedPreconditionError(None, None, "this process belongs to no group of processes; "
                                      "call tn.distributed.init() first")
    return found


def rank() -> int:
    """The number of this process in its group, from 0. Raises FailedPreconditionError before
    init(), as do the following."""
    return _group()[0]


def size() -> int:
    """How many processes the group has."""
    return _group()[1]


def transport() -> str:
    """How the group's bytes travel: "shared_memory", "mpi", "grpc", or "none" in a group of one."""
    return _group()[2]


def local_rank() -> int:
    """The number of this process among those of its group on this host."""
    _group()
    return _place["local_rank"]


def local_size() -> int:
    """How many processes of the group are on this host."""
    _group()
    return _place["local_size"]
