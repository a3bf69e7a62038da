# SPDX-License-Identifier: Apache-2.0
"""Jacobians, Hessians and products with them, against closed forms in NumPy."""

import numpy as np
import pytest

import treenail as tn


def run(fetches, feeds=None):
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        return sess.run(fetches, feeds)


# --- Jacobians ------------------------------------------------------------------------------------

@pytest.mark.parametrize("known", [True, False])
def test_the_jacobian_of_a_product(known):
    rng = np.random.RandomState(0)
    a, b = rng.randn(2, 3), rng.randn(3, 4)
    x = tn.placeholder(tn.float64, [2, 3] if known else None)
    y = tn.placeholder(tn.float64, [3, 4] if known else [None, None])
    got = tn.jacobian(tn.matmul(x, y), [x, y])
    if known:
        assert [g.shape.as_list() for g in got] == [[2, 4, 2, 3], [2, 4, 3, 4]]
    by_x, by_y = run(got, {x: a, y: b})
    np.testing.assert_allclose(by_x, np.einsum("ik,lj->ijkl", np.eye(2), b), rtol=1e-12)
    np.testing.assert_allclose(by_y, np.einsum("il,jk->ijlk", a, np.eye(4)), rtol=1e-12)


def test_structures_variables_and_none():
    v, x, c = tn.Variable([1.0, 2.0]), tn.constant(3.0), tn.constant(1.0)
    got = tn.jacobian(v * x, {"v": v, "rest": (x, c)})
    assert got["rest"][1] is None
    values = run([got["v"], got["rest"][0]])
    assert values[0].tolist() == [[3, 0], [0, 3]] and values[1].tolist() == [1, 2]
    assert tn.jacobian(v * x, c) is None


def test_of_scalars_and_of_nothing():
    x = tn.placeholder(tn.float64, [None])
    scalar = tn.jacobian(tn.reduce_sum(x ** 2), x)
    empty = tn.jacobian(x * 2, x)
    assert run(scalar, {x: [1, 2]}).tolist() == [2, 4]
    assert run(empty, {x: []}).shape == (0, 0)
    assert run(empty, {x: [1, 2]}).tolist() == [[2, 0], [0, 2]]


def test_gathered_rows():
    table = tn.Variable(np.ones((3, 2)))
    got = run(tn.jacobian(tn.gather(table, [2, 0]), table))
    expected = np.zeros((2, 2, 3, 2))
    expected[0, 0, 2, 0] = expected[0, 1, 2, 1] = expected[1, 0, 0, 0] = expected[1, 1, 0, 1] = 1
    np.testing.assert_array_equal(got, expected)


def step_of_a_network(x, w):
    return tn.tanh(tn.matmul(x, w))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_through_loops_and_branches(count):
    rng = np.random.RandomState(1)
    x, p = tn.placeholder(tn.float64, [1, 3]), tn.placeholder(tn.bool, [])
    w = rng.randn(3, 3)
    looped = tn.while_loop(lambda i, _: i < count, lambda i, y: (
        i + 1, tn.cond(p, lambda: step_of_a_network(y, w), lambda: y)), [0, x])[1]
    value = rng.randn(1, 3)
    expected, y = np.eye(3), value
    for _ in range(count):
        y = np.tanh(y @ w)
        expected = (w * (1 - y ** 2)).T @ expected
    got = run(tn.jacobian(looped, x), {x: value, p: True})
    np.testing.assert_allclose(got.reshape(3, 3), expected, rtol=1e-10)
    np.testing.assert_allclose(run(tn.jacobian(looped, x), {x: value, p: False}).reshape(3, 3),
                               np.eye(3))


def test_in_a_loop_and_in_a_branch():
    x, p = tn.placeholder(tn.float64, [2]), tn.placeholder(tn.bool, [])

    def determinant(y):
        j = tn.jacobian(tn.stack([y[0] * y[1], y[0] + y[1] ** 2]), y)
        return j[0, 0] * j[1, 1] - j[0, 1] * j[1, 0]  # 2 b^2 - a
    chosen = tn.cond(p, lambda: determinant(x), lambda: x[0])
    total = tn.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t + determinant(x * t)),
                          [0, tn.constant(1.0, tn.float64)])[1]
    expected = 1.0
    for _ in range(3):
        expected += 2 * (3 * expected) ** 2 - 2 * expected
    assert run([chosen, total], {x: [2, 3], p: True}) == [16, expected]
    assert run(tn.gradients(chosen, x)[0], {x: [2, 3], p: True}).tolist() == [-1, 12]


def test_the_jacobian_is_differentiable():
    x = tn.placeholder(tn.float64, [2])
    cubes = tn.jacobian(x ** 3, x)
    assert run(tn.gradients(cubes, x)[0], {x: [1, 2]}).tolist() == [6, 12]
    third = tn.jacobian(tn.jacobian(x ** 3, x), x)
    assert third.shape.as_list() == [2, 2, 2]
    expected = np.zeros((2, 2, 2))
    expected[0, 0, 0], expected[1, 1, 1] = 6, 12
    np.testing.assert_allclose(run(third, {x: [1, 2]}), expected)


def test_the_jacobian_of_a_custom_gradient():
    x = tn.placeholder(tn.float64, [2])
    f = tn.custom_gradient(lambda x: (x * x, lambda dy: 7 * dy * x))
    assert run(tn.jacobian(f(x), x), {x: [1, 2]}).tolist() == [[7, 0], [0, 14]]


@pytest.mark.parametrize("known", [True, False])
def test_batches(known):
    rng = np.random.RandomState(2)
    x = tn.placeholder(tn.float64, [3, 2, 2] if known else [None, 2, None])
    w = rng.randn(2, 5)
    y = tn.sin(tn.reshape(tn.tensordot(x, w, 1), [-1, 2, 5]))
    got = tn.batch_jacobian(y, x)
    value = rng.randn(3, 2, 2)
    whole = run(tn.jacobian(y, x), {x: value})
    expected = np.stack([whole[i, :, :, i] for i in range(3)])
    np.testing.assert_allclose(run(got, {x: value}), expected, rtol=1e-12)
    assert got.shape.as_list() == ([3, 2, 5, 2, 2] if known else [None, 2, 5, 2, None])


def test_batches_of_scalars_and_none():
    x = tn.placeholder(tn.float64, [None])
    assert run(tn.batch_jacobian(x ** 2, x), {x: [1, 2, 3]}).tolist() == [2, 4, 6]
    assert tn.batch_jacobian(tn.ones([2, 3]), tn.ones([2, 4])) is None


# --- Hessians -------------------------------------------------------------------------------------

def test_the_hessian_of_a_quadratic_form_of_unknown_size():
    rng = np.random.RandomState(3)
    x, a = tn.placeholder(tn.float64, [None]), tn.placeholder(tn.float64, [None, None])
    y = tn.reduce_sum(x[:, None] * a * x[None, :])
    (hessian,) = tn.hessians(y, x)
    for n in (1, 4):
        value = rng.randn(n, n)
        np.testing.assert_allclose(run(hessian, {x: rng.randn(n), a: value}), value + value.T,
                                   rtol=1e-12)


def test_hessians_of_several_and_of_matrices():
    x, v = tn.placeholder(tn.float64, [2, 2]), tn.Variable(2.0, dtype=tn.float64)
    by_x, by_v = tn.hessians(tn.reduce_sum(x ** 3) * v ** 2, [x, v])
    assert by_x.shape.as_list() == [2, 2, 2, 2] and by_v.shape.as_list() == []
    value = np.array([[1.0, 2.0], [3.0, 4.0]])
    got_x, got_v = run([by_x, by_v], {x: value})
    np.testing.assert_allclose(got_x.reshape(4, 4), np.diag(24 * value.ravel()))
    assert got_v == 2 * (value ** 3).sum()


def test_the_hessian_of_a_loop():
    x = tn.placeholder(tn.float64, [2])
    y = tn.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * x[0] * x[1]),
                      [0, tn.constant(1.0, tn.float64)])[1]
    a, b = 0.5, 2.0  # of (a b)^3
    np.testing.assert_allclose(run(tn.hessians(y, x)[0], {x: [a, b]}), [
        [6 * a * b ** 3, 9 * a ** 2 * b ** 2], [9 * a ** 2 * b ** 2, 6 * a ** 3 * b]])


def test_a_linear_function_has_a_hessian_of_zeros():
    x = tn.placeholder(tn.float32, [None, 2])
    (hessian,) = tn.hessians(tn.reduce_sum(x * 3), x)
    assert not run(hessian, {x: np.ones((2, 2))}).any()
    assert hessian.shape.as_list() == [None, 2, None, 2]


# --- Products -------------------------------------------------------------------------------------

def test_products_with_hessians():
    rng = np.random.RandomState(4)
    x, y = tn.placeholder(tn.float64, [3]), tn.Variable(rng.randn(2))
    loss = tn.reduce_sum(tn.sin(x)[:, None] * tn.exp(y)[None, :]) + tn.reduce_sum(x ** 4)
    u, v = rng.randn(3), rng.randn(2)
    got = run(tn.hessian_vector_product(loss, [x, y], [u, v]), {x: [0.1, 0.2, 0.3]})
    parts = [*tn.hessians(loss, [x, y]), tn.jacobian(tn.gradients(loss, x)[0], y)]
    xx, yy, mixed = run(parts, {x: [0.1, 0.2, 0.3]})
    np.testing.assert_allclose(got[0], xx @ u + mixed @ v, rtol=1e-12)
    np.testing.assert_allclose(got[1], mixed.T @ u + yy @ v, rtol=1e-12)


def test_products_with_the_hessian_of_a_loop_and_none():
    x, c = tn.placeholder(tn.float64, [2]), tn.constant([1.0, 1.0], tn.float64)
    y = tn.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, y * x), [0, x])[1]
    got = tn.hessian_vector_product(y, [x, c], [[1.0, 10.0], [0.0, 0.0]])
    assert got[1] is None and run(got[0], {x: [2, 3]}).tolist() == [12, 180]
    assert tn.hessian_vector_product(x, [c], [[1.0, 1.0]]) == [None]


@pytest.mark.parametrize("kind", ["plain", "loop", "branch"])
def test_products_with_jacobians(kind):
    rng = np.random.RandomState(5)
    x, p = tn.placeholder(tn.float64, [1, 3]), tn.placeholder(tn.bool, [])
    w = rng.randn(3, 3)
    y = {"plain": lambda: step_of_a_network(x, w),
         "branch": lambda: tn.cond(p, lambda: step_of_a_network(x, w), lambda: x),
         "loop": lambda: tn.while_loop(lambda i, _: i < 2, lambda i, y: (
             i + 1, step_of_a_network(y, w)), [0, x])[1]}[kind]()
    v, feeds = rng.randn(1, 3), {x: rng.randn(1, 3), p: True}
    (got,) = tn.jacobian_vector_product(y, x, v)
    whole = run(tn.jacobian(y, x), feeds).reshape(3, 3)
    np.testing.assert_allclose(run(got, feeds).ravel(), whole @ v.ravel(), rtol=1e-10)


def test_products_with_jacobians_of_several():
    a, b, c = (tn.constant([1.0, 2.0], tn.float64) for _ in range(3))
    first, second, none = tn.jacobian_vector_product(
        [a * b, tn.reduce_sum(a), c * 2], [a, b], [[1.0, 1.0], [10.0, 100.0]])
    values = run([first, second])
    assert values[0].tolist() == [11, 202] and values[1] == 2 and none is None


# --- What is refused ------------------------------------------------------------------------------

@pytest.mark.parametrize("call, error, text", [
    (lambda x, i: tn.jacobian(i, x), TypeError, "output must be of a floating or complex dtype"),
    (lambda x, i: tn.batch_jacobian(i, x), TypeError, "floating or complex dtype"),
    (lambda x, i: tn.jacobian(x * 2, 3), TypeError, "needed is a Tensor"),
    (lambda x, i: tn.jacobian(x * 2, x, parallel_iterations=0), TypeError, "positive integer"),
    (lambda x, i: tn.batch_jacobian(x, tn.ones([5, 2])), ValueError, "to match"),
    (lambda x, i: tn.batch_jacobian(tn.reduce_sum(x), x), ValueError, "rank at least 1"),
    (lambda x, i: tn.hessians(x * 2, i), ValueError, "no path leads from ys to"),
    (lambda x, i: tn.hessian_vector_product(x * x, [x], [x, x]), ValueError, "same length"),
    (lambda x, i: tn.hessian_vector_product(x * x, [x], [tn.ones([7])]), ValueError, "must agree"),
    (lambda x, i: tn.jacobian_vector_product(x * x, x, [[[1.0] * 7]]), ValueError, "must agree"),
    (lambda x, i: tn.jacobian_vector_product(i, x, x), TypeError, "floating or complex dtype"),
])
def test_what_is_refused(call, error, text):
    x, i = tn.placeholder(tn.float32, [3]), tn.constant([1, 2, 3])
    with pytest.raises(error, match=text):
        call(x, i)
