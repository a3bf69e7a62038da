# SPDX-License-Identifier: Apache-2.0
"""Reductions, running totals, norms and what is said by them."""

import math

import treenail as tn

from common import (axes, cast, counted, floating, is_complex, is_exact, promoted, rank, reduced,
                    scalar_like, shape)
from mapping import decline, maps
from maps.decomposition import svdvals


def _typed(x, dtype):
    return cast(x, dtype) if dtype is not None else x


@maps("sum")
def total(x, dim=None, keepdim=False, dtype=None):
    return reduced(tn.reduce_sum, _typed(counted(x), dtype), dim, keepdim)


@maps("mean")
def mean(x, dim=None, keepdim=False, dtype=None):
    return reduced(tn.reduce_mean, _typed(x, dtype), dim, keepdim)


@maps("prod")
def product(x, dim=None, keepdim=False, dtype=None):
    if dtype == tn.bool:
        return reduced(tn.reduce_all, cast(x, dtype), dim, keepdim)
    return reduced(tn.reduce_prod, _typed(counted(x), dtype), dim, keepdim)


@maps("nansum")
def nansum(x, dim=None, keepdim=False, dtype=None):
    return total(_without_nan(x), dim, keepdim, dtype)


def _without_nan(x):
    return x if is_exact(x) else tn.where(tn.is_nan(x), tn.zeros_like(x), x)


@maps("nanmean")
def nanmean(x, dim=None, keepdim=False, dtype=None):
    x = _typed(x, dtype)
    count = reduced(tn.reduce_sum, tn.cast(tn.logical_not(tn.is_nan(x)), x.dtype), dim, keepdim)
    return nansum(x, dim, keepdim) / count


@maps("amax")
def amax(x, dim=None, keepdim=False):
    return reduced(tn.reduce_max, x, dim, keepdim)


@maps("amin")
def amin(x, dim=None, keepdim=False):
    return reduced(tn.reduce_min, x, dim, keepdim)


@maps("aminmax")
def aminmax(x, dim=None, keepdim=False):
    if keepdim and not rank(x):  # torch gives a scalar an axis here
        x = tn.reshape(x, [1])
    return amin(x, dim, keepdim), amax(x, dim, keepdim)


@maps("max/reduction_no_dim")
def max_all(x):
    return tn.reduce_max(x)


@maps("min/reduction_no_dim")
def min_all(x):
    return tn.reduce_min(x)


def picked(x, index, dim, keepdim):
    """The elements of x at `index` along an axis: value and position of a reduction."""
    if not rank(x):
        return tn.identity(x)
    d = dim % rank(x)
    weights = tn.one_hot(index, shape(x)[d], axis=d, on_value=True, off_value=False,
                         dtype=tn.bool)
    last = [i for i in range(rank(x)) if i != d] + [d]
    front = tn.transpose(x, last)
    rows = tn.boolean_mask(front, tn.transpose(weights, last))
    return tn.reshape(rows, [s if i != d else 1 for i, s in enumerate(shape(x))
                             if i != d or keepdim])


def _with_index(function):
    def mapped(x, dim, keepdim=False):
        if not rank(x):
            return tn.identity(x), tn.zeros([], dtype=tn.int64)
        index = function(x, axis=dim)
        values = picked(x, index, dim, keepdim)
        return values, tn.expand_dims(index, dim) if keepdim else index
    return mapped


maps("max/reduction_with_dim")(_with_index(tn.argmax))
maps("min/reduction_with_dim")(_with_index(tn.argmin))


def _arg(function):
    def mapped(x, dim=None, keepdim=False):
        if dim is None or not rank(x):
            found = function(tn.reshape(x, [-1]), axis=0)
            return tn.reshape(found, [1] * rank(x)) if keepdim else found
        found = function(x, axis=dim)
        return tn.expand_dims(found, dim) if keepdim else found
    return mapped


maps("argmax")(_arg(tn.argmax))
maps("argmin")(_arg(tn.argmin))


@maps("all")
def every(x, dim=None, keepdim=False):
    return reduced(tn.reduce_all, cast(x, tn.bool), dim, keepdim)


@maps("any")
def some(x, dim=None, keepdim=False):
    return reduced(tn.reduce_any, cast(x, tn.bool), dim, keepdim)


@maps("count_nonzero")
def count_nonzero(x, dim=None):
    return tn.count_nonzero(x, axis=axes(dim, rank(x)) if rank(x) else None)


# Exponentials of numbers in the hundreds lose as many units.
@maps("logsumexp", slack={"float32": 8, "float64": 8})
def logsumexp(x, dim, keepdim=False):
    return reduced(tn.reduce_logsumexp, x, dim, keepdim)


def _squared_deviation(x, dim, keepdim):
    middle = reduced(tn.reduce_mean, x, dim, True)
    gap = x - middle
    square = tn.square(tn.real(gap)) + tn.square(tn.imag(gap)) if is_complex(x) else tn.square(gap)
    return reduced(tn.reduce_sum, square, dim, keepdim), middle


@maps("var")
def variance(x, dim=None, unbiased=True, keepdim=False, correction=None):
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = int(unbiased)
    count = 1
    for d in axes(dim, rank(x)):
        count *= shape(x)[d]
    squares, _ = _squared_deviation(x, dim, keepdim)
    return squares / scalar_like(max(count - correction, 0), squares)


@maps("std")
def deviation(x, dim=None, unbiased=True, keepdim=False, correction=None):
    return tn.sqrt(variance(x, dim, unbiased, keepdim, correction))


def _with_mean(function):
    def mapped(x, dim=None, unbiased=True, keepdim=False, correction=None):
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        return (function(x, dim, unbiased, keepdim, correction),
                reduced(tn.reduce_mean, x, dim, keepdim))
    return mapped


maps("var_mean")(_with_mean(variance))
maps("std_mean")(_with_mean(deviation))


@maps("cumsum")
def cumsum(x, dim, dtype=None):
    x = _typed(counted(x), dtype)
    return tn.cumsum(x, axis=dim) if rank(x) else tn.identity(x)


@maps("cumprod")
def cumprod(x, dim, dtype=None):
    x = _typed(counted(x), dtype)
    return tn.cumprod(x, axis=dim) if rank(x) else tn.identity(x)


# torch divides running sums of exponentials and loses digits; float64 shows the same.
@maps("logcumsumexp", slack={"float32": 256, "float64": 256})
def logcumsumexp(x, dim):
    if not rank(x):
        return tn.identity(x)
    d, n = dim % rank(x), shape(x)[dim]
    wide = tn.tile(tn.expand_dims(x, d), [n if i == d else 1 for i in range(rank(x) + 1)])
    reached = tn.expand_dims(tn.range(n), 1) >= tn.expand_dims(tn.range(n), 0)
    reached = tn.reshape(reached, [1] * d + [n, n] + [1] * (rank(x) - d - 1))
    reached = tn.broadcast_to(reached, tn.shape(wide))
    wide = tn.where(reached, wide, tn.fill(tn.shape(wide), scalar_like(-math.inf, x)))
    return tn.reduce_logsumexp(wide, axis=d + 1)


# torch 1.13 keeps `ord` in float32, and so is its norm in float64.
@maps("norm/inf", "linalg.vector_norm", "norm", slack={"float64": 2e7, "complex128": 2e7})
def vector_norm(x, ord=2, dim=None, keepdim=False, p=None, dtype=None):
    ord = p if p is not None else ord
    if ord == "fro":
        ord = 2
    if isinstance(ord, str):
        decline("the norm %r" % ord)
    x = _typed(x, dtype)
    size_of = tn.abs(x)
    if ord == 2:
        # The square root of a sum, whose gradient at zero is zero to torch.
        squares = tn.square(tn.real(x)) + tn.square(tn.imag(x)) if is_complex(x) else tn.square(x)
        return _root(reduced(tn.reduce_sum, squares, dim, keepdim))
    if ord == math.inf:
        return reduced(tn.reduce_max, size_of, dim, keepdim)
    if ord == -math.inf:
        return reduced(tn.reduce_min, size_of, dim, keepdim)
    if ord == 0:
        return reduced(tn.reduce_sum, tn.cast(tn.not_equal(size_of, 0), size_of.dtype), dim,
                       keepdim)
    if ord == 1:
        return reduced(tn.reduce_sum, size_of, dim, keepdim)
    power = scalar_like(float(ord), size_of)
    powers = reduced(tn.reduce_sum, tn.pow(size_of, power), dim, keepdim)
    of_powers = lambda x: tn.pow(x, scalar_like(1 / ord, x))  # noqa: E731
    return _root(powers, of_powers) if ord > 1 else of_powers(powers)


def _root(total, function=tn.sqrt):
    zero = tn.equal(total, 0)
    safe = tn.where(zero, tn.ones_like(total), total)
    return tn.where(zero, tn.zeros_like(total), function(safe))


@maps("norm/fro")
def frobenius(x, p="fro", dim=None, keepdim=False, dtype=None):
    return vector_norm(x, 2, dim, keepdim, dtype=dtype)


@maps("dist")
def dist(x, y, p=2):
    return vector_norm(x - y, p)


# With complex numbers torch 1.13 gives NaN as gradient of the infinite norm.
@maps("renorm", dtypes=("float32", "float64"))
def renorm(x, p, dim, maxnorm):
    others = [d for d in range(rank(x)) if d != dim % rank(x)]
    norm = vector_norm(x, p, others, True)
    scale = tn.where(norm > scalar_like(maxnorm, norm),
                     scalar_like(maxnorm, norm) / (norm + scalar_like(1e-7, norm)),
                     tn.ones_like(norm))
    return x * cast(scale, x.dtype)


@maps("trace")
def trace(x):
    return tn.reduce_sum(tn.matrix_diag_part(counted(x)))


@maps("diff")
def diff(x, n=1, dim=-1, prepend=None, append=None):
    parts = [t for t in (prepend, x, append) if t is not None]
    if not n:
        return tn.identity(x)
    x = tn.concat(parts, axis=dim) if len(parts) > 1 else x
    for _ in range(min(n, shape(x)[dim])):
        lead = (slice(None),) * (dim % rank(x))
        after, before = x[lead + (slice(1, None),)], x[lead + (slice(None, -1),)]
        x = tn.logical_xor(after, before) if x.dtype == tn.bool else after - before
    return x


@maps("trapz", "trapezoid")
def trapezoid(y, x=None, dx=1, dim=-1):
    return tn.reduce_sum(_areas(y, x, dx, dim), axis=dim)


@maps("cumulative_trapezoid")
def cumulative_trapezoid(y, x=None, dx=1, dim=-1):
    return tn.cumsum(_areas(y, x, dx, dim), axis=dim)


def _areas(y, x, dx, dim):
    lead = (slice(None),) * (dim % rank(y))
    y = floating(y)
    after, before = y[lead + (slice(1, None),)], y[lead + (slice(None, -1),)]
    if x is None:
        width = cast(dx, y.dtype)
    else:
        y_axes = rank(y) - dim % rank(y)
        x, _ = promoted(x, y)
        if rank(x) == 1:
            width = tn.reshape(x[1:] - x[:-1], [-1] + [1] * (y_axes - 1))
        else:
            lead = (slice(None),) * (dim % rank(x) if dim < 0 else rank(x) - y_axes)
            width = x[lead + (slice(1, None),)] - x[lead + (slice(None, -1),)]
    return (after + before) * width * scalar_like(0.5, y)


@maps("cov")
def cov(x, correction=1, fweights=None, aweights=None):
    x = tn.reshape(floating(x), [1, -1]) if rank(x) < 2 else floating(x)
    # The weights count in their own dtype.
    real = tn.real(x).dtype if is_complex(x) else x.dtype
    real = real if aweights is None else aweights.dtype
    weights = tn.ones([shape(x)[1]], dtype=real)
    for w in (fweights, aweights):
        if w is not None:
            weights = weights * cast(w, real)
    whole = tn.reduce_sum(weights)
    spread = cast(weights, x.dtype)
    centred = x - tn.expand_dims(tn.reduce_sum(x * spread, axis=1) / cast(whole, x.dtype), 1)
    if aweights is None or correction == 0:
        norm = whole - scalar_like(correction, whole)
    else:
        norm = whole - scalar_like(correction, whole) * tn.reduce_sum(
            weights * cast(aweights, real)) / whole
    norm = tn.maximum(norm, tn.zeros_like(norm))
    found = tn.matmul(centred * spread, tn.transpose(centred, conjugate=True))
    return tn.squeeze(found / cast(norm, x.dtype))


@maps("corrcoef")
def corrcoef(x):
    c = cov(x)
    if not rank(c):
        return c / c
    scale = tn.sqrt(tn.real(tn.diag_part(c)) if is_complex(c) else tn.diag_part(c))
    c = c / cast(tn.expand_dims(scale, 1), c.dtype) / cast(tn.expand_dims(scale, 0), c.dtype)
    if is_complex(c):
        return tn.complex(tn.clip_by_value(tn.real(c), -1.0, 1.0),
                          tn.clip_by_value(tn.imag(c), -1.0, 1.0))
    return tn.clip_by_value(c, scalar_like(-1, c), scalar_like(1, c))


@maps("nn.functional.normalize")
def normalize(x, p=2.0, dim=1, eps=1e-12):
    norm = vector_norm(x, p, dim, True)
    return x / cast(tn.maximum(norm, scalar_like(eps, norm)), x.dtype)


@maps("linalg.norm", "linalg.norm/subgradients_at_zero")
def linalg_norm(x, ord=None, dim=None, keepdim=False, dtype=None):
    if ord is None or (rank(x) == 1 and dim is None) or (
            dim is not None and len(axes(dim, rank(x))) == 1):
        return vector_norm(x, 2 if ord is None else ord, dim, keepdim, dtype=dtype)
    return matrix_norm(x, ord, dim if dim is not None else (-2, -1), keepdim, dtype)


def _with_last(count, *last):
    return [d for d in range(count) if d not in last] + list(last)


@maps("norm/nuc")
def nuclear(x, p="nuc", dim=(-2, -1), keepdim=False):
    return matrix_norm(x, p, dim, keepdim)


@maps("linalg.matrix_norm")
def matrix_norm(x, ord="fro", dim=(-2, -1), keepdim=False, dtype=None):
    x = _typed(x, dtype)
    if ord == "fro":
        return vector_norm(x, 2, dim, keepdim)
    row, column = axes(dim, rank(x))
    if ord in ("nuc", 2, -2):
        values = svdvals(tn.transpose(x, _with_last(rank(x), row, column)))
        found = {"nuc": tn.reduce_sum, 2: tn.reduce_max, -2: tn.reduce_min}[ord](values, axis=-1)
        kept = [1 if d in (row, column) else s for d, s in enumerate(shape(x))]
        return tn.reshape(found, kept) if keepdim else found
    first, then = (row, column) if abs(ord) == 1 else (column, row)
    sums = tn.reduce_sum(tn.abs(x), axis=first, keepdims=True)
    found = (tn.reduce_max if ord > 0 else tn.reduce_min)(sums, axis=then, keepdims=True)
    return found if keepdim else tn.squeeze(found, axis=[row, column])


@maps("nn.functional.cosine_similarity")
def cosine_similarity(x, y, dim=1, eps=1e-8):
    if not rank(x):
        x, y = tn.reshape(x, [1]), tn.reshape(y, [1])
        return tn.squeeze(cosine_similarity(x, y, 0, eps))
    top = tn.reduce_sum(x * y, axis=dim)
    xx = tn.reduce_sum(tn.square(x) + tn.zeros_like(y), axis=dim)
    yy = tn.reduce_sum(tn.square(y) + tn.zeros_like(x), axis=dim)
    floor = scalar_like(eps, x)
    return top / (tn.maximum(tn.sqrt(xx), floor) * tn.maximum(tn.sqrt(yy), floor))


@maps("nn.functional.pairwise_distance")
def pairwise_distance(x, y, p=2.0, eps=1e-6, keepdim=False):
    gap = floating(x - y)
    return vector_norm(gap + scalar_like(eps, gap), p, -1, keepdim)
