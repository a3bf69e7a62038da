# SPDX-License-Identifier: Apache-2.0
"""Activation functions, softmax, sums with a bias: functions of tn.nn."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._array import _one_of, as_scalar, concat
from treenail._convert import constant_value, convert_to_tensor, scope_of
from treenail._math import cast
from treenail._ops import ops
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


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


__all__ = ["relu", "relu6", "crelu", "elu", "selu", "leaky_relu", "gelu", "softplus", "softsign",
           "sigmoid", "swish", "softmax", "log_softmax", "bias_add", "xw_plus_b", "relu_layer"]
