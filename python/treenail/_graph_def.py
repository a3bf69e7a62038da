# SPDX-License-Identifier: Apache-2.0
"""A graph as the bytes of TensorFlow's GraphDef, for TensorBoard.

It is to be looked at, not to be run: ops have Treenail's names and attributes. Field numbers:
TensorFlow's graph.proto, node_def.proto, attr_value.proto and tensor_shape.proto.
"""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._framework import device
from treenail._messages import field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# TensorBoard shows no large constants; they would only make the file large.
_MOST_CONSTANT_BYTES = 64 * 1024
_PRODUCER = 24  # the version of GraphDef that this is written like


def _shape(shape: Any) -> bytes:
    if shape is None or shape.ndims is None:
        return field(3, "int", 1)
    sizes = [-1 if size is None else size for size in shape.as_list()]
    return b"".join(field(2, "bytes", field(1, "int", size)) for size in sizes)


def _tensor(array: Any) -> bytes:
    if array.nbytes > _MOST_CONSTANT_BYTES:
        return b""
    with device(None), device("/cpu:0"):  # here, whatever task is asked for around
        return _core.execute("SerializeTensor", [array])[0].item()


# The kinds of attributes: number of the field in AttrValue and in its list, and how one is written.
_KINDS: dict = {
    "string": (2, "bytes", lambda v: v.encode() if isinstance(v, str) else v),
    "int": (3, "int", int), "float": (4, "float", float), "bool": (5, "int", int),
    "type": (6, "int", lambda v: _core.as_dtype(v).as_datatype_enum),
    "shape": (7, "bytes", _shape), "tensor": (8, "bytes", _tensor),
}
_attr_kinds: dict = {}


def _kinds_of(op_type: str) -> dict:
    if not _attr_kinds:
        for op in _core.describe_ops():
            _attr_kinds[op["name"]] = {attr["name"]: attr["kind"] for attr in op["attrs"]}
    return _attr_kinds.get(op_type, {})


def _attr_value(kind: str, value: Any) -> bytes:
    element = kind[5:-1] if kind.startswith("list(") else kind
    if element not in _KINDS:
        return b""
    number, wire, convert = _KINDS[element]
    if kind == "tensor":
        content = _tensor(value)
        return field(number, wire, content) if content else b""
    if element == kind:
        return field(number, wire, convert(value))
    return field(1, "bytes", b"".join(field(number, wire, convert(v)) for v in value))


def _attr(name: str, value: bytes) -> bytes:
    return field(5, "bytes", field(1, "string", name) + field(2, "bytes", value))


def _input_name(tensor: Any) -> str:
    name, _, index = tensor.name.rpartition(":")
    return name if index == "0" else tensor.name


def _node(op: Any) -> bytes:
    out = [field(1, "string", op.name), field(2, "string", op.type)]
    out += [field(3, "string", _input_name(tensor)) for tensor in op.inputs]
    out += [field(3, "string", "^" + before.name) for before in op.control_inputs]
    if op.device:
        out.append(field(4, "string", op.device))
    for name, kind in _kinds_of(op.type).items():
        value = _attr_value(kind, op.get_attr(name))
        if value:
            out.append(_attr(name, value))
    beside = [group for group in op.colocation_groups() if group[5:].decode() != op.name]
    if beside:
        out.append(_attr("_class", _attr_value("list(string)", beside)))
    if op.outputs:
        shapes = b"".join(field(7, "bytes", _shape(t.shape)) for t in op.outputs)
        out.append(_attr("_output_shapes", field(1, "bytes", shapes)))
    return b"".join(out)


def graph_def(graph: Any) -> bytes:
    """The graph's operations, with attributes and the shapes of their outputs. Constants of more
    than 64 KiB have no value."""
    nodes = [field(1, "bytes", _node(op)) for op in graph.get_operations()]
    return b"".join(nodes) + field(4, "bytes", field(1, "int", _PRODUCER))
