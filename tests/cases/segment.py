# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/segment.cc. Oracle: NumPy reductions of each segment's rows."""

import numpy as np

from harness import ALL_NUMBERS, FLOATS, INTS, OPS, REALS, T, ints, op, rand, spaced

SORTED = np.array([0, 0, 2, 2, 2, 4], np.int32)  # segments 1 and 3 are gaps
ANY_ORDER = np.array([3, 2, 0, 3, 0, 1], np.int64)
# One row belongs nowhere; of 5 segments, 2 and 4 are gaps.
LEFT_OUT = np.array([3, -1, 0, 3, 0, 1], np.int32)

# The lowest float32 is not the lowest of the oracle's float64; differences of such numbers
# overflow.
GAPS = {"dtypes": INTS + ("float64",), "grad": 0}


def by_segment(reduce, gap, count, data, ids):
    rows = data.reshape((ids.size,) + data.shape[ids.ndim :])
    out = np.full((count,) + rows.shape[1:], gap(data.dtype), data.dtype)
    for segment in range(count):
        mine = rows[ids.ravel() == segment]
        if len(mine):
            out[segment] = reduce(mine)
    return out


def total(rows):
    return rows.sum(0, dtype=rows.dtype)


def mean(rows):
    if rows.dtype.kind == "f":
        return rows.mean(0)
    sums = total(rows).astype(object)  # integers are divided toward zero
    return ((abs(sums) // len(rows)) * np.sign(sums)).astype(rows.dtype)


def constant(value):
    return lambda dtype: value


def bound(end):
    return lambda dtype: getattr(np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype), end)


def some(shape):
    return rand(shape, -4, 4)


# name, reduction of rows, gap when sorted and when not, data, dtypes
REDUCTIONS = [
    ("Sum", total, constant(0), constant(0), some, ALL_NUMBERS),
    (
        "Prod",
        lambda rows: rows.prod(0, dtype=rows.dtype),
        constant(1),
        constant(1),
        some,
        ALL_NUMBERS,
    ),
    ("Max", lambda rows: rows.max(0), constant(0), bound("min"), spaced, REALS),
    ("Min", lambda rows: rows.min(0), constant(0), bound("max"), spaced, REALS),
    ("Mean", mean, constant(0), None, some, REALS),
]


def of_sorted(reduce, gap):
    return lambda data, ids: by_segment(reduce, gap, int(ids[-1]) + 1 if ids.size else 0, data, ids)


def of_unsorted(reduce, gap):
    return lambda data, ids, count: by_segment(reduce, gap, int(count), data, ids)


for name, reduce, sorted_gap, unsorted_gap, data, dtypes in REDUCTIONS:
    shared = dict(dtypes=dtypes, norm=True, half_ulps=2, ulps=8, grad_tolerance=1e-5)
    op("Segment" + name, of_sorted(reduce, sorted_gap), static_shape=False, **shared).case(
        data((6, 3)), SORTED
    ).case(data((6,)), SORTED).case(data((3, 2, 2)), np.array([0, 1, 1])).case(
        (0, 2), np.zeros(0, np.int32)
    ).case(
        (1, 0), np.array([2], np.int32)
    ).case(
        data((2000, 64)),
        np.sort(np.arange(2000, dtype=np.int32) * 7 % 90),
        options={"dtypes": ("float32", "int16"), "grad": 0, "slack": 1e-3},
    ).error(
        "InvalidArgument", "segment ids are not increasing", (3,), np.array([0, 2, 1], np.int32)
    ).error(
        "InvalidArgument",
        r"segment ids must be >= 0: segment_ids\[0\] = -1",
        (2,),
        np.array([-1, 0]),
    ).error(
        "InvalidArgument",
        "the first extent of data and the length of segment_ids",
        (2,),
        np.array([0, 1, 2]),
    )
    if unsorted_gap is None:
        continue
    op("UnsortedSegment" + name, of_unsorted(reduce, unsorted_gap), **shared).case(
        data((6, 3)), ANY_ORDER, 4
    ).case(data((6,)), ANY_ORDER, 4).case(
        data((2, 3, 2)), np.array([[1, 0, 1], [0, -1, 1]], np.int32), 2
    ).case(
        data((6, 2)), LEFT_OUT, 5, options=GAPS
    ).case(
        (0, 2), np.zeros(0, np.int32), 2, options=GAPS
    ).case(
        (3,), np.array([0, 0, 0], np.int32), np.int64(1)
    ).case(
        (3, 2), np.array([-1, -1, -1], np.int32), 0
    ).case(
        (0, 2), np.zeros(0, np.int64), np.int64(0)
    ).case(
        data((2000, 64)),
        ints((2000,), 0, 90),
        90,
        options={"dtypes": ("float32", "int16"), "grad": 0, "slack": 1e-3},
    ).error(
        "InvalidArgument",
        r"segment_ids\[1\] = 3 is not in \[0, 3\)",
        (2,),
        np.array([0, 3], np.int32),
        3,
    ).error(
        "InvalidArgument", "num_segments must be >= 0, got -1", (2,), np.array([0, 1], np.int32), -1
    ).error(
        "InvalidArgument",
        r"does not start with segment_ids.shape = \[3\]",
        (2,),
        np.array([0, 1, 2], np.int32),
        3,
    )

# Zeros in a product leave its gradient to the others.

OPS["SegmentProd"].case(T([2.0, 0.0, 3.0, 0.0, 0.0, 5.0]), np.array([0, 0, 0, 1, 1, 1], np.int32))
OPS["UnsortedSegmentProd"].case(
    T([2.0, 0.0, 3.0, 0.0, 0.0, 5.0]), np.array([1, 1, 1, 0, 0, 0], np.int32), 2
)
for name in ("Max", "Min"):
    OPS["UnsortedSegment" + name].case(
        T([1.0, np.inf, -np.inf, np.nan, 2.0]),
        np.array([0, 1, 2, 3, 3], np.int32),
        4,
        options={"dtypes": ("float32", "float64"), "grad": 0},
    )


def sparse(reduce):
    def call(data, indices, ids):
        count = int(ids[-1]) + 1 if len(ids) else 0
        return by_segment(reduce, constant(0), count, data[indices], ids)

    return call


CHOSEN = np.array([5, 0, 0, 3, 1, 5], np.int64)
for name, reduce in (
    ("Sum", lambda rows: rows.sum(0)),
    ("Mean", lambda rows: rows.mean(0)),
    ("SqrtN", lambda rows: rows.sum(0) / np.sqrt(len(rows))),
):
    op(f"SparseSegment{name}", sparse(reduce), dtypes=FLOATS, grad=2, static_shape=False, ulps=8).case(
        some((7, 3)), CHOSEN, SORTED
    ).case(some((6,)), CHOSEN.astype(np.int32), SORTED.astype(np.int64)).case(
        some((8, 2, 5)), CHOSEN[:1], SORTED[:1]
    ).case((4, 3), CHOSEN[:0], SORTED[:0]).case(
        some((500, 70)), np.arange(3000) * 7 % 500, np.arange(3000) // 9, options={"grad": 0, "norm": True}
    ).error(
        "InvalidArgument", r"indices\[1\] = 4 is not in \[0, 4\)", (4, 3), np.array([0, 4]), SORTED[:2]
    ).error(
        "InvalidArgument", r"indices\[0\] = -1 is not in \[0, 4\)", (4, 3), np.array([-1]), SORTED[:1]
    ).error(
        "InvalidArgument", "segment ids are not increasing", (4, 3), np.array([0, 1]), np.array([1, 0])
    ).error(
        "InvalidArgument", "lengths of indices and segment_ids", (4, 3), np.array([0, 1]), np.array([1])
    ).error("InvalidArgument", "rank at least 1", (), np.array([0]), np.array([0]))
