# SPDX-License-Identifier: Apache-2.0
"""The networks of treenail-bench are the published ones: parameters, multiply-adds, shapes, and
gradients for every variable."""

import numpy as np
import pytest

import treenail as tn
from treenail.benchmark._models import MODELS, Inputs
from treenail.benchmark._rates import Rates
from treenail.benchmark._step import Learning, Step

SGD = Learning("sgd", 0.01, 4e-5)
# Trainable parameters and, in units of 1e9, multiply-adds of an image's forward pass: of ResNet-50,
# VGG-16 and Inception v3 (there without its auxiliary head, 3,326,696) torchvision's documentation
# says both. The perceptron's are those of Keras's example mnist_mlp. Of the language model the
# paper says 20 million; the exact number, and its multiply-adds per word, are arithmetic:
# embedding and softmax 10000 x 650, per layer (650 + 650) x 4 x 650, biases 4 x 650 and 10000.
PUBLISHED = {
    "resnet50": (25557032, 4.09), "vgg16": (138357544, 15.47), "inception3": (23834568, 5.71),
    "mlp": (669706, 0.000669), "lstm": (19775200, 0.01326),
}
SMALL = {"resnet50": 32, "vgg16": 32, "inception3": 75}


def step_of(name, batch=2, size=None, training=True, learning=SGD, data_format="NHWC", seed=1):
    model = MODELS[name]
    size = SMALL.get(name, 0) if size is None else size
    return Step(model, Inputs(batch, size, training, data_format), learning, seed)


def session_of(step):
    session = tn.Session(graph=step.graph)
    session.run(step.initialize)
    return session


@pytest.mark.parametrize("name", sorted(MODELS))
def test_sizes_are_the_published_ones(name):
    """Of the graph alone: no variable is made."""
    model = MODELS[name]
    parameters, multiply_adds = PUBLISHED[name]
    step = step_of(name, 3, model.image_size)
    assert step.parameters == parameters
    assert step.multiply_adds / 1e9 == pytest.approx(multiply_adds, rel=0.002)
    classes = {"mlp": 10, "lstm": 10000}.get(name, 1000)
    assert step.logits.shape.as_list() == [3 * model.units, classes]


@pytest.mark.parametrize("name", sorted(SMALL))
def test_the_order_of_axes_changes_no_size(name):
    last, first = (step_of(name, data_format=order) for order in ("NHWC", "NCHW"))
    assert [v.shape.as_list() for v in last.variables] == [
        v.shape.as_list() for v in first.variables]
    assert last.multiply_adds == first.multiply_adds


def test_resnet_is_version_1_5():
    """The 3x3 convolutions have the strides of the blocks; all 1x1 ones but shortcuts have none."""
    convolutions = [op for op in step_of("resnet50").graph.get_operations() if op.type == "Conv2D"]
    strided = [op.inputs[1].shape.as_list()[:2] for op in convolutions
               if max(op.get_attr("strides")) == 2]
    assert len(convolutions) == 53
    assert sorted(strided) == [[1, 1]] * 3 + [[3, 3]] * 3 + [[7, 7]]


@pytest.mark.parametrize("name", sorted(MODELS))
def test_gradients_reach_every_variable(name):
    step = step_of(name)
    values = [gradient.values if isinstance(gradient, tn.IndexedSlices) else gradient
              for gradient, _ in step.gradients]
    with session_of(step) as session:
        for variable, value in zip(step.variables, session.run(values)):
            assert np.isfinite(value).all() and np.abs(value).max() > 0, variable.name


@pytest.mark.parametrize("name", sorted(SMALL))
def test_the_order_of_axes_changes_no_result(name):
    """The same weights on the same images, whichever way these lie. (VGG-16 flattens a map of one
    pixel here.)"""
    images = np.random.RandomState(3).standard_normal((2, SMALL[name], SMALL[name], 3))
    results = []
    for order in ("NHWC", "NCHW"):
        step = step_of(name, training=False, data_format=order)
        given = images if order == "NHWC" else images.transpose(0, 3, 1, 2)
        with session_of(step) as session:
            results.append(session.run(step.logits, {"images/read:0": given.astype(np.float32)}))
    assert np.abs(results[0]).max() > 1e-3
    np.testing.assert_allclose(results[0], results[1], rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["resnet50", "inception3"])
def test_training_keeps_moving_averages(name):
    step = step_of(name)
    with step.graph.as_default():
        averages = [v for v in tn.global_variables() if "moving_" in v.name]
    assert len(averages) == 2 * sum(v.name.endswith("gamma:0") for v in step.variables)
    with session_of(step) as session:
        before = session.run(averages)
        session.run(step.update)
        for variable, old, new in zip(averages, before, session.run(averages)):
            assert (old != new).any(), variable.name


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_a_batch_can_be_learnt(optimizer):
    """The same batch again and again: its labels are learnt."""
    step = step_of("mlp", 16, learning=Learning(optimizer, 0.02 if optimizer != "adam" else 0.001,
                                                0.0))
    with session_of(step) as session:
        losses = [float(session.run([step.loss, step.update])[0]) for _ in range(60)]
    assert losses[0] > 1.5 and losses[-1] < 0.5 * losses[0]


def test_weight_decay_adds_half_the_squares_of_the_weights_alone():
    step = step_of("mlp", learning=Learning("sgd", 0.01, 0.125))
    plain = step_of("mlp", learning=Learning("sgd", 0.01, 0.0))
    with session_of(step) as session:
        values, loss = session.run([step.variables, step.loss])
    with session_of(plain) as session:
        bare = session.run(plain.loss)
    squares = sum((np.asarray(v, np.float64) ** 2).sum() for v in values if v.ndim == 2)
    assert loss - bare == pytest.approx(0.125 * squares / 2, rel=1e-4)


def test_inference_neither_learns_nor_drops_anything():
    step = step_of("lstm", training=False)
    assert step.update is None
    with session_of(step) as session:
        assert len({float(session.run(step.loss)) for _ in range(3)}) == 1


def test_rates_are_those_of_tf_cnn_benchmarks():
    """By NumPy, from the definitions that docs/site/benchmark.md states."""
    seconds = np.random.RandomState(1).uniform(0.1, 0.3, 21)
    rates = 32 / seconds
    found = Rates.of(32, list(seconds))
    assert found.mean == pytest.approx(32 * 21 / seconds.sum())
    assert found.median == pytest.approx(np.median(rates))
    assert found.uncertainty == pytest.approx(np.std(rates) / np.sqrt(21))
    assert found.jitter == pytest.approx(1.4826 * np.median(np.abs(rates - np.median(rates))))
    one = Rates.of(32, [0.5])
    assert (one.mean, one.uncertainty, one.jitter) == (64, 0, 0)
    assert one.text("images") == "images/sec: 64.0 +/- 0.0 (jitter = 0.0)"
    assert Rates.of(1, [8.0]).text("images") == "images/sec: 0.125 +/- 0.000 (jitter = 0.000)"
