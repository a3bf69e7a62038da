# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/diagonal.cc. Oracle: NumPy."""

import numpy as np

from harness import EVERYTHING, op

moves = dict(dtypes=EVERYTHING, domain=(-9, 9), grad=2)


def diag(d):
    out = np.zeros((d.size, d.size), d.dtype)
    np.fill_diagonal(out, d.ravel())
    return out.reshape(d.shape * 2)


def diag_part(x):
    half = x.shape[: x.ndim // 2]
    size = int(np.prod(half))
    return x.reshape(size, size).diagonal().reshape(half)


op("Diag", diag, **moves).case((3,)).case((2, 3)).case((0,)).error(
    "InvalidArgument", "at most 16", (1,) * 17
).error("InvalidArgument", "rank at least 1", ())
op("DiagPart", diag_part, **moves).case((3, 3)).case((2, 3, 2, 3)).case((0, 0)).error(
    "InvalidArgument", "Input must have even and non-zero rank, input rank is 3", (1, 1, 1)
).error("InvalidArgument", "extents of axes 0 and 1 are 2 and 3", (2, 3))

op(
    "MatrixDiag",
    lambda d: np.where(np.eye(d.shape[-1], dtype=bool), d[..., None], np.zeros((), d.dtype)),
    **moves
).case((4,)).case((2, 3)).case((2, 0)).error("InvalidArgument", "rank at least 1", ())
op("MatrixDiagPart", lambda x: np.diagonal(x, axis1=-2, axis2=-1), **moves).case((3, 3)).case(
    (2, 3, 4)
).case((2, 4, 3)).case((0, 2, 2)).error("InvalidArgument", "rank at least 2", (3,))


def set_diag(x, d):
    out = x.copy()
    n = d.shape[-1]
    out[..., np.arange(n), np.arange(n)] = d
    return out


op("MatrixSetDiag", set_diag, **moves).case((3, 3), (3,)).case((2, 3, 4), (2, 3)).case(
    (2, 4, 3), (2, 3)
).error(
    "InvalidArgument",
    r"diagonal must have shape \[2,3\] for input of shape \[2,3,4\], got \[2,4\]",
    (2, 3, 4),
    (2, 4),
)


def band(x, lower, upper):
    rows, columns = np.indices(x.shape[-2:])
    keep = ((lower < 0) | (rows - columns <= lower)) & ((upper < 0) | (columns - rows <= upper))
    return np.where(keep, x, np.zeros((), x.dtype))


bands = op("MatrixBandPart", band, **moves)
for lower, upper in ((0, 0), (-1, 0), (0, -1), (1, 2), (-1, -1), (3, 0)):
    bands.case((3, 4), np.int64(lower), np.int64(upper)).case(
        (2, 5, 3), np.int32(lower), np.int32(upper)
    )
bands.error(
    "InvalidArgument",
    r"num_lower must be negative or less or equal to number of rows \(3\) got: 4",
    (3, 4),
    np.int64(4),
    np.int64(0),
)
