# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/space.cc. Oracle: NumPy, as the TensorFlow documentation states them."""

import numpy as np

from harness import EVERYTHING, op

moves = dict(dtypes=EVERYTHING, domain=(-9, 9), grad=2)


def space_to_batch(x, block, paddings):
    m = len(block)
    padded = np.pad(x, [(0, 0)] + [tuple(p) for p in paddings] + [(0, 0)] * (x.ndim - m - 1))
    split = [padded.shape[0]]
    for n, b in zip(padded.shape[1:], block):
        split += [n // b, b]
    rest = padded.shape[m + 1 :]
    parts = padded.reshape(split + list(rest))
    order = (
        [2 * i + 2 for i in range(m)]
        + [0]
        + [2 * i + 1 for i in range(m)]
        + [2 * m + 1 + i for i in range(len(rest))]
    )
    return parts.transpose(order).reshape(
        [x.shape[0] * int(np.prod(block))]
        + [n // b for n, b in zip(padded.shape[1:], block)]
        + list(rest)
    )


def batch_to_space(x, block, crops):
    m = len(block)
    batch = x.shape[0] // int(np.prod(block))
    parts = x.reshape(list(block) + [batch] + list(x.shape[1:]))
    order = [m]
    for i in range(m):
        order += [m + 1 + i, i]
    order += list(range(2 * m + 1, parts.ndim))
    whole = parts.transpose(order).reshape(
        [batch] + [n * b for n, b in zip(x.shape[1:], block)] + list(x.shape[m + 1 :])
    )
    return whole[
        (slice(None),) + tuple(slice(a, whole.shape[i + 1] - b) for i, (a, b) in enumerate(crops))
    ]


BLOCKS = [
    ((2, 4, 6, 3), [2, 3], [[0, 0], [0, 0]]),
    ((1, 5, 4, 2), [3, 2], [[1, 0], [2, 2]]),
    ((2, 3), [2], [[4, 1]]),
    ((1, 2, 2, 2), [1, 2, 1], [[0, 0], [0, 0], [1, 1]]),
    ((0, 4, 1), [2], [[0, 0]]),
]
to_batch = op("SpaceToBatchND", space_to_batch, **moves)
to_space = op("BatchToSpaceND", batch_to_space, **moves)
for shape, block, borders in BLOCKS:
    to_batch.case(shape, block, borders)
    to_space.case(space_to_batch(np.zeros(shape), block, borders).shape, block, borders)
to_batch.error(
    "InvalidArgument",
    r"padded_shape\[0\]=5 is not divisible by block_shape\[0\]=2",
    (1, 4, 1),
    [2],
    np.array([[1, 0]], np.int32),
).error(
    "InvalidArgument", "block_shape must be positive", (1, 4, 1), [0], np.array([[0, 0]], np.int32)
).error(
    "InvalidArgument",
    "paddings must be non-negative",
    (1, 4, 1),
    [2],
    np.array([[-1, 1]], np.int32),
)
to_space.error(
    "InvalidArgument",
    r"Input batch dimension \(3\) is not divisible by product of block sizes \(2\)",
    (3, 4, 1),
    [2],
    np.array([[0, 0]], np.int32),
).error(
    "InvalidArgument",
    r"cropped_shape\[0\]=-1 must be non-negative",
    (2, 4, 1),
    [2],
    np.array([[4, 5]], np.int32),
)


def space_to_depth(x, block_size, data_format="NHWC"):
    b = block_size
    if data_format == "NCHW":
        return space_to_depth(x.transpose(0, 2, 3, 1), b).transpose(0, 3, 1, 2)
    n, h, w, d = x.shape
    return (
        x.reshape(n, h // b, b, w // b, b, d)
        .transpose(0, 1, 3, 2, 4, 5)
        .reshape(n, h // b, w // b, b * b * d)
    )


def depth_to_space(x, block_size, data_format="NHWC"):
    b = block_size
    if data_format == "NCHW":
        return depth_to_space(x.transpose(0, 2, 3, 1), b).transpose(0, 3, 1, 2)
    n, h, w, d = x.shape
    return (
        x.reshape(n, h, w, b, b, d // (b * b))
        .transpose(0, 1, 3, 2, 4, 5)
        .reshape(n, h * b, w * b, d // (b * b))
    )


op("SpaceToDepth", space_to_depth, **moves).case((2, 4, 6, 3), block_size=2).case(
    (1, 3, 3, 1), block_size=3
).case((2, 3, 4, 6), block_size=2, data_format="NCHW").case((0, 2, 2, 1), block_size=2).error(
    "InvalidArgument", "is not divisible by block_size 2 along axis 1", (1, 3, 4, 1), block_size=2
)
op("DepthToSpace", depth_to_space, **moves).case((2, 2, 3, 8), block_size=2).case(
    (1, 1, 1, 9), block_size=3
).case((2, 8, 2, 3), block_size=2, data_format="NCHW").error(
    "InvalidArgument",
    r"depth 6 of shape \[1,2,2,6\] is not divisible by block_size\^2 = 4",
    (1, 2, 2, 6),
    block_size=2,
)
