# SPDX-License-Identifier: Apache-2.0
"""What follows on a decoder's outputs: the words that are given, those found likeliest, samples, or
what a program's own functions say."""

from __future__ import annotations

from treenail._array import shape_of, transpose, zeros
from treenail._control_flow import cond
from treenail._convert import constant_value, convert_to_tensor
from treenail._embedding import embedding_lookup
from treenail._math import argmax, cast, reduce_all
from treenail._nest import flatten, map_structure
from treenail._ops import ops
from treenail._random import multinomial
from treenail._shape import TensorShape, as_shape
from treenail._tensor_array import TensorArray
from treenail._treenail import DType, Tensor, as_dtype
from treenail._treenail import bool as bool_
from treenail._treenail import int32
from treenail.rnn._base import batch_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class Helper:
    """Says how a decoding begins, what a step's outputs are sampled to, and what comes next: the
    base of all helpers. What a helper does not define raises NotImplementedError."""

    @property
    def batch_size(self) -> Any:
        """How many sequences there are, an int or a scalar tensor."""
        raise NotImplementedError("batch_size has not been implemented")

    @property
    def sample_ids_shape(self) -> TensorShape:
        """The shape of a sample without the batch."""
        raise NotImplementedError("sample_ids_shape has not been implemented")

    @property
    def sample_ids_dtype(self) -> DType:
        """The dtype of samples."""
        raise NotImplementedError("sample_ids_dtype has not been implemented")

    def initialize(self, name: str | None = None) -> tuple:
        """(finished [batch], inputs of the first step)."""
        raise NotImplementedError("initialize has not been implemented")

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Samples of a step's outputs."""
        raise NotImplementedError("sample has not been implemented")

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any,
                    name: str | None = None) -> tuple:
        """(finished [batch], inputs of the next step, next state)."""
        raise NotImplementedError("next_inputs has not been implemented")


class _Words(Helper):
    """Samples that are numbers of words."""

    @property
    def sample_ids_shape(self) -> TensorShape:
        """A scalar for each sequence."""
        return TensorShape([])

    @property
    def sample_ids_dtype(self) -> DType:
        """int32."""
        return int32


class CustomHelper(_Words):
    """A helper of three functions: initialize_fn() gives (finished, next inputs), sample_fn(time,
    outputs, state) samples, next_inputs_fn(time, outputs, state, sample_ids) (finished, next
    inputs, next state); they are called with keywords.

    sample_ids_shape: of a sample without the batch, a scalar by default; sample_ids_dtype: int32 by
    default.

    Raises TypeError for functions that are not callable.
    """

    def __init__(self, initialize_fn: Callable, sample_fn: Callable, next_inputs_fn: Callable,
                 sample_ids_shape: Any = None, sample_ids_dtype: Any = None) -> None:
        for what, function in (("initialize_fn", initialize_fn), ("sample_fn", sample_fn),
                               ("next_inputs_fn", next_inputs_fn)):
            if not callable(function):
                raise TypeError("%s must be callable, not %r" % (what, function))
        self._initialize_fn, self._sample_fn = initialize_fn, sample_fn
        self._next_inputs_fn, self._batch_size = next_inputs_fn, None
        self._shape = as_shape([] if sample_ids_shape is None else sample_ids_shape)
        self._dtype = as_dtype(int32 if sample_ids_dtype is None else sample_ids_dtype)

    @property
    def batch_size(self) -> Any:
        """How many sequences there are. Raises ValueError before initialize()."""
        if self._batch_size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        """The shape of a sample without the batch."""
        return self._shape

    @property
    def sample_ids_dtype(self) -> DType:
        """The dtype of samples."""
        return self._dtype

    def initialize(self, name: str | None = None) -> tuple:
        """What initialize_fn gives."""
        finished, inputs = self._initialize_fn()
        if self._batch_size is None:
            self._batch_size = batch_of(convert_to_tensor(finished))
        return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """What sample_fn gives."""
        return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any,
                    name: str | None = None) -> tuple:
        """What next_inputs_fn gives."""
        return self._next_inputs_fn(time=time, outputs=outputs, state=state,
                                    sample_ids=sample_ids)


class TrainingHelper(_Words):
    """The inputs of each step are given; samples are the likeliest words.

    inputs: [batch, time, ...], or [time, batch, ...] when time_major, a tensor or a nest of them.
    sequence_length: [batch], steps of each; a finished one gets its inputs on, and zeros when all
    are finished.

    Raises ValueError for lengths that are no vector.
    """

    def __init__(self, inputs: Any, sequence_length: Any, time_major: bool = False,
                 name: str | None = None) -> None:
        self._inputs = map_structure(convert_to_tensor, inputs)
        self._sequence_length = convert_to_tensor(sequence_length, int32)
        if self._sequence_length.shape.ndims != 1:
            raise ValueError("Expected sequence_length to be a vector, but received shape: %s"
                             % self._sequence_length.shape)
        whole = self._inputs if time_major else map_structure(
            lambda x: transpose(x, [1, 0, *range(2, x.shape.ndims)]), self._inputs)
        self._rows = map_structure(lambda x: TensorArray(x.dtype, batch_of(x)).unstack(x), whole)
        self._zeros = map_structure(_row_of_zeros, whole)
        self._batch_size = batch_of(self._sequence_length)

    @property
    def batch_size(self) -> Any:
        """That of sequence_length."""
        return self._batch_size

    @property
    def inputs(self) -> Any:
        """As they were given."""
        return self._inputs

    @property
    def sequence_length(self) -> Tensor:
        """As it was given."""
        return self._sequence_length

    def _at(self, time: Any, finished: Tensor) -> Any:
        return cond(reduce_all(finished), lambda: self._zeros, lambda: map_structure(
            lambda row: row.read(time), self._rows), strict=True)

    def initialize(self, name: str | None = None) -> tuple:
        """(finished, first inputs)."""
        finished = ops.LessEqual(self._sequence_length, 0)
        return finished, self._at(0, finished)

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Tensor:
        """The likeliest words."""
        return cast(argmax(outputs, -1), int32)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any = None,
                    name: str | None = None) -> tuple:
        """(finished, next inputs, state)."""
        finished = ops.LessEqual(self._sequence_length, time + 1)
        return finished, self._at(time + 1, finished), state


def _row_of_zeros(whole: Tensor) -> Tensor:
    row = zeros(shape_of(whole)[1:], whole.dtype)
    row.set_shape(whole.shape[1:])
    return row


def embedding_function(embedding: Any) -> Callable:
    """Words to inputs: a function as it is, a matrix by its rows."""
    return embedding if callable(embedding) else lambda ids: embedding_lookup(embedding, ids)


def start_and_end(start_tokens: Any, end_token: Any) -> tuple:
    """Both as int32 tensors. Raises ValueError unless they are a vector and a scalar."""
    start, end = convert_to_tensor(start_tokens, int32), convert_to_tensor(end_token, int32)
    if start.shape.ndims != 1:
        raise ValueError("start_tokens must be a vector, its shape is %s" % start.shape)
    if end.shape.ndims != 0:
        raise ValueError("end_token must be a scalar, its shape is %s" % end.shape)
    return start, end


class GreedyEmbeddingHelper(_Words):
    """The likeliest word of each step is the input of the next.

    embedding: a function of ids [batch], or a matrix whose rows they name. start_tokens: [batch],
    the first inputs. end_token: a sequence ends with it.

    Raises ValueError for start_tokens that are no vector and an end_token that is no scalar.
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embedding_fn = embedding_function(embedding)
        self._start_tokens, self._end_token = start_and_end(start_tokens, end_token)
        self._batch_size = batch_of(self._start_tokens)
        self._start_inputs = self._embedding_fn(self._start_tokens)

    @property
    def batch_size(self) -> Any:
        """That of start_tokens."""
        return self._batch_size

    def initialize(self, name: str | None = None) -> tuple:
        """(none is finished, inputs of start_tokens)."""
        finished = zeros(shape_of(self._start_tokens), bool_)
        finished.set_shape(self._start_tokens.shape)
        return finished, self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Tensor:
        """The likeliest words. Raises TypeError for a nest of outputs."""
        return cast(argmax(_one(outputs), -1), int32)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any,
                    name: str | None = None) -> tuple:
        """(finished, inputs of the samples, state)."""
        finished = ops.Equal(sample_ids, self._end_token)
        return finished, cond(reduce_all(finished), lambda: self._start_inputs,
                              lambda: self._embedding_fn(sample_ids), strict=True), state


def _one(outputs: Any) -> Tensor:
    if not isinstance(outputs, Tensor):
        raise TypeError("Expected outputs to be a single Tensor, got: %s" % type(outputs).__name__)
    return outputs


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """As GreedyEmbeddingHelper, but words are drawn from the softmax of the outputs.

    softmax_temperature: what outputs are divided by first; low ones make likely words likelier.
    seed: of the drawing.
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any,
                 softmax_temperature: Any = None, seed: int | None = None) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._temperature, self._seed = softmax_temperature, seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Tensor:
        """Words drawn. Raises TypeError for a nest of outputs."""
        logits = _one(outputs)
        if self._temperature is not None:
            logits = logits / convert_to_tensor(self._temperature, logits.dtype)
        return drawn(logits, self._seed)


def drawn(logits: Tensor, seed: int | None) -> Tensor:
    """A word for each row of logits [batch, words], int32."""
    words = multinomial(logits, 1, seed=seed, output_dtype=int32)[:, 0]
    words.set_shape(logits.shape[:1])
    return words


class InferenceHelper(Helper):
    """Samples by sample_fn(outputs), of `sample_shape` and `sample_dtype`, are the next inputs, by
    way of next_inputs_fn(samples) where it is given; end_fn(samples) tells what is finished.

    start_inputs: [batch, ...], the first inputs.

    Raises TypeError for functions that are not callable.
    """

    def __init__(self, sample_fn: Callable, sample_shape: Any, sample_dtype: Any,
                 start_inputs: Any, end_fn: Callable,
                 next_inputs_fn: Callable | None = None) -> None:
        for what, function in (("sample_fn", sample_fn), ("end_fn", end_fn),
                               ("next_inputs_fn", next_inputs_fn or end_fn)):
            if not callable(function):
                raise TypeError("%s must be callable, not %r" % (what, function))
        self._sample_fn, self._end_fn, self._next_inputs_fn = sample_fn, end_fn, next_inputs_fn
        self._sample_shape, self._sample_dtype = as_shape(sample_shape), as_dtype(sample_dtype)
        self._start_inputs = map_structure(convert_to_tensor, start_inputs)
        self._batch_size = batch_of(flatten(self._start_inputs)[0])

    @property
    def batch_size(self) -> Any:
        """That of start_inputs."""
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        """sample_shape."""
        return self._sample_shape

    @property
    def sample_ids_dtype(self) -> DType:
        """sample_dtype."""
        return self._sample_dtype

    def initialize(self, name: str | None = None) -> tuple:
        """(none is finished, start_inputs)."""
        size = convert_to_tensor(self._batch_size, int32)
        finished = zeros(ops.Pack([size]), bool_)
        known = constant_value(size)
        finished.set_shape([None if known is None else int(known)])
        return finished, self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """sample_fn(outputs)."""
        return self._sample_fn(outputs)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any,
                    name: str | None = None) -> tuple:
        """(finished, next inputs, state)."""
        own = self._next_inputs_fn
        return self._end_fn(sample_ids), sample_ids if own is None else own(sample_ids), state
