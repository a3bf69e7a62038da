# SPDX-License-Identifier: Apache-2.0
"""Convolution layers."""

from __future__ import annotations

from treenail import _windows
from treenail._array import shape_of
from treenail._convert import convert_to_tensor
from treenail._initializer_values import ZEROS
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._treenail import Tensor
from treenail.layers._base import (InputSpec, Layer, activated, channel_axis, known_extent,
                                   named_activation, op_data_format, pair)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class _Convolution(Layer):
    """What convolution layers share: their arguments, kernel and bias."""

    def __init__(self, rank: int, filters: int, kernel_size: Any, strides: Any = 1,
                 padding: str = "valid", data_format: str = "channels_last", dilation_rate: Any = 1,
                 activation: Any = None, use_bias: bool = True,
                 kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
                 kernel_regularizer: Callable | None = None,
                 bias_regularizer: Callable | None = None,
                 activity_regularizer: Callable | None = None,
                 kernel_constraint: Callable | None = None, bias_constraint: Callable | None = None,
                 trainable: bool = True, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        if str(padding).lower() not in ("valid", "same"):
            raise ValueError("The `padding` argument must be one of \"valid\", \"same\". Received: "
                             "%r" % (padding,))
        channel_axis(data_format, rank + 2)
        self.rank, self.filters = rank, filters
        self.kernel_size = pair(kernel_size, "kernel_size", rank)
        self.strides = pair(strides, "strides", rank)
        self.dilation_rate = pair(dilation_rate, "dilation_rate", rank)
        self.padding = padding.lower()
        self.data_format = data_format
        self.activation = named_activation(activation)
        self.use_bias = use_bias
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.kernel = self.bias = None
        self.input_spec = InputSpec(ndim=rank + 2)

    def _kernel_shape(self, channels: int) -> list:
        return list(self.kernel_size) + [channels, self.filters]

    def build(self, input_shape: TensorShape) -> None:
        """Makes kernel and bias."""
        axis = channel_axis(self.data_format, self.rank + 2)
        channels = known_extent(input_shape, axis)
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={axis: channels})
        self.kernel = self.add_variable("kernel", self._kernel_shape(channels),
                                        initializer=self.kernel_initializer,
                                        regularizer=self.kernel_regularizer,
                                        constraint=self.kernel_constraint)
        self._build_bias()

    def _build_bias(self) -> None:
        if self.use_bias:
            self.bias = self.add_variable("bias", [self.filters], initializer=self.bias_initializer,
                                          regularizer=self.bias_regularizer,
                                          constraint=self.bias_constraint)

    def _data_format(self) -> str:
        """The ops' name of the data format."""
        return op_data_format(self.data_format, self.rank)

    def _finish(self, outputs: Tensor) -> Tensor:
        if self.use_bias:
            outputs = ops.BiasAdd(outputs, self.bias, data_format=op_data_format(self.data_format))
        return activated(self.activation, outputs)


class Conv2D(_Convolution):
    """activation(conv2d(inputs, kernel) + bias) for images.

    Variables: kernel [height, width, in channels, filters], bias [filters]. padding: "valid" or
    "same"; data_format: "channels_last" or "channels_first".
    """

    def __init__(self, filters: int, kernel_size: Any, strides: Any = (1, 1),
                 padding: str = "valid", data_format: str = "channels_last",
                 dilation_rate: Any = (1, 1), activation: Any = None,
                 use_bias: bool = True, kernel_initializer: Any = None,
                 bias_initializer: Any = ZEROS, **kwargs: Any) -> None:
        super().__init__(2, filters, kernel_size, strides, padding, data_format, dilation_rate,
                         activation, use_bias, kernel_initializer, bias_initializer, **kwargs)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        return self._finish(_windows.conv2d(inputs, self.kernel, self.strides, self.padding,
                                            data_format=self._data_format(),
                                            dilations=self.dilation_rate))


class Conv3D(_Convolution):
    """activation(conv3d(inputs, kernel) + bias) for volumes.

    Variables: kernel [depth, height, width, in channels, filters], bias [filters].
    """

    def __init__(self, filters: int, kernel_size: Any, strides: Any = (1, 1, 1),
                 padding: str = "valid", data_format: str = "channels_last",
                 dilation_rate: Any = (1, 1, 1), activation: Any = None,
                 use_bias: bool = True, kernel_initializer: Any = None,
                 bias_initializer: Any = ZEROS, **kwargs: Any) -> None:
        super().__init__(3, filters, kernel_size, strides, padding, data_format, dilation_rate,
                         activation, use_bias, kernel_initializer, bias_initializer, **kwargs)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        return self._finish(_windows.conv3d(inputs, self.kernel, self.strides, self.padding,
                                            data_format=self._data_format(),
                                            dilations=self.dilation_rate))


class Conv1D(_Convolution):
    """activation(conv1d(inputs, kernel) + bias) for sequences [batch, width, channels].

    Variables: kernel [width, in channels, filters], bias [filters].
    """

    def __init__(self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
                 data_format: str = "channels_last", dilation_rate: Any = 1,
                 activation: Any = None, use_bias: bool = True,
                 kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
                 **kwargs: Any) -> None:
        super().__init__(1, filters, kernel_size, strides, padding, data_format, dilation_rate,
                         activation, use_bias, kernel_initializer, bias_initializer, **kwargs)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        return self._finish(_windows.conv1d(inputs, self.kernel, self.strides[0], self.padding,
                                            data_format=self._data_format(),
                                            dilations=self.dilation_rate[0]))


class _Transpose(_Convolution):
    """The transpose of a convolution."""

    def __init__(self, rank: int, filters: int, kernel_size: Any, strides: Any, padding: str,
                 data_format: str, activation: Any, use_bias: bool,
                 kernel_initializer: Any, bias_initializer: Any, **kwargs: Any) -> None:
        super().__init__(rank, filters, kernel_size, strides, padding, data_format, 1, activation,
                         use_bias, kernel_initializer, bias_initializer, **kwargs)

    def _kernel_shape(self, channels: int) -> list:
        return list(self.kernel_size) + [self.filters, channels]

    def _grown(self, extent: Any, size: int, stride: int) -> Any:
        grown = extent * stride
        return grown if self.padding == "same" else grown + max(size - stride, 0)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        inputs = convert_to_tensor(inputs)
        self._needs_variables()
        sizes = shape_of(inputs)
        first = 1 if self.data_format == "channels_last" else 2
        space = [self._grown(sizes[first + i], k, stride)
                 for i, (k, stride) in enumerate(zip(self.kernel_size, self.strides))]
        shape = [sizes[0], *space, self.filters] if first == 1 else [sizes[0], self.filters, *space]
        if not all(isinstance(n, int) for n in shape):
            shape = ops.Pack([convert_to_tensor(n) for n in shape])
        transpose = _windows.conv2d_transpose if self.rank == 2 else _windows.conv3d_transpose
        return self._finish(transpose(inputs, self.kernel, shape, self.strides, self.padding,
                                      self._data_format()))


class Conv2DTranspose(_Transpose):
    """The transpose of a convolution: images grow by the strides.

    Variables: kernel [height, width, filters, in channels], bias [filters].
    """

    def __init__(self, filters: int, kernel_size: Any, strides: Any = (1, 1),
                 padding: str = "valid", data_format: str = "channels_last",
                 activation: Any = None, use_bias: bool = True,
                 kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
                 **kwargs: Any) -> None:
        super().__init__(2, filters, kernel_size, strides, padding, data_format, activation,
                         use_bias, kernel_initializer, bias_initializer, **kwargs)


class Conv3DTranspose(_Transpose):
    """The transpose of a convolution: volumes grow by the strides.

    Variables: kernel [depth, height, width, filters, in channels], bias [filters].
    """

    def __init__(self, filters: int, kernel_size: Any, strides: Any = (1, 1, 1),
                 padding: str = "valid", data_format: str = "channels_last",
                 activation: Any = None, use_bias: bool = True,
                 kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
                 **kwargs: Any) -> None:
        super().__init__(3, filters, kernel_size, strides, padding, data_format, activation,
                         use_bias, kernel_initializer, bias_initializer, **kwargs)


class _Separable(_Convolution):
    """A depthwise convolution, then one of extent 1, then bias and activation."""

    def __init__(self, rank: int, filters: int, kernel_size: Any, strides: Any, padding: str,
                 data_format: str, dilation_rate: Any, depth_multiplier: int,
                 activation: Any, use_bias: bool, depthwise_initializer: Any,
                 pointwise_initializer: Any, bias_initializer: Any,
                 depthwise_regularizer: Callable | None, pointwise_regularizer: Callable | None,
                 depthwise_constraint: Callable | None = None,
                 pointwise_constraint: Callable | None = None, **kwargs: Any) -> None:
        super().__init__(rank, filters, kernel_size, strides, padding, data_format, dilation_rate,
                         activation, use_bias, bias_initializer=bias_initializer, **kwargs)
        self.depth_multiplier = depth_multiplier
        self.depthwise_initializer = depthwise_initializer
        self.pointwise_initializer = pointwise_initializer
        self.depthwise_regularizer = depthwise_regularizer
        self.pointwise_regularizer = pointwise_regularizer
        self.depthwise_constraint = depthwise_constraint
        self.pointwise_constraint = pointwise_constraint
        self.depthwise_kernel = self.pointwise_kernel = None

    def build(self, input_shape: TensorShape) -> None:
        """Makes kernels and bias."""
        axis = channel_axis(self.data_format, self.rank + 2)
        channels = known_extent(input_shape, axis)
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={axis: channels})
        self.depthwise_kernel = self.add_variable(
            "depthwise_kernel", list(self.kernel_size) + [channels, self.depth_multiplier],
            initializer=self.depthwise_initializer, regularizer=self.depthwise_regularizer,
            constraint=self.depthwise_constraint)
        self.pointwise_kernel = self.add_variable(
            "pointwise_kernel",
            [1] * self.rank + [channels * self.depth_multiplier, self.filters],
            initializer=self.pointwise_initializer, regularizer=self.pointwise_regularizer,
            constraint=self.pointwise_constraint)
        self._build_bias()


class SeparableConv2D(_Separable):
    """A depthwise convolution, then a 1x1 convolution, then bias and activation.

    Variables: depthwise_kernel [height, width, in channels, depth_multiplier], pointwise_kernel [1,
    1, in channels * depth_multiplier, filters], bias [filters].
    """

    def __init__(self, filters: int, kernel_size: Any, strides: Any = (1, 1),
                 padding: str = "valid", data_format: str = "channels_last",
                 dilation_rate: Any = (1, 1), depth_multiplier: int = 1,
                 activation: Any = None, use_bias: bool = True,
                 depthwise_initializer: Any = None, pointwise_initializer: Any = None,
                 bias_initializer: Any = ZEROS, depthwise_regularizer: Callable | None = None,
                 pointwise_regularizer: Callable | None = None, **kwargs: Any) -> None:
        super().__init__(2, filters, kernel_size, strides, padding, data_format, dilation_rate,
                         depth_multiplier, activation, use_bias, depthwise_initializer,
                         pointwise_initializer, bias_initializer, depthwise_regularizer,
                         pointwise_regularizer, **kwargs)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        return self._finish(_windows.separable_conv2d(
            inputs, self.depthwise_kernel, self.pointwise_kernel, self.strides, self.padding,
            self.dilation_rate, data_format=self._data_format()))


class SeparableConv1D(_Separable):
    """A depthwise convolution of sequences, then one of width 1, then bias and activation.

    Variables: depthwise_kernel [width, in channels, depth_multiplier], pointwise_kernel [1, in
    channels * depth_multiplier, filters], bias [filters].
    """

    def __init__(self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
                 data_format: str = "channels_last", dilation_rate: Any = 1,
                 depth_multiplier: int = 1, activation: Any = None,
                 use_bias: bool = True, depthwise_initializer: Any = None,
                 pointwise_initializer: Any = None, bias_initializer: Any = ZEROS,
                 depthwise_regularizer: Callable | None = None,
                 pointwise_regularizer: Callable | None = None, **kwargs: Any) -> None:
        super().__init__(1, filters, kernel_size, strides, padding, data_format, dilation_rate,
                         depth_multiplier, activation, use_bias, depthwise_initializer,
                         pointwise_initializer, bias_initializer, depthwise_regularizer,
                         pointwise_regularizer, **kwargs)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        # Sequences are images of one row.
        axis = 1 if self.data_format == "channels_last" else 2
        outputs = _windows.separable_conv2d(
            ops.ExpandDims(inputs, axis), ops.ExpandDims(self.depthwise_kernel, 0),
            ops.ExpandDims(self.pointwise_kernel, 0), (1, *self.strides), self.padding,
            (1, *self.dilation_rate), data_format=op_data_format(self.data_format))
        return self._finish(ops.Squeeze(outputs, squeeze_dims=[axis]))


def conv2d(inputs: Any, filters: int, kernel_size: Any, strides: Any = (1, 1),
           padding: str = "valid", data_format: str = "channels_last", dilation_rate: Any = (1, 1),
           activation: Any = None, use_bias: bool = True,
           kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
           kernel_regularizer: Callable | None = None, bias_regularizer: Callable | None = None,
           activity_regularizer: Callable | None = None, kernel_constraint: Callable | None = None,
           bias_constraint: Callable | None = None, trainable: bool = True, name: str | None = None,
           reuse: Any = None) -> Tensor:
    """A new Conv2D layer applied to images."""
    return Conv2D(filters, kernel_size, strides, padding, data_format, dilation_rate, activation,
                  use_bias, kernel_initializer, bias_initializer,
                  kernel_regularizer=kernel_regularizer, bias_regularizer=bias_regularizer,
                  activity_regularizer=activity_regularizer, kernel_constraint=kernel_constraint,
                  bias_constraint=bias_constraint, trainable=trainable, name=name,
                  _scope=name, _reuse=reuse)(inputs)


def conv1d(inputs: Any, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
           data_format: str = "channels_last", dilation_rate: Any = 1,
           activation: Any = None, use_bias: bool = True,
           kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
           kernel_regularizer: Callable | None = None, bias_regularizer: Callable | None = None,
           activity_regularizer: Callable | None = None, kernel_constraint: Callable | None = None,
           bias_constraint: Callable | None = None, trainable: bool = True, name: str | None = None,
           reuse: Any = None) -> Tensor:
    """A new Conv1D layer applied to sequences."""
    return Conv1D(filters, kernel_size, strides, padding, data_format, dilation_rate, activation,
                  use_bias, kernel_initializer, bias_initializer,
                  kernel_regularizer=kernel_regularizer, bias_regularizer=bias_regularizer,
                  activity_regularizer=activity_regularizer, kernel_constraint=kernel_constraint,
                  bias_constraint=bias_constraint, trainable=trainable, name=name,
                  _scope=name, _reuse=reuse)(inputs)


def conv3d(inputs: Any, filters: int, kernel_size: Any, strides: Any = (1, 1, 1),
           padding: str = "valid", data_format: str = "channels_last",
           dilation_rate: Any = (1, 1, 1), activation: Any = None,
           use_bias: bool = True, kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
           kernel_regularizer: Callable | None = None, bias_regularizer: Callable | None = None,
           activity_regularizer: Callable | None = None, kernel_constraint: Callable | None = None,
           bias_constraint: Callable | None = None, trainable: bool = True, name: str | None = None,
           reuse: Any = None) -> Tensor:
    """A new Conv3D layer applied to volumes."""
    return Conv3D(filters, kernel_size, strides, padding, data_format, dilation_rate, activation,
                  use_bias, kernel_initializer, bias_initializer,
                  kernel_regularizer=kernel_regularizer, bias_regularizer=bias_regularizer,
                  activity_regularizer=activity_regularizer, kernel_constraint=kernel_constraint,
                  bias_constraint=bias_constraint, trainable=trainable, name=name,
                  _scope=name, _reuse=reuse)(inputs)


def conv3d_transpose(inputs: Any, filters: int, kernel_size: Any, strides: Any = (1, 1, 1),
                     padding: str = "valid", data_format: str = "channels_last",
                     activation: Any = None, use_bias: bool = True,
                     kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
                     kernel_regularizer: Callable | None = None,
                     bias_regularizer: Callable | None = None,
                     activity_regularizer: Callable | None = None,
                     kernel_constraint: Callable | None = None,
                     bias_constraint: Callable | None = None, trainable: bool = True,
                     name: str | None = None, reuse: Any = None) -> Tensor:
    """A new Conv3DTranspose layer applied to volumes."""
    return Conv3DTranspose(filters, kernel_size, strides, padding, data_format, activation,
                           use_bias, kernel_initializer, bias_initializer,
                           kernel_regularizer=kernel_regularizer, bias_regularizer=bias_regularizer,
                           activity_regularizer=activity_regularizer,
                           kernel_constraint=kernel_constraint, bias_constraint=bias_constraint,
                           trainable=trainable, name=name, _scope=name, _reuse=reuse)(inputs)


def conv2d_transpose(inputs: Any, filters: int, kernel_size: Any, strides: Any = (1, 1),
                     padding: str = "valid", data_format: str = "channels_last",
                     activation: Any = None, use_bias: bool = True,
                     kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
                     kernel_regularizer: Callable | None = None,
                     bias_regularizer: Callable | None = None,
                     activity_regularizer: Callable | None = None,
                     kernel_constraint: Callable | None = None,
                     bias_constraint: Callable | None = None, trainable: bool = True,
                     name: str | None = None, reuse: Any = None) -> Tensor:
    """A new Conv2DTranspose layer applied to images."""
    return Conv2DTranspose(filters, kernel_size, strides, padding, data_format, activation,
                           use_bias, kernel_initializer, bias_initializer,
                           kernel_regularizer=kernel_regularizer, bias_regularizer=bias_regularizer,
                           activity_regularizer=activity_regularizer,
                           kernel_constraint=kernel_constraint, bias_constraint=bias_constraint,
                           trainable=trainable, name=name, _scope=name, _reuse=reuse)(inputs)


def separable_conv2d(inputs: Any, filters: int, kernel_size: Any, strides: Any = (1, 1),
                     padding: str = "valid", data_format: str = "channels_last",
                     dilation_rate: Any = (1, 1), depth_multiplier: int = 1,
                     activation: Any = None, use_bias: bool = True,
                     depthwise_initializer: Any = None, pointwise_initializer: Any = None,
                     bias_initializer: Any = ZEROS, depthwise_regularizer: Callable | None = None,
                     pointwise_regularizer: Callable | None = None,
                     bias_regularizer: Callable | None = None,
                     activity_regularizer: Callable | None = None,
                     depthwise_constraint: Callable | None = None,
                     pointwise_constraint: Callable | None = None,
                     bias_constraint: Callable | None = None, trainable: bool = True,
                     name: str | None = None, reuse: Any = None) -> Tensor:
    """A new SeparableConv2D layer applied to images."""
    return SeparableConv2D(filters, kernel_size, strides, padding, data_format, dilation_rate,
                           depth_multiplier, activation, use_bias, depthwise_initializer,
                           pointwise_initializer, bias_initializer, depthwise_regularizer,
                           pointwise_regularizer, bias_regularizer=bias_regularizer,
                           activity_regularizer=activity_regularizer,
                           depthwise_constraint=depthwise_constraint,
                           pointwise_constraint=pointwise_constraint,
                           bias_constraint=bias_constraint, trainable=trainable, name=name,
                           _scope=name, _reuse=reuse)(inputs)


def separable_conv1d(inputs: Any, filters: int, kernel_size: Any, strides: Any = 1,
                     padding: str = "valid", data_format: str = "channels_last",
                     dilation_rate: Any = 1, depth_multiplier: int = 1,
                     activation: Any = None, use_bias: bool = True,
                     depthwise_initializer: Any = None, pointwise_initializer: Any = None,
                     bias_initializer: Any = ZEROS, depthwise_regularizer: Callable | None = None,
                     pointwise_regularizer: Callable | None = None,
                     bias_regularizer: Callable | None = None,
                     activity_regularizer: Callable | None = None,
                     depthwise_constraint: Callable | None = None,
                     pointwise_constraint: Callable | None = None,
                     bias_constraint: Callable | None = None, trainable: bool = True,
                     name: str | None = None, reuse: Any = None) -> Tensor:
    """A new SeparableConv1D layer applied to sequences."""
    return SeparableConv1D(filters, kernel_size, strides, padding, data_format, dilation_rate,
                           depth_multiplier, activation, use_bias, depthwise_initializer,
                           pointwise_initializer, bias_initializer, depthwise_regularizer,
                           pointwise_regularizer, bias_regularizer=bias_regularizer,
                           activity_regularizer=activity_regularizer,
                           depthwise_constraint=depthwise_constraint,
                           pointwise_constraint=pointwise_constraint,
                           bias_constraint=bias_constraint, trainable=trainable, name=name,
                           _scope=name, _reuse=reuse)(inputs)
