# SPDX-License-Identifier: Apache-2.0
"""Gradients of functions where their derivative has a pole or is not defined: what arrives as 0
goes on as 0, for the first and for the second gradient. Why: docs/decisions/poles.md."""

import numpy as np
import pytest

import treenail as tn

# A function of one variable, where its derivative is infinite or NaN, and a place where it is not.
UNARY = {
    "sqrt": (tn.sqrt, [0.0, -1.0], 2.0),
    "rsqrt": (tn.rsqrt, [0.0, -1.0], 2.0),
    "reciprocal": (tn.reciprocal, [0.0], 2.0),
    "log": (tn.log, [0.0, -1.0], 2.0),
    "log1p": (tn.log1p, [-1.0, -3.0], 0.5),
    "tan": (lambda x: tn.tan(1 / x), [0.0], 2.0),
    "asin": (tn.asin, [1.0, -1.0, 2.0], 0.5),
    "acos": (tn.acos, [1.0, -1.0, 2.0], 0.5),
    "acosh": (tn.acosh, [1.0, 0.0], 2.0),
    "atanh": (tn.atanh, [1.0, -1.0, 2.0], 0.5),
    "lgamma": (tn.lgamma, [0.0, -1.0, -2.0], 0.5),
    "digamma": (tn.digamma, [0.0, -1.0, -2.0], 1.5),
    "polygamma": (lambda x: tn.polygamma(tn.constant(1.0, x.dtype), x), [0.0, -1.0], 1.5),
    "zeta": (lambda x: tn.zeta(tn.constant(3.0, x.dtype), x), [0.0, -1.0, -0.5], 1.5),
    "erfinv": (tn.math.erfinv, [1.0, -1.0, 2.0], 0.5),
    "ndtri": (tn.math.ndtri, [0.0, 1.0, 2.0], 0.75),
    "bessel_i1e": (tn.math.bessel_i1e, [np.inf], 0.5),
    "igamma": (lambda x: tn.igamma(tn.constant(0.5, x.dtype), x), [0.0, -1.0], 0.5),
    "igammac": (lambda x: tn.igammac(tn.constant(0.5, x.dtype), x), [0.0, -1.0], 0.5),
    "betainc": (lambda x: tn.betainc(tn.constant(0.5, x.dtype), tn.constant(0.5, x.dtype), x),
                [0.0, 1.0, 2.0], 0.75),
    "exp": (tn.exp, [1000.0], 0.5),
    "expm1": (tn.expm1, [1000.0], 0.5),
    "sinh": (tn.sinh, [1000.0, -1000.0], 0.5),
    "cosh": (tn.cosh, [1000.0, -1000.0], 0.5),
    "x ** 0.5": (lambda x: x ** 0.5, [0.0, -1.0], 2.0),
    "x ** -1": (lambda x: x ** -1.0, [0.0], 2.0),
    "x ** x": (lambda x: x ** x, [0.0, -0.5], 2.0),
    "2 ** (1 / x)": (lambda x: tn.pow(tn.constant(2.0, x.dtype), 1 / x), [0.0], 2.0),
    "1 / x": (lambda x: 1 / x, [0.0], 2.0),
    "x / (x - 1)": (lambda x: x / (x - 1), [1.0], 2.0),
    "x // 1, x % (x - 1)": (lambda x: x % (x - 1), [1.0], 2.75),
    "mod": (lambda x: tn.mod(x, x - 1), [1.0], 2.75),
    "div_no_nan": (lambda x: tn.div_no_nan(x, x - 1), [1.0], 2.0),
    "xdivy": (lambda x: tn.math.xdivy(x, x - 1), [1.0], 2.0),
    "xlogy": (lambda x: tn.math.xlogy(1 - x, x), [0.0, -1.0], 2.0),
    "atan2": (lambda x: tn.atan2(x, 2 * x), [0.0], 2.0),
    "norm": (lambda x: tn.reduce_euclidean_norm(
        tn.stack([x, 2 * x]), 0), [0.0], 2.0),
    "sqrt of a sum of squares": (lambda x: tn.sqrt(x * x + 4 * x * x), [0.0], 2.0),
    "log_sigmoid": (tn.log_sigmoid, [1000.0, -1000.0], 0.5),
    "reduce_std": (lambda x: tn.sqrt(tn.math.reduce_variance(tn.stack([x, 2 * x]), 0)), [0.0], 2.0),
}


def masked(name):
    """x with the places, the function's values where x is regular and 0 elsewhere, the mask."""
    function, poles, regular = UNARY[name]
    x = tn.constant([*poles, regular], tn.float64)
    mask = tn.constant([False] * len(poles) + [True])
    return x, tn.where(mask, function(x), 0 * x), len(poles)


def differences(name, order):
    """The derivative at the regular place, by central differences of the function."""
    function, _, at = UNARY[name]
    h = 1e-5 if order == 1 else 1e-3
    points = tn.constant([at - h, at, at + h], tn.float64)
    with tn.Session() as sess:
        low, middle, high = sess.run(function(points))
    return (high - low) / (2 * h) if order == 1 else (high - 2 * middle + low) / h ** 2


@pytest.mark.parametrize("name", UNARY)
def test_a_gradient_of_0_stays_0_at_a_pole(name, evaluate):
    x, y, poles = masked(name)
    first = tn.gradients(y, x)[0]
    second = tn.gradients(first, x)[0]
    found, again = evaluate([first, tn.zeros_like(x) if second is None else second])
    np.testing.assert_array_equal(found[:poles], np.zeros(poles))
    np.testing.assert_array_equal(again[:poles], np.zeros(poles))
    np.testing.assert_allclose(found[-1], differences(name, 1), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(again[-1], differences(name, 2), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("function,at,wanted", [
    (tn.sqrt, 0.0, np.inf), (tn.log, 0.0, np.inf), (tn.log1p, -1.0, np.inf),
    (tn.reciprocal, 0.0, -np.inf), (tn.rsqrt, 0.0, -np.inf), (tn.asin, 1.0, np.inf),
    (tn.acos, 1.0, -np.inf), (tn.acosh, 1.0, np.inf), (tn.atanh, 1.0, np.inf),
    (lambda x: x ** 0.5, 0.0, np.inf), (lambda x: x ** 0.0, 0.0, 0.0),
    (lambda x: 3 / x, 0.0, -np.inf),
    (tn.sqrt, -1.0, np.nan), (tn.exp, 1000.0, np.inf)])
def test_another_gradient_meets_the_pole(function, at, wanted, evaluate):
    x = tn.constant(at, tn.float64)
    np.testing.assert_equal(evaluate(tn.gradients(function(x), x)[0]), wanted)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "complex128"])
def test_the_rule_holds_for_every_dtype(dtype, evaluate):
    for function in (tn.sqrt, tn.log, tn.reciprocal, tn.rsqrt, lambda x: x / x):
        x = tn.cast(tn.constant([0.0, 4.0]), dtype)
        y = tn.where([False, True], function(x), tn.zeros_like(x))
        gradient = tn.gradients(y, x, grad_ys=tn.ones_like(y))[0]
        found = evaluate(tn.cast(gradient, tn.complex128))
        assert found[0] == 0 and np.isfinite(found[1])


def test_an_angle_of_0_gets_nothing(evaluate):
    z = tn.constant([0j, 1 + 1j], tn.complex128)
    y = tn.where([False, True], tn.angle(z), tn.zeros([2], tn.float64))
    np.testing.assert_allclose(evaluate(tn.gradients(y, z)[0]), [0, (-1 + 1j) / 2])


@pytest.mark.parametrize("name", ["sqrt", "log", "reciprocal", "asin", "x ** 0.5", "exp"])
def test_a_gradient_is_linear_in_what_arrives_also_at_0(name, evaluate):
    """The derivative of the gradient by what arrives, where that is 0, is still the function's:
    forward mode is made of two reverse ones so."""
    function, _, at = UNARY[name]
    x = tn.constant(at, tn.float64)
    arriving = tn.constant(0.0, tn.float64)
    gradient = tn.gradients(function(x), x, grad_ys=arriving)[0]
    forward = tn.gradients(gradient, arriving, grad_ys=tn.constant(2.0, tn.float64))[0]
    np.testing.assert_allclose(evaluate(forward), 2 * differences(name, 1), rtol=1e-6)


def test_multiply_no_nan(evaluate):
    x = tn.constant([np.inf, np.nan, 3.0, 3.0, np.inf])
    y = tn.constant([0.0, 0.0, 0.0, 2.0, 2.0])
    np.testing.assert_array_equal(evaluate(tn.math.multiply_no_nan(x, y)), [0, 0, 0, 6, np.inf])
    gx, gy = tn.gradients(tn.math.multiply_no_nan(x, y), [x, y])
    np.testing.assert_array_equal(evaluate(gx), [0, 0, 0, 2, 2])
    np.testing.assert_array_equal(evaluate(gy), [np.inf, np.nan, 3, 3, np.inf])
