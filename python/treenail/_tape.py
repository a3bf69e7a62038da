# SPDX-License-Identifier: Apache-2.0
"""Gradients of what ran at once: tapes, and functions that give the gradients of functions."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import IndexedSlices, convert_to_tensor
from treenail._eager import immediate_context, is_concrete
from treenail._framework import _DefaultGraph, get_default_graph
from treenail._immediate_variables import ImmediateVariable, variable_of
from treenail._nest import flatten, is_nested, pack
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence


def _flat(value: Any) -> list:
    return flatten(value) if is_nested(value) else [value]


def _like(structure: Any, values: list) -> Any:
    return pack(structure, values) if is_nested(structure) else values[0]


def _tensor(value: Any, what: str) -> Any:
    """What a tape knows `value` by."""
    if isinstance(value, ImmediateVariable):
        return value.handle
    if isinstance(value, IndexedSlices):
        value = convert_to_tensor(value)
    if hasattr(value, "handle") and not isinstance(value, Tensor):
        value = value.handle
    if not is_concrete(value):
        raise TypeError("%s must be a tensor of immediate execution or a variable, not %r"
                        % (what, value))
    return value


class GradientTape:
    """Records the operations that run at once inside of `with tn.GradientTape() as tape:`, so that
    tape.gradient(y, x) can be asked for.

    Trainable variables that are read are watched, unless watch_accessed_variables is False; tensors
    are where tape.watch(x) says so. persistent: gradient() may be called more than once; what the
    tape keeps is then freed with the tape. Tapes may be nested: the outer one sees what the inner
    one does, its gradients too.
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._tape: Any = _core.Tape(watch_accessed_variables)
        self._watches = watch_accessed_variables
        self._recording = self._used = False

    def __enter__(self) -> GradientTape:
        self._begin()
        return self

    def __exit__(self, *unused: Any) -> None:
        if self._recording:
            self._end()

    def _begin(self) -> None:
        if self._recording:
            raise ValueError("Tape is already recording.")
        if self._used:
            self._tape, self._used = _core.Tape(self._watches), False
        self._tape.open()
        self._recording = True

    def _end(self) -> None:
        if not self._recording:
            raise ValueError("Tape is not recording.")
        self._tape.close()
        self._recording = False

    def watch(self, tensor: Any) -> None:
        """From now on gradients with respect to `tensor` (or a nest of tensors and variables) may
        be asked for. Raises ValueError for another dtype than a floating or complex one."""
        for each in _flat(tensor):
            if isinstance(each, Tensor) and not each._is_concrete:
                continue  # where a function is traced everything is known
            known = _tensor(each, "what a tape watches")
            dtype = each.dtype
            if not (dtype.is_floating or dtype.is_complex):
                raise ValueError("The dtype of the watched tensor must be floating or complex "
                                 "(e.g. tn.float32), got %r" % dtype.name)
            self._tape.watch(known)

    def stop_recording(self) -> _Paused:
        """A context manager within which the tape sees nothing. Raises RuntimeError unless the tape
        is recording."""
        if not self._recording:
            raise RuntimeError("GradientTape.stop_recording(): the tape is not recording")
        return _Paused(self._tape)

    def reset(self) -> None:
        """Forgets all that was recorded and watched."""
        self._tape.reset()

    def watched_variables(self) -> tuple:
        """The variables that are watched, in the order of their first use."""
        found = [variable_of(handle) for handle in self._tape.watched_variables()]
        return tuple(v for v in found if v is not None)

    def gradient(self, target: Any, sources: Any, output_gradients: Any = None,
                 unconnected_gradients: Any = None) -> Any:
        """d(sum of target)/d(source), in the structure of `sources`: a Tensor, an IndexedSlices of
        gathered rows, or None where no path leads.

        target: a tensor, or a nest of them, whose sum is meant. sources: tensors and variables that
        the tape watches, or computed from such. output_gradients: the gradients that arrive at the
        targets, instead of ones. unconnected_gradients: "none" or "zero", what stands where no path
        leads. Raises RuntimeError at the second call unless the tape is persistent.
        """
        if self._used:
            raise RuntimeError("GradientTape.gradient can only be called once on non-persistent "
                               "tapes.")
        fill = getattr(unconnected_gradients, "value", unconnected_gradients) or "none"
        if fill not in ("none", "zero"):
            raise ValueError("Unknown value for unconnected_gradients: %r" % unconnected_gradients)
        if any(isinstance(t, Tensor) and not t._is_concrete for t in _flat(target)):
            return _like(sources, self._in_graph(target, _flat(sources), output_gradients, fill))
        targets = [_tensor(t, "a target") for t in _flat(target)]
        targets = [_core.read_variable(t) if t.dtype == _core.resource else t for t in targets]
        arriving = None
        if output_gradients is not None:
            given = _flat(output_gradients) if is_nested(target) else [output_gradients]
            if len(given) != len(targets):
                raise ValueError("got %d output_gradients for %d targets" % (len(given),
                                                                             len(targets)))
            arriving = [None if g is None else convert_to_tensor(g, t.dtype)
                        for g, t in zip(given, targets)]
        if self._recording and not self._persistent:
            self._end()
        flat = _flat(sources)
        with _DefaultGraph(immediate_context()):
            found = self._tape.gradients(targets, [_tensor(s, "a source") for s in flat], arriving)
            grads = [IndexedSlices(*g) if isinstance(g, tuple) else g for g in found]
            if fill == "zero":
                grads = [_zeros_of(s) if g is None else g for g, s in zip(grads, flat)]
        if not self._persistent:
            self._tape.reset()
            self._used = True
        return _like(sources, grads)

    def _in_graph(self, target: Any, sources: list, output_gradients: Any, fill: str) -> list:
        """The gradients where a function is traced: by the operations of its graph."""
        from treenail._gradients import gradients
        if self._recording and not self._persistent:
            self._end()
        graph = get_default_graph()
        watched = self.watched_variables()
        xs: list = []
        for source in sources:
            if isinstance(source, ImmediateVariable):
                xs.append(_core.concrete_in_graph(graph, source.handle, "variable")
                          if any(source is v for v in watched) else None)
            else:
                xs.append(source)
        grad_ys = None if output_gradients is None else _flat(output_gradients)
        known = [x for x in xs if x is not None]
        found = iter(gradients(_flat(target), known, grad_ys))
        grads = [None if x is None else next(found) for x in xs]
        self._used = not self._persistent
        return [_zeros_of(s) if g is None and fill == "zero" else g for g, s in zip(grads, sources)]

    def jacobian(self, target: Any, sources: Any, unconnected_gradients: Any = None,
                 parallel_iterations: Any = None, experimental_use_pfor: bool = True) -> Any:
        """The Jacobian of `target` with respect to each source: target.shape + source.shape; None
        where no path leads. One pass back through the tape for each element of the target."""
        from treenail._array import reshape, stack
        from treenail._array import zeros_like as zeros
        _tensor(target, "the target")
        flat = _flat(sources)
        for source in flat:
            _tensor(source, "a source")
        tape = self._many_times()
        count = target.shape.num_elements()
        rows: list = []
        for i in range(count):
            seed = _one_hot(target, i)
            rows.append(_flat(tape.gradient(target, list(flat), seed, unconnected_gradients)))
        self._finish()
        result = []
        for place, source in enumerate(flat):
            column = [row[place] for row in rows]
            if all(each is None for each in column):
                result.append(None)
                continue
            parts = [zeros(source) if each is None else convert_to_tensor(each) for each in column]
            shape = target.shape.as_list() + source.shape.as_list()
            result.append(reshape(stack(parts), shape) if parts else None)
        return _like(sources, result)

    def batch_jacobian(self, target: Any, source: Any, unconnected_gradients: Any = None,
                       parallel_iterations: Any = None, experimental_use_pfor: bool = True) -> Any:
        """The Jacobian of each row of `target` [b, ...] with respect to the same row of `source`
        [b, ...]: [b, target.shape[1:], source.shape[1:]]. Rows must not depend on each other."""
        from treenail._array import concat, expand_dims, reshape, stack, zeros
        for what, value in (("target", target), ("source", source)):
            if not _tensor(value, "the " + what).shape.ndims:
                raise ValueError("%s must have a first axis, %r has none" % (what, value))
        batch = target.shape.as_list()[0]
        if source.shape.as_list()[0] != batch:
            raise ValueError("the first extents of target %s and source %s differ"
                             % (target.shape, source.shape))
        tape = self._many_times()
        size = target.shape.num_elements() // batch if batch else 0
        columns: list = []
        for i in range(size):
            seed = concat([zeros([batch, i], target.dtype), expand_dims(
                zeros([batch], target.dtype) + 1, 1), zeros([batch, size - i - 1], target.dtype)],
                1)
            found = tape.gradient(target, source, reshape(seed, target.shape.as_list()),
                                  unconnected_gradients)
            columns.append(found)
        self._finish()
        if not columns or all(c is None for c in columns):
            return None
        columns = [zeros(source.shape.as_list(), source.dtype) if c is None else c for c in columns]
        return reshape(stack(columns, 1), [batch] + target.shape.as_list()[1:]
                       + source.shape.as_list()[1:])

    def _many_times(self) -> GradientTape:
        if self._used:
            raise RuntimeError("a non-persistent GradientTape can only be used to compute one set "
                               "of gradients")
        if self._recording and not self._persistent:
            self._end()
        again = GradientTape.__new__(GradientTape)
        again.__dict__.update(self.__dict__, _persistent=True)
        return again

    def _finish(self) -> None:
        if not self._persistent:
            self._tape.reset()
            self._used = True


class _Paused:
    __slots__ = ("_tape",)

    def __init__(self, tape: Any) -> None:
        self._tape = tape

    def __enter__(self) -> None:
        self._tape.pause()

    def __exit__(self, *unused: Any) -> None:
        self._tape.resume()


def _zeros_of(source: Any) -> Tensor:
    from treenail._array import zeros
    return zeros(source.shape.as_list(), source.dtype)


def _one_hot(target: Tensor, place: int) -> Tensor:
    from numpy import zeros
    seed = zeros(target.shape.num_elements(), target.dtype.as_numpy_dtype)
    seed[place] = 1
    return convert_to_tensor(seed.reshape(target.shape.as_list()), target.dtype)


# --- Functions of functions -----------------------------------------------------------------------


def _positions(params: Any, args: Sequence, function: Callable) -> list:
    """The positions of the parameters that `params` names: all, or by number or name."""
    if params is None:
        return list(range(len(args)))
    if not isinstance(params, (list, tuple)) or not params:
        raise ValueError("params must be a list of parameter numbers or names, not %r" % (params,))
    if all(isinstance(p, int) for p in params):
        return list(params)
    from inspect import signature
    names = list(signature(function).parameters)
    for p in params:
        if p not in names:
            raise ValueError("params name %r, which %s does not have" % (p, function))
    return [names.index(p) for p in params]


def _run_watched(tape: GradientTape, f: Callable, args: Sequence, params: Any) -> tuple:
    """(result of f, what gradients are asked of)"""
    args = [a if isinstance(a, (ImmediateVariable, IndexedSlices)) else convert_to_tensor(a)
            for a in args]
    sources = [args[i] for i in _positions(params, args, f)]
    for source in sources:
        tape.watch(source)
    result = f(*args)
    if result is None:
        raise ValueError("Cannot differentiate a function that returns None; did you forget to "
                         "return a value from %s?" % getattr(f, "__name__", f))
    return result, sources


def value_and_gradients_function(f: Callable, params: Sequence | None = None) -> Callable:
    """A function that gives (f(...), the gradients of f with respect to its arguments).

    params: numbers or names of the arguments that are meant, by default all. `dy`, a keyword of the
    new function, is the gradient that arrives at f's result, instead of ones.
    """
    def both(*args: Any, dy: Any = None) -> tuple:
        with GradientTape(watch_accessed_variables=False) as tape:
            result, sources = _run_watched(tape, f, args, params)
        return result, tape.gradient(result, sources, dy)
    both.__name__ = getattr(f, "__name__", "f")
    return both


def gradients_function(f: Callable, params: Sequence | None = None) -> Callable:
    """A function that gives the gradients of f with respect to its arguments, a list.

    params and dy: as of value_and_gradients_function.
    """
    both = value_and_gradients_function(f, params)

    def only(*args: Any, dy: Any = None) -> list:
        return both(*args, dy=dy)[1]
    only.__name__ = both.__name__
    return only


def implicit_value_and_gradients(f: Callable) -> Callable:
    """A function that gives (f(...), [(gradient, variable), ...]) for the trainable variables that
    f uses. Raises ValueError when there are none."""
    def both(*args: Any, **kwargs: Any) -> tuple:
        with GradientTape() as tape:
            result = f(*args, **kwargs)
        if result is None:
            raise ValueError("Cannot differentiate a function that returns None; did you forget to "
                             "return a value from %s?" % getattr(f, "__name__", f))
        variables = tape.watched_variables()
        if not variables:
            raise ValueError("No trainable variables were accessed while the function was being "
                             "computed.")
        return result, list(zip(tape.gradient(result, list(variables)), variables))
    both.__name__ = getattr(f, "__name__", "f")
    return both


def implicit_gradients(f: Callable) -> Callable:
    """A function that gives [(gradient, variable), ...] for the trainable variables that f uses."""
    both = implicit_value_and_gradients(f)

    def only(*args: Any, **kwargs: Any) -> list:
        return both(*args, **kwargs)[1]
    only.__name__ = both.__name__
    return only


class RecordedOperation:
    """What a rule of RegisterGradient is given of an operation that ran at once."""

    def __init__(self, op_type: str, inputs: list, outputs: list, attributes: dict) -> None:
        self.type, self.name = op_type, op_type
        self.inputs, self.outputs, self._attributes = inputs, outputs, attributes
        self.graph = immediate_context()

    def get_attr(self, name: str) -> Any:
        """The value of an attribute. Raises ValueError where there is none of that name."""
        if name not in self._attributes:
            raise ValueError("No attr named %r in %s" % (name, self.type))
        return self._attributes[name]


def call_recorded_gradient(rule: Callable, op_type: str, inputs: list, outputs: list,
                           attributes: dict, gradients: list) -> list:
    """Called by the compiled module: one gradient per input, slices as tuples."""
    from treenail._gradient_rules import _call_gradient
    operation: Any = RecordedOperation(op_type, inputs, outputs, attributes)
    return _call_gradient(rule, operation, gradients, "")


__all__ = ["GradientTape", "gradients_function", "value_and_gradients_function",
           "implicit_gradients", "implicit_value_and_gradients"]
