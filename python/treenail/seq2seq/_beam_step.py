# SPDX-License-Identifier: Apache-2.0
"""One step of a beam search: scores, the best of all continuations, and what they continue."""

from __future__ import annotations

import collections

from treenail._activations import log_softmax
from treenail._array import concat, expand_dims, one_hot, shape_of
from treenail._array import range as range_of
from treenail._convert import constant_value, convert_to_tensor
from treenail._math import cast, reduce_mean, reduce_sum
from treenail._nest import map_structure
from treenail._ops import ops
from treenail._tensor_array import TensorArray
from treenail._treenail import Tensor, int32, int64
from treenail.seq2seq._wrapper import AttentionWrapperState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BeamSearchDecoderState = collections.namedtuple("BeamSearchDecoderState", (
    "cell_state", "log_probs", "finished", "lengths", "accumulated_attention_probs"))
BeamSearchDecoderState.__doc__ = """The state of a search: that of the cell, [batch, beam, ...];
log-probabilities, whether they have ended, and lengths of the beams, [batch, beam]; and for a
coverage penalty the attention that rows of the memory got, [batch, beam, memory time], else ()."""
BeamSearchDecoderOutput = collections.namedtuple("BeamSearchDecoderOutput", (
    "scores", "predicted_ids", "parent_ids"))
BeamSearchDecoderOutput.__doc__ = """What a step gives, [batch, beam] each: the scores of the new
beams, their last words, and which beams they continue."""
FinalBeamSearchDecoderOutput = collections.namedtuple("FinalBeamSearchDecoderOutput", (
    "predicted_ids", "beam_search_decoder_output"))
FinalBeamSearchDecoderOutput.__doc__ = """What a search gives: the sequences, [batch, time, beam],
and the outputs of its steps."""


class Penalties:
    """Weights of length and coverage (Wu and others 2016, arXiv:1609.08144, equation 14)."""

    def __init__(self, length: Any, coverage: Any) -> None:
        self.length = _weight("length_penalty_weight", length)
        self.coverage = _weight("coverage_penalty_weight", coverage)


def _weight(name: str, given: Any) -> Any:
    """None for 0."""
    value = convert_to_tensor(given)
    if value.shape.ndims != 0:
        raise ValueError("%s should be a scalar, but saw shape: %s" % (name, value.shape))
    known = constant_value(value)
    return None if known is not None and known == 0 else given


def attention_of(cell_state: Any, penalties: Penalties) -> Tensor | None:
    """The mean attention of all mechanisms, [batch, beam, memory time]; None without a coverage
    penalty. Raises ValueError where no cell has one."""
    if penalties.coverage is None:
        return None
    states = [cell_state] if isinstance(cell_state, AttentionWrapperState) else [
        part for part in (cell_state if isinstance(cell_state, tuple) else ())
        if isinstance(part, AttentionWrapperState)]
    if not states:
        raise ValueError("coverage_penalty_weight must be 0.0 if no cell is attentional, not %r"
                         % (penalties.coverage,))
    return _mean([_mean(list(s.alignments) if isinstance(s.alignments, tuple) else
                        [s.alignments]) for s in states])


def _mean(alike: list) -> Tensor:
    return alike[0] if len(alike) == 1 else reduce_mean(ops.Pack(alike), 0)


def _followed(log_probs: Tensor, finished: Tensor, end_token: Tensor, words: Any) -> Tensor:
    """Log-probabilities of each word; of what is finished all goes to the end."""
    low = convert_to_tensor(log_probs.dtype.min, log_probs.dtype)
    row = one_hot(end_token, words, convert_to_tensor(0, log_probs.dtype), low)
    return ops.Select(expand_dims(finished, 2), row, log_probs)


def _lengths_of_all(state: BeamSearchDecoderState, end_token: Tensor, words: Any) -> Tensor:
    """[batch, beam, words]: how long each continuation is; the end itself adds nothing."""
    adds = ops.NotEqual(range_of(convert_to_tensor(words, int32)), end_token)
    going_on = expand_dims(ops.LogicalNot(state.finished), 2)
    return expand_dims(state.lengths, 2) + cast(ops.LogicalAnd(going_on, adds), int64)


def _scores(log_probs: Tensor, lengths: Tensor, finished: Tensor, seen: Tensor | None,
            penalties: Penalties) -> Tensor:
    dtype = log_probs.dtype
    if penalties.length is not None:
        weight = convert_to_tensor(penalties.length, dtype)
        log_probs = log_probs / ops.Pow((5 + cast(lengths, dtype)) / 6, weight)
    if penalties.coverage is None or seen is None:
        return log_probs
    one = convert_to_tensor(1, seen.dtype)
    # Nothing at all is what lies behind the memory's length.
    seen = ops.Minimum(ops.Select(ops.Equal(seen, 0), one, seen), one)
    coverage = cast(reduce_sum(ops.Log(seen), 2), dtype) * cast(finished, dtype)
    return log_probs + expand_dims(coverage * convert_to_tensor(penalties.coverage, dtype), 2)


def _of_beams(rows: Any, beams: Tensor) -> Any:
    """rows [batch, beam, ...] at beams [batch, beam]; what has no beams stays."""
    if isinstance(rows, TensorArray) or rows.shape.ndims < 2:
        return rows
    extents = shape_of(beams)
    flat = ops.Reshape(rows, concat([[extents[0] * extents[1]], shape_of(rows)[2:]], 0))
    places = beams + expand_dims(range_of(extents[0]), 1) * extents[1]
    found = ops.Gather(flat, places, 0)
    found.set_shape(beams.shape.concatenate(rows.shape[2:]))
    return found


def next_step(logits: Tensor, cell_state: Any, state: BeamSearchDecoderState, end_token: Tensor,
              penalties: Penalties) -> tuple:
    """(outputs, next state) of logits [batch, beam, words]."""
    known_words, width = logits.shape[-1], logits.shape[1]
    words = shape_of(logits)[2] if known_words is None else known_words
    log_probs = expand_dims(state.log_probs, 2) + _followed(
        log_softmax(logits), state.finished, end_token, words)
    seen = attention_of(cell_state, penalties)
    if seen is not None:
        seen = state.accumulated_attention_probs + seen * cast(
            expand_dims(ops.LogicalNot(state.finished), 2), seen.dtype)
    scores = _scores(log_probs, _lengths_of_all(state, end_token, words), state.finished, seen,
                     penalties)
    all_words = ops.Pack([shape_of(logits)[0], width * words])
    best, places = ops.TopK(ops.Reshape(scores, all_words), width)
    beams = ops.FloorDiv(places, convert_to_tensor(words, int32))
    ids = places - beams * words
    for found in (best, beams, ids):
        found.set_shape(state.finished.shape)
    chosen = ops.GatherNd(ops.Reshape(log_probs, all_words), ops.Pack(
        [ops.BroadcastTo(expand_dims(range_of(shape_of(logits)[0]), 1), shape_of(places)), places],
        axis=-1))
    chosen.set_shape(state.finished.shape)
    before = _of_beams(state.finished, beams)
    next_state = BeamSearchDecoderState(
        cell_state=map_structure(lambda rows: _of_beams(rows, beams), cell_state),
        log_probs=chosen, finished=ops.LogicalOr(before, ops.Equal(ids, end_token)),
        lengths=_of_beams(state.lengths, beams) + cast(ops.LogicalNot(before), int64),
        accumulated_attention_probs=() if seen is None else _of_beams(seen, beams))
    return BeamSearchDecoderOutput(best, ids, beams), next_state
