# SPDX-License-Identifier: Apache-2.0
"""What converted code calls, under the name ag__."""

from __future__ import annotations

from treenail.autograph._branches import (any_of, both, branch, choice, either,  # noqa: F401
                                          negated, unless)
from treenail.autograph._builtins import asserted  # noqa: F401
from treenail.autograph._calls import callee  # noqa: F401
from treenail.autograph._cells import Undecided, read
from treenail.autograph._comparisons import chain, compared, in_place  # noqa: F401
from treenail.autograph._lists import writable  # noqa: F401
from treenail.autograph._loops import for_loop, iterated, while_loop  # noqa: F401
from treenail.autograph._places import changing, raising, refusal  # noqa: F401
from treenail.autograph._values import any_symbolic, is_symbolic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def result(returned: Any, value: Callable) -> Any:
    """What a function returns whose `return` set a flag."""
    if returned is False:
        return None
    found = value()
    if isinstance(found, Undecided):
        read(found, "the function's result")
    if returned is not True and found is not None:
        raise refusal(ValueError, "a function returns a value where a tensor is true and none "
                      "where it is not: return one on all ways")
    return found


def python_value(value: Any) -> Any:
    """A condition, or an operand of one, that stays Python's. Raises TypeError for a tensor."""
    if is_symbolic(value):
        raise refusal(TypeError, "a tensor decides here, in a generator, a comprehension, a match "
                      "or beside a := or yield, where no graph can take the decision")
    return value


__all__ = ["any_symbolic", "python_value", "result"]
