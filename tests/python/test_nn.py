# SPDX-License-Identifier: Apache-2.0
"""tn.nn against NumPy: what the Python functions add to the ops."""

import numpy as np
import pytest

import treenail as tn

X = np.random.RandomState(1).randn(3, 5).astype(np.float32)
IMAGES = np.random.RandomState(2).rand(2, 6, 5, 3)
FILTER = np.random.RandomState(3).randn(3, 2, 3, 4)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def convolved(images, kernel, strides, pads):
    """Cross-correlation of NHWC images, by the definition."""
    padded = np.pad(images, [(0, 0), pads[0], pads[1], (0, 0)])
    height = (padded.shape[1] - kernel.shape[0]) // strides[0] + 1
    width = (padded.shape[2] - kernel.shape[1]) // strides[1] + 1
    out = np.zeros((len(images), height, width, kernel.shape[3]))
    for i in range(height):
        for j in range(width):
            window = padded[:, i * strides[0]:i * strides[0] + kernel.shape[0],
                            j * strides[1]:j * strides[1] + kernel.shape[1]]
            out[:, i, j] = np.tensordot(window, kernel, 3)
    return out


CASES = [
    (lambda: tn.nn.relu(X), np.maximum(X, 0)),
    (lambda: tn.nn.relu6(X * 10), np.clip(X * 10, 0, 6)),
    (lambda: tn.nn.crelu(X), np.concatenate([np.maximum(X, 0), np.maximum(-X, 0)], -1)),
    (lambda: tn.nn.elu(X), np.where(X > 0, X, np.expm1(X))),
    (lambda: tn.nn.leaky_relu(X, 0.1), np.where(X > 0, X, X * np.float32(0.1))),
    (lambda: tn.nn.softplus(X), np.log1p(np.exp(X))),
    (lambda: tn.nn.softsign(X), X / (1 + abs(X))),
    (lambda: tn.nn.layer_norm(X, [2.0] * 5, [1.0] * 5, epsilon=0.5),
     2 * (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 0.5) + 1),
    (lambda: tn.nn.swish(X), X / (1 + np.exp(-X))),
    (lambda: tn.nn.softmax(X), softmax(X)),
    (lambda: tn.nn.softmax(X, axis=0), softmax(X, 0)),
    (lambda: tn.nn.softmax(X, dim=0), softmax(X, 0)),
    (lambda: tn.nn.softmax(IMAGES, axis=1), softmax(IMAGES, 1)),
    (lambda: tn.nn.log_softmax(X, axis=-2), np.log(softmax(X, 0))),
    (lambda: tn.nn.l2_loss(X), (X * X).sum() / 2),
    (lambda: tn.nn.l2_normalize(X, 1), X / np.sqrt((X * X).sum(1, keepdims=True))),
    (lambda: tn.nn.moments(X, [0])[0], X.mean(0)),
    (lambda: tn.nn.moments(X, [0])[1], X.var(0)),
    (lambda: tn.nn.moments(X, [0, 1], keep_dims=True)[1], X.var(keepdims=True)),
    (lambda: tn.nn.weighted_moments(X, [0], [[1.0], [2.0], [0.0]])[0], (X[0] + 2 * X[1]) / 3),
    (lambda: tn.nn.batch_normalization(X, X.mean(0), X.var(0), 1.0, 2.0, 0.1),
     2 * (X - X.mean(0)) / np.sqrt(X.var(0) + 0.1) + 1),
    (lambda: tn.nn.batch_normalization(X, X.mean(0), X.var(0), None, None, 0.1),
     (X - X.mean(0)) / np.sqrt(X.var(0) + 0.1)),
    (lambda: tn.nn.bias_add(X, [1, 2, 3, 4, 5]), X + np.arange(1, 6, dtype=np.float32)),
    (lambda: tn.nn.bias_add(IMAGES.transpose(0, 3, 1, 2), [1, 2, 3], "NCHW"),
     (IMAGES + [1, 2, 3]).transpose(0, 3, 1, 2)),
    (lambda: tn.nn.xw_plus_b(X, X.T, [1, 2, 3]), X @ X.T + np.float32([1, 2, 3])),
    (lambda: tn.nn.relu_layer(X, X.T, [1, 2, 3]), np.maximum(X @ X.T + np.float32([1, 2, 3]), 0)),
    (lambda: tn.nn.zero_fraction([0.0, 1, 0, 2]), 0.5),
    (lambda: tn.nn.top_k([3.0, 1, 2], 2).values, [3, 2]),
    (lambda: tn.nn.top_k([3.0, 1, 2], 2).indices, [0, 2]),
    (lambda: tn.nn.in_top_k(X, X.argmax(1), 1), [True] * 3),
    (lambda: tn.nn.embedding_lookup(X, [[2, 0]]), X[[[2, 0]]]),
    (lambda: tn.nn.embedding_lookup([X], [1], max_norm=0.5),
     X[[1]] * np.float32(0.5 / np.sqrt((X[1] ** 2).sum()))),
    (lambda: tn.nn.conv2d(IMAGES, FILTER, 1, "VALID"), convolved(
        IMAGES, FILTER, (1, 1), ((0, 0), (0, 0)))),
    (lambda: tn.nn.conv2d(IMAGES, FILTER, [1, 2, 1, 1], "SAME"), convolved(
        IMAGES, FILTER, (2, 1), ((0, 1), (0, 1)))),
    (lambda: tn.nn.conv2d(IMAGES, FILTER, (1, 2), [[0, 0], [2, 1], [0, 2], [0, 0]]), convolved(
        IMAGES, FILTER, (1, 2), ((2, 1), (0, 2)))),
    (lambda: tn.nn.conv2d(IMAGES.transpose(0, 3, 1, 2), FILTER, 1, "VALID", data_format="NCHW"),
     convolved(IMAGES, FILTER, (1, 1), ((0, 0), (0, 0))).transpose(0, 3, 1, 2)),
    (lambda: tn.nn.conv1d(IMAGES[:, 0], FILTER[0], 1, "VALID"), convolved(
        IMAGES[:, :1], FILTER[:1], (1, 1), ((0, 0), (0, 0)))[:, 0]),
    (lambda: tn.nn.depthwise_conv2d(IMAGES, FILTER, [1, 1, 1, 1], "VALID"), np.concatenate(
        [convolved(IMAGES[..., c:c + 1], FILTER[:, :, c:c + 1], (1, 1), ((0, 0), (0, 0)))
         for c in range(3)], -1)),
    (lambda: tn.nn.separable_conv2d(IMAGES, FILTER, np.ones((1, 1, 12, 1)), 1, "VALID"), convolved(
        IMAGES, FILTER.sum(-1, keepdims=True), (1, 1), ((0, 0), (0, 0)))),
    (lambda: tn.nn.max_pool(IMAGES, 2, 2, "VALID"),
     IMAGES[:, :, :4].reshape(2, 3, 2, 2, 2, 3).max((2, 4))),
    (lambda: tn.nn.avg_pool(IMAGES, [1, 2, 2, 1], [1, 2, 2, 1], "VALID"),
     IMAGES[:, :, :4].reshape(2, 3, 2, 2, 2, 3).mean((2, 4))),
    (lambda: tn.nn.max_pool_with_argmax(IMAGES, (6, 5), (1, 1), "VALID")[1],
     IMAGES.reshape(2, 30, 3).argmax(1).reshape(2, 1, 1, 3) * 3 + [0, 1, 2]),
    (lambda: tn.nn.softmax_cross_entropy_with_logits(labels=softmax(X * 2), logits=X),
     -(softmax(X * 2) * np.log(softmax(X))).sum(-1)),
    (lambda: tn.nn.softmax_cross_entropy_with_logits_v2(softmax(IMAGES, 1), IMAGES, axis=1),
     -(softmax(IMAGES, 1) * np.log(softmax(IMAGES, 1))).sum(1)),
    (lambda: tn.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 4, 2], logits=X),
     -np.log(softmax(X))[[0, 1, 2], [0, 4, 2]]),
    (lambda: tn.nn.sparse_softmax_cross_entropy_with_logits(
        labels=np.ones((2, 6, 5), np.int64), logits=IMAGES), -np.log(softmax(IMAGES))[..., 1]),
    (lambda: tn.nn.sigmoid_cross_entropy_with_logits(labels=np.ones_like(X) * 0.3, logits=X * 9),
     np.log1p(np.exp(-abs(X * 9))) + np.maximum(X * 9, 0) - X * 9 * np.float32(0.3)),
    (lambda: tn.nn.weighted_cross_entropy_with_logits(np.ones_like(X), X, 3.0),
     3 * np.log1p(np.exp(-X))),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_against_numpy(number, evaluate):
    build, expected = CASES[number]
    result, expected = evaluate(build()), np.asarray(expected)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=3e-5, atol=1e-6)


def test_transposed_convolution_is_the_gradient_of_convolution(evaluate):
    x = tn.constant(IMAGES)
    y = tn.nn.conv2d(x, FILTER, (2, 1), "SAME")
    weights = np.random.RandomState(5).randn(*y.shape.as_list())
    wanted = tn.gradients(y, x, [weights])[0]
    got = tn.nn.conv2d_transpose(weights, FILTER, [2, 6, 5, 3], (2, 1), "SAME")
    np.testing.assert_allclose(*evaluate([got, wanted]), rtol=1e-12)


def test_fused_batch_norm(evaluate):
    images = IMAGES.astype(np.float32)
    y, mean, variance = evaluate(tn.nn.fused_batch_norm(images, [1.0, 2, 3], [0.0, 1, 2]))
    flat = images.reshape(-1, 3)
    np.testing.assert_allclose(mean, flat.mean(0), rtol=1e-5)
    np.testing.assert_allclose(variance, flat.var(0, ddof=1), rtol=1e-5)
    wanted = (images - flat.mean(0)) / np.sqrt(flat.var(0) + 0.001) * [1, 2, 3] + [0, 1, 2]
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="'mean' and 'variance' must be given"):
        tn.nn.fused_batch_norm(images, [1.0] * 3, [0.0] * 3, is_training=False)


@pytest.mark.parametrize("arguments", [{"rate": 0.25}, {"keep_prob": 0.75}])
def test_dropout(arguments, evaluate):
    x = tn.constant(np.ones((300, 200), np.float32))
    y = evaluate(tn.nn.dropout(x, seed=3, **arguments))
    assert sorted(set(y.ravel().tolist())) == [0, np.float32(1 / 0.75)]
    # 60000 draws: five standard deviations.
    assert abs((y == 0).mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 60000)
    rows = evaluate(tn.nn.dropout(x, noise_shape=[None, 1], seed=3, **arguments))
    assert (rows == rows[:, :1]).all() and 0 < (rows == 0).mean() < 1
    assert (evaluate(tn.nn.dropout(x, rate=0.0)) == 1).all()


def test_dropout_changes_from_run_to_run_and_passes_gradients_of_what_it_keeps():
    x = tn.constant(np.ones(1000, np.float32))
    y = tn.nn.dropout(x, rate=0.5, seed=1)
    gradient = tn.gradients(y, x)[0]
    with tn.Session() as sess:
        first, slope = sess.run([y, gradient])
        np.testing.assert_array_equal(first, slope)
        assert (sess.run(y) != first).any()


@pytest.mark.parametrize("call,error,text", [
    (lambda: tn.nn.dropout(X, 1.5), ValueError, "keep_prob must be a scalar tensor or a float"),
    (lambda: tn.nn.dropout(X, rate=1.0), ValueError, "rate must be a scalar tensor or a float"),
    (lambda: tn.nn.dropout(X), ValueError, "rate must be given"),
    (lambda: tn.nn.dropout(X, 0.5, rate=0.5), ValueError, "only one of keep_prob and rate"),
    (lambda: tn.nn.dropout([1, 2], rate=0.5), ValueError, "has to be a floating point tensor"),
    (lambda: tn.nn.softmax_cross_entropy_with_logits(X, X), ValueError, "named arguments"),
    (lambda: tn.nn.sigmoid_cross_entropy_with_logits(labels=X), ValueError, "Both labels and"),
    (lambda: tn.nn.sigmoid_cross_entropy_with_logits(labels=X[0], logits=X), ValueError,
     "must have the same shape"),
    (lambda: tn.nn.sparse_softmax_cross_entropy_with_logits(labels=X, logits=X), ValueError,
     "Rank mismatch: Rank of labels .received 2. should equal rank of logits minus 1"),
    (lambda: tn.nn.sparse_softmax_cross_entropy_with_logits(
        labels=[[0] * 3] * 2, logits=tn.zeros([3, 2, 5])), ValueError, "shape of logits without"),
    (lambda: tn.nn.softmax_cross_entropy_with_logits_v2(tn.zeros([3, 2, 4]), tn.zeros([2, 3, 4])),
     ValueError, "logits and labels must have the same shape"),
    (lambda: tn.nn.sigmoid_cross_entropy_with_logits(labels=tn.ones([4]), logits=tn.ones([4, 1])),
     ValueError, "logits and labels must have the same shape"),
    (lambda: tn.nn.weighted_cross_entropy_with_logits(tn.ones([4]), tn.ones([4, 1]), 1.0),
     ValueError, "logits and labels must have the same shape"),
    (lambda: tn.nn.batch_normalization(tn.constant([1]), 1, 1, 1, 1, 1), ValueError,
     "batch_normalization needs a floating x"),
    (lambda: tn.nn.softmax(X, axis=2), ValueError, r"axis = 2 is not in \[-2, 2\)"),
    (lambda: tn.nn.conv2d(X, FILTER, 1, "SAME"), ValueError, "rank|dimension"),
    (lambda: tn.nn.conv2d(IMAGES, FILTER, 1, "same?"), ValueError, "padding"),
    (lambda: tn.nn.conv2d(IMAGES, FILTER[:, :, :2], 1, "SAME"), ValueError, "depth|channels"),
    (lambda: tn.nn.conv2d(IMAGES, FILTER, (1, 2, 3), "SAME"), ValueError, "must be 1, 2 or 4 ints"),
    (lambda: tn.nn.conv2d(IMAGES, FILTER, 1, [[0, 0]]), ValueError, "four pairs"),
    (lambda: tn.nn.max_pool(IMAGES, 9, 1, "VALID"), ValueError, "9|window|negative"),
    (lambda: tn.nn.bias_add(X, [1.0]), ValueError, "bias|dimension"),
    (lambda: tn.nn.bias_add(X, [1.0] * 5, "CHWN"), ValueError, "data_format must be NHWC or NCHW"),
    (lambda: tn.nn.embedding_lookup([X, X], [0], "rows"), ValueError, "partition strategy: rows"),
    (lambda: tn.nn.embedding_lookup([], [0]), ValueError, "at least one param")])
def test_what_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("labels,bad", [([0, 12, 1], 12), ([0, -1, 1], -1)])
def test_labels_out_of_range(labels, bad, evaluate):
    x = tn.placeholder(tn.int64, [3])
    loss = tn.nn.sparse_softmax_cross_entropy_with_logits(labels=x, logits=X)
    with pytest.raises(tn.errors.InvalidArgumentError,
                       match=r"Received a label value of %d which is outside the valid range of "
                       r"\[0, 5\)" % bad):
        evaluate(loss, {x: labels})


@pytest.mark.parametrize("function", [tn.nn.softmax, tn.nn.log_softmax])
@pytest.mark.parametrize("shape", [None, [2, 3, 4], [None, None, 4]])
def test_softmax_along_an_axis_that_a_run_tells(function, shape):
    values = np.random.RandomState(0).rand(2, 3, 4)
    x, axis = tn.placeholder(tn.float64, shape), tn.placeholder(tn.int32)
    y = function(x, axis)
    assert y.shape == x.shape
    with tn.Session() as session:
        for i in range(-3, 3):
            e = np.exp(values)
            wanted = e / e.sum(i, keepdims=True)
            wanted = wanted if function is tn.nn.softmax else np.log(wanted)
            np.testing.assert_allclose(session.run(y, {x: values, axis: i}), wanted, rtol=1e-10)
            fixed = session.run([function(x, i), function(x, tn.constant(i, tn.int64))],
                                {x: values})
            np.testing.assert_allclose(fixed, [wanted, wanted], rtol=1e-10)
        for i in 3, -4:
            with pytest.raises(tn.errors.InvalidArgumentError, match="is not in"):
                session.run(y, {x: values, axis: i})


@pytest.mark.parametrize("data_format, shape", [("NHWC", [None, 3, 2, 6]), ("NHWC", [2, 3, 2, 6]),
                                                ("NCHW", [None, 6, None, None])])
def test_max_pool_over_channels(data_format, shape):
    values = np.random.RandomState(0).rand(2, *[n or 5 for n in shape[1:]])
    axis = 3 if data_format == "NHWC" else 1
    x = tn.placeholder(tn.float64, shape)
    ksize = [3 if i == axis else 1 for i in range(4)]
    y = tn.nn.max_pool(x, ksize, ksize, "VALID", data_format)
    assert y.shape.as_list() == [2 if i == axis else n for i, n in enumerate(shape)]
    parts = np.split(values, 2, axis)
    wanted = np.concatenate([part.max(axis, keepdims=True) for part in parts], axis)
    with tn.Session() as session:
        np.testing.assert_array_equal(session.run(y, {x: values}), wanted)
        slope = session.run(tn.gradients(y, x)[0], {x: values})
        np.testing.assert_array_equal(slope, np.isin(values, wanted))


@pytest.mark.parametrize("ksize, strides, words", [
    ([1, 2, 2, 3], [1, 2, 2, 3], "over pixels or over channels"),
    ([1, 1, 1, 3], [1, 1, 1, 1], "strides equal to ksize"),
    ([1, 1, 1, 4], [1, 1, 1, 4], "a multiple of the window 4, not 6"),
    ([2, 1, 1, 3], [2, 1, 1, 3], "nor over the batch")])
def test_what_max_pool_over_channels_refuses(ksize, strides, words):
    with pytest.raises(ValueError, match=words):
        tn.nn.max_pool(tn.ones([2, 3, 2, 6]), ksize, strides, "VALID")


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.int64, np.complex64])
def test_bias_add_of_integers_and_complex_numbers(dtype, evaluate):
    x = np.arange(24).reshape(2, 3, 4).astype(dtype) * 20
    bias = np.array([100, 200, 3, 4]).astype(dtype)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(evaluate(tn.nn.bias_add(x, bias)), x + bias)


@pytest.mark.parametrize("pool", [tn.nn.max_pool, tn.nn.avg_pool])
def test_windows_that_see_nothing_give_zeros(pool):
    """Padding around no rows; the memory of the result has held something else before."""
    padding = [[0, 0], [2, 2], [0, 0], [0, 0]]
    with tn.eager():
        for _ in range(3):
            tn.fill([1, 2, 40, 2], 7.5)
            found = pool(tn.zeros([1, 0, 40, 2]), [1, 3, 1, 1], [1, 1, 1, 1], padding).numpy()
            np.testing.assert_array_equal(found, np.zeros([1, 2, 40, 2]))
