# SPDX-License-Identifier: Apache-2.0
"""Functions of matrices and eigenvalues of general ones: matrices that are hard to work on, what is
out of range, the names. Single operations: tests/cases/matrix_functions.py and linalg_eig.py."""

import numpy as np
import pytest

import treenail as tn

scipy_linalg = pytest.importorskip("scipy.linalg")
scipy_special = pytest.importorskip("scipy.special")
RNG = np.random.default_rng(5)
ORDERS = [8, 24, 60]  # one per lane or by Eigen, by Eigen, and from 32 or 48 on by LAPACK
DTYPES = ["float32", "float64", "complex64", "complex128"]
FUNCTIONS = {"expm": tn.linalg.expm, "sqrtm": tn.linalg.sqrtm, "logm": tn.linalg.logm}
ORACLES = {"expm": scipy_linalg.expm, "sqrtm": scipy_linalg.sqrtm, "logm": scipy_linalg.logm}


def wide(x):
    return x.astype("complex128")


def turned(n):
    """An orthogonal matrix."""
    return np.linalg.qr(RNG.normal(size=(n, n)))[0]


def graded(n):
    scales = 10.0 ** -np.linspace(0, 3, n)
    return scales[:, None] * (RNG.normal(size=(n, n)) / n + np.eye(n)) * scales


HARD = {
    "hilbert": lambda n: scipy_linalg.hilbert(n) + np.eye(n),
    "wilkinson": lambda n: (np.tril(-np.ones((n, n)), -1) + 4 * np.eye(n)) / 4,
    "toeplitz": lambda n: scipy_linalg.toeplitz(0.9 ** np.arange(n)),
    "skew": lambda n: (lambda a: (a - a.T) / n)(RNG.normal(size=(n, n))),
    "clustered": lambda n: np.eye(n) + 1e-9 * RNG.normal(size=(n, n)),
    "defective": lambda n: (lambda q: q @ (np.eye(n) + 0.5 * np.eye(n, k=1)) @ q.T)(turned(n)),
    "graded": graded,
}


def hard(kind, n, dtype):
    a = HARD[kind](n).astype(dtype)
    if dtype.startswith("complex"):
        turn = np.exp(1j * RNG.uniform(0, 6, n))
        a = (turn[:, None] * a * turn.conj()).astype(dtype)
    return a


@pytest.mark.parametrize("order", [16] + ORDERS)
@pytest.mark.parametrize("kind", sorted(HARD))
@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_hard_matrices(evaluate, kind, order, dtype):
    a = hard(kind, order, dtype)
    eps = np.finfo(dtype).eps
    found = wide(evaluate(tn.linalg.expm(a)))
    wanted = scipy_linalg.expm(wide(a))
    assert np.abs(found - wanted).max() <= 8 * order * eps * np.abs(wanted).max()
    if kind == "skew":  # eigenvalues may lie on the negative axis; roots of what is away from it
        a = (a + np.eye(order)).astype(dtype)
    root = wide(evaluate(tn.linalg.sqrtm(a)))
    size = np.linalg.norm(root, 2) ** 2
    assert np.linalg.norm(root @ root - wide(a), 2) <= 8 * order * eps * size
    logarithm = wide(evaluate(tn.linalg.logm(a)))
    back = scipy_linalg.expm(logarithm)
    # What the logarithm's rounding does to its exponential.
    growth = np.linalg.norm(logarithm, 2) * max(1, np.linalg.norm(a, 2)) * np.linalg.cond(wide(a))
    assert np.linalg.norm(back - wide(a), 2) <= 8 * order * eps * max(1, growth)


def jordan(values):
    """f of a Jordan block, from f's Taylor coefficients at the eigenvalue."""
    return sum(c * np.eye(len(values), k=k) for k, c in enumerate(values))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("lower", [False, True])
def test_jordan_blocks_have_exact_functions(evaluate, lower, dtype):
    n, x = 12, 0.5
    k = np.arange(n)
    wanted = {
        "expm": np.exp(x) / scipy_special.factorial(k),
        "sqrtm": scipy_special.binom(0.5, k) * x ** (0.5 - k),
        "logm": np.r_[np.log(x), -(-1.0) ** k[1:] / (k[1:] * x ** k[1:])],
    }
    block = jordan([x, 1] + [0] * (n - 2)).astype(dtype)
    for name, values in wanted.items():
        exact = jordan(values)
        found = evaluate(FUNCTIONS[name](block.T if lower else block))
        found = found.T if lower else found
        np.testing.assert_allclose(found, exact, rtol=3e-13, atol=1e-14, err_msg=name)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_exponentials_at_the_ends_of_the_range(evaluate, dtype):
    def exp(rows):
        return evaluate(tn.linalg.expm(np.array(rows, dtype)))
    for n in (1, 3, 30):
        zero = np.zeros((n, n), dtype)
        np.testing.assert_array_equal(evaluate(tn.linalg.expm(zero)), np.eye(n))
    np.testing.assert_array_equal(exp([[0, 1e200], [0, 0]]), [[1, 1e200], [0, 1]])
    e = np.exp(1)
    np.testing.assert_allclose(exp([[1, 1e200], [0, 1]]), [[e, e * 1e200], [0, e]], rtol=1e-14)
    np.testing.assert_allclose(exp([[1, 0], [1e200, 1]]), [[e, 0], [e * 1e200, e]], rtol=1e-14)
    np.testing.assert_array_equal(exp([[-1e308, 1e307], [1e307, -1e308]]), np.zeros((2, 2)))
    np.testing.assert_array_equal(exp(np.diag([1e308, -1e308])), np.diag([np.inf, 0]))
    assert not np.isfinite(exp([[1e308, 1e308], [1e308, 1e308]])).any()
    turn = 1000 * np.pi / 3
    np.testing.assert_allclose(exp([[0, -turn], [turn, 0]]),
                               [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]],
                               atol=1e-10)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_what_overflows_stops_no_squarings_of_the_rest(evaluate, order, dtype):
    """Elements are right, infinite or NaN."""
    block = np.zeros((order, order), dtype)
    block[0, 1] = block[1, 0] = 2000
    block[2, 2] = 1
    found = evaluate(tn.linalg.expm(block))
    assert not np.isfinite(found[:2, :2]).any()
    assert np.isnan(found[2, 2]) or abs(found[2, 2] - np.e) < 1e-10
    triangle = np.diag(np.r_[1000.0, np.ones(order - 1)]).astype(dtype) + np.eye(order, k=1)
    for x in (triangle, triangle.T):
        np.testing.assert_allclose(np.diag(evaluate(tn.linalg.expm(x)))[1:], np.e, rtol=1e-14)


@pytest.mark.parametrize("order", [1, 2, 3, 8, 16, 24])
@pytest.mark.parametrize("dtype", DTYPES)
def test_exponentials_do_not_depend_on_neighbours_that_need_other_steps(evaluate, order, dtype):
    """Nothing to do, triangles of both kinds, no squarings, many, out of range, no numbers."""
    ones, a = np.ones((order, order)), RNG.normal(size=(order, order))
    kinds = [0 * ones, np.diag(np.arange(order)), 1e30 * np.triu(ones), np.tril(a), 1e-9 * a, a,
             30 * a, 1e30 * (ones - order * np.eye(order)), 1e30 * a, np.nan * ones, np.inf * a]
    kinds += [hard(kind, order, dtype) for kind in sorted(HARD)] * 2
    batch = np.stack([x.astype(dtype) for x in kinds])
    found = evaluate(tn.linalg.expm(batch))
    for i, x in enumerate(batch):
        np.testing.assert_array_equal(evaluate(tn.linalg.expm(x)), found[i])


def test_roots_and_logarithms_that_there_are_not(evaluate):
    """Those are NaN; of complex matrices with negative eigenvalues there are some."""
    negative = np.diag([-4.0, 2])
    nilpotent = np.array([[0.0, 1], [0, 0]])
    rotation = np.array([[0.0, -1], [1, 0]])
    fine = np.diag([4.0, 9])
    q = turned(2)
    batch = np.stack([negative, q @ negative @ q.T, nilpotent, rotation, fine, -np.eye(2)])
    for dtype in ("float32", "float64"):
        roots = evaluate(tn.linalg.sqrtm(batch.astype(dtype)))
        assert np.isnan(roots[[0, 1, 2, 5]]).all()
        np.testing.assert_allclose(roots[4], np.diag([2, 3]))
        np.testing.assert_allclose(roots[3] @ roots[3], rotation, atol=1e-6)
        logs = evaluate(tn.linalg.logm(batch.astype(dtype)))
        assert np.isnan(logs[[0, 1, 2, 5]]).all()
        np.testing.assert_allclose(logs[3], np.pi / 2 * rotation, atol=1e-6)
    complex_batch = batch.astype("complex128")
    roots = evaluate(tn.linalg.sqrtm(complex_batch))
    assert np.isnan(roots[2]).all()
    rest = [0, 1, 3, 4, 5]
    np.testing.assert_allclose((roots @ roots)[rest], complex_batch[rest], atol=1e-14)
    logs = evaluate(tn.linalg.logm(complex_batch))
    assert np.isnan(logs[2]).all()
    np.testing.assert_allclose(logs[0], np.diag([np.log(4) + np.pi * 1j, np.log(2)]), atol=1e-14)
    np.testing.assert_array_equal(evaluate(tn.linalg.sqrtm(np.zeros((3, 3)))), np.zeros((3, 3)))


def test_logarithms_where_eigenvalues_are_opposite(evaluate):
    """b = -r a: log b - log a lies where the inverse hyperbolic tangent has its cut."""
    angles = RNG.uniform(-np.pi, np.pi, 200)
    a, b = np.exp(1j * angles), -RNG.uniform(0.5, 2, 200) * np.exp(1j * angles)
    upper = np.zeros((200, 2, 2), "complex128")
    upper[:, 0, 0], upper[:, 1, 1], upper[:, 0, 1] = a, b, 1
    wanted = (np.log(b) - np.log(a)) / (b - a)
    for order in (2, 20):
        batch = np.tile(np.eye(order, dtype="complex128"), (200, 1, 1))
        batch[:, :2, :2] = upper
        logarithm = evaluate(tn.linalg.logm(batch))
        np.testing.assert_allclose(logarithm[:, 0, 1], wanted, rtol=1e-13)
        root = evaluate(tn.linalg.sqrtm(batch))
        np.testing.assert_allclose(root @ root, batch, atol=1e-13)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@pytest.mark.parametrize("order", ORDERS)
def test_nan_and_infinity_spoil_their_own_matrix_alone(evaluate, name, order):
    a = np.eye(order) + 0.1 * RNG.normal(size=(4, order, order)) / order ** 0.5
    clean = evaluate(FUNCTIONS[name](a))
    spoilt = a.copy()
    spoilt[1, 0, order - 1] = np.nan
    spoilt[2, order - 1, 0] = np.inf
    found = evaluate(FUNCTIONS[name](spoilt))
    assert np.isnan(found[1:3]).all()
    np.testing.assert_array_equal(found[[0, 3]], clean[[0, 3]])
    np.testing.assert_array_equal(evaluate(FUNCTIONS[name](a[3])), clean[3])


def test_triangular_matrices_keep_small_eigenvalues(evaluate):
    a = np.array([[1e300, 1e10], [0, 1e-300]])
    for x, turn in ((a, lambda y: y), (a.T, np.transpose)):
        root = turn(evaluate(tn.linalg.sqrtm(x)))
        np.testing.assert_allclose(root, [[1e150, 1e-140], [0, 1e-150]], rtol=1e-14)
        logarithm = turn(evaluate(tn.linalg.logm(x)))
        np.testing.assert_allclose(np.diag(logarithm), np.log([1e300, 1e-300]), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives_agree_with_those_of_scipy(dtype):
    a, g = RNG.normal(size=(2, 5, 5))
    if dtype == "complex128":
        a, g = a + 1j * RNG.normal(size=(5, 5)), g + 1j * RNG.normal(size=(5, 5))
    for scale in (1e-3, 1, 10):
        x = a * scale
        with tn.Graph().as_default(), tn.Session() as session:
            fed = tn.constant(x)
            (gradient,) = tn.gradients(tn.linalg.expm(fed), [fed], [tn.constant(g)])
            found = session.run(gradient)
        wanted = scipy_linalg.expm_frechet(x.conj().T, g, compute_expm=False)
        np.testing.assert_allclose(found, wanted, atol=1e-12 * np.abs(wanted).max())


def test_gradients_where_eigenvalues_are_equal(evaluate):
    """Functions of matrices have them there, eigenvectors none."""
    x = tn.constant(2 * np.eye(3))
    slopes = {"expm": np.exp(2), "sqrtm": 0.5 / np.sqrt(2), "logm": 0.5}
    weights = np.arange(9.0).reshape(3, 3)
    for name, slope in slopes.items():
        with tn.GradientTape() as tape:
            tape.watch(x)
            y = FUNCTIONS[name](x) * weights
        np.testing.assert_allclose(evaluate(tape.gradient(y, x)), slope * weights, rtol=1e-13)
    with tn.GradientTape() as tape:
        tape.watch(x)
        y = tn.real(tn.linalg.eig(x)[1])
    assert np.isfinite(evaluate(tape.gradient(y, x))).all()


@pytest.mark.parametrize("order", [1, 2, 3, 5, 13, 16] + ORDERS)
@pytest.mark.parametrize("kind", sorted(HARD) + ["zero", "one", "rotations", "jordan", "normal"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues_and_vectors_of_hard_matrices(evaluate, kind, order, dtype):
    more = {"zero": np.zeros((order, order)), "one": np.ones((order, order)),
            "rotations": np.roll(np.eye(order), 1, 0), "jordan": np.eye(order, k=1),
            "normal": RNG.normal(size=(order, order))}
    a = more[kind].astype(dtype) if kind in more else hard(kind, order, dtype)
    e, v = evaluate(list(tn.linalg.eig(a)))
    narrow = dtype in ("float32", "complex64")
    assert e.dtype == v.dtype == ("complex64" if narrow else "complex128")
    e, v = wide(e), wide(v)
    eps = np.finfo(dtype).eps
    size = max(np.linalg.norm(a, 2), 1e-300)
    assert np.abs(wide(a) @ v - v * e).max() <= 8 * order * eps * size
    np.testing.assert_allclose(np.linalg.norm(v, axis=0), 1, atol=8 * eps)
    assert (np.diff(e.real) >= -32 * order * eps * size).all()
    first = np.argmax(np.abs(v) >= 0.99 * np.abs(v).max(0) * (1 + 4 * eps), 0)
    largest = v[first, np.arange(order)]
    assert (np.abs(largest.imag) <= 4 * eps).all() and (largest.real > 0).all()
    if not dtype.startswith("complex"):  # pairs, in this order, to the last bit
        pairs = e[e.imag != 0]
        np.testing.assert_array_equal(np.sort_complex(pairs), np.sort_complex(pairs.conj()))
    alone = wide(evaluate(tn.linalg.eigvals(a)))
    if kind not in ("defective", "jordan", "wilkinson"):  # whose eigenvalues rounding moves far
        np.testing.assert_allclose(alone, e, atol=64 * order * eps * max(size, 1))


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("order", [2, 8, 60])
def test_very_large_and_very_small_matrices(evaluate, order, dtype, scale):
    a = (2 * np.eye(order) + RNG.normal(size=(order, order)) / order).astype(dtype)
    if dtype == "complex128":
        a = a * (1 + 0.5j)
    e, v = evaluate(list(tn.linalg.eig(a)))
    of_scaled = evaluate(list(tn.linalg.eig(a * scale)))
    np.testing.assert_allclose(of_scaled[0], e * scale, rtol=1e-11)
    np.testing.assert_allclose(of_scaled[1], v, atol=1e-8)
    root = evaluate(tn.linalg.sqrtm(a))
    np.testing.assert_allclose(evaluate(tn.linalg.sqrtm(a * scale)), root * np.sqrt(scale),
                               atol=1e-13 * np.sqrt(scale))
    moved = evaluate(tn.linalg.logm(a)) + np.log(scale) * np.eye(order)
    np.testing.assert_allclose(evaluate(tn.linalg.logm(a * scale)), moved, atol=1e-11)


def test_values_that_rounding_orders_are_in_one_order(evaluate):
    """All eigenvalues of a skew-Hermitian matrix have the real part 0 but for rounding."""
    a = RNG.normal(size=(30, 30)) + 1j * RNG.normal(size=(30, 30))
    a = a - a.conj().T
    for x in (evaluate(tn.linalg.eig(a)[0]), evaluate(tn.linalg.eigvals(a))):
        assert (np.diff(x.imag) > 0).all()
        np.testing.assert_allclose(x, 1j * np.linalg.eigvalsh(-1j * a), atol=1e-12)


def test_functions_under_all_their_names(evaluate):
    a = np.array([[4.0, 1], [2, 3]])
    near = np.testing.assert_allclose
    for name, oracle in ORACLES.items():
        near(evaluate(FUNCTIONS[name](a)), oracle(a), rtol=1e-13, atol=1e-14)
    near(evaluate(tn.matrix_square_root(a)), scipy_linalg.sqrtm(a), rtol=1e-13)
    e, v = evaluate(list(tn.linalg.eig(a)))
    near(e, [2, 5], rtol=1e-14)
    near(v, np.array([[1, 1], [-2, 1]]) / np.sqrt([5, 2]) * [-1, 1], rtol=1e-14)
    near(evaluate(tn.linalg.eigvals(a.astype("float32"))), [2, 5], rtol=1e-6)


@pytest.mark.parametrize("order", [3, 8, 24])
@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues_do_not_depend_on_neighbours_that_need_other_steps(evaluate, order, dtype):
    """Shifts that stand still (a permutation), nothing to do (zero), one block, many."""
    kinds = [np.roll(np.eye(order), 1, 0), np.zeros((order, order)), np.eye(order, k=1)]
    kinds += [hard(kind, order, dtype) for kind in sorted(HARD)]
    batch = np.stack([x.astype(dtype) for x in kinds])
    e, v = evaluate(list(tn.linalg.eig(batch)))
    alone = evaluate(tn.linalg.eigvals(batch))
    for i, a in enumerate(batch):
        one = evaluate(list(tn.linalg.eig(a)))
        assert one[0].tobytes() == e[i].tobytes() and one[1].tobytes() == v[i].tobytes()
        np.testing.assert_array_equal(alone[i], evaluate(tn.linalg.eigvals(a)))
    spoilt = batch.copy()
    spoilt[2, 0, -1] = np.inf
    with pytest.raises(tn.errors.InvalidArgumentError, match=r"\[2\] of the batch"):
        evaluate(tn.linalg.eig(spoilt)[0])
