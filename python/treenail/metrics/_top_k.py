# SPDX-License-Identifier: Apache-2.0
"""Several labels and several predictions per row, compared as sets of classes: precision and recall
of the k highest predictions, and precision averaged over their ranks."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._assertions import assert_equal
from treenail._convert import convert_to_tensor
from treenail._framework import control_dependencies, name_scope
from treenail._math import cast, cumsum, reduce_any, reduce_sum
from treenail._ops import ops
from treenail._sparse import SparseTensor, convert_to_tensor_or_sparse_tensor, sparse_to_dense
from treenail._treenail import Tensor
from treenail.metrics._streams import (adding_axis, broadcast_weights, collected, metric_variable,
                                       only_in_graphs)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# --- Rows of classes ------------------------------------------------------------------------------

class _Classes:
    """Rows of class numbers: int64 [D1, ..., n], and bool of the same shape: which of them are
    there."""

    def __init__(self, numbers: Tensor, there: Tensor) -> None:
        self.numbers, self.there = numbers, there

    def only(self, class_id: int | None) -> _Classes:
        """Those of one class; all for None."""
        if class_id is None:
            return self
        one = ops.Equal(self.numbers, convert_to_tensor(class_id, _core.int64))
        return _Classes(self.numbers, ops.LogicalAnd(self.there, one))

    def found_in(self, others: _Classes) -> Tensor:
        """Which of them are among the others in the row, bool [D1, ..., n]."""
        same = ops.Equal(ops.ExpandDims(self.numbers, -1), ops.ExpandDims(others.numbers, -2))
        same = ops.LogicalAnd(same, ops.ExpandDims(others.there, -2))
        return ops.LogicalAnd(self.there, reduce_any(same, -1))

    def distinct(self) -> Tensor:
        """Which of them have no equal one before them in the row, bool [D1, ..., n]."""
        place = ops.Range(0, ops.Shape(self.numbers)[-1], 1)
        before = ops.Less(ops.ExpandDims(place, 0), ops.ExpandDims(place, 1))
        same = ops.Equal(ops.ExpandDims(self.numbers, -1), ops.ExpandDims(self.numbers, -2))
        same = ops.LogicalAnd(ops.LogicalAnd(same, before), ops.ExpandDims(self.there, -2))
        return ops.LogicalAnd(self.there, ops.LogicalNot(reduce_any(same, -1)))


def _number(which: Tensor) -> Tensor:
    """How many are true in each row, float64."""
    return reduce_sum(ops.Cast(which, _core.float64), -1)


def _rows(labels: Any, predictions_idx: Any) -> tuple:
    """Labels and predictions as _Classes with the same leading axes. Labels without the last axis
    are one per row; of sparse ones the last index says no more than that they differ."""
    chosen = cast(predictions_idx, _core.int64)
    if chosen.shape.ndims == 0:
        raise ValueError("the predicted classes must have an axis at least, not %s" % chosen.shape)
    labels = convert_to_tensor_or_sparse_tensor(labels)
    if isinstance(labels, SparseTensor):
        values = cast(labels.values, _core.int64)
        there = ops.OnesLike(ops.Cast(values, _core.bool))
        numbers = sparse_to_dense(labels.indices, labels.dense_shape, values, 0)
        there = sparse_to_dense(labels.indices, labels.dense_shape, there, False)
    else:
        numbers = cast(labels, _core.int64)
        there = ops.OnesLike(ops.Cast(numbers, _core.bool))
    numbers, there = _in_rows(numbers, chosen), _in_rows(there, chosen)
    return (_Classes(_for_the_rows_of(chosen, numbers), there),
            _Classes(chosen, ops.OnesLike(ops.Cast(chosen, _core.bool))))


def _in_rows(labels: Tensor, chosen: Tensor) -> Tensor:
    """With a last axis where there is one label per row."""
    rank, wanted = labels.shape.ndims, chosen.shape.ndims
    if rank is None or wanted is None:
        return adding_axis(labels, ops.Equal(ops.Rank(labels) + 1, ops.Rank(chosen)))
    if rank not in (wanted, wanted - 1):
        raise ValueError("labels of shape %s do not belong to predictions of shape %s: their rank "
                         "must be the same, or one less" % (labels.shape, chosen.shape))
    return labels if rank == wanted else ops.ExpandDims(labels, -1)


def _for_the_rows_of(chosen: Tensor, labels: Tensor) -> Tensor:
    """The labels, whose axes but the last are held to those of the predictions, in the run where
    that alone knows them."""
    if labels.shape.ndims is not None and chosen.shape.ndims is not None:
        rows, wanted = labels.shape[:-1], chosen.shape[:-1]
        if not rows.is_compatible_with(wanted):
            raise ValueError("labels must have the rows of predictions, %s, not %s"
                             % (wanted, rows))
        if rows.is_fully_defined() and wanted.is_fully_defined():
            return labels
    same = assert_equal(ops.Shape(labels)[:-1], ops.Shape(chosen)[:-1],
                        message="labels must have the rows of predictions.")
    with control_dependencies([same]):
        return ops.Identity(labels)


# --- Precision and recall -------------------------------------------------------------------------

def _name_at_k(name: str, k: Any, class_id: Any = None) -> str:
    found = "%s_at_k" % name if k is None else "%s_at_%d" % (name, _as_k(k))
    return found if class_id is None else "%s_class%d" % (found, _as_class(class_id))


def _as_k(k: Any) -> int:
    if isinstance(k, bool) or not hasattr(k, "__index__"):
        raise TypeError("k must be an int, not %r" % (k,))
    if k < 1:
        raise ValueError("Invalid k=%s: k must be 1 or more" % k)
    return k.__index__()


def _as_class(class_id: Any) -> int:
    if isinstance(class_id, bool) or not hasattr(class_id, "__index__"):
        raise TypeError("class_id must be an int or None, not %r" % (class_id,))
    return class_id.__index__()


def _summed(name: str, counts: Tensor, weights: Any) -> tuple:
    """(variable, the same with this batch) of the sum of counts times weights, float64 scalars."""
    if weights is not None:
        counts = counts * broadcast_weights(weights, counts)
    total = metric_variable([], _core.float64, name)
    with name_scope(total._shared_name + "/"):
        return total, total.assign_add(reduce_sum(counts), name="update")


def _share(hits: tuple, missed: tuple, scope: str, metrics_collections: Any,
           updates_collections: Any) -> tuple:
    """(value, update) of hits / (hits + missed), each a variable and its update."""
    value = ops.RealDiv(hits[0], hits[0] + missed[0], name=scope)
    update = ops.RealDiv(hits[1], hits[1] + missed[1], name="update")
    return collected(value, metrics_collections), collected(update, updates_collections)


def precision_at_top_k(labels: Any, predictions_idx: Any, k: int | None = None,
                       class_id: int | None = None, weights: Any = None,
                       metrics_collections: Any = None, updates_collections: Any = None,
                       name: str | None = None) -> tuple:
    """(value, update): as precision_at_k, of classes that are chosen already, integers [D1, ...,
    k]. k: for names alone."""
    only_in_graphs("precision_at_top_k")
    with name_scope(name, _name_at_k("precision", k, class_id),
                    (predictions_idx, labels, weights)) as scope:
        wanted, chosen = (part.only(class_id) for part in _rows(labels, predictions_idx))
        right, distinct = chosen.found_in(wanted), chosen.distinct()
        hits = _summed(_name_at_k("true_positive", k, class_id),
                       _number(ops.LogicalAnd(distinct, right)), weights)
        missed = _summed(_name_at_k("false_positive", k, class_id),
                         _number(ops.LogicalAnd(distinct, ops.LogicalNot(right))), weights)
        return _share(hits, missed, scope, metrics_collections, updates_collections)


def recall_at_top_k(labels: Any, predictions_idx: Any, k: int | None = None,
                    class_id: int | None = None, weights: Any = None,
                    metrics_collections: Any = None, updates_collections: Any = None,
                    name: str | None = None) -> tuple:
    """(value, update): as recall_at_k, of classes that are chosen already, integers [D1, ..., k].
    k: for names alone."""
    only_in_graphs("recall_at_top_k")
    with name_scope(name, _name_at_k("recall", k, class_id),
                    (predictions_idx, labels, weights)) as scope:
        wanted, chosen = (part.only(class_id) for part in _rows(labels, predictions_idx))
        found, distinct = wanted.found_in(chosen), wanted.distinct()
        hits = _summed(_name_at_k("true_positive", k, class_id),
                       _number(ops.LogicalAnd(distinct, found)), weights)
        missed = _summed(_name_at_k("false_negative", k, class_id),
                         _number(ops.LogicalAnd(distinct, ops.LogicalNot(found))), weights)
        return _share(hits, missed, scope, metrics_collections, updates_collections)


def precision_at_k(labels: Any, predictions: Any, k: int, class_id: int | None = None,
                   weights: Any = None, metrics_collections: Any = None,
                   updates_collections: Any = None, name: str | None = None) -> tuple:
    """(value, update): the share of the k highest predictions that are among the row's labels,
    float64 scalars, NaN before there are any.

    labels: integers [D1, ..., labels], a SparseTensor of that shape, or [D1, ...] for one per row;
    equal ones count once. predictions: numbers [D1, ..., classes]. class_id: this class alone, in
    the rows where it is among the k highest. weights: a scalar, or [D1, ...], extents 1 allowed.

    Variables: `true_positive_at_<k>` and `false_positive_at_<k>`, with `_class<class_id>`. Raises
    ValueError for k < 1.
    """
    only_in_graphs("precision_at_k")
    with name_scope(name, _name_at_k("precision", _as_k(k), class_id),
                    (predictions, labels, weights)) as scope:
        chosen = ops.TopK(predictions, k).indices
        return precision_at_top_k(labels, chosen, k, class_id, weights, metrics_collections,
                                  updates_collections, scope)


def recall_at_k(labels: Any, predictions: Any, k: int, class_id: int | None = None,
                weights: Any = None, metrics_collections: Any = None,
                updates_collections: Any = None, name: str | None = None) -> tuple:
    """(value, update): the share of the labels of a row that are among its k highest predictions,
    float64 scalars, NaN before there are any.

    labels: integers [D1, ..., labels], a SparseTensor of that shape, or [D1, ...] for one per row;
    equal ones count once, and those that are no class are missed. predictions: numbers [D1, ...,
    classes]. class_id: this class alone, in the rows that have this label. weights: a scalar, or
    [D1, ...], extents 1 allowed.

    Variables: `true_positive_at_<k>` and `false_negative_at_<k>`, with `_class<class_id>`. Raises
    ValueError for k < 1.
    """
    only_in_graphs("recall_at_k")
    with name_scope(name, _name_at_k("recall", _as_k(k), class_id),
                    (predictions, labels, weights)) as scope:
        chosen = ops.TopK(predictions, k).indices
        return recall_at_top_k(labels, chosen, k, class_id, weights, metrics_collections,
                               updates_collections, scope)


def sparse_precision_at_k(labels: Any, predictions: Any, k: int, class_id: int | None = None,
                          weights: Any = None, metrics_collections: Any = None,
                          updates_collections: Any = None, name: str | None = None) -> tuple:
    """TensorFlow 1's older name of precision_at_k."""
    only_in_graphs("sparse_precision_at_k")
    return precision_at_k(labels, predictions, k, class_id, weights, metrics_collections,
                          updates_collections, name)


# --- Precision averaged over ranks ----------------------------------------------------------------

def average_precision_at_k(labels: Any, predictions: Any, k: int, weights: Any = None,
                           metrics_collections: Any = None, updates_collections: Any = None,
                           name: str | None = None) -> tuple:
    """(value, update): the weighted mean over rows of the average precision at k, float64 scalars,
    0 before there are any.

    A row's is sum(precision at i, for i of 1 ... k where the i-th highest prediction is a label) /
    min(k, number of labels), and NaN without labels. labels, predictions and weights: as of
    precision_at_k; labels that are no class are left out, in a SparseTensor they count as one.

    Variables: `max`, the sum of weights, and `total`. Raises ValueError for k < 1. Source:
    https://en.wikipedia.org/wiki/Evaluation_measures_(information_retrieval)#Average_precision
    """
    only_in_graphs("average_precision_at_k")
    with name_scope(name, _name_at_k("average_precision", _as_k(k)),
                    (predictions, labels, weights)) as scope:
        rows = _average_precision(labels, convert_to_tensor(predictions), k)
        counted = ops.OnesLike(rows)
        if weights is not None:
            counted = broadcast_weights(weights, rows)
        most = _summed("max", counted, None)
        total = _summed("total", rows * counted, None)
        return (collected(ops.DivNoNan(total[0], most[0], name="mean"), metrics_collections),
                collected(ops.DivNoNan(total[1], most[1], name=scope), updates_collections))


def _average_precision(labels: Any, predictions: Tensor, k: int) -> Tensor:
    """Of each row, float64 [D1, ...]."""
    labels = convert_to_tensor_or_sparse_tensor(labels)
    wanted, chosen = _rows(labels, ops.TopK(predictions, k).indices)
    right = ops.Cast(chosen.found_in(wanted), _core.float64)
    precision = cumsum(right, -1) / cumsum(ops.OnesLike(right), -1)
    classes = ops.Cast(ops.Shape(predictions)[-1], _core.int64)
    zeros = ops.ZerosLike(wanted.numbers)
    numbers = ops.Select(ops.Less(wanted.numbers, classes), wanted.numbers, zeros - 1)
    known = _Classes(numbers, wanted.there).distinct() if isinstance(
        labels, SparseTensor) else ops.GreaterEqual(numbers, zeros)
    relevant = ops.Minimum(_number(known), float(k))
    return reduce_sum(precision * right, -1) / relevant


def sparse_average_precision_at_k(labels: Any, predictions: Any, k: int, weights: Any = None,
                                  metrics_collections: Any = None, updates_collections: Any = None,
                                  name: str | None = None) -> tuple:
    """TensorFlow 1's older name of average_precision_at_k."""
    only_in_graphs("sparse_average_precision_at_k")
    return average_precision_at_k(labels, predictions, k, weights, metrics_collections,
                                  updates_collections, name)
