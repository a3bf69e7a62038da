# SPDX-License-Identifier: Apache-2.0
"""Training steps by Session.run. Arguments: network, threads."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
import networks  # noqa: E402
import treenail as tn  # noqa: E402


def mlp(x, w):
    x = tn.nn.relu(tn.matmul(x, w["w1"]) + w["b1"])
    x = tn.nn.relu(tn.matmul(x, w["w2"]) + w["b2"])
    return tn.matmul(x, w["w3"]) + w["b3"]


def cnn(x, w):
    x = tn.nn.conv2d(x, w["f1"], strides=[1, 1, 1, 1], padding="SAME")
    x = tn.nn.max_pool(tn.nn.relu(tn.nn.bias_add(x, w["c1"])), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    x = tn.nn.conv2d(x, w["f2"], strides=[1, 1, 1, 1], padding="VALID")
    x = tn.nn.max_pool(tn.nn.relu(tn.nn.bias_add(x, w["c2"])), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    return mlp(tn.reshape(x, [-1, 400]), w)


def main() -> None:
    network, threads = sys.argv[1], int(sys.argv[2])
    images, labels = networks.batch(network)
    x = tn.placeholder(tn.float32, (None,) + images.shape[1:])
    y = tn.placeholder(tn.int64, [None])
    w = {name: tn.Variable(value) for name, value in networks.weights(network).items()}
    logits = {"mlp": mlp, "cnn": cnn}[network](x, w)
    loss = tn.reduce_mean(tn.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    train = tn.train.GradientDescentOptimizer(networks.RATE).minimize(loss)
    session = tn.Session(config=tn.ConfigProto(intra_op_parallelism_threads=threads))
    feed = {x: images, y: labels}
    initialize = tn.global_variables_initializer()
    session.run(initialize)

    def answer(request):
        if request["what"] == "losses":
            session.run(initialize)
            losses = []
            for _ in range(request["steps"]):
                losses.append(float(session.run(loss, feed)))
                session.run(train, feed)
            return {"losses": losses}
        return {"seconds": harness.timed(lambda: session.run(train, feed), request["fill"])}

    harness.serve({"version": tn.__version__}, answer)


main()
