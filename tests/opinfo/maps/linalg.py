# SPDX-License-Identifier: Apache-2.0
"""Products of vectors and matrices."""

import treenail as tn

from common import cast, is_exact, rank, shape
from mapping import maps


@maps("mm", "bmm")
def product(x, y):
    return tn.matmul(x, y)


def _complex_vectors(x, y, *args, **kwargs):
    """Debian's torch 1.13 gives 0 for dot products of complex vectors: it misreads its BLAS."""
    return x.is_complex() and x.dim() < 2 and y.dim() < 2


@maps("matmul", distrust=_complex_vectors)
def matmul(x, y):
    if rank(x) == 1 and rank(y) == 1:
        return tn.tensordot(x, y, 1)
    if rank(x) == 1:
        return tn.squeeze(tn.matmul(tn.expand_dims(x, 0), y), axis=[-2])
    if rank(y) == 1:
        return tn.squeeze(tn.matmul(x, tn.expand_dims(y, 1)), axis=[-1])
    return tn.matmul(x, y)


@maps("__rmatmul__", distrust=_complex_vectors)
def rmatmul(x, y):
    return matmul(y, x)


@maps("mv")
def mv(x, y):
    return tn.linalg.matvec(x, y) if hasattr(tn, "linalg") else tn.matvec(x, y)


@maps("dot", distrust=_complex_vectors)
def dot(x, y):
    return tn.tensordot(x, y, 1)


@maps("vdot", distrust=_complex_vectors)
def vdot(x, y):
    return tn.tensordot(tn.conj(x), y, 1)


@maps("outer")
def outer(x, y):
    return tn.expand_dims(x, 1) * tn.expand_dims(y, 0)


@maps("inner")
def inner(x, y):
    if not rank(x) or not rank(y):
        return x * y
    return tn.tensordot(x, y, [[rank(x) - 1], [rank(y) - 1]])


def _weighted(x, found, alpha, beta):
    """beta x + alpha found; with beta = 0 x does not enter, be it NaN."""
    def scaled(value, factor):
        if factor == 1:
            return value
        return value * cast(int(factor) if is_exact(value) else factor, value.dtype)
    return scaled(found, alpha) if beta == 0 else scaled(x, beta) + scaled(found, alpha)


@maps("addmm", "addmm/decomposed", "baddbmm")
def addmm(x, a, b, alpha=1, beta=1):
    return _weighted(x, tn.matmul(a, b), alpha, beta)


@maps("addmv")
def addmv(x, a, b, alpha=1, beta=1):
    return _weighted(x, tn.matvec(a, b), alpha, beta)


@maps("addbmm")
def addbmm(x, a, b, alpha=1, beta=1):
    return _weighted(x, tn.reduce_sum(tn.matmul(a, b), axis=0), alpha, beta)


@maps("addr")
def addr(x, a, b, alpha=1, beta=1):
    if x.dtype == tn.bool:
        found = tn.logical_and(tn.expand_dims(a, 1), tn.expand_dims(b, 0))
        found = found if alpha else tn.zeros_like(found)
        return tn.logical_or(x, found) if beta else found
    return _weighted(x, outer(a, b), alpha, beta)


@maps("kron")
def kron(x, y):
    n = max(rank(x), rank(y))
    x = tn.reshape(x, [1] * (n - rank(x)) + shape(x))
    y = tn.reshape(y, [1] * (n - rank(y)) + shape(y))
    wide = tn.reshape(x, [s for d in shape(x) for s in (d, 1)]) * tn.reshape(
        y, [s for d in shape(y) for s in (1, d)])
    return tn.reshape(wide, [a * b for a, b in zip(shape(x), shape(y))])


@maps("tensordot")
def tensordot(x, y, dims=2):
    return tn.tensordot(x, y, dims)


# torch widens whole numbers where it sums and not where it multiplies.
@maps("einsum", dtypes=("float32", "float64", "complex64", "complex128"))
def einsum(tensors, equation):
    return tn.einsum(equation, *tensors)


@maps("linalg.multi_dot")
def multi_dot(tensors):
    first, last = tensors[0], tensors[-1]
    rows = [tn.expand_dims(first, 0) if rank(first) == 1 else first, *tensors[1:-1],
            tn.expand_dims(last, 1) if rank(last) == 1 else last]
    found = rows[0]
    for m in rows[1:]:
        found = tn.matmul(found, m)
    if rank(last) == 1:
        found = tn.squeeze(found, axis=[-1])
    return tn.squeeze(found, axis=[0]) if rank(first) == 1 else found


@maps("linalg.matrix_power")
def matrix_power(x, n):
    if n < 0:
        return matrix_power(tn.linalg.inv(x), -n)
    if n == 0:
        return tn.eye(shape(x)[-1], batch_shape=shape(x)[:-2], dtype=x.dtype)
    found = x
    for _ in range(n - 1):
        found = tn.matmul(found, x)
    return tn.identity(found)


@maps("linalg.vecdot", distrust=_complex_vectors)
def vecdot(x, y, dim=-1):
    return tn.reduce_sum(tn.conj(x) * y, axis=dim)


@maps("linalg.cross", "cross")
def cross(x, y, dim=None):
    if dim is None:
        dim = next(i for i, s in enumerate(shape(x)) if s == 3) if x.shape != [] else -1
    x, y = x + tn.zeros_like(y), y + tn.zeros_like(x)
    a, b = tn.unstack(x, axis=dim), tn.unstack(y, axis=dim)
    return tn.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
                     a[0] * b[1] - a[1] * b[0]], axis=dim)


@maps("nn.functional.linear")
def linear(x, weight, bias=None):
    if rank(weight) == 1:
        y = tn.reduce_sum(x * weight, axis=-1)
    else:
        y = tn.tensordot(x, weight, [[rank(x) - 1], [1]])
    return y if bias is None else y + bias


@maps("nn.functional.bilinear")
def bilinear(x, y, weight, bias=None):
    found = tn.einsum("...i,oij,...j->...o", x, weight, y)
    return found if bias is None else found + bias


@maps("linalg.vander")
def vander(x, N=None):  # noqa: N803 (torch's name)
    x = x if rank(x) else tn.reshape(x, [1])
    count = shape(x)[-1] if N is None else N
    ones = tn.ones(shape(x) + [1], dtype=counted_dtype(x))
    wide = tn.expand_dims(cast(x, counted_dtype(x)), -1)
    wide = tn.tile(wide, [1] * rank(x) + [max(count - 1, 0)])
    return tn.concat([ones, tn.cumprod(wide, axis=-1)], axis=-1)[..., :count]


def counted_dtype(x):
    return tn.int64 if is_exact(x) else x.dtype
