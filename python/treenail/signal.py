# SPDX-License-Identifier: Apache-2.0
"""Signal processing: Fourier and cosine transforms, frames, windows, mel spectra."""

from treenail._cepstrum import *  # noqa: F401,F403
from treenail._cepstrum import __all__ as _cepstrum_names
from treenail._fourier import *  # noqa: F401,F403
from treenail._fourier import __all__ as _fourier_names
from treenail._framing import *  # noqa: F401,F403
from treenail._framing import __all__ as _framing_names
from treenail._names import no_attribute as _no_attribute
from treenail._refusals import name_in_refusals as _name_in_refusals

__all__ = _cepstrum_names + _fourier_names + _framing_names


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
