# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/matrix_functions.cc. Oracles, in complex128: powers of e by eigenvectors of
matrices that have well-conditioned ones (all here are normal or nearly so), and scipy.linalg where
it is there: tests/python/test_matrix_functions.py, with matrices that are hard to work on.

Orders: by Eigen, or by LAPACK (from 32 and 48 on).
"""

import numpy as np

from harness import COMPLEX, REAL_FLOATS, T, op

precise = dict(norm=True, ulps=256.0, grad_tolerance=3e-6)
RNG = np.random.default_rng(29)
FORWARD_ONLY = {"grad": 0}

SMALL = [((), 1), ((), 2), ((2,), 3), ((), 4)]
EMPTY = [((), 0), ((0,), 3), ((2, 0), 20), ((3,), 0)]
LARGE = [((19,), 1), ((37,), 2), ((5, 7), 8), ((9,), 16), ((2,), 17), ((2,), 33), ((), 64)]


def by_eigenvectors(function):
    def oracle(x):
        w, v = np.linalg.eig(x.astype("complex128"))
        y = v * function(w)[..., None, :] @ np.linalg.inv(v) if x.size else x
        return y.astype(x.dtype) if np.iscomplexobj(x) else y.real.astype(x.dtype)

    return oracle


def near_identity(dtypes, batch, n):
    """Eigenvalues in a disc about 1.5 of radius 1."""
    a = RNG.normal(size=batch + (n, n))
    if dtypes is COMPLEX:
        a = (a + 1j * RNG.normal(size=a.shape)) / np.sqrt(2)
    return 1.5 * np.eye(n) + 0.8 * a / np.sqrt(max(n, 3))


NAMES = {"MatrixExponential": np.exp, "MatrixSquareRoot": np.sqrt, "MatrixLogarithm": np.log}
for name, function in NAMES.items():
    cases = op(name, by_eigenvectors(function), grad=2, **precise)
    for dtypes in (REAL_FLOATS, COMPLEX):
        for shapes, options in ((SMALL, {}), (EMPTY, FORWARD_ONLY), (LARGE, FORWARD_ONLY)):
            for batch, n in shapes:
                a = near_identity(dtypes, batch, n)
                cases.case(T(a), options=dict(options, dtypes=dtypes))
    cases.error("InvalidArgument", r"Input matrix must be square, input has shape \[2,3\]", (2, 3))
    cases.error("InvalidArgument", "rank", (3,))
