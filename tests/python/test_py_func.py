# SPDX-License-Identifier: Apache-2.0
"""tn.py_func: Python functions as operations."""
import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import treenail as tn


@pytest.fixture
def graph():
    with tn.Graph().as_default() as g:
        yield g


def run(fetches, feed=None, **options):
    with tn.Session() as sess:
        return sess.run(fetches, feed, tn.RunOptions(**options) if options else None)


def test_the_example_of_the_documentation(graph):
    def my_func(x):
        return np.sinh(x)
    x = tn.placeholder(tn.float32, [None])
    y = tn.py_func(my_func, [x], tn.float32)
    value = np.linspace(-1, 1, 7, dtype=np.float32)
    np.testing.assert_array_equal(run(y, {x: value}), np.sinh(value))


def test_several_values_of_several_dtypes(graph):
    def parts(a, b):
        return a + 1, b"text", [[True, False]], np.int64(7), b.astype(np.float64)
    a, b = tn.constant([1.5, 2.5]), tn.constant([[1, 2]])
    outputs = tn.py_func(parts, [a, b], [tn.float32, tn.string, tn.bool, tn.int64, tn.float64])
    got = run(outputs)
    np.testing.assert_array_equal(got[0], [2.5, 3.5])
    assert got[1] == b"text"
    np.testing.assert_array_equal(got[2], [[True, False]])
    assert got[3] == 7 and got[3].dtype == np.int64
    assert got[4].dtype == np.float64


def test_scalars_come_as_numpy_scalars_and_strings_as_bytes(graph):
    seen = []
    tn.py_func(lambda *values: seen.extend(values),
               [tn.constant(2), tn.constant(1.5), tn.constant("é"), tn.constant(["a", "b"])], [])
    assert run(graph.get_operations()[-1]) is None
    assert isinstance(seen[0], np.int32) and isinstance(seen[1], np.float32)
    assert seen[2] == "é".encode()
    assert list(seen[3]) == [b"a", b"b"]


def test_no_inputs_and_plain_numbers_take_the_dtype(graph):
    assert run(tn.py_func(lambda: 3, [], tn.float32)) == 3.0
    assert run(tn.py_func(lambda: 2.5, [], tn.float64)) == 2.5
    np.testing.assert_array_equal(run(tn.py_func(lambda: ([1, 2],), [], [tn.int16]))[0], [1, 2])


def test_arguments_are_the_function_s_own(graph):
    kept = []

    def change(x):
        kept.append(x)
        x += 1
        return x
    x = tn.placeholder(tn.float32, [4])
    v = tn.Variable(tn.ones([4]))
    y = x * 2
    outputs = [tn.py_func(change, [value], tn.float32) for value in (x, y, v, tn.ones([4]))]
    fed = np.ones(4, np.float32)
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        for _ in range(3):
            got = sess.run(outputs + [x, y, v], {x: fed})
            np.testing.assert_array_equal(got[:4], [[2] * 4, [3] * 4, [2] * 4, [2] * 4])
            np.testing.assert_array_equal(got[4:], [[1] * 4, [2] * 4, [1] * 4])
    np.testing.assert_array_equal(fed, np.ones(4))
    assert len(kept) == 12 and all(set(array) <= {2.0, 3.0} for array in kept)


@pytest.mark.parametrize("raised, wanted", [
    (ValueError, tn.errors.InvalidArgumentError), (TypeError, tn.errors.InvalidArgumentError),
    (StopIteration, tn.errors.OutOfRangeError), (MemoryError, tn.errors.ResourceExhaustedError),
    (NotImplementedError, tn.errors.UnimplementedError), (KeyError, tn.errors.UnknownError),
    (SystemExit, tn.errors.UnknownError), (KeyboardInterrupt, tn.errors.UnknownError),
])
def test_what_the_function_raises_comes_back_with_its_traceback(graph, raised, wanted):
    def deep():
        raise raised("some words")

    def shallow(x):
        return deep()
    y = tn.py_func(shallow, [tn.constant(1.0)], tn.float32, name="shallow")
    with pytest.raises(wanted) as info:
        run(y)
    text = str(info.value)
    assert "some words" in text and raised.__name__ in text
    assert "in shallow" in text and "in deep" in text
    assert '[PyFunc node "shallow"]' in text
    assert info.value.op is y.op


def test_own_errors_keep_their_class(graph):
    def refuse():
        raise tn.errors.DataLossError(None, None, "torn")
    with pytest.raises(tn.errors.DataLossError, match="torn"):
        run(tn.py_func(refuse, [], tn.float32))


@pytest.mark.parametrize("function, dtypes, text", [
    (lambda: np.float64(1), tn.float32, "0-th value returned by pyfunc_[0-9]+ is float64, but "
     "expects float32"),
    (lambda: np.zeros(3, np.int64), tn.int32, "is int64, but expects int32"),
    (lambda: (1.0, 2.0), [tn.float32], "returns 2 values, but expects to see 1 values"),
    (lambda: None, [tn.float32], "returns 0 values"),
    (lambda: 1.5, tn.int32, "0-th value returned by pyfunc_[0-9]+: "),
    (lambda: "text", tn.int32, "0-th value"),
    (lambda: [[1], [2, 3]], [tn.int32, tn.int32, tn.int32], "returns 2 values"),
    (lambda: ([[1], [2, 3]],), [tn.int32], "0-th value"),
    (lambda: object(), tn.float32, "0-th value"),
])
def test_other_values_than_stated(graph, function, dtypes, text):
    with pytest.raises(tn.errors.InvalidArgumentError, match=text):
        run(tn.py_func(function, [], dtypes))


def test_another_shape_than_stated(graph):
    y = tn.py_func(lambda: np.zeros(3, np.float32), [], tn.float32)
    y.set_shape([2])
    with pytest.raises(tn.errors.InvalidArgumentError):
        run(y + tn.ones([2]))


def test_wrong_arguments(graph):
    with pytest.raises(ValueError, match="callable"):
        tn.py_func(3, [], tn.float32)
    with pytest.raises(TypeError, match="list"):
        tn.py_func(abs, tn.constant(1.0), tn.float32)
    with pytest.raises(TypeError):
        tn.py_func(abs, [tn.constant(1.0)], "no dtype")


def test_as_many_threads_as_calls_that_wait(graph):
    count = 40
    barrier = threading.Barrier(count, timeout=60)

    def meet():
        barrier.wait()
        return 1
    values = [tn.py_func(meet, [], tn.int32) for _ in range(count)]
    assert run(tn.add_n(values)) == count


def test_a_function_may_run_a_session(graph):
    v = tn.Variable(2.0)
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        y = tn.py_func(lambda x: sess.run(v) + x, [v * 10], tn.float32)
        assert sess.run(y) == 22


def test_two_threads_run_while_functions_wait(graph):
    events = [threading.Event(), threading.Event()]

    def hand(i):
        events[i].set()
        assert events[1 - i].wait(60)
        return np.int32(i)
    values = [tn.py_func(hand, [i], tn.int32) for i in range(2)]
    with tn.Session() as sess:
        results = [None, None]

        def work(i):
            results[i] = sess.run(values[i])
        threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [0, 1]


def test_a_timeout_does_not_wait_for_the_function(graph):
    release = threading.Event()
    try:
        y = tn.py_func(lambda x: release.wait(60) and x, [tn.constant(1.0)], tn.float32)
        with pytest.raises(tn.errors.DeadlineExceededError):
            run(y, timeout_in_ms=50)
    finally:
        release.set()


def test_closing_the_session_does_not_wait_for_the_function(graph):
    entered, release = threading.Event(), threading.Event()

    def wait():
        entered.set()
        release.wait(60)
        return 1
    y = tn.py_func(wait, [], tn.int32)
    sess, errors = tn.Session(), []

    def work():
        try:
            sess.run(y)
        except tn.errors.CancelledError as error:
            errors.append(error)
    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(60)
    sess.close()
    thread.join()
    release.set()
    assert len(errors) == 1


def test_functions_go_with_their_graph():
    class Marker:
        def __call__(self):
            return 1
    marker = Marker()
    alive = weakref.ref(marker)
    with tn.Graph().as_default():
        y = tn.py_func(marker, [], tn.int32)
        del marker
        gc.collect()
        assert run(y) == 1
    del y
    for _ in range(3):
        gc.collect()
    assert alive() is None


def test_a_loaded_graph_does_not_have_the_function(graph):
    y = tn.raw_ops.PyFunc([], token="pyfunc_of_elsewhere", Tout=[tn.int32])
    with pytest.raises(tn.errors.NotFoundError, match="pyfunc_of_elsewhere"):
        run(y)


def test_a_gradient_by_override(graph):
    tn.RegisterGradient("PyFuncSquare")(lambda op, grad: 2 * op.inputs[0] * grad)
    x = tn.constant([1.0, 2.0, 3.0])
    with graph.gradient_override_map({"PyFunc": "PyFuncSquare"}):
        y = tn.py_func(np.square, [x], tn.float32)
    np.testing.assert_array_equal(run(tn.gradients(y, x)[0]), [2, 4, 6])
    assert tn.gradients(tn.py_func(np.square, [x], tn.float32), x) == [None]


def test_stateless_and_numpy_function(graph):
    y = tn.py_func(np.negative, [tn.constant([1.0])], tn.float32, stateful=False)
    assert y.op.type == "PyFuncStateless"
    z = tn.numpy_function(np.negative, [tn.constant([1.0])], tn.float32, name="neg")
    assert z.op.type == "PyFunc" and z.op.name == "neg"
    np.testing.assert_array_equal(run([y, z]), [[-1], [-1]])


def test_at_once(graph):
    y = tn.py_func(lambda x: x * 2, [tn.constant([1.0])], tn.float32)
    got = tn.execute("PyFunc", [[np.float32([1, 2])]], token=y.op.get_attr("token"),
                     Tout=[tn.float32])
    np.testing.assert_array_equal(got[0], [2, 4])


def test_downstream_in_a_training_step(graph):
    x = tn.placeholder(tn.float32, [None, 3])
    noisy = tn.py_func(lambda a: a + np.float32(0.5), [x], tn.float32)
    noisy.set_shape([None, 3])
    w = tn.Variable(tn.zeros([3, 1]))
    loss = tn.reduce_mean(tn.square(tn.matmul(noisy, w) - 1.0))
    step = tn.train.GradientDescentOptimizer(0.05).minimize(loss)
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        losses = [sess.run([step, loss], {x: np.ones((4, 3))})[1] for _ in range(50)]
    assert losses[-1] < 1e-3 < losses[0]


PROGRAM = """
import os, signal, sys, threading, time
import treenail as tn
entered = threading.Event()
def forever():
    entered.set()
    time.sleep(600)
y = tn.py_func(forever, [], [])
"""


def child(program, timeout=60):
    return subprocess.run([sys.executable, "-c", PROGRAM + program], capture_output=True,
                          text=True, timeout=timeout)


def test_ctrl_c_ends_the_run_while_a_function_sleeps():
    done = child("""
def interrupt():
    entered.wait()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    tn.Session().run(tn.get_default_graph().get_operations()[-1])
except KeyboardInterrupt:
    print("interrupted", flush=True)
    os._exit(0)
""")
    assert done.stdout == "interrupted\n", done.stderr


def test_python_ends_while_a_function_sleeps():
    done = child("""
sess = tn.Session()
op = tn.get_default_graph().get_operations()[-1]
threading.Thread(target=lambda: sess.run(op), daemon=True).start()
entered.wait()
print("end", flush=True)
""")
    assert (done.stdout, done.returncode) == ("end\n", 0), done.stderr
