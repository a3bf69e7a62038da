# SPDX-License-Identifier: Apache-2.0
"""Decompositions. Signs of vectors and the order of complex eigenvalues are each library's choice;
what does not depend on them is compared, as torch's own tests do."""

import treenail as tn

from common import scalar_like, shape
from mapping import maps


def of_hermitian(op, x, *args, **kwargs):
    """The entry reads one triangle, and which gradient the other gets is its own affair."""
    return op(x + x.mH, *args, **kwargs)


def sum_with_adjoint(x):
    return x + tn.linalg.adjoint(x)


def triangle(x, upper):
    return tn.matrix_band_part(x, 0, -1) if upper else tn.matrix_band_part(x, -1, 0)


def nothing_wrong(x):
    """torch's `info`: Treenail raises where it would not be zero."""
    return tn.zeros(shape(x)[:-2], dtype=tn.int32)


@maps("cholesky", "linalg.cholesky", asked=of_hermitian)
def cholesky(x, upper=False):
    found = tn.linalg.cholesky(sum_with_adjoint(x))
    return tn.linalg.adjoint(found) if upper else found


@maps("linalg.cholesky_ex", asked=of_hermitian)
def cholesky_ex(x, upper=False, check_errors=False):
    return cholesky(x, upper), nothing_wrong(x)


def _inverse_of_triangle(op, factor, upper=False):
    return op(factor.triu() if upper else factor.tril(), upper)


@maps("cholesky_inverse", asked=_inverse_of_triangle)
def cholesky_inverse(factor, upper=False):
    one = tn.eye(shape(factor)[-1], batch_shape=shape(factor)[:-2], dtype=factor.dtype)
    return cholesky_solve(one, factor, upper)


def _solution_by_triangle(op, rhs, factor, upper=False):
    return op(rhs, factor.triu() if upper else factor.tril(), upper)


@maps("cholesky_solve", asked=_solution_by_triangle)
def cholesky_solve(rhs, factor, upper=False):
    return tn.linalg.cholesky_solve(tn.linalg.adjoint(factor) if upper else factor, rhs)


@maps("linalg.qr")
def qr(x, mode="reduced"):
    return tn.linalg.qr(x, full_matrices=mode == "complete")


@maps("qr")
def old_qr(x, some=True):
    return tn.linalg.qr(x, full_matrices=not some)


def _eigenvalues_and_sizes(op, x, **kwargs):
    values, vectors = op(x + x.mH, **kwargs)
    return values, vectors.abs()


@maps("linalg.eigh", asked=_eigenvalues_and_sizes)
def eigh(x, UPLO="L"):  # noqa: N803 (torch's name)
    x = sum_with_adjoint(x)
    values, vectors = tn.linalg.eigh(x if UPLO == "L" else tn.linalg.adjoint(x))
    return real(values), tn.abs(vectors)


def real(x):
    return tn.real(x) if x.dtype.is_complex else x


@maps("symeig", asked=_eigenvalues_and_sizes)
def symeig(x, eigenvectors=False, upper=True):
    return eigh(x, "U" if upper else "L")


@maps("linalg.eigvalsh", asked=of_hermitian)
def eigvalsh(x, UPLO="L"):  # noqa: N803 (torch's name)
    return real(tn.linalg.eigvalsh(sum_with_adjoint(x)))


def _ascending(values):
    """Where the eigenvalues stand by their real and then by their imaginary parts."""
    values = values.detach()
    order = values.imag.argsort(-1)
    return order.gather(-1, values.real.gather(-1, order).sort(dim=-1, stable=True).indices)


def _ordered_and_sizes(op, x):
    values, vectors = op(x)
    order = _ascending(values)
    return values.gather(-1, order), vectors.abs().gather(
        -1, order.unsqueeze(-2).expand(vectors.shape))


@maps("linalg.eig", asked=_ordered_and_sizes)
def eig(x):
    values, vectors = tn.linalg.eig(x)
    return values, tn.abs(vectors)


def _ordered(op, x):
    values = op(x)
    return values.gather(-1, _ascending(values))


@maps("linalg.eigvals", asked=_ordered)
def eigvals(x):
    return tn.linalg.eigvals(x)


def _sizes_and_product(u, s, v_adjoint):
    """Of full matrices the vectors beyond those of singular values are any that are orthogonal."""
    k = s.shape[-1]
    u, v_adjoint = u[..., :k], v_adjoint[..., :k, :]
    return u.abs(), s, v_adjoint.abs(), u @ v_adjoint


def _svd_without_signs(op, x, full_matrices=True):
    return _sizes_and_product(*op(x, full_matrices=full_matrices))


# Vectors of values that lie near each other turn by the rounding over the gap.
NEAR = {"float32": 64, "float64": 64, "complex64": 64, "complex128": 64}


@maps("linalg.svd", asked=_svd_without_signs, slack=NEAR)
def svd(x, full_matrices=True):
    s, u, v = tn.linalg.svd(x, full_matrices=full_matrices)
    k = shape(s)[-1]
    u, v_adjoint = u[..., :k], tn.linalg.adjoint(v[..., :k])
    return tn.abs(u), s, tn.abs(v_adjoint), tn.matmul(u, v_adjoint)


def _old_svd_without_signs(op, x, some=True):
    u, s, v = op(x, some=some)
    return _sizes_and_product(u, s, v.mH)


@maps("svd", asked=_old_svd_without_signs, slack=NEAR)
def old_svd(x, some=True):
    return svd(x, full_matrices=not some)


@maps("linalg.svdvals")
def svdvals(x):
    return tn.linalg.svd(x, compute_uv=False)


@maps("linalg.cond")
def cond(x):
    s = svdvals(x)
    return tn.reduce_max(s, axis=-1) / tn.reduce_min(s, axis=-1)


@maps("linalg.matrix_rank", "linalg.matrix_rank/hermitian")
def matrix_rank(x, atol=None, rtol=None, hermitian=False):
    if atol is None and rtol is None:
        return tn.cast(tn.linalg.matrix_rank(x), tn.int64)
    s = svdvals(x)
    # An absolute tolerance stands alone; a tolerance may be one number per matrix.
    atol, rtol = (tn.expand_dims(tn.cast(t, s.dtype), -1) if isinstance(t, tn.Tensor) else
                  scalar_like(t or 0.0, s) for t in (atol, rtol))
    largest = tn.reduce_max(s, axis=-1, keepdims=True)
    return tn.cast(tn.linalg.matrix_rank(x, tn.maximum(atol, rtol * largest)), tn.int64)


def _reflected(reflectors, tau, q):
    """H_1 H_2 ... q with H_i = 1 - tau_i v v^H, as LAPACK stores v below the diagonal."""
    for i in reversed(range(shape(tau)[-1])):
        below = reflectors[..., i + 1:, i:i + 1]
        one = tn.ones_like(reflectors[..., i:i + 1, i:i + 1])
        v = tn.concat([tn.zeros_like(reflectors[..., :i, i:i + 1]), one, below], axis=-2)
        scale = tn.expand_dims(tau[..., i:i + 1], -1)
        q = q - scale * tn.matmul(v, tn.matmul(v, q, adjoint_a=True))
    return q


def _unit(x, columns):
    return tn.eye(shape(x)[-2], columns, batch_shape=shape(x)[:-2], dtype=x.dtype)


# Where it differentiates torch takes the reflections back, which magnifies rounding: its gradients
# in float32 were off those in float64 by up to a hundred times what Treenail's were.
@maps("linalg.householder_product", slack=NEAR)
def householder_product(reflectors, tau):
    return tn.identity(_reflected(reflectors, tau, _unit(reflectors, shape(reflectors)[-1])))


@maps("ormqr")
def ormqr(reflectors, tau, other, left=True, transpose=False):
    order = shape(other)[-2 if left else -1]
    q = _reflected(reflectors, tau, _unit(reflectors, order))
    return (tn.matmul(q, other, adjoint_a=transpose) if left else
            tn.matmul(other, q, adjoint_b=transpose))


def _low_rank_without_signs(op, *args, **kwargs):
    u, s, v = op(*args, **kwargs)
    return _sizes_and_product(u, s, v.mH)


def _is_approximate(a, b, q, M=None, **kwargs):  # noqa: N803 (torch's name)
    """With M the matrix has more than q singular values, and torch's come from drawn vectors."""
    return M is not None


@maps("svd_lowrank", asked=_low_rank_without_signs, distrust=_is_approximate)
def svd_lowrank(a, b, q, M=None):  # noqa: N803 (torch's name)
    return _greatest(tn.matmul(a, b, transpose_b=True), q)


def _greatest(x, q):
    s, u, v = tn.linalg.svd(x)
    u, v = u[..., :q], v[..., :q]
    return tn.abs(u), s[..., :q], tn.matrix_transpose(tn.abs(v)), tn.matmul(u, v, transpose_b=True)


@maps("pca_lowrank", asked=_low_rank_without_signs)
def pca_lowrank(a, b, q, center=True):
    x = tn.matmul(a, b, transpose_b=True)
    return _greatest(x - tn.reduce_mean(x, axis=-2, keepdims=True) if center else x, q)
