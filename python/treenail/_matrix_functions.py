# SPDX-License-Identifier: Apache-2.0
"""What decompositions are for: least squares, pseudoinverses, ranks; cross products."""

from __future__ import annotations

from treenail import _array, _linalg, _math
from treenail import _treenail as _core
from treenail._convert import convert_to_tensor, scope_of
from treenail._ops import ops
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_INFINITY = float("inf")
_EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52, "complex64": 2.0**-23,
            "complex128": 2.0**-52}


def _matrices(what: str, value: Any, dtype: Any = None) -> Tensor:
    x = convert_to_tensor(value, dtype)
    if x.shape.ndims is not None and x.shape.ndims < 2:
        raise ValueError("%s must hold matrices, in a rank of 2 or more; its shape is %s"
                         % (what, x.shape))
    return x


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """Cross products of the vectors of three numbers in the last axes of two equal shapes."""
    return ops.Cross(a, b, name=name)


def lstsq(matrix: Any, rhs: Any, l2_regularizer: Any = 0.0, fast: bool = True,
          name: str | None = None) -> Tensor:
    """The X with the least |matrix X - rhs|² + l2_regularizer |X|², the smallest where there are
    several: matrix [..., m, n], rhs [..., m, k], X [..., n, k].

    fast: by normal equations and Cholesky, for matrices of full rank and condition below 1e3 in
    float32 or 1e7 in float64; others raise InvalidArgumentError, naming the first one of the batch.
    Otherwise by singular values, for any matrix, without regularizer.
    """
    regularizer = convert_to_tensor(l2_regularizer, _core.float64)
    return ops.MatrixSolveLs(matrix, rhs, regularizer, fast=fast, name=name)


def _tolerance(x: Tensor, factor: float) -> Tensor:
    """factor times the longer side times epsilon, in the dtype of the singular values."""
    real = _core.float32 if x.dtype in (_core.float32, _core.complex64) else _core.float64
    longer = _math.reduce_max(_array.shape(x)[-2:])
    return _math.cast(longer, real) * (factor * _EPSILON[x.dtype.name])


def pinv(a: Any, rcond: Any = None, validate_args: bool = False,
         name: str | None = None) -> Tensor:
    """Moore-Penrose pseudoinverses of matrices [..., m, n], shape [..., n, m].

    Singular values up to rcond (by default 10 max(m, n) epsilon) times the largest count as zero,
    in the gradient, too, which takes the rank for unchanging (Golub and Pereyra 1973).
    """
    with scope_of(name, "pinv", [a]):
        a = _matrices("a", a)
        s, u, v = _linalg.svd(a)
        cutoff = _tolerance(a, 10.0) if rcond is None else convert_to_tensor(rcond, s.dtype)
        limit = ops.ExpandDims(cutoff * _math.reduce_max(s, axis=-1), -1)
        none = convert_to_tensor(_INFINITY, s.dtype)
        kept = _array.where(ops.Greater(s, limit), s, ops.Fill(_array.shape(s), none))
        inverse = _math.matmul(v / _math.cast(ops.ExpandDims(kept, -2), v.dtype), u, adjoint_b=True)
        return ops.AsPseudoInverse(a, inverse)


def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False,
                name: str | None = None) -> Tensor:
    """Numbers of singular values beyond tol, by default max(m, n) epsilon times the largest."""
    with scope_of(name, "matrix_rank", [a]):
        a = _matrices("a", a)
        s = _linalg.svd(a, compute_uv=False)
        if tol is None:
            tol = _tolerance(a, 1.0) * _math.reduce_max(s, axis=-1, keepdims=True)
        beyond = ops.Greater(s, convert_to_tensor(tol, s.dtype))
        return _math.reduce_sum(_math.cast(beyond, _core.int32), axis=-1)


__all__ = ["cross", "lstsq", "matrix_rank", "pinv"]
