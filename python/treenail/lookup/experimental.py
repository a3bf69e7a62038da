# SPDX-License-Identifier: Apache-2.0
"""Tables that can be changed at any time; of tf.contrib.lookup, later tf.lookup.experimental."""

from treenail._names import no_attribute as _no_attribute
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail.lookup._tables import MutableHashTable

__all__ = ["MutableHashTable"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
