# SPDX-License-Identifier: Apache-2.0
"""Gradients of slices that a loop takes of a value which stays the same: the unrolled loop's, and
for the cost of the slices."""

import numpy as np
import pytest

import treenail as tn

ROWS = 6


def looped(body, count):
    return tn.while_loop(lambda i, _: i < count, lambda i, y: (i + 1, body(i, y)),
                         [0, tn.constant(1.0, tn.float64)])[1]


def unrolled(body, count):
    y = tn.constant(1.0, tn.float64)
    for i in range(count):
        y = body(tn.constant(i), y)
    return y


def run(fetches, feeds=None):
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        return sess.run(fetches, feeds)


def dense(gradient):
    return None if gradient is None else tn.convert_to_tensor(gradient)


SLICES = {
    "row": lambda x, i: x[i], "row from the end": lambda x, i: x[-1 - i],
    "row of another axis too": lambda x, i: x[i, 1], "part of a row": lambda x, i: x[i, 1:],
    "range": lambda x, i: x[i:i + 2], "range of parts": lambda x, i: x[i:i + 2, ::2],
    "range beyond the end": lambda x, i: x[i + 3:100], "open range": lambda x, i: x[i:],
    "range from the start": lambda x, i: x[:i + 1], "before the end": lambda x, i: x[i:-1],
    "nothing": lambda x, i: x[i + 2:i], "new axis behind": lambda x, i: x[i, None, :2],
    "ellipsis behind": lambda x, i: x[i, ..., 0], "new axis first": lambda x, i: x[None, i],
    "ellipsis first": lambda x, i: x[..., 1], "every other row": lambda x, i: x[i::2],
    "backwards": lambda x, i: x[i::-1], "columns": lambda x, i: x[:, 1],
    "slice": lambda x, i: tn.slice(x, [i, 1], [2, 1]),
    "slice of the rest": lambda x, i: tn.slice(x, [i, 0], [-1, 2]),
    "gathered": lambda x, i: tn.gather(x, [i, 2, i]),
    "gathered by pairs": lambda x, i: tn.gather_nd(x, [[i, 1], [2, 0]]),
    "row of rows": lambda x, i: x[i:i + 2][0], "row twice": lambda x, i: x[i] * x[2],
    "row and all": lambda x, i: x[i] * tn.reduce_sum(x),
    "int64": lambda x, i: x[tn.cast(i, tn.int64)],
    "column": lambda x, i: x[:, i % 3], "column from the end": lambda x, i: x[..., -1 - i % 3],
    "two columns": lambda x, i: x[:, i % 3] * x[:, 2],
    "columns of rows": lambda x, i: x[::2, i % 3:],
    "column and row": lambda x, i: x[:, i % 3][i] * x[2], "column and all": lambda x, i: (
        x[:, i % 3] * tn.reduce_sum(x)), "slice of columns": lambda x, i: tn.slice(
            x, [0, i % 2], [-1, 2]),
}


@pytest.mark.parametrize("name", SLICES)
@pytest.mark.parametrize("kind", ["known", "unknown", "variable"])
def test_gradients_are_those_of_the_steps(name, kind):
    value = np.random.RandomState(0).rand(ROWS, 3)
    x = {"known": lambda: tn.placeholder(tn.float64, [ROWS, 3]),
         "unknown": lambda: tn.placeholder(tn.float64, [None, None]),
         "variable": lambda: tn.Variable(value)}[kind]()
    feeds = {} if kind == "variable" else {x: value}

    def body(i, y):
        return tn.sin(y * tn.reduce_sum(tn.square(SLICES[name](x, i)))) + y
    for count in (0, 1, 3):
        got = dense(tn.gradients(looped(body, count), x)[0])
        expected = dense(tn.gradients(unrolled(body, count), x)[0])
        if expected is None:
            assert got is None or not run(got, feeds).any()
        else:
            np.testing.assert_allclose(run(got, feeds), run(expected, feeds), rtol=1e-10,
                                       atol=1e-12)


@pytest.mark.parametrize("name", ["row", "range of parts", "slice", "gathered", "row and all",
                                  "column", "two columns", "column and row"])
def test_second_derivatives(name):
    value = np.random.RandomState(0).rand(ROWS, 3)
    x = tn.placeholder(tn.float64, [ROWS, 3])

    def body(i, y):
        return y * tn.reduce_sum(SLICES[name](x, i) ** 3)
    results = []
    for y in (looped(body, 3), unrolled(body, 3)):
        first = dense(tn.gradients(y, x)[0])
        results.append(dense(tn.gradients(tn.reduce_sum(first * first), x)[0]))
    ours, expected = run(results, {x: value})
    np.testing.assert_allclose(ours, expected, rtol=1e-10)


def test_kinds_of_gradients():
    """What a program gets is what it gets without a loop, but that gathered rows are joined."""
    x = tn.placeholder(tn.float64, [ROWS, 3])
    sliced = looped(lambda i, y: y + tn.reduce_sum(x[i]), 2)
    gathered = looped(lambda i, y: y + tn.reduce_sum(tn.gather(x, i)), 2)
    both = looped(lambda i, y: y + tn.reduce_sum(tn.gather(x, i) * x[0]), 2)
    assert [type(tn.gradients(y, x)[0]) for y in (sliced, gathered, both)] == [
        tn.Tensor, tn.IndexedSlices, tn.Tensor]
    assert tn.gradients(gathered, x)[0].shape.as_list() == [ROWS, 3]
    assert tn.gradients(gathered, x)[0].values.shape.as_list() == [None, 3]


def test_loops_within_loops_and_branches():
    value = np.random.RandomState(0).rand(ROWS, 3)
    x, p = tn.placeholder(tn.float64, [ROWS, 3]), tn.placeholder(tn.bool, [])

    def inner(i, y):
        return tn.cond(p, lambda: tn.sin(y * tn.reduce_sum(x[i])), lambda: y * x[0, 0])

    def outer(nest):
        return lambda i, y: nest(lambda j, z: inner(j, z) + tn.reduce_sum(x[i] * x[j]), 3) * y
    for pred in (True, False):
        ours = tn.gradients(looped(outer(looped), 2), x)[0]
        expected = tn.gradients(unrolled(outer(unrolled), 2), x)[0]
        np.testing.assert_allclose(*run([ours, expected], {x: value, p: pred}), rtol=1e-10)


def test_what_stays_the_same_and_is_used_behind_the_loop():
    x, w = tn.placeholder(tn.float64, [2]), tn.placeholder(tn.float64, [2])

    def body(i, y, same):
        return i + 1, y * same[i], same
    _, y, same = tn.while_loop(lambda i, *_: i < 2, body, [0, tn.constant(1.0, tn.float64), x * 2])
    both = run(tn.gradients([y, same], x, [None, w])[0], {x: [3, 5], w: [7, 11]})
    assert both.tolist() == [2 * (10 + 7), 2 * (6 + 11)]
    alone = run(tn.gradients(same, x, w)[0], {x: [3, 5], w: [7, 11]})
    assert alone.tolist() == [14, 22]


# --- What it costs --------------------------------------------------------------------------------

def most_bytes(fetches, feeds):
    options = tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE)
    metadata = tn.RunMetadata()
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        before = tn._core.memory_info()["bytes_in_use"]
        for _ in range(2):
            sess.run(fetches, feeds, options=options, run_metadata=metadata)
    return max(node.bytes_in_use for node in metadata.nodes) - before


COSTS = {"row": lambda x, i: x[i], "range": lambda x, i: x[i:i + 3], "part": lambda x, i: x[i, 2:],
         "slice": lambda x, i: tn.slice(x, [i, 0], [2, 4]),
         "gather": lambda x, i: tn.gather(x, [i, 1])}


def sum_of_rows(x, take, count):
    return tn.while_loop(lambda i, _: i < count, lambda i, y: (
        i + 1, y + tn.reduce_sum(tn.square(take(x, i)))), [0, 0.0])[1]


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize("kind", ["tensor", "variable"])
def test_no_iteration_needs_memory_for_the_whole(name, kind):
    """There is one value of the whole's size, the result; of gathered rows none."""
    value = np.ones((1 << 20, 8), np.float32)
    x = tn.placeholder(tn.float32, value.shape) if kind == "tensor" else tn.Variable(
        tn.ones(value.shape))
    gradient = tn.gradients(sum_of_rows(x, COSTS[name], 4), x)[0]
    most = most_bytes(gradient, {x: value} if kind == "tensor" else {})
    assert most < (1.1 * value.nbytes if name != "gather" else value.nbytes / 10)


@pytest.mark.parametrize("take", [lambda x, i: x[:, i * 100:i * 100 + 9],
                                  lambda x, i: x[:, i] * x[:, -1]], ids=["one", "two"])
@pytest.mark.parametrize("kind", ["tensor", "variable"])
def test_slices_along_other_axes_are_added_in_place(kind, take):
    value = np.ones((8, 1 << 20), np.float32)
    x = tn.placeholder(tn.float32, value.shape) if kind == "tensor" else tn.Variable(
        tn.ones(value.shape))
    gradient = tn.gradients(sum_of_rows(x, take, 4), x)[0]
    assert most_bytes(gradient, {x: value} if kind == "tensor" else {}) < 1.1 * value.nbytes


def test_memory_grows_with_the_number_of_rows_taken():
    for count in (1000, 10_000):
        x = tn.placeholder(tn.float32, [count, 64])
        gradient = tn.gradients(sum_of_rows(x, COSTS["row"], count), x)[0]
        value = np.ones((count, 64), np.float32)
        # Rows read, rows of the gradient, these joined, the result.
        assert most_bytes(gradient, {x: value}) < 6 * value.nbytes


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize("kind", ["branch", "loop", "both", "recomputed"])
def test_nor_do_branches_and_loops_within_an_iteration(name, kind):
    value = np.ones((1 << 20, 8), np.float32)
    x, p = tn.placeholder(tn.float32, value.shape), tn.placeholder(tn.bool, [])

    def plain(x, i):
        return tn.reduce_sum(tn.square(COSTS[name](x, i)))

    def branched(x, i):
        return tn.cond(p, lambda: plain(x, i), lambda: tn.cast(i, tn.float32))
    take = {"branch": branched, "recomputed": tn.recompute_grad(plain),
            "loop": lambda x, i: sum_of_rows(x, COSTS[name], i + 1),
            "both": lambda x, i: tn.while_loop(lambda j, _: j < i + 1, lambda j, y: (
                j + 1, y + branched(x, j)), [0, 0.0])[1]}[kind]
    gradient = tn.gradients(sum_of_rows(x, take, 3), x)[0]
    most = most_bytes(gradient, {x: value, p: True})
    assert most < 1.2 * value.nbytes
    ours = run(dense(gradient), {x: value, p: True})[:4]
    plainly = 0.0
    for i in range(3):
        plainly += tn.square(take(x, tn.constant(i)))
    np.testing.assert_allclose(ours, run(dense(tn.gradients(plainly, x)[0]),
                                         {x: value, p: True})[:4], rtol=1e-5)


@pytest.mark.parametrize("take", ["row", "gather"])
def test_the_backward_loop_carries_nothing_of_the_whole_size(take):
    x = tn.placeholder(tn.float32, [777, 4])
    before = len(tn.get_default_graph().get_operations())
    tn.gradients(sum_of_rows(x, COSTS[take], 3), x)
    loops = [op for op in tn.get_default_graph().get_operations()[before:]
             if op.name.startswith("gradients") and op.type.endswith("While")]
    assert len(loops) == 1
    whole = [n for n, t in enumerate(loops[0].outputs) if t.shape.rank and t.shape[0] == 777]
    assert all(loops[0].inputs[n] is x for n in whole)
