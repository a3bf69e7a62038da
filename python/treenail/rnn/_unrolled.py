# SPDX-License-Identifier: Apache-2.0
"""Cells over sequences: static_rnn and its kin, with a copy of the step in the graph for each step
of time; dynamic_rnn, by one op where there is one for the cell."""

from __future__ import annotations

from treenail._array import concat, reverse, reverse_sequence, stack, transpose, unstack
from treenail._convert import convert_to_tensor
from treenail._math import cast
from treenail._ops import ops
from treenail._treenail import Tensor, int64
from treenail._variable_scope import variable_scope
from treenail.rnn._base import RNNCell, batch_of
from treenail._nest import flatten, map_structure
from treenail.rnn._sequence import cut_behind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def _check_cell(cell: Any, what: str) -> None:
    if not isinstance(cell, RNNCell):
        raise TypeError("The argument %s is not an RNNCell: %r" % (what, cell))


def _check_inputs(inputs: Any) -> None:
    if not isinstance(inputs, (list, tuple)):
        raise TypeError("inputs must be a sequence")
    if not inputs:
        raise ValueError("inputs must not be empty")


def _initial(cell: RNNCell, state: Any, batch_size: Any, dtype: Any) -> Any:
    if state is not None:
        return map_structure(convert_to_tensor, state)
    if dtype is None:
        raise ValueError("If there is no initial_state, you must give a dtype.")
    return cell.zero_state(batch_size, dtype)


def _lengths(sequence_length: Any) -> Tensor | None:
    if sequence_length is None:
        return None
    lengths = convert_to_tensor(sequence_length)
    if lengths.shape.ndims not in (None, 1):
        raise ValueError("sequence_length must be a vector of length batch_size, but saw shape: %s"
                         % lengths.shape)
    return cast(lengths, int64)


def _chosen(over: Tensor, behind: Tensor, new: Tensor) -> Tensor:
    """`behind` in the rows whose sequence is over, `new` in the others."""
    ndims = new.shape.ndims
    if ndims is None:
        raise ValueError("outputs and states must have a known rank when sequence_length is given")
    chosen = ops.Select(ops.Reshape(over, [-1] + [1] * (ndims - 1)), behind, new)
    chosen.set_shape(new.shape)
    return chosen


def _unroll(cell: RNNCell, inputs: Sequence, state: Any, lengths: Tensor | None) -> tuple:
    """(outputs of each step, state after the last of each row)."""
    outputs = []
    for time, step_inputs in enumerate(inputs):
        output, new_state = cell(step_inputs, state)
        if lengths is not None:
            over = ops.LessEqual(lengths, convert_to_tensor(time, int64))
            output = map_structure(lambda y: _chosen(over, ops.ZerosLike(y), y), output)
            new_state = map_structure(lambda old, new: _chosen(over, old, new), state, new_state)
        outputs.append(output)
        state = new_state
    return outputs, state


def static_rnn(cell: RNNCell, inputs: Sequence, initial_state: Any = None, dtype: Any = None,
               sequence_length: Any = None, scope: Any = None) -> tuple:
    """(outputs, final state) of a cell over a list of inputs, each [batch, size].

    initial_state: zeros of `dtype` by default. sequence_length, [batch]: behind it a row's outputs
    are zero and its state stays.
    """
    _check_cell(cell, "cell")
    _check_inputs(inputs)
    with variable_scope(scope or "rnn"):
        inputs = [map_structure(convert_to_tensor, x) for x in inputs]
        state = _initial(cell, initial_state, batch_of(flatten(inputs[0])[0]), dtype)
        return _unroll(cell, inputs, state, _lengths(sequence_length))


def _reversed(inputs: Sequence, lengths: Tensor | None) -> list:
    """The steps in reverse order, each row's own steps only where lengths are given."""
    if lengths is None:
        return list(reversed(inputs))
    return unstack(reverse_sequence(stack(inputs), lengths, seq_axis=0, batch_axis=1),
                   len(inputs))


def static_bidirectional_rnn(cell_fw: RNNCell, cell_bw: RNNCell, inputs: Sequence,
                             initial_state_fw: Any = None, initial_state_bw: Any = None,
                             dtype: Any = None, sequence_length: Any = None,
                             scope: Any = None) -> tuple:
    """(outputs, final state forwards, final state backwards) of two cells over a list of inputs,
    one in each direction; the outputs of each step are joined along axis 1."""
    _check_cell(cell_fw, "cell_fw")
    _check_cell(cell_bw, "cell_bw")
    _check_inputs(inputs)
    with variable_scope(scope or "bidirectional_rnn"):
        lengths = _lengths(sequence_length)
        inputs = [convert_to_tensor(x) for x in inputs]
        forwards, state_fw = static_rnn(cell_fw, inputs, initial_state_fw, dtype, lengths, "fw")
        backwards, state_bw = static_rnn(cell_bw, _reversed(inputs, lengths), initial_state_bw,
                                         dtype, lengths, "bw")
        pairs = zip(forwards, _reversed(backwards, lengths))
        return [concat([fw, bw], 1) for fw, bw in pairs], state_fw, state_bw


def dynamic_rnn(cell: RNNCell, inputs: Any, sequence_length: Any = None, initial_state: Any = None,
                dtype: Any = None, parallel_iterations: int | None = None,
                swap_memory: bool = False, time_major: bool = False, scope: Any = None) -> tuple:
    """(outputs, final state) of a cell over inputs [batch, time, ...], or [time, batch, ...] when
    time_major; outputs are laid out alike.

    BasicLSTMCell, LSTMCell without projection, GRUCell (all with tanh), their block forms, and
    stacks, dropout of inputs and outputs and residual connections of these run as one op for each
    layer, over any number of steps; its gradient has none of its own. For other cells the number of
    steps must be known while the graph is built, which has a copy of the step for each: raises
    ValueError otherwise.

    sequence_length, [batch]: behind it a row's outputs are zero and its state stays.
    parallel_iterations and swap_memory are accepted for programs that state them.
    """
    _check_cell(cell, "cell")
    with variable_scope(scope or "rnn"):
        inputs = convert_to_tensor(inputs)
        if inputs.shape.ndims is None or inputs.shape.ndims < 2:
            raise ValueError("inputs must have a known rank of at least 2, their shape is %s"
                             % inputs.shape)
        axis, lengths = 0 if time_major else 1, _lengths(sequence_length)
        state = _initial(cell, initial_state, batch_of(inputs, 1 - axis), dtype)
        if cell._takes_sequences() and inputs.shape.ndims == 3:
            whole = inputs if time_major else transpose(inputs, [1, 0, 2])
            outputs, state = cell._over(whole, state, lengths)
            outputs = cut_behind(outputs, lengths)
            return outputs if time_major else transpose(outputs, [1, 0, 2]), state
        steps = inputs.shape[axis]
        if steps is None:
            raise ValueError("the number of time steps must be known while the graph is built for "
                             "a cell like %s, the shape of inputs is %s"
                             % (type(cell).__name__, inputs.shape))
        if steps == 0:
            raise ValueError("inputs have no time steps, their shape is %s" % inputs.shape)
        outputs, state = _unroll(cell, unstack(inputs, steps, axis=axis), state, lengths)
        return map_structure(lambda *steps_of: stack(steps_of, axis), *outputs), state


def bidirectional_dynamic_rnn(cell_fw: RNNCell, cell_bw: RNNCell, inputs: Any,
                              sequence_length: Any = None, initial_state_fw: Any = None,
                              initial_state_bw: Any = None, dtype: Any = None,
                              parallel_iterations: int | None = None, swap_memory: bool = False,
                              time_major: bool = False, scope: Any = None) -> tuple:
    """((outputs forwards, outputs backwards), (final states)): dynamic_rnn in both directions,
    under its conditions. The outputs are not joined."""
    _check_cell(cell_fw, "cell_fw")
    _check_cell(cell_bw, "cell_bw")
    with variable_scope(scope or "bidirectional_rnn"):
        inputs, lengths = convert_to_tensor(inputs), _lengths(sequence_length)
        time, batch = (0, 1) if time_major else (1, 0)

        def turned(x: Tensor) -> Tensor:
            if lengths is None:
                return reverse(x, [time])
            return reverse_sequence(x, lengths, seq_axis=time, batch_axis=batch)
        forwards, state_fw = dynamic_rnn(cell_fw, inputs, lengths, initial_state_fw, dtype,
                                         time_major=time_major, scope="fw")
        backwards, state_bw = dynamic_rnn(cell_bw, turned(inputs), lengths, initial_state_bw,
                                          dtype, time_major=time_major, scope="bw")
        return (forwards, map_structure(turned, backwards)), (state_fw, state_bw)
