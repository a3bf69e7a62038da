# SPDX-License-Identifier: Apache-2.0
"""Python's functions for tensors: print, len, range, enumerate, zip, int, float, max, min, any,
all. Where none of the arguments is a tensor to be computed, Python's own is called."""

from __future__ import annotations

import builtins

from treenail import _treenail as _core

from treenail._array import shape as shape_of
from treenail._array import transpose
from treenail._convert import convert_to_tensor
from treenail._math import reduce_all, reduce_any, reduce_max, reduce_min, reduce_sum
from treenail._ops import ops
from treenail.autograph import _iterables
from treenail.autograph._effects import in_order
from treenail.autograph._lists import GrowingList
from treenail.autograph._places import innermost, lexically_inside, refusal
from treenail.autograph._values import any_symbolic, convertible, is_symbolic, truth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_SHOWN = 100  # elements of a printed tensor


def print_values(*values: Any, **options: Any) -> None:
    """print(): where a run computes a value, a line on standard error when it does."""
    around = innermost()
    if not any_symbolic(values) and around is None:
        print(*values, **options)
        return
    if options.get("file") is not None:
        raise refusal(NotImplementedError, "print() of a tensor writes to standard error, and not "
                      "to a file")
    separator = options.get("sep")
    separator = " " if separator is None else separator
    front: list = []
    rest = list(values)
    while rest and not any_symbolic(rest[0]):
        front.append(str(rest.pop(0)))
    message = separator.join(front) + (separator if front and rest else "")
    data = [value if convertible(value) else str(value) for value in _flat(rest)]
    in_order(lambda: ops.Print(True, [convert_to_tensor(value) for value in data] or [""][:len(
        data)], message=message, first_n=-1, summarize=_SHOWN))


def _flat(values: list) -> list:
    found: list = []
    for value in values:
        if isinstance(value, (list, tuple)) and any_symbolic(value):
            found += _flat(list(value))
        else:
            found.append(value)
    return found


def asserted(test: Any, message: Callable, said: str) -> bool:
    """Whether `assert test, message()` holds; where a run finds out, it is ended by that. said: the
    test as it stands in the program."""
    if not is_symbolic(test):
        if test or lexically_inside() is None:
            return bool(test)
        test = convert_to_tensor(False)
    text = message()
    data = [said] if text is None else [
        value if convertible(value) else str(value) for value in _flat([text])]
    in_order(lambda: ops.Assert(truth(test), [convert_to_tensor(value) for value in data],
                                summarize=_SHOWN))
    return True


def _len(value: Any) -> Any:
    if isinstance(value, (GrowingList, _iterables.Counted)):
        return value.length()
    if not is_symbolic(value):
        return len(value)
    tensor = convert_to_tensor(value)
    if tensor.shape.rank == 0:
        raise refusal(TypeError, "len() of a tensor of shape ()")
    known = None if tensor.shape.rank is None else tensor.shape[0]
    return shape_of(tensor)[0] if known is None else int(known)


def _range(*args: Any) -> Any:
    if not any_symbolic(args):
        return range(*args)
    for value in args:
        if is_symbolic(value) and not convert_to_tensor(value).dtype.is_integer:
            raise refusal(TypeError, "range() takes integers, and not %r" % (value,))
    return _iterables.Numbers(*args)


def _enumerate(values: Any, start: Any = 0) -> Any:
    rows = _iterables.counted(values)
    return enumerate(values, start) if rows is None else _iterables.Numbered(rows, start)


def _zip(*values: Any, **options: Any) -> Any:
    rows = _iterables.together(values)
    return zip(*values, **options) if rows is None else rows


def _number(kind: type, dtype: Any) -> Callable:
    def number(*args: Any, **options: Any) -> Any:
        if len(args) == 1 and is_symbolic(args[0]):
            value = convert_to_tensor(args[0])
            return value if value.dtype == dtype else ops.Cast(value, DstT=dtype)
        return kind(*args, **options)
    return number


def _extreme(own: Callable, pair: Any, reduce: Callable) -> Callable:
    def extreme(*values: Any, **options: Any) -> Any:
        if len(values) == 1:
            if is_symbolic(values[0]) or isinstance(values[0], GrowingList):
                return reduce(convert_to_tensor(values[0]), 0)
            values = tuple(values[0])
            if not any_symbolic(values) or options:
                return own(values, **options)
        if not any_symbolic(values) or options:
            return own(*values, **options)
        like = convert_to_tensor(next(value for value in values if is_symbolic(value)))
        result = convert_to_tensor(values[0], None if hasattr(values[0], "dtype") else like.dtype)
        for value in values[1:]:
            result = pair(result, convert_to_tensor(value, None if hasattr(value, "dtype") else
                                                    like.dtype))
        return result
    return extreme


def _quantified(pair: Any, reduce: Callable, decides: bool) -> Callable:
    """any() and all(): `decides` is the value of Python's that settles it."""
    def quantified(values: Any) -> Any:
        if is_symbolic(values) or isinstance(values, GrowingList):
            return reduce(convert_to_tensor(values), 0)
        result = None
        for value in values:
            if is_symbolic(value):
                value = truth(value)
                result = value if result is None else pair(result, value)
            elif builtins.bool(value) is decides:
                return decides
        return not decides if result is None else result
    return quantified


def _sum(values: Any, *start: Any, **options: Any) -> Any:
    if not (is_symbolic(values) or isinstance(values, GrowingList)):
        return sum(values, *start, **options)
    total = reduce_sum(convert_to_tensor(values), 0)
    begin = options.get("start", *start) if start or options else 0
    return total if type(begin) is int and begin == 0 else begin + total


def stack_of(own: Callable) -> Callable:
    """tn.stack, which also takes a list that grew."""
    def stacked(values: Any, axis: int = 0, name: str | None = "stack") -> Any:
        if not isinstance(values, GrowingList):
            return own(values, axis, name)
        return values.stack() if axis == 0 else _moved(values.stack(), axis)
    return stacked


def _moved(tensor: Any, axis: int) -> Any:
    """The first axis as number `axis`."""
    rank = tensor.shape.rank
    if rank is None:
        raise refusal(ValueError, "tn.stack of a list that grew, along axis %d, needs elements of "
                      "known rank" % axis)
    order = list(range(1, rank))
    order.insert(axis % rank, 0)
    return transpose(tensor, order)


def concat_of(own: Callable) -> Callable:
    """tn.concat, which also takes a list that grew, along axis 0."""
    def joined(values: Any, axis: Any = 0, name: str = "concat") -> Any:
        if not isinstance(values, GrowingList):
            return own(values, axis, name)
        if axis != 0:
            raise refusal(NotImplementedError, "tn.concat of a list that grew goes along axis 0, "
                          "not %r" % (axis,))
        return values.concat()
    return joined


REPLACEMENTS = {
    "print": print_values, "len": _len, "range": _range, "enumerate": _enumerate, "zip": _zip,
    "int": _number(int, _core.int32), "float": _number(float, _core.float32),
    "bool": _number(bool, _core.bool),
    "max": _extreme(max, ops.Maximum, reduce_max), "min": _extreme(min, ops.Minimum, reduce_min),
    "sum": _sum, "any": _quantified(ops.LogicalOr, reduce_any, True),
    "all": _quantified(ops.LogicalAnd, reduce_all, False),
}
