# SPDX-License-Identifier: Apache-2.0
"""The border of the package: who calls a public function or method wrongly is told which one it
was, and what it was given where the message does not show it.

Functions inside say what is wrong with a value and what is needed; few of them know how the value
was called by whoever gave it, and Python's own messages ("'int' object is not iterable") never do.
So each public module hands its functions over here once, as its last act. An exception's class and
traceback stay; its text is completed on the way out, by the outermost function of the package. What
a program's own code raises, an activation or a subclass, is left as it is.
"""

from __future__ import annotations

from treenail import _treenail as _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Callable

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
        made = completed(function, function.__qualname__)
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
            if name.startswith("_") and name not in _METHODS:
                continue
            if type(value) is _Function:
                setattr(kind, name, completed(value, None))
            elif isinstance(value, classmethod):
                setattr(kind, name, classmethod(completed(value.__func__, None)))
            elif isinstance(value, staticmethod):
                function = value.__func__
                setattr(kind, name, staticmethod(completed(function, function.__qualname__)))


def at_once(op: str, form: str) -> Callable:
    """A decorator: with immediate execution, calls of the function in a plain form are one op.

    form: "inputs", the positional arguments are the op's inputs; "matrices", the same of two
    matrices; "reduction", they are a tensor, axes or None for all, and whether these are kept.
    """
    def mark(function: Any) -> Any:
        function._at_once = op, form
        return function
    return mark


def completed(function: Any, called: str | None) -> Any:
    """called: None for a method, which is named by its class, or that of its instance."""
    call = _core.PublicFunction(function, called, *getattr(function, "_at_once", (None, None)))
    vars(call).update(vars(function), __wrapped__=function, __name__=function.__name__,
                      __qualname__=function.__qualname__, __module__=function.__module__,
                      __doc__=function.__doc__)
    return call


_Function = type(completed)


def complete_refusal(error: Exception, called: str | None, function: Callable, args: tuple,
                     kwargs: dict) -> Exception:
    """Called by the compiled module with what a public function raised: what is raised instead."""
    if _through_program(error.__traceback__):
        return error
    replacement = _documented(error)
    _complete(replacement, called, function, args, kwargs)
    if replacement is not error:
        replacement.__cause__ = error
    return replacement


def _documented(error: Exception) -> Exception:
    """`error`, or for what arithmetic with a wrong value gave a TypeError or ValueError."""
    kind: type = type(error)
    if isinstance(error, ArithmeticError):
        kind = ValueError
    elif isinstance(error, TypeError) and kind.__module__.startswith("numpy"):
        kind = TypeError
    return error if kind is type(error) else kind(str(error)).with_traceback(error.__traceback__)


def _complete(error: Exception, called: str | None, function: Callable, args: tuple,
              kwargs: dict) -> None:
    from treenail.errors import OpError
    text = _own_text(error, OpError)
    if text is None:
        return
    if called is None:
        instance, args = args[0], args[1:]
        kind = (instance if isinstance(instance, type) else type(instance)).__name__
        own = function.__name__
        called = kind if own in ("__init__", "__enter__") else "%s.%s" % (kind, own)
    if error.__traceback__ is not None:  # else it is Python's own word about the call
        text += _given(text, function, args, kwargs)
    if not text.startswith(called + "("):
        text = "%s(): %s" % (called, text)
    if isinstance(error, OpError):
        error._message = text
    error.args = (text,)


def _own_text(error: Any, op_error: type) -> str | None:
    """What was said where the error was raised; None where nothing is to be added: an operation is
    named, or the class makes its own text."""
    if isinstance(error, op_error):
        if error.op is not None or error.message.startswith("[") or (
                error.message.endswith("]") and " [Op:" in error.message):
            return None
    elif type(error) not in (TypeError, ValueError, NotImplementedError, KeyError, IndexError):
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
    """" (given: axis: int='a')", unless the text names a parameter and shows its value."""
    code = function.__code__
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    first = 1 if names[:1] in (("self",), ("cls",)) else 0
    given = [(n, _shown(v))
             for n, v in [*zip(names[first:code.co_argcount], args), *kwargs.items()]]
    if not given or any(_names(text, name) and shown[:8] in text for name, shown in given):
        return ""
    return " (given: %s)" % ", ".join("%s=%s" % (_declared(function, name), shown)
                                      for name, shown in given)


def _names(text: str, parameter: str) -> bool:
    """As a parameter: many are words of sentences, too."""
    import re
    return re.search(r"['\"`]{0}['\"`]|^{0}\b|\b{0}([:=]| (must|should|is|has|cannot)\b)".format(
        re.escape(parameter)), text) is not None


def _declared(function: Callable, name: str) -> str:
    """A parameter as in the signature: "axis: int | None"."""
    declared = function.__annotations__.get(name, "Any")
    return name if declared == "Any" else "%s: %s" % (name, declared)


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
