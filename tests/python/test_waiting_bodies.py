# SPDX-License-Identifier: Apache-2.0
"""Branches, loops and calls whose bodies wait (queues, Python functions) or call themselves: nobody
in the pool waits for them, and calls within calls take no stack."""

import re
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest

import treenail as tn
from treenail import _treenail as _core
from treenail._framework import _DefaultGraph
from treenail._function_graph import FunctionGraph
from test_control_flow import Program
from waiting import SECONDS, Threads, check_ends_of_waiting, check_fork, started_waiting


def add_function(name, dtypes, make, shapes=None):
    """A function of the default graph that `make` builds of placeholders; it may call itself."""
    root = tn.get_default_graph()
    body = FunctionGraph(name, root)
    with _DefaultGraph(body):
        arguments = [tn.placeholder(dtype, [] if shapes is None else shapes[i], name="a%d" % i)
                     for i, dtype in enumerate(dtypes)]
        results = make(*arguments)
    return _core.add_function(root, name, body, arguments,
                              list(results) if isinstance(results, (list, tuple)) else [results])


def call(name, arguments, dtypes, stateful=False, shapes=None):
    op = tn.raw_ops.StatefulPartitionedCall if stateful else tn.raw_ops.PartitionedCall
    return op(arguments, Tout=dtypes, f=name, output_shapes=shapes or [[]] * len(dtypes),
              name="call")


# --- Waiting --------------------------------------------------------------------------------------

def test_a_branch_takes_what_another_node_of_the_run_gives(threads):
    queue, p = tn.FIFOQueue(10, tn.int32, [[]]), tn.placeholder(tn.bool, [])
    taken = tn.cond(p, lambda: queue.dequeue() + 1, lambda: tn.constant(0))
    given = queue.enqueue(41)
    with tn.Session() as sess:
        for _ in range(50):
            assert sess.run([taken, given], {p: True})[0] == 42


def test_a_loop_takes_what_another_loop_gives(threads):
    there, back = tn.FIFOQueue(1, tn.int32, [[]]), tn.FIFOQueue(1, tn.int32, [[]])

    def ping(i, total):
        with tn.control_dependencies([there.enqueue(i)]):
            return i + 1, total + back.dequeue()

    def pong(i):
        with tn.control_dependencies([back.enqueue(there.dequeue() * 2)]):
            return i + 1
    total = tn.while_loop(lambda i, _: i < 100, ping, [0, 0])[1]
    answers = tn.while_loop(lambda i: i < 100, pong, [0])
    with tn.Session() as sess:
        assert sess.run([total, answers]) == [9900, 100]


def test_bodies_wait_for_each_other_deep_down(threads):
    queue = tn.FIFOQueue(1, tn.int32, [[]])
    p = tn.placeholder(tn.bool, [])

    def nested(depth, leaf):
        if depth == 0:
            return leaf()
        return tn.cond(p, lambda: nested(depth - 1, leaf) + 1, lambda: tn.constant(0))
    taken = [nested(depth, queue.dequeue) for depth in (1, 5, 20)]

    def give():
        with tn.control_dependencies([queue.enqueue(7)]):
            return tn.constant(0)
    given = [nested(depth, give) for depth in (20, 3, 1)]
    with tn.Session() as sess:
        for _ in range(10):
            values = sess.run(taken + given, {p: True})
            assert values == [8, 12, 27, 20, 3, 1]


def test_many_bodies_that_end_at_once():
    def loop(k):
        return tn.while_loop(lambda i, _: i < 20, lambda i, t: (i + 1, t + tn.py_func(
            lambda v: v, [i + k], tn.int32, stateful=False)), [0, 0],
            shape_invariants=[[], tn.TensorShape(None)])[1]
    loops = [loop(k) for k in range(30)]
    with tn.Session() as sess:
        assert sess.run(loops) == [190 + 20 * k for k in range(30)]


def test_100000_iterations_that_could_wait():
    queue = tn.FIFOQueue(200000, tn.int32, [[]])
    fill = queue.enqueue_many([np.arange(100000, dtype=np.int32)])
    n = tn.while_loop(lambda i, _: i < 100000, lambda i, t: (i + 1, tn.maximum(t, queue.dequeue())),
                      [0, 0])
    with tn.Session() as sess:
        sess.run(fill)
        assert sess.run(n) == [100000, 99999]


def test_results_and_errors_of_py_func_in_a_branch():
    x = tn.placeholder(tn.float64, [])

    def refuse(value):
        if value > 2:
            raise ValueError("too large")
        return value * 2
    y = tn.cond(x > 0, lambda: tn.py_func(refuse, [x], tn.float64, name="checks"), lambda: x,
                name="choice")
    with tn.Session() as sess:
        assert sess.run(y, {x: 1.5}) == 3.0
        with pytest.raises(tn.errors.InvalidArgumentError,
                           match=r'(?s)\[If node "choice"\] \[PyFunc node "choice/checks"\].*'
                                 r'too large'):
            sess.run(y, {x: 2.5})
        assert sess.run(y, {x: 0.5}) == 1.0


def test_waits_in_bodies_end():
    def make():
        queue, p = tn.FIFOQueue(10, tn.int32, [[]]), tn.constant(True)
        taken = tn.while_loop(lambda i: i < 2, lambda i: i + tn.cond(
            p, queue.dequeue, lambda: tn.constant(1)), [0])
        return taken, [queue.enqueue(1), queue.enqueue(1)]
    check_ends_of_waiting(make)


def test_a_waiting_body_is_interrupted():
    script = """
import os, signal, threading
import treenail as tn
queue = tn.FIFOQueue(10, tn.int32, [[]])
i = tn.while_loop(lambda i: i < 10, lambda i: i + queue.dequeue(), [0])
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
with tn.Session() as sess:
    try:
        sess.run(i)
    except KeyboardInterrupt:
        sess.run(queue.enqueue_many([[4, 6]]))
        print("ended", sess.run(i))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("ended 10\n", "")


def test_fork_while_a_body_waits():
    check_fork("""
queue = tn.FIFOQueue(10, tn.int32, [[]])
take = tn.while_loop(lambda i: i < 3,
                     lambda i: i + tn.cond(i > 0, queue.dequeue, queue.dequeue), [0])
put = queue.enqueue_many([[1, 2]])
def child():
    session.run(put)
    assert session.run(take) == 3
def give():
    session.run(put)
""")


def test_a_run_in_parts_with_bodies_that_wait():
    queue = tn.FIFOQueue(10, tn.int32, [[]])
    x, p = tn.placeholder(tn.int32, []), tn.placeholder(tn.bool, [])
    y = tn.cond(p, lambda: queue.dequeue() + x, lambda: x)
    z = tn.while_loop(lambda i: i < y, lambda i: i + queue.dequeue(), [0])
    with tn.Session() as sess:
        handle = sess.partial_run_setup([y, z], [x, p])
        sess.run(queue.enqueue_many([[3, 4]]))
        assert sess.partial_run(handle, y, {x: 2, p: True}) == 5
        sess.run(queue.enqueue(1))
        assert sess.partial_run(handle, z) == 5


# --- Errors ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("first", [True, False])
def test_the_first_error_is_reported(first, threads):
    queue, x = tn.FIFOQueue(10, tn.int32, [[]]), tn.placeholder(tn.int32, [])

    def loop(name, fails_at):
        def body(i):
            with tn.control_dependencies([tn.assert_equal(x, x)]):
                value = tn.gather(tn.constant([1, 1]), tn.where(i < fails_at, 0, 7), name="gather")
            with tn.control_dependencies([tn.cond(x > 5, lambda: tn.group(queue.dequeue()),
                                                  tn.no_op)]):
                return i + value
        return tn.while_loop(lambda i: i < 1000, body, [0], name=name)
    loops = [loop("a", 30 if first else 3), loop("b", 3 if first else 30)]
    with tn.Session() as sess:
        for _ in range(20):
            with pytest.raises(tn.errors.InvalidArgumentError) as caught:
                sess.run(loops, {x: 1})
            at = 30 if first else 3
            assert '[While node "a"] iteration %d: [' % at in str(caught.value), caught.value
            assert 'node "gather"' in str(caught.value)


def test_an_error_cancels_what_waits_elsewhere(threads):
    queue, x = tn.FIFOQueue(10, tn.int32, [[]]), tn.placeholder(tn.int32, [])
    waits = tn.while_loop(lambda i: i < 10, lambda i: i + queue.dequeue(), [0], name="waits")
    fails = tn.cond(x > 0, lambda: tn.gather(tn.constant([1, 1]), x), lambda: queue.dequeue(),
                    name="fails")
    with tn.Session() as sess, pytest.raises(
            tn.errors.InvalidArgumentError, match=r'^\[If node "fails"\] \[Gather'):
        sess.run([waits, fails], {x: 7})


# --- Recursion ------------------------------------------------------------------------------------

def recursive(leaf=None):
    """f(n) = n + f(n - 1), f(0) = leaf()"""
    def step(n):
        return n + tn.raw_ops.If(n > 1, [n - 1], Tout=[tn.int32], then_branch="step",
                                 else_branch="leaf", output_shapes=[[]])[0]
    add_function("leaf", [tn.int32], lambda n: n * 0 if leaf is None else n * 0 + leaf())
    add_function("step", [tn.int32], step)
    return lambda n: call("step", [n], [tn.int32])[0]


def test_calls_within_calls_take_no_stack(threads):
    n = tn.placeholder(tn.int32, [])
    total, found = recursive()(n), []
    before = threading.stack_size(1 << 18)
    try:
        with Threads() as side, tn.Session() as sess:
            side.start(lambda: found.append(sess.run(total, {n: 9000}))).join(SECONDS)
    finally:
        threading.stack_size(before)
    assert found == [9000 * 9001 // 2]


def test_the_memory_of_calls_within_calls():
    n = tn.placeholder(tn.int32, [])
    total = recursive()(n)
    with tn.Session() as sess:
        sess.run(total, {n: 10})
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert sess.run(total, {n: 9000}) == 9000 * 9001 // 2
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 80 << 10, "9000 calls took %d KiB" % grown


def test_recursion_without_an_end():
    n = tn.placeholder(tn.int32, [])
    total = recursive()(n)
    with tn.Session() as sess:
        assert sess.run(total, {n: 9000}) == 9000 * 9001 // 2
        with pytest.raises(tn.errors.ResourceExhaustedError) as caught:
            sess.run(total, {n: 20000})
        text = str(caught.value)
        assert re.search(r'^\[PartitionedCall node "call"\] (\[If node "\w+"\] ){3}'
                         r'\(\d+ more calls\) (\[If node "\w+"\] ){3}function "step" is called '
                         r'at a depth of 10000 calls', text), text
        assert text.count(__file__) < 10 and len(text) < 3000
        assert sess.run(total, {n: 3}) == 6


def test_recursion_that_waits(threads):
    def queue():
        return tn.FIFOQueue(10, tn.int32, [[]], shared_name="numbers")
    n = tn.placeholder(tn.int32, [])
    total, put = recursive(lambda: queue().dequeue())(n), queue().enqueue(5)
    with tn.Session() as sess:
        assert sess.run([total, put], {n: 2000})[0] == 2000 * 2001 // 2 + 5


def test_functions_that_call_each_other():
    def even(n):
        return tn.raw_ops.StatelessIf(n > 0, [n - 1], Tout=[tn.bool], then_branch="odd",
                                      else_branch="yes")[0]

    def odd(n):
        return tn.raw_ops.StatelessIf(n > 0, [n - 1], Tout=[tn.bool], then_branch="even",
                                      else_branch="no")[0]
    add_function("yes", [tn.int32], lambda n: n < 0)
    add_function("no", [tn.int32], lambda n: n >= 0)
    add_function("even", [tn.int32], even)
    add_function("odd", [tn.int32], odd)
    n = tn.placeholder(tn.int32, [])
    answer = call("even", [n], [tn.bool])[0]
    with tn.Session() as sess:
        assert [sess.run(answer, {n: k}) for k in (0, 1, 2, 999, 5000)] == [
            True, False, True, False, True]


def test_a_tree_of_calls(threads):
    def fibonacci(n):
        return tn.raw_ops.StatelessIf(n > 1, [n], Tout=[tn.int32], then_branch="both",
                                      else_branch="same", output_shapes=[[]])[0]
    add_function("same", [tn.int32], tn.identity)
    add_function("both", [tn.int32], lambda n: fibonacci(n - 1) + fibonacci(n - 2))
    n = tn.placeholder(tn.int32, [])
    value = fibonacci(n)
    with tn.Session() as sess:
        assert [sess.run(value, {n: k}) for k in (0, 1, 5, 15)] == [0, 1, 5, 610]


# --- Random programs ------------------------------------------------------------------------------

class WaitingProgram(Program):
    """A random program whose values go through queues, staging areas and Python functions."""

    def __init__(self, seed):
        super().__init__(seed)
        self._ways = np.random.RandomState(seed + 1)

    def build(self, values, block=None):
        values = super().build(values, block)
        which = self._ways.randint(4)
        values = list(values)
        values[which] = self._through(values[which])
        return values

    def _through(self, value):
        way = self._ways.randint(4)
        if way == 0:
            result = tn.py_func(lambda v: v, [value], tn.int32, stateful=bool(
                self._ways.randint(2)))
        elif way == 1:
            area = tn.raw_ops.Stage([value], shared_name="area%d" % self._ways.randint(1 << 30))
            name = area.get_attr("shared_name")
            with tn.control_dependencies([area]):
                result = tn.raw_ops.Unstage(dtypes=[tn.int32], shared_name=name)[0]
        elif way == 2:
            queue = tn.FIFOQueue(1000, tn.int32, [[]])
            with tn.control_dependencies([queue.enqueue(value)]):
                result = queue.dequeue()
        else:
            return value
        result.set_shape([])
        return result


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_that_wait(seed, threads):
    program = WaitingProgram(seed)
    inputs = [tn.placeholder(tn.int32, []) for _ in range(4)]
    outputs = program.build(inputs)
    with tn.Session() as sess:
        for start in np.random.RandomState(seed).randint(-40, 57, [4, 4]):
            expected = program.run([int(value) for value in start])
            assert sess.run(outputs, dict(zip(inputs, start))) == expected


def test_one_program_in_many_threads():
    x = tn.placeholder(tn.int32, [])
    y = tn.while_loop(lambda i, _: i < 20, lambda i, t: (i + 1, t + tn.cond(
        tn.equal(i % 2, 0), lambda: tn.py_func(lambda v: v, [x], tn.int32), lambda: i)), [0, 0],
        shape_invariants=[[], tn.TensorShape(None)])[1]
    with tn.Session() as sess:
        def work(k):
            for _ in range(20):
                assert sess.run(y, {x: k}) == 100 + 10 * k
        with Threads() as side:
            for k in range(8):
                side.start(work, k)


def test_deadlines_at_any_time():
    queue = tn.FIFOQueue(10, tn.int32, [[]])
    x = tn.placeholder(tn.int32, [])
    y = tn.while_loop(lambda i, _: i < x, lambda i, t: (i + 1, t + tn.cond(
        i < 50, lambda: tn.py_func(lambda v: v, [i], tn.int32), queue.dequeue)), [0, 0],
        shape_invariants=[[], tn.TensorShape(None)])[1]
    with tn.Session() as sess:
        for ms in (1, 2, 3, 5, 8, 13, 21):
            with pytest.raises(tn.errors.DeadlineExceededError):
                sess.run(y, {x: 100}, options=tn.RunOptions(timeout_in_ms=ms))
        assert sess.run(y, {x: 20}) == 190


def test_a_session_closed_while_bodies_run():
    for delay in (0.0, 0.01, 0.03):
        with tn.Graph().as_default():
            y = tn.while_loop(lambda i: i >= 0, lambda i: tn.py_func(
                lambda v: np.int32(v // 2), [i], tn.int32), [1000],
                shape_invariants=[tn.TensorShape(None)])
            sess = tn.Session()
            thread, results = started_waiting(sess, y)
            threading.Timer(delay, sess.close).start()
            thread.join(SECONDS)
            assert isinstance(results[0], tn.errors.CancelledError), results


# --- Traces ---------------------------------------------------------------------------------------

def test_traces_tell_of_bodies():
    x = tn.placeholder(tn.float32, [8])
    y = tn.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, tn.cond(
        i > 0, lambda: tn.sqrt(v, name="root"), lambda: tn.py_func(
            lambda a: a + 1, [v], tn.float32, name="more")), ), [0, x], name="loop",
        shape_invariants=[[], tn.TensorShape(None)])[1]
    metadata = tn.RunMetadata()
    with tn.Session() as sess:
        sess.run(y, {x: np.ones(8)}, options=tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE),
                 run_metadata=metadata)
    names = [node.name for node in metadata.nodes]
    roots = [name for name in names if name.endswith("/root")]
    assert len(roots) == 2 and roots[0].startswith("loop/") and "cond" in roots[0]
    assert len([name for name in names if name.endswith("/more")]) == 1 and "loop" in names
