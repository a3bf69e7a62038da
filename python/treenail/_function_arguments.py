# SPDX-License-Identifier: Apache-2.0
"""Arguments of tn.function: which are tensors, and what else a trace depends on."""

from __future__ import annotations

import weakref

from treenail import _treenail as _core
from treenail._checks import having
from treenail._convert import IndexedSlices, convert_to_tensor
from treenail._framework import get_default_graph
from treenail._nest import is_nested
from treenail._precision import common_precision
from treenail._shape import TensorShape
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


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


def converted_for(spec: TensorSpec, value: Any) -> Tensor:
    """An argument as a tensor, of its own dtype where it has one; in a scope of mixed precision
    what differs in that alone is cast."""
    own = getattr(value, "dtype", None)
    follows = own is None or common_precision(own, spec.dtype) is not None
    return convert_to_tensor(value, spec.dtype if follows else None)


class Arguments:
    """The arguments of a call: tensors in order, and what else the trace depends on."""

    def __init__(self, function: Any, args: tuple, kwargs: dict) -> None:
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
                tensor = converted_for(spec, value)
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
            return Place(len(self.tensors) - 1)
        self._parts.append(_as_key(value))
        return value

    def key(self) -> tuple:
        graph = get_default_graph()
        around = () if graph._immediate else (_as_key(graph),)
        return (*around, graph._device, _core.precision(), *self._parts)

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


class Place:
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
