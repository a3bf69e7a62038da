# SPDX-License-Identifier: Apache-2.0
"""What all metrics share: the variables that sums are kept in, shapes that are made to agree,
weights."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._array import zeros
from treenail._convert import convert_to_tensor
from treenail._framework import GraphKeys, add_to_collections, executing_eagerly
from treenail._math import cast
from treenail._ops import ops
from treenail._treenail import Tensor
from treenail._variables import Variable
from treenail._weights import broadcastable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def only_in_graphs(name: str) -> None:
    """Raises RuntimeError with immediate execution, where no update could be run later."""
    if executing_eagerly():
        raise RuntimeError("tn.metrics.%s is not supported when eager execution is enabled." % name)


def metric_variable(shape: Any, dtype: Any, name: str) -> Variable:
    """A local variable that begins with zeros; its name is made in the current name scope."""
    return Variable(lambda: zeros(shape, dtype), trainable=False, name=name, collections=[
        GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES])


def collected(tensor: Tensor, collections: Any) -> Tensor:
    """`tensor`, which joins these collections; None for none."""
    if collections:
        add_to_collections(collections, tensor)
    return tensor


# --- Shapes ---------------------------------------------------------------------------------------

def agreeing(labels: Any, predictions: Any, weights: Any = None) -> tuple:
    """(labels, predictions, weights) as tensors: of labels and predictions one loses its last axis
    where it has one more than the other; weights that are no scalar get as many axes as these.
    Raises ValueError for shapes that are known to differ."""
    labels, predictions = without_extra_axis(labels, predictions)
    if not labels.shape.is_compatible_with(predictions.shape):
        raise ValueError("labels must have the shape of predictions, %s, not %s"
                         % (predictions.shape, labels.shape))
    return labels, predictions, with_rank_of(weights, predictions)


def without_extra_axis(first: Any, second: Any) -> tuple:
    """Both as tensors, without the last axis of the one that has one more than the other."""
    first, second = convert_to_tensor(first), convert_to_tensor(second)
    ranks = first.shape.ndims, second.shape.ndims
    if None not in ranks:
        if ranks[0] == ranks[1] + 1:
            first = ops.Squeeze(first, squeeze_dims=[-1])
        elif ranks[1] == ranks[0] + 1:
            second = ops.Squeeze(second, squeeze_dims=[-1])
        return first, second
    more = ops.Rank(first) - ops.Rank(second)
    return _dropping(first, ops.Equal(more, 1)), _dropping(second, ops.Equal(more, -1))


def with_rank_of(weights: Any, values: Tensor) -> Tensor | None:
    """Weights with the last axis dropped, or one of extent 1 added, where their rank differs by one
    from that of the values; scalars and None stay."""
    if weights is None:
        return None
    weights = convert_to_tensor(weights)
    rank, wanted = weights.shape.ndims, values.shape.ndims
    if rank == 0:
        return weights
    if rank is not None and wanted is not None:
        if rank == wanted + 1:
            return ops.Squeeze(weights, squeeze_dims=[-1])
        return ops.ExpandDims(weights, -1) if rank + 1 == wanted else weights
    more = ops.Rank(weights) - ops.Rank(values)
    present = ops.Greater(ops.Rank(weights), 0)
    weights = _dropping(weights, ops.LogicalAnd(present, ops.Equal(more, 1)))
    return adding_axis(weights, ops.LogicalAnd(present, ops.Equal(more, -1)))


def _dropping(tensor: Tensor, condition: Tensor) -> Tensor:
    """Without its last axis, which has extent 1, where the condition holds."""
    if tensor.shape.ndims == 0:
        return tensor
    shape = ops.Shape(tensor)
    return ops.Reshape(tensor, shape[:ops.Rank(tensor) - ops.Cast(condition, _core.int32)])


def adding_axis(tensor: Tensor, condition: Tensor) -> Tensor:
    """With a last axis of extent 1 where the condition holds."""
    more = ops.Fill(ops.ExpandDims(ops.Cast(condition, _core.int32), 0), 1)
    return ops.Reshape(tensor, ops.Concat([ops.Shape(tensor), more], 0))


def broadcast_weights(weights: Any, values: Tensor) -> Tensor:
    """Weights in the values' shape and dtype. Raises ValueError for another shape than a scalar, or
    each extent 1 or that of the values."""
    weights = cast(weights, values.dtype)
    return broadcastable(weights, values) * ops.OnesLike(values)
