# SPDX-License-Identifier: Apache-2.0
"""What linear operators are asserted and hinted to be, what they refuse, and what a program sees of
them: names, parts, kinds of its own."""

import numpy as np
import pytest

import treenail as tn
from linear_operators import numbers, positive, real_part, regular, seeded

L = tn.linalg


def holds(make, operator, at_once=False):
    """Whether an assertion holds when it is run."""
    try:
        if at_once:
            with tn.eager():
                make(operator())
        else:
            with tn.Graph().as_default(), tn.Session() as session:
                session.run(make(operator()))
    except tn.errors.InvalidArgumentError:
        return False
    return True


SKEW = np.array([[1.0, 2.0], [-2.0, 1.0]])
HERMITIAN = np.array([[2.0, 1j], [-1j, 1.0]])
ASSERTED = [  # operator, non-singular, positive definite, self-adjoint
    (lambda: L.LinearOperatorFullMatrix(SKEW), True, True, False),
    (lambda: L.LinearOperatorFullMatrix(-SKEW), True, False, False),
    (lambda: L.LinearOperatorFullMatrix(HERMITIAN), True, True, True),
    (lambda: L.LinearOperatorFullMatrix(HERMITIAN, is_self_adjoint=True), True, True, True),
    (lambda: L.LinearOperatorFullMatrix(np.ones((3, 2, 2))), False, False, True),
    (lambda: L.LinearOperatorLowerTriangular([[2.0, 0], [1, 2]]), True, True, False),
    (lambda: L.LinearOperatorLowerTriangular(SKEW - np.eye(2)), False, False, False),
    (lambda: L.LinearOperatorLowerTriangular(np.eye(2), is_self_adjoint=True), True, True, True),
    (lambda: L.LinearOperatorDiag([1.0, 2.0]), True, True, True),
    (lambda: L.LinearOperatorDiag([1.0, -2.0]), True, False, True),
    (lambda: L.LinearOperatorDiag([0.0, 2.0]), False, False, True),
    (lambda: L.LinearOperatorDiag([1j, 2.0]), True, False, False),
    (lambda: L.LinearOperatorDiag([np.nan, 2.0]), False, False, True),
    (lambda: L.LinearOperatorIdentity(3), True, True, True),
    (lambda: L.LinearOperatorScaledIdentity(3, 2.0), True, True, True),
    (lambda: L.LinearOperatorScaledIdentity(3, 0.0), False, False, True),
    (lambda: L.LinearOperatorScaledIdentity(3, 1j), True, False, False),
    (lambda: L.LinearOperatorZeros(3), False, False, True),
    (lambda: L.LinearOperatorHouseholder([1.0, 2.0]), True, False, True),
    (lambda: L.LinearOperatorPermutation([1, 0]), True, False, True),
    (lambda: L.LinearOperatorPermutation([1, 2, 0]), True, False, False),
    (lambda: L.LinearOperatorCirculant([1.0, 2.0]), True, True, True),
    (lambda: L.LinearOperatorCirculant([1.0, 0.0]), False, False, True),
    (lambda: L.LinearOperatorCirculant([1.0, 1j]), True, False, False),
    (lambda: L.LinearOperatorToeplitz([2.0, 1.0], [2.0, 1.0]), True, True, True),
    (lambda: L.LinearOperatorToeplitz([1.0, 1.0], [1.0, 1.0]), False, False, True),
    (lambda: L.LinearOperatorTridiag([[1.0, 0], [2, 2], [0, 1]]), True, True, True),
    (lambda: L.LinearOperatorTridiag([[1.0, 0], [2, 2], [0, 2]]), True, True, False),
    (lambda: L.LinearOperatorBlockDiag([L.LinearOperatorDiag([1.0]),
                                        L.LinearOperatorDiag([-1.0])]), True, False, True),
    (lambda: L.LinearOperatorKronecker([L.LinearOperatorDiag([1.0]),
                                        L.LinearOperatorDiag([0.0])]), False, False, True),
    (lambda: L.LinearOperatorAdjoint(L.LinearOperatorDiag([1j, 0])), False, False, False),
    (lambda: L.LinearOperatorInversion(L.LinearOperatorFullMatrix(SKEW)), True, True, False),
    (lambda: L.LinearOperatorComposition([L.LinearOperatorDiag([1.0, 0.0]),
                                          L.LinearOperatorFullMatrix(np.eye(2, dtype="f"))]),
     False, False, True),
    (lambda: L.LinearOperatorLowRankUpdate(L.LinearOperatorIdentity(2), [[1.0], [1.0]], [-0.5]),
     False, False, True)]


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("case", range(len(ASSERTED)))
def test_assertions(case, at_once):
    operator, non_singular, positive_definite, self_adjoint = ASSERTED[case]
    assert holds(lambda o: o.assert_non_singular(), operator, at_once) is non_singular
    assert holds(lambda o: o.assert_positive_definite(), operator, at_once) is positive_definite
    assert holds(lambda o: o.assert_self_adjoint(), operator, at_once) is self_adjoint


def test_spectra_of_real_kernels():
    assert holds(lambda o: o.assert_hermitian_spectrum(), lambda: L.LinearOperatorCirculant(
        np.fft.fft(np.arange(5.0)).astype("complex64")))
    assert not holds(lambda o: o.assert_hermitian_spectrum(), lambda: L.LinearOperatorCirculant(
        np.array([1, 1j, 1, 1], "complex64")))
    with tn.eager():
        operator = L.LinearOperatorCirculant2D(np.fft.fft2(np.arange(6.0).reshape(2, 3)),
                                               input_output_dtype=tn.float64)
        np.testing.assert_allclose(operator.convolution_kernel().numpy(),
                                   np.arange(6.0).reshape(2, 3), atol=1e-12)
        assert operator.block_depth == 2 and operator.block_shape == [2, 3]
        assert operator.block_shape_tensor().numpy().tolist() == [2, 3]


def make(cls, *args, **kwargs):
    return lambda: getattr(L, "LinearOperator" + cls)(*args, **kwargs)


@pytest.mark.parametrize("build, words", [
    (make("FullMatrix", np.eye(2), is_positive_definite=True, is_non_singular=False),
     "A positive definite matrix is always non-singular."),
    (make("FullMatrix", np.eye(2), is_non_singular=True, is_square=False),
     "A non-singular matrix is always square."),
    (make("FullMatrix", np.eye(2), is_self_adjoint=True, is_square=False),
     "A self-adjoint matrix is always square."),
    (make("Diag", [1.0], is_self_adjoint=False), "A real diagonal operator is always self adjoint"),
    (make("Diag", [1.0], is_square=False), "Only square diagonal operators"),
    (make("Diag", 1.0), "at least 1 dimension"),
    (make("FullMatrix", [1.0]), "at least 2 dimensions"),
    (make("LowerTriangular", np.eye(2), is_square=False), "Only square lower triangular"),
    (make("Identity", 2, is_self_adjoint=False), "An identity operator is always self adjoint"),
    (make("Identity", -2), "num_rows must be non-negative"),
    (make("Identity", [2]), "num_rows must be a 0-D Tensor"),
    (make("Identity", 2, [[2]]), "batch_shape must be a 1-D Tensor"),
    (make("Identity", 2, [-2]), "batch_shape must be non-negative"),
    (make("Zeros", 2, is_non_singular=True), "A zero operator is always singular"),
    (make("Zeros", 2, is_positive_definite=True), "always not positive definite"),
    (make("Householder", [1.0], is_positive_definite=True), "always non-positive definite"),
    (make("Householder", [1.0], is_self_adjoint=False), "always self adjoint"),
    (make("Circulant", [1.0], is_self_adjoint=False), "real spectrum always corresponds"),
    (make("Circulant", [1.0], is_square=False), "always square"),
    (make("Toeplitz", [1.0], [1.0, 2.0]), "Expected square matrix"),
    (make("Toeplitz", [1.0], [1.0], is_square=False), "Only square Toeplitz"),
    (make("Permutation", [0], is_non_singular=False), "always non-singular"),
    (make("Tridiag", np.ones((2, 3))), "3 rows in the format 'compact'"),
    (make("Tridiag", np.ones((2, 3)), "sparse"), "diagonals_format must be one of"),
    (make("BlockDiag", []), "non-empty list of operators"),
    (lambda: L.LinearOperatorBlockDiag([L.LinearOperatorFullMatrix(np.ones((2, 3)))]),
     "block diagonal of square matrices"),
    (lambda: L.LinearOperatorInversion(L.LinearOperatorZeros(2)), "is_non_singular=True"),
    (lambda: L.LinearOperatorAdjoint(L.LinearOperatorZeros(2), is_non_singular=True),
     "`is_non_singular` False"),
    (lambda: L.LinearOperatorComposition([L.LinearOperatorIdentity(2),
                                          L.LinearOperatorIdentity(3)]), "incompatible"),
    (lambda: L.LinearOperatorLowRankUpdate(L.LinearOperatorIdentity(2), np.ones((3, 1), "f")),
     "Argument u has shape"),
    (lambda: L.LinearOperatorLowRankUpdate(
        L.LinearOperatorIdentity(2), np.ones((2, 1), "f"), [1.0], is_self_adjoint=False,
        is_diag_update_positive=True), "always self-adjoint and positive definite"),
    (lambda: L.LinearOperatorIdentity(2).matmul(np.ones((3, 1), "f")), "not compatible"),
    (lambda: L.LinearOperatorIdentity(2).matmul([1.0, 2.0]), "at least 2 dimensions"),
    (lambda: L.LinearOperatorIdentity(2).matvec(np.ones(3, "f")), "not compatible"),
    (lambda: L.LinearOperatorIdentity(2).solve(np.ones((1, 3), "f"), adjoint_arg=True),
     "not compatible"),
    (lambda: L.LinearOperatorIdentity(2).matmul(L.LinearOperatorIdentity(3)),
     "Operators are incompatible. Expected `x` to have dimension 2 but got 3."),
    (lambda: L.LinearOperatorZeros(2).inverse(), "represents a singular matrix"),
    (lambda: L.LinearOperatorFullMatrix(np.ones((2, 3))).inverse(), "non square"),
    (lambda: L.LinearOperatorFullMatrix(np.eye(2)).cholesky(),
     "Not a positive definite self adjoint matrix"),
    (lambda: L.LinearOperatorFullMatrix(np.eye(2), is_square=False).is_square,
     "User set is_square hint to False, but the operator was square."),
    (lambda: L.LinearOperator(tn.float32, [1.0]), "Graph parent item 0 is not a Tensor")])
def test_contradictions_are_refused(build, words):
    with pytest.raises(ValueError, match=words):
        build()


@pytest.mark.parametrize("build, words", [
    (make("Diag", [1, 2]), "Argument diag must have dtype in"),
    (make("Permutation", [1.0, 0.0]), "dtype int32 or int64"),
    (make("Circulant", np.ones(2)), "the same precision"),
    (make("Identity", 2.5), "integer type"),
    (make("Adjoint", np.eye(2)), "Expected a LinearOperator"),
    (lambda: L.LinearOperatorKronecker([L.LinearOperatorIdentity(2),
                                        L.LinearOperatorIdentity(2, dtype=tn.float64)]),
     "the same dtype"),
    (lambda: L.LinearOperatorIdentity(2).matmul(np.eye(2)), "Expected argument to have dtype"),
    (lambda: L.LinearOperatorIdentity(2).matmul(L.LinearOperatorIdentity(2, dtype=tn.float64)),
     "Expected argument to have dtype"),
    (lambda: L.LinearOperator(tn.int32), "must have dtype float32")])
def test_wrong_dtypes_are_refused(build, words):
    with pytest.raises(TypeError, match=words):
        build()


@pytest.mark.parametrize("build, words", [
    (lambda: L.LinearOperatorZeros(2).solve(np.ones((2, 1), "f")), "expected to be singular"),
    (lambda: L.LinearOperatorFullMatrix(np.ones((2, 3))).solve(np.ones((2, 1))),
     "expected to not be square"),
    (lambda: L.LinearOperatorFullMatrix(np.ones((2, 3))).determinant(), "not be square"),
    (lambda: L.LinearOperatorFullMatrix(np.ones((2, 3))).log_abs_determinant(), "not be square"),
    (lambda: L.LinearOperator(tn.float32).shape, "_shape is not implemented")])
def test_what_there_is_not(build, words):
    with pytest.raises(NotImplementedError, match=words):
        build()


def test_singular_operators_are_refused_when_run(evaluate):
    singular = np.eye(3)
    singular[2, 2] = 0
    for operator, words in (
            (L.LinearOperatorFullMatrix(singular), "not invertible"),
            (L.LinearOperatorLowerTriangular(np.stack([np.eye(3), singular])),
             r"\[1\] of the batch"),
            (L.LinearOperatorTridiag(singular, "matrix"), "The matrix is not invertible"),
            (L.LinearOperatorFullMatrix(-singular, is_self_adjoint=True,
                                        is_positive_definite=True), "Cholesky")):
        with pytest.raises(tn.errors.InvalidArgumentError, match=words):
            evaluate(operator.solve(np.ones((3, 1))))


def test_extents_are_checked_in_a_run_where_it_is_asked_for(evaluate):
    rows = tn.placeholder(tn.int32, [])
    operator = L.LinearOperatorIdentity(rows, assert_proper_shapes=True)
    y = operator.matmul(np.ones((3, 2), "f"))
    assert evaluate(y, {rows: 3}).shape == (3, 2)
    with pytest.raises(tn.errors.InvalidArgumentError, match="another number of rows"):
        evaluate(y, {rows: 2})


def test_what_an_update_is_made_of(evaluate):
    u, d, v = np.ones((3, 2)), np.array([1.0, 2.0]), np.zeros((3, 2))
    base = L.LinearOperatorIdentity(3, dtype=tn.float64)
    update = L.LinearOperatorLowRankUpdate(base, u, d, v, is_diag_update_positive=True)
    assert update.base_operator is base and update.is_diag_update_positive
    for found, wanted in zip(evaluate([update.u, update.v, update.diag_update,
                                       update.diag_operator.to_dense()]), (u, v, d, np.diag(d))):
        np.testing.assert_array_equal(found, wanted)
    ones = L.LinearOperatorLowRankUpdate(base, u)
    assert ones.diag_update is None and ones.diag_operator.is_positive_definite
    np.testing.assert_array_equal(evaluate(ones.diag_operator.to_dense()), np.eye(2))
    # Zeros on the diagonal of the update are no reason to fail.
    none = L.LinearOperatorLowRankUpdate(base, u, 0 * d)
    np.testing.assert_array_equal(evaluate(none.solve(u)), u)


def test_names_and_parents():
    x = tn.constant([1.0, 2.0])
    operator = L.LinearOperatorDiag(x, name="scales")
    assert operator.name == "scales" and operator.graph_parents == [x]
    assert operator.matmul([[1.0], [2.0]]).op.name.startswith("scales/matmul/")
    assert operator.solvevec([1.0, 2.0]).op.name.startswith("scales_1/solve/")
    composed = operator @ L.LinearOperatorFullMatrix([[1.0, 0.0], [0.0, 1.0]])
    assert composed.name == "scales_o_LinearOperatorFullMatrix"
    assert len(composed.graph_parents) == 2 and len(composed.operators) == 2
    assert repr(operator) == "<tn.linalg.LinearOperatorDiag 'scales' shape=(2, 2) dtype=float32>"


class Doubling(L.LinearOperator):
    """As a program would write one."""

    def __init__(self, rows):
        super().__init__(tn.float64)
        self._count = rows

    def _shape(self):
        return tn.TensorShape([self._count, self._count])

    def _shape_tensor(self):
        return tn.constant([self._count, self._count])

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return 2.0 * (L.adjoint(x) if adjoint_arg else x)


def test_an_operator_of_a_program_has_all_methods(evaluate):
    operator = Doubling(3)
    found = evaluate([operator.to_dense(), operator.solve(np.ones((3, 1))), operator.determinant(),
                      operator.trace(), (operator @ operator).to_dense(),
                      operator.inverse().matmul(np.eye(3)), operator.adjoint().to_dense()])
    eye = np.eye(3)
    for x, wanted in zip(found, (2 * eye, np.full((3, 1), 0.5), 8, 6, 4 * eye, eye / 2, 2 * eye)):
        np.testing.assert_allclose(x, wanted)


def test_immediately_the_results_are_those_of_graphs():
    rng = seeded("same")
    a, x = regular(rng, "float32", (2,), 5), numbers(rng, "float32", (5, 3))
    spd = positive(rng, "float32", (), 5)

    def results():
        full = L.LinearOperatorFullMatrix(a)
        update = L.LinearOperatorLowRankUpdate(
            L.LinearOperatorFullMatrix(spd, is_self_adjoint=True, is_positive_definite=True), x)
        return [full.solve(x), update.solve(x), update.log_abs_determinant(),
                L.LinearOperatorToeplitz(a[0, 0], a[0, 1]).matmul(x)]
    with tn.eager():
        at_once = [t.numpy() for t in results()]
    with tn.Session() as session:
        for left, right in zip(at_once, session.run(results())):
            np.testing.assert_array_equal(left, right)
    assert real_part("complex64") == "float32"
