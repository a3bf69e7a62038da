# SPDX-License-Identifier: Apache-2.0
"""BasicDecoder: a cell, and a helper that says what follows on its outputs."""

from __future__ import annotations

import collections

from treenail._convert import scope_of
from treenail._nest import flatten, map_structure
from treenail._shape import TensorShape
from treenail.rnn._base import RNNCell
from treenail.rnn._given import check_cell
from treenail.seq2seq._attention import check_layer
from treenail.seq2seq._decoder import Decoder
from treenail.seq2seq._helpers import Helper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BasicDecoderOutput = collections.namedtuple("BasicDecoderOutput", ("rnn_output", "sample_id"))
BasicDecoderOutput.__doc__ = "What a step of BasicDecoder gives: the cell's outputs, and samples."


def _size_behind(layer: Any, size: Any) -> Any:
    """The size of outputs that went through the layer; unknown where it does not say."""
    if layer is None:
        return size
    units = getattr(layer, "units", None)
    return map_structure(lambda _: TensorShape(None if units is None else [units]), size)


class BasicDecoder(Decoder):
    """Steps a cell; a helper samples of its outputs and chooses the next inputs.

    initial_state: of the structure of cell.state_size. output_layer: what the cell's outputs go
    through before they are sampled. A step's output is BasicDecoderOutput(rnn_output [batch,
    size], sample_id).

    Raises TypeError for what is no cell, helper or layer.
    """

    def __init__(self, cell: RNNCell, helper: Helper, initial_state: Any,
                 output_layer: Any = None) -> None:
        check_cell(cell, "cell")
        if not isinstance(helper, Helper):
            raise TypeError("helper must be a Helper, received: %s" % type(helper).__name__)
        check_layer(output_layer, "output_layer")
        self._cell, self._helper = cell, helper
        self._initial_state, self._output_layer = initial_state, output_layer

    @property
    def batch_size(self) -> Any:
        """That of the helper."""
        return self._helper.batch_size

    @property
    def output_size(self) -> BasicDecoderOutput:
        """Sizes of rnn_output and sample_id."""
        return BasicDecoderOutput(_size_behind(self._output_layer, self._cell.output_size),
                                  self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> BasicDecoderOutput:
        """dtypes of rnn_output, which is that of the first part of the state, and sample_id."""
        dtype = flatten(self._initial_state)[0].dtype
        return BasicDecoderOutput(map_structure(lambda _: dtype, self._cell.output_size),
                                  self._helper.sample_ids_dtype)

    def initialize(self, name: str | None = None) -> tuple:
        """(finished, first inputs, first state)."""
        return tuple(self._helper.initialize()) + (self._initial_state,)

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple:
        """(outputs, next state, next inputs, finished)."""
        with scope_of(name, "BasicDecoderStep", [time]):
            outputs, state = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            sample_ids = self._helper.sample(time=time, outputs=outputs, state=state)
            finished, inputs, state = self._helper.next_inputs(
                time=time, outputs=outputs, state=state, sample_ids=sample_ids)
            return BasicDecoderOutput(outputs, sample_ids), state, inputs, finished

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple:
        """Both as they are."""
        return outputs, final_state
