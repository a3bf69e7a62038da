# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/shape.cc. Oracle: NumPy."""

import numpy as np

from harness import EVERYTHING, SHAPES, many, op

INDEX = {"int32": np.int32, "int64": np.int64}
moves = dict(dtypes=EVERYTHING, domain=(-9, 9), grad=2)


def shape_of(x, out_type="int32"):
    return np.array(np.shape(x), INDEX[out_type])


op("Shape", shape_of, dtypes=EVERYTHING).cases_of(*SHAPES).case((2, 3), out_type="int64")
op(
    "ShapeN", lambda xs, out_type="int32": [shape_of(x, out_type) for x in xs], dtypes=EVERYTHING
).case(many((2, 3), (), (0, 4))).case(many((5,)), out_type="int64")
op("Size", lambda x, out_type="int32": INDEX[out_type](x.size), dtypes=EVERYTHING).cases_of(
    *SHAPES
).case((2, 3), out_type="int64")
op("Rank", lambda x: np.int32(x.ndim), dtypes=EVERYTHING).cases_of(*SHAPES)

op("Reshape", lambda x, shape: x.reshape(shape), **moves).case((2, 6), [3, 4]).case(
    (2, 6), [-1]
).case((2, 6), [3, -1, 2]).case((1, 1), []).case((), [1, -1]).case((0, 3), [3, 0]).case(
    (0, 3), [-1, 3]
).case(
    (2, 3, 4), np.array([4, -1], np.int64)
).case(
    (1,) * 8, [1]
).error(
    "InvalidArgument",
    r"Input to reshape is a tensor with 6 values, but the requested shape \[4\] has 4",
    (2, 3),
    [4],
).error(
    "InvalidArgument", "a tensor with 6 values, but .* requires a multiple of 4", (2, 3), [-1, 4]
).error(
    "InvalidArgument", "Only one input size may be -1, not both 0 and 1", (2, 3), [-1, -1]
).error(
    "InvalidArgument",
    "reshape cannot infer the missing input size for an empty tensor",
    (0, 3),
    [0, -1],
).error(
    "InvalidArgument", "holds the extent -2", (2, 3), [-2, 3]
).error(
    "InvalidArgument", "at most 32", (1,), [1] * 33
)

op("ExpandDims", lambda x, axis: np.expand_dims(x, int(axis)), **moves).case((2, 3), 0).case(
    (2, 3), -1
).case((2, 3), 1).case((), 0).case((0, 2), np.int64(-2)).error(
    "InvalidArgument", r"dim = 3 is not in \[-3, 3\)", (2, 3), 3
).error(
    "InvalidArgument", r"dim must hold one element, got shape \[2\]", (2, 3), [0, 1]
)


def squeezed(x, squeeze_dims=()):
    return np.squeeze(x, tuple(squeeze_dims) or None)


op("Squeeze", squeezed, **moves, unknown_shapes=True).case((1, 2, 1, 3), squeeze_dims=[0]).case(
    (1, 2, 1, 3), squeeze_dims=[-2, 0]
).case((1, 2, 1)).case((1, 1)).case((2, 0, 1)).error(
    "InvalidArgument",
    r"Can not squeeze dim\[1\], expected a dimension of 1, got 2",
    (1, 2),
    squeeze_dims=[1],
).error(
    "InvalidArgument", r"squeeze_dims = 2 is not in \[-2, 2\)", (1, 2), squeeze_dims=[2]
)

op("BroadcastTo", lambda x, shape: np.broadcast_to(x, shape), **moves).case((3, 1), [3, 4]).case(
    (), [2, 3]
).case((4,), [2, 3, 4]).case((2, 1, 3), [2, 5, 3]).case((1,), [0]).case(
    (3,), np.array([3], np.int64)
).case(
    (1, 300), [400, 300], options={"dtypes": ("float32", "int8")}
).error(
    "InvalidArgument", r"Incompatible shapes: \[3\] vs. \[4\]", (3,), [4]
).error(
    "InvalidArgument", "must be no greater than rank of output shape", (2, 3), [3]
)

op(
    "BroadcastArgs",
    lambda a, b: np.array(np.broadcast_shapes(tuple(a), tuple(b)), a.dtype),
    dtypes=("int32",),
).case([3, 1], [4, 1, 5]).case([], [2]).case(
    np.array([2, 3], np.int64), np.array([1], np.int64)
).error(
    "InvalidArgument", r"Incompatible shapes: \[3\] vs. \[2,4\]", [3], [2, 4]
)

op("InvertPermutation", lambda x: np.argsort(x).astype(x.dtype), dtypes=("int32",)).case(
    [2, 0, 1, 3]
).case(np.array([1, 0], np.int64)).case(np.zeros(0, np.int32)).error(
    "InvalidArgument", "1 is duplicated in the input", [1, 1]
).error(
    "InvalidArgument", "2 is not between 0 and 2", [0, 2]
)


def offsets(axis, shapes):
    starts = np.cumsum([0] + [s[axis] for s in shapes[:-1]])
    unit = np.arange(len(shapes[0])) == axis % len(shapes[0])
    return [(start * unit).astype(np.int32) for start in starts]


op("ConcatOffset", offsets, dtypes=("int32",)).case(1, many([2, 3], [2, 5], [2, 1])).case(
    -1, many([4, 3], [4, 0])
).error("InvalidArgument", r"concat_dim = 2 is not in \[-2, 2\)", 2, many([1, 2], [1, 2])).error(
    "InvalidArgument", "All dimensions except 1 must match", 1, many([1, 2], [3, 2])
).error(
    "InvalidArgument", r"input 1 holds the extent -2", 0, many([1, 2], [-2, 2])
).error(
    "InvalidArgument", "should contain 2 elements, but got 1", 1, many([1, 2], [3])
)

op(
    "UnravelIndex",
    lambda i, d: np.stack(np.unravel_index(i, tuple(d))).astype(i.dtype),
    dtypes=("int32",),
).case([22, 41, 37], [7, 6]).case(5, [2, 3]).case(
    np.array([119], np.int64), np.array([2, 3, 4, 5], np.int64)
).error(
    "InvalidArgument", r"indices\[1\] = 42 is not in \[0, 42\)", [0, 42], [7, 6]
)
