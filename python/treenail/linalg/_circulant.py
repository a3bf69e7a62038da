# SPDX-License-Identifier: Apache-2.0
"""Circulant operators: convolutions of one, two or three periodic axes, which the Fourier transform
makes diagonal."""

from __future__ import annotations

from treenail import _array, _assertions, _math
from treenail import _treenail as _core
from treenail._convert import convert_to_tensor
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._treenail import Operation, Tensor
from treenail.linalg import _algebra, _batches, _hints
from treenail.linalg._operator import LinearOperator
from treenail.linalg._parts import argument, checked_dtype, no_imaginary_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FORWARD = {1: ops.FFT, 2: ops.FFT2D, 3: ops.FFT3D}
_BACKWARD = {1: ops.IFFT, 2: ops.IFFT2D, 3: ops.IFFT3D}


def complex_type(dtype: Any) -> Any:
    """The complex dtype with parts of this precision."""
    return _core.complex128 if dtype in (_core.float64, _core.complex128) else _core.complex64


def _spectrum_of(value: Any, dtype: Any) -> Tensor:
    """A tensor: of lists a real one where they hold real numbers, in the precision of `dtype`."""
    for wanted in (dtype.real_dtype, complex_type(dtype)):
        try:
            return convert_to_tensor(value, None if hasattr(value, "dtype") else wanted)
        except (TypeError, ValueError):
            pass
    return convert_to_tensor(value)


class _Circulant(LinearOperator):
    """What circulants of any number of axes have in common: `depth` of them."""

    def __init__(self, spectrum: Any, depth: int, input_output_dtype: Any, hints: dict,
                 name: str) -> None:
        self._depth = depth
        dtype = _core.as_dtype(input_output_dtype)
        given = checked_dtype("spectrum", _batches.at_least_rank(
            "spectrum", _spectrum_of(spectrum, dtype), depth))
        if complex_type(dtype) != complex_type(given.dtype):
            raise TypeError("spectrum has dtype %s and input_output_dtype is %s: both must have "
                            "the same precision" % (given.dtype.name, dtype.name))
        if not given.dtype.is_complex:
            hints["is_self_adjoint"] = _hints.required(
                hints["is_self_adjoint"],
                "A real spectrum always corresponds to a self-adjoint operator.")
        hints["is_square"] = _hints.required(
            hints["is_square"], "A [[nested] block] circulant operator is always square.")
        self._given_spectrum = given
        self._spectrum = _math.cast(given, complex_type(dtype))
        super().__init__(dtype, [given], name=name, **hints)

    @property
    def spectrum(self) -> Tensor:
        """The eigenvalues, in the order of Fourier frequencies: [...] and an extent per axis."""
        return self._spectrum

    @property
    def block_depth(self) -> int:
        """The number of periodic axes: 1, 2 or 3."""
        return self._depth

    @property
    def block_shape(self) -> TensorShape:
        """What is known of the extents of the periodic axes."""
        return self._spectrum.shape[-self._depth:]

    def block_shape_tensor(self) -> Tensor:
        """The extents of the periodic axes, an int32 vector."""
        return ops.Shape(self._spectrum)[-self._depth:]

    def _block_extents(self) -> list:
        return [_batches.extent(self._spectrum, i) for i in range(-self._depth, 0)]

    def _order(self) -> Any:
        return _batches.count_of(self._block_extents())

    def _shape(self) -> TensorShape:
        order = self.block_shape.num_elements()
        return self._spectrum.shape[:-self._depth].concatenate([order, order])

    def _shape_tensor(self) -> Tensor:
        batch = _batches.batch_vector(self._spectrum, self._depth)
        return _batches.joined(batch, [self._order(), self._order()])

    def convolution_kernel(self, name: str = "convolution_kernel") -> Tensor:
        """The first column, in the shape of the spectrum: what an argument is convolved with."""
        with self._scope(name):
            return self._narrowed(_BACKWARD[self._depth](self._spectrum))

    def assert_hermitian_spectrum(self, name: str = "assert_hermitian_spectrum") -> Operation:
        """An operation that raises InvalidArgumentError unless products of real arguments are
        real, up to rounding."""
        with self._scope(name):
            kernel = _BACKWARD[self._depth](self._spectrum)
            largest = _math.reduce_max(_math.abs(kernel))
            return _assertions.assert_less_equal(
                _math.abs(_math.imag(kernel)), largest * self._spacing(),
                message="Imaginary part of the convolution kernel was not zero: the spectrum was "
                        "not Hermitian.")

    def _narrowed(self, x: Tensor) -> Tensor:
        return x if self._dtype.is_complex else _math.real(x)

    def _filtered(self, x: Tensor, spectrum: Tensor) -> Tensor:
        """Columns of x with their Fourier coefficients times the spectrum."""
        rows = _math.cast(_array.matrix_transpose(x), self._spectrum.dtype)
        outer = _batches.batch_vector(rows, 1)
        periodic = ops.Reshape(rows, _batches.joined(outer, self._block_extents()))
        factors = ops.ExpandDims(spectrum, -self._depth - 1)  # the same for all columns
        result = _BACKWARD[self._depth](_FORWARD[self._depth](periodic) * factors)
        outer = _batches.batch_vector(result, self._depth)
        flat = ops.Reshape(result, _batches.joined(outer, [self._order()]))
        return self._narrowed(_array.matrix_transpose(flat))

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        spectrum = _math.conj(self._spectrum) if adjoint else self._spectrum
        return self._filtered(argument(x, adjoint_arg), spectrum)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        spectrum = _math.conj(self._spectrum) if adjoint else self._spectrum
        return self._filtered(argument(rhs, adjoint_arg), 1.0 / spectrum)

    def _eigenvalues(self) -> Tensor:
        """[..., n], in any order."""
        batch = _batches.batch_vector(self._spectrum, self._depth)
        return ops.Reshape(self._spectrum, _batches.joined(batch, [self._order()]))

    def _determinant(self) -> Tensor:
        return self._narrowed(_math.reduce_prod(self._eigenvalues(), axis=-1))

    def _log_abs_determinant(self) -> Tensor:
        sizes = ops.Log(_math.abs(self._eigenvalues()))
        return _math.cast(_math.reduce_sum(sizes, axis=-1), self._dtype)

    def _trace(self) -> Tensor:
        return self._narrowed(_math.reduce_sum(self._eigenvalues(), axis=-1))

    def _diag_part(self) -> Tensor:
        mean = ops.ExpandDims(self._trace(), -1) / _math.cast(self._order(), self._dtype)
        return mean * ops.OnesLike(self._narrowed(self._eigenvalues()))

    def _assert_non_singular(self) -> Operation:
        sizes = _math.abs(self._eigenvalues())
        bound = self._spacing() * _math.reduce_max(sizes, axis=-1, keepdims=True)
        return _assertions.assert_less(
            bound, sizes, message="Singular operator:  Spectrum contained zero values.")

    def _assert_positive_definite(self) -> Operation:
        return _assertions.assert_positive(
            _math.real(self._eigenvalues()),
            message="Not positive definite:  Real part of spectrum was not all positive.")

    def _assert_self_adjoint(self) -> Operation:
        return no_imaginary_part(
            self._spectrum, "Not equal to adjoint: the spectrum had non-zero imaginary values.")

    def _like(self, spectrum: Tensor, hints: dict) -> LinearOperator:
        """A circulant of as many axes and this dtype."""
        kinds = {1: LinearOperatorCirculant, 2: LinearOperatorCirculant2D,
                 3: LinearOperatorCirculant3D}
        return kinds[self._depth](spectrum, input_output_dtype=self._dtype, **hints)


class LinearOperatorCirculant(_Circulant):
    """Circulant matrices, whose columns are one column turned on: A[i, j] = kernel[(i - j) mod n].

    spectrum is [..., n], the Fourier transform of the kernel, real or complex. Products and
    solutions take O(n log n) for each column, determinants O(n). input_output_dtype: that of
    arguments and results; a real one needs a Hermitian spectrum, whose kernel is real. A real
    spectrum makes the operator self-adjoint, a positive one positive definite.
    """

    def __init__(self, spectrum: Any, input_output_dtype: Any = _core.complex64,
                 is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
                 is_positive_definite: bool | None = None, is_square: bool | None = True,
                 name: str = "LinearOperatorCirculant") -> None:
        hints = {"is_non_singular": is_non_singular, "is_self_adjoint": is_self_adjoint,
                 "is_positive_definite": is_positive_definite, "is_square": is_square}
        super().__init__(spectrum, 1, input_output_dtype, hints, name)


class LinearOperatorCirculant2D(_Circulant):
    """Block circulant matrices with circulant blocks, of order n1 n2: convolutions of images that
    repeat themselves, whose rows stand one behind the other. spectrum is [..., n1, n2]. Everything
    else is as of LinearOperatorCirculant."""

    def __init__(self, spectrum: Any, input_output_dtype: Any = _core.complex64,
                 is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
                 is_positive_definite: bool | None = None, is_square: bool | None = True,
                 name: str = "LinearOperatorCirculant2D") -> None:
        hints = {"is_non_singular": is_non_singular, "is_self_adjoint": is_self_adjoint,
                 "is_positive_definite": is_positive_definite, "is_square": is_square}
        super().__init__(spectrum, 2, input_output_dtype, hints, name)


class LinearOperatorCirculant3D(_Circulant):
    """As LinearOperatorCirculant2D, of three axes and order n1 n2 n3: spectrum is
    [..., n1, n2, n3]."""

    def __init__(self, spectrum: Any, input_output_dtype: Any = _core.complex64,
                 is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
                 is_positive_definite: bool | None = None, is_square: bool | None = True,
                 name: str = "LinearOperatorCirculant3D") -> None:
        hints = {"is_non_singular": is_non_singular, "is_self_adjoint": is_self_adjoint,
                 "is_positive_definite": is_positive_definite, "is_square": is_square}
        super().__init__(spectrum, 3, input_output_dtype, hints, name)


# --- Algebra --------------------------------------------------------------------------------------

@_algebra.adjoints.of(_Circulant)
def _adjoint(operator: _Circulant) -> LinearOperator:
    return operator._like(_math.conj(operator.spectrum), _hints.of_one(operator))


@_algebra.inverses.of(_Circulant)
def _inverse(operator: _Circulant) -> LinearOperator:
    return operator._like(1.0 / operator.spectrum, _hints.of_inverse(operator))


def _alike(left: _Circulant, right: _Circulant) -> bool:
    """Whether the same transform makes both diagonal."""
    return left.block_depth == right.block_depth and left.block_shape.is_fully_defined() and (
        left.block_shape == right.block_shape)


@_algebra.products.of(_Circulant, _Circulant)
def _product(left: _Circulant, right: _Circulant) -> Any:
    if not _alike(left, right):
        return NotImplemented
    return left._like(left.spectrum * right.spectrum, _hints.of_commuting(left, right))


@_algebra.solutions.of(_Circulant, _Circulant)
def _solution(left: _Circulant, right: _Circulant) -> Any:
    if not _alike(left, right):
        return NotImplemented
    return left._like(right.spectrum / left.spectrum, _hints.of_commuting(left, right))


__all__ = ["LinearOperatorCirculant", "LinearOperatorCirculant2D", "LinearOperatorCirculant3D"]
