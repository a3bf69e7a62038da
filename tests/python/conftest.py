# SPDX-License-Identifier: Apache-2.0
"""Every test builds its own graph."""

import os
import sys

import numpy as np
import pytest

import treenail as tn
from treenail import _treenail as _core

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(HERE), "support"))
from cluster_processes import Cluster  # noqa: E402  (the path must be set first)


@pytest.fixture(autouse=True)
def fresh_graph():
    """A new default graph, and sessions of it closed afterwards."""
    tn.reset_default_graph()
    yield
    tn.reset_default_graph()


@pytest.fixture(scope="module")
def cluster_of_module():
    with Cluster(ps=1, worker=2) as running:
        yield running


@pytest.fixture
def cluster(cluster_of_module):
    """A parameter server and two workers, processes of their own, without state or sessions."""
    tn.Session.reset(cluster_of_module.target("worker"))
    return cluster_of_module


@pytest.fixture(params=[1, 2, 4])
def threads(request):
    """Runs with so many threads."""
    before = _core.num_threads()
    _core.set_num_threads(request.param)
    yield request.param
    _core.set_num_threads(before)


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


@pytest.fixture
def without_adapters(tmp_path):
    """The environment of a process whose Treenail has its kernels, but no adapter of a library."""
    lib = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(tn._core.__file__))), "lib")
    there = os.path.isdir(lib)
    private = [n for n in os.listdir(lib) if n.startswith("treenail-")] if there else []
    if not private:
        pytest.skip("not in a build directory")
    (tmp_path / "adapters").mkdir()
    os.symlink(os.path.join(lib, private[0], "kernels"), tmp_path / "kernels")
    return dict(os.environ, TREENAIL_LIBRARY_DIR=str(tmp_path))
