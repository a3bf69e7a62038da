# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/reduction.cc. Oracle: NumPy, in float64 or exact integers."""

import numpy as np

from harness import ALL_NUMBERS, FLOATS, REALS, T, flags, ints, op, rand, spaced

# Shapes with the axes to reduce: every order of kept and reduced axes, none, all, empty, 0-d; rows
# and columns around the blocks the kernels work in (1024 elements of a row, 64 rows of columns).
AXES = [
    ((), []),
    ((7,), [0]),
    ((7,), []),
    ((3, 5), [1]),
    ((3, 5), [0]),
    ((3, 5), [0, 1]),
    ((3, 5), -1),
    ((2, 3, 4), [0, 2]),
    ((2, 3, 4), [1]),
    ((2, 3, 4), [-3, 1]),
    ((2, 3, 4, 5), [1, 3]),
    ((2, 3, 4, 5), [0, 2]),
    ((4, 1, 3), [1]),
    ((1, 1), [0, 1]),
    ((3, 0), [0]),
    ((3, 0), [1]),
    ((0,), [0]),
]
LONG = [
    ((2500,), [0]),
    ((3, 1100), [1]),
    ((300, 3), [0]),
    ((130, 40), [0]),
    ((5, 70, 9), [1]),
    ((40, 33, 40), [0, 2]),
    ((4, 100), [1]),
    ((1000, 2), [0]),
]


def as_axes(axes):
    return tuple(int(a) for a in np.atleast_1d(axes))


def reducing(function, empty=None):
    """numpy's reduction over the given axes; `empty`: what an empty one gives, by dtype."""

    def call(x, axes, keep_dims=False):
        axes = as_axes(axes)
        if empty is not None and x.size == 0:
            shape = np.sum(x, axis=axes, keepdims=keep_dims).shape
            return np.full(shape, empty(x.dtype), x.dtype)
        result = np.asarray(function(x, axis=axes, keepdims=keep_dims))
        return result.astype(x.dtype) if x.dtype.kind in "iu" else result

    return call


def mean(x, axis, keepdims):
    count = int(np.prod([x.shape[a] for a in axis], dtype=np.int64))
    with np.errstate(all="ignore"):
        if x.dtype.kind in "iu":
            total = np.sum(x.astype(object), axis=axis, keepdims=keepdims)
            if count == 0:
                return np.zeros_like(total, x.dtype)
            toward_zero = np.vectorize(lambda v: int(abs(v) // count * (1 if v >= 0 else -1)))
            return toward_zero(total) if np.size(total) else total
        return np.sum(x, axis=axis, keepdims=keepdims) / np.float64(count)


def lowest(dtype):
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def highest(dtype):
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def norm(x, axis, keepdims):
    return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))


def reduction(name, oracle, make=lambda shape: shape, long=True, **options):
    cases = op(name, oracle, **options)
    for shape, axes in AXES:
        cases.case(make(shape), axes).case(make(shape), axes, keep_dims=True)
    for shape, axes in LONG if long else []:
        cases.case(make(shape), axes, options={"grad": 1})
    # Axes as int64, and as a vector of one.
    cases.case(make((3, 5)), np.array([1], np.int64)).case(make((3, 5)), np.int64(-2))
    return (
        cases.error("InvalidArgument", r"reduction axis = 2 is not in \[-2, 2\)", make((2, 3)), [2])
        .error("InvalidArgument", "reduction axis -1 is named twice", make((2, 3)), [1, -1])
        .error("InvalidArgument", "must be a scalar or a vector", make((2, 3)), [[0]])
    )


# Rounding errors grow with the number of terms and their size, not with the result.
SUMS = {"norm": True, "ulps": 16, "slack": 0.0, "half_ulps": 1.0}
reduction("Sum", reducing(np.sum), dtypes=ALL_NUMBERS, domain=(-1, 2), grad=2, **SUMS).case(
    T([100, 100, 100]), 0, options={"dtypes": ("int8", "uint8"), "grad": 0}
).special([np.inf, 1.0, 2.0], 0).special([np.inf, -np.inf, 2.0], 0).special([np.nan, 1.0, 2.0], 0)
reduction("Mean", reducing(mean, None), dtypes=ALL_NUMBERS, domain=(-9, 9), grad=2, **SUMS).case(
    T([120] * 300), 0, options={"dtypes": ("int8", "uint8", "int16"), "grad": 0}
)
reduction(
    "Prod",
    reducing(np.prod),
    make=lambda shape: rand(shape, 0.6, 1.5),
    long=False,
    dtypes=ALL_NUMBERS,
    ulps=64,
    half_ulps=1.0,
    grad=1,
).case(T([[2.0, 0.0, 3.0], [0.0, 0.0, 4.0]]), [1]).case(
    T(np.linspace(0.99, 1.01, 3000).reshape(1500, 2)),
    0,
    options={"dtypes": ("float64",), "grad": 0},
).case(
    ints((1100,), 1, 7, "int64"), 0, options={"dtypes": ("int64",), "grad": 0}
)
# Extrema well apart: where they tie, differences see only one of them.
reduction("Max", reducing(np.max, lowest), make=lambda s: spaced(s), dtypes=REALS, grad=1).special(
    [[np.nan, 1.0], [2.0, 3.0]], 1
).special([1.0] * 40 + [np.nan] + [2.0] * 40, 0).special([-np.inf, -np.inf], 0)
reduction("Min", reducing(np.min, highest), make=lambda s: spaced(s), dtypes=REALS, grad=1).special(
    [[np.nan, 1.0], [2.0, 3.0]], 1
).special([1.0] * 40 + [np.nan] + [2.0] * 40, 0).special([np.inf, np.inf], 0)
reduction("EuclideanNorm", reducing(norm), dtypes=FLOATS, grad=1, ulps=16, half_ulps=1.0, norm=True)


for name, oracle in (("All", np.all), ("Any", np.any)):
    reduction(name, reducing(oracle), make=flags, dtypes=("bool",)).case(
        np.ones((3, 1200), bool), 1
    ).case(np.zeros((3, 1200), bool), 1)

op("L2Loss", lambda t: np.asarray(np.sum(t * t) / 2), dtypes=FLOATS, ulps=16, grad=2).cases_of(
    ((),), ((7,),), ((3, 5),), ((0, 2),), ((2500,),)
)
