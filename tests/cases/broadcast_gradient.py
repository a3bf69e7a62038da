# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/broadcast_gradient.cc. Oracle: where NumPy's broadcasting has stride 0."""

import numpy as np

from harness import PAIRS, op


def stretched(s0, s1):
    """Axes of the common shape that each operand lacks, or has extent 1 where the other has not."""
    shapes = [tuple(int(d) for d in s) for s in (s0, s1)]
    rank = max(len(s) for s in shapes)
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    results = []
    for own, other in ((0, 1), (1, 0)):
        axes = [
            axis
            for axis in range(rank)
            if padded[own][axis] == 1
            and (padded[other][axis] != 1 or axis < rank - len(shapes[own]))
        ]
        results.append(np.array(axes, s0.dtype))
    return results


INT = {"dtypes": ("int32",), "static_shape": False}
cases = op("BroadcastGradientArgs", stretched, **INT)
for a, b in PAIRS + [((1, 3), (3,)), ((1,), ()), ((2, 1), (1, 1))]:
    cases.case(np.array(a, np.int32), np.array(b, np.int32))
    cases.case(np.array(a, np.int64), np.array(b, np.int64))
cases.error("InvalidArgument", r"Incompatible shapes: \[2\] vs. \[3\]", [2], [3])


def kept(shape, axes):
    result = shape.copy()
    result[np.atleast_1d(axes)] = 1
    return result


op("ReducedShape", kept, dtypes=("int32",)).case([2, 3, 4], [1]).case([2, 3, 4], [-1, 0]).case(
    np.array([2, 3], np.int64), 1
).case(np.array([5], np.int64), np.array([], np.int64)).error(
    "InvalidArgument", r"reduction axis = 3 is not in \[-2, 2\)", [2, 3], [3]
).error(
    "InvalidArgument", "named twice", [2, 3], [1, 1]
)


def order(shape, axes):
    axes = [int(a) % len(shape) for a in np.atleast_1d(axes)]
    others = [i for i in range(len(shape)) if i not in axes]
    permutation = np.array(sorted(axes) + others, shape.dtype)
    flat = np.array([np.prod(shape[axes], dtype=np.int64)] + [shape[i] for i in others])
    return permutation, flat.astype(shape.dtype)


op("ReductionOrder", order, **INT).case([2, 3, 4], [1]).case([2, 3, 4], [-1, 0]).case(
    [2, 3, 4], []
).case(np.array([2, 0], np.int64), 1).case([5, 6], np.array([0, 1], np.int64)).error(
    "InvalidArgument", r"reduction axis = 3 is not in \[-2, 2\)", [2, 3], [3]
).error(
    "InvalidArgument", "named twice", [2, 3], [1, 1]
)
