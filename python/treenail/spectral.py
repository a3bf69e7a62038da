# SPDX-License-Identifier: Apache-2.0
"""Fourier and cosine transforms under TensorFlow 1's older names."""

from treenail._cepstrum import dct, idct  # noqa: F401
from treenail._fourier import (fft, fft2d, fft3d, ifft, ifft2d, ifft3d, irfft,  # noqa: F401
                               irfft2d, irfft3d, rfft, rfft2d, rfft3d)
from treenail._names import no_attribute as _no_attribute
from treenail._refusals import name_in_refusals as _name_in_refusals

__all__ = ["dct", "idct", "fft", "fft2d", "fft3d", "ifft", "ifft2d", "ifft3d", "irfft", "irfft2d",
           "irfft3d", "rfft", "rfft2d", "rfft3d"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
