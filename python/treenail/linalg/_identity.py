# SPDX-License-Identifier: Apache-2.0
"""Operators that give their argument or a multiple of it."""

from __future__ import annotations

from treenail import _assertions, _math
from treenail import _treenail as _core
from treenail._control import group
from treenail._convert import convert_to_tensor
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._treenail import Operation, Tensor
from treenail.linalg import _algebra, _batches, _hints
from treenail.linalg._extents import OfExtents, covers_batch, repeated, with_added_diagonal
from treenail.linalg._operator import LinearOperator
from treenail.linalg._parts import checked_dtype, no_imaginary_part, non_zero

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LinearOperatorIdentity(OfExtents):
    """The identity matrix of order num_rows, for each of a batch of shape batch_shape.

    Products and solutions are the argument itself, repeated where the batch asks for it. num_rows
    and batch_shape may be tensors.
    """

    def __init__(self, num_rows: Any, batch_shape: Any = None, dtype: Any = None,
                 is_non_singular: bool | None = True, is_self_adjoint: bool | None = True,
                 is_positive_definite: bool | None = True, is_square: bool | None = True,
                 assert_proper_shapes: bool = False, name: str = "LinearOperatorIdentity") -> None:
        hints = {
            "is_self_adjoint": _hints.required(is_self_adjoint,
                                               "An identity operator is always self adjoint."),
            "is_non_singular": _hints.required(is_non_singular,
                                               "An identity operator is always non-singular."),
            "is_positive_definite": _hints.required(
                is_positive_definite, "An identity operator is always positive-definite."),
            "is_square": _hints.required(is_square, "An identity operator is always square.")}
        super().__init__(num_rows, None, batch_shape, _core.float32 if dtype is None else dtype,
                         assert_proper_shapes, hints, name)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return repeated(self._checked(x, adjoint, adjoint_arg), self)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._matmul(rhs, adjoint, adjoint_arg)

    def _ones(self, shape: Any) -> Tensor:
        return ops.Fill(_batches.joined(*shape), convert_to_tensor(1, self.dtype))

    def _determinant(self) -> Tensor:
        return self._ones([self._batch_vector()])

    def _log_abs_determinant(self) -> Tensor:
        return ops.ZerosLike(self._determinant())

    def _diag_part(self) -> Tensor:
        return self._ones([self._batch_vector(), [self._rows()]])

    def _trace(self) -> Tensor:
        return self._determinant() * _math.cast(self._row_count, self.dtype)

    def _to_dense(self) -> Tensor:
        return self._identity(self._rows())

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return with_added_diagonal(x, self, convert_to_tensor(1, self.dtype))

    def _assert_non_singular(self) -> Operation:
        return group()

    _assert_positive_definite = _assert_self_adjoint = _assert_non_singular


class LinearOperatorScaledIdentity(OfExtents):
    """multiplier times the identity matrix of order num_rows: multiplier is [...], a factor for
    each of the batch. Everything is as many multiplications as the argument has elements."""

    def __init__(self, num_rows: Any, multiplier: Any, is_non_singular: bool | None = None,
                 is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
                 is_square: bool | None = True, assert_proper_shapes: bool = False,
                 name: str = "LinearOperatorScaledIdentity") -> None:
        self._multiplier = checked_dtype("multiplier", convert_to_tensor(multiplier))
        if not self._multiplier.dtype.is_complex:
            is_self_adjoint = _hints.required(is_self_adjoint,
                                              "A real diagonal operator is always self adjoint.")
        _hints.required(is_square, "A ScaledIdentity operator is always square.")
        hints = {"is_non_singular": is_non_singular, "is_self_adjoint": is_self_adjoint,
                 "is_positive_definite": is_positive_definite, "is_square": True}
        super().__init__(num_rows, None, None, self._multiplier.dtype, assert_proper_shapes, hints,
                         name)
        self._graph_parents = [self._multiplier]

    @property
    def multiplier(self) -> Tensor:
        """The factors, [...]."""
        return self._multiplier

    def _shape(self) -> TensorShape:
        return self._multiplier.shape.concatenate([self._known_rows, self._known_rows])

    def _shape_tensor(self) -> Tensor:
        return _batches.joined(ops.Shape(self._multiplier), [self._row_count, self._row_count])

    def _factor(self, adjoint: bool, axes: int) -> Tensor:
        """With so many axes behind those of the batch."""
        factor = _math.conj(self._multiplier) if adjoint else self._multiplier
        for _ in range(axes):
            factor = ops.ExpandDims(factor, -1)
        return factor

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._checked(x, adjoint, adjoint_arg) * self._factor(adjoint, 2)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._checked(rhs, adjoint, adjoint_arg) / self._factor(adjoint, 2)

    def _determinant(self) -> Tensor:
        return ops.Pow(self._multiplier, _math.cast(self._row_count, self.dtype))

    def _log_abs_determinant(self) -> Tensor:
        order = _math.cast(self._row_count, self.dtype)
        return order * _math.cast(ops.Log(_math.abs(self._multiplier)), self.dtype)

    def _diag_part(self) -> Tensor:
        ones = ops.Fill(_batches.shape_vector([self._rows()]), convert_to_tensor(1, self.dtype))
        return self._factor(False, 1) * ones

    def _trace(self) -> Tensor:
        return self._multiplier * _math.cast(self._row_count, self.dtype)

    def _to_dense(self) -> Tensor:
        return ops.MatrixDiag(self._diag_part())

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return with_added_diagonal(x, self, self._factor(False, 1))

    def _assert_non_singular(self) -> Operation:
        return non_zero(self._multiplier, "LinearOperator was singular")

    def _assert_positive_definite(self) -> Operation:
        return _assertions.assert_positive(
            _math.real(self._multiplier),
            message="LinearOperator was not positive definite.")

    def _assert_self_adjoint(self) -> Operation:
        return no_imaginary_part(self._multiplier, "LinearOperator was not self-adjoint")


# --- Algebra --------------------------------------------------------------------------------------

def _other(identity: LinearOperator, other: LinearOperator) -> Any:
    return other if covers_batch(other, identity) else NotImplemented


@_algebra.products.of(LinearOperatorIdentity, LinearOperator)
def _identity_first(left: LinearOperatorIdentity, right: LinearOperator) -> Any:
    return _other(left, right)


@_algebra.products.of(LinearOperator, LinearOperatorIdentity)
def _identity_last(left: LinearOperator, right: LinearOperatorIdentity) -> Any:
    return _other(right, left)


@_algebra.solutions.of(LinearOperatorIdentity, LinearOperator)
def _identity_solved(left: LinearOperatorIdentity, right: LinearOperator) -> Any:
    return _other(left, right)


@_algebra.inverses.of(LinearOperatorIdentity)
@_algebra.cholesky_factors.of(LinearOperatorIdentity)
def _itself(operator: LinearOperatorIdentity) -> LinearOperator:
    return operator


def _multiple(like: LinearOperatorScaledIdentity, multiplier: Tensor,
              **hints: Any) -> LinearOperator:
    return LinearOperatorScaledIdentity(like._rows(), multiplier, **hints)


@_algebra.products.of(LinearOperatorScaledIdentity, LinearOperatorScaledIdentity)
def _product(left: LinearOperatorScaledIdentity,
             right: LinearOperatorScaledIdentity) -> LinearOperator:
    return _multiple(left, left.multiplier * right.multiplier, **_hints.of_commuting(left, right))


@_algebra.solutions.of(LinearOperatorScaledIdentity, LinearOperatorScaledIdentity)
def _solution(left: LinearOperatorScaledIdentity,
              right: LinearOperatorScaledIdentity) -> LinearOperator:
    return _multiple(left, right.multiplier / left.multiplier, **_hints.of_commuting(left, right))


@_algebra.adjoints.of(LinearOperatorScaledIdentity)
def _adjoint(operator: LinearOperatorScaledIdentity) -> LinearOperator:
    return _multiple(operator, _math.conj(operator.multiplier), **_hints.of_one(operator))


@_algebra.inverses.of(LinearOperatorScaledIdentity)
def _inverse(operator: LinearOperatorScaledIdentity) -> LinearOperator:
    return _multiple(operator, 1.0 / operator.multiplier, **_hints.of_inverse(operator))


@_algebra.cholesky_factors.of(LinearOperatorScaledIdentity)
def _cholesky(operator: LinearOperatorScaledIdentity) -> LinearOperator:
    return _multiple(operator, ops.Sqrt(operator.multiplier), is_non_singular=True,
                     is_self_adjoint=True, is_positive_definite=True)


__all__ = ["LinearOperatorIdentity", "LinearOperatorScaledIdentity"]
