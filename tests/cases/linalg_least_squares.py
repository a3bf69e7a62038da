# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/linalg_least_squares.cc. Oracle: numpy.linalg.pinv, and numpy.linalg.solve
of the normal equations where there is a regularizer.

Longer sides: by Eigen, or by LAPACK (from 20 on).
"""

import numpy as np

from harness import COMPLEX, REAL_FLOATS, T, no_gradient_case, op

RNG = np.random.default_rng(37)
FORWARD_ONLY = {"grad": 0}
SMALL = [((), 1, 1, 1), ((), 4, 2, 3), ((2,), 2, 4, 1), ((), 3, 3, 2)]
EMPTY = [((), 0, 3, 2), ((), 3, 0, 2), ((2,), 3, 2, 0), ((0,), 3, 2, 2)]
LARGE = [((7,), 9, 5, 2), ((3,), 5, 9, 3), ((2,), 50, 30, 4), ((), 30, 50, 4)]


def numbers(dtypes, shape):
    a = RNG.uniform(-1, 1, shape)
    return a + 1j * RNG.uniform(-1, 1, shape) if dtypes is COMPLEX else a


def least_squares(a, b, regularizer, fast=True):
    m, n = a.shape[-2:]
    if 0 in a.shape:
        return np.zeros(a.shape[:-2] + (n, b.shape[-1]), a.dtype)
    adjoint = np.conj(np.swapaxes(a, -1, -2))
    if not fast or regularizer == 0:
        return np.linalg.pinv(a) @ b
    if m >= n:
        return np.linalg.solve(adjoint @ a + regularizer * np.eye(n), adjoint @ b)
    return adjoint @ np.linalg.solve(a @ adjoint + regularizer * np.eye(m), b)


cases = op("MatrixSolveLs", least_squares, grad=2, wrt=(0, 1), norm=True, ulps=2048.0,
           grad_tolerance=1e-5)
for dtypes in (REAL_FLOATS, COMPLEX):
    for shapes, options in ((SMALL, {}), (EMPTY, FORWARD_ONLY), (LARGE, FORWARD_ONLY)):
        for batch, m, n, k in shapes:
            a = numbers(dtypes, batch + (m, n)) + 2 * np.eye(m, n)
            b = numbers(dtypes, batch + (m, k))
            for regularizer, fast in ((0.0, True), (0.25, True), (0.25, False)):
                cases.case(T(a), T(b), np.float64(regularizer), fast=fast,
                           options=dict(options, dtypes=dtypes))
flat = np.outer([1.0, -2, 3, 1], [2.0, 1, -1])  # of rank 1 in any dtype
cases.case(T(flat), T(numbers(REAL_FLOATS, (4, 2))), np.float64(0), fast=False, options=FORWARD_ONLY)
zero = np.float64(0)
cases.error("InvalidArgument", r"matrix and rhs are incompatible: matrix has shape \[2,3\], rhs \[3,1\]",
            (2, 3), (3, 1), zero)
cases.error("InvalidArgument", "rank", (3,), (3, 1), zero)
cases.error("InvalidArgument", "rank", (3, 2), (3, 1), np.zeros(1))
cases.error("InvalidArgument", r"l2_regularizer must be >= 0, got -1", (3, 2), (3, 1), np.float64(-1))
for n in (3, 50):
    hole = np.stack([np.eye(n)] * 3)
    hole[2, 0, 0] = 0
    cases.error("InvalidArgument", r"Input matrix was rank deficient or ill-conditioned. Try setting "
                r"fast=False or provide a larger l2_regularizer > 0. The first such matrix is \[2\] of "
                r"the batch \[3\]", T(hole), T(np.ones((3, n, 1))), zero)

no_gradient_case("AsPseudoInverse", "of a matrix and its own pseudoinverse alone: "
                 "tests/python/test_linalg.py::test_gradients_of_pseudoinverses_with_equal_singular_values")
cases = op("AsPseudoInverse", lambda a, inverse: inverse)
for dtypes in (REAL_FLOATS, COMPLEX):
    for shape in ((3, 2), (2, 2, 4), (0, 2, 2), (0, 3)):
        inverse = numbers(dtypes, shape[:-2] + (shape[-1], shape[-2]))
        cases.case(T(numbers(dtypes, shape)), T(inverse), options=dict(FORWARD_ONLY, dtypes=dtypes))
cases.error("InvalidArgument", r"inverse of shape \[3,2\] is none of matrix of shape \[3,2\]", (3, 2),
            (3, 2))
cases.error("InvalidArgument", "rank", (3, 2), (3,))
