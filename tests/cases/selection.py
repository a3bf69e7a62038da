# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/selection.cc. Oracle: NumPy."""

import numpy as np

from harness import EVERYTHING, REALS, T, flags, op, rand

TRIPLES = [
    ((), (), ()),
    ((7,), (7,), (7,)),
    ((70,), (70,), (70,)),
    ((70,), (70,), ()),
    ((70,), (), (70,)),
    ((70,), (), ()),
    ((), (40,), (40,)),
    ((3, 1), (3, 4), (4,)),
    ((2, 1, 3), (1, 5, 1), ()),
    ((0,), (0,), ()),
    ((2, 3, 1), (3, 70), (2, 1, 1)),
]

STRINGS = np.array([b"a", b"bc", b""], object)
op("Select", np.where, dtypes=EVERYTHING, grad=2).cases_of(
    *[(flags(c), x, y) for c, x, y in TRIPLES]
).case(
    np.array([True, False, True]),
    STRINGS,
    np.array([[b"x"], [b"yy"]], object),
    options={"dtypes": ("string",), "grad": 0},
).error(
    "InvalidArgument", "Incompatible shapes", flags((2,)), (3,), (3,)
).error(
    "InvalidArgument", "bool", (2,), (2,), (2,)
)


def clip(t, low, high):
    return np.minimum(np.maximum(t, low), high)


BOUNDS = [
    ((), (), ()),
    ((7,), (), ()),
    ((70,), (), ()),
    ((70,), (70,), (70,)),
    ((3, 5), (5,), ()),
    ((2, 3, 4), (), (3, 1)),
    ((0, 3), (), ()),
]
op("ClipByValue", clip, dtypes=REALS).cases_of(
    *[(rand(t, -4, 6), rand(low, 0, 1), rand(high, 2, 3)) for t, low, high in BOUNDS]
).case(T([1, 5, 9]), T(6), T(4), options={"grad": 0}).special(
    [np.nan, np.inf, -np.inf, 0.5], 0.0, 1.0
).error(
    "InvalidArgument", r"do not broadcast to \[2\]", (2,), (3, 1), ()
)
