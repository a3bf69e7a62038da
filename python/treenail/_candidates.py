# SPDX-License-Identifier: Apache-2.0
"""Losses over very many classes by comparing the true ones with a few drawn ones, and the samplers
that draw them (all of it in tn.nn)."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail import _cross_entropy
from treenail._array import (concat, expand_dims, ones_like, reshape, shape_of, slice, stack,
                             stop_gradient, tensor_scatter_update, zeros, zeros_like)
from treenail._convert import convert_to_tensor, scope_of
from treenail._embedding import embedding_lookup
from treenail._math import cast, matmul, reduce_sum
from treenail._ops import ops
from treenail._random import _seeds
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


# --- Samplers -------------------------------------------------------------------------------------

def uniform_candidate_sampler(true_classes: Any, num_true: int, num_sampled: int, unique: bool,
                              range_max: int, seed: int | None = None,
                              name: str | None = None) -> Any:
    """(sampled_candidates, true_expected_count, sampled_expected_count): num_sampled classes from
    [0, range_max), all equally likely, without repetition when unique; and how often the true
    classes, [batch, num_true], and the drawn ones are expected among the drawn."""
    return ops.UniformCandidateSampler(true_classes, num_true=num_true, num_sampled=num_sampled,
                                       unique=unique, range_max=range_max, name=name,
                                       **_seeds(seed))


def log_uniform_candidate_sampler(true_classes: Any, num_true: int, num_sampled: int, unique: bool,
                                  range_max: int, seed: int | None = None,
                                  name: str | None = None) -> Any:
    """As uniform_candidate_sampler, with probabilities (log(c + 2) - log(c + 1)) / log(range_max +
    1): for classes numbered by falling frequency, as words are."""
    return ops.LogUniformCandidateSampler(true_classes, num_true=num_true, num_sampled=num_sampled,
                                          unique=unique, range_max=range_max, name=name,
                                          **_seeds(seed))


def learned_unigram_candidate_sampler(true_classes: Any, num_true: int, num_sampled: int,
                                      unique: bool, range_max: int, seed: int | None = None,
                                      name: str | None = None) -> Any:
    """As uniform_candidate_sampler, with probabilities in proportion to how often a class was a
    true one in the runs before, plus one."""
    return ops.LearnedUnigramCandidateSampler(true_classes, num_true=num_true,
                                              num_sampled=num_sampled, unique=unique,
                                              range_max=range_max, name=name, **_seeds(seed))


def fixed_unigram_candidate_sampler(true_classes: Any, num_true: int, num_sampled: int,
                                    unique: bool, range_max: int, vocab_file: str = "",
                                    distortion: float = 1.0, num_reserved_ids: int = 0,
                                    num_shards: int = 1, shard: int = 0,
                                    unigrams: Sequence = (), seed: int | None = None,
                                    name: str | None = None) -> Any:
    """As uniform_candidate_sampler, with probabilities in proportion to weights ** distortion.

    The weights are `unigrams`, or stand in vocab_file, a line for each class, last in the line
    behind a comma. num_reserved_ids: so many classes come first that are never drawn. num_shards,
    shard: only classes whose number is `shard` modulo num_shards count.
    """
    return ops.FixedUnigramCandidateSampler(
        true_classes, num_true=num_true, num_sampled=num_sampled, unique=unique,
        range_max=range_max, vocab_file=vocab_file, distortion=distortion,
        num_reserved_ids=num_reserved_ids, num_shards=num_shards, shard=shard,
        unigrams=list(unigrams), name=name, **_seeds(seed))


def all_candidate_sampler(true_classes: Any, num_true: int, num_sampled: int, unique: bool,
                          seed: int | None = None, name: str | None = None) -> Any:
    """All classes [0, num_sampled), each expected once: the exact counterpart of the samplers."""
    return ops.AllCandidateSampler(true_classes, num_true=num_true, num_sampled=num_sampled,
                                   unique=unique, name=name, **_seeds(seed))


def compute_accidental_hits(true_classes: Any, sampled_candidates: Any, num_true: int,
                            seed: int | None = None, name: str | None = None) -> Any:
    """(indices, ids, weights): for each true class that was drawn its row, its place among
    sampled_candidates, and the lowest float, which takes it out of a softmax."""
    return ops.ComputeAccidentalHits(true_classes, sampled_candidates, num_true=num_true,
                                     name=name, **_seeds(seed))


# --- Losses ---------------------------------------------------------------------------------------

def _split_rows(rows: Tensor, count: Tensor) -> tuple:
    """The first `count` rows and the others."""
    rank = rows.shape.ndims
    if rank is None:
        raise ValueError("the ranks of weights and biases must be known")
    rest = [-1] * (rank - 1)
    begin = stack([count] + [0] * (rank - 1))
    return (slice(rows, [0] * rank, stack([count] + rest)), slice(rows, begin, [-1] * rank))


def _sampled_logits(weights: Any, biases: Any, labels: Tensor, inputs: Tensor, num_sampled: int,
                    num_classes: int, num_true: int, sampled_values: Any,
                    remove_accidental_hits: bool, partition_strategy: str,
                    seed: int | None) -> tuple:
    """(logits, labels), both [batch, num_true + num_sampled]: the true classes, then the drawn
    ones, each logit less the logarithm of how often its class is expected."""
    labels = cast(labels, _core.int64)
    if labels.shape.ndims not in (None, 2):
        raise ValueError("labels must be [batch, num_true], their shape is %s" % labels.shape)
    flat = reshape(labels, [-1])
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(labels, num_true, num_sampled, True,
                                                       num_classes, seed)
    sampled, true_expected, sampled_expected = (stop_gradient(v) for v in sampled_values)
    sampled = cast(sampled, _core.int64)
    ids, count = concat([flat, sampled], 0), ops.Size(flat)
    true_w, sampled_w = _split_rows(embedding_lookup(weights, ids, partition_strategy), count)
    true_b, sampled_b = _split_rows(embedding_lookup(biases, ids, partition_strategy), count)
    # One row of true weights for each example and each of its true classes.
    size = true_w.shape[1]
    size = shape_of(true_w)[1] if size is None else size
    true_w = reshape(true_w, [-1, num_true, size])
    true_logits = (reduce_sum(expand_dims(inputs, 1) * true_w, 2)
                   + reshape(true_b, [-1, num_true]))
    sampled_logits = matmul(inputs, sampled_w, transpose_b=True) + sampled_b
    if remove_accidental_hits:
        rows, places, lowest = compute_accidental_hits(labels, sampled, num_true)
        at = stack([cast(rows, _core.int64), places], 1)
        shape = ops.Pack([shape_of(labels)[0], ops.Size(sampled)])
        hidden = tensor_scatter_update(zeros(shape, lowest.dtype), at, lowest)
        sampled_logits = sampled_logits + cast(hidden, sampled_logits.dtype)
    true_logits = true_logits - cast(ops.Log(true_expected), true_logits.dtype)
    sampled_logits = sampled_logits - cast(ops.Log(sampled_expected), sampled_logits.dtype)
    targets = concat([ones_like(true_logits) / num_true, zeros_like(sampled_logits)], 1)
    return concat([true_logits, sampled_logits], 1), targets


def nce_loss(weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int,
             num_classes: int, num_true: int = 1, sampled_values: Any = None,
             remove_accidental_hits: bool = False, partition_strategy: str = "mod",
             name: str = "nce_loss") -> Tensor:
    """The noise-contrastive loss of each example (Gutmann and Hyvarinen 2010): sigmoid cross
    entropies of the true classes and of num_sampled drawn ones, summed; [batch].

    weights: [num_classes, size], or a list of tensors that share that table; biases: [num_classes].
    labels: the true classes, [batch, num_true]. inputs: [batch, size]. sampled_values: what a
    candidate sampler gave, by default log_uniform_candidate_sampler's. Each run draws anew; for
    evaluation use the whole sigmoid cross entropy.
    """
    with scope_of(name, "nce_loss", [labels, inputs]):
        logits, targets = _sampled_logits(
            weights, biases, convert_to_tensor(labels), convert_to_tensor(inputs), num_sampled,
            num_classes, num_true, sampled_values, remove_accidental_hits, partition_strategy,
            None)
        losses = _cross_entropy.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits)
        return reduce_sum(losses, 1)


def sampled_softmax_loss(weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int,
                         num_classes: int, num_true: int = 1, sampled_values: Any = None,
                         remove_accidental_hits: bool = True, partition_strategy: str = "mod",
                         name: str = "sampled_softmax_loss", seed: int | None = None) -> Tensor:
    """The softmax cross entropy of each example over its true classes and num_sampled drawn ones
    (Jean and others 2015, arXiv:1412.2007); [batch].

    Arguments as in nce_loss; drawn classes that are true ones of an example do not count for it
    unless remove_accidental_hits is False. For training only: an estimate of the whole softmax.
    """
    with scope_of(name, "sampled_softmax_loss", [labels, inputs]):
        logits, targets = _sampled_logits(
            weights, biases, convert_to_tensor(labels), convert_to_tensor(inputs), num_sampled,
            num_classes, num_true, sampled_values, remove_accidental_hits, partition_strategy,
            seed)
        return _cross_entropy.softmax_cross_entropy_with_logits_v2(labels=stop_gradient(targets),
                                                                   logits=logits)


__all__ = ["all_candidate_sampler", "compute_accidental_hits",
           "fixed_unigram_candidate_sampler", "learned_unigram_candidate_sampler",
           "log_uniform_candidate_sampler", "nce_loss", "sampled_softmax_loss",
           "uniform_candidate_sampler"]

_name_in_refusals(globals())
