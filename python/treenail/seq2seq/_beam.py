# SPDX-License-Identifier: Apache-2.0
"""Beam search: BeamSearchDecoder and tile_batch. The arithmetic of a step: _beam_step."""

from __future__ import annotations

from treenail._array import concat, expand_dims, one_hot, shape_of, tile, transpose, zeros
from treenail._array import range as range_of
from treenail._array import sequence_mask
from treenail._control_flow import cond
from treenail._convert import constant_value, convert_to_tensor, scope_of
from treenail._math import cast, reduce_all, reduce_max
from treenail._nest import flatten, map_structure
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._tensor_array import TensorArray
from treenail._treenail import Tensor
from treenail._treenail import bool as bool_
from treenail._treenail import int32, int64
from treenail.rnn._base import RNNCell, positive_int
from treenail.rnn._given import check_cell, converted
from treenail.seq2seq._attention import check_layer
from treenail.seq2seq._beam_step import (BeamSearchDecoderOutput, BeamSearchDecoderState,
                                         FinalBeamSearchDecoderOutput, Penalties, attention_of,
                                         next_step)
from treenail.seq2seq._decoder import Decoder
from treenail.seq2seq._helpers import embedding_function, start_and_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Each row of `t`, a tensor [batch, ...] or a nest of them, `multiplier` times in a row: [batch
    * multiplier, ...], for BeamSearchDecoder.

    Raises ValueError for a tensor of unknown rank or a scalar.
    """
    def one(rows: Any) -> Tensor:
        rows = convert_to_tensor(rows)
        if rows.shape.ndims is None or rows.shape.ndims < 1:
            raise ValueError("t must have statically known rank of at least 1, its shape is %s"
                             % rows.shape)
        count = convert_to_tensor(multiplier, int32)
        times = concat([[1], ops.Reshape(count, [1]), [1] * (rows.shape.ndims - 1)], 0)
        tiled = tile(expand_dims(rows, 1), times)
        tiled = ops.Reshape(tiled, concat([[shape_of(rows)[0] * count], shape_of(rows)[1:]], 0))
        known, count = rows.shape[0], constant_value(count)
        tiled.set_shape(TensorShape([None if known is None or count is None else
                                     known * int(count)]).concatenate(rows.shape[1:]))
        return tiled
    with scope_of(name, "tile_batch", flatten(t)):
        return map_structure(one, t)


def gather_tree_from_array(t: Any, parent_ids: Tensor, sequence_length: Tensor) -> Tensor:
    """What was written in each step, `t`, a tensor or TensorArray [time, batch, beam, ...], along
    the sequences that the beams ended as. parent_ids: [time, batch, beam], int32;
    sequence_length: [batch, beam]. Steps behind a sequence's length keep their beam.

    Raises ValueError for parents of another rank.
    """
    values = t.stack() if isinstance(t, TensorArray) else convert_to_tensor(t)
    parent_ids = convert_to_tensor(parent_ids, int32)
    if parent_ids.shape.ndims != 3:
        raise ValueError("parent_ids must be [time, batch, beam], their shape is %s"
                         % parent_ids.shape)
    sequence_length, extents = convert_to_tensor(sequence_length), shape_of(parent_ids)
    time, batch, width = extents[0], extents[1], extents[2]
    own = ops.BroadcastTo(range_of(width), extents)
    followed = ops.GatherTree(own, parent_ids, cast(reduce_max(sequence_length, 1), int32),
                              width + 1)
    inside = transpose(sequence_mask(sequence_length, time), [2, 0, 1])
    beams = ops.Select(inside, followed, own)
    times = ops.BroadcastTo(ops.Reshape(range_of(time), [-1, 1, 1]), extents)
    batches = ops.BroadcastTo(ops.Reshape(range_of(batch), [1, -1, 1]), extents)
    return ops.GatherNd(values, ops.Pack([times, batches, beams], axis=-1))


def _check(what: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError("%s must be a %s, not %r" % (what, kind.__name__, value))


class BeamSearchDecoder(Decoder):
    """Keeps the beam_width likeliest beginnings of each sequence, step by step.

    embedding: a function of ids [batch, beam], or a matrix whose rows they name. start_tokens:
    [batch]; end_token: a scalar, ends a beam. initial_state: of the structure of cell.state_size,
    for batch * beam_width rows, as tile_batch gives it. output_layer: what the cell's outputs go
    through, to logits of words. length_penalty_weight: scores are log-probabilities divided by
    ((5 + length) / 6)^weight; coverage_penalty_weight: weight of sum(log(min(attention, 1))) over
    the memory, for beams that have ended; the cell must be an AttentionWrapper (Wu and others 2016,
    arXiv:1609.08144, equation 14). reorder_tensor_arrays: TensorArrays in the state, such as the
    history of alignments, come out along the sequences that the beams ended as: [time, batch,
    beam, ...] in place of the array.

    dynamic_decode gives FinalBeamSearchDecoderOutput(predicted_ids [batch, time, beam], the best
    beam first, end_token behind a beam's end, and the outputs of the steps), a
    BeamSearchDecoderState, and lengths [batch, beam] of steps; those of the beams are in the state.
    impute_finished does not go with beams, which change places.

    Raises TypeError for what is no cell or layer, ValueError for start_tokens that are no vector,
    an end_token that is no scalar, and a state of another batch than batch * beam_width.
    """

    def __init__(self, cell: RNNCell, embedding: Any, start_tokens: Any, end_token: Any,
                 initial_state: Any, beam_width: int, output_layer: Any = None,
                 length_penalty_weight: Any = 0.0, coverage_penalty_weight: Any = 0.0,
                 reorder_tensor_arrays: bool = True) -> None:
        check_cell(cell, "cell")
        check_layer(output_layer, "output_layer")
        self._cell, self._output_layer = cell, output_layer
        self._embedding_fn = embedding_function(embedding)
        start, self._end_token = start_and_end(start_tokens, end_token)
        self._beam_width = positive_int(beam_width, "beam_width")
        self._known_batch = start.shape[0]
        self._batch_size = shape_of(start)[0] if self._known_batch is None else self._known_batch
        self._penalties = Penalties(length_penalty_weight, coverage_penalty_weight)
        self._reorder = reorder_tensor_arrays
        self._initial_cell_state = map_structure(self._split, map_structure(
            converted, initial_state))
        self._start_inputs = self._embedding_fn(tile(expand_dims(start, 1), [1, beam_width]))

    @property
    def batch_size(self) -> Any:
        """That of start_tokens."""
        return self._batch_size

    @property
    def tracks_own_finished(self) -> bool:
        """True: beams change places."""
        return True

    @property
    def output_size(self) -> BeamSearchDecoderOutput:
        """[beam_width] each."""
        return BeamSearchDecoderOutput(*[TensorShape([self._beam_width])] * 3)

    @property
    def output_dtype(self) -> BeamSearchDecoderOutput:
        """Scores have the dtype of the state's first part."""
        return BeamSearchDecoderOutput(self._dtype, int32, int32)

    @property
    def _dtype(self) -> Any:
        return flatten(self._initial_cell_state)[0].dtype

    def _split(self, rows: Any) -> Any:
        """[batch * beam, ...] as [batch, beam, ...]."""
        if isinstance(rows, TensorArray) or rows.shape.ndims == 0:
            return rows
        if rows.shape.ndims is None:
            raise ValueError("Expected tensor (%s) to have known rank, but ndims == None."
                             % rows.name)
        wanted = TensorShape([self._known_batch, self._beam_width]).concatenate(rows.shape[1:])
        if self._known_batch is not None and rows.shape[0] not in (
                None, self._known_batch * self._beam_width):
            raise ValueError(
                "Unexpected behavior when reshaping between beam width and batch size.  The tensor "
                "has shape: %s.  We expected it to have shape (batch_size, beam_width, depth) == "
                "%s.  Perhaps you forgot to create a zero_state with "
                "batch_size=encoder_batch_size * beam_width?" % (rows.shape, wanted))
        split = ops.Reshape(rows, concat([ops.Pack([self._batch_size, self._beam_width]),
                                          shape_of(rows)[1:]], 0))
        split.set_shape(wanted)
        return split

    def _merged(self, rows: Any) -> Any:
        """The reverse of _split."""
        if isinstance(rows, TensorArray) or rows.shape.ndims is None or rows.shape.ndims < 2:
            return rows
        merged = ops.Reshape(rows, concat([ops.Pack([self._batch_size * self._beam_width]),
                                           shape_of(rows)[2:]], 0))
        known = None if self._known_batch is None else self._known_batch * self._beam_width
        merged.set_shape(TensorShape([known]).concatenate(rows.shape[2:]))
        return merged

    def initialize(self, name: str | None = None) -> tuple:
        """(finished, inputs of start_tokens, first state): the beams but the first are finished,
        and infinitely unlikely, so that a step has different words to choose of."""
        firsts = zeros(ops.Pack([self._batch_size]), int32)
        firsts.set_shape([self._known_batch])
        first = one_hot(firsts, self._beam_width, True, False, dtype=bool_)
        lengths = zeros(ops.Pack([self._batch_size, self._beam_width]), int64)
        lengths.set_shape([self._known_batch, self._beam_width])
        seen = attention_of(self._initial_cell_state, self._penalties)
        state = BeamSearchDecoderState(
            cell_state=self._initial_cell_state, lengths=lengths,
            log_probs=ops.Select(first, convert_to_tensor(0, self._dtype),
                                 convert_to_tensor(float("-inf"), self._dtype)),
            finished=ops.LogicalNot(first),
            accumulated_attention_probs=() if seen is None else seen)
        return state.finished, self._start_inputs, state

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple:
        """(outputs, next state, next inputs, finished). Raises TypeError for a state that is no
        BeamSearchDecoderState."""
        _check("state", state, BeamSearchDecoderState)
        inputs = map_structure(convert_to_tensor, inputs)
        with scope_of(name, "BeamSearchDecoderStep", [time]):
            logits, cell_state = self._cell(map_structure(self._merged, inputs),
                                            map_structure(self._merged, state.cell_state))
            logits = self._split(logits)
            if self._output_layer is not None:
                logits = self._output_layer(logits)
            output, state = next_step(logits, map_structure(self._split, cell_state), state,
                                      self._end_token, self._penalties)
            inputs = cond(reduce_all(state.finished), lambda: self._start_inputs,
                          lambda: self._embedding_fn(output.predicted_ids), strict=True)
            return output, state, inputs, state.finished

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple:
        """(FinalBeamSearchDecoderOutput, final state) of the outputs of all steps. Raises TypeError
        for what is no BeamSearchDecoderOutput and BeamSearchDecoderState."""
        _check("outputs", outputs, BeamSearchDecoderOutput)
        _check("final_state", final_state, BeamSearchDecoderState)
        longest = cast(reduce_max(final_state.lengths, 1), int32)
        predicted = ops.GatherTree(outputs.predicted_ids, outputs.parent_ids, longest,
                                   self._end_token)
        if self._reorder:
            final_state = final_state._replace(cell_state=map_structure(
                lambda leaf: self._sorted(leaf, outputs.parent_ids, final_state.lengths),
                final_state.cell_state))
        return FinalBeamSearchDecoderOutput(predicted, outputs), final_state

    def _sorted(self, leaf: Any, parent_ids: Tensor, lengths: Tensor) -> Any:
        if not isinstance(leaf, TensorArray):
            return leaf
        if leaf.element_shape.rank is None or leaf.element_shape.rank < 1:
            return leaf
        values = leaf.stack()
        split = ops.Reshape(values, concat([shape_of(parent_ids), shape_of(values)[2:]], 0))
        return gather_tree_from_array(split, parent_ids, lengths)
