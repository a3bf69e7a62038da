# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/audio.cc. Oracles: Python's wave module, numpy.fft, mel triangles and
cosines by their definitions."""

import io
import wave

import numpy as np

from harness import T, op, rand


def wav(samples, channels=1, rate=8000, width=2):
    """The bytes that Python writes for these int16 samples."""
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(np.asarray(samples, np.int16).tobytes())
    return stream.getvalue()


def contents(data):
    return np.array(data, object)


def decode(data, desired_channels=-1, desired_samples=-1):
    with wave.open(io.BytesIO(bytes(data.item()))) as file:
        frames = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        audio = frames.reshape(-1, file.getnchannels()) / 32768.0
        rate = file.getframerate()
    if desired_channels >= 0:
        audio = audio[:, [min(k, audio.shape[1] - 1) for k in range(desired_channels)]]
    if desired_samples >= 0:
        silence = np.zeros((max(0, desired_samples - len(audio)), audio.shape[1]))
        audio = np.concatenate([audio, silence])[:desired_samples]
    return [audio, np.int32(rate)]


once = dict(dtypes=("float32",), grad=0)
SOUND = np.int16([0, 1, -1, 32767, -32768, 12345])
cases = op("DecodeWav", decode, ulps=0.0, static_shape=False, **once)
for channels in (1, 2, 3):
    cases.case(contents(wav(SOUND, channels, 44100)))
    cases.case(contents(wav(SOUND, channels)), desired_channels=2, desired_samples=4)
    cases.case(contents(wav(SOUND, channels)), desired_channels=1, desired_samples=0)
cases.case(contents(wav(SOUND)), desired_channels=0)
cases.case(contents(wav([])))
PLAIN = wav(SOUND)
FORMAT, DATA = PLAIN[12:36], PLAIN[36:]
# Chunks of odd length, which are filled up with a byte.
LIST = b"LIST\x05\0\0\0INFO!\0"
CHUNKS = b"WAVE" + LIST + FORMAT + LIST + DATA
cases.case(contents(b"RIFF" + len(CHUNKS).to_bytes(4, "little") + CHUNKS))
broken = [
    (b"", "Data too short for a WAV file: the header needs 4 bytes, but 0 are left"),
    (b"RIFX" + PLAIN[4:], "not a WAV file: 'RIFF' is missing"),
    (PLAIN[:8] + b"WAVX" + PLAIN[12:], "not a WAV file: 'WAVE' is missing"),
    (PLAIN[:-1], "a chunk needs 12 bytes, but 11 are left"),
    (PLAIN[:36], "no 'data' chunk"),
    (PLAIN[:12] + DATA, "needs 'fmt ' before 'data'"),
    (PLAIN[:20] + b"\x03\0" + PLAIN[22:], r"Expected 1 \(PCM\), but got 3"),
    (PLAIN[:22] + b"\0\0" + PLAIN[24:], "1 to 65535 channels, got 0"),
    (PLAIN[:24] + b"\0\0\0\0" + PLAIN[28:], "sample rate of a WAV file .* got 0"),
    (PLAIN[:24] + b"\xff\xff\xff\xff" + PLAIN[28:], "got 4294967295"),
    (PLAIN[:32] + b"\x03\0" + PLAIN[34:], "Bad bytes per sample in WAV header: Expected 2 but got 3"),
    (PLAIN[:34] + b"\x08\0" + PLAIN[36:], "Can only read 16-bit WAV files, but received 8"),
    (PLAIN[:12] + b"fmt \x04\0\0\0\1\0\1\0" + DATA, "Data too short .* the format needs 4"),
    (PLAIN[:40] + b"\xff\xff\xff\xff", "a chunk needs 4294967295 bytes, but 0 are left"),
]
for data, message in broken:
    cases.error("InvalidArgument", message, contents(data))
cases.error("InvalidArgument", "desired_channels must be", contents(PLAIN), desired_channels=-2)
cases.error("InvalidArgument", "desired_samples must be", contents(PLAIN), desired_samples=-5)
cases.error("InvalidArgument", "rank", np.array([PLAIN], object))


def encode(audio, rate):
    scaled = np.nan_to_num(audio * 32768.0, nan=0.0)
    away = np.sign(scaled) * np.floor(np.abs(scaled) + 0.5)  # halves go away from zero
    return contents(wav(np.clip(away, -32768, 32767), audio.shape[1], int(rate)))


cases = op("EncodeWav", encode, **once)
cases.case((9, 1), 8000).case((5, 2), 44100).case((0, 3), 1).case(rand((40, 2), -1.0, 1.0), 16000)
cases.case(T([[np.nan], [1.0], [-1.0], [0.5 / 32768], [1e30], [-np.inf]]), 8000)
cases.error("InvalidArgument", "1 to 65535 channels, got 0", (4, 0), 8000)
cases.error("InvalidArgument", "1 to 65535 channels, got 65536", (0, 65536), 8000)
cases.error("InvalidArgument", "sample_rate = 0 does not fit", (4, 1), 0)
cases.error("InvalidArgument", "sample_rate = -3 does not fit", (4, 1), -3)
cases.error("InvalidArgument", "rank", (4,), 8000)


def spectrogram(x, window_size, stride, magnitude_squared=False):
    n = 1 << (window_size - 1).bit_length()
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window_size) / window_size)
    slices = max(0, 1 + (len(x) - window_size) // stride)
    out = np.zeros((x.shape[1], slices, n // 2 + 1))
    for k in range(x.shape[1]):
        for i in range(slices):
            cut = x[i * stride : i * stride + window_size, k] * window
            out[k, i] = np.abs(np.fft.rfft(cut, n))
    return out**2 if magnitude_squared else out


cases = op("AudioSpectrogram", spectrogram, ulps=32.0, norm=True, **once)
for squared in (False, True):
    cases.case((50, 1), window_size=16, stride=4, magnitude_squared=squared)
    cases.case((75, 3), window_size=20, stride=7, magnitude_squared=squared)
    cases.case((900, 2), window_size=400, stride=160, magnitude_squared=squared)
cases.case((3000, 2), window_size=64, stride=1)  # several blocks of windows
cases.case((5, 2), window_size=2, stride=3).case((5, 2), window_size=6, stride=1)
cases.case((5, 0), window_size=4, stride=1).case((0, 2), window_size=4, stride=1)
cases.case((40000, 1), window_size=33000, stride=3000)
cases.case((9, 1), window_size=8, stride=2**62)
cases.error("InvalidArgument", "window_size must be in", (9, 1), window_size=1, stride=1)
cases.error("InvalidArgument", "window_size must be in", (9, 1), window_size=2**62, stride=1)
cases.error("InvalidArgument", "stride must be positive, got 0", (9, 1), window_size=4, stride=0)
cases.error("InvalidArgument", "rank", (9,), window_size=4, stride=1)


def mfcc(squares, rate, upper_frequency_limit=4000.0, lower_frequency_limit=20.0,
         filterbank_channel_count=40, dct_coefficient_count=13):
    bins, count = squares.shape[2], filterbank_channel_count

    def mel(hertz):
        return 1127.0 * np.log1p(hertz / 700.0)

    corners = np.linspace(mel(lower_frequency_limit), mel(upper_frequency_limit), count + 2)
    hertz = np.arange(bins) * 0.5 * rate / (bins - 1)
    triangles = np.zeros((bins, count))
    first = int(1.5 + lower_frequency_limit / (0.5 * rate / (bins - 1)))
    for i in range(first, bins):
        if hertz[i] > upper_frequency_limit:
            break
        for j in range(count):
            left, middle, right = corners[j : j + 3]
            at = mel(hertz[i])
            triangles[i, j] = max(0, min((at - left) / (middle - left), (right - at) / (right - middle)))
    logs = np.log(np.maximum(np.sqrt(squares) @ triangles, 1e-12))
    j = np.arange(count) + 0.5
    cosines = np.cos(np.pi / count * np.outer(j, np.arange(dct_coefficient_count)))
    return logs @ cosines * np.sqrt(2.0 / count)


cases = op("Mfcc", mfcc, ulps=16.0, norm=True, domain=(0.0, 9.0), **once)
cases.case((1, 3, 257), 8000).case((2, 40, 129), 16000).case((1, 1, 2), 100)
cases.case((1, 5, 513), 44100, upper_frequency_limit=10000.0, lower_frequency_limit=300.0,
           filterbank_channel_count=20, dct_coefficient_count=20)
cases.case((2, 1, 65), 8000, filterbank_channel_count=1, dct_coefficient_count=1)
cases.case((0, 3, 9), 8000).case((2, 0, 9), 8000)
cases.case(T(np.zeros((1, 1, 33))), 8000)  # silence: the floor of the logarithm
for message, shape, rate, attrs in (
    ("sample_rate must be positive, got 0", (1, 1, 9), 0, {}),
    ("two frequencies or more", (1, 1, 1), 8000, {}),
    ("rank", (1, 9), 8000, {}),
    ("filterbank_channel_count must be in", (1, 1, 9), 8000, {"filterbank_channel_count": 0}),
    ("filterbank_channel_count must be in", (1, 1, 9), 8000, {"filterbank_channel_count": 2**40}),
    ("dct_coefficient_count must be in", (1, 1, 9), 8000, {"dct_coefficient_count": 41}),
    ("lower_frequency_limit < upper", (1, 1, 9), 8000, {"lower_frequency_limit": -1.0}),
    ("lower_frequency_limit < upper", (1, 1, 9), 8000, {"upper_frequency_limit": 20.0}),
    ("lower_frequency_limit < upper", (1, 1, 9), 8000, {"upper_frequency_limit": float("nan")}),
):
    cases.error("InvalidArgument", message, shape, rate, **attrs)
