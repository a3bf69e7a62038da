# SPDX-License-Identifier: Apache-2.0
"""tn.linalg and the older names; matrices that are hard to work on; what does not change results:
threads, the library, the place in a batch. Single operations: tests/cases/linalg_solve.py and
linalg_factors.py."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import treenail as tn

scipy_linalg = pytest.importorskip("scipy.linalg")
RNG = np.random.default_rng(3)
# One order per way of computing: a matrix per lane, Eigen, LAPACK.
ORDERS = [8, 24, 100]


def positive(n, dtype="float64"):
    a = RNG.normal(size=(n, n))
    return (a @ a.T / n + np.eye(n)).astype(dtype)


def test_functions_under_both_names(evaluate):
    a, b = positive(5), RNG.normal(size=(5, 2))
    factor = np.linalg.cholesky(a)
    near = np.testing.assert_allclose
    for cholesky in (tn.cholesky, tn.linalg.cholesky):
        near(evaluate(cholesky(a)), factor, rtol=1e-12, atol=1e-13)
    for solve in (tn.cholesky_solve, tn.linalg.cholesky_solve):
        near(evaluate(solve(factor, b)), np.linalg.solve(a, b), rtol=1e-11)
    for solve in (tn.matrix_solve, tn.linalg.solve):
        near(evaluate(solve(a, b)), np.linalg.solve(a, b), rtol=1e-11)
    for solve in (tn.matrix_triangular_solve, tn.linalg.triangular_solve):
        near(evaluate(solve(a, b, lower=False)), np.linalg.solve(np.triu(a), b), rtol=1e-11)
    for inverse in (tn.matrix_inverse, tn.linalg.inv):
        near(evaluate(inverse(a)), np.linalg.inv(a), rtol=1e-11)
    for determinant in (tn.matrix_determinant, tn.linalg.det):
        near(evaluate(determinant(a)), np.linalg.det(a), rtol=1e-11)
    near(evaluate(tn.linalg.logdet(a)), np.linalg.slogdet(a)[1], rtol=1e-11)
    near(evaluate(tn.linalg.logdet(a + 0j)), np.linalg.slogdet(a)[1], rtol=1e-11)
    near(evaluate(list(tn.linalg.slogdet(-a))), np.linalg.slogdet(-a), rtol=1e-11)
    factors, order = evaluate(list(tn.linalg.lu(a, output_idx_type=tn.int64)))
    assert order.dtype == np.int64
    near((np.tril(factors, -1) + np.eye(5)) @ np.triu(factors), a[order], atol=1e-13)
    near(evaluate(tn.linalg.adjoint(b + 1j * b)), b.T - 1j * b.T)
    for qr in (tn.qr, tn.linalg.qr):
        near(evaluate(qr(b, full_matrices=True)[0]), np.linalg.qr(b, "complete")[0], atol=1e-13)
    for svd in (tn.svd, tn.linalg.svd):
        near(evaluate(svd(b + 1j * b, compute_uv=False)), np.sqrt(2) * np.linalg.svd(b)[1])
        s, u, v = evaluate(list(svd(b)))
        near(u * s @ v.T, b, atol=1e-13)
    for eigh in (tn.self_adjoint_eig, tn.linalg.eigh):
        e, v = evaluate(list(eigh(a)))
        near(v * e @ v.T, a, atol=1e-13)
    for eigenvalues in (tn.self_adjoint_eigvals, tn.linalg.eigvalsh):
        near(evaluate(eigenvalues(a)), e, rtol=1e-13)


def hilbert(n):
    return scipy_linalg.hilbert(n)


def wilkinson(n):
    """Growth of 2^(n - 1) under partial pivoting."""
    a = np.tril(-np.ones((n, n)), -1) + np.eye(n)
    a[:, -1] = 1
    return a


def graded(n):
    scales = 10.0 ** -np.linspace(0, 12, n)
    return scales[:, None] * (RNG.normal(size=(n, n)) + n * np.eye(n)) * scales


HARD = {
    "hilbert": hilbert, "wilkinson": wilkinson, "graded": graded,
    "toeplitz": lambda n: scipy_linalg.toeplitz(0.9 ** np.arange(n)),
    "defective": lambda n: np.eye(n) * 0.5 + np.eye(n, k=1),
    "clustered": lambda n: np.eye(n) + 1e-9 * RNG.normal(size=(n, n)),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", sorted(HARD))
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_factors_of_hard_matrices_give_them_back(evaluate, kind, order, dtype):
    """Backward errors, which condition has no part in: within growth * n * eps of the matrix."""
    a = HARD[kind](order).astype(dtype)
    if dtype.startswith("complex"):
        a = a * np.exp(1j * RNG.uniform(0, 6, (order, 1))).astype(dtype)
    eps = np.finfo(dtype).eps
    factors, p = evaluate(list(tn.linalg.lu(a)))
    lower, upper = np.tril(factors, -1) + np.eye(order), np.triu(factors)
    assert np.abs(np.tril(factors, -1)).max(initial=0) <= 1.5  # pivots; LAPACK compares |re| + |im|
    error = np.abs(lower.astype("complex128") @ upper - a[p])
    growth = np.abs(lower) @ np.abs(upper)
    assert (error <= 4 * order * eps * growth + 1e-300).all()
    x = evaluate(tn.linalg.solve(a, a[:, :2]))
    residual = np.abs(a.astype("complex128") @ x - a[:, :2]).max()
    bound = growth.max() * np.abs(x).max() + np.abs(a).max()
    assert residual <= 8 * order * eps * bound


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_cholesky_factors_give_the_matrix_back(evaluate, order, dtype):
    for a in (positive(order), scipy_linalg.toeplitz(0.9 ** np.arange(order)), hilbert(5)):
        a = a.astype(dtype)
        if dtype.startswith("complex"):
            turn = np.exp(1j * RNG.uniform(0, 6, len(a)))
            a = (turn[:, None] * a * turn.conj()).astype(dtype)
        factor = evaluate(tn.linalg.cholesky(a)).astype("complex128")
        error = np.abs(factor @ factor.conj().T - a).max()
        assert error <= 2 * len(a) * np.finfo(dtype).eps * np.abs(a).max()


def turned(x, dtype):
    return x + 1j * RNG.normal(size=x.shape) if dtype == "complex128" else x


def square_norm(x):
    """|x|² of each element, which no phase changes."""
    return tn.real(x * tn.conj(x))


def weighted(x, seed):
    return tn.reduce_sum(x * np.random.default_rng(seed).uniform(-1, 1, x.shape.as_list()))


def of_values_and_vectors(values, left, right):
    """A number that does not depend on the choice of signs and phases."""
    scaled = left * tn.cast(tn.expand_dims(values * values, -2), left.dtype)
    whole = tn.matmul(scaled, right, adjoint_b=True)
    return (weighted(values, 0) + weighted(tn.real(whole), 1) + weighted(tn.imag(whole), 2)
            + weighted(square_norm(left), 3) + weighted(square_norm(right), 4))


def of_svd(full):
    def build(x):
        s, u, v = tn.linalg.svd(x, full_matrices=full)
        k = s.shape.as_list()[-1]
        loss = of_values_and_vectors(s, u[..., :k], v[..., :k])
        for others in (u[..., k:], v[..., k:]):
            outer = tn.matmul(others, others, adjoint_b=True)
            loss += weighted(tn.real(outer), 5) + weighted(tn.imag(outer), 6)
        return loss
    return build


def of_eigh(x):
    e, v = tn.linalg.eigh(x)
    return of_values_and_vectors(tn.real(e), v, v)


def differences_agree(build, x, tolerance=2e-6):
    """The gradient of build(x), and of a sum over it, against central differences."""
    rng = np.random.default_rng(9)
    with tn.Graph().as_default(), tn.Session() as session:
        fed = tn.placeholder(x.dtype, x.shape)
        loss = build(fed)
        (gradient,) = tn.gradients(loss, [fed])
        weights = rng.uniform(-1, 1, x.shape)
        second_loss = tn.reduce_sum(tn.real(gradient * weights) + tn.imag(gradient * weights))
        (second,) = tn.gradients(second_loss, [fed])
        for number, slope in ((loss, gradient), (second_loss, second)):
            analytic = session.run(slope, {fed: x})
            for _ in range(4):
                step = rng.uniform(-1, 1, x.shape)
                if x.dtype.kind == "c":
                    step = step + 1j * rng.uniform(-1, 1, x.shape)
                ends = [session.run(number, {fed: x + sign * 1e-6 * step}) for sign in (1, -1)]
                wanted = (ends[0] - ends[1]) / 2e-6
                found = np.sum((np.conj(analytic) * step).real)
                assert abs(found - wanted) <= tolerance * max(1, np.abs(analytic).max()) * 10


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (3, 4), (5, 2), (2, 5)])
def test_gradients_of_singular_values_and_vectors(shape, full, dtype):
    x = RNG.normal(size=shape) + 2 * np.eye(*shape[-2:]) * np.arange(1, shape[-1] + 1)
    differences_agree(of_svd(full), turned(x, dtype))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 4, 4)])
def test_gradients_of_eigenvalues_and_vectors(shape, dtype):
    x = RNG.normal(size=shape) + 3 * np.diag(np.arange(shape[-1]))
    differences_agree(of_eigh, turned(x, dtype))


def test_vectors_of_equal_values_have_no_gradient_among_themselves(evaluate):
    """The projection on all of them has none at all, the function x -> x² has one."""
    def square(x):
        e, v = tn.linalg.eigh(x)
        return tn.matmul(v * tn.expand_dims(e * e, -2), v, adjoint_b=True)
    x = np.eye(3)
    with tn.Graph().as_default(), tn.Session() as session:
        fed = tn.constant(x)
        weights = np.arange(9.0).reshape(3, 3)
        (gradient,) = tn.gradients(square(fed) * weights, [fed])
        found = session.run(gradient)
    assert np.isfinite(found).all()
    # d(x²) = 2 dx where x is 1, of which the diagonal is what eigenvalues see in this basis.
    np.testing.assert_allclose(np.diag(found), 2 * np.diag(weights), atol=1e-12)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", sorted(HARD) + ["zero", "one", "low rank"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_orthogonal_decompositions_of_hard_matrices(evaluate, kind, order, dtype):
    more = {"zero": np.zeros, "one": np.ones}
    a = more[kind]((order, order)) if kind in more else HARD.get(kind, hilbert)(order)
    if kind == "low rank":
        a = RNG.normal(size=(order, 3)) @ RNG.normal(size=(3, order))
    a = a.astype(dtype)
    if dtype.startswith("complex"):
        a = (a * np.exp(1j * RNG.uniform(0, 6, (order, 1)))).astype(dtype)
    wide, eps = a.astype("complex128"), 8 * order * np.finfo(dtype).eps
    size = max(np.linalg.norm(wide, 2), 1e-300)

    def check(matrix, factors, *orthonormal):
        assert np.abs(factors - matrix).max() <= eps * size
        for q in orthonormal:
            assert np.abs(q.conj().T @ q - np.eye(order)).max() <= eps

    q, r = (x.astype("complex128") for x in evaluate(list(tn.linalg.qr(a))))
    check(wide, q @ r, q)
    s, u, v = (x.astype("complex128") for x in evaluate(list(tn.linalg.svd(a))))
    check(wide, u * s @ v.conj().T, u, v)
    assert (np.diff(s.real) <= 0).all() and (s.real >= 0).all()
    np.testing.assert_allclose(s.real, np.linalg.svd(wide, compute_uv=False), atol=eps * size)
    hermitian = (a + a.conj().T) / 2
    whole = hermitian.astype("complex128")
    e, v = (x.astype("complex128") for x in evaluate(list(tn.linalg.eigh(hermitian))))
    check(whole, v * e @ v.conj().T, v)
    assert (np.diff(e.real) >= 0).all()
    np.testing.assert_allclose(e.real, np.linalg.eigvalsh(whole), atol=eps * size)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("order", ORDERS)
def test_singular_values_of_nan_are_nan(evaluate, order, dtype):
    a = RNG.normal(size=(3, order, order)).astype(dtype)
    clean = evaluate(tn.linalg.svd(a, compute_uv=False))
    a[1, 0, 0] = np.inf
    s, u, v = evaluate(list(tn.linalg.svd(a)))
    for x in (s, u, v):
        assert np.isnan(x[1]).all() and np.isfinite(x[[0, 2]]).all()
    np.testing.assert_allclose(s[[0, 2]], clean[[0, 2]], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_norms(evaluate, dtype):
    x = RNG.normal(size=(3, 4, 5))
    x = (x + 1j * RNG.normal(size=x.shape)).astype(dtype) if dtype[0] == "c" else x.astype(dtype)
    rtol = 1e-5 if dtype in ("float32", "complex64") else 1e-12
    for function in (tn.norm, tn.linalg.norm):
        for ord, of_numpy in (("euclidean", 2), (1, 1), (2, 2), (3.5, 3.5), (np.inf, np.inf)):
            for axis in (0, 1, -1):
                for keep in (False, True):
                    found = evaluate(function(x, ord, axis, keepdims=keep))
                    wanted = np.linalg.norm(x, of_numpy, axis, keep)
                    np.testing.assert_allclose(found, wanted, rtol=rtol)
            np.testing.assert_allclose(
                evaluate(function(x, ord)), np.linalg.norm(x.ravel(), of_numpy), rtol=rtol)
        for ord in ("euclidean", "fro", 1, 2, np.inf):
            for axis in ([0, 1], (2, 0), [-2, -1]):
                wanted = np.linalg.norm(x, "fro" if ord == "euclidean" else ord, tuple(axis), True)
                found = evaluate(function(x, ord, axis, keepdims=True))
                np.testing.assert_allclose(found, wanted, rtol=rtol)


@pytest.mark.parametrize("ord, axis, words", [
    (0, 1, "'ord' must be"), ("nuc", (0, 1), "'ord' must be"), ("fro", 0, "'ord' must be"),
    (2, (1, 1), "unique"), (2, (0, 1, 2), "unique"), (2, 1.5, "unique")])
def test_norms_that_there_are_not(ord, axis, words):
    with pytest.raises(ValueError, match=words):
        tn.norm(np.ones((2, 3, 4)), ord, axis)


def test_cross_products(evaluate):
    a, b = RNG.normal(size=(2, 4, 3))
    for cross in (tn.cross, tn.linalg.cross):
        np.testing.assert_allclose(evaluate(cross(a, b)), np.cross(a, b), rtol=1e-12)
    assert evaluate(tn.cross([1, 2, 3], [4, 5, 6])).tolist() == [-3, 6, -3]
    with pytest.raises(ValueError, match="3-element"):
        tn.cross(np.ones((3, 2)), np.ones((3, 2)))
    with pytest.raises(ValueError, match="same shape"):
        tn.cross(np.ones((2, 3)), np.ones((3, 3)))


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 6, 4)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_least_squares(evaluate, shape, dtype):
    a, b = turned(RNG.normal(size=shape), dtype), turned(RNG.normal(size=shape[:-1] + (2,)), dtype)
    near = lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-7, atol=1e-9)  # noqa: E731
    for lstsq in (tn.matrix_solve_ls, tn.linalg.lstsq):
        near(evaluate(lstsq(a, b)), np.linalg.pinv(a) @ b)
        near(evaluate(lstsq(a, b, fast=False)), np.linalg.pinv(a) @ b)
    adjoint = np.conj(np.swapaxes(a, -1, -2))
    ridge = np.linalg.solve(adjoint @ a + 0.5 * np.eye(shape[-1]), adjoint @ b)
    near(evaluate(tn.linalg.lstsq(a, b, l2_regularizer=0.5)), ridge)
    with tn.Graph().as_default(), tn.Session() as session:
        unknown = tn.placeholder(dtype, [None] * len(shape))
        near(session.run(tn.linalg.lstsq(unknown, b), {unknown: a}), np.linalg.pinv(a) @ b)


# Up to 16 rows or columns and 32 right sides one per lane of a vector.
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("rows, columns, right", [
    (1, 1, 1), (2, 9, 32), (16, 16, 3), (16, 5, 33), (5, 16, 2), (17, 3, 2), (3, 17, 2)])
def test_small_and_large_least_squares(evaluate, rows, columns, right, dtype):
    a, b = RNG.normal(size=(11, rows, columns)), RNG.normal(size=(11, rows, right))
    if dtype.startswith("complex"):
        a, b = turned(a, "complex128"), turned(b, "complex128")
    a[5] = a[5, :, :1] * a[5, :1]  # of rank one
    a, b = a.astype(dtype), b.astype(dtype)
    wide = a.astype("complex128")
    tolerance = 1e-3 if dtype in ("float32", "complex64") else 1e-9
    wanted = np.linalg.pinv(wide, 20 * np.finfo(dtype).eps * max(rows, columns)) @ b
    found = evaluate(tn.linalg.lstsq(a, b, fast=False))
    np.testing.assert_allclose(found, wanted, atol=tolerance * np.abs(wanted).max())
    others = np.arange(11) != 5
    found = evaluate(tn.linalg.lstsq(a[others], b[others]))
    np.testing.assert_allclose(found, wanted[others], atol=tolerance * np.abs(wanted).max())


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("order", [4, 24])
def test_least_squares_of_nan(evaluate, order, dtype):
    a, b = (turned(RNG.normal(size=(3, order, k)), dtype).astype(dtype) for k in (order - 1, 2))
    clean = evaluate(tn.linalg.lstsq(a, b, fast=False))
    a[1, 0, 0] = np.nan
    found = evaluate(tn.linalg.lstsq(a, b, fast=False))
    assert np.isnan(found[1]).all()
    np.testing.assert_array_equal(found[[0, 2]], clean[[0, 2]])
    with pytest.raises(tn.errors.InvalidArgumentError, match=r"deficient.* \[1\] of the batch"):
        evaluate(tn.linalg.lstsq(a, b))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 4), (30, 20)])
def test_pseudoinverses_and_ranks(evaluate, shape, dtype):
    a = RNG.normal(size=shape[:-1] + (2,)) @ RNG.normal(size=shape[:-2] + (2, shape[-1]))
    a = (turned(a, "complex128") if dtype[0] == "c" else a).astype(dtype)
    rank = np.linalg.matrix_rank(a)
    assert evaluate(tn.linalg.matrix_rank(a)).tolist() == rank.tolist()
    inverse = evaluate(tn.linalg.pinv(a)).astype("complex128")
    tolerance = 1e-3 if dtype in ("float32", "complex64") else 1e-10
    np.testing.assert_allclose(a @ inverse @ a, a, atol=tolerance)
    wanted = np.linalg.pinv(a.astype("complex128"), 1e-5)
    np.testing.assert_allclose(inverse, wanted, atol=tolerance)
    assert (evaluate(tn.linalg.matrix_rank(a, tol=1e9)) == 0).all()


def test_gradients_of_functions_of_decompositions():
    x = RNG.normal(size=(4, 3))
    differences_agree(lambda a: weighted(tn.linalg.pinv(a), 1), x)
    differences_agree(lambda a: weighted(tn.linalg.lstsq(a, np.ones((4, 1))), 1), x)
    differences_agree(lambda a: tn.linalg.norm(a, 2, [0, 1]) + tn.linalg.norm(a, 3), x)
    differences_agree(lambda a: weighted(tn.linalg.cross(a, a[::-1]), 1), x)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("m, n", [(3, 3), (4, 2), (2, 4)])
def test_gradients_of_pseudoinverses_with_equal_singular_values(m, n, dtype):
    q = np.linalg.qr(turned(RNG.normal(size=(4, 4)), dtype))[0][:m, :n]
    q = q if m == 4 or n == 4 else np.linalg.qr(q)[0]
    differences_agree(lambda a: weighted(tn.real(tn.linalg.pinv(a)), 1), 2 * q)
    differences_agree(lambda a: weighted(tn.real(tn.linalg.pinv(a, 1e-3)), 1), q)
    # Of a rank that stays while all elements change.
    right = np.linalg.qr(turned(RNG.normal(size=(5, n)), dtype))[0].T
    differences_agree(lambda a: weighted(tn.real(tn.linalg.pinv(tn.matmul(a, right))), 1),
                      q if m >= n else np.linalg.qr(turned(RNG.normal(size=(6, n)), dtype))[0])


PROGRAM = """
import json, sys, numpy as np, treenail as tn
tn.enable_eager_execution()
rng = np.random.default_rng(1)
results = {}
sizes = ((5, 1000), (8, 3001), (24, 200), (100, 9), (300, 1))
for n, count in sizes[:int(sys.argv[1])]:
    for dtype in ("float32", "float64", "complex64", "complex128"):
        a = rng.normal(size=(count, n, n)).astype(dtype) + n * np.eye(n, dtype=dtype)
        if dtype.startswith("complex"):
            a = a + 1j * rng.normal(size=a.shape).astype(dtype)
        a = a.astype(dtype)
        spd = (a @ a.conj().swapaxes(1, 2)).astype(dtype)
        for name, tensor in (
            ("cholesky", tn.linalg.cholesky(spd)), ("lu", tn.linalg.lu(a)[0]),
            ("solve", tn.linalg.solve(a, a[:, :, :3])), ("inv", tn.linalg.inv(a)),
            ("triangular", tn.linalg.triangular_solve(a, a[:, :, :3])),
            ("det", tn.linalg.slogdet(a)[1]), ("qr", tn.linalg.qr(a[:99])[1]),
            ("svd", tn.linalg.svd(a[:99], compute_uv=False)),
            ("eigh", tn.linalg.eigvalsh(spd[:99])),
            ("lstsq", tn.linalg.lstsq(a[:99], a[:99, :, :3])),
            ("lstsq by svd", tn.linalg.lstsq(a[:9, :, 1:], a[:9, :, :3], fast=False)),
            ("expm", tn.linalg.expm(a[:99] / n)), ("sqrtm", tn.linalg.sqrtm(spd[:99])),
            ("logm", tn.linalg.logm(a[:99])), ("eigvals", tn.linalg.eigvals(a[:99])),
            ("eig", tn.linalg.eig(a[:99])[1])):
            x = tensor.numpy()
            part = x.reshape(len(x), -1)[-1, :3] / np.abs(x).max()
            results["%s %d %s" % (name, n, dtype)] = (
                [hash(x.tobytes()), part.real.tolist(), part.imag.tolist()])
json.dump(results, sys.stdout)
"""


def results_with(sizes=5, **environment):
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(sizes)], capture_output=True,
                          text=True, check=True,
                          env=dict(os.environ, PYTHONHASHSEED="0", **environment))
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_the_bits_do_not_depend_on_threads_and_hardly_on_the_library():
    one, three = (results_with(TREENAIL_NUM_THREADS=n) for n in ("1", "3"))
    assert one == three
    # The largest is blocked as the one before it is, and costs five times what all others do.
    own = results_with(4, TREENAIL_LINALG="builtin")
    assert len(own) == len(one) // 5 * 4 and own.keys() <= one.keys()
    for key, (_, real, imaginary) in own.items():
        tolerance = 2e-4 if key.endswith(("float32", "complex64")) else 1e-11
        np.testing.assert_allclose(one[key][1], real, rtol=tolerance, atol=tolerance, err_msg=key)
        np.testing.assert_allclose(one[key][2], imaginary, rtol=tolerance, atol=tolerance)


def everything_of(a):
    """Results of all that batches of matrices are worked on for, in one list."""
    return [tn.linalg.inv(a), tn.linalg.det(a), *tn.linalg.lu(a), *tn.linalg.qr(a),
            *tn.linalg.svd(a), *tn.linalg.eigh(a), tn.linalg.triangular_solve(a, a, adjoint=True),
            tn.linalg.lstsq(a, a, 0.5), tn.linalg.lstsq(a, a, fast=False), tn.linalg.expm(a),
            tn.linalg.cholesky(a + 4 * a.shape[-1] * np.eye(a.shape[-1], dtype=a.dtype))]


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("order", ORDERS)
def test_a_matrix_has_the_same_results_wherever_it_stands(evaluate, order, dtype):
    a, batch = (turned(RNG.normal(size=shape), dtype).astype(dtype)
                for shape in ((order, order), (13, order, order)))
    alone = evaluate(everything_of(a))
    for place in (0, 5, 12):
        batch[place] = a
        for one, many in zip(alone, evaluate(everything_of(batch))):
            np.testing.assert_array_equal(many[place], one)
    # An input that begins in the middle of a cache line.
    raw = np.zeros(a.nbytes + 64, np.uint8)
    offset = -raw.ctypes.data % 64 + a.itemsize
    moved = raw[offset:offset + a.nbytes].view(dtype).reshape(order, order)
    moved[...] = a
    np.testing.assert_array_equal(evaluate(tn.linalg.inv(moved)), alone[0])


@pytest.mark.parametrize("dtype, order", [
    ("float64", 8), ("float32", 8), ("float32", 5), ("complex64", 7)])
def test_batches_too_large_for_the_caches_have_the_bits_of_small_ones(evaluate, dtype, order):
    count = (48 << 20) // (order * order * np.dtype(dtype).itemsize) + 3  # and some lanes are left
    some = RNG.normal(size=(29, order, order)).astype(dtype) + order * np.eye(order, dtype=dtype)
    if dtype.startswith("complex"):
        some = some + 1j * RNG.normal(size=some.shape).astype("float32")
    some = some @ some.conj().transpose(0, 2, 1)
    many = np.resize(some, (count, order, order))
    for operation in (tn.linalg.cholesky, tn.linalg.inv):
        np.testing.assert_array_equal(evaluate(operation(many)), np.resize(
            evaluate(operation(some)), many.shape))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("order", ORDERS)
def test_nan_and_infinity_spoil_their_own_matrix_alone(evaluate, order, dtype):
    a = turned(RNG.normal(size=(4, order, order)) + order * np.eye(order), dtype)
    spoilt = a.copy()
    spoilt[1, 0, 0] = np.nan
    spoilt[2, order - 1, order - 1] = np.inf
    b = turned(RNG.normal(size=(4, order, 2)), dtype)
    clean = evaluate(tn.linalg.solve(a, b))
    x = evaluate(tn.linalg.solve(spoilt, b))
    np.testing.assert_array_equal(x[[0, 3]], clean[[0, 3]])
    assert np.isnan(x[1]).any()
    sign, log = evaluate(list(tn.linalg.slogdet(spoilt)))
    assert np.isnan(log[1]) and np.isnan(sign[1]) and log[2] == np.inf


def test_memory_is_refused_before_it_is_asked_for(evaluate):
    huge = tn.fill([200000, 200000], 1.0)
    with pytest.raises(tn.errors.ResourceExhaustedError, match="MatrixInverse|Fill"):
        evaluate(tn.linalg.inv(huge))


@pytest.mark.parametrize("what, limit, share", [
    ("tn.linalg.eigh(x)[1]", 5, 2), ("tn.linalg.svd(x)[1]", 10, 7), ("tn.linalg.eig(x)[1]", 15, 3),
    ("tn.linalg.sqrtm(x)", 20, 3)])
def test_what_a_library_takes_by_itself_counts(what, limit, share):
    """In matrices: with so little memory the rest fits, and the library's share does not."""
    program = """
import treenail as tn
tn.enable_eager_execution()
x = tn.eye(90, dtype=tn.float64) + 0.01
try:
    %s
except tn.errors.ResourceExhaustedError as error:
    print(str(error).split(",")[0])
""" % what
    matrix = 90 * 90 * 8
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True,
        env=dict(os.environ, TREENAIL_LINALG="builtin", TREENAIL_NUM_THREADS="1",
                 TREENAIL_MEMORY_LIMIT=str(limit * matrix)))
    assert done.stderr == ""
    assert "out of memory: %d bytes asked" % (share * matrix) in done.stdout


def test_the_wrong_choice_of_a_library_is_refused():
    done = subprocess.run(
        [sys.executable, "-c", "import treenail as tn; tn.enable_eager_execution(); "
         "tn.linalg.inv(tn.eye(100))"], capture_output=True, text=True,
        env=dict(os.environ, TREENAIL_LINALG="mkl"))
    assert "TREENAIL_LINALG" in done.stderr and "builtin" in done.stderr


def test_gradients_of_singular_matrices_are_refused(evaluate):
    x = tn.constant(np.ones((2, 2)))
    with pytest.raises(tn.errors.InvalidArgumentError, match="Input is not invertible"):
        with tn.GradientTape() as tape:
            tape.watch(x)
            y = tn.linalg.det(x)
        evaluate(tape.gradient(y, x))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("order", [2, 3, *ORDERS])
def test_gradients_of_determinants_near_zero(evaluate, order, dtype):
    """One pivot has few right digits; the adjugate, which the gradient is, does not need them."""
    a = turned(RNG.normal(size=(4, order, order)), dtype)
    a[..., -1, :] = 0.7 * a[..., :-1, :].sum(-2)
    a = ((a + 50 * np.finfo(dtype).eps * RNG.normal(size=a.shape)) / np.sqrt(order)).astype(dtype)
    wide = a.astype("complex128")
    u, s, v = np.linalg.svd(wide)
    others = np.stack([np.delete(s, i, -1).prod(-1) for i in range(order)], axis=-1)
    turn = np.linalg.det(u) * np.linalg.det(v)
    wanted = np.conj(turn)[:, None, None] * (u * others[:, None, :]) @ v
    x = tn.constant(a)
    with tn.GradientTape() as tape:
        tape.watch(x)
        y = tn.real(tn.linalg.det(x))
    found = evaluate(tape.gradient(y, x))
    tolerance = order * (1e-5 if dtype == "float32" else 1e-12) * np.abs(wanted).max((-1, -2))
    assert (np.abs(found - wanted).max((-1, -2)) <= tolerance).all()
