# SPDX-License-Identifier: Apache-2.0
"""What kinds of linear operators are written with: arguments and their checks, assertions about
elements, names of operations."""

from __future__ import annotations

from treenail import _array, _assertions, _math
from treenail._framework import executing_eagerly, name_scope
from treenail._ops import ops
from treenail._treenail import Operation, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

FLOATS = ("float32", "float64", "complex64", "complex128")
EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52, "complex64": 2.0**-23,
           "complex128": 2.0**-52}


class OwnScope:
    """name_scope(operator) around name_scope(method); nothing where operations have no names."""

    __slots__ = ("_scopes",)

    def __init__(self, own: str, name: str, values: list) -> None:
        self._scopes = [] if executing_eagerly() else [name_scope(own, None, values),
                                                       name_scope(name, None, values)]

    def __enter__(self) -> None:
        for scope in self._scopes:
            scope.__enter__()

    def __exit__(self, *unused) -> None:
        for scope in reversed(self._scopes):
            scope.__exit__(*unused)


def hermitian_part(x: Tensor) -> Tensor:
    return 0.5 * (x + _array.matrix_transpose(x, conjugate=True))


def argument(x: Tensor, adjoint: bool) -> Tensor:
    """A right side, or its adjoint."""
    return _array.matrix_transpose(x, conjugate=True) if adjoint else x


def cholesky_solution(factor: Tensor, rhs: Tensor) -> Tensor:
    """Solves factor factor^H x = rhs."""
    half = ops.MatrixTriangularSolve(factor, rhs)
    return ops.MatrixTriangularSolve(factor, half, adjoint=True)


def checked_dtype(what: str, x: Tensor, allowed: Sequence[str] = FLOATS) -> Tensor:
    """x. Raises TypeError for a dtype that no operator has."""
    if x.dtype.name not in allowed:
        raise TypeError("Argument %s must have dtype in %s.  Found: %s"
                        % (what, list(allowed), x.dtype.name))
    return x


def non_zero(x: Tensor, message: str) -> Operation:
    """Asserts that no element is 0."""
    size = _math.abs(x)
    return _assertions.assert_less(ops.ZerosLike(size), size, message=message)


def no_imaginary_part(x: Tensor, message: str) -> Operation:
    """Asserts that all elements are real."""
    imaginary = _math.imag(x)
    return _assertions.assert_equal(ops.ZerosLike(imaginary), imaginary, message=message)


def fold(function: Callable, values: Sequence) -> Any:
    """function(function(v0, v1), v2) and so on."""
    result = values[0]
    for value in values[1:]:
        result = function(result, value)
    return result
