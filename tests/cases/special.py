# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/special.cc. Oracle: SciPy, where its domain is TensorFlow's. How exact the
functions are: test_special_accuracy.py."""

import numpy as np
from scipy import special

from harness import FLOATS, PAIRS, SHAPES, T, op, rand


def unary(name, oracle, low, high, **options):
    cases = op(name, oracle, dtypes=FLOATS, domain=(low, high), grad=2, **options)
    return cases.cases_of(*SHAPES).case((4, 257), options={"grad": 0})


def with_poles(function):
    """Infinity at 0 and negative whole numbers."""

    def call(x):
        return np.where((x <= 0) & (x == np.floor(x)), np.inf, function(x))

    return call


def lgamma(x):
    return np.where(np.isinf(x), np.inf, special.gammaln(x))


def odd(function):
    """-0 for -0."""
    return lambda x: np.where(x == 0, x, function(x))


LEFT = [-0.5, -1.25, -2.5, -7.3, -8.5, -30.25, 1e-30, -1e-30, 0.99999994, 1.0000001, 2.0, 8.0, 1e10]
POLES = [0.0, -0.0, -1.0, -2.0, -33.0, -1e10, np.inf, -np.inf, np.nan, 1e30, -1e30]
REFLECTED = T([-0.7, -1.3, -2.6, -9.4, 12.5])
unary("Lgamma", lgamma, 0.3, 5, slack=1e-15).special(POLES).special(LEFT).case(REFLECTED)
cases = unary("Digamma", with_poles(special.psi), 0.4, 5, slack=1e-14)
cases.special([x for x in POLES if x != -np.inf]).special(LEFT).case(REFLECTED)
unary("Erfinv", odd(special.erfinv), -0.8, 0.8).special(
    [0.0, -0.0, 1.0, -1.0, 1.5, -2.0, np.inf, np.nan, 0.84999, 0.85001, 0.9999999, 1e-30]
).case(T([0.9, -0.99, 0.86]))
unary("Ndtri", special.ndtri, 0.1, 0.9).special(
    [0.0, -0.0, 1.0, 0.5, 1.5, -1.0, np.inf, np.nan, 1e-30, 1e-45, 0.075, 0.0751, 0.9251]
).case(T([0.03, 0.97, 0.001]))
# SciPy errs by up to 10 units in the last place below 8.
unary("BesselI0e", special.i0e, 0.2, 6, ulps=8).special().special([-20, 15.99, 16.01, 700, -3.5]).case(
    T([-3.0, -0.7, 20.0, -17.5])
)
unary("BesselI1e", odd(special.i1e), 0.2, 6, ulps=12).special().special([-20, 15.99, 16.01, 700, -3.5]).case(
    T([-3.0, -0.7, 20.0, -17.5])
)

INCOMPATIBLE = ("InvalidArgument", r"Incompatible shapes: \[2\] vs. \[3\]")


def above(low_x, high_x, low_y, high_y):
    """Pairs of operands with bounds of their own."""
    return [(rand(x, low_x, high_x), rand(y, low_y, high_y)) for x, y in PAIRS]


def left_zeta(s, q):
    """SciPy has the sum for q > 0 alone: as a derivative of digamma."""
    s, q = np.broadcast_arrays(s, q)
    whole = np.where((q < 0) & (q != np.floor(q)) & (s == np.floor(s)) & (s > 1), s, 2)
    pole = (q <= 0) & (q == np.floor(q))
    with np.errstate(all="ignore"):
        left = sum((q + k) ** -whole for k in range(64)) + special.zeta(whole, np.abs(q + 64))
        right = np.where((q > 0) & (s > 1), special.zeta(s, np.abs(q)), np.nan)
    result = np.where((q < 0) & (s == np.floor(s)) & (s > 1), left, right)
    return np.where(s == 1, np.inf, np.where((s > 1) & pole, np.inf, result))


op("Zeta", left_zeta, grad=2, wrt=(1,)).cases_of(*above(1.5, 6, 0.5, 6)).case(
    T([2.0, 3.0, 4.0, 5.0]), T([-0.5, -1.75, -20.25, -3.3]), options={"slack": 1e-13}
).case(
    T([1.0, 0.5, 2.0, 2.0, 2.5, -1.0, 2.0, np.nan]),
    T([3.0, 2.0, 0.0, -3.0, -1.5, 2.0, np.inf, 1.0]),
    options={"grad": 0},
).error(*INCOMPATIBLE, (2,), (3,))


def polygamma(n, x):
    n, x = np.broadcast_arrays(n, x)
    whole = (n >= 0) & (n == np.floor(n))
    with np.errstate(all="ignore"):
        value = special.polygamma(np.where(whole, n, 0).astype(int), x)
        value = np.where(n == 0, with_poles(special.psi)(x), value)
    return np.where(whole, value, np.nan)


op("Polygamma", polygamma, grad=2, wrt=(1,)).cases_of(
    *[(T(np.float64(n) + np.zeros(a)), rand(x, 0.5, 6)) for n, (a, x) in enumerate(PAIRS)]
).case(T([0.0, 1.0, 2.0, 5.0, 40.0]), T([3.5, 0.25, 100.0, 1.5, 7.0])).case(
    T([-1.0, 0.5, np.nan, -0.5]), T([2.0, 2.0, 2.0, 3.0]), options={"grad": 0}
).error(*INCOMPATIBLE, (2,), (3,))


def incomplete(function, at_zero):
    """Outside a > 0 and x > 0 as TensorFlow has it."""

    def call(a, x):
        a, x = np.broadcast_arrays(a, x)
        inside = (a > 0) & (x > 0)
        with np.errstate(all="ignore"):
            value = function(np.where(inside, a, 1), np.where(inside, x, 1))
        return np.where(inside, value, np.where((x == 0) & at_zero(a), function(1.0, 0.0), np.nan))

    return call


EDGES = (
    T([0.0, -1.0, 2.0, 2.0, 2.0, 0.0, np.nan, 2.0, 3.0, np.inf, 0.0, -2.0]),
    T([1.0, 1.0, -1.0, 0.0, np.inf, 0.0, 1.0, np.nan, 0.5, 2.0, -1.0, 0.0]),
)
SPREAD = (T([0.01, 0.3, 0.9, 1.0, 5.0, 19.9, 20.1, 199, 201, 5000.0, 1e6]),
          T([0.5, 1.2, 1e-3, 1.0, 7.0, 15.0, 30.0, 150, 210, 5100.0, 1000500.0]))
for name, oracle in (
    ("Igamma", incomplete(special.gammainc, lambda a: True)),
    ("Igammac", incomplete(special.gammaincc, lambda a: a > 0)),
):
    cases = op(name, oracle, slack=1e-13)
    cases.cases_of(*above(0.5, 6, 0.5, 6)).case(*EDGES, options={"grad": 0, "slack": 0})
    cases.case(*SPREAD, options={"ulps": 400})
    cases.case(T([[0.5, 2.0, 30.0]]), T([[0.8], [2.5], [28.0]]), options={"grad": 2})
    cases.error(*INCOMPATIBLE, (2,), (3,))


def slope(a, x):
    """A difference of SciPy's values."""
    a, x = np.broadcast_arrays(a, x)
    h = 1e-5 * a
    with np.errstate(all="ignore"):
        value = (special.gammainc(a + h, x) - special.gammainc(a - h, x)) / (2 * h)
    value = np.where(np.isinf(a), 0, value)
    return np.where(x == 0, 0, np.where((a > 0) & (x > 0), value, np.nan))


op("IgammaGradA", slope, slack=1e-8, grad=1).cases_of(*above(0.5, 6, 0.5, 6)).case(
    *EDGES, options={"grad": 0}
).case(*SPREAD).error(*INCOMPATIBLE, (2,), (3,))


def curve(a, x):
    """A second difference of SciPy's values."""
    a, x = np.broadcast_arrays(a, x)
    h = 2e-4 * a
    with np.errstate(all="ignore"):
        outer = special.gammainc(a + h, x) + special.gammainc(a - h, x)
        value = (outer - 2 * special.gammainc(a, x)) / (h * h)
    value = np.where(np.isinf(a), 0, value)
    return np.where(x == 0, 0, np.where((a > 0) & (x > 0), value, np.nan))


op("IgammaGradAA", curve, slack=1e-6, grad=1, wrt=(1,)).cases_of(*above(0.5, 6, 0.5, 6)).case(
    *EDGES, options={"grad": 0}
).case(*SPREAD, options={"slack": 0.3, "ulps": 1e12}).error(*INCOMPATIBLE, (2,), (3,))


def betainc(a, b, x):
    a, b, x = np.broadcast_arrays(a, b, x)
    inside = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    value = special.betainc(np.where(inside, a, 1), np.where(inside, b, 1), np.where(inside, x, 0))
    return np.where(inside, value, np.nan)


cases = op("Betainc", betainc, slack=1e-13, grad=2, wrt=(2,))
for first, second in PAIRS:
    cases.case(rand(first, 0.6, 4), rand(second, 0.6, 4), rand(second, 0.1, 0.9))
cases.case(rand((3, 1), 1, 4), rand((5,), 1, 4), rand((2, 1, 1), 0.1, 0.9)).case(
    rand((), 1, 4), rand((), 1, 4), rand((33,), 0.1, 0.9)
).case(
    T([1.0, 0.0, 2.0, -1.0, 2.0, 2.0, 2.0, np.nan, 2.0]),
    T([1.0, 1.0, 0.0, 1.0, 3.0, 3.0, 3.0, 1.0, 1.0]),
    T([0.3, 0.5, 0.5, 0.5, 0.0, 1.0, 1.5, 0.5, -0.1]),
    options={"grad": 0},
).case(T([0.01, 30.0, 500.0, 1e4]), T([7.0, 40.0, 0.3, 2e4]), T([0.2, 0.4, 0.998, 0.33]),
       options={"slack": 1e-10, "grad": 0}).error(
    "InvalidArgument", r"Incompatible shapes: \[2\] vs. \[3\]", (2,), (2,), (3,)
)
