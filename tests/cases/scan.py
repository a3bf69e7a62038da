# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/scan.cc. Oracle: NumPy, and for the recurrence its
definition."""

import itertools

import numpy as np

from harness import ALL_NUMBERS, COMPLEX, FLOATS, OPS, T, op, rand

SHAPES = [
    ((1,), 0),
    ((7,), 0),
    ((3, 5), 0),
    ((3, 5), -1),
    ((2, 3, 4), 1),
    ((2, 4, 300), 1),
    ((0, 3), 1),
    ((3, 0), 1),
]


def scanning(function, start):
    def call(x, axis, exclusive=False, reverse=False):
        x = np.moveaxis(x, int(axis), 0)
        x = x[::-1] if reverse else x
        result = function(x, axis=0).astype(x.dtype)
        if exclusive:
            first = np.full((min(1, len(x)),) + x.shape[1:], start, x.dtype)
            result = np.concatenate([first, result[:-1]])
        result = result[::-1] if reverse else result
        return np.ascontiguousarray(np.moveaxis(result, 0, int(axis)))

    return call


MODES = [dict(exclusive=e, reverse=r) for e, r in itertools.product((False, True), repeat=2)]

for name, oracle, low, high in (
    ("Cumsum", scanning(np.cumsum, 0), -3, 3),
    ("Cumprod", scanning(np.cumprod, 1), 0.6, 1.5),
):
    cases = op(name, oracle, dtypes=ALL_NUMBERS, norm=True, ulps=8, half_ulps=1.0, grad=2)
    for shape, axis in SHAPES:
        cases.case(rand(shape, low, high), axis)
    for mode in MODES:
        cases.case(rand((2, 5, 3), low, high), np.int64(1), **mode)
    cases.error("InvalidArgument", r"axis = 2 is not in \[-2, 2\)", (2, 3), 2).error(
        "InvalidArgument", "rank", (), 0
    ).error("InvalidArgument", "rank 0", (2, 3), [0])
    cases.case(T([100, 100, 100]), 0, options={"dtypes": ("int8", "uint8"), "grad": 0})

# Where elements are 0 the products' gradients still hold: the first derivatives and the second.
for mode in MODES:
    OPS["Cumprod"].case(
        T([[0.5, 0, 1.5], [0, 0, 2], [3, -1, 0], [-2, 4, 0.25]]), 0,
        options={"dtypes": ("float64", "complex128"), "grad": 2}, **mode
    )


def recurrence(x, decay, axis, reverse=False):
    x, decay = np.moveaxis(x, int(axis), 0), np.moveaxis(decay, int(axis), 0)
    out, before = np.zeros_like(x), np.zeros_like(x)
    last = None
    for i in range(len(x))[:: -1 if reverse else 1]:
        before[i] = 0 if last is None else last
        out[i] = last = x[i] if last is None else x[i] + decay[i] * last
    return tuple(np.ascontiguousarray(np.moveaxis(r, 0, int(axis))) for r in (out, before))


cases = op(
    "LinearRecurrence", recurrence, dtypes=FLOATS + COMPLEX, norm=True, ulps=16, half_ulps=1.0, grad=2
)
for shape, axis in SHAPES:
    cases.case(rand(shape, -2, 2), rand(shape, -0.9, 0.9), axis)
cases.case((2, 5, 3), rand((2, 5, 3), -0.9, 0.9), np.int64(1), reverse=True).case(
    T([1, 2, 3]), T([5, 0, 2]), 0
).case(T([1, 2, 3]), T([np.inf, 0, 2]), 0, options={"grad": 0, "dtypes": ("float32", "float64")})
cases.error("InvalidArgument", r"axis = 2 is not in \[-2, 2\)", (2, 3), (2, 3), 2).error(
    "InvalidArgument", "rank", (), (), 0
).error("InvalidArgument", "shapes of x and decay", (2, 3), (3, 2), 0)


def log_sums(x, axis, exclusive=False, reverse=False):
    x = np.moveaxis(x, int(axis), 0)
    x = x[::-1] if reverse else x
    result = np.logaddexp.accumulate(x, axis=0) if x.size else x
    if exclusive:  # float64's, whatever dtype x had: tests/python/test_special.py has the others
        first = np.full((min(1, len(x)),) + x.shape[1:], np.finfo(np.float64).min)
        result = np.concatenate([first, result[:-1]])
    result = result[::-1] if reverse else result
    return np.ascontiguousarray(np.moveaxis(result, 0, int(axis)))


cases = op("CumulativeLogsumexp", log_sums, dtypes=FLOATS, ulps=4, grad=2)
for shape, axis in SHAPES:
    cases.case(rand(shape, 1, 4), axis)
for mode in MODES:
    # Differences drown in the lowest number; tests/python/test_special.py has that gradient.
    alone = {"dtypes": ("float64",), "grad": 0} if mode["exclusive"] else {}
    cases.case(rand((2, 5, 3), 1, 4), np.int64(1), options=alone, **mode)
cases.case(rand((4, 300), -400, 800), 1, options={"grad": 0, "norm": True}).special(
    [-np.inf, 1.0, 1e30, -1e30, np.inf, 2.0, np.nan, 5.0], 0
).special([-np.inf, -np.inf, 700.0, 710.0, -3.0], 0)
cases.error("InvalidArgument", r"axis = 2 is not in \[-2, 2\)", (2, 3), 2).error(
    "InvalidArgument", "rank", (), 0
)
