# SPDX-License-Identifier: Apache-2.0
"""Permutations of rows."""

from __future__ import annotations

from treenail import _array, _assertions, _math
from treenail import _treenail as _core
from treenail._control import group
from treenail._convert import convert_to_tensor
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._treenail import Operation, Tensor
from treenail.linalg import _algebra, _batches, _hints
from treenail.linalg._lu import inverse_permutation, rows_of
from treenail.linalg._operator import LinearOperator
from treenail.linalg._parts import argument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LinearOperatorPermutation(LinearOperator):
    """Permutations: row i of a product is row perm[i] of the argument. perm is [..., n], int32 or
    int64, and holds the numbers from 0 to n - 1 in some order, which is not checked.

    Products and solutions move rows; a determinant compares all pairs of elements.
    """

    def __init__(self, perm: Any, dtype: Any = _core.float32, is_non_singular: bool | None = None,
                 is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
                 is_square: bool | None = None, name: str = "LinearOperatorPermutation") -> None:
        _hints.required(is_non_singular, "A Permutation operator is always non-singular.")
        _hints.required(is_square, "A Permutation operator is always square.")
        self._perm = _batches.at_least_rank("perm", perm, 1)
        if self._perm.dtype not in (_core.int32, _core.int64):
            raise TypeError("Argument perm must have dtype int32 or int64.  Found: %s"
                            % self._perm.dtype.name)
        super().__init__(dtype, [self._perm], True, is_self_adjoint, is_positive_definite, True,
                         name)

    @property
    def perm(self) -> Tensor:
        """Where each row of a product comes from, [..., n]."""
        return self._perm

    def _shape(self) -> TensorShape:
        return self._perm.shape.concatenate(self._perm.shape[-1:] if self._perm.shape else None)

    def _shape_tensor(self) -> Tensor:
        shape = ops.Shape(self._perm)
        return _batches.joined(shape, shape[-1:])

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        rows = inverse_permutation(self._perm) if adjoint else self._perm
        return rows_of(argument(x, adjoint_arg), rows)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._matmul(rhs, not adjoint, adjoint_arg)

    def _determinant(self) -> Tensor:
        later = ops.Less(ops.ExpandDims(self._perm, -2), ops.ExpandDims(self._perm, -1))
        inversions = ops.MatrixBandPart(_math.cast(later, _core.int32), 0, -1)
        odd = ops.FloorMod(_math.reduce_sum(inversions, axis=[-2, -1]), 2)
        return _math.cast(1 - 2 * odd, self._dtype)

    def _log_abs_determinant(self) -> Tensor:
        return ops.Fill(_batches.joined(self._batch_vector()), convert_to_tensor(0, self._dtype))

    def _diag_part(self) -> Tensor:
        own = _array.range(self._rows(), dtype=self._perm.dtype)
        return _math.cast(ops.Equal(self._perm, own), self._dtype)

    def _to_dense(self) -> Tensor:
        own = _array.range(self._rows(), dtype=self._perm.dtype)
        return _math.cast(ops.Equal(ops.ExpandDims(self._perm, -1), own), self._dtype)

    def _assert_non_singular(self) -> Operation:
        return group()

    def _assert_self_adjoint(self) -> Operation:
        return _assertions.assert_equal(
            self._perm, inverse_permutation(self._perm),
            message="Permutation was not its own inverse.")


@_algebra.adjoints.of(LinearOperatorPermutation)
@_algebra.inverses.of(LinearOperatorPermutation)
def _inverse(operator: LinearOperatorPermutation) -> LinearOperator:
    return LinearOperatorPermutation(
        inverse_permutation(operator.perm), operator.dtype,
        is_self_adjoint=operator.is_self_adjoint,
        is_positive_definite=operator.is_positive_definite)


__all__ = ["LinearOperatorPermutation"]
