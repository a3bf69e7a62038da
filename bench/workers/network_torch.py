# SPDX-License-Identifier: Apache-2.0
"""The same training steps and inference in torch: optim.SGD. Arguments: network, batch size (0: the
usual one), threads, and `compiled` where torch.compile shall make the forward pass and the loss
(and so their gradients) out of what otherwise runs eagerly.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402


def main() -> None:
    try:
        import torch
    except ImportError as error:
        harness.serve({"absent": str(error)}, lambda request: {})
        return
    imported = harness.resident()
    import networks
    functional = torch.nn.functional
    network, size, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if sys.argv[4:] == ["compiled"]:
        compiled = torch.compile
    else:
        def compiled(function):
            return function
    torch.set_num_threads(threads)
    inputs, labels = networks.channels_first_batch(network, size)

    def fresh():
        out = {name: torch.tensor(value, requires_grad=True)
               for name, value in networks.channels_first_weights(network).items()}
        return out, torch.optim.SGD(list(out.values()), networks.RATE)

    def dense_layers(x, w, count):
        for i in range(1, count):
            x = functional.relu(functional.linear(x, w["w%d" % i], w["b%d" % i]))
        return functional.linear(x, w["w%d" % count], w["b%d" % count])

    def pooled(x, weight, bias, padding):
        x = functional.conv2d(x, weight, bias, padding=padding)
        return functional.max_pool2d(functional.relu(x), 2)

    def lenet(x, w, training):
        x = pooled(pooled(x, w["f1"], w["c1"], 2), w["f2"], w["c2"], 0)
        return dense_layers(x.flatten(1), w, 3)

    def cnn(x, w, training):
        x = pooled(pooled(x, w["f1"], w["c1"], 2), w["f2"], w["c2"], 2)
        return dense_layers(x.flatten(1), w, 2)

    no_state, no_bias = torch.zeros(1, 32, 128), torch.zeros(512)

    def lstm(x, w, training):
        outputs = torch.lstm(x, (no_state, no_state), [w["wx"], w["wh"], w["b1"], no_bias], True,
                             1, 0.0, training, False, False)[0]
        return functional.linear(outputs[-1], w["w2"], w["b2"])

    mean, variance = torch.zeros(64), torch.ones(64)

    def resnet(x, w, training):
        def normalized(y, scale, offset):
            return functional.batch_norm(y, None if training else mean,
                                         None if training else variance, scale, offset, training,
                                         0.0, networks.EPSILON)

        y = functional.conv2d(x, w["f1"], padding=1)
        y = functional.relu(normalized(y, w["g1"], w["o1"]))
        y = functional.conv2d(y, w["f2"], padding=1)
        return functional.relu(normalized(y, w["g2"], w["o2"]) + x)

    def transformer(x, w, training):
        batch, length, width = x.shape

        def by_head(y):
            return y.view(batch, length, networks.HEADS, -1).transpose(1, 2)

        q, k, v = (by_head(y) for y in functional.linear(x, w["wqkv"], w["bqkv"]).chunk(3, -1))
        scores = torch.matmul(q, k.transpose(-1, -2)) * (width // networks.HEADS) ** -0.5
        y = torch.matmul(functional.softmax(scores, -1), v).transpose(1, 2).reshape(x.shape)
        y = functional.linear(y, w["wo"], w["bo"])
        x = functional.layer_norm(x + y, (width,), w["g1"], w["o1"], networks.EPSILON)
        y = functional.relu(functional.linear(x, w["w1"], w["b1"]))
        y = functional.linear(y, w["w2"], w["b2"])
        return functional.layer_norm(x + y, (width,), w["g2"], w["o2"], networks.EPSILON)

    forward = {"mlp": lambda x, w, training: dense_layers(x, w, 3), "lenet": lenet, "cnn": cnn,
               "lstm": lstm, "resnet": resnet, "transformer": transformer}[network]

    @compiled
    def loss_of(x, y, w):
        outputs = forward(x, w, True)
        if network in networks.CLASSIFIERS:
            return functional.cross_entropy(outputs, y)
        return (outputs if network == "resnet" else outputs.square()).mean()

    def step(w, optimizer):
        optimizer.zero_grad()
        loss = loss_of(torch.from_numpy(inputs), torch.from_numpy(labels), w)
        loss.backward()
        optimizer.step()
        return loss

    state = fresh()

    inferring = compiled(lambda x, w: forward(x, w, False))

    def infer(w=state[0]):
        with torch.inference_mode():
            return inferring(torch.from_numpy(inputs), w).numpy()

    def losses(steps):
        begin = fresh()
        return [float(step(*begin).detach()) for _ in range(steps)]

    def outputs():
        return networks.channels_last_outputs(infer(fresh()[0]))

    harness.serve_network({"version": torch.__version__}, imported, losses, outputs,
                          {"train": lambda: step(*state), "infer": infer})


main()
