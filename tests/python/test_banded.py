# SPDX-License-Identifier: Apache-2.0
"""Matrices of a few diagonals through tn.linalg: formats of the diagonals, vectors, large and hard
systems, bits; and what LU factors are for. Single operations: tests/cases/linalg_banded.py."""

import numpy as np
import pytest

import treenail as tn
from linear_operators import tridiagonal

RNG = np.random.default_rng(29)
DTYPES = ["float32", "float64", "complex64", "complex128"]


def numbers(dtype, *shape):
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if dtype.startswith("complex") else x).astype(dtype)


def compact(dtype, *shape):
    d = numbers(dtype, *shape[:-1], 3, shape[-1])
    d[..., 1, :] += 4
    return d


def formats(d):
    """The same matrices in each format."""
    above, main, below = d[..., 0, :], d[..., 1, :], d[..., 2, :]
    return {"compact": [d], "matrix": [tridiagonal(d)],
            "sequence": [(above, main, below), [above[..., :-1], main, below[..., 1:]]]}


def close(dtype):
    return dict(rtol=2e-4, atol=2e-5) if dtype in ("float32", "complex64") else dict(
        rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5,), (1,), (2,), (3, 4), (0,), (2, 0)])
def test_formats_of_diagonals(evaluate, shape, dtype):
    d, rhs = compact(dtype, *shape), numbers(dtype, *shape, 2)
    x, y = np.linalg.solve(tridiagonal(d), rhs), tridiagonal(d) @ rhs
    for name, forms in formats(d).items():
        for form in forms:
            for pivoting in (True, False):
                found = tn.linalg.tridiagonal_solve(form, rhs, name, partial_pivoting=pivoting)
                np.testing.assert_allclose(evaluate(found), x, **close(dtype))
            np.testing.assert_allclose(
                evaluate(tn.linalg.tridiagonal_matmul(form, rhs, name)), y, **close(dtype))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_right_sides_transposed_conjugated_and_vectors(evaluate, dtype):
    d, rhs = compact(dtype, 3, 4), numbers(dtype, 3, 4, 2)
    turned = np.swapaxes(rhs, -1, -2)
    near = lambda x, y: np.testing.assert_allclose(evaluate(x), y, atol=1e-12)  # noqa: E731
    solve = tn.linalg.tridiagonal_solve
    plain, conjugate = (np.linalg.solve(tridiagonal(d), b) for b in (rhs, rhs.conj()))
    near(solve(d, turned, transpose_rhs=True), plain)
    near(solve(d, turned, transpose_rhs=True, conjugate_rhs=True), conjugate)
    near(solve(d, rhs, conjugate_rhs=True), conjugate)
    vector = rhs[..., 0]
    near(solve(d, vector), plain[..., 0])
    near(solve(d, vector, transpose_rhs=True, conjugate_rhs=True), conjugate[..., 0])
    near(solve((d[..., 0, :], d[..., 1, :], d[..., 2, :]), vector, "sequence"), plain[..., 0])


def test_diagonals_of_unknown_shape(evaluate):
    d, rhs = compact("float64", 3, 4), numbers("float64", 3, 4, 2)
    wanted = np.linalg.solve(tridiagonal(d), rhs)
    for ranks in (True, False):
        for name, forms in formats(d).items():
            for form in forms:
                parts = [np.asarray(p) for p in (form if name == "sequence" else [form])]
                fed = [tn.placeholder(tn.float64, [None] * p.ndim if ranks else None)
                       for p in parts]
                right = tn.placeholder(tn.float64, [None] * 3 if ranks else None)
                x = tn.linalg.tridiagonal_solve(fed if name == "sequence" else fed[0], right, name)
                feeds = dict(zip(fed, parts))
                feeds[right] = rhs
                np.testing.assert_allclose(evaluate(x, feeds), wanted, atol=1e-12)


@pytest.mark.parametrize("given, format, words", [
    (np.ones((2, 3)), "compact", "3 rows"), (np.ones(3), "compact", "at least 2 dimensions"),
    (np.ones((2, 3)), "matrix", "to be the same"), (np.ones((3, 3)), "dense", "must be one of"),
    ([np.ones(3), np.ones(3)], "sequence", "sequence of length 3"),
    ([np.ones(1), np.ones(3), np.ones(3)], "sequence", "the superdiagonal to have 2 or 3"),
    ([np.ones(3), np.ones(3), np.ones(4)], "sequence", "the subdiagonal to have 2 or 3")])
def test_diagonals_of_wrong_shape(given, format, words):
    with pytest.raises(ValueError, match=words):
        tn.linalg.tridiagonal_solve(given, np.ones((3, 1)), format)


def residual(d, x, rhs):
    """In double precision, relative to |A| |x| + |rhs|."""
    d, x, rhs = (a.astype("complex128") for a in (d, x, rhs))
    terms = np.zeros((4,) + x.shape, x.dtype)
    terms[0] = d[1][:, None] * x
    terms[1, :-1] = d[0, :-1, None] * x[1:]
    terms[2, 1:] = d[2, 1:, None] * x[:-1]
    terms[3] = -rhs
    return np.abs(terms.sum(0)).max() / np.abs(terms).sum(0).max()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["random", "graded", "poisson", "small pivots"])
def test_large_and_hard_systems_have_small_residuals(evaluate, kind, dtype):
    n = 20012
    d = numbers(dtype, 3, n)
    if kind == "graded":
        d *= (10.0 ** -np.linspace(0, 8, n)).astype(d.real.dtype)
    elif kind == "poisson":
        d[0], d[1], d[2] = -1, 2, -1
    elif kind == "small pivots":
        d[1, ::2] = 1e-20
        d[0, ::2] += 4  # pairs of rows, hardly coupled, for otherwise solutions grow
        d[2, 1::2] += 4
        d[0, 1::2] *= 0.1
        d[2, ::2] *= 0.1
    rhs = numbers(dtype, n, 3)
    x = evaluate(tn.linalg.tridiagonal_solve(d, rhs))
    # Elimination is in double precision, the result is rounded once.
    assert residual(d, x, rhs) <= 64 * np.finfo(dtype).eps


def test_against_banded_routines_of_scipy(evaluate):
    linalg = pytest.importorskip("scipy.linalg")
    n = 3001
    d, rhs = compact("float64", n), numbers("float64", n, 2)
    banded = np.zeros((3, n))
    banded[0, 1:], banded[1], banded[2, :-1] = d[0, :-1], d[1], d[2, 1:]
    np.testing.assert_allclose(evaluate(tn.linalg.tridiagonal_solve(d, rhs)),
                               linalg.solve_banded((1, 1), banded, rhs), rtol=1e-10, atol=1e-12)
    lower = numbers("float64", 4, n) + np.array([[6.0], [0], [0], [0]])
    stored = np.stack([np.roll(row, -r) for r, row in enumerate(lower)])
    np.testing.assert_allclose(evaluate(tn.linalg.banded_triangular_solve(lower, rhs)),
                               linalg.solve_banded((3, 0), stored, rhs), rtol=1e-10, atol=1e-12)


# Up to order 16 and 32 columns one system per lane of a vector, others by themselves.
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order, columns", [(1, 1), (2, 32), (15, 33), (16, 3), (16, 32), (17, 2)])
def test_short_and_long_systems(evaluate, order, columns, dtype):
    d, rhs = compact(dtype, 13, order), numbers(dtype, 13, order, columns)
    d[:, 1, ::2] *= d.real.dtype.type(1e-3)  # small pivots
    d[:, 2, 1::2] += 4
    d[:, 0, ::2] += 4
    d[:, 1, -1] += 4
    a = tridiagonal(d).astype("complex128")
    near = lambda x, y: np.testing.assert_allclose(  # noqa: E731
        evaluate(x), y, atol=64 * np.finfo(dtype).eps * np.abs(y).max())
    near(tn.linalg.tridiagonal_solve(d, rhs), np.linalg.solve(a, rhs))
    near(tn.linalg.tridiagonal_matmul(d, rhs), a @ rhs)
    band = numbers(dtype, 2, 1, min(order, 3), order)
    band[:, :, 0] += 4
    lower = np.stack([sum(np.diag(row[r:], -r) for r, row in enumerate(bands))
                      for bands in band[:, 0]])[:, None].astype("complex128")
    near(tn.linalg.banded_triangular_solve(band, rhs), np.linalg.solve(lower, rhs[None]))
    near(tn.linalg.banded_triangular_solve(band, rhs, adjoint=True),
         np.linalg.solve(lower.conj().swapaxes(-1, -2), rhs[None]))


@pytest.mark.parametrize("order", [7, 40])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_bits_do_not_depend_on_threads_or_place(threads, order, dtype):
    d, rhs = compact(dtype, 999, order), numbers(dtype, 999, order, 3)
    band = numbers(dtype, 999, 3, order)
    band[:, 0] += 4
    functions = [lambda i: tn.linalg.tridiagonal_solve(d[i], rhs[i]),
                 lambda i: tn.linalg.tridiagonal_solve(d[i], rhs[i], partial_pivoting=False),
                 lambda i: tn.linalg.tridiagonal_matmul(d[i], rhs[i]),
                 lambda i: tn.linalg.banded_triangular_solve(band[i], rhs[i], adjoint=True)]
    with tn.eager():
        for function in functions:
            whole = function(slice(None)).numpy()
            for i in (0, 500, 998):
                np.testing.assert_array_equal(function(i).numpy(), whole[i])


@pytest.mark.parametrize("order", [5, 40])
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_spoil_their_own_system_alone(evaluate, bad, order, dtype):
    d, rhs = compact(dtype, 3, order), numbers(dtype, 3, order, 2)
    for function, place in ((tn.linalg.tridiagonal_solve, (1, 1, 2)),
                            (tn.linalg.tridiagonal_solve, (1, 0, 2)),
                            (tn.linalg.tridiagonal_solve, (1, 2, 2)),
                            (tn.linalg.tridiagonal_matmul, (1, 1, 2)),
                            (tn.linalg.banded_triangular_solve, (1, 1, 2))):
        band = d[:, [1, 0, 2]] if function is tn.linalg.banded_triangular_solve else d
        clean = evaluate(function(band, rhs))
        spoilt = band.copy()
        spoilt[place] = bad
        x = evaluate(function(spoilt, rhs))
        np.testing.assert_array_equal(x[[0, 2]], clean[[0, 2]])
        assert not np.array_equal(x[1], clean[1])


@pytest.mark.parametrize("order", [5, 40])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_first_singular_system_is_named(evaluate, order, dtype):
    d, rhs = compact(dtype, 7, 3, order), numbers(dtype, 7, 3, order, 2)
    d[4, 1:, :, order // 2] = 0
    d[4, 1:, :, order // 2 + 1] = 0  # two columns that have but one element
    words = r"not invertible.* The first such matrix is \[4,1\] of the batch \[7,3\]"
    for pivoting in (True, False):
        with pytest.raises(tn.errors.InvalidArgumentError, match=words):
            evaluate(tn.linalg.tridiagonal_solve(d, rhs, partial_pivoting=pivoting))
    band = compact(dtype, 3, order)[:, ::2] + 4
    band[1, 0, order // 2] = 0
    with pytest.raises(tn.errors.InvalidArgumentError, match=r"is \[1\] of the batch \[3\]"):
        evaluate(tn.linalg.banded_triangular_solve(band, rhs))


def test_what_is_ignored_has_no_gradient():
    d, rhs = compact("float64", 4), numbers("float64", 4, 1)
    d[0, -1] = d[2, 0] = np.nan
    with tn.Graph().as_default(), tn.Session() as session:
        fed = tn.constant(d)
        (gradient,) = tn.gradients(tn.linalg.tridiagonal_solve(fed, rhs), [fed])
        (second,) = tn.gradients(tn.reduce_sum(gradient * gradient), [fed])
        for g in session.run([gradient, second]):
            assert g[0, -1] == 0 and g[2, 0] == 0 and np.isfinite(g).all()


# --- Some of the diagonals ------------------------------------------------------------------------

def test_diagonals_beside_the_main_one(evaluate):
    x = RNG.normal(size=(2, 3, 4))
    for diag, part, put in ((tn.matrix_diag, tn.matrix_diag_part, tn.matrix_set_diag),
                            (tn.linalg.diag, tn.linalg.diag_part, tn.linalg.set_diag)):
        for k in (-2, -1, 0, 1, 3):
            own = np.diagonal(x, k, 1, 2)
            np.testing.assert_array_equal(evaluate(part(x, k=k)), own)
            np.testing.assert_array_equal(evaluate(diag(own[0], k=k)), np.diag(own[0], k))
            changed = evaluate(put(x, own + 1, k=k))
            np.testing.assert_array_equal(changed - x > 0.5, np.eye(3, 4, k) * np.ones(x.shape))
        bands = evaluate(part(x, k=(-1, 1), padding_value=7))
        assert bands.shape == (2, 3, 3) and (bands[:, 2, 2] == 7).all()
        whole = evaluate(diag(bands, k=(-1, 1), num_rows=3, num_cols=4, padding_value=-1.0))
        near = np.abs(np.subtract.outer(np.arange(3), np.arange(4))) <= 1
        np.testing.assert_array_equal(whole, np.where(near, x, -1))
        assert evaluate(diag([1, 2])).tolist() == [[1, 0], [0, 2]]
    with pytest.raises(tn.errors.InvalidArgumentError, match="out of bound"):
        tn.linalg.diag_part(x, k=9)


# --- LU factors -----------------------------------------------------------------------------------

@pytest.mark.parametrize("known", ["known", "extents unknown", "rank unknown"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_what_lu_factors_are_for(evaluate, batch, dtype, known):
    a = numbers(dtype, *batch, 5, 5)
    factors, perm = evaluate(list(tn.linalg.lu(a)))
    fed = {}

    def given(x):
        if known == "known":
            return tn.constant(x)
        tensor = tn.placeholder(x.dtype.name,
                                None if known == "rank unknown" else [None] * x.ndim)
        fed[tensor] = x
        return tensor
    lower_upper, order = given(factors), given(perm)
    near = lambda x, y: np.testing.assert_allclose(  # noqa: E731
        evaluate(x, fed), y, rtol=1e-2 if dtype in ("float32", "complex64") else 1e-8,
        atol=1e-3 if dtype in ("float32", "complex64") else 1e-9)
    for checked in (False, True):
        near(tn.linalg.lu_reconstruct(lower_upper, order, validate_args=checked), a)
        near(tn.linalg.lu_matrix_inverse(lower_upper, order, validate_args=checked),
             np.linalg.inv(a))
        for shape in (batch + (5, 2), (5, 1), (4, *[1] * len(batch), 5, 2)):
            rhs = numbers(dtype, *shape)
            near(tn.linalg.lu_solve(lower_upper, order, given(rhs), validate_args=checked),
                 np.linalg.inv(a) @ rhs)


def test_gradients_through_lu_factors():
    a, rhs = numbers("float64", 4, 4), numbers("float64", 4, 2)
    with tn.Graph().as_default(), tn.Session() as session:
        fed = tn.constant(a)
        factors, perm = tn.linalg.lu(fed)
        losses = [tn.linalg.lu_solve(factors, perm, rhs), tn.linalg.solve(fed, rhs),
                  tn.linalg.lu_matrix_inverse(factors, perm), tn.linalg.inv(fed)]
        found = session.run([tn.gradients(tn.reduce_sum(x * x), [fed])[0] for x in losses])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-8)
    np.testing.assert_allclose(found[2], found[3], rtol=1e-8)


@pytest.mark.parametrize("call, words", [
    (lambda: tn.linalg.lu_reconstruct(np.ones((2, 3)), [0, 1]), "`lower_upper` must be square"),
    (lambda: tn.linalg.lu_reconstruct(np.ones(3), [0, 1]), "at least 2 dimensions"),
    (lambda: tn.linalg.lu_reconstruct(np.eye(3), [0, 1]), "compatible shapes"),
    (lambda: tn.linalg.lu_reconstruct(np.ones((2, 3, 3)), [0, 1, 2]), "compatible shapes"),
    (lambda: tn.linalg.lu_solve(np.eye(3), [0, 1, 2], np.ones((2, 1))), "as many rows"),
    (lambda: tn.linalg.lu_solve(np.eye(3), [0, 1, 2], np.ones(3)), "at least 2 dimensions")])
def test_factors_of_wrong_shape(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_orders_that_are_none(evaluate):
    with pytest.raises(tn.errors.InvalidArgumentError, match="`perm` must hold permutations"):
        evaluate(tn.linalg.lu_solve(np.eye(2), tn.placeholder_with_default([1, 1], [2]),
                                    np.ones((2, 1)), validate_args=True))
    with pytest.raises(tn.errors.InvalidArgumentError):
        evaluate(tn.linalg.lu_solve(np.eye(2), [0, 2], np.ones((2, 1))))
