# SPDX-License-Identifier: Apache-2.0
"""Python functions as operations: tn.py_func and tn.numpy_function."""

from __future__ import annotations

import itertools
import threading
import weakref

from treenail._convert import convert_to_tensor, scope_of
from treenail._framework import executing_eagerly, get_default_graph
from treenail._ops import ops
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence


class _Function:
    """A function that graphs hold, and what its token names."""

    def __init__(self, function: Callable) -> None:
        self.function = function


_tokens: weakref.WeakValueDictionary[str, _Function] = weakref.WeakValueDictionary()
_numbers = itertools.count()
_lock = threading.Lock()


def _code_of(error: BaseException) -> int:
    """The canonical code that says most of what the exception does, as in TensorFlow 1."""
    from treenail import errors
    if isinstance(error, errors.OpError):
        return error.error_code
    for kind, code in ((StopIteration, errors.OUT_OF_RANGE), (TypeError, errors.INVALID_ARGUMENT),
                       (ValueError, errors.INVALID_ARGUMENT),
                       (MemoryError, errors.RESOURCE_EXHAUSTED),
                       (NotImplementedError, errors.UNIMPLEMENTED)):
        if isinstance(error, kind):
            return code
    return errors.UNKNOWN


def _failure(error: BaseException) -> tuple[int, str]:
    import traceback
    own = error.__traceback__.tb_next if error.__traceback__ is not None else None
    text = "".join(traceback.format_exception(type(error), error, own)).rstrip()
    return _code_of(error), "%s: %s\n%s" % (type(error).__name__, error, text)


def _values(result: Any) -> list:
    if result is None:
        return []
    return list(result) if isinstance(result, (tuple, list)) else [result]


def call(token: str, arguments: list) -> tuple:
    """Calls the function of that token: (its values, None), or (None, (code, text)) of what it
    raised."""
    with _lock:
        held = _tokens.get(token)
    if held is None:
        from treenail.errors import NOT_FOUND
        return None, (NOT_FOUND, "there is no function %r in this process: a graph that was loaded "
                      "has the name of the function alone" % token)
    try:
        return _values(held.function(*arguments)), None
    except BaseException as error:  # of the user's function: the run ends with it
        return None, _failure(error)


def py_func(func: Callable, inp: Sequence[Any], Tout: Any,  # noqa: N803
            stateful: bool = True, name: str | None = None) -> Any:
    """The values that a Python function gives, as tensors of unknown shape.

    func: called with the values of `inp`, arrays and NumPy scalars of its own to keep or change;
    it gives a value, a list or tuple of values, or None. inp: a list of tensors, or what becomes
    such. Tout: the dtype of the value, or a list of dtypes; the result has its structure. An array
    must have the dtype that is stated, a plain number takes it. stateful: whether calls with equal
    arguments may give different values.

    The function runs in this process, on a thread of its own with the GIL, and lives as long as
    the graph. A graph that is saved has its name alone. It has no gradient, unless
    Graph.gradient_override_map gives "PyFunc" one.

    What the function raises ends the run with its traceback: ValueError and TypeError as
    InvalidArgumentError, StopIteration as OutOfRangeError, MemoryError as ResourceExhaustedError,
    NotImplementedError as UnimplementedError, errors of tn.errors as they are, all else as
    UnknownError. InvalidArgumentError for another number of values or other dtypes.
    """
    if not callable(func):
        raise ValueError("func must be callable, but got %r of type %r"
                         % (func, type(func).__name__))
    if not isinstance(inp, (list, tuple)):
        raise TypeError("inp must be a list of tensors, not %r" % (inp,))
    single = not isinstance(Tout, (list, tuple))
    held = _Function(func)
    with _lock:
        token = "pyfunc_%d" % next(_numbers)
        _tokens[token] = held
    with scope_of(name, "PyFunc", list(inp)) as scope:
        values = [convert_to_tensor(value) for value in inp]
        op = ops.PyFunc if stateful else ops.PyFuncStateless
        outputs = op(values, token=token, Tout=[Tout] if single else list(Tout), name=scope)
    if executing_eagerly():
        return outputs[0] if single else outputs
    made = outputs if isinstance(outputs, list) else [outputs]
    graph = made[0].graph if made and isinstance(made[0], Tensor) else get_default_graph()
    graph._library._py_functions.append(held)  # a body is gone once it is traced
    return outputs[0] if single else outputs


def numpy_function(func: Callable, inp: Sequence[Any], Tout: Any,  # noqa: N803
                   name: str | None = None) -> Any:
    """As tn.py_func with stateful=True."""
    return py_func(func, inp, Tout, True, name)


__all__ = ["py_func", "numpy_function"]
