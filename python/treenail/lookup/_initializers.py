# SPDX-License-Identifier: Apache-2.0
"""What static tables are filled with: keys and values in tensors, or the lines of a text file."""

from __future__ import annotations

import os

from treenail import _treenail as _core
from treenail._checks import having
from treenail._convert import convert_to_tensor, scope_of
from treenail._framework import GraphKeys, add_to_collection, executing_eagerly, init_scope
from treenail._ops import ops
from treenail._treenail import DType, Operation, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class TableInitializerBase:
    """What a static table is filled with.

    Programs make a KeyValueTensorInitializer or a TextFileInitializer; a class of one's own has
    initialize(table). key_dtype, value_dtype: of the keys and values that it gives.
    """

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self._key_dtype, self._value_dtype = _core.as_dtype(key_dtype), _core.as_dtype(value_dtype)

    @property
    def key_dtype(self) -> DType:
        """The dtype of the keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        """The dtype of the values."""
        return self._value_dtype

    @property
    def _shared_name(self) -> str:
        """What a table that is filled so is called in its session; "" for the operation's name."""
        return ""

    def initialize(self, table: Any) -> Operation | None:
        """The operation that fills `table`, a StaticHashTable; with immediate execution it is
        filled at once. Raises NotImplementedError: subclasses do it."""
        raise NotImplementedError("%s has no initialize(table)" % type(self).__name__)


def _noted(initialize: Operation | None) -> Operation | None:
    if not executing_eagerly():
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, initialize)
    return initialize


class KeyValueTensorInitializer(TableInitializerBase):
    """Fills a table with keys and values that are given: values[i] is that of keys[i].

    keys: [n], values: [n]; lists, arrays or tensors. key_dtype, value_dtype: theirs, None for what
    they are: a list of ints is int32.

    The run raises FailedPreconditionError where one key has two values.
    """

    def __init__(self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None,
                 name: str | None = None) -> None:
        with init_scope():
            self._keys = convert_to_tensor(keys, key_dtype, name="keys")
            self._values = convert_to_tensor(values, value_dtype, name="values")
        self._name = "key_value_init" if name is None else name
        super().__init__(self._keys.dtype, self._values.dtype)

    def initialize(self, table: Any) -> Operation | None:
        """The operation that fills `table`, also put into GraphKeys.TABLE_INITIALIZERS."""
        having(table, "check_dtypes", "table", "a StaticHashTable").check_dtypes(
            self._key_dtype, self._value_dtype)
        return _noted(ops.InitializeTableV2(table.resource_handle, self._keys, self._values,
                                            name=self._name))


class TextFileIndex:
    """What may stand for a column of a text file: WHOLE_LINE, the line, or LINE_NUMBER, its number,
    from 0."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


def _check_index(what: str, index: int, dtype: DType) -> None:
    """`what`: key or value."""
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        raise TypeError("%s_index must be an int, not %r" % (what, index))
    if index < -2:
        raise ValueError("Invalid %s index %s." % (what, index))
    if index == TextFileIndex.LINE_NUMBER and dtype != _core.int64:
        raise ValueError("Signature mismatch. %ss must be dtype %s, got %s."
                         % (what.capitalize(), _core.int64.name, dtype.name))
    if index == TextFileIndex.WHOLE_LINE and not dtype.is_integer and dtype != _core.string:
        raise ValueError("Signature mismatch. %ss must be integer or string, got %s."
                         % (what.capitalize(), dtype.name))


def _path(filename: Any) -> Any:
    if isinstance(filename, Tensor) or hasattr(filename, "__treenail_tensor__"):
        return convert_to_tensor(filename, _core.string)
    path = os.fspath(filename)
    if not path:
        raise ValueError("Filename required for TextFileInitializer")
    return path.decode(errors="surrogateescape") if isinstance(path, bytes) else path


class TextFileInitializer(TableInitializerBase):
    """Fills a table from a text file, one key and one value from each line.

    filename: str, os.PathLike, or a string scalar; at a server, a file of its machine.
    key_dtype, value_dtype: int32, int64, string; values also float32 and float64. key_index,
    value_index: which column, from 0, or TextFileIndex.LINE_NUMBER (int64) or WHOLE_LINE.
    vocab_size: so many lines are read and must be there; None: all. delimiter: one character,
    between columns.

    Tables of one session that are filled alike, from a file of one name, are one table.

    Raises ValueError for an index that does not go with its dtype. The run raises NotFoundError
    without the file, and InvalidArgumentError for an empty line, one that has no such column, or
    whose number is none.
    """

    def __init__(self, filename: Any, key_dtype: Any, key_index: int, value_dtype: Any,
                 value_index: int, vocab_size: int | None = None, delimiter: str = "\t",
                 name: str | None = None) -> None:
        super().__init__(key_dtype, value_dtype)
        self._filename = _path(filename)
        _check_index("key", key_index, self._key_dtype)
        _check_index("value", value_index, self._value_dtype)
        if vocab_size is not None and not vocab_size > 0:
            raise ValueError("Invalid vocab_size %r." % (vocab_size,))
        self._key_index, self._value_index = key_index, value_index
        self._vocab_size, self._delimiter = -1 if vocab_size is None else vocab_size, delimiter
        self._name = "text_file_init" if name is None else name

    @property
    def _shared_name(self) -> str:
        name = self._filename.op.name if isinstance(self._filename, Tensor) else self._filename
        return "_".join(["hash_table", name, str(self._vocab_size), self._key_dtype.name,
                         str(self._key_index), self._value_dtype.name, str(self._value_index),
                         self._delimiter])

    def initialize(self, table: Any) -> Operation | None:
        """The operation that fills `table`, also put into GraphKeys.TABLE_INITIALIZERS; the file's
        name goes into GraphKeys.ASSET_FILEPATHS."""
        having(table, "check_dtypes", "table", "a StaticHashTable").check_dtypes(
            self._key_dtype, self._value_dtype)
        with scope_of(self._name, "text_file_init"):
            filename = convert_to_tensor(self._filename, _core.string, name="asset_filepath")
            made = ops.InitializeTableFromTextFileV2(
                table.resource_handle, filename, key_index=self._key_index,
                value_index=self._value_index, vocab_size=self._vocab_size,
                delimiter=self._delimiter, name="init")
        if not executing_eagerly():
            add_to_collection(GraphKeys.ASSET_FILEPATHS, filename)
        return _noted(made)


def words_to_numbers(filename: Any, key_dtype: Any, vocab_size: int | None, key_index: int,
                     value_index: int, delimiter: str) -> TextFileInitializer:
    """Lines as keys, of which integers are read as int64, and their numbers as values."""
    dtype = _core.as_dtype(key_dtype)
    return TextFileInitializer(filename, _core.int64 if dtype.is_integer else dtype, key_index,
                               _core.int64, value_index, vocab_size, delimiter)
