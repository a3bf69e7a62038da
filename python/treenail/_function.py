# SPDX-License-Identifier: Apache-2.0
"""tn.function: a Python function traced into a graph, once for each kind of arguments."""

from __future__ import annotations

import functools
import threading
import weakref

from treenail import _treenail as _core
from treenail._checks import having
from treenail._convert import IndexedSlices, convert_to_tensor, placeholder
from treenail._framework import control_dependencies, executing_eagerly, get_default_graph
from treenail._function_calls import GraphCall
from treenail._function_graph import FunctionGraph, Traced, assembled
from treenail._nest import flatten, is_nested
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._treenail import Operation, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

_MANY_TRACES = 5


class TensorSpec:
    """What a tensor argument of tn.function must be: its shape, None where any extent does, and its
    dtype."""

    __slots__ = ("_shape", "_dtype", "_name")

    def __init__(self, shape: Any, dtype: Any = _core.float32, name: str | None = None) -> None:
        self._shape, self._dtype, self._name = TensorShape(shape), _core.as_dtype(dtype), name

    @property
    def shape(self) -> TensorShape:
        """The shape."""
        return self._shape

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self._dtype

    @property
    def name(self) -> str | None:
        """The argument's name, or None."""
        return self._name

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """The spec of a tensor."""
        having(having(tensor, "dtype", "tensor", "a Tensor"), "shape", "tensor", "a Tensor")
        return cls(tensor.shape, tensor.dtype, name)

    def is_compatible_with(self, value: Any) -> bool:
        """Whether the tensor, or spec, has this dtype and such a shape."""
        having(value, "dtype", "value", "a Tensor or a TensorSpec")
        return self._dtype == value.dtype and self._shape.is_compatible_with(value.shape)

    def __eq__(self, other: Any) -> bool:
        return (isinstance(other, TensorSpec) and self._dtype == other._dtype
                and str(self._shape) == str(other._shape))

    def __hash__(self) -> int:
        return hash((str(self._shape), self._dtype.name))

    def __repr__(self) -> str:
        return "TensorSpec(shape=%s, dtype=%s)" % (self._shape, self._dtype.name)


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
        arguments = _Arguments(self, args, kwargs)
        trace = self._trace_for(arguments)
        if key is not None and arguments.plain(args):
            self._traces[key] = trace
        return trace.call(arguments.tensors)

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> Any:
        """The trace for such arguments; a TensorSpec stands for any tensor that fits it."""
        return self._trace_for(_Arguments(self, args, kwargs))

    def _trace_for(self, arguments: _Arguments) -> Trace:
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


class _Arguments:
    """The arguments of a call: tensors in order, and what else the trace depends on."""

    def __init__(self, function: Function, args: tuple, kwargs: dict) -> None:
        self._function = function
        if kwargs or function._signature is not None:
            args, kwargs = self._positional(args, kwargs)
        if function._signature is not None:
            args = self._to_signature(args)
        self.tensors: list = []
        self.specs: list = []
        self._parts: list = []
        self.structure = (self._taken(list(args)), {k: self._taken(kwargs[k])
                                                    for k in sorted(kwargs)})

    def _positional(self, args: tuple, kwargs: dict) -> tuple:
        from inspect import signature
        try:
            bound = signature(self._function._python_function).bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError("%s(): %s" % (self._function._name, error)) from None
        return bound.args, bound.kwargs

    def _to_signature(self, args: tuple) -> tuple:
        wanted = self._function._signature
        if len(args) != len(wanted):
            raise ValueError("%s takes %d arguments by its input_signature, %d were given"
                             % (self._function._name, len(wanted), len(args)))

        def fitting(spec: TensorSpec, value: Any) -> Any:
            if isinstance(value, TensorSpec):
                tensor = value
            else:
                tensor = convert_to_tensor(value, None if hasattr(value, "dtype") else spec.dtype)
            if not spec.is_compatible_with(tensor):
                raise ValueError("Python inputs incompatible with input_signature of %s: %r does "
                                 "not fit %r" % (self._function._name, value, spec))
            return _Fitted(tensor, spec)
        return tuple(self._each(fitting, spec, value) for spec, value in zip(wanted, args))

    def _each(self, fitting: Callable, spec: Any, value: Any) -> Any:
        if isinstance(spec, TensorSpec):
            return fitting(spec, value)
        if type(spec) is not type(value) or len(spec) != len(value) or (
                isinstance(spec, dict) and sorted(spec) != sorted(value)):
            raise ValueError("Structure of Python function inputs does not match input_signature "
                             "of %s: %r, not %r" % (self._function._name, spec, value))
        if isinstance(spec, dict):
            return {k: self._each(fitting, spec[k], value[k]) for k in spec}
        parts = [self._each(fitting, s, v) for s, v in zip(spec, value)]
        return type(spec)(*parts) if hasattr(spec, "_fields") else type(spec)(parts)

    def _taken(self, value: Any) -> Any:
        """The value, tensors in it replaced by their numbers; notes what the key depends on."""
        if is_nested(value):
            self._parts.append((type(value).__name__, len(value),
                                tuple(sorted(value)) if isinstance(value, dict) else None))
            return map_structure_once(self._taken, value)
        spec = None
        if isinstance(value, _Fitted):
            value, spec = value.tensor, value.spec
        elif isinstance(value, TensorSpec):
            spec = value
        elif type(value).__module__ == "numpy":
            value = convert_to_tensor(value)
        if isinstance(value, IndexedSlices):
            value = convert_to_tensor(value)
        if isinstance(value, Tensor) or spec is not None:
            spec = spec or TensorSpec(value.shape, value.dtype)
            self.tensors.append(value)
            self.specs.append(spec)
            self._parts.append(("tensor", spec.dtype.name, str(spec.shape)))
            return _Place(len(self.tensors) - 1)
        self._parts.append(_as_key(value))
        return value

    def key(self) -> tuple:
        graph = get_default_graph()
        around = () if graph._immediate else (_as_key(graph),)
        return (*around, graph._device, *self._parts)

    def parts(self) -> list:
        """What tells this kind of arguments from others, wherever they are given."""
        return self._parts

    def relax(self, seen: dict) -> None:
        """Leaves open the extents that differed from the last time."""
        kinds = tuple((p[0], p[1]) if p[0] == "tensor" else p for p in self._parts)
        shapes = [s.shape for s in self.specs]
        before = seen.get(kinds)
        if before is not None:
            for i, (old, spec) in enumerate(zip(before, self.specs)):
                self.specs[i] = TensorSpec(_common(old, spec.shape), spec.dtype)
        seen[kinds] = [s.shape for s in self.specs] if before is not None else shapes
        numbers = iter(range(len(self.specs)))
        self._parts = [("tensor", self.specs[n].dtype.name, str(self.specs[n].shape))
                       if p[0] == "tensor" and (n := next(numbers)) >= 0 else p
                       for p in self._parts]

    def plain(self, args: tuple) -> bool:
        """Whether the tensors are those among `args`, in order."""
        given = [a for a in args if isinstance(a, Tensor)]
        return len(given) == len(self.tensors) and all(
            a is b for a, b in zip(given, self.tensors))


class _Place:
    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class _Fitted:
    __slots__ = ("tensor", "spec")

    def __init__(self, tensor: Any, spec: TensorSpec) -> None:
        self.tensor, self.spec = tensor, spec


def map_structure_once(function: Callable, value: Any) -> Any:
    """The same tuple, list or dictionary of function(part)."""
    if isinstance(value, dict):
        return {key: function(value[key]) for key in sorted(value)}
    if hasattr(value, "_fields"):
        return type(value)(*[function(part) for part in value])
    return type(value)([function(part) for part in value])


def _common(a: TensorShape, b: TensorShape) -> TensorShape:
    if a.ndims is None or a.ndims != b.ndims:
        return TensorShape(None)
    return TensorShape([m if m == n else None for m, n in zip(a.as_list(), b.as_list())])


def _as_key(value: Any) -> tuple:
    """What tells this Python value from others: itself, or of an object that it is that one."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, _core.DType)):
        return type(value).__name__, value
    try:
        return "object", id(value), weakref.ref(value)
    except TypeError:
        return "object", id(value), value


class Trace:
    """A function traced for one kind of arguments."""

    def __init__(self, name: str, function: Callable, arguments: _Arguments, first: bool,
                 recompute: bool = False) -> None:
        self._name = name
        self._outer = weakref.ref(get_default_graph())
        self._specs = list(arguments.specs)
        structure = arguments.structure

        def made(graph: FunctionGraph) -> list:
            graph.program_order, graph.may_make_variables = True, first
            self._placeholders = [placeholder(s.dtype, s.shape, name=s.name or "args_%d" % i)
                                  for i, s in enumerate(self._specs)]
            return self._placeholders

        def call() -> Any:
            def put(value: Any) -> Any:
                if isinstance(value, _Place):
                    return self._placeholders[value.number]
                return map_structure_once(put, value) if is_nested(value) else value
            return function(*put(structure[0]), **{k: put(v) for k, v in structure[1].items()})
        self._traced = Traced(name, call, made)
        graph = self._traced.graph
        self._graph_call: GraphCall | None = None
        self._function: tuple | None = None
        self.captured = graph.captured
        if get_default_graph()._immediate:
            self._graph_call = GraphCall(graph, self._traced.inputs + graph.arguments,
                                         self._traced.outputs, recompute)
        self._single = not is_nested(self._traced.structure) and len(self._traced.outputs) == 1 \
            and isinstance(self._traced.structure, Tensor)

    def valid(self) -> bool:
        """Whether the graph around is still the one it was traced in."""
        return self._outer() is get_default_graph()

    @property
    def graph(self) -> FunctionGraph:
        """The traced graph."""
        return self._traced.graph

    @property
    def inputs(self) -> list:
        """Its placeholders, and what stands for values of the surroundings."""
        return self._traced.inputs + self._traced.graph.arguments

    @property
    def outputs(self) -> list:
        """The tensors that it gives."""
        return list(self._traced.outputs)

    def __call__(self, *args: Any) -> Any:
        """Calls this trace on tensors, in order."""
        if len(args) != len(self._specs):
            raise TypeError("%s takes %d tensors, not %d" % (self._name, len(self._specs),
                                                             len(args)))
        tensors = [convert_to_tensor(a, None if hasattr(a, "dtype") else s.dtype)
                   for a, s in zip(args, self._specs)]
        for tensor, spec in zip(tensors, self._specs):
            if not spec.is_compatible_with(tensor):
                raise ValueError("%s takes %r, not %r" % (self._name, spec, tensor))
        return self.call(tensors)

    def call_at_once(self, args: tuple) -> Any:
        """As call(), of the arguments of which tensors are what counts."""
        return self.call([a for a in args if type(a) is Tensor])

    def call(self, tensors: list) -> Any:
        """What the function gives for these tensors."""
        if self._graph_call is None or not executing_eagerly():
            return self._call_in_graph(tensors)
        results = self._graph_call(tensors + self.captured)
        if self._single:
            return results[0]
        return assembled(self._traced.structure, results)

    def _call_in_graph(self, tensors: list) -> Any:
        graph = get_default_graph()
        if self._function is None:
            self._function = self._traced.add_to(graph._root)
        name, stateful = self._function
        op = ops.StatefulPartitionedCall if stateful or any(
            t.dtype == _core.resource for t in self.captured) else ops.PartitionedCall
        with control_dependencies(self._traced.graph.calls_wait_for()):
            results = op(tensors + self.captured, f=name, Tout=[
                t.dtype for t in self._traced.outputs], output_shapes=[
                    t.shape for t in self._traced.outputs], name=self._name)
        if isinstance(results, Operation):
            results = []
        return assembled(self._traced.structure, results)


defun = function

__all__ = ["TensorSpec", "function"]
