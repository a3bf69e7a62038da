# SPDX-License-Identifier: Apache-2.0
"""Kronecker products of operators."""

from __future__ import annotations

from treenail import _array, _math
from treenail._control import group
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


class LinearOperatorKronecker(LinearOperator):
    """The Kronecker product of operators: of A [m1, n1] and B [m2, n2] the matrix of blocks
    A[i, j] B, [m1 m2, n1 n2]. Batches are broadcast.

    Products and solutions apply each operator to the columns of a reshaped argument, so that the
    product itself is never formed: for square factors of order n1 ... nk they take n (n1 + ... nk)
    per column at most, n = n1 ... nk. It is non-singular or self-adjoint where all factors are, and
    positive definite where all are positive definite and self-adjoint. Raises TypeError for dtypes
    that differ.
    """

    def __init__(self, operators: Sequence, is_non_singular: bool | None = None,
                 is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
                 is_square: bool | None = None, name: str | None = None) -> None:
        operators = checked_operators(operators)
        self._operators = operators
        own = {"is_non_singular": _hints.all_of(o.is_non_singular for o in operators),
               "is_self_adjoint": _hints.all_of(o.is_self_adjoint for o in operators),
               "is_positive_definite": _hints.all_of(o._can_use_cholesky() for o in operators),
               "is_square": _hints.all_of(o.is_square for o in operators)}
        given = {"is_non_singular": is_non_singular, "is_self_adjoint": is_self_adjoint,
                 "is_positive_definite": is_positive_definite, "is_square": is_square}
        hints = merged_hints(own, given, "Kronecker product")
        super().__init__(operators[0].dtype, [p for o in operators for p in o.graph_parents],
                         name=name or "_x_".join(o.name for o in operators), **hints)

    @property
    def operators(self) -> list:
        """Its factors."""
        return self._operators

    def _shape(self) -> TensorShape:
        sides = [[o.range_dimension for o in self._operators],
                 [o.domain_dimension for o in self._operators]]
        whole = [TensorShape(side).num_elements() for side in sides]
        return common_batch(self._operators).concatenate(whole)

    def _shape_tensor(self) -> Tensor:
        return _batches.joined(common_batch_vector(self._operators),
                               [_batches.count_of([o._rows() for o in self._operators]),
                                _batches.count_of([o._columns() for o in self._operators])])

    def _applied(self, step: Callable, x: Tensor, given: list, made: list) -> Tensor:
        """x, [..., n1 n2 ... nk, r], with step(operator)(matrix) along each of its axes, whose
        extents are `given` before and `made` afterwards. A new axis goes to the end, behind r."""
        columns, rest = _batches.extent(x, -1), x
        for i, operator in enumerate(self._operators):
            others = _batches.count_of([*given[i + 1:], columns, *made[:i]])
            batch = _batches.batch_vector(rest)
            rows = ops.Reshape(rest, _batches.joined(batch, [given[i], others]))
            rest = _array.matrix_transpose(step(operator)(rows))  # [..., others, made[i]]
        sides = [columns, _batches.count_of(made)]
        result = ops.Reshape(rest, _batches.joined(_batches.batch_vector(rest), sides))
        return _array.matrix_transpose(result)

    def _sides(self) -> tuple:
        """Rows and columns of the factors."""
        return [o._rows() for o in self._operators], [o._columns() for o in self._operators]

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        rows, columns = self._sides()
        given, made = (rows, columns) if adjoint else (columns, rows)
        return self._applied(lambda o: lambda part: o._matmul(part, adjoint=adjoint),
                             argument(x, adjoint_arg), given, made)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        if not self._all_square():
            return super()._solve(rhs, adjoint, adjoint_arg)
        rows, columns = self._sides()
        return self._applied(lambda o: lambda part: o._solve(part, adjoint=adjoint),
                             argument(rhs, adjoint_arg), rows, columns)

    def _all_square(self) -> bool:
        return all(o.is_square for o in self._operators)

    def _multiplicities(self) -> list:
        """How often each factor's eigenvalues count: the order over the factor's own."""
        sides = [o._rows() for o in self._operators]
        return [_math.cast(_batches.count_of(sides[:i] + sides[i + 1:]), self._dtype)
                for i in range(len(sides))]

    def _determinant(self) -> Tensor:
        if not self._all_square():
            return super()._determinant()
        return fold(ops.Mul, [ops.Pow(o._determinant(), n) for o, n in zip(
            self._operators, self._multiplicities())])

    def _log_abs_determinant(self) -> Tensor:
        if not self._all_square():
            return super()._log_abs_determinant()
        return fold(ops.Add, [n * o._log_abs_determinant() for o, n in zip(
            self._operators, self._multiplicities())])

    def _trace(self) -> Tensor:
        if not self._all_square():
            return super()._trace()
        return fold(ops.Mul, [o._trace() for o in self._operators])

    def _diag_part(self) -> Tensor:
        if not self._all_square():
            return super()._diag_part()
        return fold(_outer_vectors, [o._diag_part() for o in self._operators])

    def _to_dense(self) -> Tensor:
        return fold(_outer_matrices, [o._to_dense() for o in self._operators])

    def _assert_non_singular(self) -> Operation:
        if not self._all_square():
            return super()._assert_non_singular()
        return group(*[o._assert_non_singular() for o in self._operators])


def _outer_vectors(a: Tensor, b: Tensor) -> Tensor:
    products = ops.ExpandDims(a, -1) * ops.ExpandDims(b, -2)
    count = _batches.count_of([_batches.extent(products, -2), _batches.extent(products, -1)])
    return ops.Reshape(products, _batches.joined(_batches.batch_vector(products), [count]))


def _outer_matrices(a: Tensor, b: Tensor) -> Tensor:
    """[..., m1, 1, n1, 1] times [..., 1, m2, 1, n2]."""
    wide = ops.ExpandDims(ops.ExpandDims(a, -1), -3)
    products = wide * ops.ExpandDims(ops.ExpandDims(b, -2), -4)
    sides = [_batches.count_of([_batches.extent(a, i), _batches.extent(b, i)]) for i in (-2, -1)]
    return ops.Reshape(products, _batches.joined(_batches.batch_vector(products, 4), sides))


# --- Algebra --------------------------------------------------------------------------------------

@_algebra.adjoints.of(LinearOperatorKronecker)
def _adjoint(operator: LinearOperatorKronecker) -> LinearOperator:
    return LinearOperatorKronecker([o.adjoint() for o in operator.operators],
                                   **_hints.of_one(operator))


@_algebra.inverses.of(LinearOperatorKronecker)
def _inverse(operator: LinearOperatorKronecker) -> Any:
    if not operator._all_square():
        return NotImplemented
    return LinearOperatorKronecker([o.inverse() for o in operator.operators],
                                   **_hints.of_inverse(operator))


@_algebra.cholesky_factors.of(LinearOperatorKronecker)
def _cholesky(operator: LinearOperatorKronecker) -> Any:
    if not all(o._can_use_cholesky() for o in operator.operators):
        return NotImplemented
    return LinearOperatorKronecker([o.cholesky() for o in operator.operators],
                                   is_non_singular=True)


@_algebra.products.of(LinearOperatorKronecker, LinearOperatorKronecker)
def _product(left: LinearOperatorKronecker, right: LinearOperatorKronecker) -> Any:
    inner = [[o.domain_dimension for o in left.operators],
             [o.range_dimension for o in right.operators]]
    if None in inner[0] or inner[0] != inner[1]:
        return NotImplemented
    return LinearOperatorKronecker([a.matmul(b) for a, b in zip(left.operators, right.operators)],
                                   **_hints.of_product((left, right)))


__all__ = ["LinearOperatorKronecker"]
