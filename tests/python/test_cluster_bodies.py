# SPDX-License-Identifier: Apache-2.0
"""Branches, loops and calls whose bodies lie across the tasks of a cluster: they compute what one
process computes, in the same order, and end as soon as a task does."""

import random
import signal
import threading
import time

import numpy as np
import pytest

import treenail as tn
from cluster_processes import Cluster

pytestmark = pytest.mark.skipif("grpc" not in tn.build_info()["features"],
                                reason="this build has no gRPC")

TASKS = ["/job:worker/task:0", "/job:worker/task:1", "/job:ps/task:0"]
PS = TASKS[2]
SOFT = tn.ConfigProto(allow_soft_placement=True)


def both(cluster):
    """A session of this process, and one at the cluster."""
    return tn.Session(config=SOFT), tn.Session(cluster.target("worker"), config=SOFT)


def results(session, fetches, feeds=None):
    """What a run gives, or its error without what is said of places in programs."""
    try:
        return [np.asarray(value).tolist() for value in session.run(fetches, feeds)]
    except tn.errors.OpError as error:
        return type(error).__name__, str(error).split("\n")[0]


def test_a_branch_assigns_on_another_task(cluster):
    with tn.device(PS):
        v = tn.get_variable("v", [], initializer=tn.zeros_initializer())
    p = tn.placeholder(tn.bool, [])
    changed = tn.cond(p, lambda: v.assign_add(100.0), lambda: v.assign(7.0))
    with tn.Session(cluster.target("worker")) as session:
        session.run(v.initializer)
        assert [session.run(changed, {p: which}) for which in (True, True, False)] == [100, 200, 7]
        assert session.run(v) == 7


def spread_loop(rounds):
    """A loop here that computes there, and counts at the parameter server."""
    with tn.device(PS):
        v = tn.get_variable("v", [2], initializer=tn.zeros_initializer())

    def body(i, x):
        with tn.device(TASKS[1]):
            y = tn.sin(x) * 1.5 + v
        with tn.device(PS):
            added = v.assign_add(y * 0.01)
        with tn.control_dependencies([added]):
            return i + 1, tn.cond(i % 3 > 0, lambda: y - v.read_value(), lambda: y + 0.25)
    return v, tn.while_loop(lambda i, x: i < rounds, body, [tn.constant(0), tn.ones([2])])


def test_a_loop_of_many_rounds_and_several_runs_at_once(cluster):
    rounds = tn.placeholder(tn.int32, [])
    v, loop = spread_loop(rounds)
    found = []
    for session in both(cluster):
        with session:
            session.run(v.initializer)
            found.append([results(session, [*loop, v], {rounds: n}) for n in (0, 1, 300)])
    assert found[0] == found[1]
    pure = tn.while_loop(lambda i, x: i < 40, spread, [tn.constant(0), tn.placeholder(tn.float32)])
    fed = pure[1].op.inputs[1]
    with tn.Session(cluster.target("worker")) as session, tn.Session() as own:
        given = [float(n) for n in range(6)]
        wanted = [own.run(plain(n)) for n in given]
        seen = {}

        def run(n):
            seen[n] = session.run(pure[1], {fed: n})

        threads = [threading.Thread(target=run, args=(n,)) for n in given]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert [seen[n] for n in given] == wanted


def spread(i, x):
    with tn.device(TASKS[1]):
        y = x * 0.9
    with tn.device(PS):
        return i + 1, y + 0.5


def plain(start):
    x = tn.constant(start)
    for _ in range(40):
        x = x * 0.9 + 0.5
    return x


def test_gradients_go_through_a_loop_across_tasks(cluster):
    with tn.device(PS):
        w = tn.get_variable("w", [3, 3], initializer=tn.constant_initializer(0.3))
    x = tn.placeholder(tn.float32, [2, 3])

    def body(i, h):
        with tn.device(TASKS[1]):
            h = tn.tanh(tn.matmul(h, w))
        return i + 1, tn.cond(i > 1, lambda: h * 0.5, lambda: h * h)
    _, h = tn.while_loop(lambda i, h: i < 4, body, [tn.constant(0), x])
    loss = tn.reduce_sum(h * h)
    train = tn.train.GradientDescentOptimizer(0.1).minimize(loss)
    found = []
    for session in both(cluster):
        with session:
            session.run(w.initializer)
            feeds = {x: np.arange(6, dtype=np.float32).reshape(2, 3) / 5}
            losses = [session.run([loss, train], feeds)[0].tolist() for _ in range(4)]
            found.append((losses, session.run(w).tolist()))
    assert found[0] == found[1]
    assert len(set(found[0][0])) == 4


class Program:
    """A random program of branches, loops, calls and accesses to variables over three tasks."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.variables = []
        for i in range(3):
            with tn.device(TASKS[i]):
                self.variables.append(tn.get_variable(
                    "v%d" % i, [], initializer=tn.constant_initializer(i + 1.0)))
        self.x = tn.placeholder(tn.float32, [])
        values = [self.x, self.x + 1.0]
        for _ in range(3):
            values.append(self.value(values, 3))
        self.fetches = values[2:]

    def somewhere(self):
        return tn.device(self.rng.choice(TASKS + [None]))

    def value(self, values, depth):
        kinds = ["add", "mul", "read", "assign"] + ["cond", "loop", "call", "check"] * (depth > 0)
        kind, pick = self.rng.choice(kinds), lambda: self.rng.choice(values)
        with self.somewhere():
            if kind == "add":
                return pick() + pick() * 0.5
            if kind == "mul":
                return tn.sin(pick()) * pick()
            if kind == "read":
                return self.rng.choice(self.variables).read_value() + pick()
            if kind == "assign":
                v = self.rng.choice(self.variables)
                change = self.rng.choice([v.assign, v.assign_add, v.assign_sub])
                return change(tn.cos(pick())) * 1.0
            if kind == "check":
                with tn.control_dependencies([tn.Assert(pick() < 3.5, [pick()])]):
                    return tn.identity(pick())
            if kind == "cond":
                return tn.cond(pick() > pick(), lambda: self.some(values, depth - 1),
                               lambda: self.some(values, depth - 1))
            if kind == "call":
                called = tn.function(lambda a, b: self.some([a, b], depth - 1))
                return called(pick(), pick())
            rounds = self.rng.randint(0, 3)
            return tn.while_loop(
                lambda i, a: i < rounds,
                lambda i, a: (i + 1, self.some([*values, a], depth - 1)),
                [tn.constant(0), pick()])[1]

    def some(self, values, depth):
        values = list(values)
        for _ in range(self.rng.randint(1, 3)):
            values.append(self.value(values, depth))
        return values[-1]


@pytest.mark.parametrize("first", range(0, 40, 8))
def test_random_programs(cluster, first):
    for seed in range(first, first + 8):
        tn.Session.reset(cluster.target("worker"))
        with tn.Graph().as_default():
            program = Program(seed)
            found = []
            for session in both(cluster):
                with session:
                    session.run(tn.global_variables_initializer())
                    found.append([(results(session, program.fetches, {program.x: x}),
                                   results(session, program.variables)) for x in (0.5, 1.25, 4.0)])
            # Which of a failing run's nodes fails first, and what else still ran, may differ.
            for own, other in zip(*found):
                if isinstance(own[0], tuple):
                    assert own[0][0] == other[0][0], "seed %d" % seed
                    break
                assert own == other, "seed %d" % seed


def test_accesses_around_a_loop_keep_their_order(cluster):
    with tn.device(PS):
        v = tn.get_variable("v", [], initializer=tn.zeros_initializer())
    before = v.read_value() + 0.0
    loops = []
    for _ in range(2):
        def body(i):
            with tn.control_dependencies([v.assign(v * 2.0 + 1.0)]):
                return i + 1
        loops.append(tn.while_loop(lambda i: i < 3, body, [tn.constant(0)]))
        loops.append(v.read_value() + 0.0)
    last = v.assign_add(0.5)
    with tn.Session(cluster.target("worker")) as session:
        session.run(v.initializer)
        assert session.run([before, *loops, last]) == [0, 3, 7, 3, 63, 63.5]


def test_an_error_there_is_told_as_here(cluster):
    x = tn.placeholder(tn.float32, [])

    def branch(v):
        with tn.device(PS):
            with tn.control_dependencies([tn.Assert(v < 8.0, [v], name="small")]):
                return v * 2.0

    def body(i, v):
        with tn.device(TASKS[1]):
            return i + 1, tn.cond(i > 0, lambda: branch(v), lambda: v)
    loop = tn.while_loop(lambda i, v: i < 9, body, [tn.constant(0), x])
    own, other = (results(session, loop, {x: 3.0}) for session in both(cluster))
    assert own == other
    assert "iteration 3: [If" in own[1] and own[1].endswith("assertion failed: [12]")


@pytest.mark.parametrize("kind", ["timeout", "close"])
def test_a_loop_without_an_end_is_ended(cluster, kind):
    _, loop = spread_loop(10**9)
    with tn.Session(cluster.target("worker")) as session:
        session.run(tn.global_variables_initializer())
        began = time.monotonic()
        with pytest.raises((tn.errors.DeadlineExceededError, tn.errors.CancelledError)):
            if kind == "timeout":
                session.run(loop, options=tn.RunOptions(timeout_in_ms=700))
            else:
                options = tn.RunOptions()
                threading.Timer(0.7, session.close).start()
                session.run(loop, options=options)
        assert time.monotonic() - began < 10
    with tn.Session(cluster.target("worker")) as session:  # which goes on
        session.run(tn.global_variables_initializer())
        assert session.run(tn.constant(1.0) + 1.0) == 2


@pytest.mark.parametrize("lost", [("ps", 0), ("worker", 1)])
def test_a_loop_whose_task_is_lost_ends(lost):
    with Cluster(ps=1, worker=2) as cluster:
        _, loop = spread_loop(10**9)
        with tn.Session(cluster.target("worker")) as session:
            session.run(tn.global_variables_initializer())
            threading.Timer(0.7, cluster.signal, [*lost, signal.SIGKILL]).start()
            began = time.monotonic()
            with pytest.raises(tn.errors.UnavailableError, match="/job:%s/.*task:%d" % lost):
                session.run(loop)
            assert time.monotonic() - began < 12


def test_branches_use_a_queue_of_another_task_and_nest_across_tasks(cluster):
    with tn.device(TASKS[1]):
        queue = tn.FIFOQueue(3, [tn.float32])
    p = tn.placeholder(tn.bool, [])
    taken = tn.cond(p, lambda: queue.dequeue() + 1.0, lambda: tn.constant(0.0))
    with tn.Session(cluster.target("worker")) as session:
        session.run(queue.enqueue(2.0))
        assert session.run(taken, {p: True}) == 3  # the handle is made anew there
        recursive = tn.cond(p, lambda: nested(p), lambda: tn.constant(0.0))
        assert session.run(recursive, {p: True}) == 6


def nested(p):
    with tn.device(TASKS[1]):
        a = tn.constant(1.0) + 2.0

        def inner():
            with tn.device(PS):
                return a * 2.0
        return tn.cond(p, inner, lambda: a)
