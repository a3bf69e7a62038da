# SPDX-License-Identifier: Apache-2.0
"""The area under a curve of decisions at thresholds: ROC, or precision over recall."""

from __future__ import annotations

from treenail._math import reduce_sum
from treenail._ops import ops
from treenail._treenail import Tensor
from treenail._variable_scope import variable_scope
from treenail.metrics._streams import collected, only_in_graphs
from treenail.metrics._thresholds import (EPSILON, as_thresholds, confusion_at, spread_thresholds)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STEADY = 1e-6  # added to counts, so that none is divided by 0


def auc(labels: Any, predictions: Any, weights: Any = None, num_thresholds: int = 200,
        metrics_collections: Any = None, updates_collections: Any = None, curve: str = "ROC",
        name: str | None = None, summation_method: str = "trapezoidal",
        thresholds: Any = None) -> tuple:
    """(value, update): the area under a curve through the points that decisions at thresholds give,
    float32 scalars.

    labels: cast to bool. predictions: in [0, 1], for others a run raises InvalidArgumentError.
    num_thresholds: how many points, for thresholds that are evenly spaced in [0, 1]; those just
    below 0 and above 1 count. thresholds: others instead; these two are added. curve: "ROC", the
    rate of true over that of false positives, or "PR", precision over recall. summation_method:
    "trapezoidal"; "minoring" and "majoring", of the lower and of the higher end of each step, bound
    the area; "careful_interpolation", under "PR", interpolates counts rather than precision, which
    is not linear between points (Davis and Goadrich 2006, The relationship between precision-recall
    and ROC curves).

    Variables, float32 [points]: `true_positives`, `false_negatives`, `true_negatives` and
    `false_positives`. Raises ValueError for another curve or summation_method.
    """
    only_in_graphs("auc")
    if curve not in ("ROC", "PR"):
        raise ValueError("curve must be either ROC or PR, %r unknown" % (curve,))
    if summation_method not in _HEIGHTS:
        raise ValueError("Invalid summation_method: %r; known are %s"
                         % (summation_method, ", ".join(_HEIGHTS)))
    if thresholds is None:
        levels = spread_thresholds(num_thresholds)
    else:
        levels = [-EPSILON, *sorted(as_thresholds(thresholds)), 1.0 + EPSILON]
    with variable_scope(name, "auc", (labels, predictions, weights)):
        sums, updates = confusion_at(levels, labels, predictions, weights)
        value = _area(*sums, curve, summation_method, "value")
        update = _area(*updates, curve, summation_method, "update_op")
        return collected(value, metrics_collections), collected(update, updates_collections)


def _halfway(a: Tensor, b: Tensor) -> Tensor:
    return (a + b) / 2.0


# How high the curve is within a step, by how high it is at the step's ends.
_HEIGHTS = {"trapezoidal": _halfway, "careful_interpolation": _halfway, "minoring": ops.Minimum,
            "majoring": ops.Maximum}


def _area(tp: Any, fn: Any, tn: Any, fp: Any, curve: str, method: str, name: str) -> Tensor:
    if curve == "PR" and method == "careful_interpolation":
        return _interpolated_area(ops.Identity(tp), ops.Identity(fp), ops.Identity(fn), name)
    recall = (tp + _STEADY) / (tp + fn + _STEADY)
    if curve == "ROC":
        x, y = fp / (fp + tn + _STEADY), recall
    else:
        x, y = recall, (tp + _STEADY) / (tp + fp + _STEADY)
    return reduce_sum((x[:-1] - x[1:]) * _HEIGHTS[method](y[:-1], y[1:]), name=name)


def _interpolated_area(tp: Tensor, fp: Tensor, fn: Tensor, name: str) -> Tensor:
    """The area under precision over recall, true positives being linear in positives p = tp + fp
    within each step, tp = intercept + slope * p: the integral of tp / p over recall."""
    p = tp + fp
    gained = tp[:-1] - tp[1:]
    slope = ops.DivNoNan(gained, ops.Maximum(p[:-1] - p[1:], 0.0))
    intercept = tp[1:] - slope * p[1:]
    grown = ops.LogicalAnd(ops.Greater(p[:-1], 0.0), ops.Greater(p[1:], 0.0))
    # From no positives on precision is constant: there is nothing to integrate.
    ratio = ops.Select(grown, ops.DivNoNan(p[:-1], ops.Maximum(p[1:], 0.0)), ops.OnesLike(p[1:]))
    area = slope * (gained + intercept * ops.Log(ratio))
    return reduce_sum(ops.DivNoNan(area, ops.Maximum(tp[1:] + fn[1:], 0.0)), name=name)
