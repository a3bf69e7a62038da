#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a node costs in graphs of 1,000 to 1,000,000: created from Python, and planned by the first
run; beside it the same graph traced and compiled by TensorFlow and JAX.

  build/python3 bench/growth_curve.py                 every graph, 1,000 to 100,000 nodes
  build/python3 bench/growth_curve.py -n 1000000 chain
  build/python3 bench/growth_curve.py --pypi          and the peers (fetched: pypi.py)

Microseconds of processor time and bytes of resident memory, per node of the graph; each row is a
process of its own with one thread. Planning is the first run less the third, for those after the
first only execute.
"""

import argparse
import os
import subprocess
import sys
import time

import harness

PAGE = os.sysconf("SC_PAGE_SIZE")
TARGETS = "targets: created at most 3 us and 1000 B a node, planned 6 us and 1500 B"


def resident():
    with open("/proc/self/statm", encoding="ascii") as stream:
        return int(stream.read().split()[1]) * PAGE


class Spent:
    """Processor time and resident memory since it was made."""

    def __init__(self):
        self.memory, self.begin = resident(), time.process_time()

    def __call__(self):
        return time.process_time() - self.begin, resident() - self.memory


# A graph is given the framework's functions, its input (4 x 4) and about how many nodes it is to
# have, and gives its result.

def products(f, x, n):
    """chain of products"""
    y = x
    for _ in range(n):
        y = f.matmul(y, x)
    return y


def wide(f, x, n):
    """sums side by side"""
    return f.add_n([f.reduce_sum(f.sin(x + float(i))) for i in range(n // 5)])


def recurrent(f, x, n):
    """recurrent net, one shared weight"""
    weights, state = f.ones([8, 4]), f.zeros([4, 4])
    for _ in range(n // 4):
        state = f.tanh(f.matmul(f.concat([x, state], 1), weights))
    return state


def sines(f, x, n):
    """chain of sines"""
    y = x
    for _ in range(n):
        y = f.sin(y)
    return y


def gradient(graph, share):
    """The gradient too, of a graph that makes up such a share of the nodes."""
    def build(f, x, n):
        return f.gradient(lambda v: graph(f, v, n // share), x)
    build.__doc__ = "gradient of " + graph.__doc__
    return build


GRAPHS = {"chain": products, "wide": wide, "recurrent": recurrent, "sines": sines,
          "chain-gradient": gradient(products, 3), "wide-gradient": gradient(wide, 2),
          "recurrent-gradient": gradient(recurrent, 4), "sines-gradient": gradient(sines, 3)}


class Treenail:
    def __init__(self):
        import treenail as tn
        self.tn = tn
        for name in ("matmul", "reduce_sum", "add_n", "concat", "ones", "zeros", "tanh", "sin"):
            setattr(self, name, getattr(tn, name))

    def gradient(self, function, x):
        return self.tn.gradients(function(x), x)[0]

    def row(self, graph, n):
        import numpy as np
        tn, feed = self.tn, np.full([4, 4], 0.1)
        x = tn.placeholder(tn.float32, [4, 4])
        with tn.Session() as session:
            session.run(graph(self, x, 64), {x: feed})  # libraries and imports
            before = tn.get_default_graph()._num_nodes
            spent = Spent()
            y = graph(self, x, n)
            created = spent()
            count = tn.get_default_graph()._num_nodes - before
            spent = Spent()
            session.run(y, {x: feed})
            first = spent()
            session.run(y, {x: feed})
            spent = Spent()
            session.run(y, {x: feed})
            return count, (*created, first[0] - spent()[0], first[1])


class Jax:
    def __init__(self):
        import jax
        self.jax, np = jax, jax.numpy
        self.matmul, self.reduce_sum, self.tanh, self.sin = np.matmul, np.sum, np.tanh, np.sin
        self.ones, self.zeros, self.concat, self.add_n = np.ones, np.zeros, np.concatenate, sum

    def gradient(self, function, x):
        return self.jax.grad(lambda v: function(v).sum())(x)

    def row(self, graph, n):
        x = self.jax.numpy.full([4, 4], 0.1)
        self.jax.jit(lambda v: graph(self, v, 64)).lower(x).compile()
        spent = Spent()
        lowered = self.jax.jit(lambda v: graph(self, v, n)).lower(x)
        created = spent()
        spent = Spent()
        lowered.compile()
        return n, (*created, *spent())


class Tensorflow:
    def __init__(self):
        import tensorflow as tf
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        self.tf = tf
        self.matmul, self.reduce_sum, self.add_n = tf.matmul, tf.reduce_sum, tf.add_n
        self.ones, self.zeros, self.concat = tf.ones, tf.zeros, tf.concat
        self.tanh, self.sin = tf.tanh, tf.sin

    def gradient(self, function, x):
        return self.tf.gradients(function(x), x)[0]

    def row(self, graph, n):
        tf = self.tf
        x = tf.fill([4, 4], 0.1)
        specification = tf.TensorSpec([4, 4], tf.float32)
        tf.function(lambda v: graph(self, v, 64), autograph=False)(x)
        spent = Spent()
        call = tf.function(lambda v: graph(self, v, n),
                           autograph=False).get_concrete_function(specification)
        created = spent()
        spent = Spent()
        call(x)
        return n, (*created, *spent())


FRAMEWORKS = {"treenail": Treenail, "tensorflow": Tensorflow, "jax": Jax}
PEERS_UP_TO = 10000  # beyond, a compilation takes minutes


def measured(interpreter, framework, name, n, seconds):
    """The columns of a row: of a new process."""
    command = [interpreter, os.path.abspath(__file__), "--one", framework, name, str(n)]
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="",
                       JAX_PLATFORMS="cpu", TREENAIL_NUM_THREADS="1")
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, check=False, timeout=seconds,
                              env=environment)
    except subprocess.TimeoutExpired:
        return "more than %d s" % seconds
    if done.returncode:
        return "failed: %s" % harness.brief((done.stderr.strip() or "no word").splitlines()[-1])
    return done.stdout.strip()


def one(framework, name, n):
    sys.setrecursionlimit(100000)
    count, spent = FRAMEWORKS[framework]().row(GRAPHS[name], n)
    per_node = [value / count * (1e6 if i % 2 == 0 else 1) for i, value in enumerate(spent)]
    print("%d | %.2f | %.0f | %.2f | %.0f" % (count, *per_node))


def interpreters(options):
    """Framework → interpreter; says which peers are left out, and why."""
    if options.pypi is None:
        print("Left out: tensorflow, jax: not asked for (--pypi)\n")
        return {"treenail": sys.executable}
    import pypi
    guests = pypi.invite(("tensorflow", "jax"), options.pypi)
    for reason in guests.missing:
        print("Left out: %s\n" % reason)
    return {"treenail": sys.executable, **guests.interpreters}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("-n", action="append", type=int, help="about how many nodes; may be "
                        "repeated (1000, 10000, 100000)")
    parser.add_argument("--pypi", nargs="?", const="build/pypi-peers", metavar="DIR",
                        help="also TensorFlow and JAX, from virtual environments there")
    parser.add_argument("--timeout", type=int, default=300, metavar="S", help="for a row")
    parser.add_argument("graphs", nargs="*", metavar="GRAPH", help=", ".join(GRAPHS))
    options = parser.parse_args()
    if options.one:
        return one(options.one[0], options.one[1], int(options.one[2]))
    for name in options.graphs:
        if name not in GRAPHS:
            parser.error("unknown graph '%s'; there are %s" % (name, ", ".join(GRAPHS)))
    frameworks = interpreters(options)
    print(TARGETS + "\n\n| graph | | nodes | us created | B | us planned | B |")
    print("|---|---|---|---|---|---|---|")
    for name in options.graphs or GRAPHS:
        for framework, interpreter in frameworks.items():
            for n in options.n or (1000, 10000, 100000):
                if framework == "treenail" or n <= PEERS_UP_TO:
                    print("| %s | %s | %s |" % (GRAPHS[name].__doc__, framework, measured(
                        interpreter, framework, name, n, options.timeout)), flush=True)
    return None


if __name__ == "__main__":
    sys.exit(main())
