# SPDX-License-Identifier: Apache-2.0
"""The base of all layers: names and sharing of variables, losses and updates."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import convert_to_tensor
from treenail._framework import GraphKeys, executing_eagerly, get_default_graph, graph_of
from treenail._named import activation as named_activation
from treenail._named import initializer as named_initializer
from treenail._named import regularizer as named_regularizer
from treenail._object_graph import tell_of_new_variable
from treenail._partitioned import without_parts
from treenail._precision import master_dtype
from treenail._shape import TensorShape, as_shape
from treenail._shown import arguments, public_name
from treenail._treenail import Tensor
from treenail._variable_scope import get_variable, get_variable_scope, variable_scope
from treenail._variables import Variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class InputSpec:
    """What a layer asks of its input. ndim: the exact rank; min_ndim: the lowest; axes: {axis:
    extent}."""

    def __init__(self, ndim: int | None = None, min_ndim: int | None = None,
                 axes: dict | None = None) -> None:
        self.ndim, self.min_ndim, self.axes = ndim, min_ndim, axes or {}

    def check(self, shape: TensorShape, layer: str) -> None:
        """Raises ValueError when `shape` does not fit."""
        if self.ndim is not None and shape.ndims != self.ndim:
            raise ValueError("Input 0 of layer %s is incompatible with the layer: expected "
                             "ndim=%d, found ndim=%s. Full shape received: %s"
                             % (layer, self.ndim, shape.ndims, shape))
        if self.min_ndim is not None and (shape.ndims is None or shape.ndims < self.min_ndim):
            raise ValueError("Input 0 of layer %s is incompatible with the layer: its rank is "
                             "undefined or too small, but "
                             "the layer requires min_ndim=%d. Full shape received: %s"
                             % (layer, self.min_ndim, shape))
        for axis, extent in self.axes.items():
            if shape[axis] not in (None, extent):
                raise ValueError("Input 0 of layer %s is incompatible with the layer: expected "
                                 "axis %d of input shape to "
                                 "have value %d but received input with shape %s"
                                 % (layer, axis, extent, shape))


def _snake_case(name: str) -> str:
    out = ""
    for i, c in enumerate(name):
        lower_near = i > 0 and (name[i - 1].islower() or i
                                + 1 < len(name) and name[i + 1].islower())
        out += ("_" if c.isupper() and lower_near else "") + c.lower()
    return out


class Layer:
    """A function with variables of its own.

    A subclass defines build(input_shape), which makes variables with add_variable, and
    call(inputs). trainable: whether its variables join TRAINABLE_VARIABLES. name: that of the
    variable scope, by default the class's, made unique, as in TensorFlow 1: two layers of name "a"
    are "a" and "a_1". (Functions such as tn.layers.dense take their name as it is.)
    """

    def __init__(self, trainable: bool = True, name: str | None = None, dtype: Any = None,
                 activity_regularizer: Callable | None = None, **kwargs: Any) -> None:
        reuse, scope = kwargs.pop("_reuse", None), kwargs.pop("_scope", None)
        if kwargs:
            raise TypeError("Keyword argument not understood: %s" % sorted(kwargs)[0])
        self.trainable, self.built = trainable, False
        self.input_spec: InputSpec | None = None
        self._given_name, self._reuse, self._given_scope = name, reuse, scope
        self._dtype = None if dtype is None else _core.as_dtype(dtype)
        self._activity_regularizer = named_regularizer(activity_regularizer)
        self._scope = None
        self._variables: list = []
        self._trainable_variables: list = []
        self._losses: list = []
        self._losses_now: list = []
        self._updates: list = []

    def _base_name(self) -> str:
        """The scope's name, made unique where nothing is shared."""
        return self._given_name or _snake_case(type(self).__name__)

    def __repr__(self) -> str:
        shown = [public_name(self), repr(self.name)] + arguments(self)
        if self.built:
            shown += ["%s%s" % (v._shared_name.split("/")[-1], v.shape) for v in self._variables]
        return "<%s>" % " ".join(shown)

    def _needs_variables(self) -> None:
        """Raises ValueError unless they were made."""
        if not self.built and not self._variables:
            raise ValueError("%s has no variables yet: apply the layer itself instead of its "
                             "call(), or build() it first" % (self,))

    # --- For subclasses ---------------------------------------------------------------------------

    def build(self, input_shape: TensorShape) -> None:
        """Makes the variables for inputs of this shape."""
        self.built = True

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """Computes the outputs."""
        return inputs

    def add_variable(self, name: str, shape: Any, dtype: Any = None, initializer: Any = None,
                     regularizer: Callable | None = None, trainable: bool = True,
                     constraint: Callable | None = None, synchronization: Any = None,
                     aggregation: Any = None) -> Variable:
        """A variable of this layer; its regularizer's loss joins the layer's losses.

        initializer, regularizer: functions, or names such as "zeros", "he_normal" and "l2".
        synchronization, aggregation: as of tn.Variable.
        """
        graph = get_default_graph()
        before = len(graph.get_collection_ref(GraphKeys.REGULARIZATION_LOSSES))
        scope = get_variable_scope()
        partitioner = scope.partitioner
        if not trainable:  # what a layer itself assigns, such as moving averages, is in one part
            scope.set_partitioner(None)
        try:
            variable = get_variable(name, shape, dtype or self._dtype or _core.float32,
                                    named_initializer(initializer), named_regularizer(regularizer),
                                    trainable=trainable and self.trainable, constraint=constraint,
                                    synchronization=synchronization, aggregation=aggregation)
        finally:
            scope.set_partitioner(partitioner)
        self._losses += graph.get_collection_ref(GraphKeys.REGULARIZATION_LOSSES)[before:]
        if graph._immediate:
            self._regularize_later(variable, regularizer)
        parts = without_parts([variable])
        self._variables += parts
        if trainable:
            self._trainable_variables += parts
        if graph._root._immediate:
            tell_of_new_variable()
        return variable

    add_weight = add_variable

    def _own_variables(self) -> dict:
        """By what add_variable() called them; parts are an attribute's."""
        return {v._shared_name.rpartition("/")[2]: v for v in self._variables
                if v._slice_info is None}

    def _regularize_later(self, variable: Variable, regularizer: Any) -> None:
        """With immediate execution the loss is computed when it is asked for."""
        regularizer = named_regularizer(get_variable_scope().regularizer if regularizer is None
                                        else regularizer)
        if regularizer is not None:
            self._losses.append(lambda: regularizer(variable.value()))

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds to the layer's losses and to the collection REGULARIZATION_LOSSES."""
        for loss in losses if isinstance(losses, (list, tuple)) else [losses]:
            if loss is not None and executing_eagerly():
                self._losses_now.append(loss)
            elif loss is not None:
                self._losses.append(loss)
                get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Adds operations to be run with each training step, also to the collection UPDATE_OPS."""
        if executing_eagerly():  # they have run
            return
        for update in updates if isinstance(updates, (list, tuple)) else [updates]:
            self._updates.append(update)
            get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, update)

    # --- For callers ------------------------------------------------------------------------------

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Applies the layer; the first call makes its variables."""
        inputs = convert_to_tensor(inputs)
        self._losses_now = []
        return self._in_scope(inputs, inputs.shape, lambda: self.call(inputs, *args, **kwargs))

    def _in_scope(self, inputs: Tensor, input_shape: TensorShape, function: Callable) -> Any:
        """function() in the layer's variable scope, its variables made for that input shape."""
        with graph_of([inputs]).as_default():
            if self._scope is None:
                shared = self._given_scope or (self._base_name() if self._reuse else None)
                opened = variable_scope(shared, self._base_name(), reuse=self._reuse)
            else:
                opened = variable_scope(self._scope, reuse=True if self.built else self._reuse)
            with opened as scope:
                if self._scope is None:
                    self._scope = scope
                if self._dtype is None:
                    self._dtype = master_dtype(inputs.dtype)
                if self.input_spec is not None:
                    self.input_spec.check(input_shape, self.name)
                if not self.built:
                    self.build(input_shape)
                    self.built = True
                    if self.input_spec is not None:
                        self.input_spec.check(input_shape, self.name)
                outputs = function()
                if self._activity_regularizer is not None:
                    self.add_loss(self._activity_regularizer(outputs))
                return outputs

    apply = __call__

    @property
    def name(self) -> str:
        """The last part of the layer's scope."""
        if self._scope is not None:
            return self._scope.name.split("/")[-1]
        return self._base_name()

    @property
    def scope_name(self) -> str:
        """The layer's variable scope. Raises ValueError before the first call."""
        if self._scope is None:
            raise ValueError("No name available for layer scope because the layer \"%s\" has not "
                             "been used yet. The scope "
                             "name is determined the first time the layer instance is called."
                             % self.name)
        return self._scope.name

    @property
    def dtype(self) -> Any:
        """The dtype of the variables, or None before the first call."""
        return self._dtype

    @property
    def variables(self) -> list:
        """All variables."""
        return list(self._variables)

    weights = variables

    @property
    def trainable_variables(self) -> list:
        """The variables an optimizer changes."""
        return list(self._trainable_variables) if self.trainable else []

    trainable_weights = trainable_variables

    @property
    def non_trainable_variables(self) -> list:
        """The other variables."""
        trainable = self.trainable_variables
        return [v for v in self._variables if not any(v is t for t in trainable)]

    non_trainable_weights = non_trainable_variables

    @property
    def losses(self) -> list:
        """Regularisation losses; with immediate execution those of variables as they are now, and
        of the last call."""
        found = [loss() if callable(loss) else loss for loss in self._losses] + self._losses_now
        return [loss for loss in found if loss is not None]

    @property
    def updates(self) -> list:
        """Operations to be run with each training step."""
        return list(self._updates)

    def count_params(self) -> int:
        """How many numbers the variables hold."""
        return sum(v.shape.num_elements() for v in self._variables)


def pair(value: Any, what: str, count: int = 2) -> tuple:
    """An int or `count` ints. Raises ValueError for anything else."""
    if isinstance(value, int):
        return (value,) * count
    numbers = tuple(value) if hasattr(value, "__iter__") else ()
    if len(numbers) != count or not all(isinstance(n, int) for n in numbers):
        raise ValueError("The `%s` argument must be a tuple of %d integers. Received: %r"
                         % (what, count, value))
    return numbers


def channel_axis(data_format: str, ndims: int) -> int:
    """The axis of the channels. Raises ValueError for an unknown data format."""
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError("The `data_format` argument must be one of \"channels_first\", "
                         "\"channels_last\". Received: %r" % (data_format,))
    return 1 if data_format == "channels_first" else ndims - 1


def op_data_format(data_format: str, rank: int = 2) -> str:
    """The name that functions of tn.nn have for a layer's data format."""
    channel_axis(data_format, rank + 2)
    space = ("", "W", "HW", "DHW")[rank]
    return "NC" + space if data_format == "channels_first" else "N" + space + "C"


def known_extent(shape: TensorShape, axis: int,
                 what: str = "channel dimension of the inputs") -> int:
    """shape[axis]. Raises ValueError when it is unknown."""
    shape = as_shape(shape)
    if shape.ndims is not None and not -shape.ndims <= axis < shape.ndims:
        raise ValueError("The %s is axis %d, which shape %s does not have." % (what, axis, shape))
    extent = shape[axis] if shape.ndims is not None else None
    if extent is None:
        raise ValueError("The %s should be defined. Found `None` in shape %s." % (what, shape))
    return extent


def is_tensor(value: Any) -> bool:
    """Whether a flag is known only when the graph runs."""
    return isinstance(value, Tensor) or hasattr(value, "__treenail_tensor__")


def activated(activation: Any, outputs: Tensor) -> Tensor:
    """activation(outputs), or the outputs without one. A layer whose `activation` was set to a name
    after it was made is served, too."""
    activation = named_activation(activation)
    return outputs if activation is None else activation(outputs)
