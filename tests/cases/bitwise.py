# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/bitwise.cc. Oracle: NumPy; for shifts NumPy on clamped places."""

import numpy as np

from harness import INTS, PAIRS, SHAPES, SIGNED, UNSIGNED, T, op


def clamped(shift):
    """A shift by less than 0 or more than bits - 1 places is one by the nearest of these."""

    def call(x, y):
        most = 8 * y.dtype.itemsize - 1
        return shift(x, np.minimum(np.maximum(y, y.dtype.type(0)), y.dtype.type(most)))

    return call


def counted(x):
    octets = np.ascontiguousarray(x).view(np.uint8).reshape(x.shape + (x.dtype.itemsize,))
    return np.unpackbits(octets, axis=-1).sum(axis=-1).astype(np.uint8)


EDGES = [-1, 0, 1, 127, -128, 85, -86]
INCOMPATIBLE = ("InvalidArgument", r"Incompatible shapes: \[2\] vs. \[3\]")
for name, oracle in (
    ("BitwiseAnd", np.bitwise_and),
    ("BitwiseOr", np.bitwise_or),
    ("BitwiseXor", np.bitwise_xor),
):
    op(name, oracle, dtypes=INTS, domain=(-100, 100)).cases_of(*PAIRS).case(
        T(EDGES), T(EDGES[::-1]), options={"dtypes": SIGNED}
    ).case(T([255, 128, 7]), T([170, 255, 12]), options={"dtypes": UNSIGNED}).error(
        *INCOMPATIBLE, (2,), (3,), on="int32"
    ).error("InvalidArgument", "float", (2,), (2,), on="float32")

PLACES = [-128, -1, 0, 1, 2, 7, 8, 15, 16, 31, 32, 63, 64, 100, 127]
for name, oracle in (("LeftShift", np.left_shift), ("RightShift", np.right_shift)):
    cases = op(name, clamped(oracle), dtypes=INTS, domain=(0, 70)).cases_of(*PAIRS)
    cases.case(T([[-1], [1], [-128], [127], [85]]), T(PLACES), options={"dtypes": SIGNED})
    cases.case(T([[-1], [77]]), T(-3), options={"dtypes": SIGNED})
    wide = T([0, 1, 7, 8, 31, 32, 63, 64, 255])
    cases.case(T([[255], [128], [1]]), wide, options={"dtypes": UNSIGNED})
    cases.error(*INCOMPATIBLE, (2,), (3,), on="int32")

op("Invert", np.invert, dtypes=INTS, domain=(-100, 100)).cases_of(*SHAPES).case(
    T(EDGES), options={"dtypes": SIGNED}
).error("InvalidArgument", "float", (2,), on="float32")
op("PopulationCount", counted, dtypes=INTS, domain=(-100, 100)).cases_of(*SHAPES).case(
    (70001,)
).case(T(EDGES), options={"dtypes": SIGNED}).case(T([255, 128]), options={"dtypes": UNSIGNED})
