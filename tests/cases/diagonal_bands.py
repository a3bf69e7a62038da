# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/diagonal_bands.cc. Oracle: element by element, and NumPy's diagonals."""

import numpy as np

from harness import EVERYTHING, T, op

moves = dict(dtypes=EVERYTHING, domain=(-9, 9), grad=2)


def bounds(k):
    k = np.atleast_1d(k)
    return int(k[0]), int(k[-1])


def part(x, k, padding):
    lower, upper = bounds(k)
    rows, columns = x.shape[-2:]
    longest = min(rows + min(upper, 0), columns - max(lower, 0))
    out = np.full(x.shape[:-2] + (upper - lower + 1, longest), padding, x.dtype)
    for r, d in enumerate(range(upper, lower - 1, -1)):
        own = np.diagonal(x, d, -2, -1)
        out[..., r, : own.shape[-1]] = own
    return out if lower < upper else out[..., 0, :]


def written(matrix, diagonal, k):
    """`matrix` with the diagonals, element by element."""
    lower, upper = bounds(k)
    out = matrix.copy()
    rows = diagonal if lower < upper else diagonal[..., None, :]
    for i, j in np.ndindex(*matrix.shape[-2:]):
        if lower <= j - i <= upper:
            out[..., i, j] = rows[..., upper - (j - i), min(i, j)]
    return out


def diag(diagonal, k, num_rows, num_cols, padding):
    lower, upper = bounds(k)
    batch = diagonal.shape[: -1 if lower == upper else -2]
    least = diagonal.shape[-1] - min(upper, 0), diagonal.shape[-1] + max(lower, 0)
    sides = [int(num_rows), int(num_cols)]
    if sides == [-1, -1]:
        sides = [max(least)] * 2
    sides = [m if n == -1 else n for m, n in zip(least, sides)]
    return written(np.full(batch + tuple(sides), padding, diagonal.dtype), diagonal, k)


i32 = np.int32
parts = op("MatrixDiagPartV2", part, **moves)
sets = op("MatrixSetDiagV2", lambda x, d, k: written(x, d, k), **moves)
for shape in ((4, 4), (2, 3, 5), (2, 5, 3), (1, 1), (0, 3, 3), (2, 2, 3, 4)):
    for k in (0, 1, -1, [0, 0], [-1, 1], [0, 2], [-2, -1], [-2, 2]):
        lower, upper = bounds(k)
        rows, columns = shape[-2:]
        if all(d == 0 or -rows < d < columns for d in (lower, upper)):
            parts.case(shape, np.array(k, i32), ())
            longest = min(rows + min(upper, 0), columns - max(lower, 0))
            count = (upper - lower + 1,) if lower < upper else ()
            sets.case(shape, shape[:-2] + count + (longest,), np.array(k, i32))
made = op("MatrixDiagV2", diag, **moves)
for shape, k, rows, columns in (
    ((3,), 0, -1, -1), ((2, 3), 1, -1, -1), ((2, 3), -2, -1, -1), ((3,), 0, 5, -1), ((3,), 0, 3, 5),
    ((2, 3, 4), [-1, 1], -1, -1), ((3, 3), [-1, 1], 3, 4), ((2, 3, 3), [-1, 1], 4, 3), ((0,), 0, -1, -1),
    ((2, 3), [0, 1], 3, 4), ((2, 3), [1, 1], -1, 4), ((2, 2), [-2, -1], 4, -1), ((0, 3), 0, -1, -1),
):
    made.case(shape, np.array(k, i32), i32(rows), i32(columns), ())
crossed = np.array([1, 0], i32)
out = r"lower_diag_index is out of bound: -3\. It must be between -3 and 4"
for cases, before, after in ((parts, [(3, 4)], [()]), (sets, [(3, 4), (1,)], [])):
    cases.error("InvalidArgument", "must not be larger than upper_diag_index: 1 > 0", *before, crossed, *after)
    cases.error("InvalidArgument", out, *before, i32(-3), *after)
    cases.error("InvalidArgument", "upper_diag_index is out of bound: 4", *before, np.array([0, 4], i32), *after)
    cases.error("InvalidArgument", "diag_index must be a scalar or vector", *before, np.zeros(3, i32), *after)
sets.error("InvalidArgument", r"diagonal must have shape \[2,3\] for input of shape \[3,4\], got \[3\]",
           (3, 4), (3,), np.array([0, 1], i32))
parts.error("InvalidArgument", "rank at least 2", (3,), i32(0), ())
for message, shape, k, rows, columns in (
    ("num_rows is too small: 2 < 3", (3,), 0, 2, -1), ("num_cols is too small: 3 < 4", (3,), 1, -1, 3),
    ("num_rows and num_cols are not consistent", (3,), 0, 4, 4),
    (r"number of diagonals provided .*: 3 and 2", (3, 3), [0, 1], -1, -1),
    ("rank at least 2", (3,), [0, 1], -1, -1),
):
    made.error("InvalidArgument", message, shape, np.array(k, i32), i32(rows), i32(columns), ())
# What a shorter diagonal leaves is not read.
beyond = [[1.0, 2.0, np.nan], [3.0, 4.0, 5.0], [6.0, 7.0, np.nan]]
made.case(T(beyond), np.array([-1, 1], i32), i32(-1), i32(-1), (), options={"dtypes": ("float32",), "grad": 0})
sets.case((3, 3), T(beyond), np.array([-1, 1], i32), options={"dtypes": ("float32",), "grad": 0})
