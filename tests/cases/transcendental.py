# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/transcendental.cc. Oracles: NumPy and SciPy in float64, complex128."""

import numpy as np
from scipy import special

from harness import COMPLEX, FLOATS, SHAPES, op

WITH_COMPLEX = FLOATS + COMPLEX


def function(name, oracle, dtypes, low, high, **options):
    """Shapes within [low, high); no gradients for the large ones."""
    options.setdefault("ulps", 4)
    cases = op(name, oracle, dtypes=dtypes, domain=(low, high), grad=2, **options)
    return cases.cases_of(*SHAPES).case((4, 257), options={"grad": 0})


def sigmoid(x):
    return special.expit(x) if x.dtype.kind != "c" else 1 / (1 + np.exp(-x))


function("Exp", np.exp, WITH_COMPLEX, -4, 4).special().special(
    [88.7, 88.8, -87.3, -88, -100, -103.9, -104.5, 709.7, 710, -745, -746, 1e-10]
)
function("Expm1", np.expm1, WITH_COMPLEX, -3, 3).special().special(
    [1e-5, -1e-5, 1e-9, 0.3, -0.3, 88.7, 88.8, -20, -100, 709.7]
)
function("Log", np.log, WITH_COMPLEX, 0.2, 5).special().special(
    [1.0, 0.99999994, 1.0000001, 0.70710677, 0.70710683, 1.4142135, 2.0, 1e-38, 1.2e-38]
)
function("Log1p", np.log1p, WITH_COMPLEX, -0.6, 3).special().special(
    [1e-5, -1e-5, 1e-9, -0.99999994, -1.5, 9.9e-6, 1.01e-5]
)
function("Sigmoid", sigmoid, WITH_COMPLEX, -3, 3).special().special([-90.0, -103.0, 20, 100, -17])
function("Tanh", np.tanh, WITH_COMPLEX, -2, 2).special().special(
    [0.6249, 0.6251, 1e-4, 9.0, 20.0, -50.0, 1e-8]
)
function("Erf", special.erf, FLOATS, -3, 3).special().special(
    [0.9299, 0.9301, 4.09, 4.11, -4, 1e-4, 6]
)
function("Erfc", special.erfc, FLOATS, -3, 3, slack=0, ulps=8).special([0, np.inf, -np.inf, 6, 9])
function("Sin", np.sin, WITH_COMPLEX, -3, 3).special().special(
    [3.1415927, 6.2831855, 1.5707964, 100.5, 1e5, 999999, 1000001, 1e10, 3e38, 1e-5]
)
function("Cos", np.cos, WITH_COMPLEX, -3, 3).special().special(
    [3.1415927, 6.2831855, 1.5707964, 100.5, 1e5, 999999, 1000001, 1e10, 3e38, 1e-5]
)
function("Tan", np.tan, WITH_COMPLEX, -1, 1).special().special(
    [3.1415927, 1.5707964, 100.5, 999999, 1e10, 1e-5]
)
function("Asin", np.arcsin, WITH_COMPLEX, -0.9, 0.9).special()
function("Acos", np.arccos, WITH_COMPLEX, -0.9, 0.9).special()
function("Atan", np.arctan, WITH_COMPLEX, -2, 2).special()
function("Sinh", np.sinh, WITH_COMPLEX, -2, 2).special().special(
    [0.00999, 0.01001, 1e-5, 89, 90, 710]
)
function("Cosh", np.cosh, WITH_COMPLEX, -2, 2).special().special([1e-5, 89, -90, 710])
function("Asinh", np.arcsinh, WITH_COMPLEX, -2, 2).special().special([9.9e-5, 1.01e-4, 1e-8, 1e20])
function("Acosh", np.arccosh, WITH_COMPLEX, 1.2, 4).special().special([1.0000001, 0.99, 1e20])
function("Atanh", np.arctanh, WITH_COMPLEX, -0.8, 0.8).special().special(
    [9.9e-5, 1.01e-4, 0.99999994]
)

BOTH = [((), ()), ((0,), (0,)), ((33,), (33,)), ((2, 3), (2, 3))]
GRAD = {"dtypes": WITH_COMPLEX, "domain": (-0.8, 0.8), "grad": 2}
op("TanhGrad", lambda y, dy: dy * (1 - y * y), **GRAD).cases_of(*BOTH).error(
    "InvalidArgument", "shapes of y and dy", (2,), (3,)
)
op("SigmoidGrad", lambda y, dy: dy * y * (1 - y), **GRAD).cases_of(*BOTH).error(
    "InvalidArgument", "shapes of y and dy", (2,), (3,)
)
