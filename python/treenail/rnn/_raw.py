# SPDX-License-Identifier: Apache-2.0
"""raw_rnn: a cell in a loop that a function of the program's own steers."""

from __future__ import annotations

from treenail._array import concat, shape_of, zeros
from treenail._control_flow import while_loop
from treenail._convert import convert_to_tensor
from treenail._math import reduce_all
from treenail._nest import flatten, map_structure
from treenail._ops import ops
from treenail._shape import TensorShape, as_shape
from treenail._tensor_array import TensorArray
from treenail._treenail import Tensor
from treenail._treenail import bool as bool_
from treenail._treenail import int32
from treenail._variable_scope import variable_scope
from treenail.rnn._base import RNNCell, batch_of
from treenail.rnn._given import check_cell, converted, kept
from treenail.rnn._loop import new_state_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def _batch(inputs: list) -> tuple:
    """(what is known of the batch size, the batch size)."""
    known = TensorShape([None])
    for x in inputs:
        known = known.merge_with(x.shape.with_rank_at_least(1)[:1])
    extent = known.as_list()[0]
    return extent, batch_of(inputs[0]) if extent is None else extent


class _Emitted:
    """What the loop writes in each step: arrays, and zeros for rows that are finished."""

    def __init__(self, cell: RNNCell, emit: Any, dtype: Any, inputs: list) -> None:
        known, batch = _batch(inputs)
        if emit is None:
            emit = map_structure(lambda size: zeros(
                [size] if isinstance(size, int) else as_shape(size).as_list(), dtype),
                cell.output_size)

        def zeros_like(row: Tensor) -> Tensor:
            zero = zeros(concat([[batch], shape_of(row)], 0), row.dtype)
            zero.set_shape(TensorShape([known]).concatenate(row.shape))
            return zero
        self.zeros = map_structure(zeros_like, map_structure(convert_to_tensor, emit))
        self.arrays = map_structure(lambda zero: TensorArray(
            zero.dtype, 0, dynamic_size=True, element_shape=zero.shape), self.zeros)


def raw_rnn(cell: RNNCell, loop_fn: Callable, parallel_iterations: int | None = None,
            swap_memory: bool = False, scope: Any = None) -> tuple:
    """(emitted, final state, final loop state) of a cell in a loop that `loop_fn` steers: it
    chooses each step's input, which rows are finished, and what is emitted.

    loop_fn(time, cell_output, cell_state, loop_state), time an int32 scalar, gives (finished,
    next_input, next_cell_state, emit_output, next_loop_state). It is called with time 0 and None
    for the rest before the first step: the state that it gives then is the first one, emit_output
    one row of what will be emitted (shape and dtype count; None: like the cell's outputs, in the
    dtype of the state), and the loop state is a tensor, a TensorArray, a nest of these, or None for
    none. finished is a bool vector [batch], or a scalar for all rows: the loop ends when all are
    true. Inputs and states are [batch, ...] or nests of such.

    emitted: a TensorArray, or a nest of them, of as many elements as there were steps; rows that
    were finished before a step are zero in it, and their state stays. parallel_iterations,
    swap_memory: as for tn.while_loop. scope: of the variables, by default "rnn".

    Raises TypeError for what is no cell and a loop_fn that is not callable, ValueError where
    structures, dtypes or shapes change from step to step.
    """
    check_cell(cell, "cell")
    if not callable(loop_fn):
        raise TypeError("loop_fn must be a callable, not %r" % (loop_fn,))
    with variable_scope(scope or "rnn"):
        finished, inputs, state, emit, loop_state = _five(
            loop_fn(convert_to_tensor(0, int32), None, None, None))
        _same_structure("the first state and cell.state_size", state, cell.state_size)
        inputs, state = map_structure(convert_to_tensor, inputs), map_structure(converted, state)
        emitted = _Emitted(cell, emit, flatten(state)[0].dtype, flatten(inputs))
        loops = loop_state is not None
        values = (0, convert_to_tensor(finished, bool_), inputs, emitted.arrays, state,
                  loop_state if loops else 0)
        step = _step_of(cell, loop_fn, emitted, loops)
        results = while_loop(lambda time, finished, *_: ops.LogicalNot(reduce_all(finished)), step,
                             values, parallel_iterations=parallel_iterations or 32,
                             swap_memory=swap_memory)
    return results[3], results[4], results[5] if loops else None


def _step_of(cell: RNNCell, loop_fn: Callable, emitted: _Emitted, loops: bool) -> Callable:
    def step(time: Tensor, finished: Tensor, inputs: Any, arrays: Any, state: Any,
             loop_state: Any) -> tuple:
        output, cell_state = cell(inputs, state)
        _same_structure("the state and what the cell gives", state, cell_state)
        ends, next_inputs, next_state, emit, next_loop_state = _five(
            loop_fn(time + 1, output, cell_state, loop_state if loops else None))
        _same_structure("inputs and what loop_fn gives", inputs, next_inputs)
        _same_structure("the state and what loop_fn gives", state, next_state)
        _same_structure("what is emitted first and then", arrays, emit)
        every_row = finished.shape.ndims == 0
        rows = None if every_row else finished

        def row(zero: Tensor, value: Any) -> Tensor:
            value = convert_to_tensor(value)
            return value if rows is None else kept(rows, zero, value)
        emit = map_structure(row, emitted.zeros, emit)
        arrays = map_structure(lambda array, value: array.write(time, value), arrays, emit)
        return (time + 1, ops.LogicalOr(finished, convert_to_tensor(ends, bool_)),
                next_inputs, arrays, new_state_of(state, next_state, rows),
                loop_state if next_loop_state is None else next_loop_state)
    return step


def _five(returned: Any) -> tuple:
    if not isinstance(returned, (tuple, list)) or len(returned) != 5:
        raise ValueError("loop_fn must give (finished, next_input, next_cell_state, emit_output, "
                         "next_loop_state), not %r" % (returned,))
    return tuple(returned)


def _same_structure(what: str, wanted: Any, given: Any) -> None:
    try:
        map_structure(lambda *_: None, wanted, given)
    except ValueError:
        raise ValueError("The two structures don't have the same nested structure: %s are %r and "
                         "%r" % (what, wanted, given)) from None
