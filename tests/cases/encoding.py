# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/encoding.cc. Oracles: Python's base64, NumPy's frombuffer, TensorProto written
out by wire.py."""

import base64
import struct

import numpy as np

from harness import ALL_NUMBERS, op
from texts import each, text
from wire import field, shape_proto, tensor_proto


# --- Base64

BYTES = text([[b"", b"f", b"fo", b"foo"], [b"foob", b"fooba", b"foobar", bytes(range(256))]])


def encode(data, pad=False):
    out = base64.urlsafe_b64encode(data)
    return out if pad else out.rstrip(b"=")


def decode(data):
    return base64.urlsafe_b64decode(data + b"=" * (-len(data) % 4))


ENCODED = each(encode, BYTES)
op("EncodeBase64", lambda x, pad=False: each(encode, x, pad=pad)).case(BYTES).case(BYTES, pad=True).case(text(b"\xff\xfe\xfb")).case(
    np.zeros((0, 2), object)
).case(text([b"a" * 10001] * 3))
op("DecodeBase64", lambda x: each(decode, x)).case(ENCODED).case(each(encode, BYTES, pad=True)).case(
    text(b"_-A=")
).case(np.zeros((2, 0), object)).error(
    "InvalidArgument", r'element 1, "a\+b/": character 1 is not of the web-safe', text([b"ab", b"a+b/"])
).error("InvalidArgument", "its length cannot be", text(b"abcde")).error(
    "InvalidArgument", "character 0 is not", text(b"====")
).error("InvalidArgument", r'"Zg=": character 2', text(b"Zg=")).error(
    "InvalidArgument", "character 2", text(b"Zg\n=")
).error("InvalidArgument", "character 1", text(b"A===")).error(
    "InvalidArgument", r"\\x00", text(b"AA\0A"))

# --- DecodeRaw


def decode_raw(data, out_type, little_endian=True):
    dtype = np.dtype(out_type).newbyteorder("<" if little_endian else ">")
    if out_type == "bool":
        dtype = np.dtype(np.uint8)
    rows = [np.frombuffer(x, dtype) for x in data.ravel()]
    width = len(rows[0]) if rows else 0
    out = np.array(rows, dtype).reshape(data.shape + (width,))
    return (out != 0) if out_type == "bool" else out.astype(np.dtype(out_type))


RAW = text([[b"\x00\x01\x02\x03\x04\x05\x06\x07" * 4], [bytes(range(100, 132))]])
raw = op("DecodeRaw", decode_raw, dtypes=("string",), static_shape=False)
for name in [n for n in ALL_NUMBERS if n != "bfloat16"] + ["bool"]:
    raw.case(RAW, out_type=name).case(RAW, out_type=name, little_endian=False)
raw.case(text(b"\x00\x01\x80\xff"), out_type="bool").case(text([b"", b""]), out_type="int64").case(
    np.zeros((0, 3), object), out_type="uint8"
).case(text(b"abcde"), out_type="uint8").error(
    "InvalidArgument", "element 2 has size 5 != 6", text([b"123456", b"123456", b"12345"]), out_type="uint8"
).error(
    "InvalidArgument", "length 3 that is not a multiple of 2, the size of int16", text(b"abc"),
    out_type="int16"
).error("InvalidArgument", "rank", np.full((1,) * 32, b"", object), out_type="uint8").error(
    "InvalidArgument", "out_type", text(b""), out_type="string")


# --- Serialized tensors

def serialize(x, T):
    return text(tensor_proto(x.astype(object if T == "string" else T)))


op("SerializeTensor", serialize, dtypes=tuple(n for n in ALL_NUMBERS if n != "bfloat16")).case(
    (2, 3), T="DTYPE"
).case((), T="DTYPE").case((0, 4), T="DTYPE").case((1, 1, 200), T="DTYPE").case(
    text([b"a", b"\0\xff", b"", b"x" * 300]), T="string", options={"dtypes": ("string",)}
).case(np.array([True, False]), T="bool", options={"dtypes": ("bool",)})


def parsed(wanted):
    def oracle(serialized, out_type):
        return wanted[serialized.item()]

    return oracle


PARSED = {}
parse = op("ParseTensor", parsed(PARSED), dtypes=("string",), static_shape=False)


def good(message, value):
    PARSED[message] = np.asarray(value)
    name = PARSED[message].dtype.name
    parse.case(text(message), out_type="string" if name == "object" else name)


def proto(dtype, shape, *fields):
    return field(1, dtype) + field(2, shape_proto(shape)) + b"".join(fields)


for value in (np.float32([[1, -2.5]]), np.arange(7), np.array(True), np.zeros((0, 3), np.uint16),
              np.array([1 + 2j]), np.complex64([3j]), np.float16([1, 2]), np.uint64([2**64 - 1]),
              np.int8([-128]), text([[b"a", b"\0"], [b"", b"long" * 40]]), text(b"scalar"),
              np.zeros((3, 0), object)):
    good(tensor_proto(value), value)
# Lists of values, packed and not; the last one is repeated; none are zeros.
good(proto(1, (3,), field(5, struct.pack("<2f", 1, 2))), np.float32([1, 2, 2]))
good(proto(1, (3,), field(5, np.float32(7)), field(5, np.float32(8))), np.float32([7, 8, 8]))
good(proto(2, (2, 2), field(6, 1.5)), np.full((2, 2), 1.5))
good(proto(3, (3,), field(7, b"\x05" + b"\xff" * 9 + b"\x01")), np.int32([5, -1, -1]))
good(proto(6, (), field(7, (1 << 64) - 3)), np.int8(-3))
good(proto(9, (2,), field(10, 300)), np.int64([300, 300]))
good(proto(10, (2,), field(11, 1), field(11, 0)), np.array([True, False]))
good(proto(19, (2,), field(13, 0x3C00)), np.float16([1, 1]))
good(proto(8, (2,), field(9, struct.pack("<2f", 1, -1))), np.complex64([1 - 1j, 1 - 1j]))
good(proto(18, (1,), field(12, struct.pack("<2d", 0, 2))), np.array([2j]))
good(proto(22, (1,), field(16, 2**32 - 1)), np.uint32([2**32 - 1]))
good(proto(23, (1,), field(17, 2**64 - 1)), np.uint64([2**64 - 1]))
good(proto(7, (3,), field(8, b"x"), field(8, b"y")), text([b"x", b"y", b"y"]))
good(proto(7, (2,)), text([b"", b""]))
good(proto(9, (2, 3)), np.zeros((2, 3), np.int64))
good(proto(10, (2,), field(4, b"\x02\x00")), np.array([True, False]))
# Unknown fields are skipped, order does not matter.
good(field(99, b"?") + field(4, b"\x01\x02") + field(2, shape_proto((2,))) + field(1, 4),
     np.uint8([1, 2]))


def bad(message, pattern, code="InvalidArgument", out_type="float32"):
    parse.error(code, pattern, text(message), out_type=out_type)


bad(tensor_proto(np.float64([1])), r"parsed tensor \(float64\) and out_type \(float32\)")
bad(b"", "a TensorProto of .* cannot be read")
bad(b"\x08", "ends within a number, at byte 1 of 1")
bad(field(1, 3)[:-1] + b"\xff" * 10, "more than ten bytes")
bad(proto(1, (2,), b"\x22\x7fabc"), "a length goes beyond its end")
bad(proto(200, (2,)), "unknown dtype 200")
bad(proto(2**40 + 1, (2,)), "unknown dtype")
bad(proto(20, ()), "a TensorProto of resource cannot be read")
bad(proto(1, (2,), field(4, b"abc")), r"float32\[2\] has 3 bytes of content")
bad(proto(1, (2**62,), field(4, b"abcd")), "has 4 bytes of content")
bad(proto(1, (1,), field(5, struct.pack("<2f", 1, 2))), r"shape \[1\] has 2 values")
bad(proto(1, (2**61,), field(5, np.float32(1))), "repeated up to 1 GiB", "ResourceExhausted")
bad(proto(7, (2**40,)), "repeated up to 1 GiB", "ResourceExhausted", "string")
bad(proto(1, (2**63 - 1, 2**63 - 1)), "product|overflow|2\\^63")
bad(field(1, 1) + field(2, field(2, field(1, 2**64 - 5))), "negative|extent")
bad(proto(1, (1,) * 33), "rank")
bad(field(1, 1) + field(2, field(3, 1)), "the shape of a TensorProto is unknown")
bad(proto(1, (2,), field(5, b"abcde")), "ends within a number")
bad(proto(8, (2,), field(9, np.float32(1))), "half a value", out_type="complex64")
parse.error("InvalidArgument", "rank", text([b"a"]), out_type="float32")
