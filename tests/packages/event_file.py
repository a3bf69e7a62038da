# SPDX-License-Identifier: Apache-2.0
"""A second reader of event files: TFRecord framing, CRC-32C bit by bit, the wire format of protocol
buffers. It shares nothing with what wrote the files, and does not follow the byte order of the
machine."""

import struct


def crc32c(data):
    """Castagnoli's checksum."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def checked(masked, data):
    """The four bytes `masked` are TFRecord's sum of the data."""
    crc = crc32c(data)
    assert struct.unpack("<I", masked)[0] == (
        (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF), "the sum of %r is wrong" % data


def records(data):
    """The records of a TFRecord file, each after its length, little-endian, with sums of both."""
    found, at = [], 0
    while at < len(data):
        head = data[at:at + 12]
        checked(head[8:], head[:8])
        end = at + 12 + struct.unpack("<Q", head[:8])[0]
        assert end + 4 <= len(data), "the file ends in a record"
        checked(data[end:end + 4], data[at + 12:end])
        found.append(data[at + 12:end])
        at = end + 4
    return found


def number(data, at):
    """(the varint at that place, the place behind it)."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def message(data):
    """{field: [values]}: numbers, 8 or 4 bytes, or bytes."""
    fields, at = {}, 0
    while at < len(data):
        tag, at = number(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = number(data, at)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if size is None:
                assert kind == 2
                size, at = number(data, at)
            assert at + size <= len(data)
            value, at = data[at:at + size], at + size
        fields.setdefault(tag >> 3, []).append(value)
    return fields
