# SPDX-License-Identifier: Apache-2.0
"""Metrics as objects: calls add batches, result() is the value. TensorFlow 1's
tf.contrib.eager.metrics."""

from __future__ import annotations

import re

from treenail import _treenail as _core
from treenail._assertions import assert_equal
from treenail._control import group
from treenail._convert import convert_to_tensor
from treenail._framework import (GraphKeys, control_dependencies, executing_eagerly,
                                 get_default_graph, init_scope)
from treenail._function import Function
from treenail._initializer_values import ZEROS
from treenail._math import add_n, argmax, cast, reduce_sum
from treenail._object_graph import tell_of_new_variable
from treenail._ops import ops
from treenail._shown import public_name
from treenail._treenail import Tensor
from treenail._variable_scope import get_variable, variable_scope
from treenail._variables import Variable
from treenail.metrics._streams import broadcast_weights, with_rank_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence


def _converted(call: Callable) -> Callable:
    """A program's call() as one whose control flow may depend on tensors."""
    from treenail.autograph import _entry
    return _entry.converted(call)


class Metric:
    """Sums over a stream of batches, and what is computed of them.

    A subclass defines build(), which makes variables with add_variable(), call(), which adds a
    batch to them, and result(). Calls of the object take what call() takes; the first one builds.

        accuracy = tn.metrics.Accuracy()
        for labels, predictions in batches:
            accuracy(labels, predictions)
        print(accuracy.result().numpy())

    In a graph a call gives operations: a run of any of them adds the batch, by all updates that
    call() makes, in their order. `init_variables()` is to be run before.

    name: of the object and the variable scope, by default the class's; in a graph made unique.
    use_global_variables: in a graph, whether the variables are global ones, which tn.train.Saver()
    saves, rather than local ones.
    """

    def __init__(self, name: str | None = None, use_global_variables: bool = False) -> None:
        name = name or type(self).__name__
        scope_name = re.sub("[^A-Za-z0-9.]", "_", name)
        # With immediate execution nothing shares by name, so that it need not be another one.
        given = scope_name if get_default_graph()._root._immediate else None
        with variable_scope(given, default_name=scope_name) as scope:
            self._scope = scope
        self._name = name + scope.name[scope.name.rfind(scope_name) + len(scope_name):]
        self._use_global_variables = use_global_variables
        self._built = False
        self._variables: list = []
        self._initial_values: list = []
        self._in_graph: Function | None = None

    def __repr__(self) -> str:
        return "<%s %r>" % (public_name(self), self._name)

    # --- For callers ------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a batch: what call() gives for these arguments. The first call makes the
        variables."""
        if not self._built and not self._variables:
            with variable_scope(self._scope, auxiliary_name_scope=False):
                self.build(*args, **kwargs)
        self._built = True
        if executing_eagerly():
            return self.call(*args, **kwargs)
        if getattr(get_default_graph(), "program_order", False):
            return _converted(self.call)(*args, **kwargs)
        if self._in_graph is None:
            self._in_graph = self._as_function()
        results, done = self._in_graph(*args, **kwargs)
        return done.op if results is None else results

    def _as_function(self) -> Function:
        """call() as one operation of a graph, which is there though call() give nothing."""
        call = _converted(self.call)

        def add(*args: Any, **kwargs: Any) -> tuple:
            return call(*args, **kwargs), convert_to_tensor(True)
        add.__name__ = type(self).__name__
        return Function(add, autograph=False)

    @property
    def name(self) -> str:
        """The object's name."""
        return self._name

    @property
    def variables(self) -> list:
        """The variables, none before the first call: what tn.train.Saver takes."""
        return list(self._variables)

    def init_variables(self) -> Any:
        """Begins anew: with immediate execution the variables get their first values, in a graph
        an operation is made that does so. To be called after the first call."""
        if not get_default_graph()._root._immediate:
            return group(*[v.initializer for v in self._variables])
        for variable, value in zip(self._variables, self._initial_values):
            variable.assign(value)
        return None

    def value(self) -> Any:
        """In a graph result(); with immediate execution the method itself."""
        return self.result if executing_eagerly() else self.result()

    def aggregate(self, metrics: Sequence) -> Any:
        """Adds the variables of other metrics of the same class to those of this one; in a graph
        an operation is made that does so.

        Raises TypeError for metrics of another class, ValueError for such with other variables.
        """
        metrics = list(metrics)
        for metric in metrics:
            if type(metric) is not type(self):
                raise TypeError("All metrics must be the same type, '%s' != '%s'."
                                % (type(self).__name__, type(metric).__name__))
            if list(self._own_variables()) != list(metric._own_variables()):
                raise ValueError("All metrics must have variables in the same order: %s has %s, %s "
                                 "has %s" % (self._name, list(self._own_variables()), metric._name,
                                             list(metric._own_variables())))
        added = [v.assign_add(add_n([m._variables[i].value() for m in metrics]))
                 for i, v in enumerate(self._variables) if metrics]
        return None if executing_eagerly() else group(*added)

    def _own_variables(self) -> dict:
        return {v._shared_name.rpartition("/")[2]: v for v in self._variables}

    # --- For subclasses ---------------------------------------------------------------------------

    def build(self, *args: Any, **kwargs: Any) -> None:
        """Makes the variables. Takes what the first call does. NotImplementedError: each subclass
        has its own."""
        raise NotImplementedError("Metrics must define a build() member function")

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a batch to the variables. NotImplementedError: each subclass has its own."""
        raise NotImplementedError("Metrics must define a call() member function")

    def result(self) -> Any:
        """The value for what was added. NotImplementedError: each subclass has its own."""
        raise NotImplementedError("Metrics must define a result() member function")

    def add_variable(self, name: str, shape: Any = None, dtype: Any = None,
                     initializer: Any = None) -> Variable:
        """A variable of this metric, for build() to make; the arguments are those of
        tn.get_variable. Raises RuntimeError after the first call."""
        if self._built:
            raise RuntimeError("Can't call add_variable() except in build().")
        kind = GraphKeys.GLOBAL_VARIABLES if self._use_global_variables \
            else GraphKeys.LOCAL_VARIABLES
        variable = get_variable(name, shape, dtype, initializer, trainable=False,
                                collections=[kind, GraphKeys.METRIC_VARIABLES])
        if get_default_graph()._root._immediate:
            with init_scope():
                self._initial_values.append(variable.read_value())
        self._variables.append(variable)
        if self._initial_values:
            tell_of_new_variable()
        return variable


class Mean(Metric):
    """The weighted mean of all values: sum(weights * values) / sum(weights), NaN before there are
    any. Variables: `numer` and `denom`, scalars of `dtype`."""

    def __init__(self, name: str | None = None, dtype: Any = _core.float64,
                 use_global_variables: bool = False) -> None:
        super().__init__(name, use_global_variables)
        self.dtype = _core.as_dtype(dtype)

    def build(self, *args: Any, **kwargs: Any) -> None:
        """Makes the variables."""
        self.numer = self.add_variable("numer", [], self.dtype, ZEROS)
        self.denom = self.add_variable("denom", [], self.dtype, ZEROS)

    def call(self, values: Any, weights: Any = None) -> Any:
        """Adds values of any shape. Gives the arguments, a tuple where there are weights.

        weights: a scalar, or of the values' shape where each extent may be 1 instead, a last axis
        of extent 1 there or not. Raises ValueError for others.
        """
        self._add(cast(values, self.dtype), weights)
        return values if weights is None else (values, weights)

    def _needs_variables(self) -> None:
        if not self._variables:
            raise ValueError("%r has no variables yet: call the object itself first" % self)

    def _add(self, values: Tensor, weights: Any) -> None:
        self._needs_variables()
        if weights is None:
            counted = ops.Cast(ops.Size(values, out_type=_core.int64), self.dtype)
        else:
            weights = broadcast_weights(with_rank_of(weights, values), values)
            values, counted = values * weights, reduce_sum(weights)
        self.denom.assign_add(counted)
        self.numer.assign_add(reduce_sum(values))

    def result(self, write_summary: bool = True) -> Tensor:
        """The mean, a scalar of `dtype`. write_summary is there for programs that state it: no
        summaries are written.

        Raises ValueError before the first call.
        """
        self._needs_variables()
        return ops.RealDiv(self.numer, self.denom)


# --- How often predictions are right --------------------------------------------------------------

def _alike(labels: Tensor, predictions: Tensor, shape: Tensor, wanted: Any) -> Tensor:
    """The labels, whose shape must be `shape`, known as `wanted`: that of the predictions, or of
    their rows. Raises ValueError, or InvalidArgumentError in a run that alone knows."""
    if not labels.shape.is_compatible_with(wanted):
        raise ValueError("Shapes of labels and predictions are unequal: %s for %s, needed is %s"
                         % (labels.shape, predictions.shape, wanted))
    if labels.shape.is_fully_defined() and wanted.is_fully_defined():
        return labels
    with control_dependencies([assert_equal(
            ops.Shape(labels), shape, message="Shapes of labels and predictions are unequal")]):
        return ops.Identity(labels)


class _Rate(Mean):
    """The weighted share of the examples that some rule calls right."""

    def __init__(self, name: str | None = None, dtype: Any = _core.float64) -> None:
        super().__init__(name, dtype)

    def _right(self, labels: Tensor, predictions: Tensor) -> Tensor:
        """bool, one for each example."""
        raise NotImplementedError

    def call(self, labels: Any, predictions: Any, weights: Any = None) -> tuple:
        """Adds a batch. Gives the arguments.

        weights: one for each example, as of Mean. Raises ValueError for shapes that do not belong
        together, InvalidArgumentError where only a run knows them.
        """
        right = self._right(convert_to_tensor(labels), convert_to_tensor(predictions))
        self._add(ops.Cast(right, self.dtype), weights)
        return (labels, predictions) if weights is None else (labels, predictions, weights)


class Accuracy(_Rate):
    """How often predictions equal labels, of the same shape and dtype."""

    def _right(self, labels: Tensor, predictions: Tensor) -> Tensor:
        labels = _alike(labels, predictions, ops.Shape(predictions), predictions.shape)
        return ops.Equal(labels, predictions)


class CategoricalAccuracy(_Rate):
    """How often the highest prediction is that of the label, both [..., classes]: labels one-hot or
    probabilities, predictions logits or probabilities."""

    def _right(self, labels: Tensor, predictions: Tensor) -> Tensor:
        labels = _alike(labels, predictions, ops.Shape(predictions), predictions.shape)
        return ops.Equal(argmax(labels, -1), argmax(predictions, -1))


class BinaryAccuracy(_Rate):
    """How often predictions above a threshold, and others, are labels of 1, and of 0; of one
    shape.

    threshold: 0.5 for probabilities, 0 for logits.
    """

    def __init__(self, threshold: float, name: str | None = None,
                 dtype: Any = _core.float64) -> None:
        super().__init__(name, dtype)
        self.threshold = threshold

    def _right(self, labels: Tensor, predictions: Tensor) -> Tensor:
        labels = _alike(labels, predictions, ops.Shape(predictions), predictions.shape)
        return ops.Equal(cast(labels, _core.bool), ops.Greater(predictions, self.threshold))


class SparseAccuracy(_Rate):
    """How often the highest prediction of [..., classes] is that of the class numbers, labels
    [...]."""

    def _right(self, labels: Tensor, predictions: Tensor) -> Tensor:
        labels = _alike(labels, predictions, ops.Shape(predictions)[:-1], predictions.shape[:-1])
        return ops.Equal(cast(labels, _core.int64), argmax(predictions, -1))
