# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments that many public functions share."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def having(value: Any, attribute: str, what: str, needed: str) -> Any:
    """`value`, which any class with that attribute may stand in for. Raises TypeError, as in
    "session must be a Session, not 3"."""
    if not hasattr(value, attribute):
        raise TypeError("%s must be %s, not %r of type '%s'" % (what, needed, value,
                                                                type(value).__name__))
    return value


def a_path(value: Any, what: str) -> Any:
    """os.fspath(value). Raises TypeError."""
    from os import fspath
    try:
        return fspath(value)
    except TypeError:
        raise TypeError("%s must be a path (str, bytes or os.PathLike), not %r"
                        % (what, value)) from None
