# SPDX-License-Identifier: Apache-2.0
"""The two networks, as a TensorFlow-1 program would write them."""

from typing import Any, NamedTuple, Tuple

import treenail as tn


class Network(NamedTuple):
    """What training needs of a built graph."""

    images: Any
    labels: Any
    loss: Any
    correct: Any  # int64: how many of the batch are classified right
    train: Any
    global_step: Any
    init: Any
    saver: Any


def _mlp(images: Any) -> Any:
    x = tn.layers.flatten(images)
    x = tn.layers.dense(x, 128, activation=tn.nn.relu, name="hidden1")
    x = tn.layers.dense(x, 64, activation=tn.nn.relu, name="hidden2")
    return tn.layers.dense(x, 10, name="logits")


def _cnn(images: Any) -> Any:
    x = tn.layers.conv2d(images, 16, 3, padding="same", activation=tn.nn.relu, name="conv1")
    x = tn.layers.conv2d(x, 32, 3, padding="same", activation=tn.nn.relu, name="conv2")
    x = tn.layers.max_pooling2d(x, 2, 2, name="pool")
    x = tn.layers.flatten(x)
    x = tn.layers.dense(x, 64, activation=tn.nn.relu, name="hidden")
    return tn.layers.dense(x, 10, name="logits")


MODELS = {"mlp": _mlp, "cnn": _cnn}
# The accuracy on the held-out digits that a build must reach.
REQUIRED_ACCURACY = {"mlp": 0.95, "cnn": 0.965}


def build(model: str, image_shape: Tuple[int, int, int], learning_rate: float, seed: int) -> Network:
    """Adds the network to the default graph. Images are float32 [batch, height, width, channels]."""
    tn.set_random_seed(seed)
    images = tn.placeholder(tn.float32, [None] + list(image_shape), name="images")
    labels = tn.placeholder(tn.int64, [None], name="label")
    logits = MODELS[model](images)
    loss = tn.reduce_mean(
        tn.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits), name="loss")
    hits = tn.equal(tn.argmax(logits, 1), labels)
    correct = tn.reduce_sum(tn.cast(hits, tn.int64), name="correct")
    global_step = tn.train.get_or_create_global_step()
    train = tn.train.AdamOptimizer(learning_rate).minimize(loss, global_step=global_step)
    return Network(images, labels, loss, correct, train, global_step,
                   tn.global_variables_initializer(), tn.train.Saver(max_to_keep=2))
