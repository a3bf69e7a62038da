# SPDX-License-Identifier: Apache-2.0
"""Collective operations as functions: of the group of processes that init() has joined."""

from __future__ import annotations

from treenail._convert import convert_to_tensor
from treenail._ops import ops
from treenail._treenail import Operation, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def all_reduce(value: Any, reduction: str = "sum", key: str | None = None,
               name: str | None = None) -> Any:
    """The value reduced over all ranks, element by element in the order of ranks, so that the bits
    depend on the values alone.

    value: a tensor of numbers, alike in shape and dtype on all ranks, or a list of tensors of one
    dtype, which travel together. reduction: "sum", "mean" (floating and complex dtypes), "min",
    "max" (real dtypes) or "product". key: what the calls of all ranks have in common; by default
    the operation's name, in immediate execution their order.

    Returns what `value` is: a tensor of its shape, or a list. The gradient is that of the sum of
    all ranks' losses. A run raises InvalidArgumentError where ranks ask for different things,
    UnavailableError where one has ended, DeadlineExceededError where one does not come in time.
    """
    if isinstance(value, (list, tuple)):
        values = [convert_to_tensor(v) for v in value]
        if not values:
            return []
        return _as_list(ops.CollectiveAllReduce(values, reduction=reduction, key=key or "",
                                                name=name))
    return _as_list(ops.CollectiveAllReduce([convert_to_tensor(value)], reduction=reduction,
                                            key=key or "", name=name))[0]


def _as_list(result: Any) -> list:
    return list(result) if isinstance(result, (list, tuple)) else [result]


def broadcast(value: Any, root: int = 0, key: str | None = None,
              name: str | None = None) -> Tensor:
    """The value that rank `root` has, on all ranks: of the shape and dtype of `value`, which are
    alike on all of them; numbers and booleans. key, errors: as of all_reduce."""
    return ops.CollectiveBroadcast(convert_to_tensor(value), root=root, key=key or "", name=name)


def all_gather(value: Any, key: str | None = None, name: str | None = None) -> Tensor:
    """The values of all ranks, joined along the first axis in the order of ranks.

    value: of rank 1 or more; only its first extent may differ between ranks. The result's first
    extent is their sum, which only a run tells. key, errors: as of all_reduce.
    """
    return ops.CollectiveAllGather(convert_to_tensor(value), key=key or "", name=name)


def reduce_scatter(value: Any, reduction: str = "sum", key: str | None = None,
                   name: str | None = None) -> Tensor:
    """Of the sum, or "mean", over all ranks, part r of the first axis to rank r.

    value: alike in shape on all ranks, its first extent a multiple of the number of ranks, by which
    the result's is divided. key, errors: as of all_reduce.
    """
    return ops.CollectiveReduceScatter(convert_to_tensor(value), reduction=reduction,
                                       key=key or "", name=name)


def all_to_all(value: Any, key: str | None = None, name: str | None = None) -> Tensor:
    """Part r of the first axis goes to rank r; what comes is joined in the order of ranks.

    value: alike in shape on all ranks, its first extent a multiple of their number; the result has
    its shape. key, errors: as of all_reduce.
    """
    return ops.CollectiveAllToAll(convert_to_tensor(value), key=key or "", name=name)


def barrier(key: str | None = None, name: str | None = None) -> Operation:
    """Ends when all ranks have come to it. key, errors: as of all_reduce."""
    return ops.CollectiveBarrier(key=key or "", name=name)
