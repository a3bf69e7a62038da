# SPDX-License-Identifier: Apache-2.0
"""Equations of einsum: their grammar, and what ellipses and missing outputs stand for. Indices are
single characters; those that an ellipsis stands for are none that a program can write."""

from __future__ import annotations

from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

MERGED = "\u2026"  # all axes of an ellipsis, as one
_FIRST_HIDDEN = 0x10000


def hidden(count: int) -> str:
    """Indices for `count` axes of an ellipsis. Axes are broadcast from the right: so are these."""
    return "".join(chr(_FIRST_HIDDEN + i) for i in reversed(range(count)))


def title(index: str) -> str:
    """How messages name it."""
    return repr(index) if index.isascii() else "'...'"


def _check_letters(equation: str, parts: Sequence[str]) -> None:
    for part in parts:
        rest = part.replace("...", "", 1)
        if rest and not (rest.isalpha() and rest.isascii()):
            raise ValueError("einsum equation %r: only letters, '...', ',' and '->' are understood"
                             % equation)


def _with_hidden(parts: Sequence[str], ranks: Sequence[int | None], output: str | None) -> tuple:
    """Ellipses replaced: by an index for each of their axes, or by one for all of them where a
    rank is unknown. Without an output they come first there."""
    merged = any("..." in part and rank is None for part, rank in zip(parts, ranks))
    result, most = [], 0
    for part, rank in zip(parts, ranks):
        count = 0 if merged or rank is None else rank - len(part.replace("...", ""))
        most = max(most, count)
        result.append(part.replace("...", MERGED if merged else hidden(count)))
    shared = (MERGED if merged else hidden(most)) if any("..." in part for part in parts) else ""
    return result, None if output is None else output.replace("...", shared), shared


def _check_output(equation: str, parts: Sequence[str], output: str) -> None:
    for c in output:
        if output.count(c) > 1:
            raise ValueError("einsum equation %r repeats an index within the output: %s"
                             % (equation, title(c)))
    unknown = set(output) - set("".join(parts))
    if unknown:
        raise ValueError("einsum equation %r: index %s of the output is in no operand"
                         % (equation, title(min(unknown))))


@lru_cache(maxsize=512)
def parse(equation: str, ranks: tuple) -> tuple:
    """(the indices of each operand, those of the output) for operands of these ranks.

    Raises ValueError for what is no equation, and for one that does not fit number and ranks of the
    operands.
    """
    left, arrow, output = "".join(equation.split()).partition("->")
    parts = left.split(",")
    if len(parts) != len(ranks):
        raise ValueError("einsum equation %r names %d operands, %d were given"
                         % (equation, len(parts), len(ranks)))
    _check_letters(equation, parts + [output])
    for i, (part, rank) in enumerate(zip(parts, ranks)):
        letters = len(part.replace("...", ""))
        if rank is not None and (rank < letters or rank > letters and "..." not in part):
            raise ValueError("einsum equation %r: operand %d, %r, has rank %d"
                             % (equation, i, part, rank))
    labels, found, shared = _with_hidden(parts, ranks, output if arrow else None)
    if found is None:
        joined = "".join(labels)
        found = shared + "".join(sorted(c for c in set(joined)
                                        if joined.count(c) == 1 and c not in shared))
    _check_output(equation, labels, found)
    return tuple(labels), found
