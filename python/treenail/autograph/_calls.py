# SPDX-License-Identifier: Apache-2.0
"""What a call in converted code calls: the program's own functions converted, some of Python's
functions as ones that take tensors, all others as they are."""

from __future__ import annotations

import builtins
import functools
import os
import sysconfig
from types import (BuiltinFunctionType, BuiltinMethodType, FunctionType,
                   MethodType)

from treenail.autograph import _builtins
from treenail.autograph._lists import is_container
from treenail.autograph._places import changing, mark_of
from treenail.autograph._source import NoSource
from treenail.autograph._scopes import CHANGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

KEPT = "__treenail_do_not_convert__"
# Functions of the package that trace functions which they are given.
_TRACING = ("cond", "case", "switch_case", "while_loop", "map_fn", "foldl", "foldr", "scan")
_replacements: dict = {}  # {id: what stands for a function of Python's or of the package's}


def callee(function: Any) -> Any:
    """What is called for `function`."""
    kind = type(function)
    if kind is FunctionType:
        return converted_or_own(function)
    if kind is MethodType:
        return _method(function)
    if kind is BuiltinMethodType and is_container(function.__self__):
        if function.__name__ in CHANGES:
            changing("an object's %s, by %s()," % (type(function.__self__).__name__,
                                                   function.__name__))
        return function
    if kind is functools.partial:
        return functools.partial(callee(function.func), *function.args, **function.keywords)
    if not _replacements:
        _fill_replacements()
    found = _replacements.get(id(function))
    if found is not None:
        return found
    return function if kind is type else _instance(function, kind)


def own_callee(function: Any) -> Any:
    """What is called where calls are not converted: Python's functions alone take tensors."""
    return callee(function) if isinstance(function, (type, BuiltinFunctionType)) else function


def _method(method: Any) -> Any:
    function = method.__func__
    if type(function) is not FunctionType:
        return method
    found = converted_or_own(function)
    return method if found is function else MethodType(found, method.__self__)


def _instance(value: Any, kind: type) -> Any:
    """An object that a class of the program's makes callable."""
    call = getattr(kind, "__call__", None)
    if type(call) is FunctionType and not isinstance(value, type):
        found = converted_or_own(call)
        if found is not call:
            return MethodType(found, value)
    return value


def converted_or_own(function: Callable, asked_for: bool = False) -> Callable:
    """The function converted; itself where it is a library's, is to be kept, or has no source.
    asked_for: by the program, so that one of an installed package is meant, too."""
    code = function.__code__  # type: ignore[attr-defined]
    if mark_of(code) is not None or hasattr(function, KEPT) or is_pythons(code.co_filename) or (
            not asked_for and is_installed(code.co_filename)):
        return function
    try:
        from treenail.autograph import _helpers
        from treenail.autograph._conversion import converted_function
        return converted_function(function, _helpers)
    except NoSource:
        return function


@functools.lru_cache(maxsize=4096)
def is_installed(file: str) -> bool:
    """Whether a file is of an installed package."""
    parts = os.path.abspath(file).split(os.sep)
    return "site-packages" in parts or "dist-packages" in parts


@functools.lru_cache(maxsize=4096)
def is_pythons(file: str) -> bool:
    """Whether a file is of Python's own library or of this package."""
    if file.startswith("<frozen"):
        return True
    return not is_installed(file) and os.path.abspath(file).startswith(_library_folders()) \
        or os.path.abspath(file).startswith(_package())


@functools.lru_cache(maxsize=1)
def _library_folders() -> tuple:
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    return tuple(os.path.abspath(folder) + os.sep for folder in folders if folder)


def _package() -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _fill_replacements() -> None:
    import treenail
    for name, function in _builtins.REPLACEMENTS.items():
        _replacements[id(getattr(builtins, name))] = function
    _replacements[id(treenail.stack)] = _builtins.stack_of(treenail.stack)
    _replacements[id(treenail.concat)] = _builtins.concat_of(treenail.concat)
    for name in _TRACING:
        function = getattr(treenail, name)
        _replacements[id(function)] = _with_converted(function)


def _with_converted(function: Callable) -> Callable:
    """The function, the program's functions among its arguments converted."""
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*[_argument(value) for value in args],
                        **{name: _argument(value) for name, value in kwargs.items()})
    return call


def _argument(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_argument(item) for item in value)
    if isinstance(value, dict):
        return {name: _argument(item) for name, item in value.items()}
    return callee(value) if type(value) in (FunctionType, MethodType) else value
