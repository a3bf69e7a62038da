# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/partition.cc. Oracle: NumPy's boolean indexing."""

import numpy as np

from harness import EVERYTHING, many, op

moves = dict(dtypes=EVERYTHING, domain=(-9, 9), grad=2, static_shape=False)


def partition(data, numbers, num_partitions):
    return [data[numbers == i] for i in range(num_partitions)]


op("DynamicPartition", partition, **moves).case(
    (4, 2), np.array([1, 0, 1, 3], np.int32), num_partitions=4
).case((2, 3), np.array([[0, 1, 0], [1, 1, 0]], np.int32), num_partitions=2).case(
    (0, 2), np.zeros(0, np.int32), num_partitions=2
).case(
    (), 1, num_partitions=2
).error(
    "InvalidArgument",
    r"partitions\[2\] = 2 is not in \[0, 2\)",
    (3,),
    np.array([0, 1, 2], np.int32),
    num_partitions=2,
).error(
    "InvalidArgument",
    "data.shape must start with partitions.shape",
    (3,),
    np.array([0, 1], np.int32),
    num_partitions=2,
)


def stitch(indices, data):
    rows = max([int(i.max()) + 1 for i in indices if i.size], default=0)
    out = np.zeros((rows,) + data[0].shape[indices[0].ndim :], data[0].dtype)
    for i, d in zip(indices, data):
        out[i] = d
    return out


op("DynamicStitch", stitch, **moves).case(many(3, [0, 1]), many((2,), (2, 2))).case(
    many([[0, 4], [2, 1]]), many((2, 2, 3))
).case(many([0, 1], [1, 2]), many((2,), (2,)), options={"grad": 0}).case(
    many([], [1, 0]), many((0, 2), (2, 2))
).error(
    "InvalidArgument", r"indices\[1\] holds -1 at place 0", many([0], [-1]), many((1,), (1,))
).error(
    "InvalidArgument",
    r"data\[0\].shape = \[3\] does not start with indices\[0\].shape = \[2\]",
    many([0, 1]),
    many((3,)),
)
