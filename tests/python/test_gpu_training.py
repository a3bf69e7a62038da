# SPDX-License-Identifier: Apache-2.0
"""Training graphs whose every operation a GPU has a kernel for: without soft placement, against
the same steps on the CPU."""

import sys
from pathlib import Path

import numpy as np
import pytest

import treenail as tn

sys.path.append(str(Path(__file__).resolve().parents[1] / "cuda_sim"))
import cusim  # noqa: E402  (the path must be set first)

pytestmark = cusim.needs_gpu()


def reals(*shape):
    return np.random.RandomState(len(shape)).normal(size=shape).astype(np.float32)


def attention():
    """A block of self-attention with dropout, its gradients clipped together."""
    x = tn.Variable(reals(2, 8, 16))

    def projected(i):
        weights = tn.Variable(0.1 * i * reals(16, 16))
        return tn.reshape(tn.matmul(tn.reshape(x, [-1, 16]), weights), [2, 8, 16])
    scores = tn.nn.softmax(tn.matmul(projected(1), projected(2), transpose_b=True) / 4.0)
    y = x + tn.matmul(tn.nn.dropout(scores, 0.9, seed=3), projected(3))
    loss = tn.reduce_mean(tn.square(y))
    optimizer = tn.train.AdamOptimizer(0.1)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    clipped, _ = tn.clip_by_global_norm(gradients, 1.0)
    return loss, optimizer.apply_gradients(list(zip(clipped, variables)))


def embedding():
    """A table that is read twice: by rows, and as the weights of the last layer."""
    table, ids = tn.Variable(reals(30, 8)), tn.constant(np.arange(24).reshape(4, 6) * 7 % 30)
    places = tn.reshape(tn.cast(tn.range(6), tn.float32), [1, 6, 1])
    rows = tn.reshape(tn.nn.embedding_lookup(table, ids) + places, [-1, 8])
    loss = tn.reduce_mean(tn.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tn.reshape(ids, [-1]), logits=tn.matmul(rows, table, transpose_b=True)))
    return loss, tn.train.GradientDescentOptimizer(0.1).minimize(loss)


def chosen_rows():
    """Rows whose number their values tell."""
    x = tn.Variable(reals(20, 4))
    rows = tn.boolean_mask(x, tn.reduce_sum(x, 1) > 0.0)
    loss = tn.reduce_sum(tn.exp(rows)) + tn.reduce_mean(tn.square(x))
    return loss, tn.train.MomentumOptimizer(0.1, 0.9).minimize(loss)


def losses(network, device):
    with tn.Graph().as_default(), tn.device(device):
        loss, step = network()
        with tn.Session() as session:
            session.run(tn.global_variables_initializer())
            return [session.run([loss, step])[0] for _ in range(4)]


@pytest.mark.parametrize("network", [attention, embedding, chosen_rows])
def test_training_without_soft_placement(network):
    found, want = losses(network, "/gpu:0"), losses(network, "/cpu:0")
    np.testing.assert_allclose(found, want, rtol=1e-4)
    assert found[-1] < found[0]
