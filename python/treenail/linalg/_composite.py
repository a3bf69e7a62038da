# SPDX-License-Identifier: Apache-2.0
"""Operators made of another one, or of several that follow each other: adjoint, inverse, product.
They are what the algebra of operators gives where nothing simpler is registered."""

from __future__ import annotations

from treenail import _array, _math
from treenail._control import group
from treenail._ops import ops
from treenail._shape import TensorShape, broadcast_static_shape
from treenail._treenail import Operation, Tensor
from treenail.linalg import _algebra, _batches, _hints
from treenail.linalg._operator import LinearOperator
from treenail.linalg._parts import fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence


def checked_operator(operator: Any) -> LinearOperator:
    """`operator`. Raises TypeError for anything else."""
    if not isinstance(operator, LinearOperator):
        raise TypeError("Expected a LinearOperator, got %r" % (operator,))
    return operator


def checked_operators(operators: Any) -> list:
    """`operators` as a list. Raises ValueError for none, TypeError for other things in it and for
    dtypes that differ."""
    operators = [checked_operator(o) for o in operators]
    if not operators:
        raise ValueError("Expected a non-empty list of operators. Found: %s" % operators)
    if len({o.dtype for o in operators}) > 1:
        raise TypeError("Expected all operators to have the same dtype.  Found %s"
                        % "   ".join("%s: %s" % (o.name, o.dtype.name) for o in operators))
    return operators


def merged_hints(own: dict, given: dict, words: str) -> dict:
    """Hints of an operator, and those that follow from what it is made of. Raises ValueError where
    they contradict each other."""
    result = dict(own)
    for key, hint in given.items():
        if hint is not None and own.get(key) not in (None, hint):
            raise ValueError("The %s has `%s` %s, but the argument is %s."
                             % (words, key, own[key], hint))
        if hint is not None:
            result[key] = hint
    return result


def common_batch(operators: Sequence) -> TensorShape:
    """What is known of the batch that those of operators broadcast to."""
    return fold(broadcast_static_shape, [o.batch_shape for o in operators])


def common_batch_vector(operators: Sequence) -> Any:
    """A list of extents, or an int32 vector."""
    return _batches.broadcast_vectors(*[o._batch_vector() for o in operators])


def _given(is_non_singular: Any, is_self_adjoint: Any, is_positive_definite: Any,
           is_square: Any) -> dict:
    return {"is_non_singular": is_non_singular, "is_self_adjoint": is_self_adjoint,
            "is_positive_definite": is_positive_definite, "is_square": is_square}


class _OfOne(LinearOperator):
    """What the adjoint and the inverse of an operator have in common."""

    def __init__(self, operator: Any, words: str, own: dict, given: dict, name: str) -> None:
        self._operator = operator
        hints = merged_hints(own, given, words)
        super().__init__(operator.dtype, operator.graph_parents, name=name, **hints)

    @property
    def operator(self) -> LinearOperator:
        """The operator that it was made of."""
        return self._operator

    def _shape(self) -> TensorShape:
        shape = self._operator.shape
        if shape.ndims is None:
            return shape
        return shape[:-2].concatenate([shape[-1], shape[-2]])

    def _shape_tensor(self) -> Tensor:
        shape = self._operator._shape_vector()
        return _batches.joined(shape[:-2], [shape[-1], shape[-2]])

    def _assert_non_singular(self) -> Operation:
        return self._operator._assert_non_singular()

    def _assert_positive_definite(self) -> Operation:
        # x^H A^H x is the conjugate of x^H A x, and y = A^-1 x turns one of A^-1 into that.
        return self._operator._assert_positive_definite()

    def _assert_self_adjoint(self) -> Operation:
        return self._operator._assert_self_adjoint()


class LinearOperatorAdjoint(_OfOne):
    """The conjugate transpose of an operator, by its methods."""

    def __init__(self, operator: LinearOperator, is_non_singular: bool | None = None,
                 is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
                 is_square: bool | None = None, name: str | None = None) -> None:
        checked_operator(operator)
        given = _given(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(operator, "operator", _hints.of_one(operator), given,
                         name or operator.name + "_adjoint")

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._operator._matmul(x, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._operator._solve(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _determinant(self) -> Tensor:
        return _math.conj(self._operator._determinant())

    def _log_abs_determinant(self) -> Tensor:
        return self._operator._log_abs_determinant()

    def _diag_part(self) -> Tensor:
        return _math.conj(self._operator._diag_part())

    def _trace(self) -> Tensor:
        return _math.conj(self._operator._trace())

    def _to_dense(self) -> Tensor:
        return _array.matrix_transpose(self._operator._to_dense(), conjugate=True)


class LinearOperatorInversion(_OfOne):
    """The inverse of an operator: products are its solutions and the other way round.

    Raises ValueError where hints say that there is no inverse.
    """

    def __init__(self, operator: LinearOperator, is_non_singular: bool | None = None,
                 is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
                 is_square: bool | None = None, name: str | None = None) -> None:
        checked_operator(operator)
        words = "operator and supplied hints must have `is_non_singular=True` or `None`"
        _hints.required(operator.is_non_singular, words)
        given = _given(_hints.required(is_non_singular, words), is_self_adjoint,
                       is_positive_definite, is_square)
        super().__init__(operator, "operator", _hints.of_one(operator), given,
                         name or operator.name + "_inv")

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._operator._solve(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._operator._matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _determinant(self) -> Tensor:
        return 1.0 / self._operator._determinant()

    def _log_abs_determinant(self) -> Tensor:
        return -self._operator._log_abs_determinant()


class LinearOperatorComposition(LinearOperator):
    """The product A1 A2 ... of operators, which are applied one after the other, the last one
    first, and solved in the other order. Batches are broadcast.

    Raises ValueError for sides known not to go together, TypeError for dtypes that differ.
    """

    def __init__(self, operators: Sequence, is_non_singular: bool | None = None,
                 is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
                 is_square: bool | None = None, name: str | None = None) -> None:
        operators = checked_operators(operators)
        for left, right in zip(operators, operators[1:]):
            columns, rows = left.domain_dimension, right.range_dimension
            if None not in (columns, rows) and columns != rows:
                raise ValueError("Operators are incompatible. Expected `%s` to have dimension %d "
                                 "but got %d." % (right.name, columns, rows))
        self._operators = operators
        given = _given(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        hints = merged_hints(_hints.of_product(operators), given, "product of the operators")
        super().__init__(operators[0].dtype, [p for o in operators for p in o.graph_parents],
                         name=name or "_o_".join(o.name for o in operators), **hints)

    @property
    def operators(self) -> list:
        """Its factors."""
        return self._operators

    def _shape(self) -> TensorShape:
        ends = [self._operators[0].range_dimension, self._operators[-1].domain_dimension]
        return common_batch(self._operators).concatenate(ends)

    def _shape_tensor(self) -> Tensor:
        return _batches.joined(common_batch_vector(self._operators),
                               [self._operators[0]._rows(), self._operators[-1]._columns()])

    def _one_after_the_other(self, step: Callable, x: Tensor, backwards: bool,
                             adjoint_arg: bool) -> Tensor:
        for operator in reversed(self._operators) if backwards else self._operators:
            x = step(operator)(x, adjoint_arg=adjoint_arg)
            adjoint_arg = False
        return x

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._one_after_the_other(_partial("_matmul", adjoint), x, not adjoint, adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        if not self._all_square():
            return super()._solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        return self._one_after_the_other(_partial("_solve", adjoint), rhs, adjoint, adjoint_arg)

    def _all_square(self) -> bool:
        return all(o.is_square for o in self._operators)

    def _determinant(self) -> Tensor:
        if not self._all_square():
            return super()._determinant()
        return fold(ops.Mul, [o._determinant() for o in self._operators])

    def _log_abs_determinant(self) -> Tensor:
        if not self._all_square():
            return super()._log_abs_determinant()
        return fold(ops.Add, [o._log_abs_determinant() for o in self._operators])

    def _assert_non_singular(self) -> Operation:
        if not self._all_square():
            return super()._assert_non_singular()
        return group(*[o._assert_non_singular() for o in self._operators])

    def _to_dense(self) -> Tensor:
        dense = self._operators[-1]._to_dense()
        for operator in reversed(self._operators[:-1]):
            dense = operator._matmul(dense)
        return _batches.broadcast_batch(dense, self._batch_vector())


def _partial(method: str, adjoint: bool) -> Callable:
    def of(operator: LinearOperator) -> Callable:
        return lambda x, adjoint_arg: getattr(operator, method)(x, adjoint=adjoint,
                                                                adjoint_arg=adjoint_arg)
    return of


@_algebra.adjoints.of(LinearOperator)
def _adjoint(operator: LinearOperator) -> LinearOperator:
    return LinearOperatorAdjoint(operator)


@_algebra.adjoints.of(LinearOperatorAdjoint)
def _adjoint_of_adjoint(operator: LinearOperatorAdjoint) -> LinearOperator:
    return operator.operator


@_algebra.adjoints.of(LinearOperatorInversion)
def _adjoint_of_inverse(operator: LinearOperatorInversion) -> LinearOperator:
    return LinearOperatorInversion(operator.operator.adjoint())


@_algebra.adjoints.of(LinearOperatorComposition)
def _adjoint_of_product(operator: LinearOperatorComposition) -> LinearOperator:
    return LinearOperatorComposition([o.adjoint() for o in reversed(operator.operators)],
                                     **_hints.of_one(operator))


@_algebra.inverses.of(LinearOperator)
def _inverse(operator: LinearOperator) -> LinearOperator:
    return LinearOperatorInversion(operator)


@_algebra.inverses.of(LinearOperatorInversion)
def _inverse_of_inverse(operator: LinearOperatorInversion) -> LinearOperator:
    return operator.operator


@_algebra.inverses.of(LinearOperatorComposition)
def _inverse_of_product(operator: LinearOperatorComposition) -> Any:
    if not operator._all_square():
        return NotImplemented
    return LinearOperatorComposition([o.inverse() for o in reversed(operator.operators)],
                                     **dict(_hints.of_one(operator), is_non_singular=True))


@_algebra.products.of(LinearOperator, LinearOperator)
def _product(left: LinearOperator, right: LinearOperator) -> LinearOperator:
    ends = left.range_dimension, right.domain_dimension
    square = True if None not in ends and ends[0] == ends[1] else None
    return LinearOperatorComposition([left, right], is_square=square)


@_algebra.solutions.of(LinearOperator, LinearOperator)
def _solution(left: LinearOperator, right: LinearOperator) -> LinearOperator:
    return _algebra.products(left.inverse(), right)


__all__ = ["LinearOperatorAdjoint", "LinearOperatorComposition", "LinearOperatorInversion"]
