# SPDX-License-Identifier: Apache-2.0
"""Moments, normalisation and dropout: functions of tn.nn."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._array import _one_of, as_scalar, shape_of
from treenail._convert import convert_to_tensor, convert_to_wide, scope_of
from treenail._math import cast, reduce_mean, reduce_sum
from treenail._ops import ops
from treenail._random import random_uniform
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def moments(x: Any, axes: Any, shift: Any = None, name: str | None = None,
            keep_dims: bool | None = None, keepdims: bool | None = None) -> tuple:
    """(mean, variance) along `axes`; float16 and bfloat16 are summed as float32."""
    keep = bool(_one_of(keepdims, keep_dims, "keepdims", "keep_dims"))
    with scope_of(name, "moments", [x]):
        x = convert_to_wide(x)
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
        x = convert_to_wide(x)
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
        x = convert_to_wide(x)
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
        x = convert_to_wide(x)
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


__all__ = ["moments", "weighted_moments", "batch_normalization", "fused_batch_norm", "layer_norm",
           "l2_normalize", "local_response_normalization", "lrn", "dropout"]
