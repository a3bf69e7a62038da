# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/summary.cc. Oracle: the messages written out again with struct, zlib and
wave; what TensorBoard reads in them is tests/python/test_summary.py's business."""

import io
import math
import struct
import sys
import wave
import zlib

import numpy as np

from harness import REALS, T, many, op, rand
from wire import field, tensor_proto


def tag(text):
    return np.array(text, object)


def values(*pairs):
    return np.array(b"".join(field(1, field(1, t) + content) for t, content in pairs), object)


def scalar_summary(tags, numbers):
    pairs = zip(tags.ravel(), numbers.ravel())
    return values(*((t, field(2, np.float32(x))) for t, x in pairs))


TAGS = np.array([[b"a", b"b/c"], [b"", b"\xff"]], object)
op("ScalarSummary", scalar_summary, dtypes=REALS).case(tag(b"loss"), T(3)).case(
    TAGS, T([[0, 1], [2, 127]])
).case(np.array([], object), (0,)).case(tag(b"n"), T(np.nan), options={"dtypes": ("float32",)}).case(
    tag(b"x"), T(1e300), options={"dtypes": ("float64",)}
).error(
    "InvalidArgument", r"tags and values are not the same shape: \[\] != \[2\]", tag(b"a"), (2,)
)


def limits():
    positive, v = [], 1e-12
    while v < 1e20:
        positive.append(v)
        v *= 1.1
    positive.append(sys.float_info.max)
    return [-v for v in reversed(positive)] + [0.0] + positive


LIMITS = limits()


def histogram(t, numbers):
    numbers = [float(x) for x in numbers.ravel()]
    places = np.minimum(np.searchsorted(LIMITS, numbers, side="right"), len(LIMITS) - 1)
    counts = np.bincount(places, minlength=len(LIMITS)) if numbers else np.zeros(len(LIMITS))
    ends, kept = [], []
    for end, count in zip(LIMITS, counts):
        if count == 0 and kept and kept[-1] == 0:
            ends[-1] = end
        else:
            ends.append(end)
            kept.append(float(count))
    total = squares = 0.0
    for x in numbers:
        total += x
        squares += x * x
    moments = [min(numbers, default=sys.float_info.max), max(numbers, default=-sys.float_info.max),
               float(len(numbers)), total, squares]
    message = b"".join(field(i + 1, m) for i, m in enumerate(moments)
                       if m != 0 or math.copysign(1, m) < 0)
    message += field(6, struct.pack("<%dd" % len(ends), *ends))
    message += field(7, struct.pack("<%dd" % len(kept), *kept))
    return values((t.item(), field(5, message)))


op("HistogramSummary", histogram, dtypes=REALS).case(tag(b"h"), (50, 3)).case(tag(b""), T([])).case(
    tag(b"h"), T(0)
).case(tag(b"h"), (0, 4)).case(tag(b"h"), rand((7, 3, 5), -100, 100)).case(
    tag(b"h"), T([0.0, -0.0, 1e-12, -1e-12, 1.1e-12, 9.9e-13, -9.9e-13, 1e-30, 3e38, -3e38, 1e20]),
    options={"dtypes": ("float32", "float64")}
).case(
    tag(b"h"), T(LIMITS + [5e-324, -5e-324, 1.7e308, np.nextafter(1.0, 2)]),
    options={"dtypes": ("float64",)}
).case(
    tag(b"h"), T([-(2**63), 2**63 - 1, -1]), options={"dtypes": ("int64",)}
).error("InvalidArgument", 'Nan in summary histogram for: "a"', tag(b"a"), T([1, np.nan])).error(
    "InvalidArgument", r'Infinity in summary histogram for: "\\x1b\[31m"', tag(b"\x1b[31m"),
    T([-np.inf])
).error("InvalidArgument", "rank", np.array([b"a"], object), (2,))


METADATA = field(1, field(1, b"text"))


def tensor_summary(t, tensor, metadata):
    return values((t.item(), field(8, tensor_proto(tensor)) + field(9, metadata.item())))


WORDS = np.array([b"one", b"", b"\x00\xff"], object)
op("TensorSummary", tensor_summary).case(tag(b"t"), np.float32([[1, 2, 3]]), tag(METADATA)).case(
    tag(b"t"), WORDS, tag(b"")
).case(tag(b"t"), np.zeros((0, 3), np.int64), tag(METADATA)).case(
    tag(b"t"), np.array(True), tag(METADATA)
).error(
    "InvalidArgument", "no protocol-buffer message: a length goes beyond its end, at byte 2 of 3",
    tag(b"t"), np.float32(1), tag(b"\x0a\x07a")
).error("InvalidArgument", "a wire type is unknown", tag(b"t"), np.float32(1), tag(b"\x0b")).error(
    "InvalidArgument", "a field number is out of range", tag(b"t"), np.float32(1), tag(b"\x02\x00"))


def merged(inputs):
    return np.array(b"".join(b"".join(x.ravel()) for x in inputs), object)


ONE = scalar_summary(tag(b"one"), np.float32(1))
TWO = scalar_summary(tag(b"two"), np.float32(2))
SEVERAL = np.array([[ONE.item(), b""], [TWO.item(), b"\x10\x05"]], object)
op("MergeSummary", merged).case(many(ONE)).case(many(ONE, TWO)).case(many(SEVERAL)).case(
    many(np.array([], object), TWO)
).error(
    "InvalidArgument", 'Duplicate tag "one" found in summary inputs', many(ONE, TWO, ONE)
).error("InvalidArgument", r"merge the summary inputs\[1\]: no protocol-buffer message: it ends within",
        many(ONE, tag(b"\x0d\x01"))).error(
    "InvalidArgument", "more than ten bytes", many(tag(b"\x08" + b"\xff" * 10))
).error("InvalidArgument", "goes beyond its end", many(tag(b"\x0a" + b"\xff" * 9 + b"\x01")))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def stored(data):
    blocks = [data[i : i + 65535] for i in range(0, len(data), 65535)]
    out = b"\x78\x01"
    for i, block in enumerate(blocks):
        out += struct.pack("<BHH", i == len(blocks) - 1, len(block), 0xFFFF - len(block)) + block
    out += struct.pack(">I", zlib.adler32(data))
    assert zlib.decompress(out) == data
    return out


def png(image):
    height, width, channels = image.shape
    rows = b"".join(b"\0" + row.tobytes() for row in image)
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", stored(rows)) + chunk(
        b"IEND", b"")


def to_bytes(image, bad_color, real):
    if image.dtype == np.uint8:
        return image
    image = image.astype(real)
    good = np.isfinite(image).all(-1)
    finite = image[good]
    low, high = (finite.min(), finite.max()) if finite.size else (real(0), real(0))
    most = max(abs(low), abs(high)) if low < 0 else high
    scale = real(0) if most < real(1e-6) else real(127 if low < 0 else 255) / most
    out = np.clip(np.where(good[..., None], image, 0) * scale + real(128 if low < 0 else 0), 0, 255)
    return np.where(good[..., None], out, np.array(bad_color[: image.shape[-1]])).astype(np.uint8)


def image_summary(t, images, max_images=3, bad_color=(255, 0, 0, 255), T="float32"):
    real = np.float64 if T == "float64" else np.float32
    pairs = []
    for i in range(min(max_images, len(images))):
        name = t.item() + (b"/image" if max_images == 1 else b"/image/%d" % i)
        message = field(1, images.shape[1]) + field(2, images.shape[2]) + field(3, images.shape[3])
        message += field(4, png(to_bytes(images[i], bad_color, real)))
        pairs.append((name, field(4, message)))
    return values(*pairs)


SPECKS = np.full((1, 3, 5, 3), 0.5)
SPECKS[0, 0, 0, 1], SPECKS[0, 2, 4] = np.nan, np.inf
IMAGES = ("uint8", "float32", "float16", "float64")
FLOATING = {"dtypes": ("float32", "float16", "float64")}
op("ImageSummary", image_summary, dtypes=IMAGES).case(
    tag(b"i"), rand((2, 5, 7, 3), 0, 1), T="DTYPE"
).case(tag(b"i"), rand((4, 1, 1, 1), 0, 255), T="DTYPE").case(
    tag(b"i"), rand((1, 3, 2, 4), -9, 4), options=FLOATING, T="DTYPE"
).case(tag(b"i"), T(SPECKS), options=FLOATING, T="DTYPE").case(
    tag(b"i"), T(SPECKS - 0.75), options=FLOATING, T="DTYPE", bad_color=[0, 9, 200]
).case(tag(b"i"), rand((5, 2, 2, 1), 0, 3), max_images=1, T="DTYPE").case(
    tag(b"i"), T(np.zeros((1, 2, 2, 3))), T="DTYPE"
).case(tag(b"i"), T(np.full((1, 2, 2, 1), np.nan)), options=FLOATING, T="DTYPE").case(
    tag(b""), (0, 2, 2, 3), T="DTYPE"
).case(
    tag(b"i"), rand((1, 150, 150, 4), 0, 255), options={"dtypes": ("uint8",)}, T="DTYPE"
).error(
    "InvalidArgument", r"4-D with last dim 1, 3, or 4, not \[1,2,2,2\]", tag(b"i"), (1, 2, 2, 2)
).error("InvalidArgument", r"\[1,0,2,3\] have no pixels", tag(b"i"), (1, 0, 2, 3)).error(
    "InvalidArgument", "bad_color has 2 elements, but 3 are needed", tag(b"i"), (1, 2, 2, 3),
    bad_color=[1, 2]
).error("InvalidArgument", "bad_color holds 256", tag(b"i"), (1, 2, 2, 3), bad_color=[1, 2, 256]).error(
    "InvalidArgument", "max_images", tag(b"i"), (1, 2, 2, 3), max_images=0
).error("InvalidArgument", "rank", tag(b"i"), (2, 2, 3))


def wav(sound, rate):
    scaled = np.where(np.isnan(sound), 0, sound) * 32768
    rounded = np.trunc(scaled + np.copysign(0.5, scaled))  # halves away from zero
    data = io.BytesIO()
    with wave.open(data, "wb") as out:
        out.setparams((sound.shape[1], 2, rate, len(sound), "NONE", ""))
        out.writeframes(np.clip(rounded, -32768, 32767).astype(np.int16).tobytes())
    return data.getvalue()


def audio_summary(t, sounds, sample_rate, max_outputs=3):
    pairs = []
    for i in range(min(max_outputs, len(sounds))):
        sound = sounds[i] if sounds.ndim == 3 else sounds[i][:, None]
        name = t.item() + (b"/audio" if max_outputs == 1 else b"/audio/%d" % i)
        message = field(1, np.float32(sample_rate)) + field(2, sound.shape[1]) + field(3, len(sound))
        message += field(4, wav(sound, int(sample_rate))) + field(5, b"audio/wav")
        pairs.append((name, field(6, message)))
    return values(*pairs)


RATE = np.float32(44100)
LOUD = np.float32([[0, -1, 1, 0.99999, -1.5, 7, np.inf, -np.inf, np.nan, 0.5, 1.5 / 32768]])
op("AudioSummary", audio_summary).case(tag(b"s"), T(LOUD), RATE, options={"dtypes": ("float32",)}).case(
    tag(b"s"), np.float32(np.sin(np.arange(600) / 9)).reshape(2, 100, 3), np.float32(8000.5)
).case(tag(b"s"), np.zeros((5, 4), np.float32), np.float32(1), max_outputs=1).case(
    tag(b"s"), np.zeros((2, 0), np.float32), RATE
).case(tag(b""), np.zeros((0, 3, 2), np.float32), RATE).error(
    "InvalidArgument", r"\[batch, frames, channels\], not \[3\]", tag(b"s"), (3,), RATE
).error(
    "InvalidArgument", "sample_rate must be a positive number of Hz, got nan", tag(b"s"), (1, 3),
    np.float32(np.nan)
).error("InvalidArgument", "sample_rate must be", tag(b"s"), (1, 3), np.float32(0)).error(
    "InvalidArgument", "sample_rate = 4000000000 does not fit", tag(b"s"), (1, 3), np.float32(4e9)
).error("InvalidArgument", "1 to 65535 channels, got 0", tag(b"s"), (1, 3, 0), RATE)
