# SPDX-License-Identifier: Apache-2.0
"""The two networks that are trained in every framework: shapes, weights and data, from fixed seeds.

MLP: 784-512-512-10. CNN: LeNet, 5x5x6 SAME, pool, 5x5x16 VALID, pool, 120, 84, 10, on 28x28 images.
relu, softmax cross-entropy, plain SGD, batch 64. Filters are given as [height, width, in, out] and
images as [batch, height, width, channels]; a framework that wants another order transposes once.
"""

from typing import Dict, Tuple

import numpy as np

BATCH = 64
RATE = 0.01
SHAPES = {
    "mlp": {"w1": (784, 512), "b1": (512,), "w2": (512, 512), "b2": (512,), "w3": (512, 10),
            "b3": (10,)},
    "cnn": {"f1": (5, 5, 1, 6), "c1": (6,), "f2": (5, 5, 6, 16), "c2": (16,), "w1": (400, 120),
            "b1": (120,), "w2": (120, 84), "b2": (84,), "w3": (84, 10), "b3": (10,)},
}


def weights(network: str) -> Dict[str, np.ndarray]:
    random = np.random.RandomState(1)
    out = {}
    for name, shape in SHAPES[network].items():
        scale = np.sqrt(2.0 / np.prod(shape[:-1])) if len(shape) > 1 else 0.0
        out[name] = (random.standard_normal(shape) * scale).astype(np.float32)
    return out


def batch(network: str) -> Tuple[np.ndarray, np.ndarray]:
    """Images and labels (int64) of one batch."""
    random = np.random.RandomState(2)
    shape = (BATCH, 784) if network == "mlp" else (BATCH, 28, 28, 1)
    return (random.standard_normal(shape).astype(np.float32),
            random.randint(0, 10, BATCH).astype(np.int64))
