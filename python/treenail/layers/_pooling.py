# SPDX-License-Identifier: Apache-2.0
"""Pooling layers."""

from __future__ import annotations

from treenail import _windows
from treenail._treenail import Tensor
from treenail.layers._base import InputSpec, Layer, op_data_format, pair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Pooling(Layer):
    """What pooling layers share: `_kind` is that of nn.pool, `_rank` the number of spatial axes."""

    _kind = ""
    _rank = 2

    def __init__(self, pool_size: Any, strides: Any, padding: str = "valid",
                 data_format: str = "channels_last", name: str | None = None,
                 **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        if str(padding).lower() not in ("valid", "same"):
            raise ValueError("The `padding` argument must be one of \"valid\", \"same\". Received: "
                             "%r" % (padding,))
        op_data_format(data_format, self._rank)
        self.pool_size = pair(pool_size, "pool_size", self._rank)
        self.strides = pair(strides, "strides", self._rank)
        self.padding, self.data_format = padding.lower(), data_format
        self.input_spec = InputSpec(ndim=self._rank + 2)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        return _windows.pool(inputs, self.pool_size, self._kind, self.padding, strides=self.strides,
                             data_format=op_data_format(self.data_format, self._rank))


class MaxPooling2D(_Pooling):
    """The largest value of each window of images."""

    _kind, _rank = "MAX", 2


class AveragePooling2D(_Pooling):
    """The mean of each window of images, padding not counted."""

    _kind, _rank = "AVG", 2


class MaxPooling1D(_Pooling):
    """The largest value of each window of sequences."""

    _kind, _rank = "MAX", 1


class AveragePooling1D(_Pooling):
    """The mean of each window of sequences, padding not counted."""

    _kind, _rank = "AVG", 1


class MaxPooling3D(_Pooling):
    """The largest value of each window of volumes."""

    _kind, _rank = "MAX", 3


class AveragePooling3D(_Pooling):
    """The mean of each window of volumes, padding not counted."""

    _kind, _rank = "AVG", 3


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


def max_pooling3d(inputs: Any, pool_size: Any, strides: Any, padding: str = "valid",
                  data_format: str = "channels_last", name: str | None = None) -> Tensor:
    """The largest value of each window of volumes."""
    return MaxPooling3D(pool_size, strides, padding, data_format, name)(inputs)


def average_pooling3d(inputs: Any, pool_size: Any, strides: Any, padding: str = "valid",
                      data_format: str = "channels_last", name: str | None = None) -> Tensor:
    """The mean of each window of volumes, padding not counted."""
    return AveragePooling3D(pool_size, strides, padding, data_format, name)(inputs)
