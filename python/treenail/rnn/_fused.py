# SPDX-License-Identifier: Apache-2.0
"""Cells and layers of one op: LSTMBlockCell, GRUBlockCell and GRUBlockCellV2 for a step,
LSTMBlockFusedCell for a whole sequence. The sequence is many times faster than steps."""

from __future__ import annotations

from treenail._array import stack, unstack, zeros
from treenail._convert import convert_to_tensor
from treenail._initializer_values import ONES, ZEROS
from treenail._math import cast
from treenail._ops import ops
from treenail._shape import TensorShape, as_shape
from treenail._treenail import Tensor, int64
from treenail.layers._base import Layer
from treenail.rnn._base import (LSTMStateTuple, OneStateCell, RNNCell, batch_of, depth_of,
                                positive_int)
from treenail.rnn._sequence import cut_behind, gru_sequence, lstm_sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _LSTMVariables(Layer):
    """What the cell and the layer share: variables kernel [inputs + units, 4 units], bias, and with
    peepholes w_i_diag, w_f_diag, w_o_diag; and the attributes of the ops."""

    def _set(self, num_units: int, forget_bias: float, cell_clip: float | None,
             use_peephole: bool) -> None:
        self._num_units = positive_int(num_units, "num_units")
        self._use_peephole = use_peephole
        self._attrs = {"forget_bias": forget_bias, "use_peephole": use_peephole,
                       "cell_clip": -1.0 if cell_clip is None else cell_clip}

    @property
    def num_units(self) -> int:
        """Numbers in the state."""
        return self._num_units

    def build(self, input_shape: TensorShape) -> None:
        """Makes the variables."""
        units = self._num_units
        depth = depth_of(as_shape(input_shape)[-2:])
        self._kernel = self.add_variable("kernel", [depth + units, 4 * units])
        self._bias = self.add_variable("bias", [4 * units], initializer=ZEROS)
        if self._use_peephole:
            self._diagonals = [self.add_variable("w_%s_diag" % gate, [units]) for gate in "ifo"]

    def _weights(self, dtype: Any) -> list:
        peepholes = self._diagonals if self._use_peephole else [zeros([0], dtype)] * 3
        return [self._kernel, *peepholes, self._bias]


class LSTMBlockCell(_LSTMVariables, RNNCell):
    """The step of LSTMCell as one op, with its own clipping and peepholes (op LSTMBlockCell).

    The state is LSTMStateTuple(c, h). cell_clip: None clips nothing.
    """

    def __init__(self, num_units: int, forget_bias: float = 1.0, cell_clip: float | None = None,
                 use_peephole: bool = False, dtype: Any = None, reuse: Any = None,
                 name: str | None = "lstm_cell") -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse)
        self._set(num_units, forget_bias, cell_clip, use_peephole)

    @property
    def state_size(self) -> LSTMStateTuple:
        """LSTMStateTuple(num_units, num_units)."""
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        """num_units."""
        return self._num_units

    def call(self, inputs: Tensor, state: Any) -> tuple:
        """(h, new state)."""
        self._needs_variables()
        if not isinstance(state, (tuple, list)) or len(state) != 2:
            raise ValueError("Expecting state to be a tuple with length 2.")
        outputs = ops.LSTMBlockCell(inputs, state[0], state[1], *self._weights(inputs.dtype),
                                    **self._attrs)
        return outputs[6], LSTMStateTuple(outputs[1], outputs[6])

    def _takes_sequences(self) -> bool:
        return type(self).call is LSTMBlockCell.call

    def _sequence(self, inputs: Tensor, state: Any, lengths: Tensor | None) -> tuple:
        return lstm_sequence(inputs, state[0], state[1], self._weights(inputs.dtype), self._attrs,
                             lengths)


class LSTMBlockFusedCell(_LSTMVariables):
    """A layer of long short-term memory over a whole sequence, as one op (BlockLSTM).

    fused(inputs, initial_state=None, dtype=None, sequence_length=None) takes inputs [time, batch,
    size], or a list of [batch, size], and gives (outputs, LSTMStateTuple(c, h)); outputs are as the
    inputs were given. initial_state: (c, h), zeros of `dtype` by default. sequence_length, [batch]:
    outputs behind it are zero, and the final state is the one there. cell_clip: None clips nothing.
    """

    def __init__(self, num_units: int, forget_bias: float = 1.0, cell_clip: float | None = None,
                 use_peephole: bool = False, reuse: Any = None, dtype: Any = None,
                 name: str | None = "lstm_fused_cell") -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse)
        self._set(num_units, forget_bias, cell_clip, use_peephole)

    def __call__(self, inputs: Any, initial_state: Any = None, dtype: Any = None,
                 sequence_length: Any = None, scope: Any = None) -> tuple:
        """(outputs, final state)."""
        listed = isinstance(inputs, (list, tuple))
        inputs = stack(inputs) if listed else convert_to_tensor(inputs)
        if inputs.shape.ndims not in (None, 3):
            raise ValueError("inputs must be [time, batch, size], their shape is %s"
                             % inputs.shape)
        if inputs.shape.ndims is None or inputs.shape[2] is None:
            raise ValueError("Expecting inputs_shape[2] to be set: %s" % inputs.shape)
        if scope is not None and self._scope is None:
            self._given_scope = scope
        outputs, state = super().__call__(inputs, initial_state, dtype, sequence_length)
        return unstack(outputs) if listed else outputs, state

    def call(self, inputs: Tensor, initial_state: Any = None, dtype: Any = None,
             sequence_length: Any = None) -> tuple:
        """(outputs, final state) of inputs [time, batch, size]."""
        self._needs_variables()
        c, h = self._initial(inputs, initial_state, dtype)
        lengths = None if sequence_length is None else cast(sequence_length, int64)
        outputs, state = lstm_sequence(inputs, c, h, self._weights(inputs.dtype), self._attrs,
                                       lengths)
        return cut_behind(outputs, lengths), state

    def _initial(self, inputs: Tensor, given: Any, dtype: Any) -> tuple:
        if given is None:
            if dtype is None:
                raise ValueError("Either initial_state or dtype needs to be specified")
            state = zeros([batch_of(inputs, 1), self._num_units], dtype)
            return state, state
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise ValueError("Expecting initial_state to be a tuple with length 2 or None")
        return tuple(given)


class GRUBlockCell(OneStateCell):
    """The step of GRUCell as one op (GRUBlockCell). Variables: w_ru, b_ru, w_c, b_c."""

    _NAMES = ("w_ru", "b_ru", "w_c", "b_c")

    def __init__(self, num_units: int | None = None, cell_size: int | None = None,
                 reuse: Any = None, name: str | None = "gru_cell", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse)
        if (num_units is None) == (cell_size is None):
            raise ValueError("one of num_units and cell_size (its old name) must be given")
        self._num_units = positive_int(cell_size if num_units is None else num_units, "num_units")

    def build(self, input_shape: TensorShape) -> None:
        """Makes the variables; the gates' bias begins as 1."""
        rows, units = depth_of(input_shape) + self._num_units, self._num_units
        w_ru, b_ru, w_c, b_c = self._NAMES
        self._w_ru = self.add_variable(w_ru, [rows, 2 * units])
        self._b_ru = self.add_variable(b_ru, [2 * units], initializer=ONES)
        self._w_c = self.add_variable(w_c, [rows, units])
        self._b_c = self.add_variable(b_c, [units], initializer=ZEROS)

    def call(self, inputs: Tensor, state: Tensor) -> tuple:
        """(new state, new state)."""
        self._needs_variables()
        h = ops.GRUBlockCell(inputs, state, self._w_ru, self._w_c, self._b_ru, self._b_c)[3]
        return h, h

    def _takes_sequences(self) -> bool:
        return type(self).call is GRUBlockCell.call

    def _sequence(self, inputs: Tensor, state: Tensor, lengths: Tensor | None) -> tuple:
        return gru_sequence(inputs, state, [self._w_ru, self._w_c, self._b_ru, self._b_c], lengths)


class GRUBlockCellV2(GRUBlockCell):
    """GRUBlockCell with the variables of GRUCell: gates/kernel, gates/bias, candidate/kernel,
    candidate/bias."""

    _NAMES = ("gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias")
