# SPDX-License-Identifier: Apache-2.0
"""Tensors of an ONNX file as NumPy arrays: elements in the message, or in a file beside the model.

A file beside the model is opened only below the model's own folder, symbolic links resolved: a
model cannot make the importer read anything else. The number of elements that a tensor claims is
held against the bytes that are there before an array is made.
"""

from __future__ import annotations

import os
import stat

from treenail.onnx import _dtypes
from treenail.onnx._errors import invalid, quoted, unimplemented
from treenail.onnx._wire import Message, numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EXTERNAL = 1
MAX_RANK = 32  # of the library's tensors
# Which field holds the elements of a type where raw_data does not.
_FIELDS = {"float32": "float_data", "complex64": "float_data", "float64": "double_data",
           "complex128": "double_data", "int64": "int64_data", "uint32": "uint64_data",
           "uint64": "uint64_data"}


class Folder:
    """Where external data may lie: a folder, or None where the model came without one."""

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else os.path.realpath(path)

    def read(self, entries: dict, size: int, where: str) -> bytes:
        """`size` bytes of the file that `entries` name. Raises InvalidArgumentError."""
        location = entries.get("location", "")
        if self._path is None:
            raise invalid("%s: its data lie in the file %s, but the model was not loaded from a "
                          "path; give directory=" % (where, quoted(location)))
        inside = bool(location) and "\0" not in location and not os.path.isabs(location)
        path = os.path.realpath(os.path.join(self._path, location)) if inside else ""
        if not inside or os.path.commonpath([path, self._path]) != self._path:
            raise invalid("%s: external data must lie below the model's folder, %s does not"
                          % (where, quoted(location)))
        offset = _number(entries, "offset", 0, where)
        length = _number(entries, "length", size, where)
        if length != size:
            raise invalid("%s: external data of %d bytes were given, its shape and type need %d"
                          % (where, length, size))
        return _read(path, offset, size, where, location)


def _number(entries: dict, key: str, default: int, where: str) -> int:
    text = entries.get(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise invalid("%s: %s of external data must be a number of bytes, not %s"
                      % (where, key, quoted(text)))
    return int(text)


def _read(path: str, offset: int, size: int, where: str, location: str) -> bytes:
    try:
        # A pipe would be waited for: what is no regular file is refused, and opened without
        # waiting.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise invalid("%s: external data %s are no regular file"
                              % (where, quoted(location)))
            if offset + size > status.st_size:
                raise invalid("%s: bytes %d to %d of external data %s were asked for, it has %d"
                              % (where, offset, offset + size, quoted(location), status.st_size))
            stream.seek(offset)
            data = stream.read(size)
    except OSError as error:
        raise invalid("%s: external data %s cannot be read: %s"
                      % (where, quoted(location), error.strerror)) from None
    if len(data) != size:
        raise invalid("%s: external data %s ended early" % (where, quoted(location)))
    return data


def shape_of(dims: list, where: str) -> tuple:
    """The extents of a tensor in a file, and their product. Raises InvalidArgumentError."""
    import numpy
    shape, count = [], 1
    for extent in numbers(dims, numpy.int64).tolist():
        if extent < 0:
            raise invalid("%s: extent %d is negative" % (where, extent))
        shape.append(extent)
        count *= extent
    if len(shape) > MAX_RANK:
        raise unimplemented("%s: %d axes; %d are the most that is understood"
                            % (where, len(shape), MAX_RANK))
    return tuple(shape), count


def to_array(tensor: Message, folder: Folder) -> tuple:
    """(array, DType) of a TensorProto. bfloat16 comes as float32 that bfloat16 holds exactly,
    strings as an object array of bytes. Raises InvalidArgumentError."""
    import numpy
    where = "tensor %s" % quoted(tensor.name or "")
    dtype = _dtypes.dtype_of(tensor.data_type, where)
    shape, count = shape_of(tensor.dims, where)
    if tensor.segment is not None:
        raise invalid("%s: tensors in segments are not understood" % where)
    if dtype.name == "string":
        _check_count(len(tensor.string_data), count, where)
        array = numpy.empty(count, object)
        array[:] = [bytes(s) for s in tensor.string_data]
        return _reshaped(array, shape, where), dtype
    stored = numpy.dtype("<u2") if dtype.name == "bfloat16" else (
        numpy.dtype(dtype.as_numpy_dtype).newbyteorder("<"))
    if tensor.data_location == EXTERNAL or tensor.raw_data is not None:
        size = count * stored.itemsize
        if tensor.data_location == EXTERNAL:
            entries = {e.key or "": e.value or "" for e in tensor.external_data}
            data = folder.read(entries, size, where)
        else:
            data = tensor.raw_data
        if len(data) != size:
            raise invalid("%s: %d bytes were given, shape %s of %s needs %d"
                          % (where, len(data), list(shape), dtype.name, size))
        array = numpy.frombuffer(data, stored)
    else:
        array = _typed(tensor, dtype, stored, count, where)
    if dtype.name == "bfloat16":
        array = (array.astype(numpy.uint32) << 16).view(numpy.float32)
    return _reshaped(array, shape, where), dtype


def _typed(tensor: Message, dtype: Any, stored: Any, count: int, where: str) -> Any:
    import numpy
    items = getattr(tensor, _FIELDS.get(dtype.name, "int32_data"))
    if dtype.name in ("complex64", "complex128"):
        part = numpy.float32 if dtype.name == "complex64" else numpy.float64
        array = numbers(items, part)
        _check_count(len(array), 2 * count, where)
        return array.view(stored)
    if dtype.name in ("float32", "float64"):
        array = numbers(items, stored)
    elif dtype.name in ("float16", "bfloat16"):
        array = numbers(items, numpy.int64).astype(numpy.uint16).view(stored)
    else:
        array = numbers(items, numpy.int64).astype(stored)
    _check_count(len(array), count, where)
    return array


def _check_count(given: int, needed: int, where: str) -> None:
    if given != needed:
        raise invalid("%s: %d elements were given, its shape needs %d" % (where, given, needed))


def _reshaped(array: Any, shape: tuple, where: str) -> Any:
    """Empty arrays may have extents whose product no machine can count."""
    try:
        return array.reshape(shape)
    except ValueError as error:
        raise invalid("%s: shape %s: %s" % (where, list(shape), error)) from None
