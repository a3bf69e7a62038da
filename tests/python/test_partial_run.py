# SPDX-License-Identifier: Apache-2.0
"""Session.partial_run: one run in several calls, as TensorFlow 1 has it."""
import threading

import numpy as np
import pytest

import treenail as tn


@pytest.fixture
def sums():
    with tn.Graph().as_default():
        a, b, c = (tn.placeholder(tn.float32, [], name=name) for name in "abc")
        r1 = tn.add(a, b)
        r2 = tn.multiply(r1, c)
        with tn.Session() as sess:
            yield sess, a, b, c, r1, r2


def test_the_example_of_the_documentation(sums):
    sess, a, b, c, r1, r2 = sums
    handle = sess.partial_run_setup([r1, r2], [a, b, c])
    res = sess.partial_run(handle, r1, feed_dict={a: 1, b: 2})
    assert res == 3
    assert sess.partial_run(handle, r2, feed_dict={c: res * 17}) == 153


def test_several_at_once_and_a_plain_run_between(sums):
    sess, a, b, c, r1, r2 = sums
    handles = [sess.partial_run_setup([r1, r2], [a, b, c]) for _ in range(20)]
    for i, handle in enumerate(handles):
        assert sess.partial_run(handle, r1, {a: i, b: 1}) == i + 1
    assert sess.run(r2, {a: 1, b: 1, c: 3}) == 6
    for i, handle in enumerate(reversed(handles)):
        assert sess.partial_run(handle, [r2], {c: 2}) == [2 * (20 - i)]


def test_structures_operations_names_and_feeds_without_fetches(sums):
    sess, a, b, c, r1, r2 = sums
    handle = sess.partial_run_setup({"x": r1, "y": (r2, r1.op)}, ["a:0", "b:0", c])
    assert sess.partial_run(handle, [], {a: 1}) == []
    got = sess.partial_run(handle, {"x": r1, "op": r1.op}, {"b:0": 4})
    assert got == {"x": 5, "op": None}
    assert sess.partial_run(handle, r2, {c: 2}) == 10


def test_a_fed_array_may_change_after_the_call():
    with tn.Graph().as_default(), tn.Session() as sess:
        x = tn.placeholder(tn.float32, [None])
        y = tn.placeholder(tn.float32, [None])
        total = x + y
        handle = sess.partial_run_setup([total], [x, y])
        value = np.ones(1000, np.float32)
        sess.partial_run(handle, [], {x: value})
        value[:] = 7
        np.testing.assert_array_equal(sess.partial_run(handle, total, {y: value}),
                                      np.full(1000, 8, np.float32))


def test_a_sparse_feed():
    with tn.Graph().as_default(), tn.Session() as sess:
        s = tn.sparse_placeholder(tn.float32, [2, 3])
        d = tn.placeholder(tn.float32, [3, 1])
        dense = tn.matmul(tn.sparse_tensor_to_dense(s), d)
        count = tn.size(s.values)
        handle = sess.partial_run_setup([dense, count], [s, d])
        value = tn.SparseTensorValue([[0, 1], [1, 2]], [2.0, 3.0], [2, 3])
        assert sess.partial_run(handle, count, {s: value}) == 2
        got = sess.partial_run(handle, dense, {d: [[1], [10], [100]]})
        np.testing.assert_array_equal(got, [[20], [300]])


def test_random_numbers_and_variables_are_computed_once():
    with tn.Graph().as_default(), tn.Session() as sess:
        x = tn.placeholder(tn.float32, [])
        noise = tn.random_uniform([4], seed=3)
        scaled = noise * x
        handle = sess.partial_run_setup([noise, scaled], [x])
        first = sess.partial_run(handle, noise)
        np.testing.assert_array_equal(sess.partial_run(handle, scaled, {x: 2.0}), first * 2)


def test_without_feeds():
    with tn.Graph().as_default(), tn.Session() as sess:
        one = tn.random_uniform([2], seed=1)
        two = one * 2
        handle = sess.partial_run_setup([one, two, two.op])
        first = sess.partial_run(handle, one)
        np.testing.assert_array_equal(sess.partial_run(handle, [two, two.op])[0], first * 2)


@pytest.mark.parametrize("call, text", [
    (lambda s, h, a, b, c, r1, r2: s.partial_run(h, r1, {a: 1}), 'it needs "b:0"'),
    (lambda s, h, a, b, c, r1, r2: s.partial_run(h, r2, {a: 1, b: 1}), 'it needs "c:0"'),
    (lambda s, h, a, b, c, r1, r2: s.partial_run(h, a), "not named in partial_run_setup"),
    (lambda s, h, a, b, c, r1, r2: s.partial_run(h, [], {r1: 1}), "not named in partial_run_setup"),
    (lambda s, h, a, b, c, r1, r2: s.partial_run(h, [], {a: [1, 2]}), "Cannot feed"),
    (lambda s, h, a, b, c, r1, r2: s.partial_run("made up", r1), "made up"),
])
def test_what_is_refused_leaves_the_run_as_it_was(sums, call, text):
    sess, a, b, c, r1, r2 = sums
    handle = sess.partial_run_setup([r1, r2], [a, b, c])
    with pytest.raises((tn.errors.InvalidArgumentError, ValueError), match=text):
        call(sess, handle, a, b, c, r1, r2)
    assert sess.partial_run(handle, [r1, r2], {a: 1, b: 2, c: 3}) == [3, 9]
    with pytest.raises(tn.errors.InvalidArgumentError, match="has ended"):
        sess.partial_run(handle, r1)


def test_wrong_kinds(sums):
    sess, a, b, c, r1, r2 = sums
    with pytest.raises(TypeError, match="partial_run_setup"):
        sess.partial_run(3, r1)
    with pytest.raises(TypeError):
        sess.partial_run_setup([r1], [3])
    with pytest.raises(TypeError):
        sess.partial_run_setup([object()], [a])


def test_an_error_ends_it_and_the_session_goes_on():
    with tn.Graph().as_default(), tn.Session() as sess:
        x = tn.placeholder(tn.float32, [None])
        y = tn.placeholder(tn.float32, [None])
        total = x + y
        handle = sess.partial_run_setup([total], [x, y])
        with pytest.raises(tn.errors.InvalidArgumentError, match="test_partial_run.py"):
            sess.partial_run(handle, total, {x: [1, 2], y: [1, 2, 3]})
        with pytest.raises(tn.errors.InvalidArgumentError, match="has ended"):
            sess.partial_run(handle, total, {x: [1, 2], y: [1, 2]})
        assert sess.run(total, {x: [1], y: [2]}) == [3]


def test_abandoned_runs_and_a_closed_session(sums):
    sess, a, b, c, r1, r2 = sums
    handles = [sess.partial_run_setup([r1, r2], [a, b, c]) for _ in range(100)]
    sess.partial_run(handles[0], [], {a: 1})
    sess.close()
    with pytest.raises(tn.errors.FailedPreconditionError, match="closed"):
        sess.partial_run(handles[0], r1, {b: 1})


def test_from_several_threads(sums):
    sess, a, b, c, r1, r2 = sums
    errors = []

    def work(k):
        try:
            for i in range(50):
                handle = sess.partial_run_setup([r1, r2], [a, b, c])
                assert sess.partial_run(handle, r1, {a: k, b: i}) == k + i
                assert sess.partial_run(handle, r2, {c: 2}) == 2 * (k + i)
        except BaseException as error:  # shown by the main thread
            errors.append(error)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
