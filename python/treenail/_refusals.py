# SPDX-License-Identifier: Apache-2.0
"""The border of the package: who calls a public function or method wrongly is told which one it was,
and which arguments it was given where the message names none of its parameters.

Functions inside say what is wrong with a value and what is needed; few of them know how the value
was called by whoever gave it, and Python's own messages ("'int' object is not iterable") never do.
So each public module hands its functions over here once, as its last act. Class, traceback and the
object itself of an exception stay; its text is completed on the way out, by the outermost function
of the package. What a program's own code raises, an activation or a subclass, is left as it is.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Callable, Iterator

# The methods besides those without an underscore.
_METHODS = ("__init__", "__call__", "__enter__", "__getitem__", "__setitem__")
_replaced: dict = {}  # {id of a function: (the function, what is public)}


def name_in_refusals(namespace: dict) -> None:
    """Completes what the functions and classes of a public module raise, those it has by now of
    its __all__. A function is replaced there and where it was defined: it stays one object."""
    from sys import modules
    homes = set()
    for name in namespace["__all__"]:
        value = namespace.get(name)
        if public(value) is not value:
            namespace[name] = public(value)
            homes.add(value.__module__)
    for home in homes:
        _replace_own(vars(modules[home]))


def public(value: Any) -> Any:
    """What stands for a function outside; anything else itself, methods of classes changed."""
    if isinstance(value, type) and not issubclass(value, BaseException):
        _complete_methods(value)
    return _public(value) if type(value) is _Function else value


def _public(function: Callable) -> Callable:
    known = _replaced.get(id(function))
    if known is None:
        made = _completed(function, function.__qualname__)
        _replaced[id(function)] = _replaced[id(made)] = known = (function, made)
    return known[1]


def _replace_own(namespace: dict) -> None:
    """A module's own functions, by all the names that it has for them."""
    for name, value in list(namespace.items()):
        if type(value) is _Function and value.__module__ == namespace["__name__"]:
            namespace[name] = _replaced.get(id(value), (value, value))[1]


def _complete_methods(cls: type) -> None:
    for kind in cls.__mro__:
        if kind.__module__.partition(".")[0] != "treenail" or id(kind) in _replaced:
            continue
        _replaced[id(kind)] = (kind, kind)
        for name, value in list(vars(kind).items()):
            if type(value) is _Function and (name in _METHODS or not name.startswith("_")):
                setattr(kind, name, _completed(value, None))


def _completed(function: Callable, called: str | None) -> Callable:
    """called: None for a method, which is named by the class of its instance."""
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            _complete(error, called, function, args, kwargs)
            raise
    vars(call).update(vars(function), __wrapped__=function)
    call.__name__, call.__qualname__ = function.__name__, function.__qualname__
    call.__module__, call.__doc__ = function.__module__, function.__doc__
    return call


_Function = type(_completed)


def _complete(error: Exception, called: str | None, function: Callable, args: tuple,
              kwargs: dict) -> None:
    from treenail.errors import OpError
    text = _own_text(error, OpError)
    if text is None or _through_program(error.__traceback__):
        return
    if called is None:
        instance, args = args[0], args[1:]
        kind = type(instance).__name__
        own = function.__name__
        called = kind if own in ("__init__", "__enter__") else "%s.%s" % (kind, own)
    if not text.startswith(called + "("):
        text = "%s(): %s%s" % (called, text, _given(text, function, args, kwargs))
    if isinstance(error, OpError):
        error._message = text
    error.args = (text,)


def _own_text(error: Any, op_error: type) -> str | None:
    """What was said where the error was raised; None where nothing is to be added: an operation is
    named, or the class makes its own text."""
    if isinstance(error, op_error):
        if error.op is not None or error.message.startswith("["):
            return None
    elif type(error) not in (TypeError, ValueError, NotImplementedError):
        return None
    if len(error.args) != 1 or not isinstance(error.args[0], str):
        return None
    return vars(error).setdefault("_first_text", error.args[0])


def _through_program(traceback: TracebackType | None) -> bool:
    """Whether code that is neither the package's nor a library's below it had a part in it: either
    it raised, or a function that it called was named already."""
    from sys import modules
    libraries = getattr(modules["sys"], "stdlib_module_names", ())
    while traceback is not None:
        root = traceback.tb_frame.f_globals.get("__name__", "").partition(".")[0]
        if root not in ("treenail", "numpy") and root not in libraries:
            return True
        traceback = traceback.tb_next
    return False


def _given(text: str, function: Callable, args: tuple, kwargs: dict) -> str:
    """" (given: axis='a')", unless the text names a parameter."""
    import re
    code = function.__code__
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    for name in names:
        # Short ones are words of sentences, too.
        word = r"\b%s\b" if len(name) > 2 else r"['\"`]%s['\"`]|\b%s must\b" % (name, "%s")
        if name != "self" and re.search(word.replace("%s", re.escape(name)), text):
            return ""
    first = 1 if names[:1] == ("self",) else 0
    shown = [*zip(names[first:code.co_argcount], args), *kwargs.items()]
    return " (given: %s)" % ", ".join("%s=%s" % (n, _shown(v)) for n, v in shown) if shown else ""


def _shown(value: Any) -> str:
    """A value in a line of at most 60 characters."""
    import reprlib
    if type(value).__module__ == "numpy" and getattr(value, "ndim", 0):
        return "array of %s, shape %s" % (value.dtype, list(value.shape))
    try:
        text = " ".join(reprlib.repr(value).split())
    except Exception:  # a repr may do anything
        text = "a %s" % type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."
