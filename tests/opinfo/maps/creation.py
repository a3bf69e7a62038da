# SPDX-License-Identifier: Apache-2.0
"""Tensors made from sizes and numbers. Of what torch leaves unset shape and dtype are compared."""

import math

import treenail as tn

from common import cast, dims, is_complex, shape
from mapping import maps


@maps("ones")
def ones(*sizes, dtype=tn.float32):
    return tn.ones(dims(*sizes), dtype=dtype)


@maps("zeros")
def zeros(*sizes, dtype=tn.float32):
    return tn.zeros(dims(*sizes), dtype=dtype)


@maps("empty", random=True)
def empty(*sizes, dtype=tn.float32):
    return tn.zeros(dims(*sizes), dtype=dtype)


@maps("ones_like")
def ones_like(x, dtype=None):
    return tn.ones_like(x, dtype=dtype)


@maps("zeros_like", "zero_")
def zeros_like(x, dtype=None):
    return tn.zeros_like(x, dtype=dtype)


@maps("empty_like", random=True)
def empty_like(x, dtype=None):
    return tn.zeros_like(x, dtype=dtype)


@maps("full_like")
def full_like(x, value, dtype=None):
    return tn.fill(tn.shape(x), _value(value, dtype or x.dtype))


def _value(value, dtype):
    return cast(bool(value) if tn.as_dtype(dtype) == tn.bool and not isinstance(value, tn.Tensor)
                else value, dtype)


@maps("fill")
def fill(x, value):
    return tn.broadcast_to(_value(value, x.dtype), tn.shape(x))


@maps("new_zeros")
def new_zeros(x, *sizes, dtype=None):
    return tn.zeros(dims(*sizes), dtype=dtype or x.dtype)


@maps("new_ones")
def new_ones(x, *sizes, dtype=None):
    return tn.ones(dims(*sizes), dtype=dtype or x.dtype)


@maps("new_empty", random=True)
def new_empty(x, *sizes, dtype=None):
    return tn.zeros(dims(*sizes), dtype=dtype or x.dtype)


@maps("new_empty_strided", random=True)
def new_empty_strided(x, sizes, strides, dtype=None):
    return tn.zeros(list(sizes), dtype=dtype or x.dtype)


@maps("new_full")
def new_full(x, sizes, value, dtype=None):
    return tn.fill(list(sizes), _value(value, dtype or x.dtype))


@maps("eye")
def eye(rows, columns=None, dtype=tn.float32):
    return tn.eye(rows, columns, dtype=dtype)


# torch counts in float64 and rounds once; tn.range does what TensorFlow's does, in the dtype.
@maps("arange", slack={"float32": 4})
def arange(*bounds, dtype=None, **named):
    start, end, step = _bounds(bounds, named)
    if dtype is None:
        whole = all(isinstance(v, int) for v in (start, end, step))
        dtype = tn.int64 if whole else tn.float32
    if dtype == tn.int64:  # the one dtype in which torch counts in whole numbers
        start, end, step = int(start), int(end), int(step)
    count = max(0, math.ceil((end - start) / step))
    steps = tn.cast(tn.range(count), dtype)
    return steps * cast(step, dtype) + cast(start, dtype)


def _bounds(bounds, named):
    values = dict(zip(("end",) if len(bounds) == 1 else ("start", "end", "step"), bounds), **named)
    return values.get("start", 0), values["end"], values.get("step", 1)


@maps("linspace", dtypes=("float32", "float64"))
def linspace(start, end, steps, dtype=tn.float32):
    if not steps:
        return tn.zeros([0], dtype=dtype)
    return tn.linspace(tn.constant(start, dtype=dtype), tn.constant(end, dtype=dtype), steps)


# A power of numbers near 100 multiplies their rounding by as much.
@maps("logspace", dtypes=("float32", "float64"), slack={"float32": 16, "float64": 16})
def logspace(start, end, steps, base=10.0, dtype=tn.float32):
    return tn.pow(tn.constant(base, dtype=dtype), linspace(start, end, steps, dtype))


@maps("nn.functional.one_hot")
def one_hot(x, num_classes=-1):
    depth = tn.reduce_max(x) + 1 if num_classes == -1 else num_classes
    return tn.one_hot(x, tn.cast(depth, tn.int32), dtype=tn.int64)


@maps("broadcast_shapes")
def broadcast_shapes(*shapes):
    whole = [[s] if isinstance(s, int) else list(s) for s in shapes]
    target = tn.constant(whole[0], dtype=tn.int64, shape=[len(whole[0])])
    for s in whole[1:]:
        target = tn.broadcast_dynamic_shape(target, tn.constant(s, dtype=tn.int64, shape=[len(s)]))
    count = max(len(s) for s in whole)
    return tn.unstack(target, num=count)


@maps("rand_like", random=True, within=(0, 1))
def rand_like(x, dtype=None):
    dtype = dtype or x.dtype
    if dtype in (tn.complex64, tn.complex128):
        part = tn.float32 if dtype == tn.complex64 else tn.float64
        return tn.complex(tn.random_uniform(shape(x), dtype=part),
                          tn.random_uniform(shape(x), dtype=part))
    return tn.random_uniform(shape(x), dtype=dtype)


@maps("randn_like", random=True)
def randn_like(x, dtype=None):
    return randn(shape(x), dtype=dtype or x.dtype)


@maps("randn", random=True)
def randn(*sizes, dtype=tn.float32):
    sizes = dims(*sizes)
    if dtype in (tn.complex64, tn.complex128):
        part = tn.float32 if dtype == tn.complex64 else tn.float64
        half = tn.constant(math.sqrt(0.5), dtype=part)
        return tn.complex(tn.random_normal(sizes, dtype=part) * half,
                          tn.random_normal(sizes, dtype=part) * half)
    return tn.random_normal(sizes, dtype=dtype)


@maps("randint_like", random=True)
def randint_like(x, low, high=None, dtype=None):
    low, high = (0, low) if high is None else (low, high)
    return tn.cast(tn.random_uniform(shape(x), low, high, dtype=tn.int64), dtype or x.dtype)


@maps("uniform", random=True)
def uniform(x, low=0.0, high=1.0):
    if is_complex(x):
        part = tn.real(x).dtype
        return tn.complex(*(tn.random_uniform(shape(x), low, high, dtype=part) for _ in range(2)))
    return tn.random_uniform(shape(x), low, high, dtype=x.dtype)


@maps("normal", "normal/number_mean", random=True)
def normal(mean, std=1.0, *more):
    if isinstance(std, tn.Tensor) and not isinstance(mean, tn.Tensor):
        return tn.random_normal(shape(std), dtype=std.dtype) * std + cast(mean, std.dtype)
    drawn = tn.random_normal(shape(mean + std) if isinstance(std, tn.Tensor) else shape(mean),
                             dtype=mean.dtype)
    return drawn * cast(std, mean.dtype) + mean


@maps("bernoulli", random=True, within=(0, 1))
def bernoulli(x, p=None):
    return tn.cast(tn.random_uniform(shape(x), dtype=x.dtype) < (x if p is None else cast(
        p, x.dtype)), x.dtype)


@maps("multinomial", random=True, within=(0, 19))
def multinomial(x, count, replacement=False):
    """Without replacement by the largest of perturbed logarithms (Gumbel's trick)."""
    rows = tn.reshape(x, [-1, shape(x)[-1]])
    if replacement:
        drawn = tn.multinomial(tn.log(rows), count)
    else:
        noise = -tn.log(-tn.log(tn.random_uniform(shape(rows), 1e-6, 1.0, dtype=x.dtype)))
        drawn = tn.cast(tn.nn.top_k(tn.log(rows) + noise, count)[1], tn.int64)
    return tn.reshape(drawn, shape(x)[:-1] + [count])


@maps("nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d", random=True)
def dropout(x, p=0.5, training=True, inplace=False):
    return tn.nn.dropout(x, rate=p) if training and p < 1 else tn.identity(x)


@maps("nn.functional.rrelu", random=True)
def rrelu(x, lower=1 / 8, upper=1 / 3, training=False, inplace=False):
    slope = tn.random_uniform(shape(x), lower, upper, dtype=x.dtype)
    return tn.where(x >= 0, x, x * slope)


@maps("nn.functional.feature_alpha_dropout/with_train", random=True)
def feature_alpha_dropout(x, p=0.5, training=True, inplace=False):
    """Klambauer et al. 2017: what is dropped becomes -1.7581, and mean and variance are mended."""
    keep, saturated = 1 - p, -1.7580993408473766
    features = shape(x)[:2] + [1] * (len(shape(x)) - 2)
    kept = tn.cast(tn.random_uniform(features, dtype=x.dtype) < keep, x.dtype)
    scale = (keep + saturated ** 2 * keep * (1 - keep)) ** -0.5 if keep else 0.0
    return (x * kept + saturated * (1 - kept)) * scale - scale * saturated * (1 - keep)


@maps("nn.functional.feature_alpha_dropout/without_train")
def feature_alpha_dropout_off(x, p=0.5, training=False, inplace=False):
    return tn.identity(x)
