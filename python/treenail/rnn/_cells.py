# SPDX-License-Identifier: Apache-2.0
"""The cells made of elementary operations: BasicRNNCell, GRUCell, BasicLSTMCell, LSTMCell."""

from __future__ import annotations

from treenail._activations import bias_add, sigmoid
from treenail._array import concat, split, zeros
from treenail._clip import clip_by_value
from treenail._initializer_values import ONES, ZEROS
from treenail._math import matmul, tanh
from treenail._named import activation as named_activation
from treenail._shape import TensorShape
from treenail._treenail import Tensor
from treenail.rnn._base import LSTMStateTuple, OneStateCell, RNNCell, depth_of, positive_int
from treenail.rnn._sequence import gru_sequence, lstm_sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class BasicRNNCell(OneStateCell):
    """output = new state = activation([inputs, state] kernel + bias)."""

    def __init__(self, num_units: int, activation: Any = None, reuse: Any = None,
                 name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._num_units = positive_int(num_units, "num_units")
        self._activation = named_activation(activation) or tanh

    def build(self, input_shape: TensorShape) -> None:
        """Makes kernel and bias."""
        rows = depth_of(input_shape) + self._num_units
        self._kernel = self.add_variable("kernel", [rows, self._num_units])
        self._bias = self.add_variable("bias", [self._num_units], initializer=ZEROS)

    def call(self, inputs: Tensor, state: Tensor) -> tuple:
        """(output, output)."""
        self._needs_variables()
        sums = matmul(concat([inputs, state], 1), self._kernel)
        output = self._activation(bias_add(sums, self._bias))
        return output, output


class GRUCell(OneStateCell):
    """Gated recurrent unit (Cho and others 2014, arXiv:1406.1078).

    [r, u] = sigmoid([inputs, state] kernel + bias), whose bias begins as 1 unless bias_initializer
    says otherwise; c = activation([inputs, r state] kernel + bias); new state = u state + (1 - u)
    c. Variables: gates/kernel, gates/bias, candidate/kernel, candidate/bias.
    """

    def __init__(self, num_units: int, activation: Any = None, reuse: Any = None,
                 kernel_initializer: Any = None, bias_initializer: Any = None,
                 name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._num_units = positive_int(num_units, "num_units")
        self._activation = named_activation(activation) or tanh
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer

    def build(self, input_shape: TensorShape) -> None:
        """Makes kernels and biases of gates and candidate."""
        rows, units = depth_of(input_shape) + self._num_units, self._num_units
        first = ONES if self._bias_initializer is None else self._bias_initializer
        self._gate_kernel = self.add_variable("gates/kernel", [rows, 2 * units],
                                              initializer=self._kernel_initializer)
        self._gate_bias = self.add_variable("gates/bias", [2 * units], initializer=first)
        self._candidate_kernel = self.add_variable("candidate/kernel", [rows, units],
                                                   initializer=self._kernel_initializer)
        self._candidate_bias = self.add_variable(
            "candidate/bias", [units],
            initializer=ZEROS if self._bias_initializer is None else self._bias_initializer)

    def call(self, inputs: Tensor, state: Tensor) -> tuple:
        """(new state, new state)."""
        self._needs_variables()
        gates = matmul(concat([inputs, state], 1), self._gate_kernel)
        r, u = split(sigmoid(bias_add(gates, self._gate_bias)), 2, 1)
        candidate = matmul(concat([inputs, r * state], 1), self._candidate_kernel)
        c = self._activation(bias_add(candidate, self._candidate_bias))
        new_state = u * state + (1 - u) * c
        return new_state, new_state

    def _takes_sequences(self) -> bool:
        return type(self).call is GRUCell.call and self._activation is tanh

    def _sequence(self, inputs: Tensor, state: Tensor, lengths: Tensor | None) -> tuple:
        return gru_sequence(inputs, state, [self._gate_kernel, self._candidate_kernel,
                                            self._gate_bias, self._candidate_bias], lengths)


class _LSTMBase(RNNCell):
    """What both LSTM cells share: the form of the state."""

    _state_is_tuple: bool
    _num_units: int
    _forget_bias: Any
    _cell_clip: float | None = None

    def _parts(self, state: Any, sizes: list) -> tuple:
        if not self._state_is_tuple:
            return tuple(split(state, sizes, 1))
        if not isinstance(state, (tuple, list)) or len(state) != 2:
            raise ValueError("the state must be a tuple (c, h), not %r" % (state,))
        return state[0], state[1]

    def _state(self, c: Tensor, h: Tensor) -> Any:
        return LSTMStateTuple(c, h) if self._state_is_tuple else concat([c, h], 1)

    def _peepholes(self) -> list:
        """Weights of i, f and o."""
        return []

    def _sequence(self, inputs: Tensor, state: Any, lengths: Tensor | None) -> tuple:
        peepholes = self._peepholes()
        weights = [self._kernel, *(peepholes or [zeros([0], inputs.dtype)] * 3), self._bias]
        attrs = {"forget_bias": self._forget_bias, "use_peephole": bool(peepholes),
                 "cell_clip": -1.0 if self._cell_clip is None else self._cell_clip}
        outputs, last = lstm_sequence(inputs, *self._parts(state, [self._num_units] * 2), weights,
                                      attrs, lengths)
        return outputs, self._state(*last)


class BasicLSTMCell(_LSTMBase):
    """Long short-term memory without peepholes, clipping or projection (Zaremba, Sutskever and
    Vinyals 2014, arXiv:1409.2329).

    [i, j, f, o] = [inputs, h] kernel + bias; c = c sigmoid(f + forget_bias) + sigmoid(i)
    activation(j); h = activation(c) sigmoid(o). The state is LSTMStateTuple(c, h); without
    state_is_tuple both are joined along axis 1.
    """

    def __init__(self, num_units: int, forget_bias: float = 1.0, state_is_tuple: bool = True,
                 activation: Any = None, reuse: Any = None, name: str | None = None,
                 dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._num_units = positive_int(num_units, "num_units")
        self._forget_bias, self._state_is_tuple = forget_bias, state_is_tuple
        self._activation = named_activation(activation) or tanh

    @property
    def state_size(self) -> Any:
        """LSTMStateTuple(num_units, num_units), or twice num_units."""
        units = self._num_units
        return LSTMStateTuple(units, units) if self._state_is_tuple else 2 * units

    @property
    def output_size(self) -> int:
        """num_units."""
        return self._num_units

    def build(self, input_shape: TensorShape) -> None:
        """Makes kernel and bias."""
        rows, units = depth_of(input_shape) + self._num_units, self._num_units
        self._kernel = self.add_variable("kernel", [rows, 4 * units])
        self._bias = self.add_variable("bias", [4 * units], initializer=ZEROS)

    def call(self, inputs: Tensor, state: Any) -> tuple:
        """(h, new state)."""
        self._needs_variables()
        c, h = self._parts(state, [self._num_units] * 2)
        gates = bias_add(matmul(concat([inputs, h], 1), self._kernel), self._bias)
        i, j, f, o = split(gates, 4, 1)
        new_c = c * sigmoid(f + self._forget_bias) + sigmoid(i) * self._activation(j)
        new_h = self._activation(new_c) * sigmoid(o)
        return new_h, self._state(new_c, new_h)

    def _takes_sequences(self) -> bool:
        return (type(self).call is BasicLSTMCell.call and self._activation is tanh
                and isinstance(self._forget_bias, (int, float)))


class LSTMCell(_LSTMBase):
    """Long short-term memory with all the options (Hochreiter and Schmidhuber 1997; Sak, Senior and
    Beaufays 2014).

    use_peepholes: the gates see the cell through w_i_diag, w_f_diag and w_o_diag. cell_clip: the
    cell stays in [-cell_clip, cell_clip]. num_proj: the output is multiplied by projection/kernel
    [num_units, num_proj] and, with proj_clip, clipped. initializer: of all weights.
    """

    def __init__(self, num_units: int, use_peepholes: bool = False, cell_clip: float | None = None,
                 initializer: Any = None, num_proj: int | None = None,
                 proj_clip: float | None = None, num_unit_shards: int | None = None,
                 num_proj_shards: int | None = None, forget_bias: float = 1.0,
                 state_is_tuple: bool = True, activation: Any = None,
                 reuse: Any = None, name: str | None = None, dtype: Any = None,
                 **kwargs: Any) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        if any(shards not in (None, 1) for shards in (num_unit_shards, num_proj_shards)):
            raise ValueError("num_unit_shards and num_proj_shards are not supported: variables "
                             "live on one device")
        self._num_units = positive_int(num_units, "num_units")
        self._num_proj = None if num_proj is None else positive_int(num_proj, "num_proj")
        self._use_peepholes, self._cell_clip, self._proj_clip = use_peepholes, cell_clip, proj_clip
        self._initializer, self._forget_bias = initializer, forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = named_activation(activation) or tanh

    @property
    def state_size(self) -> Any:
        """LSTMStateTuple(num_units, output_size), or their sum."""
        units, outputs = self._num_units, self.output_size
        return LSTMStateTuple(units, outputs) if self._state_is_tuple else units + outputs

    @property
    def output_size(self) -> int:
        """num_proj where it is given, else num_units."""
        return self._num_proj or self._num_units

    def build(self, input_shape: TensorShape) -> None:
        """Makes kernel and bias, and the weights of peepholes and projection."""
        rows, units = depth_of(input_shape) + self.output_size, self._num_units
        self._kernel = self.add_variable("kernel", [rows, 4 * units],
                                         initializer=self._initializer)
        self._bias = self.add_variable("bias", [4 * units], initializer=ZEROS)
        if self._use_peepholes:
            self._w_f, self._w_i, self._w_o = (
                self.add_variable("w_%s_diag" % gate, [units], initializer=self._initializer)
                for gate in "fio")
        if self._num_proj is not None:
            self._projection = self.add_variable("projection/kernel", [units, self._num_proj],
                                                 initializer=self._initializer)

    def call(self, inputs: Tensor, state: Any) -> tuple:
        """(h, new state)."""
        self._needs_variables()
        c, h = self._parts(state, [self._num_units, self.output_size])
        gates = bias_add(matmul(concat([inputs, h], 1), self._kernel), self._bias)
        i, j, f, o = split(gates, 4, 1)
        if self._use_peepholes:
            i, f = i + self._w_i * c, f + self._w_f * c
        new_c = sigmoid(f + self._forget_bias) * c + sigmoid(i) * self._activation(j)
        if self._cell_clip is not None:
            new_c = clip_by_value(new_c, -self._cell_clip, self._cell_clip)
        if self._use_peepholes:
            o = o + self._w_o * new_c
        new_h = sigmoid(o) * self._activation(new_c)
        if self._num_proj is not None:
            new_h = matmul(new_h, self._projection)
            if self._proj_clip is not None:
                new_h = clip_by_value(new_h, -self._proj_clip, self._proj_clip)
        return new_h, self._state(new_c, new_h)

    def _peepholes(self) -> list:
        return [self._w_i, self._w_f, self._w_o] if self._use_peepholes else []

    def _takes_sequences(self) -> bool:
        clips = self._cell_clip is None or (isinstance(self._cell_clip, (int, float))
                                            and self._cell_clip > 0)
        return (type(self).call is LSTMCell.call and self._activation is tanh and clips
                and self._num_proj is None and isinstance(self._forget_bias, (int, float)))
