# SPDX-License-Identifier: Apache-2.0
"""Special functions, and what TensorFlow 1 has under tn.math alone."""

from __future__ import annotations

from treenail._convert import convert_to_tensor, scope_of
from treenail._ops import ops
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail._shape import TensorShape
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _unary(op_name: str, public_name: str, doc: str):
    def function(x: Any, name: str | None = None) -> Tensor:
        return getattr(ops, op_name)(x, name=name)
    function.__name__ = function.__qualname__ = public_name
    function.__doc__ = doc
    return function


erfinv = _unary("Erfinv", "erfinv", "The inverse of the error function: infinite at -1 and 1, NaN "
                "beyond.")
ndtri = _unary("Ndtri", "ndtri", "The quantile of the standard normal distribution: infinite for 0 "
               "and 1, NaN below and above.")
bessel_i0e = _unary("BesselI0e", "bessel_i0e", "exp(-|x|) I0(x), with the modified Bessel function "
                    "of order 0.")
bessel_i1e = _unary("BesselI1e", "bessel_i1e", "exp(-|x|) I1(x), with the modified Bessel function "
                    "of order 1.")


def bessel_i0(x: Any, name: str | None = None) -> Tensor:
    """The modified Bessel function of order 0; bessel_i0e does not overflow."""
    with scope_of(name, "bessel_i0", [x]) as scope:
        x = convert_to_tensor(x)
        return ops.Mul(ops.Exp(ops.Abs(x)), ops.BesselI0e(x), name=scope)


def bessel_i1(x: Any, name: str | None = None) -> Tensor:
    """The modified Bessel function of order 1; bessel_i1e does not overflow."""
    with scope_of(name, "bessel_i1", [x]) as scope:
        x = convert_to_tensor(x)
        return ops.Mul(ops.Exp(ops.Abs(x)), ops.BesselI1e(x), name=scope)


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """log |Beta(x)| along the last axis, which goes: the sum of lgamma less lgamma of the sum, the
    logarithm of what a Dirichlet distribution is normalised by. 0 elements give -infinity."""
    with scope_of(name, "lbeta", [x]) as scope:
        x = convert_to_tensor(x)
        apart = ops.Sum(ops.Lgamma(x), [-1])
        return ops.Sub(apart, ops.Lgamma(ops.Sum(x, [-1])), name=scope)


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


__all__ = ["bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "cumulative_logsumexp",
           "ensure_shape", "erfinv", "lbeta", "ndtri", "nextafter"]
_name_in_refusals(globals())
