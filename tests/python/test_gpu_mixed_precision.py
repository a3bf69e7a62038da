# SPDX-License-Identifier: Apache-2.0
"""Mixed precision on a GPU: a real one, or the simulated CUDA (tests/cuda_sim). Without a GPU these
are skipped."""

import os
import sys

import numpy as np
import pytest

import treenail as tn

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(SOURCE, "tests", "cuda_sim"))
import cusim  # noqa: E402  (the path must be set first)

pytestmark = cusim.needs_gpu()


def step_of(dtype):
    """What one step makes of a small network's variables, in the order of their names, and where
    operations of the optimizer ran that are worth it."""
    random = np.random.RandomState(3)
    images = random.standard_normal((16, 6, 6, 2)).astype(np.float32)
    with tn.Graph().as_default(), tn.device("/gpu:0"):
        tn.set_random_seed(1)
        with tn.train.mixed_precision(dtype):
            h = tn.layers.conv2d(tn.constant(images), 4, 3, activation=tn.nn.relu)
            logits = tn.layers.dense(tn.layers.flatten(h), 3)
            loss = tn.losses.sparse_softmax_cross_entropy(tn.constant([0, 1, 2, 0] * 4), logits)
        assert logits.dtype == dtype and loss.dtype == tn.float32
        optimizer = tn.train.MomentumOptimizer(0.5, 0.9)
        if dtype != "float32":
            optimizer = tn.train.MixedPrecision(optimizer, dtype, "dynamic")
        train = optimizer.minimize(loss)
        variables = sorted(tn.trainable_variables(), key=lambda v: v.name)
        with tn.Session() as session:
            session.run(tn.global_variables_initializer())
            for v in variables:
                v.load(0.2 * random.standard_normal(v.shape.as_list()).astype(np.float32), session)
            session.run(train)
            return session.run(variables)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_step_is_about_that_of_float32(dtype):
    for narrow, full in zip(step_of(dtype), step_of("float32")):
        assert np.all(np.isfinite(narrow)) and not np.array_equal(narrow, full)
        np.testing.assert_allclose(narrow, full, atol=0.02)
