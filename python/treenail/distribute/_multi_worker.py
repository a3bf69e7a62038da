# SPDX-License-Identifier: Apache-2.0
"""MultiWorkerMirroredStrategy: a replica in each of several processes, which meet in collective
operations of tn.distributed."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import IndexedSlices
from treenail._variables import Variable
from treenail.distribute._cross_device_ops import check_communication
from treenail.distribute._strategy import Strategy, StrategyExtended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from treenail._treenail import Tensor

_BUCKET_BYTES = 4 << 20


class _MultiWorker(StrategyExtended):
    """One replica here; sums go over all processes."""

    @property
    def _num_replicas_in_sync(self) -> int:
        from treenail import distributed
        return distributed.size()

    @property
    def _first_replica(self) -> int:
        from treenail import distributed
        return distributed.rank()

    @property
    def experimental_between_graph(self) -> bool:
        """True: each process builds the same graph."""
        return True

    @property
    def should_checkpoint(self) -> bool:
        """Of the first process alone."""
        return self._first_replica == 0

    @property
    def should_save_summary(self) -> bool:
        """Of the first process alone."""
        return self._first_replica == 0

    def _total(self, values: list) -> list:
        from treenail.distributed import all_gather, all_reduce
        from treenail.distributed._optimizer import buckets_of
        totals = list(values)
        for bucket in buckets_of(values, _BUCKET_BYTES):
            for position, total in zip(bucket, all_reduce([values[i] for i in bucket])):
                totals[position] = total
        for i, value in enumerate(values):
            if isinstance(value, IndexedSlices):
                totals[i] = IndexedSlices(all_gather(value.values), all_gather(value.indices),
                                          value.dense_shape)
        return totals

    def _combined_of(self, value: Any, aggregation: str) -> Any:
        if aggregation == "ONLY_FIRST_REPLICA":
            from treenail.distributed import broadcast
            return broadcast(value)
        return super()._combined_of(value, aggregation)

    def _beginning(self, value: Any, dtype: Any) -> Any:
        """The first process's: initial values may be random."""
        from treenail.distributed import broadcast

        def of_the_first() -> Tensor:
            own = Variable._initial_tensor(value, dtype)
            return own if own.dtype == _core.string else broadcast(own)
        return of_the_first


class MultiWorkerMirroredStrategy(Strategy):
    """A replica in each of several processes, on one host or many, which train one model in step.

    cluster_resolver: tells the processes, by default what TF_CONFIG, Slurm or an MPI launcher says;
    where the process has joined a group by tn.distributed.init(), that is taken. Of a cluster its
    jobs "chief" and "worker" take part, in this order. communication: a
    tn.distribute.experimental.CollectiveCommunication; how bytes travel is found, whichever it is
    (tn.distributed.transport()). plain_text: as of tn.distributed.init().

    Every process runs the same program, with a session of its own: operations that meet the other
    processes, among them the initialisation of variables, all must run alike. Variables begin with
    the first process's values. Gradients are added up in the order of processes. Checkpoints and
    summaries are the business of the first: extended.should_checkpoint.

    Errors: as of tn.distributed.init().
    """

    def __init__(self, communication: Any = None, cluster_resolver: Any = None,
                 plain_text: bool = False) -> None:
        check_communication(communication)
        from treenail import distributed
        distributed.init(cluster=cluster_resolver, plain_text=plain_text)
        super().__init__(_MultiWorker(self, ["/cpu:0"]))
