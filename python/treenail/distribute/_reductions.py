# SPDX-License-Identifier: Apache-2.0
"""Sums and means of what the replicas of one process have computed, in the order of replicas: each
element is ((r0 + r1) + r2) + ..., so that one process that adds the same values by itself gets the
same bits."""

from __future__ import annotations

from treenail._array import concat
from treenail._convert import IndexedSlices, convert_to_tensor
from treenail._math import cast
from treenail._ops import ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from treenail._treenail import Tensor


def summed(values: Sequence) -> Any:
    """The sum of tensors; of IndexedSlices all of their rows, one after another. Raises TypeError
    where they are mixed."""
    sparse = [isinstance(value, IndexedSlices) for value in values]
    if any(sparse):
        if not all(sparse):
            raise TypeError("replicas give an IndexedSlices and a tensor for one value: %r"
                            % (values,))
        return IndexedSlices(_joined([v.values for v in values]),
                             _joined([v.indices for v in values]), values[0].dense_shape)
    total = convert_to_tensor(values[0])
    for value in values[1:]:
        total = ops.Add(total, value)
    return total


def _joined(values: Sequence) -> Tensor:
    return values[0] if len(values) == 1 else concat(values, 0)


def divided(total: Any, count: int) -> Any:
    """total / count; of integers rounded down."""
    if count == 1:
        return total
    if isinstance(total, IndexedSlices):
        return IndexedSlices(divided(total.values, count), total.indices, total.dense_shape)
    if total.dtype.is_floating or total.dtype.is_complex:
        return ops.RealDiv(total, cast(float(count), total.dtype))
    return ops.FloorDiv(total, cast(count, total.dtype))
