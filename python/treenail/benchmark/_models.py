# SPDX-License-Identifier: Apache-2.0
"""The models that can be measured: their inputs, made by the graph itself, their sizes and their
loss. The networks for images of ImageNet are in _vision.py."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import treenail as tn
from treenail.benchmark import _vision
from treenail.benchmark._layers import Layers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable


@dataclass(frozen=True)
class Inputs:
    """What a model is built for. image_size: height and width; 0 where there are no images."""

    batch_size: int
    image_size: int
    training: bool
    data_format: str


@dataclass(frozen=True)
class Model:
    """build: (inputs) -> (logits [n, classes], labels [n]).

    unit: what is counted per second, of which an example of the batch has `units`. image_size: the
    published one; 0: it cannot be chosen. smallest: the smallest that the network can take.
    batch_size, learning_rate: defaults that belong together.
    clip_norm: gradients are scaled down to this global norm; 0: they are not. reference: where the
    network was published, and in which variant it is here.
    """

    name: str
    build: Callable
    reference: str
    batch_size: int
    learning_rate: float
    unit: str = "images"
    units: int = 1
    image_size: int = 0
    smallest: int = 0
    clip_norm: float = 0.0


def _synthetic(name: str, make: Callable) -> tn.Tensor:
    """Data that lie in a variable, so that a step copies and computes nothing for them."""
    return tn.Variable(make, trainable=False, name=name).value()


def _integers(name: str, shape: list, below: int) -> tn.Tensor:
    return _synthetic(name, lambda: tn.random_uniform(shape, 0, below, tn.int64))


def _vision_model(network: Callable, epsilon: float, inputs: Inputs) -> tuple:
    size = inputs.image_size
    shape = [size, size, 3] if inputs.data_format == "NHWC" else [3, size, size]
    images = _synthetic("images", lambda: tn.truncated_normal([inputs.batch_size] + shape))
    layers = Layers(inputs.training, inputs.data_format, epsilon)
    return network(layers, images), _integers("labels", [inputs.batch_size], _vision.CLASSES)


def _mlp(inputs: Inputs) -> tuple:
    values = _synthetic("images", lambda: tn.truncated_normal([inputs.batch_size, 784]))
    for width in (512, 512):
        values = tn.layers.dense(values, width, activation=tn.nn.relu)
    return tn.layers.dense(values, 10), _integers("labels", [inputs.batch_size], 10)


LSTM_WORDS, LSTM_STEPS, LSTM_UNITS, LSTM_LAYERS = 10000, 35, 650, 2


def _lstm(inputs: Inputs) -> tuple:
    shape = [LSTM_STEPS, inputs.batch_size]
    words, following = (_integers(name, shape, LSTM_WORDS) for name in ("words", "following"))
    layers = Layers(inputs.training)
    with tn.variable_scope("lstm", initializer=tn.random_uniform_initializer(-0.05, 0.05)):
        table = tn.get_variable("embedding", [LSTM_WORDS, LSTM_UNITS])
        values = layers.dropout(tn.nn.embedding_lookup(table, words), 0.5)
        for _ in range(LSTM_LAYERS):
            layer = tn.rnn.LSTMBlockFusedCell(LSTM_UNITS, forget_bias=0.0)
            values = layers.dropout(layer(values, dtype=tn.float32)[0], 0.5)
        logits = tn.layers.dense(tn.reshape(values, [-1, LSTM_UNITS]), LSTM_WORDS)
    return logits, tn.reshape(following, [-1])


MODELS = {model.name: model for model in (
    Model("resnet50", partial(_vision_model, _vision.resnet50, 1e-5),
          "ResNet-50 v1.5: He et al. 2015, strides in the 3x3 convolutions (Goyal et al. 2017)",
          batch_size=32, learning_rate=0.016, image_size=224, smallest=32),
    Model("vgg16", partial(_vision_model, _vision.vgg16, 0.0),
          "VGG-16: Simonyan and Zisserman 2014, configuration D",
          batch_size=32, learning_rate=0.005, image_size=224, smallest=32),
    Model("inception3", partial(_vision_model, _vision.inception3, 1e-3),
          "Inception v3: Szegedy et al. 2015, no auxiliary head, normalised with scale and offset",
          batch_size=32, learning_rate=0.005, image_size=299, smallest=75),
    Model("lstm", _lstm,
          "language model, medium LSTM of Zaremba et al. 2014: 2 x 650 units, 35 steps, "
          "10,000 words", batch_size=20, learning_rate=1.0, unit="words", units=LSTM_STEPS,
          clip_norm=5.0),
    Model("mlp", _mlp, "perceptron 784-512-512-10", batch_size=64, learning_rate=0.01),
)}
