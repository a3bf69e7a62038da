# SPDX-License-Identifier: Apache-2.0
"""Element-wise operations that run as one kernel: the same bits as one by one, in any graph."""

import numpy as np
import pytest

import treenail as tn
from separate_kernels import run_both, separate

# Below fused multiply-adds large products go to a BLAS where there is one, and nothing joins them.
own_products = pytest.mark.skipif(
    tn._core.kernel_level() == "x86-64" and "blas" in tn.build_info()["adapters"],
    reason="products are the system BLAS's at this level")

UNARY = {
    "float": [tn.exp, tn.tanh, tn.negative, tn.square, tn.abs, tn.nn.relu, tn.sigmoid, tn.floor,
              tn.nn.softplus, lambda x: tn.log(tn.abs(x) + 0.5)],
    "int": [tn.negative, tn.square, tn.abs],
    "complex": [tn.negative, tn.square, tn.exp, tn.conj],
}
BINARY = {
    "float": [tn.add, tn.subtract, tn.multiply, tn.maximum, tn.minimum, tn.squared_difference,
              tn.divide],
    "int": [tn.add, tn.subtract, tn.multiply, tn.maximum],
    "complex": [tn.add, tn.subtract, tn.multiply],
}
KINDS = {"float32": "float", "float64": "float", "float16": "float", "bfloat16": "float",
         "int32": "int", "int8": "int", "int64": "int", "uint8": "int", "uint64": "int",
         "complex64": "complex"}
UNSIGNED = ("uint8", "uint64")
# The output's shape, and shapes that broadcast to it.
SHAPES = [((5,), [()]), ((3, 7), [(7,), (3, 1), ()]), ((40, 33), [(33,), (40, 1)]),
          ((2, 3, 4, 5), [(5,), (3, 1, 5), (2, 1, 1, 1)]), ((3000,), [()]), ((17, 300), [(300,)]),
          ((0, 4), [(4,)]), ((), [])]


def feed(random, dtype, extents, feeds, static=False):
    """A placeholder, and in `feeds` its value."""
    x = tn.placeholder(dtype, extents if static else [None] * len(extents))
    value = random.uniform(-2, 2, extents) * (20 if KINDS[dtype.name] == "int" else 1)
    if dtype.name in UNSIGNED:
        value = np.abs(value)
    with tn.Session() as sess:
        feeds[x] = sess.run(tn.cast(tn.constant(value), dtype))
    return x


def grown(random, dtype, values, nodes):
    """The values, and more that random element-wise operations make of them."""
    kind = KINDS[dtype.name]
    values = list(values)
    for _ in range(nodes):
        operation = random.randint(5)
        first = values[random.randint(len(values))]
        if operation == 0 and dtype.name not in UNSIGNED:
            values.append(UNARY[kind][random.randint(len(UNARY[kind]))](first))
        elif operation == 1:
            chosen = [values[random.randint(len(values))] for _ in range(3)]
            condition = tn.equal(chosen[0], chosen[1])
            values.append(tn.raw_ops.Select(condition, chosen[1] + chosen[2], chosen[2] + first))
        elif operation == 2:
            values.append(tn.add_n([values[0], values[1], values[0] + first]))
        elif operation == 3 and kind == "float":
            second = values[random.randint(len(values))]
            values.append(tn.cast(tn.cast(first, tn.float64) * 1.5, dtype) + second)
        else:
            second = values[random.randint(len(values))]
            values.append(BINARY[kind][random.randint(len(BINARY[kind]))](first, second))
    return values


def random_expression(random, dtype, shape, others, nodes):
    """Values of a random graph of element-wise operations, and the placeholders' feeds."""
    feeds = {}
    values = [feed(random, dtype, extents, feeds) for extents in [shape, shape] + others]
    return grown(random, dtype, values, nodes), feeds


@pytest.mark.parametrize("name", sorted(KINDS))
@pytest.mark.parametrize("seed", range(4))
def test_same_bits_fused_or_not(name, seed):
    random = np.random.RandomState(seed)
    kernels = [0, 0]
    for shape, others in SHAPES:
        with tn.Graph().as_default():
            values, feeds = random_expression(random, tn.as_dtype(name), shape, others, 14)
            fetches = [values[-1], values[random.randint(4, len(values) - 1)]]
            found = []
            for way, config in enumerate((None, separate())):
                metadata = tn.RunMetadata()
                with tn.Session(config=config) as sess:
                    found.append(sess.run(fetches, feeds, run_metadata=metadata))
                kernels[way] += metadata.nodes_executed
        for fused, plain in zip(*found):
            assert fused.dtype == plain.dtype and fused.shape == plain.shape
            assert fused.tobytes() == plain.tobytes()
    assert kernels[0] < kernels[1]


@pytest.fixture
def set_threads():
    before = tn._core.num_threads()
    yield tn._core.set_num_threads
    tn._core.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_large_values_on_several_threads(threads, set_threads):
    set_threads(threads)
    x = tn.placeholder(tn.float32, [None, 700])
    row = tn.placeholder(tn.float32, [700])
    y = tn.tanh(x * 1.5 + row) - tn.exp(-tn.abs(x)) * row
    value = np.random.RandomState(1).randn(900, 700).astype(np.float32)
    run_both([y], {x: value, row: value[0]})


def test_training_takes_the_same_steps():
    losses = []
    for config in (None, separate()):
        with tn.Graph().as_default(), tn.Session(config=config) as sess:
            tn.set_random_seed(3)
            x = tn.placeholder(tn.float32, [None, 20])
            h = tn.layers.dense(x, 30, activation=tn.tanh)
            h = tn.layers.batch_normalization(h, training=True)
            loss = tn.reduce_mean(tn.square(tn.nn.softplus(tn.layers.dense(h, 5)) - 0.3))
            step = tn.train.AdamOptimizer(0.01).minimize(loss)
            sess.run(tn.global_variables_initializer())
            random = np.random.RandomState(0)
            losses.append([sess.run([loss, step], {x: random.randn(16, 20)})[0] for _ in range(20)])
    assert losses[0] == losses[1] and losses[0][-1] < losses[0][0]


def test_a_network_trains_alike_and_in_fewer_kernels():
    losses, kernels = [], []
    for config in (None, separate()):
        with tn.Graph().as_default(), tn.Session(config=config) as sess:
            tn.set_random_seed(3)
            x = tn.placeholder(tn.float32, [8, 12, 12, 3])
            h = tn.layers.conv2d(x, 16, 3, padding="same", activation=tn.nn.relu)
            h = tn.layers.conv2d(h, 16, 3, padding="same", activation=tn.tanh)
            h = tn.layers.dense(tn.layers.flatten(h), 20, activation=tn.nn.elu)
            h = tn.layers.dense(h, 20, activation=tn.sigmoid)
            loss = tn.reduce_mean(tn.square(tn.layers.dense(h, 5) - 0.3))
            step = tn.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
            sess.run(tn.global_variables_initializer())
            random = np.random.RandomState(0)
            metadata = tn.RunMetadata()
            losses.append([sess.run([loss, step], {x: random.randn(8, 12, 12, 3)},
                                    run_metadata=metadata)[0] for _ in range(10)])
            kernels.append(metadata.nodes_executed)
    assert losses[0] == losses[1] and losses[0][-1] < losses[0][0]
    assert kernels[0] < kernels[1]


# Shapes whose reductions go by rows, by columns, by both, in one pass or several; whether the first
# goes by long rows, which are computed where they are read.
REDUCED = [((5,), [0], False), ((40, 33), [1], False), ((40, 33), [0], False),
           ((700, 6), [0], False), ((3000,), [0], True), ((130, 70), [0], False),
           ((70, 4100), [0], False), ((3, 5000), [1], True), ((7, 90, 20), [0, 2], False),
           ((7, 90, 20), [1], False), ((2, 3, 4, 300), [0, 1, 2], False),
           ((65, 2, 350), [0], False), ((9, 1), [1], False), ((6, 5), [], False),
           ((0, 4), [0], False), ((2, 3, 40), [0, 1, 2], True), ((2, 300, 2, 70), [1, 2, 3], True)]
REDUCTIONS = {
    "float": [tn.reduce_sum, tn.reduce_mean, tn.reduce_max, tn.reduce_min, tn.reduce_prod,
              tn.reduce_euclidean_norm],
    "int": [tn.reduce_sum, tn.reduce_mean, tn.reduce_max, tn.reduce_min, tn.reduce_prod],
    "complex": [tn.reduce_sum, tn.reduce_mean, tn.reduce_prod],
}


@pytest.mark.parametrize("name", sorted(KINDS))
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_same_bits_where_a_reduction_reads(name, threads, set_threads):
    set_threads(threads)
    random = np.random.RandomState(threads)
    dtype = tn.as_dtype(name)
    reductions = REDUCTIONS[KINDS[name]]
    for shape, axes, long_rows in REDUCED:
        with tn.Graph().as_default():
            feeds = {}
            others = [shape[-1:], shape[:-1] + (1,), ()] if len(shape) > 1 else [()]
            values = [feed(random, dtype, extents, feeds) for extents in [shape, shape] + others]
            whole = grown(random, dtype, values, 4)[-1] * values[0]
            for reduce in [reductions[i] for i in random.permutation(len(reductions))[:2]]:
                run_both([reduce(whole + values[1], axes, keepdims=bool(random.randint(2)))], feeds)
            if KINDS[name] == "float":
                run_both([tn.nn.l2_loss(whole - values[1])], feeds)
            if KINDS[name] != "complex":
                met = tn.less(values[1] * values[0], whole)
                run_both([tn.reduce_any(met, axes)], feeds)
                run_both([tn.reduce_all(tn.logical_not(met), axes)], feeds)
            _, kernels = run_both([reductions[0](values[0] * values[1], axes)], feeds)
            assert kernels == [1 if long_rows else 2, 2]


def updates(optimizer, change):
    """Kernels, fused and not, of one step on a weight whose gradient, a product, is changed."""
    counts = []
    for config in (None, separate()):
        with tn.Graph().as_default(), tn.Session(config=config) as sess:
            x = tn.placeholder(tn.float32, [60, 33000])
            w = tn.Variable(np.full((33000, 32), 1e-4, np.float32))
            with tn.control_dependencies(None):
                gradient = tn.matmul(x, tn.tanh(tn.matmul(x, w)), transpose_a=True)
            step = optimizer().apply_gradients([(change(gradient, w), w)])
            sess.run(tn.global_variables_initializer())
            metadata = tn.RunMetadata()
            for _ in range(3):
                sess.run(step, {x: np.linspace(-1, 1, 60 * 33000).reshape(60, 33000)},
                         run_metadata=metadata)
            counts.append((metadata.nodes_executed, sess.run(w).tobytes()))
    assert counts[0][1] == counts[1][1]
    return counts[0][0], counts[1][0]


@own_products
@pytest.mark.parametrize("optimizer", [
    lambda: tn.train.GradientDescentOptimizer(0.1),
    lambda: tn.train.MomentumOptimizer(0.1, 0.9),
    lambda: tn.train.AdamOptimizer(0.1)])
def test_what_changes_a_gradient_is_one_sweep(optimizer):
    plain, _ = updates(optimizer, lambda g, w: g)
    # The product, what changes it, the update; without a change the product is the update's part.
    for change in (lambda g, w: tn.clip_by_value(g * 0.5, -1.0, 1.0),
                   lambda g, w: tn.clip_by_value(g * 0.5 + 1e-3 * w, -1.0, 1.0)):
        changed, separately = updates(optimizer, change)
        assert changed == plain + 2 and separately > changed


def test_a_gradient_of_softmax_takes_two_sweeps():
    x = tn.placeholder(tn.float32, [40, 300])
    weights = tn.placeholder(tn.float32, [40, 300])
    softmax = tn.nn.softmax(x)
    gradient = tn.gradients(softmax, [x], [weights])[0]
    random = np.random.RandomState(0)
    feeds = {x: random.randn(40, 300), weights: random.randn(40, 300)}
    # Softmax itself, the sums of products, and what they are taken from.
    assert run_both([gradient], feeds)[1][0] == 3


# Updates that take their gradient, 4 MiB and more, from the product that computes it.
OPTIMISERS = {
    "descent": lambda: tn.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tn.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: tn.train.AdamOptimizer(0.01),
    "adagrad": lambda: tn.train.AdagradOptimizer(0.1),
    "adadelta": lambda: tn.train.AdadeltaOptimizer(0.1),
    "rmsprop": lambda: tn.train.RMSPropOptimizer(0.01, centered=True),
    "ftrl": lambda: tn.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "proximal": lambda: tn.train.ProximalAdagradOptimizer(0.1),
}


def trained(config, optimiser, extents, dtype, fetch_gradients=False):
    """The weights' bytes after three steps, and the metadata of the last."""
    rows, inner, columns = extents
    random = np.random.RandomState(4)
    metadata = tn.RunMetadata()
    with tn.Graph().as_default(), tn.Session(config=config) as sess:
        x = tn.placeholder(dtype, [None, inner])
        w = tn.get_variable("w", initializer=random.randn(inner, columns).astype(dtype))
        top = tn.get_variable("top", initializer=random.randn(columns, 2).astype(dtype))
        loss = tn.reduce_mean(tn.square(tn.matmul(tn.tanh(tn.matmul(x, w)), top)))
        found = OPTIMISERS[optimiser]().compute_gradients(loss, [w, top])
        step = OPTIMISERS[optimiser]().apply_gradients(found)
        fetches = [step, [gradient for gradient, _ in found]] if fetch_gradients else [step]
        sess.run(tn.global_variables_initializer())
        for _ in range(3):
            sess.run(fetches, {x: random.randn(rows, inner)}, run_metadata=metadata)
        return [value.tobytes() for value in sess.run([w, top])], metadata


@own_products
@pytest.mark.parametrize("optimiser", sorted(OPTIMISERS))
@pytest.mark.parametrize("extents", [
    (64, 1200, 900), (3, 1031, 1021), (40, 33000, 33), (5, 70, 16000)])
def test_updates_take_gradients_from_products(optimiser, extents):
    for dtype in ("float32", "float64"):
        joined, metadata = trained(None, optimiser, extents, dtype)
        apart, plain = trained(separate(), optimiser, extents, dtype)
        assert joined == apart
        assert metadata.arena_bytes < plain.arena_bytes
        assert metadata.nodes_executed <= plain.nodes_executed - 1


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_updates_on_several_threads(threads, set_threads):
    set_threads(threads)
    steps = [trained(config, "momentum", (64, 1200, 900), "float32")[0]
             for config in (None, separate())]
    assert steps[0] == steps[1]


@own_products
def test_a_gradient_that_is_fetched_is_not_taken():
    steps = [trained(None, "adam", (64, 1200, 900), "float32", fetched)
             for fetched in (False, True)]
    assert steps[0][0] == steps[1][0]
    assert steps[0][1].nodes_executed < steps[1][1].nodes_executed


def test_a_gradient_that_fits_the_cache_is_not_taken():
    executed = [trained(None, "adam", (64, 300, 200), "float32", fetched)[1].nodes_executed
                for fetched in (False, True)]
    assert executed[0] == executed[1]


def test_a_gradient_of_another_shape_is_refused():
    said = []
    for config in (None, separate()):
        with tn.Graph().as_default(), tn.Session(config=config) as sess:
            w = tn.Variable(np.ones((4, 6), np.float32), validate_shape=False)
            x = tn.placeholder(tn.float32, [None, None])
            step = tn.raw_ops.ResourceApplyGradientDescent(w.handle, 0.5, tn.matmul(x, x),
                                                           name="update")
            sess.run(w.initializer)
            with pytest.raises(tn.errors.InvalidArgumentError) as caught:
                sess.run(step, {x: np.ones((5, 5))})
            said.append(caught.value.message)
            assert np.array_equal(sess.run(w), np.ones((4, 6)))
    assert said[0] == said[1]
    assert "the gradient has shape [5,5], needed is [4,6]" in said[0]


def test_what_a_shape_gives_does_not_wait_for_the_value():
    x = tn.placeholder(tn.float32, [None, 3])
    y = tn.square(x)
    z = tn.cumsum(tn.fill(tn.shape(y), 2.0))
    total = y + z
    _, kernels = run_both([total], {x: np.ones((2, 3))})
    assert kernels[0] < kernels[1]
    with tn.Session() as sess:
        assert np.array_equal(sess.run(total, {x: np.ones((2, 3))}), [[3, 3, 3], [5, 5, 5]])


# A value used n times; sums of n terms; a cell unrolled over n steps.
USES = list(range(1, 20)) + [23, 24, 25, 31, 32, 33, 47, 48, 49, 50, 63, 64, 65, 70]


def alike(fetches, feeds):
    """What a fused and a separate session give, which is the same, and kernels of the fused one."""
    _, kernels = run_both(fetches, feeds)
    with tn.Session() as sess:
        return sess.run(fetches, feeds), kernels[0]


@pytest.mark.parametrize("extents", [(8, 5, 16), (40, 30, 50)])
def test_a_value_that_many_products_read(rng, extents):
    rows, inner, columns = extents
    for n in USES:
        with tn.Graph().as_default():
            x = tn.placeholder(tn.float64, [n, rows, inner])
            w = tn.placeholder(tn.float64, [inner, columns])
            total = tn.add_n([tn.matmul(a, w) for a in tn.unstack(x, n)])
            gradient = tn.gradients(tn.reduce_sum(tn.square(total)), w)[0]
            value, weights = rng.randn(n, rows, inner), rng.randn(inner, columns)
            found, _ = alike([total, gradient], {x: value, w: weights})
        wanted = value.sum(0) @ weights
        assert np.allclose(found[0], wanted)
        assert np.allclose(found[1], 2 * value.sum(0).T @ wanted)


@pytest.mark.parametrize("shape", [(), (3,), (7, 30), (300, 310)])
@pytest.mark.parametrize("name", ["float32", "float16", "int32"])
def test_a_value_that_many_terms_read(rng, shape, name):
    for n in USES if shape != (300, 310) else USES[14:19] + [70]:
        with tn.Graph().as_default():
            x = tn.placeholder(name, shape)
            others = [tn.placeholder(name, shape) for _ in range(n)]
            terms = [tn.multiply(x, y) for y in others]
            chain = terms[0]
            for term in terms[1:]:
                chain = chain + term
            value = rng.randint(-3, 4, shape)
            feeds = {y: rng.randint(-3, 4, shape) for y in others}
            plain = sum(feeds.values())
            feeds[x] = value
            found, _ = alike([tn.add_n(terms), tn.negative(tn.add_n(terms)), chain,
                              tn.add_n([x] * n), tn.negative(tn.add_n(others + [x]))], feeds)
        wanted = [value * plain, -value * plain, value * plain, n * value, -(plain + value)]
        for result, right in zip(found, wanted):
            assert np.array_equal(result, right)


@pytest.mark.parametrize("n", [1, 2, 12, 13, 16, 17, 40, 70])
def test_sums_of_what_is_broadcast(rng, n):
    x = [tn.placeholder(tn.float32, [5, 1]) for _ in range(n)]
    y = [tn.placeholder(tn.float32, [1, 90]) for _ in range(n)]
    total = tn.add_n([a * b + 1.0 for a, b in zip(x, y)])
    chain = x[0] * y[0]
    for a, b in zip(x[1:], y[1:]):
        chain = tn.tanh(chain) + a * b
    feeds = {value: rng.randn(*value.shape.as_list()).astype(np.float32) for value in x + y}
    found, _ = alike([total, chain], feeds)
    assert np.allclose(found[0], sum(feeds[a] * feeds[b] + 1 for a, b in zip(x, y)), atol=1e-4)


def loss_and_gradients(xs, kernel, bias):
    """Of h = tanh([x, h] kernel + bias) over all steps, by hand: mean((h - 0.3)^2)."""
    states = [np.zeros((xs.shape[1], len(bias)))]
    for x in xs:
        states.append(np.tanh(np.concatenate([x, states[-1]], 1) @ kernel + bias))
    error = states[-1] - 0.3
    d_kernel, d_bias, d_state = np.zeros_like(kernel), np.zeros_like(bias), 2 * error / error.size
    for x, before, after in zip(xs[::-1], states[-2::-1], states[:0:-1]):
        d_sum = d_state * (1 - after ** 2)
        d_kernel += np.concatenate([x, before], 1).T @ d_sum
        d_bias += d_sum.sum(0)
        d_state = d_sum @ kernel[xs.shape[2]:].T
    return np.mean(error ** 2), d_kernel, d_bias


@pytest.mark.parametrize("cell", ["BasicRNNCell", "BasicLSTMCell", "GRUCell"])
@pytest.mark.parametrize("steps", [1, 15, 16, 17, 33, 65])
def test_a_cell_unrolled_over_many_steps_trains(rng, cell, steps):
    value = rng.randn(steps, 6, 4)
    trained = []
    for config in (None, separate()):
        with tn.Graph().as_default(), tn.Session(config=config) as sess:
            tn.set_random_seed(1)
            x = tn.placeholder(tn.float64, [steps, 6, 4])
            outputs, _ = tn.nn.static_rnn(getattr(tn.nn.rnn_cell, cell)(5), tn.unstack(x, steps),
                                          dtype=tn.float64)
            loss = tn.reduce_mean(tn.square(outputs[-1] - 0.3))
            step = tn.train.GradientDescentOptimizer(0.5).minimize(loss)
            sess.run(tn.global_variables_initializer())
            weights = sess.run(tn.trainable_variables())
            losses = []
            for _ in range(4):
                losses.append(sess.run([loss, step], {x: value})[0])
                if cell == "BasicRNNCell":
                    wanted, *gradients = loss_and_gradients(value, *weights)
                    assert np.isclose(losses[-1], wanted)
                    weights = [w - 0.5 * g for w, g in zip(weights, gradients)]
                    for found, w in zip(sess.run(tn.trainable_variables()), weights):
                        assert np.allclose(found, w)
            assert losses[-1] < losses[0]
            trained.append([w.tobytes() for w in sess.run(tn.trainable_variables())])
    assert trained[0] == trained[1]


# --- The node at fault

INTEGERS = np.array([7, 8, 9], np.int32)


def told(fetch, feeds, config=None):
    with tn.Session(config=config) as sess:
        with pytest.raises(tn.errors.InvalidArgumentError) as raised:
            sess.run(fetch, feeds)
    return str(raised.value)


@pytest.mark.parametrize("operation, name", [
    (tn.floordiv, "FloorDiv"), (tn.mod, "FloorMod"), (tn.truncatediv, "TruncateDiv"),
    (tn.truncatemod, "TruncateMod"), (lambda x, y: tn.pow(x, y - 1), "Pow")])
@pytest.mark.parametrize("length", [3, 100_000])
def test_an_error_names_the_node_at_fault(operation, name, length, threads):
    x, y = tn.placeholder(tn.int32, [length]), tn.placeholder(tn.int32, [length])
    fault = operation(x + 1, y)
    fetch = tn.abs(fault * 2 - x) + 3
    values = np.resize(INTEGERS, length)
    zero = np.where(np.arange(length) == length - 2, 0, values)
    found = told(fetch, {x: values, y: zero})
    assert found.startswith('[%s node "%s"] ' % (name, fault.op.name))
    assert found == told(fetch, {x: values, y: zero}, separate())


def test_of_several_nodes_at_fault_the_first_is_told():
    x, y = tn.placeholder(tn.int32, [3]), tn.placeholder(tn.int32, [3])
    first, second = x // y, tn.mod(x, y)
    fetch = first * 2 + second
    for value in ([1, 0, 1], [0, 0, 0]):
        found = told(fetch, {x: INTEGERS, y: value})
        assert found.startswith('[FloorDiv node "%s"] Integer division by zero' % first.op.name)
    only_second = tn.mod(x, x - y + 1) + (x // y) * 2
    found = told(only_second, {x: INTEGERS, y: INTEGERS + 1})
    assert found.startswith('[FloorMod node "')


def test_the_node_at_fault_within_a_loop_and_before_a_reduction():
    x, y = tn.placeholder(tn.int32, [4, 3]), tn.placeholder(tn.int32, [3])
    total = tn.while_loop(lambda i, _: i < 5, lambda i, t: (
        i + 1, t + tn.reduce_sum(tn.floordiv(x + t, y - i, name="quotient") * 2, 1)[0]),
        [0, 0])[1]
    found = told(total, {x: np.ones([4, 3], np.int32), y: [9, 3, 9]})
    assert found.startswith('[StatelessWhile node "while"] iteration 3: [FloorDiv node "quotient"]')


def test_check_numerics_says_which_of_two(threads):
    x = tn.placeholder(tn.float32, [1000])
    first = tn.check_numerics(x * 2.0, "first")
    second = tn.check_numerics(tn.log(first), "second")
    fetch = tn.exp(second) + 1.0
    for value, op, text in ((np.inf, first, "first"), (0, second, "second")):
        found = told(fetch, {x: np.where(np.arange(1000) == 700, value, 1.0)})
        assert found.startswith('[CheckNumerics node "%s"] %s' % (op.op.name, text))
