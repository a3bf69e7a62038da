# SPDX-License-Identifier: Apache-2.0
"""What tn.gradients can be told: which values are constants, what unconnected ones get, how sums
and order are meant."""

import numpy as np
import pytest

import treenail as tn

Unconnected = tn.UnconnectedGradients


def run(fetches, feeds=None):
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        return sess.run(fetches, feeds)


# --- Sums -----------------------------------------------------------------------------------------

METHODS = (None, tn.AggregationMethod.DEFAULT, tn.AggregationMethod.ADD_N,
           tn.AggregationMethod.EXPERIMENTAL_TREE, tn.AggregationMethod.EXPERIMENTAL_ACCUMULATE_N)


def test_every_way_to_sum_gives_the_same_bits():
    x = tn.constant(np.random.RandomState(0).randn(7).astype(np.float32))
    y = x * x + tn.exp(x) + tn.sin(x) * 3.0 + tn.tanh(x)
    found = run([tn.gradients(y, x, aggregation_method=m)[0] for m in METHODS])
    for value in found[1:]:
        np.testing.assert_array_equal(value, found[0])


@pytest.mark.parametrize("method", [3, -1, "ADD_N", 0.5, [0]])
def test_an_unknown_way_to_sum_is_refused(method):
    x = tn.constant(1.0)
    with pytest.raises(ValueError, match="Invalid aggregation_method specified"):
        tn.gradients(x * x, x, aggregation_method=method)


# --- Unconnected ----------------------------------------------------------------------------------

def test_unconnected_gradients_may_be_zeros():
    x, y = tn.constant([1.0, 2.0]), tn.placeholder(tn.float64, [None, 3])
    v, i = tn.Variable(np.ones((2, 2))), tn.constant(3)
    given = tn.gradients(x * x, [x, y, v, i], unconnected_gradients=Unconnected.ZERO)
    assert [g.dtype for g in given] == [tn.float32, tn.float64, tn.float64, tn.int32]
    values = run(given, {y: np.ones((4, 3))})
    assert values[0].tolist() == [2, 4] and values[3] == 0
    assert not values[1].any() and values[1].shape == (4, 3)
    assert not values[2].any() and values[2].shape == (2, 2)
    assert given[1].shape.as_list() == [None, 3]


def test_unconnected_by_name_and_in_bodies():
    x, y, p = tn.constant(2.0), tn.constant(3.0), tn.placeholder(tn.bool, [])
    assert tn.gradients(x, y, unconnected_gradients="none") == [None]
    assert run(tn.gradients(x, y, unconnected_gradients="zero")) == [0]
    inside = tn.cond(p, lambda: tn.gradients(x * 2, [x, y], unconnected_gradients="zero"),
                     lambda: [x, y])
    assert run(inside, {p: True}) == [2, 0]


@pytest.mark.parametrize("value", ["zeros", None, 0, True])
def test_unknown_choices_for_unconnected_ones(value):
    x = tn.constant(1.0)
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: "):
        tn.gradients(x, x, unconnected_gradients=value)


# --- Constants ------------------------------------------------------------------------------------

def test_stop_gradients_hold_in_branches_and_loops():
    x, p = tn.constant(2.0), tn.placeholder(tn.bool, [])
    b = x * 3
    chosen = tn.cond(p, lambda: x * b, lambda: b)
    looped = tn.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * b + x), [0, x])[1]
    # ((2 b + 2) b + 2) b + 2: by x alone b^3 + b^2 + b + 1.
    free = tn.gradients([chosen], x) + tn.gradients(looped, x)
    stopped = tn.gradients(chosen, x, stop_gradients=b) + tn.gradients(looped, x,
                                                                       stop_gradients=[b])
    assert run(stopped, {p: True}) == [6, 216 + 36 + 6 + 1]
    assert run(free, {p: True})[0] == 12
    assert tn.gradients(tn.cond(p, lambda: b, lambda: b * b), x, stop_gradients=b) == [None]


def test_stop_gradients_of_variables():
    v, w = tn.Variable(2.0), tn.Variable(5.0)
    y = tn.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, y * v * w), [0, tn.constant(1.0)])[1]
    dv, dw = tn.gradients(y, [v, w], stop_gradients=[w])
    assert run([dv, dw]) == [100, 40]  # of w itself it may be asked
    z = v * w
    assert tn.gradients(z * z, v, stop_gradients=[v * 1.0, z]) == [None]


def test_stop_gradients_within_a_body():
    x = tn.placeholder(tn.float32, [])

    def step(i, y):
        z = y * y
        return i + 1, tn.gradients(z * y, y, stop_gradients=[z])[0]
    assert run(tn.while_loop(lambda i, _: i < 1, step, [0, x])[1], {x: 3.0}) == 9


@pytest.mark.parametrize("where", ["branch", "loop", "switch"])
def test_constants_that_bodies_read_have_gradients(where):
    x, p = tn.constant([3.0, 4.0]), tn.placeholder(tn.int32, [])
    y = {"branch": lambda: tn.cond(p > 0, lambda: x * x, lambda: x),
         "switch": lambda: tn.switch_case(p, [lambda: x, lambda: x * x]),
         "loop": lambda: tn.while_loop(lambda i, _: i < p, lambda i, y: (i + 1, y * x),
                                       [0, tn.constant([1.0, 1.0]) * x])[1]}[where]()
    assert run(tn.gradients(y, x)[0], {p: 1}).tolist() == [6, 8]


# --- Order and devices ----------------------------------------------------------------------------

def test_gated_gradients_wait_for_each_other():
    a, b = tn.placeholder(tn.float32, [2, 2]), tn.placeholder(tn.float32, [2, 2])
    y = tn.matmul(a, b)
    plain, gated = tn.gradients(y, [a, b]), tn.gradients(y, [a, b], gate_gradients=True)
    assert all(g.op.type == "MatMul" for g in plain)
    assert [len(g.op.control_inputs) for g in gated] == [2, 2]
    assert {op.type for g in gated for op in g.op.control_inputs} == {"MatMul"}
    feeds = {a: [[1, 2], [3, 4]], b: [[5, 6], [7, 8]]}
    for one, other in zip(run(plain, feeds), run(gated, feeds)):
        np.testing.assert_array_equal(one, other)


def test_gated_gradients_of_bodies_and_slices():
    table, x = tn.Variable(np.ones((3, 2))), tn.placeholder(tn.float64, [2])
    y = tn.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, y * table[0] + y), [0, x])[1]
    z = tn.gather(table, [1, 1]) * y
    plain = [tn.convert_to_tensor(g) for g in tn.gradients(z, [table, x])]
    gated = [tn.convert_to_tensor(g) for g in tn.gradients(z, [table, x], gate_gradients=True)]
    for one, other in zip(run(plain, {x: [1, 2]}), run(gated, {x: [1, 2]})):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("colocate", [False, True])
def test_gradients_stand_where_their_operation_does(colocate):
    with tn.device("/cpu:0"):
        x = tn.constant([1.0, 2.0])
        y = tn.exp(x) * x
    (gradient,) = tn.gradients(y, x, colocate_gradients_with_ops=colocate)
    assert gradient.op.device == y.op.device != ""


def test_what_is_not_differentiable():
    p, x = tn.placeholder(tn.bool, []), tn.constant([1.0, 2.0])

    def prevented():
        return tn.raw_ops.PreventGradient(x, message="no way back")
    for y in (prevented(), tn.cond(p, prevented, lambda: x)):
        with pytest.raises(tn.errors.FailedPreconditionError, match="no way back"):
            tn.gradients(y, x)
    with pytest.raises(ValueError, match="gradients need a floating or complex dtype"):
        tn.gradients(tn.cast(x, tn.int32), x)
    called = tn.py_func(lambda a: a, [x], tn.float32)
    assert tn.gradients(called, x) == [None]
