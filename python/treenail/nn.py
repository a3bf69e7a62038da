# SPDX-License-Identifier: Apache-2.0
"""Neural-network operations: activations, convolution, pooling, normalisation, losses, embeddings.

Images are [batch, height, width, channels] ("NHWC", the default and the faster layout here) or
[batch, channels, height, width] ("NCHW").
"""

from __future__ import annotations

from treenail import _treenail as _core
from treenail import _ctc, _windows
from treenail._array import _one_of, as_scalar, concat, shape_of
from treenail._convert import constant_value, convert_to_tensor, scope_of
from treenail._ctc import *  # noqa: F401,F403
from treenail._embedding import embedding_lookup, embedding_lookup_sparse  # noqa: F401
from treenail._math import (cast, log_sigmoid, reduce_mean, reduce_sum,  # noqa: F401
                            tanh)
from treenail._names import no_attribute as _no_attribute
from treenail._ops import ops
from treenail._random import random_uniform
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail._treenail import Tensor
from treenail._windows import *  # noqa: F401,F403

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from treenail._candidates import (all_candidate_sampler,  # noqa: F401
                                      compute_accidental_hits, fixed_unigram_candidate_sampler,
                                      learned_unigram_candidate_sampler,
                                      log_uniform_candidate_sampler, nce_loss,
                                      sampled_softmax_loss, uniform_candidate_sampler)
    from treenail.rnn import (bidirectional_dynamic_rnn, dynamic_rnn, rnn_cell,  # noqa: F401
                              static_bidirectional_rnn, static_rnn)

# What lives in a module that needs this one: loaded when first asked for.
_ELSEWHERE = {
    "all_candidate_sampler": "_candidates", "compute_accidental_hits": "_candidates",
    "fixed_unigram_candidate_sampler": "_candidates",
    "learned_unigram_candidate_sampler": "_candidates",
    "log_uniform_candidate_sampler": "_candidates", "nce_loss": "_candidates",
    "sampled_softmax_loss": "_candidates", "uniform_candidate_sampler": "_candidates",
    "bidirectional_dynamic_rnn": "rnn", "dynamic_rnn": "rnn", "rnn_cell": "rnn",
    "static_bidirectional_rnn": "rnn", "static_rnn": "rnn",
}


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise _no_attribute(__name__, name, __all__)
    import importlib
    value = getattr(importlib.import_module("treenail." + _ELSEWHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list:
    return sorted(__all__)


# --- Activations ----------------------------------------------------------------------------------

def relu(features: Any, name: str | None = None) -> Tensor:
    """max(x, 0)."""
    return ops.Relu(features, name=name)


def relu6(features: Any, name: str | None = None) -> Tensor:
    """min(max(x, 0), 6)."""
    return ops.Relu6(features, name=name)


def crelu(features: Any, name: str | None = None, axis: int = -1) -> Tensor:
    """relu(x) and relu(-x) joined along `axis`."""
    with scope_of(name, "CRelu", [features]) as scope:
        features = convert_to_tensor(features)
        return ops.Relu(concat([features, -features], axis), name=scope)


def elu(features: Any, name: str | None = None) -> Tensor:
    """x where positive, else exp(x) - 1."""
    return ops.Elu(features, name=name)


def selu(features: Any, name: str | None = None) -> Tensor:
    """The scaled exponential linear unit (Klambauer and others 2017)."""
    return ops.Selu(features, name=name)


def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """x where positive, else alpha * x."""
    return ops.LeakyRelu(features, alpha=alpha, name=name)


def gelu(features: Any, approximate: bool = False, name: str | None = None) -> Tensor:
    """x times the normal distribution function of x; approximate: by tanh (Hendrycks and Gimpel
    2016)."""
    return ops.Gelu(features, approximate=approximate, name=name)


def softplus(features: Any, name: str | None = None) -> Tensor:
    """log(exp(x) + 1)."""
    return ops.Softplus(features, name=name)


def softsign(features: Any, name: str | None = None) -> Tensor:
    """x / (|x| + 1)."""
    return ops.Softsign(features, name=name)


def sigmoid(x: Any, name: str | None = None) -> Tensor:
    """1 / (1 + exp(-x))."""
    return ops.Sigmoid(x, name=name)


def swish(features: Any, name: str | None = None) -> Tensor:
    """x * sigmoid(x)."""
    with scope_of(name, "swish", [features]) as scope:
        features = convert_to_tensor(features)
        return ops.Mul(features, ops.Sigmoid(features), name=scope)


def _along_last(op: Any, x: Any, axis: int, name: str | None) -> Tensor:
    """Applies an op that works on the last axis to another one."""
    x = convert_to_tensor(x)
    ndims = x.shape.ndims
    if isinstance(axis, Tensor):
        known = constant_value(axis)
        if known is None:
            return _along_axis_of_a_run(op, x, as_scalar(axis, "axis"), name)
        axis = int(known)
    if axis == -1 or ndims is not None and axis == ndims - 1:
        return op(x, name=name)
    if ndims is None:
        return _along_axis_of_a_run(op, x, convert_to_tensor(axis, _core.int32), name)
    if not -ndims <= axis < ndims:
        raise ValueError("axis = %s is not in [%d, %d)" % (axis, -ndims, ndims))
    perm = list(range(ndims))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    return ops.Transpose(op(ops.Transpose(x, perm)), perm, name=name)


def _along_axis_of_a_run(op: Any, x: Tensor, axis: Tensor, name: str | None) -> Tensor:
    """_along_last where the axis, or the rank, is known in a run only."""
    rank = ops.Rank(x)
    axes, last = ops.Range(0, rank, 1), rank - 1
    axis = cast(axis, _core.int32)
    # Gather refuses an axis out of range.
    axis = ops.Gather(axes, ops.Select(ops.Less(axis, 0), axis + rank, axis), 0)
    perm = ops.Select(ops.Equal(axes, axis), last, ops.Select(ops.Equal(axes, last), axis, axes))
    result = ops.Transpose(op(ops.Transpose(x, perm)), perm, name=name)
    result.set_shape(x.shape)
    return result


def softmax(logits: Any, axis: Any = None, name: str | None = None,
            dim: int | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `axis` (the last one), an int or a scalar tensor."""
    axis = _one_of(axis, dim, "axis", "dim")
    return _along_last(ops.Softmax, logits, -1 if axis is None else axis, name)


def log_softmax(logits: Any, axis: Any = None, name: str | None = None,
                dim: int | None = None) -> Tensor:
    """x - log(sum(exp(x))) along `axis` (the last one), an int or a scalar tensor."""
    axis = _one_of(axis, dim, "axis", "dim")
    return _along_last(ops.LogSoftmax, logits, -1 if axis is None else axis, name)


# --- Sums with a bias -----------------------------------------------------------------------------

def bias_add(value: Any, bias: Any, data_format: str | None = None,
             name: str | None = None) -> Tensor:
    """A vector added to the channels of `value`."""
    formats = {None: "NHWC", "NHWC": "NHWC", "NWC": "NHWC", "NCHW": "NCHW", "NCW": "NCHW"}
    if data_format not in formats:
        raise ValueError("data_format must be NHWC or NCHW, not %r" % (data_format,))
    value = convert_to_tensor(value)
    return ops.BiasAdd(value, convert_to_tensor(bias, value.dtype),
                       data_format=formats[data_format], name=name)


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """matmul(x, weights) + biases."""
    with scope_of(name, "xw_plus_b", [x, weights, biases]) as scope:
        return ops.BiasAdd(ops.MatMul(x, weights), biases, name=scope)


def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """relu(matmul(x, weights) + biases)."""
    with scope_of(name, "relu_layer", [x, weights, biases]) as scope:
        return ops.Relu(ops.BiasAdd(ops.MatMul(x, weights), biases), name=scope)


# --- Normalisation --------------------------------------------------------------------------------

def moments(x: Any, axes: Any, shift: Any = None, name: str | None = None,
            keep_dims: bool | None = None, keepdims: bool | None = None) -> tuple:
    """(mean, variance) along `axes`; float16 and bfloat16 are summed as float32."""
    keep = bool(_one_of(keepdims, keep_dims, "keepdims", "keep_dims"))
    with scope_of(name, "moments", [x]):
        x = convert_to_tensor(x)
        wide = cast(x, _core.float32) if x.dtype in (_core.float16, _core.bfloat16) else x
        mean = reduce_mean(wide, axes, keepdims=True)
        variance = reduce_mean(ops.SquaredDifference(wide, ops.StopGradient(mean)), axes,
                               keepdims=True)
        if not keep:
            axes = [axes] if isinstance(axes, int) else list(axes)
            mean, variance = ops.Squeeze(mean, squeeze_dims=axes), ops.Squeeze(variance,
                                                                               squeeze_dims=axes)
        return cast(mean, x.dtype), cast(variance, x.dtype)


def weighted_moments(x: Any, axes: Any, frequency_weights: Any, name: str | None = None,
                     keep_dims: bool | None = None, keepdims: bool | None = None) -> tuple:
    """(mean, variance) along `axes` with weights that broadcast to x."""
    keep = bool(_one_of(keepdims, keep_dims, "keepdims", "keep_dims"))
    with scope_of(name, "weighted_moments", [x, frequency_weights]):
        x = convert_to_tensor(x)
        weights = cast(convert_to_tensor(frequency_weights), x.dtype)
        broadcast = weights + ops.ZerosLike(x)
        total = reduce_sum(broadcast, axes, keepdims=True)
        mean = reduce_sum(x * weights, axes, keepdims=True) / total
        variance = reduce_sum(weights * ops.SquaredDifference(x, mean), axes, keepdims=True) / total
        if not keep:
            axes = [axes] if isinstance(axes, int) else list(axes)
            mean, variance = ops.Squeeze(mean, squeeze_dims=axes), ops.Squeeze(variance,
                                                                               squeeze_dims=axes)
        return mean, variance


def batch_normalization(x: Any, mean: Any, variance: Any, offset: Any, scale: Any,
                        variance_epsilon: float, name: str | None = None) -> Tensor:
    """scale * (x - mean) / sqrt(variance + variance_epsilon) + offset; offset and scale may be
    None."""
    with scope_of(name, "batchnorm", [x, mean, variance, scale, offset]):
        x = convert_to_tensor(x)
        if not (x.dtype.is_floating or x.dtype.is_complex):
            raise ValueError("batch_normalization needs a floating x, not %r" % x)
        factor = ops.Rsqrt(ops.Add(convert_to_tensor(variance, x.dtype),
                                   convert_to_tensor(variance_epsilon, x.dtype)))
        if scale is not None:
            factor = factor * scale
        shift = -convert_to_tensor(mean, x.dtype) * factor
        if offset is not None:
            shift = convert_to_tensor(offset, x.dtype) + shift
        return x * factor + shift


def fused_batch_norm(x: Any, scale: Any, offset: Any, mean: Any = None, variance: Any = None,
                     epsilon: float = 0.001, data_format: str = "NHWC", is_training: bool = True,
                     name: str | None = None, exponential_avg_factor: float = 1.0) -> tuple:
    """(y, mean, variance): batch normalisation of images over all axes but the channels.

    is_training: with the batch's own mean and variance, which are given back (the variance with
    Bessel's correction); otherwise with those given.
    """
    x = convert_to_tensor(x)
    wide = _core.float32 if x.dtype in (_core.float16, _core.bfloat16) else x.dtype
    empty = convert_to_tensor([], wide)
    if not is_training and (mean is None or variance is None):
        raise ValueError("Both 'mean' and 'variance' must be given when is_training is False")
    result = ops.FusedBatchNorm(x, scale, offset, empty if mean is None else mean, empty
                                if variance is None else variance, epsilon=epsilon,
                                data_format=data_format, is_training=is_training,
                                exponential_avg_factor=exponential_avg_factor, name=name)
    return result[0], result[1], result[2]


def layer_norm(x: Any, scale: Any, offset: Any, epsilon: float = 1e-5,
               name: str | None = None) -> Tensor:
    """Normalises each row of x [..., n], along the last axis, by its own mean and variance.

    scale and offset are [n] (float32 where x is float16 or bfloat16). Differentiable twice. Source:
    Ba, Kiros and Hinton, Layer Normalization, 2016 (arXiv 1607.06450).
    """
    return ops.LayerNorm(x, scale, offset, epsilon=epsilon, name=name)[0]


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None,
                 dim: Any = None) -> Tensor:
    """x / sqrt(max(sum(x**2), epsilon)) along `axis`."""
    axis = _one_of(axis, dim, "axis", "dim")
    with scope_of(name, "l2_normalize", [x]) as scope:
        x = convert_to_tensor(x)
        squares = reduce_sum(ops.Square(x), axis, keepdims=True)
        return ops.Mul(x, ops.Rsqrt(ops.Maximum(squares, convert_to_tensor(epsilon, x.dtype))),
                       name=scope)


def local_response_normalization(input: Any, depth_radius: int = 5, bias: float = 1.0,
                                 alpha: float = 1.0, beta: float = 0.5,
                                 name: str | None = None) -> Tensor:
    """x / (bias + alpha * sum of squares of 2 * depth_radius + 1 neighbouring channels) ** beta
    (Krizhevsky 2012)."""
    return ops.LRN(input, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta, name=name)


lrn = local_response_normalization


def dropout(x: Any, keep_prob: Any = None, noise_shape: Any = None, seed: int | None = None,
            name: str | None = None, rate: Any = None) -> Tensor:
    """Elements set to 0 with probability `rate` (= 1 - keep_prob), the others scaled by 1 / (1 -
    rate).

    keep_prob, rate: a number or a scalar tensor (a placeholder, with or without a shape).
    noise_shape: extents of 1 are decided together along that axis; it broadcasts to the shape of x,
    which is that of the result. Raises ValueError for a probability outside its range or of another
    rank.
    """
    if keep_prob is not None and rate is not None:
        raise ValueError("only one of keep_prob and rate may be given")
    if keep_prob is None and rate is None:
        raise ValueError("rate must be given: the probability that an element is dropped")
    if isinstance(keep_prob, (int, float)) and not 0 < keep_prob <= 1:
        raise ValueError("keep_prob must be a scalar tensor or a float in the range (0, 1], got %g"
                         % keep_prob)
    if isinstance(rate, (int, float)) and not 0 <= rate < 1:
        raise ValueError("rate must be a scalar tensor or a float in the range [0, 1), got %g"
                         % rate)
    with scope_of(name, "dropout", [x]) as scope:
        x = convert_to_tensor(x)
        if not x.dtype.is_floating:
            raise ValueError("x has to be a floating point tensor since it's going to be scaled. "
                             "Got a %s tensor instead." % x.dtype.name)
        numbers = isinstance(keep_prob, (int, float)), isinstance(rate, (int, float))
        if numbers[0] and keep_prob == 1 or numbers[1] and rate == 0:
            return ops.Identity(x, name=scope)
        if rate is None:
            keep = as_scalar(convert_to_tensor(keep_prob, x.dtype), "keep_prob")
        else:
            keep = ops.Sub(convert_to_tensor(1.0, x.dtype),
                           as_scalar(convert_to_tensor(rate, x.dtype), "rate"))
        shape = shape_of(x) if noise_shape is None else _noise_shape(x, noise_shape)
        # keep + [0, 1) is at least 1 with probability keep.
        mask = ops.Floor(ops.Add(keep, random_uniform(shape, dtype=x.dtype, seed=seed)))
        result = ops.Mul(ops.RealDiv(x, keep), mask, name=scope)
        result.set_shape(x.shape)
        return result


def _noise_shape(x: Tensor, noise_shape: Any) -> Any:
    if isinstance(noise_shape, Tensor):
        return noise_shape
    extents = list(noise_shape)
    if None not in extents:
        return extents
    sizes = shape_of(x)
    return [sizes[i] if extent is None else extent for i, extent in enumerate(extents)]


# --- Losses ---------------------------------------------------------------------------------------

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
        logits = convert_to_tensor(logits)
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
    logits = convert_to_tensor(logits)
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
        labels, logits = convert_to_tensor(labels), convert_to_tensor(logits)
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
        logits = convert_to_tensor(logits)
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
        logits = convert_to_tensor(logits)
        labels = convert_to_tensor(labels, logits.dtype)
        _check_same_shape(logits, labels)
        weight = 1 + (convert_to_tensor(pos_weight, logits.dtype) - 1) * labels
        softplus_part = ops.Log1p(ops.Exp(-ops.Abs(logits))) + ops.Relu(-logits)
        return ops.Add((1 - labels) * logits, weight * softplus_part, name=scope)


# --- Choosing -------------------------------------------------------------------------------------

def top_k(input: Any, k: Any = 1, sorted: bool = True, name: str | None = None):
    """(values, indices) of the k largest elements along the last axis, largest first; equal ones by
    index."""
    return ops.TopK(input, k, sorted=sorted, name=name)


def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Tensor:
    """Whether predictions[i, targets[i]] is among the k largest of row i."""
    return ops.InTopK(predictions, targets, k, name=name)


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The fraction of elements that are zero, a float32 scalar."""
    with scope_of(name, "zero_fraction", [value]):
        value = convert_to_tensor(value)
        return reduce_mean(ops.Cast(ops.Equal(value, ops.ZerosLike(value)), _core.float32))


__all__ = ["relu", "relu6", "crelu", "elu", "selu", "leaky_relu", "gelu", "softplus", "softsign",
           "sigmoid", "tanh", "swish", "log_sigmoid", "softmax", "log_softmax", "bias_add",
           "xw_plus_b", "relu_layer", "moments", "weighted_moments", "batch_normalization",
           "fused_batch_norm", "layer_norm", "l2_normalize", "local_response_normalization", "lrn",
           "dropout", "l2_loss", "softmax_cross_entropy_with_logits_v2",
           "softmax_cross_entropy_with_logits",
           "sparse_softmax_cross_entropy_with_logits", "sigmoid_cross_entropy_with_logits",
           "weighted_cross_entropy_with_logits", "embedding_lookup",
           "embedding_lookup_sparse", "top_k", "in_top_k",
           "zero_fraction"]
__all__ += _ctc.__all__ + _windows.__all__ + list(_ELSEWHERE)


_name_in_refusals(globals())
