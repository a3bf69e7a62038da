# SPDX-License-Identifier: Apache-2.0
"""ConditionalAccumulator and SparseConditionalAccumulator against plain NumPy, from one thread and
from several."""

import random
import time

import numpy as np
import pytest

import treenail as tn
from waiting import Threads, check_ends_of_waiting, check_fork, started_waiting


@pytest.fixture(name="sess")
def _sess():
    with tn.Session() as session:
        yield session


NUMBERS = ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "uint16", "int32",
           "uint32", "int64", "uint64", "complex64", "complex128"]


def mean_of(values, dtype):
    """As the accumulator has it: integers towards zero, halves rounded after each addition."""
    if dtype in ("float16", "bfloat16"):
        return np.float32(sum(values)) / len(values)  # small integers: exact
    total = np.sum(values, axis=0, dtype=dtype)
    if np.dtype(dtype).kind in "iu":
        return np.trunc(total / len(values)).astype(dtype)
    return total / np.asarray(len(values), dtype)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_mean_and_sum_of_every_number(sess, dtype):
    low = 0 if dtype.startswith("u") else -10
    values = [np.random.RandomState(i).randint(low, 20, [3, 2]) for i in range(3)]
    for reduction in "MEAN", "SUM":
        acc = tn.ConditionalAccumulator(dtype, [3, None], reduction_type=reduction)
        for value in values:
            sess.run(acc.apply_grad(tn.cast(tn.constant(value), dtype)))
        got = sess.run(tn.cast(acc.take_grad(3), "float64" if dtype.endswith("float16") else
                               tn.as_dtype(dtype)))
        if reduction == "SUM":
            np.testing.assert_array_equal(got, sum(values))
        else:
            np.testing.assert_allclose(got, mean_of(values, dtype),
                                       rtol={"bfloat16": 0.01, "float16": 1e-3}.get(dtype, 1e-6))


def test_names_and_what_is_known_of_shapes():
    with tn.name_scope("a"):
        acc = tn.ConditionalAccumulator(tn.float32, [2, None], name="b")
    assert (acc.name, acc.dtype, acc.accumulator_ref.dtype) == ("b", tn.float32, tn.resource)
    assert acc.accumulator_ref.op.name == "a/b"
    assert acc.take_grad(1).shape.as_list() == [2, None]
    assert tn.ConditionalAccumulator(tn.float32).take_grad(1).shape.ndims is None
    assert acc.num_accumulated().op.name == "b_NumAccumulated"
    assert isinstance(acc, tn.ConditionalAccumulatorBase)
    sparse = tn.SparseConditionalAccumulator(tn.float64, name="s")
    indices, values, shape = sparse.take_grad(1)
    assert (indices.dtype, values.dtype, shape.dtype) == (tn.int64, tn.float64, tn.int64)
    assert tn.sparse.SparseConditionalAccumulator is tn.SparseConditionalAccumulator


def test_gradients_of_earlier_steps_are_dropped(sess):
    acc = tn.ConditionalAccumulator(tn.float32, [])
    step = tn.placeholder(tn.int32, [])
    put, take, count = acc.apply_grad(1.0, step), acc.take_grad(1), acc.num_accumulated()
    sess.run(acc.set_global_step(5))
    for local, there in [(4, 0), (5, 1), (9, 2)]:
        sess.run(put, {step: local})
        assert sess.run(count) == there
    sess.run(take)
    sess.run(put, {step: 5})
    assert sess.run(count) == 0
    sess.run(acc.set_global_step(tn.constant(0)))
    sess.run(put, {step: 0})
    assert sess.run(count) == 1


def test_a_gradient_with_a_place_is_of_this_very_step(sess):
    """Another one was computed of variables that are no more, after a step back."""
    dense = tn.ConditionalAccumulator(tn.float32, [2])
    sparse = tn.SparseConditionalAccumulator(tn.float32, [2])
    step = tn.placeholder(tn.int64, [])
    for acc, put in [(dense, lambda i: dense.apply_grad([1.0, 1.0], step, place=i)),
                     (sparse, lambda i: sparse.apply_grad([1], [1.0], local_step=step, place=i))]:
        first, second, count = put(0), put(1), acc.num_accumulated()
        back, same = acc.set_global_step(4), acc.set_global_step(5)
        sess.run(same)
        for local, there in [(6, 0), (4, 0), (5, 1), (5, 1)]:
            sess.run(first, {step: local})
            assert sess.run(count) == there
        sess.run(same)
        sess.run(second, {step: 5})
        assert sess.run(count) == 2
        sess.run(back)
        assert sess.run(count) == 0
        sess.run(first, {step: 5})
        sess.run(second, {step: 4})
        assert sess.run(count) == 1


def test_a_take_waits_for_enough(sess):
    acc = tn.ConditionalAccumulator(tn.float32, [2])
    put = acc.apply_grad([2.0, 4.0])
    thread, results = started_waiting(sess, acc.take_grad(2) * 10.0)
    sess.run(put)
    assert not results and sess.run(acc.num_accumulated()) == 1
    sess.run(put)
    thread.join(60)
    np.testing.assert_array_equal(results[0], [20, 40])


def test_what_is_taken_and_given_in_one_run(sess):
    acc = tn.ConditionalAccumulator(tn.float32, [])
    take = acc.take_grad(3)
    puts = [acc.apply_grad(float(i), 10) for i in range(3)]
    assert sess.run([take] + puts) == [1.0, None, None, None]
    with tn.control_dependencies([take]):
        after = acc.num_accumulated()
    assert sess.run([after] + puts)[0] == 0


def test_sessions_and_shared_names():
    first = tn.ConditionalAccumulator(tn.float32, [], shared_name="one")
    second = tn.ConditionalAccumulator(tn.float32, [], shared_name="one")
    with tn.Session() as a, tn.Session() as b:
        a.run(first.apply_grad(1.0))
        assert a.run(second.num_accumulated()) == 1
        assert b.run(second.num_accumulated()) == 0
        other = tn.ConditionalAccumulator(tn.float32, [2], shared_name="one")
        with pytest.raises(tn.errors.InvalidArgumentError, match=(
                r"Shared conditional accumulator one has dtype float32, shape \[\] and reduction "
                r"MEAN; it is asked for with dtype float32, shape \[2\] and")):
            a.run(other.num_accumulated())
        sparse = tn.SparseConditionalAccumulator(tn.float32, [], shared_name="one")
        with pytest.raises(tn.errors.InvalidArgumentError, match="is a ConditionalAccumulator"):
            a.run(sparse.num_accumulated())


# --- Sparse ---------------------------------------------------------------------------------------

def model_of(gradients, mean):
    """{index: slice} of a list of (indices, values)."""
    sums, counts = {}, {}
    for indices, values in gradients:
        for index, value in zip(indices, values):
            sums[index] = sums[index] + value if index in sums else value.copy()
        for index in set(indices):
            counts[index] = counts.get(index, 0) + 1
    return {i: sums[i] / np.float32(counts[i]) if mean else sums[i] for i in sums}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("reduction", ["MEAN", "SUM"])
def test_sparse_gradients_against_a_dictionary(sess, seed, reduction):
    rng = np.random.RandomState(seed)
    width = rng.randint(0, 4)
    acc = tn.SparseConditionalAccumulator(tn.float32, [50, width], reduction_type=reduction)
    indices, values = tn.placeholder(tn.int32, [None]), tn.placeholder(tn.float32, [None, width])
    put, count = acc.apply_grad(indices, values, [50, width], 100), tn.placeholder(tn.int32, [])
    take = acc.take_grad(count)
    for _ in range(5):
        gradients = []
        for _ in range(rng.randint(1, 6)):
            n = rng.randint(0, 30)
            gradients.append((rng.randint(0, 50, n), rng.randn(n, width).astype(np.float32)))
            sess.run(put, dict(zip((indices, values), gradients[-1])))
        got = sess.run(take, {count: len(gradients)})
        wanted = model_of(gradients, reduction == "MEAN")
        assert got.indices.tolist() == sorted(wanted)
        np.testing.assert_array_equal(got.values, np.array(
            [wanted[i] for i in sorted(wanted)], np.float32).reshape(len(wanted), width))
        assert got.shape.tolist() == [50, width]


def test_indexed_slices_there_and_back(sess):
    table = tn.Variable(tn.zeros([10, 2]))
    acc = tn.SparseConditionalAccumulator(tn.float32)
    ids = tn.placeholder(tn.int32, [None])
    gradient, = tn.gradients(tn.reduce_sum(tn.nn.embedding_lookup(table, ids) * 2.0), table)
    put, taken = acc.apply_indexed_slices_grad(gradient), acc.take_indexed_slices_grad(2)
    sess.run(table.initializer)
    sess.run(put, {ids: [3, 1, 3]})
    sess.run(put, {ids: [3]})
    got = sess.run(taken)
    assert (got.indices.tolist(), got.dense_shape.tolist()) == ([1, 3], [-1, 2])
    np.testing.assert_array_equal(got.values, [[2, 2], [3, 3]])


# --- Several threads ------------------------------------------------------------------------------

@pytest.mark.parametrize("seed", range(4))
def test_random_programs_of_threads_lose_nothing(seed):
    """Powers of two, each given once: every one is in exactly one sum."""
    rng = random.Random(seed)
    acc = tn.ConditionalAccumulator(tn.int64, [], reduction_type="SUM")
    value, needed = tn.placeholder(tn.int64, []), tn.placeholder(tn.int32, [])
    put, take = acc.apply_grad(value, 10 ** 9), acc.take_grad(needed)
    bits, taken = list(range(60)), []
    rng.shuffle(bits)
    with tn.Session() as sess:
        def give(mine):
            for bit in mine:
                sess.run(put, {value: 1 << bit})

        def pick():
            while True:
                try:
                    taken.append(sess.run(take, {needed: rng.randint(1, 3)},
                                          options=tn.RunOptions(timeout_in_ms=rng.choice(
                                              [1, 5, 300]))))
                except tn.errors.DeadlineExceededError:
                    if sum(taken) == (1 << 60) - 1 or not givers.is_alive():
                        return
        with Threads() as threads:
            givers = threads.start(give, bits[:20])
            for part in bits[20:40], bits[40:]:
                threads.start(give, part)
            for _ in range(3):
                threads.start(pick)
        while sess.run(acc.num_accumulated()):
            taken.append(sess.run(take, {needed: 1}))
    assert sum(taken) == (1 << 60) - 1
    assert sum(bin(t).count("1") for t in taken) == 60


def test_training_in_step_is_training_on_one_big_batch():
    """Four workers, each with a quarter of the batch, and a chief who applies their mean."""
    rng = np.random.RandomState(0)
    xs, workers, steps = rng.randn(64, 5).astype(np.float32), 4, 20
    ys = (xs @ rng.randn(5, 1) + 0.5).astype(np.float32)
    x, y = tn.placeholder(tn.float32, [None, 5]), tn.placeholder(tn.float32, [None, 1])
    w, b = tn.Variable(tn.zeros([5, 1])), tn.Variable(tn.zeros([1]))
    loss = tn.reduce_mean(tn.square(tn.matmul(x, w) + b - y))
    optimizer = tn.train.GradientDescentOptimizer(0.1)
    gradients = optimizer.compute_gradients(loss, [w, b])
    alone = optimizer.apply_gradients(gradients)
    accs = [tn.ConditionalAccumulator(tn.float32, v.shape) for _, v in gradients]
    step = tn.placeholder(tn.int64, [])
    puts = [acc.apply_grad(g, step) for acc, (g, _) in zip(accs, gradients)]
    update = optimizer.apply_gradients([(acc.take_grad(workers), v)
                                        for acc, (_, v) in zip(accs, gradients)])
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        for _ in range(steps):
            sess.run(alone, {x: xs, y: ys})
        wanted = sess.run([w, b])
        sess.run(tn.global_variables_initializer())
        done = [0]

        def work(i):
            mine = {x: xs[i::workers], y: ys[i::workers]}
            for k in range(steps):
                sess.run(puts, {**mine, step: k})
                while done[0] <= k:
                    time.sleep(0.0005)

        def lead():
            for k in range(steps):
                sess.run(update)
                done[0] = k + 1
        with Threads() as threads:
            for i in range(workers):
                threads.start(work, i)
            threads.start(lead)
        for got, value in zip(sess.run([w, b]), wanted):
            np.testing.assert_allclose(got, value, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("n", [100_000, 1_000_000])
def test_large_gradients(sess, n):
    acc = tn.ConditionalAccumulator(tn.float32, [n])
    x = tn.placeholder(tn.float32, [n])
    put, take = acc.apply_grad(x + 0.0), acc.take_grad(4)
    for i in range(4):
        sess.run(put, {x: np.full(n, i, np.float32)})
    assert (sess.run(take) == 1.5).all()
    sparse = tn.SparseConditionalAccumulator(tn.float32, reduction_type="SUM")
    indices = tn.placeholder(tn.int64, [None])
    put = sparse.apply_grad(indices, tn.ones([n // 10, 2]))
    for i in range(10):
        sess.run(put, {indices: np.arange(i, n, 10)})
    got = sess.run(sparse.take_grad(10))
    assert (got.indices == np.arange(n)).all() and (got.values == 1).all()


# --- Ends of waiting, and mistakes ----------------------------------------------------------------

def test_deadlines_and_closed_sessions():
    def dense():
        acc = tn.ConditionalAccumulator(tn.float32, [])
        return acc.take_grad(2), [acc.apply_grad(1.0)] * 2

    def sparse():
        acc = tn.SparseConditionalAccumulator(tn.float32)
        return acc.take_grad(2), [acc.apply_grad([0], [1.0])] * 2
    check_ends_of_waiting(dense)
    check_ends_of_waiting(sparse)


def test_a_fork_while_a_thread_waits():
    check_fork("""
acc = tn.ConditionalAccumulator(tn.float32, [100])
put, take, count = acc.apply_grad(tn.ones([100])), acc.take_grad(2), acc.num_accumulated()
session.run(put)
def give():
    session.run(put)
def child():
    assert session.run(count) == 1
    session.run(put)
    assert session.run(count) == 2
    assert session.run(take)[0] == 1
""")


def test_mistakes_when_the_graph_is_built():
    acc = tn.ConditionalAccumulator(tn.float32, [2])
    with pytest.raises(ValueError, match=r"grad must have the accumulator's shape \(2,\), not"):
        acc.apply_grad([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="reduction_type"):
        tn.ConditionalAccumulator(tn.float32, reduction_type="MAX")
    with pytest.raises(ValueError, match="dtype"):
        tn.ConditionalAccumulator(tn.string)
    with pytest.raises(TypeError, match="grad must be an IndexedSlices, not"):
        tn.SparseConditionalAccumulator(tn.float32).apply_indexed_slices_grad(3)
    with pytest.raises(ValueError, match="accumulator has dtype float32, the operation works on"):
        tn.raw_ops.AccumulatorTakeGradient(acc.accumulator_ref, 1, dtype=tn.float64)
    with pytest.raises(ValueError, match="number of gradient_indices"):
        tn.SparseConditionalAccumulator(tn.float32).apply_grad([0, 1], [1.0])


MISTAKES = [
    (lambda acc, sparse, v: acc.take_grad(0), "num_required must be positive, it is 0"),
    (lambda acc, sparse, v: acc.apply_grad(tn.placeholder_with_default([[1.0]], None)),
     r"Shape mismatch: accumulator acc has shape \[\?\], the gradient is float32\[1,1\]"),
    (lambda acc, sparse, v: sparse.apply_grad([4], [[1.0, 2.0]]),
     r"gradient_indices\[0\] = 4 is not in \[0, 4\)"),
    (lambda acc, sparse, v: sparse.apply_grad([0], [[1.0]]), r"sparse has shape \[4,2\], the val"),
    (lambda acc, sparse, v: sparse.apply_grad([0], [[1.0, 2.0]], [4, 3]),
     r"has shape \[4,2\], the gradient's shape is int64\[2\] \[4, 3\]"),
    (lambda acc, sparse, v: tn.raw_ops.AccumulatorTakeGradient(
        sparse.accumulator_ref, 1, dtype=tn.float32),
     "a SparseConditionalAccumulator; a dense accumulator's handle is needed"),
    (lambda acc, sparse, v: tn.raw_ops.AccumulatorNumAccumulated(v.handle),
     "the handle refers to a Variable; an accumulator's handle is needed"),
]


@pytest.mark.parametrize("build, text", MISTAKES)
def test_mistakes_of_a_run(sess, build, text):
    acc = tn.ConditionalAccumulator(tn.float32, [None], name="acc")
    sparse = tn.SparseConditionalAccumulator(tn.float32, [4, 2], name="sparse")
    with pytest.raises(tn.errors.InvalidArgumentError, match=text):
        sess.run(build(acc, sparse, tn.Variable(1.0)))
    assert sess.run([acc.num_accumulated(), sparse.num_accumulated()]) == [0, 0]


def test_immediate_execution():
    handle = tn.execute("ConditionalAccumulator", dtype=tn.float32, shape=[2])
    other = tn.execute("ConditionalAccumulator", dtype=tn.float32, shape=[2])

    def give():
        for value in [1.0, 2.0], [3.0, 4.0]:
            tn.execute("AccumulatorApplyGradient", [handle, np.int64(0), value])
    with Threads() as threads:
        threads.start(give)
        got = tn.execute("AccumulatorTakeGradient", [handle, 2], dtype=tn.float32)
    np.testing.assert_array_equal(got.numpy(), [2, 3])
    assert tn.execute("AccumulatorNumAccumulated", [other]).numpy() == 0
    with pytest.raises(tn.errors.InvalidArgumentError, match="it is -1"):
        tn.execute("AccumulatorTakeGradient", [handle, -1], dtype=tn.float32)
