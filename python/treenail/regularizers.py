# SPDX-License-Identifier: Apache-2.0
"""Penalties on the size of weights, for the `regularizer` of get_variable and of layers."""

from __future__ import annotations

from treenail._convert import convert_to_tensor, scope_of
from treenail._math import add_n, reduce_sum
from treenail._names import no_attribute as _no_attribute
from treenail._ops import ops
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence


def _checked(scale: float) -> float:
    if isinstance(scale, bool) or not isinstance(scale, (int, float)):
        raise ValueError("scale must be a number, not %r" % (scale,))
    if scale < 0:
        raise ValueError("Setting a scale less than 0 on a regularizer: %r" % (scale,))
    try:
        return float(scale)
    except OverflowError:
        raise ValueError("scale must fit into a float") from None


def _none(weights: Any) -> None:
    return None


def l1(scale: float) -> Callable:
    """weights -> scale * sum of absolute values. A scale of 0 adds nothing."""
    scale = _checked(scale)
    if scale == 0:
        return _none

    def l1_penalty(weights: Any) -> Tensor:
        with scope_of(None, "l1_regularizer", [weights]):
            weights = convert_to_tensor(weights)
            return reduce_sum(ops.Abs(weights)) * scale
    return l1_penalty


def l2(scale: float) -> Callable:
    """weights -> scale * half the sum of squares. A scale of 0 adds nothing."""
    scale = _checked(scale)
    if scale == 0:
        return _none

    def l2_penalty(weights: Any) -> Tensor:
        with scope_of(None, "l2_regularizer", [weights]):
            return ops.L2Loss(convert_to_tensor(weights)) * scale
    return l2_penalty


def l1_l2(scale_l1: float = 1.0, scale_l2: float = 1.0) -> Callable:
    """The sum of l1(scale_l1) and l2(scale_l2)."""
    return sum_regularizer([l1(scale_l1), l2(scale_l2)])


def sum_regularizer(regularizer_list: Sequence) -> Callable:
    """The sum of several penalties."""
    parts = [r for r in regularizer_list if r is not None and r is not _none]

    def penalty(weights: Any) -> Any:
        values = [v for v in (part(weights) for part in parts) if v is not None]
        return add_n(values) if values else None
    return penalty


def apply_regularization(regularizer: Callable, weights_list: Sequence | None = None) -> Tensor:
    """The sum of the penalties on all of `weights_list` (by default the collection WEIGHTS), also
    added to REGULARIZATION_LOSSES."""
    from treenail._framework import GraphKeys, add_to_collection, get_collection
    if weights_list is None:
        weights_list = get_collection(GraphKeys.WEIGHTS)
    if not weights_list:
        raise ValueError("No weights to regularize.")
    values = [v for v in (regularizer(w) for w in weights_list) if v is not None]
    total = add_n(values) if values else convert_to_tensor(0.0)
    add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
    return total


l1_regularizer, l2_regularizer, l1_l2_regularizer = l1, l2, l1_l2

__all__ = ["l1", "l2", "l1_l2", "sum_regularizer", "apply_regularization", "l1_regularizer",
           "l2_regularizer", "l1_l2_regularizer"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
