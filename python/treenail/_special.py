# SPDX-License-Identifier: Apache-2.0
"""Special functions, and what TensorFlow 1 has under tn.math alone."""

from __future__ import annotations

from treenail._convert import convert_to_tensor
from treenail._ops import ops
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail._shape import TensorShape
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def nextafter(x1: Any, x2: Any, name: str | None = None) -> Tensor:
    """The number next to x1 in the direction of x2, element by element, with broadcasting: x2 where
    they are equal, NaN where either is. float32 and float64. The gradient goes to x1."""
    return ops.NextAfter(x1, x2, name=name)


def cumulative_logsumexp(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False,
                         name: str | None = None) -> Tensor:
    """log(e ** x[0] + ... + e ** x[i]) along `axis`, computed so that it does not overflow.

    exclusive: without x[i] itself, so the first element is the lowest finite number of the dtype.
    reverse: from the end. Raises InvalidArgumentError for an axis out of range.
    """
    return ops.CumulativeLogsumexp(x, axis, exclusive=exclusive, reverse=reverse, name=name)


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """`x`, whose shape is checked to match `shape` in every run; None stands for any extent.

    Its static shape is known as far as that of `x` or `shape` is. Raises InvalidArgumentError (when
    the operation is made, where the shape is known then) for a shape that does not match.
    """
    return ops.EnsureShape(convert_to_tensor(x), shape=TensorShape(shape), name=name)


__all__ = ["cumulative_logsumexp", "ensure_shape", "nextafter"]
_name_in_refusals(globals())
