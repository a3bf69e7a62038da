# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/arg_reduction.cc. Oracle: NumPy (the first of equals, the first NaN)."""

import numpy as np

from harness import REALS, T, op

SHAPES = [
    ((1,), 0),
    ((9,), 0),
    ((3, 5), 0),
    ((3, 5), 1),
    ((3, 5), -1),
    ((2, 3, 4), 1),
    ((2, 300, 7), 1),
    ((2, 3, 300), 1),
    ((0, 3), 1),
    ((3, 0), 1),
]

for name, function in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):

    def oracle(x, axis, output_type="int64", function=function):
        if x.size == 0:
            return np.zeros(np.delete(x.shape, int(axis)), output_type)
        return function(x, axis=int(axis)).astype(output_type)

    cases = op(name, oracle, dtypes=REALS, domain=(0, 5))
    for shape, axis in SHAPES:
        if shape != (3, 0):
            cases.case(shape, axis).case(shape, np.int64(axis), output_type="int32")
    cases.case(T([[3, 1, 3], [0, 0, 0]]), 1).case(
        T([True, False]), 0, options={"dtypes": ("bool",)}
    ).special([1.0, np.nan, 2.0, np.nan], 0).special([[np.nan, 1.0], [2.0, np.nan]], 0).error(
        "InvalidArgument", r"dimension = 2 is not in \[-2, 2\)", (2, 3), 2
    ).error(
        "InvalidArgument", "no elements to choose from", (3, 0), 1
    ).error(
        "InvalidArgument", "rank", (), 0
    ).error(
        "InvalidArgument", "rank 0", (2, 3), [0]
    )
