# SPDX-License-Identifier: Apache-2.0
"""tn.recompute_grad: the bits of ordinary gradients, for less memory."""

import numpy as np
import pytest

import treenail as tn


def plain(f):
    return f


def in_use(sess, fetches, feeds):
    """(values, the most bytes in use at the end of a node)."""
    options = tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE)
    metadata = tn.RunMetadata()
    values = sess.run(fetches, feeds, options=options, run_metadata=metadata)
    return values, max(node.bytes_in_use for node in metadata.nodes)


def runs_of(build, feeds, runs=2):
    """What the fetches that `build` gives are in so many runs, and the most bytes in use in the
    last."""
    with tn.Graph().as_default(), tn.Session() as sess:
        tn.set_random_seed(1)
        fetches, feeds = build(feeds)
        sess.run(tn.global_variables_initializer())
        values = []
        for _ in range(runs):
            found, peak = in_use(sess, fetches, feeds)
            values += found
    return values, peak


def same_bits(build, feeds=None, runs=2):
    """For build(wrapper)(feeds); (bytes without, bytes with)."""
    without, much = runs_of(build(plain), feeds, runs)
    with_it, little = runs_of(build(tn.recompute_grad), feeds, runs)
    assert len(without) == len(with_it)
    for one, other in zip(without, with_it):
        np.testing.assert_array_equal(one, other)
    return much, little


ROWS, WIDTH = 1024, 256  # a matrix of a MiB


def network(wrap):
    def build(value):
        x = tn.placeholder(tn.float32, [ROWS, WIDTH])
        h, weights = x, []
        for i in range(6):
            w = tn.Variable(np.random.RandomState(i).randn(WIDTH, WIDTH).astype(np.float32) / 16)
            weights.append(w)

            def layer(h, w=w, i=i):
                for k in range(4):
                    h = tn.nn.dropout(tn.tanh(tn.matmul(h, w)), 0.9, seed=10 * i + k)
                return h
            h = wrap(layer)(h)
        loss = tn.reduce_mean(h * h)
        return [loss, *tn.gradients(loss, [x, *weights])], {x: value}
    return build


def test_layers_with_dropout_and_variables():
    value = np.random.RandomState(0).randn(ROWS, WIDTH).astype(np.float32)
    much, little = same_bits(network, value)
    # Per layer tanh four times, what dropout made of it, and the mask; against the layers' inputs.
    assert much > 60 << 20
    assert little < much / 2


def test_in_a_loop():
    steps = 40

    def build(wrap):
        def loop(value):
            x, w = tn.placeholder(tn.float32, [512, 512]), tn.Variable(
                np.random.RandomState(1).randn(512, 512).astype(np.float32) / 23)

            @wrap
            def step(h):
                for k in range(4):
                    h = tn.nn.dropout(tn.tanh(tn.matmul(h, w)), 0.9, seed=k)
                return h
            h = tn.while_loop(lambda i, _: i < steps, lambda i, h: (i + 1, step(h)), [0, x])[1]
            return tn.gradients(h, [x, w]), {x: value}
        return loop
    value = np.random.RandomState(0).randn(512, 512).astype(np.float32)
    much, little = same_bits(build, value)
    size = 1 << 20
    assert much > steps * 8 * size  # of each step
    assert little < (steps + 32) * size  # what each step began with, and the inside of one


@pytest.mark.parametrize("kind", [tn.random_uniform, tn.random_normal, tn.truncated_normal])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_random_numbers_are_the_same_again(kind, dtype):
    def build(wrap):
        def noise(value):
            x = tn.placeholder(dtype, [7])
            f = wrap(lambda x: tn.exp(x * kind([7], dtype=dtype, seed=3)))
            y = f(x) + f(x) * 2
            return [y, *tn.gradients(y, x)], {x: value}
        return noise
    same_bits(build, np.arange(7) / 7, runs=3)


def test_random_integers_and_what_is_kept_as_it_is():
    def build(wrap):
        def draw(value):
            x = tn.placeholder(tn.float32, [40])
            f = wrap(lambda x: tn.exp(x) * tn.random_shuffle(x, seed=4) * tn.cast(
                tn.random_uniform([40], maxval=9, dtype=tn.int32, seed=5), tn.float32)
                * tn.cast(tn.multinomial(x[None] * 0.1, 40, seed=6)[0], tn.float32))
            y = f(x)
            return [y, *tn.gradients(y, x)], {x: value}
        return draw
    same_bits(build, np.arange(40) / 40, runs=3)


def test_variables_that_change_between():
    """What was read is kept: the backward part must not read again."""
    v = tn.Variable(2.0)
    f = tn.recompute_grad(lambda x: tn.sin(x * v) * v)
    x = tn.constant(0.5)
    y = f(x)
    with tn.control_dependencies([y]):
        changed = v.assign(7.0)
    with tn.control_dependencies([changed]):
        arrives = tn.identity(1.0)
    gradients = tn.gradients(y, [x, v], arrives)
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        got = sess.run(gradients)
        assert sess.run(v) == 7
    np.testing.assert_allclose(got, [4 * np.cos(1.0), np.sin(1.0) + np.cos(1.0)], rtol=1e-6)


def test_effects_happen_once():
    counter = tn.Variable(0.0)
    x = tn.constant([1.0, 2.0])

    @tn.recompute_grad
    def f(x):
        with tn.control_dependencies([counter.assign_add(1.0)]):
            y = tn.exp(x)
        return tn.exp(y * counter.assign_add(10.0))
    gradient = tn.gradients(f(x * 0.01), x)[0]
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        value = sess.run(gradient)
        assert sess.run(counter) == 11 and np.isfinite(value).all()


def test_python_functions_are_called_once():
    calls = []

    def double(value):
        calls.append(value)
        return value * 2
    f = tn.recompute_grad(lambda x: tn.exp(x) * tn.py_func(double, [x], tn.float64))
    x = tn.constant([1.0, 2.0], tn.float64)
    with tn.Session() as sess:
        got = sess.run(tn.gradients(f(x), x)[0])
    np.testing.assert_allclose(got, np.exp([1, 2]) * [2, 4])
    assert len(calls) == 1


@pytest.mark.parametrize("draws", [False, True])
def test_branches_and_loops_inside(draws):
    def build(wrap):
        def body(value):
            x, p = tn.placeholder(tn.float64, [3]), tn.placeholder(tn.bool, [])
            w = tn.Variable(np.array([1.0, 0.5, 2.0]))

            def step(i, h):
                noise = tn.random_uniform([3], seed=7, dtype=tn.float64) if draws else 1.0
                return i + 1, tn.sin(h * w) * noise
            f = wrap(lambda x: tn.cond(p, lambda: tn.while_loop(
                lambda i, _: i < 4, step, [0, x * w])[1], lambda: tn.exp(x)))
            y = f(f(x))
            return [y, *tn.gradients(y, [x, w])], {x: value, p: True}
        return body
    same_bits(build, np.array([0.1, 0.2, 0.3]))


def test_higher_derivatives_and_nests():
    x = tn.placeholder(tn.float64, [])
    f = tn.recompute_grad(lambda a, scale=1.0: {"sin": tn.sin(a["x"]) * scale,
                                                "cube": (a["x"] ** 3,)})
    got = f({"x": x}, scale=2.0)
    y = got["sin"] + got["cube"][0]
    derivatives = []
    for _ in range(3):
        y = tn.gradients(y, x)[0]
        derivatives.append(y)
    with tn.Session() as sess:
        np.testing.assert_allclose(sess.run(derivatives, {x: 0.7}), [
            2 * np.cos(0.7) + 3 * 0.49, -2 * np.sin(0.7) + 6 * 0.7, -2 * np.cos(0.7) + 6])


def test_custom_gradients_and_recomputation_within_another():
    @tn.custom_gradient
    def log1pexp(x):
        e = tn.exp(x)
        return tn.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    def build(wrap):
        def body(value):
            x = tn.placeholder(tn.float64, [])
            inner = wrap(lambda x: log1pexp(x) * x)
            y = wrap(lambda x: tn.sin(inner(inner(x))))(x)
            first = tn.gradients(y, x)[0]
            return [y, first, tn.gradients(first, x)[0]], {x: value}
        return body
    # Second derivatives are summed in another order.
    ours, expected = runs_of(build(tn.recompute_grad), 0.3)[0], runs_of(build(plain), 0.3)[0]
    np.testing.assert_allclose(ours, expected, rtol=1e-13)


def test_collections_get_what_the_call_gives():
    @tn.recompute_grad
    def f(x):
        tn.losses.add_loss(tn.reduce_sum(x * x))
        moving = tn.get_variable("moving", [], initializer=tn.zeros_initializer(), trainable=False)
        tn.add_to_collection(tn.GraphKeys.UPDATE_OPS, moving.assign_add(tn.reduce_sum(x)).op)
        return tn.layers.dense(x, 2, name="dense", use_bias=False)
    x = tn.constant([[1.0, 2.0]])
    y = f(x)
    (kernel,) = tn.trainable_variables()
    updates = tn.get_collection(tn.GraphKeys.UPDATE_OPS)
    loss = tn.losses.get_total_loss() + tn.reduce_sum(y)
    with tn.control_dependencies(updates):
        step = tn.identity(tn.gradients(loss, kernel)[0])
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        assert sess.run(tn.losses.get_total_loss()) == 5
        assert sess.run(step).tolist() == [[1, 1], [2, 2]]
        moving = tn.global_variables()[0]
        sess.run(moving.initializer)
        sess.run(y)
        assert sess.run(moving) == 0  # as nobody asked
        sess.run(updates)
        assert sess.run(moving) == 3


def test_training_gives_the_same_weights():
    def build(wrap):
        tn.set_random_seed(5)
        x, t = tn.placeholder(tn.float32, [None, 8]), tn.placeholder(tn.float32, [None, 1])
        h = x
        for i in range(3):
            def layer(h, i=i):
                normal = tn.random_normal_initializer(0, 0.5, seed=i)
                h = tn.layers.dense(h, 16, tn.nn.relu, name="dense%d" % i,
                                    kernel_initializer=normal)
                return tn.nn.dropout(h, 0.8, seed=i)
            h = wrap(layer)(h)
        loss = tn.reduce_mean(tn.square(tn.reduce_sum(h, 1, keepdims=True) - t))
        step = tn.train.AdamOptimizer(0.01).minimize(loss)
        rng = np.random.RandomState(0)
        data = rng.randn(32, 8)
        with tn.Session() as sess:
            sess.run(tn.global_variables_initializer())
            for _ in range(5):
                sess.run(step, {x: data, t: data[:, :1]})
            return sess.run(tn.trainable_variables())
    expected = build(plain)
    tn.reset_default_graph()
    for one, other in zip(build(tn.recompute_grad), expected):
        np.testing.assert_array_equal(one, other)


def test_a_saved_graph_still_recomputes(tmp_path):
    x = tn.placeholder(tn.float32, [], name="x")
    y = tn.recompute_grad(lambda x: tn.sin(x) * tn.exp(x))(x)
    tn.get_default_graph().save(tmp_path / "graph")
    graph = tn.load_graph(tmp_path / "graph")
    (gradient,) = tn.gradients(graph.get_tensor_by_name(y.name), graph.get_tensor_by_name("x:0"))
    call = graph.get_operation_by_name(y.op.name)
    assert call.get_attr("recompute") and len(call.outputs) == 1  # nothing is kept
    with tn.Session(graph=graph) as sess:
        expected = np.exp(0.5) * (np.sin(0.5) + np.cos(0.5))
        assert sess.run(gradient, {"x:0": 0.5}) == pytest.approx(expected, rel=1e-6)


def test_what_is_refused():
    with pytest.raises(TypeError, match="f must be a function, not 3"):
        tn.recompute_grad(3)
    with pytest.raises(ValueError, match="must return a tensor"):
        tn.recompute_grad(lambda x: None)(tn.constant(1.0))
