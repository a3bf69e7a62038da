# SPDX-License-Identifier: Apache-2.0
"""Queues: elements that wait in a session between the runs that put them in and take them out."""

from treenail._names import no_attribute as _no_attribute
from treenail._queues import (FIFOQueue, PaddingFIFOQueue, PriorityQueue,  # noqa: F401
                              QueueBase, RandomShuffleQueue)
from treenail._refusals import name_in_refusals as _name_in_refusals

__all__ = ["QueueBase", "FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue", "PriorityQueue"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
