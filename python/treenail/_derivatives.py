# SPDX-License-Identifier: Apache-2.0
"""Derivatives made of several gradients."""

from __future__ import annotations

from treenail._convert import convert_to_tensor
from treenail._gradients import _as_list, gradients
from treenail._ops import ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def hessians(ys: Any, xs: Any, name: str = "hessians", colocate_gradients_with_ops: bool = False,
             gate_gradients: bool = False, aggregation_method: Any = None) -> list:
    """The second derivatives of ys with respect to each x, [x.shape, x.shape]; shapes must be fully
    known."""
    results = []
    for x, gradient in zip(_as_list(xs), gradients(ys, xs, name=name)):
        if gradient is None:
            raise ValueError("no path leads from ys to %r" % (x,))
        flat = ops.Reshape(gradient, [-1])
        count = flat.shape[0]
        if count is None:
            raise ValueError("the shape of %r must be fully known" % (x,))
        rows = [gradients(flat[i], x, name=name)[0] for i in range(count)]
        extents = convert_to_tensor(x).shape.as_list()
        zeros = None
        if any(row is None for row in rows):
            zeros = ops.ZerosLike(convert_to_tensor(x))
        results.append(ops.Reshape(ops.Pack([zeros if row is None else row for row in rows]),
                                   extents + extents))
    return results


__all__ = ["hessians"]
