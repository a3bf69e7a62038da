# SPDX-License-Identifier: Apache-2.0
"""The protocol-buffer messages of event files: Summary, Event and what they hold.

Written and read by hand from a table of fields, so that no library is needed. Numbers and kinds of
fields: TensorFlow's summary.proto, histogram.proto and event.proto. A field that is not set is None
or, where it repeats, an empty list.
"""

from __future__ import annotations

import struct

from treenail._checks import having

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIRE = {"int": _VARINT, "double": _FIXED64, "float": _FIXED32}


def varint(value: int) -> bytes:
    """An integer in seven bits a byte; a negative one as 64 bits."""
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, kind: Any, value: Any) -> bytes:
    """One field. kind: "int", "float", "double", "bytes", "string" or a class of messages."""
    wire = _WIRE.get(kind, _BYTES)
    tag = varint(number << 3 | wire)
    if wire != _BYTES:
        return tag + _plain(kind, value)
    if kind == "string":
        if not isinstance(value, (str, bytes, bytearray, memoryview)):
            raise TypeError("field %d of a message must be a string, not %r" % (number, value))
        value = value.encode() if isinstance(value, str) else bytes(value)
    elif kind != "bytes":
        value = having(value, "SerializeToString", "field %d of a message" % number,
                       "a %s" % kind.__name__).SerializeToString()
    return tag + varint(len(value)) + value


def _plain(kind: str, value: Any) -> bytes:
    if kind == "int":
        return varint(int(value))
    return struct.pack("<d" if kind == "double" else "<f", value)


def _bytes_of(data: Any) -> memoryview:
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError("data must be bytes, a bytearray or a memoryview, not %r" % (data,))
    return memoryview(data).cast("B")


def _read_varint(data: memoryview, at: int) -> tuple:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise ValueError("Error parsing message: a broken number at byte %d" % at)


def _read_fields(data: memoryview) -> Iterator[tuple]:
    """(number, wire type, bits or bytes) of each field."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        wire = tag & 7
        if wire == _VARINT:
            value, at = _read_varint(data, at)
        else:
            if wire == _BYTES:
                size, at = _read_varint(data, at)
            elif wire in (_FIXED64, _FIXED32):
                size = 8 if wire == _FIXED64 else 4
            else:
                raise ValueError("Error parsing message: unknown wire type %d" % wire)
            if size > len(data) - at:
                raise ValueError("Error parsing message: it ends within a field")
            value, at = data[at:at + size], at + size
        yield tag >> 3, wire, value


def _value_of(kind: Any, wire: int, value: Any) -> Any:
    if wire != _WIRE.get(kind, _BYTES):
        raise ValueError("Error parsing message: a field of another type")
    if kind == "int":
        return value - (1 << 64) if value >> 63 else value
    if kind in ("float", "double"):
        return struct.unpack("<f" if kind == "float" else "<d", value)[0]
    if kind == "string":
        return bytes(value).decode("utf-8", "surrogateescape")
    return bytes(value) if kind == "bytes" else kind.FromString(value)


class Repeated(list):
    """The values of a repeated field. add(tag=..., ...) appends a message made of these."""

    def __init__(self, kind: Any, values: Any = ()) -> None:
        super().__init__(values)
        self._kind = kind

    def add(self, **fields: Any) -> Any:
        """Appends a new message with these fields and returns it."""
        self.append(self._kind(**fields))
        return self[-1]


class Message:
    """A message with its fields as attributes."""

    # name -> (number, kind) or (number, kind, "repeated")
    _FIELDS: dict = {}

    def __init__(self, **fields: Any) -> None:
        for name, (_, kind, *repeated) in self._FIELDS.items():
            given = fields.pop(name, None)
            setattr(self, name, Repeated(kind, given or ()) if repeated else given)
        if fields:
            raise ValueError("%s has no field %s" % (type(self).__name__, ", ".join(fields)))

    def SerializeToString(self) -> bytes:  # noqa: N802 (the name protocol buffers give it)
        """The message as bytes."""
        out = []
        for name, (number, kind, *repeated) in self._FIELDS.items():
            value = getattr(self, name)
            if repeated and value and kind in _WIRE:
                packed = b"".join(_plain(kind, v) for v in value)
                out.append(field(number, "bytes", packed))
            elif repeated:
                out += [field(number, kind, v) for v in value]
            elif value is not None:
                out.append(field(number, kind, value))
        return b"".join(out)

    @classmethod
    def FromString(cls, data: Any) -> Any:  # noqa: N802
        """A message from its bytes; fields it does not know are left out. Raises ValueError for
        what is no such message."""
        message, known = cls(), {spec[0]: (name, spec) for name, spec in cls._FIELDS.items()}
        for number, wire, value in _read_fields(_bytes_of(data)):
            if number not in known:
                continue
            name, (_, kind, *repeated) = known[number]
            if repeated and kind in _WIRE and wire == _BYTES:
                getattr(message, name).extend(_unpacked(kind, value))
            elif repeated:
                getattr(message, name).append(_value_of(kind, wire, value))
            else:
                setattr(message, name, _value_of(kind, wire, value))
        return message

    def ParseFromString(self, data: Any) -> int:  # noqa: N802
        """Becomes the message of these bytes; returns their number."""
        self.__dict__ = type(self).FromString(data).__dict__
        return len(data)

    def HasField(self, name: str) -> bool:  # noqa: N802
        """Whether the field is set. Raises ValueError for a name of none."""
        if name not in self._FIELDS:
            raise ValueError("%s has no field %r, but %s" % (type(self).__name__, name,
                                                             ", ".join(self._FIELDS)))
        return getattr(self, name) is not None

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        given = ["%s=%r" % item for item in self.__dict__.items() if item[1] not in (None, [])]
        return "%s(%s)" % (type(self).__name__, ", ".join(given))


def _unpacked(kind: str, data: memoryview) -> Iterator[Any]:
    if kind != "int":
        size = 8 if kind == "double" else 4
        if len(data) % size:
            raise ValueError("Error parsing message: half a number")
        yield from struct.unpack("<%d%s" % (len(data) // size, kind[0]), data)
        return
    at = 0
    while at < len(data):
        value, at = _read_varint(data, at)
        yield _value_of(kind, _VARINT, value)


class HistogramProto(Message):
    """Moments and buckets: bucket[i] values lie below bucket_limit[i] and not below the limit
    before."""

    _FIELDS = {"min": (1, "double"), "max": (2, "double"), "num": (3, "double"),
               "sum": (4, "double"), "sum_squares": (5, "double"),
               "bucket_limit": (6, "double", "repeated"), "bucket": (7, "double", "repeated")}


class SummaryMetadata(Message):
    """What a summary shows and which plugin of TensorBoard shows it."""

    class PluginData(Message):
        """The plugin's name and bytes of its own."""

        _FIELDS = {"plugin_name": (1, "string"), "content": (2, "bytes")}

    _FIELDS = {"plugin_data": (1, PluginData), "display_name": (2, "string"),
               "summary_description": (3, "string")}


class Summary(Message):
    """Values with tags. `summary.value.add(tag="loss", simple_value=0.5)` adds one."""

    class Image(Message):
        """An image as the bytes of a PNG, JPEG or GIF file. colorspace: number of channels."""

        _FIELDS = {"height": (1, "int"), "width": (2, "int"), "colorspace": (3, "int"),
                   "encoded_image_string": (4, "bytes")}

    class Audio(Message):
        """A sound as the bytes of a file; sample_rate in Hz."""

        _FIELDS = {"sample_rate": (1, "float"), "num_channels": (2, "int"),
                   "length_frames": (3, "int"), "encoded_audio_string": (4, "bytes"),
                   "content_type": (5, "string")}

    class Value(Message):
        """One value: a tag and one of simple_value, image, histo, audio and tensor (bytes of a
        TensorProto)."""

        _FIELDS: dict = {}

    _FIELDS = {"value": (1, Value, "repeated")}


Summary.Value._FIELDS = {
    "tag": (1, "string"), "simple_value": (2, "float"), "image": (4, Summary.Image),
    "histo": (5, HistogramProto), "audio": (6, Summary.Audio), "node_name": (7, "string"),
    "tensor": (8, "bytes"), "metadata": (9, SummaryMetadata)}


class SessionLog(Message):
    """That a session began, ended or saved a checkpoint."""

    STATUS_UNSPECIFIED, START, STOP, CHECKPOINT = 0, 1, 2, 3
    _FIELDS = {"status": (1, "int"), "checkpoint_path": (2, "string"), "msg": (3, "string")}


class TaggedRunMetadata(Message):
    """The bytes of a RunMetadata under a name."""

    _FIELDS = {"tag": (1, "string"), "run_metadata": (2, "bytes")}


class _Memory(Message):
    _FIELDS = {"allocator_name": (1, "string"), "peak_bytes": (3, "int")}


class _NodeStats(Message):
    _FIELDS = {"node_name": (1, "string"), "all_start_micros": (2, "int"),
               "op_start_rel_micros": (3, "int"), "op_end_rel_micros": (4, "int"),
               "all_end_rel_micros": (5, "int"), "memory": (6, _Memory, "repeated"),
               "timeline_label": (8, "string")}


class _DeviceStats(Message):
    _FIELDS = {"device": (1, "string"), "node_stats": (2, _NodeStats, "repeated")}


class _StepStats(Message):
    _FIELDS = {"dev_stats": (1, _DeviceStats, "repeated")}


def _device_stats(nodes: Any) -> list:
    devices: dict = {}
    for n in nodes:
        start, end = n.start_ns // 1000, max(n.start_ns // 1000 + 1, n.end_ns // 1000)
        label = "%s = %s(%s)" % (n.name, n.op, ", ".join(name for name, _ in n.fused))
        memory = _Memory(allocator_name="cpu", peak_bytes=n.bytes_allocated)
        devices.setdefault(n.device, []).append(_NodeStats(
            node_name=n.name, all_start_micros=start, op_start_rel_micros=0,
            op_end_rel_micros=end - start, all_end_rel_micros=end - start, timeline_label=label,
            memory=[memory]))
    return [_DeviceStats(device=device, node_stats=stats) for device, stats in devices.items()]


def run_metadata_message(metadata: Any) -> bytes:
    """TensorFlow's RunMetadata (config.proto, step_stats.proto) of one of ours: its operations
    where they were timed, else the run as a whole with the time estimated for one thread."""
    if metadata.nodes:
        return field(1, _StepStats, _StepStats(dev_stats=_device_stats(metadata.nodes)))
    micros = max(1, round(metadata.cost_ns / 1000))
    label = "estimate for one thread: %d kernels, %d bytes at peak" % (
        metadata.nodes_executed, metadata.peak_bytes)
    run = _NodeStats(node_name="Session.run", all_start_micros=0, op_start_rel_micros=0,
                     op_end_rel_micros=micros, all_end_rel_micros=micros, timeline_label=label,
                     memory=[_Memory(allocator_name="cpu", peak_bytes=metadata.peak_bytes)])
    step = _StepStats(dev_stats=[_DeviceStats(device="/device:CPU:0", node_stats=[run])])
    return field(1, _StepStats, step)


class Event(Message):
    """A record of an event file: a time in seconds since 1970, a step, and one thing that
    happened. graph_def and meta_graph_def are bytes."""

    _FIELDS = {"wall_time": (1, "double"), "step": (2, "int"), "file_version": (3, "string"),
               "graph_def": (4, "bytes"), "summary": (5, Summary),
               "session_log": (7, SessionLog), "tagged_run_metadata": (8, TaggedRunMetadata),
               "meta_graph_def": (9, "bytes")}
