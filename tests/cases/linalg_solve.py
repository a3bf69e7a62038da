# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/linalg_solve.cc. Oracle: numpy.linalg, which computes in double precision,
and elimination written out.

Orders: one matrix per vector lane (up to 16), one by one by Eigen, by LAPACK (from some 64 on).
"""

import numpy as np

from harness import COMPLEX, OPS, REAL_FLOATS, T, op

precise = dict(norm=True, ulps=64.0)
RNG = np.random.default_rng(17)

# Batch and order; the larger ones without gradients.
SMALL = [((), 1), ((), 2), ((3,), 3), ((2, 2), 2), ((), 5)]
EMPTY = [((), 0), ((0,), 3), ((2, 0), 20), ((3,), 0)]
LARGE = [((19,), 1), ((37,), 3), ((5, 7), 8), ((33,), 7), ((9,), 16), ((2,), 17), ((3,), 33), ((2,), 64), ((), 101)]
FORWARD_ONLY = {"grad": 0}
ALONE = r"(?! The first)"


def H(a):
    return np.conj(np.swapaxes(a, -1, -2))


def numbers(dtypes, shape):
    a = RNG.uniform(-1, 1, shape)
    return a + 1j * RNG.uniform(-1, 1, shape) if dtypes is COMPLEX else a


def square(dtypes, batch, n):
    """Well-conditioned matrices whose rows are out of order: each column has one large element."""
    a = numbers(dtypes, batch + (n, n)) / max(n, 1)
    return a + 2 * np.roll(np.eye(n), n // 2, axis=0)


def positive(dtypes, batch, n):
    a = numbers(dtypes, batch + (n, n))
    return a @ H(a) / max(n, 1) + np.eye(n)


def each_matrix(cases, make):
    """Every shape in every dtype: make(dtypes, batch, n) gives inputs and attributes."""
    for dtypes in (REAL_FLOATS, COMPLEX):
        for shapes, options in ((SMALL, {}), (EMPTY, FORWARD_ONLY), (LARGE, FORWARD_ONLY)):
            for batch, n in shapes:
                for inputs, attrs in make(dtypes, batch, n):
                    literals = [T(x) for x in inputs]
                    cases.case(*literals, options=dict(options, dtypes=dtypes), **attrs)
    return cases


def lower_triangle_alone(dtypes, batch, n):
    """NaN in the triangle that is not read."""
    a = positive(dtypes, batch, n)
    if n < 5:
        yield [a], {}
    else:
        yield [np.where(np.tri(n, dtype=bool), a, np.nan)], {}


def cholesky(a):
    whole = np.where(np.tri(a.shape[-1], dtype=bool), a, np.conj(np.swapaxes(a, -1, -2)))
    return np.linalg.cholesky(whole)


NOT_SQUARE = r"Input matrix must be square, %s has shape \[2,3\]"

factors = op("Cholesky", cholesky, grad=2, hermitian=True, grad_tolerance=3e-6, **precise)
each_matrix(factors, lower_triangle_alone)
factors.error("InvalidArgument", NOT_SQUARE % "input", (2, 3)).error("InvalidArgument", "rank", (3,))
unsuccessful = r"Cholesky decomposition was not successful. The input might not be valid\."
for n in (2, 20, 70):
    hole = np.eye(n)
    hole[n - 1, n - 1] = 0
    missing = np.eye(n)
    missing[n - 1, 0] = np.nan
    negative = -np.eye(n)
    for bad in (hole, missing, negative):
        factors.error("InvalidArgument", unsuccessful + ALONE, T(bad))
        factors.error(
            "InvalidArgument",
            unsuccessful + r" The first such matrix is \[1,2\] of the batch \[2,4\]",
            T(np.stack([np.stack([np.eye(n)] * 4), np.stack([np.eye(n)] * 2 + [bad] * 2)])),
            on="complex128" if n > 2 else "float64",
        )


def eliminated(a):
    """Partial pivoting on one matrix: L and U in one, and the order of the rows."""
    a, n = a.copy(), a.shape[-1]
    order = np.arange(n, dtype=np.int32)
    for k in range(n):
        pivot = k + int(np.argmax(np.abs(a[k:, k])))
        a[[k, pivot]], order[[k, pivot]] = a[[pivot, k]], order[[pivot, k]]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a, order


def lu(a, output_idx_type="int32"):
    results = [eliminated(matrix) for matrix in a.reshape((-1,) + a.shape[-2:])] if a.size else []
    whole = np.array([r[0] for r in results], a.dtype).reshape(a.shape)
    order = np.array([r[1] for r in results], output_idx_type).reshape(a.shape[:-1])
    return whole, order


each_matrix(
    op("Lu", lu, grad=2, grad_tolerance=3e-6, **precise),
    lambda dtypes, batch, n: [
        ([square(dtypes, batch, n)], {"output_idx_type": "int64"} if n % 2 else {})
    ],
).error("InvalidArgument", NOT_SQUARE % "input", (2, 3))


def solved(matrix, rhs, adjoint=False):
    return np.linalg.solve(H(matrix) if adjoint else matrix, rhs)


def systems(dtypes, batch, n):
    for adjoint, columns in ((False, 1), (True, 3), (False, 40 if n > 5 else 2)):
        rhs = numbers(dtypes, batch + (n, columns))
        yield [square(dtypes, batch, n), rhs], {"adjoint": adjoint}


def triangles(dtypes, batch, n):
    for lower in (True, False):
        for adjoint, columns in ((False, 2), (True, 1), (True, 35 if n > 5 else 3)):
            a = numbers(dtypes, batch + (n, n)) / max(n, 1) + 2 * np.eye(n)
            if n > 5:
                a = np.where(np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T, a, np.nan)
            rhs = numbers(dtypes, batch + (n, columns))
            yield [a, rhs], {"lower": lower, "adjoint": adjoint}


def triangular(matrix, rhs, lower=True, adjoint=False):
    mask = np.tri(matrix.shape[-1], dtype=bool)
    return solved(np.where(mask if lower else mask.T, matrix, 0), rhs, adjoint)


solutions = each_matrix(op("MatrixSolve", solved, grad=2, **precise), systems)
substitutions = each_matrix(op("MatrixTriangularSolve", triangular, grad=2, **precise), triangles)
incompatible = r"Input matrix and rhs are incompatible: matrix has shape \[%s\], rhs \[%s\]"
for cases in (solutions, substitutions):
    cases.case(T(np.ones((3, 2, 2)) + np.eye(2)), (3, 2, 0), options=FORWARD_ONLY)
    cases.error("InvalidArgument", NOT_SQUARE % "matrix", (2, 3), (2, 1))
    cases.error("InvalidArgument", incompatible % ("2,2", "3,1"), (2, 2), (3, 1))
    cases.error("InvalidArgument", incompatible % ("2,2,2", "3,2,1"), (2, 2, 2), (3, 2, 1))
    cases.error("InvalidArgument", incompatible % ("2,2", "1,2,1"), (2, 2), (1, 2, 1))
    cases.error("InvalidArgument", "rank", (2, 2), (2,))

inverses = each_matrix(
    op("MatrixInverse", lambda a, adjoint=False: np.linalg.inv(H(a) if adjoint else a), grad=2, **precise),
    lambda dtypes, batch, n: [([square(dtypes, batch, n)], {"adjoint": n % 2 == 0})],
).error("InvalidArgument", NOT_SQUARE % "input", (2, 3))

for n in (3, 20, 70):
    singular = np.eye(n)
    singular[n - 1, n - 1] = 0
    batch = T(np.stack([np.eye(n), singular, singular]))
    place = r" The first such matrix is \[1\] of the batch \[3\]"
    for dtype in ("float32", "complex64"):
        for cases in (inverses, OPS["Lu"]):
            cases.error("InvalidArgument", r"Input is not invertible\." + ALONE, T(singular), on=dtype)
            cases.error("InvalidArgument", r"Input is not invertible\." + place, batch, on=dtype)
        for cases in (solutions, substitutions):
            rhs = T(np.ones((3, n, 2)))
            cases.error(
                "InvalidArgument", r"Input matrix is not invertible\." + place, batch, rhs, on=dtype
            )


def whole_matrices(dtypes, batch, n):
    yield [square(dtypes, batch, n)], {}


def determinant(a):
    """By elimination in long double: numpy.linalg.det goes through a logarithm, which costs digits."""
    exact = a.astype(np.clongdouble if a.dtype.kind == "c" else np.longdouble)
    results = np.ones(a.shape[:-2], exact.dtype)
    for i in np.ndindex(results.shape):
        if a[i].any(axis=-1).all():
            factors, order = eliminated(exact[i])
            parity = np.linalg.det(np.eye(len(order))[order])
            results[i] = np.prod(np.diag(factors)) * np.round(parity)
        else:
            results[i] = 0
    return results.astype(a.dtype)


def log_determinant(a):
    sign, log = np.linalg.slogdet(a)
    return sign, log.astype(a.dtype)


determinants = each_matrix(op("MatrixDeterminant", determinant, grad=2, **precise), whole_matrices)
logarithms = each_matrix(
    op("LogMatrixDeterminant", log_determinant, grad=2, slack=1e-6, **precise), whole_matrices
)
for cases in (determinants, logarithms):
    cases.error("InvalidArgument", NOT_SQUARE % "input", (2, 3))
    for n in (2, 20, 70):
        singular = np.zeros((2, n, n))
        singular[1] = np.eye(n)
        cases.case(T(singular), options=FORWARD_ONLY)
# In range, although products of the first pivots are not.
for n in (4, 20, 68):
    wide = np.diag([2.0**99] * (n // 2) + [2.0**-99] * (n // 2))
    determinants.case(T(wide), options=FORWARD_ONLY)
