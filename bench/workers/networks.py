# SPDX-License-Identifier: Apache-2.0
"""The networks that run in every framework: shapes, weights and data, from fixed seeds.

Filters are given as [height, width, in, out] and images as [batch, height, width, channels], dense
weights as [in, out]; a framework that wants another order transposes once. Training is plain SGD.
"""

from typing import Dict, List, Tuple

import numpy as np

RATE = 0.01
HEADS = 8
EPSILON = 1e-5  # of batch and layer normalisation

# What stands before the colon of a name says how the weight begins: biases and offsets at 0, scales
# of a normalisation at 1, the rest as He et al. 2015 (arXiv 1502.01852).
SHAPES = {
    # 784-512-512-10
    "mlp": {"w1": (784, 512), "b1": (512,), "w2": (512, 512), "b2": (512,), "w3": (512, 10),
            "b3": (10,)},
    # 5x5x6 SAME, pool, 5x5x16 VALID, pool, 120, 84, 10
    "lenet": {"f1": (5, 5, 1, 6), "c1": (6,), "f2": (5, 5, 6, 16), "c2": (16,), "w1": (400, 120),
              "b1": (120,), "w2": (120, 84), "b2": (84,), "w3": (84, 10), "b3": (10,)},
    # 5x5x32 SAME, pool, 5x5x64 SAME, pool, 1024, 10
    "cnn": {"f1": (5, 5, 1, 32), "c1": (32,), "f2": (5, 5, 32, 64), "c2": (64,),
            "w1": (3136, 1024), "b1": (1024,), "w2": (1024, 10), "b2": (10,)},
    # 128-128, the last output to 10; w1 meets [x, h] and has the columns of i, g, f and o
    "lstm": {"w1": (256, 512), "b1": (512,), "w2": (128, 10), "b2": (10,)},
    # relu(x + norm(conv(relu(norm(conv(x)))))): the basic block of arXiv 1512.03385
    "resnet": {"f1": (3, 3, 64, 64), "g1": (64,), "o1": (64,), "f2": (3, 3, 64, 64), "g2": (64,),
               "o2": (64,)},
    # One encoder layer of arXiv 1706.03762, normalised after each half; q, k and v in one product
    "transformer": {"wqkv": (256, 768), "bqkv": (768,), "wo": (256, 256), "bo": (256,),
                    "g1": (256,), "o1": (256,), "w1": (256, 1024), "b1": (1024,),
                    "w2": (1024, 256), "b2": (256,), "g2": (256,), "o2": (256,)},
}
INPUTS = {"mlp": (64, 784), "lenet": (64, 28, 28, 1), "cnn": (64, 28, 28, 1),
          "lstm": (50, 32, 128), "resnet": (8, 56, 56, 64), "transformer": (8, 128, 256)}
TITLES = {
    "mlp": "MLP 784-512-512-10, batch 64",
    "lenet": "LeNet (6-16-120-84-10), batch 64, 28x28",
    "cnn": "CNN (5x5x32-5x5x64-1024-10), batch 64, 28x28",
    "lstm": "LSTM 128-128-10, 50 steps, batch 32",
    "resnet": "ResNet basic block, 64 channels, 56x56, batch 8",
    "transformer": "transformer layer, d 256, 8 heads, sequence 128, batch 8",
}
# Softmax cross-entropy of ten classes; the others have a loss without labels: of `resnet` the mean
# of the outputs, of `transformer` the mean of their squares.
CLASSIFIERS = ("mlp", "lenet", "cnn", "lstm")


def weights(network: str) -> Dict[str, np.ndarray]:
    random = np.random.RandomState(1)
    out = {}
    for name, shape in SHAPES[network].items():
        value = random.standard_normal(shape) * np.sqrt(2.0 / np.prod(shape[:-1]))
        if len(shape) == 1:
            value = np.full(shape, 1.0 if name.startswith("g") else 0.0)
        out[name] = value.astype(np.float32)
    return out


def batch(network: str, size: int = 0) -> Tuple[np.ndarray, np.ndarray]:
    """Inputs and labels (int64) of one batch; `size` where it is not the usual one."""
    random = np.random.RandomState(2)
    shape = INPUTS[network]
    shape = (size or shape[0],) + shape[1:]
    labels = shape[1 if network == "lstm" else 0]  # a sequence begins with time
    return (random.standard_normal(shape).astype(np.float32),
            random.randint(0, 10, labels).astype(np.int64))


def channels_first_weights(network: str) -> Dict[str, np.ndarray]:
    """The weights for frameworks that have channels before height and width: filters [out, in,
    height, width], dense weights [out, in]; of the LSTM two matrices with the gates i, f, g, o."""
    out = {}
    for name, value in weights(network).items():
        if name.startswith("f"):
            value = value.transpose(3, 2, 0, 1)
        if name.startswith("w"):
            if name == "w1" and network in ("lenet", "cnn"):  # flattened from channels last
                channels = value.shape[0] // 25 if network == "lenet" else value.shape[0] // 49
                side = 5 if network == "lenet" else 7
                value = value.reshape(side, side, channels, -1).transpose(2, 0, 1, 3)
                value = value.reshape(side * side * channels, -1)
            value = value.T
        if network == "lstm" and name.endswith("1"):  # gates i, g, f, o to i, f, g, o
            value = value.reshape((4, -1))[[0, 2, 1, 3]].reshape(value.shape)
        if network == "lstm" and name == "w1":  # two matrices
            out["wx"], out["wh"] = value[:, :128].copy(), value[:, 128:].copy()
            continue
        out[name] = value.copy()
    return out


def channels_first_batch(network: str, size: int = 0) -> Tuple[np.ndarray, np.ndarray]:
    inputs, labels = batch(network, size)
    return (inputs.transpose(0, 3, 1, 2).copy() if inputs.ndim == 4 else inputs), labels


def first_outputs(values: np.ndarray) -> List[float]:
    """What frameworks are compared by."""
    return values.reshape(-1)[:1000].tolist()


def channels_last_outputs(values: np.ndarray) -> List[float]:
    return first_outputs(values.transpose(0, 2, 3, 1) if values.ndim == 4 else values)
