# SPDX-License-Identifier: Apache-2.0
"""Diagonal operators."""

from __future__ import annotations

from treenail import _assertions, _math
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._treenail import Operation, Tensor
from treenail.linalg import _algebra, _batches, _hints
from treenail.linalg._dense import LinearOperatorLowerTriangular
from treenail.linalg._extents import with_added_diagonal
from treenail.linalg._identity import LinearOperatorScaledIdentity
from treenail.linalg._operator import LinearOperator
from treenail.linalg._parts import argument, checked_dtype, no_imaginary_part, non_zero

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LinearOperatorDiag(LinearOperator):
    """Diagonal matrices: diag is [..., n], the diagonals of a batch.

    Products and solutions take one multiplication or division for each element of the argument,
    determinants n multiplications. A real one is self-adjoint.
    """

    def __init__(self, diag: Any, is_non_singular: bool | None = None,
                 is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
                 is_square: bool | None = None, name: str = "LinearOperatorDiag") -> None:
        self._diag = checked_dtype("diag", _batches.at_least_rank("diag", diag, 1))
        if not self._diag.dtype.is_complex:
            is_self_adjoint = _hints.required(is_self_adjoint,
                                              "A real diagonal operator is always self adjoint.")
        _hints.required(is_square, "Only square diagonal operators currently supported.")
        super().__init__(self._diag.dtype, [self._diag], is_non_singular, is_self_adjoint,
                         is_positive_definite, True, name)

    @property
    def diag(self) -> Tensor:
        """The diagonals, [..., n]."""
        return self._diag

    def _shape(self) -> TensorShape:
        return self._diag.shape.concatenate(self._diag.shape[-1:] if self._diag.shape else None)

    def _shape_tensor(self) -> Tensor:
        shape = ops.Shape(self._diag)
        return _batches.joined(shape, shape[-1:])

    def _factors(self, adjoint: bool) -> Tensor:
        return ops.ExpandDims(_math.conj(self._diag) if adjoint else self._diag, -1)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._factors(adjoint) * argument(x, adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return argument(rhs, adjoint_arg) / self._factors(adjoint)

    def _matvec(self, x: Tensor, adjoint: bool = False) -> Tensor:
        return (_math.conj(self._diag) if adjoint else self._diag) * x

    def _determinant(self) -> Tensor:
        return _math.reduce_prod(self._diag, axis=-1)

    def _log_abs_determinant(self) -> Tensor:
        sizes = ops.Log(_math.abs(self._diag))
        return _math.cast(_math.reduce_sum(sizes, axis=-1), self.dtype)

    def _diag_part(self) -> Tensor:
        return self._diag

    def _to_dense(self) -> Tensor:
        return ops.MatrixDiag(self._diag)

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return with_added_diagonal(x, self, self._diag)

    def _assert_non_singular(self) -> Operation:
        return non_zero(self._diag, "Singular operator:  Diagonal contained zero values.")

    def _assert_positive_definite(self) -> Operation:
        return _assertions.assert_positive(
            _math.real(self._diag),
            message="This diagonal operator contained entries with real part <= 0.  Thus it was "
                    "not positive definite.")

    def _assert_self_adjoint(self) -> Operation:
        return no_imaginary_part(
            self._diag, "This diagonal operator contained non-zero imaginary values.  Thus it was "
            "not self-adjoint.")


# --- Algebra --------------------------------------------------------------------------------------

@_algebra.adjoints.of(LinearOperatorDiag)
def _adjoint(operator: LinearOperatorDiag) -> LinearOperator:
    return LinearOperatorDiag(_math.conj(operator.diag), **_hints.of_one(operator))


@_algebra.inverses.of(LinearOperatorDiag)
def _inverse(operator: LinearOperatorDiag) -> LinearOperator:
    return LinearOperatorDiag(1.0 / operator.diag, **_hints.of_inverse(operator))


@_algebra.cholesky_factors.of(LinearOperatorDiag)
def _cholesky(operator: LinearOperatorDiag) -> LinearOperator:
    return LinearOperatorDiag(ops.Sqrt(operator.diag), is_non_singular=True, is_self_adjoint=True,
                              is_positive_definite=True)


def _diagonal(operator: LinearOperator) -> Tensor:
    """Of a diagonal operator or a multiple of the identity, to be broadcast."""
    if isinstance(operator, LinearOperatorDiag):
        return operator.diag
    return ops.ExpandDims(operator.multiplier, -1)


@_algebra.products.of(LinearOperatorDiag, LinearOperatorDiag)
@_algebra.products.of(LinearOperatorDiag, LinearOperatorScaledIdentity)
@_algebra.products.of(LinearOperatorScaledIdentity, LinearOperatorDiag)
def _product(left: LinearOperator, right: LinearOperator) -> LinearOperator:
    return LinearOperatorDiag(_diagonal(left) * _diagonal(right),
                              **_hints.of_commuting(left, right))


@_algebra.solutions.of(LinearOperatorDiag, LinearOperatorDiag)
@_algebra.solutions.of(LinearOperatorDiag, LinearOperatorScaledIdentity)
@_algebra.solutions.of(LinearOperatorScaledIdentity, LinearOperatorDiag)
def _solution(left: LinearOperator, right: LinearOperator) -> LinearOperator:
    return LinearOperatorDiag(_diagonal(right) / _diagonal(left),
                              **_hints.of_commuting(left, right))


@_algebra.products.of(LinearOperatorDiag, LinearOperatorLowerTriangular)
def _scaled_rows(left: LinearOperatorDiag, right: LinearOperatorLowerTriangular) -> LinearOperator:
    return LinearOperatorLowerTriangular(ops.ExpandDims(left.diag, -1) * right.to_dense(),
                                         **_hints.of_product((left, right)))


@_algebra.products.of(LinearOperatorLowerTriangular, LinearOperatorDiag)
def _scaled_columns(left: LinearOperatorLowerTriangular,
                    right: LinearOperatorDiag) -> LinearOperator:
    return LinearOperatorLowerTriangular(left.to_dense() * ops.ExpandDims(right.diag, -2),
                                         **_hints.of_product((left, right)))


@_algebra.solutions.of(LinearOperatorDiag, LinearOperatorLowerTriangular)
def _divided_rows(left: LinearOperatorDiag,
                  right: LinearOperatorLowerTriangular) -> LinearOperator:
    return LinearOperatorLowerTriangular(right.to_dense() / ops.ExpandDims(left.diag, -1),
                                         **_hints.of_product((left, right)))


__all__ = ["LinearOperatorDiag"]
