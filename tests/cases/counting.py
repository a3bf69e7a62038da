# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/counting.cc. Oracle: NumPy's bincount, histogram, digitize and sort."""

import numpy as np

from harness import REALS, T, op, rand, spaced

COUNTED = ("int32", "int64", "float32", "float64")


def i32(*values):
    return np.array(values, np.int32)


def bincount(arr, size, weights):
    size = int(size)
    kept = arr.ravel() < size
    given = weights.ravel()[kept] if weights.size else np.ones(kept.sum())
    out = np.zeros(size, weights.dtype)
    np.add.at(out, arr.ravel()[kept], given.astype(weights.dtype))
    return out


NUMBERS = i32(1, 4, 1, 0, 9, 4, 4)
op("Bincount", bincount, dtypes=COUNTED).case(NUMBERS, i32(6)[0], T([])).case(
    NUMBERS, i32(6)[0], (7,)
).case(NUMBERS.reshape(7, 1), i32(10)[0], (7, 1)).case(NUMBERS, i32(0)[0], T([])).case(
    np.zeros((0, 2), np.int32), i32(3)[0], (0, 2)
).case(i32(5)[0], i32(6)[0], ()).error(
    "InvalidArgument", r"must be non-negative, but arr\[1\] is -2", i32(1, -2, -3), i32(3)[0], T([])
).error("InvalidArgument", "size must be >= 0, got -1", NUMBERS, i32(-1)[0], T([])).error(
    "InvalidArgument", r"weights must have the shape of arr, \[7\], or be empty", NUMBERS, i32(3)[0], (3,)
).error("InvalidArgument", "size must be a scalar|rank 0", NUMBERS, i32(3), T([]))


def histogram(values, value_range, nbins, dtype="int32"):
    low, high = value_range.astype(np.float64)
    inside = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    clipped = np.clip(inside.astype(np.float64).ravel(), low, high)
    return np.histogram(clipped, int(nbins), (low, high))[0].astype(dtype)


RANGE = T([0, 8])
op("HistogramFixedWidth", histogram, dtypes=COUNTED).case(
    T([-1, 0, 1, 1, 3, 7, 8, 100]), RANGE, i32(4)[0]
).case(T([[1, 2], [5, 6]]), RANGE, i32(8)[0], dtype="int64").case((0,), RANGE, i32(3)[0]).case(
    T(5), RANGE, i32(1)[0]
).case(
    T([np.nan, np.inf, -np.inf, 1.0]), RANGE, i32(2)[0], options={"dtypes": ("float32", "float64")}
).case(
    T([-3e38, 3e38, 0.1]), T([-3.2e38, 3.2e38]), i32(4)[0], options={"dtypes": ("float32",)}
).error("InvalidArgument", r"value_range\[0\] < value_range\[1\]", (3,), T([2, 2]), i32(2)[0]).error(
    "InvalidArgument", "finite", (3,), T([0, np.inf]), i32(2)[0]
).error("InvalidArgument", "nbins must be positive, got 0", (3,), RANGE, i32(0)[0]).error(
    "InvalidArgument", "value_range must have 2 elements, got 3", (3,), T([0, 1, 2]), i32(2)[0]
)


def bucketize(x, boundaries):
    return np.digitize(x.astype(np.float64), np.float32(boundaries)).astype(np.int32)


op("Bucketize", bucketize, dtypes=COUNTED).case(
    T([[-5, 10000], [150, 10], [5, 100]]), boundaries=[0.0, 10.0, 100.0]
).case((40, 30), boundaries=[-0.5, 0.0, 0.0, 0.75]).case((3,), boundaries=[]).case(
    (0, 2), boundaries=[1.0]
).case(
    T([np.inf, -np.inf, -0.0]), boundaries=[0.0, 1.0], options={"dtypes": ("float32", "float64")}
).error(
    "InvalidArgument", "Expected sorted boundaries: 1 follows 2", (3,), boundaries=[0.0, 2.0, 1.0]
)


def nth_element(x, n, reverse=False):
    n = int(n)
    return np.sort(x, -1)[..., -1 - n if reverse else n]


op("NthElement", nth_element, dtypes=REALS, grad=2).case(spaced((4, 9)), i32(3)[0]).case(
    spaced((2, 3, 5)), i32(0)[0], reverse=True
).case(spaced((7,)), i32(6)[0]).case((0, 3), i32(1)[0]).case(
    T([[3, 1, 3, 2], [2, 2, 2, 2]]), i32(2)[0], options={"grad": 0}
).case(rand((300, 70), -9, 9), i32(35)[0], options={"grad": 0}).case(
    T([1.0, np.nan, -np.inf]), i32(1)[0], options={"dtypes": ("float32", "float64"), "grad": 0}
).error(
    "InvalidArgument", "input must have more than n = 4 columns, got 4", (3, 4), i32(4)[0]
).error("InvalidArgument", "n must be >= 0, got -1", (3, 4), i32(-1)[0]).error(
    "InvalidArgument", "rank at least 1", (), i32(0)[0]
)
