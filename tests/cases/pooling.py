# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/pooling.cc. Oracle: NumPy over the elements of each window, one window after the other."""

import itertools

import numpy as np

from harness import FLOATS, T, op, spaced


class Windows:
    """The part of each window that lies inside the image, for channels last."""

    def __init__(self, image, ksize, strides, padding, explicit_paddings=(), data_format="NHWC"):
        self.nchw = data_format == "NCHW"
        axes = (2, 3) if self.nchw else (1, 2)
        spans = []
        for axis in axes:
            n, k, s = image[axis], ksize[axis], strides[axis]
            if padding == "SAME":
                count = -(-n // s)
                before = max((count - 1) * s + k - n, 0) // 2
            else:
                before, after = explicit_paddings[2 * axis : 2 * axis + 2] if padding == "EXPLICIT" else (0, 0)
                count = max((n + before + after - k) // s + 1, 0)
            spans.append([(max(i * s - before, 0), min(i * s - before + k, n)) for i in range(count)])
        self.rows, self.columns = spans

    def last(self, x):
        return x.transpose(0, 2, 3, 1) if self.nchw else x

    def back(self, x):
        return x.transpose(0, 3, 1, 2) if self.nchw else x

    def __iter__(self):
        for (i, rows), (j, columns) in itertools.product(enumerate(self.rows), enumerate(self.columns)):
            yield i, j, rows, columns

    def output(self, x):
        return np.zeros((x.shape[0], len(self.rows), len(self.columns), x.shape[3]))


def first_maxima(x, rows, columns):
    """(image, row, column, channel) of the first maximum (or NaN) of one window, per image and channel."""
    window = x[:, rows[0] : rows[1], columns[0] : columns[1]]
    taps = window.shape[1] * window.shape[2]
    at = np.argmax(window.reshape(window.shape[0], taps, window.shape[3]), axis=1)
    width = columns[1] - columns[0]
    images, channels = np.ogrid[: x.shape[0], : x.shape[3]]
    return images, rows[0] + at // width, columns[0] + at % width, channels


def max_pool(x, **attrs):
    windows = Windows(x.shape, **attrs)
    x = windows.last(x)
    y = windows.output(x)
    for i, j, rows, columns in windows:
        y[:, i, j] = x[first_maxima(x, rows, columns)]
    return windows.back(y)


def max_pool_grad(x, _, g, **attrs):
    windows = Windows(x.shape, **attrs)
    x, g = windows.last(x), windows.last(g)
    dx = np.zeros(x.shape)
    for i, j, rows, columns in windows:
        np.add.at(dx, first_maxima(x, rows, columns), g[:, i, j])
    return windows.back(dx)


def max_pool_grad_grad(x, _, g, **attrs):
    windows = Windows(x.shape, **attrs)
    x, g = windows.last(x), windows.last(g)
    out = windows.output(x)
    for i, j, rows, columns in windows:
        out[:, i, j] = g[first_maxima(x, rows, columns)]
    return windows.back(out)


def max_pool_with_argmax(x, Targmax="int64", include_batch_in_index=False, **attrs):
    windows = Windows(x.shape, **attrs)
    at = np.zeros(windows.output(x).shape, Targmax)
    for i, j, rows, columns in windows:
        image, row, column, channel = first_maxima(x, rows, columns)
        index = (row * x.shape[2] + column) * x.shape[3] + channel
        at[:, i, j] = index + (image * int(np.prod(x.shape[1:])) if include_batch_in_index else 0)
    return max_pool(x, **attrs), at


def avg_pool(x, **attrs):
    windows = Windows(x.shape, **attrs)
    x = windows.last(x)
    y = windows.output(x)
    for i, j, (a, b), (c, d) in windows:
        y[:, i, j] = x[:, a:b, c:d].mean(axis=(1, 2))
    return windows.back(y)


def avg_pool_grad(shape, g, **attrs):
    windows = Windows(shape, **attrs)
    dx = windows.last(np.zeros(shape))
    g = windows.last(g)
    for i, j, (a, b), (c, d) in windows:
        dx[:, a:b, c:d] += g[:, i, j][:, None, None] / ((b - a) * (d - c))
    return windows.back(dx)


MAX = op("MaxPool", max_pool, dtypes=FLOATS, ulps=0, half_ulps=0, grad=2)
AVG = op("AvgPool", avg_pool, dtypes=FLOATS, norm=True, ulps=8, grad=2)
AVG_GRAD = op("AvgPoolGrad", avg_pool_grad, dtypes=FLOATS, norm=True, ulps=8, grad=2)
ARGMAX = op("MaxPoolWithArgmax", max_pool_with_argmax, dtypes=FLOATS, ulps=0, half_ulps=0, grad=2)
# Their second input is what MaxPool gives on the first: they are checked by cases with values, and as gradients above.
MAX_GRAD = op("MaxPoolGrad", max_pool_grad, dtypes=FLOATS, norm=True, ulps=8, grad=2, wrt=[2])
MAX_GRAD_GRAD = op("MaxPoolGradGrad", max_pool_grad_grad, dtypes=FLOATS, norm=True, ulps=8, grad=2, wrt=[2])


def pool(image, size, strides, padding, pads=(), nchw=False, grad=0):
    n, h, w, c = image

    def four(pair):
        return [1, 1, *pair] if nchw else [1, *pair, 1]

    attrs = {"ksize": four(size), "strides": four(strides), "padding": padding}
    options = {"grad": grad}
    if not nchw and padding != "EXPLICIT":
        for dtype in ("int32", "int64"):
            ARGMAX.case(spaced(image), Targmax=dtype, options=options, **attrs)
        ARGMAX.case(spaced(image), include_batch_in_index=True, options={"grad": 0}, **attrs)
    attrs["data_format"] = "NCHW" if nchw else "NHWC"
    if padding == "EXPLICIT":
        attrs["explicit_paddings"] = [0, 0, 0, 0, *pads] if nchw else [0, 0, *pads, 0, 0]
    shape = (n, c, h, w) if nchw else image
    MAX.case(spaced(shape), options=options, **attrs)
    AVG.case(shape, options=options, **attrs)
    rng = np.random.default_rng(n + h + w + c)
    x = np.round(rng.normal(size=shape) * 2) / 4  # exact in every dtype, with ties
    y = max_pool(x, **attrs)
    AVG_GRAD.case(list(shape), y.shape, options=options, **attrs)
    MAX_GRAD.case(T(x), T(y), y.shape, options=options, **attrs)
    MAX_GRAD_GRAD.case(T(x), T(y), shape, options=options, **attrs)


for layout in (False, True):
    pool((1, 4, 4, 1), (2, 2), (2, 2), "VALID", nchw=layout, grad=2)
    pool((2, 3, 4, 3), (2, 2), (1, 1), "SAME", nchw=layout, grad=2)
    pool((1, 4, 3, 2), (3, 2), (2, 1), "EXPLICIT", (1, 2, 0, 1), nchw=layout, grad=2)
    for kernel, stride, mode in itertools.product(
        ((2, 2), (3, 3), (1, 1), (3, 2)), ((2, 2), (1, 1), (3, 1)), ("SAME", "VALID")
    ):
        pool((2, 7, 6, 3), kernel, stride, mode, nchw=layout)
    pool((0, 4, 4, 2), (2, 2), (2, 2), "SAME", nchw=layout)
    pool((2, 4, 4, 0), (2, 2), (2, 2), "SAME", nchw=layout)
for channels in (6, 8, 16, 33, 70):
    pool((3, 6, 6, channels), (2, 2), (2, 2), "SAME")
    pool((2, 7, 5, channels), (3, 3), (2, 2), "SAME")
pool((30, 14, 14, 6), (2, 2), (2, 2), "VALID")

WINDOW = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
NOT_A_NUMBER = [[[[1.0], [np.nan]], [[np.nan], [2.0]]], [[[-np.inf], [-np.inf]], [[-np.inf], [-np.inf]]]]
MAX.special(NOT_A_NUMBER, **WINDOW)
ARGMAX.special(NOT_A_NUMBER, **WINDOW)
for each in (MAX, AVG, ARGMAX):
    each.error("InvalidArgument", "rank", (4, 4, 1), **WINDOW)
    each.error("InvalidArgument", "Negative dimension size caused by subtracting 3 from 2: the window spans 3 elements", (0, 4, 2, 1), ksize=[1, 3, 3, 1], strides=[1, 1, 1, 1], padding="VALID")
    each.error("InvalidArgument", "Negative dimension size caused by subtracting 5 from 2", (1, 2, 2, 1), ksize=[1, 5, 5, 1], strides=[1, 1, 1, 1], padding="VALID")
    each.error("InvalidArgument", "ksize must be 1 for batch and channels", (1, 2, 2, 4), ksize=[1, 1, 1, 2], strides=[1, 1, 1, 1], padding="VALID")
    each.error("InvalidArgument", "ksize must be between 1 and", (1, 2, 2, 4), ksize=[1, 0, 1, 1], strides=[1, 1, 1, 1], padding="VALID")
MAX.error("InvalidArgument", "explicit_paddings must be smaller than the window", (1, 2, 2, 1), ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 2, 0, 0, 0, 0, 0])
MAX_GRAD.error("InvalidArgument", "orig_output has shape", (1, 4, 4, 1), (1, 3, 3, 1), (1, 2, 2, 1), **WINDOW)
MAX_GRAD.error("InvalidArgument", "grad has shape", (1, 4, 4, 1), (1, 2, 2, 1), (1, 3, 3, 1), **WINDOW)
MAX_GRAD_GRAD.error("InvalidArgument", "grad has shape", (1, 4, 4, 1), (1, 2, 2, 1), (1, 3, 3, 1), **WINDOW)
AVG_GRAD.error("InvalidArgument", "grad has shape", [1, 4, 4, 1], (1, 3, 3, 1), **WINDOW)
AVG_GRAD.error("InvalidArgument", "orig_input_shape needs 4 elements, got 3", [4, 4, 1], (1, 2, 2, 1), **WINDOW)
