# SPDX-License-Identifier: Apache-2.0
"""The cross-entropy of sequences, weighted step by step."""

from __future__ import annotations

from treenail._array import shape_of
from treenail._convert import convert_to_tensor, scope_of
from treenail._cross_entropy import sparse_softmax_cross_entropy_with_logits
from treenail._math import cast, count_nonzero, reduce_sum
from treenail._ops import ops
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def _checked(logits: Any, targets: Any, weights: Any) -> tuple:
    logits, targets = convert_to_tensor(logits), convert_to_tensor(targets)
    weights = convert_to_tensor(weights)
    for name, value, rank, shape in (
            ("Logits", logits, 3, "[batch_size x sequence_length x logits]"),
            ("Targets", targets, 2, "[batch_size x sequence_length]"),
            ("Weights", weights, 2, "[batch_size x sequence_length]")):
        if value.shape.ndims != rank:
            raise ValueError("%s must be a %s tensor, its shape is %s"
                             % (name, shape, value.shape))
    return logits, targets, weights


def sequence_loss(logits: Any, targets: Any, weights: Any, average_across_timesteps: bool = True,
                  average_across_batch: bool = True, sum_over_timesteps: bool = False,
                  sum_over_batch: bool = False, softmax_loss_function: Callable | None = None,
                  name: str | None = None) -> Tensor:
    """The weighted cross-entropy of `targets`, words [batch, time], by logits [batch, time, words].

    weights: [batch, time], 0 behind a sequence's end for instance. The averages divide sums by the
    sum of the weights, the sums by how many weights are not zero: over both axes a scalar, over
    time [batch], over the batch [time], over none of them [batch, time]; with an average over one
    axis a sum over the other is not taken, as in TensorFlow 1. softmax_loss_function(
    labels, logits): of words [n] and logits [n, words], cross-entropy by default.

    Raises ValueError for other ranks, and for an average and a sum over one axis.
    """
    logits, targets, weights = _checked(logits, targets, weights)
    for axis, average, total in (
            ("timesteps", average_across_timesteps, sum_over_timesteps),
            ("batch", average_across_batch, sum_over_batch)):
        if average and total:
            raise ValueError("average_across_%s and sum_over_%s cannot be set to True at same "
                             "time." % (axis, axis))
    with scope_of(name, "sequence_loss", [logits, targets, weights]):
        entropy = softmax_loss_function or sparse_softmax_cross_entropy_with_logits
        losses = entropy(labels=ops.Reshape(targets, [-1]), logits=ops.Reshape(
            logits, ops.Pack([-1, shape_of(logits)[2]])))
        losses = losses * ops.Reshape(weights, [-1])
        losses = ops.Reshape(losses, shape_of(targets))
        losses.set_shape(targets.shape)
        averages = average_across_timesteps or average_across_batch
        over_batch, over_time = (average_across_batch, average_across_timesteps) if averages else (
            sum_over_batch, sum_over_timesteps)
        axes = [0] * bool(over_batch) + [1] * bool(over_time)
        if not axes:
            return losses
        count = (reduce_sum(weights, axes) if averages else
                 cast(count_nonzero(weights, axes), losses.dtype))
        return ops.DivNoNan(reduce_sum(losses, axes), count)
