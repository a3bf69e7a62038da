# SPDX-License-Identifier: Apache-2.0
"""The modules of bench/, which leave no `harness` in sys.modules: other folders of tests have one
too."""

import importlib
import os
import sys
import types

import pytest

BENCH = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
                     "bench")


def load():
    before = {name: sys.modules.pop(name) for name in ("harness", "run") if name in sys.modules}
    path = list(sys.path)
    sys.path.insert(0, BENCH)
    try:
        names = ("harness", "pypi", "peers", "figure_works", "figure_networks", "run")
        return types.SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    finally:
        sys.path[:] = path
        for name in ("harness", "run"):
            sys.modules.pop(name, None)
        sys.modules.update(before)


MODULES = load()


@pytest.fixture
def bench():
    """bench.harness, bench.pypi, ..."""
    return MODULES


WORKER = "import os, sys\nsys.path.insert(0, %r)\nimport harness\n" % BENCH


@pytest.fixture
def start(bench, tmp_path):
    """start(name, program text, ...) gives a Worker; all are closed afterwards."""
    started = []

    def worker(name, text, **more):
        path = tmp_path / ("worker_%d.py" % len(started))
        path.write_text(WORKER + text)
        started.append(bench.harness.Worker(name, str(path), **more))
        return started[-1]

    yield worker
    for each in started:
        each.close()
