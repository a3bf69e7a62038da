# SPDX-License-Identifier: Apache-2.0
"""ParameterServerStrategy: variables on parameter servers, a replica in each worker, each at its
own pace."""

from __future__ import annotations

from treenail._checks import having
from treenail._framework import device
from treenail.distribute._strategy import Strategy, StrategyExtended
from treenail.train._cluster_spec import ClusterSpec
from treenail.train._device_setter import replica_device_setter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class _ParameterServer(StrategyExtended):
    """Plain variables, whose servers a device function chooses."""

    _mirrors = False

    def __init__(self, strategy: Any, cluster: dict, job: str | None, index: int | None,
                 ps_strategy: Callable | None) -> None:
        self._cluster, self._job, self._index = cluster, job, index
        self._ps_strategy = ps_strategy
        worker = "/job:%s/task:%d" % (job, index) if cluster else ""
        super().__init__(strategy, [worker])

    @property
    def parameter_devices(self) -> tuple:
        """The parameter servers."""
        servers = ClusterSpec(self._cluster).task_indices("ps") if "ps" in self._cluster else []
        return tuple("/job:ps/task:%d" % index for index in servers) or self._devices

    @property
    def experimental_between_graph(self) -> bool:
        """True: each worker builds a graph of its own."""
        return True

    @property
    def _chief(self) -> bool:
        return not self._cluster or self._job == "chief" or (
            self._job == "worker" and self._index == 0 and "chief" not in self._cluster)

    @property
    def experimental_should_init(self) -> bool:
        """Of the chief alone."""
        return self._chief

    @property
    def should_checkpoint(self) -> bool:
        """Of the chief alone."""
        return self._chief

    @property
    def should_save_summary(self) -> bool:
        """Of the chief alone."""
        return self._chief

    def _surroundings(self) -> list:
        if "ps" not in self._cluster:
            return [device(self._devices[0])] if self._cluster else []
        return [device(replica_device_setter(worker_device=self._devices[0], cluster=self._cluster,
                                             ps_strategy=self._ps_strategy))]


class ParameterServerStrategy(Strategy):
    """Variables on parameter servers; a replica in each worker, which updates them at its own pace.

    cluster_resolver: tells the cluster and which of its tasks this is, by default TF_CONFIG; its
    jobs are "ps", "worker" and maybe "chief". Without a cluster all is on this process.
    ps_strategy: which server holds a variable, alike in all workers: in turn by default; by bytes
    with tn.train.GreedyLoadBalancingStrategy(number of servers, tn.train.byte_size_load_fn).

    Each worker builds its graph in scope(), and runs it at its server, `resolver.master()`; a
    parameter server runs tn.train.Server(...).join(). num_replicas_in_sync is 1: nobody waits for
    another. Raises ValueError for a task that is none of the cluster's, or that holds parameters.
    """

    def __init__(self, cluster_resolver: Any = None,
                 ps_strategy: Callable | None = None) -> None:
        if cluster_resolver is None:
            from treenail.distribute.cluster_resolver import TFConfigClusterResolver
            cluster_resolver = TFConfigClusterResolver()
        cluster = having(cluster_resolver, "cluster_spec", "cluster_resolver",
                         "a tn.distribute.cluster_resolver").cluster_spec()
        cluster = cluster.as_dict() if isinstance(cluster, ClusterSpec) else dict(cluster)
        job, index = cluster_resolver.task_type, cluster_resolver.task_id
        if cluster and (job not in cluster or index is None):
            raise ValueError("the cluster has jobs %s, and this task is said to be %r of job %r"
                             % (", ".join(sorted(cluster)), index, job))
        if cluster and job == "ps":
            raise ValueError("task %d of job 'ps' holds parameters, and trains nothing: it runs "
                             "tn.train.Server(...).join()" % index)
        super().__init__(_ParameterServer(self, cluster, job, index, ps_strategy))
