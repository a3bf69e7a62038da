# SPDX-License-Identifier: Apache-2.0
"""Weights of right and wrong decisions, and what follows from them: labels and predictions are
bools."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._math import cast, reduce_sum
from treenail._ops import ops
from treenail._treenail import Tensor
from treenail._variable_scope import variable_scope
from treenail.metrics._streams import (agreeing, broadcast_weights, collected, metric_variable,
                                       only_in_graphs)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def outcome(kind: str, labels: Tensor, predictions: Tensor) -> Tensor:
    """Where bool labels and predictions are of this kind ("true_positives"); they broadcast."""
    right, positive = kind.split("_")
    wanted = predictions if positive == "positives" else ops.LogicalNot(predictions)
    agree = positive == "positives" if right == "true" else positive == "negatives"
    return ops.LogicalAnd(labels if agree else ops.LogicalNot(labels), wanted)


def _counted(kind: str, labels: Any, predictions: Any, weights: Any, metrics_collections: Any,
             updates_collections: Any, name: str | None) -> tuple:
    """(value, update) of the sum of weights of one kind."""
    only_in_graphs(kind)
    with variable_scope(name, kind, (predictions, labels, weights)):
        labels, predictions, weights = agreeing(cast(labels, _core.bool),
                                                cast(predictions, _core.bool), weights)
        found = ops.Cast(outcome(kind, labels, predictions), _core.float32)
        if weights is not None:
            found = found * broadcast_weights(weights, found)
        count = metric_variable([], _core.float32, "count")
        return (collected(ops.Identity(count), metrics_collections),
                collected(count.assign_add(reduce_sum(found)), updates_collections))


def true_positives(labels: Any, predictions: Any, weights: Any = None,
                   metrics_collections: Any = None, updates_collections: Any = None,
                   name: str | None = None) -> tuple:
    """(value, update): the sum of the weights where labels and predictions, cast to bool, are both
    true; float32 scalars. Variable: `count`."""
    return _counted("true_positives", labels, predictions, weights, metrics_collections,
                    updates_collections, name)


def true_negatives(labels: Any, predictions: Any, weights: Any = None,
                   metrics_collections: Any = None, updates_collections: Any = None,
                   name: str | None = None) -> tuple:
    """(value, update): the sum of the weights where labels and predictions, cast to bool, are both
    false; float32 scalars. Variable: `count`."""
    return _counted("true_negatives", labels, predictions, weights, metrics_collections,
                    updates_collections, name)


def false_positives(labels: Any, predictions: Any, weights: Any = None,
                    metrics_collections: Any = None, updates_collections: Any = None,
                    name: str | None = None) -> tuple:
    """(value, update): the sum of the weights where predictions are true and labels are not;
    float32 scalars. Variable: `count`."""
    return _counted("false_positives", labels, predictions, weights, metrics_collections,
                    updates_collections, name)


def false_negatives(labels: Any, predictions: Any, weights: Any = None,
                    metrics_collections: Any = None, updates_collections: Any = None,
                    name: str | None = None) -> tuple:
    """(value, update): the sum of the weights where labels are true and predictions are not;
    float32 scalars. Variable: `count`."""
    return _counted("false_negatives", labels, predictions, weights, metrics_collections,
                    updates_collections, name)


def _share(kind: str, others: Any, labels: Any, predictions: Any, weights: Any,
           metrics_collections: Any, updates_collections: Any, name: str | None) -> tuple:
    """(value, update) of true positives over these and the others; 0 without any."""
    only_in_graphs(kind)
    with variable_scope(name, kind, (predictions, labels, weights)):
        hits, more_hits = true_positives(labels, predictions, weights)
        missed, more_missed = others(labels, predictions, weights)
        value = ops.DivNoNan(hits, ops.Maximum(hits + missed, 0.0), name="value")
        update = ops.DivNoNan(more_hits, ops.Maximum(more_hits + more_missed, 0.0),
                              name="update_op")
        return collected(value, metrics_collections), collected(update, updates_collections)


def precision(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
              updates_collections: Any = None, name: str | None = None) -> tuple:
    """(value, update): true_positives / (true_positives + false_positives), 0 before there are
    such; float32 scalars. labels, predictions: cast to bool.

    Variables: `true_positives/count` and `false_positives/count`.
    """
    return _share("precision", false_positives, labels, predictions, weights, metrics_collections,
                  updates_collections, name)


def recall(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
           updates_collections: Any = None, name: str | None = None) -> tuple:
    """(value, update): true_positives / (true_positives + false_negatives), 0 before there are
    such; float32 scalars. labels, predictions: cast to bool.

    Variables: `true_positives/count` and `false_negatives/count`.
    """
    return _share("recall", false_negatives, labels, predictions, weights, metrics_collections,
                  updates_collections, name)
