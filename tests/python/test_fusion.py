# SPDX-License-Identifier: Apache-2.0
"""Element-wise operations that run as one kernel: the same bits as one by one, in any graph."""

import numpy as np
import pytest

import treenail as tn

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
         "int32": "int", "int8": "int", "int64": "int", "uint8": "int", "complex64": "complex"}
# The output's shape, and shapes that broadcast to it.
SHAPES = [((5,), [()]), ((3, 7), [(7,), (3, 1), ()]), ((40, 33), [(33,), (40, 1)]),
          ((2, 3, 4, 5), [(5,), (3, 1, 5), (2, 1, 1, 1)]), ((3000,), [()]), ((17, 300), [(300,)]),
          ((0, 4), [(4,)]), ((), [])]


def separate():
    options = tn.OptimizerOptions(do_elementwise_fusion=False)
    return tn.ConfigProto(graph_options=tn.GraphOptions(options))


def random_expression(random, dtype, shape, others, nodes):
    """Values of a random graph of element-wise operations, and the placeholders' feeds."""
    kind = KINDS[dtype.name]

    def feed(extents):
        x = tn.placeholder(dtype, [None] * len(extents))
        value = random.uniform(-2, 2, extents) * (20 if kind == "int" else 1)
        if dtype.name == "uint8":
            value = np.abs(value)
        with tn.Session() as sess:
            feeds[x] = sess.run(tn.cast(tn.constant(value), dtype))
        return x
    feeds = {}
    values = [feed(shape), feed(shape)] + [feed(extents) for extents in others]
    for _ in range(nodes):
        operation = random.randint(5)
        first = values[random.randint(len(values))]
        if operation == 0 and not (dtype.name == "uint8"):
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
    return values, feeds


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


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_large_values_on_several_threads(threads):
    x = tn.placeholder(tn.float32, [None, 700])
    row = tn.placeholder(tn.float32, [700])
    y = tn.tanh(x * 1.5 + row) - tn.exp(-tn.abs(x)) * row
    before = tn._core.num_threads()
    value = np.random.RandomState(1).randn(900, 700).astype(np.float32)
    feed = {x: value, row: value[0]}
    try:
        tn._core.set_num_threads(threads)
        with tn.Session() as sess, tn.Session(config=separate()) as other:
            np.testing.assert_array_equal(sess.run(y, feed), other.run(y, feed))
    finally:
        tn._core.set_num_threads(before)


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
