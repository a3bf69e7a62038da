# SPDX-License-Identifier: Apache-2.0
"""Gradients of what ran at once: tapes and the functions on them. Oracles: closed forms, NumPy, and
tn.gradients of the same function in a graph."""

import threading

import numpy as np
import pytest
import treenail as tn


@pytest.fixture(autouse=True)
def at_once():
    with tn.eager():
        yield


def test_watched_tensor():
    x = tn.constant([1.0, 2.0])
    with tn.GradientTape() as tape:
        tape.watch(x)
        y = tn.reduce_sum(x * x * x)
    np.testing.assert_array_equal(tape.gradient(y, x), [3.0, 12.0])


def test_variables_are_watched_in_the_order_of_use():
    a, b, c = tn.Variable(1.0), tn.Variable(2.0), tn.Variable(3.0, trainable=False)
    with tn.GradientTape() as tape:
        y = b * a + c
    assert tape.watched_variables() == (b, a)
    assert tape.gradient(y, [a, b, c])[2] is None


def test_variables_are_not_watched_where_that_is_said():
    v = tn.Variable(2.0)
    with tn.GradientTape(watch_accessed_variables=False) as tape:
        y = v * v
    assert tape.gradient(y, v) is None
    with tn.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(v)
        y = v * v
    assert float(tape.gradient(y, v)) == 4.0


def test_what_is_not_watched_has_no_gradient():
    x = tn.constant(3.0)
    with tn.GradientTape() as tape:
        y = x * x
    assert tape.gradient(y, x) is None


def test_unconnected_gradients():
    x, z = tn.constant([3.0, 1.0]), tn.constant([1.0])
    with tn.GradientTape(persistent=True) as tape:
        tape.watch([x, z])
        y = x * x
    assert tape.gradient(y, z) is None
    np.testing.assert_array_equal(tape.gradient(y, z, unconnected_gradients="zero"), [0.0])
    with pytest.raises(ValueError, match="unconnected_gradients"):
        tape.gradient(y, z, unconnected_gradients="ones")


def test_structures_of_sources_and_targets():
    x, y = tn.constant(3.0), tn.constant(4.0)
    with tn.GradientTape() as tape:
        tape.watch({"x": x, "y": [y]})
        targets = [x * y, y * y]
    found = tape.gradient(targets, {"x": x, "y": [y]})
    assert float(found["x"]) == 4.0 and float(found["y"][0]) == 3.0 + 8.0


def test_output_gradients():
    x = tn.constant([1.0, 2.0])
    with tn.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    np.testing.assert_array_equal(tape.gradient(y, x, output_gradients=[10.0, 100.0]),
                                  [20.0, 400.0])


def test_a_tape_gives_gradients_once_unless_it_is_persistent():
    x = tn.constant(3.0)
    with tn.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match="once on non-persistent"):
        tape.gradient(y, x)
    with tn.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert float(tape.gradient(z, x)) == 108.0 and float(tape.gradient(y, x)) == 6.0
    assert float(tape.gradient(z, y)) == 18.0


def test_gradients_of_gradients():
    x = tn.constant(2.0)
    with tn.GradientTape() as outer:
        outer.watch(x)
        with tn.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        first = inner.gradient(y, x)
    assert float(outer.gradient(first, x)) == 12.0


def test_five_orders():
    def derivative(f):
        return lambda x: tn.gradients_function(f)(x)[0]
    f = lambda x: x**6  # noqa: E731
    wanted = [6 * 2.0**5, 30 * 2.0**4, 120 * 2.0**3, 360 * 2.0**2, 720 * 2.0]
    for order in wanted:
        f = derivative(f)
        assert float(f(2.0)) == pytest.approx(order, rel=1e-6)


def test_stop_recording():
    x = tn.constant(3.0)
    with tn.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tn.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            with tape.stop_recording():
                z = y * x
            w = y + z
    assert float(tape.gradient(w, x)) == 6.0
    assert float(outer.gradient(w, x)) == 6.0 + 27.0


def test_a_tape_opened_again_begins_anew_or_goes_on():
    x = tn.constant(3.0)
    tape = tn.GradientTape(persistent=True)
    with tape:
        tape.watch(x)
        y = x * x
    with tape:
        z = y * x
    assert float(tape.gradient(z, x)) == 27.0
    with tape, pytest.raises(ValueError, match="already recording"):
        tape.__enter__()


def test_reset_forgets():
    x = tn.constant(3.0)
    with tn.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
        tape.watch(x)
        z = x * x * x
    assert tape.gradient(y, x) is None
    assert float(tape.gradient(z, x)) == 27.0


def test_gathered_rows_are_indexed_slices():
    table = tn.Variable(np.ones((5, 2), np.float32))
    with tn.GradientTape() as tape:
        y = tn.reduce_sum(tn.nn.embedding_lookup(table, [1, 3, 1]) * 2.0)
    found = tape.gradient(y, table)
    assert isinstance(found, tn.IndexedSlices)
    dense = tn.convert_to_tensor(found)
    np.testing.assert_array_equal(dense, [[0, 0], [4, 4], [0, 0], [2, 2], [0, 0]])


def test_jacobian_and_batch_jacobian():
    a = np.random.RandomState(0).randn(3, 4).astype(np.float32)
    x = tn.constant(np.random.RandomState(1).randn(4).astype(np.float32))
    with tn.GradientTape() as tape:
        tape.watch(x)
        y = tn.tanh(tn.reshape(tn.matmul(a, tn.expand_dims(x, 1)), [3]))
    wanted = (1 - y.numpy()**2)[:, None] * a
    np.testing.assert_allclose(tape.jacobian(y, x), wanted, rtol=1e-6)
    rows = tn.constant(np.random.RandomState(2).randn(2, 4).astype(np.float32))
    with tn.GradientTape() as tape:
        tape.watch(rows)
        y = rows[:, :3] * rows[:, 1:] * tn.constant([1.0, 2.0, 3.0])
    found = tape.batch_jacobian(y, rows)
    assert found.shape.as_list() == [2, 3, 4]
    for b in range(2):
        for i in range(3):
            wanted = np.zeros(4, np.float32)
            wanted[i] += rows.numpy()[b, i + 1] * (i + 1)
            wanted[i + 1] += rows.numpy()[b, i] * (i + 1)
            np.testing.assert_allclose(found.numpy()[b, i], wanted, rtol=1e-6)


def test_functions_of_functions():
    def f(x, y):
        return x * x * y
    assert [float(g) for g in tn.gradients_function(f)(3.0, 2.0)] == [12.0, 9.0]
    assert [float(g) for g in tn.gradients_function(f, params=["y"])(3.0, 2.0)] == [9.0]
    assert [float(g) for g in tn.gradients_function(f, params=[0])(3.0, 2.0, dy=10.0)] == [120.0]
    value, found = tn.value_and_gradients_function(f)(3.0, 2.0)
    assert float(value) == 18.0 and len(found) == 2
    v = tn.Variable(5.0)
    (gradient, variable), = tn.implicit_gradients(lambda x: v * v * x)(2.0)
    assert variable is v and float(gradient) == 20.0
    value, pairs = tn.implicit_value_and_gradients(lambda: v * 3.0)()
    assert float(value) == 15.0 and float(pairs[0][0]) == 3.0
    with pytest.raises(ValueError, match="No trainable variables"):
        tn.implicit_gradients(lambda: tn.constant(1.0))()
    with pytest.raises(ValueError, match="returns None"):
        tn.gradients_function(lambda x: None)(1.0)


def test_python_control_flow_is_differentiated():
    def f(x, n):
        for i in range(n):
            if x.numpy() > 10.0:
                break
            x = x * x
        return x
    assert float(tn.gradients_function(lambda x: f(x, 5))(2.0)[0]) == 4 * 2.0**3


def test_each_thread_has_its_own_tapes():
    x = tn.constant(3.0)
    seen = []

    def elsewhere():
        with tn.eager():
            y = x * x
            with tn.GradientTape() as tape:
                tape.watch(x)
                z = x * x * x
            seen.append((float(tape.gradient(z, x)), y))
    with tn.GradientTape() as tape:
        tape.watch(x)
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        y = x * x
    assert seen[0][0] == 27.0
    assert tape.gradient(seen[0][1], x) is None
    # y of this thread is known to this tape alone
    with tn.GradientTape(persistent=True) as other:
        other.watch(x)
        z = y * x
    assert float(other.gradient(z, x)) == 9.0


@pytest.mark.parametrize("bad, error, text", [
    (lambda t: t.watch(3.0), TypeError, "must be a tensor of immediate execution"),
    (lambda t: t.watch(tn.constant(1)), ValueError, "floating or complex"),
    (lambda t: t.gradient(tn.constant(1.0), 2.0), TypeError, "a source must be"),
    (lambda t: t.gradient(2.0, tn.constant(1.0)), TypeError, "a target must be"),
    (lambda t: t.stop_recording(), RuntimeError, "not recording"),
])
def test_bad_uses(bad, error, text):
    with tn.GradientTape(persistent=True) as tape:
        pass
    with tape:
        pass
    with pytest.raises(error, match=text):
        bad(tape)


def test_what_is_not_differentiable_gives_none():
    x = tn.constant([3.0, 1.0])
    with tn.GradientTape() as tape:
        tape.watch(x)
        y = tn.py_func(lambda v: v * 2, [x], tn.float32)
    assert tape.gradient(y, x) is None


def test_memory_of_a_tape_is_freed_with_the_gradient():
    import gc
    x = tn.constant(np.ones(1000, np.float32))
    with tn.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(10):
            y = tn.tanh(y)
        total = tn.reduce_sum(y)
    assert tape.gradient(total, x).shape.as_list() == [1000]
    gc.collect()
    v = tn.Variable([1.0])
    with tn.GradientTape() as tape:
        loss = v * v
    tape.gradient(loss, v)
    before = v.value()
    v.assign([2.0])
    assert float(before[0]) == 1.0 and float(v.value()[0]) == 2.0
