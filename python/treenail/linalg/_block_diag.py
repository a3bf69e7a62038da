# SPDX-License-Identifier: Apache-2.0
"""Operators with blocks on the diagonal, each an operator itself."""

from __future__ import annotations

from treenail import _array
from treenail._control import group
from treenail._convert import convert_to_tensor
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._treenail import Operation, Tensor
from treenail.linalg import _algebra, _batches, _hints
from treenail.linalg._composite import (checked_operators, common_batch, common_batch_vector,
                                        merged_hints)
from treenail.linalg._operator import LinearOperator
from treenail.linalg._parts import argument, fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence


class LinearOperatorBlockDiag(LinearOperator):
    """Square operators one after the other on the diagonal, zeros elsewhere. Batches are broadcast.

    Everything is done block by block. It is non-singular, self-adjoint or positive definite where
    all blocks are. Raises ValueError for blocks that are not square, TypeError for dtypes that
    differ.
    """

    def __init__(self, operators: Sequence, is_non_singular: bool | None = None,
                 is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
                 is_square: bool | None = True, name: str | None = None) -> None:
        operators = checked_operators(operators)
        if any(o.is_square is False for o in operators):
            raise ValueError("Can only represent a block diagonal of square matrices.")
        _hints.required(is_square, "Can only represent a block diagonal of square matrices.")
        self._operators = operators
        own = {key: _hints.all_of(_hints.of_one(o)[key] for o in operators)
               for key in ("is_non_singular", "is_self_adjoint", "is_positive_definite")}
        given = {"is_non_singular": is_non_singular, "is_self_adjoint": is_self_adjoint,
                 "is_positive_definite": is_positive_definite}
        hints = merged_hints(own, given, "block diagonal")
        super().__init__(operators[0].dtype, [p for o in operators for p in o.graph_parents],
                         is_square=True, name=name or "_ds_".join(o.name for o in operators),
                         **hints)

    @property
    def operators(self) -> list:
        """Its blocks."""
        return self._operators

    def _sizes(self) -> list:
        """The orders of the blocks, ints or int32 scalars."""
        return [o._rows() if isinstance(o._rows(), int) else o._columns() for o in self._operators]

    def _shape(self) -> TensorShape:
        known = [o.range_dimension if o.domain_dimension is None else o.domain_dimension
                 for o in self._operators]
        order = None if None in known else sum(known)
        return common_batch(self._operators).concatenate([order, order])

    def _shape_tensor(self) -> Tensor:
        order = fold(lambda a, b: a + b, self._sizes())
        return _batches.joined(common_batch_vector(self._operators), [order, order])

    def _split(self, x: Tensor) -> list:
        sizes = _batches.shape_vector(self._sizes())
        return ops.SplitV(x, sizes, -2, num_split=len(self._operators))

    def _joined(self, parts: Sequence, axis: int, count: int = 2) -> Tensor:
        """Parts of all blocks, repeated for one batch."""
        batch = _batches.broadcast_vectors(self._batch_vector(),
                                           *[_batches.batch_vector(p, count) for p in parts])
        return _array.concat([_batches.broadcast_batch(p, batch, count) for p in parts], axis)

    def _each(self, step: Callable, x: Tensor) -> Tensor:
        parts = self._split(x)
        return self._joined([step(o)(p) for o, p in zip(self._operators, parts)], -2)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._each(lambda o: lambda part: o._matmul(part, adjoint=adjoint),
                          argument(x, adjoint_arg))

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._each(lambda o: lambda part: o._solve(part, adjoint=adjoint),
                          argument(rhs, adjoint_arg))

    def _determinant(self) -> Tensor:
        return fold(ops.Mul, [o._determinant() for o in self._operators])

    def _log_abs_determinant(self) -> Tensor:
        return fold(ops.Add, [o._log_abs_determinant() for o in self._operators])

    def _trace(self) -> Tensor:
        return fold(ops.Add, [o._trace() for o in self._operators])

    def _diag_part(self) -> Tensor:
        return self._joined([o._diag_part() for o in self._operators], -1, 1)

    def _to_dense(self) -> Tensor:
        sizes = self._sizes()
        rows = []
        for i, operator in enumerate(self._operators):
            block = operator._to_dense()
            zero = convert_to_tensor(0, self._dtype)
            around = [ops.Fill(_batches.joined(_batches.batch_vector(block), [sizes[i], n]), zero)
                      for n in sizes]
            rows.append(_array.concat([*around[:i], block, *around[i + 1:]], -1))
        return self._joined(rows, -2)

    def _assert_non_singular(self) -> Operation:
        return group(*[o._assert_non_singular() for o in self._operators])

    def _assert_positive_definite(self) -> Operation:
        return group(*[o._assert_positive_definite() for o in self._operators])

    def _assert_self_adjoint(self) -> Operation:
        return group(*[o._assert_self_adjoint() for o in self._operators])


# --- Algebra --------------------------------------------------------------------------------------

@_algebra.adjoints.of(LinearOperatorBlockDiag)
def _adjoint(operator: LinearOperatorBlockDiag) -> LinearOperator:
    return LinearOperatorBlockDiag([o.adjoint() for o in operator.operators],
                                   **_hints.of_one(operator))


@_algebra.inverses.of(LinearOperatorBlockDiag)
def _inverse(operator: LinearOperatorBlockDiag) -> LinearOperator:
    return LinearOperatorBlockDiag([o.inverse() for o in operator.operators],
                                   **_hints.of_inverse(operator))


@_algebra.cholesky_factors.of(LinearOperatorBlockDiag)
def _cholesky(operator: LinearOperatorBlockDiag) -> Any:
    if not all(o._can_use_cholesky() for o in operator.operators):
        return NotImplemented
    return LinearOperatorBlockDiag([o.cholesky() for o in operator.operators],
                                   is_non_singular=True)


@_algebra.products.of(LinearOperatorBlockDiag, LinearOperatorBlockDiag)
def _product(left: LinearOperatorBlockDiag, right: LinearOperatorBlockDiag) -> Any:
    sizes = [[o.range_dimension for o in side.operators] for side in (left, right)]
    if None in sizes[0] or sizes[0] != sizes[1]:
        return NotImplemented
    return LinearOperatorBlockDiag([a.matmul(b) for a, b in zip(left.operators, right.operators)],
                                   **_hints.of_product((left, right)))


__all__ = ["LinearOperatorBlockDiag"]
