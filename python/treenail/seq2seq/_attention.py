# SPDX-License-Identifier: Apache-2.0
"""Attention over a memory: which of its rows a query asks for, by an additive or a multiplicative
score."""

from __future__ import annotations

import math

from treenail._activations import softmax
from treenail._array import concat, expand_dims, one_hot, sequence_mask, shape_of, squeeze, zeros
from treenail._assertions import Assert, assert_equal
from treenail._convert import convert_to_tensor, scope_of
from treenail._framework import control_dependencies
from treenail._initializer_values import ONES, ZEROS
from treenail._math import argmax, matmul, reduce_all, reduce_sum, tanh
from treenail._nest import flatten, map_structure
from treenail._ops import ops
from treenail._treenail import Tensor, as_dtype, float32
from treenail._variable_scope import get_variable, variable_scope
from treenail.initializers import Constant
from treenail.layers import Dense
from treenail.layers._base import Layer
from treenail.rnn._base import batch_of, positive_int

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def hardmax(logits: Any, name: str | None = None) -> Tensor:
    """1 at the largest element along the last axis (at the first of equal ones), 0 elsewhere, in
    the shape and dtype of `logits`."""
    with scope_of(name, "Hardmax", [logits]):
        logits = convert_to_tensor(logits)
        known = logits.shape.with_rank_at_least(1)
        depth = known[-1] if known.ndims is not None else None
        depth = shape_of(logits)[-1] if depth is None else depth
        result = one_hot(argmax(logits, -1), depth, dtype=logits.dtype)
        result.set_shape(logits.shape)
        return result


def check_layer(layer: Any, what: str) -> None:
    """Raises TypeError for what is neither None nor a layer."""
    if layer is not None and not isinstance(layer, Layer):
        raise TypeError("%s is not a Layer: %s" % (what, type(layer).__name__))


def same_batch(given: Any, wanted: Any, message: str) -> list:
    """What must run before, where only a run can tell. Raises InvalidArgumentError where the batch
    sizes are known to differ."""
    if isinstance(given, int) and isinstance(wanted, int) and given == wanted:
        return []
    return [assert_equal(given, wanted, message=message)]


def _prepared(memory: Any, lengths: Tensor | None, inner_dims: bool) -> Any:
    """The memory with zeros behind each row's length."""
    def one(rows: Tensor) -> Tensor:
        if inner_dims and not rows.shape[2:].is_fully_defined():
            raise ValueError("Expected memory %s to have fully defined inner dims, but saw shape: "
                             "%s" % (rows.name, rows.shape))
        if lengths is None:
            return rows
        message = "memory_sequence_length and memory tensor batch sizes do not match."
        with control_dependencies(same_batch(batch_of(lengths), batch_of(rows), message)):
            mask = sequence_mask(lengths, batch_of(rows, 1), rows.dtype)
        behind = [1] * (rows.shape.ndims - 2)
        return rows * (ops.Reshape(mask, concat([shape_of(mask), behind], 0)) if behind else mask)
    memory = map_structure(convert_to_tensor, memory)
    for rows in flatten(memory):
        if rows.shape.ndims is None or rows.shape.ndims < 2:
            raise ValueError("memory must be [batch, time, ...], the shape of %s is %s"
                             % (rows.name, rows.shape))
    return map_structure(one, memory)


def _masked(score: Tensor, lengths: Tensor | None, value: Any) -> Tensor:
    """The score with `value` behind each row's length, which must be positive: no probability is
    left otherwise."""
    if lengths is None:
        return score
    positive = Assert(reduce_all(ops.Greater(lengths, 0)), [
        "All values in memory_sequence_length must greater than zero.", lengths])
    with control_dependencies([positive]):
        mask = sequence_mask(lengths, batch_of(score, 1))
    masked = ops.Select(mask, score, convert_to_tensor(value, score.dtype))
    masked.set_shape(score.shape)
    return masked


def projection(units: int, name: str, dtype: Any) -> Dense:
    """A dense layer without bias; several mechanisms have one each of the name."""
    return Dense(units, use_bias=False, name=name, dtype=dtype)


class AttentionMechanism:
    """What AttentionWrapper asks for alignments: the base of all mechanisms."""

    @property
    def alignments_size(self) -> Any:
        """How many rows the memory has, an int or a scalar tensor."""
        raise NotImplementedError("Abstract method")

    @property
    def state_size(self) -> Any:
        """The size of the state that goes from step to step."""
        raise NotImplementedError("Abstract method")


class Mechanism(AttentionMechanism):
    """What both scores share: keys and values of the memory, masks, and the state, which is the
    last alignments."""

    _name: str

    def __init__(self, num_units: int, memory: Any, memory_sequence_length: Any,
                 probability_fn: Any, score_mask_value: Any, dtype: Any, query_layer: bool,
                 custom_key_value_fn: Any, name: str) -> None:
        if not callable(probability_fn):
            raise TypeError("probability_fn must be callable, saw type: %s"
                            % type(probability_fn).__name__)
        self._num_units = positive_int(num_units, "num_units")
        self._name, self.dtype = name, as_dtype(float32 if dtype is None else dtype)
        self._query_layer = (projection(num_units, "query_layer", self.dtype) if query_layer else
                             None)
        self._memory_layer = projection(num_units, "memory_layer", self.dtype)
        self._lengths = None if memory_sequence_length is None else convert_to_tensor(
            memory_sequence_length)
        self._probability, self._mask_value = probability_fn, (
            -math.inf if score_mask_value is None else score_mask_value)
        with scope_of(name, "BaseAttentionMechanismInit", flatten(memory)):
            self._values = _prepared(memory, self._lengths, True)
            self._keys = self._memory_layer(self._values)
            if custom_key_value_fn is not None:
                self._keys, self._values = custom_key_value_fn(self._keys, self._values)
            self._batch_size = batch_of(self._keys)
            self._alignments_size = batch_of(self._keys, 1)

    def _probabilities(self, score: Tensor, state: Any) -> Tensor:
        return self._probability(_masked(score, self._lengths, self._mask_value), state)

    @property
    def memory_layer(self) -> Layer:
        """The layer that makes keys of the memory."""
        return self._memory_layer

    @property
    def query_layer(self) -> Layer | None:
        """The layer that the query goes through, or None."""
        return self._query_layer

    @property
    def keys(self) -> Tensor:
        """[batch, memory time, num_units]: what queries are compared with."""
        return self._keys

    @property
    def values(self) -> Tensor:
        """[batch, memory time, size]: what is read of the memory."""
        return self._values

    @property
    def batch_size(self) -> Any:
        """That of the memory, an int or a scalar tensor."""
        return self._batch_size

    @property
    def alignments_size(self) -> Any:
        """How many rows the memory has, an int or a scalar tensor."""
        return self._alignments_size

    @property
    def state_size(self) -> Any:
        """alignments_size."""
        return self._alignments_size

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Tensor:
        """Zeros [batch_size, memory time]."""
        return zeros(ops.Pack([batch_size, self._alignments_size]), dtype)

    def initial_state(self, batch_size: Any, dtype: Any) -> Tensor:
        """The first alignments."""
        return self.initial_alignments(batch_size, dtype)

    def __call__(self, query: Any, state: Any) -> tuple:
        """(alignments, next state) of a query [batch, depth] and the state, the last alignments:
        [batch, memory time], probabilities of the rows of the memory."""
        query = convert_to_tensor(query)
        with variable_scope(None, self._scope()):
            score = self._score(query)
        alignments = self._probabilities(score, state)
        return alignments, alignments

    def _scope(self) -> str:
        raise NotImplementedError("Abstract method")

    def _score(self, query: Tensor) -> Tensor:
        """[batch, memory time]."""
        raise NotImplementedError("Abstract method")


class AdditiveScore(Mechanism):
    """v^T tanh(W query + keys), or with g v / |v| in place of v and a bias within tanh."""

    _normalize: bool

    def _score(self, query: Tensor) -> Tensor:
        units, dtype = [self._num_units], query.dtype
        both = self._keys + expand_dims(self._query_layer(query), 1)
        v = get_variable("attention_v", units, dtype)
        if self._normalize:
            g = get_variable("attention_g", [], dtype, Constant(math.sqrt(1 / self._num_units)))
            v = g * v * ops.Rsqrt(reduce_sum(ops.Square(v)))
            both = both + get_variable("attention_b", units, dtype, ZEROS)
        return reduce_sum(v * tanh(both), [2])


class MultiplicativeScore(Mechanism):
    """query^T keys, with `scale` times a number that is learned."""

    _scale: bool

    def _score(self, query: Tensor) -> Tensor:
        depth, units = query.shape[-1], self._keys.shape[-1]
        if depth != units:
            raise ValueError(
                "Incompatible or unknown inner dimensions between query and keys.  Query (%s) has "
                "units: %s.  Keys (%s) have units: %s.  Perhaps you need to set num_units to the "
                "keys' dimension (%s)?" % (query.name, depth, self._keys.name, units, depth))
        score = squeeze(matmul(expand_dims(query, 1), self._keys, transpose_b=True), [1])
        if self._scale:
            score = get_variable("attention_g", [], query.dtype, ONES) * score
        return score


def _stateless(probability_fn: Callable | None) -> Any:
    function = softmax if probability_fn is None else probability_fn
    return (lambda score, _: function(score)) if callable(function) else function


class BahdanauAttention(AdditiveScore):
    """Additive attention (Bahdanau, Cho and Bengio 2014, arXiv:1409.0473).

    num_units: the size of keys and of the processed query. memory: [batch, memory time, size], such
    as the outputs of an encoder. memory_sequence_length, [batch]: what lies behind gets no
    probability; must be positive. normalize: weights as in Salimans and Kingma 2016
    (arXiv:1602.07868). probability_fn: of scores [batch, memory time], softmax by default.
    score_mask_value: of what lies behind, -inf by default. custom_key_value_fn(keys, values): gives
    both anew. Variables: memory_layer/kernel where it is made, and query_layer/kernel,
    attention_v, with normalize attention_g and attention_b where it is used.

    Raises ValueError for a memory of unknown inner extents, TypeError for a probability_fn that
    is not callable. Errors at run time: InvalidArgumentError for lengths that are not positive or
    of another number.
    """

    def __init__(self, num_units: int, memory: Any, memory_sequence_length: Any = None,
                 normalize: bool = False, probability_fn: Callable | None = None,
                 score_mask_value: Any = None, dtype: Any = None,
                 custom_key_value_fn: Callable | None = None,
                 name: str = "BahdanauAttention") -> None:
        self._normalize = normalize
        super().__init__(num_units, memory, memory_sequence_length, _stateless(probability_fn),
                         score_mask_value, dtype, True, custom_key_value_fn, name)

    def _scope(self) -> str:
        return "bahdanau_attention"


class LuongAttention(MultiplicativeScore):
    """Multiplicative attention (Luong, Pham and Manning 2015, arXiv:1508.04025).

    num_units: the size of the keys, which must be that of the query. scale: the score is multiplied
    by attention_g, a variable that begins as 1. The rest, and what is raised, as for
    BahdanauAttention; ValueError also for a query of another size.
    """

    def __init__(self, num_units: int, memory: Any, memory_sequence_length: Any = None,
                 scale: bool = False, probability_fn: Callable | None = None,
                 score_mask_value: Any = None, dtype: Any = None,
                 custom_key_value_fn: Callable | None = None,
                 name: str = "LuongAttention") -> None:
        self._scale = scale
        super().__init__(num_units, memory, memory_sequence_length, _stateless(probability_fn),
                         score_mask_value, dtype, False, custom_key_value_fn, name)

    def _scope(self) -> str:
        return "luong_attention"
