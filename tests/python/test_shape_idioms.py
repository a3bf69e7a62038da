# SPDX-License-Identifier: Apache-2.0
"""Programs that need static shapes: what a layer makes its variables from must be known while the
graph is built, though batch, keep_prob or training are fed. Each function's own shape:
test_static_shapes.py."""

import numpy as np
import pytest

import treenail as tn


def trains(loss, feed):
    """Whether a step of gradient descent runs and leaves a finite loss."""
    step = tn.train.GradientDescentOptimizer(0.01).minimize(loss)
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        session.run(step, feed)
        return bool(np.isfinite(session.run(loss, feed)))


def test_dropout_of_a_placeholder_without_shape():
    x, keep_prob = tn.placeholder(tn.float32, [None, 784]), tn.placeholder(tn.float32)
    hidden = tn.nn.dropout(tn.layers.dense(x, 8, tn.nn.relu), keep_prob)
    assert hidden.shape.as_list() == [None, 8]
    logits = tn.layers.dense(hidden, 3)
    assert logits.shape.as_list() == [None, 3]
    values = np.ones((4, 784), np.float32)
    assert trains(tn.reduce_mean(logits ** 2), {x: values, keep_prob: 0.5})
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        once = session.run(hidden, {x: values, keep_prob: 1.0})
        np.testing.assert_array_equal(once, session.run(hidden, {x: values, keep_prob: [1.0]}))
        with pytest.raises(tn.errors.InvalidArgumentError, match="requested shape"):
            session.run(hidden, {x: values, keep_prob: [0.5, 0.5]})


def test_dropout_by_rate_and_by_noise_shape():
    x, rate = tn.placeholder(tn.float32, [None, 4, 4, 3]), tn.placeholder(tn.float32)
    assert tn.nn.dropout(x, rate=rate).shape.as_list() == [None, 4, 4, 3]
    noise = tn.placeholder(tn.int32)
    assert tn.nn.dropout(x, rate=rate, noise_shape=noise).shape.as_list() == [None, 4, 4, 3]
    with pytest.raises(ValueError, match="keep_prob must be a scalar"):
        tn.nn.dropout(x, tn.placeholder(tn.float32, [3]))


@pytest.mark.parametrize("shape", [None, []])
@pytest.mark.parametrize("layer", [tn.layers.batch_normalization, tn.layers.dropout])
@pytest.mark.parametrize("image", [(6,), (4, 4, 3)])
def test_layers_by_a_placeholder_for_training(image, layer, shape):
    x = tn.placeholder(tn.float32, (None,) + image)
    training = tn.placeholder(tn.bool, shape)
    y = layer(x, training=training)
    assert y.shape.as_list() == [None, *image]
    logits = tn.layers.dense(tn.layers.flatten(y), 2)
    assert logits.shape.as_list() == [None, 2]
    values = np.random.RandomState(0).rand(5, *image).astype(np.float32)
    for flag in True, False:
        assert trains(tn.reduce_mean(logits ** 2), {x: values, training: flag})


def test_where_of_a_condition_without_shape():
    condition, x = tn.placeholder(tn.bool), tn.placeholder(tn.float32, [None, 3])
    y = tn.where(condition, x, -x)
    assert tn.layers.dense(y, 2).shape.as_list() == [None, 2]
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    with tn.Session() as session:
        def run(flags):
            return session.run(y, {condition: flags, x: values})
        np.testing.assert_array_equal(run(False), -values)
        np.testing.assert_array_equal(run([True, False]), [values[0], -values[1]])
        np.testing.assert_array_equal(run(values > 2), np.where(values > 2, values, -values))
        with pytest.raises(tn.errors.InvalidArgumentError):
            run(np.ones((2, 2, 3), bool))


def test_where_chooses_rows_of_what_has_no_rank():
    condition, x = tn.placeholder(tn.bool, [None]), tn.placeholder(tn.float32)
    y = tn.where(condition, x, -x)
    with tn.Session() as session:
        got = session.run(y, {condition: [True, False], x: np.ones((2, 2))})
        np.testing.assert_array_equal(got, [[1, 1], [-1, -1]])
        np.testing.assert_array_equal(session.run(y, {condition: [True, False], x: [3, 4]}),
                                      [3, -4])


@pytest.mark.parametrize("rank, form", [(2, "channels_last"), (2, "channels_first"),
                                        (3, "channels_last")])
@pytest.mark.parametrize("padding, wanted", [("same", 8), ("valid", 9)])
def test_transposed_convolution_of_an_unknown_batch(rank, form, padding, wanted):
    space = [4] * rank
    shape = [None, *space, 3] if form == "channels_last" else [None, 3, *space]
    x = tn.placeholder(tn.float32, shape)
    layer = tn.layers.conv2d_transpose if rank == 2 else tn.layers.conv3d_transpose
    y = layer(x, 5, 3, 2, padding, form)
    grown = [wanted] * rank
    assert y.shape.as_list() == ([None, *grown, 5] if form == "channels_last"
                                 else [None, 5, *grown])
    logits = tn.layers.dense(tn.layers.flatten(y), 2)
    assert logits.shape.as_list() == [None, 2]
    assert trains(tn.reduce_mean(logits), {x: np.ones([2] + shape[1:], np.float32)})


def test_output_shapes_of_transposed_convolution_from_the_batch():
    x = tn.placeholder(tn.float32, [None, 4, 4, 3])
    batch = tn.shape(x)[0]
    y = tn.nn.conv2d_transpose(x, tn.ones([3, 3, 5, 3]), tn.stack([batch, 8, 8, 5]), [1, 2, 2, 1])
    assert y.shape.as_list() == [None, 8, 8, 5]
    sizes = tn.concat([tn.shape(x)[:1], 2 * tn.shape(x)[1:3], [5]], 0)
    y = tn.nn.conv2d_transpose(x, tn.ones([3, 3, 5, 3]), sizes, [1, 2, 2, 1])
    assert y.shape.as_list() == [None, 8, 8, 5]


def test_shapes_by_arithmetic_on_extents():
    x = tn.placeholder(tn.float32, [None, 6, 5, 4])
    size = tn.shape(x)
    flat = tn.reshape(x, [size[0], size[1] * size[2] * size[3]])
    assert tn.layers.dense(flat, 2).shape.as_list() == [None, 2]
    assert tn.reshape(x, [-1, tn.reduce_prod(size[1:])]).shape.as_list() == [None, 120]
    assert tn.reshape(x, [-1, (size[1] + 3) // 3, 10, size[3]]).shape.as_list() == [None, 3, 10, 4]
    assert tn.reshape(x, size // [1, 2, 1, 1] * [1, 1, 2, 1]).shape.as_list() == [None, 3, 10, 4]
    assert tn.image.resize_images(x, 2 * size[1:3]).shape.as_list() == [None, 12, 10, 4]


def test_shapes_taken_apart_and_put_together():
    x, y = tn.placeholder(tn.float32, [None, 4, 6]), tn.placeholder(tn.float32, [None, 3])
    unknown, numbers = tn.placeholder(tn.float32), tn.placeholder(tn.int32, [None])
    size = tn.shape(x)
    for built, wanted in [
            (tn.reshape(unknown, size), [None, 4, 6]),
            (tn.reshape(x, tn.concat([size[:-1], [2, 3]], 0)), [None, 4, 2, 3]),
            (tn.tile(y[:, :1], [1, tn.shape(y)[1]]), [None, 3]),
            (tn.range(tn.shape(y)[1]), [3]),
            (tn.one_hot(numbers, tn.shape(y)[1]), [None, 3]),
            (tn.transpose(x, tn.range(tn.rank(x))[::-1]), [6, 4, None]),
            (tn.zeros(tn.gather(size, [0, 2])), [None, 6]),
            (tn.zeros(tn.unstack(size)[1:]), [4, 6]),
            (tn.zeros([tn.maximum(size[1], 5)]), [5]),
            (tn.pad(x, [[0, 0], [0, 8 - size[1]], [0, 0]]), [None, 8, 6]),
            (tn.pad(x, tn.concat([[[0, 0]], [[1, 1], [2, 2]]], 0)), [None, 6, 10]),
            (tn.expand_dims(x, tn.rank(x)), [None, 4, 6, 1]),
            (tn.sequence_mask(numbers, size[1]), [None, 4])]:
        assert built.shape.as_list() == wanted, built


BINARY = [(tn.add, np.add), (tn.subtract, np.subtract), (tn.multiply, np.multiply),
          (tn.floordiv, np.floor_divide), (tn.floormod, np.mod), (tn.maximum, np.maximum),
          (tn.minimum, np.minimum), (tn.truncatediv, lambda x, y: np.trunc(x / y)),
          (tn.truncatemod, np.fmod)]


@pytest.mark.parametrize("dtype", [tn.int32, tn.int64])
@pytest.mark.parametrize("number", range(len(BINARY)))
def test_arithmetic_on_known_values(number, dtype):
    function, oracle = BINARY[number]
    y = np.array([y for y in range(-7, 8) if y])
    for x in range(-7, 8):
        known = function(tn.constant(x, dtype), tn.constant(y, dtype))._known_value
        np.testing.assert_array_equal(known, oracle(x, y))
        assert known.dtype == dtype.as_numpy_dtype


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_reductions_of_known_values(dtype, evaluate):
    limit = int(np.iinfo(dtype).max)
    reductions = [(tn.reduce_sum, np.sum), (tn.reduce_prod, np.prod), (tn.reduce_max, np.max),
                  (tn.reduce_min, np.min), (tn.abs, np.abs), (tn.negative, np.negative)]
    for values in [3, 4, 5], [-2], [0, 7, -9], [limit, 1], [limit, limit, 2], [-limit - 1, -1]:
        array = np.array(values, dtype)
        for function, oracle in reductions:
            result = function(tn.constant(array))
            with np.errstate(over="ignore"):
                summed = {"dtype": dtype} if oracle in (np.sum, np.prod) else {}
                wanted = oracle(array, **summed)
            np.testing.assert_array_equal(evaluate(result), wanted)
            if result._known_value is not None:
                np.testing.assert_array_equal(result._known_value, wanted)
    for function, wanted in (tn.reduce_sum, 0), (tn.reduce_prod, 1):
        assert function(tn.constant(np.zeros(0, dtype)))._known_value == wanted


def test_what_no_value_is_known_of(evaluate):
    large = tn.constant(2 ** 31 - 1)
    assert (large + 1)._known_value is None  # wraps around
    assert evaluate(large + 1) == -2 ** 31
    assert tn.floordiv(large, 0)._known_value is None
    n = tn.placeholder(tn.int32, [])
    assert tn.stack([n * 2, 3 * tn.constant(2)])._known_elements == [None, 6]


def test_a_fed_constant_is_seen_by_what_is_computed_from_it():
    c = tn.constant([2, 3])
    y = tn.fill(c * 2, 1.0)
    assert y.shape.as_list() == [4, 6]
    with tn.Session() as session:
        assert session.run(tn.shape(tn.ones(c + 1)) * 1, {}).tolist() == [3, 4]
        assert session.run(c * 2, {c: [5, 7]}).tolist() == [10, 14]


def test_images_of_unknown_size_cut_or_padded():
    for shape in [None, None, 3], [2, None, None, 3], [None, None, None, 3]:
        x = tn.placeholder(tn.float32, shape)
        y = tn.image.resize_image_with_crop_or_pad(x, 7, 5)
        assert y.shape.as_list() == shape[:-3] + [7, 5, 3]
    assert tn.layers.dense(tn.layers.flatten(y), 2).shape.as_list() == [None, 2]


def test_stitched_rows_are_counted(evaluate):
    x = tn.placeholder(tn.float32, [2, 3])
    y = tn.dynamic_stitch([[0, 4], [2, 1, 3]], [x, tn.ones([3, 3])])
    assert y.shape.as_list() == [5, 3]
    assert evaluate(y, {x: np.zeros((2, 3))})[:, 0].tolist() == [0, 1, 1, 1, 0]
    index = tn.placeholder(tn.int32, [2])
    assert tn.dynamic_stitch([index, [2]], [x, tn.ones([1, 3])]).shape.as_list() == [None, 3]
