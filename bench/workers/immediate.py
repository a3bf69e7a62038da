# SPDX-License-Identifier: Apache-2.0
"""What the workers of figure_immediate.py have in common: loops over a call, and a network's first
weights and data."""

import statistics
import time

import numpy as np

TIMES = 100  # calls in a row, so that the clock and the loop count little
RATE = 0.1
SIZES, BATCH = (784, 256, 256, 10), 64


def many(body, names):
    """A function that evaluates the expression `body` TIMES times."""
    space = dict(names)
    exec("def run():\n    for _ in range(%d):\n        %s" % (TIMES, body), space)
    return space["run"]


def clock(call):
    """Seconds of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def best(run, rounds=200):
    """The median of run(clock)."""
    return statistics.median(run(clock) for _ in range(rounds))


def starts():
    rng = np.random.RandomState(0)
    return [((rng.randn(m, n) / np.sqrt(m)).astype(np.float32), np.zeros(n, np.float32))
            for m, n in zip(SIZES, SIZES[1:])]


def data():
    rng = np.random.RandomState(1)
    return rng.randn(BATCH, SIZES[0]).astype(np.float32), rng.randint(0, SIZES[-1], BATCH)
