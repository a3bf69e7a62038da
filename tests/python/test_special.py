# SPDX-License-Identifier: Apache-2.0
"""Special functions and operations on bits, under their public names."""

import numpy as np
import pytest
from scipy import special

import treenail as tn


@pytest.fixture
def evaluate():
    with tn.Graph().as_default(), tn.Session() as session:
        yield session.run


def test_bits(evaluate):
    x, y = np.array([5, -7, 127], np.int8), np.array([3, 1, 9], np.int8)
    np.testing.assert_array_equal(evaluate(tn.bitwise.bitwise_and(x, y)), x & y)
    np.testing.assert_array_equal(evaluate(tn.bitwise.bitwise_or(x, y)), x | y)
    np.testing.assert_array_equal(evaluate(tn.bitwise.bitwise_xor(x, y)), x ^ y)
    np.testing.assert_array_equal(evaluate(tn.bitwise.invert(x)), ~x)
    np.testing.assert_array_equal(evaluate(tn.bitwise.left_shift(x, y)), [40, -14, -128])
    np.testing.assert_array_equal(evaluate(tn.bitwise.right_shift(x, y)), [0, -4, 0])
    np.testing.assert_array_equal(evaluate(tn.raw_ops.PopulationCount(x=x)), [2, 6, 7])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_exclusive_cumulative_logsumexp_begins_with_the_lowest_number(evaluate, dtype):
    dtype = tn.as_dtype(dtype)
    x = tn.constant([1.0, 2.0, 3.0], dtype)
    y = tn.math.cumulative_logsumexp(x, exclusive=True)
    first, second, third = evaluate(tn.cast(y, tn.float64))
    assert first == evaluate(tn.cast(tn.constant(dtype.min, dtype), tn.float64))
    np.testing.assert_allclose([second, third], [1.0, 2.3132616875], rtol=1e-2)
    y = tn.math.cumulative_logsumexp(x, exclusive=True, reverse=True)
    assert evaluate(tn.cast(y, tn.float64))[2] == first


def test_gradient_of_cumulative_logsumexp_is_linear_and_finite_for_large_numbers(evaluate):
    x = tn.constant(np.array([-800.0, 700.0, 3000.0, 2999.0]))
    g = np.array([0.0, 2.0, -1.0, 3.0])
    (gx,) = tn.gradients(tn.math.cumulative_logsumexp(x), [x], grad_ys=[tn.constant(g)])
    share = 1 / (1 + np.exp(-1.0))
    np.testing.assert_allclose(evaluate(gx), [0, 2, -1 + 3 * share, 3 * (1 - share)], atol=1e-12)


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_of_exclusive_cumulative_logsumexp_are_those_of_the_other_one_shifted(
        evaluate, reverse):
    x = tn.constant(np.random.RandomState(1).standard_normal((5, 3)))
    g = tn.constant(np.random.RandomState(2).standard_normal((4, 3)))
    inner = slice(None, -1) if reverse else slice(1, None)
    outer = slice(1, None) if reverse else slice(None, -1)
    shifted = tn.math.cumulative_logsumexp(x, reverse=reverse)[outer]
    exclusive = tn.math.cumulative_logsumexp(x, exclusive=True, reverse=reverse)[inner]
    first = [tn.gradients(y, [x], grad_ys=[g])[0] for y in (exclusive, shifted)]
    second = [tn.gradients(tn.sin(first), [x])[0] for first in first]
    for one, other in (evaluate(first), evaluate(second)):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_shapes_are_ensured_in_every_run():
    with tn.Graph().as_default(), tn.Session() as session:
        x = tn.placeholder(tn.float32)
        y = tn.ensure_shape(x, [None, 3])
        assert y.shape.as_list() == [None, 3]
        assert session.run(y, {x: np.ones((2, 3))}).shape == (2, 3)
        with pytest.raises(tn.errors.InvalidArgumentError, match=r"\[2,4\] is not compatible"):
            session.run(y, {x: np.ones((2, 4))})
        with pytest.raises(tn.errors.InvalidArgumentError, match=r"\[3\] is not compatible"):
            session.run(y, {x: np.ones(3)})


def test_nextafter(evaluate):
    np.testing.assert_array_equal(
        evaluate(tn.math.nextafter(np.float32([1, 0, np.inf]), np.float32([2, -1, 0]))),
        np.nextafter(np.float32([1, 0, np.inf]), np.float32([2, -1, 0])))


def test_names_of_special_functions(evaluate):
    x = np.array([[0.3, 1.7, 4.2]])
    for name in ("lgamma", "digamma", "polygamma", "zeta", "lbeta", "igamma", "igammac", "betainc"):
        assert getattr(tn, name) and getattr(tn.math, name)
    np.testing.assert_allclose(evaluate(tn.lgamma(x)), special.gammaln(x), rtol=1e-13)
    np.testing.assert_allclose(evaluate(tn.math.digamma(x)), special.psi(x), rtol=1e-13)
    np.testing.assert_allclose(evaluate(tn.polygamma(2.0, x)), special.polygamma(2, x), rtol=1e-13)
    np.testing.assert_allclose(evaluate(tn.zeta(2.5, x)), special.zeta(2.5, x), rtol=1e-13)
    np.testing.assert_allclose(evaluate(tn.math.bessel_i0(x)), special.i0(x), rtol=1e-13)
    np.testing.assert_allclose(evaluate(tn.math.bessel_i1(-x)), special.i1(-x), rtol=1e-13)
    np.testing.assert_allclose(evaluate(tn.math.erfinv(x / 5)), special.erfinv(x / 5), rtol=1e-13)
    np.testing.assert_allclose(evaluate(tn.math.ndtri(x / 5)), special.ndtri(x / 5), rtol=1e-13)


def test_zeta_is_0_where_no_term_is_representable(evaluate):
    # Not after thousands of millions of terms, each of them 0.
    s, q = np.array([2.0 ** 63, 6000.0, 1e300]), np.array([2.0 ** 31, 1e3, 5e299])
    assert evaluate(tn.zeta(s, q)).tolist() == [0, 0, 0]
    assert evaluate(tn.zeta(np.float32(2.0 ** 63), np.float32(2.0 ** 31))) == 0


def test_lbeta(evaluate):
    x = np.array([[0.5, 1.5], [2.0, 3.0]])
    np.testing.assert_allclose(evaluate(tn.lbeta(x)), special.betaln(x[:, 0], x[:, 1]), rtol=1e-13)
    assert evaluate(tn.lbeta(np.zeros((2, 0)))).tolist() == [-np.inf, -np.inf]
    x = tn.constant([2.0, 3.0, 4.0], tn.float64)
    (gradient,) = tn.gradients(tn.lbeta(x), [x])
    np.testing.assert_allclose(evaluate(gradient), special.psi([2, 3, 4]) - special.psi(9))


@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_half_width_gradients(evaluate, name):
    x = tn.constant([0.5, 2.5], tn.bfloat16)
    (gradient,) = tn.gradients(getattr(tn, name)(x), [x])
    assert gradient.dtype == tn.bfloat16
    order = {"lgamma": 0, "digamma": 1}[name]
    np.testing.assert_allclose(evaluate(tn.cast(gradient, tn.float64)),
                               special.polygamma(order, [0.5, 2.5]), rtol=1e-2)


def test_gradients_of_incomplete_gamma_functions(evaluate):
    a, x = tn.constant([0.4, 3.0, 50.0], tn.float64), tn.constant([0.7, 2.0, 60.0], tn.float64)
    of_p = tn.gradients(tn.igamma(a, x), [a, x])
    of_q = tn.gradients(tn.igammac(a, x), [a, x])
    across = [tn.gradients(of_p[0], [x])[0], tn.gradients(of_p[1], [a])[0]]
    p, q, mixed = evaluate([of_p, of_q, across])
    np.testing.assert_allclose(p, -np.array(q), rtol=1e-13)
    np.testing.assert_allclose(mixed[0], mixed[1], rtol=1e-12)
    h = 1e-5
    slope = (special.gammainc([0.4 + h, 3 + h, 50 + h], [0.7, 2, 60])
             - special.gammainc([0.4 - h, 3 - h, 50 - h], [0.7, 2, 60])) / (2 * h)
    np.testing.assert_allclose(p[0], slope, rtol=1e-7)


def test_second_derivative_of_igamma_in_a(evaluate):
    """Against differences of the first."""
    at, x, h = np.array([0.05, 0.4, 3.0, 50.0, 900.0]), np.array([0.3, 1.7, 2.0, 60.0, 880.0]), 1e-5
    points = tn.constant(np.stack([at - h, at, at + h]))
    (first,) = tn.gradients(tn.igamma(points, x), [points])
    (second,) = tn.gradients(first, [points])
    slopes, curves = evaluate([first, second])
    np.testing.assert_allclose(curves[1], (slopes[2] - slopes[0]) / (2 * h), rtol=1e-6)


def test_third_derivative_of_igamma_in_a_is_refused():
    with tn.Graph().as_default():
        a = tn.constant([2.0])
        (first,) = tn.gradients(tn.igamma(a, [1.0]), [a])
        (second,) = tn.gradients(first, [a])
        with pytest.raises(tn.errors.UnimplementedError, match="third derivative of Igamma"):
            tn.gradients(second, [a])
