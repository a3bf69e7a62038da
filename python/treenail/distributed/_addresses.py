# SPDX-License-Identifier: Apache-2.0
"""Where the ranks of a group that meets by gRPC are, and which of them this process is."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Jobs whose tasks train, in the order of ranks; others, such as "ps", take no part.
_JOBS = ("chief", "master", "worker")


def of_cluster(cluster: Any, rank: int | None) -> tuple:
    """(addresses by rank, rank of this process) of a resolver, a ClusterSpec, a dict or a list.

    Raises TypeError for what is none of them, ValueError where the rank is missing or none.
    """
    if isinstance(cluster, (list, tuple)):
        addresses = list(cluster)
        if not all(isinstance(address, str) for address in addresses):
            raise TypeError("cluster must list addresses \"host:port\", not %r" % (cluster,))
        return addresses, _checked(rank, addresses)
    if hasattr(cluster, "cluster_spec"):
        jobs = _jobs_of(cluster.cluster_spec())
        return _addresses(jobs), _rank_of(jobs, cluster.task_type, cluster.task_id)
    addresses = _addresses(_jobs_of(cluster))
    return addresses, _checked(rank, addresses)


def of_environment(required: bool) -> tuple | None:
    """The same as TF_CONFIG says it, or Slurm; None where neither tells of several ranks.

    Raises ValueError where they say what cannot be, and where one is required and none is there.
    """
    from treenail.distribute import cluster_resolver
    if os.environ.get("TF_CONFIG"):
        resolver: Any = cluster_resolver.TFConfigClusterResolver()
        jobs = _jobs_of(resolver.cluster_spec())
        if sum(len(tasks) for tasks in jobs.values()) > 1:
            return _addresses(jobs), _rank_of(jobs, resolver.task_type, resolver.task_id)
    elif os.environ.get("SLURM_STEP_NODELIST"):
        return of_cluster(cluster_resolver.SlurmClusterResolver(), None)
    if required:
        raise ValueError("transport 'grpc' needs the addresses of the ranks: by cluster, by the "
                         "environment variable TF_CONFIG, or by Slurm's srun")
    return None


def _jobs_of(cluster: Any) -> dict:
    """{job: addresses} of the jobs that train, in the order of ranks."""
    jobs = cluster.as_dict() if hasattr(cluster, "as_dict") else cluster
    if not isinstance(jobs, dict):
        raise TypeError("cluster must be a resolver, a tn.train.ClusterSpec, {job: addresses} or a "
                        "list of addresses, not %r" % (cluster,))
    found = {}
    for job in _JOBS:
        tasks = jobs.get(job, [])
        if isinstance(tasks, dict):
            raise ValueError("job %r leaves out tasks: its tasks are %s" % (job, sorted(tasks)))
        found[job] = list(tasks)
    return found


def _addresses(jobs: dict) -> list:
    return [address for tasks in jobs.values() for address in tasks]


def _rank_of(jobs: dict, job: Any, index: Any) -> int:
    if job not in jobs or index is None or not 0 <= index < len(jobs[job]):
        raise ValueError("this process is said to be task %r of job %r; a rank of the group is one "
                         "of %s" % (index, job, ", ".join(
                             "%d of job %r" % (len(tasks), name)
                             for name, tasks in jobs.items() if tasks)))
    before = 0
    for name, tasks in jobs.items():
        if name == job:
            break
        before += len(tasks)
    return before + index


def _checked(rank: Any, addresses: list) -> int:
    if rank is None:
        raise ValueError("rank must say which of the %d addresses of cluster is this process's"
                         % len(addresses))
    if isinstance(rank, bool) or not hasattr(rank, "__index__"):
        raise TypeError("rank must be an int, not %r" % (rank,))
    if not 0 <= rank < len(addresses):
        raise ValueError("rank %d is not in [0, %d), the addresses of cluster"
                         % (rank, len(addresses)))
    return rank.__index__()
