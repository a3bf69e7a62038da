# SPDX-License-Identifier: Apache-2.0
"""Which tasks a cluster has and which of them this process is, as Slurm, an MPI launcher or
TF_CONFIG say it: nobody writes lists of hosts by hand. Names and results are those of TensorFlow's
tf.distribute.cluster_resolver; a cluster is a tn.train.ClusterSpec."""

from __future__ import annotations

import json
import os
import re

from treenail._names import no_attribute as _no_attribute
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail.distribute import _node_list
from treenail.distributed import _launcher
from treenail.train._cluster_spec import ClusterSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

_PORT = 8888


class ClusterResolver:
    """Tells the tasks of a cluster. A subclass defines cluster_spec, and sets task_type, task_id,
    rpc_layer and environment where it knows them."""

    _cluster: ClusterSpec | None = None
    environment: str = ""
    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None

    def cluster_spec(self) -> ClusterSpec:
        """The tasks of each job, "host:port"; no jobs where nothing tells of a cluster."""
        if self._cluster is None:
            raise NotImplementedError("%s defines no cluster_spec" % type(self).__name__)
        return self._cluster

    def master(self, task_type: str | None = None, task_id: int | None = None,
               rpc_layer: str | None = None) -> str:
        """The address to begin a session with: of the task asked for, else of the process's own;
        "" where it has none. Raises ValueError where the cluster has no such task."""
        kind = self.task_type if task_type is None else task_type
        number = self.task_id if task_id is None else task_id
        if kind is None or number is None:
            return ""
        cluster = ClusterSpec(self.cluster_spec())
        tasks = cluster.task_indices(kind) if kind in cluster.jobs else []
        if number not in tasks:
            raise ValueError("the cluster has no task %d of job %r; it has %d" % (number, kind,
                                                                                  len(tasks)))
        address = cluster.task_address(kind, number)
        layer = self.rpc_layer if rpc_layer is None else rpc_layer
        return "%s://%s" % (layer, address) if layer else address

    def num_accelerators(self, task_type: str | None = None, task_id: int | None = None,
                         config_proto: Any = None) -> dict:
        """{kind of accelerator: how many a task has}: none, for no device of Treenail's is one that
        resolvers count."""
        return {}


class SimpleClusterResolver(ClusterResolver):
    """A cluster that is stated. cluster_spec: a tn.train.ClusterSpec, or {job: addresses}.
    num_accelerators: what num_accelerators() tells."""

    def __init__(self, cluster_spec: ClusterSpec | Mapping, master: str = "",
                 task_type: str | None = None, task_id: int | None = None, environment: str = "",
                 num_accelerators: Mapping | None = None,
                 rpc_layer: str | None = "grpc") -> None:
        self._cluster = _checked_cluster(cluster_spec, "cluster_spec")
        self._master, self._num_accelerators = master, dict(num_accelerators or {})
        self.task_type, self.task_id, self.rpc_layer = task_type, task_id, rpc_layer
        self.environment = environment

    def num_accelerators(self, task_type: str | None = None, task_id: int | None = None,
                         config_proto: Any = None) -> dict:
        """As it was stated, for any task."""
        return dict(self._num_accelerators)

    def master(self, task_type: str | None = None, task_id: int | None = None,
               rpc_layer: str | None = None) -> str:
        """What the constructor was given, unless a task is asked for."""
        if task_type is None and task_id is None and self._master:
            return self._master
        return super().master(task_type, task_id, rpc_layer)


class TFConfigClusterResolver(ClusterResolver):
    """The cluster of the environment variable TF_CONFIG, a JSON object:
    {"cluster": {job: ["host:port", ...]}, "task": {"type": job, "index": number}}.

    task_type, task_id, rpc_layer: instead of what it says. Raises ValueError where the variable is
    no such object.
    """

    def __init__(self, task_type: str | None = None, task_id: int | None = None,
                 rpc_layer: str | None = None, environment: Any = None) -> None:
        found = self._read()
        task = found.get("task") or {}
        if not isinstance(task, dict):
            raise ValueError("TF_CONFIG's \"task\" is %r; needed is an object" % (task,))
        self._cluster = _checked_cluster(found.get("cluster") or {}, "TF_CONFIG's \"cluster\"")
        self.task_type = task.get("type") if task_type is None else task_type
        index = task.get("index") if task_id is None else task_id
        try:
            self.task_id = None if index is None else int(index)
        except (TypeError, ValueError):
            raise ValueError("TF_CONFIG's \"index\" is %r; needed is a number"
                             % (index,)) from None
        self.rpc_layer = found.get("rpc_layer", "grpc") if rpc_layer is None else rpc_layer
        self.environment = found.get("environment", "") if environment is None else environment

    @staticmethod
    def _read() -> dict:
        text = os.environ.get("TF_CONFIG", "{}")
        try:
            found = json.loads(text)
        except ValueError as error:
            raise ValueError("TF_CONFIG is no JSON: %s" % error) from None
        if not isinstance(found, dict):
            raise ValueError("TF_CONFIG is %s; needed is a JSON object" % text)
        return found


class SlurmClusterResolver(ClusterResolver):
    """The tasks of a Slurm job step, dealt out to jobs.

    jobs: {job: number of tasks}, in the order in which tasks of the step belong to them; by default
    all are "worker". port_base: the port of a host's first task; further ones follow.
    tasks_per_node: where SLURM_STEP_TASKS_PER_NODE is not to be asked. gpus_per_node,
    gpus_per_task, auto_set_gpu: TensorFlow's; nothing follows from them, for Slurm itself says
    which GPUs a task sees. Raises ValueError outside of a job step and where the numbers do not go
    together.
    """

    def __init__(self, jobs: Mapping | None = None, port_base: int = _PORT,
                 gpus_per_node: int = 1, gpus_per_task: int = 1,
                 tasks_per_node: int | None = None, auto_set_gpu: bool = True,
                 rpc_layer: str | None = "grpc") -> None:
        hosts = _node_list.expand(_needed("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"))
        if tasks_per_node is None:
            counts = _tasks_per_node(_needed("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"))
        else:
            counts = [tasks_per_node] * len(hosts)
        if len(counts) != len(hosts):
            raise ValueError("Slurm names %d hosts (%s), and numbers of tasks for %d"
                             % (len(hosts), ", ".join(hosts[:5]), len(counts)))
        places = ["%s:%d" % (host, port_base + i) for host, count in zip(hosts, counts)
                  for i in range(count)]
        rank = int(_needed("SLURM_PROCID"))
        self.rpc_layer = rpc_layer
        self._cluster, self.task_type, self.task_id = _dealt(places, jobs, rank, "Slurm's step")

    def get_task_info(self) -> tuple:
        """(job, number) of this process."""
        return self.task_type, self.task_id


class MPIClusterResolver(ClusterResolver):
    """The processes that mpirun has started on one host, or of which `hosts` names the host of each
    rank, dealt out to jobs. jobs, port_base, errors: as of SlurmClusterResolver."""

    def __init__(self, jobs: Mapping | None = None, hosts: Any = None, port_base: int = _PORT,
                 rpc_layer: str | None = "grpc") -> None:
        said = _launcher.announced()
        if said is None:
            raise ValueError("no launcher has started this process; mpirun is needed")
        if hosts is None:
            if said.local_size != said.size:
                raise ValueError("%s has started %d processes, of which %s are on this host; hosts "
                                 "must name the host of each rank" % (said.launcher, said.size,
                                                                      said.local_size))
            hosts = ["localhost"] * said.size
        if len(hosts) != said.size:
            raise ValueError("hosts names %d hosts; needed are %d, one for each rank"
                             % (len(hosts), said.size))
        used: dict = {}
        places = []
        for host in hosts:
            places.append("%s:%d" % (host, port_base + used.get(host, 0)))
            used[host] = used.get(host, 0) + 1
        self.rpc_layer = rpc_layer
        self._cluster, self.task_type, self.task_id = _dealt(places, jobs, said.rank,
                                                             said.launcher)


def _checked_cluster(cluster: Any, what: str) -> ClusterSpec:
    if isinstance(cluster, ClusterSpec):
        return cluster
    if not isinstance(cluster, dict):
        raise ValueError("%s is %r; needed is {job: addresses}" % (what, cluster))
    for job, tasks in cluster.items():
        if not isinstance(tasks, (list, tuple)) or not all(isinstance(t, str) for t in tasks):
            raise ValueError("%s has %r for job %r; needed is a list of \"host:port\""
                             % (what, tasks, job))
    return ClusterSpec(cluster)


def _needed(*names: str) -> str:
    for name in names:
        if os.environ.get(name):
            return os.environ[name]
    raise ValueError("the environment variable %s is not set: this is no job step of Slurm (srun "
                     "starts one)" % names[0])


def _tasks_per_node(text: str) -> list:
    """Slurm's "2(x3),1" as [2, 2, 2, 1]."""
    counts: list = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if match is None or int(match.group(2) or 1) > _node_list.MOST:
            raise ValueError("Slurm's number of tasks per node is %r; it should look like "
                             "\"2(x3),1\"" % text)
        counts += [int(match.group(1))] * int(match.group(2) or 1)
    return counts


def _dealt(places: list, jobs: Mapping | None, rank: int, who: str) -> tuple:
    """(the cluster, job and number of the rank)."""
    wanted = {"worker": len(places)} if jobs is None else dict(jobs)
    if sum(wanted.values()) != len(places):
        raise ValueError("jobs asks for %d tasks; %s has %d"
                         % (sum(wanted.values()), who, len(places)))
    cluster, begin, own = {}, 0, (None, None)
    for job, count in wanted.items():
        cluster[job] = places[begin:begin + count]
        if begin <= rank < begin + count:
            own = job, rank - begin
        begin += count
    return (ClusterSpec(cluster), *own)


__all__ = ["ClusterResolver", "SimpleClusterResolver", "TFConfigClusterResolver",
           "SlurmClusterResolver", "MPIClusterResolver"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
