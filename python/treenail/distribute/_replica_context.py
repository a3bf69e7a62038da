# SPDX-License-Identifier: Apache-2.0
"""What a function that runs once for each replica is told of itself, and how replicas meet."""

from __future__ import annotations

from treenail._convert import convert_to_tensor
from treenail._custom_gradient import custom_gradient
from treenail._nest import flatten, pack
from treenail._replica import current, entered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class ReduceOp:
    """How values of replicas become one: ReduceOp.SUM or ReduceOp.MEAN."""

    SUM = "SUM"
    MEAN = "MEAN"


def reduction_of(reduce_op: Any) -> str:
    """"SUM" or "MEAN". Raises ValueError for anything else."""
    name = reduce_op.upper() if isinstance(reduce_op, str) else ""
    if name not in (ReduceOp.SUM, ReduceOp.MEAN):
        raise ValueError("reduce_op must be tn.distribute.ReduceOp.SUM or MEAN, not %r"
                         % (reduce_op,))
    return name


class ReplicaContext:
    """The replica that a thread builds: tn.distribute.get_replica_context()."""

    def __init__(self, strategy: Any, replica_id_in_sync_group: int, local: int = 0) -> None:
        self._strategy, self._id, self._local = strategy, replica_id_in_sync_group, local
        self._thread: Any = None  # of a replica among several, which is stopped where they meet

    @property
    def strategy(self) -> Any:
        """The strategy that it belongs to."""
        return self._strategy

    @property
    def replica_id_in_sync_group(self) -> int:
        """The replica's number, from 0."""
        return self._id

    @property
    def num_replicas_in_sync(self) -> int:
        """Of how many replicas gradients are added up."""
        return self._strategy.num_replicas_in_sync

    @property
    def devices(self) -> tuple:
        """The device that it computes on, in a tuple."""
        devices = self._strategy.extended.worker_devices
        return devices[self._local:self._local + 1]

    def merge_call(self, merge_fn: Callable, args: tuple = (), kwargs: dict | None = None) -> Any:
        """merge_fn(strategy, *args, **kwargs), called once for all replicas when all are here.

        Its arguments are those of all replicas together: what is one object for all stands for
        itself, other leaves of nests are DistributedValues. Each replica gets its part of the
        result. Raises RuntimeError outside of this replica, ValueError where not all replicas make
        the call.
        """
        if current.replica is not self:
            raise RuntimeError("ReplicaContext.merge_call(%r) was called outside of this replica: "
                               "it must be called in the function that Strategy.run() was given"
                               % (merge_fn,))
        if not callable(merge_fn):
            raise TypeError("merge_fn must be a function, not %r" % (merge_fn,))
        args, kwargs = tuple(args), dict(kwargs or {})
        if self._thread is not None:
            return self._thread.meet(merge_fn, args, kwargs)
        with entered(replica=None):
            return merge_fn(self._strategy, *args, **kwargs)

    def all_reduce(self, reduce_op: Any, value: Any) -> Any:
        """The sum or mean of a tensor, or of each in a nest, over all replicas, in their order; the
        gradient is that of the sum of all replicas' losses."""
        how = reduction_of(reduce_op)
        leaves = [convert_to_tensor(leaf) for leaf in flatten(value)]

        def merged(strategy: Any, *values: Any) -> list:
            return strategy.extended.batch_reduce_to(how, [(v, None) for v in values])

        @custom_gradient
        def reduced(*values: Any) -> Any:
            results = self.merge_call(merged, values)
            return list(results), lambda *dys: self.all_reduce(how, list(dys))
        return pack(value, reduced(*leaves))

    def __repr__(self) -> str:
        return "<tn.distribute.ReplicaContext %d of %d>" % (self._id, self.num_replicas_in_sync)
