# SPDX-License-Identifier: Apache-2.0
"""Variables of immediate execution: state that ends with its last holder. Equal names never share.
"""

from __future__ import annotations

from weakref import WeakValueDictionary

from treenail import _treenail as _core
from treenail._convert import convert_to_tensor
from treenail._function_graph import FunctionGraph, make_variable_in
from treenail._framework import GraphKeys, device, get_default_graph, init_scope
from treenail._ops import ops
from treenail._replica import checked_wishes
from treenail._shape import TensorShape
from treenail._slicing import assign_item
from treenail._treenail import Tensor
from treenail._variables import Variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_OF_ALL_VARIABLES = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES,
                     GraphKeys.TRAINABLE_VARIABLES, GraphKeys.MODEL_VARIABLES,
                     GraphKeys.MOVING_AVERAGE_VARIABLES, GraphKeys.METRIC_VARIABLES)
_by_state: WeakValueDictionary = WeakValueDictionary()


def variable_of(handle: Tensor) -> ImmediateVariable | None:
    """The variable of that handle; None where it is gone, or none of these."""
    return _by_state.get(_core.state_behind(handle))


def _meaningless(what: str) -> property:
    def get(self: Any) -> Any:
        raise AttributeError("Variable.%s is meaningless when eager execution is enabled: "
                             "operations run at once, without a graph" % what)
    return property(get)


class ImmediateVariable(Variable):
    """A Variable made while operations run at once."""

    def __init__(self, initial_value: Any = None, trainable: bool = True, collections: Any = None,
                 validate_shape: bool = True, caching_device: Any = None, name: str | None = None,
                 variable_def: Any = None, dtype: Any = None, expected_shape: Any = None,
                 import_scope: Any = None, constraint: Callable | None = None,
                 use_resource: bool | None = None, synchronization: Any = None,
                 aggregation: Any = None) -> None:
        checked_wishes(synchronization, aggregation)
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        if constraint is not None and not callable(constraint):
            raise ValueError("The `constraint` argument must be a callable.")
        around = get_default_graph()
        make_variable_in(around)
        self._graph, asked = around._root, around._device
        with init_scope(), device(None), device(asked or None):
            self._shared = around.unique_name(name or "Variable", mark_as_used=False)
            value = self._initial_tensor(initial_value, dtype)
            shape = value.shape if validate_shape else TensorShape(None)
            if validate_shape and expected_shape is not None:
                shape = shape.merge_with(expected_shape)
            self._handle = _core.new_variable(self._shared, value.dtype, shape, bool(trainable))
            ops.AssignVariableOp(self._handle, value)
        self._dtype, self._shape = value.dtype, shape
        self._trainable, self._constraint = bool(trainable), constraint
        for key in collections or ():
            if key not in _OF_ALL_VARIABLES:  # which would keep every variable for ever
                self._graph.add_to_collection(key, self)
        _by_state[_core.state_behind(self._handle)] = self

    graph, op = _meaningless("graph"), _meaningless("op")
    initializer, initial_value = _meaningless("initializer"), _meaningless("initial_value")

    @property
    def name(self) -> str:
        """The variable's name, 'scope/name:0'; others may have the same."""
        return self._shared + ":0"

    @property
    def _shared_name(self) -> str:
        return self._shared

    @property
    def device(self) -> str:
        """Where it lives."""
        return self._handle.device

    def initialized_value(self) -> Tensor:
        """The value."""
        return self.read_value()

    def value(self) -> Tensor:
        """The value now: it does not change with the variable."""
        return _core.read_variable(self._handle)

    def read_value(self) -> Tensor:
        """The value now: it does not change with the variable."""
        return _core.read_variable(self._handle)

    __treenail_tensor__ = value

    def _now(self) -> Tensor:
        """The value, whatever graph is built around; a function that is traced has no value yet."""
        if isinstance(get_default_graph(), FunctionGraph):
            return self.value()
        return _core.current_value(self._handle)

    def numpy(self) -> Any:
        """The value as an array."""
        return self._now().numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        value = self._now().__array__()
        return value if dtype is None else value.astype(dtype)

    def eval(self, session: Any = None) -> Any:
        """Not with immediate execution: NotImplementedError."""
        raise NotImplementedError("eval is not supported when eager execution is enabled: use "
                                  "numpy()")

    def _read_after(self, op: Any) -> Any:
        return self.read_value()

    def _admit_all_shapes(self) -> None:
        raise NotImplementedError("a variable of immediate execution keeps its shape unless it "
                                  "was made with validate_shape=False")

    def load(self, value: Any, session: Any = None) -> None:
        """Assigns a value."""
        self.assign(value, read_value=False)

    def __getitem__(self, key: Any) -> Tensor:
        part = self.value()[key]

        def assign(value: Any, name: str | None = None) -> Tensor:
            """Writes `value`, which has the shape of this part, to the variable; the result is the
            variable's new value."""
            assign_item(self._handle, key, convert_to_tensor(value, self._dtype), name)
            return self.read_value()
        part.assign = assign
        return part

    def __iter__(self) -> Any:
        return iter(self.value())

    def __bool__(self) -> bool:
        return bool(self._now())

    def __int__(self) -> int:
        return int(self._now())

    def __float__(self) -> float:
        return float(self._now())

    def __len__(self) -> int:
        return len(self._now())

    def __repr__(self) -> str:
        return "<tn.Variable '%s' shape=%s dtype=%s, numpy=%s>" % (
            self.name, self._shape, self._dtype.name, _numpy_text(
                _core.current_value(self._handle)))


def _operators(cls: type) -> None:
    """Those of tensors, on the value now."""
    import operator
    read = _core.read_variable

    def binary(function: Callable) -> tuple:
        return (lambda self, other: function(read(self._handle), other),
                lambda self, other: function(other, read(self._handle)))
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or",
                 "xor"):
        forward, reflected = binary(getattr(operator, "__%s__" % name))
        setattr(cls, "__%s__" % name, forward)
        setattr(cls, "__r%s__" % name, reflected)
    for name in ("lt", "le", "gt", "ge"):
        setattr(cls, "__%s__" % name, binary(getattr(operator, name))[0])
    for name in ("neg", "abs", "invert"):
        setattr(cls, "__%s__" % name, lambda self, function=getattr(operator, name): function(
            read(self._handle)))


_operators(ImmediateVariable)


def _numpy_text(value: Any) -> str:
    return repr(value.numpy()) if value.shape.ndims else str(value.numpy())
