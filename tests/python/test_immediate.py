# SPDX-License-Identifier: Apache-2.0
"""Immediate execution: the context, values, variables, errors. Every function in it:
test_immediate_functions.py; gradients: test_tape.py."""

import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
import treenail as tn


@pytest.fixture(autouse=True)
def at_once():
    with tn.eager():
        yield


def test_the_context_decides():
    assert tn.executing_eagerly()
    x = tn.constant(2.0)
    assert float(x + 1.0) == 3.0
    with tn.Graph().as_default():
        assert not tn.executing_eagerly()
        y = x + x
        assert y.op.type == "Add" and y.op.inputs[0] is y.op.inputs[1]  # one constant
        with tn.Session() as session:
            assert session.run(y) == 4.0
        with tn.eager():
            assert float(x * 3.0) == 6.0
            with pytest.raises(TypeError, match="runs at once, which it cannot on the symbolic"):
                y + 1.0
        with pytest.raises(ValueError, match="state of immediate execution"):
            tn.identity(made_at_once())
    assert tn.executing_eagerly()


def made_at_once():
    with tn.eager():
        return tn.Variable(1.0)


def test_enabled_for_a_whole_program():
    program = """
import treenail as tn
tn.enable_eager_execution()
tn.enable_eager_execution()
import threading
seen = []
thread = threading.Thread(target=lambda: seen.append(float(tn.constant(1.0) + 1.0)))
thread.start(); thread.join()
assert seen == [2.0] and float(tn.constant(2.0) * 3.0) == 6.0
with tn.Graph().as_default():
    assert tn.placeholder(tn.float32).op.type == "Placeholder"
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          check=False)
    assert done.stdout == "done\n", done.stderr
    late = "import treenail as tn; tn.constant(1.0); tn.enable_eager_execution()"
    done = subprocess.run([sys.executable, "-c", late], capture_output=True, text=True, check=False)
    assert "must be called at program startup" in done.stderr


def test_a_value_prints_as_numpy_does():
    x = tn.constant([[1.0, 2.0], [3.0, 4.0]])
    assert str(x) == "tn.Tensor(\n[[1. 2.]\n [3. 4.]], shape=(2, 2), dtype=float32)"
    assert repr(x) == ("<tn.Tensor: shape=(2, 2), dtype=float32, numpy=\n%r>" % x.numpy())
    assert str(tn.constant(3)) == "tn.Tensor(3, shape=(), dtype=int32)"
    assert repr(tn.constant([1, 2])) == ("<tn.Tensor: shape=(2,), dtype=int32, numpy="
                                         "array([1, 2], dtype=int32)>")
    assert "b'a'" in str(tn.constant("a"))


def test_python_control_flow_looks_at_values():
    a, steps = tn.constant(27), 0
    while not tn.equal(a, 1):
        a = a // 2 if tn.equal(a % 2, 0) else a * 3 + 1
        steps += 1
    assert steps == 111
    assert [int(row) for row in tn.constant([4, 5])] == [4, 5]
    first, second = tn.constant([[1.0, 2.0], [3.0, 4.0]])
    assert isinstance(first, tn.Tensor) and float(second[1]) == 4.0
    assert [1, 2, 3][tn.constant(1)] == 2 and 5 in tn.constant([4, 5])


def test_numbers_and_subscripts_that_share_a_place():
    """Tensors of plain numbers are kept in few places."""
    for number in range(300):
        check_number(number)


def check_number(number):
    x = np.arange(301, dtype=np.float32)
    t = tn.constant(x)
    assert float(t[number]) == number and float(t[-1 - number]) == 300 - number
    np.testing.assert_array_equal(t[number:number + 3], x[number:number + 3])
    low, high = float(number), float(number) + 1.5
    np.testing.assert_array_equal(tn.raw_ops.ClipByValue(t, low, high), np.clip(x, low, high))
    np.testing.assert_array_equal(t + number, x + number)


@pytest.mark.parametrize("key", [
    0, -1, slice(None), slice(1, None), slice(None, None, -1), slice(4, 0, -2), Ellipsis, None,
    (0, 1), (slice(1, 3), 0), (Ellipsis, 0), (None, 0), (0, None, slice(None)), (slice(None), -1)])
def test_subscripts(key):
    x = np.arange(20.0).reshape(5, 4)
    np.testing.assert_array_equal(tn.constant(x)[key], x[key])


@pytest.mark.parametrize("call, text", [
    (lambda: tn.gather([1, 2, 3], 7), r"^indices = 7 is not in \[0, 3\) \[Op:Gather\]$"),
    (lambda: tn.matmul(tn.ones([2, 2]), tn.ones([3, 2])), r"a is \[2,2\], b is \[3,2\] \[Op"),
    (lambda: tn.constant([1, 2, 3])[7], r"slice index 7 of dimension 0 out of bounds"),
    (lambda: tn.reshape(tn.ones([4]), [3, 3]), r"\[Op:Reshape\]$"),
    (lambda: tn.reduce_sum(tn.ones([4]), 5), r"reduction axis = 5 is not in \[-1, 1\) \[Op:Sum\]"),
])
def test_errors_come_at_once(call, text):
    with pytest.raises(tn.errors.InvalidArgumentError, match=text):
        call()


@pytest.mark.parametrize("call, error", [
    (lambda: tn.placeholder(tn.float32), RuntimeError), (lambda: tn.Session(), RuntimeError),
    (lambda: tn.gradients(tn.constant(1.0), tn.constant(1.0)), RuntimeError),
    (lambda: tn.train.Saver(), RuntimeError), (lambda: tn.constant(1.0).op, AttributeError),
    (lambda: tn.Variable(1.0).op, AttributeError), (lambda: tn.Variable(None), ValueError),
    (lambda: bool(tn.ones([2])), ValueError),
    (lambda: tn.Variable([1.0]).assign([1.0, 2.0]), ValueError),
    (lambda: tn.train.AdamOptimizer().minimize(tn.constant(1.0)), RuntimeError)])
def test_what_is_refused(call, error):
    with pytest.raises(error):
        call()


def test_variables_are_their_holders_own():
    one, two = tn.Variable(1.0, name="v"), tn.Variable(2.0, name="v")
    assert one.name == two.name == "v:0"
    assert float(one.assign_add(10.0)) == 11.0 and float(two) == 2.0
    before = one.value()
    one.assign(5.0)
    assert float(before) == 11.0  # what was read does not change
    gone = weakref.ref(two)
    del two
    gc.collect()
    assert gone() is None


def test_parts_of_variables_and_rows():
    v = tn.Variable(np.zeros((3, 2), np.float32))
    v[1].assign([1.0, 2.0])
    v.scatter_add(tn.IndexedSlices(tn.constant([[5.0, 5.0]]), tn.constant([2])))
    np.testing.assert_array_equal(v.numpy(), [[0, 0], [1, 2], [5, 5]])
    np.testing.assert_array_equal(v.sparse_read([2, 0]), [[5, 5], [0, 0]])
    np.testing.assert_array_equal(v + 1.0, v.numpy() + 1)
    np.testing.assert_array_equal(np.float32(1.0) - v, 1 - v.numpy())


def test_random_numbers_are_those_of_a_graph():
    tn.set_random_seed(7)
    first = [tn.random_normal([3], seed=5).numpy() for _ in range(3)]
    tn.set_random_seed(7)
    again = [tn.random_normal([3], seed=5).numpy() for _ in range(3)]
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0], first[1])
    with tn.Graph().as_default(), tn.Session() as session:
        tn.set_random_seed(7)
        x = tn.random_normal([3], seed=5)
        for value in first:
            np.testing.assert_array_equal(session.run(x), value)


def test_checkpoints_cross_the_modes(tmp_path):
    if "hdf5" not in tn.build_info()["features"]:
        pytest.skip("checkpoints need HDF5")
    v = tn.Variable([1.0, 2.0], name="v")
    path = tn.train.Saver([v]).save(None, str(tmp_path / "model"), global_step=3)
    v.assign([0.0, 0.0])
    tn.train.Saver([v]).restore(None, path)
    np.testing.assert_array_equal(v, [1, 2])
    with tn.Graph().as_default(), tn.Session() as session:
        w = tn.get_variable("v", [2])
        tn.train.Saver().restore(session, path)
        np.testing.assert_array_equal(session.run(w), [1, 2])


def test_layers_and_their_losses():
    layer = tn.layers.Dense(2, kernel_regularizer=tn.regularizers.l2(0.5))
    y = layer(tn.ones([3, 4]))
    assert y.shape.as_list() == [3, 2] and len(layer.trainable_variables) == 2
    loss, = layer.losses
    assert float(loss) == pytest.approx(0.25 * np.sum(layer.variables[0].numpy()**2), rel=1e-5)
    layer.variables[0].assign(np.zeros((4, 2), np.float32))
    assert float(layer.losses[0]) == 0.0


def test_every_optimizer_updates():
    for name in ("GradientDescentOptimizer", "MomentumOptimizer", "AdamOptimizer",
                 "AdagradOptimizer", "RMSPropOptimizer", "AdadeltaOptimizer", "FtrlOptimizer"):
        kind = getattr(tn.train, name)
        args = (0.1, 0.9) if name == "MomentumOptimizer" else (0.1,)
        v, step = tn.Variable([1.0, 2.0]), tn.Variable(0, dtype=tn.int64, trainable=False)
        kind(*args).minimize(lambda v=v: tn.reduce_sum(tn.square(v)), global_step=step,
                             var_list=[v])
        with tn.Graph().as_default(), tn.Session() as session:
            w = tn.Variable([1.0, 2.0])
            train = kind(*args).minimize(tn.reduce_sum(tn.square(w)), var_list=[w])
            session.run(tn.global_variables_initializer())
            session.run(train)
            np.testing.assert_array_equal(v.numpy(), session.run(w), err_msg=name)
        assert int(step) == 1, name


def test_several_threads():
    w = tn.Variable(np.zeros(4, np.float32))
    errors = []

    def work():
        try:
            with tn.eager():
                for _ in range(200):
                    w.assign_add(tn.ones([4]))
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    np.testing.assert_array_equal(w, [800] * 4)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_fork():
    x = tn.constant([1.0, 2.0])
    pid = os.fork()
    if pid == 0:
        os._exit(0 if float(tn.reduce_sum(x + 1.0)) == 5.0 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.parametrize("ufunc", [np.multiply, np.add, np.maximum, np.less])
def test_numpy_functions_of_tensors_and_variables(ufunc):
    a, n = tn.constant([[1.0, 2.0], [3.0, 4.0]]), np.full((2, 2), 2, np.float32)
    for one in (a, tn.Variable(a)):
        for found in (ufunc(one, n), ufunc(n, one), ufunc(one, one)):
            assert type(found) is np.ndarray
        np.testing.assert_array_equal(ufunc(n, one), ufunc(n, a.numpy()))
        np.testing.assert_array_equal(np.mean(one, axis=0), [2, 3])
        np.testing.assert_array_equal(np.exp(one), np.exp(a.numpy()))


def test_operators_beside_arrays_are_the_tensors():
    a, n = tn.constant([[1.0, 2.0], [3.0, 4.0]]), np.full((2, 2), 2, np.float32)
    for one in (a, tn.Variable(a)):
        for found in (n + one, n * one, n - one, n < one, n @ one, np.float32(2) * one, n / one):
            assert isinstance(found, tn.Tensor)
    n += a
    assert isinstance(n, tn.Tensor)
