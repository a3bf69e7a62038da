# SPDX-License-Identifier: Apache-2.0
"""Every test builds its own graph."""

import numpy as np
import pytest

import treenail as tn


@pytest.fixture(autouse=True)
def fresh_graph():
    """A new default graph, and sessions of it closed afterwards."""
    tn.reset_default_graph()
    yield
    tn.reset_default_graph()


@pytest.fixture
def evaluate():
    """Runs fetches in a new session, all variables initialised."""
    def run(fetches, feed_dict=None):
        with tn.Session() as sess:
            sess.run([tn.global_variables_initializer(), tn.local_variables_initializer()])
            return sess.run(fetches, feed_dict)
    return run


@pytest.fixture
def rng():
    """Reproducible random numbers."""
    return np.random.RandomState(0)
