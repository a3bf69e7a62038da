# SPDX-License-Identifier: Apache-2.0
"""TensorFlow 1's ready tables between words and their numbers (tf.contrib.lookup)."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._array import range as _range
from treenail._convert import convert_to_tensor
from treenail.lookup._initializers import (KeyValueTensorInitializer, TextFileIndex,
                                           TextFileInitializer, words_to_numbers)
from treenail.lookup._tables import LookupInterface, StaticHashTable, StaticVocabularyTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _table(initializer: Any, num_oov_buckets: int, default_value: Any, dtype: Any,
           name: str | None) -> LookupInterface:
    if num_oov_buckets < 0:
        raise ValueError("num_oov_buckets must be greater or equal than 0, got %d."
                         % num_oov_buckets)
    if num_oov_buckets > 0:
        return StaticVocabularyTable(initializer, num_oov_buckets, dtype, name)
    return StaticHashTable(initializer, default_value, name)


def index_table_from_file(vocabulary_file: Any, num_oov_buckets: int = 0,
                          vocab_size: int | None = None, default_value: int = -1,
                          key_dtype: Any = _core.string, name: str | None = None,
                          key_column_index: int = TextFileIndex.WHOLE_LINE,
                          value_column_index: int = TextFileIndex.LINE_NUMBER,
                          delimiter: str = "\t") -> LookupInterface:
    """A table from the lines of a file to their numbers, from 0.

    num_oov_buckets: so many numbers more, for words that are not there, by hash; 0: these give
    default_value. vocab_size: so many lines; None: all. key_dtype: string, or an integer dtype, of
    which lines are read as int64. key_column_index, value_column_index, delimiter: as
    TextFileInitializer has them.
    """
    return _table(words_to_numbers(vocabulary_file, key_dtype, vocab_size, key_column_index,
                                   value_column_index, delimiter),
                  num_oov_buckets, default_value, key_dtype, name)


def index_table_from_tensor(vocabulary_list: Any, num_oov_buckets: int = 0,
                            default_value: int = -1, dtype: Any = _core.string,
                            name: str | None = None) -> LookupInterface:
    """A table from the elements of a vector, strings or integers, to their numbers, from 0.

    num_oov_buckets, default_value: as index_table_from_file has them. dtype: of the keys.
    """
    dtype = _core.as_dtype(dtype)
    if dtype != _core.string and not dtype.is_integer:
        raise TypeError("dtype must be string or an integer dtype, not %s" % dtype.name)
    keys = convert_to_tensor(vocabulary_list, dtype, name="keys")
    return _table(_numbered(keys, False), num_oov_buckets, default_value, dtype, name)


def index_to_string_table_from_file(vocabulary_file: Any, vocab_size: int | None = None,
                                    default_value: str = "UNK", name: str | None = None,
                                    key_column_index: int = TextFileIndex.LINE_NUMBER,
                                    value_column_index: int = TextFileIndex.WHOLE_LINE,
                                    delimiter: str = "\t") -> LookupInterface:
    """A table from numbers, from 0, to the lines of a file. default_value: for other numbers. The
    rest is as index_table_from_file has it."""
    return StaticHashTable(
        TextFileInitializer(vocabulary_file, _core.int64, key_column_index, _core.string,
                            value_column_index, vocab_size, delimiter), default_value, name)


def index_to_string_table_from_tensor(vocabulary_list: Any, default_value: str = "UNK",
                                      name: str | None = None) -> LookupInterface:
    """A table from numbers, from 0, to the elements of a vector of strings. default_value: for
    other numbers."""
    words = convert_to_tensor(vocabulary_list, _core.string, name="words")
    return StaticHashTable(_numbered(words, True), default_value, name)


def _numbered(words: Any, backwards: bool) -> KeyValueTensorInitializer:
    """Each element of a vector to its number, or the number to the element."""
    words.shape.assert_has_rank(1)
    numbers = _range(words.shape.as_list()[0], dtype=_core.int64)
    return KeyValueTensorInitializer(*((numbers, words) if backwards else (words, numbers)))
