#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What programs cost as they grow: the same at n and at 4 n, the first run included.

  build/python3 bench/growth.py            every case, a row each, as in RESULTS.md
  build/python3 bench/growth.py NAME...    only these

Each case runs in a process of its own. A ratio of 4 is linear; tests hold the counts behind these
times (tests/python/test_costs.py, tests/runtime), for times depend on who else uses the machine.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

import treenail as tn


def first_run(fetches, feeds=None):
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        session.run(fetches, feeds)


def sum_of_sines(n):
    """add_n of n sines"""
    x = tn.placeholder(tn.float32, [4])
    first_run(tn.add_n([tn.sin(x + float(i)) for i in range(n)]), {x: np.ones(4)})


def sum_of_products(n):
    """add_n of n products"""
    x, y = tn.placeholder(tn.float32, [n, 8, 5]), tn.ones([5, 16])
    first_run(tn.add_n([tn.matmul(a, y) for a in tn.unstack(x, n)]), {x: np.ones((n, 8, 5))})


def variables(n):
    """n variables without names"""
    for _ in range(n):
        tn.Variable(0.0)
    first_run([])


def checkpoint(n):
    """n variables saved, restored and read one by one"""
    for _ in range(n):
        tn.Variable(0.0)
    with tempfile.TemporaryDirectory() as directory, tn.Session() as session:
        session.run(tn.global_variables_initializer())
        saver = tn.train.Saver()
        path = saver.save(session, os.path.join(directory, "model"))
        saver.restore(session, path)
        reader = tn.train.load_checkpoint(path)
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)


def chain(n):
    """a chain of n sines and its gradient"""
    x = tn.placeholder(tn.float32, [4])
    y = x
    for _ in range(n):
        y = tn.sin(y)
    first_run(tn.gradients(y, x), {x: np.ones(4)})


def products(n):
    """a chain of n products"""
    x = tn.placeholder(tn.float32, [4, 4])
    y = x
    for _ in range(n):
        y = tn.matmul(y, x)
    first_run(y, {x: np.ones([4, 4])})


def recurrent(n):
    """a recurrent net of n steps and its gradient"""
    x, weights = tn.placeholder(tn.float32, [4, 4]), tn.ones([8, 4])
    state = tn.zeros([4, 4])
    for _ in range(n):
        state = tn.tanh(tn.matmul(tn.concat([x, state], 1), weights))
    first_run(tn.gradients(state, x), {x: np.ones([4, 4])})


def views(n):
    """a chain of n reshapes"""
    x = tn.placeholder(tn.float32, [2, 3])
    y = x + 1.0
    for i in range(n):
        y = tn.reshape(y, [2, 3] if i % 2 else [3, 2])
    first_run(tn.reduce_sum(y), {x: np.ones([2, 3])})


def scopes(n):
    """n scopes, each in the one before"""
    entered = []
    for _ in range(n):
        scope = tn.name_scope("s")
        scope.__enter__()
        entered.append(scope)
    while entered:
        entered.pop().__exit__(None, None, None)


def dilation(n):
    """a 5x5 image by a 3x3 filter dilated n times"""
    image = tn.placeholder(tn.float32, [1, 5, 5, 8])
    first_run(tn.nn.conv2d(image, tn.ones([3, 3, 8, 8]), [1, 1, 1, 1], "SAME",
                           dilations=[1, n, n, 1]), {image: np.ones((1, 5, 5, 8))})


CASES = {case.__name__.replace("_", "-"): (case, n) for case, n in (
    (sum_of_sines, 1000), (sum_of_products, 1000), (variables, 2000),
    (checkpoint, 250), (chain, 5000), (products, 25000), (recurrent, 5000), (views, 8000),
    (scopes, 500), (dilation, 1000))}


def measured(name, n):
    """Seconds and the process's highest use of memory in MB, of a new process."""
    done = subprocess.run([sys.executable, os.path.abspath(__file__), "--one", name, str(n)],
                          stdout=subprocess.PIPE, universal_newlines=True, check=False)
    if done.returncode:
        return None
    seconds, megabytes = done.stdout.split()
    return float(seconds), float(megabytes)


def one(name, n):
    begin = time.perf_counter()
    CASES[name][0](n)
    seconds = time.perf_counter() - begin
    print("%.4f %.0f" % (seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    options = parser.parse_args()
    if options.one:
        return one(options.one[0], int(options.one[1]))
    for name in options.names:
        if name not in CASES:
            parser.error("unknown case '%s'; there are %s" % (name, ", ".join(CASES)))
    print("| case | n | s | MB | 4 n: s | MB | ratio |\n|---|---|---|---|---|---|---|")
    for name in options.names or CASES:
        function, n = CASES[name]
        small, large = measured(name, n), measured(name, 4 * n)
        shown = ["%.2f | %.0f" % row if row else "failed |" for row in (small, large)]
        ratio = "%.1f" % (large[0] / small[0]) if small and large else ""
        print("| %s | %d | %s | %s | %s |" % (function.__doc__, n, *shown, ratio))
        sys.stdout.flush()
    return None


if __name__ == "__main__":
    sys.exit(main())
