# SPDX-License-Identifier: Apache-2.0
"""MixedPrecision: an optimizer around another that scales the loss, so that gradients which the
narrow dtype could not hold survive. What is computed narrow is decided by scopes (_precision.py).
"""

from __future__ import annotations

import math

from treenail import _treenail as _core
from treenail._control import group
from treenail._control_flow import cond
from treenail._convert import IndexedSlices, convert_to_tensor
from treenail._framework import (GraphKeys, control_dependencies, executing_eagerly,
                                 get_default_graph, graph_of, init_scope, name_scope)
from treenail._math import cast, reduce_all
from treenail._object_graph import tell_of_new_variable
from treenail._ops import ops
from treenail._precision import checked_dtype, mixed_precision
from treenail._replica import current as _current
from treenail._treenail import Operation, Tensor
from treenail._variables import Variable
from treenail.train._optimizer import Optimizer
from treenail.train._sync_replicas import SyncReplicasOptimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

_HALVES = (_core.float16, _core.bfloat16)


class MixedPrecision(Optimizer):
    """Another optimizer, for a model that was made in a scope of tn.train.mixed_precision.

    compute_gradients multiplies the loss by a scale, so that small gradients do not vanish in the
    narrow dtype, and gives gradients divided by it again, in the dtype of their variables. With a
    dynamic scale apply_gradients changes nothing, global_step included, where a gradient is not
    finite, and halves the scale; after a number of steps without that it doubles it.

    optimizer: computes updates. dtype: "bfloat16" or "float16", of the scope; a loss that is given
    as a function is computed in one. loss_scale: "dynamic"; a number that the loss is always
    multiplied by, 1 for none, without a look at the gradients; or None, which means "dynamic" for
    float16, and none for bfloat16, whose range is that of float32. initial_loss_scale,
    increment_period, multiplier: of a dynamic scale the first value, the number of good steps in a
    row until it grows, and by what it grows and shrinks; it does not shrink below 1.

        with tn.train.mixed_precision("float16"):
            loss = tn.losses.sparse_softmax_cross_entropy(y, model(x))
        optimizer = tn.train.MixedPrecision(tn.train.AdamOptimizer(), "float16")
        train = optimizer.minimize(loss)

    Variables: loss_scale, a float32 scalar, and good_steps, an int64 one, of a dynamic scale.
    Source: Micikevicius and others, Mixed Precision Training, 2018 (arXiv:1710.03740), section 3.2.

    Raises TypeError for what is no Optimizer, dtype or number, ValueError for an optimizer that is
    or has such a one within, another dtype, and a scale, period or multiplier out of its range.
    """

    def __init__(self, optimizer: Optimizer, dtype: Any = "bfloat16", loss_scale: Any = None,
                 initial_loss_scale: float = 2.0 ** 15, increment_period: int = 2000,
                 multiplier: float = 2.0, name: str = "MixedPrecision") -> None:
        super().__init__(False, name)
        self._optimizer = _checked_optimizer(optimizer)
        self._dtype = checked_dtype(dtype, "MixedPrecision(): dtype")
        if self._dtype not in _HALVES:
            raise ValueError("MixedPrecision(): dtype is %r; needed is 'bfloat16' or 'float16'"
                             % (dtype,))
        if loss_scale is None:
            loss_scale = "dynamic" if self._dtype == _core.float16 else 1.0
        if loss_scale != "dynamic":
            loss_scale = _number(loss_scale, "loss_scale", 0.0, "'dynamic', None or ")
        self._loss_scale = loss_scale
        self._initial_loss_scale = _number(initial_loss_scale, "initial_loss_scale", 0.0)
        self._multiplier = _number(multiplier, "multiplier", 1.0)
        if isinstance(increment_period, bool) or not hasattr(increment_period, "__index__"):
            raise TypeError("MixedPrecision(): increment_period is %r; needed is an int"
                            % (increment_period,))
        self._increment_period = increment_period.__index__()
        if self._increment_period < 1:
            raise ValueError("MixedPrecision(): increment_period is %r; needed is a positive number"
                             " of steps" % (increment_period,))
        self._slots = optimizer._slots

    @property
    def _is_dynamic(self) -> bool:
        return self._loss_scale == "dynamic"

    @property
    def loss_scale(self) -> Tensor:
        """The scale now, a float32 scalar."""
        if not self._is_dynamic:
            return convert_to_tensor(self._loss_scale, _core.float32)
        scale = self._state()[0]
        with _beside(scale):
            return scale.value()

    # --- Steps ------------------------------------------------------------------------------------

    def compute_gradients(self, loss: Any, var_list: Sequence | None = None,
                          gate_gradients: int = Optimizer.GATE_OP, aggregation_method: Any = None,
                          colocate_gradients_with_ops: bool = False, grad_loss: Any = None) -> list:
        """[(gradient or None, variable)]: as the optimizer's, of the loss itself."""
        if callable(loss):
            scaled = self._scaled_function(loss)
        else:
            scaled = self._scaled(loss)
        if isinstance(grad_loss, Tensor) and grad_loss.dtype in _HALVES and self._scales:
            grad_loss = cast(grad_loss, _core.float32)  # as the scaled loss
        pairs = self._optimizer.compute_gradients(scaled, var_list, gate_gradients,
                                                  aggregation_method, colocate_gradients_with_ops,
                                                  grad_loss)
        if not self._scales:
            return pairs
        return [(self._unscaled(gradient, variable), variable) for gradient, variable in pairs]

    @property
    def _scales(self) -> bool:
        return self._loss_scale != 1.0

    def _scaled_function(self, loss: Any) -> Any:
        def scaled() -> Tensor:
            with mixed_precision(self._dtype):
                value = loss()
            return self._scaled(value)
        return scaled

    def _scaled(self, loss: Any) -> Tensor:
        loss = convert_to_tensor(loss)
        if not loss.dtype.is_floating:
            raise ValueError("Invalid type %s for loss, expected a floating-point type."
                             % loss.dtype.name)
        if not self._scales:
            return loss
        with graph_of([loss]).as_default(), name_scope(None, self._name):
            return ops.Mul(cast(loss, _wide(loss.dtype)), cast(self.loss_scale, _wide(loss.dtype)))

    def _unscaled(self, gradient: Any, variable: Variable) -> Any:
        if gradient is None:
            return None
        with _beside(variable), name_scope(None, self._name):
            if isinstance(gradient, IndexedSlices):
                return IndexedSlices(self._divided(gradient.values, variable), gradient.indices,
                                     gradient.dense_shape)
            return self._divided(gradient, variable)

    def _divided(self, values: Tensor, variable: Variable) -> Tensor:
        wide = _wide(variable.dtype)
        return cast(ops.RealDiv(cast(values, wide), cast(self.loss_scale, wide)), variable.dtype)

    def apply_gradients(self, grads_and_vars: Sequence, global_step: Variable | None = None,
                        name: str | None = None) -> Operation:
        """As the optimizer's; with a dynamic scale only where all gradients are finite, and the
        scale follows. In replicas (tn.distribute) the sums over all of them must be. Raises
        RuntimeError there for an optimizer with an apply_gradients of its own."""
        if not self._is_dynamic:
            return self._optimizer.apply_gradients(grads_and_vars, global_step, name)
        if _current.strategy is not None and _current.strategy.extended._mirrors:
            if type(self._optimizer).apply_gradients is not Optimizer.apply_gradients:
                raise RuntimeError("MixedPrecision with a dynamic loss scale, in the scope of a "
                                   "strategy, needs an optimizer with the apply_gradients of "
                                   "Optimizer, not %r" % (self._optimizer,))
            return super().apply_gradients(grads_and_vars, global_step, name)
        given = self._given(grads_and_vars)
        graph = given[0][1]._graph
        with graph.as_default(), name_scope(name, self._name) as scope:
            finite = _all_finite(given)
            if executing_eagerly():
                if bool(finite):
                    self._optimizer.apply_gradients(given, global_step)
                self._next_scale(finite)
                return group()
            done = self._step_where(finite, given, global_step, graph)
            step = group(done, *self._next_scale(finite), name=scope)
        return self._as_train_op(step, graph)

    def _step_where(self, finite: Tensor, given: list, global_step: Any, graph: Any) -> Tensor:
        """The optimizer's step as a branch; its operations are none of the graph's."""
        train_ops = graph.get_collection_ref(GraphKeys.TRAIN_OP)
        known = list(train_ops)

        try:
            return _done_where(finite, lambda: self._optimizer.apply_gradients(given, global_step))
        finally:
            train_ops[:] = known

    # Of Optimizer.apply_gradients, for the sums over replicas and on each device of variables.

    def _create_slots(self, var_list: Sequence) -> None:
        self._optimizer._create_slots(var_list)

    def _applied(self, given: Sequence, name: str) -> Operation:
        self._finite = _all_finite(given)
        done = _done_where(self._finite, lambda: self._optimizer._applied(given, "update"))
        return group(done, *self._next_scale(self._finite), name=name)

    def _steps_made(self, dtype: Any) -> Tensor:
        return cast(self._finite, dtype)

    # --- The scale --------------------------------------------------------------------------------

    def _state(self) -> tuple:
        """The variables of the scale, of the default graph."""
        return (self._scalar("loss_scale", self._initial_loss_scale, _core.float32),
                self._scalar("good_steps", 0, _core.int64))

    def _scalar(self, name: str, value: Any, dtype: Any) -> Variable:
        key = name, get_default_graph()._root
        if key not in self._non_slots:
            with init_scope(), name_scope(None), key[1].device(None):
                self._non_slots[key] = Variable(value, trainable=False, dtype=dtype,
                                                name="%s/%s" % (self._name, name))
            if key[1]._immediate:
                tell_of_new_variable()
        return self._non_slots[key]

    def _next_scale(self, finite: Tensor) -> list:
        """The operations that let the scale follow."""
        scale, good_steps = self._state()
        with _beside(scale):
            now, steps = scale.value(), good_steps.value() + 1
            enough = ops.LogicalAnd(finite, ops.GreaterEqual(steps, self._increment_period))
            larger = now * self._multiplier
            grows = ops.LogicalAnd(enough, ops.IsFinite(larger))
            smaller = ops.Maximum(now / self._multiplier, ops.Minimum(now, 1.0))
            new = ops.Select(grows, larger, ops.Select(finite, now, smaller))
            counts = ops.LogicalAnd(finite, ops.LogicalNot(enough))
            counted = ops.Select(counts, steps, ops.ZerosLike(steps))
            return [scale.assign(new, read_value=False),
                    good_steps.assign(counted, read_value=False)]

    # --- What the optimizer has -------------------------------------------------------------------

    def variables(self) -> list:
        """The variables of the scale and the optimizer's own, by name."""
        return sorted([*self._non_slots.values(), *self._optimizer.variables()],
                      key=lambda v: v.name)

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """As the optimizer's."""
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> list:
        """As the optimizer's."""
        return self._optimizer.get_slot_names()

    def _own_variables(self) -> dict:
        return {**self._optimizer._own_variables(), **super()._own_variables()}


def _checked_optimizer(optimizer: Any) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise TypeError("MixedPrecision(): optimizer is %r; needed is an Optimizer" % (optimizer,))
    if isinstance(optimizer, SyncReplicasOptimizer):
        raise ValueError("MixedPrecision(): optimizer is %r; needed is the one within, so that "
                         "SyncReplicasOptimizer is around MixedPrecision" % (optimizer,))
    within: Any = optimizer
    while within is not None:
        if isinstance(within, MixedPrecision):
            raise ValueError("MixedPrecision(): optimizer is %r, which scales the loss already; "
                             "needed is one without MixedPrecision" % (optimizer,))
        within = getattr(within, "_optimizer", None)
    return optimizer


def _number(value: Any, what: str, above: float, others: str = "") -> float:
    needed = "needed is %sa finite number above %g" % (others, above)
    if isinstance(value, bool) or not isinstance(value, (int, float)) and not hasattr(
            value, "__float__"):
        raise TypeError("MixedPrecision(): %s is %r; %s" % (what, value, needed))
    number = float(value)
    if not (math.isfinite(number) and number > above):
        raise ValueError("MixedPrecision(): %s is %r; %s" % (what, value, needed))
    return number


def _wide(dtype: Any) -> Any:
    return _core.float32 if dtype in _HALVES else dtype


class _beside:  # noqa: N801 (a context manager)
    """In the graph and on the device of a variable."""

    def __init__(self, variable: Variable) -> None:
        graph = variable._graph
        self._contexts = (graph.as_default(), graph.device(None),
                          graph.device(variable.device or None))

    def __enter__(self) -> None:
        for context in self._contexts:
            context.__enter__()

    def __exit__(self, *unused: Any) -> None:
        for context in reversed(self._contexts):
            context.__exit__(None, None, None)


def _done_where(finite: Tensor, step: Callable) -> Tensor:
    """Whether the operation that step() makes, as a branch, has run."""
    def run() -> Tensor:
        with control_dependencies([step()]):
            return ops.Identity(convert_to_tensor(True))
    return cond(finite, run, lambda: convert_to_tensor(False))


def _all_finite(given: Sequence) -> Tensor:
    """Whether all elements of all gradients are finite, a bool scalar."""
    found = []
    for gradient, variable in given:
        values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
        with _beside(variable):
            found.append(reduce_all(ops.IsFinite(values)))
    return reduce_all(ops.Pack(found))
