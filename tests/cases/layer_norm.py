# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/layer_norm.cc. Oracle: the paper's formula in NumPy, in float64."""

import numpy as np

from harness import T, no_gradient_case, op, rand


def layer_norm(x, scale, offset, epsilon=1e-5):
    with np.errstate(all="ignore"):
        mean = x.sum(axis=-1) / x.shape[-1] if x.shape[-1] else np.full(x.shape[:-1], np.nan)
        deviation = x - mean[..., None]
        variance = (deviation**2).sum(axis=-1) / x.shape[-1] if x.shape[-1] else mean
        inverse = 1 / np.sqrt(variance + epsilon)
        return deviation * inverse[..., None] * scale + offset, mean, inverse


def layer_norm_grad(dy, x, scale, mean, inverse):
    rows = tuple(range(x.ndim - 1))
    h = (x - mean[..., None]) * inverse[..., None]
    u = dy * scale
    if not x.shape[-1]:
        return u, u.sum(rows), u.sum(rows)
    across = (u * h).mean(-1, keepdims=True)
    dx = inverse[..., None] * (u - u.mean(-1, keepdims=True) - h * across)
    return dx, (dy * h).sum(rows), dy.sum(rows)


NORM = op("LayerNorm", layer_norm, norm=True, ulps=100, grad=2, grad_tolerance=1e-5)
# x_backprop depends on x also through mean and deviation, so differences in x alone disagree.
GRAD = op("LayerNormGrad", layer_norm_grad, norm=True, ulps=100, grad=0)
no_gradient_case("LayerNormGrad", "the second gradient of LayerNorm is its gradient")
SHAPES = ((4,), (2, 3), (3, 1), (2, 2, 7), (5, 8), (3, 33), (1, 2, 1, 16), (0, 4), (0, 2, 3))
for shape in SHAPES:
    vector = rand(shape[-1:], 0.5, 1.5)
    rows = rand(shape[:-1], 0.5, 1.5)
    NORM.case(shape, vector, vector, epsilon=0.01)
    GRAD.case(shape, shape, vector, rows, rows)
for shape in ((40, 256), (7, 1000), (300, 65), (5, 2500)):
    vector, rows = rand(shape[-1:], 0.5, 1.5), rand(shape[:-1], 0.5, 1.5)
    NORM.case(shape, vector, vector, options={"grad": 0})
    GRAD.case(shape, shape, vector, rows, rows)
NORM.case((3, 0), (0,), (0,), options={"grad": 0})
GRAD.case((3, 0), (3, 0), (0,), (3,), (3,))
# A mean a thousand times the deviation costs digits of x itself, and no more.
NORM.case(rand((4, 50), 999, 1001), *[rand((50,), 0.5, 1.5)] * 2, options={"grad": 0, "ulps": 8000})
SINGLE = {"dtypes": ("float32", "float64"), "grad": 0}
NORM.case(T([[np.nan, 1.0, 2.0], [1.0, 2.0, 3.0]]), (3,), (3,), options=SINGLE)
for half in ("float16", "bfloat16"):
    # 16-bit rows have statistics in float32.
    values = np.random.default_rng(5).uniform(0.5, 1.5, (2, 5)).astype(np.float32)
    x = T(np.round(np.random.default_rng(6).normal(size=(6, 5)) * 4) / 4)
    statistics = np.random.default_rng(7).uniform(0.5, 1.5, (2, 6)).astype(np.float32)
    NORM.case(x, *values, epsilon=0.01, options={"dtypes": (half,), "grad": 0})
    GRAD.case((6, 5), x, values[0], *statistics, options={"dtypes": (half,)})
NORM.error("InvalidArgument", "rank", (), (1,), (1,))
NORM.error("InvalidArgument", r"scale must have one element per element of x's last axis, 4", (3, 4), (3,), (4,))
NORM.error("InvalidArgument", "offset must have one element per element", (3, 4), (4,), (5,))
NORM.error("InvalidArgument", "rank", (3, 4), (1, 4), (4,))
GRAD.error("InvalidArgument", "y_backprop and x", (2, 3), (2, 4), (3,), (2,), (2,))
GRAD.error("InvalidArgument", "mean", (2, 3), (2, 3), (3,), (3,), (2,))
GRAD.error("InvalidArgument", "inverse_deviation", (2, 3), (2, 3), (3,), (2,), (1,))
