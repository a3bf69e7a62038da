# SPDX-License-Identifier: Apache-2.0
"""Cross entropies and other losses element by element: functions of tn.nn."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._array import _one_of, shape_of
from treenail._convert import convert_to_tensor, convert_to_wide, scope_of
from treenail._math import cast
from treenail._ops import ops
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Half the sum of squares."""
    return ops.L2Loss(t, name=name)


def softmax_cross_entropy_with_logits_v2(labels: Any, logits: Any, axis: int | None = None,
                                         name: str | None = None, dim: int | None = None) -> Tensor:
    """-sum(labels * log_softmax(logits)) along `axis` (the last one): one loss per remaining
    element.

    labels: probabilities in the shape of logits. Gradients flow into both.
    """
    axis = _one_of(axis, dim, "axis", "dim")
    with scope_of(name, "softmax_cross_entropy_with_logits", [logits, labels]):
        logits = convert_to_wide(logits)
        labels = convert_to_tensor(labels, None if hasattr(labels, "dtype") else logits.dtype)
        narrow = logits.dtype if logits.dtype in (_core.float16, _core.bfloat16) else None
        if narrow:
            logits = cast(logits, _core.float32)
        labels = cast(labels, logits.dtype)
        ndims = logits.shape.ndims
        axis = -1 if axis is None else axis
        if ndims == 0:
            raise ValueError("logits must have a rank of at least 1, got a scalar")
        if axis != -1 and axis != (ndims or 0) - 1:
            if ndims is None:
                raise ValueError("the rank of the logits must be known for an axis other than the "
                                 "last")
            perm = [i for i in range(ndims) if i != axis % ndims] + [axis % ndims]
            logits, labels = ops.Transpose(logits, perm), ops.Transpose(labels, perm)
        if ndims == 2:
            loss = ops.SoftmaxCrossEntropyWithLogits(logits, labels)[0]
        else:
            sizes = shape_of(logits)
            classes = sizes[-1]
            _check_same_shape(logits, labels)
            loss = ops.SoftmaxCrossEntropyWithLogits(
                ops.Reshape(logits, [-1, classes]), ops.Reshape(labels, [-1, classes]))[0]
            loss = ops.Reshape(loss, sizes[:-1])
        return cast(loss, narrow) if narrow else loss


def softmax_cross_entropy_with_logits(_sentinel: Any = None, labels: Any = None, logits: Any = None,
                                      dim: int = -1, name: str | None = None,
                                      axis: int | None = None) -> Tensor:
    """As softmax_cross_entropy_with_logits_v2, without a gradient into the labels. Arguments go by
    keyword."""
    _by_keyword("softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    logits = convert_to_wide(logits)
    labels = convert_to_tensor(labels, None if hasattr(labels, "dtype") else logits.dtype)
    labels = ops.StopGradient(labels)
    return softmax_cross_entropy_with_logits_v2(labels, logits, dim if axis is None else axis, name)


def _by_keyword(function: str, sentinel: Any, labels: Any, logits: Any) -> None:
    if sentinel is not None:
        raise ValueError("Only call `%s` with named arguments (labels=..., logits=..., ...)"
                         % function)
    if labels is None or logits is None:
        raise ValueError("Both labels and logits must be provided.")


def sparse_softmax_cross_entropy_with_logits(_sentinel: Any = None, labels: Any = None,
                                             logits: Any = None, name: str | None = None) -> Tensor:
    """-log_softmax(logits)[label]: one loss per label. labels: class numbers, int32 or int64, one
    axis fewer than logits.

    Raises InvalidArgumentError when run with a label outside [0, classes).
    """
    _by_keyword("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with scope_of(name, "SparseSoftmaxCrossEntropyWithLogits", [labels, logits]):
        labels, logits = convert_to_tensor(labels), convert_to_wide(logits)
        if labels.dtype.is_integer and labels.dtype not in (_core.int32, _core.int64):
            labels = cast(labels, _core.int64 if labels.dtype.size > 2 else _core.int32)
        ranks = labels.shape.ndims, logits.shape.ndims
        if ranks[1] == 0 or None not in ranks and ranks[0] != ranks[1] - 1:
            raise ValueError("Rank mismatch: Rank of labels (received %s) should equal rank of "
                             "logits minus 1 (received %s)." % ranks)
        if not labels.shape.is_compatible_with(logits.shape[:-1]):
            raise ValueError("labels must have the shape of logits without the last axis, but have "
                             "%s; logits have %s" % (labels.shape, logits.shape))
        narrow = logits.dtype if logits.dtype in (_core.float16, _core.bfloat16) else None
        if narrow:
            logits = cast(logits, _core.float32)
        if ranks[1] == 2:
            loss = ops.SparseSoftmaxCrossEntropyWithLogits(logits, labels)[0]
        else:
            sizes = shape_of(labels)
            flat = ops.Reshape(logits, [-1, shape_of(logits)[-1]])
            loss = ops.Reshape(ops.SparseSoftmaxCrossEntropyWithLogits(flat,
                                                                       ops.Reshape(labels,
                                                                                   [-1]))[0], sizes)
        return cast(loss, narrow) if narrow else loss


def _check_same_shape(logits: Tensor, labels: Tensor) -> None:
    if not labels.shape.is_compatible_with(logits.shape):
        raise ValueError("logits and labels must have the same shape (%s vs %s)"
                         % (logits.shape, labels.shape))


def sigmoid_cross_entropy_with_logits(_sentinel: Any = None, labels: Any = None, logits: Any = None,
                                      name: str | None = None) -> Tensor:
    """-labels * log(sigmoid(x)) - (1 - labels) * log(1 - sigmoid(x)) for logits x, computed so that
    it does not overflow."""
    _by_keyword("sigmoid_cross_entropy_with_logits", _sentinel, labels, logits)
    with scope_of(name, "logistic_loss", [logits, labels]) as scope:
        logits = convert_to_wide(logits)
        labels = convert_to_tensor(labels, logits.dtype)
        _check_same_shape(logits, labels)
        zeros = ops.ZerosLike(logits)
        positive = ops.GreaterEqual(logits, zeros)
        relu_logits = ops.Select(positive, logits, zeros)
        negative_abs = ops.Select(positive, -logits, logits)
        return ops.Add(relu_logits - logits * labels, ops.Log1p(ops.Exp(negative_abs)), name=scope)


def weighted_cross_entropy_with_logits(labels: Any = None, logits: Any = None,
                                       pos_weight: Any = None, name: str | None = None,
                                       targets: Any = None) -> Tensor:
    """sigmoid_cross_entropy_with_logits with positive labels weighted by pos_weight, a number or
    what broadcasts to the logits.

    Raises ValueError when labels and logits are known to differ in shape, as that does.
    """
    labels = _one_of(labels, targets, "labels", "targets")
    with scope_of(name, "logistic_loss", [logits, labels]) as scope:
        logits = convert_to_wide(logits)
        labels = convert_to_tensor(labels, logits.dtype)
        _check_same_shape(logits, labels)
        weight = 1 + (convert_to_tensor(pos_weight, logits.dtype) - 1) * labels
        softplus_part = ops.Log1p(ops.Exp(-ops.Abs(logits))) + ops.Relu(-logits)
        return ops.Add((1 - labels) * logits, weight * softplus_part, name=scope)


__all__ = ["l2_loss", "softmax_cross_entropy_with_logits_v2", "softmax_cross_entropy_with_logits",
           "sparse_softmax_cross_entropy_with_logits", "sigmoid_cross_entropy_with_logits",
           "weighted_cross_entropy_with_logits"]
