# SPDX-License-Identifier: Apache-2.0
"""The same training steps in torch: eager, optim.SGD. Arguments: network, threads."""

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
    import networks
    functional = torch.nn.functional
    network, threads = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(threads)
    images, labels = networks.batch(network)
    if network == "cnn":
        images = images.transpose(0, 3, 1, 2).copy()

    def fresh():
        out = {}
        for name, value in networks.weights(network).items():
            if name.startswith("f"):
                value = value.transpose(3, 2, 0, 1)
            if name.startswith("w"):
                value = value.T
            if network == "cnn" and name == "w1":  # flattened from channels last
                value = value.reshape(120, 5, 5, 16).transpose(0, 3, 1, 2).reshape(120, 400)
            out[name] = torch.tensor(value.copy(), requires_grad=True)
        return out, torch.optim.SGD(list(out.values()), networks.RATE)

    def loss_of(w):
        x, y = torch.from_numpy(images), torch.from_numpy(labels)
        if network == "cnn":
            x = functional.conv2d(x, w["f1"], w["c1"], padding=2)
            x = functional.max_pool2d(functional.relu(x), 2)
            x = functional.conv2d(x, w["f2"], w["c2"])
            x = functional.max_pool2d(functional.relu(x), 2).flatten(1)
        x = functional.relu(functional.linear(x, w["w1"], w["b1"]))
        x = functional.relu(functional.linear(x, w["w2"], w["b2"]))
        return functional.cross_entropy(functional.linear(x, w["w3"], w["b3"]), y)

    def step(w, optimizer):
        optimizer.zero_grad()
        loss = loss_of(w)
        loss.backward()
        optimizer.step()
        return loss

    state = fresh()

    def answer(request):
        if request["what"] == "losses":
            begin = fresh()
            return {"losses": [float(step(*begin).detach()) for _ in range(request["steps"])]}
        return {"seconds": harness.timed(lambda: step(*state), request["fill"])}

    harness.serve({"version": torch.__version__}, answer)


main()
