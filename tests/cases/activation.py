# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/activation.cc. Oracles: the functions' definitions in NumPy and SciPy."""

import numpy as np
from scipy import special

from harness import FLOATS, REALS, SHAPES, T, op

SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772
BOTH = [((), ()), ((0,), (0,)), ((7,), (7,)), ((33,), (33,)), ((2, 3, 5), (2, 3, 5))]
MISMATCH = ("InvalidArgument", "shapes of gradients", (2,), (3,))


def elu(x):
    return np.where(x < 0, np.expm1(np.minimum(x, 0)), x)


def relu6(x):
    return np.minimum(np.maximum(x, x.dtype.type(0)), x.dtype.type(6))


def gelu(x, approximate):
    if approximate:
        return x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2
    return x * special.ndtr(x)


def gelu_slope(x, approximate):
    if approximate:
        inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
        slope = np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x**2)
        return (1 + np.tanh(inner)) / 2 + x / 2 * slope / np.cosh(inner) ** 2
    return special.ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


op("Relu", lambda x: np.maximum(x, x.dtype.type(0)), dtypes=REALS, domain=(-9, 9), grad=2).cases_of(
    *SHAPES
).special([np.nan, np.inf, -np.inf, 1e-45, -1e-45, 0.0, 3.0])
op("Relu6", relu6, dtypes=REALS, domain=(-3, 12), grad=2).cases_of(*SHAPES).special(
    [np.nan, np.inf, -np.inf, 1e-45, 6.0, 6.000001, 0.0]
)
op(
    "LeakyRelu",
    lambda x, alpha=0.2: np.where(x > 0, x, alpha * x),
    dtypes=FLOATS,
    grad=2,
).cases_of(*SHAPES).case((33,), alpha=0.01).case((5,), alpha=-1.5).special()
op("Elu", elu, dtypes=FLOATS, grad=2).cases_of(*SHAPES).special().special([-1e-4, -20, -100, 88])
op("Selu", lambda x: SCALE * np.where(x < 0, ALPHA * elu(x), x), dtypes=FLOATS, grad=2).cases_of(
    *SHAPES
).special([np.inf, -np.inf, np.nan, -1e-4, -20, 5])
op("Softplus", lambda x: np.logaddexp(0, x), dtypes=FLOATS, grad=2).cases_of(*SHAPES).special()
op("Softsign", lambda x: x / (1 + np.abs(x)), dtypes=FLOATS, grad=2).cases_of(*SHAPES).special(
    [0.0, -0.0, np.nan, 1e30, -1e30]
)
# Far out on the negative side float32's Gelu is 0 where the exact one is below 1e-8.
for approximate in (False, True):
    if not approximate:
        cases = op("Gelu", gelu, dtypes=FLOATS, ulps=8, half_ulps=1.5, slack=2e-8, grad=2)
    cases.cases_of(*SHAPES, approximate=approximate).case(
        T(np.linspace(-8, 8, 301)), approximate=approximate, options={"grad": 0}
    ).special([0.0, 9.0, 100.0, np.inf, np.nan, -5.0], approximate=approximate)

op("ReluGrad", lambda g, x: np.where(x > 0, g, g.dtype.type(0)), dtypes=REALS, grad=2).cases_of(
    *BOTH
).error(*MISMATCH)
op(
    "Relu6Grad",
    lambda g, x: np.where((x > 0) & (x < 6), g, g.dtype.type(0)),
    dtypes=REALS,
    domain=(-3, 12),
    grad=2,
).cases_of(*BOTH).error(*MISMATCH)
op(
    "LeakyReluGrad",
    lambda g, x, alpha=0.2: np.where(x > 0, g, alpha * g),
    dtypes=FLOATS,
    grad=2,
).cases_of(*BOTH).case((33,), (33,), alpha=0.01).error(*MISMATCH)
op(
    "EluGrad", lambda g, y: np.where(y < 0, g * (y + 1), g), dtypes=FLOATS, norm=True, grad=2
).cases_of(*BOTH).error(*MISMATCH)
op(
    "SeluGrad",
    lambda g, y: np.where(y < 0, g * (y + SCALE * ALPHA), g * SCALE),
    dtypes=FLOATS,
    norm=True,
    grad=2,
).cases_of(*BOTH).error(*MISMATCH)
op("SoftplusGrad", lambda g, x: g * special.expit(x), dtypes=FLOATS, grad=2).cases_of(*BOTH).error(
    *MISMATCH
)
op("SoftsignGrad", lambda g, x: g / (1 + np.abs(x)) ** 2, dtypes=FLOATS, grad=2).cases_of(
    *BOTH
).error(*MISMATCH)
cases = op(
    "GeluGrad",
    lambda g, x, approximate=False: g * gelu_slope(x, approximate),
    dtypes=FLOATS,
    ulps=8,
    half_ulps=1.5,
    norm=True,
    slack=2e-7,
    grad=2,
)
cases.cases_of(*BOTH).cases_of(*BOTH, approximate=True).error(*MISMATCH)
