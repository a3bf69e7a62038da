# SPDX-License-Identifier: Apache-2.0
"""Pooling layers."""

from __future__ import annotations

from treenail._ops import ops
from treenail._treenail import Tensor
from treenail.layers._base import InputSpec, Layer, channel_axis, op_data_format, pair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Pooling(Layer):
    """What pooling layers share; `_op` names the op."""

    _op = ""
    _rank = 2

    def __init__(self, pool_size: Any, strides: Any, padding: str = "valid",
                 data_format: str = "channels_last", name: str | None = None,
                 **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        if padding.lower() not in ("valid", "same"):
            raise ValueError("The `padding` argument must be one of \"valid\", \"same\". Received: "
                             "%r" % (padding,))
        channel_axis(data_format, self._rank + 2)
        self.pool_size = pair(pool_size, "pool_size", self._rank)
        self.strides = pair(strides, "strides", self._rank)
        self.padding, self.data_format = padding.lower(), data_format
        self.input_spec = InputSpec(ndim=self._rank + 2)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        data_format = op_data_format(self.data_format)
        window, strides = list(self.pool_size), list(self.strides)
        axis = 2 if data_format == "NCHW" else 1
        if self._rank == 1:
            inputs = ops.ExpandDims(inputs, axis)
            window, strides = [1] + window, [1] + strides
        if data_format == "NCHW":
            window, strides = [1, 1] + window, [1, 1] + strides
        else:
            window, strides = [1] + window + [1], [1] + strides + [1]
        outputs = getattr(ops, self._op)(inputs, ksize=window, strides=strides,
                                         padding=self.padding.upper(), data_format=data_format)
        return ops.Squeeze(outputs, squeeze_dims=[axis]) if self._rank == 1 else outputs


class MaxPooling2D(_Pooling):
    """The largest value of each window of images."""

    _op = "MaxPool"


class AveragePooling2D(_Pooling):
    """The mean of each window of images, padding not counted."""

    _op = "AvgPool"


class MaxPooling1D(_Pooling):
    """The largest value of each window of sequences."""

    _op, _rank = "MaxPool", 1


class AveragePooling1D(_Pooling):
    """The mean of each window of sequences, padding not counted."""

    _op, _rank = "AvgPool", 1


def max_pooling2d(inputs: Any, pool_size: Any, strides: Any, padding: str = "valid",
                  data_format: str = "channels_last", name: str | None = None) -> Tensor:
    """The largest value of each window of images."""
    return MaxPooling2D(pool_size, strides, padding, data_format, name)(inputs)


def average_pooling2d(inputs: Any, pool_size: Any, strides: Any, padding: str = "valid",
                      data_format: str = "channels_last", name: str | None = None) -> Tensor:
    """The mean of each window of images, padding not counted."""
    return AveragePooling2D(pool_size, strides, padding, data_format, name)(inputs)


def max_pooling1d(inputs: Any, pool_size: Any, strides: Any, padding: str = "valid",
                  data_format: str = "channels_last", name: str | None = None) -> Tensor:
    """The largest value of each window of sequences."""
    return MaxPooling1D(pool_size, strides, padding, data_format, name)(inputs)


def average_pooling1d(inputs: Any, pool_size: Any, strides: Any, padding: str = "valid",
                      data_format: str = "channels_last", name: str | None = None) -> Tensor:
    """The mean of each window of sequences, padding not counted."""
    return AveragePooling1D(pool_size, strides, padding, data_format, name)(inputs)
