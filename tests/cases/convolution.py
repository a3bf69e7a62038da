# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/convolution.cc. Oracle: a sum over taps of strided slices, in float64."""

import itertools

import numpy as np

from harness import FLOATS, op


class Windows:
    """Where each tap of a convolution meets its input."""

    def __init__(self, image, taps, strides, padding, explicit_paddings=(), data_format="NHWC", dilations=None):
        self.first = data_format[1] == "C"
        self.taps = tuple(taps)
        axes = range(2, len(image)) if self.first else range(1, len(image) - 1)
        self.before, self.after, self.count, self.stride, self.dilation = [], [], [], [], []
        for axis, k in zip(axes, taps):
            n, s, d = image[axis], strides[axis], dilations[axis] if dilations else 1
            extent = (k - 1) * d + 1
            if padding == "SAME":
                count = -(-n // s)
                before = max((count - 1) * s + extent - n, 0) // 2
            else:
                before, after = explicit_paddings[2 * axis : 2 * axis + 2] if padding == "EXPLICIT" else (0, 0)
                count = (n + before + after - extent) // s + 1
            self.before.append(before)
            self.after.append(max((count - 1) * s + extent - before - n, 0))
            self.count.append(max(count, 0))
            self.stride.append(s)
            self.dilation.append(d)

    def last(self, x):
        """Channels last."""
        return np.moveaxis(x, 1, -1) if self.first else x

    def back(self, x):
        return np.moveaxis(x, -1, 1) if self.first else x

    def padded(self, x):
        return np.pad(x, ((0, 0), *zip(self.before, self.after), (0, 0)))

    def unpadded(self, x, extents):
        return x[(slice(None), *(slice(before, before + n) for before, n in zip(self.before, extents)))]

    def tap(self, taps):
        """The slices of a padded image that a tap meets."""
        spans = [slice(None)]
        for t, d, n, stride in zip(taps, self.dilation, self.count, self.stride):
            spans.append(slice(t * d, t * d + (n - 1) * stride + 1 if n else t * d, stride))
        return tuple(spans)


def forward(multiply, channels_of):
    def oracle(x, w, **attrs):
        g = Windows(x.shape, w.shape[:-2], **attrs)
        x = g.padded(g.last(x))
        y = np.zeros((x.shape[0], *g.count, channels_of(w)))
        for at in np.ndindex(g.taps):
            y += multiply(x[g.tap(at)], w[at])
        return g.back(y)

    return oracle


def input_gradient(multiply):
    def oracle(sizes, w, dy, **attrs):
        g = Windows(sizes, w.shape[:-2], **attrs)
        dx = np.zeros(sizes)
        last = g.last(dx)
        padded, dy = g.padded(last), g.last(dy)
        for at in np.ndindex(g.taps):
            padded[g.tap(at)] += multiply(dy, w[at])
        return g.back(g.unpadded(padded, last.shape[1:-1]))

    return oracle


def filter_gradient(multiply):
    def oracle(x, sizes, dy, **attrs):
        g = Windows(x.shape, tuple(sizes[:-2]), **attrs)
        x, dy = g.padded(g.last(x)), g.last(dy)
        dw = np.zeros(sizes)
        for at in np.ndindex(g.taps):
            dw[at] = multiply(x[g.tap(at)], dy, sizes)
        return dw

    return oracle


def split(dy, channels, multiplier):
    return dy.reshape(dy.shape[:3] + (channels, multiplier))


def products(x, dy, _):
    """Sums over all pixels of channel times channel."""
    axes = tuple(range(x.ndim - 1))
    return np.tensordot(x, dy, (axes, axes))


FULL = {
    "Conv2D": forward(lambda x, w: x @ w, lambda w: w.shape[-1]),
    "Conv2DBackpropInput": input_gradient(lambda dy, w: dy @ w.T),
    "Conv2DBackpropFilter": filter_gradient(products),
}
VOLUMES = {name.replace("2D", "3D"): oracle for name, oracle in FULL.items()}
DEPTHWISE = {
    "DepthwiseConv2dNative": forward(
        lambda x, w: (x[..., None] * w).reshape(x.shape[:3] + (w.size,)), lambda w: w.shape[2] * w.shape[3]
    ),
    "DepthwiseConv2dNativeBackpropInput": input_gradient(
        lambda dy, w: (split(dy, *w.shape) * w).sum(-1)
    ),
    "DepthwiseConv2dNativeBackpropFilter": filter_gradient(
        lambda x, dy, sizes: np.einsum("nhwc,nhwcm->cm", x, split(dy, *sizes[2:]))
    ),
}


class Family:
    """A convolution and its two gradients, on the same cases."""

    def __init__(self, oracles):
        self.depthwise = "DepthwiseConv2dNative" in oracles
        # Sums of many products: the error is relative to the largest result. Winograd's algorithm loses some more digits,
        # which the tests of its error bound state (tests/kernels).
        self.ops = [
            op(name, oracle, dtypes=FLOATS, norm=True, ulps=32, grad=2, grad_tolerance=1e-5)
            for name, oracle in oracles.items()
        ]

    def case(self, image, taps, strides=None, padding="SAME", pads=(), nchw=False, dilations=None, grad=0, ulps=32):
        """image: [N, H, W, C] or [N, D, H, W, C]; taps: the filter's shape."""
        n, *extents, c = image

        def whole(spatial):
            spatial = spatial or [1] * len(extents)
            return [1, 1, *spatial] if nchw else [1, *spatial, 1]

        attrs = {"strides": whole(strides), "padding": padding, "dilations": whole(dilations)}
        space = "DHW"[-len(extents) :]
        attrs["data_format"] = "NC" + space if nchw else "N" + space + "C"
        if padding == "EXPLICIT":
            attrs["explicit_paddings"] = [0, 0, 0, 0, *pads] if nchw else [0, 0, *pads, 0, 0]
        shape = (n, c, *extents) if nchw else image
        windows = Windows(shape, taps[:-2], **attrs)
        depth = taps[-2] * taps[-1] if self.depthwise else taps[-1]
        out = (n, depth, *windows.count) if nchw else (n, *windows.count, depth)
        options = {"grad": grad, "ulps": ulps}
        for each, inputs in zip(
            self.ops, ((shape, taps), (list(shape), taps, out), (shape, list(taps), out))
        ):
            each.case(*inputs, options=options, **attrs)


def sweep(family, multiplier):
    def taps(kh, kw, c, o):
        return (kh, kw, c, multiplier if family.depthwise else o)

    # Gradients twice, on small images.
    family.case((1, 3, 4, 2), taps(2, 2, 2, 3), grad=2)
    family.case((2, 5, 4, 1), taps(3, 2, 1, 2), strides=(2, 1), padding="VALID", grad=2)
    family.case((1, 4, 4, 2), taps(3, 3, 2, 1), strides=(2, 2), nchw=True, grad=2)
    family.case((1, 5, 5, 1), taps(2, 3, 1, 2), dilations=(2, 2), grad=2)
    family.case((1, 3, 3, 2), taps(2, 2, 2, 2), padding="EXPLICIT", pads=(1, 0, 0, 2), grad=2)
    # Every combination of what a window may be.
    for strides, padding, dilations in itertools.product(
        ((1, 1), (2, 2), (1, 3)), ("SAME", "VALID", "EXPLICIT"), ((1, 1), (2, 1), (2, 3))
    ):
        family.case((2, 9, 11, 3), taps(3, 3, 3, 5), strides, padding, (1, 2, 2, 0), False, dilations)
    # Channels around the vector widths, both layouts.
    for channels, filters in ((1, 1), (3, 17), (8, 8), (17, 4), (33, 20)):
        for nchw in (False, True):
            family.case((2, 7, 6, channels), taps(3, 2, channels, filters), nchw=nchw)
    # 1 x 1, the whole image, larger than the image, wide images, many images.
    family.case((2, 5, 5, 8), taps(1, 1, 8, 16))
    family.case((2, 5, 5, 3), taps(1, 1, 3, 2), strides=(2, 2), padding="VALID")
    family.case((2, 6, 5, 4), taps(6, 5, 4, 7), padding="VALID")
    family.case((1, 2, 3, 4), taps(5, 5, 4, 3))
    family.case((1, 3, 70, 2), taps(3, 3, 2, 9))
    family.case((40, 3, 3, 2), taps(2, 2, 2, 3))
    family.case((2, 3, 3, 2), taps(2, 2, 2, 2), padding="EXPLICIT", pads=(4, 3, 5, 2))
    # Nothing in it.
    family.case((0, 4, 4, 2), taps(3, 3, 2, 2))
    family.case((2, 0, 4, 2), taps(3, 3, 2, 2))


FAMILY = Family(FULL)
sweep(FAMILY, 0)
FAMILY.case((2, 3, 3, 0), (2, 2, 0, 3))
FAMILY.case((2, 3, 3, 3), (2, 2, 3, 0))
# The networks of the benchmarks, in small: first layers, Winograd's shapes (3 x 3 and 5 x 5 at stride 1, channels in
# sixteens) with tiles cut off at both sides, padded and not.
FAMILY.case((3, 28, 28, 1), (5, 5, 1, 32))
FAMILY.case((3, 28, 28, 1), (5, 5, 1, 6))
FAMILY.case((3, 14, 14, 6), (5, 5, 6, 16), padding="VALID")
for taps, ulps in ((3, 64), (5, 256)):
    for height, width, padding in ((14, 14, "SAME"), (13, 19, "VALID"), (9, 12, "SAME")):
        for channels, filters in ((32, 64), (64, 32)):
            FAMILY.case(
                (2, height, width, channels), (taps, taps, channels, filters), padding=padding, ulps=ulps
            )
# 1 x 1: where there is oneDNN, in pieces of the batch, the last one smaller.
FAMILY.case((10, 20, 20, 64), (1, 1, 64, 64), ulps=64)
FAMILY.case((30, 8, 8, 32), (3, 3, 32, 32), ulps=64)
FAMILY.case((2, 12, 12, 32), (3, 3, 32, 32), nchw=True, ulps=64)

NATIVE = Family(DEPTHWISE)
sweep(NATIVE, 2)
NATIVE.case((2, 9, 9, 40), (3, 3, 40, 1))
NATIVE.case((3, 14, 14, 24), (5, 5, 24, 1), strides=(2, 2))
NATIVE.case((2, 3, 3, 3), (2, 2, 3, 0))

# Volumes: gradients twice on small ones, every combination of what a window may be, channels around the vector widths.
VOLUME = Family(VOLUMES)
VOLUME.case((1, 3, 3, 4, 2), (2, 2, 2, 2, 3), grad=2)
VOLUME.case((2, 4, 3, 2, 1), (3, 2, 1, 1, 2), strides=(2, 1, 1), padding="VALID", grad=2)
VOLUME.case((1, 3, 2, 3, 2), (2, 2, 3, 2, 1), strides=(2, 2, 1), nchw=True, grad=2)
VOLUME.case((1, 5, 1, 4, 1), (2, 1, 3, 1, 2), dilations=(2, 1, 2), grad=2)
for case_strides, case_padding, case_dilations in itertools.product(
    ((1, 1, 1), (2, 2, 2), (1, 2, 3), (3, 1, 1)), ("SAME", "VALID"), ((1, 1, 1), (2, 1, 1), (1, 2, 3), (3, 2, 2))
):
    VOLUME.case((2, 7, 6, 8, 3), (3, 2, 3, 3, 5), case_strides, case_padding, (), False, case_dilations)
for case_channels, case_filters in ((1, 1), (3, 17), (8, 8), (17, 4), (33, 20)):
    for layout in (False, True):
        VOLUME.case((2, 4, 5, 6, case_channels), (3, 3, 2, case_channels, case_filters), nchw=layout)
# 1 x 1 x 1, planes apart (two-dimensional algorithms), one plane, the whole volume, larger than the volume, taps that meet
# no plane, many volumes, many planes, a filter gradient in parts.
VOLUME.case((2, 3, 4, 4, 8), (1, 1, 1, 8, 16))
VOLUME.case((2, 3, 4, 4, 3), (1, 1, 1, 3, 2), strides=(2, 2, 2), padding="VALID")
VOLUME.case((2, 3, 9, 9, 32), (1, 3, 3, 32, 32), ulps=64)
VOLUME.case((2, 1, 9, 9, 3), (1, 3, 3, 3, 4))
VOLUME.case((2, 1, 5, 5, 3), (3, 3, 3, 3, 4))
VOLUME.case((2, 4, 3, 5, 2), (4, 3, 5, 2, 7), padding="VALID")
VOLUME.case((1, 2, 3, 2, 2), (5, 5, 5, 2, 3))
VOLUME.case((2, 2, 3, 3, 2), (2, 2, 2, 2, 3), dilations=(5, 1, 1))
VOLUME.case((20, 2, 2, 2, 2), (2, 2, 2, 2, 3))
VOLUME.case((1, 24, 10, 9, 4), (3, 3, 3, 4, 8))
# Winograd's algorithm, plane by plane.
for taps, ulps in ((3, 64), (5, 256)):
    VOLUME.case((2, 3, 11, 13, 32), (3, taps, taps, 32, 64), ulps=ulps)
    VOLUME.case((1, 4, 14, 9, 64), (2, taps, taps, 64, 32), padding="VALID", ulps=ulps)
VOLUME.case((0, 2, 3, 3, 2), (2, 2, 2, 2, 3))
VOLUME.case((2, 0, 3, 3, 2), (2, 2, 2, 2, 3))
VOLUME.case((2, 2, 3, 3, 0), (2, 2, 2, 0, 3))
VOLUME.case((2, 2, 3, 3, 3), (2, 2, 2, 3, 0))

CONV3, TO_INPUT3, TO_FILTER3 = VOLUME.ops
FIVE = [1, 1, 1, 1, 1]
CONV3.error("InvalidArgument", "input depth must equal filter depth", (1, 4, 4, 4, 3), (2, 2, 2, 2, 2), strides=FIVE, padding="SAME")
CONV3.error("InvalidArgument", "rank", (1, 4, 4, 3), (2, 2, 2, 3, 2), strides=FIVE, padding="SAME")
CONV3.error("InvalidArgument", "Negative dimension size caused by subtracting 3 from 2", (1, 2, 4, 4, 1), (3, 1, 1, 1, 1), strides=FIVE, padding="VALID")
CONV3.error("InvalidArgument", r"strides needs 5 elements, one per axis, got \[1,1,1,1\]", (1, 2, 2, 2, 1), (1, 1, 1, 1, 1), strides=[1, 1, 1, 1], padding="VALID")
CONV3.error("InvalidArgument", "strides must be 1 for batch and channels", (1, 2, 2, 2, 1), (1, 1, 1, 1, 1), strides=[1, 2, 1, 1, 1], padding="VALID", data_format="NCDHW")
CONV3.error("InvalidArgument", "strides must be between 1 and", (1, 2, 2, 2, 1), (1, 1, 1, 1, 1), strides=[1, 1, 0, 1, 1], padding="VALID")
CONV3.error("InvalidArgument", "dilations must be between 1 and", (1, 2, 2, 2, 1), (1, 1, 1, 1, 1), strides=FIVE, padding="VALID", dilations=[1, 2**62, 1, 1, 1])
CONV3.error("InvalidArgument", "padding", (1, 2, 2, 2, 1), (1, 1, 1, 1, 1), strides=FIVE, padding="EXPLICIT")
TO_INPUT3.error("InvalidArgument", "out_backprop has shape", [1, 4, 4, 4, 1], (2, 2, 2, 1, 1), (1, 4, 3, 4, 1), strides=FIVE, padding="SAME")
TO_INPUT3.error("InvalidArgument", "input_sizes needs 5 elements, got 4", [1, 4, 4, 1], (2, 2, 2, 1, 1), (1, 4, 4, 4, 1), strides=FIVE, padding="SAME")
TO_FILTER3.error("InvalidArgument", "filter_sizes needs 5 elements, got 2", (1, 4, 4, 4, 1), [2, 2], (1, 4, 4, 4, 1), strides=FIVE, padding="SAME")

CONV, TO_INPUT, TO_FILTER = FAMILY.ops
ONES = [1, 1, 1, 1]
for family, name in ((FAMILY, "Conv2D"), (NATIVE, "DepthwiseConv2dNative")):
    conv, to_input, to_filter = family.ops
    conv.error("InvalidArgument", "input depth must equal filter depth", (1, 4, 4, 3), (2, 2, 2, 2), strides=ONES, padding="SAME")
    conv.error("InvalidArgument", "rank", (4, 4, 3), (2, 2, 3, 2), strides=ONES, padding="SAME")
    conv.error("InvalidArgument", r"Negative dimension size caused by subtracting 3 from 2: the window spans 3 elements of an axis of 2 with padding \(0, 0\)", (1, 2, 2, 1), (3, 3, 1, 1), strides=[1, 2, 2, 1], padding="VALID")
    conv.error("InvalidArgument", "Negative dimension size caused by subtracting 5 from 0", (1, 0, 2, 1), (5, 1, 1, 1), strides=ONES, padding="VALID")
    conv.error("InvalidArgument", "Negative dimension size caused by subtracting 5 from 2", (1, 2, 2, 1), (5, 5, 1, 1), strides=ONES, padding="VALID")
    conv.error("InvalidArgument", r"strides needs 4 elements, one per axis, got \[1,1\]", (1, 2, 2, 1), (1, 1, 1, 1), strides=[1, 1], padding="VALID")
    conv.error("InvalidArgument", "strides must be 1 for batch and channels", (1, 2, 2, 1), (1, 1, 1, 1), strides=[1, 1, 1, 2], padding="VALID")
    conv.error("InvalidArgument", "strides must be between 1 and", (1, 2, 2, 1), (1, 1, 1, 1), strides=[1, 0, 1, 1], padding="VALID")
    conv.error("InvalidArgument", "dilations must be between 1 and", (1, 2, 2, 1), (1, 1, 1, 1), strides=ONES, padding="VALID", dilations=[1, 1, -1, 1])
    conv.error("InvalidArgument", "explicit_paddings must be empty", (1, 2, 2, 1), (1, 1, 1, 1), strides=ONES, padding="VALID", explicit_paddings=[0] * 8)
    conv.error("InvalidArgument", "explicit_paddings needs 8 elements", (1, 2, 2, 1), (1, 1, 1, 1), strides=ONES, padding="EXPLICIT")
    conv.error("InvalidArgument", "explicit_paddings must be 0 for batch", (1, 2, 2, 1), (1, 1, 1, 1), strides=ONES, padding="EXPLICIT", explicit_paddings=[1] * 8)
    conv.error("InvalidArgument", "padding", (1, 2, 2, 1), (1, 1, 1, 1), strides=ONES, padding="same")
    conv.error("InvalidArgument", "the window has extent 0", (1, 2, 2, 1), (0, 1, 1, 1), strides=ONES, padding="SAME")
    to_input.error("InvalidArgument", r"out_backprop has shape \[1,3,3,1\], but convolving \[1,4,4,1\] with filter \[2,2,1,1\] gives \[1,4,4,1\]", [1, 4, 4, 1], (2, 2, 1, 1), (1, 3, 3, 1), strides=ONES, padding="SAME")
    to_input.error("InvalidArgument", "Dimension -1 must be >= 0: input_sizes", [-1, 4, 4, 1], (2, 2, 1, 1), (1, 4, 4, 1), strides=ONES, padding="SAME")
    to_input.error("InvalidArgument", "input_sizes needs 4 elements, got 3", [4, 4, 1], (2, 2, 1, 1), (1, 4, 4, 1), strides=ONES, padding="SAME")
    to_filter.error("InvalidArgument", "out_backprop has shape", (1, 4, 4, 1), [2, 2, 1, 1], (1, 3, 3, 1), strides=ONES, padding="SAME")
    to_filter.error("InvalidArgument", "filter_sizes needs 4 elements, got 2", (1, 4, 4, 1), [2, 2], (1, 3, 3, 1), strides=ONES, padding="SAME")
