# SPDX-License-Identifier: Apache-2.0
"""Iterations of a loop side by side: they overlap where that pays, and the results are those of one
after the other."""

import subprocess
import sys
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


# --- Iterations that only compute

def products(x, w, count=6):
    """A value that takes a while, of kernels too short to be split among threads."""
    for _ in range(count):
        x = tn.matmul(x, w)
    return x


def computed(n, parallel_iterations, chained=False):
    w = tn.constant(np.random.RandomState(0).uniform(-0.1, 0.1, [64, 64]), tn.float32)

    def body(i, total):
        x = total if chained else tn.fill([64, 64], tn.cast(i, tn.float32))
        return i + 1, total * 0.5 + products(x, w)
    return tn.while_loop(lambda i, _: i < n, body, [0, tn.ones([64, 64])],
                         parallel_iterations=parallel_iterations)[1]


def most_at_once(sess, fetch):
    """Of how many iterations products were under way at once."""
    options = tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE)
    metadata = tn.RunMetadata()
    sess.run(fetch, options=options, run_metadata=metadata)
    times = [(node.start_ns, node.end_ns) for node in metadata.nodes if node.op == "MatMul"]
    assert len(times) == 40 * 6
    events = sorted([(start, 1) for start, _ in times] + [(end, -1) for _, end in times])
    return int(np.cumsum([step for _, step in events]).max())


@pytest.fixture
def two_threads():
    before = tn._core.num_threads()
    tn._core.set_num_threads(2)
    yield
    tn._core.set_num_threads(before)


def test_iterations_that_compute_overlap(two_threads):
    total = computed(40, 10)
    with tn.Session() as sess:
        assert any(most_at_once(sess, total) == 2 for _ in range(1000))


@pytest.mark.parametrize("parallel_iterations, chained", [(1, False), (10, True)])
def test_iterations_that_compute_and_do_not_overlap(two_threads, parallel_iterations, chained):
    total = computed(40, parallel_iterations, chained)
    with tn.Session() as sess:
        assert all(most_at_once(sess, total) == 1 for _ in range(5))


def computed_with_everything(parallel_iterations):
    """As with_everything(), of what does not wait, within a loop and with a loop inside."""
    v = tn.Variable(tn.zeros([64, 64]), dtype=tn.float32)
    w = tn.constant(np.random.RandomState(0).uniform(-0.1, 0.1, [64, 64]), tn.float32)

    def body(i, total, written, drawn):
        noise = tn.random_uniform([64, 64], seed=3)
        with tn.control_dependencies([v.assign_add(products(noise, w))]):
            seen = v.read_value()
        value = products(tn.fill([64, 64], tn.cast(i, tn.float32)) + seen, w)
        value += tn.while_loop(lambda k, _: k < 3, lambda k, x: (k + 1, products(x, w)),
                               [0, noise])[1]
        total = total * 0.5 + products(tn.random_normal([64, 64], seed=4), w) * value
        written = written.write(i, total + value)
        return i + 1, total, written, drawn + noise
    array = tn.TensorArray(tn.float32, 0, dynamic_size=True, element_shape=[64, 64])
    _, total, written, drawn = tn.while_loop(
        lambda i, *_: i < 20, body, [0, tn.zeros([64, 64]), array, tn.zeros([64, 64])],
        parallel_iterations=parallel_iterations)
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        results = [sess.run([total, written.stack(), drawn, v]) for _ in range(3)]
        return np.concatenate([np.ravel(x) for result in results for x in result])


def test_results_of_what_computes_are_the_same_bits(threads):
    found = []
    for parallel_iterations in (1, 2, 10, 32):
        with tn.Graph().as_default():
            tn.set_random_seed(7)
            found.append(computed_with_everything(parallel_iterations))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].view(np.int32), other.view(np.int32))


def test_gradients_of_what_computes_are_the_same_bits(threads):
    def gradient(parallel_iterations):
        x = tn.constant(np.random.RandomState(1).uniform(-0.1, 0.1, [64, 64]), tn.float32)

        def body(i, total):
            return i + 1, total + tn.tanh(products(x * tn.cast(i, tn.float32), x))
        total = tn.while_loop(lambda i, _: i < 20, body, [0, tn.zeros([64, 64])],
                              parallel_iterations=parallel_iterations)[1]
        with tn.Session() as sess:
            return sess.run(tn.gradients(total, x)[0])
    np.testing.assert_array_equal(gradient(1), gradient(10))


def failing(at, parallel_iterations=10):
    w = tn.ones([64, 64])

    def body(i, total):
        x = products(tn.fill([64, 64], tn.cast(i, tn.float32)), w)
        index = tn.where(tn.greater_equal(i, at), 64, 0)
        return i + 1, total + tn.gather(x, index)
    return tn.while_loop(lambda i, _: i < 30, body, [0, tn.zeros([64])],
                         parallel_iterations=parallel_iterations)[1]


def test_the_first_iteration_that_fails_is_told_of_what_computes(threads):
    at = tn.placeholder(tn.int32, [])
    fetches = {n: failing(at, n) for n in (1, 10)}
    with tn.Session() as sess:
        def message(parallel_iterations, first):
            with pytest.raises(tn.errors.InvalidArgumentError) as raised:
                sess.run(fetches[parallel_iterations], {at: first})
            return str(raised.value).split("\n")[0].replace("while_1", "while")
        for first in (0, 1, 17, 29):
            expected = message(1, first)
            assert "[StatelessWhile node \"while\"] iteration %d: [Gather node" % first in expected
            for _ in range(5):
                assert message(10, first) == expected
        assert sess.run(fetches[10], {at: 30}).shape == (64,)


def test_deadlines_of_what_computes():
    total = computed(1000000000, 10)
    with tn.Session() as sess:
        for ms in (1, 5, 20, 50):
            with pytest.raises(tn.errors.DeadlineExceededError):
                sess.run(total, options=tn.RunOptions(timeout_in_ms=ms))


def test_a_body_that_cannot_be_planned_is_no_error_of_a_loop_without_iterations():
    x = tn.placeholder(tn.float32, None)
    result = tn.while_loop(lambda i, _: i < 0, lambda i, t: (i + 1, tn.matmul(t, tn.ones([3, 3]))),
                           [0, x], shape_invariants=[[], None])[1]
    with tn.Session() as sess:
        np.testing.assert_array_equal(sess.run(result, {x: [[1, 2]]}), [[1, 2]])


def test_a_body_that_cannot_be_planned_is_told_in_the_same_words(threads):
    x = tn.placeholder(tn.float32, None)

    def message(parallel_iterations):
        with tn.name_scope("same"):
            result = tn.while_loop(
                lambda i, _: i < 3, lambda i, t: (i + 1, tn.matmul(t, tn.ones([3, 3]))), [0, x],
                shape_invariants=[[], None], parallel_iterations=parallel_iterations, name="loop")
        with tn.Session() as sess:
            with pytest.raises(tn.errors.InvalidArgumentError) as raised:
                sess.run(result[1], {x: [[1, 2]]})
        return str(raised.value).split("\n")[0].replace("same_1", "same")
    assert message(1) == message(10)
    assert "iteration 0: " in message(1)


def test_from_several_threads_at_once(two_threads):
    total = computed(40, 10)
    with tn.Session() as sess:
        expected = sess.run(total)
        found = []
        workers = [threading.Thread(target=lambda: found.extend(sess.run(total) for _ in range(10)))
                   for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(SECONDS)
    assert len(found) == 40
    for each in found:
        np.testing.assert_array_equal(each, expected)


LONG_LOOP = """
import os, signal, threading
import numpy as np
import treenail as tn
tn._core.set_num_threads(2)
n, w = tn.placeholder(tn.int32, []), tn.fill([64, 64], 0.01)

def body(i, total):
    x = tn.fill([64, 64], tn.cast(i, tn.float32))
    for _ in range(6):
        x = tn.matmul(x, w)
    return i + 1, total + x
total = tn.while_loop(lambda i, _: i < n, body, [0, tn.zeros([64, 64])])[1]
sess = tn.Session()
"""


def run_script(script):
    done = subprocess.run([sys.executable, "-c", LONG_LOOP + script], capture_output=True,
                          text=True, timeout=SECONDS)
    return done.stdout, done.stderr


def test_what_computes_is_interrupted():
    assert run_script("""
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    sess.run(total, {n: 1000000000})
except KeyboardInterrupt:
    print("ended", sess.run(total, {n: 1})[0, 0])
""") == ("ended 0.0\n", "")


def test_a_fork_while_iterations_compute():
    assert run_script("""
expected = sess.run(total, {n: 20})
worker = threading.Thread(target=sess.run, args=(total, {n: 20000}))
worker.start()
child = os.fork()
if child == 0:
    same = np.array_equal(sess.run(total, {n: 20}), expected)
    os._exit(0 if same else 1)
print(os.waitpid(child, 0)[1])
worker.join()
""") == ("0\n", "")
