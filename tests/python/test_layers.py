# SPDX-License-Identifier: Apache-2.0
"""tn.layers: variables, names, sharing, training flags."""

import numpy as np
import pytest

import treenail as tn

X = np.random.RandomState(1).randn(4, 3).astype(np.float32)
VOLUMES = np.random.RandomState(7).rand(2, 4, 5, 6, 3).astype(np.float32)
IMAGES = np.random.RandomState(2).rand(4, 6, 6, 3).astype(np.float32)


def names(variables=None):
    return [v.name for v in (tn.global_variables() if variables is None else variables)]


def test_dense(evaluate):
    y = tn.layers.dense(X, 2, activation=tn.nn.relu, name="d",
                        kernel_initializer=tn.initializers.constant([[1, 2], [3, 4], [5, 6]]),
                        bias_initializer=tn.ones_initializer())
    wanted = np.maximum(X @ np.array([[1, 2], [3, 4], [5, 6]], np.float32) + 1, 0)
    np.testing.assert_allclose(evaluate(y), wanted, rtol=1e-5)
    assert names() == ["d/kernel:0", "d/bias:0"]
    assert y.name.startswith("d/Relu")


def test_dense_of_higher_rank(evaluate):
    y = tn.layers.dense(IMAGES, 5, use_bias=False, kernel_initializer=tn.ones_initializer())
    assert y.shape == [4, 6, 6, 5]
    np.testing.assert_allclose(evaluate(y), IMAGES.sum(-1, keepdims=True).repeat(5, -1), rtol=1e-5)


def test_names_are_numbered_and_scoped():
    tn.layers.dense(X, 2)
    tn.layers.dense(X, 2)
    with tn.variable_scope("net"):
        tn.layers.conv2d(IMAGES, 2, 3, use_bias=False)
        tn.layers.conv2d(IMAGES, 2, 3, use_bias=False)
    assert names() == ["dense/kernel:0", "dense/bias:0", "dense_1/kernel:0", "dense_1/bias:0",
                       "net/conv2d/kernel:0", "net/conv2d_1/kernel:0"]


def test_layers_of_one_name_are_numbered():
    """As TensorFlow 1's classes; its functions take a name as it is."""
    layers = [tn.layers.Dense(2, use_bias=False, name="a") for _ in range(2)]
    for layer in layers + layers[:1]:
        layer(X)
    with tn.variable_scope("net"):
        tn.layers.Dense(2, use_bias=False, name="a")(X)
    assert names() == ["a/kernel:0", "a_1/kernel:0", "net/a/kernel:0"]
    assert [layer.name for layer in layers] == ["a", "a_1"]
    tn.layers.Dense(2, use_bias=False, name="a", _reuse=True)(X)
    assert len(names()) == 3
    with pytest.raises(ValueError, match="a_1/kernel already exists"):
        tn.layers.dense(X, 2, name="a_1")


def test_layers_of_one_name_are_numbered_at_once():
    with tn.eager():
        layers = [tn.layers.Dense(2, name="a") for _ in range(2)]
        for layer in layers:
            layer(tn.constant([[1.0, 2.0]]))
        assert [layer.name for layer in layers] == ["a", "a_1"]
        assert layers[0].kernel is not layers[1].kernel


def test_sharing():
    layer = tn.layers.Dense(2, name="shared")
    assert layer.name == "shared" and not layer.built
    with pytest.raises(ValueError, match="has not been used yet"):
        layer.scope_name
    layer(X)
    layer(X + 1)
    assert names() == ["shared/kernel:0", "shared/bias:0"]
    assert layer.scope_name == "shared" and layer.count_params() == 8
    assert layer.variables == [layer.kernel, layer.bias] == layer.trainable_variables
    with pytest.raises(ValueError, match="shared/kernel already exists"):
        tn.layers.dense(X, 2, name="shared")
    tn.layers.dense(X, 2, name="shared", reuse=True)
    with tn.variable_scope("a", reuse=tn.AUTO_REUSE):
        tn.layers.dense(X, 2, name="b")
    with tn.variable_scope("a", reuse=True):
        tn.layers.dense(X, 2, name="b")
    assert names() == ["shared/kernel:0", "shared/bias:0", "a/b/kernel:0", "a/b/bias:0"]


def test_convolution(evaluate):
    y = tn.layers.conv2d(IMAGES, 4, (3, 2), strides=2, padding="same", dilation_rate=1,
                         activation=tn.nn.relu, name="c")
    assert y.shape == [4, 3, 3, 4] and tn.global_variables()[0].shape == [3, 2, 3, 4]
    kernel = tn.global_variables()[0]
    wanted = tn.nn.relu(tn.nn.conv2d(IMAGES, kernel, 2, "SAME"))
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        np.testing.assert_allclose(*sess.run([y, wanted]), rtol=1e-5, atol=1e-6)
    first = tn.layers.conv2d(IMAGES.transpose(0, 3, 1, 2), 4, 3, data_format="channels_first")
    assert first.shape == [4, 4, 4, 4]
    assert tn.layers.conv1d(IMAGES[:, 0], 7, 3).shape == [4, 4, 7]
    assert tn.layers.conv1d(IMAGES[:, 0].transpose(0, 2, 1), 7, 3,
                            data_format="channels_first").shape == [4, 7, 4]
    assert tn.layers.conv2d_transpose(IMAGES, 2, 3, 2, "same").shape == [4, 12, 12, 2]
    assert tn.layers.conv2d_transpose(IMAGES, 2, 3, 2).shape == [4, 13, 13, 2]
    assert tn.layers.separable_conv2d(IMAGES, 8, 3, depth_multiplier=2).shape == [4, 4, 4, 8]
    evaluate([first])


def test_transposed_convolution_of_unknown_extents(evaluate):
    x = tn.placeholder(tn.float32, [None, None, None, 3])
    y = tn.layers.conv2d_transpose(x, 2, 3, 2, "same")
    assert evaluate(y, {x: IMAGES}).shape == (4, 12, 12, 2)


def test_convolution_of_volumes_and_sequences(evaluate):
    y = tn.layers.conv3d(VOLUMES, 4, (3, 2, 2), strides=2, padding="same", activation=tn.nn.relu,
                         bias_initializer=tn.ones_initializer())
    kernel, bias = tn.global_variables()
    assert kernel.shape == [3, 2, 2, 3, 4] and bias.shape == [4]
    wanted = tn.nn.relu(tn.nn.conv3d(VOLUMES, kernel, 2, "SAME") + 1)
    got, want = evaluate([y, wanted])
    np.testing.assert_allclose(got, want, rtol=1e-6)
    first = np.moveaxis(VOLUMES, -1, 1)
    assert tn.layers.conv3d(first, 4, 2, data_format="channels_first").shape == [2, 4, 3, 4, 5]
    assert tn.layers.conv3d_transpose(VOLUMES, 2, 3, 2, "same").shape == [2, 8, 10, 12, 2]
    assert tn.layers.conv3d_transpose(first, 2, 3, (1, 2, 3), data_format="channels_first").shape \
        == [2, 2, 6, 11, 18]
    assert tn.layers.separable_conv1d(IMAGES[:, 0], 8, 3, depth_multiplier=2).shape == [4, 4, 8]
    assert tn.layers.separable_conv1d(IMAGES[:, 0].transpose(0, 2, 1), 8, 3, dilation_rate=2,
                                      data_format="channels_first").shape == [4, 8, 2]


def test_separable_convolution_of_sequences(evaluate):
    y = tn.layers.separable_conv1d(IMAGES[:, 0], 5, 3, depth_multiplier=2, use_bias=False)
    depthwise, pointwise = tn.global_variables()
    assert depthwise.shape == [3, 3, 2] and pointwise.shape == [1, 6, 5]
    got, d, p = evaluate([y, depthwise, pointwise])
    spread = sum(IMAGES[:, 0, k:k + 4, :, None] * d[k] for k in range(3)).reshape(4, 4, 6)
    np.testing.assert_allclose(got, spread @ p[0], rtol=1e-5, atol=1e-6)


def test_pooling_of_volumes(evaluate):
    blocks = VOLUMES[:, :, :4].reshape(2, 2, 2, 2, 2, 3, 2, 3)
    np.testing.assert_array_equal(evaluate(tn.layers.max_pooling3d(VOLUMES, 2, 2)),
                                  blocks.max((2, 4, 6)))
    np.testing.assert_allclose(evaluate(tn.layers.average_pooling3d(VOLUMES, (2, 2, 2), 2)),
                               blocks.mean((2, 4, 6)), rtol=1e-6)


def test_pooling(evaluate):
    blocks = IMAGES.reshape(4, 3, 2, 3, 2, 3)
    np.testing.assert_array_equal(evaluate(tn.layers.max_pooling2d(IMAGES, 2, 2)),
                                  blocks.max((2, 4)))
    np.testing.assert_allclose(evaluate(tn.layers.average_pooling2d(IMAGES, (2, 2), 2)),
                               blocks.mean((2, 4)), rtol=1e-6)
    first = IMAGES.transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(
        evaluate(tn.layers.max_pooling2d(first, 2, 2, data_format="channels_first")),
        blocks.max((2, 4)).transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(evaluate(tn.layers.max_pooling1d(IMAGES[0], 2, 2)),
                                  IMAGES[0].reshape(6, 3, 2, 3).max(2))
    np.testing.assert_allclose(evaluate(tn.layers.average_pooling1d(IMAGES[0], 3, 3)),
                               IMAGES[0].reshape(6, 2, 3, 3).mean(2), rtol=1e-6)


def test_flatten(evaluate):
    assert tn.layers.flatten(IMAGES).shape == [4, 108]
    x = tn.placeholder(tn.float32, [None, None, 3])
    np.testing.assert_array_equal(evaluate(tn.layers.flatten(x), {x: IMAGES[0]}),
                                  IMAGES[0].reshape(6, -1))
    y = tn.layers.flatten(IMAGES.transpose(0, 3, 1, 2), data_format="channels_first")
    np.testing.assert_array_equal(evaluate(y), IMAGES.reshape(4, -1))


def test_dropout_by_a_placeholder():
    x = tn.constant(np.ones((200, 200), np.float32))
    training = tn.placeholder(tn.bool, [])
    y = tn.layers.dropout(x, 0.25, seed=1, training=training)
    with tn.Session() as sess:
        assert (sess.run(y, {training: False}) == 1).all()
        dropped = sess.run(y, {training: True})
        assert sorted(set(dropped.ravel().tolist())) == [0, np.float32(1 / 0.75)]
        assert (sess.run(tn.layers.dropout(x, 0.5)) == 1).all()
        assert (sess.run(tn.layers.dropout(x, 0.5, training=True)) == 0).any()


def _normalized(x, axes):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-3)


@pytest.mark.parametrize("shape,axis,fused", [
    ((40, 3), -1, None), ((10, 4, 4, 3), -1, None), ((10, 4, 4, 3), -1, False),
    ((10, 3, 4, 4), 1, None), ((10, 3, 5), 1, None)])
def test_batch_normalization(shape, axis, fused, rng):
    x = (rng.randn(*shape) * 3 + 1).astype(np.float32)
    axes = tuple(i for i in range(len(shape)) if i != axis % len(shape))
    layer = tn.layers.BatchNormalization(axis=axis, momentum=0.9, fused=fused)
    training, inference = layer(x, training=True), layer(x, training=False)
    assert names() == ["batch_normalization/%s:0" % n
                       for n in ("gamma", "beta", "moving_mean", "moving_variance")]
    assert names(tn.trainable_variables()) == names()[:2]
    updates = tn.get_collection(tn.GraphKeys.UPDATE_OPS)
    assert len(updates) == 2 == len(layer.updates)
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        np.testing.assert_allclose(sess.run(training), _normalized(x, axes), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(sess.run(inference), x / np.sqrt(1 + 1e-3), rtol=1e-4)
        sess.run(updates)
        count = x.size / 3
        bessel = count / (count - 1) if len(shape) == 4 and fused is not False else 1.0
        np.testing.assert_allclose(sess.run(layer.moving_mean), 0.1 * x.mean(axes), rtol=1e-4)
        np.testing.assert_allclose(sess.run(layer.moving_variance),
                                   0.9 + 0.1 * x.var(axes) * bessel, rtol=1e-4)


def test_batch_normalization_by_a_placeholder(rng):
    x = (rng.randn(50, 3) * 2 + 5).astype(np.float32)
    training = tn.placeholder(tn.bool, [])
    y = tn.layers.batch_normalization(tn.constant(x), training=training)
    updates = tn.get_collection(tn.GraphKeys.UPDATE_OPS)
    slope = tn.gradients(tn.reduce_sum(y * y), tn.trainable_variables()[0])[0]
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        np.testing.assert_allclose(sess.run(y, {training: True}), _normalized(x, 0), rtol=1e-3,
                                   atol=1e-4)
        sess.run(updates, {training: False})
        np.testing.assert_allclose(sess.run(y, {training: False}), x / np.sqrt(1 + 1e-3),
                                   rtol=1e-4)
        sess.run(updates, {training: True})
        np.testing.assert_allclose(sess.run("batch_normalization/moving_mean:0"), 0.01 * x.mean(0),
                                   rtol=1e-4)
        assert np.isfinite(sess.run(slope, {training: True})).all()


@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("known", [False, True])
def test_fused_batch_normalization_by_a_placeholder(axis, dtype, known, rng):
    """The same as with a bool: outputs, gradients, and averages with Bessel's correction."""
    x = (rng.randn(5, 3, 4, 3) * 2 + 5).astype(dtype)
    weights = rng.randn(*x.shape).astype(dtype)
    chosen = tn.placeholder(tn.bool, [])
    images = tn.placeholder_with_default(x, x.shape if known else [None, None, None, None])
    images.set_shape([None, 3, None, 3])
    layers = {}
    for training in (chosen, True, False):
        layer = tn.layers.BatchNormalization(axis=axis, momentum=0.9)
        y = layer(images, training=training)
        found = tn.gradients(y, [images, layer.gamma, layer.beta], grad_ys=tn.constant(weights))
        layers[training] = layer, [y] + found
    ops = {op.type for op in layers[chosen][1][0].graph.get_operations()}
    assert "FusedBatchNorm" in ops
    tolerance = {"rtol": 2e-2, "atol": 3e-2} if dtype == "float16" else {"rtol": 1e-4, "atol": 1e-4}
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        for training in (True, False):
            for one, other in zip(*[sess.run(layers[key][1], {chosen: training})
                                    for key in (chosen, training)]):
                assert one.dtype == other.dtype
                np.testing.assert_allclose(one, other, **tolerance)
        sess.run(layers[chosen][0].updates, {chosen: False})
        np.testing.assert_array_equal(sess.run(layers[chosen][0].moving_variance), np.ones(3))
        sess.run([layers[chosen][0].updates, layers[True][0].updates], {chosen: True})
        for one, other in zip(*[sess.run([layer.moving_mean, layer.moving_variance])
                                for layer in (layers[chosen][0], layers[True][0])]):
            np.testing.assert_allclose(one, other, rtol=1e-5)
        axes = (0, 1, 2) if axis == -1 else (0, 2, 3)
        np.testing.assert_allclose(one, 0.9 + 0.1 * x.astype(np.float64).var(axes, ddof=1),
                                   rtol=1e-4)


@pytest.mark.parametrize("rank", [2, 4])
def test_inference_by_a_placeholder_leaves_the_averages_alone(rank):
    """Also where the batch has no statistics, or they are not numbers."""
    x = tn.placeholder(tn.float32, [None] * (rank - 1) + [3])
    training = tn.placeholder(tn.bool, [])
    layer = tn.layers.BatchNormalization()
    layer(x, training=training)
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        for batch in (np.full([1] * (rank - 1) + [3], np.nan), np.zeros([0] * (rank - 1) + [3])):
            sess.run(layer.updates, {x: batch, training: False})
            mean, variance = sess.run([layer.moving_mean, layer.moving_variance])
            np.testing.assert_array_equal([mean, variance], [[0] * 3, [1] * 3])


def test_options_of_batch_normalization():
    tn.layers.batch_normalization(X, center=False, scale=False, name="plain")
    assert names() == ["plain/moving_mean:0", "plain/moving_variance:0"]
    half = tn.layers.BatchNormalization(name="half")
    assert half(tn.cast(X, tn.float16)).dtype == tn.float16
    assert half.gamma.dtype == tn.float32


def test_regularizers_and_constraints(evaluate):
    tn.layers.dense(X, 2, kernel_regularizer=tn.regularizers.l1(2.0), name="d",
                    kernel_initializer=tn.ones_initializer(), kernel_constraint=abs,
                    activity_regularizer=lambda y: tn.reduce_sum(y) * 0)
    losses = tn.losses.get_regularization_losses()
    assert len(losses) == 2 and evaluate(losses[0]) == 12
    assert tn.global_variables()[0].constraint is abs


def test_layers_of_ones_own(evaluate):
    class Scale(tn.layers.Layer):
        def build(self, input_shape):
            self.factor = self.add_variable("factor", [input_shape[-1]],
                                            initializer=tn.constant_initializer(3))

        def call(self, inputs, twice=False):
            return inputs * self.factor * (2 if twice else 1)

    layer = Scale()
    np.testing.assert_array_equal(evaluate(layer(X, twice=True)), X * 6)
    assert names() == ["scale/factor:0"] and layer.dtype == tn.float32


@pytest.mark.parametrize("call,text", [
    (lambda: tn.layers.dense(X[0], 2), "requires min_ndim=2"),
    (lambda: tn.layers.dense(tn.placeholder(tn.float32, [2, None]), 2), "last dimension"),
    (lambda: tn.layers.dense(X, 0), "units must be a positive int"),
    (lambda: tn.layers.conv2d(X, 2, 3), "expected ndim=4, found ndim=2"),
    (lambda: tn.layers.conv2d(IMAGES, 2, (3, 3, 3)), "`kernel_size` argument must be a tuple of 2"),
    (lambda: tn.layers.conv2d(IMAGES, 2, 3, padding="full"), "`padding` argument must be one of"),
    (lambda: tn.layers.conv2d(IMAGES, 2, 3, data_format="NHWC"), "`data_format` argument must be"),
    (lambda: tn.layers.dropout(X, 1.0), r"rate must be in the range \[0, 1\)"),
    (lambda: tn.layers.batch_normalization(X, axis=3), "Invalid axis: 3"),
    (lambda: tn.layers.batch_normalization([[1, 2]], name="bn"),
     "layer 'bn' needs a floating input to normalise, not one of dtype int32"),
    (lambda: tn.layers.batch_normalization(X, fused=True), "fused batch normalization needs"),
    (lambda: _different_inputs(), "expected axis -1 of input shape to have value 3")])
def test_what_is_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def _different_inputs():
    layer = tn.layers.Dense(2)
    layer(X)
    layer(X[:, :2])


def test_an_unknown_argument_is_refused():
    with pytest.raises(TypeError, match="Keyword argument not understood: colour"):
        tn.layers.Dense(2, colour=3)


ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0), "linear": lambda x: x, "tanh": np.tanh,
               "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "exponential": np.exp,
               "hard_sigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
               "softplus": lambda x: np.log1p(np.exp(x)),
               "softmax": lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_by_name(name, evaluate):
    y = tn.layers.dense(X, 2, activation=name, use_bias=False, kernel_initializer="ones")
    wanted = ACTIVATIONS[name](np.repeat(X.sum(1, keepdims=True), 2, 1))
    np.testing.assert_allclose(evaluate(y), wanted, rtol=1e-5, atol=1e-6)


def test_names_wherever_a_layer_takes_a_function(evaluate):
    given = dict(activation="relu", bias_initializer="ones")
    tn.layers.conv2d(IMAGES, 2, 3, kernel_initializer="he_normal", **given)
    tn.layers.conv2d_transpose(IMAGES, 2, 3, kernel_initializer="glorot_uniform", **given)
    tn.layers.separable_conv2d(IMAGES, 2, 3, depthwise_initializer="RandomNormal", **given)
    tn.layers.batch_normalization(X, gamma_initializer="zeros")
    cell = tn.nn.rnn_cell.LSTMCell(2, activation="relu", initializer="zeros")
    _, state = tn.nn.static_rnn(cell, [tn.constant(X)], dtype=tn.float32)
    np.testing.assert_array_equal(evaluate(state.h), np.zeros((4, 2)))
    assert tn.nn.rnn_cell.GRUCell(2, activation="tanh")._activation is tn.tanh


def test_regularizers_by_name(evaluate):
    """Keras's l2 is 0.01 times the sum of squares, its l1 0.01 times that of absolute values."""
    for name, wanted in (("l2", 0.01 * 24), ("l1", 0.01 * 12), ("l1_l2", 0.01 * 36)):
        layer = tn.layers.Dense(2, kernel_initializer=tn.initializers.constant(2.0),
                                kernel_regularizer=name)
        layer(X)
        np.testing.assert_allclose(evaluate(layer.losses[0]), wanted, rtol=1e-6)


@pytest.mark.parametrize("make,message", [
    (lambda: tn.layers.dense(X, 2, activation="rellu"),
     "Unknown activation function: 'rellu'; did you mean 'relu'[?]; known are .*sigmoid"),
    (lambda: tn.layers.dense(X, 2, kernel_initializer="he_norml"),
     "Unknown initializer: 'he_norml'; did you mean 'he_normal'[?]"),
    (lambda: tn.layers.dense(X, 2, kernel_regularizer="l3"), "Unknown regularizer: 'l3'; did you"),
    (lambda: tn.nn.rnn_cell.GRUCell(2, activation="quux"), "Unknown activation function: 'quux'; "
                                                           "known")])
def test_unknown_names(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_what_is_no_activation():
    with pytest.raises(TypeError, match="an activation must be a function, its name or None, not"):
        tn.layers.Dense(2, activation=3)
