# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/linalg_factors.cc. Oracle: numpy.linalg. QR factors are compared as they
are, for reflections leave no choice of signs; of eigenvalues and singular values the vectors do, and
what holds for them whatever the choice is in tests/python/test_linalg.py.

Orders: one matrix per vector lane (up to 16), one by one by Eigen or LAPACK.
"""

import numpy as np

from harness import COMPLEX, REAL_FLOATS, T, op

precise = dict(norm=True, ulps=128.0, grad_tolerance=3e-6)
RNG = np.random.default_rng(23)
FORWARD_ONLY = {"grad": 0}

SMALL = [((), 1, 1), ((), 3, 2), ((2,), 2, 3), ((), 4, 4)]
EMPTY = [((), 0, 0), ((), 0, 3), ((2,), 3, 0), ((0,), 3, 2)]
LARGE = [((37,), 1, 1), ((5, 7), 8, 8), ((19,), 7, 5), ((9,), 3, 16), ((2,), 16, 16), ((2,), 17, 17), ((3,), 33, 20), ((2,), 20, 33), ((), 101, 100)]


def numbers(dtypes, *shape):
    a = RNG.uniform(-1, 1, shape)
    return a + 1j * RNG.uniform(-1, 1, shape) if dtypes is COMPLEX else a


def each_shape(cases, attrs_of):
    for dtypes in (REAL_FLOATS, COMPLEX):
        for shapes, options in ((SMALL, {}), (EMPTY, FORWARD_ONLY), (LARGE, FORWARD_ONLY)):
            for batch, m, n in shapes:
                for attrs, more in attrs_of(m, n):
                    a = T(numbers(dtypes, *batch, m, n))
                    cases.case(a, options=dict(options, dtypes=dtypes, **more), **attrs)
    return cases


def qr(a, full_matrices=False):
    m, n = a.shape[-2:]
    k = m if full_matrices else min(m, n)
    q, r = np.zeros(a.shape[:-2] + (m, k), a.dtype), np.zeros(a.shape[:-2] + (k, n), a.dtype)
    for i in np.ndindex(a.shape[:-2]):
        q[i], r[i] = np.linalg.qr(a[i], "complete" if full_matrices else "reduced")
    return q, r


def full_or_not(m, n):
    """The gradient with full matrices is stated for those that are not tall, of known shape."""
    yield {}, {}
    yield {"full_matrices": True}, {"grad": 0} if m > n else {"unknown_gradient": False}


each_shape(op("Qr", qr, grad=2, **precise), full_or_not).error("InvalidArgument", "rank", (3,))


def values_alone(values):
    return [values, np.zeros((0,), values.dtype), np.zeros((0,), values.dtype)]


def singular_values(a, compute_uv=True, full_matrices=False):
    empty = np.zeros(a.shape[:-2] + (min(a.shape[-2:]),))
    values = np.linalg.svd(a, compute_uv=False) if a.size else empty
    return values_alone(values.astype(a.dtype))


each_shape(
    op("Svd", singular_values, grad=2, **precise),
    lambda m, n: [({"compute_uv": False, "full_matrices": m % 2 == 0}, {})],
).error("InvalidArgument", "rank", (3,))


def eigenvalues(a, compute_v=True):
    lower = np.where(np.tri(a.shape[-1], dtype=bool), a, 0)
    diagonal = np.eye(a.shape[-1]) * lower.real
    lower = np.where(np.eye(a.shape[-1], dtype=bool), 0, lower)
    whole = lower + np.conj(np.swapaxes(lower, -1, -2)) + diagonal
    values = np.linalg.eigvalsh(whole) if a.size else np.zeros(a.shape[:-1])
    return values_alone(values.astype(a.dtype))[:2]


symmetric = op("SelfAdjointEig", eigenvalues, grad=2, **precise)
for dtypes in (REAL_FLOATS, COMPLEX):
    for shapes, options in ((SMALL, {}), (EMPTY, FORWARD_ONLY), (LARGE, FORWARD_ONLY)):
        for batch, _, n in shapes:
            a = numbers(dtypes, *batch, n, n)
            if n > 4:  # the triangle that is not read
                a = np.where(np.tri(n, dtype=bool), a, np.nan)
            symmetric.case(T(a), compute_v=False, options=dict(options, dtypes=dtypes))
symmetric.error("InvalidArgument", r"Input matrix must be square, input has shape \[2,3\]", (2, 3))
for n in (3, 20):
    for bad in (np.nan, np.inf):
        spoilt = np.stack([np.eye(n)] * 3)
        spoilt[1, n - 1, 0] = bad
        for dtype in ("float32", "complex128"):
            symmetric.error(
                "InvalidArgument",
                r"Self-adjoint eigen decomposition was not successful. The input might not be valid. "
                r"The first such matrix is \[1\] of the batch \[3\]",
                T(spoilt),
                on=dtype,
            )
