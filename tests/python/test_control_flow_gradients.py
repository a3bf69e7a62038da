# SPDX-License-Identifier: Apache-2.0
"""Gradients through tn.cond, tn.case and tn.switch_case, against those of the branch alone."""

import numpy as np
import pytest

import treenail as tn
from running import run


@pytest.mark.parametrize("pred", [True, False])
def test_gradients_are_those_of_the_chosen_branch(pred):
    p = tn.placeholder(tn.bool, [])
    x, w = tn.placeholder(tn.float64, [3]), tn.placeholder(tn.float64, [3])
    branches = [lambda: tn.reduce_sum(tn.tanh(x * w) * x), lambda: tn.reduce_sum(tn.exp(x))]
    got = tn.gradients(tn.cond(p, *branches) * 2.0, [x, w])
    plain = tn.gradients(branches[not pred]() * 2.0, [x, w])
    feeds = {p: pred, x: [0.5, -1, 2], w: [1, 2, -0.5]}
    np.testing.assert_array_equal(run(got[0], feeds), run(plain[0], feeds))
    expected = np.zeros(3) if plain[1] is None else run(plain[1], feeds)
    np.testing.assert_array_equal(run(got[1], feeds), expected)


def test_only_the_chosen_branch_is_differentiated():
    p, x = tn.placeholder(tn.bool, []), tn.placeholder(tn.float32, [])
    y = tn.cond(p, lambda: tn.sqrt(x), lambda: tn.constant(0.0))
    (gradient,) = tn.gradients(y, x)
    assert run(gradient, {p: True, x: 4.0}) == 0.25
    assert run(gradient, {p: False, x: 0.0}) == 0.0  # sqrt's would be infinite


def test_what_no_branch_needs_has_no_gradient():
    p, x = tn.placeholder(tn.bool, []), tn.placeholder(tn.float32, [])
    unread = tn.placeholder(tn.float32, [])
    y = tn.cond(p, lambda: x * 2.0, lambda: tn.stop_gradient(unread))
    assert tn.gradients(y, unread) == [None]
    count = tn.cond(p, lambda: tn.cast(x, tn.int32), lambda: 1)
    assert tn.gradients(tn.cast(count, tn.float32), x) == [None]


def test_variables_in_branches():
    p, x = tn.placeholder(tn.bool, []), tn.placeholder(tn.float32, [2])
    v, w = tn.Variable([1.0, 2.0]), tn.Variable([3.0, 4.0])
    y = tn.cond(p, lambda: tn.reduce_sum(v * x * v), lambda: tn.reduce_sum(w * x))
    dv, dw = tn.gradients(y, [v, w])
    assert run([dv, dw], {p: True, x: [1, 3]})[0].tolist() == [2, 12]
    assert run([dv, dw], {p: False, x: [1, 3]})[0].tolist() == [0, 0]
    assert run([dv, dw], {p: False, x: [1, 3]})[1].tolist() == [1, 3]


def test_rows_of_a_variable_in_a_branch():
    p = tn.placeholder(tn.bool, [])
    table = tn.Variable(np.arange(8, dtype=np.float32).reshape(4, 2))
    y = tn.cond(p, lambda: tn.nn.embedding_lookup(table, [1, 1, 3]), lambda: tn.zeros([3, 2]))
    (gradient,) = tn.gradients(y, table)
    assert run(gradient, {p: True}).tolist() == [[0, 0], [2, 2], [0, 0], [1, 1]]
    assert not run(gradient, {p: False}).any()


def test_a_random_branch_is_differentiated_for_the_numbers_that_it_drew():
    p, x = tn.placeholder(tn.bool, []), tn.placeholder(tn.float32, [1000])
    y = tn.cond(p, lambda: tn.nn.dropout(x, 0.5), lambda: x)
    (gradient,) = tn.gradients(y, x)
    with tn.Session() as sess:
        for _ in range(3):
            value, slope = sess.run([y, gradient], {p: True, x: np.full(1000, 3.0)})
            np.testing.assert_array_equal(value, slope * 3.0)
            assert 300 < (slope == 2.0).sum() < 700


def test_branches_within_branches():
    x, y = tn.placeholder(tn.float64, []), tn.placeholder(tn.float64, [])
    z = tn.cond(x > 0.0, lambda: tn.cond(y > 0.0, lambda: x * y * x, lambda: tn.sin(x) * y) * x,
                lambda: tn.switch_case(tn.cast(y, tn.int32), [lambda: x, lambda: x * x]) * y)
    gradients = tn.gradients(z, [x, y])
    for a, b in [(2.0, 3.0), (2.0, -1.0), (-2.0, 0.5), (-2.0, 1.5)]:
        if a > 0:
            expected = [3 * a * a * b, a ** 3] if b > 0 else [
                b * (np.cos(a) * a + np.sin(a)), np.sin(a) * a]
        else:
            expected = [b, a] if b < 1 else [2 * a * b, a * a]
        np.testing.assert_allclose(run(gradients, {x: a, y: b}), expected, rtol=1e-12)


def test_gradients_of_gradients():
    p, x = tn.placeholder(tn.bool, []), tn.placeholder(tn.float64, [])
    y = tn.cond(p, lambda: tn.tanh(x) * x ** 3, lambda: x ** 4)
    first = tn.gradients(y, x)[0]
    second = tn.gradients(first, x)[0]
    third = tn.gradients(second, x)[0]
    assert run([first, second, third], {p: False, x: 2.0}) == [32, 48, 48]
    z = tn.tanh(x) * x ** 3
    expected = []
    for _ in range(3):
        z = tn.gradients(z, x)[0]
        expected.append(z)
    np.testing.assert_allclose(run([first, second, third], {p: True, x: 0.7}),
                               run(expected, {x: 0.7}), rtol=1e-12)


def test_gradients_inside_a_branch():
    p, x = tn.placeholder(tn.bool, []), tn.placeholder(tn.float64, [])

    def slope():
        y = tn.cond(x > 1.0, lambda: x ** 3, lambda: x ** 2)
        return tn.gradients(y, x)[0]
    got = tn.cond(p, slope, lambda: x)
    assert run(got, {p: True, x: 2.0}) == 12 and run(got, {p: True, x: 0.5}) == 1
    assert run(got, {p: False, x: 2.0}) == 2


@pytest.mark.parametrize("index", [0, 1, 2])
def test_gradients_of_case_and_switch_case(index):
    x, i = tn.placeholder(tn.float32, [2]), tn.placeholder(tn.int32, [])
    branches = [lambda: x * 2.0, lambda: x * x, lambda: tn.ones([2])]
    switched = tn.switch_case(i, branches)
    chosen = tn.case([(tn.equal(i, 0), branches[0]), (tn.equal(i, 1), branches[1])],
                     default=branches[2])
    expected = [[2, 2], [2, 6], [0, 0]][index]
    for y in (switched, chosen):
        assert run(tn.gradients(y, x)[0], {x: [1, 3], i: index}).tolist() == expected


def test_plans_made_before_stay_good():
    p, x = tn.placeholder(tn.bool, []), tn.placeholder(tn.float32, [4])
    y = tn.cond(p, lambda: tn.tanh(x), lambda: x)
    outputs = list(y.op.outputs)
    with tn.Session() as sess:
        feeds = {p: True, x: [1, 2, 3, 4]}
        before = sess.run(y, feeds)
        (gradient,) = tn.gradients(y, x)
        assert y.op.outputs[:len(outputs)] == outputs
        np.testing.assert_array_equal(sess.run(y, feeds), before)
        np.testing.assert_allclose(sess.run(gradient, feeds), 1 - before ** 2, rtol=1e-6)
        np.testing.assert_array_equal(sess.run(y * 1.0, feeds), before)


def test_training_through_a_branch():
    tn.set_random_seed(1)
    rng = np.random.RandomState(1)
    data = rng.randn(64, 8).astype(np.float32)
    target = np.where(data[:, :1] > 0, data @ rng.randn(8, 1), data @ rng.randn(8, 1))
    x, t = tn.placeholder(tn.float32, [None, 8]), tn.placeholder(tn.float32, [None, 1])
    training = tn.placeholder(tn.bool, [])
    h = tn.layers.dense(x, 32, tn.nn.relu)
    h = tn.cond(training, lambda: tn.nn.dropout(h, 0.9), lambda: h)
    loss = tn.reduce_mean(tn.square(tn.layers.dense(h, 1) - t))
    step = tn.train.AdamOptimizer(0.02).minimize(loss)
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        first = sess.run(loss, {x: data, t: target, training: False})
        for _ in range(150):
            sess.run(step, {x: data, t: target, training: True})
        assert sess.run(loss, {x: data, t: target, training: False}) < first / 10


def test_a_graph_with_gradients_is_saved_and_loaded(tmp_path):
    p = tn.placeholder(tn.bool, [], name="p")
    x = tn.placeholder(tn.float32, [], name="x")
    gradient = tn.gradients(tn.cond(p, lambda: tn.tanh(x) * x, lambda: x), x)[0]
    name, expected = gradient.name, run(gradient, {p: True, x: 0.5})
    tn.get_default_graph().save(tmp_path / "graph")
    with tn.Session(graph=tn.load_graph(tmp_path / "graph")) as sess:
        assert sess.run(name, {"p:0": True, "x:0": 0.5}) == expected


# --- Loops ----------------------------------------------------------------------------------------

def unrolled(body, values, count):
    for _ in range(count):
        values = body(*values)
    return values


def looped(body, values, count):
    results = tn.while_loop(lambda i, *_: i < count, lambda i, *v: (i + 1, *body(*v)),
                            [0, *values])
    return results[1:]


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_gradients_of_a_loop_are_those_of_its_steps(count):
    rng = np.random.RandomState(3)
    x, w = tn.placeholder(tn.float64, [2, 3]), tn.placeholder(tn.float64, [3, 3])
    b = tn.Variable(rng.randn(3))

    def body(h, c):
        h = tn.tanh(tn.matmul(h, w) + b)
        return h, c * 0.5 + tn.reduce_sum(h * x)
    feeds = {x: rng.randn(2, 3), w: rng.randn(3, 3)}
    start = [x * 2.0, tn.constant(1.0, tn.float64)]
    ours, plain = looped(body, start, count), unrolled(body, start, count)
    got = tn.gradients([tn.reduce_sum(ours[0] * x), ours[1]], [x, w, b])
    expected = tn.gradients([tn.reduce_sum(plain[0] * x), plain[1]], [x, w, b])
    for one, other in zip(got, expected):
        value = run(one, feeds)
        if other is None:
            assert not value.any()
        else:
            np.testing.assert_allclose(value, run(other, feeds), rtol=1e-12)


def test_the_number_of_iterations_may_be_fed():
    n, x = tn.placeholder(tn.int32, []), tn.placeholder(tn.float64, [])
    _, y = tn.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, y * x), [0, x])
    (gradient,) = tn.gradients(y, x)
    with tn.Session() as sess:
        for count in (3, 0, 20, 1):
            assert sess.run(gradient, {n: count, x: 1.25}) == pytest.approx(
                (count + 1) * 1.25 ** count, rel=1e-12)


def test_a_value_that_no_gradient_goes_through_has_none():
    x, y = tn.placeholder(tn.float32, []), tn.placeholder(tn.float32, [])
    a, b = looped(lambda a, b: (a * 2.0, b + 1.0), [x, y], 3)
    assert run(tn.gradients(a, x)[0], {x: 1.0, y: 0.0}) == 8
    assert tn.gradients(a, y) == [None]


def test_what_a_loop_reads_is_differentiated_only_where_asked():
    data, w = tn.placeholder(tn.float32, [100, 4]), tn.Variable(tn.ones([4]))
    _, total = tn.while_loop(lambda i, _: i < 100, lambda i, t: (i + 1, t + data[i] * w),
                             [0, tn.zeros([4])])

    def backward_values(x):
        before = len(tn.get_default_graph().get_operations())
        (gradient,) = tn.gradients(total, x)
        loop = [op for op in tn.get_default_graph().get_operations()[before:]
                if op.type.endswith("While")][0]
        return gradient, [t.shape.as_list() for t in loop.outputs if t.dtype == tn.float32]
    dw, values = backward_values(w)
    assert [100, 4] not in values  # no gradient of the data
    value = np.random.RandomState(0).rand(100, 4).astype(np.float32)
    np.testing.assert_allclose(run(dw, {data: value}), value.sum(0), rtol=1e-5)
    dx, values = backward_values(data)
    assert isinstance(dx, tn.Tensor) and run(dx, {data: value}).tolist() == [[1] * 4] * 100


def test_rows_of_a_variable_in_a_loop():
    table = tn.Variable(np.arange(8.0).reshape(4, 2))
    ids = tn.placeholder(tn.int32, [3])
    _, total = tn.while_loop(lambda i, _: i < 3, lambda i, t: (
        i + 1, t + tn.nn.embedding_lookup(table, ids[i]) ** 2), [0, tn.zeros([2], tn.float64)])
    (gradient,) = tn.gradients(total, table)
    assert isinstance(gradient, tn.IndexedSlices)  # joined from the last iteration to the first
    assert run(gradient, {ids: [1, 3, 0]}).indices.tolist() == [0, 3, 1]
    assert run(tn.convert_to_tensor(gradient), {ids: [1, 3, 1]}).tolist() == [
        [0, 0], [8, 12], [0, 0], [12, 14]]


def test_loops_within_loops_and_branches():
    x = tn.placeholder(tn.float64, [])

    def inner(y):
        return looped(lambda z: (tn.cond(z > 1.0, lambda: z * x, lambda: tn.sin(z) + x),), [y],
                      3)[0]

    def plain(y, value):
        for _ in range(3):
            y = y * x if run(y, {x: value}) > 1.0 else tn.sin(y) + x
        return y
    y = looped(lambda y: (inner(y) * 0.5,), [x], 2)[0]
    (gradient,) = tn.gradients(y, x)
    for value in (0.3, 0.9, 1.4):
        expected = plain(plain(x, value) * 0.5, value) * 0.5
        np.testing.assert_allclose(run(gradient, {x: value}),
                                   run(tn.gradients(expected, x)[0], {x: value}), rtol=1e-12)


def test_random_numbers_of_each_iteration():
    x = tn.placeholder(tn.float32, [100])
    (y,) = looped(lambda y: (tn.nn.dropout(y, 0.9),), [x], 5)
    (gradient,) = tn.gradients(y, x)
    with tn.Session() as sess:
        for _ in range(3):
            value, slope = sess.run([y, gradient], {x: np.full(100, 2.0)})
            np.testing.assert_allclose(value, slope * 2.0, rtol=1e-6)
            assert 30 < (slope > 0).sum() < 90


def test_gradients_through_rows_and_arrays():
    x, w = tn.placeholder(tn.float64, [5, 3]), tn.Variable(np.float64([1.0, -0.5, 2.0]))
    y = tn.map_fn(lambda row: tn.tanh(row * w), x)
    last = tn.scan(lambda a, row: a * 0.5 + row * w, x, initializer=tn.zeros([3], tn.float64))[-1]
    total = tn.foldl(lambda a, row: a + tn.reduce_sum(row * row * w), x,
                     initializer=tn.constant(0.0, tn.float64))
    value = np.random.RandomState(1).randn(5, 3)
    weights = np.float64([1.0, -0.5, 2.0])
    slope = 1 - np.tanh(value * weights) ** 2
    dx, dw = run(tn.gradients(y, [x, w]), {x: value})
    np.testing.assert_allclose(dx, slope * weights, rtol=1e-12)
    np.testing.assert_allclose(dw, (slope * value).sum(0), rtol=1e-12)
    dx, dw = run(tn.gradients(last, [x, w]), {x: value})
    decay = 0.5 ** np.arange(4, -1, -1)[:, None]
    np.testing.assert_allclose(dx, decay * weights, rtol=1e-12)
    np.testing.assert_allclose(dw, (decay * value).sum(0), rtol=1e-12)
    dx, dw = run(tn.gradients(total, [x, w]), {x: value})
    np.testing.assert_allclose(dx, 2 * value * weights, rtol=1e-12)
    np.testing.assert_allclose(dw, (value ** 2).sum(0), rtol=1e-12)


def test_a_recurrent_network_by_while_learns():
    tn.set_random_seed(1)
    rng = np.random.RandomState(0)
    x, target = tn.placeholder(tn.float32, [None, 12, 1]), tn.placeholder(tn.float32, [None, 1])
    cell = tn.nn.rnn_cell.BasicLSTMCell(16)
    steps = tn.transpose(x, [1, 0, 2])
    state = cell.zero_state(tn.shape(x)[0], tn.float32)
    with tn.variable_scope("cell"):
        cell.build(x.shape[:1].concatenate([1]))

        def body(i, state):
            _, state = cell(steps[i], state)
            return i + 1, state
        _, state = tn.while_loop(lambda i, _: i < 12, body, [0, state],
                                 shape_invariants=[[], type(state)([None, 16], [None, 16])])
    loss = tn.reduce_mean(tn.square(tn.layers.dense(state[1], 1) - target))
    step = tn.train.AdamOptimizer(0.02).minimize(loss)
    data = rng.rand(64, 12, 1).astype(np.float32)
    feeds = {x: data, target: data[:, ::3].sum(1)}
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        first = sess.run(loss, feeds)
        for _ in range(300):
            sess.run(step, feeds)
        assert sess.run(loss, feeds) < first / 10


def test_gradients_of_a_loops_gradient():
    x = tn.placeholder(tn.float64, [])
    (y,) = looped(lambda y: (tn.sin(y) * x,), [x], 3)
    (plain,) = unrolled(lambda y: (tn.sin(y) * x,), [x], 3)
    got = tn.gradients(tn.gradients(y, x)[0], x)[0]
    expected = tn.gradients(tn.gradients(plain, x)[0], x)[0]
    np.testing.assert_allclose(run(got, {x: 0.8}), run(expected, {x: 0.8}), rtol=1e-12)


def test_override_maps_that_name_no_rule():
    p, x = tn.placeholder(tn.bool, []), tn.placeholder(tn.float32, [])

    def branch():
        with tn.get_default_graph().gradient_override_map({"Tanh": "Other"}):
            return tn.tanh(x)
    y = tn.cond(p, branch, lambda: x)
    with pytest.raises(LookupError, match="No gradient defined for operation 'Tanh' .*'Other'"):
        tn.gradients(y, x)


def test_inference_keeps_nothing_for_a_gradient():
    x = tn.placeholder(tn.float32, [1 << 18])
    (y,) = looped(lambda y: (tn.tanh(y + x),), [x], 200)
    value = np.zeros(1 << 18, np.float32)
    in_use = []
    for wanted in (y, tn.gradients(y, x)[0]):
        options = tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE)
        metadata = tn.RunMetadata()
        with tn.Session() as sess:
            sess.run(wanted, {x: value})
            sess.run(wanted, {x: value}, options=options, run_metadata=metadata)
        in_use.append(max(node.bytes_in_use for node in metadata.nodes))
    assert in_use[1] - in_use[0] > 190 << 20
