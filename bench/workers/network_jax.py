# SPDX-License-Identifier: Apache-2.0
"""The same training steps and inference in JAX: jit, the weights given away to each step.
Arguments: network, batch size (0: the usual one), threads (the processors that the process has).
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402


def builders(jax, networks):
    """Name → function of (inputs, weights, whether it trains) that gives the outputs."""
    lax, np, relu = jax.lax, jax.numpy, jax.nn.relu

    def dense(x, weight, bias):
        return x @ weight + bias

    def dense_layers(x, w, count):
        for i in range(1, count):
            x = relu(dense(x, w["w%d" % i], w["b%d" % i]))
        return dense(x, w["w%d" % count], w["b%d" % count])

    def conv(x, weight, padding):
        return lax.conv_general_dilated(x, weight, (1, 1), padding,
                                        dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def pooled(x, weight, bias, padding):
        x = relu(conv(x, weight, padding) + bias)
        return lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def lenet(x, w, training):
        x = pooled(pooled(x, w["f1"], w["c1"], "SAME"), w["f2"], w["c2"], "VALID")
        return dense_layers(x.reshape(-1, 400), w, 3)

    def cnn(x, w, training):
        x = pooled(pooled(x, w["f1"], w["c1"], "SAME"), w["f2"], w["c2"], "SAME")
        return dense_layers(x.reshape(-1, 3136), w, 2)

    def lstm(x, w, training):
        _, batch, size = x.shape
        by_x, by_h = dense(x, w["w1"][:size], w["b1"]), w["w1"][size:]

        def step(state, from_x):
            h, c = state
            update, candidate, forget, output = np.split(from_x + h @ by_h, 4, 1)
            c = jax.nn.sigmoid(forget) * c + jax.nn.sigmoid(update) * np.tanh(candidate)
            return (jax.nn.sigmoid(output) * np.tanh(c), c), None

        zeros = np.zeros((batch, size))
        (h, _), _ = lax.scan(step, (zeros, zeros), by_x)
        return dense(h, w["w2"], w["b2"])

    def resnet(x, w, training):
        def normalized(y, scale, offset):
            mean = y.mean((0, 1, 2)) if training else np.zeros(64)
            variance = y.var((0, 1, 2)) if training else np.ones(64)
            return (y - mean) * (scale * lax.rsqrt(variance + networks.EPSILON)) + offset

        y = relu(normalized(conv(x, w["f1"], "SAME"), w["g1"], w["o1"]))
        return relu(normalized(conv(y, w["f2"], "SAME"), w["g2"], w["o2"]) + x)

    def layer_norm(x, scale, offset):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + networks.EPSILON) * scale + offset

    def transformer(x, w, training):
        batch, length, width = x.shape

        def by_head(y):
            return y.reshape(batch, length, networks.HEADS, -1).transpose(0, 2, 1, 3)

        query, key, value = (by_head(y) for y in np.split(dense(x, w["wqkv"], w["bqkv"]), 3, -1))
        scores = query @ key.swapaxes(-1, -2) * (width // networks.HEADS) ** -0.5
        y = (jax.nn.softmax(scores) @ value).transpose(0, 2, 1, 3).reshape(x.shape)
        x = layer_norm(x + dense(y, w["wo"], w["bo"]), w["g1"], w["o1"])
        return layer_norm(x + dense_layers(x, w, 2), w["g2"], w["o2"])

    return {"mlp": lambda x, w, training: dense_layers(x, w, 3), "lenet": lenet, "cnn": cnn,
            "lstm": lstm, "resnet": resnet, "transformer": transformer}


def main() -> None:
    import jax
    imported = harness.resident()
    import networks
    network, size = sys.argv[1], int(sys.argv[2])
    forward = builders(jax, networks)[network]
    x, y = (jax.numpy.asarray(value.astype(value.dtype.kind + "4"))
            for value in networks.batch(network, size))

    def loss_of(w, x, y):
        outputs = forward(x, w, True)
        if network in networks.CLASSIFIERS:
            chances = jax.nn.log_softmax(outputs)
            return -jax.numpy.take_along_axis(chances, y[:, None], 1).mean()
        return (outputs if network == "resnet" else outputs * outputs).mean()

    def fresh():
        return {name: jax.numpy.array(value) for name, value in networks.weights(network).items()}

    def stepped(w, x, y):
        loss, gradients = jax.value_and_grad(loss_of)(w, x, y)
        return {name: w[name] - networks.RATE * gradients[name] for name in w}, loss

    step = jax.jit(stepped, donate_argnums=0)
    infer = jax.jit(lambda w, x: forward(x, w, False))
    state = [fresh()]

    def train():
        state[0], loss = step(state[0], x, y)
        jax.block_until_ready(state[0])
        return loss

    def losses(steps):
        state[0] = fresh()
        return [float(train()) for _ in range(steps)]

    harness.serve_network(
        {"version": jax.__version__}, imported, losses,
        lambda: networks.first_outputs(jax.device_get(infer(fresh(), x))),
        {"train": train, "infer": lambda: infer(state[0], x).block_until_ready()})


main()
