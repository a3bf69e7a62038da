# SPDX-License-Identifier: Apache-2.0
"""The base of linear operators: what every one of them can do, by way of the dense matrix where a
class does not know better."""

from __future__ import annotations

from treenail import _array, _assertions, _math
from treenail import _treenail as _core
from treenail._convert import convert_to_tensor, is_tensor
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._treenail import DType, Operation, Tensor
from treenail.linalg import _algebra, _batches, _hints
from treenail.linalg._parts import (EPSILON, FLOATS, OwnScope, argument, cholesky_solution,
                                    hermitian_part)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


class LinearOperator:
    """A matrix, or a batch of them, [..., m, n], that need not be stored element by element.

    Subclasses write _shape(), _shape_tensor() and _matmul(x, adjoint, adjoint_arg), and others of
    the methods below with an underscore (_solve, _to_dense, ...) where they know a better way than
    by the dense matrix. Arguments and results are as of the public methods, without `name`.

    Hints promise something (True), deny it (False) or say nothing (None): is_non_singular,
    is_self_adjoint, is_positive_definite (the real part of x^H A x is positive for every x but 0;
    A need not be self-adjoint) and is_square. They are never checked against the elements, except
    by assert_non_singular and its like, but decide how things are computed: an operator said to be
    self-adjoint and positive definite is solved by Cholesky factors.

    dtype: float32, float64, complex64 or complex128. graph_parents: the tensors it is made of.
    Raises ValueError for hints that contradict each other.
    """

    def __init__(self, dtype: Any, graph_parents: Sequence | None = None,
                 is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
                 is_positive_definite: bool | None = None, is_square: bool | None = None,
                 name: str | None = None) -> None:
        self._is_non_singular, self._square_hint = _hints.implied(
            is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        parents = [] if graph_parents is None else list(graph_parents)
        for i, parent in enumerate(parents):
            if not is_tensor(parent):
                raise ValueError("Graph parent item %d is not a Tensor; %s." % (i, parent))
        self._dtype = _core.as_dtype(dtype)
        self._graph_parents = parents
        self._is_self_adjoint = is_self_adjoint
        self._is_positive_definite = is_positive_definite
        self._name = name or type(self).__name__
        if self._dtype.name not in FLOATS:
            raise TypeError("A linear operator must have dtype %s or %s, not %s"
                            % (", ".join(FLOATS[:-1]), FLOATS[-1], self._dtype.name))

    def _scope(self, name: str, values: Sequence = ()) -> OwnScope:
        tensors = [v for v in (*values, *self._graph_parents) if isinstance(v, Tensor)]
        return OwnScope(self._name, name, tensors)

    def __repr__(self) -> str:
        return "<tn.linalg.%s %r shape=%s dtype=%s>" % (type(self).__name__, self._name,
                                                        self.shape, self._dtype.name)

    # --- What it is -------------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        """Of its elements, and of what it is applied to."""
        return self._dtype

    @property
    def name(self) -> str:
        """What the names of its operations begin with."""
        return self._name

    @property
    def graph_parents(self) -> list:
        """The tensors that it is made of."""
        return self._graph_parents

    @property
    def is_non_singular(self) -> bool | None:
        """Whether it has an inverse, as far as hints tell."""
        return self._is_non_singular

    @property
    def is_self_adjoint(self) -> bool | None:
        """Whether it is its own conjugate transpose, as far as hints tell."""
        return self._is_self_adjoint

    @property
    def is_positive_definite(self) -> bool | None:
        """Whether the real part of x^H A x is positive, as far as hints tell."""
        return self._is_positive_definite

    @property
    def is_square(self) -> bool | None:
        """Whether it has as many rows as columns, by its shape or by hints. Raises ValueError where
        these contradict each other."""
        rows, columns = self.range_dimension, self.domain_dimension
        known = None not in (rows, columns)
        if known and rows == columns and self._square_hint is False:
            raise ValueError("User set is_square hint to False, but the operator was square.")
        if self._square_hint is None and known:
            return rows == columns
        return self._square_hint

    @property
    def shape(self) -> TensorShape:
        """What is known of its shape, [..., m, n], before a run."""
        return self._shape()

    def _shape(self) -> TensorShape:
        raise NotImplementedError("_shape is not implemented.")

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        """Its shape as an int32 vector."""
        with self._scope(name):
            return self._shape_vector()

    def _shape_vector(self) -> Tensor:
        known = self.shape
        return (_batches.shape_vector(known.as_list()) if known.is_fully_defined()
                else self._shape_tensor())

    def _shape_tensor(self) -> Tensor:
        raise NotImplementedError("_shape_tensor is not implemented.")

    @property
    def batch_shape(self) -> TensorShape:
        """What is known of the axes before the last two."""
        return self.shape[:-2]

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """The extents before the last two as an int32 vector."""
        with self._scope(name):
            batch = self._batch_vector()
            return _batches.shape_vector(batch) if isinstance(batch, list) else batch

    def _batch_vector(self) -> Any:
        """A list where all extents are known, else an int32 vector."""
        known = self.batch_shape
        return known.as_list() if known.is_fully_defined() else self._shape_vector()[:-2]

    @property
    def tensor_rank(self) -> int | None:
        """The number of axes, those of the batch and two, where it is known."""
        return self.shape.ndims

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Tensor:
        """The number of axes, an int32 scalar."""
        with self._scope(name):
            rank = self.tensor_rank
            return (ops.Size(self._shape_vector()) if rank is None
                    else convert_to_tensor(rank, _core.int32))

    @property
    def domain_dimension(self) -> int | None:
        """n, of what it is applied to, where it is known."""
        return self.shape[-1]

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Tensor:
        """n, an int32 scalar."""
        with self._scope(name):
            return convert_to_tensor(self._columns(), _core.int32)

    def _columns(self) -> Any:
        """An int where it is known, else an int32 scalar; so is _rows()."""
        known = self.domain_dimension
        return self._shape_vector()[-1] if known is None else known

    @property
    def range_dimension(self) -> int | None:
        """m, of what it gives, where it is known."""
        return self.shape[-2]

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Tensor:
        """m, an int32 scalar."""
        with self._scope(name):
            return convert_to_tensor(self._rows(), _core.int32)

    def _rows(self) -> Any:
        known = self.range_dimension
        return self._shape_vector()[-2] if known is None else known

    def _can_use_cholesky(self) -> bool:
        return bool(self.is_self_adjoint and self.is_positive_definite)

    # --- Products ---------------------------------------------------------------------------------

    def _argument(self, what: str, value: Any, own: int | None, rank: int, axis: int) -> Tensor:
        """A matrix (rank 2) or vector to be worked on, whose extent along `axis` is to be `own`."""
        x = _batches.at_least_rank(what, _batches.as_tensor(value, self._dtype), rank)
        if x.dtype != self._dtype:
            raise TypeError("Expected argument to have dtype %s.  Found: %s in tensor %s"
                            % (self._dtype.name, x.dtype.name, x))
        given = x.shape[axis]
        if None not in (own, given) and own != given:
            raise ValueError("Dimensions %d and %d are not compatible: the operator has shape %s, "
                             "%s %s" % (own, given, self.shape, what, x.shape))
        return x

    def _meets(self, what: str, own: int | None, other: LinearOperator) -> None:
        given = other.range_dimension
        if other.dtype != self._dtype:
            raise TypeError("Expected argument to have dtype %s.  Found: %s in operator %r"
                            % (self._dtype.name, other.dtype.name, other))
        if None not in (own, given) and own != given:
            raise ValueError("Operators are incompatible. Expected `%s` to have dimension %d but "
                             "got %d." % (what, own, given))

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False,
               name: str = "matmul") -> Any:
        """The product A x, [..., m, r], of this operator and matrices x [..., n, r], whose batches
        are broadcast. Of two operators: the operator that is their product.

        adjoint: A^H x. adjoint_arg: A x^H, for x [..., r, n]. Raises ValueError for shapes known
        not to go together, TypeError for another dtype.
        """
        if isinstance(x, LinearOperator):
            left = self.adjoint() if adjoint else self
            right = x.adjoint() if adjoint_arg else x
            left._meets("x", left.domain_dimension, right)
            with self._scope(name):
                return _algebra.products(left, right)
        with self._scope(name, [x]):
            own = self.range_dimension if adjoint else self.domain_dimension
            x = self._argument("x", x, own, 2, -1 if adjoint_arg else -2)
            return self._matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        raise NotImplementedError("_matmul is not implemented.")

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """The product A x, [..., m], of this operator and vectors x [..., n], or A^H x."""
        with self._scope(name, [x]):
            own = self.range_dimension if adjoint else self.domain_dimension
            return self._matvec(self._argument("x", x, own, 1, -1), adjoint=adjoint)

    def _matvec(self, x: Tensor, adjoint: bool = False) -> Tensor:
        return _batches.vector_product(lambda m: self._matmul(m, adjoint=adjoint), x)

    # --- Systems of equations ---------------------------------------------------------------------

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False,
              name: str = "solve") -> Any:
        """The solution x [..., n, r] of A x = rhs, for rhs [..., m, r], batches broadcast. Of two
        operators: the operator A^-1 rhs.

        adjoint: of A^H x = rhs. adjoint_arg: of A x = rhs^H. Raises NotImplementedError where
        hints or shape say that A is singular or not square, InvalidArgumentError when it is found
        to be singular, ValueError for shapes known not to go together, TypeError for another dtype.
        """
        self._check_solvable("Exact solve not implemented for an operator that is expected to %s")
        if isinstance(rhs, LinearOperator):
            left = self.adjoint() if adjoint else self
            right = rhs.adjoint() if adjoint_arg else rhs
            left._meets("rhs", left.range_dimension, right)
            with self._scope(name):
                return _algebra.solutions(left, right)
        with self._scope(name, [rhs]):
            own = self.domain_dimension if adjoint else self.range_dimension
            rhs = self._argument("rhs", rhs, own, 2, -1 if adjoint_arg else -2)
            return self._solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _check_solvable(self, words: str) -> None:
        if self.is_non_singular is False:
            raise NotImplementedError(words % "be singular.")
        if self.is_square is False:
            raise NotImplementedError(words % "not be square.")

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        rhs = argument(rhs, adjoint_arg)
        if self._can_use_cholesky():
            return _batches.solve_with(cholesky_solution, ops.Cholesky(self._to_dense()), rhs)
        return _batches.solve_with(
            lambda matrix, right: ops.MatrixSolve(matrix, right, adjoint=adjoint),
            self._to_dense(), rhs)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Tensor:
        """The solution x [..., n] of A x = rhs (A^H x = rhs), for rhs [..., m]. Errors: as of
        solve."""
        self._check_solvable("Exact solve not implemented for an operator that is expected to %s")
        with self._scope(name, [rhs]):
            own = self.domain_dimension if adjoint else self.range_dimension
            return self._solvevec(self._argument("rhs", rhs, own, 1, -1), adjoint=adjoint)

    def _solvevec(self, rhs: Tensor, adjoint: bool = False) -> Tensor:
        return _batches.vector_product(lambda m: self._solve(m, adjoint=adjoint), rhs)

    # --- Numbers ----------------------------------------------------------------------------------

    def _check_square(self) -> None:
        if self.is_square is False:
            raise NotImplementedError("Determinant not implemented for an operator that is "
                                      "expected to not be square.")

    def determinant(self, name: str = "det") -> Tensor:
        """Determinants, [...]. Raises NotImplementedError for an operator that is not square."""
        self._check_square()
        with self._scope(name):
            return self._determinant()

    def _determinant(self) -> Tensor:
        if self._can_use_cholesky():
            return ops.Exp(self._log_abs_determinant())
        return ops.MatrixDeterminant(self._to_dense())

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        """Logarithms of the absolute values of determinants, [...], in this dtype. Raises
        NotImplementedError for an operator that is not square."""
        self._check_square()
        with self._scope(name):
            return self._log_abs_determinant()

    def _log_abs_determinant(self) -> Tensor:
        if self._can_use_cholesky():
            diagonal = ops.MatrixDiagPart(ops.Cholesky(self._to_dense()))
            return 2.0 * _math.reduce_sum(ops.Log(diagonal), axis=-1)
        return ops.LogMatrixDeterminant(self._to_dense())[1]

    def diag_part(self, name: str = "diag_part") -> Tensor:
        """The main diagonal, [..., min(m, n)]."""
        with self._scope(name):
            return self._diag_part()

    def _diag_part(self) -> Tensor:
        return ops.MatrixDiagPart(self._to_dense())

    def trace(self, name: str = "trace") -> Tensor:
        """The sum of the main diagonal, [...]."""
        with self._scope(name):
            return self._trace()

    def _trace(self) -> Tensor:
        return _math.reduce_sum(self._diag_part(), axis=-1)

    # --- The matrix -------------------------------------------------------------------------------

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrices, [..., m, n]."""
        with self._scope(name):
            return self._to_dense()

    def _to_dense(self) -> Tensor:
        return self._matmul(self._identity(self._columns()))

    def _identity(self, order: Any) -> Tensor:
        """[..., order, order], a matrix for each of this batch."""
        return _batches.broadcast_batch(_array.eye(order, dtype=self._dtype), self._batch_vector())

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Tensor:
        """The sum of this matrix and x, which broadcast."""
        with self._scope(name, [x]):
            x = _batches.as_tensor(x, self._dtype)
            if x.dtype != self._dtype:
                raise TypeError("Expected argument to have dtype %s.  Found: %s in tensor %s"
                                % (self._dtype.name, x.dtype.name, x))
            return self._add_to_tensor(x)

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return self._to_dense() + x

    # --- Other operators --------------------------------------------------------------------------

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """The operator A^H."""
        if self.is_self_adjoint is True:
            return self
        with self._scope(name):
            return _algebra.adjoints(self)

    @property
    def H(self) -> LinearOperator:  # noqa: N802 (TensorFlow's name)
        """The operator A^H."""
        return self.adjoint()

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """The operator A^-1. Raises ValueError where hints or shape say that there is none."""
        if self.is_square is False:
            raise ValueError("Cannot take the Inverse: This operator represents a non square "
                             "matrix.")
        if self.is_non_singular is False:
            raise ValueError("Cannot take the Inverse: This operator represents a singular matrix.")
        with self._scope(name):
            return _algebra.inverses(self)

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """The lower triangular operator L with L L^H = A. Raises ValueError unless hints say that A
        is self-adjoint and positive definite."""
        if not self._can_use_cholesky():
            raise ValueError("Cannot take the Cholesky decomposition: Not a positive definite self "
                             "adjoint matrix.")
        with self._scope(name):
            return _algebra.cholesky_factors(self)

    # --- Assertions -------------------------------------------------------------------------------

    def assert_non_singular(self, name: str = "assert_non_singular") -> Operation:
        """An operation that raises InvalidArgumentError unless the condition number is below
        1 / (max(100, m, n) epsilon)."""
        with self._scope(name):
            return self._assert_non_singular()

    def _assert_non_singular(self) -> Operation:
        if self._can_use_cholesky():
            return self._assert_positive_definite()
        values = _math.real(ops.Svd(self._to_dense(), compute_uv=False)[0])
        # Of values without one the least is infinite and the greatest -infinite, which is in order.
        most = _math.reduce_max(values, axis=-1)
        least = _math.reduce_min(values, axis=-1)
        return _assertions.assert_less(most * self._spacing(), least,
                                       message="Singular matrix up to precision epsilon.")

    def _spacing(self) -> Tensor:
        """What a singular value may be below the greatest by, relatively, and count as zero."""
        sides = [convert_to_tensor(n, _core.int32) for n in (self._rows(), self._columns(), 100)]
        largest = _math.cast(_math.reduce_max(_array.stack(sides)), self._dtype.real_dtype)
        return largest * EPSILON[self._dtype.name]

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Operation:
        """An operation that raises InvalidArgumentError unless the real part of x^H A x is positive
        for every x but 0."""
        with self._scope(name):
            return self._assert_positive_definite()

    def _assert_positive_definite(self) -> Operation:
        dense = self._to_dense()
        # What x^H A x has for a real part is that of the self-adjoint part of A.
        part = dense if self.is_self_adjoint else hermitian_part(dense)
        values = _math.real(ops.SelfAdjointEig(part, compute_v=False)[0])
        return _assertions.assert_positive(values, message="Matrix was not positive definite.")

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> Operation:
        """An operation that raises InvalidArgumentError unless A is exactly its own conjugate
        transpose."""
        with self._scope(name):
            return self._assert_self_adjoint()

    def _assert_self_adjoint(self) -> Operation:
        dense = self._to_dense()
        return _assertions.assert_equal(dense, _array.matrix_transpose(dense, conjugate=True),
                                        message="Matrix was not equal to its adjoint.")


__all__ = ["LinearOperator"]
