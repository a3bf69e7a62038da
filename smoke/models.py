# SPDX-License-Identifier: Apache-2.0
"""The two networks of the smoke trainings. Seeds are explicit, so that a training depends on its
seed alone."""

from __future__ import annotations

import treenail as tn


class Network:
    """A graph to train: placeholders, loss, accuracy, one training step, a saver."""

    def __init__(self, kind: str, shape: tuple, classes: int, seed: int,
                 learning_rate: float, device: str = "") -> None:
        self.graph = tn.Graph()
        with self.graph.as_default(), self.graph.device(device or None):
            tn.set_random_seed(seed)
            self.images = tn.placeholder(tn.float32, [None, shape[0], shape[1], 1], name="images")
            self.labels = tn.placeholder(tn.int64, [None], name="labels")
            logits = logits_of(kind, self.images, classes)
            losses = tn.nn.sparse_softmax_cross_entropy_with_logits(labels=self.labels,
                                                                    logits=logits)
            self.loss = tn.reduce_mean(losses, name="loss")
            self.hits = tn.reduce_sum(tn.cast(tn.equal(tn.argmax(logits, 1), self.labels),
                                              tn.int32), name="hits")
            self.step = tn.train.get_or_create_global_step()
            optimizer = tn.train.AdamOptimizer(learning_rate)
            self.train = optimizer.minimize(self.loss, global_step=self.step)
            self.initialize = tn.global_variables_initializer()
            self.variables = tn.global_variables()
            self.saver = tn.train.Saver(max_to_keep=2)
        self.graph.finalize()

    def accuracy(self, session: tn.Session, images, labels, size: int = 256) -> float:
        """The fraction of images whose most probable class is the right one."""
        hits = 0
        for begin in range(0, len(labels), size):
            feed = {self.images: images[begin:begin + size],
                    self.labels: labels[begin:begin + size]}
            hits += int(session.run(self.hits, feed))
        return hits / len(labels)


def _mlp(images: tn.Tensor, classes: int) -> tn.Tensor:
    net = tn.layers.flatten(images)
    net = tn.layers.dense(net, 256, activation=tn.nn.relu, name="hidden1")
    net = tn.layers.dense(net, 128, activation=tn.nn.relu, name="hidden2")
    return tn.layers.dense(net, classes, name="logits")


def _cnn(images: tn.Tensor, classes: int) -> tn.Tensor:
    net = tn.layers.conv2d(images, 32, 3, padding="same", activation=tn.nn.relu, name="conv1")
    net = tn.layers.conv2d(net, 32, 3, padding="same", activation=tn.nn.relu, name="conv2")
    net = tn.layers.max_pooling2d(net, 2, 2, name="pool1")
    net = tn.layers.conv2d(net, 64, 3, padding="same", activation=tn.nn.relu, name="conv3")
    net = tn.layers.max_pooling2d(net, 2, 2, name="pool2")
    net = tn.layers.dense(tn.layers.flatten(net), 128, activation=tn.nn.relu, name="hidden")
    return tn.layers.dense(net, classes, name="logits")


_MODELS = {"mlp": _mlp, "cnn": _cnn}


def logits_of(kind: str, images: tn.Tensor, classes: int) -> tn.Tensor:
    """The network of this kind on images [n, height, width, 1]: [n, classes]."""
    return _MODELS[kind](images, classes)


KINDS = tuple(_MODELS)
# The accuracy on the held-out UCI digits that a training must reach, and its usual length.
NEEDED = {"mlp": 0.95, "cnn": 0.965}
STEPS = {"mlp": 600, "cnn": 400}
