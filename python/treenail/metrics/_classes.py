# SPDX-License-Identifier: Apache-2.0
"""Means over classes, whose numbers are the labels and predictions."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import IndexedSlices
from treenail._math import cast, confusion_matrix, reduce_mean, reduce_sum
from treenail._ops import ops
from treenail._treenail import Tensor
from treenail._variable_scope import variable_scope
from treenail.metrics._streams import (agreeing, broadcast_weights, collected, metric_variable,
                                       only_in_graphs)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _flat(labels: Any, predictions: Any, weights: Any, num_classes: Any) -> tuple:
    """Labels and predictions as int64 vectors and float32 weights in their shape, or None."""
    if isinstance(num_classes, bool) or not hasattr(num_classes, "__index__") or num_classes < 1:
        raise ValueError("num_classes must be an int of at least 1, not %r" % (num_classes,))
    labels, predictions, weights = agreeing(labels, predictions, weights)
    if weights is not None:
        like = ops.Cast(labels, _core.float32)
        weights = ops.Reshape(broadcast_weights(weights, like), [-1])
    return (ops.Reshape(cast(labels, _core.int64), [-1]),
            ops.Reshape(cast(predictions, _core.int64), [-1]), weights)


def mean_iou(labels: Any, predictions: Any, num_classes: int, weights: Any = None,
             metrics_collections: Any = None, updates_collections: Any = None,
             name: str | None = None) -> tuple:
    """(value, update): the intersection over union of labels and predictions, the mean over the
    classes that occur in either; a float32 scalar. update: the confusion matrix, float64
    [num_classes, num_classes].

    labels, predictions: integers in [0, num_classes), of one shape. The value is the mean of
    m[c, c] / (sum(m[c]) + sum(m[:, c]) - m[c, c]), m being the variable
    `total_confusion_matrix`; 0 before there is any class. A run raises InvalidArgumentError for
    numbers out of range.
    """
    only_in_graphs("mean_iou")
    with variable_scope(name, "mean_iou", (predictions, labels, weights)):
        labels, predictions, weights = _flat(labels, predictions, weights, num_classes)
        matrix = confusion_matrix(labels, predictions, num_classes, _core.float64, weights=weights)
        total = metric_variable([num_classes, num_classes], _core.float64,
                                "total_confusion_matrix")
        update = total.assign_add(matrix)
        return (collected(_iou(total), metrics_collections),
                collected(update, updates_collections))


def _iou(matrix: Any) -> Tensor:
    """The mean over the classes that there are of intersection over union."""
    rows = ops.Cast(reduce_sum(matrix, 0), _core.float32)
    columns = ops.Cast(reduce_sum(matrix, 1), _core.float32)
    both = ops.Cast(ops.DiagPart(matrix), _core.float32)
    either = rows + columns - both
    there = reduce_sum(ops.Cast(ops.NotEqual(either, 0.0), _core.float32))
    return ops.DivNoNan(reduce_sum(ops.DivNoNan(both, either)), there, name="mean_iou")


def mean_per_class_accuracy(labels: Any, predictions: Any, num_classes: int, weights: Any = None,
                            metrics_collections: Any = None, updates_collections: Any = None,
                            name: str | None = None) -> tuple:
    """(value, update): of each class the share of its labels that were predicted, the mean over all
    classes, 0 for those that do not occur; a float32 scalar. update: the share of each class,
    float32 [num_classes].

    labels: integers in [0, num_classes). predictions: of their shape. Variables, float32
    [num_classes]: `total`, the weight of each class's labels, and `count`, that of the right ones.
    A run raises InvalidArgumentError for labels out of range.
    """
    only_in_graphs("mean_per_class_accuracy")
    with variable_scope(name, "mean_accuracy", (predictions, labels, weights)):
        labels, predictions, weights = _flat(labels, predictions, weights, num_classes)
        if weights is None:
            weights = ops.OnesLike(ops.Cast(labels, _core.float32))
        right = ops.Cast(ops.Equal(labels, predictions), _core.float32) * weights
        total = metric_variable([num_classes], _core.float32, "total")
        count = metric_variable([num_classes], _core.float32, "count")
        new_total = total.scatter_add(IndexedSlices(weights, labels))
        new_count = count.scatter_add(IndexedSlices(right, labels))
        value = reduce_mean(ops.DivNoNan(count, ops.Maximum(total, 0.0)), name="mean_accuracy")
        update = ops.DivNoNan(new_count, ops.Maximum(new_total, 0.0), name="update_op")
        return collected(value, metrics_collections), collected(update, updates_collections)
