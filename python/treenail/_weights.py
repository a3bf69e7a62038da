# SPDX-License-Identifier: Apache-2.0
"""Weights of losses and metrics: which shapes they may have."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._ops import ops
from treenail._treenail import Tensor


def broadcastable(weights: Tensor, values: Tensor) -> Tensor:
    """weights, which must be a scalar or have for each axis of the values its extent or 1: checked
    here where the shapes tell, else in the run, as far as ranks are known."""
    w, v = weights.shape, values.shape
    if w.ndims == 0:
        return weights
    if w.ndims is not None and v.ndims is not None:
        extents = list(zip(w.as_list(), v.as_list()))
        if w.ndims != v.ndims or any(a not in (None, 1, b) and b is not None for a, b in extents):
            raise ValueError("weights can not be broadcast to values. values.rank=%s. "
                             "weights.rank=%s. values.shape=%s. weights.shape=%s. Needed is a "
                             "scalar, or each extent 1 or that of values." % (v.ndims, w.ndims, v,
                                                                              w))
        if all(a == 1 or (a is not None and a == b) for a, b in extents):
            return weights
    return ops.BroadcastTo(weights, ops.Shape(values, out_type=_core.int64))
