# SPDX-License-Identifier: Apache-2.0
"""Weighted means of something per element: sum(weights * values) / sum(weights), 0 before there is
any weight."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import convert_to_tensor
from treenail._framework import control_dependencies
from treenail._math import cast, reduce_sum
from treenail._ops import ops
from treenail._treenail import Tensor
from treenail._variable_scope import variable_scope
from treenail.metrics._streams import (agreeing, broadcast_weights, collected, metric_variable,
                                       only_in_graphs, with_rank_of, without_extra_axis)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def mean(values: Any, weights: Any = None, metrics_collections: Any = None,
         updates_collections: Any = None, name: str | None = None) -> tuple:
    """(value, update): the weighted mean of all values, float32 scalars.

    values: numbers of any shape and dtype, computed with as float32. Variables: `total`, the sum of
    values times weights, and `count`, the sum of weights.
    """
    only_in_graphs("mean")
    with variable_scope(name, "mean", (values, weights)):
        values, counted = _weighted(cast(values, _core.float32), weights)
        if counted is None:
            counted = ops.Cast(ops.Size(values, out_type=_core.int64), _core.float32)
        else:
            counted = reduce_sum(counted)
        return _quotient("total", reduce_sum(values), "count", counted, metrics_collections,
                         updates_collections)


def mean_tensor(values: Any, weights: Any = None, metrics_collections: Any = None,
                updates_collections: Any = None, name: str | None = None) -> tuple:
    """(value, update): the weighted mean of each element over the batches, float32 in the values'
    shape, which must be known. Variables: `total_tensor` and `count_tensor`.

    Raises ValueError for values of a shape that is not fully known.
    """
    only_in_graphs("mean_tensor")
    with variable_scope(name, "mean", (values, weights)):
        values = cast(values, _core.float32)
        if not values.shape.is_fully_defined():
            raise ValueError("values must have a shape that is fully known, to make variables of; "
                             "it is %s" % values.shape)
        values, counted = _weighted(values, weights)
        return _quotient("total_tensor", values, "count_tensor", ops.OnesLike(values)
                         if counted is None else counted, metrics_collections, updates_collections)


def _weighted(values: Tensor, weights: Any) -> tuple:
    """(values times weights, the weights in their shape or None)."""
    if weights is None:
        return values, None
    weights = broadcast_weights(with_rank_of(weights, values), values)
    return values * weights, weights


def _quotient(total_name: str, added: Tensor, count_name: str, counted: Tensor,
              metrics_collections: Any, updates_collections: Any) -> tuple:
    """(value, update) of a sum of `added` over a sum of `counted`; 0 where that is not above 0."""
    total = metric_variable(added.shape, added.dtype, total_name)
    count = metric_variable(added.shape, added.dtype, count_name)
    new_total = total.assign_add(added)
    with control_dependencies([added]):  # a batch that fails there changes neither
        new_count = count.assign_add(counted)
    value = ops.DivNoNan(total, ops.Maximum(count, 0.0), name="value")
    update = ops.DivNoNan(new_total, ops.Maximum(new_count, 0.0), name="update_op")
    return collected(value, metrics_collections), collected(update, updates_collections)


# --- Of labels and predictions --------------------------------------------------------------------

def accuracy(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
             updates_collections: Any = None, name: str | None = None) -> tuple:
    """(value, update): how often predictions equal labels, float32 scalars.

    Predictions are cast to the labels' dtype. Variables: `total` and `count`.
    """
    only_in_graphs("accuracy")
    labels, predictions, weights = agreeing(labels, predictions, weights)
    right = ops.Equal(cast(predictions, labels.dtype), labels)
    return mean(right, weights, metrics_collections, updates_collections, name or "accuracy")


def mean_absolute_error(labels: Any, predictions: Any, weights: Any = None,
                        metrics_collections: Any = None, updates_collections: Any = None,
                        name: str | None = None) -> tuple:
    """(value, update): the mean of |predictions - labels|, float32 scalars. Variables: `total` and
    `count`."""
    only_in_graphs("mean_absolute_error")
    labels, predictions, weights = agreeing(labels, predictions, weights)
    return mean(ops.Abs(predictions - labels), weights, metrics_collections, updates_collections,
                name or "mean_absolute_error")


def mean_squared_error(labels: Any, predictions: Any, weights: Any = None,
                       metrics_collections: Any = None, updates_collections: Any = None,
                       name: str | None = None) -> tuple:
    """(value, update): the mean of (predictions - labels)², float32 scalars. Variables: `total` and
    `count`."""
    only_in_graphs("mean_squared_error")
    labels, predictions, weights = agreeing(labels, predictions, weights)
    return mean(ops.SquaredDifference(labels, predictions), weights, metrics_collections,
                updates_collections, name or "mean_squared_error")


def root_mean_squared_error(labels: Any, predictions: Any, weights: Any = None,
                            metrics_collections: Any = None, updates_collections: Any = None,
                            name: str | None = None) -> tuple:
    """(value, update): the square root of mean_squared_error, float32 scalars. Variables: `total`
    and `count`."""
    only_in_graphs("root_mean_squared_error")
    squared, update = mean_squared_error(labels, predictions, weights, None, None,
                                         name or "root_mean_squared_error")
    return (collected(ops.Sqrt(squared), metrics_collections),
            collected(ops.Sqrt(update), updates_collections))


def mean_relative_error(labels: Any, predictions: Any, normalizer: Any, weights: Any = None,
                        metrics_collections: Any = None, updates_collections: Any = None,
                        name: str | None = None) -> tuple:
    """(value, update): the mean of |labels - predictions| / normalizer, which counts as 0 where the
    normalizer is 0; float32 scalars.

    normalizer: of the predictions' shape and dtype. Variables: `total` and `count`.
    """
    only_in_graphs("mean_relative_error")
    labels, predictions, weights = agreeing(labels, predictions, weights)
    normalizer = convert_to_tensor(normalizer, preferred_dtype=predictions.dtype)
    normalizer, predictions = without_extra_axis(normalizer, predictions)
    if not normalizer.shape.is_compatible_with(predictions.shape):
        raise ValueError("normalizer must have the shape of predictions, %s, not %s"
                         % (predictions.shape, normalizer.shape))
    errors = ops.DivNoNan(ops.Abs(labels - predictions), normalizer)
    return mean(errors, weights, metrics_collections, updates_collections,
                name or "mean_relative_error")


def mean_cosine_distance(labels: Any, predictions: Any, dim: int, weights: Any = None,
                         metrics_collections: Any = None, updates_collections: Any = None,
                         name: str | None = None) -> tuple:
    """(value, update): 1 - the mean of sum(labels * predictions) along axis `dim`, for inputs of
    unit length along it; float32 scalars.

    weights: of extent 1 along `dim`. Variables: `total` and `count`.
    """
    only_in_graphs("mean_cosine_distance")
    labels, predictions, weights = agreeing(labels, predictions, weights)
    cosines = reduce_sum(predictions * labels, [dim], keepdims=True)
    value, update = mean(cosines, weights, None, None, name or "mean_cosine_distance")
    return (collected(1.0 - value, metrics_collections),
            collected(1.0 - update, updates_collections))


def percentage_below(values: Any, threshold: Any, weights: Any = None,
                     metrics_collections: Any = None, updates_collections: Any = None,
                     name: str | None = None) -> tuple:
    """(value, update): the share, between 0 and 1, of values below the scalar `threshold`, float32
    scalars. Variables: `total` and `count`."""
    only_in_graphs("percentage_below")
    below = ops.Less(values, threshold)
    return mean(below, weights, metrics_collections, updates_collections,
                name or "percentage_below_threshold")
