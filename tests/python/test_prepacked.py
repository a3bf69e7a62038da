# SPDX-License-Identifier: Apache-2.0
"""Weights that stay are packed once: the same bits as packed in every run, and never stale."""

import numpy as np
import pytest

import treenail as tn

SHAPES = [(64, 512, 784), (7, 100, 300), (33, 65, 257), (200, 10, 512), (24, 64, 64)]


def values(random, shape, dtype):
    return random.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bits_are_those_of_weights_that_are_fed(shape, transposed, dtype):
    rows, columns, depth = shape
    random = np.random.RandomState(1)
    a = values(random, (rows, depth), dtype)
    first, second = (values(random, (columns, depth) if transposed else (depth, columns), dtype)
                     for _ in range(2))
    x, fed = tn.placeholder(dtype, a.shape), tn.placeholder(dtype, first.shape)
    weight = tn.Variable(first)
    update = tn.assign(weight, fed)
    in_place = tn.assign_sub(weight, fed)
    product = tn.matmul(x, weight, transpose_b=transposed)
    reference = tn.matmul(x, fed, transpose_b=transposed)
    constant = tn.matmul(x, tn.constant(first), transpose_b=transposed)
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())

        def check(expected):
            wanted = session.run(reference, {x: a, fed: expected})
            for _ in range(4):
                np.testing.assert_array_equal(session.run(product, {x: a}), wanted)

        check(first)
        session.run(update, {fed: second})
        check(second)
        session.run(in_place, {fed: first})
        check(second - first)
        for _ in range(4):
            np.testing.assert_array_equal(session.run(constant, {x: a}),
                                          session.run(reference, {x: a, fed: first}))


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("taps", [3, 5])
def test_transformed_filters(taps, backward):
    random = np.random.RandomState(3)
    images = values(random, (2, 12, 12, 64), "float32")
    first, second = (values(random, (taps, taps, 64, 64), "float32") for _ in range(2))
    x, fed = tn.placeholder("float32", images.shape), tn.placeholder("float32", first.shape)
    weight = tn.Variable(first)
    update = tn.assign(weight, fed)

    def convolved(filters):
        if backward:
            return tn.nn.conv2d_transpose(x, filters, images.shape, [1, 1, 1, 1])
        return tn.nn.conv2d(x, filters, [1, 1, 1, 1], "SAME")

    result, reference = convolved(weight), convolved(fed)
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        for filters in (first, second):
            session.run(update, {fed: filters})
            wanted = session.run(reference, {x: images, fed: filters})
            for _ in range(4):
                np.testing.assert_array_equal(session.run(result, {x: images}), wanted)


def test_training_never_multiplies_by_old_weights():
    random = np.random.RandomState(2)
    x, w = values(random, (32, 96), "float32"), values(random, (96, 80), "float32")

    def losses(*fetches):
        weight = tn.Variable(w)
        loss = tn.reduce_mean(tn.square(tn.matmul(x, weight)))
        train = tn.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tn.Session() as session:
            session.run(tn.global_variables_initializer())
            out = []
            for _ in range(6):
                for _ in range(fetches[0]):  # evaluations make a packed form
                    session.run(loss)
                out.append(session.run([loss, train])[0])
            return out

    assert losses(0) == losses(3)
    assert losses(0)[-1] < losses(0)[0]
