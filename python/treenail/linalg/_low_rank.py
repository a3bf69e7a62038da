# SPDX-License-Identifier: Apache-2.0
"""An operator plus a matrix of low rank."""

from __future__ import annotations

from treenail import _array, _math
from treenail._convert import convert_to_tensor
from treenail._ops import ops
from treenail._shape import TensorShape, broadcast_static_shape
from treenail._treenail import Tensor
from treenail.linalg import _algebra, _batches, _hints
from treenail.linalg._composite import checked_operator
from treenail.linalg._diag import LinearOperatorDiag
from treenail.linalg._identity import LinearOperatorIdentity
from treenail.linalg._operator import LinearOperator
from treenail.linalg._parts import argument, cholesky_solution, fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LinearOperatorLowRankUpdate(LinearOperator):
    """L + U diag(d) V^H for an operator L [..., m, n] and matrices u [..., m, k] and v [..., n, k]
    (by default u) with few columns, and diag_update [..., k] (by default ones).

    Solutions and determinants are those of L and of matrices of order k, by Woodbury's formula and
    the matrix determinant lemma (Hager, Updating the inverse of a matrix, 1989); L needs to be
    non-singular for them. Where L is said to be self-adjoint and positive definite,
    is_diag_update_positive is True and there is no v, so is the sum, and Cholesky factors are used.
    Raises ValueError for hints that contradict each other and for shapes known not to go together.
    """

    def __init__(self, base_operator: LinearOperator, u: Any, diag_update: Any = None,
                 v: Any = None, is_diag_update_positive: bool | None = None,
                 is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
                 is_positive_definite: bool | None = None, is_square: bool | None = None,
                 name: str = "LinearOperatorLowRankUpdate") -> None:
        self._base = checked_operator(base_operator)
        dtype = base_operator.dtype
        self._u = _batches.at_least_rank("u", convert_to_tensor(u, dtype), 2)
        self._v = self._u if v is None else _batches.at_least_rank(
            "v", convert_to_tensor(v, dtype), 2)
        self._diag = None if diag_update is None else _batches.at_least_rank(
            "diag_update", convert_to_tensor(diag_update, dtype), 1)
        if self._diag is None:
            is_diag_update_positive = _hints.required(
                is_diag_update_positive,
                "Without diag_update the update is by ones: is_diag_update_positive is True.")
        self._is_diag_update_positive = is_diag_update_positive
        self._use_cholesky = bool(base_operator._can_use_cholesky() and is_diag_update_positive
                                  and v is None)
        if self._use_cholesky:
            words = ("A positive definite operator plus a positive multiple of U U^H is always "
                     "self-adjoint and positive definite.")
            is_self_adjoint = _hints.required(is_self_adjoint, words)
            is_positive_definite = _hints.required(is_positive_definite, words)
        self._check_shapes()
        own = [self._u, self._diag, None if v is None else self._v]
        parents = [*base_operator.graph_parents, *[x for x in own if x is not None]]
        super().__init__(dtype, parents, is_non_singular,
                         is_self_adjoint, is_positive_definite,
                         base_operator.is_square if is_square is None else is_square, name)

    def _check_shapes(self) -> None:
        base, u, v = self._base.shape, self._u.shape, self._v.shape
        pairs = [("u", u, "base_operator's rows", base[-2], u[-2]),
                 ("v", v, "base_operator's columns", base[-1], v[-2]),
                 ("v", v, "u's columns", u[-1], v[-1])]
        if self._diag is not None:
            pairs.append(("diag_update", self._diag.shape, "u's columns", u[-1],
                          self._diag.shape[-1]))
        for what, shape, whose, wanted, given in pairs:
            if None not in (wanted, given) and wanted != given:
                raise ValueError("Argument %s has shape %s, whose extent %d is to be that of %s, %d"
                                 % (what, shape, given, whose, wanted))

    @property
    def base_operator(self) -> LinearOperator:
        """L."""
        return self._base

    @property
    def u(self) -> Tensor:
        """U, [..., m, k]."""
        return self._u

    @property
    def v(self) -> Tensor:
        """V, [..., n, k]."""
        return self._v

    @property
    def diag_update(self) -> Tensor | None:
        """d, [..., k], or None for ones."""
        return self._diag

    @property
    def diag_operator(self) -> LinearOperator:
        """diag(d), of order k."""
        hint = self._is_diag_update_positive
        if self._diag is None:
            return LinearOperatorIdentity(_batches.extent(self._u, -1), dtype=self._dtype)
        return LinearOperatorDiag(self._diag, is_positive_definite=hint or None)

    @property
    def is_diag_update_positive(self) -> bool | None:
        """Whether all of d is positive, as far as hints tell."""
        return self._is_diag_update_positive

    def _tensors(self) -> list:
        """[(tensor, axes that are no batch)]."""
        return [(self._u, 2), (self._v, 2), *([] if self._diag is None else [(self._diag, 1)])]

    def _shape(self) -> TensorShape:
        batch = fold(broadcast_static_shape, [self._base.batch_shape, *[
            x.shape[:-count] for x, count in self._tensors()]])
        rows, columns = self._base.range_dimension, self._base.domain_dimension
        return batch.concatenate([self._u.shape[-2] if rows is None else rows,
                                  self._v.shape[-2] if columns is None else columns])

    def _shape_tensor(self) -> Tensor:
        batch = _batches.broadcast_vectors(self._base._batch_vector(), *[
            _batches.batch_vector(x, count) for x, count in self._tensors()])
        return _batches.joined(batch, [self._base._rows(), self._base._columns()])

    def _scaled(self, x: Tensor, adjoint: bool) -> Tensor:
        """diag(d) x, or diag(d)^H x."""
        if self._diag is None:
            return x
        return ops.ExpandDims(_math.conj(self._diag) if adjoint else self._diag, -1) * x

    def _sides(self, adjoint: bool) -> tuple:
        """(U, V); of A^H = L^H + V diag(d)^H U^H they change places."""
        return (self._v, self._u) if adjoint else (self._u, self._v)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        (u, v), x = self._sides(adjoint), argument(x, adjoint_arg)
        inner = self._scaled(_batches.product(v, x, adjoint_a=True), adjoint)
        return self._base._matmul(x, adjoint=adjoint) + _batches.product(u, inner)

    def _capacitance(self, adjoint: bool) -> Tensor:
        """I + D V^H L^-1 U, of order k, which has an inverse where A and L do; where Cholesky
        factors are used, D^-1 + U^H L^-1 U, which is positive definite."""
        u, v = self._sides(adjoint)
        inner = _batches.product(v, self._base._solve(u, adjoint=adjoint), adjoint_a=True)
        if self._use_cholesky:
            added = (ops.OnesLike(ops.MatrixDiagPart(inner)) if self._diag is None
                     else 1.0 / self._diag)
            return _with_diagonal(inner, added)
        scaled = self._scaled(inner, adjoint)
        return _with_diagonal(scaled, ops.OnesLike(ops.MatrixDiagPart(scaled)))

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        (u, v), rhs = self._sides(adjoint), argument(rhs, adjoint_arg)
        first = self._base._solve(rhs, adjoint=adjoint)
        inner = _batches.product(v, first, adjoint_a=True)
        if self._use_cholesky:
            factor = ops.Cholesky(self._capacitance(adjoint))
            small = _batches.solve_with(cholesky_solution, factor, inner)
        else:
            small = _batches.solve_with(ops.MatrixSolve, self._capacitance(adjoint),
                                        self._scaled(inner, adjoint))
        return first - self._base._solve(_batches.product(u, small), adjoint=adjoint)

    def _determinant(self) -> Tensor:
        if self._use_cholesky:
            return ops.Exp(self._log_abs_determinant())
        return self._base._determinant() * ops.MatrixDeterminant(self._capacitance(False))

    def _log_abs_determinant(self) -> Tensor:
        base = self._base._log_abs_determinant()
        if not self._use_cholesky:
            return base + ops.LogMatrixDeterminant(self._capacitance(False))[1]
        diagonal = ops.MatrixDiagPart(ops.Cholesky(self._capacitance(False)))
        result = base + 2.0 * _math.reduce_sum(ops.Log(diagonal), axis=-1)
        if self._diag is None:
            return result
        return result + _math.reduce_sum(ops.Log(self._diag), axis=-1)

    def _diag_part(self) -> Tensor:
        base = self._base._diag_part()
        count = _batches.extent(base, -1)
        u, v = self._u[..., :count, :], self._v[..., :count, :]
        weights = _math.conj(v) if self._diag is None else (
            _math.conj(v) * ops.ExpandDims(self._diag, -2))
        return base + _math.reduce_sum(u * weights, axis=-1)

    def _to_dense(self) -> Tensor:
        right = self._scaled(_array.matrix_transpose(self._v, conjugate=True), False)
        return self._base._to_dense() + _batches.product(self._u, right)


def _with_diagonal(x: Tensor, added: Tensor) -> Tensor:
    """x plus a diagonal, batches broadcast."""
    diagonal = ops.MatrixDiagPart(x) + added
    batch = _batches.batch_vector(diagonal, 1)
    return ops.MatrixSetDiag(_batches.broadcast_batch(x, batch), diagonal)


@_algebra.adjoints.of(LinearOperatorLowRankUpdate)
def _adjoint(operator: LinearOperatorLowRankUpdate) -> LinearOperator:
    diag = operator.diag_update
    return LinearOperatorLowRankUpdate(
        operator.base_operator.adjoint(), operator.v, None if diag is None else _math.conj(diag),
        operator.u, operator.is_diag_update_positive, **_hints.of_one(operator))


__all__ = ["LinearOperatorLowRankUpdate"]
