# SPDX-License-Identifier: Apache-2.0
"""A cell over sequences of any length as a loop: one copy of the step in the graph, which reads its
inputs from lists and writes its outputs to lists."""

from __future__ import annotations

from treenail._array import concat, stack
from treenail._control_flow import while_loop
from treenail._convert import convert_to_tensor
from treenail._math import cast, reduce_max
from treenail._nest import flatten, map_structure
from treenail._ops import ops
from treenail._shape import TensorShape, as_shape
from treenail._tensor_array import TensorArray
from treenail._treenail import DType, Tensor, as_dtype, int32, int64
from treenail.rnn._base import RNNCell, batch_of
from treenail.rnn._given import kept, zeros_behind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def check_extents(inputs: list) -> TensorShape:
    """(time, batch), as far as they are known, of tensors [time, batch, ...]. Raises ValueError
    where these differ, and where what follows is unknown."""
    known = inputs[0].shape[:2]
    for x in inputs:
        if None in x.shape.as_list()[2:]:
            raise ValueError("Input size (depth of inputs) must be accessible via shape inference, "
                             "but saw value None in shape %s." % x.shape)
        for axis, what in ((0, "Time steps"), (1, "batch_size")):
            if not known[axis:axis + 1].is_compatible_with(x.shape[axis:axis + 1]):
                raise ValueError("%s is not the same for all the elements in the input in a batch: "
                                 "%s and %s" % (what, inputs[0].shape, x.shape))
        known = known.merge_with(x.shape[:2])
    return known


def dtype_of_outputs(dtype: Any, state: Any) -> DType:
    """`dtype`, or that of all parts of the state. Raises ValueError where these differ."""
    if dtype is not None:
        return as_dtype(dtype)
    found = list(dict.fromkeys(leaf.dtype for leaf in flatten(state)))
    if not found:
        raise ValueError("Unable to infer dtype from empty state.")
    if len(found) > 1:
        raise ValueError("State has tensors of different inferred_dtypes. Unable to infer a single "
                         "representative dtype: %s; give a dtype"
                         % ", ".join(d.name for d in found))
    return found[0]


def new_state_of(old: Any, new: Any, over: Tensor | None) -> Any:
    """The state after a step, of the old one's shapes. Raises ValueError for others."""
    def one(before: Any, after: Any) -> Any:
        if isinstance(before, TensorArray):
            return after
        after = convert_to_tensor(after)
        if not before.shape.is_compatible_with(after.shape):
            raise ValueError("a state of shape %s goes into the step, one of shape %s comes out"
                             % (before.shape, after.shape))
        after.set_shape(before.shape)
        return after if over is None else kept(over, before, after)
    return map_structure(one, old, new)


def stacked(array: TensorArray, time: Any, batch: Any) -> Tensor:
    """All outputs. Where there are none, their shape is that of no output: the batch is said."""
    shape = array.element_shape
    if shape.rank is None or None in shape.as_list()[1:]:
        outputs = array.stack()
    else:
        extents = stack([batch] + shape.as_list()[1:])
        outputs = ops.TensorListStack(array.flow, cast(extents, int32), element_dtype=array.dtype)
    outputs.set_shape(TensorShape([time]).concatenate(shape))
    return outputs


def _bound(steps: Any, lengths: Tensor | None) -> Any:
    """How many steps the loop takes: as many as the longest row has, but one where there is any."""
    if lengths is None:
        return convert_to_tensor(steps, int32)
    # The maximum of no row would be the lowest number.
    longest = reduce_max(concat([lengths, convert_to_tensor([1], int64)], 0))
    return cast(ops.Minimum(cast(steps, int64), longest), int32)


def over_time(cell: RNNCell, inputs: Any, state: Any, lengths: Tensor | None, dtype: Any,
              parallel_iterations: int, swap_memory: bool) -> tuple:
    """(outputs, final state) of inputs [time, batch, ...], a tensor or a nest of them."""
    first = flatten(inputs)[0]
    known_time, known_batch = check_extents(flatten(inputs)).as_list()
    steps = batch_of(first) if known_time is None else known_time
    batch = batch_of(first, 1) if known_batch is None else known_batch
    dtype = dtype_of_outputs(dtype, state)
    rows = map_structure(lambda x: TensorArray(x.dtype, steps).unstack(x), inputs)
    arrays = map_structure(lambda size: TensorArray(dtype, steps, element_shape=TensorShape(
        [known_batch]).concatenate(as_shape([size] if isinstance(size, int) else size))),
        cell.output_size)
    bound = _bound(steps, lengths)
    lengths = None if lengths is None else cast(ops.Minimum(lengths, cast(steps, int64)), int32)

    def step(time: Tensor, state: Any, arrays: Any) -> tuple:
        output, new_state = cell(map_structure(lambda row: row.read(time), rows), state)
        over = None if lengths is None else ops.LessEqual(lengths, time)
        if over is not None:
            output = map_structure(lambda y: zeros_behind(over, y), output)
        return (time + 1, new_state_of(state, new_state, over),
                map_structure(lambda array, y: array.write(time, y), arrays, output))
    _, state, arrays = while_loop(
        lambda time, *_: time < bound, step, (0, state, arrays),
        parallel_iterations=parallel_iterations, swap_memory=swap_memory)
    return map_structure(lambda array: stacked(array, known_time, batch), arrays), state
