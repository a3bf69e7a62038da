# SPDX-License-Identifier: Apache-2.0
"""Operators that give zeros."""

from __future__ import annotations

from treenail import _assertions
from treenail import _treenail as _core
from treenail._convert import convert_to_tensor
from treenail._ops import ops
from treenail._treenail import Operation, Tensor
from treenail.linalg import _algebra, _batches, _hints
from treenail.linalg._extents import OfExtents, known_extents
from treenail.linalg._operator import LinearOperator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LinearOperatorZeros(OfExtents):
    """Matrices of zeros, num_rows x num_columns (by default square), for each of a batch of shape
    batch_shape. It has no inverse. It is self-adjoint
    where it is square."""

    def __init__(self, num_rows: Any, num_columns: Any = None, batch_shape: Any = None,
                 dtype: Any = None, is_non_singular: bool | None = False,
                 is_self_adjoint: bool | None = None, is_positive_definite: bool | None = False,
                 is_square: bool | None = None, assert_proper_shapes: bool = False,
                 name: str = "LinearOperatorZeros") -> None:
        _hints.excluded(is_non_singular, "A zero operator is always singular.")
        _hints.excluded(is_positive_definite, "A zero operator is always not positive definite.")
        rows, columns = known_extents(num_rows, num_columns)
        if num_columns is None or None not in (rows, columns):
            square = num_columns is None or rows == columns
            for hint, words in ((is_self_adjoint, "self adjoint"), (is_square, "square")):
                if hint is not None and hint is not square:
                    raise ValueError("A zero operator is %s where it has as many rows as columns, "
                                     "got %s and %s" % (words, rows, columns))
            is_square = is_self_adjoint = square
        hints = {"is_non_singular": False, "is_self_adjoint": is_self_adjoint,
                 "is_positive_definite": False, "is_square": is_square}
        super().__init__(num_rows, num_columns, batch_shape,
                         _core.float32 if dtype is None else dtype, assert_proper_shapes, hints,
                         name)

    def _zeros(self, *shape: Any) -> Tensor:
        return ops.Fill(_batches.joined(*shape), convert_to_tensor(0, self.dtype))

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = self._checked(x, adjoint, adjoint_arg)
        batch = _batches.broadcast_vectors(self._batch_vector(), _batches.batch_vector(x))
        return self._zeros(batch, [self._columns() if adjoint else self._rows(),
                                   _batches.extent(x, -1)])

    def _determinant(self) -> Tensor:
        return self._zeros(self._batch_vector())

    _trace = _determinant

    def _log_abs_determinant(self) -> Tensor:
        return ops.Log(self._determinant())

    def _diag_part(self) -> Tensor:
        sides = self._rows(), self._columns()
        least = (min(sides) if all(isinstance(n, int) for n in sides)
                 else ops.Minimum(*[convert_to_tensor(n, _core.int32) for n in sides]))
        return self._zeros(self._batch_vector(), [least])

    def _to_dense(self) -> Tensor:
        return self._zeros(self._shape_vector())

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return x + self._to_dense()

    def _assert_non_singular(self) -> Operation:
        return _assertions.Assert(False, ["Zero operators are always non-invertible."])

    def _assert_positive_definite(self) -> Operation:
        return _assertions.Assert(False, ["Zero operators are always non-positive definite."])

    def _assert_self_adjoint(self) -> Operation:
        return _assertions.assert_equal(self._row_count, self._column_count,
                                        message="Matrix was not equal to its adjoint.")


def _of_product(left: LinearOperator, right: LinearOperator) -> LinearOperator:
    batch = _batches.broadcast_vectors(left._batch_vector(), right._batch_vector())
    return LinearOperatorZeros(left._rows(), right._columns(), batch, left.dtype)


@_algebra.products.of(LinearOperatorZeros, LinearOperator)
def _zeros_first(left: LinearOperatorZeros, right: LinearOperator) -> LinearOperator:
    return _of_product(left, right)


@_algebra.products.of(LinearOperator, LinearOperatorZeros)
def _zeros_last(left: LinearOperator, right: LinearOperatorZeros) -> LinearOperator:
    return _of_product(left, right)


@_algebra.adjoints.of(LinearOperatorZeros)
def _adjoint(operator: LinearOperatorZeros) -> LinearOperator:
    return LinearOperatorZeros(operator._columns(), operator._rows(), operator._batch_vector(),
                               operator.dtype)


__all__ = ["LinearOperatorZeros"]
