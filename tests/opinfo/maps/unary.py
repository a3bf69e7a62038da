# SPDX-License-Identifier: Apache-2.0
"""Functions of one number."""

import math

import treenail as tn

from common import (cast, counted, floating, is_complex, is_exact, is_real_float, promoted,
                    scalar_like)
from mapping import maps

FLOATING = {
    "acos": tn.acos, "acosh": tn.acosh, "asin": tn.asin, "asinh": tn.asinh, "atan": tn.atan,
    "atanh": tn.atanh, "cos": tn.cos, "cosh": tn.cosh, "sin": tn.sin, "sinh": tn.sinh,
    "tan": tn.tan, "tanh": tn.tanh, "exp": tn.exp, "expm1": tn.expm1, "log": tn.log,
    "log1p": tn.math.log1p, "sqrt": tn.sqrt, "rsqrt": tn.rsqrt, "sigmoid": tn.sigmoid,
    "erf": tn.erf, "erfc": tn.erfc, "reciprocal": tn.reciprocal,
}
for _name, _function in FLOATING.items():
    maps(_name)(lambda x, function=_function: function(floating(x)))


@maps("abs")
def absolute(x):
    return x if x.dtype == tn.bool else tn.abs(x)


@maps("neg")
def negative(x):
    return tn.negative(x)


@maps("square")
def square(x):
    return tn.square(counted(x) if x.dtype == tn.bool else x)


@maps("sign", "sgn")
def sign(x):
    return x if x.dtype == tn.bool else tn.sign(x)


def _whole(function):
    return lambda x: x if is_exact(x) else function(x)


for _name, _function in {"ceil": tn.ceil, "floor": tn.floor, "round": tn.round}.items():
    maps(_name)(_whole(_function))


@maps("trunc")
def trunc(x):
    return x if is_exact(x) else tn.where(x < 0, tn.ceil(x), tn.floor(x))


@maps("frac")
def frac(x):
    return x - tn.stop_gradient(trunc(x))


@maps("round/decimals_0", "round/decimals_3", "round/decimals_neg_3")
def round_decimals(x, decimals):
    if is_exact(x):
        return x
    scale = scalar_like(10.0 ** abs(decimals), x)
    return tn.round(x * scale) / scale if decimals >= 0 else tn.round(x / scale) * scale


@maps("positive", "clone", "contiguous", "resolve_conj", "resolve_neg")
def same(x, memory_format=None):
    return tn.identity(x)


@maps("conj", "conj_physical")
def conj(x):
    return tn.conj(x)


@maps("real")
def real(x):
    return tn.real(x)


@maps("imag")
def imag(x):
    return tn.imag(x)


@maps("angle")
def angle(x):
    return tn.angle(x) if is_complex(x) else tn.where(
        tn.is_nan(floating(x)), floating(x), tn.where(
            x < 0 if x.dtype != tn.bool else tn.zeros_like(x),
            tn.fill(tn.shape(x), scalar_like(math.pi, floating(x))), tn.zeros_like(floating(x))))


@maps("logical_not")
def logical_not(x):
    return tn.logical_not(cast(x, tn.bool))


@maps("isnan")
def isnan(x):
    return _number_test(tn.is_nan, x, any)


@maps("isinf")
def isinf(x):
    return _number_test(tn.is_inf, x, any)


@maps("isfinite")
def isfinite(x):
    return _number_test(tn.is_finite, x, all)


def _number_test(function, x, rule):
    if is_complex(x):
        parts = function(tn.real(x)), function(tn.imag(x))
        return tn.logical_and(*parts) if rule is all else tn.logical_or(*parts)
    return function(floating(x))


@maps("isposinf")
def isposinf(x):
    x = floating(x)
    return tn.logical_and(tn.is_inf(x), x > 0)


@maps("isneginf")
def isneginf(x):
    x = floating(x)
    return tn.logical_and(tn.is_inf(x), x < 0)


@maps("isreal")
def isreal(x):
    return tn.equal(tn.imag(x), 0) if is_complex(x) else tn.ones_like(x, dtype=tn.bool)


@maps("signbit")
def signbit(x):
    if is_real_float(x):
        bits = tn.bitcast(x, tn.int32 if x.dtype == tn.float32 else tn.int64)
        return bits < 0
    return tn.zeros_like(x) if x.dtype == tn.bool else x < 0


@maps("deg2rad")
def deg2rad(x):
    x = floating(x)
    return x * scalar_like(math.pi / 180, x)


@maps("rad2deg")
def rad2deg(x):
    x = floating(x)
    return x * scalar_like(180 / math.pi, x)


@maps("exp2")
def exp2(x):
    x = floating(x)
    return tn.pow(scalar_like(2, x), x)


@maps("log10")
def log10(x):
    x = floating(x)
    return tn.log(x) / scalar_like(math.log(10), x)


@maps("log2")
def log2(x):
    x = floating(x)
    return tn.log(x) / scalar_like(math.log(2), x)


@maps("sinc")
def sinc(x):
    x = floating(x)
    zero = tn.equal(x, 0)
    safe = tn.where(zero, tn.ones_like(x), x) * scalar_like(math.pi, x)
    return tn.where(zero, tn.ones_like(x), tn.sin(safe) / safe)


@maps("logit")
def logit(x, eps=None):
    x = floating(x)
    if eps is not None:
        x = tn.clip_by_value(x, scalar_like(eps, x), scalar_like(1 - eps, x))
    return tn.log(x / (1 - x))


@maps("nan_to_num")
def nan_to_num(x, nan=None, posinf=None, neginf=None):
    if is_exact(x):
        return x
    top = 3.4028234663852886e38 if x.dtype == tn.float32 else 1.7976931348623157e308

    def full(value):
        return tn.fill(tn.shape(x), scalar_like(value, x))
    x = tn.where(tn.is_nan(x), full(nan or 0.0), x)
    x = tn.where(tn.logical_and(tn.is_inf(x), x > 0), full(top if posinf is None else posinf), x)
    return tn.where(tn.logical_and(tn.is_inf(x), x < 0), full(-top if neginf is None else neginf),
                    x)


@maps("special.entr")
def entr(x):
    x = floating(x)
    infinite = tn.fill(tn.shape(x), scalar_like(-math.inf, x))
    return tn.where(x < 0, infinite, -tn.math.xlogy(x, x))


@maps("special.ndtr")
def ndtr(x):
    x = floating(x)
    return tn.erfc(x * scalar_like(-math.sqrt(0.5), x)) * scalar_like(0.5, x)


@maps("clamp_max")
def clamp_max(x, bound):
    x, bound = promoted(x, bound)
    return tn.minimum(x, bound)


@maps("clamp_min")
def clamp_min(x, bound):
    x, bound = promoted(x, bound)
    return tn.maximum(x, bound)


@maps("clamp")
def clamp(x, low=None, high=None):
    given = [v for v in (low, high) if v is not None]
    cast_to = promoted(x, *given)
    x, bounds = cast_to[0], cast_to[1:]
    if low is not None:
        x = tn.maximum(x, bounds[0])
    return x if high is None else tn.minimum(x, bounds[-1])


for _name, _dtype in {"bool": tn.bool, "double": tn.float64, "float": tn.float32,
                      "int": tn.int32, "long": tn.int64, "short": tn.int16,
                      "char": tn.int8}.items():
    maps(_name)(lambda x, memory_format=None, dtype=_dtype: cast(x, dtype))


@maps("byte")
def byte(x, memory_format=None):
    """By way of int64: of a negative number torch keeps the low bits."""
    return cast(cast(x, tn.int64) if not is_exact(x) else x, tn.uint8)


@maps("half")
def half(x, memory_format=None):
    return cast(x, tn.float16)


# NumPy has no bfloat16: compared in float32.
@maps("bfloat16", asked=lambda op, x, **kwargs: op(x, **kwargs).float())
def bfloat16(x, memory_format=None):
    return cast(cast(x, tn.bfloat16), tn.float32)


@maps("to")
def to(x, *args, **kwargs):
    for value in (*args, *kwargs.values()):
        if isinstance(value, tn.DType):
            return cast(x, value)
        if isinstance(value, tn.Tensor):
            return cast(x, value.dtype)
    return tn.identity(x)
