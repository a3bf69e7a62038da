# SPDX-License-Identifier: Apache-2.0
"""Whole programs in the manner of TensorFlow 1 tutorials, written as people write them."""

import os

import numpy as np

import treenail as tf  # the name such programs use

DIGITS = np.loadtxt(os.path.join(os.path.dirname(__file__), "../../smoke/digits.csv"),
                    delimiter=",", dtype=np.float32)
IMAGES, LABELS = DIGITS[:, :64] / 16, DIGITS[:, 64].astype(np.int64)
ONE_HOT = np.eye(10, dtype=np.float32)[LABELS]


def test_linear_regression():
    rng = np.random.RandomState(0)
    train_x = rng.rand(40)
    train_y = 3.0 * train_x - 1.0
    X = tf.placeholder("float")
    Y = tf.placeholder("float")
    W = tf.Variable(rng.randn(), name="weight", dtype=tf.float32)
    b = tf.Variable(rng.randn(), name="bias", dtype=tf.float32)
    pred = tf.add(tf.multiply(X, W), b)
    cost = tf.reduce_sum(tf.pow(pred - Y, 2)) / (2 * len(train_x))
    optimizer = tf.train.GradientDescentOptimizer(0.5).minimize(cost)
    init = tf.global_variables_initializer()
    with tf.Session() as sess:
        sess.run(init)
        for _ in range(300):
            sess.run(optimizer, feed_dict={X: train_x, Y: train_y})
        assert abs(sess.run(W) - 3) < 0.05 and abs(sess.run(b) + 1) < 0.05


def test_softmax_regression_in_an_interactive_session():
    sess = tf.InteractiveSession()
    x = tf.placeholder(tf.float32, shape=[None, 64])
    y_ = tf.placeholder(tf.float32, shape=[None, 10])
    W = tf.Variable(tf.zeros([64, 10]))
    b = tf.Variable(tf.zeros([10]))
    sess.run(tf.global_variables_initializer())
    y = tf.matmul(x, W) + b
    cross_entropy = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=y))
    train_step = tf.train.GradientDescentOptimizer(0.5).minimize(cross_entropy)
    for i in range(300):
        batch = slice(i * 100 % 1700, i * 100 % 1700 + 100)
        train_step.run(feed_dict={x: IMAGES[batch], y_: ONE_HOT[batch]})
    correct_prediction = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
    accuracy = tf.reduce_mean(tf.cast(correct_prediction, tf.float32))
    assert accuracy.eval(feed_dict={x: IMAGES, y_: ONE_HOT}) > 0.93
    sess.close()


def test_a_convolutional_network_with_helper_functions(tmp_path):
    def weight_variable(shape):
        return tf.Variable(tf.truncated_normal(shape, stddev=0.1, seed=1))

    def bias_variable(shape):
        return tf.Variable(tf.constant(0.1, shape=shape))

    def conv2d(x, w):
        return tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME")

    def max_pool_2x2(x):
        return tf.nn.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")

    tf.set_random_seed(1)
    with tf.name_scope("input"):
        x = tf.placeholder(tf.float32, [None, 64])
        y_ = tf.placeholder(tf.int64, [None])
        keep_prob = tf.placeholder(tf.float32)
    image = tf.reshape(x, [-1, 8, 8, 1])
    h1 = max_pool_2x2(tf.nn.relu(conv2d(image, weight_variable([3, 3, 1, 8])) + bias_variable([8])))
    h2 = max_pool_2x2(tf.nn.relu(conv2d(h1, weight_variable([3, 3, 8, 16])) + bias_variable([16])))
    flat = tf.reshape(h2, [-1, 2 * 2 * 16])
    h3 = tf.nn.relu(tf.matmul(flat, weight_variable([64, 64])) + bias_variable([64]))
    dropped = tf.nn.dropout(h3, keep_prob)
    logits = tf.matmul(dropped, weight_variable([64, 10])) + bias_variable([10])
    loss = tf.losses.sparse_softmax_cross_entropy(labels=y_, logits=logits)
    global_step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.005, global_step, 100, 0.9, staircase=True)
    train_op = tf.train.AdamOptimizer(rate).minimize(loss, global_step=global_step)
    accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, 1), y_)))
    config = tf.ConfigProto(allow_soft_placement=True, log_device_placement=False)
    config.gpu_options.allow_growth = True
    with tf.Session(config=config) as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for i in range(150):
            batch = slice(i * 100 % 1700, i * 100 % 1700 + 100)
            _, step = sess.run([train_op, global_step],
                               feed_dict={x: IMAGES[batch], y_: LABELS[batch], keep_prob: 0.8})
        assert step == 149  # fetches read before the step of their run
        assert sess.run(global_step) == 150
        assert sess.run(accuracy, {x: IMAGES, y_: LABELS, keep_prob: 1.0}) > 0.9
        assert abs(sess.run(rate) - 0.0045) < 1e-6


def test_an_autoencoder_with_dictionaries_of_weights():
    weights = {"encoder": tf.Variable(tf.random_normal([64, 16], stddev=0.1, seed=1)),
               "decoder": tf.Variable(tf.random_normal([16, 64], stddev=0.1, seed=2))}
    biases = {"encoder": tf.Variable(tf.zeros([16])), "decoder": tf.Variable(tf.zeros([64]))}
    x = tf.placeholder("float", [None, 64])
    code = tf.nn.sigmoid(tf.add(tf.matmul(x, weights["encoder"]), biases["encoder"]))
    decoded = tf.nn.sigmoid(tf.add(tf.matmul(code, weights["decoder"]), biases["decoder"]))
    loss = tf.reduce_mean(tf.pow(x - decoded, 2))
    train = tf.train.RMSPropOptimizer(0.01).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        before = sess.run(loss, {x: IMAGES})
        for i in range(200):
            batch = slice(i * 100 % 1700, i * 100 % 1700 + 100)
            sess.run([train, loss], feed_dict={x: IMAGES[batch]})
        assert sess.run(loss, {x: IMAGES}) < before / 2
        assert set(sess.run(weights)) == {"encoder", "decoder"}


def test_embeddings_with_clipped_gradients():
    pairs = np.random.RandomState(0).randint(0, 20, (500, 1))
    centers, contexts = pairs[:, 0], (pairs[:, 0] + 7) % 20
    with tf.variable_scope("words", initializer=tf.random_uniform_initializer(-1, 1, seed=3)):
        table = tf.get_variable("embeddings", [20, 8])
        softmax_w = tf.get_variable("softmax_w", [8, 20])
    inputs = tf.placeholder(tf.int32, shape=[None])
    targets = tf.placeholder(tf.int32, shape=[None])
    embedded = tf.nn.embedding_lookup(table, inputs)
    logits = tf.matmul(embedded, softmax_w)
    cost = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=targets, logits=logits))
    tvars = tf.trainable_variables()
    grads, norm = tf.clip_by_global_norm(tf.gradients(cost, tvars), 5.0)
    optimizer = tf.train.AdagradOptimizer(0.5)
    train_op = optimizer.apply_gradients(zip(grads, tvars))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(60):
            session.run(train_op, {inputs: centers, targets: contexts})
        value, size = session.run([cost, norm], {inputs: centers, targets: contexts})
        assert value < 0.1 and size < 5
        best = session.run(tf.argmax(logits, 1), {inputs: np.arange(20)})
        np.testing.assert_array_equal(best, (np.arange(20) + 7) % 20)


def test_batch_normalization_with_update_ops_and_a_training_flag():
    tf.set_random_seed(2)
    x = tf.placeholder(tf.float32, [None, 64])
    y = tf.placeholder(tf.int64, [None])
    is_training = tf.placeholder_with_default(False, shape=(), name="training")
    net = tf.layers.dense(x, 64, kernel_regularizer=tf.regularizers.l2(1e-4))
    net = tf.layers.batch_normalization(net, training=is_training, momentum=0.9)
    net = tf.layers.dropout(tf.nn.relu(net), 0.2, training=is_training)
    logits = tf.layers.dense(net, 10)
    tf.losses.sparse_softmax_cross_entropy(y, logits)
    loss = tf.losses.get_total_loss()
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True).minimize(loss)
    hits = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, y, 1), tf.float32))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(120):
            batch = slice(i * 100 % 1700, i * 100 % 1700 + 100)
            sess.run(train, {x: IMAGES[batch], y: LABELS[batch], is_training: True})
        assert sess.run(hits, {x: IMAGES, y: LABELS}) > 0.95


def test_two_networks_share_weights_by_name():
    def tower(inputs, reuse):
        with tf.variable_scope("tower", reuse=reuse):
            w = tf.get_variable("w", [64, 4], initializer=tf.glorot_uniform_initializer(seed=1))
            return tf.nn.l2_normalize(tf.matmul(inputs, w), dim=1)
    left, right = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.float32, [None, 64])
    same = tf.placeholder(tf.float32, [None])
    distance = tf.reduce_sum(tf.square(tower(left, None) - tower(right, True)), 1)
    loss = tf.reduce_mean(same * distance + (1 - same) * tf.maximum(0.0, 1.0 - distance))
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    assert len(tf.trainable_variables()) == 1
    order = np.random.RandomState(0).permutation(1797)
    feed = {left: IMAGES, right: IMAGES[order],
            same: (LABELS == LABELS[order]).astype(np.float32)}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        before = sess.run(loss, feed)
        for _ in range(40):
            sess.run(train, feed)
        assert sess.run(loss, feed) < before
