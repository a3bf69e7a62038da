# SPDX-License-Identifier: Apache-2.0
"""The graph of one step: a model's loss, and with training the gradients and their updates."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import treenail as tn
from treenail.benchmark._models import Inputs, Model

OPTIMIZERS = {
    "sgd": tn.train.GradientDescentOptimizer,
    "momentum": lambda rate: tn.train.MomentumOptimizer(rate, 0.9),
    "adam": tn.train.AdamOptimizer,
}


@dataclass(frozen=True)
class Learning:
    """How variables are updated. weight_decay: the factor of half the sum of squares of weights
    (not of biases, nor of the scales and offsets of normalisations) in the loss."""

    optimizer: str
    rate: float
    weight_decay: float


class Step:
    """graph; loss and what else a run must do (`update`, None without training); initialize.

    parameters: numbers in trainable variables. multiply_adds: of the forward pass, per unit
    (image, word): those of convolutions, dense layers and LSTMs.
    """

    def __init__(self, model: Model, inputs: Inputs, learning: Learning, seed: int,
                 device: str = "") -> None:
        self.graph = tn.Graph()
        with self.graph.as_default(), self.graph.device(device or None):
            tn.set_random_seed(seed)
            self.logits, labels = model.build(inputs)
            count = model.units * inputs.batch_size
            self.multiply_adds = sum(map(_multiply_adds, self.graph.get_operations())) // count
            self.variables = tn.trainable_variables()
            self.parameters = sum(prod(v.shape.as_list()) for v in self.variables)
            self.loss = tn.reduce_mean(tn.nn.sparse_softmax_cross_entropy_with_logits(
                labels=labels, logits=self.logits), name="loss")
            self.update = self._update(model, learning) if inputs.training else None
            self.initialize = tn.global_variables_initializer()
        self.graph.finalize()

    def _update(self, model: Model, learning: Learning) -> tn.Operation:
        if learning.weight_decay:
            weights = [v for v in self.variables if len(v.shape.as_list()) > 1]
            decay = tn.add_n([tn.nn.l2_loss(v) for v in weights])
            self.loss = tn.add(self.loss, learning.weight_decay * decay, name="total_loss")
        optimizer = OPTIMIZERS[learning.optimizer](learning.rate)
        self.gradients = optimizer.compute_gradients(self.loss, self.variables)
        pairs = self.gradients
        if model.clip_norm:
            clipped, _ = tn.clip_by_global_norm([g for g, _ in pairs], model.clip_norm)
            pairs = list(zip(clipped, self.variables))
        averages = self.graph.get_collection(tn.GraphKeys.UPDATE_OPS)
        return tn.group(optimizer.apply_gradients(pairs), *averages, name="update")


def _multiply_adds(operation: tn.Operation) -> int:
    """Those of one operation of the forward pass; shapes must be known."""
    def shape(index: int) -> list:
        return operation.inputs[index].shape.as_list()
    if operation.type == "Conv2D":
        return prod(operation.outputs[0].shape.as_list()) * prod(shape(1)[:3])
    if operation.type == "MatMul":
        inner = shape(0)[0 if operation.get_attr("transpose_a") else 1]
        return prod(operation.outputs[0].shape.as_list()) * inner
    if operation.type == "BlockLSTM":
        steps, batch, _ = shape(1)
        return steps * batch * prod(shape(4))  # [inputs + units, 4 units]
    return 0
