# SPDX-License-Identifier: Apache-2.0
"""An optimizer whose gradients are averaged over all ranks, in buckets that travel while the
backward pass goes on."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import IndexedSlices, convert_to_tensor
from treenail._framework import name_scope
from treenail._math import cast
from treenail._ops import ops
from treenail.distributed._operations import all_gather, all_reduce
from treenail.train._optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from treenail._treenail import Operation
    from treenail._variables import Variable

_COMPRESSIONS = {None: None, "none": None, "float16": _core.float16, "bfloat16": _core.bfloat16}


class DistributedOptimizer(Optimizer):
    """Another optimizer, with gradients that are reduced over all ranks.

    optimizer: computes updates. reduction: "mean" or "sum". bucket_bytes: gradients are put
    together to about so many bytes, and one of so many goes by itself: on one host it is computed
    in memory that the ranks share. A bucket travels as soon as its gradients are there. Buckets
    follow the graph alone, so that they are alike on all ranks and from run to run; they do not
    change a bit of the result. compression: None, "float16" or "bfloat16": in which dtype float32
    and float64 gradients travel (and are summed in float32 and rounded).

    All ranks must compute gradients of the same variables. Sparse gradients are gathered.
    """

    def __init__(self, optimizer: Optimizer, reduction: str = "mean",
                 bucket_bytes: int = 4 << 20, compression: str | None = None,
                 name: str | None = None) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError("optimizer is %r; needed is an Optimizer" % (optimizer,))
        if reduction not in ("mean", "sum"):
            raise ValueError("reduction is %r; needed is 'mean' or 'sum'" % (reduction,))
        if compression not in _COMPRESSIONS:
            raise ValueError("compression is %r; needed is None, 'float16' or 'bfloat16'"
                             % (compression,))
        if not isinstance(bucket_bytes, int) or bucket_bytes < 1:
            raise ValueError("bucket_bytes is %r; needed is a positive number of bytes"
                             % (bucket_bytes,))
        super().__init__(False, name or "Distributed" + optimizer.get_name())
        self._optimizer = optimizer
        self._reduction, self._bucket_bytes = reduction, bucket_bytes
        self._compression = _COMPRESSIONS[compression]

    def compute_gradients(self, loss: Any, var_list: Sequence | None = None,
                          *args: Any, **kwargs: Any) -> list:
        """[(gradient over all ranks or None, variable)]; arguments and errors: as of Optimizer."""
        pairs = self._optimizer.compute_gradients(loss, var_list, *args, **kwargs)
        reduced = self._reduced([gradient for gradient, _ in pairs])
        return [(gradient, variable) for gradient, (_, variable) in zip(reduced, pairs)]

    def apply_gradients(self, grads_and_vars: Sequence, global_step: Variable | None = None,
                        name: str | None = None) -> Operation:
        """As the optimizer's: the gradients are those of compute_gradients."""
        return self._optimizer.apply_gradients(grads_and_vars, global_step, name)

    def variables(self) -> list:
        """The optimizer's own variables."""
        return self._optimizer.variables()

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """As the optimizer's."""
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> list:
        """As the optimizer's."""
        return self._optimizer.get_slot_names()

    def _reduced(self, gradients: list) -> list:
        result = list(gradients)
        with name_scope(None, self._name):
            for bucket in buckets_of(gradients, self._bucket_bytes):
                values = self._all_reduce([gradients[i] for i in bucket])
                for i, value in zip(bucket, values):
                    result[i] = value
            for i, gradient in enumerate(gradients):
                if isinstance(gradient, IndexedSlices):
                    result[i] = self._gathered(gradient)
        return result

    def _all_reduce(self, gradients: list) -> list:
        dtype = gradients[0].dtype
        narrow = self._compression if dtype in (_core.float32, _core.float64) else None
        if narrow is None:
            return all_reduce(gradients, self._reduction)
        return [cast(g, dtype) for g in all_reduce([cast(g, narrow) for g in gradients],
                                                   self._reduction)]

    def _gathered(self, gradient: IndexedSlices) -> IndexedSlices:
        values = all_gather(gradient.values)
        if self._reduction == "mean":
            values = values / cast(ops.CollectiveRank()[1], values.dtype)
        return IndexedSlices(values, all_gather(gradient.indices), gradient.dense_shape)


def buckets_of(gradients: Sequence, limit: int) -> list:
    """Positions of the dense gradients, in lists of one dtype and about `limit` bytes each: from
    the last to the first, about as a backward pass makes them. One of `limit` bytes, or of unknown
    size, is alone."""
    buckets: list = []
    open_buckets: dict = {}  # by dtype: (positions, bytes)
    for i in reversed(range(len(gradients))):
        if gradients[i] is None or isinstance(gradients[i], IndexedSlices):
            continue
        gradient = convert_to_tensor(gradients[i])
        elements = gradient.shape.num_elements()
        own = limit if elements is None else elements * gradient.dtype.size
        if own >= limit:
            buckets.append([i])
            continue
        positions, filled = open_buckets.get(gradient.dtype, ([], 0))
        if not positions:
            buckets.append(positions)
        positions.append(i)
        filled += own
        open_buckets[gradient.dtype] = ([], 0) if filled >= limit else (positions, filled)
    return buckets
