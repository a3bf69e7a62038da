# SPDX-License-Identifier: Apache-2.0
"""Nested structures of tensors: tuples, named tuples, lists, and dictionaries in the order of their
sorted keys."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence


def is_nested(structure: Any) -> bool:
    """Whether this is a tuple, list or dictionary of further parts."""
    return isinstance(structure, (tuple, list, dict))


def _parts(structure: Any) -> Sequence:
    if isinstance(structure, dict):
        return [structure[key] for key in sorted(structure)]
    return structure


def flatten(structure: Any) -> list:
    """The leaves, in order."""
    if not is_nested(structure):
        return [structure]
    return [leaf for part in _parts(structure) for leaf in flatten(part)]


def _like(structure: Any, parts: Sequence) -> Any:
    if isinstance(structure, dict):
        by_key = dict(zip(sorted(structure), parts))
        return type(structure)((key, by_key[key]) for key in structure)
    if hasattr(structure, "_fields"):
        return type(structure)(*parts)
    return type(structure)(parts)


def _same_parts(structure: Any, other: Any) -> bool:
    if not is_nested(other) or len(other) != len(structure):
        return False
    if isinstance(structure, dict) or isinstance(other, dict):
        return isinstance(structure, dict) and isinstance(other, dict) and set(structure) == set(
            other)
    return True


def map_structure(function: Callable, structure: Any, *others: Any) -> Any:
    """The same structure with function(leaf, leaves of the others...) for each leaf. Raises
    ValueError where the structures differ."""
    nested = is_nested(structure)
    if any(not _same_parts(structure, other) if nested else is_nested(other) for other in others):
        raise ValueError("The two structures don't have the same nested structure: %r, %r"
                         % (structure, others))
    if not nested:
        return function(structure, *others)
    return _like(structure, [map_structure(function, *parts)
                             for parts in zip(*[_parts(s) for s in (structure, *others)])])


def pack(structure: Any, leaves: Sequence) -> Any:
    """The structure with these leaves in place of its own."""
    remaining = iter(leaves)
    return map_structure(lambda _: next(remaining), structure)
