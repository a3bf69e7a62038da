# SPDX-License-Identifier: Apache-2.0
"""Image files. Oracles: PNG files written with zlib and BMP files with struct, here; PIL for JPEG.

Hostile files are made here too: cut off, damaged, with headers that promise too much.
"""

import io
import random
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest

import treenail as tn

ADAPTERS = tn.build_info()["adapters"]
needs_png = pytest.mark.skipif("png" not in ADAPTERS, reason="this build has no PNG adapter")
needs_jpeg = pytest.mark.skipif("jpeg" not in ADAPTERS, reason="this build has no JPEG adapter")
RNG = np.random.RandomState(9)
ROWS, COLUMNS = 7, 10
SMOOTH = np.stack([np.add.outer(3 * np.arange(40), 2 * np.arange(56)) + 20 * c for c in range(3)],
                  -1).astype(np.uint8)


def run(tensor):
    with tn.Session() as session:
        return session.run(tensor)


# --- Files made by hand ---------------------------------------------------------------------------

def chunk(kind, data):
    return (struct.pack(">I", len(data)) + kind + data
            + struct.pack(">I", zlib.crc32(kind + data) & 0xffffffff))


def png(rows, width, depth, color, extra=b"", interlaced=0, height=None, level=9):
    """rows: bytes of each row; for interlaced files of each row of each pass."""
    head = struct.pack(">IIBBBBB", width, height or len(rows), depth, color, 0, 0, interlaced)
    data = zlib.compress(b"".join(b"\0" + row for row in rows), level)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", data)
            + chunk(b"IEND", b""))


def png_of(pixels, color):
    depth = 8 * pixels.dtype.itemsize
    return png([row.astype(row.dtype.newbyteorder(">")).tobytes() for row in pixels],
               pixels.shape[1], depth, color)


def pixels(channels, dtype=np.uint8):
    return RNG.randint(0, np.iinfo(dtype).max + 1, (ROWS, COLUMNS, channels)).astype(dtype)


def bmp(image, downwards=False, palette=b""):
    height, width, channels = image.shape
    order = {1: [0], 3: [2, 1, 0], 4: [2, 1, 0, 3]}[channels]
    rows = [row[:, order].tobytes() for row in (image if downwards else image[::-1])]
    rows = b"".join(row + bytes(-len(row) % 4) for row in rows)
    offset = 54 + len(palette)
    return (struct.pack("<2sIHHI", b"BM", offset + len(rows), 0, 0, offset)
            + struct.pack("<IiiHHIIiiII", 40, width, -height if downwards else height, 1,
                          8 * channels, 0, len(rows), 0, 0, len(palette) // 4, 0) + palette + rows)


# --- PNG ------------------------------------------------------------------------------------------

COLORS = {1: 0, 2: 4, 3: 2, 4: 6}


@needs_png
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_of_any_channels(channels, dtype):
    image = pixels(channels, dtype)
    file = png_of(image, COLORS[channels])
    as_bytes = image if dtype == np.uint8 else (image >> 8).astype(np.uint8)
    as_words = image if dtype == np.uint16 else image.astype(np.uint16) * 257
    np.testing.assert_array_equal(run(tn.image.decode_png(file)), as_bytes)
    np.testing.assert_array_equal(run(tn.image.decode_png(file, dtype=tn.uint16)), as_words)
    np.testing.assert_array_equal(run(tn.image.decode_image(file)), as_bytes)
    rgba = run(tn.image.decode_png(file, 4))
    colors = as_bytes[..., :1].repeat(3, -1) if channels < 3 else as_bytes[..., :3]
    np.testing.assert_array_equal(rgba[..., :3], colors)
    np.testing.assert_array_equal(rgba[..., 3], as_bytes[..., -1] if channels in (2, 4) else 255)
    np.testing.assert_array_equal(run(tn.image.decode_png(file, 3)), colors)
    gray = run(tn.image.decode_png(file, 1))[..., 0]
    wanted = as_bytes[..., 0] if channels < 3 else colors @ [0.299, 0.587, 0.114]
    np.testing.assert_allclose(gray, wanted, atol=2 if channels > 2 else 0)


@needs_png
def test_png_of_few_bits_palettes_and_passes():
    bits = RNG.randint(0, 2, (ROWS, 16))
    file = png([np.packbits(row).tobytes() for row in bits], 16, 1, 0)
    np.testing.assert_array_equal(run(tn.image.decode_png(file))[..., 0], bits * 255)
    palette = RNG.randint(0, 256, (4, 3)).astype(np.uint8)
    index = RNG.randint(0, 4, (ROWS, 8))
    rows = [bytes(sum(v << (6 - 2 * i) for i, v in enumerate(four)) for four in row.reshape(2, 4))
            for row in index]
    table = chunk(b"PLTE", palette.tobytes())
    plain = png(rows, 8, 2, 3, table)
    np.testing.assert_array_equal(run(tn.image.decode_png(plain)), palette[index])
    clear = png(rows, 8, 2, 3, table + chunk(b"tRNS", b"\0\x80\xff"))
    alpha = np.array([0, 128, 255, 255])
    np.testing.assert_array_equal(run(tn.image.decode_png(clear)),
                                  np.dstack([palette[index], alpha[index]]))
    np.testing.assert_array_equal(run(tn.image.decode_png(clear, 3)), palette[index])
    image = pixels(3)
    passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2),
              (1, 0, 2, 1)]
    rows = [row.tobytes() for y, x, dy, dx in passes for row in image[y::dy, x::dx] if row.size]
    adam7 = png(rows, COLUMNS, 8, 2, interlaced=1, height=ROWS)
    np.testing.assert_array_equal(run(tn.image.decode_png(adam7)), image)
    np.testing.assert_array_equal(run(tn.image.decode_png(adam7, dtype=tn.uint16)),
                                  image.astype(np.uint16) * 257)


@needs_png
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_there_and_back(channels, dtype):
    image = pixels(channels, dtype)
    for level in (-1, 0, 9):
        file = run(tn.image.encode_png(image, level))
        np.testing.assert_array_equal(run(tn.image.decode_png(file, dtype=dtype)), image)
    width, height, depth, color = struct.unpack(">IIBB", file[16:26])
    assert (width, height, depth) == (COLUMNS, ROWS, 8 * image.dtype.itemsize)
    assert color == COLORS[channels]
    raw = zlib.decompress(file[file.index(b"IDAT") + 4:-16])
    assert len(raw) == ROWS * (1 + COLUMNS * channels * image.dtype.itemsize)


# --- BMP ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("downwards", [False, True])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_bmp(channels, downwards):
    image = pixels(channels)
    file = bmp(image, downwards)
    for asked in (0, channels):
        np.testing.assert_array_equal(run(tn.image.decode_bmp(file, asked)), image)
    np.testing.assert_array_equal(run(tn.image.decode_image(file)), image)
    np.testing.assert_array_equal(run(tn.image.decode_image(file, dtype=tn.uint16)),
                                  image.astype(np.uint16) * 257)
    np.testing.assert_allclose(run(tn.image.decode_image(file, dtype=tn.float32)), image / 255,
                               rtol=1e-6)


def test_bmp_with_a_palette():
    image = RNG.randint(0, 4, (3, 5, 1)).astype(np.uint8)
    gray = np.array([9, 80, 200, 255], np.uint8)
    file = bmp(image, palette=b"".join(bytes([g, g, g, 0]) for g in gray))
    np.testing.assert_array_equal(run(tn.image.decode_bmp(file)), gray[image])
    with pytest.raises(tn.errors.UnimplementedError, match="palette of colors"):
        run(tn.image.decode_bmp(bmp(image, palette=bytes(range(16)))))


# --- JPEG -----------------------------------------------------------------------------------------

@needs_jpeg
def test_jpeg_there_and_back():
    for options in ({}, {"progressive": True}, {"optimize_size": True},
                    {"chroma_downsampling": False}):
        file = run(tn.image.encode_jpeg(SMOOTH[:30], **options))
        assert file[:3] == b"\xff\xd8\xff"
        decoded = run(tn.image.decode_jpeg(file)).astype(int)
        assert abs(decoded - SMOOTH[:30]).mean() < 3
    gray = SMOOTH[:30, :, :1]
    file = run(tn.image.encode_jpeg(gray, quality=100))
    assert run(tn.image.extract_jpeg_shape(file)).tolist() == [30, 56, 1]
    assert abs(run(tn.image.decode_jpeg(file)).astype(int) - gray).max() <= 2
    assert run(tn.image.decode_jpeg(file, 3)).shape == (30, 56, 3)
    assert run(tn.image.decode_jpeg(file, ratio=4)).shape == (8, 14, 1)
    assert run(tn.image.is_jpeg(file)) and not run(tn.image.is_jpeg(b"BM"))
    window = run(tn.image.decode_and_crop_jpeg(file, [3, 5, 7, 9]))
    np.testing.assert_array_equal(window, run(tn.image.decode_jpeg(file))[3:10, 5:14])


@needs_jpeg
def test_jpeg_attributes():
    file = run(tn.image.encode_jpeg(SMOOTH, density_unit="cm", x_density=72, y_density=36,
                                    xmp_metadata="words"))
    assert b"JFIF\0\x01\x01\x02\0H\0$" in file
    assert b"http://ns.adobe.com/xap/1.0/\0words" in file
    sizes = [len(run(tn.image.encode_jpeg(SMOOTH, quality=q))) for q in (0, 30, 95, 100)]
    assert sizes == sorted(sizes) and sizes[0] < sizes[3]
    soft = run(tn.image.adjust_jpeg_quality(SMOOTH / np.float32(255), 5))
    assert soft.dtype == np.float32 and 0.005 < abs(soft - SMOOTH / 255).mean() < 0.2


@needs_jpeg
def test_jpeg_against_pil():
    image = pytest.importorskip("PIL.Image", reason="PIL is not installed")
    theirs = io.BytesIO()
    image.fromarray(SMOOTH).save(theirs, "JPEG", quality=90)
    for file in (theirs.getvalue(), run(tn.image.encode_jpeg(SMOOTH))):
        wanted = np.asarray(image.open(io.BytesIO(file)))
        got = run(tn.image.decode_jpeg(file, dct_method="INTEGER_ACCURATE"))
        assert abs(got.astype(int) - wanted).max() <= 1
        gray = np.asarray(image.open(io.BytesIO(file)).convert("L"))
        assert abs(run(tn.image.decode_jpeg(file, 1))[..., 0].astype(int) - gray).max() <= 2
    inks = io.BytesIO()
    image.fromarray(SMOOTH).convert("CMYK").save(inks, "JPEG", quality=95)
    got = run(tn.image.decode_jpeg(inks.getvalue()))
    assert got.shape == SMOOTH.shape and abs(got.astype(int) - SMOOTH).mean() < 4


@needs_jpeg
def test_a_jpeg_that_ends_early():
    image = np.repeat(np.repeat(SMOOTH, 4, 0), 4, 1)
    whole = run(tn.image.encode_jpeg(image))
    cut = whole[:len(whole) * 2 // 3]
    with pytest.raises(ValueError, match="the file ends after"):
        run(tn.image.decode_jpeg(cut))
    with pytest.raises(ValueError, match="the file ends after"):
        run(tn.image.decode_jpeg(cut, try_recover_truncated=True, acceptable_fraction=0.95))
    got = run(tn.image.decode_jpeg(cut, try_recover_truncated=True, acceptable_fraction=0.4))
    wanted = run(tn.image.decode_jpeg(whole))
    rows = np.flatnonzero(got.any((1, 2)))[-1] + 1
    assert 0.4 * len(image) <= rows < 0.9 * len(image)
    np.testing.assert_array_equal(got[:rows - 16], wanted[:rows - 16])
    assert not got[rows:].any()


# --- Bad input ------------------------------------------------------------------------------------

def huge_png(width, height, color=6):
    return png([b"\0" * 64], width, 8, color, height=height)


def huge_bmp(width, height):
    return bmp(pixels(3))[:18] + struct.pack("<ii", width, height) + bmp(pixels(3))[26:]


CASES = [
    (tn.image.decode_png, b"", "Invalid PNG data, size 0"),
    (tn.image.decode_png, b"\x89PNG\r\n\x1a\n", "the file ends early"),
    (tn.image.decode_png, huge_png(2**31 - 1, 2**31 - 1), "do not fit into its|Invalid PNG"),
    (tn.image.decode_png, huge_png(100000, 100000), "do not fit into its"),
    (tn.image.decode_png, huge_png(0, 5), "Invalid PNG"),
    (tn.image.decode_png, png_of(pixels(3), 2)[:-30], "Invalid PNG"),
    (tn.image.decode_png, png_of(pixels(3), 2).replace(b"IDAT", b"IDAt"), "Invalid PNG"),
    (tn.image.decode_png, png_of(pixels(1), 3), "Invalid PNG"),  # no palette
    (tn.image.decode_bmp, b"BM", "Incomplete bmp content"),
    (tn.image.decode_bmp, bmp(pixels(3))[:-3], "requires at least"),
    (tn.image.decode_bmp, huge_bmp(2**31 - 1, 2**31 - 1), "requires at least"),
    (tn.image.decode_bmp, huge_bmp(2**31 - 1, -2**31), "requires at least"),
    (tn.image.decode_bmp, huge_bmp(-5, 5), "rows of -5 pixels"),
    (tn.image.decode_bmp, huge_bmp(5, 0), "a BMP image of 0 rows"),
    (tn.image.decode_image, b"nothing", "Unknown image file format"),
    (tn.image.decode_image, b"", "Unknown image file format"),
    (tn.image.decode_jpeg, b"", "Invalid JPEG data, size 0"),
    (tn.image.decode_jpeg, b"\xff\xd8\xff\xe0", "Invalid JPEG"),
]


@pytest.mark.parametrize("decode, file, words", CASES, ids=range(len(CASES)))
def test_bad_files_are_refused(decode, file, words):
    kind = decode.__name__.split("_")[1]
    if kind in ("png", "jpeg") and kind not in ADAPTERS:
        pytest.skip("this build has no %s adapter" % kind)
    with pytest.raises(ValueError, match=words):
        run(decode(file))


@needs_jpeg
def test_a_jpeg_header_is_not_believed():
    file = run(tn.image.encode_jpeg(SMOOTH))
    at = file.index(b"\xff\xc0") + 5
    lying = file[:at] + struct.pack(">HH", 65500, 65500) + file[at + 4:]
    with pytest.raises(ValueError, match="do not fit into its"):
        run(tn.image.decode_jpeg(lying))
    assert run(tn.image.extract_jpeg_shape(lying)).tolist() == [65500, 65500, 3]


ATTRIBUTES = [
    (lambda: tn.image.decode_jpeg(b"", ratio=3), "ratio must be 1, 2, 4, or 8"),
    (lambda: tn.image.decode_jpeg(b"", channels=4), "channels = 4 is not supported"),
    (lambda: tn.image.decode_png(b"", channels=2), "channels = 2 is not supported"),
    (lambda: tn.image.decode_png(b"", channels=2**40), "is not supported"),
    (lambda: tn.image.decode_png([b"", b""]), "rank"),
    (lambda: tn.image.encode_png(pixels(3), 10), r"compression must be in \[-1, 9\]"),
    (lambda: tn.image.encode_png(np.zeros((2, 2, 5), np.uint8)), "must not have 5 channels"),
    (lambda: tn.image.encode_png(np.zeros((0, 2, 3), np.uint8)), "cannot be a PNG file"),
    (lambda: tn.image.encode_jpeg(pixels(4)), "must not have 4 channels"),
    (lambda: tn.image.encode_jpeg(pixels(3), "grayscale"), "must not have 3 channels"),
    (lambda: tn.image.encode_jpeg(pixels(3), quality=101), "quality must be in"),
    (lambda: tn.image.encode_jpeg(pixels(3), x_density=-1), "x_density must be in"),
    (lambda: tn.image.encode_jpeg(np.zeros((0, 2, 3), np.uint8)), "cannot be a JPEG file"),
    (lambda: tn.image.encode_jpeg(pixels(3), xmp_metadata="x" * 70000), "too long for a JPEG"),
    (lambda: tn.image.decode_bmp(bmp(pixels(3)), 4), "does not match bits per pixel"),
]


@pytest.mark.parametrize("made, words", ATTRIBUTES, ids=range(len(ATTRIBUTES)))
def test_bad_attributes_are_refused(made, words):
    with pytest.raises(ValueError, match=words):
        run(made())


def damaged(file, chance):
    """A copy with some bytes changed, or cut."""
    data = bytearray(file)
    for _ in range(chance.randint(1, 6)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data[:chance.randrange(len(data))] if chance.random() < 0.3 else data)


def test_damaged_files_neither_crash_nor_hang():
    files = [(tn.image.decode_bmp, bmp(pixels(3)))]
    if "png" in ADAPTERS:
        files.append((tn.image.decode_png, png_of(pixels(3, np.uint16), 2)))
    if "jpeg" in ADAPTERS:
        for options in ({}, {"progressive": True}):
            files.append((tn.image.decode_jpeg, run(tn.image.encode_jpeg(SMOOTH, **options))))
    chance = random.Random(1)
    contents = tn.placeholder(tn.string, [])
    outcomes = set()
    with tn.Session() as session:
        for decode, file in files:
            image = decode(contents)
            for _ in range(150):
                try:
                    session.run(image, {contents: damaged(file, chance)})
                    outcomes.add("decoded")
                except (ValueError, tn.errors.UnimplementedError):
                    outcomes.add("refused")
    assert outcomes == {"decoded", "refused"}


def test_without_the_libraries_the_package_is_named(without_adapters):
    program = ("import treenail as tn\n"
               "for file in (b'\\x89PNG', b'\\xff\\xd8\\xff'):\n"
               "    try:\n"
               "        tn.Session().run(tn.image.decode_image(file))\n"
               "    except tn.errors.UnimplementedError as error:\n"
               "        print(error)\n")
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
                          check=False, env=without_adapters)
    assert "libpng16" in done.stdout and "libjpeg" in done.stdout, done.stdout
