# SPDX-License-Identifier: Apache-2.0
"""Where conversion begins: a function that a program, or tn.function, hands over."""

from __future__ import annotations

import ast
import functools
import types

from treenail.autograph import _calls, _helpers
from treenail.autograph._conversion import converted_function, converted_tree
from treenail.autograph._effects import after_effects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


_DONE = "__treenail_converted__"


def converted(function: Callable) -> Callable:
    """The function as one whose control flow may depend on tensors; itself where there is nothing
    to convert (a library's, marked by do_not_convert, without source, no function of Python's).

    What the call does besides its results (print, assert, assignments), happens in the program's
    order and before the results are there.
    """
    found = function
    if isinstance(function, types.FunctionType):
        found = _calls.converted_or_own(function, asked_for=True)
    elif isinstance(function, types.MethodType) and isinstance(function.__func__,
                                                               types.FunctionType):
        inner = _calls.converted_or_own(function.__func__, asked_for=True)
        if inner is not function.__func__:
            found = types.MethodType(inner, function.__self__)
    else:
        found = _calls.callee(function)
    return function if found is function else _running_effects(function, found)


def _running_effects(original: Callable, found: Callable) -> Callable:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return after_effects(found, args, kwargs)
    setattr(call, _DONE, True)
    return call


def to_graph(entity: Callable, recursive: bool = True) -> Callable:
    """As tn.autograph.to_graph."""
    if hasattr(entity, _DONE):
        return entity
    function = _function_of(entity)
    helpers: Any = _helpers
    if not recursive:
        helpers = types.SimpleNamespace(**{**vars(_helpers), "callee": _calls.own_callee})
    found = converted_function(function, helpers)
    if isinstance(entity, types.MethodType):
        found = types.MethodType(found, entity.__self__)
    return _running_effects(entity, found)


def to_code(entity: Callable) -> str:
    """As tn.autograph.to_code."""
    if not hasattr(ast, "unparse"):
        raise NotImplementedError("tn.autograph.to_code needs Python 3.9 or later")
    return ast.unparse(ast.fix_missing_locations(converted_tree(_function_of(entity)))) + "\n"


def _function_of(entity: Any) -> Callable:
    if isinstance(entity, type):
        raise NotImplementedError("entity must be a function or a method, not the class %s: "
                                  "convert its methods" % entity.__name__)
    function = entity.__func__ if isinstance(entity, types.MethodType) else entity
    if hasattr(function, _DONE):
        function = function.__wrapped__
    if not isinstance(function, types.FunctionType):
        raise TypeError("entity must be a function or a method of Python's, not %r" % (entity,))
    return function


def do_not_convert(func: Callable) -> Callable:
    """As tn.autograph.do_not_convert."""
    if not callable(func):
        raise TypeError("func must be callable, not %r" % (func,))
    function: Any = func.__func__ if isinstance(func, types.MethodType) else func
    if isinstance(function, types.FunctionType):
        setattr(function, _calls.KEPT, True)
        return func

    def kept(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)
    functools.update_wrapper(kept, func)
    setattr(kept, _calls.KEPT, True)
    return kept
