# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/linalg_banded.cc. Oracle: numpy.linalg on dense matrices that are written
from the definition of each diagonal. Large systems beside SciPy: tests/python/test_banded.py.

What lies beyond a matrix is NaN, for it is never read.
"""

import numpy as np

from harness import COMPLEX, REAL_FLOATS, T, op

precise = dict(norm=True, ulps=64.0, grad=2)
RNG = np.random.default_rng(23)
FORWARD_ONLY = {"grad": 0}
# Batch, order, columns of rhs.
SHAPES = [((), 1, 1), ((), 2, 3), ((3,), 3, 1), ((2, 2), 4, 2), ((), 7, 1)]
EMPTY = [((), 0, 2), ((0,), 3, 1), ((2,), 4, 0)]
LARGE = [((), 301, 1), ((5, 31), 17, 2), ((900,), 3, 1)]


def numbers(dtypes, shape):
    a = RNG.uniform(-1, 1, shape)
    return a + 1j * RNG.uniform(-1, 1, shape) if dtypes is COMPLEX else a


def bands(dtypes, batch, first, last, n, diagonal):
    """Diagonals `first`, ... `last` of matrices, the main one around `diagonal`."""
    result = numbers(dtypes, batch + (first - last + 1, n))
    result[..., first, :] += diagonal
    beyond = np.arange(n) + first - np.arange(first - last + 1)[:, None]
    return np.where((beyond >= 0) & (beyond < n), result, np.nan)


def dense(diagonals, first):
    """Matrices whose row j has diagonals[r, j] in column j + first - r."""
    count, n = diagonals.shape[-2:]
    result = np.zeros(diagonals.shape[:-2] + (n, n), diagonals.dtype)
    for r in range(count):
        for j in range(n):
            if 0 <= j + first - r < n:
                result[..., j, j + first - r] = diagonals[..., r, j]
    return result


def H(a):
    return np.conj(np.swapaxes(a, -1, -2))


def each_shape(cases, make):
    """Every shape in every dtype: make(dtypes, batch, n, k) gives inputs and attributes."""
    for dtypes in (REAL_FLOATS, COMPLEX):
        for shapes, options in ((SHAPES, {}), (EMPTY, FORWARD_ONLY), (LARGE, FORWARD_ONLY)):
            for batch, n, k in shapes:
                for inputs, attrs in make(dtypes, batch, n, k):
                    cases.case(*map(T, inputs), options=dict(options, dtypes=dtypes), **attrs)
    return cases


def tridiagonal_systems(dtypes, batch, n, k):
    rhs = numbers(dtypes, batch + (n, k))
    for pivoting in (True, False):
        yield [bands(dtypes, batch, 1, -1, n, 3), rhs], {"partial_pivoting": pivoting}
    if n > 1:  # small pivots, which rows have to be exchanged for
        diagonals = bands(dtypes, batch, 1, -1, n, 0)
        diagonals[..., 1, ::2] *= 1e-3
        diagonals[..., 2, 1::2] += 3
        diagonals[..., 0, : n - 1 : 2] += 3
        if n % 2:
            diagonals[..., 1, -1] += 3
        yield [diagonals, rhs], {}


tridiagonal = each_shape(
    op(
        "TridiagonalSolve",
        lambda diagonals, rhs, partial_pivoting=True: np.linalg.solve(dense(diagonals, 1), rhs),
        **precise
    ),
    tridiagonal_systems,
)
tridiagonal.error("InvalidArgument", r"Expected 3 diagonals of each matrix, got 2", (2, 4), (4, 1))
tridiagonal.error("InvalidArgument", "rank at least 2", (3, 4), (4,))
beside = r"Expected the same leading dimensions .*: diagonals has shape \[%s\], rhs \[%s\]"
tridiagonal.error("InvalidArgument", beside % ("3,4", "5,1"), (3, 4), (5, 1))
tridiagonal.error("InvalidArgument", beside % ("2,3,4", "3,4,1"), (2, 3, 4), (3, 4, 1))
tridiagonal.error("InvalidArgument", beside % ("2,3,4", "4,1"), (2, 3, 4), (4, 1))

# Zero on the diagonal: rows that are exchanged, and what is singular in the first, a middle and the
# last row.
swap = np.stack([[1.0, 2.0, 9.0], [0.0, 0.0, 3.0], [9.0, 1.0, 5.0]])
tridiagonal.case(T(swap), (3, 2), options={"dtypes": REAL_FLOATS + COMPLEX})
words = r"The matrix is not invertible\."
pivots = r"The matrix is either not invertible, or requires pivoting. Try setting partial_pivoting"
tridiagonal.error("InvalidArgument", pivots, T(swap), (3, 2), partial_pivoting=False)
for place in range(3):
    singular = np.stack([[0.0] * 3, [1.0] * 3, [0.0] * 3])
    singular[1, place] = 0
    batch = T(np.stack([swap, singular, singular, swap]).reshape(2, 2, 3, 3))
    for dtype in ("float32", "complex128"):
        tridiagonal.error("InvalidArgument", words + r"(?! The first)", T(singular), (3, 1), on=dtype)
        tridiagonal.error(
            "InvalidArgument",
            words + r" The first such matrix is \[0,1\] of the batch \[2,2\]",
            batch,
            (2, 2, 3, 1),
            on=dtype,
        )
tridiagonal.error("InvalidArgument", words, T([[0.0], [0.0], [0.0]]), (1, 1))


def products(dtypes, batch, n, k):
    rows = bands(dtypes, batch, 1, -1, n, 0)
    yield [rows[..., i : i + 1, :] for i in range(3)] + [numbers(dtypes, batch + (n, k))], {}


def product(above, diagonal, below, rhs):
    return dense(np.concatenate([above, diagonal, below], -2), 1) @ rhs


multiplied = each_shape(op("TridiagonalMatMul", product, **precise), products)
multiplied.error(
    "InvalidArgument", "Expected 1 diagonals of each matrix, got 3: superdiag", (3, 4), (1, 4), (1, 4), (4, 1)
)
multiplied.error("InvalidArgument", "subdiag has shape", (1, 4), (1, 4), (1, 3), (4, 1))
multiplied.error("InvalidArgument", "rank at least 2", (4,), (1, 4), (1, 4), (4, 1))


def triangles(dtypes, batch, n, k):
    for count in (1, 2, 3) if n != 3 else (5,):  # the last one: more bands than the matrix has
        for lower in (True, False):
            for adjoint in (True, False):
                first, last = (0, 1 - count) if lower else (count - 1, 0)
                matrix = bands(dtypes, batch, first, last, n, 3)
                yield [matrix, numbers(dtypes, batch + (n, k))], {"lower": lower, "adjoint": adjoint}


def substituted(matrix, rhs, lower=True, adjoint=False):
    whole = dense(matrix, 0 if lower else matrix.shape[-2] - 1)
    if whole.ndim != rhs.ndim:
        batch = np.broadcast_shapes(whole.shape[:-2], rhs.shape[:-2])
        whole = np.broadcast_to(whole, batch + whole.shape[-2:])
        rhs = np.broadcast_to(rhs, batch + rhs.shape[-2:])
    return np.linalg.solve(H(whole) if adjoint else whole, rhs)


banded = each_shape(op("BandedTriangularSolve", substituted, **precise), triangles)
for dtypes in (REAL_FLOATS, COMPLEX):
    for left, right in (((), (3,)), ((2, 1), (3,)), ((3,), ()), ((2, 1, 2), (3, 1))):
        for lower in (True, False):
            matrix = bands(dtypes, left, 0 if lower else 1, -1 if lower else 0, 4, 3)
            rhs = numbers(dtypes, right + (4, 2))
            banded.case(T(matrix), T(rhs), lower=lower, options={"dtypes": dtypes})
banded.error("InvalidArgument", r"Input matrix and rhs are incompatible.*\[2,4\], rhs \[3,1\]", (2, 4), (3, 1))
banded.error("InvalidArgument", "Expected at least one band", (0, 4), (4, 1))
banded.error("InvalidArgument", r"Incompatible shapes: \[2\] vs\. \[3\]", (2, 1, 4), (3, 4, 1))
banded.error("InvalidArgument", "rank at least 2", (2, 4), (4,))
hole = np.ones((3, 2, 4))
hole[1, 0, 2] = hole[1, 1, 2] = 0
for lower in (True, False):
    for dtype in ("float64", "complex64"):
        banded.error(
            "InvalidArgument",
            r"Input matrix is not invertible\. The first such matrix is \[1\] of the batch \[3\]",
            T(hole),
            (2, 3, 4, 1),
            on=dtype,
            lower=lower,
        )
        banded.error(
            "InvalidArgument", r"Input matrix is not invertible\.(?! The)", T(hole[1]), (4, 1), on=dtype, lower=lower
        )
