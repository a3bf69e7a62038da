# SPDX-License-Identifier: Apache-2.0
"""Matrices from their diagonals, and diagonals of matrices: the main ones, or some beside them."""

from __future__ import annotations

from treenail._convert import convert_to_tensor
from treenail._ops import ops
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _is(value: Any, plain: int) -> bool:
    return isinstance(value, (int, float)) and value == plain


def diag(diagonal: Any, name: str | None = None, k: Any = 0, num_rows: Any = -1,
         num_cols: Any = -1, padding_value: Any = 0) -> Tensor:
    """Matrices in the last two axes with the given diagonals, padding_value elsewhere.

    k: which diagonal; 0 is the main one, positive numbers are above it, negative ones below. Two
    numbers: the lowest and the highest of several. diagonal is [..., n], or [..., count, n] of
    several, the highest first, each from the left; what shorter ones leave is ignored. num_rows and
    num_cols: as few as have room by default, equal ones where neither is given. Raises
    InvalidArgumentError for sides that are too small or leave no diagonal complete.
    """
    if _is(k, 0) and _is(num_rows, -1) and _is(num_cols, -1) and _is(padding_value, 0):
        return ops.MatrixDiag(diagonal, name=name)
    diagonal = convert_to_tensor(diagonal)
    padding = convert_to_tensor(padding_value, diagonal.dtype)
    return ops.MatrixDiagV2(diagonal, k, num_rows, num_cols, padding, name=name)


def diag_part(input: Any, name: str | None = None, k: Any = 0, padding_value: Any = 0) -> Tensor:
    """Diagonals of the matrices in the last two axes: the main ones, or `k`, as in diag, shorter
    ones completed by padding_value. Raises InvalidArgumentError for k outside the matrices."""
    if _is(k, 0) and _is(padding_value, 0):
        return ops.MatrixDiagPart(input, name=name)
    input = convert_to_tensor(input)
    padding = convert_to_tensor(padding_value, input.dtype)
    return ops.MatrixDiagPartV2(input, k, padding, name=name)


def set_diag(input: Any, diagonal: Any, name: str | None = None, k: Any = 0) -> Tensor:
    """`input` with the main diagonals of its matrices replaced, or those of `k`, which are as diag
    takes them. Raises InvalidArgumentError for k outside the matrices and diagonals of another
    shape."""
    if _is(k, 0):
        return ops.MatrixSetDiag(input, diagonal, name=name)
    return ops.MatrixSetDiagV2(input, diagonal, k, name=name)


__all__ = ["diag", "diag_part", "set_diag"]
