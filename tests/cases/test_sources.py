# SPDX-License-Identifier: Apache-2.0
"""Ops of framework/ops/array.cc whose point is an error, or what happens when they are fed."""

import numpy as np
import pytest
import treenail as tn
from treenail import _treenail as core


def test_a_placeholder_must_be_fed():
    with tn.Graph().as_default(), tn.Session() as session:
        x = tn.placeholder(tn.float32, [None, 784], name="images")
        message = (
            r'You must feed a value for placeholder tensor "images" with dtype float32 '
            r"and shape \[\?,784\]"
        )
        with pytest.raises(tn.errors.InvalidArgumentError, match=message):
            session.run(x + 1.0)


def test_a_placeholder_with_default_may_be_fed():
    with tn.Graph().as_default() as graph, tn.Session() as session:
        default = tn.constant([1.0, 2.0])
        x = graph.create_op("PlaceholderWithDefault", [default], {"shape": [None]}).outputs[0]
        y = x * 2.0
        np.testing.assert_array_equal(session.run(y), [2, 4])
        np.testing.assert_array_equal(session.run(y, {x: np.ones(3, np.float32)}), [2, 2, 2])


def test_prevent_gradient_hands_the_value_on_and_refuses_gradients():
    value = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(core.execute("PreventGradient", [value])[0], value)
    np.testing.assert_array_equal(
        core.execute("CustomGradient", [[value], [value]], {"function": "f"})[0], value)
    with tn.Graph().as_default() as graph:
        x = tn.constant(value)
        y = graph.create_op("PreventGradient", [x], {"message": "no way back"}).outputs[0]
        with pytest.raises(tn.errors.FailedPreconditionError, match="Reason: no way back"):
            tn.gradients([y], [x])


def test_stop_gradient_ends_the_way_back():
    with tn.Graph().as_default() as graph, tn.Session() as session:
        x = tn.constant([3.0])
        y = x * graph.create_op("StopGradient", [x]).outputs[0]
        np.testing.assert_array_equal(session.run(tn.gradients([y], [x])[0]), [3])
