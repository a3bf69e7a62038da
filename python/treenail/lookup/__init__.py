# SPDX-License-Identifier: Apache-2.0
"""Lookup tables, from words to their numbers and back: TensorFlow 1's tf.lookup, and what programs
use of tf.contrib.lookup.

    table = tn.lookup.StaticVocabularyTable(
        tn.lookup.KeyValueTensorInitializer(["oak", "elm"], [0, 1], value_dtype=tn.int64), 2)
    numbers = table.lookup(tn.constant(["elm", "ash"]))
    session.run(tn.tables_initializer())
"""

from treenail._names import no_attribute as _no_attribute
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail.lookup import experimental
from treenail.lookup._initializers import (KeyValueTensorInitializer, TableInitializerBase,
                                           TextFileIndex, TextFileInitializer)
from treenail.lookup._tables import LookupInterface, StaticHashTable, StaticVocabularyTable
from treenail.lookup._vocabulary import (index_table_from_file, index_table_from_tensor,
                                         index_to_string_table_from_file,
                                         index_to_string_table_from_tensor)

__all__ = ["experimental", "KeyValueTensorInitializer", "LookupInterface", "StaticHashTable",
           "StaticVocabularyTable", "TableInitializerBase", "TextFileIndex", "TextFileInitializer",
           "index_table_from_file", "index_table_from_tensor", "index_to_string_table_from_file",
           "index_to_string_table_from_tensor"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
