# SPDX-License-Identifier: Apache-2.0
"""Functions of two numbers, broadcast."""

import math

import treenail as tn

from common import cast, floating, is_complex, is_exact, is_tensor, promoted, result_dtype
from mapping import decline, maps


def alike(function, alpha=False):
    """function(x, y) in the promoted dtype."""

    def mapped(x, y, **kwargs):
        x, y = promoted(x, y)
        if kwargs.get("alpha", 1) != 1:
            y = y * cast(kwargs["alpha"], y.dtype)
        return function(x, y)

    return mapped


maps("mul", "__rmul__")(alike(lambda x, y: tn.logical_and(x, y) if x.dtype == tn.bool
                              else tn.multiply(x, y)))
maps("sub")(alike(tn.subtract))
maps("maximum", "max/binary")(alike(tn.maximum))
maps("minimum", "min/binary")(alike(tn.minimum))


@maps("__rsub__", "rsub")
def rsub(x, y, alpha=1):
    x, y = promoted(x, y)
    return tn.subtract(y, x if alpha == 1 else x * cast(alpha, x.dtype))


@maps("add", "__radd__")
def add(x, y, alpha=1):
    x, y = promoted(x, y)
    if x.dtype == tn.bool:
        return tn.logical_or(x, y) if alpha else x
    return tn.add(x, y if alpha == 1 else y * cast(alpha, y.dtype))


def _divided(x, y):
    dtype = result_dtype(x, y)
    x, y = cast(x, dtype), cast(y, dtype)
    return floating(x), floating(y)


@maps("div/no_rounding_mode", "true_divide")
def true_divide(x, y, rounding_mode=None):
    return tn.truediv(*_divided(x, y))


@maps("__rdiv__")
def rdiv(x, y):
    y, x = _divided(y, x)
    return tn.truediv(y, x)


@maps("div/floor_rounding", "floor_divide")
def floor_divide(x, y, rounding_mode="floor"):
    x, y = promoted(x, y)
    return tn.floordiv(x, y)


@maps("div/trunc_rounding")
def trunc_divide(x, y, rounding_mode="trunc"):
    x, y = promoted(x, y)
    if is_exact(x):
        return tn.truncatediv(x, y)
    q = x / y
    return tn.where(q < 0, tn.ceil(q), tn.floor(q))


@maps("remainder")
def remainder(x, y):
    x, y = promoted(x, y)
    return tn.floormod(x, y)


@maps("__rmod__")
def rmod(x, y):
    x, y = promoted(x, y)
    return tn.floormod(y, x)


@maps("fmod")
def fmod(x, y):
    x, y = promoted(x, y)
    return tn.raw_ops.Mod(x, y) if is_exact(x) else x - tn.stop_gradient(trunc_divide(x, y)) * y


@maps("pow")
def power(x, y):
    x, y = promoted(x, y)
    return tn.pow(x, y)


# Whole numbers with negative exponents are an error here, zeros in torch.
# torch's own __rpow__ copies y, which has no gradient then.
@maps("__rpow__", dtypes=("float32", "float64", "complex64", "complex128"),
      asked=lambda op, x, y: y ** x)
def rpow(x, y):
    x, y = promoted(x, y)
    return tn.pow(y, x)


@maps("float_power")
def float_power(x, y):
    wide = tn.complex128 if result_dtype(x, y).name.startswith("complex") else tn.float64
    return tn.pow(cast(x, wide), cast(y, wide))


@maps("atan2")
def atan2(x, y):
    return tn.atan2(*_divided(x, y))


@maps("xlogy")
def xlogy(x, y):
    return tn.math.xlogy(*_divided(x, y))


@maps("special.xlog1py")
def xlog1py(x, y):
    x, y = _divided(x, y)
    return tn.where(tn.logical_and(tn.equal(x, tn.zeros_like(x + y)),
                                   tn.logical_not(tn.is_nan(y + tn.zeros_like(x)))),
                    tn.zeros_like(x + y), x * tn.math.log1p(y))


@maps("hypot")
def hypot(x, y):
    x, y = promoted(x, y)
    return tn.sqrt(tn.square(x) + tn.square(y))


@maps("logaddexp")
def logaddexp(x, y):
    top, low = tn.maximum(x, y), tn.minimum(x, y)
    return tn.where(tn.equal(x + tn.zeros_like(y), y + tn.zeros_like(x)),
                    top + tn.cast(math.log(2), top.dtype), top + tn.math.log1p(tn.exp(low - top)))


@maps("logaddexp2")
def logaddexp2(x, y):
    top, low = tn.maximum(x, y), tn.minimum(x, y)
    two = tn.constant(2, dtype=x.dtype)
    return top + tn.math.log1p(tn.pow(two, low - top)) / tn.log(two)


@maps("ldexp")
def ldexp(x, y):
    dtype = floating(promoted(x, y)[0]).dtype
    return cast(x, dtype) * tn.pow(tn.constant(2, dtype=dtype), cast(y, dtype))


for _name, _function in {"eq": tn.equal, "ne": tn.not_equal, "lt": tn.less, "le": tn.less_equal,
                         "gt": tn.greater, "ge": tn.greater_equal}.items():
    def _compared(x, y, function=_function):
        x, y = promoted(x, y)
        if x.dtype == tn.bool and function not in (tn.equal, tn.not_equal):
            x, y = cast(x, tn.int32), cast(y, tn.int32)
        return function(x, y)
    maps(_name)(_compared)


for _name, _function in {"logical_and": tn.logical_and, "logical_or": tn.logical_or,
                         "logical_xor": tn.logical_xor}.items():
    maps(_name)(lambda x, y, function=_function: function(cast(x, tn.bool), cast(y, tn.bool)))


@maps("fmax")
def fmax(x, y):
    return _ignoring_nan(tn.maximum, x, y)


@maps("fmin")
def fmin(x, y):
    return _ignoring_nan(tn.minimum, x, y)


def _ignoring_nan(function, x, y):
    x, y = promoted(x, y)
    if is_exact(x):
        return function(x, y)
    wide_x, wide_y = x + tn.zeros_like(y), y + tn.zeros_like(x)
    return tn.where(tn.is_nan(wide_x), wide_y, tn.where(tn.is_nan(wide_y), wide_x, function(x, y)))


@maps("heaviside")
def heaviside(x, values):
    x, values = promoted(x, values)
    if x.dtype == tn.bool:
        return tn.logical_or(x, values)
    wide = x + tn.zeros_like(values)
    return tn.where(tn.equal(wide, tn.zeros_like(wide)), values + tn.zeros_like(x),
                    tn.cast(wide > tn.zeros_like(wide), x.dtype))


@maps("copysign")
def copysign(x, y):
    x, y = _divided(x, y)
    bits = tn.bitcast(y, tn.int32 if y.dtype == tn.float32 else tn.int64)
    magnitude = tn.abs(x) + tn.zeros_like(y)
    return tn.where(tn.less(bits + tn.cast(tn.zeros_like(x), bits.dtype), 0), -magnitude, magnitude)


@maps("lerp")
def lerp(start, end, weight):
    weight = cast(weight, start.dtype)
    return start + weight * (end - start)


@maps("addcmul")
def addcmul(x, a, b, value=1):
    dtype = result_dtype(x, a, b)
    x, a, b = cast(x, dtype), cast(a, dtype), cast(b, dtype)
    return x + cast(int(value) if is_exact(x) else value, dtype) * a * b


@maps("addcdiv")
def addcdiv(x, a, b, value=1):
    return x + cast(value, x.dtype) * a / b


@maps("isclose")
def isclose(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    same = tn.equal(x, y)
    if is_exact(x):
        x, y = cast(x, tn.float64), cast(y, tn.float64)
    gap = tn.abs(x - y)
    real = gap.dtype
    near = gap <= tn.constant(atol, dtype=real) + tn.constant(rtol, dtype=real) * tn.abs(y)
    near = tn.logical_and(near, tn.is_finite(gap))
    if equal_nan and not is_complex(x):
        same = tn.logical_or(same, tn.logical_and(tn.is_nan(x), tn.is_nan(y)))
    return tn.logical_or(same, near)


@maps("allclose")
def allclose(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    return tn.reduce_all(isclose(x, y, rtol, atol, equal_nan))


@maps("equal")
def equal(x, y):
    if x.shape.as_list() != y.shape.as_list():
        return tn.constant(False)
    return tn.reduce_all(tn.equal(x, y))


@maps("complex")
def complex_number(x, y):
    return tn.complex(x + tn.zeros_like(y), y + tn.zeros_like(x))


@maps("polar")
def polar(radius, angle):
    return tn.complex(radius * tn.cos(angle), radius * tn.sin(angle))


@maps("where")
def where(x, condition, y):
    if not is_tensor(condition):
        decline("no tensor")
    x, y = promoted(x, y)
    return tn.where(*_spread(condition, x, y))


def _spread(*tensors):
    target = tn.shape(tensors[0])
    for t in tensors[1:]:
        target = tn.broadcast_dynamic_shape(target, tn.shape(t))
    return [tn.broadcast_to(t, target) for t in tensors]


@maps("masked_fill")
def masked_fill(x, mask, value):
    return tn.where(*_spread(mask, cast(bool(value) if x.dtype == tn.bool and not is_tensor(value)
                                        else value, x.dtype), x))


def _common_divisor(x, y):
    """Euclid's, of all pairs at once."""
    def step(a, b):
        done = tn.equal(b, 0)
        return tn.where(done, a, b), tn.where(done, b, a % tn.where(done, tn.ones_like(b), b))

    x, y = x + tn.zeros_like(y), y + tn.zeros_like(x)
    return tn.while_loop(lambda a, b: tn.reduce_any(tn.not_equal(b, 0)), step,
                         [tn.abs(x), tn.abs(y)])[0]


@maps("gcd")
def gcd(x, y):
    return _common_divisor(*promoted(x, y))


@maps("lcm")
def lcm(x, y):
    x, y = promoted(x, y)
    divisor = _common_divisor(x, y)
    return tn.abs(x // tn.where(tn.equal(divisor, 0), tn.ones_like(divisor), divisor) * y)
