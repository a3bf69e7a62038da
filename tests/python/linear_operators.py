# SPDX-License-Identifier: Apache-2.0
"""Linear operators of every kind, and the dense matrices that they stand for, written with NumPy
from the definition: what test_linear_operator*.py compare."""

import numpy as np

import treenail as tn

L = tn.linalg


def seeded(*key):
    return np.random.default_rng([ord(c) for c in repr(key)])


def numbers(rng, dtype, shape):
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.startswith("complex") else x).astype(dtype)


def real_part(dtype):
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


def regular(rng, dtype, batch, n):
    """Well-conditioned."""
    return (numbers(rng, dtype, batch + (n, n)) / n + 2 * np.eye(n)).astype(dtype)


def positive(rng, dtype, batch, n):
    a = numbers(rng, dtype, batch + (n, n))
    return (a @ adjoint(a) / n + np.eye(n)).astype(dtype)


def away_from_zero(rng, dtype, shape):
    x = numbers(rng, dtype, shape)
    return (x + np.where(x.real >= 0, 1, -1)).astype(dtype)


class Kind:
    """One kind: make(rng, dtype, batch) gives arrays, build(*tensors) the operator, dense(*arrays)
    the matrix. square: whether it has solutions."""

    def __init__(self, make, build, dense, square=True, batches=((), (3,), (2, 3))):
        self.make, self.build, self.dense = make, build, dense
        self.square, self.batches = square, batches


def kron(a, b):
    out = a[..., :, None, :, None] * b[..., None, :, None, :]
    return out.reshape(out.shape[:-4] + (a.shape[-2] * b.shape[-2], a.shape[-1] * b.shape[-1]))


def block_diag(*blocks):
    batch = np.broadcast_shapes(*[b.shape[:-2] for b in blocks])
    n = sum(b.shape[-1] for b in blocks)
    out, at = np.zeros(batch + (n, n), np.result_type(*blocks)), 0
    for b in blocks:
        m = b.shape[-1]
        out[..., at:at + m, at:at + m] = b
        at += m
    return out


def toeplitz(col, row):
    n = col.shape[-1]
    out = np.zeros(np.broadcast_shapes(col.shape, row.shape) + (n,), col.dtype)
    for i in range(n):
        for j in range(n):
            out[..., i, j] = col[..., i - j] if i >= j else row[..., j - i]
    return out


def circulant(spectrum, depth):
    """By the effect on each unit vector, without a matrix of Fourier coefficients."""
    block = spectrum.shape[-depth:]
    axes = tuple(range(-depth, 0))
    n, kernel = int(np.prod(block)), np.fft.ifftn(spectrum, axes=axes)
    columns = []
    for j in range(n):
        turned = np.roll(kernel, np.unravel_index(j, block), axes)
        columns.append(turned.reshape(spectrum.shape[:-depth] + (n,)))
    return np.stack(columns, -1)


def tridiagonal(d):
    n = d.shape[-1]
    out = np.zeros(d.shape[:-2] + (n, n), d.dtype)
    for i in range(n):
        for r, j in enumerate((i + 1, i, i - 1)):
            if 0 <= j < n:
                out[..., i, j] = d[..., r, i]
    return out


def householder(v):
    unit = v / np.linalg.norm(v, axis=-1, keepdims=True)
    return np.eye(v.shape[-1]) - 2 * unit[..., :, None] * np.conj(unit[..., None, :])


def permutation(p):
    return np.eye(p.shape[-1])[p]


def spectrum(rng, dtype, batch, block):
    """Without zeros; for real dtypes that of a real kernel."""
    depth = len(block)
    kernel = numbers(rng, dtype, batch + block)
    kernel[(...,) + (0,) * depth] += 5 * np.prod(block)
    result = np.fft.fftn(kernel, axes=tuple(range(-depth, 0)))
    wide = "complex64" if dtype in ("float32", "complex64") else "complex128"
    return result.astype(wide)


def circulants(cls, block):
    depth = len(block)

    def build(dtype):
        return lambda s: cls(s, input_output_dtype=dtype)
    return Kind(lambda rng, dtype, batch: [spectrum(rng, dtype, batch, block)],
                build, lambda s: circulant(s, depth))


def diagonals(rng, dtype, batch, n):
    d = numbers(rng, dtype, batch + (3, n))
    d[..., 1, :] += 4
    return d


def low_rank(rng, dtype, batch):
    return [away_from_zero(rng, dtype, batch + (4,)), numbers(rng, dtype, batch + (4, 2)) / 3,
            away_from_zero(rng, dtype, batch + (2,)), numbers(rng, dtype, batch + (4, 2)) / 3]


def low_rank_positive(rng, dtype, batch):
    real = real_part(dtype)
    base = rng.uniform(1, 2, batch + (4,)).astype(real).astype(dtype)
    return [base, numbers(rng, dtype, batch + (4, 2)),
            rng.uniform(1, 2, (2,)).astype(real).astype(dtype)]


def updated(base, u, d, v):
    return base + (u * d[..., None, :]) @ adjoint(v)


def diag(d):
    return d[..., None] * np.eye(d.shape[-1], dtype=d.dtype)


def promised(cls):
    return lambda a: cls(a, is_self_adjoint=True, is_positive_definite=True)


FULL = L.LinearOperatorFullMatrix
KINDS = {
    "full": Kind(lambda rng, t, b: [regular(rng, t, b, 4)], FULL, lambda a: a),
    "full, positive": Kind(lambda rng, t, b: [positive(rng, t, b, 4)], promised(FULL),
                           lambda a: a),
    "full, not square": Kind(lambda rng, t, b: [numbers(rng, t, b + (3, 5))], FULL, lambda a: a,
                             square=False),
    "lower triangular": Kind(lambda rng, t, b: [regular(rng, t, b, 4)],
                             L.LinearOperatorLowerTriangular, np.tril),
    "diag": Kind(lambda rng, t, b: [away_from_zero(rng, t, b + (4,))], L.LinearOperatorDiag, diag),
    "diag, positive": Kind(
        lambda rng, t, b: [rng.uniform(1, 2, b + (4,)).astype(real_part(t)).astype(t)],
        promised(L.LinearOperatorDiag), diag),
    "scaled identity": Kind(
        lambda rng, t, b: [away_from_zero(rng, t, b)],
        lambda m: L.LinearOperatorScaledIdentity(3, m),
        lambda m: m[..., None, None] * np.eye(3, dtype=m.dtype)),
    "toeplitz": Kind(
        lambda rng, t, b: [numbers(rng, t, b + (5,)) + 5 * np.eye(5)[0].astype(t),
                           numbers(rng, t, b + (5,))], L.LinearOperatorToeplitz, toeplitz),
    "toeplitz, two batches": Kind(
        lambda rng, t, b: [numbers(rng, t, (3, 1, 4)) + 5 * np.eye(4)[0].astype(t),
                           numbers(rng, t, (2, 4))], L.LinearOperatorToeplitz, toeplitz,
        batches=((),)),
    "tridiagonal": Kind(lambda rng, t, b: [diagonals(rng, t, b, 5)], L.LinearOperatorTridiag,
                        tridiagonal),
    "householder": Kind(lambda rng, t, b: [numbers(rng, t, b + (4,))],
                        L.LinearOperatorHouseholder, householder),
    "block diagonal": Kind(
        lambda rng, t, b: [regular(rng, t, b, 2), away_from_zero(rng, t, (3,)),
                           regular(rng, t, b, 1)],
        lambda a, d, c: L.LinearOperatorBlockDiag([FULL(a), L.LinearOperatorDiag(d), FULL(c)]),
        lambda a, d, c: block_diag(a, diag(d), c)),
    "block diagonal, positive": Kind(
        lambda rng, t, b: [positive(rng, t, b, 2), positive(rng, t, (), 3)],
        lambda a, c: L.LinearOperatorBlockDiag([promised(FULL)(a), promised(FULL)(c)]),
        block_diag),
    "kronecker": Kind(
        lambda rng, t, b: [regular(rng, t, b, 2), regular(rng, t, (), 3),
                           away_from_zero(rng, t, b + (2,))],
        lambda a, c, d: L.LinearOperatorKronecker([FULL(a), FULL(c), L.LinearOperatorDiag(d)]),
        lambda a, c, d: kron(kron(a, c), diag(d))),
    "kronecker, positive": Kind(
        lambda rng, t, b: [positive(rng, t, b, 2), positive(rng, t, b, 3)],
        lambda a, c: L.LinearOperatorKronecker([promised(FULL)(a), promised(FULL)(c)]), kron),
    "kronecker, not square": Kind(
        lambda rng, t, b: [numbers(rng, t, b + (2, 3)), numbers(rng, t, (3, 1))],
        lambda a, c: L.LinearOperatorKronecker([FULL(a), FULL(c)]), kron, square=False),
    "low rank update": Kind(
        low_rank, lambda d, u, m, v: L.LinearOperatorLowRankUpdate(
            L.LinearOperatorDiag(d), u, m, v), lambda d, u, m, v: updated(diag(d), u, m, v)),
    "low rank update, positive": Kind(
        low_rank_positive, lambda d, u, m: L.LinearOperatorLowRankUpdate(
            promised(L.LinearOperatorDiag)(d), u, m, is_diag_update_positive=True),
        lambda d, u, m: updated(diag(d), u, m, u)),
    "low rank update, of ones": Kind(
        lambda rng, t, b: [regular(rng, t, b, 4), numbers(rng, t, (4, 1)) / 3],
        lambda a, u: L.LinearOperatorLowRankUpdate(FULL(a), u),
        lambda a, u: a + u @ adjoint(u)),
    "adjoint": Kind(lambda rng, t, b: [regular(rng, t, b, 4)],
                    lambda a: L.LinearOperatorAdjoint(L.LinearOperatorLowerTriangular(a)),
                    lambda a: adjoint(np.tril(a))),
    "adjoint, not square": Kind(lambda rng, t, b: [numbers(rng, t, b + (2, 3))],
                                lambda a: L.LinearOperatorAdjoint(FULL(a)), adjoint, square=False),
    "inversion": Kind(lambda rng, t, b: [regular(rng, t, b, 4)],
                      lambda a: L.LinearOperatorInversion(FULL(a)), np.linalg.inv),
    "composition": Kind(
        lambda rng, t, b: [regular(rng, t, b, 3), away_from_zero(rng, t, (3,)),
                           regular(rng, t, b, 3)],
        lambda a, d, c: L.LinearOperatorComposition([FULL(a), L.LinearOperatorDiag(d), FULL(c)]),
        lambda a, d, c: a @ diag(d) @ c),
    "composition, not square factors": Kind(
        lambda rng, t, b: [numbers(rng, t, b + (2, 5)) / 5 + np.eye(2, 5).astype(t),
                           numbers(rng, t, (5, 2)) / 5 + np.eye(5, 2).astype(t)],
        lambda a, c: L.LinearOperatorComposition([FULL(a), FULL(c)]), lambda a, c: a @ c),
    "composition, not square": Kind(
        lambda rng, t, b: [numbers(rng, t, b + (2, 4)), numbers(rng, t, (4, 3))],
        lambda a, c: L.LinearOperatorComposition([FULL(a), FULL(c)]), lambda a, c: a @ c,
        square=False),
}
# These need the dtype: of what they are applied to.
TYPED = {
    "circulant": circulants(L.LinearOperatorCirculant, (5,)),
    "circulant, 2 axes": circulants(L.LinearOperatorCirculant2D, (3, 2)),
    "circulant, 3 axes": circulants(L.LinearOperatorCirculant3D, (2, 1, 3)),
    "permutation": Kind(
        lambda rng, t, b: [rng.permuted(np.broadcast_to(np.arange(4, dtype="int32"), b + (4,)),
                                        axis=-1)],
        lambda dtype: lambda p: L.LinearOperatorPermutation(p, dtype), permutation),
    "identity": Kind(
        lambda rng, t, b: [np.array(b + (3,), "int32")],
        lambda dtype: lambda n: L.LinearOperatorIdentity(n[-1], n[:-1], dtype),
        lambda n: np.broadcast_to(np.eye(n[-1]), (*n[:-1], n[-1], n[-1]))),
    "zeros, not square": Kind(
        lambda rng, t, b: [np.array(b + (3, 2), "int32")],
        lambda dtype: lambda n: L.LinearOperatorZeros(n[-2], n[-1], n[:-2], dtype),
        lambda n: np.zeros(n), square=False),
}
NAMES = sorted(KINDS) + sorted(TYPED)


def kind_of(name, dtype):
    """(Kind, build(*tensors))."""
    kind = KINDS.get(name) or TYPED[name]
    return kind, kind.build if name in KINDS else kind.build(dtype)
