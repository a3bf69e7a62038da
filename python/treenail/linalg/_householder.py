# SPDX-License-Identifier: Apache-2.0
"""Reflections."""

from __future__ import annotations

from treenail import _array, _assertions, _math
from treenail._control import group
from treenail._convert import convert_to_tensor
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._treenail import Operation, Tensor
from treenail.linalg import _algebra, _batches, _hints
from treenail.linalg._operator import LinearOperator
from treenail.linalg._parts import argument, checked_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LinearOperatorHouseholder(LinearOperator):
    """Reflections I - 2 v v^H / |v|² at the plane that is orthogonal to a vector v, which need not
    have length 1: reflection_axis is [..., n].

    It is its own adjoint and inverse, and its determinant is -1. Products and solutions take O(n)
    for each column.
    """

    def __init__(self, reflection_axis: Any, is_non_singular: bool | None = None,
                 is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
                 is_square: bool | None = None, name: str = "LinearOperatorHouseholder") -> None:
        _hints.required(is_self_adjoint, "A Householder operator is always self adjoint.")
        _hints.excluded(is_positive_definite,
                        "A Householder operator is always non-positive definite.")
        _hints.required(is_square, "A Householder operator is always square.")
        _hints.required(is_non_singular, "A Householder operator is always non-singular.")
        self._axis = checked_dtype("reflection_axis",
                                   _batches.at_least_rank("reflection_axis", reflection_axis, 1))
        super().__init__(self._axis.dtype, [self._axis], True, True, False, True, name)

    @property
    def reflection_axis(self) -> Tensor:
        """The vectors that are turned round, [..., n]."""
        return self._axis

    def _shape(self) -> TensorShape:
        return self._axis.shape.concatenate(self._axis.shape[-1:] if self._axis.shape else None)

    def _shape_tensor(self) -> Tensor:
        shape = ops.Shape(self._axis)
        return _batches.joined(shape, shape[-1:])

    def _unit(self) -> Tensor:
        """The vectors with length 1. Scaled first: squares of large elements overflow."""
        sizes = _math.abs(self._axis)
        largest = _array.stop_gradient(_math.reduce_max(sizes, axis=-1, keepdims=True))
        near = self._axis / _math.cast(largest, self._dtype)
        squares = _math.reduce_sum(_math.real(near * _math.conj(near)), axis=-1, keepdims=True)
        return near * _math.cast(ops.Rsqrt(squares), self._dtype)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x, v = argument(x, adjoint_arg), ops.ExpandDims(self._unit(), -1)
        return x - 2.0 * v * _batches.product(v, x, adjoint_a=True)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._matmul(rhs, adjoint, adjoint_arg)

    def _filled(self, value: float) -> Tensor:
        return ops.Fill(_batches.joined(self._batch_vector()),
                        convert_to_tensor(value, self._dtype))

    def _determinant(self) -> Tensor:
        return self._filled(-1.0)

    def _log_abs_determinant(self) -> Tensor:
        return self._filled(0.0)

    def _diag_part(self) -> Tensor:
        v = self._unit()
        return 1.0 - 2.0 * v * _math.conj(v)

    def _trace(self) -> Tensor:
        return self._filled(-2.0) + _math.cast(self._rows(), self._dtype)

    def _to_dense(self) -> Tensor:
        v = ops.ExpandDims(self._unit(), -1)
        outer = -2.0 * _batches.product(v, v, adjoint_b=True)
        return ops.MatrixSetDiag(outer, 1.0 + ops.MatrixDiagPart(outer))

    def _assert_non_singular(self) -> Operation:
        return group()

    _assert_self_adjoint = _assert_non_singular

    def _assert_positive_definite(self) -> Operation:
        return _assertions.Assert(False, ["Householder operators are always non-positive "
                                          "definite."])


@_algebra.inverses.of(LinearOperatorHouseholder)
def _inverse(operator: LinearOperatorHouseholder) -> LinearOperator:
    return operator


__all__ = ["LinearOperatorHouseholder"]
