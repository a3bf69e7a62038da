# SPDX-License-Identifier: Apache-2.0
"""Comparisons: `==` of tensors compares elements, where Python's would compare the objects."""

from __future__ import annotations

import operator

from treenail._convert import convert_to_tensor
from treenail._ops import ops
from treenail.autograph._branches import both, negated
from treenail.autograph._lists import GrowingList
from treenail.autograph._values import any_symbolic, convertible, is_symbolic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def _equal(a: Any, b: Any) -> Any:
    if (is_symbolic(a) or is_symbolic(b)) and convertible(a) and convertible(b):
        return ops.Equal(*_of_one_dtype(a, b))
    return a == b


def _of_one_dtype(a: Any, b: Any) -> tuple:
    if is_symbolic(a):
        a = convert_to_tensor(a)
        return a, convert_to_tensor(b, a.dtype if not hasattr(b, "dtype") else None)
    b = convert_to_tensor(b)
    return convert_to_tensor(a, b.dtype if not hasattr(a, "dtype") else None), b


def _not_equal(a: Any, b: Any) -> Any:
    result = _equal(a, b)
    return negated(result) if is_symbolic(result) and result.shape.rank == 0 else (
        ops.LogicalNot(result) if is_symbolic(result) else a != b)


def _inside(value: Any, container: Any) -> Any:
    if isinstance(container, GrowingList) or is_symbolic(container):
        return ops.Any(ops.Equal(*_of_one_dtype(container, value)[::1]), _all_axes(container))
    if is_symbolic(value) or isinstance(container, (list, tuple)) and any_symbolic(container):
        found: Any = False
        for item in container:
            same = _equal(value, item)
            if found is False and not is_symbolic(same):
                if same:
                    return True
                continue
            found = same if found is False else ops.LogicalOr(found, same)
        return found
    return value in container


def _all_axes(container: Any) -> Any:
    tensor = convert_to_tensor(container)
    return ops.Range(0, ops.Rank(tensor), 1)


def _not_inside(value: Any, container: Any) -> Any:
    result = _inside(value, container)
    return negated(result)


_OPERATORS: dict = {
    "Eq": _equal, "NotEq": _not_equal, "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt,
    "GtE": operator.ge, "Is": operator.is_, "IsNot": operator.is_not, "In": _inside,
    "NotIn": _not_inside}
_IN_PLACE = {"Add": "iadd", "Sub": "isub", "Mult": "imul", "MatMult": "imatmul", "Div": "itruediv",
             "FloorDiv": "ifloordiv", "Mod": "imod", "Pow": "ipow", "LShift": "ilshift",
             "RShift": "irshift", "BitOr": "ior", "BitXor": "ixor", "BitAnd": "iand"}


def compared(kind: str, a: Any, b: Any) -> Any:
    """One comparison."""
    return _OPERATORS[kind](a, b)


def chain(left: Any, *links: tuple) -> Any:
    """`left < a() < b() ...`: each operand once, and none behind a comparison that fails."""
    kind, operand = links[0]
    right: Callable = operand()
    result = _OPERATORS[kind](left, right)
    if len(links) == 1:
        return result
    return both(result, lambda: chain(right, *links[1:]))


def in_place(kind: str, value: Any, other: Any) -> Any:
    """`value += other` and its kin."""
    return getattr(operator, _IN_PLACE[kind])(value, other)
