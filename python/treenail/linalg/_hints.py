# SPDX-License-Identifier: Apache-2.0
"""What is promised about operators (True, False, or None where nothing is known): what promises
imply, and what is known of products and sums over blocks.

A hint is never checked against numbers, only against other hints.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Sequence


def implied(is_non_singular: bool | None, is_self_adjoint: bool | None,
            is_positive_definite: bool | None, is_square: bool | None) -> tuple:
    """(is_non_singular, is_square) with what the others imply. Raises ValueError for hints that
    contradict each other."""
    if is_positive_definite:
        if is_non_singular is False:
            raise ValueError("A positive definite matrix is always non-singular.")
        is_non_singular = True
    for hint, words in ((is_non_singular, "non-singular"), (is_self_adjoint, "self-adjoint")):
        if hint:
            if is_square is False:
                raise ValueError("A %s matrix is always square." % words)
            is_square = True
    return is_non_singular, is_square


def required(hint: bool | None, words: str) -> bool:
    """True, for what holds of every operator of a kind. Raises ValueError, with these words, for a
    hint that says otherwise."""
    if hint is False:
        raise ValueError(words)
    return True


def excluded(hint: bool | None, words: str) -> bool:
    """False, for what holds of no operator of a kind. Raises ValueError where the hint says so."""
    if hint:
        raise ValueError(words)
    return False


def all_of(hints: Iterable) -> bool | None:
    """True where all are, else None: what all blocks have."""
    return True if all(hints) else None


def of_one(operator: Any) -> dict:
    """What is promised of an operator, as arguments of a constructor."""
    return {"is_non_singular": operator.is_non_singular,
            "is_self_adjoint": operator.is_self_adjoint,
            "is_positive_definite": operator.is_positive_definite,
            "is_square": operator.is_square}


def of_inverse(operator: Any) -> dict:
    """What is promised of an operator's inverse."""
    return dict(of_one(operator), is_non_singular=True, is_square=True)


def of_product(operators: Sequence) -> dict:
    """Hints of a product of operators."""
    non_singular = [o.is_non_singular for o in operators]
    if all(non_singular):
        return {"is_non_singular": True}
    # A square product is singular where a square factor is.
    if False in non_singular and all(o.is_square for o in operators):
        return {"is_non_singular": False}
    return {}


def of_commuting(left: Any, right: Any) -> dict:
    """Hints of the product of two operators that commute and are diagonalised by one basis that is
    orthonormal, such as diagonal or circulant ones."""
    hints = of_product((left, right))
    if left.is_self_adjoint and right.is_self_adjoint:
        hints["is_self_adjoint"] = True
        if left.is_positive_definite and right.is_positive_definite:
            hints["is_positive_definite"] = True
    hints["is_square"] = True
    return hints
