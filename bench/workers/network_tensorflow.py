# SPDX-License-Identifier: Apache-2.0
"""The same training steps and inference in TensorFlow 2: tf.function. Arguments: network, batch
size (0: the usual one), threads, and `xla` where XLA shall compile them (jit_compile).
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402


def builders(tf, networks, xla):
    """Name → function of (inputs, weights, whether it trains) that gives the outputs."""
    def dense(x, weight, bias):
        return tf.nn.bias_add(tf.matmul(x, weight), bias)

    def dense_layers(x, w, count):
        for i in range(1, count):
            x = tf.nn.relu(dense(x, w["w%d" % i], w["b%d" % i]))
        return dense(x, w["w%d" % count], w["b%d" % count])

    def pooled(x, weight, bias, padding):
        x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, weight, 1, padding), bias))
        return tf.nn.max_pool2d(x, 2, 2, "VALID")

    def lenet(x, w, training):
        x = pooled(pooled(x, w["f1"], w["c1"], "SAME"), w["f2"], w["c2"], "VALID")
        return dense_layers(tf.reshape(x, [-1, 400]), w, 3)

    def cnn(x, w, training):
        x = pooled(pooled(x, w["f1"], w["c1"], "SAME"), w["f2"], w["c2"], "SAME")
        return dense_layers(tf.reshape(x, [-1, 3136]), w, 2)

    def looped_lstm(x, w):
        """For XLA, which has no BlockLSTM: products with x first, then a loop of known length."""
        steps, batch, size = x.shape
        by_x = tf.reshape(dense(tf.reshape(x, [-1, size]), w["w1"][:size], w["b1"]),
                          [steps, batch, -1])
        by_h = w["w1"][size:]

        def step(i, h, c):
            update, candidate, forget, output = tf.split(by_x[i] + tf.matmul(h, by_h), 4, 1)
            c = tf.sigmoid(forget) * c + tf.sigmoid(update) * tf.tanh(candidate)
            return i + 1, tf.sigmoid(output) * tf.tanh(c), c

        zeros = tf.zeros([batch, size])
        return tf.while_loop(lambda i, h, c: i < steps, step, (0, zeros, zeros),
                             maximum_iterations=steps)[1]

    def lstm(x, w, training):
        if xla:
            return dense(looped_lstm(x, w), w["w2"], w["b2"])
        steps, batch, size = x.shape
        state, none = tf.zeros([batch, size]), tf.zeros([size])
        outputs = tf.raw_ops.BlockLSTM(
            seq_len_max=tf.constant(steps, tf.int64), x=x, cs_prev=state, h_prev=state, w=w["w1"],
            wci=none, wcf=none, wco=none, b=w["b1"], forget_bias=0.0, cell_clip=-1.0)
        return dense(outputs.h[-1], w["w2"], w["b2"])

    def resnet(x, w, training):
        def normalized(y, scale, offset):
            given = {} if training else {"mean": tf.zeros([64]), "variance": tf.ones([64])}
            return tf.compat.v1.nn.fused_batch_norm(y, scale, offset, epsilon=networks.EPSILON,
                                                    is_training=training, **given)[0]

        y = tf.nn.relu(normalized(tf.nn.conv2d(x, w["f1"], 1, "SAME"), w["g1"], w["o1"]))
        y = normalized(tf.nn.conv2d(y, w["f2"], 1, "SAME"), w["g2"], w["o2"])
        return tf.nn.relu(y + x)

    def layer_norm(x, scale, offset):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, networks.EPSILON)

    def transformer(x, w, training):
        batch, length, width = x.shape
        rows = tf.reshape(x, [-1, width])

        def by_head(y):
            y = tf.reshape(y, [batch, length, networks.HEADS, width // networks.HEADS])
            return tf.transpose(y, [0, 2, 1, 3])

        query, key, value = (by_head(y) for y in tf.split(dense(rows, w["wqkv"], w["bqkv"]), 3, 1))
        scores = tf.matmul(query, key, transpose_b=True) * (width // networks.HEADS) ** -0.5
        y = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3])
        y = dense(tf.reshape(y, [-1, width]), w["wo"], w["bo"])
        rows = layer_norm(rows + y, w["g1"], w["o1"])
        return layer_norm(rows + dense_layers(rows, w, 2), w["g2"], w["o2"])

    return {"mlp": lambda x, w, training: dense_layers(x, w, 3), "lenet": lenet, "cnn": cnn,
            "lstm": lstm, "resnet": resnet, "transformer": transformer}


def main() -> None:
    import tensorflow as tf
    imported = harness.resident()
    import networks
    network, size, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    xla = sys.argv[4:] == ["xla"]
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    forward = builders(tf, networks, xla)[network]
    x, y = (tf.constant(value) for value in networks.batch(network, size))
    w = {name: tf.Variable(value) for name, value in networks.weights(network).items()}

    @tf.function(jit_compile=xla or None)
    def step(x, y):
        with tf.GradientTape() as tape:
            outputs = forward(x, w, True)
            if network in networks.CLASSIFIERS:
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, outputs))
            else:
                loss = tf.reduce_mean(outputs if network == "resnet" else tf.square(outputs))
        gradients = tape.gradient(loss, w)
        for name, gradient in gradients.items():
            tf.raw_ops.ResourceApplyGradientDescent(var=w[name].handle, alpha=networks.RATE,
                                                    delta=gradient)
        return loss

    @tf.function(jit_compile=xla or None)
    def infer(x):
        return forward(x, w, False)

    def finished(call, *given):
        """XLA returns before it has computed; a look at the bytes waits, and copies nothing."""
        result = call(*given)
        memoryview(result)
        return result

    def reset():
        for name, value in networks.weights(network).items():
            w[name].assign(value)

    def losses(steps):
        reset()
        return [float(step(x, y)) for _ in range(steps)]

    def outputs():
        reset()
        return networks.first_outputs(infer(x).numpy())

    harness.serve_network({"version": tf.__version__}, imported, losses, outputs,
                          {"train": lambda: finished(step, x, y),
                           "infer": lambda: finished(infer, x)})


main()
