# SPDX-License-Identifier: Apache-2.0
"""Toeplitz operators, whose diagonals are constant."""

from __future__ import annotations

from treenail import _array, _math
from treenail._convert import convert_to_tensor
from treenail._ops import ops
from treenail._shape import TensorShape, broadcast_static_shape
from treenail._treenail import Tensor
from treenail.linalg import _algebra, _batches, _hints
from treenail.linalg._circulant import complex_type
from treenail.linalg._operator import LinearOperator
from treenail.linalg._parts import argument, checked_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LinearOperatorToeplitz(LinearOperator):
    """Square matrices with A[i, j] = col[i - j] on and below the diagonal and row[j - i] above it:
    col and row are [..., n], the first column and the first row, whose first element is not read.

    Products take O(n log n) for each column, by the Fourier transform of a circulant of order
    2 n; solutions and determinants are those of the dense matrix.
    """

    def __init__(self, col: Any, row: Any, is_non_singular: bool | None = None,
                 is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
                 is_square: bool | None = None, name: str = "LinearOperatorToeplitz") -> None:
        _hints.required(is_square, "Only square Toeplitz operators currently supported.")
        self._col = checked_dtype("col", _batches.at_least_rank("col", col, 1))
        self._row = _batches.at_least_rank("row", convert_to_tensor(row, self._col.dtype), 1)
        lengths = self._col.shape[-1:], self._row.shape[-1:]
        if not lengths[0].is_compatible_with(lengths[1]):
            raise ValueError("Expected square matrix, got shapes %s and %s of col and row"
                             % (self._col.shape, self._row.shape))
        super().__init__(self._col.dtype, [self._col, self._row], is_non_singular, is_self_adjoint,
                         is_positive_definite, True, name)

    @property
    def col(self) -> Tensor:
        """The first columns, [..., n]."""
        return self._col

    @property
    def row(self) -> Tensor:
        """The first rows, [..., n], without meaning in the first element."""
        return self._row

    def _order(self) -> Any:
        order = _batches.extent(self._col, -1)
        return order if isinstance(order, int) else _batches.extent(self._row, -1)

    def _shape(self) -> TensorShape:
        both = broadcast_static_shape(self._col.shape, self._row.shape)
        return both.concatenate(both[-1:] if both else None)

    def _shape_tensor(self) -> Tensor:
        return _batches.joined(self._own_batch(), [self._order(), self._order()])

    def _own_batch(self) -> Any:
        return _batches.broadcast_vectors(_batches.batch_vector(self._col, 1),
                                          _batches.batch_vector(self._row, 1))

    def _around(self) -> Tensor:
        """row[n - 1], ... row[1], col[0], ... col[n - 1]: the diagonals from above to below."""
        batch = self._own_batch()
        col = _batches.broadcast_batch(self._col, batch, 1)
        row = _batches.broadcast_batch(self._row, batch, 1)
        return _array.concat([_array.reverse(row[..., 1:], [-1]), col], -1)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = argument(x, adjoint_arg)
        wide, order = complex_type(self._dtype), self._order()
        # Row n - 1 + i of the convolution of all diagonals with x is row i of the product.
        rows = _math.cast(_array.matrix_transpose(x), wide)
        diagonals = _math.cast(self._diagonals_of(adjoint), wide)
        spectrum = ops.ExpandDims(ops.FFT(_to_length(diagonals, 2 * order)), -2)
        product = ops.IFFT(ops.FFT(_to_length(rows, 2 * order)) * spectrum)
        result = _array.matrix_transpose(product[..., order - 1:2 * order - 1])
        return result if self._dtype.is_complex else _math.real(result)

    def _diagonals_of(self, adjoint: bool) -> Tensor:
        around = self._around()
        return _math.conj(_array.reverse(around, [-1])) if adjoint else around

    def _trace(self) -> Tensor:
        first = _batches.broadcast_batch(self._col[..., :1], self._own_batch(), 1)
        return _math.reduce_sum(first, axis=-1) * _math.cast(self._order(), self._dtype)

    def _diag_part(self) -> Tensor:
        first = _batches.broadcast_batch(self._col[..., :1], self._own_batch(), 1)
        return first * ops.Fill(_batches.shape_vector([self._order()]),
                                convert_to_tensor(1, self._dtype))

    def _to_dense(self) -> Tensor:
        order = self._order()
        places = _array.range(order)
        distances = ops.ExpandDims(places, 1) - places  # i - j
        return ops.Gather(self._around(), distances + (order - 1), -1)


def _to_length(x: Tensor, length: Any) -> Tensor:
    """x with zeros behind its last axis."""
    missing = length - _batches.extent(x, -1)
    zeros = ops.Fill(_batches.joined(_batches.batch_vector(x, 1), [missing]),
                     convert_to_tensor(0, x.dtype))
    return _array.concat([x, zeros], -1)


@_algebra.adjoints.of(LinearOperatorToeplitz)
def _adjoint(operator: LinearOperatorToeplitz) -> LinearOperator:
    col, row = operator.col, operator.row
    first = ops.ZerosLike(row[..., :1]) + col[..., :1]  # which row need not have
    turned = _array.concat([first, row[..., 1:] + ops.ZerosLike(first)], -1)
    return LinearOperatorToeplitz(_math.conj(turned), _math.conj(col), **_hints.of_one(operator))


__all__ = ["LinearOperatorToeplitz"]
