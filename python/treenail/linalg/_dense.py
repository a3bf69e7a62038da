# SPDX-License-Identifier: Apache-2.0
"""Operators that store all of their matrix: any matrix, and lower triangular ones."""

from __future__ import annotations

from treenail import _array, _math
from treenail._assertions import assert_positive
from treenail._control import group
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._treenail import Operation, Tensor
from treenail.linalg import _algebra, _batches, _hints
from treenail.linalg._operator import LinearOperator
from treenail.linalg._parts import argument, checked_dtype, non_zero

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LinearOperatorFullMatrix(LinearOperator):
    """The matrices of a tensor [..., m, n], with all methods at the price of dense algorithms.

    Hints decide which: Cholesky factors where it is self-adjoint and positive definite, else LU.
    """

    def __init__(self, matrix: Any, is_non_singular: bool | None = None,
                 is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
                 is_square: bool | None = None, name: str = "LinearOperatorFullMatrix") -> None:
        self._matrix = checked_dtype("matrix", _batches.at_least_rank("matrix", matrix, 2))
        super().__init__(self._matrix.dtype, [self._matrix], is_non_singular, is_self_adjoint,
                         is_positive_definite, is_square, name)

    @property
    def matrix(self) -> Tensor:
        """The tensor that it was made of."""
        return self._matrix

    def _shape(self) -> TensorShape:
        return self._matrix.shape

    def _shape_tensor(self) -> Tensor:
        return ops.Shape(self._matrix)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return _batches.product(self._matrix, x, adjoint, adjoint_arg)

    def _to_dense(self) -> Tensor:
        return self._matrix


class LinearOperatorLowerTriangular(LinearOperator):
    """The lower triangles of matrices [..., n, n], whose upper ones are not read.

    A determinant is n multiplications, a solution n²/2 for each column.
    """

    def __init__(self, tril: Any, is_non_singular: bool | None = None,
                 is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
                 is_square: bool | None = None,
                 name: str = "LinearOperatorLowerTriangular") -> None:
        _hints.required(is_square,
                        "Only square lower triangular operators supported at this time.")
        self._tril = checked_dtype("tril", _batches.at_least_rank("tril", tril, 2))
        super().__init__(self._tril.dtype, [self._tril], is_non_singular, is_self_adjoint,
                         is_positive_definite, True, name)

    @property
    def tril(self) -> Tensor:
        """The tensor that it was made of."""
        return self._tril

    def _shape(self) -> TensorShape:
        return self._tril.shape

    def _shape_tensor(self) -> Tensor:
        return ops.Shape(self._tril)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return _batches.product(self._to_dense(), x, adjoint, adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return _batches.solve_with(
            lambda matrix, right: ops.MatrixTriangularSolve(matrix, right, adjoint=adjoint),
            self._tril, argument(rhs, adjoint_arg))

    def _determinant(self) -> Tensor:
        return _math.reduce_prod(self._diag_part(), axis=-1)

    def _log_abs_determinant(self) -> Tensor:
        size = _math.abs(self._diag_part())
        return _math.cast(_math.reduce_sum(ops.Log(size), axis=-1), self.dtype)

    def _diag_part(self) -> Tensor:
        return ops.MatrixDiagPart(self._tril)

    def _to_dense(self) -> Tensor:
        return ops.MatrixBandPart(self._tril, -1, 0)

    def _assert_non_singular(self) -> Operation:
        return non_zero(self._diag_part(), "Singular operator:  Diagonal contained zero values.")

    def _assert_positive_definite(self) -> Operation:
        if not self.is_self_adjoint:
            return super()._assert_positive_definite()
        # It is diagonal then.
        diagonal = _math.real(self._diag_part())
        return group(self._assert_self_adjoint(), assert_positive(
            diagonal, message="Diagonal elements must be positive."))


@_algebra.cholesky_factors.of(LinearOperator)
def _cholesky(operator: LinearOperator) -> LinearOperator:
    return LinearOperatorLowerTriangular(ops.Cholesky(operator.to_dense()), is_non_singular=True)


@_algebra.adjoints.of(LinearOperatorFullMatrix)
def _adjoint(operator: LinearOperatorFullMatrix) -> LinearOperator:
    return LinearOperatorFullMatrix(
        _array.matrix_transpose(operator.matrix, conjugate=True),
        is_non_singular=operator.is_non_singular, is_self_adjoint=operator.is_self_adjoint,
        is_positive_definite=operator.is_positive_definite, is_square=operator.is_square)


__all__ = ["LinearOperatorFullMatrix", "LinearOperatorLowerTriangular"]
