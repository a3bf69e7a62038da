# SPDX-License-Identifier: Apache-2.0
"""What converted code calls, under the name ag__."""

from __future__ import annotations

from treenail._array import stack
from treenail._convert import convert_to_tensor
from treenail._ops import ops
from treenail.autograph._branches import (any_of, both, branch, choice, either,  # noqa: F401
                                          negated, unless)
from treenail.autograph._builtins import asserted  # noqa: F401
from treenail.autograph._calls import callee  # noqa: F401
from treenail.autograph._cells import Undecided, read
from treenail.autograph._comparisons import chain, compared, in_place  # noqa: F401
from treenail.autograph._lists import GrowingList, writable  # noqa: F401
from treenail.autograph._loops import for_loop, iterated, while_loop  # noqa: F401
from treenail.autograph._places import (caught, changing, changing_around,  # noqa: F401
                                        raising, refusal)
from treenail.autograph._values import convertible, is_symbolic

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


def item(values: Any, index: Any) -> Any:
    """`values[index]`, which may be a list of Python's and a tensor."""
    if type(values) not in (list, tuple) or not is_symbolic(index):
        return values[index]
    if not all(convertible(value) for value in values):
        raise refusal(TypeError, "a tensor chooses among %r, which are no tensors" % (values,))
    rows = stack(values)
    index = convert_to_tensor(index)
    return rows[ops.Select(ops.Less(index, convert_to_tensor(0, index.dtype)),
                           ops.Add(index, convert_to_tensor(len(values), index.dtype)), index)]


def item_to_change(index: Any, values: Any = None) -> Any:
    """The index of an item of `values` that is set. Raises NotImplementedError for a tensor's."""
    if is_symbolic(index) and not isinstance(values, GrowingList):
        raise refusal(NotImplementedError, "a tensor chooses which item of an object is set: a "
                      "tn.TensorArray can be written so")
    return index


def python_value(value: Any) -> Any:
    """A condition, or an operand of one, that stays Python's. Raises TypeError for a tensor."""
    if is_symbolic(value):
        raise refusal(TypeError, "a tensor decides here, in a generator, a comprehension, a match "
                      "or beside a := or yield, where no graph can take the decision")
    return value
