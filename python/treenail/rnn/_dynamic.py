# SPDX-License-Identifier: Apache-2.0
"""Cells over sequences in one tensor: by one op where there is one for the cell, else in a loop."""

from __future__ import annotations

from treenail._array import reverse, reverse_sequence, transpose
from treenail._convert import convert_to_tensor
from treenail._nest import flatten, is_nested, map_structure
from treenail._treenail import Tensor
from treenail._variable_scope import variable_scope
from treenail.rnn._base import RNNCell, batch_of
from treenail.rnn._given import check_cell, first_state, lengths_of
from treenail.rnn._loop import over_time
from treenail.rnn._sequence import cut_behind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _converted(inputs: Any) -> Any:
    """The inputs as tensors. Raises ValueError for one without time and batch."""
    nested = isinstance(inputs, (tuple, dict)) or (
        is_nested(inputs) and any(isinstance(leaf, Tensor) for leaf in flatten(inputs)))
    inputs = map_structure(convert_to_tensor, inputs) if nested else convert_to_tensor(inputs)
    if not flatten(inputs):
        raise ValueError("inputs must be a tensor or a nest of tensors, not %r" % (inputs,))
    for x in flatten(inputs):
        if x.shape.ndims is None or x.shape.ndims < 2:
            raise ValueError("inputs must have a known rank of at least 2, their shape is %s"
                             % x.shape)
    return inputs


def _turned(x: Tensor) -> Tensor:
    """[time, batch, ...] of [batch, time, ...], and the reverse."""
    return transpose(x, [1, 0] + list(range(2, x.shape.ndims)))


def dynamic_rnn(cell: RNNCell, inputs: Any, sequence_length: Any = None, initial_state: Any = None,
                dtype: Any = None, parallel_iterations: int | None = None,
                swap_memory: bool = False, time_major: bool = False, scope: Any = None) -> tuple:
    """(outputs, final state) of a cell over inputs [batch, time, ...], or [time, batch, ...] when
    time_major; outputs are laid out alike. Batch and time need be known to runs alone.

    inputs: a tensor or a nest of them, the cell then gets a nest; outputs have the structure of
    cell.output_size. sequence_length, [batch]: behind it a row's outputs are zero and its state
    stays. initial_state: of the structure of cell.state_size, by default the cell's zeros of
    `dtype`. dtype: of the outputs, by default that of the state. scope: of the variables, by
    default "rnn".

    BasicLSTMCell, LSTMCell without projection, GRUCell (all with tanh), their block forms, and
    stacks, dropout of inputs and outputs and residual connections of these run as one op for each
    layer over inputs of rank 3; its gradient has none of its own. Any other cell, and any nest,
    runs in tn.while_loop, which takes parallel_iterations (by default 32) and swap_memory and has
    gradients of any order.

    Raises TypeError for what is no cell; ValueError for neither initial_state nor dtype, for states
    of several dtypes without dtype, for inputs whose extents behind time and batch are unknown or
    that differ in time or batch, and for lengths that are no vector of the batch's size. Errors at
    run time: InvalidArgumentError for lengths of another number.
    """
    check_cell(cell, "cell")
    with variable_scope(scope or "rnn"):
        inputs = _converted(inputs)
        batch_size = batch_of(flatten(inputs)[0], 1 if time_major else 0)
        lengths = lengths_of(sequence_length, batch_size)
        state = first_state(cell, initial_state, batch_size, dtype)
        whole = inputs if time_major else map_structure(_turned, inputs)
        if isinstance(whole, Tensor) and whole.shape.ndims == 3 and cell._takes_sequences():
            outputs, state = cell._over(whole, state, lengths)
            outputs = cut_behind(outputs, lengths)
        else:
            outputs, state = over_time(cell, whole, state, lengths, dtype,
                                       parallel_iterations or 32, swap_memory)
        return outputs if time_major else map_structure(_turned, outputs), state


def bidirectional_dynamic_rnn(cell_fw: RNNCell, cell_bw: RNNCell, inputs: Any,
                              sequence_length: Any = None, initial_state_fw: Any = None,
                              initial_state_bw: Any = None, dtype: Any = None,
                              parallel_iterations: int | None = None, swap_memory: bool = False,
                              time_major: bool = False, scope: Any = None) -> tuple:
    """((outputs forwards, outputs backwards), (final states)): dynamic_rnn in both directions,
    under its conditions, each row backwards from its own end. The outputs are not joined.

    Variables are in the scopes fw and bw of `scope`, by default "bidirectional_rnn".
    """
    check_cell(cell_fw, "cell_fw")
    check_cell(cell_bw, "cell_bw")
    with variable_scope(scope or "bidirectional_rnn"):
        time, batch = (0, 1) if time_major else (1, 0)
        inputs = _converted(inputs)
        lengths = lengths_of(sequence_length, batch_of(flatten(inputs)[0], batch))

        def turned(x: Tensor) -> Tensor:
            if lengths is None:
                return reverse(x, [time])
            return reverse_sequence(x, lengths, seq_axis=time, batch_axis=batch)

        def one(cell: RNNCell, inputs: Any, state: Any, scope: str) -> tuple:
            return dynamic_rnn(cell, inputs, lengths, state, dtype, parallel_iterations,
                               swap_memory, time_major, scope)
        forwards, state_fw = one(cell_fw, inputs, initial_state_fw, "fw")
        backwards, state_bw = one(cell_bw, map_structure(turned, inputs), initial_state_bw, "bw")
        return (forwards, map_structure(turned, backwards)), (state_fw, state_bw)
