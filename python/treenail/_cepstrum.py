# SPDX-License-Identifier: Apache-2.0
"""Cosine transforms, mel filter banks and mel-frequency cepstral coefficients."""

from __future__ import annotations

import math

from treenail import _array
from treenail import _treenail as _core
from treenail._convert import convert_to_tensor, scope_of
from treenail._fourier import _PARTS, converted, irfft, rfft
from treenail._ops import ops
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _check_dct(x: Tensor, type: Any, n: Any, axis: Any, norm: Any) -> None:
    if axis != -1:
        raise NotImplementedError("axis must be -1, got %r" % (axis,))
    if n is not None and n < 1:
        raise ValueError("n should be a positive integer or None, got %s" % n)
    if type not in (1, 2, 3, 4):
        raise ValueError("Types I, II, III and IV (I)DCT are supported, got %s" % type)
    if norm not in (None, "ortho"):
        raise ValueError("Unknown normalization. Expected None or 'ortho', got: %s" % norm)
    if type == 1 and norm is not None:
        raise ValueError("Normalization is not supported for the Type-I DCT")
    length = x.shape[-1] if x.shape.ndims else None
    length = getattr(length, "value", length) if n is None else n
    if type == 1 and length is not None and length < 2:
        raise ValueError("Type-I DCT requires the dimension to be greater than one")


def _fitted(x: Tensor, n: int | None) -> Tensor:
    """The last axis cropped or padded with zeros to n."""
    if n is None:
        return x
    x = x[..., :n]
    missing = n - _array.shape(x)[-1]
    fitted = _array.pad(x, [[0, 0]] * (x.shape.ndims - 1) + [[0, missing]])
    fitted.set_shape(x.shape.as_list()[:-1] + [n])
    return fitted


def _turn(length: Any, count: Any, sign: float, dtype: Any) -> Tensor:
    """2 e^(sign i pi k / (2 length)) for k < count."""
    angle = ops.Cast(ops.Range(0, count, 1), _core.float64) * (sign * math.pi / 2) / ops.Cast(
        length, _core.float64)
    return ops.Cast(2.0 * ops.Complex(ops.Cos(angle), ops.Sin(angle), Tout=_core.complex128), dtype)


def _ortho_weights(first: Tensor, others: Tensor, count: Any, dtype: Any) -> Tensor:
    """[first, others, others, ...]."""
    is_first = ops.Cast(ops.Equal(ops.Range(0, count, 1), 0), _core.float64)
    return ops.Cast(is_first * first + (1.0 - is_first) * others, dtype)


def dct(input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
        name: str | None = None) -> Tensor:
    """Discrete cosine transform of type 1, 2, 3 or 4 over the last axis, scaled as SciPy's.

    n: the input is cropped or padded with zeros to n numbers first. norm: None, or "ortho" for an
    orthogonal transform (not for type 1). Source: Makhoul, A Fast Cosine Transform in One and Two
    Dimensions, 1980. Raises NotImplementedError for another axis than -1.
    """
    with scope_of(name, "dct", [input]):
        x = converted(input, _core.float32)
        _check_dct(x, type, n, axis, norm)
        if not x.dtype.is_floating or x.dtype.name not in _PARTS:
            raise TypeError("dct takes float32 or float64, got %s" % x.dtype.name)
        x = _fitted(x, n)
        return (_dct1, _dct2, _dct3, _dct4)[type - 1](x, norm)


def _dct1(x: Tensor, norm: str | None) -> Tensor:
    mirrored = ops.Concat([x, ops.Reverse(x, [-1])[..., 1:-1]], -1)
    return ops.Real(rfft(mirrored), Tout=x.dtype)


def _dct2(x: Tensor, norm: str | None) -> Tensor:
    count = _array.shape(x)[-1]
    length = ops.Cast(count, _core.float64)
    turned = rfft(x, [2 * count])[..., :count] * _turn(count, count, -1.0, _PARTS[x.dtype.name])
    result = ops.Real(turned, Tout=x.dtype)
    if norm == "ortho":
        result = result * _ortho_weights(0.5 * ops.Rsqrt(length), ops.Rsqrt(2.0 * length), count,
                                         x.dtype)
    return result


def _dct3(x: Tensor, norm: str | None) -> Tensor:
    count = _array.shape(x)[-1]
    length = ops.Cast(count, _core.float64)
    if norm == "ortho":
        x = x * _ortho_weights(ops.Sqrt(length), ops.Sqrt(0.5 * length), count, x.dtype)
    else:
        x = x * ops.Cast(count, x.dtype)
    wide = _PARTS[x.dtype.name]
    return irfft(ops.Cast(x, wide) * _turn(count, count, 1.0, wide), [2 * count])[..., :count]


def _dct4(x: Tensor, norm: str | None) -> Tensor:
    # The odd frequencies of a transform twice as long.
    count = _array.shape(x)[-1]
    longer = _array.pad(x, [[0, 0]] * (x.shape.ndims - 1) + [[0, count]])
    result = _dct2(longer, None)[..., 1::2]
    if norm == "ortho":
        result = result * ops.Cast(ops.Rsqrt(2.0 * ops.Cast(count, _core.float64)), x.dtype)
    return result


def idct(input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
         name: str | None = None) -> Tensor:
    """The inverse of `dct` of that type, but for a factor where norm is None (as scipy.fftpack's):
    2 (n - 1) for type 1, 2 n for the others. Raises NotImplementedError for another axis than
    -1."""
    with scope_of(name, "idct", [input]):
        if type not in (1, 2, 3, 4):
            raise ValueError("Types I, II, III and IV (I)DCT are supported, got %s" % type)
        return dct(input, type={1: 1, 2: 3, 3: 2, 4: 4}[type], n=n, axis=axis, norm=norm)


# --- Mel spectra ----------------------------------------------------------------------------------

def _mel(hertz: Tensor) -> Tensor:
    return 1127.0 * ops.Log1p(hertz / 700.0)


def linear_to_mel_weight_matrix(num_mel_bins: int = 20, num_spectrogram_bins: int = 129,
                                sample_rate: Any = 8000, lower_edge_hertz: float = 125.0,
                                upper_edge_hertz: float = 3800.0, dtype: Any = _core.float32,
                                name: str | None = None) -> Tensor:
    """The matrix [num_spectrogram_bins, num_mel_bins] that takes spectra to the mel scale.

    Its columns are triangles, evenly spaced between lower_edge_hertz and upper_edge_hertz on the
    mel scale of HTK, 1127 ln(1 + f / 700) (Young et al., The HTK Book, section 5.4); frequency 0
    counts for nothing. Spectrogram bins are frequencies from 0 to half the sample rate.
    """
    dtype = _core.as_dtype(dtype)
    known_rate = None if isinstance(sample_rate, Tensor) else float(sample_rate)
    _check_mel(num_mel_bins, num_spectrogram_bins, known_rate, lower_edge_hertz, upper_edge_hertz,
               dtype)
    with scope_of(name, "linear_to_mel_weight_matrix", [sample_rate]):
        rate = ops.Cast(convert_to_tensor(sample_rate), _core.float64)
        bins = ops.Cast(ops.Range(1, num_spectrogram_bins, 1), _core.float64)
        position = _array.expand_dims(
            _mel(bins * (rate / 2.0) / float(max(1, num_spectrogram_bins - 1))), 1)
        low = _mel(convert_to_tensor(lower_edge_hertz, _core.float64))
        high = _mel(convert_to_tensor(upper_edge_hertz, _core.float64))
        width = (high - low) / float(num_mel_bins + 1)
        corner = low + width * ops.Cast(ops.Range(0, num_mel_bins, 1), _core.float64)
        rising = (position - corner) / width
        triangles = ops.Maximum(0.0, ops.Minimum(rising, 2.0 - rising))
        return ops.Cast(_array.pad(triangles, [[1, 0], [0, 0]]), dtype)


def _check_mel(num_mel_bins: Any, num_spectrogram_bins: Any, sample_rate: float | None, lower: Any,
               upper: Any, dtype: Any) -> None:
    if num_mel_bins <= 0:
        raise ValueError("num_mel_bins must be positive. Got: %s" % num_mel_bins)
    if num_spectrogram_bins <= 0:
        raise ValueError("num_spectrogram_bins must be positive. Got: %s" % num_spectrogram_bins)
    if lower < 0.0:
        raise ValueError("lower_edge_hertz must be non-negative. Got: %s" % lower)
    if lower >= upper:
        raise ValueError("lower_edge_hertz %.1f >= upper_edge_hertz %.1f" % (lower, upper))
    if sample_rate is not None and sample_rate <= 0:
        raise ValueError("sample_rate must be positive. Got: %s" % sample_rate)
    if sample_rate is not None and upper > sample_rate / 2:
        raise ValueError("upper_edge_hertz must not be larger than the Nyquist frequency "
                         "(sample_rate / 2). Got %s for sample_rate: %s" % (upper, sample_rate))
    if not dtype.is_floating:
        raise ValueError("dtype must be a floating point type. Got: %s" % dtype.name)


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Tensor:
    """Mel-frequency cepstral coefficients of log mel spectra [..., num_mel_bins], in that shape.

    A cosine transform of type 2, scaled as HTK does, by sqrt(2 / num_mel_bins) in the usual
    notation. Mostly the first 13 are used.
    """
    with scope_of(name, "mfccs_from_log_mel_spectrograms", [log_mel_spectrograms]):
        x = converted(log_mel_spectrograms, _core.float32)
        bins = x.shape[-1] if x.shape.ndims else None
        if getattr(bins, "value", bins) == 0:
            raise ValueError("num_mel_bins must be positive. Got: 0")
        count = ops.Cast(_array.shape(x)[-1], _core.float64)
        return dct(x, type=2) * ops.Cast(ops.Rsqrt(2.0 * count), x.dtype)


__all__ = ["dct", "idct", "linear_to_mel_weight_matrix", "mfccs_from_log_mel_spectrograms"]
