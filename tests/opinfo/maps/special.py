# SPDX-License-Identifier: Apache-2.0
"""Special functions, and operations on bits."""

import math

import treenail as tn

from common import cast, floating, promoted
from mapping import maps

FLOATING = {
    "erfinv": tn.math.erfinv, "lgamma": tn.lgamma, "i0": tn.math.bessel_i0,
    "special.i0e": tn.math.bessel_i0e, "special.i1": tn.math.bessel_i1,
    "special.i1e": tn.math.bessel_i1e, "special.modified_bessel_i0": tn.math.bessel_i0,
    "special.modified_bessel_i1": tn.math.bessel_i1, "special.ndtri": tn.math.ndtri,
}
for _name, _function in FLOATING.items():
    maps(_name)(lambda x, function=_function: function(floating(x)))


# torch's own trigamma and zeta are good for some 11 digits (1.13).
DOUBLES = {"float64": 1e5}


@maps("digamma", slack=DOUBLES)
def digamma(x):
    """torch has -infinity at 0 and NaN at negative whole numbers."""
    x = floating(x)
    pole = tn.where(tn.equal(x, tn.zeros_like(x)), tn.fill(tn.shape(x), cast(-math.inf, x.dtype)),
                    tn.fill(tn.shape(x), cast(math.nan, x.dtype)))
    return tn.where(tn.is_inf(tn.digamma(x)) & (x <= 0), pole, tn.digamma(x))


def _is_pole(x, *args, **kwargs):
    """torch has some 1e15 at whole numbers of 0 and less, where the function is infinite."""
    return not x.is_floating_point() and bool((x <= 0).any())


@maps("polygamma/polygamma_n_0", "polygamma/polygamma_n_1", "polygamma/polygamma_n_2",
      "polygamma/polygamma_n_3", "polygamma/polygamma_n_4",
      "special.polygamma/special_polygamma_n_0", slack=DOUBLES, distrust=_is_pole)
def polygamma(x, n):
    x = floating(x)
    return digamma(x) if n == 0 else tn.polygamma(cast(n, x.dtype), x)


@maps("special.log_ndtr")
def log_ndtr(x):
    x = floating(x)
    return tn.log(tn.erfc(x * -math.sqrt(0.5)) / 2)


@maps("special.erfcx")
def erfcx(x):
    x = floating(x)
    return tn.exp(tn.square(x)) * tn.erfc(x)


@maps("special.spherical_bessel_j0")
def spherical_bessel_j0(x):
    x = floating(x)
    zero = tn.equal(x, 0)
    safe = tn.where(zero, tn.ones_like(x), x)
    return tn.where(zero, tn.ones_like(x), tn.sin(safe) / safe)


@maps("mvlgamma/mvlgamma_p_1", "mvlgamma/mvlgamma_p_3", "mvlgamma/mvlgamma_p_5")
def mvlgamma(x, p):
    x = floating(x)
    terms = [tn.lgamma(x - j / 2) for j in range(p)]
    return tn.add_n(terms) + p * (p - 1) / 4 * math.log(math.pi)


def _floating(function):
    def mapped(x, y):
        x, y = promoted(x, y)
        return function(floating(x), floating(y))
    return mapped


maps("special.zeta")(_floating(tn.zeta))
maps("igamma")(_floating(tn.igamma))
maps("igammac")(_floating(tn.igammac))
maps("nextafter")(_floating(tn.math.nextafter))


@maps("frexp")
def frexp(x):
    narrow = x.dtype == tn.float32
    bits = tn.bitcast(x, tn.int32 if narrow else tn.int64)
    digits, below_half = (23, 126) if narrow else (52, 1022)
    exponent = tn.bitwise.right_shift(bits, cast(digits, bits.dtype))
    exponent = tn.bitwise.bitwise_and(exponent, cast(2 * below_half + 3, bits.dtype)) - below_half
    exponent = tn.where(tn.equal(x, 0), tn.zeros_like(exponent), exponent)
    return x * tn.pow(cast(2, x.dtype), cast(-exponent, x.dtype)), cast(exponent, tn.int32)


def _bits(of_booleans, of_integers):
    def mapped(x, y):
        x, y = promoted(x, y)
        return of_booleans(x, y) if x.dtype == tn.bool else of_integers(x, y)
    return mapped


maps("bitwise_and", "__rand__")(_bits(tn.logical_and, tn.bitwise.bitwise_and))
maps("bitwise_or", "__ror__")(_bits(tn.logical_or, tn.bitwise.bitwise_or))
maps("bitwise_xor", "__rxor__")(_bits(tn.logical_xor, tn.bitwise.bitwise_xor))


@maps("bitwise_not")
def bitwise_not(x):
    return tn.logical_not(x) if x.dtype == tn.bool else tn.bitwise.invert(x)


@maps("bitwise_left_shift")
def left_shift(x, y):
    return tn.bitwise.left_shift(*promoted(x, y))


@maps("bitwise_right_shift")
def right_shift(x, y):
    return tn.bitwise.right_shift(*promoted(x, y))
