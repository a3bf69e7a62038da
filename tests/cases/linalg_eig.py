# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/linalg_eig.cc. Oracle: numpy.linalg.eig, in the order and with the lengths
and phases that the op states.

Orders: by Eigen, or by LAPACK (from 48 on).
"""

import numpy as np

from harness import COMPLEX, T, op

RNG = np.random.default_rng(31)
FORWARD_ONLY = {"grad": 0}
ROUGH = {"grad": 0, "ulps": 8192.0}  # vectors are as exact as eigenvalues are far apart
SMALL = [((), 1), ((), 2), ((2,), 3), ((), 4)]
EMPTY = [((), 0), ((0,), 3), ((3,), 0)]
LARGE = [((7,), 1), ((5, 2), 8), ((2,), 16), ((2,), 17), ((), 50)]
WIDE = {"complex64": "complex64", "float32": "complex64", "float64": "complex128",
        "complex128": "complex128"}


def normalized(v):
    v = v / np.linalg.norm(v, axis=-2, keepdims=True)
    size = np.abs(v)
    first = np.argmax(size >= 0.99 * size.max(-2, keepdims=True), -2)
    chosen = np.take_along_axis(v, first[..., None, :], -2)
    return v * np.conj(chosen) / np.abs(chosen)


def eig(a, Tout, compute_v=True):
    wide = a.astype("complex128")
    if a.size == 0:
        return [wide.sum(-1), wide if compute_v else np.zeros((0,), "complex128")]
    e, v = np.linalg.eig(wide)
    order = np.lexsort((e.imag, e.real.round(9)))
    e = np.take_along_axis(e, order, -1)
    v = np.take_along_axis(normalized(v), order[..., None, :], -1)
    return [e, v if compute_v else np.zeros((0,), "complex128")]


cases = op("Eig", eig, grad=2, norm=True, ulps=512.0, grad_tolerance=1e-5, slack=1e-12)
for dtype, wide in WIDE.items():
    for shapes, options in ((SMALL, {}), (EMPTY, FORWARD_ONLY), (LARGE, ROUGH)):
        for batch, n in shapes:
            a = RNG.normal(size=batch + (n, n)) / max(n, 1) ** 0.5
            if dtype in COMPLEX:
                a = a + 1j * RNG.normal(size=a.shape) / max(n, 1) ** 0.5
            a = a + 2 * np.diag(np.arange(n))  # eigenvalues well apart
            for vectors in (True, False):
                cases.case(T(a), Tout=wide, compute_v=vectors,
                           options=dict(options, dtypes=(dtype,)))
kind = dict(Tout="complex64")
cases.error("InvalidArgument", r"Input matrix must be square, input has shape \[2,3\]", (2, 3), **kind)
cases.error("InvalidArgument", "rank", (3,), **kind)
cases.error("InvalidArgument", "complex128 does not go with float32", (2, 2), Tout="complex128")
for n in (3, 50):
    for bad in (np.nan, np.inf):
        spoilt = np.stack([np.eye(n)] * 3)
        spoilt[1, 0, n - 1] = bad
        for dtype in ("float32", "complex128"):
            cases.error(
                "InvalidArgument",
                r"Eigen decomposition was not successful. The input might not be valid. "
                r"The first such matrix is \[1\] of the batch \[3\]",
                T(spoilt), Tout=WIDE[dtype], on=dtype)
