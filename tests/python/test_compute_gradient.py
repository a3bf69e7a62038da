# SPDX-License-Identifier: Apache-2.0
"""tn.test.compute_gradient against Jacobians that are known."""

import numpy as np
import pytest

import treenail as tn

check = tn.test.compute_gradient


@pytest.fixture(autouse=True)
def session():
    with tn.Session() as session:
        yield session


def test_a_linear_map():
    a = np.arange(6.0).reshape(2, 3)
    x = tn.placeholder(tn.float64, [3, 1])
    theoretical, numerical = check(x, [3, 1], tn.matmul(a, x), [2, 1])
    np.testing.assert_allclose(theoretical, a.T)
    np.testing.assert_allclose(numerical, a.T, rtol=1e-9)


def test_where_it_is_told():
    x = tn.placeholder(tn.float64, [2])
    value = np.array([0.5, 2.0])
    for jacobian in check(x, [2], tn.exp(x), [2], x_init_value=value, delta=1e-5):
        np.testing.assert_allclose(jacobian, np.diag(np.exp(value)), rtol=1e-8)
    assert value.tolist() == [0.5, 2]  # as it was


@pytest.mark.parametrize("dtype, delta, error", [
    (tn.float16, 0.05, 0.1), (tn.float32, 1e-3, 2e-3), (tn.float64, 1e-5, 1e-9),
    (tn.complex64, 1e-3, 5e-3), (tn.complex128, 1e-5, 1e-9)])
def test_errors_of_dtypes(dtype, delta, error):
    x = tn.placeholder(dtype, [2, 2])
    for y in (x * x, tn.tanh(x) if not dtype.is_complex else tn.exp(x), tn.matmul(x, x)):
        assert tn.test.compute_gradient_error(x, [2, 2], y, [2, 2], delta=delta) < error


def test_parts_of_complex_numbers():
    z = tn.placeholder(tn.complex128, [1])
    y = z * (2 + 3j)
    for jacobian in check(z, [1], y, [1], delta=1e-4):
        np.testing.assert_allclose(jacobian, [[2, 3], [-3, 2]], atol=1e-9)
    for jacobian in check(z, [1], tn.abs(z), [1], x_init_value=[3 + 4j], delta=1e-5):
        np.testing.assert_allclose(jacobian, [[0.6], [0.8]], atol=1e-9)
    a = tn.placeholder(tn.float64, [1])
    for jacobian in check(a, [1], tn.complex(a, a * 2), [1]):
        np.testing.assert_allclose(jacobian, [[1, 2]], atol=1e-9)


def test_several_and_what_they_need(session):
    v = tn.Variable(np.array([2.0, 3.0]))
    a, b, c = (tn.placeholder(tn.float64, [2]) for _ in range(3))
    found = check([a, b], [[2], [2]], a * b * v * c, [2], x_init_value=[[1.0, 2.0], [3.0, 4.0]],
                  init_targets=[v.initializer], extra_feed_dict={c: [10.0, 10.0]})
    assert isinstance(found, list) and len(found) == 2
    for (theoretical, numerical), expected in zip(found, ([60, 120], [20, 60])):
        np.testing.assert_allclose(theoretical, np.diag(expected))
        np.testing.assert_allclose(numerical, np.diag(expected), rtol=1e-9)


def test_gathered_rows_are_made_dense():
    x = tn.placeholder(tn.float64, [3])
    theoretical, _ = check(x, [3], tn.gather(x, [2, 0]), [2])
    assert theoretical.tolist() == [[0, 1], [0, 0], [1, 0]]


def test_an_error_is_found():
    wrong = tn.custom_gradient(lambda x: (x * x, lambda dy: dy * 3.0))
    x = tn.placeholder(tn.float64, [2])
    error = tn.test.compute_gradient_error(x, [2], wrong(x), [2], x_init_value=[1.0, 2.5])
    assert error == pytest.approx(2.0)
    broken = tn.custom_gradient(lambda x: (x * x, lambda dy: dy * np.nan))
    assert np.isnan(tn.test.compute_gradient_error(x, [2], broken(x), [2]))
    empty = tn.placeholder(tn.float64, [0])
    assert tn.test.compute_gradient_error(empty, [0], empty * 2, [0]) == 0


def test_a_loop_and_a_branch():
    x = tn.placeholder(tn.float64, [3])
    y = tn.while_loop(lambda i, _: i < 4, lambda i, y: (
        i + 1, tn.cond(tn.equal(i % 2, 0), lambda: tn.sin(y) * x, lambda: y * y + x)), [0, x])[1]
    assert tn.test.compute_gradient_error(x, [3], y, [3], delta=1e-6) < 1e-8


@pytest.mark.parametrize("call, error, text", [
    (lambda x, y: check(3, [2], y, [2]), TypeError, "x must be a Tensor"),
    (lambda x, y: check(x, [2], "y", [2]), TypeError, "y must be a Tensor"),
    (lambda x, y: check(x, [3], y, [2]), ValueError, r"x_shape is \(3,\), but x has shape"),
    (lambda x, y: check(x, [2], y, [None]), ValueError, "y_shape must be fully known"),
    (lambda x, y: check(x, [2], tn.cast(y, tn.int32), [2]), TypeError, "y has dtype int32"),
    (lambda x, y: check(x, [2], tn.ones([2]), [2]), ValueError, "no path of differentiable"),
    (lambda x, y: check(x, [2], y, [2], x_init_value=[1.0]), ValueError, "x_init_value has shape"),
    (lambda x, y: check(x, [2], y, [2], delta=0), ValueError, "delta must be a positive number"),
    (lambda x, y: check([x, x], [[2]], y, [2]), ValueError, "lists of as many, not of 2, 1"),
    (lambda x, y: check(x, [2], y, [2], extra_feed_dict=3), TypeError, "extra_feed_dict must be"),
])
def test_what_is_refused(call, error, text):
    x = tn.placeholder(tn.float32, [2])
    with pytest.raises(error, match=text):
        call(x, x * 2)


def test_a_session_is_needed(session):
    with tn.Graph().as_default():
        x = tn.placeholder(tn.float32, [2])
        with pytest.raises(ValueError, match="it runs another graph"):
            check(x, [2], x * 2, [2])


def test_other_names_say_what_to_use():
    with pytest.raises(AttributeError, match="unittest.TestCase"):
        tn.test.TestCase
