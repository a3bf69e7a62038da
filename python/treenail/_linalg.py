# SPDX-License-Identifier: Apache-2.0
"""Linear algebra on the matrices in the last two axes: tn.linalg, without what has been in tn
itself all along."""

from __future__ import annotations

from treenail import _array, _math
from treenail import _treenail as _core
from treenail._convert import convert_to_tensor, scope_of
from treenail._ops import ops
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def cholesky(input: Any, name: str | None = None) -> Tensor:
    """Lower triangular L with L L^H = input, for Hermitian positive definite matrices.

    Raises InvalidArgumentError for others, naming the first one of the batch.
    """
    return ops.Cholesky(input, name=name)


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """Solves A X = rhs, where chol [..., n, n] is the Cholesky factor of A and rhs [..., n, k]."""
    with scope_of(name, "cholesky_solve", [chol, rhs]):
        half = ops.MatrixTriangularSolve(chol, rhs)
        return ops.MatrixTriangularSolve(chol, half, adjoint=True)


def triangular_solve(matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False,
                     name: str | None = None) -> Tensor:
    """Solves matrix X = rhs (matrix^H X = rhs) for triangular matrices, whose other triangle is not
    read. Raises InvalidArgumentError for a zero on a diagonal."""
    return ops.MatrixTriangularSolve(matrix, rhs, lower=lower, adjoint=adjoint, name=name)


def solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Solves matrix X = rhs (matrix^H X = rhs) for matrix [..., n, n] and rhs [..., n, k].

    Raises InvalidArgumentError for singular matrices, naming the first one of the batch.
    """
    return ops.MatrixSolve(matrix, rhs, adjoint=adjoint, name=name)


def inv(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Inverses of matrices, or of their adjoints. Raises InvalidArgumentError for singular ones."""
    return ops.MatrixInverse(input, adjoint=adjoint, name=name)


def det(input: Any, name: str | None = None) -> Tensor:
    """Determinants of matrices [..., n, n], shape [...]."""
    return ops.MatrixDeterminant(input, name=name)


def slogdet(input: Any, name: str | None = None) -> Any:
    """Sign and logarithm of the absolute value of determinants: (sign, log_abs_determinant)."""
    return ops.LogMatrixDeterminant(input, name=name)


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """Logarithm of the determinants of Hermitian positive definite matrices, a real number."""
    with scope_of(name, "logdet", [matrix]):
        diagonal = _math.real(ops.MatrixDiagPart(ops.Cholesky(matrix)))
        return 2.0 * _math.reduce_sum(ops.Log(diagonal), axis=-1)


def lu(input: Any, output_idx_type: Any = _core.int32, name: str | None = None) -> Any:
    """LU factors by partial pivoting: (lu, p), where row p[i] of the input is row i of L U.

    lu holds U in its upper triangle and L, without its diagonal of ones, below.
    """
    return ops.Lu(input, output_idx_type=_core.as_dtype(output_idx_type), name=name)


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """The last two axes exchanged, complex numbers conjugated."""
    with scope_of(name, "adjoint", [matrix]):
        return _array.matrix_transpose(convert_to_tensor(matrix), conjugate=True)


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Any:
    """QR factors: (q, r), q with orthonormal columns, r upper triangular, input = q r.

    For input [..., m, n] and k = min(m, n), q is [..., m, k] and r [..., k, n]; with full_matrices
    they are [..., m, m] and [..., m, n].
    """
    return ops.Qr(input, full_matrices=full_matrices, name=name)


def self_adjoint_eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues, ascending, and eigenvectors, in columns, of Hermitian matrices: (e, v).

    The lower triangles are read. Raises InvalidArgumentError for NaN and infinity.
    """
    e, v = ops.SelfAdjointEig(tensor, name=name)
    return e, v


def self_adjoint_eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """Eigenvalues of Hermitian matrices, ascending. The lower triangles are read."""
    return ops.SelfAdjointEig(tensor, compute_v=False, name=name)[0]


def _eig(tensor: Any, compute_v: bool, name: str | None) -> Any:
    x = convert_to_tensor(tensor)
    narrow = x.dtype in (_core.float32, _core.complex64)
    kind = _core.complex64 if narrow else _core.complex128
    return ops.Eig(x, compute_v=compute_v, Tout=kind, name=name)


def eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues and right eigenvectors, in columns, of square matrices: (e, v), both complex,
    tensor v = v diag(e).

    Eigenvalues ascend by real and then by imaginary part; vectors have length 1, and the first of
    their largest elements is real and positive. Raises InvalidArgumentError for NaN and infinity.
    """
    e, v = _eig(tensor, True, name)
    return e, v


def eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """Eigenvalues of square matrices, complex, ascending by real and then by imaginary part."""
    return _eig(tensor, False, name)[0]


def expm(input: Any, name: str | None = None) -> Tensor:
    """Exponentials of square matrices, by scaling and squaring (Al-Mohy and Higham 2009)."""
    return ops.MatrixExponential(input, name=name)


def sqrtm(input: Any, name: str | None = None) -> Tensor:
    """Principal square roots of square matrices (Bjorck and Hammarling 1983).

    NaN where there is none, or of a real matrix none that is real: cast to complex what may have
    negative eigenvalues.
    """
    return ops.MatrixSquareRoot(input, name=name)


def logm(input: Any, name: str | None = None) -> Tensor:
    """Principal logarithms of square matrices (Al-Mohy and Higham 2012).

    NaN of singular matrices, and of real ones with negative eigenvalues: cast those to complex.
    """
    return ops.MatrixLogarithm(input, name=name)


def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True,
        name: str | None = None) -> Any:
    """Singular values, descending, and vectors: (s, u, v), tensor = u diag(s) v^H; s alone without
    compute_uv.

    For tensor [..., m, n] and k = min(m, n), s is [..., k] and real, u [..., m, k], v [..., n, k];
    with full_matrices u is [..., m, m] and v [..., n, n].
    """
    s, u, v = ops.Svd(tensor, compute_uv=compute_uv, full_matrices=full_matrices, name=name)
    return (_math.real(s), u, v) if compute_uv else _math.real(s)


eigh, eigvalsh = self_adjoint_eig, self_adjoint_eigvals

__all__ = ["eig", "eigh", "eigvals", "eigvalsh", "expm", "logm", "qr", "self_adjoint_eig",
           "self_adjoint_eigvals", "sqrtm", "svd", "adjoint", "cholesky", "cholesky_solve", "det",
           "inv", "logdet", "lu", "slogdet", "solve", "triangular_solve"]
