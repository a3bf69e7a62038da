# SPDX-License-Identifier: Apache-2.0
"""Conditions that a run holds values to, and lines that it writes on the way: tn.Assert, tn.Print
and TensorFlow 1's tn.assert_*."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._array import rank as _rank
from treenail._convert import constant_value, convert_to_tensor, scope_of
from treenail._math import reduce_all
from treenail._ops import ops
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

    from treenail._treenail import Operation


def Assert(condition: Any, data: Sequence[Any], summarize: int | None = None,  # noqa: N802
           name: str | None = None) -> Operation:
    """An operation that ends the run with InvalidArgumentError unless `condition`, a bool scalar,
    holds; the error shows the first `summarize` (3) elements of each of `data`, all where it is
    below 0.

    Nothing waits for it unless told so, by tn.control_dependencies or as a fetch. Raises
    InvalidArgumentError at once for a condition known to be false.
    """
    with scope_of(name, "Assert", [condition, data]) as scope:
        condition = convert_to_tensor(condition, _core.bool)
        data = [convert_to_tensor(value) for value in _listed(data)]
        if constant_value(condition) is not None and not constant_value(condition):
            known = [constant_value(value) for value in data]
            if all(value is not None for value in known):
                from treenail.errors import InvalidArgumentError
                raise InvalidArgumentError(None, None, "assertion failed: %s" % " ".join(
                    _shown(value) for value in known))
        return ops.Assert(condition, data, summarize=3 if summarize is None else summarize,
                          name=scope)


def Print(input_: Any, data: Sequence[Any], message: str | None = None,  # noqa: N802
          first_n: int | None = None, summarize: int | None = None,
          name: str | None = None) -> Tensor:
    """`input_`, and when it is computed a line on standard error.

    The line is `message` and the first `summarize` (3) elements of each of `data`, all where it is
    below 0; only the first `first_n` times in a session, where it is given.
    """
    return ops.Print(input_, [convert_to_tensor(value) for value in _listed(data)],
                     message=message or "", first_n=-1 if first_n is None else first_n,
                     summarize=3 if summarize is None else summarize, name=name)


def _listed(data: Any) -> list:
    return list(data) if isinstance(data, (list, tuple)) else [data]


def _label(tensor: Tensor) -> str:
    """Its name; of a concrete one, which has none, what it is."""
    if tensor._is_concrete:
        return "shape=%s dtype=%s" % (tensor.shape, tensor.dtype.name)
    return tensor.name


def _shown(value: Any) -> str:
    return value.item().decode("utf-8", "backslashreplace") if value.dtype == object \
        and value.ndim == 0 else str(value)


_COMPARISONS = {"==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater",
                ">=": "greater_equal"}


# --- Two values -----------------------------------------------------------------------------------

def _compared(name: str | None, default: str, symbol: str, op: Callable, x: Any, y: Any,
              data: Any, summarize: int | None, message: str | None) -> Operation:
    with scope_of(name, default, [x, y, data]):
        x = convert_to_tensor(x)
        y = convert_to_tensor(y, x.dtype)
        if data is None:
            data = [message or "", "Condition x %s y did not hold element-wise:" % symbol,
                    "x (%s) = " % _label(x), x, "y (%s) = " % _label(y), y]
        condition = reduce_all(op(x, y))
        return Assert(condition if _may_hold(symbol, x, y) else False, data, summarize)


def _may_hold(symbol: str, x: Tensor, y: Tensor) -> bool:
    """False where the graph alone shows that the comparison fails."""
    known = constant_value(x), constant_value(y)
    if any(value is None for value in known):
        return True
    import numpy
    return bool(getattr(numpy, _COMPARISONS[symbol])(*known).all())


def assert_equal(x: Any, y: Any, data: Any = None, summarize: int | None = None,
                 message: str | None = None, name: str | None = None) -> Operation:
    """Assert that x == y element by element; they broadcast."""
    return _compared(name, "assert_equal", "==", ops.Equal, x, y, data, summarize, message)


def assert_none_equal(x: Any, y: Any, data: Any = None, summarize: int | None = None,
                      message: str | None = None, name: str | None = None) -> Operation:
    """Assert that x != y element by element; they broadcast."""
    return _compared(name, "assert_none_equal", "!=", ops.NotEqual, x, y, data, summarize, message)


def assert_less(x: Any, y: Any, data: Any = None, summarize: int | None = None,
                message: str | None = None, name: str | None = None) -> Operation:
    """Assert that x < y element by element; they broadcast."""
    return _compared(name, "assert_less", "<", ops.Less, x, y, data, summarize, message)


def assert_less_equal(x: Any, y: Any, data: Any = None, summarize: int | None = None,
                      message: str | None = None, name: str | None = None) -> Operation:
    """Assert that x <= y element by element; they broadcast."""
    return _compared(name, "assert_less_equal", "<=", ops.LessEqual, x, y, data, summarize, message)


def assert_greater(x: Any, y: Any, data: Any = None, summarize: int | None = None,
                   message: str | None = None, name: str | None = None) -> Operation:
    """Assert that x > y element by element; they broadcast."""
    return _compared(name, "assert_greater", ">", ops.Greater, x, y, data, summarize, message)


def assert_greater_equal(x: Any, y: Any, data: Any = None, summarize: int | None = None,
                         message: str | None = None, name: str | None = None) -> Operation:
    """Assert that x >= y element by element; they broadcast."""
    return _compared(name, "assert_greater_equal", ">=", ops.GreaterEqual, x, y, data, summarize,
                     message)


def assert_near(x: Any, y: Any, rtol: Any = None, atol: Any = None, data: Any = None,
                summarize: int | None = None, message: str | None = None,
                name: str | None = None) -> Operation:
    """Assert that |x - y| <= atol + rtol * |y| element by element; both tolerances are 10 times the
    dtype's spacing at 1 by default."""
    with scope_of(name, "assert_near", [x, y, rtol, atol, data]):
        x = convert_to_tensor(x)
        y = convert_to_tensor(y, x.dtype)
        if not (x.dtype.is_floating or x.dtype.is_complex):
            raise TypeError("assert_near() compares floating-point and complex numbers, not %r" % x)
        real = x.dtype.real_dtype
        spacing = 10.0 * _spacing(real)
        rtol = convert_to_tensor(spacing if rtol is None else rtol, real)
        atol = convert_to_tensor(spacing if atol is None else atol, real)
        size = ops.ComplexAbs if x.dtype.is_complex else ops.Abs
        condition = reduce_all(ops.LessEqual(size(x - y), atol + rtol * size(y)))
        if data is None:
            data = [message or "", "x and y not equal to tolerance rtol = ", rtol, "atol = ", atol,
                    "x (%s) = " % _label(x), x, "y (%s) = " % _label(y), y]
        return Assert(condition, data, summarize)


def _spacing(dtype: Any) -> float:
    digits = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
    return 2.0 ** -digits[dtype.name]


# --- One value ------------------------------------------------------------------------------------

def _signed(name: str | None, default: str, symbol: str, op: Callable, x: Any, data: Any,
            summarize: int | None, message: str | None) -> Operation:
    with scope_of(name, default, [x, data]):
        x = convert_to_tensor(x)
        if data is None:
            data = [message or "", "Condition x %s 0 did not hold element-wise:" % symbol,
                    "x (%s) = " % _label(x), x]
        zero = convert_to_tensor(0, x.dtype)
        condition = reduce_all(op(x, zero))
        return Assert(condition if _may_hold(symbol, x, zero) else False, data, summarize)


def assert_negative(x: Any, data: Any = None, summarize: int | None = None,
                    message: str | None = None, name: str | None = None) -> Operation:
    """Assert that x < 0 element by element."""
    return _signed(name, "assert_negative", "<", ops.Less, x, data, summarize, message)


def assert_positive(x: Any, data: Any = None, summarize: int | None = None,
                    message: str | None = None, name: str | None = None) -> Operation:
    """Assert that x > 0 element by element."""
    return _signed(name, "assert_positive", ">", ops.Greater, x, data, summarize, message)


def assert_non_negative(x: Any, data: Any = None, summarize: int | None = None,
                        message: str | None = None, name: str | None = None) -> Operation:
    """Assert that x >= 0 element by element."""
    return _signed(name, "assert_non_negative", ">=", ops.GreaterEqual, x, data, summarize, message)


def assert_non_positive(x: Any, data: Any = None, summarize: int | None = None,
                        message: str | None = None, name: str | None = None) -> Operation:
    """Assert that x <= 0 element by element."""
    return _signed(name, "assert_non_positive", "<=", ops.LessEqual, x, data, summarize, message)


# --- Ranks and types ------------------------------------------------------------------------------

def _ranked(name: str | None, default: str, x: Any, ranks: Any, needed: str, holds: Callable,
            holds_in_run: Callable, data: Any, summarize: int | None,
            message: str | None) -> Operation:
    """ranks: given, ints or int scalars. holds(ndims, *ranks) and holds_in_run(rank, *ranks)."""
    with scope_of(name, default, [x, data]) as scope:
        x = convert_to_tensor(x)
        tensors = [convert_to_tensor(rank, _core.int32) for rank in ranks]
        known = [constant_value(rank) for rank in tensors]
        for tensor in tensors:
            if tensor.shape.ndims not in (None, 0):
                raise ValueError("Rank must be a scalar, not %r" % tensor)
        if x.shape.ndims is not None and all(rank is not None for rank in known):
            numbers = [int(rank) for rank in known]
            if not holds(x.shape.ndims, *numbers):
                raise ValueError("%s.  Tensor %s must have rank %s %s.  Received rank %d, shape %s"
                                 % (message or "", _label(x), needed,
                                    " or ".join(map(str, numbers)), x.shape.ndims, x.shape))
            return ops.NoOp(name=scope)
        if data is None:
            data = [message or "", "Tensor %s must have rank %s" % (_label(x), needed), *tensors,
                    "Received shape: ", ops.Shape(x)]
        return Assert(holds_in_run(_rank(x), *tensors), data, summarize)


def assert_rank(x: Any, rank: Any, data: Any = None, summarize: int | None = None,
                message: str | None = None, name: str | None = None) -> Operation:
    """Assert that x has `rank` axes. Raises ValueError at once where it is known not to."""
    return _ranked(name, "assert_rank", x, [rank], "equal to", lambda n, r: n == r, ops.Equal,
                   data, summarize, message)


def assert_rank_at_least(x: Any, rank: Any, data: Any = None, summarize: int | None = None,
                         message: str | None = None, name: str | None = None) -> Operation:
    """Assert that x has `rank` axes or more. Raises ValueError at once where it is known not to."""
    return _ranked(name, "assert_rank_at_least", x, [rank], "at least", lambda n, r: n >= r,
                   ops.GreaterEqual, data, summarize, message)


def assert_rank_in(x: Any, ranks: Sequence[Any], data: Any = None, summarize: int | None = None,
                   message: str | None = None, name: str | None = None) -> Operation:
    """Assert that the number of x's axes is one of `ranks`. Raises ValueError at once where it is
    known not to be."""
    return _ranked(name, "assert_rank_in", x, list(ranks), "in", lambda n, *all: n in all,
                   lambda rank, *all: _one_of_them(rank, all), data, summarize, message)


def _one_of_them(value: Tensor, others: Any) -> Tensor:
    """Whether a scalar is one of others, scalars."""
    return ops.Any(ops.Equal(value, ops.Pack(list(others))), [0])


def assert_scalar(tensor: Any, name: str | None = None) -> Tensor:
    """`tensor` as a Tensor. Raises ValueError where it is known to be no scalar."""
    with scope_of(name, "assert_scalar", [tensor]):
        tensor = convert_to_tensor(tensor)
        if tensor.shape.ndims not in (None, 0):
            raise ValueError("Expected scalar shape for %s, saw shape: %s." % (_label(tensor),
                                                                               tensor.shape))
        return tensor


def assert_type(tensor: Any, tf_type: Any, message: str | None = None,
                name: str | None = None) -> Operation:
    """An operation that does nothing. Raises TypeError unless `tensor` has the dtype."""
    with scope_of(name, "assert_type", [tensor]) as scope:
        tensor, wanted = convert_to_tensor(tensor), _core.as_dtype(tf_type)
        if tensor.dtype != wanted:
            raise TypeError("%s  %s must be of type %s, not %s"
                            % (message or "", _label(tensor), wanted.name, tensor.dtype.name))
        return ops.NoOp(name=scope)


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Operation:
    """An operation that does nothing. Raises TypeError unless x is of integers."""
    with scope_of(name, "assert_integer", [x]) as scope:
        x = convert_to_tensor(x)
        if not x.dtype.is_integer:
            raise TypeError("%s  Expected \"x\" to be integer type.  Found: %s of dtype %s"
                            % (message or "", _label(x), x.dtype.name))
        return ops.NoOp(name=scope)


def assert_same_float_dtype(tensors: Sequence | None = None, dtype: Any = None) -> Any:
    """The floating dtype that the tensors, and `dtype`, have in common; float32 without any. Raises
    ValueError where they differ, or it is not floating."""
    wanted = None if dtype is None else _core.as_dtype(dtype)
    for value in tensors or []:
        tensor = convert_to_tensor(value)
        if wanted is not None and tensor.dtype != wanted:
            raise ValueError("Tensor %s: expected dtype %s, got %s"
                             % (_label(tensor), wanted.name, tensor.dtype.name))
        wanted = tensor.dtype
    wanted = wanted or _core.float32
    if not wanted.is_floating:
        raise ValueError("Expected floating point type, got %s." % wanted.name)
    return wanted


def assert_proper_iterable(values: Any) -> None:
    """Raises TypeError unless `values` is an iterable of things, no tensor, array, str or bytes."""
    tensors = (Tensor,) if not hasattr(values, "__array__") else (type(values),)
    if isinstance(values, (str, bytes, *tensors)) or not hasattr(values, "__iter__"):
        raise TypeError('Expected argument "values" to be a "proper" iterable, not %r' % (values,))


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether it is a Tensor of numbers."""
    return isinstance(tensor, Tensor) and (tensor.dtype.is_floating or tensor.dtype.is_integer
                                           or tensor.dtype.is_complex)


def _steps(name: str | None, default: str, op: Callable, x: Any) -> Tensor:
    with scope_of(name, default, [x]):
        flat = ops.Reshape(convert_to_tensor(x), [-1])
        return reduce_all(op(flat[:-1], flat[1:]))


def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Whether no element of x, in the order of rows, is less than the one before; a bool scalar."""
    return _steps(name, "is_non_decreasing", ops.LessEqual, x)


def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Whether each element of x, in the order of rows, is more than the one before; a bool
    scalar."""
    return _steps(name, "is_strictly_increasing", ops.Less, x)


__all__ = ["Assert", "Print", "assert_equal", "assert_none_equal", "assert_less",
           "assert_less_equal", "assert_greater", "assert_greater_equal", "assert_near",
           "assert_negative", "assert_positive", "assert_non_negative", "assert_non_positive",
           "assert_rank", "assert_rank_at_least", "assert_rank_in", "assert_scalar", "assert_type",
           "assert_integer", "assert_same_float_dtype", "assert_proper_iterable",
           "is_numeric_tensor", "is_non_decreasing", "is_strictly_increasing"]
