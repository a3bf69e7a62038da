# SPDX-License-Identifier: Apache-2.0
"""What LU factors are for: tn.linalg.lu gives them."""

from __future__ import annotations

from treenail import _array, _math, _sorting
from treenail._assertions import assert_equal
from treenail._framework import control_dependencies
from treenail._convert import convert_to_tensor, scope_of
from treenail._ops import ops
from treenail._treenail import Tensor
from treenail.linalg import _batches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def _of_rows(function: Callable, x: Tensor) -> Tensor:
    """function(x), which works along the last axis and needs to know the rank."""
    if x.shape.ndims is not None:
        return function(x)
    shape = ops.Shape(x)
    rows = ops.Reshape(x, _batches.shape_vector([_math.reduce_prod(shape[:-1]), shape[-1]]))
    return ops.Reshape(function(rows), shape)


def inverse_permutation(perm: Tensor) -> Tensor:
    """[..., n], of permutations [..., n]."""
    return _math.cast(_of_rows(_sorting.argsort, perm), perm.dtype)


def _checks(lower_upper: Tensor, perm: Tensor, validate_args: bool) -> list:
    """Raises ValueError for shapes known to be wrong; gives what a run is to check."""
    shape, rank = lower_upper.shape, lower_upper.shape.ndims
    if rank is not None and None not in (shape[-1], shape[-2]) and shape[-1] != shape[-2]:
        raise ValueError("`lower_upper` must be square, its shape is %s" % shape)
    if not perm.shape.is_compatible_with(shape[:-1]):
        raise ValueError("`lower_upper` and `perm` must have compatible shapes, got %s and %s"
                         % (shape, perm.shape))
    if not validate_args:
        return []
    sides = ops.Shape(lower_upper)[-2:]
    order = _array.range(ops.Shape(perm)[-1], dtype=perm.dtype)
    return [assert_equal(sides[0], sides[1], message="`lower_upper` must be square"),
            assert_equal(_of_rows(_sorting.sort, perm), order + ops.ZerosLike(perm),
                         message="`perm` must hold permutations")]


def _factors(lower_upper: Any, perm: Any, validate_args: bool) -> tuple:
    lower_upper = _batches.at_least_rank("lower_upper", lower_upper, 2)
    perm = _batches.at_least_rank("perm", convert_to_tensor(perm), 1)
    checks = _checks(lower_upper, perm, validate_args)
    if not checks:
        return lower_upper, perm
    with control_dependencies([c for c in checks if c is not None]):
        return _array.identity(lower_upper), _array.identity(perm)


def rows_of(x: Tensor, rows: Tensor) -> Tensor:
    """x[..., rows, :], for batches of rows, which are broadcast."""
    if rows.shape.ndims == 1:
        return ops.Gather(x, rows, -2)
    batch = _batches.broadcast_vectors(_batches.batch_vector(x), _batches.batch_vector(rows, 1))
    x, rows = _batches.broadcast_batch(x, batch), _batches.broadcast_batch(rows, batch, 1)
    # As one axis of batch: how many there are is not always known.
    sides = [_batches.extent(x, -2), _batches.extent(x, -1)]
    count = _math.reduce_prod(_batches.shape_vector(batch) if isinstance(batch, list) else batch)
    stacked = ops.Reshape(x, _batches.shape_vector([count, *sides]))
    chosen = ops.Reshape(rows, _batches.shape_vector([count, sides[0]]))
    return ops.Reshape(ops.Gather(stacked, chosen, 1, batch_dims=1), _array.shape_of(x))


def _unit_lower(lower_upper: Tensor) -> Tensor:
    lower = ops.MatrixBandPart(lower_upper, -1, 0)
    return ops.MatrixSetDiag(lower, ops.OnesLike(ops.MatrixDiagPart(lower)))


def lu_reconstruct(lower_upper: Any, perm: Any, validate_args: bool = False,
                   name: str | None = None) -> Tensor:
    """The matrices whose factors tn.linalg.lu gave: lower_upper [..., n, n], perm [..., n].

    validate_args: that perm holds permutations is checked when it is run, else
    InvalidArgumentError. Raises ValueError for shapes that do not go together.
    """
    with scope_of(name, "lu_reconstruct", [lower_upper, perm]):
        lower_upper, perm = _factors(lower_upper, perm, validate_args)
        upper = ops.MatrixBandPart(lower_upper, 0, -1)
        return rows_of(_batches.product(_unit_lower(lower_upper), upper), inverse_permutation(perm))


def lu_solve(lower_upper: Any, perm: Any, rhs: Any, validate_args: bool = False,
             name: str | None = None) -> Tensor:
    """Solves A x = rhs for the factors that tn.linalg.lu gave of A: lower_upper [..., n, n], perm
    [..., n] and rhs [..., n, k], whose batches are broadcast.

    validate_args and errors: as of lu_reconstruct.
    """
    with scope_of(name, "lu_solve", [lower_upper, perm, rhs]):
        lower_upper, perm = _factors(lower_upper, perm, validate_args)
        rhs = _batches.at_least_rank("rhs", convert_to_tensor(rhs, lower_upper.dtype), 2)
        rows, order = rhs.shape[-2:], lower_upper.shape[-1:]
        if rows and order and not rows[:1].is_compatible_with(order):
            raise ValueError("`rhs` must have as many rows as `lower_upper`; shapes are %s and %s"
                             % (rhs.shape, lower_upper.shape))
        permuted = rows_of(rhs, perm)
        half = _batches.solve_with(ops.MatrixTriangularSolve, _unit_lower(lower_upper), permuted)
        return _batches.solve_with(_upper_solve, lower_upper, half)


def _upper_solve(matrix: Tensor, rhs: Tensor) -> Tensor:
    return ops.MatrixTriangularSolve(matrix, rhs, lower=False)


def lu_matrix_inverse(lower_upper: Any, perm: Any, validate_args: bool = False,
                      name: str | None = None) -> Tensor:
    """Inverses of the matrices whose factors tn.linalg.lu gave; lu_solve is better where one would
    be multiplied by something. validate_args and errors: as of lu_reconstruct."""
    with scope_of(name, "lu_matrix_inverse", [lower_upper, perm]):
        lower_upper = _batches.at_least_rank("lower_upper", lower_upper, 2)
        identity = _array.eye(_batches.extent(lower_upper, -1), dtype=lower_upper.dtype)
        return lu_solve(lower_upper, perm, identity, validate_args)


__all__ = ["lu_matrix_inverse", "lu_reconstruct", "lu_solve"]
