# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/arithmetic.cc. Oracle: NumPy, in float64 or the integers' own type."""

import numpy as np

from harness import (
    ALL_NUMBERS,
    COMPLEX,
    FLOATS,
    INTS,
    PAIRS,
    REALS,
    SIGNED,
    UNSIGNED,
    T,
    many,
    op,
    rand,
    spaced,
)


def where_not(condition, otherwise, function):
    """otherwise where condition holds, function elsewhere."""

    def call(x, y):
        x, y = np.broadcast_arrays(x, y)
        hit = condition(x, y)
        return np.where(hit, otherwise, function(np.where(hit, 1, x), np.where(hit, 1, y)))

    return call


WORDS = np.array([[b"a", b"", b"abc"], [b"b", b"\xff\x00", b"a" * 300]], object)
OTHERS = np.array([[b"x", b"", b"yz"], [b"", b"\x00", b"b" * 30]], object)
INCOMPATIBLE = ("InvalidArgument", r"Incompatible shapes: \[2\] vs. \[3\]")

for name, oracle in (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply)):
    cases = op(name, oracle, dtypes=ALL_NUMBERS, domain=(-5, 5), grad=2).cases_of(*PAIRS).special(
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38],
        [-0.0, 0.0, np.inf, 1.0, 1.0, 1e-45, 3e38],
    ).case(T([100, 120, 7]), T([100, 120, 3]), options={"dtypes": INTS, "grad": 0}).error(
        *INCOMPATIBLE, (2,), (3,)
    ).error(
        "InvalidArgument", 'input "y" has dtype', np.ones(2, np.float32), np.ones(2, np.int32)
    )
    if name == "Add":  # one string behind the other
        for x, y in (
            (WORDS, OTHERS),
            (WORDS, OTHERS[1]),
            (WORDS[:, :1], OTHERS[0]),
            (OTHERS[0, :1], WORDS),
            (np.tile(WORDS, (300, 1)), np.tile(OTHERS, (300, 1))),
            (np.zeros((0, 3), object), OTHERS[:1]),
        ):
            cases.case(x, y, options={"dtypes": ("string",), "grad": 0})

op("SquaredDifference", lambda x, y: (x - y) * (x - y), dtypes=REALS, grad=2).cases_of(
    *PAIRS
).error(*INCOMPATIBLE, (2,), (3,))


def total(values):
    return sum(values[1:], values[0])


op("AddN", total, dtypes=ALL_NUMBERS, ulps=8, grad=2, norm=True).case(many((3, 4))).case(
    many((5,), (5,))
).case(many((), (), ())).case(many((0, 2), (0, 2))).case(
    many(*[(3, 700) for _ in range(5)]), options={"dtypes": FLOATS + ("int8",), "grad": 0}
).error(
    "InvalidArgument", r"shapes of inputs to add", many((2,), (3,))
).error(
    "InvalidArgument", "", many()
)

DIVISION_BY_ZERO = ("InvalidArgument", "Integer division by zero")


def c_quotient(x, y):
    """Toward zero, as C divides."""
    if x.dtype.kind in "iu":
        quotient = np.floor_divide(x, y)
        return quotient + ((np.remainder(x, y) != 0) & ((x < 0) != (y < 0))).astype(x.dtype)
    return x / y


def apart(shape_x, shape_y):
    """Operands whose quotient keeps away from zero divisors."""
    return rand(shape_x, -9, 9), rand(shape_y, 1, 5)


op("RealDiv", np.divide, dtypes=FLOATS + COMPLEX, grad=2).cases_of(
    *[apart(*pair) for pair in PAIRS]
).special([1.0, -1.0, 0.0, np.inf, np.nan, 1e-45], [0.0, 0.0, 0.0, np.inf, 1.0, 2.0])
op("Div", c_quotient, dtypes=ALL_NUMBERS, grad=2).cases_of(*[apart(*pair) for pair in PAIRS]).case(
    T([7, -7, 7, -7, 0]), T([2, 2, -2, -2, 3]), options={"dtypes": SIGNED}
).error(*DIVISION_BY_ZERO, T([1, 2]), T([1, 0]), on="int32").error(
    *DIVISION_BY_ZERO, T([1, 2]), T(0), on="uint8"
).error(
    *DIVISION_BY_ZERO, T([1]), T([0]), on="uint64"
)
op(
    "TruncateDiv",
    lambda x, y: np.trunc(x / y) if x.dtype.kind == "f" else c_quotient(x, y),
    dtypes=REALS,
).cases_of(*[apart(*pair) for pair in PAIRS]).case(
    T([7, -7, 7, -7, 0]), T([2, 2, -2, -2, 3]), options={"dtypes": SIGNED}
).case(
    T([np.iinfo(np.int32).min]), T([-1]), options={"dtypes": ("int32",)}
).error(
    *DIVISION_BY_ZERO, T([1]), T([0]), on="int64"
)
op(
    "FloorDiv",
    lambda x, y: np.floor(x / y) if x.dtype.kind == "f" else np.floor_divide(x, y),
    dtypes=REALS,
).cases_of(*[apart(*pair) for pair in PAIRS]).case(
    T([7, -7, 7, -7, 0]), T([2, 2, -2, -2, 3]), options={"dtypes": SIGNED}
).error(
    *DIVISION_BY_ZERO, T([1]), T([0]), on="int8"
)
# The quotient must not be near a whole number, where differences jump.
REMAINDERS = [
    (T([[7.3, -7.3, 5.5]]), T([[2.0], [-2.0], [3.1]])),
    (T([7.25, -7.25]), T(4.0)),
    ((0,), (0,)),
]
op("FloorMod", np.mod, dtypes=REALS, norm=True).cases_of(*REMAINDERS).cases_of(
    *[apart(*pair) for pair in PAIRS], options={"grad": 0}
).error(*DIVISION_BY_ZERO, T([1]), T([0]), on="int32")
for name in ("Mod", "TruncateMod"):
    op(name, np.fmod, dtypes=REALS, norm=True).cases_of(*REMAINDERS).cases_of(
        *[apart(*pair) for pair in PAIRS], options={"grad": 0}
    ).case(T([7, -7, 7, -7, 0]), T([2, 2, -2, -2, 3]), options={"dtypes": SIGNED}).error(
        *DIVISION_BY_ZERO, T([1]), T([0]), on="int32"
    )
op("NextAfter", np.nextafter, ulps=1, grad=2).cases_of(*PAIRS).case(
    T([0.0, -0.0, 0.0, -0.0, 1.0, 1.0, np.inf, -np.inf, np.nan, 1.0, -1.0, np.inf]),
    T([0.0, 0.0, 1.0, -1.0, 2.0, 1.0, 0.0, 0.0, 1.0, np.nan, -2.0, np.inf]),
    options={"grad": 0, "signed_zeros": True, "dtypes": ("float64",)},
).error(*INCOMPATIBLE, (2,), (3,))

op(
    "DivNoNan", where_not(lambda x, y: y == 0, 0, np.divide), dtypes=FLOATS + COMPLEX, grad=2
).cases_of(*[apart(*pair) for pair in PAIRS]).case(
    T([1.0, 0.0, -2.0]), T([0.0, 0.0, 4.0]), options={"grad": 0}
)
op(
    "MulNoNan", where_not(lambda x, y: y == 0, 0, np.multiply), dtypes=FLOATS + COMPLEX, grad=2
).cases_of(*[apart(*pair) for pair in PAIRS]).case(
    T([np.inf, np.nan, 3.0, 0.0, -2.0]), T([0.0, 0.0, 0.0, 5.0, 4.0]), options={"grad": 0}
)
op(
    "QuotientGrad", where_not(lambda x, y: x == 0, 0, np.divide), dtypes=FLOATS + COMPLEX, grad=2
).cases_of(*[apart(*pair) for pair in PAIRS]).case(
    T([0.0, 0.0, 3.0]), T([0.0, np.nan, 4.0]), options={"grad": 0}
)
op("Xdivy", where_not(lambda x, y: x == 0, 0, np.divide), dtypes=FLOATS + COMPLEX, grad=2).cases_of(
    *[apart(*pair) for pair in PAIRS]
).case(T([0.0, 0.0, 3.0]), T([0.0, np.nan, 4.0]), options={"grad": 0})
op(
    "Xlogy",
    where_not(lambda x, y: x == 0, 0, lambda x, y: x * np.log(y)),
    dtypes=FLOATS + COMPLEX,
    grad=2,
).cases_of(*[apart(*pair) for pair in PAIRS]).case(
    T([0.0, 0.0, 3.0]), T([0.0, np.nan, 4.0]), options={"grad": 0}
)

for name, oracle in (("Maximum", np.maximum), ("Minimum", np.minimum)):
    # Values well apart: an extremum that changes hands within a difference step has no derivative.
    op(name, oracle, dtypes=REALS, grad=2).cases_of(
        *[(spaced(x), spaced(y, -1.97, 2.03)) for x, y in PAIRS]
    ).special(
        [np.nan, 1.0, np.nan, np.inf, -np.inf, 2.0], [1.0, np.nan, np.nan, -np.inf, 0.5, 2.0]
    ).error(
        *INCOMPATIBLE, (2,), (3,)
    )


def power(x, y):
    return (
        np.power(x, y)
        if x.dtype.kind not in "iu"
        else np.vectorize(
            lambda a, b: (
                np.array(pow(int(a), int(b)) % 2**64, np.uint64).astype(x.dtype) if b < 64 else 0
            ),
            otypes=[x.dtype],
        )(x, y)
    )


op("Pow", power, dtypes=FLOATS + COMPLEX + INTS, ulps=8, half_ulps=1.5, grad=2).cases_of(
    *[(rand(x, 0.3, 3), rand(y, 0, 3)) for x, y in PAIRS]
).case(rand((4, 5), 0.3, 3), rand((5,), -3, 3), options={"dtypes": FLOATS + COMPLEX}).case(
    T([-3, -2, 2, 3, 0, 0, 1]), T([3, 2, 10, 5, 0, 4, 9]), options={"dtypes": SIGNED}
).case(
    T([2, 3, 255]), T([7, 5, 2]), options={"dtypes": UNSIGNED}
).special(
    [
        0.0,
        -0.0,
        0.0,
        -0.0,
        -0.0,
        np.inf,
        -np.inf,
        -np.inf,
        -np.inf,
        np.nan,
        1.0,
        -1.0,
        -1.0,
        -8.0,
        -8.0,
        -8.0,
        2.0,
        0.5,
        1.0,
        np.nan,
        3e38,
        1e-40,
    ],
    [
        2.0,
        3.0,
        -2.0,
        -3.0,
        -2.0,
        2.0,
        3.0,
        -3.0,
        0.5,
        0.0,
        np.nan,
        np.inf,
        3.0,
        3.0,
        2.0,
        0.5,
        np.inf,
        np.inf,
        -np.inf,
        1.0,
        2.0,
        1.0,
    ],
).error(
    "InvalidArgument", "Integers to negative integer powers", T([2]), T([-1]), on="int32"
)

op("Atan2", np.arctan2, dtypes=FLOATS, grad=2).cases_of(
    *[(rand(y, 0.5, 3), rand(x, 0.5, 3)) for y, x in PAIRS]
).case(T([1.0, 1.0, -1.0, -1.0]), T([1.0, -1.0, 1.0, -1.0])).special(
    [0.0, -0.0, 0.0, -0.0, 1.0, np.inf, np.nan, -np.inf],
    [0.0, 0.0, -1.0, -1.0, np.inf, np.inf, 1.0, -np.inf],
)
