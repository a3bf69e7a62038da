# SPDX-License-Identifier: Apache-2.0
"""Seeds, and what the Python functions make of the random ops; the streams themselves:
tests/cases."""

import math

import numpy as np
import pytest

import treenail as tn


def draw(build, seed=None, runs=1):
    with tn.Graph().as_default():
        if seed is not None:
            tn.set_random_seed(seed)
        tensor = build()
        with tn.Session() as sess:
            return [sess.run(tensor) for _ in range(runs)]


BUILD = {
    "normal": lambda **k: tn.random_normal([50], **k),
    "uniform": lambda **k: tn.random_uniform([50], **k),
    "truncated": lambda **k: tn.truncated_normal([50], **k),
    "integers": lambda **k: tn.random_uniform([50], maxval=1000, dtype=tn.int32, **k),
    "shuffle": lambda **k: tn.random_shuffle(np.arange(50), **k),
    "multinomial": lambda **k: tn.multinomial([[0.0] * 100], 50, **k),
    "crop": lambda **k: tn.random_crop(np.arange(1000), [50], **k),
}


@pytest.mark.parametrize("name", BUILD)
def test_seeds_choose_the_numbers(name):
    build = BUILD[name]
    first = draw(lambda: build(seed=3), runs=2)
    np.testing.assert_array_equal(draw(lambda: build(seed=3), runs=2), first)
    assert (first[0] != first[1]).any()  # the next run draws on
    assert (draw(lambda: build(seed=4))[0] != first[0]).any()
    assert (draw(lambda: build(seed=3), seed=5)[0] != first[0]).any()
    np.testing.assert_array_equal(draw(build, seed=5), draw(build, seed=5))
    assert (draw(build)[0] != draw(build)[0]).any()  # no seed: others each time


def test_operations_have_streams_of_their_own():
    tn.set_random_seed(1)
    a, b = tn.random_normal([20]), tn.random_normal([20])
    with tn.Session() as sess:
        one, two = sess.run([a, b])
    assert (one != two).any()


def test_seeds_of_tensorflow_1():
    assert tn.get_seed(None) == (None, None) and tn.get_seed(5) == (87654321, 5)
    tn.set_random_seed(7)
    assert tn.get_seed(5) == (7, 5) and tn.get_seed(None) == (7, 0)
    tn.set_random_seed(0)
    assert tn.get_seed(0) == (0, 2**31 - 1)


def test_distributions():
    count = 40000
    normal, = draw(lambda: tn.random_normal([count], 3.0, 2.0, seed=1))
    assert abs(normal.mean() - 3) < 5 * 2 / math.sqrt(count) and abs(normal.std() - 2) < 0.05
    uniform, = draw(lambda: tn.random_uniform([count], -1.0, 3.0, seed=1))
    assert -1 <= uniform.min() and uniform.max() < 3 and abs(uniform.mean() - 1) < 0.03
    truncated, = draw(lambda: tn.truncated_normal([count], 1.0, 2.0, tn.float64, seed=1))
    assert abs(truncated - 1).max() <= 4 and abs(truncated.std() - 2 * 0.8796) < 0.03
    whole, = draw(lambda: tn.random_uniform([count], 3, 7, tn.int64, seed=1))
    assert sorted(set(whole.tolist())) == [3, 4, 5, 6]
    classes, = draw(lambda: tn.multinomial(np.log([[0.1, 0.2, 0.7]]), count, seed=1))
    frequencies = np.bincount(classes[0], minlength=3) / count
    np.testing.assert_allclose(frequencies, [0.1, 0.2, 0.7], atol=0.02)


def test_shuffling_keeps_rows():
    rows = np.arange(20).reshape(10, 2)
    shuffled, = draw(lambda: tn.random_shuffle(rows, seed=1))
    assert sorted(map(tuple, shuffled)) == sorted(map(tuple, rows))


def test_stateless_functions_depend_on_the_seed_alone(evaluate):
    for build in (tn.random.stateless_normal, tn.stateless_truncated_normal,
                  tn.random.stateless_uniform):
        x = build([10], [1, 2])
        with tn.Session() as sess:
            np.testing.assert_array_equal(sess.run(x), sess.run(x))
            assert (sess.run(build([10], [1, 3])) != sess.run(x)).any()
    whole = evaluate(tn.stateless_random_uniform([100], [1, 2], 3, 7, tn.int32))
    assert sorted(set(whole.tolist())) == [3, 4, 5, 6]


def test_what_is_refused():
    with pytest.raises(ValueError, match="Must specify maxval for integer dtype"):
        tn.random_uniform([3], dtype=tn.int32)
    with pytest.raises(ValueError, match="cannot crop shape"):
        tn.random_crop(tn.zeros([3]), [4])
    with pytest.raises(ValueError):
        tn.random_normal([2], dtype=tn.int32)


INITIALIZERS = [
    (tn.initializers.zeros(), 0, 0, None), (tn.initializers.ones(), 1, 0, None),
    (tn.initializers.constant(3), 3, 0, None), (tn.initializers.random_normal(1, 2, 1), 1, 2, None),
    (tn.initializers.random_uniform(-1, 1, 1), 0, 1 / math.sqrt(3), 1),
    (tn.initializers.truncated_normal(0, 1, 1), 0, 0.8796, 2),
    (tn.initializers.glorot_uniform(1), 0, math.sqrt(2 / 500), math.sqrt(6 / 500)),
    (tn.initializers.glorot_normal(1), 0, math.sqrt(2 / 500), None),
    (tn.initializers.he_normal(1), 0, math.sqrt(2 / 300), None),
    (tn.initializers.he_uniform(1), 0, math.sqrt(2 / 300), math.sqrt(6 / 300)),
    (tn.initializers.lecun_normal(1), 0, math.sqrt(1 / 300), None),
    (tn.initializers.lecun_uniform(1), 0, math.sqrt(1 / 300), math.sqrt(3 / 300)),
    (tn.initializers.variance_scaling(2.0, "fan_out", "untruncated_normal", 1), 0,
     math.sqrt(2 / 200), None),
    (tn.initializers.uniform_unit_scaling(1.0, 1), 0, math.sqrt(1 / 300), math.sqrt(3 / 300))]


@pytest.mark.parametrize("number", range(len(INITIALIZERS)))
def test_initializers(number, evaluate):
    initializer, mean, deviation, limit = INITIALIZERS[number]
    values = evaluate(initializer([300, 200], tn.float32))
    assert values.shape == (300, 200) and values.dtype == np.float32
    assert abs(values.mean() - mean) <= 5 * deviation / math.sqrt(60000)
    assert abs(values.std() - deviation) <= 0.02 * deviation
    if limit is not None:
        assert abs(values - mean).max() <= limit * (1 + 1e-6)
    again = type(initializer).from_config(initializer.get_config())
    np.testing.assert_array_equal(evaluate(again([300, 200], tn.float32)), values)


def test_fans_of_convolutions(evaluate):
    values = evaluate(tn.initializers.glorot_uniform(1)([3, 3, 20, 30]))
    limit = math.sqrt(6 / (9 * 20 + 9 * 30))
    assert 0.99 * limit < abs(values).max() <= limit
    assert evaluate(tn.initializers.identity(2.0)([2, 3])).tolist() == [[2, 0, 0], [0, 2, 0]]


@pytest.mark.parametrize("call,error", [
    (lambda: tn.initializers.variance_scaling(0.0), ValueError),
    (lambda: tn.initializers.variance_scaling(1.0, "fan"), ValueError),
    (lambda: tn.initializers.variance_scaling(1.0, "fan_in", "cauchy"), ValueError),
    (lambda: tn.initializers.constant(object()), TypeError),
    (lambda: tn.initializers.identity()([2, 2, 2]), ValueError),
    (lambda: tn.regularizers.l1(-1.0), ValueError), (lambda: tn.regularizers.l2("a"), ValueError)])
def test_what_initializers_and_regularizers_refuse(call, error):
    with pytest.raises(error):
        call()


def test_regularizers(evaluate):
    w = tn.constant([1.0, -2.0])
    assert evaluate([tn.regularizers.l1(0.5)(w), tn.regularizers.l2(0.5)(w),
                     tn.regularizers.l1_l2(1.0, 1.0)(w)]) == [1.5, 1.25, 5.5]
    assert tn.regularizers.l2(0)(w) is None and tn.regularizers.sum_regularizer([])(w) is None
    total = tn.regularizers.apply_regularization(tn.regularizers.l1(1.0), [w, w])
    assert evaluate(total) == 6 and tn.losses.get_regularization_losses() == [total]
