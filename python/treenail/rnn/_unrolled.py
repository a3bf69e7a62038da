# SPDX-License-Identifier: Apache-2.0
"""Cells over sequences: static_rnn and its kin, with a copy of the step in the graph for each step
of time."""

from __future__ import annotations

from treenail._array import concat, reverse_sequence, stack, unstack
from treenail._convert import convert_to_tensor
from treenail._nest import flatten, map_structure, pack
from treenail._ops import ops
from treenail._treenail import Tensor, int64
from treenail._variable_scope import variable_scope
from treenail.rnn._base import RNNCell, batch_of
from treenail.rnn._given import check_cell, first_state, kept, lengths_of, zeros_behind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def _check_inputs(inputs: Any) -> None:
    if not isinstance(inputs, (list, tuple)):
        raise TypeError("inputs must be a sequence")
    if not inputs:
        raise ValueError("inputs must not be empty")


def _unroll(cell: RNNCell, inputs: Sequence, state: Any, lengths: Tensor | None) -> tuple:
    """(outputs of each step, state after the last of each row)."""
    outputs = []
    for time, step_inputs in enumerate(inputs):
        output, new_state = cell(step_inputs, state)
        if lengths is not None:
            over = ops.LessEqual(lengths, convert_to_tensor(time, int64))
            output = map_structure(lambda y: zeros_behind(over, y), output)
            new_state = map_structure(lambda old, new: kept(over, old, new), state, new_state)
        outputs.append(output)
        state = new_state
    return outputs, state


def static_rnn(cell: RNNCell, inputs: Sequence, initial_state: Any = None, dtype: Any = None,
               sequence_length: Any = None, scope: Any = None) -> tuple:
    """(outputs, final state) of a cell over a list of inputs, each [batch, size] or a nest of such.

    initial_state: zeros of `dtype` by default. sequence_length, [batch]: behind it a row's outputs
    are zero and its state stays.

    Raises TypeError for what is no cell or no list, ValueError for an empty list, for neither
    initial_state nor dtype, and for lengths that are no vector.
    """
    check_cell(cell, "cell")
    _check_inputs(inputs)
    with variable_scope(scope or "rnn"):
        inputs = [map_structure(convert_to_tensor, x) for x in inputs]
        state = first_state(cell, initial_state, batch_of(flatten(inputs[0])[0]), dtype)
        return _unroll(cell, inputs, state, lengths_of(sequence_length))


def _reversed(inputs: Sequence, lengths: Tensor | None) -> list:
    """The steps in reverse order, each row's own steps only where lengths are given."""
    if lengths is None:
        return list(reversed(inputs))

    def turned(*leaves: Tensor) -> list:
        return unstack(reverse_sequence(stack(leaves), lengths, seq_axis=0, batch_axis=1),
                       len(leaves))
    columns = [turned(*leaves) for leaves in zip(*[flatten(x) for x in inputs])]
    return [pack(inputs[0], leaves) for leaves in zip(*columns)]


def static_bidirectional_rnn(cell_fw: RNNCell, cell_bw: RNNCell, inputs: Sequence,
                             initial_state_fw: Any = None, initial_state_bw: Any = None,
                             dtype: Any = None, sequence_length: Any = None,
                             scope: Any = None) -> tuple:
    """(outputs, final state forwards, final state backwards) of two cells over a list of inputs,
    each [batch, size] or a nest of such, one cell in each direction; the outputs of each step, of
    the same structure in both, are joined along axis 1.

    Otherwise as static_rnn.
    """
    check_cell(cell_fw, "cell_fw")
    check_cell(cell_bw, "cell_bw")
    _check_inputs(inputs)
    with variable_scope(scope or "bidirectional_rnn"):
        lengths = lengths_of(sequence_length)
        inputs = [map_structure(convert_to_tensor, x) for x in inputs]
        forwards, state_fw = static_rnn(cell_fw, inputs, initial_state_fw, dtype, lengths, "fw")
        backwards, state_bw = static_rnn(cell_bw, _reversed(inputs, lengths), initial_state_bw,
                                         dtype, lengths, "bw")
        joined = [map_structure(lambda fw, bw: concat([fw, bw], 1), *pair)
                  for pair in zip(forwards, _reversed(backwards, lengths))]
        return joined, state_fw, state_bw
