# SPDX-License-Identifier: Apache-2.0
"""Keys of feed_dict that are several tensors: tuples and named tuples of them, nested at will."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _leaves(nest: Any) -> list:
    if isinstance(nest, (tuple, list)):
        return [leaf for part in nest for leaf in _leaves(part)]
    return [nest]


def _match(key: Any, value: Any, pairs: list) -> bool:
    """Whether `value` has the structure of `key`; the pairs of their leaves so far are added."""
    if isinstance(key, (tuple, list)):
        return isinstance(value, (tuple, list)) and len(value) == len(key) and all(
            [_match(k, v, pairs) for k, v in zip(key, value)])
    if hasattr(key, "__treenail_feed__"):
        pairs += key.__treenail_feed__(value)
    else:
        pairs.append((key, value))
    return True


def flat_feed(key: Any, value: Any) -> list:
    """[(tensor, value)] of a key that is a tuple: `value` has the same structure, or as many leaves
    in another one, as in TensorFlow 1.

    Raises ValueError when it has neither.
    """
    pairs: list = []
    if _match(key, value, pairs):
        return pairs
    keys, values = _leaves(key), _leaves(value)
    if len(keys) == len(values) and not any(hasattr(k, "__treenail_feed__") for k in keys):
        return list(zip(keys, values))
    raise ValueError("Could not flatten dictionary. Key had %d elements, but value had %d "
                     "elements. Key: %r, value: %r; needed is a tuple or list of the structure of "
                     "the key" % (len(keys), len(values), key, value))


def fed_tensors(keys: Any) -> list:
    """The tensors that keys of a feed_dict are: of a composite one those that it is made of."""
    tensors: list = []
    for leaf in _leaves(keys):
        composite = hasattr(leaf, "__treenail_feed__") and hasattr(leaf, "__treenail_fetch__")
        tensors += leaf.__treenail_fetch__()[0] if composite else [leaf]
    return tensors
