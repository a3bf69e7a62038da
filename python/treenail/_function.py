# SPDX-License-Identifier: Apache-2.0
"""tn.function: a Python function traced into a graph, once for each kind of arguments."""

from __future__ import annotations

import functools
import threading
import weakref

from treenail import _treenail as _core
from treenail._function_arguments import Arguments, TensorSpec
from treenail._function_trace import Trace
from treenail._nest import flatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

_MANY_TRACES = 5


def function(func: Callable | None = None, input_signature: Sequence | None = None,
             autograph: bool = True, experimental_autograph_options: Any = None,
             experimental_relax_shapes: bool = False) -> Any:
    """Makes a Python function one whose operations are traced into a graph, which its calls run.

    It is traced at the first call, and again for arguments of another kind: other dtypes or shapes
    of tensors, other Python values. Arrays are tensors, numbers are Python values. Operations with
    side effects run in the order in which they stand, also those whose results nobody uses.
    Python's own effects happen when it is traced. Variables may be made in the first trace only.

    input_signature: a list of TensorSpec, one for each argument: there is one trace, and arguments
    are converted. experimental_relax_shapes: where only shapes differ, the next trace leaves open
    the extents that do. autograph: Python's if, while and for on tensors are converted. Used with
    arguments, `@tn.function(autograph=False)`, it is a decorator.

    Raises TypeError for what is not callable and for a signature of another form; calls raise
    ValueError for arguments that do not fit the signature and for variables made in a later trace.
    """
    if func is None:
        return functools.partial(function, input_signature=input_signature, autograph=autograph,
                                 experimental_relax_shapes=experimental_relax_shapes)
    if not callable(func):
        raise TypeError("tn.function needs a function, not %r" % (func,))
    return Function(func, input_signature, autograph, experimental_relax_shapes)


class Function:
    """What tn.function gives."""

    def __init__(self, python_function: Callable, input_signature: Sequence | None = None,
                 autograph: bool = True, relax_shapes: bool = False,
                 recompute: bool = False) -> None:
        self._recompute = recompute
        self._python_function, self._autograph = python_function, autograph
        self._relax = relax_shapes
        self._signature = None if input_signature is None else tuple(input_signature)
        if self._signature is not None and not all(
                isinstance(s, TensorSpec) for s in flatten(list(self._signature))):
            raise TypeError("input_signature must be a possibly nested sequence of TensorSpec "
                            "objects, not %r" % (input_signature,))
        name = getattr(python_function, "__name__", type(python_function).__name__)
        self._name = "".join(c for c in name if c.isalnum() or c in "_.") or "function"
        self._traces: dict = {}
        self._tracing: set = set()
        self._lock = threading.RLock()
        self._shapes_seen: dict = {}
        self._methods: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        functools.update_wrapper(self, python_function, updated=())

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        bound = self._methods.get(instance)
        if bound is None:
            held = weakref.ref(instance)
            method = self._python_function

            def call(*args: Any, **kwargs: Any) -> Any:
                return method(held(), *args, **kwargs)
            functools.update_wrapper(call, method, updated=())
            bound = self._methods[instance] = Function(call, self._signature, self._autograph,
                                                       self._relax, self._recompute)
        return bound

    @property
    def python_function(self) -> Callable:
        """The Python function."""
        return self._python_function

    def __repr__(self) -> str:
        return "<tn.function %s, traced %d times>" % (
            self._name, len({id(t) for t in self._traces.values()}))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the trace for arguments of this kind, made where there is none."""
        key = None if kwargs or self._signature is not None or self._relax \
            else _core.quick_key(args)
        trace = None if key is None else self._traces.get(key)
        if trace is not None:
            return trace.call_at_once(args)
        arguments = Arguments(self, args, kwargs)
        trace = self._trace_for(arguments)
        if key is not None and arguments.plain(args):
            self._traces[key] = trace
        return trace.call(arguments.tensors)

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> Any:
        """The trace for such arguments; a TensorSpec stands for any tensor that fits it."""
        return self._trace_for(Arguments(self, args, kwargs))

    def _trace_for(self, arguments: Arguments) -> Trace:
        with self._lock:
            key = arguments.key()
            found = self._traces.get(key)
            if found is not None and found.valid():
                return found
            if self._relax:
                arguments.relax(self._shapes_seen)
                key = arguments.key()
                found = self._traces.get(key)
                if found is not None:
                    return found
            kind = tuple(arguments.parts())
            if kind in self._tracing:
                raise RuntimeError("%s calls itself with arguments of the same kind while it is "
                                   "traced, without an end: use tn.while_loop, or Python values "
                                   "that change from call to call" % self._name)
            self._tracing.add(kind)
            try:
                trace = Trace(self._name, self._converted(), arguments, not self._traces,
                              self._recompute)
            finally:
                self._tracing.discard(kind)
            self._warn_of_traces(key)
            self._traces[key] = trace
            return trace

    def _converted(self) -> Callable:
        if not self._autograph:
            return self._python_function
        from treenail.autograph import _entry
        return _entry.converted(self._python_function)

    def _warn_of_traces(self, key: Any) -> None:
        distinct = len({id(t) for t in self._traces.values()})
        if distinct and distinct % _MANY_TRACES == 0:
            import warnings
            last = next(reversed([k for k in self._traces if isinstance(k, tuple)]), None)
            warnings.warn("tn.function %s was traced %d times, which takes time and memory: %s. "
                          "Pass tensors in place of Python numbers, or state input_signature, or "
                          "experimental_relax_shapes=True" % (self._name, distinct + 1,
                                                              _difference(last, key)),
                          stacklevel=4)


def _difference(old: Any, new: Any) -> str:
    if old is None:
        return "the last time for %s" % (new,)
    for before, now in zip(old, new):
        if before != now:
            return "the last time since an argument was %s and then %s" % (before, now)
    return "the last time for other arguments"


__all__ = ["TensorSpec", "function"]
