# SPDX-License-Identifier: Apache-2.0
"""Systems of equations: solutions, inverses, determinants, LU factors, least squares; functions of
matrices."""

import math

import treenail as tn

from common import cast, is_complex, rank, shape
from mapping import decline, maps
from maps.decomposition import (nothing_wrong, of_hermitian, real, sum_with_adjoint, svdvals,
                                triangle)


@maps("matrix_exp")
def matrix_exp(x):
    return tn.linalg.expm(x)


@maps("linalg.inv")
def inv(x):
    return tn.linalg.inv(x)


@maps("linalg.inv_ex")
def inv_ex(x):
    return tn.linalg.inv(x), nothing_wrong(x)


@maps("linalg.det")
def det(x):
    return tn.linalg.det(x)


def _gradient_of_several(x):
    """torch 1.13 has given 0 for one matrix of a batch whose adjugate is not."""
    return x.requires_grad and x.dim() > 2


maps("linalg.det/singular", distrust=_gradient_of_several)(det)


@maps("linalg.slogdet")
def slogdet(x):
    sign, size = tn.linalg.slogdet(x)
    return sign, real(size)


@maps("logdet")
def logdet(x):
    sign, size = tn.linalg.slogdet(x)
    return cast(size, x.dtype) + tn.log(sign)


@maps("linalg.solve")
def solve(a, b):
    if rank(b) == rank(a) - 1:
        return tn.squeeze(tn.linalg.solve(a, tn.expand_dims(b, -1)), axis=[-1])
    return tn.linalg.solve(a, b)


@maps("linalg.solve_ex")
def solve_ex(a, b):
    return solve(a, b), nothing_wrong(a)


@maps("linalg.solve_triangular")
def solve_triangular(a, b, upper, left=True, unitriangular=False):
    if unitriangular:
        a = tn.matrix_set_diag(a, tn.ones(shape(a)[:-1], dtype=a.dtype))
    if left:
        return tn.linalg.triangular_solve(a, b, lower=not upper)
    found = tn.linalg.triangular_solve(a, tn.linalg.adjoint(b), lower=not upper, adjoint=True)
    return tn.linalg.adjoint(found)


@maps("triangular_solve")
def triangular_solve(b, a, upper=True):
    return tn.linalg.triangular_solve(a, b, lower=not upper), tn.identity(a)


@maps("linalg.tensorsolve")
def tensorsolve(a, b, dims=None):
    order = [d for d in range(rank(a)) if d not in (dims or ())] + list(dims or ())
    a = tn.transpose(a, order)
    rest = shape(a)[rank(b):]
    square = tn.reshape(a, [math.prod(shape(b)), math.prod(rest)])
    return tn.reshape(tn.linalg.solve(square, tn.reshape(b, [-1, 1])), rest)


@maps("linalg.tensorinv")
def tensorinv(a, ind=2):
    rows, columns = shape(a)[:ind], shape(a)[ind:]
    square = tn.reshape(a, [math.prod(rows), math.prod(columns)])
    return tn.reshape(tn.linalg.inv(square), columns + rows)


def _exchanged(order, i, j):
    """The numbers at i and, one per row, at j in each other's place."""
    place = tn.range(shape(order)[-1])
    here, there = tn.cast(tn.equal(place, i), tn.int32), tn.cast(tn.equal(place, j), tn.int32)
    gap = tn.reduce_sum((there - here) * order, axis=-1, keepdims=True)
    return order + (here - there) * gap


def _from_pivots(pivots, rows):
    """Which row of the matrix each row of L U is, from LAPACK's exchanges one after another."""
    order = tn.broadcast_to(tn.range(rows), shape(pivots)[:-1] + [rows])
    for i in range(shape(pivots)[-1]):
        order = _exchanged(order, i, pivots[..., i:i + 1] - 1)
    return order


def _to_pivots(order, count):
    now = tn.broadcast_to(tn.range(shape(order)[-1]), shape(order))
    pivots = []
    for i in range(count):
        j = tn.argmax(tn.cast(tn.equal(now, order[..., i:i + 1]), tn.int32), axis=-1,
                      output_type=tn.int32)
        pivots.append(j + 1)
        now = _exchanged(now, i, tn.expand_dims(j, -1))
    return tn.stack(pivots, axis=-1)


def _permutation(order, dtype):
    """The matrix P with A = P L U."""
    return tn.one_hot(order, shape(order)[-1], axis=rank(order) - 1, dtype=dtype)


def _factors(x):
    """L and U in one matrix, and which row of x each row of their product is."""
    rows, columns = shape(x)[-2:]
    if rows > columns:
        decline("LU factors of tall matrices")
    lu, order = tn.linalg.lu(x[..., :rows])
    if rows == columns:
        return lu, order
    rest = tn.matmul(_permutation(order, x.dtype), x[..., rows:], transpose_a=True)
    return tn.concat([lu, tn.linalg.triangular_solve(_lower(lu), rest)], axis=-1), order


def _lower(lu):
    rows, columns = shape(lu)[-2:]
    k = min(rows, columns)
    lower = triangle(lu[..., :k], False)
    return tn.matrix_set_diag(lower, tn.ones(shape(lu)[:-2] + [k], dtype=lu.dtype))


def _upper(lu):
    return triangle(lu[..., :min(shape(lu)[-2:]), :], True)


@maps("linalg.lu_factor")
def lu_factor(x, pivot=True):
    lu, order = _factors(x)
    return lu, _to_pivots(order, min(shape(x)[-2:]))


@maps("linalg.lu_factor_ex")
def lu_factor_ex(x, pivot=True):
    return (*lu_factor(x), nothing_wrong(x))


@maps("lu")
def old_lu(x, pivot=True, get_infos=False):
    return lu_factor_ex(x) if get_infos else lu_factor(x)


@maps("linalg.lu")
def lu_parts(x, pivot=True):
    lu, order = _factors(x)
    return _permutation(order, x.dtype), _lower(lu), _upper(lu)


@maps("lu_unpack")
def lu_unpack(lu, pivots):
    order = _from_pivots(pivots, shape(lu)[-2])
    return _permutation(order, lu.dtype), _lower(lu), _upper(lu)


@maps("linalg.lu_solve")
def lu_solve(lu, pivots, b, left=True, adjoint=False):
    if not left:  # X A = B is A^H X^H = B^H
        return tn.linalg.adjoint(lu_solve(lu, pivots, tn.linalg.adjoint(b), True, not adjoint))
    order = _from_pivots(pivots, shape(lu)[-1])
    if not adjoint:
        return tn.linalg.lu_solve(lu, order, b)
    half = tn.linalg.triangular_solve(lu, b, lower=False, adjoint=True)
    return tn.matmul(_permutation(order, lu.dtype),
                     tn.linalg.triangular_solve(_lower(lu), half, adjoint=True))


@maps("lu_solve")
def old_lu_solve(b, lu, pivots):
    return lu_solve(lu, pivots, b)


@maps("linalg.pinv", "pinverse")
def pinv(x, rtol=None):
    return tn.linalg.pinv(x, rtol)


@maps("linalg.pinv/hermitian", asked=of_hermitian)
def pinv_hermitian(x, hermitian):
    return tn.linalg.pinv(sum_with_adjoint(x))


@maps("linalg.pinv/singular")
def pinv_singular(a, b):
    return tn.linalg.pinv(tn.matmul(a, b, transpose_b=True))


@maps("linalg.lstsq/grad_oriented")
def lstsq_solution(a, b, driver=None):
    return tn.linalg.lstsq(a, b, fast=False)


@maps("linalg.lstsq")
def lstsq(a, b, driver=None):
    """With it what the driver tells besides: residuals of more equations than unknowns, the rank,
    the singular values."""
    found = lstsq_solution(a, b)
    real = tn.real(a).dtype if is_complex(a) else a.dtype
    rows, columns = shape(a)[-2:]
    residuals = tn.zeros([0], dtype=real)
    if rows > columns and driver != "gelsy":
        residuals = tn.reduce_sum(tn.square(tn.abs(b - tn.matmul(a, found))), axis=-2)
    ranks = tn.zeros([0], dtype=tn.int64)
    if driver != "gels":
        ranks = tn.cast(tn.linalg.matrix_rank(a), tn.int64)
    values = svdvals(a) if driver in ("gelsd", "gelss") else tn.zeros([0], dtype=real)
    return found, residuals, ranks, values
