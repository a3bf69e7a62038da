# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/cross.cc. Oracle: the definition by the symbol of Levi-Civita."""

import numpy as np

from harness import ALL_NUMBERS, T, op

SYMBOL = np.zeros((3, 3, 3), "int64")
for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    SYMBOL[i, j, k], SYMBOL[i, k, j] = 1, -1


def cross(a, b):
    with np.errstate(over="ignore"):
        return np.einsum("ijk,...j,...k->...i", SYMBOL.astype(a.dtype), a, b)


cases = op("Cross", cross, dtypes=ALL_NUMBERS, grad=2, norm=True)
cases.cases_of(((3,), (3,)), ((2, 5, 3), (2, 5, 3)), ((0, 3), (0, 3)), ((2, 0, 3), (2, 0, 3)))
cases.case((20001, 3), (20001, 3), options={"grad": 0})
large = [2.0**30, 2.0**31 - 1, 3]
cases.case(T(large), T(large[::-1]), options={"dtypes": ("int32", "int64"), "grad": 0})
cases.error("InvalidArgument", r"3-element vectors in the last axis; a has shape \[3,2\]", (3, 2), (3, 2))
cases.error("InvalidArgument", r"same shape, got \[2,3\] and \[3,3\]", (2, 3), (3, 3))
cases.error("InvalidArgument", "rank", (), ())
