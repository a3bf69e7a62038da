# SPDX-License-Identifier: Apache-2.0
"""Static shapes of linear algebra (tensorflow/core/ops/linalg_ops.cc, python/ops/linalg_ops.py)."""

import numpy as np

import treenail as tn
from static_shapes import ANY, row, rows


def matrices(p, *shape):
    """A placeholder of that shape, fed with identities."""
    fed = [2 if n is None else n for n in shape]
    fed[-2] = fed[-1]
    return p.of(tn.float32, shape, value=np.broadcast_to(np.eye(fed[-1], dtype="f"), fed))


L = tn.linalg
row("linalg.diag", lambda p: L.diag(p.f(None, 3)), [None, 3, 3])
row("linalg.diag", lambda p: L.diag(p.f(None, 3, 3), k=[-1, 1], num_cols=4), [None, 3, 4])
row("linalg.diag", lambda p: L.diag(p.f(None, 3), k=p.n(1)), ANY)
row("linalg.diag_part", lambda p: L.diag_part(p.f(None, 3, 4), k=1), [None, 3])
row("linalg.diag_part", lambda p: L.diag_part(p.f(None, 3, 4), k=[0, 3]), [None, 4, 3])
row("linalg.set_diag", lambda p: L.set_diag(p.f(None, 3, 4), p.f(None, 2, 3), k=(0, 1)),
    [None, 3, 4])
SQUARE = "linalg.cholesky linalg.inv linalg.expm linalg.logm linalg.sqrtm"
rows(SQUARE, lambda f, p: f(matrices(p, None, 3, 3)), [None, 3, 3])
rows(SQUARE, lambda f, p: f(matrices(p, 2, None, 3)), [2, 3, 3])
rows("linalg.det linalg.logdet", lambda f, p: f(matrices(p, 4, None, 3, 3)), [4, None])
row("linalg.slogdet", lambda p: L.slogdet(matrices(p, None, 3, 3)), ([None], [None]))
row("linalg.lu", lambda p: L.lu(matrices(p, None, 3, 3)), ([None, 3, 3], [None, 3]))
SOLVE = "linalg.solve linalg.triangular_solve linalg.cholesky_solve"
rows(SOLVE, lambda f, p: f(matrices(p, None, 3, 3), p.f(None, 3, 4)), [None, 3, 4])
rows(SOLVE, lambda f, p: f(matrices(p, 2, None, None), p.f(2, None, None)), [2, None, None])
row("linalg.adjoint", lambda p: L.adjoint(p.c(None, 2, 3)), [None, 3, 2])
row("linalg.adjoint", lambda p: L.adjoint(p.u(2, 3)), ANY)
row("linalg.qr", lambda p: L.qr(p.f(None, 3, 2)), ([None, 3, 2], [None, 2, 2]))
row("linalg.qr", lambda p: L.qr(p.f(None, 3, 2), True), ([None, 3, 3], [None, 3, 2]))
row("linalg.qr", lambda p: L.qr(p.f(3, None)), ([3, None], [None, None]))
row("linalg.svd", lambda p: L.svd(p.f(None, 3, 2)), ([None, 2], [None, 3, 2], [None, 2, 2]))
row("linalg.svd", lambda p: L.svd(p.f(None, 3, 2), True), ([None, 2], [None, 3, 3], [None, 2, 2]))
row("linalg.svd", lambda p: L.svd(p.c(None, 3, 2), compute_uv=False), [None, 2])
row("linalg.eigh", lambda p: L.eigh(p.f(None, 3, 3)), ([None, 3], [None, 3, 3]))
row("linalg.eig", lambda p: L.eig(p.f(None, 3, 3)), ([None, 3], [None, 3, 3]))
row("linalg.eig", lambda p: L.eig(p.u(2, 3, 3)), (ANY, ANY))
row("linalg.eigvals", lambda p: L.eigvals(p.f(None, 3, 3)), [None, 3])
row("linalg.eigvalsh", lambda p: L.eigvalsh(p.f(None, 3, 3)), [None, 3])
row("linalg.cross", lambda p: L.cross(p.f(None, 3), p.f(2, 3)), [2, 3])
row("linalg.norm", lambda p: L.norm(p.f(None, 3)), [])
row("linalg.norm", lambda p: L.norm(p.u(2, 3), 2, (0, 1)), ANY)
row("linalg.normalize", lambda p: L.normalize(p.f(None, 3)), ([None, 3], [1, 1]))
row("linalg.normalize", lambda p: L.normalize(p.f(None, 3), 1, -1), ([None, 3], [None, 1]))
row("linalg.norm", lambda p: L.norm(p.f(None, 3), axis=-1), [None])
row("linalg.norm", lambda p: L.norm(p.f(None, 3), 1, axis=1, keepdims=True), [None, 1])
row("linalg.norm", lambda p: L.norm(p.f(None, 3, 2), 2, axis=[-2, -1]), [None])
row("linalg.norm", lambda p: L.norm(p.f(4, None, 3), 2, axis=[0, 2], keepdims=True), [1, None, 1])
row("linalg.lstsq", lambda p: L.lstsq(matrices(p, None, 3, 3), p.f(None, 3, 2)), [None, 3, 2])
row("linalg.lstsq", lambda p: L.lstsq(matrices(p, 3, 3), p.f(3, None), fast=False), [3, None])
row("linalg.pinv", lambda p: L.pinv(p.f(None, 3, 2)), [None, 2, 3])
row("linalg.matrix_rank", lambda p: L.matrix_rank(p.f(None, 3, 2)), [None])
DIAGONALS = np.ones((2, 3, 2), "f") * [[1], [3], [1]]
row("linalg.tridiagonal_solve", lambda p: L.tridiagonal_solve(
    p.of(tn.float32, [None, 3, 2], value=DIAGONALS), p.f(None, 2, 4)), [None, 2, 4])
row("linalg.tridiagonal_solve",
    lambda p: L.tridiagonal_solve(matrices(p, 3, 3), p.f(3), "matrix"), [3])
row("linalg.tridiagonal_matmul",
    lambda p: L.tridiagonal_matmul(p.f(None, 3, 2), p.f(None, 2, 4)), [None, 2, 4])
BANDED = "linalg.banded_triangular_solve"
rows(BANDED, lambda f, p: f(p.f(None, 2, 3), p.f(3, 4)), [None, 3, 4])
rows(BANDED, lambda f, p: f(p.f(2, None), p.f(5, 1, None)), [5, 1, None], runs=False)
LU = "linalg.lu_reconstruct linalg.lu_matrix_inverse"
rows(LU, lambda f, p: f(matrices(p, 3, 3), p.v([0, 1, 2], [3])), [3, 3])
row("linalg.lu_solve",
    lambda p: L.lu_solve(matrices(p, 3, 3), p.v([0, 1, 2], [3]), p.f(3, None)), [3, None])
