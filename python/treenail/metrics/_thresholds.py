# SPDX-License-Identifier: Apache-2.0
"""Decisions at thresholds: predictions in [0, 1] above one are true, others false."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._assertions import assert_greater_equal, assert_less_equal
from treenail._convert import convert_to_tensor
from treenail._framework import control_dependencies
from treenail._math import cast, cumsum, reduce_min, reduce_sum
from treenail._ops import ops
from treenail._treenail import Tensor
from treenail._variable_scope import variable_scope
from treenail.metrics._counts import outcome
from treenail.metrics._streams import (agreeing, broadcast_weights, collected, metric_variable,
                                       only_in_graphs)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

ALL_KINDS = ("true_positives", "false_negatives", "true_negatives", "false_positives")
EPSILON = 1e-7  # beyond 0 and 1, so that each prediction is above the first threshold


def confusion_at(thresholds: Sequence[float], labels: Any, predictions: Any, weights: Any,
                 kinds: Sequence[str] = ALL_KINDS) -> tuple:
    """([the sums of weights of each kind], [the same with this batch]): float32 [thresholds] each,
    the first ones variables named by their kinds."""
    labels, predictions, weights = agreeing(cast(labels, _core.bool),
                                            cast(_in_unit_interval(predictions), _core.float32),
                                            weights)
    if weights is not None:
        weights = ops.Reshape(broadcast_weights(weights, predictions), [1, -1])
    levels = ops.ExpandDims(convert_to_tensor(thresholds, _core.float32), 1)
    above = ops.Greater(ops.Reshape(predictions, [1, -1]), levels)
    labels = ops.Reshape(labels, [1, -1])
    sums, updates = [], []
    for kind in kinds:
        found = ops.Cast(outcome(kind, labels, above), _core.float32)
        found = found if weights is None else found * weights
        sums.append(metric_variable([len(thresholds)], _core.float32, kind))
        updates.append(sums[-1].assign_add(reduce_sum(found, 1)))
    return sums, updates


def _in_unit_interval(predictions: Any) -> Tensor:
    """Predictions; a run raises InvalidArgumentError for others than in [0, 1]."""
    predictions = convert_to_tensor(predictions)
    message = "predictions must be in [0, 1]"
    with control_dependencies([assert_greater_equal(predictions, 0, message=message),
                               assert_less_equal(predictions, 1, message=message)]):
        return ops.Identity(predictions)


def as_thresholds(thresholds: Any) -> list:
    """Thresholds as floats. Raises TypeError or ValueError for what is no list of numbers."""
    try:
        return [float(threshold) for threshold in thresholds]
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind("thresholds must be a list of floats in [0, 1], not %r"
                   % (thresholds,)) from None


def spread_thresholds(num_thresholds: Any, last: float = 1.0 + EPSILON) -> list:
    """Evenly spaced in [0, 1], the first just below 0, the `last` near 1. Raises ValueError for
    fewer than two."""
    if not hasattr(num_thresholds, "__index__") or num_thresholds < 2:
        raise ValueError("num_thresholds must be an int of at least 2, not %r" % (num_thresholds,))
    count = num_thresholds.__index__()
    return [-EPSILON, *((i + 1) / (count - 1) for i in range(count - 2)), last]


# --- At thresholds that are given -----------------------------------------------------------------

def _kind_at_thresholds(kind: str, labels: Any, predictions: Any, thresholds: Any, weights: Any,
                        metrics_collections: Any, updates_collections: Any,
                        name: str | None) -> tuple:
    only_in_graphs(kind + "_at_thresholds")
    with variable_scope(name, kind, (predictions, labels, weights)):
        (total,), (update,) = confusion_at(as_thresholds(thresholds), labels, predictions, weights,
                                           (kind,))
        return (collected(ops.Identity(total), metrics_collections),
                collected(update, updates_collections))


def true_positives_at_thresholds(labels: Any, predictions: Any, thresholds: Any,
                                 weights: Any = None, metrics_collections: Any = None,
                                 updates_collections: Any = None, name: str | None = None) -> tuple:
    """(value, update): for each threshold the sum of the weights where labels, cast to bool, are
    true and predictions above it; float32 [thresholds]. Variable: `true_positives`.

    predictions: in [0, 1], for others a run raises InvalidArgumentError. thresholds: a list of
    floats.
    """
    return _kind_at_thresholds("true_positives", labels, predictions, thresholds, weights,
                               metrics_collections, updates_collections, name)


def true_negatives_at_thresholds(labels: Any, predictions: Any, thresholds: Any,
                                 weights: Any = None, metrics_collections: Any = None,
                                 updates_collections: Any = None, name: str | None = None) -> tuple:
    """(value, update): for each threshold the sum of the weights where labels, cast to bool, are
    false and predictions at most it; float32 [thresholds]. Variable: `true_negatives`.

    predictions: in [0, 1], for others a run raises InvalidArgumentError. thresholds: a list of
    floats.
    """
    return _kind_at_thresholds("true_negatives", labels, predictions, thresholds, weights,
                               metrics_collections, updates_collections, name)


def false_positives_at_thresholds(labels: Any, predictions: Any, thresholds: Any,
                                  weights: Any = None, metrics_collections: Any = None,
                                  updates_collections: Any = None,
                                  name: str | None = None) -> tuple:
    """(value, update): for each threshold the sum of the weights where labels, cast to bool, are
    false and predictions above it; float32 [thresholds]. Variable: `false_positives`.

    predictions: in [0, 1], for others a run raises InvalidArgumentError. thresholds: a list of
    floats.
    """
    return _kind_at_thresholds("false_positives", labels, predictions, thresholds, weights,
                               metrics_collections, updates_collections, name)


def false_negatives_at_thresholds(labels: Any, predictions: Any, thresholds: Any,
                                  weights: Any = None, metrics_collections: Any = None,
                                  updates_collections: Any = None,
                                  name: str | None = None) -> tuple:
    """(value, update): for each threshold the sum of the weights where labels, cast to bool, are
    true and predictions at most it; float32 [thresholds]. Variable: `false_negatives`.

    predictions: in [0, 1], for others a run raises InvalidArgumentError. thresholds: a list of
    floats.
    """
    return _kind_at_thresholds("false_negatives", labels, predictions, thresholds, weights,
                               metrics_collections, updates_collections, name)


def _share_at_thresholds(kind: str, others: str, labels: Any, predictions: Any, thresholds: Any,
                         weights: Any, metrics_collections: Any, updates_collections: Any,
                         name: str | None) -> tuple:
    """(value, update) of true positives over these and the others, for each threshold."""
    only_in_graphs(kind + "_at_thresholds")
    with variable_scope(name, kind + "_at_thresholds", (predictions, labels, weights)):
        sums, updates = confusion_at(as_thresholds(thresholds), labels, predictions, weights,
                                     ("true_positives", others))

        def share(hits: Any, missed: Any, of: str) -> Tensor:
            return ops.RealDiv(hits, EPSILON + hits + missed, name="%s_%s" % (kind, of))
        return (collected(share(*sums, "value"), metrics_collections),
                collected(share(*updates, "update_op"), updates_collections))


def precision_at_thresholds(labels: Any, predictions: Any, thresholds: Any, weights: Any = None,
                            metrics_collections: Any = None, updates_collections: Any = None,
                            name: str | None = None) -> tuple:
    """(value, update): for each threshold true positives / (true positives + false positives +
    1e-7), float32 [thresholds]. Variables: `true_positives` and `false_positives`.

    labels: cast to bool. predictions: in [0, 1], for others a run raises InvalidArgumentError.
    thresholds: a list of floats.
    """
    return _share_at_thresholds("precision", "false_positives", labels, predictions, thresholds,
                                weights, metrics_collections, updates_collections, name)


def recall_at_thresholds(labels: Any, predictions: Any, thresholds: Any, weights: Any = None,
                         metrics_collections: Any = None, updates_collections: Any = None,
                         name: str | None = None) -> tuple:
    """(value, update): for each threshold true positives / (true positives + false negatives +
    1e-7), float32 [thresholds]. Variables: `true_positives` and `false_negatives`.

    labels: cast to bool. predictions: in [0, 1], for others a run raises InvalidArgumentError.
    thresholds: a list of floats.
    """
    return _share_at_thresholds("recall", "false_negatives", labels, predictions, thresholds,
                                weights, metrics_collections, updates_collections, name)


# --- At the threshold where another measure is met ------------------------------------------------

def sensitivity_at_specificity(labels: Any, predictions: Any, specificity: float,
                               weights: Any = None, num_thresholds: int = 200,
                               metrics_collections: Any = None, updates_collections: Any = None,
                               name: str | None = None) -> tuple:
    """(value, update): tp / (tp + fn) at the threshold, the lowest of several, at which
    tn / (tn + fp) is nearest to `specificity`; float32 scalars.

    labels: cast to bool. predictions: in [0, 1], for others a run raises InvalidArgumentError.
    num_thresholds: how many are tried, evenly spaced. Variables, float32 [num_thresholds]:
    `true_positives`, `true_negatives`, `false_positives` and `false_negatives`.

    Raises ValueError for a specificity outside of [0, 1].
    """
    only_in_graphs("sensitivity_at_specificity")
    _check_share(specificity, "specificity")

    def sensitivity(tp: Any, fn: Any, tn: Any, fp: Any, of: str) -> Tensor:
        there = ops.ArgMin(ops.Abs(tn / (tn + fp + EPSILON) - specificity), 0)
        hits, missed = ops.Gather(tp, there, 0), ops.Gather(fn, there, 0)
        return ops.RealDiv(hits, hits + missed + EPSILON, name=of)
    with variable_scope(name, "sensitivity_at_specificity", (predictions, labels, weights)):
        return _where_met(sensitivity, spread_thresholds(num_thresholds), labels, predictions,
                          weights, metrics_collections, updates_collections)


def specificity_at_sensitivity(labels: Any, predictions: Any, sensitivity: float,
                               weights: Any = None, num_thresholds: int = 200,
                               metrics_collections: Any = None, updates_collections: Any = None,
                               name: str | None = None) -> tuple:
    """(value, update): tn / (tn + fp) at the threshold, the highest of several, at which
    tp / (tp + fn) is nearest to `sensitivity`; float32 scalars.

    Otherwise as sensitivity_at_specificity. Raises ValueError for a sensitivity outside of [0, 1];
    a run raises InvalidArgumentError for predictions outside of it.
    """
    only_in_graphs("specificity_at_sensitivity")
    _check_share(sensitivity, "sensitivity")

    def specificity(tp: Any, fn: Any, tn: Any, fp: Any, of: str) -> Tensor:
        off = ops.Abs(tp / (tp + fn + EPSILON) - sensitivity)
        nearest = ops.Cast(ops.Equal(off, reduce_min(off)), _core.int64)
        there = ops.ArgMax(cumsum(nearest), 0)  # the last one: the sum grows no more from there
        right, wrong = ops.Gather(tn, there, 0), ops.Gather(fp, there, 0)
        return ops.RealDiv(right, right + wrong + EPSILON, name=of)
    with variable_scope(name, "specificity_at_sensitivity", (predictions, labels, weights)):
        return _where_met(specificity, spread_thresholds(num_thresholds, 1.0 - EPSILON), labels,
                          predictions, weights, metrics_collections, updates_collections)


def _check_share(value: Any, what: str) -> None:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__") or not 0 <= value <= 1:
        raise ValueError("`%s` must be in the range [0, 1], not %r" % (what, value))


def _where_met(measure: Callable, thresholds: list, labels: Any, predictions: Any, weights: Any,
               metrics_collections: Any, updates_collections: Any) -> tuple:
    sums, updates = confusion_at(thresholds, labels, predictions, weights)
    return (collected(measure(*sums, "value"), metrics_collections),
            collected(measure(*updates, "update_op"), updates_collections))
