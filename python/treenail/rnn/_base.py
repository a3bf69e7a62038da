# SPDX-License-Identifier: Apache-2.0
"""The base of all recurrent cells: one step from (inputs, state) to (outputs, new state)."""

from __future__ import annotations

import collections

from treenail._array import shape_of, zeros
from treenail._convert import convert_to_tensor, scope_of
from treenail._nest import flatten, is_nested, map_structure
from treenail._shape import TensorShape, as_shape
from treenail._treenail import Tensor
from treenail.layers._base import Layer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LSTMStateTuple = collections.namedtuple("LSTMStateTuple", ("c", "h"))
LSTMStateTuple.__doc__ = "The state of an LSTM: c, the cell's own, and h, its output."


def _state_shape(size: Any, batch_size: Any) -> Any:
    extents = TensorShape(size).as_list() if not isinstance(size, int) else [size]
    if None in extents:
        raise ValueError("the state's size must be known, it is %s" % (size,))
    return [batch_size] + extents


def _is_nest_of_tensors(inputs: Any) -> bool:
    """A list of numbers is a tensor."""
    return is_nested(inputs) and any(isinstance(leaf, Tensor) for leaf in flatten(inputs))


class RNNCell(Layer):
    """One step of a recurrent layer.

    A subclass defines state_size (an int, a shape, or a nested tuple of them), output_size, and
    call(inputs, state), which gives (outputs, new state); variables are made in build(input_shape)
    or by get_variable in call. inputs are [batch, size], states [batch, state size].
    """

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple:
        """(outputs, new state) of one step; the first call makes the variables, in `scope` where
        it is given. inputs: a tensor, or a nest of them for a cell that takes one; build() then
        gets a nest of shapes."""
        if scope is not None and self._scope is None:
            self._given_scope = scope
        if not _is_nest_of_tensors(inputs):
            return super().__call__(inputs, state)
        inputs = map_structure(convert_to_tensor, inputs)
        shapes = map_structure(lambda x: x.shape, inputs)
        return self._in_scope(flatten(inputs)[0], shapes, lambda: self.call(inputs, state))

    @property
    def state_size(self) -> Any:
        """Sizes of the state: an int, a shape, or a nested tuple of them."""
        raise NotImplementedError("Abstract method")

    @property
    def output_size(self) -> Any:
        """The size of the outputs."""
        raise NotImplementedError("Abstract method")

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros for this batch size, an int or a scalar tensor."""
        with scope_of(None, type(self).__name__ + "ZeroState"):
            return map_structure(lambda size: zeros(_state_shape(size, batch_size), dtype),
                                 self.state_size)

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None,
                          dtype: Any = None) -> Any:
        """zero_state, with batch size and dtype taken from `inputs` where they are given."""
        if inputs is not None:
            inputs = convert_to_tensor(inputs)
            batch_size, dtype = batch_of(inputs), inputs.dtype
        if batch_size is None or dtype is None:
            raise ValueError("batch_size and dtype cannot be None while constructing initial "
                             "state: batch_size=%s, dtype=%s" % (batch_size, dtype))
        return self.zero_state(batch_size, dtype)

    # --- Whole sequences, for dynamic_rnn ---------------------------------------------------------

    def _takes_sequences(self) -> bool:
        """Whether _sequence computes what steps would."""
        return False

    def _sequence(self, inputs: Any, state: Any, lengths: Any) -> tuple:
        """(outputs, state after each row's length) of inputs [time, batch, size]; outputs behind
        the lengths mean nothing."""
        raise NotImplementedError("Abstract method")

    def _over(self, inputs: Any, state: Any, lengths: Any) -> tuple:
        """_sequence in the cell's variable scope."""
        return self._in_scope(inputs, TensorShape(inputs.shape.as_list()[1:]),
                              lambda: self._sequence(inputs, state, lengths))


class OneStateCell(RNNCell):
    """A cell whose state is its output."""

    _num_units: int

    @property
    def state_size(self) -> int:
        """num_units."""
        return self._num_units

    @property
    def output_size(self) -> int:
        """num_units."""
        return self._num_units


def positive_int(value: Any, what: str) -> int:
    """A number of units. Raises ValueError."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
        raise ValueError("%s must be a positive int, not %r" % (what, value))
    return int(value)


def batch_of(inputs: Any, axis: int = 0) -> Any:
    """The batch size: an int where it is known, else a scalar tensor."""
    if inputs.shape.ndims is not None and inputs.shape.ndims <= axis:
        raise ValueError("inputs must have an axis %d, their shape is %s" % (axis, inputs.shape))
    known = inputs.shape[axis] if inputs.shape.ndims is not None else None
    return shape_of(inputs)[axis] if known is None else known


def depth_of(input_shape: TensorShape) -> int:
    """The known last extent of a cell's inputs, which have rank 2. Raises ValueError."""
    input_shape = as_shape(input_shape)
    if input_shape.ndims is not None and input_shape.ndims != 2:
        raise ValueError("inputs of a cell must have rank 2, their shape is %s" % input_shape)
    depth = input_shape[-1] if input_shape.ndims is not None else None
    if depth is None:
        raise ValueError("Expected inputs.shape[-1] to be known, saw shape: %s" % input_shape)
    return depth


class CellsWithin:
    """For a cell around others: their variables and losses are its own."""

    trainable: bool

    def _cells(self) -> list:
        raise NotImplementedError("Abstract method")

    def _gathered(self, attribute: str) -> list:
        return [item for cell in self._cells() for item in getattr(cell, attribute)]

    @property
    def variables(self) -> list:
        """All variables of the cells within."""
        return self._gathered("variables")

    weights = variables

    @property
    def trainable_variables(self) -> list:
        """Those that an optimizer changes."""
        return self._gathered("trainable_variables") if self.trainable else []

    trainable_weights = trainable_variables

    @property
    def non_trainable_variables(self) -> list:
        """The other variables."""
        trainable = self.trainable_variables
        return [v for v in self.variables if not any(v is t for t in trainable)]

    non_trainable_weights = non_trainable_variables

    @property
    def losses(self) -> list:
        """Regularisation losses of the cells within."""
        return self._gathered("losses")
