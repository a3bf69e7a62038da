# SPDX-License-Identifier: Apache-2.0
"""Losses with weights, reduced to one number and kept in the collection LOSSES."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail import _cross_entropy as _xent
from treenail._convert import convert_to_tensor, convert_to_wide, scope_of
from treenail._framework import GraphKeys, add_to_collection, executing_eagerly
from treenail._framework import get_collection as _get_collection
from treenail._math import add_n, cast, reduce_sum
from treenail._names import no_attribute as _no_attribute
from treenail._ops import ops
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail._treenail import Tensor
from treenail._weights import broadcastable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Reduction:
    """How losses per element become the result."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = SUM_OVER_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"

    @classmethod
    def all(cls) -> tuple:
        """The five of them."""
        return cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises ValueError for anything else."""
        if key not in cls.all():
            raise ValueError("Invalid ReductionKey %s." % key)


_DEFAULT = Reduction.SUM_BY_NONZERO_WEIGHTS


def _zero_safe_quotient(total: Tensor, count: Tensor) -> Tensor:
    return ops.DivNoNan(total, count)


def _presence(losses: Tensor, weights: Tensor) -> Tensor:
    """1 for each loss that has a weight other than zero, else 0, in the losses' dtype."""
    nonzero = ops.Cast(ops.NotEqual(weights, ops.ZerosLike(weights)), losses.dtype)
    return nonzero * ops.OnesLike(losses)


def compute_weighted_loss(losses: Any, weights: Any = 1.0, scope: str | None = None,
                          loss_collection: str | None = GraphKeys.LOSSES,
                          reduction: str = _DEFAULT) -> Tensor:
    """losses * weights, reduced. weights: a scalar, or of a shape that broadcasts to the losses'.

    SUM_BY_NONZERO_WEIGHTS (the default): the sum over the number of non-zero weights. MEAN: over
    the sum of weights. SUM_OVER_BATCH_SIZE: over the number of losses.
    """
    Reduction.validate(reduction)
    with scope_of(scope, "weighted_loss", [losses]):
        losses = convert_to_wide(losses)
        dtype = losses.dtype
        wide = cast(losses, _core.float32)
        weights = cast(convert_to_tensor(weights), _core.float32)
        weights = broadcastable(weights, wide)
        loss = wide * weights
        if reduction == Reduction.NONE:
            pass
        elif reduction == Reduction.SUM:
            loss = reduce_sum(loss)
        elif reduction == Reduction.MEAN:
            loss = _zero_safe_quotient(reduce_sum(loss), reduce_sum(ops.OnesLike(wide) * weights))
        elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
            count = cast(ops.Size(wide, out_type=_core.int64), _core.float32)
            loss = _zero_safe_quotient(reduce_sum(loss), count)
        else:
            loss = _zero_safe_quotient(reduce_sum(loss), reduce_sum(_presence(wide, weights)))
        loss = cast(loss, dtype)
        add_loss(loss, loss_collection)
        return loss


def _pair(labels: Any, predictions: Any, what: str = "predictions") -> tuple:
    if labels is None:
        raise ValueError("labels must not be None.")
    if predictions is None:
        raise ValueError("%s must not be None." % what)
    predictions = cast(convert_to_tensor(predictions),
                       _core.float32) if not getattr(getattr(predictions, "dtype", None),
                                                     "is_floating",
                                                     False) else convert_to_wide(predictions)
    labels = cast(convert_to_tensor(labels, None
                                    if hasattr(labels, "dtype") else predictions.dtype),
                  predictions.dtype)
    predictions.shape.assert_is_compatible_with(labels.shape)
    return labels, predictions


def absolute_difference(labels: Any, predictions: Any, weights: Any = 1.0, scope: str | None = None,
                        loss_collection: str | None = GraphKeys.LOSSES,
                        reduction: str = _DEFAULT) -> Tensor:
    """|predictions - labels|, weighted and reduced."""
    with scope_of(scope, "absolute_difference", [predictions, labels]):
        labels, predictions = _pair(labels, predictions)
        return compute_weighted_loss(ops.Abs(predictions - labels), weights, None, loss_collection,
                                     reduction)


def mean_squared_error(labels: Any, predictions: Any, weights: Any = 1.0, scope: str | None = None,
                       loss_collection: str | None = GraphKeys.LOSSES,
                       reduction: str = _DEFAULT) -> Tensor:
    """(predictions - labels)**2, weighted and reduced."""
    with scope_of(scope, "mean_squared_error", [predictions, labels]):
        labels, predictions = _pair(labels, predictions)
        return compute_weighted_loss(ops.SquaredDifference(predictions, labels), weights, None,
                                     loss_collection, reduction)


def mean_pairwise_squared_error(labels: Any, predictions: Any, weights: Any = 1.0,
                                scope: str | None = None,
                                loss_collection: str | None = GraphKeys.LOSSES) -> Tensor:
    """For each sample the mean over all pairs of elements of the squared difference between the
    pair's errors, predictions - labels; then the weighted sum over the samples.

    weights: a scalar, or of a shape that broadcasts to the labels'. Elements whose weight is 0 are
    not counted in a sample's n, the number of elements that n (n - 1) / 2 pairs are made of, as in
    TensorFlow 1. Returns a scalar of the predictions' dtype.
    """
    with scope_of(scope, "mean_pairwise_squared_error", [predictions, labels]):
        labels, predictions = _pair(labels, predictions)
        error = predictions - labels
        weights = cast(convert_to_tensor(weights), error.dtype)
        axes = ops.Range(1, ops.Rank(error), 1)
        present = _presence(error, broadcastable(weights, error))
        count = reduce_sum(present, axes, keepdims=True)
        others = ops.Maximum(count - 1, ops.ZerosLike(count))
        squares = _zero_safe_quotient(2.0 * reduce_sum(ops.Square(error), axes, keepdims=True),
                                      others)
        total = reduce_sum(error, axes, keepdims=True)
        square_of_sum = _zero_safe_quotient(2.0 * ops.Square(total), count * others)
        loss = reduce_sum((squares - square_of_sum) * weights)
        add_loss(loss, loss_collection)
        return loss


def huber_loss(labels: Any, predictions: Any, weights: Any = 1.0, delta: float = 1.0,
               scope: str | None = None, loss_collection: str | None = GraphKeys.LOSSES,
               reduction: str = _DEFAULT) -> Tensor:
    """Half the squared error up to `delta`, linear beyond (Huber 1964)."""
    with scope_of(scope, "huber_loss", [predictions, labels]):
        labels, predictions = _pair(labels, predictions)
        error = ops.Abs(predictions - labels)
        quadratic = ops.Minimum(error, convert_to_tensor(delta, error.dtype))
        losses = 0.5 * quadratic * quadratic + delta * (error - quadratic)
        return compute_weighted_loss(losses, weights, None, loss_collection, reduction)


def log_loss(labels: Any, predictions: Any, weights: Any = 1.0, epsilon: float = 1e-7,
             scope: str | None = None, loss_collection: str | None = GraphKeys.LOSSES,
             reduction: str = _DEFAULT) -> Tensor:
    """-labels * log(predictions + epsilon) - (1 - labels) * log(1 - predictions + epsilon)."""
    with scope_of(scope, "log_loss", [predictions, labels]):
        labels, predictions = _pair(labels, predictions)
        losses = -labels * ops.Log(predictions + epsilon) - (1 - labels) * ops.Log(1 - predictions
                                                                                   + epsilon)
        return compute_weighted_loss(losses, weights, None, loss_collection, reduction)


def hinge_loss(labels: Any, logits: Any, weights: Any = 1.0, scope: str | None = None,
               loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _DEFAULT) -> Tensor:
    """max(0, 1 - labels * logits), with labels 0 and 1 taken as -1 and 1."""
    with scope_of(scope, "hinge_loss", [logits, labels]):
        labels, logits = _pair(labels, logits, "logits")
        losses = ops.Relu(1 - (2 * labels - 1) * logits)
        return compute_weighted_loss(losses, weights, None, loss_collection, reduction)


def cosine_distance(labels: Any, predictions: Any, axis: int | None = None, weights: Any = 1.0,
                    scope: str | None = None, loss_collection: str | None = GraphKeys.LOSSES,
                    reduction: str = _DEFAULT, dim: int | None = None) -> Tensor:
    """1 - sum(labels * predictions) along `axis`, for inputs of unit length along it."""
    axis = dim if axis is None else axis
    if axis is None:
        raise ValueError("You must specify 'axis'.")
    with scope_of(scope, "cosine_distance_loss", [predictions, labels]):
        labels, predictions = _pair(labels, predictions)
        losses = 1 - reduce_sum(predictions * labels, [axis], keepdims=True)
        return compute_weighted_loss(losses, weights, None, loss_collection, reduction)


def sigmoid_cross_entropy(multi_class_labels: Any, logits: Any, weights: Any = 1.0,
                          label_smoothing: Any = 0, scope: str | None = None,
                          loss_collection: str | None = GraphKeys.LOSSES,
                          reduction: str = _DEFAULT) -> Tensor:
    """nn.sigmoid_cross_entropy_with_logits; label_smoothing moves labels toward 1/2."""
    with scope_of(scope, "sigmoid_cross_entropy_loss", [logits, multi_class_labels]):
        labels, logits = _pair(multi_class_labels, logits, "logits")
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = _xent.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
        return compute_weighted_loss(losses, weights, None, loss_collection, reduction)


def softmax_cross_entropy(onehot_labels: Any, logits: Any, weights: Any = 1.0,
                          label_smoothing: Any = 0, scope: str | None = None,
                          loss_collection: str | None = GraphKeys.LOSSES,
                          reduction: str = _DEFAULT) -> Tensor:
    """nn.softmax_cross_entropy_with_logits_v2; label_smoothing moves labels toward 1 / classes.
    weights: one per sample."""
    with scope_of(scope, "softmax_cross_entropy_loss", [logits, onehot_labels]):
        labels, logits = _pair(onehot_labels, logits, "logits")
        if label_smoothing > 0:
            classes = cast(ops.Shape(labels)[1], logits.dtype)
            labels = labels * (1 - label_smoothing) + label_smoothing / classes
        losses = _xent.softmax_cross_entropy_with_logits_v2(ops.StopGradient(labels), logits)
        return compute_weighted_loss(losses, weights, None, loss_collection, reduction)


def sparse_softmax_cross_entropy(labels: Any, logits: Any, weights: Any = 1.0,
                                 scope: str | None = None,
                                 loss_collection: str | None = GraphKeys.LOSSES,
                                 reduction: str = _DEFAULT) -> Tensor:
    """nn.sparse_softmax_cross_entropy_with_logits for class numbers, [batch] or [batch, 1].
    weights: one per sample."""
    if labels is None or logits is None:
        raise ValueError("%s must not be None." % ("labels" if labels is None else "logits"))
    with scope_of(scope, "sparse_softmax_cross_entropy_loss", [logits, labels]):
        labels, logits = convert_to_tensor(labels), convert_to_tensor(logits)
        weights = convert_to_tensor(weights)
        if labels.shape.ndims is not None and labels.shape.ndims == logits.shape.ndims:
            labels = ops.Squeeze(labels, squeeze_dims=[-1])
        losses = _xent.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        if weights.shape.ndims is not None and weights.shape.ndims == (losses.shape.ndims or 0) + 1:
            weights = ops.Squeeze(weights, squeeze_dims=[-1])
        return compute_weighted_loss(losses, weights, None, loss_collection, reduction)


def add_loss(loss: Any, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Adds a loss to a collection; to none when that is None."""
    if loss_collection:
        if not executing_eagerly():
            add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list:
    """The losses collected; with `scope`, those whose name begins so."""
    return _get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list:
    """The losses of regularizers."""
    return _get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(scope: str | None = None,
                            name: str = "total_regularization_loss") -> Tensor:
    """The sum of the losses of regularizers; 0 without any."""
    losses = get_regularization_losses(scope)
    return add_n(losses, name) if losses else convert_to_tensor(0.0)


def get_total_loss(add_regularization_losses: bool = True, name: str = "total_loss",
                   scope: str | None = None) -> Tensor:
    """The sum of all losses, of regularizers too. Raises ValueError when there is none."""
    losses = get_losses(scope)
    if add_regularization_losses:
        losses += get_regularization_losses(scope)
    if not losses:
        raise ValueError("there are no losses to sum")
    return add_n(losses, name)


__all__ = ["Reduction", "compute_weighted_loss", "absolute_difference", "mean_squared_error",
           "mean_pairwise_squared_error", "huber_loss", "log_loss", "hinge_loss", "cosine_distance",
           "sigmoid_cross_entropy", "softmax_cross_entropy", "sparse_softmax_cross_entropy",
           "add_loss", "get_losses", "get_regularization_losses", "get_regularization_loss",
           "get_total_loss"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
