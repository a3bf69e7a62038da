# SPDX-License-Identifier: Apache-2.0
"""Decoding step by step until every sequence is finished: Decoder, dynamic_decode."""

from __future__ import annotations

from treenail._array import transpose, zeros
from treenail._control_flow import while_loop
from treenail._convert import constant_value, convert_to_tensor
from treenail._math import reduce_all
from treenail._nest import map_structure
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._tensor_array import TensorArray
from treenail._treenail import Tensor
from treenail._treenail import bool as bool_
from treenail._treenail import int32
from treenail._variable_scope import variable_scope
from treenail.rnn._given import converted, zeros_behind
from treenail.rnn._loop import new_state_of, stacked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class Decoder:
    """What dynamic_decode asks for each step: the base of all decoders. What a decoder does not
    define raises NotImplementedError."""

    @property
    def batch_size(self) -> Any:
        """How many sequences there are, an int or a scalar tensor."""
        raise NotImplementedError("Abstract method")

    @property
    def output_size(self) -> Any:
        """Shapes of a step's outputs without the batch, a nest of ints or shapes."""
        raise NotImplementedError("Abstract method")

    @property
    def output_dtype(self) -> Any:
        """dtypes of a step's outputs, a nest like output_size."""
        raise NotImplementedError("Abstract method")

    @property
    def tracks_own_finished(self) -> bool:
        """Whether what step() says is finished may begin anew, as beams do that change places."""
        return False

    def initialize(self, name: str | None = None) -> tuple:
        """(finished, inputs of the first step, first state)."""
        raise NotImplementedError("Abstract method")

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple:
        """(outputs, next state, next inputs, finished) of step number `time`, an int32 scalar."""
        raise NotImplementedError("Abstract method")

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple:
        """(outputs, final state) as they are to be returned; outputs are [time, batch, ...]."""
        raise NotImplementedError("Abstract method")


def shape_of_size(size: Any) -> TensorShape:
    """The shape that an int or a shape stands for."""
    return TensorShape([size]) if isinstance(size, int) else TensorShape(size)


def _known(batch_size: Any) -> int | None:
    value = constant_value(convert_to_tensor(batch_size))
    return None if value is None else int(value)


def _bound(maximum: Any) -> Tensor:
    maximum = convert_to_tensor(maximum, int32)
    if maximum.shape.ndims != 0:
        raise ValueError("maximum_iterations must be a scalar, its shape is %s" % maximum.shape)
    return maximum


def _finalized(decoder: Decoder, outputs: Any, state: Any, lengths: Tensor) -> tuple:
    try:
        return decoder.finalize(outputs, state, lengths)
    except NotImplementedError:
        return outputs, state


def dynamic_decode(decoder: Decoder, output_time_major: bool = False,
                   impute_finished: bool = False, maximum_iterations: Any = None,
                   parallel_iterations: int = 32, swap_memory: bool = False, scope: Any = None,
                   **kwargs: Any) -> tuple:
    """(outputs, final state, lengths) of a decoder that steps until all is finished.

    outputs: a nest like decoder.output_size, [batch, time, ...], or [time, batch, ...] when
    output_time_major; time is that of the longest. lengths: [batch], int32, the steps of each (for
    beams [batch, beam]). impute_finished: outputs of what is finished are zero, and its state
    stays; without it they mean nothing there. maximum_iterations: an int32 scalar, no more steps
    than these. parallel_iterations, swap_memory: as for tn.while_loop. scope: of the variables, by
    default "decoder". kwargs: for decoder.initialize.

    Raises TypeError for what is no decoder, ValueError for maximum_iterations that is no scalar and
    where structures, dtypes or shapes change from step to step.
    """
    if not isinstance(decoder, Decoder):
        raise TypeError("Expected decoder to be type Decoder, but saw: %s"
                        % type(decoder).__name__)
    with variable_scope(scope, "decoder"):
        maximum = None if maximum_iterations is None else _bound(maximum_iterations)
        finished, inputs, state = decoder.initialize(**kwargs)
        finished = convert_to_tensor(finished, bool_)
        inputs, state = map_structure(convert_to_tensor, inputs), map_structure(converted, state)
        known = _known(decoder.batch_size)
        arrays = map_structure(lambda size, dtype: TensorArray(
            dtype, 0, dynamic_size=True,
            element_shape=TensorShape([known]).concatenate(shape_of_size(size))),
            decoder.output_size, decoder.output_dtype)
        lengths = zeros(ops.Shape(finished), int32)
        lengths.set_shape(finished.shape)
        results = while_loop(
            lambda time, arrays, state, inputs, finished, lengths: ops.LogicalNot(
                reduce_all(finished)), _step_of(decoder, impute_finished),
            (0, arrays, state, inputs, finished, lengths), maximum_iterations=maximum,
            parallel_iterations=parallel_iterations, swap_memory=swap_memory)
        outputs = map_structure(lambda array: stacked(array, None, decoder.batch_size), results[1])
        outputs, state = _finalized(decoder, outputs, results[2], results[5])
        if not output_time_major:
            outputs = map_structure(lambda x: transpose(x, [1, 0, *range(2, x.shape.ndims)]),
                                    outputs)
        return outputs, state, results[5]


def _step_of(decoder: Decoder, impute: bool) -> Callable:
    def step(time: Tensor, arrays: Any, state: Any, inputs: Any, finished: Tensor,
             lengths: Tensor) -> tuple:
        outputs, next_state, next_inputs, ended = decoder.step(time, inputs, state)
        ended = convert_to_tensor(ended, bool_)
        if not decoder.tracks_own_finished:
            ended = ops.LogicalOr(ended, finished)
        ended.set_shape(finished.shape)
        lengths = ops.Select(finished, lengths, time + 1)
        lengths.set_shape(finished.shape)
        outputs = map_structure(convert_to_tensor, outputs)
        if impute:
            outputs = map_structure(lambda y: zeros_behind(finished, y), outputs)
        arrays = map_structure(lambda array, y: array.write(time, y), arrays, outputs)
        return (time + 1, arrays, new_state_of(state, next_state, finished if impute else None),
                new_state_of(inputs, next_inputs, None), ended, lengths)
    return step
