# SPDX-License-Identifier: Apache-2.0
"""Functions whose nodes stand in the place of their call: nothing tells the difference but what is
computed together."""

import numpy as np
import pytest

import treenail as tn
from test_waiting_bodies import add_function, call


def traced(session, fetches, feed_dict=None):
    metadata = tn.RunMetadata()
    values = session.run(fetches, feed_dict, tn.RunOptions(
        trace_level=tn.RunOptions.FULL_TRACE), metadata)
    return values, metadata.nodes


def test_a_chain_is_one_kernel_across_the_border():
    add_function("f", [tn.float32], lambda x: tn.sqrt(tn.exp(x, name="e"), name="s"), [[1000]])
    x = tn.placeholder(tn.float32, [1000])
    y = tn.negative(call("f", [x * 2.0], [tn.float32], shapes=[[1000]])[0] + 1.0)
    with tn.Session() as sess:
        value, nodes = traced(sess, y, {x: np.zeros(1000)})
    np.testing.assert_allclose(value, np.full(1000, -2.0))
    assert len(nodes) == 1
    names = [node_name for node_name, _ in nodes[0].fused]
    assert "call/e" in names and "call/s" in names


def test_constants_are_folded_across_the_border():
    add_function("f", [tn.float32, tn.int32], lambda x, axis: tn.reduce_sum(x, axis), [[2, 3], []])
    x = tn.placeholder(tn.float32, [2, 3])
    y = tn.raw_ops.PartitionedCall([x, tn.constant(1)], Tout=[tn.float32], f="f")[0]
    with tn.Session() as sess:
        value, nodes = traced(sess, y, {x: np.ones((2, 3))})
    assert value.tolist() == [3, 3] and [node.op for node in nodes] == ["Sum"]


def test_calls_within_calls():
    add_function("inner", [tn.float32], lambda x: tn.square(x, name="sq"))
    add_function("outer", [tn.float32], lambda x: call("inner", [x], [tn.float32])[0] + call(
        "inner", [x + 1.0], [tn.float32])[0])
    x = tn.placeholder(tn.float32, [])
    y = call("outer", [x], [tn.float32])[0]
    with tn.Session() as sess:
        value, nodes = traced(sess, y, {x: 3.0})
    assert value == 25 and not any("Call" in node.op for node in nodes)


def random_call(in_place):
    # An argument whose shape the function knows better than its caller keeps the call a node.
    add_function("f", [tn.float32], lambda x: x + tn.random_uniform([3], seed=5, name="draw"),
                 [[3]])
    x = tn.placeholder(tn.float32, [3] if in_place else [None])
    return x, call("f", [x], [tn.float32], stateful=True, shapes=[[3]])[0]


def test_random_numbers_are_the_same_in_place_or_not():
    found = []
    for in_place in (True, False):
        with tn.Graph().as_default():
            x, y = random_call(in_place)
            with tn.Session() as sess:
                values, nodes = [], []
                for _ in range(3):
                    value, nodes = traced(sess, y, {x: np.zeros(3)})
                    values.append(value)
                assert any("Call" in node.op for node in nodes) == (not in_place)
                assert "call/draw/RandomUniform" in [node.name for node in nodes]
            found.append(values)
    np.testing.assert_array_equal(found[0], found[1])
    assert len(np.unique(found[0])) == 9


def test_variables_keep_the_order_of_their_accesses():
    v = tn.Variable(1.0)

    def read_and_double(handle):
        value = tn.raw_ops.ReadVariableOp(handle, dtype=tn.float32)
        return tn.raw_ops.Mul(value, 2.0)
    add_function("read", [tn.resource], read_and_double)
    before = call("read", [v.handle], [tn.float32], stateful=True)[0]
    with tn.control_dependencies([before]):
        written = v.assign_add(10.0)
    with tn.control_dependencies([written]):
        after = call("read", [v.handle], [tn.float32], stateful=True)[0]
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        assert sess.run([before, after]) == [2.0, 22.0]
        assert sess.run([after, before]) == [42.0, 22.0]


def test_what_a_call_waits_for_and_who_waits_for_it():
    calls = []
    add_function("f", [tn.float32], lambda x: (
        tn.py_func(lambda v: calls.append("inside") or v, [x], tn.float32), tn.constant(2.0)))
    x = tn.placeholder(tn.float32, [])
    first = tn.py_func(lambda: calls.append("before") or np.float32(1), [], tn.float32)
    with tn.control_dependencies([first]):
        y = call("f", [x], [tn.float32] * 2, stateful=True)
    with tn.control_dependencies([y[1]]):
        last = tn.py_func(lambda: calls.append("after") or np.float32(1), [], tn.float32)
    with tn.Session() as sess:
        for _ in range(20):
            del calls[:]
            assert sess.run([y[1], last], {x: 1.0}) == [2.0, 1.0]
            assert calls == ["before", "inside", "after"]


def test_what_is_not_used_does_not_run():
    calls = []
    add_function("f", [tn.float32], lambda x: (
        tn.py_func(lambda v: calls.append(1) or v, [x], tn.float32), x * 2.0))
    x = tn.placeholder(tn.float32, [])
    y = call("f", [x], [tn.float32] * 2, stateful=True)
    with tn.Session() as sess:
        assert sess.run(y[1], {x: 1.5}) == 3.0 and not calls
        assert sess.run(y, {x: 1.5}) == [1.5, 3.0] and calls == [1]


def test_errors_tell_the_path_of_calls():
    add_function("pick", [tn.int32], lambda i: tn.gather(tn.constant([1, 2]), i, name="g"))
    add_function("f", [tn.int32], lambda i: call("pick", [i], [tn.int32])[0] + 1)
    i = tn.placeholder(tn.int32, [])
    y = call("f", [i], [tn.int32])[0]
    with tn.Session() as sess:
        assert sess.run(y, {i: 1}) == 3
        with pytest.raises(tn.errors.InvalidArgumentError,
                           match=r'^\[Gather\w* node "call/call/g"\]') as caught:
            sess.run(y, {i: 5})
    assert "op 'call' was created at:" in str(caught.value)


def test_a_call_that_is_fed_or_fetched():
    add_function("f", [tn.float32], lambda x: (x + 1.0, x * 2.0))
    x = tn.placeholder(tn.float32, [])
    a, b = call("f", [x], [tn.float32] * 2)
    with tn.Session() as sess:
        assert sess.run([a, b, a + b], {x: 3.0}) == [4.0, 6.0, 10.0]
        assert sess.run(a + b, {x: 3.0, a: 100.0}) == 106.0
        assert sess.run(a + b, {a: 1.0, b: 2.0}) == 3.0


def test_calls_that_do_not_fit_say_so():
    add_function("f", [tn.float32], lambda x: x + 1.0, [[2]])
    x = tn.placeholder(tn.float32)
    y = call("f", [x], [tn.float32], shapes=[[2]])[0]
    with tn.Session() as sess:
        assert sess.run(y, {x: [1, 2]}).tolist() == [2, 3]
        with pytest.raises(tn.errors.InvalidArgumentError, match=r"shape \[3\]"):
            sess.run(y, {x: [1, 2, 3]})


def test_very_many_calls_stay_calls():
    def twice(name):
        return lambda x: call(name, [x], [tn.int64])[0] + call(name, [x], [tn.int64])[0]
    add_function("f0", [tn.int64], lambda x: x + 1)
    for depth in range(1, 19):
        add_function("f%d" % depth, [tn.int64], twice("f%d" % (depth - 1)))
    x = tn.placeholder(tn.int64, [])
    y = call("f18", [x], [tn.int64])[0]
    with tn.Session() as sess:
        assert sess.run(y, {x: 1}) == 2 << 18
