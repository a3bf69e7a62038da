# SPDX-License-Identifier: Apache-2.0
"""Moving averages of variables and tensors."""

from __future__ import annotations

from treenail._checks import having
from treenail._control import group
from treenail._convert import convert_to_tensor
from treenail._framework import GraphKeys, add_to_collection, get_collection, name_scope
from treenail._initializer_values import ZEROS
from treenail._math import cast
from treenail._ops import ops
from treenail._partitioned import without_parts
from treenail._shown import public_name
from treenail._treenail import Operation, Tensor
from treenail._variable_scope import _true_getter, get_variable, variable_scope
from treenail._variables import (Variable, global_variables, moving_average_variables,
                                 trainable_variables)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def _averaged(value: Any, what: str) -> None:
    having(having(value, "op", what, "of variables and tensors"), "dtype", what,
           "of variables and tensors")


class ExponentialMovingAverage:
    """Keeps average = decay * average + (1 - decay) * value, updated whenever the operation of
    apply() runs.

    num_updates: a step count; the decay is then at most (1 + num_updates) / (10 + num_updates).
    The average of a variable begins at the variable's initial value, that of a tensor at zero.
    zero_debias: averages of tensors are corrected for that zero, by dividing by 1 - decay**n after
    n updates (Kingma and Ba, Adam, 2015, section 3).

    An average is a variable "<name of the value>/<name>" in the current variable scope.
    """

    def __init__(self, decay: Any, num_updates: Any = None, zero_debias: bool = False,
                 name: str = "ExponentialMovingAverage") -> None:
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages: dict = {}
        self._biased: dict = {}

    @property
    def name(self) -> str:
        """The last part of the averages' names."""
        return self._name

    def __repr__(self) -> str:
        return "<%s %r decay=%r>" % (public_name(self), self._name, self._decay)

    def apply(self, var_list: Sequence | None = None) -> Operation:
        """Makes the averages of these variables and tensors (all trainable variables) and gives the
        operation that updates them. The variables, not their averages, join the collection
        MOVING_AVERAGE_VARIABLES."""
        values = trainable_variables() if var_list is None else list(var_list)
        known = set(get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES))
        for value in values:
            _averaged(value, "var_list")
            if not value.dtype.is_floating:
                raise TypeError("The variables must be half, float, or double: %s" % value.name)
            if value not in self._averages:
                self._make_average(value)
            if isinstance(value, Variable) and value not in known:
                known.add(value)
                add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, value)
        with name_scope(self._name):
            decay = convert_to_tensor(self._decay, name="decay")
            if self._num_updates is not None:
                updates = cast(self._num_updates, decay.dtype)
                decay = ops.Minimum(decay, (1.0 + updates) / (10.0 + updates))
            return group(*[self._update(value, decay) for value in values])

    def _make_average(self, value: Any) -> None:
        with value.graph.as_default():
            if isinstance(value, Variable):
                initial = value.initialized_value()
            elif value.shape.is_fully_defined():
                with value.graph.name_scope(None), value.graph.control_dependencies(None):
                    initial = ops.Fill(value.shape.as_list(), convert_to_tensor(0.0, value.dtype))
            else:
                raise ValueError("the shape of %s must be fully known to keep its average"
                                 % value.name)
            with variable_scope(None, value.op.name + "/" + self._name,
                                auxiliary_name_scope=False) as scope:
                average = _true_getter(scope.name, dtype=value.dtype, initializer=initial,
                                       reuse=scope.reuse, trainable=False, aggregation="MEAN")
            info = getattr(value, "_slice_info", None)
            if info is not None:  # of a part: in checkpoints the averages stand as one, too
                own = average._shared_name[len(value.op.name):]
                average._slice_info = info._replace(full_name=info.full_name + own)
            self._averages[value] = average
            if self._zero_debias and not isinstance(value, Variable):
                with variable_scope(average.op.name, auxiliary_name_scope=False):
                    self._biased[value] = [
                        get_variable(name, shape, value.dtype, ZEROS, trainable=False)
                        for name, shape in (("biased", value.shape), ("local_step", []))]

    def _update(self, value: Any, decay: Tensor) -> Operation:
        average = self._averages[value]
        rate = cast(1.0 - decay, value.dtype)
        current = convert_to_tensor(value)
        if value not in self._biased:
            return average.assign_sub((average.value() - current) * rate, read_value=False)
        biased, count = self._biased[value]
        new_biased = biased.value() - (biased.value() - current) * rate
        new_count = count.value() + 1.0
        return group(biased.assign(new_biased, read_value=False),
                     count.assign(new_count, read_value=False),
                     average.assign(new_biased / (1.0 - ops.Pow(1.0 - rate, new_count)),
                                    read_value=False))

    def average(self, var: Any) -> Variable | None:
        """The variable that holds the average of `var`, or None."""
        return self._averages.get(var)

    def average_name(self, var: Any) -> str:
        """The name of the variable that holds, or would hold, the average of `var`."""
        if var in self._averages:
            return self._averages[var].op.name
        _averaged(var, "var")
        return var.graph.unique_name(var.op.name + "/" + self._name, mark_as_used=False)

    def variables_to_restore(self, moving_avg_variables: Sequence | None = None) -> dict:
        """{name: variable} for a Saver that loads averages in place of the variables they belong
        to: these variables (the trainable ones and those in MOVING_AVERAGE_VARIABLES) by the names
        of their averages, all other global variables but the averages by their own. Parts of a
        variable stand together, in a list, by the name of the whole."""
        if moving_avg_variables is None:
            moving_avg_variables = trainable_variables() + moving_average_variables()
        averaged = dict.fromkeys(without_parts(moving_avg_variables))
        names: dict = {}
        for v in averaged:
            _enter(names, v, self.average_name(v)[len(v.op.name):])
        others: dict = {}
        for v in global_variables():
            if v not in averaged:
                _enter(others, v, "")
        return {**others, **names}


def _enter(names: dict, variable: Any, suffix: str) -> None:
    """Enters a variable by its name in checkpoints with `suffix`."""
    info = getattr(variable, "_slice_info", None)
    if info is None:
        names[variable.op.name + suffix] = variable
    else:
        names.setdefault(info.full_name + suffix, []).append(variable)
