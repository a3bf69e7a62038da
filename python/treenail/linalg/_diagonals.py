# SPDX-License-Identifier: Apache-2.0
"""Matrices of a few diagonals: tridiagonal systems and products, in the formats that TensorFlow
has for the diagonals, and triangular systems with bands."""

from __future__ import annotations

from treenail import _array, _math
from treenail import _treenail as _core
from treenail._convert import convert_to_tensor, scope_of
from treenail._ops import ops
from treenail._treenail import Tensor
from treenail.linalg import _batches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FORMATS = ("compact", "matrix", "sequence")


def _completed(what: str, diagonal: Tensor, order: Any, before: bool) -> Tensor:
    """A diagonal beside the main one as `order` elements: one that is never read is added, before
    or behind, where there is one fewer."""
    length = _batches.extent(diagonal, -1)
    if isinstance(length, int) and isinstance(order, int):
        if length not in (order, order - 1):
            raise ValueError("Expected %s to have %d or %d elements in its last axis, got shape %s"
                             % (what, order - 1, order, diagonal.shape))
        if length == order:
            return diagonal
    missing = order - length
    last = [missing, 0] if before else [0, missing]
    if diagonal.shape.ndims is None:
        others = ops.Fill(_batches.shape_vector([ops.Rank(diagonal) - 1, 2]), 0)
    else:
        others = convert_to_tensor([[0, 0]] * (diagonal.shape.ndims - 1), _core.int32)
        others = ops.Reshape(others, [-1, 2])
    return _array.pad(diagonal, _array.concat([others, [_batches.shape_vector(last)]], 0))


def _from_sequence(diagonals: Any) -> tuple:
    if isinstance(diagonals, Tensor) or not hasattr(diagonals, "__len__") or len(diagonals) != 3:
        raise ValueError("Expected diagonals to be a sequence of length 3 in the format 'sequence',"
                         " got %r" % (diagonals,))
    main = _batches.at_least_rank("diagonals[1]", diagonals[1], 1)
    above, below = (_batches.at_least_rank("diagonals[%d]" % i, convert_to_tensor(
        diagonals[i], main.dtype), 1) for i in (0, 2))
    order = _batches.extent(main, -1)
    return (_completed("the superdiagonal", above, order, False), main,
            _completed("the subdiagonal", below, order, True))


def _from_matrix(diagonals: Any) -> tuple:
    matrix = _batches.at_least_rank("diagonals", diagonals, 2)
    shape = matrix.shape
    if shape.ndims is not None and None not in (shape[-1], shape[-2]) and shape[-1] != shape[-2]:
        raise ValueError("Expected last two dimensions of diagonals to be the same, got shape %s"
                         % shape)
    main = ops.MatrixDiagPart(matrix)
    above = ops.MatrixDiagPart(matrix[..., :-1, 1:])
    below = ops.MatrixDiagPart(matrix[..., 1:, :-1])
    order = _batches.extent(main, -1)
    return (_completed("the superdiagonal", above, order, False), main,
            _completed("the subdiagonal", below, order, True))


def compact(diagonals: Any, diagonals_format: str) -> Tensor:
    """Diagonals of any format as [..., 3, m]."""
    if diagonals_format == "compact":
        result = _batches.at_least_rank("diagonals", diagonals, 2)
        if result.shape.ndims is not None and result.shape[-2] not in (None, 3):
            raise ValueError("Expected diagonals to have 3 rows in the format 'compact', got shape "
                             "%s" % result.shape)
        return result
    if diagonals_format not in _FORMATS:
        raise ValueError("diagonals_format must be one of 'compact', 'matrix' and 'sequence', got "
                         "%r" % (diagonals_format,))
    rows = _from_sequence(diagonals) if diagonals_format == "sequence" else _from_matrix(diagonals)
    return _array.stack(rows, axis=-2)


def tridiagonal_solve(diagonals: Any, rhs: Any, diagonals_format: str = "compact",
                      transpose_rhs: bool = False, conjugate_rhs: bool = False,
                      name: str | None = None, partial_pivoting: bool = True) -> Tensor:
    """Solves tridiagonal systems A x = rhs in a time proportional to their order m.

    diagonals_format says what `diagonals` are: "compact", [..., 3, m] with the elements above, on
    and below the diagonal, the last one above and the first one below being ignored; "sequence",
    three tensors in this order, [..., m] or, beside the diagonal, [..., m - 1]; "matrix",
    [..., m, m], of which the three diagonals are read. rhs is [..., m, k], or [..., m] where ranks
    are known; transpose_rhs: [..., k, m] instead; conjugate_rhs: it is conjugated. The result has
    the shape [..., m, k] or [..., m].

    Without partial_pivoting (Thomas's algorithm) it is faster, and as exact for matrices that are
    diagonally dominant or positive definite. Raises InvalidArgumentError for singular matrices,
    naming the first one of the batch.
    """
    with scope_of(name, "tridiagonal_solve", [rhs]):
        diagonals = compact(diagonals, diagonals_format)
        rhs = _batches.at_least_rank("rhs", convert_to_tensor(rhs, diagonals.dtype), 1)
        ranks = diagonals.shape.ndims, rhs.shape.ndims
        vectors = None not in ranks and ranks[1] == ranks[0] - 1
        if vectors:
            rhs = ops.ExpandDims(rhs, -1)
        elif transpose_rhs:
            rhs = _array.matrix_transpose(rhs, conjugate=conjugate_rhs)
        if conjugate_rhs and (vectors or not transpose_rhs):
            rhs = _math.conj(rhs)
        x = ops.TridiagonalSolve(diagonals, rhs, partial_pivoting=partial_pivoting)
        return ops.Squeeze(x, squeeze_dims=[-1]) if vectors else x


def tridiagonal_matmul(diagonals: Any, rhs: Any, diagonals_format: str = "compact",
                       name: str | None = None) -> Tensor:
    """Products of tridiagonal matrices, in a format of tridiagonal_solve, and rhs [..., m, k]."""
    with scope_of(name, "tridiagonal_matmul", [rhs]):
        diagonals = compact(diagonals, diagonals_format)
        rhs = convert_to_tensor(rhs, diagonals.dtype)
        return ops.TridiagonalMatMul(*_array.split(diagonals, 3, axis=-2), rhs)


def banded_triangular_solve(bands: Any, rhs: Any, lower: bool = True, adjoint: bool = False,
                            name: str | None = None) -> Tensor:
    """Solves A x = rhs (A^H x = rhs) for triangular matrices with few diagonals.

    bands is [..., k, m]. lower: row r holds A[j, j - r] in column j, the diagonal comes first, and
    the first r elements of row r are ignored. Otherwise row r holds A[j, j + k - 1 - r], the
    diagonal comes last, and the last k - 1 - r elements of row r are ignored. rhs is [..., m, n];
    the other axes are broadcast. Raises InvalidArgumentError for a zero on a diagonal.
    """
    return ops.BandedTriangularSolve(bands, rhs, lower=lower, adjoint=adjoint, name=name)


__all__ = ["banded_triangular_solve", "tridiagonal_matmul", "tridiagonal_solve"]
