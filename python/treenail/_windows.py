# SPDX-License-Identifier: Apache-2.0
"""Convolution and pooling of sequences, images and volumes: TensorFlow 1's functions of tn.nn.

Sequences are [batch, width, channels] ("NWC"), images [batch, height, width, channels] ("NHWC"),
volumes [batch, depth, height, width, channels] ("NDHWC"); channels stand second in "NCW", "NCHW"
and "NCDHW".
"""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._array import (_one_of, batch_to_space_nd, concat, extents_of, shape_of,
                             space_to_batch_nd)
from treenail._convert import convert_to_tensor, scope_of
from treenail._ops import ops
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

# Data formats with the channels last, and second, by the number of spatial axes.
_LAST = (None, "NWC", "NHWC", "NDHWC")
_SECOND = (None, "NCW", "NCHW", "NCDHW")


def _format(data_format: str | None, spatial: int) -> str:
    """The op's name of a data format. Sequences are images of one row: theirs may be named so."""
    known = [_LAST[spatial], _SECOND[spatial]]
    if data_format is None:
        return known[0]
    if spatial == 1 and isinstance(data_format, str):
        data_format = {"NHWC": "NWC", "NCHW": "NCW"}.get(data_format, data_format)
    if not isinstance(data_format, str) or data_format not in known:
        raise ValueError("data_format must be \"%s\" or \"%s\", not %r"
                         % (known[0], known[1], data_format))
    return data_format


def _sizes(value: Any, what: str, data_format: str) -> list:
    """One int, one per spatial axis, or one per axis of strides, window or dilations, in the order
    of the data format."""
    spatial = len(data_format) - 2
    numbers = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(numbers) == spatial + 2:
        return numbers
    if len(numbers) == 1:
        numbers = numbers * spatial
    if len(numbers) != spatial:
        raise ValueError("%s must be %s ints, not %r" % (what, "1 or 3" if spatial == 1 else
                                                         "1, %d or %d" % (spatial, spatial + 2),
                                                         value))
    return [1, 1] + numbers if data_format[1] == "C" else [1] + numbers + [1]


def _padding(padding: Any) -> dict:
    if isinstance(padding, str):
        return {"padding": padding.upper()}
    listed = hasattr(padding, "__iter__") and not isinstance(padding, Tensor)
    pairs = [list(p) if hasattr(p, "__iter__") else [p] for p in padding] if listed else []
    if len(pairs) != 4 or any(len(p) != 2 for p in pairs):
        raise ValueError("padding must be \"SAME\", \"VALID\" or four pairs (before, after), one "
                         "per axis, not %r" % (padding,))
    return {"padding": "EXPLICIT", "explicit_paddings": [n for pair in pairs for n in pair]}


def _named_padding(padding: Any) -> str:
    if not isinstance(padding, str) or padding.upper() not in ("SAME", "VALID"):
        raise ValueError("padding must be \"SAME\" or \"VALID\", not %r" % (padding,))
    return padding.upper()


def _window_attrs(strides: Any, padding: Any, data_format: str | None, spatial: int,
                  dilations: Any = None, ksize: Any = None) -> dict:
    """The attributes that convolution and pooling share."""
    data_format = _format(data_format, spatial)
    attrs = dict(_padding(padding), data_format=data_format)
    for key, value in (("strides", 1 if strides is None else strides), ("dilations", dilations),
                       ("ksize", ksize)):
        if value is not None:
            attrs[key] = _sizes(value, key, data_format)
    return attrs


def _as_images(attrs: dict) -> tuple:
    """(the axis of height, attributes) of images one pixel high, given those of sequences."""
    axis = 2 if attrs["data_format"] == "NCW" else 1
    wide = {"data_format": "NCHW" if axis == 2 else "NHWC", "padding": attrs["padding"]}
    for key in ("strides", "dilations", "ksize"):
        if key in attrs:
            wide[key] = attrs[key][:axis] + [1] + attrs[key][axis:]
    return axis, wide


# --- Convolution ----------------------------------------------------------------------------------

def conv2d(input: Any, filter: Any = None, strides: Any = None, padding: Any = None,
           use_cudnn_on_gpu: bool = True, data_format: str = "NHWC", dilations: Any = (1, 1, 1, 1),
           name: str | None = None, filters: Any = None) -> Tensor:
    """2-D convolution (cross-correlation) of images with a filter [height, width, in channels, out
    channels].

    strides, dilations: an int, two, or four in the order of data_format. padding: "SAME", "VALID",
    or four pairs.
    """
    return ops.Conv2D(input, _one_of(filter, filters, "filter", "filters"), name=name,
                      **_window_attrs(strides, padding, data_format, 2, dilations))


def conv2d_transpose(value: Any = None, filter: Any = None, output_shape: Any = None,
                     strides: Any = None, padding: Any = "SAME", data_format: str = "NHWC",
                     name: str | None = None, input: Any = None, filters: Any = None,
                     dilations: Any = (1, 1, 1, 1)) -> Tensor:
    """The transpose (gradient) of conv2d. filter: [height, width, out channels, in channels];
    output_shape: four ints."""
    return ops.Conv2DBackpropInput(output_shape, _one_of(filter, filters, "filter", "filters"),
                                   _one_of(value, input, "value", "input"), name=name,
                                   **_window_attrs(strides, padding, data_format, 2, dilations))


def conv2d_backprop_input(input_sizes: Any, filter: Any = None, out_backprop: Any = None,
                          strides: Any = None, padding: Any = None, use_cudnn_on_gpu: bool = True,
                          data_format: str = "NHWC", dilations: Any = (1, 1, 1, 1),
                          name: str | None = None, filters: Any = None) -> Tensor:
    """The gradient of conv2d with respect to its input, of shape input_sizes."""
    return ops.Conv2DBackpropInput(input_sizes, _one_of(filter, filters, "filter", "filters"),
                                   out_backprop, name=name,
                                   **_window_attrs(strides, padding, data_format, 2, dilations))


def conv2d_backprop_filter(input: Any, filter_sizes: Any, out_backprop: Any, strides: Any = None,
                           padding: Any = None, use_cudnn_on_gpu: bool = True,
                           data_format: str = "NHWC", dilations: Any = (1, 1, 1, 1),
                           name: str | None = None) -> Tensor:
    """The gradient of conv2d with respect to its filter, of shape filter_sizes."""
    return ops.Conv2DBackpropFilter(input, filter_sizes, out_backprop, name=name,
                                    **_window_attrs(strides, padding, data_format, 2, dilations))


def conv3d(input: Any, filter: Any = None, strides: Any = None, padding: Any = None,
           data_format: str = "NDHWC", dilations: Any = (1, 1, 1, 1, 1), name: str | None = None,
           filters: Any = None) -> Tensor:
    """3-D convolution (cross-correlation) of volumes with a filter [depth, height, width, in
    channels, out channels].

    strides, dilations: an int, three, or five in the order of data_format. padding: "SAME" or
    "VALID".
    """
    return ops.Conv3D(input, _one_of(filter, filters, "filter", "filters"), name=name,
                      **_window_attrs(strides, padding, data_format, 3, dilations))


def conv3d_transpose(value: Any = None, filter: Any = None, output_shape: Any = None,
                     strides: Any = None, padding: str = "SAME", data_format: str = "NDHWC",
                     name: str | None = None, input: Any = None, filters: Any = None,
                     dilations: Any = (1, 1, 1, 1, 1)) -> Tensor:
    """The transpose (gradient) of conv3d. filter: [depth, height, width, out channels, in
    channels]; output_shape: five ints."""
    return ops.Conv3DBackpropInput(output_shape, _one_of(filter, filters, "filter", "filters"),
                                   _one_of(value, input, "value", "input"), name=name,
                                   **_window_attrs(strides, padding, data_format, 3, dilations))


def conv3d_backprop_filter_v2(input: Any, filter_sizes: Any, out_backprop: Any, strides: Any,
                              padding: str, data_format: str = "NDHWC",
                              dilations: Any = (1, 1, 1, 1, 1), name: str | None = None) -> Tensor:
    """The gradient of conv3d with respect to its filter, of shape filter_sizes."""
    return ops.Conv3DBackpropFilter(input, filter_sizes, out_backprop, name=name,
                                    **_window_attrs(strides, padding, data_format, 3, dilations))


def conv1d(value: Any = None, filters: Any = None, stride: Any = None, padding: Any = None,
           use_cudnn_on_gpu: Any = None, data_format: str | None = None, name: str | None = None,
           input: Any = None, dilations: Any = 1) -> Tensor:
    """1-D convolution: [batch, width, in channels] with filters [width, in channels, out channels];
    "NWC" or "NCW"."""
    value = _one_of(value, input, "value", "input")
    axis, attrs = _as_images(_window_attrs(stride, padding, data_format, 1, dilations or 1))
    with scope_of(name, "conv1d", [value, filters]):
        result = ops.Conv2D(ops.ExpandDims(value, axis), ops.ExpandDims(filters, 0), **attrs)
        return ops.Squeeze(result, squeeze_dims=[axis])


def conv1d_transpose(input: Any, filters: Any, output_shape: Any, strides: Any,
                     padding: str = "SAME", data_format: str = "NWC", dilations: Any = None,
                     name: str | None = None) -> Tensor:
    """The transpose (gradient) of conv1d. filters: [width, out channels, in channels];
    output_shape: three ints."""
    axis, attrs = _as_images(_window_attrs(strides, padding, data_format, 1, dilations or 1))
    with scope_of(name, "conv1d_transpose", [input, filters, output_shape]):
        if isinstance(output_shape, (list, tuple)):
            wide = list(output_shape)
            wide.insert(axis, 1)
        else:
            shape = convert_to_tensor(output_shape)
            wide = concat([shape[:axis], convert_to_tensor([1], shape.dtype), shape[axis:]], 0)
        result = ops.Conv2DBackpropInput(wide, ops.ExpandDims(filters, 0),
                                         ops.ExpandDims(input, axis), **attrs)
        return ops.Squeeze(result, squeeze_dims=[axis])


def depthwise_conv2d(input: Any, filter: Any, strides: Any, padding: Any, rate: Any = None,
                     name: str | None = None, data_format: str | None = None,
                     dilations: Any = None) -> Tensor:
    """Each channel with filters of its own: filter [height, width, in channels, multiplier] gives
    in channels * multiplier."""
    rate = _one_of(rate, dilations, "rate", "dilations")
    return ops.DepthwiseConv2dNative(input, filter, name=name,
                                     **_window_attrs(strides, padding, data_format, 2,
                                                     1 if rate is None else rate))


def depthwise_conv2d_native(input: Any, filter: Any, strides: Any, padding: Any,
                            data_format: str = "NHWC", dilations: Any = (1, 1, 1, 1),
                            name: str | None = None) -> Tensor:
    """depthwise_conv2d, with dilations instead of a rate."""
    return depthwise_conv2d(input, filter, strides, padding, None, name, data_format, dilations)


def depthwise_conv2d_native_backprop_input(input_sizes: Any, filter: Any, out_backprop: Any,
                                           strides: Any, padding: Any, data_format: str = "NHWC",
                                           dilations: Any = (1, 1, 1, 1),
                                           name: str | None = None) -> Tensor:
    """The gradient of depthwise_conv2d with respect to its input, of shape input_sizes."""
    return ops.DepthwiseConv2dNativeBackpropInput(
        input_sizes, filter, out_backprop, name=name,
        **_window_attrs(strides, padding, data_format, 2, dilations))


def depthwise_conv2d_native_backprop_filter(input: Any, filter_sizes: Any, out_backprop: Any,
                                            strides: Any, padding: Any, data_format: str = "NHWC",
                                            dilations: Any = (1, 1, 1, 1),
                                            name: str | None = None) -> Tensor:
    """The gradient of depthwise_conv2d with respect to its filter, of shape filter_sizes."""
    return ops.DepthwiseConv2dNativeBackpropFilter(
        input, filter_sizes, out_backprop, name=name,
        **_window_attrs(strides, padding, data_format, 2, dilations))


def separable_conv2d(input: Any, depthwise_filter: Any, pointwise_filter: Any, strides: Any,
                     padding: Any, rate: Any = None, name: str | None = None,
                     data_format: str | None = None, dilations: Any = None) -> Tensor:
    """depthwise_conv2d followed by a 1x1 convolution with pointwise_filter [1, 1, channels *
    multiplier, out channels]."""
    data_format = data_format or "NHWC"
    with scope_of(name, "separable_conv2d", [input, depthwise_filter, pointwise_filter]) as scope:
        spread = depthwise_conv2d(input, depthwise_filter, strides, padding, rate,
                                  data_format=data_format, dilations=dilations)
        return ops.Conv2D(spread, pointwise_filter, strides=[1, 1, 1, 1], padding="VALID",
                          data_format=data_format, name=scope)


def atrous_conv2d(value: Any, filters: Any, rate: int, padding: str,
                  name: str | None = None) -> Tensor:
    """conv2d whose filter taps lie `rate` pixels apart."""
    return conv2d(value, filters, 1, padding, dilations=rate, name=name)


def atrous_conv2d_transpose(value: Any, filters: Any, output_shape: Any, rate: int, padding: str,
                            name: str | None = None) -> Tensor:
    """The transpose (gradient) of atrous_conv2d. filters: [height, width, out channels, in
    channels]; output_shape: four ints."""
    return conv2d_transpose(value, filters, output_shape, 1, padding, name=name, dilations=rate)


def convolution(input: Any, filter: Any = None, padding: Any = None, strides: Any = None,
                dilation_rate: Any = None, name: str | None = None, data_format: str | None = None,
                filters: Any = None, dilations: Any = None) -> Tensor:
    """conv1d, conv2d or conv3d, whichever the filter's rank says: one axis per spatial axis of the
    input, then in channels and out channels.

    strides, dilation_rate: an int, or one per spatial axis.
    """
    filter = convert_to_tensor(_one_of(filter, filters, "filter", "filters"))
    rate = _one_of(dilation_rate, dilations, "dilation_rate", "dilations")
    rate = 1 if rate is None else rate
    spatial = _spatial_axes(filter.shape.ndims, "filter")
    if spatial == 1:
        return conv1d(input, filter, strides, padding, data_format=data_format, name=name,
                      dilations=rate)
    convolve = conv2d if spatial == 2 else conv3d
    return convolve(input, filter, strides, padding, data_format=data_format, dilations=rate,
                    name=name)


def _spatial_axes(ndims: int | None, what: str) -> int:
    if ndims not in (3, 4, 5):
        raise ValueError("the rank of %s must be 3, 4 or 5, not %s"
                         % (what, "unknown" if ndims is None else ndims))
    return ndims - 2


# --- Pooling --------------------------------------------------------------------------------------

def max_pool(value: Any = None, ksize: Any = None, strides: Any = None, padding: Any = None,
             data_format: str = "NHWC", name: str | None = None, input: Any = None) -> Tensor:
    """The largest value of each window. ksize, strides: an int, two, or four in the order of
    data_format.

    A ksize over channels takes the largest of so many neighbouring channels, which no two windows
    share: as in TensorFlow strides must equal ksize, the channels be a multiple of it and the
    window one pixel. Equal ones share the gradient.
    """
    value = _one_of(value, input, "value", "input")
    if ksize is None:
        raise TypeError("max_pool needs ksize, the size of the window")
    attrs = _window_attrs(strides, padding, data_format, 2, ksize=ksize)
    axis = 1 if attrs["data_format"] == "NCHW" else 3
    if attrs["ksize"][axis] != 1:
        return _max_of_channels(convert_to_tensor(value), attrs, axis, name)
    return ops.MaxPool(value, name=name, **attrs)


def _max_of_channels(value: Tensor, attrs: dict, axis: int, name: str | None) -> Tensor:
    """max_pool over channels."""
    ksize, strides = attrs["ksize"], attrs["strides"]
    window = ksize[axis]
    if window < 1 or any(k != 1 for i, k in enumerate(ksize) if i != axis):
        raise ValueError("max_pool takes the maximum over pixels or over channels, not over both "
                         "nor over the batch: ksize is %r" % (ksize,))
    if strides != ksize:
        raise ValueError("max_pool over channels needs strides equal to ksize, not %r and %r"
                         % (strides, ksize))
    if value.shape.ndims not in (None, 4):
        raise ValueError("max_pool needs images of rank 4, not %s" % value.shape)
    channels = value.shape[axis]
    if channels is None:
        raise ValueError("the number of channels must be known for max_pool over them")
    if channels % window:
        raise ValueError("max_pool over channels needs a multiple of the window %d, not %d channels"
                         % (window, channels))
    with scope_of(name, "max_pool", [value]) as scope:
        sizes = shape_of(value)
        parts = [sizes[i] for i in range(4)]
        parts[axis:axis + 1] = [channels // window, window]
        return ops.Max(ops.Reshape(value, _packed(parts)), [axis + 1], name=scope)


def _packed(parts: list) -> Any:
    """Ints and scalar tensors as a shape argument."""
    if all(isinstance(n, int) for n in parts):
        return parts
    return ops.Pack([convert_to_tensor(n, _core.int32) for n in parts])


def avg_pool(value: Any = None, ksize: Any = None, strides: Any = None, padding: Any = None,
             data_format: str = "NHWC", name: str | None = None, input: Any = None) -> Tensor:
    """The mean of each window, padding not counted. ksize, strides: an int, two, or four in the
    order of data_format."""
    return ops.AvgPool(_one_of(value, input, "value", "input"), name=name,
                       **_window_attrs(strides, padding, data_format, 2, ksize=ksize))


max_pool2d, avg_pool2d = max_pool, avg_pool


def max_pool1d(input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NWC",
               name: str | None = None) -> Tensor:
    """The largest value of each window of sequences. ksize, strides: an int, or three in the order
    of data_format."""
    return _pool_sequences(ops.MaxPool, "max_pool1d", input, ksize, strides, padding, data_format,
                           name)


def avg_pool1d(input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NWC",
               name: str | None = None) -> Tensor:
    """The mean of each window of sequences, padding not counted. ksize, strides: an int, or three
    in the order of data_format."""
    return _pool_sequences(ops.AvgPool, "avg_pool1d", input, ksize, strides, padding, data_format,
                           name)


def _pool_sequences(op: Any, default_name: str, input: Any, ksize: Any, strides: Any, padding: str,
                    data_format: str, name: str | None) -> Tensor:
    axis, attrs = _as_images(_window_attrs(strides, padding, data_format, 1, ksize=ksize))
    with scope_of(name, default_name, [input]):
        pooled = op(ops.ExpandDims(input, axis), **attrs)
        return ops.Squeeze(pooled, squeeze_dims=[axis])


def max_pool3d(input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NDHWC",
               name: str | None = None) -> Tensor:
    """The largest value of each window of volumes. ksize, strides: an int, three, or five in the
    order of data_format."""
    return ops.MaxPool3D(input, name=name,
                         **_window_attrs(strides, padding, data_format, 3, ksize=ksize))


def avg_pool3d(input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NDHWC",
               name: str | None = None) -> Tensor:
    """The mean of each window of volumes, padding not counted. ksize, strides: an int, three, or
    five in the order of data_format."""
    return ops.AvgPool3D(input, name=name,
                         **_window_attrs(strides, padding, data_format, 3, ksize=ksize))


def max_pool_with_argmax(input: Any, ksize: Any, strides: Any, padding: Any,
                         data_format: str = "NHWC", Targmax: Any = None, name: str | None = None,
                         include_batch_in_index: bool = False):
    """(output, argmax): max_pool and the flattened index of each maximum."""
    if data_format != "NHWC":
        raise ValueError("Data formats other than 'NHWC' are not supported by max_pool_with_argmax")
    return ops.MaxPoolWithArgmax(input, ksize=_sizes(ksize, "ksize", "NHWC"),
                                 strides=_sizes(strides, "strides", "NHWC"),
                                 padding=_named_padding(padding), Targmax=Targmax or _core.int64,
                                 include_batch_in_index=include_batch_in_index, name=name)


def pool(input: Any, window_shape: Any, pooling_type: str, padding: str, dilation_rate: Any = None,
         strides: Any = None, name: str | None = None, data_format: str | None = None,
         dilations: Any = None) -> Tensor:
    """The largest value ("MAX") or the mean ("AVG") of each window of sequences, images or volumes.

    window_shape, strides, dilation_rate: one int per spatial axis. Elements of a window lie
    dilation_rate apart; padding takes no part in it.
    """
    input = convert_to_tensor(input)
    spatial = _spatial_axes(input.shape.ndims, "the input")
    if pooling_type not in ("MAX", "AVG"):
        raise ValueError("pooling_type must be \"MAX\" or \"AVG\", not %r" % (pooling_type,))
    pooling = {"MAX": (max_pool1d, max_pool, max_pool3d),
               "AVG": (avg_pool1d, avg_pool, avg_pool3d)}[pooling_type][spatial - 1]
    data_format = _format(data_format, spatial)
    rate = _one_of(dilation_rate, dilations, "dilation_rate", "dilations")
    rate = _per_axis(1 if rate is None else rate, "dilation_rate", spatial)
    window = _per_axis(window_shape, "window_shape", spatial)
    strides = _per_axis(1 if strides is None else strides, "strides", spatial)
    if all(r == 1 for r in rate):
        return pooling(input, window, strides, padding, data_format, name=name)
    if any(s != 1 for s in strides):
        raise ValueError("strides > 1 not supported in conjunction with dilation_rate > 1")

    def dilated(x: Tensor) -> Tensor:
        return with_space_to_batch(x, rate, "VALID",
                                   lambda y, *_: pooling(y, window, 1, "VALID", data_format),
                                   window, data_format=data_format)
    with scope_of(name, "pool", [input]):
        if padding.upper() == "VALID":
            return dilated(input)
        first = 2 if data_format[1] == "C" else 1
        sizes = input.shape.as_list()[first:first + spatial]
        pads = _same_paddings(window, rate)
        for axis, size in enumerate(sizes):
            if size:
                window[axis], rate[axis], pads[axis] = _taps_inside(size, window[axis], rate[axis],
                                                                    pads[axis])
        return _pool_padded(input, dilated, pooling_type, pads, data_format)


def _per_axis(value: Any, what: str, spatial: int) -> list:
    numbers = list(value) if isinstance(value, (list, tuple)) else [value] * spatial
    if len(numbers) != spatial:
        raise ValueError("%s needs one int for each of %d spatial axes, not %r"
                         % (what, spatial, value))
    return numbers


def _same_paddings(window: list, rate: list) -> list:
    """(before, after) per spatial axis of "SAME" padding at stride 1."""
    spans = [(k - 1) * r for k, r in zip(window, rate)]
    return [[span // 2, span - span // 2] for span in spans]


def _taps_inside(size: int, taps: int, rate: int, pads: list) -> tuple:
    """(taps, rate, paddings) without the taps that lie in the padding in every window."""
    met = [t for t in range(taps) if -size < t * rate - pads[0] < size]
    if not met:  # all windows lie in the padding
        return 2, 2 * size, [size, size]
    taps, before = len(met), pads[0] - met[0] * rate
    if taps == 1:
        return 1, 1, [0, 0]
    return taps, rate, [before, (taps - 1) * rate - before]


def _pool_padded(x: Tensor, dilated: Callable, pooling_type: str, pads: list,
                 data_format: str) -> Tensor:
    """A pooling of windows that reach beyond the input; what lies there is not counted."""
    if data_format[1] == "C":
        pads = [[0, 0], [0, 0]] + pads
    else:
        pads = [[0, 0]] + pads + [[0, 0]]
    if pooling_type == "MAX":
        return dilated(ops.Pad(x, pads, convert_to_tensor(-float("inf"), x.dtype)))
    zero = convert_to_tensor(0, x.dtype)
    return ops.RealDiv(dilated(ops.Pad(x, pads, zero)),
                       dilated(ops.Pad(ops.OnesLike(x), pads, zero)))


def with_space_to_batch(input: Any, dilation_rate: Any, padding: str, op: Callable,
                        filter_shape: Any = None, spatial_dims: Any = None,
                        data_format: str | None = None) -> Tensor:
    """Applies `op` as if its windows were dilated: to the images that hold every dilation_rate-th
    element of the input along each spatial axis.

    op(images, number of spatial axes, "VALID") is called once. padding "SAME" needs filter_shape,
    the extents of the window. spatial_dims: which axes, counted from 0; by default those behind the
    batch (behind batch and channels where data_format says so), as many as dilation_rate has.
    """
    input = convert_to_tensor(input)
    ndims = input.shape.ndims
    rate = list(dilation_rate) if isinstance(dilation_rate, (list, tuple)) else [dilation_rate]
    if data_format is not None and not (isinstance(data_format, str)
                                        and data_format in _LAST + _SECOND):
        raise ValueError("data_format must be None or one of %s, not %r"
                         % (", ".join(map(repr, _LAST[1:] + _SECOND[1:])), data_format))
    first = 2 if data_format in _SECOND[1:] else 1
    axes = list(spatial_dims) if spatial_dims is not None else [first + i
                                                                for i in range(len(rate))]
    if len(axes) != len(rate) or axes != sorted(set(axes)) or any(a < 1 for a in axes):
        raise ValueError("spatial_dims must be ascending axes behind the batch, one per element of "
                         "dilation_rate, not %r" % (axes,))
    if ndims is not None and axes and axes[-1] >= ndims:
        raise ValueError("spatial_dims = %r of an input of rank %d" % (axes, ndims))
    named_padding = _named_padding(padding)
    if all(r == 1 for r in rate):
        return op(input, len(rate), padding)
    pads = [[0, 0] for _ in rate]
    if named_padding == "SAME":
        if filter_shape is None:
            raise ValueError("filter_shape must be specified for SAME padding")
        pads = _same_paddings(list(filter_shape)[:len(rate)], rate)
    # Axes between the batch and the spatial ones count as blocks of one.
    block = [1] * axes[-1]
    borders = [[0, 0] for _ in block]
    crops = [[0, 0] for _ in block]
    sizes = extents_of(input)
    for axis, r, (before, after) in zip(axes, rate, pads):
        padded = sizes[axis] + before + after
        extra = -padded % r if isinstance(padded, int) else ops.FloorMod(-padded, r)
        block[axis - 1] = r
        borders[axis - 1] = [before, after + extra]
        crops[axis - 1] = [0, extra]
    spread = space_to_batch_nd(input, block, _as_matrix(borders))
    return batch_to_space_nd(op(spread, len(rate), "VALID"), block, _as_matrix(crops))


def _as_matrix(pairs: list) -> Any:
    if all(isinstance(n, int) for pair in pairs for n in pair):
        return pairs
    return ops.Pack([ops.Pack([convert_to_tensor(n, _core.int32) for n in pair])
                     for pair in pairs])


__all__ = ["conv1d", "conv1d_transpose", "conv2d", "conv2d_transpose", "conv2d_backprop_input",
           "conv2d_backprop_filter", "conv3d", "conv3d_transpose", "conv3d_backprop_filter_v2",
           "depthwise_conv2d", "depthwise_conv2d_native", "depthwise_conv2d_native_backprop_input",
           "depthwise_conv2d_native_backprop_filter", "separable_conv2d", "atrous_conv2d",
           "atrous_conv2d_transpose", "convolution", "max_pool", "avg_pool", "max_pool2d",
           "avg_pool2d", "max_pool1d", "avg_pool1d", "max_pool3d", "avg_pool3d",
           "max_pool_with_argmax", "pool", "with_space_to_batch"]
