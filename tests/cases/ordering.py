# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/ordering.cc. Oracle: NumPy's sorts."""

import numpy as np

from harness import EVERYTHING, REALS, T, op, rand, spaced


def top_k(x, k, sorted=True):
    order = np.argsort(-x.astype(np.float64), -1, kind="stable")[..., : int(k)]
    return [np.take_along_axis(x, order, -1), order.astype(np.int32)]


NAN = T([1.0, np.nan, 3.0, np.nan, np.inf, -np.inf])
op("TopK", top_k, dtypes=REALS, grad=2).case(spaced((4, 9)), 3).case(spaced((7,)), 7).case(
    spaced((2, 3, 5)), np.int64(1)
).case(spaced((3, 4)), 0).case((0, 3), 2).case(T([3, 1, 3, 2, 3]), 4, options={"grad": 0}).case(
    spaced((2, 5)), 2, sorted=False
).case(
    (60, 1000), 37, options={"dtypes": ("float32", "int32"), "grad": 0}
).error(
    "InvalidArgument", "input must have at least k columns. Had 3, needed 4", (2, 3), 4
).error(
    "InvalidArgument", "Need k >= 0, got -1", (2, 3), -1
).error(
    "InvalidArgument", "rank at least 1", (), 1
)
op("InTopK", lambda p, t, k: in_top_k(p, t, int(k)), dtypes=("float32",), grad=0).case(
    T([[0.1, 0.5, 0.4], [0.2, 0.2, 0.6], [np.nan, 1.0, 0.0], [1.0, 2.0, 3.0], [np.inf, 1.0, 0.0]]),
    np.array([2, 0, 1, 7, 1], np.int32),
    2,
).case((6, 5), np.array([0, 1, 2, 3, 4, -1]), np.int64(3)).error(
    "InvalidArgument", "length of targets", (2, 3), np.array([0], np.int32), 1
)


def in_top_k(predictions, targets, k):
    out = []
    for row, target in zip(predictions, targets):
        known = 0 <= target < len(row) and np.isfinite(row).all()
        out.append(bool(known and (row > row[target]).sum() < k))
    return np.array(out)


op("Where", np.argwhere, dtypes=EVERYTHING, static_shape=False, domain=(0, 1.4)).case(
    rand((3, 4), -1, 1)
).case(T(1)).case(T(0)).case((0, 3)).case(T([[0, 1], [1, 0], [1, 1]])).case(T([True, False])).case(
    T([0.0, -0.0, np.nan, np.inf, 1e-45]), options={"dtypes": ("float32", "float64")}
)


def unique(x, out_idx="int32"):
    return unique_with_counts(x, out_idx)[:2]


def unique_with_counts(x, out_idx="int32"):
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return [values[order], place[inverse].astype(out_idx), counts[order].astype(out_idx)]


repeated = rand((300,), -9, 9)
for name, oracle in (("Unique", unique), ("UniqueWithCounts", unique_with_counts)):
    op(name, oracle, dtypes=EVERYTHING, static_shape=False).case(T([2, 1, 2, 3, 1, 1])).case(
        (300,)
    ).case((0,)).case(repeated, out_idx="int64").error(
        "InvalidArgument", "x must have rank 1", (2, 2)
    )


def list_diff(x, y, out_idx="int32"):
    kept = np.array([not (value == y).any() for value in x], bool)
    return [x[kept], np.flatnonzero(kept).astype(out_idx)]


op("ListDiff", list_diff, dtypes=EVERYTHING, static_shape=False).case(
    T([1, 2, 3, 2, 5, 3]), T([3, 1, 9])
).case((0,), T([1])).case(T([4, 4]), (0,), out_idx="int64").case(repeated, rand((20,), -9, 9)).case(
    T([0.0, np.nan, 1.0, -0.0]), T([-0.0, np.nan]), options={"dtypes": ("float32", "float64")}
).error("InvalidArgument", "x must have rank 1", (2, 2), T([1])).error(
    "InvalidArgument", "y must have rank 1", T([1]), (2, 2)
)
