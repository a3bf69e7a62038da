# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/normalization.cc. Oracle: the papers' formulas in NumPy, in float64."""

import numpy as np

from harness import FLOATS, T, no_gradient_case, op, rand


def channels_last(x, data_format):
    return x.transpose(0, 2, 3, 1) if data_format == "NCHW" else x


def back(x, data_format):
    return x.transpose(0, 3, 1, 2) if data_format == "NCHW" else x


BATCH = (0, 1, 2)


def batch_norm(
    x, scale, offset, mean, variance, epsilon=1e-4, exponential_avg_factor=1.0, data_format="NHWC", is_training=True
):
    x = channels_last(x, data_format)
    if not is_training:
        y = (x - mean) / np.sqrt(variance + epsilon) * scale + offset
        return back(y, data_format), mean, variance, mean, variance
    count = x.size // max(x.shape[3], 1)
    used_mean, used_variance = x.mean(axis=BATCH), x.var(axis=BATCH)
    y = (x - used_mean) / np.sqrt(used_variance + epsilon) * scale + offset
    new_mean, new_variance = used_mean, used_variance * count / max(count - 1, 1)
    if exponential_avg_factor != 1.0:
        keep = 1 - exponential_avg_factor
        new_mean = keep * mean + exponential_avg_factor * new_mean
        new_variance = keep * variance + exponential_avg_factor * new_variance
    return back(y, data_format), new_mean, new_variance, used_mean, used_variance


def batch_norm_grad(dy, x, scale, mean, variance, epsilon=1e-4, data_format="NHWC", is_training=True):
    dy, x = channels_last(dy, data_format), channels_last(x, data_format)
    r = 1 / np.sqrt(variance + epsilon)
    h = (x - mean) * r
    dx = scale * r * dy
    if is_training:
        dx = scale * r * (dy - dy.mean(axis=BATCH) - h * (dy * h).mean(axis=BATCH))
    return back(dx, data_format), (dy * h).sum(axis=BATCH), dy.sum(axis=BATCH)


def per_channel(channels):
    """scale, offset, mean, variance: float32 with 16-bit images, so given in a dtype of their own."""
    rng = np.random.default_rng(channels)
    values = rng.uniform(0.5, 1.5, (4, channels))
    values[:3] -= 1
    return values


def spread(shape):
    """Images with a mean and a variance that matter."""
    rng = np.random.default_rng(sum(shape))
    return np.round(rng.normal(size=shape) * 64 + 32) / 64  # exact in float16; bfloat16 rounds its own way


NORM = op("FusedBatchNorm", batch_norm, norm=True, ulps=100, grad=2, grad_tolerance=1e-5)
# In training x_backprop's dependence on x goes through the batch's mean and variance as well, so differences in x alone
# disagree: the gradient of this gradient is checked as the second gradient of FusedBatchNorm.
GRAD = op("FusedBatchNormGrad", batch_norm_grad, norm=True, ulps=64, grad=0)
no_gradient_case("FusedBatchNormGrad", "the second gradient of FusedBatchNorm is its gradient")
SHAPES = ((2, 3, 2, 4), (1, 1, 2, 1), (4, 5, 5, 33), (3, 7, 7, 6), (2, 2, 2, 100), (40, 14, 14, 16))
for data_format in ("NHWC", "NCHW"):
    for n, h, w, c in SHAPES:
        shape = (n, c, h, w) if data_format == "NCHW" else (n, h, w, c)
        channel = rand((c,), 0.5, 1.5)
        small = n * h * w * c <= 60
        for factor in (1.0, 0.25):
            NORM.case(
                shape,
                channel,
                channel,
                channel,
                channel,
                data_format=data_format,
                epsilon=0.01,
                exponential_avg_factor=factor,
                options={"grad": 2 if small else 0},
            )
        NORM.case(
            shape,
            channel,
            channel,
            channel,
            channel,
            data_format=data_format,
            epsilon=0.01,
            is_training=False,
            options={"grad": 2 if small else 0},
        )
        for training in (True, False):
            GRAD.case(shape, shape, channel, channel, channel, data_format=data_format, epsilon=0.01, is_training=training)
# A mean a thousand times the deviation costs digits of x itself, and no more.
NORM.case(rand((4, 5, 5, 3), 999, 1001), *[rand((3,), 0.5, 1.5)] * 4, options={"grad": 0, "ulps": 8000})
# Empty images; the old estimates may be left out where they are not read.
NORM.case((2, 3, 2, 4), (4,), (4,), (0,), (0,), options={"grad": 0})
NORM.case((0, 3, 2, 4), *[rand((4,), 0.5, 1.5)] * 4, is_training=False, options={"grad": 0})
for half in ("float16", "bfloat16"):
    # 16-bit images have statistics in float32.
    values = per_channel(5).astype(np.float32)
    NORM.case(T(spread((3, 4, 4, 5))), *values, epsilon=0.01, options={"dtypes": (half,), "grad": 0})
    GRAD.case((3, 4, 4, 5), T(spread((3, 4, 4, 5))), values[0], values[2], values[3], epsilon=0.01, options={"dtypes": (half,)})
NORM.error("InvalidArgument", "scale must have one element per channel, 4, got shape", (2, 3, 2, 4), (3,), (4,), (4,), (4,))
NORM.error("InvalidArgument", "mean must have one element per channel", (2, 3, 2, 4), (4,), (4,), (0,), (0,), is_training=False)
NORM.error("InvalidArgument", "rank", (3, 2, 4), (4,), (4,), (4,), (4,))
GRAD.error("InvalidArgument", "y_backprop and x", (2, 3, 2, 4), (2, 3, 3, 4), (4,), (4,), (4,))
GRAD.error("InvalidArgument", "reserve_space_2 must have one", (2, 3, 2, 4), (2, 3, 2, 4), (4,), (4,), (3,))


def window_sum(x, radius):
    n = x.shape[-1]
    return np.stack([x[..., max(0, i - radius) : i + radius + 1].sum(-1) for i in range(n)], -1) if n else x


def lrn(x, depth_radius=5, bias=1.0, alpha=1.0, beta=0.5):
    return x / (bias + alpha * window_sum(x * x, depth_radius)) ** beta


def lrn_grad(g, x, y, depth_radius=5, bias=1.0, alpha=1.0, beta=0.5):
    n = bias + alpha * window_sum(x * x, depth_radius)
    return g * n**-beta - 2 * alpha * beta * x * window_sum(g * y / n, depth_radius)


LRN = op("LRN", lrn, dtypes=FLOATS, norm=True, ulps=16, grad=2, grad_tolerance=1e-5)
# output_image is a function of input_image, so the gradient with respect to the latter alone is no difference quotient: it
# is checked as the second gradient of LRN.
LRN_GRAD = op("LRNGrad", lrn_grad, dtypes=FLOATS, norm=True, ulps=16, grad=1, wrt=[0])
for shape in ((1, 2, 2, 5), (2, 1, 3, 1), (1, 1, 1, 20)):
    for attrs in (
        {},
        {"depth_radius": 2, "bias": 2.0, "alpha": 0.1, "beta": 0.75},
        {"depth_radius": 1, "alpha": 0.3, "beta": 1.0},
        {"depth_radius": 0, "bias": 1.5, "alpha": 0.2, "beta": 0.6},
    ):
        LRN.case(shape, **attrs)
        LRN_GRAD.case(shape, shape, shape, **attrs)
LRN.case((3, 9, 9, 33), options={"grad": 0}).case((2, 3, 3, 0)).case((0, 3, 3, 4)).case((2, 0, 3, 4))
LRN.error("InvalidArgument", "rank", (3, 2, 4))
LRN.error("InvalidArgument", "depth_radius must not be negative", (1, 3, 2, 4), depth_radius=-1)
LRN_GRAD.error("InvalidArgument", "input_grads has shape", (1, 2, 2, 4), (1, 2, 2, 5), (1, 2, 2, 5))
