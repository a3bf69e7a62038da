# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/joining.cc. Oracle: NumPy."""

import numpy as np

from harness import EVERYTHING, many, op

moves = dict(dtypes=EVERYTHING, domain=(-9, 9), grad=2)

op("Concat", lambda xs, axis: np.concatenate(xs, int(axis)), **moves).case(
    many((2, 3), (2, 5)), 1
).case(many((2, 3), (4, 3), (0, 3)), 0).case(many((2, 1, 3), (2, 4, 3)), -2).case(
    many((3,)), 0
).case(
    many((2, 3), (2, 3), (2, 3)), np.int64(-1)
).case(
    many((0,), (0,)), 0
).case(
    many((70001,), (5,), (300,)), 0, options={"dtypes": ("float32", "int8")}
).case(
    many((200, 300), (200, 50)), 1, options={"dtypes": ("float32", "complex128")}
).error(
    "InvalidArgument",
    r"Dimensions of inputs should match: shape\[0\] = \[2,3\] vs. shape\[1\] = \[2,4\]",
    many((2, 3), (2, 4)),
    0,
).error(
    "InvalidArgument", r"concat_dim = 2 is not in \[-2, 2\)", many((2, 3), (2, 3)), 2
).error(
    "InvalidArgument", "Can't concatenate scalars", many((), ()), 0
)

op("Split", lambda axis, x, num_split: np.split(x, num_split, int(axis)), **moves).case(
    1, (2, 6), num_split=3
).case(0, (4, 3), num_split=2).case(-1, (2, 3, 4), num_split=4).case(0, (5,), num_split=1).case(
    1, (0, 4), num_split=2
).error(
    "InvalidArgument",
    r"evenly divide the split dimension, but got split_dim 0 \(size = 5\)",
    0,
    (5,),
    num_split=2,
).error(
    "InvalidArgument", r"split_dim = 1 is not in \[-1, 1\)", 1, (5,), num_split=1
)


def split_sizes(x, sizes, axis, num_split):
    sizes = [s if s >= 0 else x.shape[axis] - sum(sizes) - 1 for s in sizes]
    return np.split(x, np.cumsum(sizes)[:-1], int(axis))


op("SplitV", split_sizes, **moves).case((2, 6), np.array([1, 3, 2], np.int64), 1, num_split=3).case(
    (7, 2), [2, -1, 0], 0, num_split=3
).case((4,), [4], -1, num_split=1).error(
    "InvalidArgument",
    "Determined shape must either match input shape along split_dim exactly",
    (4,),
    [1, 2],
    0,
    num_split=2,
).error(
    "InvalidArgument", "Only one size may be -1, not both 0 and 1", (4,), [-1, -1], 0, num_split=2
).error(
    "InvalidArgument",
    "Split size at index 0 must be >= 0 or -1, got -3",
    (4,),
    [-3, 7],
    0,
    num_split=2,
).error(
    "InvalidArgument",
    "Length of size_splits should be equal to num_split: 1 vs. 2",
    (4,),
    [4],
    0,
    num_split=2,
)

op("Pack", lambda xs, axis=0: np.stack(xs, axis), **moves).case(many((2, 3), (2, 3))).case(
    many((2, 3), (2, 3)), axis=1
).case(many((2, 3), (2, 3)), axis=-1).case(many((), (), ())).case(many((0, 2))).error(
    "InvalidArgument",
    r"Shapes of all inputs must match: values\[0\].shape = \[2\] != values\[1\].shape = \[3\]",
    many((2,), (3,)),
).error(
    "InvalidArgument", r"axis = 2 is not in \[-2, 2\)", many((2,)), axis=2
)


def unpacked(x, num, axis=0):
    return [np.take(x, i, axis) for i in range(num)]


op("Unpack", unpacked, **moves).case((3, 2), num=3).case((3, 2), num=2, axis=1).case(
    (2, 3, 4), num=4, axis=-1
).case((0, 2), num=0, options={"grad": 0}).case((4,), num=4).error(
    "InvalidArgument", "Input shape axis 0 must equal 2, got shape", (3,), num=2
).error(
    "InvalidArgument", r"axis = 1 is not in \[-1, 1\)", (3,), num=3, axis=1
)
