# SPDX-License-Identifier: Apache-2.0
"""Iterations of a loop side by side: they overlap where that pays, and the results are those of one
after the other."""

import threading
import time

import numpy as np
import pytest

import treenail as tn
from waiting import SECONDS


class Meeting:
    """A Python function that returns for i when it has been called for i + 1, or i is the last."""

    def __init__(self, last):
        self._begun = [threading.Event() for _ in range(last + 1)]
        self._lock, self._inside, self.most = threading.Lock(), 0, 0

    def __call__(self, i):
        with self._lock:
            self._inside += 1
            self.most = max(self.most, self._inside)
        self._begun[i].set()
        if i + 1 < len(self._begun):
            assert self._begun[i + 1].wait(SECONDS), "iteration %d never began" % (i + 1)
        with self._lock:
            self._inside -= 1
        return np.int64(i * i)


def summed(function, n, parallel_iterations, stateful=False):
    def body(i, total):
        value = tn.py_func(function, [i], tn.int64, stateful=stateful)
        value.set_shape([])
        return i + 1, total + value
    return tn.while_loop(lambda i, _: i < n, body, [tn.constant(0), tn.constant(0, tn.int64)],
                         parallel_iterations=parallel_iterations)[1]


@pytest.mark.parametrize("parallel_iterations", [2, 3, 10, 1000])
def test_iterations_wait_for_each_other(parallel_iterations, threads):
    meeting = Meeting(29)
    total = summed(meeting, 30, parallel_iterations)
    with tn.Session() as sess:
        assert sess.run(total) == sum(i * i for i in range(30))
    assert 2 <= meeting.most <= parallel_iterations


@pytest.mark.parametrize("parallel_iterations, stateful", [(1, False), (10, True)])
def test_iterations_that_do_not_overlap(parallel_iterations, stateful):
    inside, calls = [], []

    def function(i):
        inside.append(i)
        time.sleep(0.001)
        assert len(inside) == 1
        calls.append(inside.pop())
        return np.int64(i)
    total = summed(function, 30, parallel_iterations, stateful)
    with tn.Session() as sess:
        assert sess.run(total) == 435
    assert calls == list(range(30))


def late(value):
    """The value, after a while that differs."""
    def wait(v):
        time.sleep(0.0001 * (hash(v.tobytes()) % 7))
        return v
    result = tn.py_func(wait, [value], value.dtype, stateful=False)
    result.set_shape(value.shape)
    return result


def with_everything(parallel_iterations):
    """A loop over state of all kinds, whose waiting parts end in any order."""
    v = tn.Variable(tn.zeros([2]), dtype=tn.float32)
    queue = tn.FIFOQueue(100, tn.float32, [[]])
    fill = queue.enqueue_many([np.arange(40, dtype=np.float32)])

    def body(i, total, written, drawn):
        taken = queue.dequeue()
        noise = tn.random_uniform([3], seed=3)
        with tn.control_dependencies([v.assign_add(tn.stack([taken, late(taken)]))]):
            seen = v.read_value()
        total = total * 0.5 + late(tn.cast(i, tn.float32)) + seen[0] + tn.reduce_sum(
            late(noise) * tn.random_normal([3], seed=4))
        written = written.write(i, late(total) + taken)
        return i + 1, total, written, drawn + noise
    array = tn.TensorArray(tn.float32, 0, dynamic_size=True, element_shape=[])
    _, total, written, drawn = tn.while_loop(
        lambda i, *_: i < 20, body, [0, 0.0, array, tn.zeros([3])],
        parallel_iterations=parallel_iterations)
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        sess.run(fill)
        results = [sess.run([total, written.stack(), drawn]) for _ in range(2)]
        return np.concatenate([np.ravel(x) for x in results[0] + results[1] + [sess.run(v)]])


def test_results_are_the_same_bits_for_any_number(threads):
    found = []
    for parallel_iterations in (1, 2, 10, 32):
        with tn.Graph().as_default():
            tn.set_random_seed(7)
            found.append(with_everything(parallel_iterations))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].view(np.int32), other.view(np.int32))


def test_the_first_iteration_that_fails_is_told(threads):
    def function(i):
        time.sleep(0.002 * (40 - i) / 40)
        if i >= 20:
            raise ValueError("not %d" % i)
        return np.int64(i)
    total = summed(function, 40, 8)
    with tn.Session() as sess:
        for _ in range(10):
            with pytest.raises(tn.errors.InvalidArgumentError,
                               match=r'\[StatelessWhile node "while"\] iteration 2\d: \[PyFunc'):
                sess.run(total)


def test_an_error_of_an_earlier_iteration_that_needs_nobody_wins(threads):
    x = tn.placeholder(tn.int32, [])

    def body(i, total):
        value = late(tn.cast(i, tn.int64))
        index = tn.where(tn.greater_equal(i, x), 9, 0)
        return i + 1, total + value + tn.gather(tn.constant([0, 1], tn.int64), index)
    total = tn.while_loop(lambda i, _: i < 30, body, [0, tn.constant(0, tn.int64)])[1]
    with tn.Session() as sess:
        for at in (0, 3, 17):
            for _ in range(5):
                with pytest.raises(tn.errors.InvalidArgumentError,
                                   match="iteration %d: .*Gather" % at):
                    sess.run(total, {x: at})
        assert sess.run(total, {x: 100}) == 435


def test_deadlines_and_closing():
    def function(i):
        time.sleep(0.005)
        return np.int64(i)
    total = summed(function, 1000000, 10)
    sess = tn.Session()
    for ms in (1, 5, 20, 50):
        with pytest.raises(tn.errors.DeadlineExceededError):
            sess.run(total, options=tn.RunOptions(timeout_in_ms=ms))
    timer = threading.Timer(0.05, sess.close)
    timer.start()
    with pytest.raises(tn.errors.CancelledError):
        sess.run(total)
    timer.join()


def test_loops_within_loops_that_overlap(threads):
    def inner(i, k, t):
        return k + 1, t + late(i * k)

    def body(i, total):
        return i + 1, total + tn.while_loop(lambda k, _: k < 5, lambda k, t: inner(i, k, t),
                                            [0, 0])[1]
    total = tn.while_loop(lambda i, _: i < 10, body, [0, 0])[1]
    with tn.Session() as sess:
        assert sess.run(total) == sum(i * k for i in range(10) for k in range(5))


def test_values_that_are_swapped_handed_on_and_constant(threads):
    x = tn.placeholder(tn.int32, [])

    def body(i, a, b, c, d):
        return i + 1, b, a + late(i), tn.constant(7), d
    values = tn.while_loop(lambda i, *_: i < x, body, [0, 1, 2, 3, 4])
    with tn.Session() as sess:
        for n in (0, 1, 2, 9):
            a, b, c = 1, 2, 3
            for i in range(n):
                a, b, c = b, a + i, 7
            assert sess.run(values, {x: n}) == [n, a, b, c, 4]


def test_a_loop_that_begins_with_its_end():
    total = summed(lambda i: np.int64(i), 0, 10)
    with tn.Session() as sess:
        assert sess.run(total) == 0


def test_shapes_that_change_run_one_after_the_other():
    def body(i, x):
        return i + 1, tn.concat([x, late(x[-1:] + 1)], 0)
    x = tn.while_loop(lambda i, _: i < 6, body, [0, tn.constant([1])],
                      shape_invariants=[[], [None]])[1]
    with tn.Session() as sess:
        assert sess.run(x).tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_a_value_that_leaves_its_invariant(threads):
    def body(i, x, y):
        value = tn.py_func(lambda k: np.zeros([] if k != 17 else [2], np.int32), [i], tn.int32,
                           stateful=False)
        value.set_shape([])
        return i + 1, value, y + late(i)
    values = tn.while_loop(lambda i, *_: i < 40, body, [0, 0, 0])
    with tn.Session() as sess:
        for _ in range(10):
            with pytest.raises(tn.errors.InvalidArgumentError,
                               match=r"iteration 17: value 1 of the loop has shape \[2\]"):
                sess.run(values)
