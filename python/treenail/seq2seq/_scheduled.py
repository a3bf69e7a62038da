# SPDX-License-Identifier: Apache-2.0
"""Scheduled sampling: in training some inputs are what the decoder found itself (Bengio and others
2015, arXiv:1506.03099)."""

from __future__ import annotations

from treenail._array import concat, shape_of, transpose
from treenail._control_flow import cond
from treenail._convert import convert_to_tensor
from treenail._math import cast, reduce_all, reduce_any
from treenail._nest import map_structure
from treenail._ops import ops
from treenail._random import random_uniform
from treenail._tensor_array import TensorArray
from treenail._treenail import Tensor, float32, int32
from treenail._treenail import bool as bool_
from treenail.rnn._base import batch_of
from treenail.rnn._given import kept
from treenail.seq2seq._helpers import TrainingHelper, drawn, embedding_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def _probability(given: Any) -> Tensor:
    probability = convert_to_tensor(given, float32)
    if probability.shape.ndims not in (0, 1):
        raise ValueError("sampling_probability must be either a scalar or a vector. saw shape: %s"
                         % probability.shape)
    return probability


class _Scheduled(TrainingHelper):
    _sampling_probability: Tensor

    def _chosen(self, seed: int | None) -> Tensor:
        """Which sequences sample in this step, bool [batch]."""
        draws = random_uniform(shape_of(self._sequence_length), seed=seed)
        return ops.Less(draws, self._sampling_probability)


class ScheduledEmbeddingTrainingHelper(_Scheduled):
    """As TrainingHelper, but with sampling_probability, a scalar or [batch], the next input is the
    embedding of a word drawn from the softmax of the outputs.

    embedding: a function of ids, or a matrix whose rows they name. seed: of the words;
    scheduling_seed: of whether to draw. Samples are -1 where none was drawn.

    Raises ValueError for lengths that are no vector, and for another rank of the probability.
    """

    def __init__(self, inputs: Any, sequence_length: Any, embedding: Any,
                 sampling_probability: Any, time_major: bool = False, seed: int | None = None,
                 scheduling_seed: int | None = None, name: str | None = None) -> None:
        self._embedding_fn = embedding_function(embedding)
        self._sampling_probability = _probability(sampling_probability)
        self._seed, self._scheduling_seed = seed, scheduling_seed
        super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Tensor:
        """Words drawn, or -1."""
        return ops.Select(self._chosen(self._scheduling_seed), drawn(outputs, self._seed),
                          convert_to_tensor(-1, int32))

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any = None,
                    name: str | None = None) -> tuple:
        """(finished, next inputs, state)."""
        finished, given, state = super().next_inputs(time, outputs, state)

        def mixed() -> Tensor:
            own = self._embedding_fn(ops.Maximum(sample_ids, 0))
            return kept(ops.Less(sample_ids, 0), given, own)
        return finished, cond(reduce_all(finished), lambda: given, mixed, strict=True), state


class ScheduledOutputTrainingHelper(_Scheduled):
    """As TrainingHelper, but with sampling_probability, a scalar or [batch], the next input is the
    output itself, by way of next_inputs_fn(outputs) where it is given.

    auxiliary_inputs: laid out like inputs, joined to every input along the last axis. Samples are 1
    where an output is taken, else 0.

    Raises ValueError for lengths that are no vector, and for another rank of the probability.
    """

    def __init__(self, inputs: Any, sequence_length: Any, sampling_probability: Any,
                 time_major: bool = False, seed: int | None = None,
                 next_inputs_fn: Callable | None = None, auxiliary_inputs: Any = None,
                 name: str | None = None) -> None:
        self._sampling_probability, self._seed = _probability(sampling_probability), seed
        if next_inputs_fn is not None and not callable(next_inputs_fn):
            raise TypeError("next_inputs_fn must be callable, not %r" % (next_inputs_fn,))
        self._next_inputs_fn, self._auxiliary = next_inputs_fn, None
        if auxiliary_inputs is not None:
            more = map_structure(convert_to_tensor, auxiliary_inputs)
            inputs = map_structure(lambda x, y: concat([x, y], -1),
                                   map_structure(convert_to_tensor, inputs), more)
            whole = more if time_major else map_structure(
                lambda x: transpose(x, [1, 0, *range(2, x.shape.ndims)]), more)
            self._auxiliary = map_structure(
                lambda x: TensorArray(x.dtype, batch_of(x)).unstack(x), whole)
        super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Tensor:
        """1 where the output is to be the next input, else 0."""
        return cast(self._chosen(self._seed), int32)

    def _own(self, time: Any, outputs: Any) -> Any:
        own = outputs if self._next_inputs_fn is None else self._next_inputs_fn(outputs)
        if self._auxiliary is None:
            return own
        return map_structure(lambda x, more: concat([x, more.read(time)], -1), own,
                             self._auxiliary)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any = None,
                    name: str | None = None) -> tuple:
        """(finished, next inputs, state)."""
        finished, given, state = super().next_inputs(time, outputs, state)
        taken = cast(sample_ids, bool_)
        none = ops.LogicalOr(reduce_all(finished), ops.LogicalNot(reduce_any(taken)))
        mixed = cond(none, lambda: given, lambda: map_structure(
            lambda ours, theirs: kept(taken, ours, theirs), self._own(time + 1, outputs), given),
            strict=True)
        return finished, mixed, state
