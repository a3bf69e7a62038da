# SPDX-License-Identifier: Apache-2.0
"""Values that variables keep are computed in the memory that they will live in."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import treenail as tn

MIB = 1 << 20

# What the process grows by, in units of a variable of 64 MiB.
GROWTH = textwrap.dedent("""
    import numpy as np
    import treenail as tn
    def resident():
        with open("/proc/self/statm") as stream:
            return int(stream.read().split()[1]) * 4096
    n = 1 << 24
    given = tn.placeholder(tn.float32, [])
    v = tn.Variable({initial}, validate_shape=True)
    change = {change}
    session = tn.Session()
    small = tn.Variable(tn.random_normal([4]) * 2.0)
    session.run([small.initializer, tn.assign(small, small * 2.0 + given).op], {{given: 1.0}})
    before = resident()
    session.run(v.initializer)
    middle = resident()
    for _ in range(3):
        session.run(change, {{given: 1.0}})
    print((middle - before) / (4 * n), (resident() - middle) / (4 * n))
""")

INITIAL = ["tn.zeros([n])", "tn.random_normal([n], stddev=0.1)", "tn.truncated_normal([n])",
           "tn.random_uniform([n], -1.0, 1.0)", "tn.glorot_uniform_initializer()([n // 64, 64])",
           "tn.tanh(tn.random_normal([n]) * 2.0 + 1.0)"]


@pytest.mark.parametrize("initial", INITIAL)
def test_initialising_a_variable_takes_its_size_and_no_more(initial):
    program = GROWTH.format(initial=initial, change="tn.assign(v, v * 2.0 + given).op")
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
                          check=True)
    initialised, assigned = map(float, done.stdout.split())
    assert initialised < 1.2 and assigned < 0.2


@pytest.mark.parametrize("change", [
    "tn.assign(v, v * 2.0).op", "tn.assign(v, given - v).op", "v.assign_add(v * 2.0).op",
    "tn.assign(v, tn.maximum(v, 0.0) * given + tn.sin(v)).op"])
def test_updating_a_variable_takes_nothing_lasting(change):
    program = GROWTH.format(initial="tn.zeros([n])", change=change)
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
                          check=True)
    # The right side of assign_add is a value of its own, in the arena.
    assert float(done.stdout.split()[1]) < (1.2 if "assign_add" in change else 0.2)


@pytest.fixture(name="sess")
def _sess():
    with tn.Session() as session:
        yield session


def made(session, value):
    v = tn.Variable(np.asarray(value))
    session.run(v.initializer)
    return v


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64", "float16"])
@pytest.mark.parametrize("n", [0, 1, 7, 1000])
def test_an_update_over_the_old_value_is_right(sess, dtype, n):
    start = np.arange(n).astype(dtype)
    v = made(sess, start)
    step = tn.assign(v, v * 2 + 1)
    np.testing.assert_array_equal(sess.run(step), start * 2 + 1)
    np.testing.assert_array_equal(sess.run(v), start * 2 + 1)
    sess.run(step.op)
    np.testing.assert_array_equal(sess.run(v), (start * 2 + 1) * 2 + 1)


def test_what_was_read_before_an_update_stays(sess):
    v = made(sess, np.ones(1000, np.float32))
    before = sess.run(v)
    sess.run(tn.assign(v, v * 3.0).op)
    assert (before == 1).all() and (sess.run(v) == 3).all()


def test_other_readers_of_the_old_value_see_it(sess):
    v = made(sess, np.full(1000, 2.0, np.float32))
    old = v * 10.0
    step = tn.assign(v, v + 1.0)
    values = sess.run([old, step, tn.reduce_sum(v)])
    assert (values[0] == 20).all() and (values[1] == 3).all() and values[2] == 2000
    with tn.control_dependencies([v.value()]):
        late = tn.constant(1.0) + 1.0
    with tn.control_dependencies([late]):
        chained = tn.assign(v, v * 2.0)
    assert (sess.run(chained) == 6).all()


def test_two_writers_of_one_run_both_count(sess):
    v = made(sess, np.full(10, 2.0, np.float32))
    first = v.assign_add(tn.ones([10]))
    with tn.control_dependencies([first]):
        second = tn.assign(v, v.read_value() * 10.0)
    assert (sess.run(second) == 30).all()
    w = made(sess, np.full(10, 2.0, np.float32))
    with tn.control_dependencies([w.value()]):
        first = w.assign_add(tn.ones([10]))
    with tn.control_dependencies([first]):
        second = tn.assign(w, w.value() * 10.0)
    sess.run(second)
    assert sess.run(w)[0] in (20, 30)


def test_views_and_other_shapes_of_the_old_value(sess):
    v = made(sess, np.arange(12, dtype=np.float32).reshape(3, 4))
    sess.run(tn.assign(v, v + tn.reshape(tn.transpose(v), [3, 4])).op)
    start = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(sess.run(v), start + start.T.reshape(3, 4))
    w = made(sess, np.arange(4, dtype=np.float32))
    sess.run(tn.assign(w, w + tn.reshape(w, [4])[::-1]).op)
    np.testing.assert_array_equal(sess.run(w), [3, 3, 3, 3])
    u = made(sess, np.arange(3, dtype=np.float32))
    sess.run(tn.assign(u, u * u[1] + u[2]).op)
    np.testing.assert_array_equal(sess.run(u), [2, 3, 4])


def test_an_uninitialised_variable_is_named(sess):
    v = tn.Variable(np.ones(3, np.float32), name="late")
    with pytest.raises(tn.errors.FailedPreconditionError, match="uninitialized value late"):
        sess.run(tn.assign(v, v * 2.0).op)


def test_a_failed_right_side_leaves_integers_whole(sess):
    v = made(sess, np.arange(5000, dtype=np.int32))
    divisor = np.ones(5000, np.int32)
    divisor[4000] = 0
    with pytest.raises(tn.errors.InvalidArgumentError, match="division by zero|Integer division"):
        sess.run(tn.assign(v, v // tn.constant(divisor)).op)
    np.testing.assert_array_equal(sess.run(v), np.arange(5000))


def test_fresh_memory_goes_along_operations_in_place(sess):
    x = tn.placeholder(tn.float32, [MIB])
    y = tn.tanh(tn.nn.relu(tn.cumsum(x) + 1.0) * 0.5)
    metadata = tn.RunMetadata()
    value = np.linspace(-1e-3, 1e-3, MIB).astype(np.float32)
    result = sess.run(y, {x: value}, None, metadata)
    np.testing.assert_allclose(result, np.tanh(np.maximum(np.cumsum(value) + 1, 0) * 0.5),
                               rtol=1e-4)
    assert metadata.peak_bytes < 4 * MIB + 100_000  # the result, and nothing beside it
