# SPDX-License-Identifier: Apache-2.0
"""Values that differ from replica to replica, and nests of them."""

from __future__ import annotations

from treenail._convert import IndexedSlices
from treenail._shown import public_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


class DistributedValues:
    """A value for each replica of this process, in their order: Strategy.experimental_local_results
    gives them as a tuple."""

    def __init__(self, values: Sequence) -> None:
        self._values = tuple(values)

    @property
    def values(self) -> tuple:
        """Replica i's at i."""
        return self._values

    def __repr__(self) -> str:
        return "<%s %s>" % (public_name(self), self._values)


class PerReplica(DistributedValues):
    """Values that replicas have computed each for itself."""


def _children(value: Any) -> list | None:
    """[(key, child)] of a nest, None of a leaf."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, (list, tuple)) and not isinstance(value, IndexedSlices):
        return list(enumerate(value))
    return None


def _like(value: Any, children: dict) -> Any:
    if isinstance(value, dict):
        return type(value)(children)
    if hasattr(value, "_fields"):  # a namedtuple
        return type(value)(*children.values())
    return type(value)(children.values())


def regroup(values: Sequence) -> Any:
    """What replicas gave as one nest: what is one object for all of them stands for itself, other
    leaves are PerReplica. Raises TypeError and ValueError where nests differ."""
    first = values[0]
    if len(values) == 1 or all(value is first for value in values):
        return first
    children = _children(first)
    if children is None:
        return PerReplica(values)
    keys = [key for key, _ in children]
    for number, value in enumerate(values):
        if type(value) is not type(first):
            raise TypeError("replica 0 gives a %s, replica %d a %s"
                            % (type(first).__name__, number, type(value).__name__))
        if [key for key, _ in _children(value) or []] != keys:
            raise ValueError("replica 0 gives a %s with %s, replica %d one with %s"
                             % (type(first).__name__, keys, number,
                                [key for key, _ in _children(value) or []]))
    return _like(first, {key: regroup([value[key] for value in values]) for key in keys})


def select(number: int, value: Any) -> Any:
    """The nest as replica `number` of this process sees it."""
    if isinstance(value, DistributedValues):
        if number >= len(value.values):
            raise ValueError("%r has no value for replica %d" % (value, number))
        return value.values[number]
    children = _children(value)
    if children is None:
        return value
    chosen = {key: select(number, child) for key, child in children}
    if all(chosen[key] is child for key, child in children):
        return value
    return _like(value, chosen)
