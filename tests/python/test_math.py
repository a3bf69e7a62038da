# SPDX-License-Identifier: Apache-2.0
"""Functions on numbers against NumPy. What the ops compute is the business of tests/cases; here it
is the Python functions."""

import numpy as np
import pytest

import treenail as tn

A = np.random.RandomState(1).randn(3, 4).astype(np.float32)
B = np.random.RandomState(2).rand(3, 4).astype(np.float32) + 0.5
M = np.random.RandomState(3).randn(2, 3, 4)
N = np.random.RandomState(4).randn(2, 4, 5)
Z = (A + 1j * B).astype(np.complex64)
K = np.array([7, -7, 8], np.int32)
J = np.array([2, 2, -3], np.int32)

CASES = [(lambda: tn.add(A, B), A + B), (lambda: tn.subtract(A, B), A - B),
         (lambda: tn.multiply(A, 2), A * 2), (lambda: tn.divide(A, B), A / B),
         (lambda: tn.truediv(K, J), K / J), (lambda: tn.div(K, J), K // J),
         (lambda: tn.floordiv(K, J), K // J), (lambda: tn.floormod(K, J), K % J),
         (lambda: tn.mod(A, B), A % B), (lambda: tn.truncatediv(K, J), np.array([3, -3, -2])),
         (lambda: tn.truncatemod(K, J), np.array([1, -1, 2])),
         (lambda: tn.truncatemod(A, B), np.fmod(A, B)),
         (lambda: tn.math.truncatemod([-7.5, 7.5], [2.0, -2.0]), [-1.5, 1.5]),
         (lambda: tn.pow(B, 1.5), B ** 1.5), (lambda: tn.div_no_nan(A, [0.0, 1, 0, 2]),
                                              np.where([0, 1, 0, 1], A / np.float32([1, 1, 1, 2]),
                                                       0)), (lambda: tn.abs(A), abs(A)),
         (lambda: tn.abs(Z), abs(Z)), (lambda: tn.negative(A), -A),
         (lambda: tn.sign(A), np.sign(A)), (lambda: tn.square(A), A * A),
         (lambda: tn.sqrt(B), np.sqrt(B)), (lambda: tn.exp(A), np.exp(A)),
         (lambda: tn.log(B), np.log(B)), (lambda: tn.math.log1p(B), np.log1p(B)),
         (lambda: tn.maximum(A, B), np.maximum(A, B)), (lambda: tn.minimum(A, 0), np.minimum(A, 0)),
         (lambda: tn.round(A * 10), np.round(A * 10)), (lambda: tn.sin(A), np.sin(A)),
         (lambda: tn.tanh(A), np.tanh(A)), (lambda: tn.sigmoid(A), 1 / (1 + np.exp(-A))),
         (lambda: tn.log_sigmoid(A), -np.log1p(np.exp(-A))),
         (lambda: tn.logical_and(A > 0, B > 1), (A > 0) & (B > 1)),
         (lambda: tn.logical_xor(A > 0, B > 1), (A > 0) ^ (B > 1)),
         (lambda: tn.equal(K, J), K == J), (lambda: tn.not_equal(K, 7), K != 7),
         (lambda: tn.greater(A, B), A > B), (lambda: tn.less_equal(A, B), A <= B),
         (lambda: tn.is_nan([1.0, np.nan]), [False, True]),
         (lambda: tn.add_n([A, B, A]), A + B + A), (lambda: tn.add_n([A]), A),
         (lambda: tn.scalar_mul(3, tn.constant(A)), 3 * A), (lambda: tn.scalar_mul(3.0, A), 3 * A),
         (lambda: tn.real(Z), A),
         (lambda: tn.imag(Z), B), (lambda: tn.conj(Z), A - 1j * B), (lambda: tn.complex(A, B), Z),
         (lambda: tn.angle(Z), np.angle(Z)), (lambda: tn.real(A), A),
         (lambda: tn.cast(A * 3, tn.int32), (A * 3).astype(np.int32)),
         (lambda: tn.to_float(K), K.astype(np.float32)), (lambda: tn.cast(A, tn.bool), A != 0),
         (lambda: tn.saturate_cast([300, -5], tn.uint8), [255, 0]),
         (lambda: tn.reduce_sum(A), A.sum()), (lambda: tn.reduce_sum(A, 0), A.sum(0)),
         (lambda: tn.reduce_sum(A, [0, 1]), A.sum()),
         (lambda: tn.reduce_sum(A, axis=-1, keepdims=True), A.sum(1, keepdims=True)),
         (lambda: tn.reduce_sum(A, reduction_indices=[1], keep_dims=True), A.sum(1, keepdims=True)),
         (lambda: tn.reduce_mean(A, 1), A.mean(1)), (lambda: tn.reduce_prod(B, 0), B.prod(0)),
         (lambda: tn.reduce_max(A, 1), A.max(1)), (lambda: tn.reduce_min(A), A.min()),
         (lambda: tn.reduce_all(A > 0, 0), (A > 0).all(0)),
         (lambda: tn.reduce_any(A > 0, 1), (A > 0).any(1)),
         (lambda: tn.reduce_logsumexp(A, 1), np.log(np.exp(A).sum(1))),
         (lambda: tn.reduce_logsumexp(A + 1000), 1000 + np.log(np.exp(A).sum())),
         (lambda: tn.math.reduce_variance(A, 1), A.var(1)), (lambda: tn.reduce_std(A), A.std()),
         (lambda: tn.reduce_euclidean_norm(A, 0), np.sqrt((A * A).sum(0))),
         (lambda: tn.count_nonzero([[0, 1], [2, 3]], 0), [1, 2]),
         (lambda: tn.argmax(A, 1), A.argmax(1)), (lambda: tn.argmin(A), A.argmin(0)),
         (lambda: tn.argmax(A, axis=-1, output_type=tn.int32), A.argmax(1).astype(np.int32)),
         (lambda: tn.cumsum(A, 1), A.cumsum(1)),
         (lambda: tn.cumsum(K, reverse=True, exclusive=True), [1, 8, 0]),
         (lambda: tn.cumprod(B, 0), B.cumprod(0)),
         (lambda: tn.matmul(A, B, transpose_b=True), A @ B.T),
         (lambda: tn.matmul(A, B, transpose_a=True), A.T @ B), (lambda: tn.matmul(M, N), M @ N),
         (lambda: tn.matmul(M, M, transpose_b=True), M @ M.transpose(0, 2, 1)),
         (lambda: tn.matmul(Z, Z, adjoint_a=True), Z.conj().T @ Z),
         (lambda: tn.constant(A) @ A.T, A @ A.T), (lambda: tn.matvec(A, B[0]), A @ B[0]),
         (lambda: tn.trace(A), np.trace(A)), (lambda: tn.tensordot(M, N, [[2], [1]]),
                                              np.tensordot(M, N, [[2], [1]])),
         (lambda: tn.tensordot(A, B.T, 1), A @ B.T),
         (lambda: tn.tensordot(M, N, [[0, 2], [0, 1]]), np.tensordot(M, N, [[0, 2], [0, 1]])),
         (lambda: tn.bincount([1, 1, 3]), [0, 2, 0, 1]),
         (lambda: tn.bincount([1, 1, 3], minlength=6), [0, 2, 0, 1, 0, 0]),
         (lambda: tn.bincount([1, 1, 3], maxlength=2), [0, 2]),
         (lambda: tn.bincount([0, 1], weights=[0.5, 2.0]), [0.5, 2]),
         (lambda: tn.confusion_matrix([0, 1, 1], [0, 1, 0]), [[1, 0], [1, 1]]),
         (lambda: tn.clip_by_value(A, -0.5, 0.5), A.clip(-0.5, 0.5)),
         (lambda: tn.clip_by_norm([3.0, 4.0], 1.0), [0.6, 0.8]),
         (lambda: tn.clip_by_norm([0.3, 0.4], 1.0), [0.3, 0.4]),
         (lambda: tn.clip_by_norm([[3.0, 4.0], [0.0, 0.0]], 1.0, [1]), [[0.6, 0.8], [0, 0]]),
         (lambda: tn.global_norm([[3.0], None, [4.0]]), 5),
         (lambda: tn.clip_by_global_norm([[3.0], None, [4.0]], 1.0)[0][2], [0.8]),
         (lambda: tn.clip_by_global_norm([[0.3], [0.4]], 1.0)[0][0], [0.3]),
         (lambda: tn.clip_by_global_norm([np.float64([3]), None], 1.0, 6.0)[0][0], [0.5]),
         (lambda: tn.clip_by_average_norm([3.0, 4.0], 0.25), [0.3, 0.4]),
         (lambda: 3 - tn.constant(A), 3 - A), (lambda: 2.0 / tn.constant(B), 2 / B),
         (lambda: A + tn.constant(B), A + B), (lambda: tn.constant(K) / J, K / J),
         (lambda: 7 // tn.constant(J), 7 // J),
         (lambda: ~tn.constant([True, False]), [False, True]),
         (lambda: tn.constant([True, False]) | True, [True, True]),
         (lambda: tn.constant(A) ** 2, A ** 2), (lambda: tn.constant(A) >= 0, A >= 0),]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_against_numpy(number, evaluate):
    build, expected = CASES[number]
    result = evaluate(build())
    expected = np.asarray(expected)
    assert result.shape == expected.shape
    if expected.dtype.kind in "fc":
        np.testing.assert_allclose(result, expected, rtol=2e-5, atol=1e-6)
    else:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("equation,shapes", [("ij,jk->ik", [(2, 3), (3, 4)]),
                                             ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
                                             ("ij->ji", [(2, 3)]), ("ij->", [(2, 3)]),
                                             ("ij,ij->i", [(2, 3), (2, 3)]),
                                             ("i,j->ij", [(2,), (3,)]),
                                             ("ijk,kl", [(2, 3, 4), (4, 5)]),
                                             ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
                                             ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
                                             ("abc,cd->adb", [(2, 3, 4), (4, 5)])])
@pytest.mark.parametrize("known", [True, False])
def test_einsum(equation, shapes, known, evaluate, rng):
    arrays = [rng.randn(*s) for s in shapes]
    tensors = [tn.placeholder(tn.float64, s if known else [None] * len(s)) for s in shapes]
    result = evaluate(tn.einsum(equation, *tensors), dict(zip(tensors, arrays)))
    np.testing.assert_allclose(result, np.einsum(equation, *arrays), rtol=1e-12)


def check_euler(arrays, gradients, expected):
    """The sum of the products is linear in each operand."""
    for array, gradient in zip(arrays, gradients):
        assert gradient.shape == np.shape(array)
        np.testing.assert_allclose((array * gradient).sum(), expected.sum(), rtol=1e-10)


@pytest.mark.parametrize("equation,shapes", [
    ("ii->i", [(3, 3)]), ("ii", [(3, 3)]), ("iji->j", [(2, 4, 2)]), ("iiij->ji", [(2, 2, 2, 3)]),
    ("bii,ij->bj", [(4, 3, 3), (3, 2)]), ("...ij->...ji", [(2, 4, 3, 5)]),
    ("...ij->...ji", [(3, 5)]), ("...,...", [(3,), ()]),
    ("...ij,...jk->...ik", [(4, 2, 3), (3, 5)]), ("...ij,...jk", [(4, 1, 2, 3), (5, 3, 2)]),
    ("i...,...i->...", [(3, 2, 4), (4, 3)]), ("...ii->...i", [(2, 4, 3, 3)]),
    ("b...d,bd->b...", [(2, 3, 4, 5), (2, 5)])])
def test_einsum_with_diagonals_and_ellipses(equation, shapes, evaluate, rng):
    arrays = [rng.randn(*s) for s in shapes]
    tensors = [tn.placeholder(tn.float64, s) for s in shapes]
    product = tn.einsum(equation, *tensors)
    result, gradients = evaluate([product, tn.gradients(product, tensors)],
                                 dict(zip(tensors, arrays)))
    expected = np.einsum(equation, *arrays)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-12)
    check_euler(arrays, gradients, expected)


def test_einsum_sums_an_ellipsis_that_the_output_lacks(evaluate, rng):
    a = rng.randn(2, 3, 4)
    np.testing.assert_allclose(evaluate(tn.einsum("...ij->ji", a)), a.sum(axis=0).T)


@pytest.mark.parametrize("equation,shape,text", [
    ("ii->i", [2, 3], r"axes of index 'i' within one operand must have one extent, not those "
     r"of \[2,3\]"), ("...ijk->i", [2, 2], "operand 0, '...ijk', has rank 2")])
def test_diagonals_and_ellipses_that_do_not_fit(equation, shape, text):
    with pytest.raises(ValueError, match=text):
        tn.einsum(equation, tn.placeholder(tn.float32, shape))


@pytest.mark.parametrize("equation,text", [("ij,jk->ik", "names 2 operands, 1 were given"),
                                           ("ij->ii", "repeats an index"),
                                           ("ij->k", "index 'k' of the output is in no operand"),
                                           ("..ij->ji", "only letters"), ("....ij", "only letters"),
                                           ("...i...j->i", "only letters"),
                                           ("ijk->i", "operand 0, 'ijk', has rank 2")])
def test_bad_equations(equation, text):
    with pytest.raises(ValueError, match=text):
        tn.einsum(equation, tn.zeros([2, 2]))


@pytest.mark.parametrize("equation,shapes", [
    ("ij,jk->ik", [(2, 1), (3, 4)]), ("ij,jk->ik", [(2, 3), (1, 4)]),
    ("ij,ij->ij", [(2, 1), (1, 3)]), ("bij,bjk->bik", [(1, 2, 3), (4, 3, 2)]),
    ("ijk,jkl->il", [(2, 1, 4), (3, 4, 2)]),
    ("ij,ij,ij->i", [(1, 3), (2, 1), (2, 3)]), ("ij,ij->", [(1, 1), (1, 1)]),
    ("ij,jk->ik", [(2, 0), (1, 3)])])
@pytest.mark.parametrize("known", [True, False])
def test_einsum_stretches_one_as_numpy_does(equation, shapes, known, evaluate, rng):
    arrays = [rng.randn(*s) for s in shapes]
    tensors = [tn.placeholder(tn.float64, s if known else [None] * len(s)) for s in shapes]
    product = tn.einsum(equation, *tensors)
    result, gradients = evaluate([product, tn.gradients(product, tensors)],
                                 dict(zip(tensors, arrays)))
    expected = np.einsum(equation, *arrays)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-12)
    check_euler(arrays, gradients, expected)


@pytest.mark.parametrize("equation,shapes,index", [
    ("ij,ij->ij", [(2, 3), (3, 2)], "i"), ("ij,jk->ik", [(2, 6), (3, 4)], "j"),
    ("bij,bjk->bik", [(2, 3, 4), (4, 2, 5)], "b"), ("bij,bjk->bik", [(2, 3, 4), (2, 2, 5)], "j"),
    ("bij,bjk->bik", [(2, 3, 4), (4, 4, 5)], "b"), ("ijk,jkl->il", [(2, 2, 3), (3, 2, 2)], "j"),
    ("ij,jk,kj->i", [(2, 3), (3, 4), (4, 2)], "j")])
def test_contradicting_extents_of_einsum(equation, shapes, index, evaluate):
    with pytest.raises(ValueError, match="einsum equation '%s': index '%s' has extent"
                       % (equation, index)):
        tn.einsum(equation, *[tn.ones(s) for s in shapes])
    tensors = [tn.placeholder(tn.float32, [None] * len(s)) for s in shapes]
    with pytest.raises(tn.errors.InvalidArgumentError):
        evaluate(tn.einsum(equation, *tensors), {t: np.ones(s) for t, s in zip(tensors, shapes)})


TENSORDOT = [((2, 3), (3, 2), [[0, 1], [0, 1]]), ((2, 1), (2, 3), [[0, 1], [0, 1]]),
             ((6, 2), (3, 4), [[0, 1], [0, 1]]), ((2, 3), (4, 2), 1)]


@pytest.mark.parametrize("a,b,axes", TENSORDOT)
def test_contradicting_extents_of_tensordot(a, b, axes, evaluate):
    with pytest.raises(ValueError, match="tensordot: axis . of 'a' .* has extent"):
        tn.tensordot(tn.ones(a), tn.ones(b), axes)
    x, y = (tn.placeholder(tn.float32, [None] * len(s)) for s in (a, b))
    with pytest.raises(tn.errors.InvalidArgumentError):
        evaluate(tn.tensordot(x, y, axes), {x: np.ones(a), y: np.ones(b)})
    x = tn.placeholder(tn.float32, [a[0], None])
    with pytest.raises(ValueError):
        evaluate(tn.tensordot(x, tn.ones(b), axes), {x: np.ones(a)})


@pytest.mark.parametrize("axes,text", [
    ([[0], [5]], r"axis 5 of 'b' is not in \[-2, 2\)"),
    ([[-7], [0]], r"axis -7 of 'a' is not in \[-2, 2\)"),
    ([[0, -2], [0, 1]], "axis 0 of 'a' is contracted twice"), ([[0], [0, 1]], "Different number")])
def test_bad_axes_of_tensordot(axes, text):
    with pytest.raises(ValueError, match=text):
        tn.tensordot(tn.ones([2, 2]), tn.ones([2, 2]), axes)


@pytest.mark.parametrize("axes", [0, 2, [[0, 1], [1, 0]], [[-1], [0]], np.array([[2], [1]])])
@pytest.mark.parametrize("known", [True, False])
def test_tensordot(axes, known, evaluate, rng):
    a, b = rng.randn(2, 3, 3), rng.randn(3, 3, 4)
    if not isinstance(axes, int) and len(axes[0]) == 2:
        b = rng.randn(3, 2, 4)
    x, y = (tn.placeholder(tn.float64, v.shape if known else [None] * 3) for v in (a, b))
    np.testing.assert_allclose(evaluate(tn.tensordot(x, y, axes), {x: a, y: b}),
                               np.tensordot(a, b, axes), rtol=1e-12)


def test_einsum_is_differentiable(evaluate, rng):
    a, b = rng.randn(2, 3, 4), rng.randn(2, 4, 5)
    ta, tb = tn.constant(a), tn.constant(b)
    ga, gb = evaluate(tn.gradients(tn.einsum("bij,bjk->bik", ta, tb), [ta, tb]))
    np.testing.assert_allclose(ga, np.einsum("bik,bjk->bij", np.ones((2, 3, 5)), b))
    np.testing.assert_allclose(gb, np.einsum("bij,bik->bjk", a, np.ones((2, 3, 5))))


def test_reductions_of_unknown_rank(evaluate):
    x = tn.placeholder(tn.float32)
    total = tn.reduce_sum(x)
    assert evaluate(total, {x: A}) == pytest.approx(A.sum(), rel=1e-5)


@pytest.mark.parametrize("call,error,text", [(lambda: tn.reduce_sum(A, 0, reduction_indices=1),
                                              ValueError,
                                              "Cannot specify both 'axis' and 'reduction_indices'"),
                                             (lambda: tn.reduce_sum(A, 2), ValueError,
                                              r"not in \[-2, 2\)|Invalid reduction|axis"),
                                             (lambda: tn.matmul(A, A), ValueError,
                                              r"inner dimensions differ|must be equal"),
                                             (lambda: tn.matmul(A, B, transpose_a=True,
                                                                adjoint_a=True), ValueError,
                                              "Only one of transpose and adjoint"),
                                             (lambda: tn.add_n([]), ValueError,
                                              "at least one Tensor"),
                                             (lambda: tn.constant(K) + 1.5, TypeError,
                                              "Expected int32, got 1.5 of type 'float' instead"),
                                             (lambda: tn.constant(A) + tn.constant(K), ValueError,
                                              "int32.*float32|float32.*int32"),
                                             (lambda: tn.truediv(tn.constant(A), tn.constant(K)),
                                              (TypeError, ValueError), "dtype"),
                                             (lambda: tn.constant(A) + [1.0, 2.0], ValueError,
                                              r"Incompatible shapes: \[3,4\] vs. \[2\]"),
                                             (lambda: tn.scalar_mul([1.0, 2.0], tn.constant(A)),
                                              ValueError, "Only scalar multiply works"),
                                             (lambda: tn.cast("a", tn.float32), ValueError,
                                              "string"),
                                             (lambda: tn.argmax(A, 5), ValueError, r"5"),
                                             (lambda: tn.tensordot(A, B, [[0, 1], [0]]), ValueError,
                                              "Different number of contraction axes")])
def test_what_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_matrix_product_with_numbers_takes_the_tensors_dtype(evaluate):
    x = tn.constant([[1.0, 2.0]], tn.float64)
    assert tn.matmul(x, [[1.0], [1.0]]).dtype == tn.float64
    assert evaluate(tn.matmul([[1, 2]], x, transpose_b=True)).tolist() == [[5]]


@pytest.mark.parametrize("axes", [0, 1, 2, [[1, 0], [0, 1]], [[-1], [1]], [2, 0], [[], []],
                                  [[0, -1], [-1, 0]]])
def test_tensordot_of_operands_whose_rank_a_run_tells(axes):
    cases = {0: ((2, 3), (4,)), 2: ((5, 2, 3), (2, 3, 4))}
    a_shape, b_shape = cases.get(axes if isinstance(axes, int) else None, ((3, 2, 3), (3, 3, 2)))
    if axes == [[1, 0], [0, 1]]:
        a_shape, b_shape = (3, 2, 5), (2, 3, 4)
    if axes == [2, 0] or axes == 1 or axes == [[-1], [1]]:
        a_shape, b_shape = (4, 2, 3), (3, 3, 5)
    if axes == [[0, -1], [-1, 0]]:
        a_shape, b_shape = (2, 5, 3), (3, 4, 2)
    left, right = (np.random.RandomState(i).rand(*s) for i, s in enumerate((a_shape, b_shape)))
    wanted = np.tensordot(left, right, axes)
    a, b = tn.placeholder(tn.float64), tn.placeholder(tn.float64)
    product = tn.tensordot(a, b, axes)
    assert product.shape.ndims is None
    slope = tn.gradients(product, a)[0]
    with tn.Session() as session:
        np.testing.assert_allclose(session.run(product, {a: left, b: right}), wanted, rtol=1e-12)
        assert session.run(slope, {a: left, b: right}).shape == a_shape


def test_tensordot_with_axes_that_a_run_tells():
    left, right = np.random.rand(4, 2, 3), np.random.rand(3, 2, 5)
    count, pair = tn.placeholder(tn.int32, []), tn.placeholder(tn.int64, [2, 2])
    by_count = tn.tensordot(tn.constant(left), tn.constant(right), count)
    by_pair = tn.tensordot(tn.constant(left), tn.constant(right), pair)
    with tn.Session() as session:
        np.testing.assert_allclose(session.run(by_count, {count: 1}), np.tensordot(left, right, 1))
        np.testing.assert_allclose(session.run(by_pair, {pair: [[1, 2], [1, 0]]}),
                                   np.tensordot(left, right, [[1, 2], [1, 0]]))


@pytest.mark.parametrize("axes, a_shape, b_shape", [
    ([[0, 1], [0, 1]], (2, 3), (3, 2)), ([[2], [0]], (2, 3), (3, 2)), ([[-3], [0]], (2, 3), (3, 2)),
    ([[0, 0], [0, 1]], (2, 3), (2, 2)), (1, (2, 3), (2, 3))])
def test_what_tensordot_refuses_when_run(axes, a_shape, b_shape):
    a, b = tn.placeholder(tn.float64), tn.placeholder(tn.float64)
    with tn.Session() as session:
        with pytest.raises(tn.errors.InvalidArgumentError):
            session.run(tn.tensordot(a, b, axes), {a: np.ones(a_shape), b: np.ones(b_shape)})


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_products_of_integers(dtype, evaluate):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    a = np.random.RandomState(0).randint(low, high, (2, 5, 7), dtype)
    b = np.random.RandomState(1).randint(low, high, (2, 7, 3), dtype)
    with np.errstate(over="ignore"):
        wanted = a @ b
    for got in tn.matmul(a, b), tn.constant(a) @ b:
        np.testing.assert_array_equal(evaluate(got), wanted)
    np.testing.assert_array_equal(evaluate(tn.matmul(a[0], b[0].T.copy(), transpose_b=True)),
                                  wanted[0])
    np.testing.assert_array_equal(evaluate(tn.tensordot(a[0], b[0], 1)), wanted[0])


def test_operators_on_strings(evaluate):
    x = tn.constant([["a", "b"], ["", "d"]])
    assert evaluate(x + "!").tolist() == [[b"a!", b"b!"], [b"!", b"d!"]]
    assert evaluate("<" + x + [">", "/"]).tolist() == [[b"<a>", b"<b/"], [b"<>", b"<d/"]]
    # Not commutative, though of numbers the sum is.
    first, second = evaluate([tn.add(x, "-"), tn.add("-", x)])
    assert first[0, 0] == b"a-" and second[0, 0] == b"-a"
    assert evaluate(tn.equal(x, "a")).tolist() == [[True, False], [False, False]]
    assert evaluate(tn.not_equal(x, ["a", "d"])).tolist() == [[False, True], [True, False]]


def test_accumulate_n(evaluate):
    x = tn.placeholder_with_default(tn.ones([2, 3]), None)
    total = tn.accumulate_n([x, 2 * x, tn.ones([2, 3])], shape=[2, None], tensor_dtype=tn.float32)
    assert total.shape.as_list() == [2, 3]
    np.testing.assert_array_equal(evaluate(total), np.full((2, 3), 4))


@pytest.mark.parametrize("call,error,text", [
    (lambda x: tn.accumulate_n([x, x], tensor_dtype=tn.float64), TypeError,
     "tensor_dtype is float64, but the inputs are float32"),
    (lambda x: tn.accumulate_n([x, tn.cast(x, tn.int32)]), ValueError, "must be of one dtype"),
    (lambda x: tn.accumulate_n([x, x], shape=[3]), ValueError, "are incompatible"),
    (lambda x: tn.accumulate_n([x, x[:1]]), ValueError, "are incompatible"),
    (lambda x: tn.accumulate_n([]), ValueError, "a list of at least one Tensor"),
    (lambda x: tn.accumulate_n(x), ValueError, "a list of at least one Tensor")])
def test_what_accumulate_n_refuses(call, error, text):
    with pytest.raises(error, match=text):
        call(tn.ones([2, 3]))


def test_the_remainder_with_the_sign_of_the_dividend_has_a_gradient():
    with tn.Graph().as_default(), tn.Session() as session:
        x, y = tn.constant([7.5, -7.5]), tn.constant([2.0, 2.0])
        gx, gy = session.run(tn.gradients(tn.truncatemod(x, y), [x, y]))
    assert gx.tolist() == [1, 1] and gy.tolist() == [-3, 3]
