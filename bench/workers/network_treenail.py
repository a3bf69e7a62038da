# SPDX-License-Identifier: Apache-2.0
"""Training steps and inference by Session.run. Arguments: network, batch size (0: the usual one),
threads, and "eager" or "function" where steps are taken with immediate execution instead, every
operation at once or by tn.function; then as many threads as there are processors.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
import networks  # noqa: E402
import treenail as tn  # noqa: E402


def dense(x, weight, bias):
    return tn.matmul(x, weight) + bias


def mlp(x, w, training):
    x = tn.nn.relu(dense(x, w["w1"], w["b1"]))
    x = tn.nn.relu(dense(x, w["w2"], w["b2"]))
    return dense(x, w["w3"], w["b3"])


def pooled(x, weight, bias, padding):
    x = tn.nn.conv2d(x, weight, strides=[1, 1, 1, 1], padding=padding)
    return tn.nn.max_pool(tn.nn.relu(tn.nn.bias_add(x, bias)), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")


def lenet(x, w, training):
    x = pooled(x, w["f1"], w["c1"], "SAME")
    x = pooled(x, w["f2"], w["c2"], "VALID")
    return mlp(tn.reshape(x, [-1, 400]), w, training)


def cnn(x, w, training):
    x = pooled(x, w["f1"], w["c1"], "SAME")
    x = pooled(x, w["f2"], w["c2"], "SAME")
    x = tn.nn.relu(dense(tn.reshape(x, [-1, 3136]), w["w1"], w["b1"]))
    return dense(x, w["w2"], w["b2"])


def lstm(x, w, training):
    _, batch, size = networks.INPUTS["lstm"]
    state, no_peephole = tn.zeros([batch, size]), tn.zeros([0])
    steps = tn.cast(tn.shape(x)[0], tn.int64)
    outputs = tn.block_lstm(steps, x, state, state, w["w1"], no_peephole, no_peephole, no_peephole,
                            w["b1"], forget_bias=0.0, cell_clip=-1.0)
    return dense(outputs[6][-1], w["w2"], w["b2"])


def resnet(x, w, training):
    def normalized(y, scale, offset):
        # Inference with the statistics that a fresh layer has: mean 0, variance 1.
        given = {} if training else {"mean": tn.zeros([64]), "variance": tn.ones([64])}
        return tn.nn.fused_batch_norm(y, scale, offset, epsilon=networks.EPSILON,
                                      is_training=training, **given)[0]

    y = tn.nn.conv2d(x, w["f1"], strides=[1, 1, 1, 1], padding="SAME")
    y = tn.nn.relu(normalized(y, w["g1"], w["o1"]))
    y = tn.nn.conv2d(y, w["f2"], strides=[1, 1, 1, 1], padding="SAME")
    return tn.nn.relu(normalized(y, w["g2"], w["o2"]) + x)


def transformer(x, w, training):
    batch, length, width = networks.INPUTS["transformer"]
    rows = tn.reshape(x, [-1, width])

    def by_head(y):
        y = tn.reshape(y, [batch, length, networks.HEADS, width // networks.HEADS])
        return tn.transpose(y, [0, 2, 1, 3])

    query, key, value = (by_head(y) for y in tn.split(dense(rows, w["wqkv"], w["bqkv"]), 3, 1))
    scores = tn.matmul(query, key, transpose_b=True) * (width // networks.HEADS) ** -0.5
    y = tn.transpose(tn.matmul(tn.nn.softmax(scores), value), [0, 2, 1, 3])
    y = dense(tn.reshape(y, [-1, width]), w["wo"], w["bo"])
    rows = tn.nn.layer_norm(rows + y, w["g1"], w["o1"], epsilon=networks.EPSILON)
    y = dense(tn.nn.relu(dense(rows, w["w1"], w["b1"])), w["w2"], w["b2"])
    return tn.nn.layer_norm(rows + y, w["g2"], w["o2"], epsilon=networks.EPSILON)


BUILDERS = {"mlp": mlp, "lenet": lenet, "cnn": cnn, "lstm": lstm, "resnet": resnet,
            "transformer": transformer}


def loss_of(network, outputs, labels):
    if network in networks.CLASSIFIERS:
        return tn.reduce_mean(tn.nn.sparse_softmax_cross_entropy_with_logits(labels=labels,
                                                                             logits=outputs))
    return tn.reduce_mean(outputs if network == "resnet" else tn.square(outputs))


def in_a_session(network, inputs, labels, threads):
    x = tn.placeholder(tn.float32, (None,) + inputs.shape[1:])
    y = tn.placeholder(tn.int64, [None])
    w = {name: tn.Variable(value) for name, value in networks.weights(network).items()}
    loss = loss_of(network, BUILDERS[network](x, w, True), y)
    train = tn.train.GradientDescentOptimizer(networks.RATE).minimize(loss)
    outputs = BUILDERS[network](x, w, False)
    session = tn.Session(config=tn.ConfigProto(intra_op_parallelism_threads=threads))
    feed = {x: inputs, y: labels} if network in networks.CLASSIFIERS else {x: inputs}
    only_x = {x: inputs}
    initialize = tn.global_variables_initializer()
    session.run(initialize)

    def losses(steps):
        session.run(initialize)
        return [float(session.run([loss, train], feed)[0]) for _ in range(steps)]

    return (losses, lambda: networks.first_outputs(session.run(outputs, only_x)),
            {"train": lambda: session.run(train, feed),
             "infer": lambda: session.run(outputs, only_x)})


def immediately(network, inputs, labels, traced):
    def trainer():
        w = {name: tn.Variable(value) for name, value in networks.weights(network).items()}
        optimizer = tn.train.GradientDescentOptimizer(networks.RATE)
        variables = list(w.values())

        def step(x, y):
            with tn.GradientTape() as tape:
                loss = loss_of(network, BUILDERS[network](x, w, True), y)
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return loss

        step = tn.function(step) if traced else step
        return lambda: step(tn.constant(inputs), tn.constant(labels))

    def losses(steps):
        step = trainer()
        return [float(step()) for _ in range(steps)]

    return losses, None, {"train": trainer()}


def main() -> None:
    imported = harness.resident()
    network, size, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    inputs, labels = networks.batch(network, size)
    about = {"version": tn.__version__}
    if sys.argv[4:]:
        with tn.eager():
            harness.serve_network(about, imported, *immediately(network, inputs, labels,
                                                                sys.argv[4] == "function"))
    else:
        harness.serve_network(about, imported, *in_a_session(network, inputs, labels, threads))


main()
