# SPDX-License-Identifier: Apache-2.0
"""Tridiagonal operators."""

from __future__ import annotations

from treenail import _array, _math
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._treenail import Tensor
from treenail.linalg import _algebra, _batches, _hints
from treenail.linalg._diagonals import compact
from treenail.linalg._operator import LinearOperator
from treenail.linalg._parts import argument, checked_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LinearOperatorTridiag(LinearOperator):
    """Tridiagonal matrices of order n, whose diagonals are given in a format of
    tn.linalg.tridiagonal_solve: "compact" [..., 3, n], "sequence" or "matrix".

    Products and solutions, by elimination with partial pivoting, take O(n) for each column;
    determinants are those of the dense matrix.
    """

    def __init__(self, diagonals: Any, diagonals_format: str = "compact",
                 is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
                 is_positive_definite: bool | None = None, is_square: bool | None = None,
                 name: str = "LinearOperatorTridiag") -> None:
        _hints.required(is_square, "Only square tridiagonal operators currently supported.")
        self._compact = checked_dtype("diagonals", compact(diagonals, diagonals_format))
        self._format = diagonals_format
        self._given = diagonals
        super().__init__(self._compact.dtype, [self._compact], is_non_singular, is_self_adjoint,
                         is_positive_definite, True, name)

    @property
    def diagonals(self) -> Any:
        """The diagonals, in the format that they were given in."""
        return self._given

    @property
    def diagonals_format(self) -> str:
        """The format that the diagonals were given in."""
        return self._format

    def _shape(self) -> TensorShape:
        shape = self._compact.shape
        return shape[:-2].concatenate([shape[-1], shape[-1]])

    def _shape_tensor(self) -> Tensor:
        shape = ops.Shape(self._compact)
        return _batches.joined(shape[:-2], shape[-1:], shape[-1:])

    def _rows_of(self, adjoint: bool) -> list:
        """Above, on and below the diagonal, [..., 1, n]."""
        rows = _array.split(self._compact, 3, axis=-2)
        if not adjoint:
            return rows
        above, main, below = map(_math.conj, rows)
        return [_array.roll(below, -1, -1), main, _array.roll(above, 1, -1)]

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        rows, x = self._rows_of(adjoint), argument(x, adjoint_arg)
        return _batches.solve_with(_product, _array.concat(rows, -2), x)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        diagonals = _array.concat(self._rows_of(True), -2) if adjoint else self._compact
        return _batches.solve_with(ops.TridiagonalSolve, diagonals, argument(rhs, adjoint_arg))

    def _diag_part(self) -> Tensor:
        return self._compact[..., 1, :]


def _product(diagonals: Tensor, x: Tensor) -> Tensor:
    return ops.TridiagonalMatMul(*_array.split(diagonals, 3, axis=-2), x)


@_algebra.adjoints.of(LinearOperatorTridiag)
def _adjoint(operator: LinearOperatorTridiag) -> LinearOperator:
    return LinearOperatorTridiag(_array.concat(operator._rows_of(True), -2),
                                 **_hints.of_one(operator))


__all__ = ["LinearOperatorTridiag"]
