# SPDX-License-Identifier: Apache-2.0
"""The base of all optimizers: gradients, slots, and one update operation per variable."""

from __future__ import annotations

from treenail._control import group
from treenail._convert import IndexedSlices, convert_to_tensor
from treenail._framework import (Graph, GraphKeys, control_dependencies, get_default_graph,
                                 init_scope, name_scope)
from treenail._gradients import gradients
from treenail._math import cast
from treenail._object_graph import tell_of_new_variable
from treenail._ops import ops
from treenail._partitioned import without_parts
from treenail._replica import current as _current
from treenail._shown import arguments, public_name
from treenail._tape import GradientTape
from treenail._treenail import Operation, Tensor
from treenail._variables import Variable, trainable_variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence


class Optimizer:
    """Minimises a loss by changing variables along its gradient.

    A subclass defines _prepare (its hyperparameters as tensors), _create_slots, _apply_dense and
    _apply_sparse. use_locking is accepted for programs that state it: updates of one variable never
    overlap.
    """

    GATE_NONE, GATE_OP, GATE_GRAPH = 0, 1, 2

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._use_locking, self._name = use_locking, name
        self._slots: dict = {}
        self._non_slots: dict = {}

    def __repr__(self) -> str:
        return "<%s>" % " ".join([public_name(self), repr(self._name)]
                                 + arguments(self, defaults=True))

    def get_name(self) -> str:
        """The name given to the constructor."""
        return self._name

    # --- Steps ------------------------------------------------------------------------------------

    def minimize(self, loss: Any, global_step: Variable | None = None,
                 var_list: Sequence | None = None, gate_gradients: int = GATE_OP,
                 aggregation_method: Any = None, colocate_gradients_with_ops: bool = False,
                 name: str | None = None, grad_loss: Any = None) -> Operation:
        """One training step: compute_gradients, then apply_gradients.

        loss: a tensor, or a function without arguments that gives one.

        Raises ValueError when the loss depends on none of the variables.
        """
        pairs = self.compute_gradients(loss, var_list, gate_gradients, aggregation_method,
                                       colocate_gradients_with_ops, grad_loss)
        if all(gradient is None for gradient, _ in pairs):
            raise ValueError("No gradients provided for any variable, check your graph for ops "
                             "that do not support gradients, between variables %s and loss %s."
                             % ([v.name for _, v in pairs], loss))
        return self.apply_gradients(pairs, global_step, name)

    def compute_gradients(self, loss: Any, var_list: Sequence | None = None,
                          gate_gradients: int = GATE_OP, aggregation_method: Any = None,
                          colocate_gradients_with_ops: bool = False, grad_loss: Any = None) -> list:
        """[(gradient or None, variable)] for var_list, by default all trainable variables; for a
        loss given as a function, by default those that it depends on."""
        if gate_gradients not in (Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH):
            raise ValueError("gate_gradients must be one of: Optimizer.GATE_NONE, "
                             "Optimizer.GATE_OP, Optimizer.GATE_GRAPH.  Not %s" % gate_gradients)
        given = callable(loss)
        if get_default_graph()._root._immediate:
            return self._gradients_at_once(loss, var_list, grad_loss)
        loss = convert_to_tensor(loss() if given else loss)
        if not loss.dtype.is_floating:
            raise ValueError("Invalid type %s for loss, expected a floating-point type."
                             % loss.dtype.name)
        with loss.graph.as_default():
            variables = trainable_variables() if var_list is None else without_parts(var_list)
        if not variables:
            raise ValueError("No variables to optimize.")
        for variable in variables:
            if not isinstance(variable, Variable):
                raise TypeError("Argument is not a variable: %r" % (variable,))
        found = gradients(loss, variables, None if grad_loss is None else [grad_loss])
        pairs = list(zip(found, variables))
        if given and var_list is None:
            pairs = [pair for pair in pairs if pair[0] is not None]
        return pairs

    @staticmethod
    def _gradients_at_once(loss: Any, var_list: Sequence | None, grad_loss: Any) -> list:
        if not callable(loss):
            raise RuntimeError("`loss` passed to Optimizer.compute_gradients should be a function "
                               "when eager execution is enabled.")
        with GradientTape() as tape:
            if var_list is not None:
                tape.watch(without_parts(var_list))
            value = convert_to_tensor(loss())
        variables = list(tape.watched_variables() if var_list is None else without_parts(var_list))
        if not value.dtype.is_floating:
            raise ValueError("Invalid type %s for loss, expected a floating-point type."
                             % value.dtype.name)
        if not variables:
            raise ValueError("No variables to optimize.")
        return list(zip(tape.gradient(value, variables, grad_loss), variables))

    def apply_gradients(self, grads_and_vars: Sequence, global_step: Variable | None = None,
                        name: str | None = None) -> Operation:
        """One operation that updates every variable with its gradient, and then adds 1 to
        global_step.

        In a replica (tn.distribute) the gradients of all replicas are added up first. Raises
        RuntimeError in the scope of a strategy outside of replicas."""
        given = self._given(grads_and_vars)
        if _current.strategy is not None and _current.strategy.extended._mirrors \
                and _current.component is None:
            if _current.replica is None:
                raise RuntimeError("apply_gradients() and minimize() of a strategy's variables are "
                                   "called in a replica: in the function that Strategy.run() is "
                                   "given, not in a cross-replica context")
            return _current.replica.merge_call(self._apply_in_all, (given, global_step, name))
        graph = given[0][1]._graph
        with graph.as_default(), init_scope():
            self._create_slots([variable for _, variable in given])
        with graph.as_default(), name_scope(name, self._name) as scope:
            if global_step is None:
                step = self._applied(given, scope)
            else:
                with control_dependencies([self._applied(given, "update")]):
                    one = self._steps_made(global_step.dtype)
                    step = ops.AssignAddVariableOp(global_step.handle, one, name=scope)
        return self._as_train_op(step, graph)

    def _given(self, grads_and_vars: Sequence) -> list:
        """The pairs that have a gradient."""
        pairs = [(self._gradient(gradient, variable), variable) for gradient,
                 variable in grads_and_vars]
        given = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
        if not pairs:
            raise ValueError("No variables provided.")
        if not given:
            raise ValueError("No gradients provided for any variable: %s."
                             % ([v.name for _, v in pairs],))
        return given

    def _applied(self, given: Sequence, name: str) -> Operation:
        """The operation that updates every variable."""
        self._prepare()
        updates = []
        for gradient, variable in given:
            with get_default_graph().name_scope("update_" + variable._shared_name):
                updates.append(self._update(gradient, variable))
        return self._finish(updates, name)

    def _apply_in_all(self, strategy: Any, given: Sequence, global_step: Any,
                      name: str | None) -> Operation:
        """For all replicas together: gradients are added up, and every copy is updated alike."""
        extended, variables = strategy.extended, [variable for _, variable in given]
        graph = variables[0]._graph
        with graph.as_default(), init_scope():
            self._create_slots(variables)
        with graph.as_default(), name_scope(name, self._name) as scope:
            totals = extended.batch_reduce_to("SUM", [(g, v) for g, v in given])
            ends = []
            for number, device in enumerate(extended.parameter_devices):
                with extended._updating(number), graph.device(device):
                    ends.append(self._applied(list(zip(totals, variables)), "update"))
            if global_step is None:
                step = group(*ends, name=scope)
            else:
                with control_dependencies(ends):
                    added = global_step.assign_add(self._steps_made(global_step.dtype),
                                                   read_value=False)
                step = group(added, name=scope)
        return self._as_train_op(step, graph)

    @staticmethod
    def _as_train_op(step: Operation, graph: Any) -> Operation:
        if graph._immediate:
            return step
        train_ops = graph.get_collection_ref(GraphKeys.TRAIN_OP)
        if step not in train_ops:
            train_ops.append(step)
        return step

    @staticmethod
    def _gradient(gradient: Any, variable: Any) -> Any:
        if not isinstance(variable, Variable):
            raise TypeError("Variable must be a Variable, not %r" % (variable,))
        if gradient is None or isinstance(gradient, IndexedSlices):
            return gradient
        gradient = convert_to_tensor(gradient)
        if not gradient.shape.is_compatible_with(variable.shape):
            raise ValueError("the gradient of variable %s has shape %s, needed is %s"
                             % (variable._shared_name, gradient.shape, variable.shape))
        return gradient

    def _update(self, gradient: Any, variable: Variable) -> Operation:
        if isinstance(gradient, IndexedSlices):
            if variable.constraint is not None:
                raise RuntimeError("Cannot use a constraint function on a sparse variable.")
            return self._apply_sparse(gradient, variable)
        update = self._apply_dense(gradient, variable)
        if variable.constraint is None:
            return update
        with control_dependencies([update]):
            return variable.assign(variable.constraint(variable.read_value()), read_value=False)

    def variables(self) -> list:
        """The optimizer's own variables: slots and such, by name."""
        own = list(self._non_slots.values())
        for slots in self._slots.values():
            own += slots.values()
        return sorted(own, key=lambda v: v.name)

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """The slot variable `name` (such as "momentum") kept for `var`, or None."""
        return self._slots.get(name, {}).get(var)

    def get_slot_names(self) -> list:
        """The names of the slots that exist."""
        return sorted(self._slots)

    # --- For subclasses ---------------------------------------------------------------------------

    def _create_slots(self, var_list: Sequence) -> None:
        """Makes the slots of these variables."""

    def _prepare(self) -> None:
        """Turns hyperparameters into tensors."""

    def _steps_made(self, dtype: Any) -> Tensor:
        """What is added to global_step after _applied()."""
        return convert_to_tensor(1, dtype)

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation:
        raise NotImplementedError("%s defines no update" % type(self).__name__)

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Operation:
        raise NotImplementedError("%s defines no update for IndexedSlices" % type(self).__name__)

    def _finish(self, update_ops: Sequence, name_scope: str) -> Operation:
        return group(*update_ops, name=name_scope)

    def _zeros_slot(self, var: Variable, slot_name: str, op_name: str) -> Variable:
        return self._filled_slot(var, 0.0, slot_name, op_name)

    def _filled_slot(self, var: Variable, value: float, slot_name: str, op_name: str) -> Variable:
        def initial_value() -> Tensor:
            known = var.shape.is_fully_defined()
            like = var.value() if var._graph._immediate else var.initial_value
            shape = var.shape.as_list() if known else ops.Shape(like)
            return ops.Fill(shape, convert_to_tensor(value, var.dtype))
        return self._get_or_make_slot(var, initial_value, slot_name, op_name)

    def _get_or_make_slot(self, var: Variable, value: Callable, slot_name: str,
                          op_name: str) -> Variable:
        slots = self._slots.setdefault(slot_name, {})
        if var not in slots:
            graph = var._graph
            with graph.name_scope(None), graph.control_dependencies(None), \
                    graph.device(None), graph.device(var.device or None):
                slots[var] = Variable(value(), trainable=False, name="%s/%s" % (
                    var._shared_name, op_name))
            self._place_in_whole(slots[var], var)
            if graph._immediate:
                tell_of_new_variable()
        return slots[var]

    @staticmethod
    def _place_in_whole(slot: Variable, var: Variable) -> None:
        """A slot of a part is a part of the whole's slot: in checkpoints they stand as one."""
        info = var._slice_info
        if info is not None and slot.shape == var.shape:
            own = slot._shared_name[len(var._shared_name):]  # "/Adam_1"
            slot._slice_info = info._replace(full_name=info.full_name + own)

    def _create_non_slot_variable(self, initial_value: Any, name: str,
                                  colocate_with: Variable) -> Variable:
        key = name, colocate_with._graph
        if key not in self._non_slots:
            graph, device = colocate_with._graph, colocate_with.device
            with graph.as_default(), graph.name_scope(None), graph.device(None), \
                    graph.device(device or None):
                self._non_slots[key] = Variable(initial_value, name=name, trainable=False)
            if graph._immediate:
                tell_of_new_variable()
        return self._non_slots[key]

    def _own_variables(self) -> dict:
        """Those that are no slots, of the default graph."""
        around = get_default_graph()._root
        return {name: v for (name, graph), v in self._non_slots.items() if graph is around}

    def _get_non_slot_variable(self, name: str, graph: Graph | None = None) -> Variable:
        return self._non_slots[name, graph or get_default_graph()._root]

    @staticmethod
    def _sum_duplicates(grad: IndexedSlices) -> tuple:
        """(values, indices) with each index once: rows of the same index are added."""
        indices, position = ops.Unique(grad.indices)[:2]
        count = ops.Size(indices)
        return ops.UnsortedSegmentSum(grad.values, position, count), indices


def hyperparameter(value: Any, name: str) -> Any:
    """A number as it is, anything else as a tensor; a function is called first."""
    value = value() if callable(value) else value
    return value if isinstance(value, (int, float)) else convert_to_tensor(value, name=name)


def in_dtype(value: Any, dtype: Any) -> Tensor:
    """A hyperparameter in this dtype; a number is not rounded to float32 on its way to float64."""
    if isinstance(value, (int, float)):
        return convert_to_tensor(value, dtype)
    return cast(value, dtype)


def cast_to(value: Any, var: Variable) -> Tensor:
    """A hyperparameter in the dtype of a variable."""
    return in_dtype(value, var.dtype)
