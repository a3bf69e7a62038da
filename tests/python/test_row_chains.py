# SPDX-License-Identifier: Apache-2.0
"""Softmax, layer norm and the like from elementary operations run as one kernel, some rows at a
time: the values of NumPy, and the same bits as operation by operation."""

import numpy as np
import pytest

import treenail as tn
from separate_kernels import run_both, separate

ROWS = (-1,)


def softmax(x, axes=ROWS):
    e = tn.exp(x - tn.reduce_max(x, axes, keepdims=True))
    return e / tn.reduce_sum(e, axes, keepdims=True)


def layer_norm(x, axes=ROWS):
    d = x - tn.reduce_mean(x, axes, keepdims=True)
    variance = tn.reduce_mean(tn.square(d), axes, keepdims=True)
    scale = tn.constant(np.linspace(0.5, 1.5, x.shape.as_list()[-1]))
    return d * tn.rsqrt(variance + 0.25) * tn.cast(scale, x.dtype) - tn.cast(scale, x.dtype)


def log_sum_exp(x, axes=ROWS):
    most = tn.reduce_max(x, axes, keepdims=True)
    return most + tn.log(tn.reduce_sum(tn.exp(x - most), axes, keepdims=True))


def standard_deviation(x, axes=ROWS):
    d = x - tn.reduce_mean(x, axes, keepdims=True)
    return tn.sqrt(tn.reduce_mean(d * d, axes, keepdims=True))


def cross_entropy(x, axes=ROWS):
    """Of the rows' softmax with itself: the last reduction drops its axes."""
    shifted = x - tn.reduce_max(x, axes, keepdims=True)
    log_p = shifted - tn.log(tn.reduce_sum(tn.exp(shifted), axes, keepdims=True))
    return tn.reduce_sum(-tn.exp(log_p) * log_p, axes)


def numpy_of(function, x, axes):
    mean = x.mean(axes, keepdims=True)
    variance = x.var(axes, keepdims=True)
    e = np.exp(x - x.max(axes, keepdims=True))
    scale = np.linspace(0.5, 1.5, x.shape[-1])
    return {softmax: lambda: e / e.sum(axes, keepdims=True),
            layer_norm: lambda: (x - mean) / np.sqrt(variance + 0.25) * scale - scale,
            log_sum_exp: lambda: x.max(axes, keepdims=True) + np.log(e.sum(axes, keepdims=True)),
            cross_entropy: lambda: np.log(e.sum(axes)) - (e * np.log(e)).sum(axes) / e.sum(axes),
            standard_deviation: lambda: np.sqrt(variance)}[function]()


FUNCTIONS = [softmax, layer_norm, log_sum_exp, standard_deviation, cross_entropy]
# Of 32 MiB and more: rows in blocks without and with a rest, of one part and of several; one row a
# block; axes of more than one, in front of the rows or within.
SHAPES = [((8400, 1000), ROWS), ((8389, 1001), ROWS), ((3400, 2500), ROWS), ((763, 11001), ROWS),
          ((19, 450, 1031), ROWS), ((2101, 31, 129), (1, 2)), ((120, 35, 40, 50), (2, 3)),
          ((500000, 17), ROWS)]


@pytest.fixture
def set_threads():
    before = tn._core.num_threads()
    yield tn._core.set_num_threads
    tn._core.set_num_threads(before)


def sample(shape):
    """Numbers between -3 and 3, another row each time."""
    numbers = np.arange(np.prod(shape), dtype=np.float32) * np.float32(0.6180339887)
    return ((numbers - np.floor(numbers)) * 6 - 3).reshape(shape)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_kernel_with_the_values_of_numpy(function, threads, set_threads):
    set_threads(threads)
    for shape, axes in SHAPES:
        with tn.Graph().as_default():
            x = tn.placeholder(tn.float32, shape)
            value = sample(shape)
            (found,), (kernels, _) = run_both([function(x, axes)], {x: value})
            assert kernels == 1, shape
            for some in (slice(0, 3), slice(-3, None)):
                expected = numpy_of(function, value[some].astype(np.float64), axes)
                np.testing.assert_allclose(found[some], expected, rtol=2e-5, atol=5e-6)


@pytest.mark.parametrize("name", ["float64", "float16", "bfloat16"])
@pytest.mark.parametrize("function", [softmax, layer_norm])
def test_same_bits_in_every_dtype(name, function):
    with tn.Graph().as_default(), tn.Session() as sess:
        dtype = tn.as_dtype(name)
        x = tn.placeholder(dtype, [(32 << 20) // dtype.size // 1003 + 7, 1003])
        value = sess.run(tn.cast(tn.constant(sample(x.shape.as_list())), dtype))
        assert run_both([function(x)], {x: value})[1][0] == 1


def test_what_leads_to_the_rows_alone_goes_along():
    x = tn.placeholder(tn.float32, [8500, 1000])
    row = tn.placeholder(tn.float32, [1000])
    column = tn.placeholder(tn.float32, [8500, 1])
    feeds = {x: sample((8500, 1000)), row: sample((1000,)), column: sample((8500, 1))}
    assert run_both([softmax(tn.tanh(x * row) + column)], feeds)[1][0] == 1
    # Neither the same for all rows nor of each row its own: what reads it lies in memory.
    x = tn.placeholder(tn.float32, [8, 1100, 1000])
    column = tn.placeholder(tn.float32, [1, 1100, 1])
    feeds = {x: sample((8, 1100, 1000)), column: sample((1, 1100, 1))}
    assert run_both([softmax(tn.tanh(x) * column)], feeds)[1][0] == 2


def test_what_is_read_elsewhere_lies_in_memory():
    x = tn.placeholder(tn.float32, [8500, 1000])
    feeds = {x: sample((8500, 1000))}
    e = tn.exp(x - tn.reduce_max(x, -1, keepdims=True))
    total = tn.reduce_sum(e, -1, keepdims=True)
    (_, sums), (kernels, _) = run_both([e / total, total], feeds)
    assert kernels > 1 and sums.shape == (8500, 1)
    (exponentials, quotients), (kernels, _) = run_both([e, e / total], feeds)
    assert kernels > 1 and np.all(quotients <= exponentials)


def test_small_and_overlong_rows_stay_apart():
    for shape in [(2000, 1000), (60, 200000)]:
        with tn.Graph().as_default():
            x = tn.placeholder(tn.float32, shape)
            value = sample(shape)
            (found,), (kernels, _) = run_both([softmax(x)], {x: value})
            assert kernels > 1
            np.testing.assert_allclose(found, numpy_of(softmax, value, (-1,)), rtol=1e-4)


def test_other_axes_stay_apart():
    x = tn.placeholder(tn.float32, [3000, 3000])
    feeds = {x: sample((3000, 3000))}
    assert run_both([softmax(x, (0,))], feeds)[1][0] > 1
    assert run_both([softmax(x, (0, 1))], feeds)[1][0] > 1
    # Sums along rows that are taken from columns.
    assert run_both([x - tn.reshape(tn.reduce_sum(x, 1), [1, 3000])], feeds)[1][0] > 1


def test_sums_without_their_axes_are_no_longer_of_a_row():
    # As many rows as columns: the sums are broadcast over rows, by columns.
    x = tn.placeholder(tn.float32, [3000, 3000])
    value = sample((3000, 3000))
    (found,), (kernels, _) = run_both([softmax(x) * tn.reduce_sum(x, -1)], {x: value})
    assert kernels > 1
    expected = numpy_of(softmax, value, ROWS) * value.sum(-1)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)
    # A mean of what rows gave is a kernel of its own.
    assert run_both([tn.reduce_mean(cross_entropy(x))], {x: value})[1][0] == 2


def test_a_chain_has_one_device():
    x = tn.placeholder(tn.float32, [8500, 1000])
    with tn.device("/cpu:0"):
        e = tn.exp(x - tn.reduce_max(x, -1, keepdims=True))
    with tn.device("/cpu:1"):
        total = tn.reduce_sum(e, -1, keepdims=True)
    with tn.device("/cpu:0"):
        y = e / total
    found, kernels = [], []
    for devices in (1, 2):
        metadata = tn.RunMetadata()
        config = tn.ConfigProto(device_count={"CPU": devices}, allow_soft_placement=True)
        with tn.Session(config=config) as sess:
            found.append(sess.run(y, {x: sample((8500, 1000))}, run_metadata=metadata).tobytes())
        kernels.append(metadata.nodes_executed)
    assert kernels[0] == 1 and kernels[1] > 1 and found[0] == found[1]


def test_a_dying_input_lends_its_memory():
    x = tn.placeholder(tn.float32, [8500, 1000])
    metadata = tn.RunMetadata()
    with tn.Session() as sess:
        product = tn.matmul(x, tn.ones([1000, 1000]) * 1e-3)
        sess.run(tn.reduce_sum(tn.matmul(softmax(product), tn.ones([1000, 1]))), {
            x: sample((8500, 1000))}, run_metadata=metadata)
    assert metadata.arena_bytes < 1.5 * 8500 * 1000 * 4


def test_a_write_waits_for_the_rows_that_read_before():
    value = sample((8500, 1000))
    for config in (None, separate()):
        with tn.Graph().as_default(), tn.Session(config=config) as sess:
            v = tn.Variable(value)
            read = v.read_value()
            shifted = read - tn.reduce_max(read, -1, keepdims=True)
            with tn.control_dependencies([shifted]):
                write = v.assign(tn.zeros_like(read))
            with tn.control_dependencies([write]):
                later = v.read_value()
            sess.run(tn.global_variables_initializer())
            found = sess.run(tn.reduce_sum(tn.exp(shifted) + later, -1, keepdims=True))
            expected = np.exp(value - value.max(-1, keepdims=True)).sum(-1, keepdims=True)
            np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_training_takes_the_same_steps():
    weights = []
    for config in (None, separate()):
        with tn.Graph().as_default(), tn.Session(config=config) as sess:
            x = tn.constant(sample((9000, 16)))
            w = tn.Variable(sample((16, 1000)))
            y = layer_norm(tn.matmul(x, w))
            loss = -tn.reduce_mean(tn.log(softmax(y)[:, 0] + 1e-3))
            step = tn.train.GradientDescentOptimizer(0.1).minimize(loss)
            sess.run(tn.global_variables_initializer())
            for _ in range(3):
                sess.run(step)
            weights.append(sess.run(w).tobytes())
    assert weights[0] == weights[1]


def test_errors_name_the_operation():
    x = tn.placeholder(tn.int32, [9000, 1000])
    y = tn.floor_div(x, tn.reduce_sum(x, -1, keepdims=True), name="share")
    with tn.Session() as sess, pytest.raises(tn.errors.InvalidArgumentError, match="share"):
        sess.run(y, {x: np.zeros((9000, 1000), np.int32)})
