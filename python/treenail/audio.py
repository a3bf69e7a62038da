# SPDX-License-Identifier: Apache-2.0
"""Sound: WAV files, spectrograms, mel-frequency cepstral coefficients."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import convert_to_tensor
from treenail._names import no_attribute as _no_attribute
from treenail._ops import ops
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def decode_wav(contents: Any, desired_channels: int = -1, desired_samples: int = -1,
               name: str | None = None):
    """(audio, sample_rate) of the bytes of a 16-bit PCM WAV file: float32 [samples, channels] in
    [-1, 1), and the int32 samples per second.

    desired_channels: so many of the file's channels, the last one repeated where it has fewer.
    desired_samples: the sound cropped, or silence at its end. -1: as in the file.
    """
    return ops.DecodeWav(contents, desired_channels=desired_channels,
                         desired_samples=desired_samples, name=name)


def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> Tensor:
    """Sound, float32 [samples, channels], as the bytes of a 16-bit PCM WAV file.

    1.0 is full scale; what is louder is clipped, NaN is silence.
    """
    return ops.EncodeWav(convert_to_tensor(audio, _core.float32),
                         convert_to_tensor(sample_rate, _core.int32), name=name)


def audio_spectrogram(input: Any, window_size: int, stride: int, magnitude_squared: bool = False,
                      name: str | None = None) -> Tensor:
    """Magnitudes of the frequencies of sound [samples, channels] over time: [channels, windows,
    n / 2 + 1], where n is the power of two that holds a window.

    Windows of window_size samples, `stride` apart, under a periodic Hann window.
    magnitude_squared: the squares, as `mfcc` takes them.
    """
    return ops.AudioSpectrogram(input, window_size=window_size, stride=stride,
                                magnitude_squared=magnitude_squared, name=name)


def mfcc(spectrogram: Any, sample_rate: Any, upper_frequency_limit: float = 4000,
         lower_frequency_limit: float = 20, filterbank_channel_count: int = 40,
         dct_coefficient_count: int = 13, name: str | None = None) -> Tensor:
    """Mel-frequency cepstral coefficients of a spectrogram of squared magnitudes [channels,
    windows, frequencies]: [channels, windows, dct_coefficient_count].

    Magnitudes are summed under filterbank_channel_count triangles on the mel scale between the
    frequency limits (Hz); their logarithms go through a cosine transform.
    """
    return ops.Mfcc(spectrogram, convert_to_tensor(sample_rate, _core.int32),
                    upper_frequency_limit=upper_frequency_limit,
                    lower_frequency_limit=lower_frequency_limit,
                    filterbank_channel_count=filterbank_channel_count,
                    dct_coefficient_count=dct_coefficient_count, name=name)


__all__ = ["decode_wav", "encode_wav", "audio_spectrogram", "mfcc"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
