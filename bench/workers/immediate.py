# SPDX-License-Identifier: Apache-2.0
"""What the workers of figure_immediate.py have in common: loops over a call."""

import statistics
import time

TIMES = 100  # calls in a row, so that the clock and the loop count little


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
