# SPDX-License-Identifier: Apache-2.0
"""Lookup tables: values by key.

In the graph a table is a handle; what it holds belongs to the session, or to those that share its
state: at a server, all sessions of one identity.
"""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._array import where
from treenail._checks import having
from treenail._control import group, no_op
from treenail._convert import convert_to_tensor, scope_of
from treenail._framework import GraphKeys, executing_eagerly, get_collection, init_scope
from treenail._ops import ops
from treenail._sparse import SparseTensor
from treenail._treenail import DType, Operation, Tensor
from treenail.lookup._initializers import TableInitializerBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """One operation that fills all static tables that exist now. Where tables are filled already
    with what they are to hold, it does nothing."""
    found = get_collection(GraphKeys.TABLE_INITIALIZERS)
    return group(*found, name=name) if found else no_op(name=name)


initialize_all_tables = tables_initializer


class LookupInterface:
    """What tables have in common: they give a value for each key.

    Programs make a StaticHashTable, a StaticVocabularyTable, or an experimental.MutableHashTable.
    key_dtype, value_dtype: of the keys and the values.
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
    def name(self) -> str:
        """The table's name. Raises NotImplementedError: subclasses do it."""
        raise NotImplementedError("%s has no name" % type(self).__name__)

    def size(self, name: str | None = None) -> Tensor:
        """How many keys there are, an int64 scalar. Raises NotImplementedError: subclasses do
        it."""
        raise NotImplementedError("%s has no size(name)" % type(self).__name__)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of `keys`, in their shape; of a SparseTensor a SparseTensor. Raises
        NotImplementedError: subclasses do it."""
        raise NotImplementedError("%s has no lookup(keys, name)" % type(self).__name__)

    def _converted_keys(self, keys: Any) -> Any:
        """As a Tensor or SparseTensor of the table's dtype."""
        if not isinstance(keys, (Tensor, SparseTensor)):
            keys = convert_to_tensor(keys, None if hasattr(keys, "__treenail_tensor__")
                                     else self._key_dtype)
        if keys.dtype != self._key_dtype:
            raise TypeError("Signature mismatch. Keys must be dtype %s, got %s."
                            % (self._key_dtype.name, keys.dtype.name))
        return keys

    def check_dtypes(self, key_dtype: Any, value_dtype: Any) -> None:
        """Raises TypeError unless these are the table's dtypes."""
        for what, given, wanted in (("key", key_dtype, self._key_dtype),
                                    ("value", value_dtype, self._value_dtype)):
            if _core.as_dtype(given) != wanted:
                raise TypeError("Invalid %s dtype, expected %s but got %s."
                                % (what, wanted.name, _core.as_dtype(given).name))


def _with_values(keys: Any, values: Tensor) -> Any:
    if isinstance(keys, SparseTensor):
        return SparseTensor(keys.indices, values, keys.dense_shape)
    return values


class HandledTable(LookupInterface):
    """A table that is one resource: its handle, what keys give that are not there, and a name."""

    def __init__(self, key_dtype: Any, value_dtype: Any, handle: Tensor, default: Tensor) -> None:
        super().__init__(key_dtype, value_dtype)
        self._resource_handle, self._default_value = handle, default

    @property
    def resource_handle(self) -> Tensor:
        """The handle, a scalar of dtype resource."""
        return self._resource_handle

    @property
    def default_value(self) -> Tensor:
        """What stands for keys that are not there."""
        return self._default_value

    @property
    def name(self) -> str:
        """The name of the operation that gives the handle, without its scope; "" with immediate
        execution."""
        handle = self._resource_handle
        return "" if handle._is_concrete else handle.op.name.rpartition("/")[2]

    def _named(self, name: str | None, what: str) -> str:
        return "%s_%s" % (self.name or "table", what) if name is None else name

    def size(self, name: str | None = None) -> Tensor:
        """How many keys there are, an int64 scalar; 0 before a static table is initialised."""
        return ops.LookupTableSizeV2(self._resource_handle, name=self._named(name, "Size"))

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of `keys`, a tensor or SparseTensor: in their shape, and behind it a value's.
        The default value stands for keys that are not there.

        Raises TypeError for keys of another dtype. The run raises FailedPreconditionError where a
        static table is not initialised.
        """
        keys = self._converted_keys(keys)
        given = keys.values if isinstance(keys, SparseTensor) else keys
        values = ops.LookupTableFindV2(self._resource_handle, given, self._default_value,
                                       name=self._named(name, "Lookup"))
        return _with_values(keys, values)

    def export(self, name: str | None = None) -> tuple:
        """All that there is: (keys [n], values [n, ...]), in the order in which keys came; a
        removal may move some."""
        keys, values = ops.LookupTableExportV2(self._resource_handle, Tkeys=self._key_dtype,
                                               Tvalues=self._value_dtype,
                                               name=self._named(name, "Export"))
        return keys, values


def _an_initializer(value: Any) -> TableInitializerBase:
    needed = "a KeyValueTensorInitializer or a TextFileInitializer"
    for attribute in ("initialize", "key_dtype", "value_dtype"):
        having(value, attribute, "initializer", needed)
    return value


class StaticHashTable(HandledTable):
    """A table that is filled once, and read from then on.

    initializer: what with, a KeyValueTensorInitializer or a TextFileInitializer. default_value: a
    scalar of the values' dtype, for keys that are not there. name: of the operation, under which
    sessions that share their state share the table.

    In a graph, run tn.tables_initializer(), or table.initializer, before it is read; filling it
    again does nothing, and with other content raises FailedPreconditionError. With immediate
    execution it is filled at once.
    """

    def __init__(self, initializer: Any, default_value: Any, name: str | None = None) -> None:
        _an_initializer(initializer)
        with init_scope():
            default = convert_to_tensor(default_value, initializer.value_dtype,
                                        name="default_value")
            default.shape.assert_is_compatible_with([])
            shared = "" if executing_eagerly() else getattr(initializer, "_shared_name", "")
            handle = ops.HashTableV2(shared_name=shared, key_dtype=initializer.key_dtype,
                                     value_dtype=initializer.value_dtype,
                                     name="hash_table" if name is None else name)
            super().__init__(initializer.key_dtype, initializer.value_dtype, handle, default)
            self._initializer = initializer.initialize(self)

    @property
    def initializer(self) -> Operation | None:
        """The operation that fills the table; None with immediate execution."""
        return self._initializer

    @property
    def init(self) -> Operation | None:
        """The same, under tf.contrib.lookup's name."""
        return self._initializer


def _check_vocabulary(initializer: TableInitializerBase, key_dtype: Any) -> DType:
    given = _an_initializer(initializer).key_dtype
    wanted = given if key_dtype is None else _core.as_dtype(key_dtype)
    if given not in (_core.int64, _core.string):
        raise TypeError("Invalid key dtype, expected one of (int64, string), but got %s."
                        % given.name)
    if given.is_integer != wanted.is_integer:
        raise TypeError("Invalid key dtype, expected %s but got %s."
                        % ("integer" if given.is_integer else "non-integer", wanted.name))
    if initializer.value_dtype != _core.int64:
        raise TypeError("Invalid value dtype, expected int64 but got %s."
                        % initializer.value_dtype.name)
    return wanted


def _at_least_one(buckets: Any) -> int:
    if isinstance(buckets, bool) or not hasattr(buckets, "__index__"):
        raise TypeError("num_oov_buckets must be an int, not %r" % (buckets,))
    if buckets.__index__() < 1:
        raise ValueError("num_oov_buckets must be > 0, not %r" % (buckets,))
    return buckets.__index__()


class StaticVocabularyTable(LookupInterface):
    """Numbers for words: those of a vocabulary, and, for all others, the numbers of so many
    buckets behind them, by FarmHash's Fingerprint64 of the word (tn.strings.to_hash_bucket_fast).

    initializer: the vocabulary, keys of dtype string or int64 and values of dtype int64; None for
    buckets alone. num_oov_buckets: at least 1. lookup_key_dtype: of the keys that are looked up, an
    integer dtype where the vocabulary's is, string where there is none.

    Raises ValueError for num_oov_buckets, TypeError for other dtypes.
    """

    def __init__(self, initializer: Any, num_oov_buckets: int, lookup_key_dtype: Any = None,
                 name: str | None = None) -> None:
        self._num_oov_buckets = _at_least_one(num_oov_buckets)
        self._table = None
        if name is not None:
            name = having(name, "rstrip", "name", "a str").rstrip("/")
        if initializer is None:
            dtype = _core.string if lookup_key_dtype is None else _core.as_dtype(lookup_key_dtype)
            if dtype != _core.string and not dtype.is_integer:
                raise TypeError("lookup_key_dtype must be string or an integer dtype, not %s"
                                % dtype.name)
        else:
            dtype = _check_vocabulary(initializer, lookup_key_dtype)
            self._table = StaticHashTable(initializer, -1, name)
        self._table_name = name or (self._table.name if self._table else "hash_bucket")
        super().__init__(dtype, _core.int64)

    @property
    def name(self) -> str:
        """The table's name."""
        return self._table_name

    @property
    def initializer(self) -> Operation | None:
        """The operation that fills the vocabulary; None with immediate execution."""
        if self._table is not None:
            return self._table.initializer
        return None if executing_eagerly() else no_op()

    @property
    def init(self) -> Operation | None:
        """The same, under tf.contrib.lookup's name."""
        return self.initializer

    @property
    def resource_handle(self) -> Tensor | None:
        """The handle of the vocabulary; None without one."""
        return None if self._table is None else self._table.resource_handle

    def size(self, name: str | None = None) -> Tensor:
        """How many numbers there are, those of the buckets included, an int64 scalar."""
        with scope_of(name, "%s_Size" % (self._table_name or "table")):
            buckets = convert_to_tensor(self._num_oov_buckets, _core.int64)
            return buckets if self._table is None else self._table.size() + buckets

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The numbers of `keys`, int64 in their shape; of a SparseTensor a SparseTensor.

        Raises TypeError for keys of another dtype. The run raises FailedPreconditionError where
        the table is not initialised.
        """
        keys = self._converted_keys(keys)
        values = keys.values if isinstance(keys, SparseTensor) else keys
        with scope_of(name, "%s_Lookup" % (self._table_name or "table"), [values]):
            return _with_values(keys, self._numbers(values))

    def _numbers(self, keys: Tensor) -> Tensor:
        if self._table is not None and self._table.key_dtype == _core.int64:
            keys = ops.Cast(keys, DstT=_core.int64)
        words = keys if keys.dtype == _core.string else ops.AsString(keys)
        buckets = ops.StringToHashBucketFast(words, num_buckets=self._num_oov_buckets,
                                             name="hash_bucket")
        if self._table is None:
            return buckets
        numbers = self._table.lookup(keys)
        return where(ops.NotEqual(numbers, self._table.default_value), numbers,
                     buckets + self._table.size())


class MutableHashTable(HandledTable):
    """A table that can be changed at any time.

    key_dtype: int32, int64 or string. value_dtype: bool, int32, int64, float32, float64 or string.
    default_value: what stands for keys that are not there; its shape is that of all values.
    shared_name: tables of one session that are called so are one. checkpoint: whether it goes into
    checkpoints, which raises NotImplementedError: save what export() gives in variables.

    No order is put between operations on a table in one run; use tn.control_dependencies.
    """

    def __init__(self, key_dtype: Any, value_dtype: Any, default_value: Any,
                 shared_name: str | None = None, name: str = "MutableHashTable",
                 checkpoint: bool = False) -> None:
        if checkpoint:
            raise NotImplementedError("tables are not in checkpoints: save what table.export() "
                                      "gives in variables, and insert it after restoring them")
        with init_scope():
            default = convert_to_tensor(default_value, value_dtype, name="default_value")
            attributes = {"shared_name": shared_name or "", "key_dtype": key_dtype,
                          "value_dtype": value_dtype, "name": name}
            if default.shape.ndims == 0:
                handle = ops.MutableHashTableV2(**attributes)
            else:
                handle = ops.MutableHashTableOfTensorsV2(value_shape=default.shape, **attributes)
        super().__init__(key_dtype, value_dtype, handle, default)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Operation | None:
        """Puts keys, of any shape, with their values, of that shape and behind it a value's, into
        the table, or other values there: all of them, or none. Of a key that is there twice the
        last value counts.

        Raises TypeError for other dtypes. The run raises ResourceExhaustedError at a server that
        lets nobody hold more.
        """
        keys = self._converted_keys(keys)
        return ops.LookupTableInsertV2(self._resource_handle, keys,
                                       convert_to_tensor(values, self._value_dtype),
                                       name=self._named(name, "Insert"))

    def remove(self, keys: Any, name: str | None = None) -> Operation | None:
        """Takes keys out of the table; those that are not there are no error."""
        return ops.LookupTableRemoveV2(self._resource_handle, self._converted_keys(keys),
                                       name=self._named(name, "Remove"))
