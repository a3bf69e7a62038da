# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/array.cc. Oracle: NumPy."""

import numpy as np

from harness import EVERYTHING, FLOATS, SHAPES, T, ints, many, no_case, op

op("Const", lambda value, dtype: value).case(
    value=np.array([[1.5, -2.0]], np.float32), dtype="float32", options={"dtypes": ("float32",)}
).case(value=np.array(7, np.int64), dtype="int64", options={"dtypes": ("int64",)}).case(
    value=np.zeros((0, 3), bool), dtype="bool", options={"dtypes": ("bool",)}
)

no_case("Placeholder", "it has no value of its own; test_sources.py states its error")

same = dict(dtypes=EVERYTHING, domain=(-9, 9), grad=2)
op("Identity", lambda x: x, **same).cases_of(*SHAPES)
op("EnsureShape", lambda x, shape: x, **same).case((2, 3), shape=[2, 3]).case(
    (2, 3), shape=[None, 3]
).case((), shape=[]).case((0, 2), shape=[0, None]).case((2, 3), shape=None).error(
    "InvalidArgument",
    r"Shape of tensor input \[2,3\] is not compatible with expected shape \[\?,4\]",
    (2, 3),
    shape=[None, 4],
).error("InvalidArgument", "is not compatible with expected shape", (2, 3), shape=[2])
op("StopGradient", lambda x: x, **dict(same, grad=0)).cases_of(*SHAPES)
no_case("PreventGradient", "its gradient is an error; test_sources.py")
no_case("CustomGradient", "its gradient is the program's; python/test_custom_gradient.py")
op("IdentityN", lambda xs: xs, **same).case(many((2, 3), (4,))).case(many(())).case(
    many((3,), ints((2,), 0, 9), (0, 2))
)
op("PlaceholderWithDefault", lambda x, shape: x, static_shape=False, **same).case(
    (2, 3), shape=[2, 3]
).case((2, 3), shape=[None, 3]).case((0,), shape=None).error(
    "InvalidArgument",
    r"the default has shape \[2\], which does not match the declared shape \[3\]",
    (2,),
    shape=[3],
)


def filled(dims, value):
    return np.full(dims, value)


op("Fill", filled, dtypes=EVERYTHING, grad=2).case([2, 3], ()).case([], ()).case([0, 4], ()).case(
    [70001], ()
).case(np.array([5], np.int64), ()).error(
    "InvalidArgument", r"Dimension -1 must be >= 0", [-1], ()
).error(
    "InvalidArgument", "must have rank 0", [2], (2,)
).error(
    "InvalidArgument", "9223372036854775807|2\\^63", np.array([2**40, 2**40], np.int64), ()
).error(
    "ResourceExhausted", "", np.array([2**48], np.int64), ()
)

op("ZerosLike", np.zeros_like, dtypes=EVERYTHING).cases_of(*SHAPES)
op("OnesLike", np.ones_like, dtypes=EVERYTHING).cases_of(*SHAPES)


def sequence(start, limit, delta):
    count = max(int(np.ceil((float(limit) - float(start)) / float(delta))), 0)
    return start + np.arange(count).astype(start.dtype) * delta


op("Range", sequence, dtypes=FLOATS + ("int32", "int64"), ulps=1).case(T(3), T(18), T(4)).case(
    T(5), T(-4), T(-2)
).case(T(0), T(0), T(1)).case(
    T(-3), T(900), T(1), options={"dtypes": ("float32", "float64", "int32", "int64")}
).case(
    T(0), T(1), T(0.125), options={"dtypes": FLOATS}
).case(
    T(1), T(0), T(-0.25), options={"dtypes": FLOATS}
).error(
    "InvalidArgument", "Requires delta != 0", T(0), T(5), T(0), on="int32"
).error(
    "InvalidArgument",
    "Requires start >= limit when delta < 0: 0/5",
    T(0),
    T(5),
    T(-1),
    on="int64",
).error(
    "InvalidArgument", "Requires start <= limit when delta > 0: 5/0", T(5), T(0), T(0.5)
).error(
    "InvalidArgument", "Requires finite", T(0), T(np.inf), T(1)
)

op("LinSpace", lambda a, b, n: np.linspace(a, b, int(n)), dtypes=FLOATS, ulps=2, slack=1e-7).case(
    T(1.0), T(3.0), 5
).case(T(1.0), T(3.0), 1).case(T(-2.0), T(10.0), np.int64(25)).error(
    "InvalidArgument", "Requires num > 0: 0", T(1.0), T(2.0), 0
)


def one_hot(indices, depth, on, off, axis=-1):
    hot = np.where(indices[..., None] == np.arange(depth), on, off)
    return np.moveaxis(hot, -1, axis)


op("OneHot", one_hot, dtypes=EVERYTHING).case([[0, 2], [1, 5]], 3, (), ()).case(
    ints((4,), -1, 4), 3, (), (), axis=0
).case(ints((2, 3), 0, 5, "int64"), 4, (), (), axis=1).case(
    ints((3,), 0, 4, "uint8"), 4, (), ()
).case(
    2, 3, (), ()
).case(
    [1, 0], 0, (), ()
).case(
    ints((700,), 0, 300), 300, (), (), options={"dtypes": ("float32", "complex128")}
).error(
    "InvalidArgument", r"Expected axis to be -1 or between \[0, 2\)", [1], 3, (), (), axis=2
).error(
    "InvalidArgument", "depth must be non-negative, got: -1", [1], -1, (), ()
)
