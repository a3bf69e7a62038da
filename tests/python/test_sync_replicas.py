# SPDX-License-Identifier: Apache-2.0
"""SyncReplicasOptimizer with threads as workers, against plain second implementations."""

import threading
import time

import numpy as np
import pytest

import treenail as tn

from waiting import Threads


LIMIT = tn.RunOptions(timeout_in_ms=60000)  # nothing hangs for longer


class Cluster:
    """Workers of one session, each with an optimizer of its own; `build(worker)` gives its loss."""

    def __init__(self, workers, needed, build, inner=None, **options):
        self.step = tn.train.get_or_create_global_step()
        inner = inner or tn.train.GradientDescentOptimizer(1.0)
        self.optimizers = [tn.train.SyncReplicasOptimizer(inner, needed, workers, **options)
                           for _ in range(workers)]
        self.trains = [optimizer.minimize(build(i), global_step=self.step)
                       for i, optimizer in enumerate(self.optimizers)]
        self.workers = workers

    def session(self):
        """Its first step waits for all."""
        return tn.train.MonitoredSession(hooks=[
            optimizer.make_session_run_hook(i == 0, num_tokens=0)
            for i, optimizer in enumerate(self.optimizers)])

    def run(self, session, steps, feeds=lambda worker, step: None):
        """All workers run so many steps, each when all have ended the one before."""
        together = threading.Barrier(self.workers, timeout=60)

        def work(worker):
            for step in range(steps):
                session._raw.run(self.trains[worker], feeds(worker, step), LIMIT)
                together.wait()
        with Threads() as threads:
            for worker in range(self.workers):
                threads.start(work, worker)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_all_workers_move_as_one_with_the_whole_batch(workers, rng):
    """Whole numbers, so that sums are exact in whatever order gradients come."""
    steps = 12
    data = rng.randint(-3, 4, (steps, workers, 5, 3)).astype(np.float64)
    x = [tn.placeholder(tn.float64, [5, 3]) for _ in range(workers)]
    w = tn.Variable(np.zeros([3, 2]), name="w")
    unused = tn.Variable(1.0, name="unused")
    targets = rng.randint(-3, 4, (3, 2)).astype(np.float64)
    losses = {}

    def build(worker):
        losses[worker] = tn.reduce_sum(tn.matmul(x[worker], w) * tn.matmul(x[worker], targets))
        return losses[worker]
    inner = tn.train.GradientDescentOptimizer(0.5 ** 10)
    cluster = Cluster(workers, workers, build, inner)
    with cluster.session() as session:
        cluster.run(session, steps, lambda worker, step: {x[worker]: data[step, worker]})
        got, last = session.run([w, cluster.step])
        assert session.run(unused) == 1.0
    wanted = np.zeros([3, 2])
    for step in range(steps):
        gradients = [data[step, i].T @ (data[step, i] @ targets) for i in range(workers)]
        wanted -= 0.5 ** 10 * sum(gradients) / workers
    assert last == steps
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("sparse", [False, True])
def test_sums_go_in_the_order_of_workers_whoever_comes_first(rng, sparse):
    """Of float32 values whose sums differ with their order, against NumPy in this order."""
    workers, steps = 3, 8
    data = (rng.randn(steps, workers, 2, 40) * 10.0 ** rng.randint(-3, 4, (steps, workers, 1, 1))
            ).astype(np.float32)
    x = [tn.placeholder(tn.float32, [2, 40]) for _ in range(workers)]
    w = tn.get_variable("w", initializer=np.zeros([2, 40], np.float32))
    step = tn.train.get_or_create_global_step()
    inner = tn.train.GradientDescentOptimizer(1.0)
    optimizers = [tn.train.SyncReplicasOptimizer(inner, workers, replica=i)
                  for i in range(workers)]
    rows = tn.nn.embedding_lookup(w, [1, 0]) if sparse else w
    trains = [optimizer.minimize(tn.reduce_sum(rows * x[i]), global_step=step)
              for i, optimizer in enumerate(optimizers)]
    hooks = [optimizer.make_session_run_hook(i == 0) for i, optimizer in enumerate(optimizers)]
    late = rng.permutation(workers)

    def work(session, worker):
        for at in range(steps):
            time.sleep(0.01 * ((late[worker] + at) % workers))
            session.run(trains[worker], {x[worker]: data[at, worker]}, LIMIT)
    with tn.train.MonitoredSession(hooks=hooks) as session:
        with Threads() as threads:
            for worker in range(workers):
                threads.start(work, session._raw, worker)
        got, last = session.run([w, step])
    wanted = np.zeros([2, 40], np.float32)
    for at in range(steps):
        total = (data[at, 0] + data[at, 1]) + data[at, 2]
        wanted -= (total / np.float32(workers))[::-1 if sparse else 1]
    assert last == steps
    np.testing.assert_array_equal(got, wanted)


def test_the_place_of_a_worker_is_its_task():
    def place(device, **more):
        with tn.Graph().as_default(), tn.device(device):
            optimizer = tn.train.SyncReplicasOptimizer(
                tn.train.GradientDescentOptimizer(1.0), 3, **more)
            optimizer.minimize(tn.Variable(1.0) * 2.0,
                               global_step=tn.train.get_or_create_global_step())
            return optimizer._place
    assert place("/job:worker/task:1") == 2 and place("/job:chief/task:0") == 0
    assert place("/job:worker/replica:0/task:2/cpu:0") == 3
    assert place("/job:worker/task:1", replica=0) == 0
    assert place("/cpu:0") == place("/job:worker/task:1", total_num_replicas=4) == -1
    with pytest.raises(ValueError, match=r"replica must be in \[0, 3\), the workers, not 3"):
        place("/cpu:0", replica=3)


@pytest.mark.parametrize("inner", [
    lambda: tn.train.MomentumOptimizer(0.1, 0.9), lambda: tn.train.AdamOptimizer(0.1),
    lambda: tn.train.AdagradOptimizer(0.1)])
def test_slots_move_as_of_one_optimizer(inner, rng):
    workers, steps = 2, 6
    data = rng.rand(steps, workers, 4).astype(np.float32)
    x = [tn.placeholder(tn.float32, [4]) for _ in range(workers)]
    w = tn.Variable(np.ones(4, np.float32))
    shared = inner()
    cluster = Cluster(workers, workers, lambda i: tn.reduce_sum(x[i] * w * w), shared)
    assert cluster.optimizers[1].get_slot_names() == shared.get_slot_names()
    assert cluster.optimizers[0].variables() == shared.variables()
    with cluster.session() as session:
        cluster.run(session, steps, lambda worker, step: {x[worker]: data[step, worker]})
        got = session.run(w)
    with tn.Graph().as_default(), tn.Session() as session:
        given = tn.placeholder(tn.float32, [4])
        w = tn.Variable(np.ones(4, np.float32))
        train = inner().minimize(tn.reduce_sum(given * w * w))
        session.run(tn.global_variables_initializer())
        for step in range(steps):
            session.run(train, {given: data[step].mean(0)})
        np.testing.assert_allclose(got, session.run(w), rtol=1e-5)


def test_rows_of_a_table(rng):
    """Gradients that are slices: each row moves by the mean over those that have it."""
    workers, steps = 3, 8
    ids = rng.randint(0, 5, (steps, workers, 2))
    x = [tn.placeholder(tn.int64, [2]) for _ in range(workers)]
    table = tn.Variable(np.zeros([5, 2]), name="table")
    cluster = Cluster(workers, workers,
                      lambda i: tn.reduce_sum(tn.nn.embedding_lookup(table, x[i])) * (i + 1.0))
    with cluster.session() as session:
        cluster.run(session, steps, lambda worker, step: {x[worker]: ids[step, worker]})
        got = session.run(table)
    wanted = np.zeros([5, 2])
    for step in range(steps):
        sums, counts = np.zeros(5), np.zeros(5)
        for worker in range(workers):
            for row in set(ids[step, worker]):
                sums[row] += (worker + 1.0) * list(ids[step, worker]).count(row)
                counts[row] += 1
        wanted -= np.where(counts > 0, sums / np.maximum(counts, 1), 0.0)[:, None]
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


@pytest.mark.parametrize("workers, needed", [(3, 2), (4, 1), (2, 2)])
def test_gradients_of_an_old_step_are_dropped(workers, needed):
    """Each gradient is one more than the global step that it was computed at, so that after n steps
    the variable is -(1 + ... + n), if and only if no gradient of an old step ever counted."""
    steps = 60
    v = tn.Variable(np.float64(0), name="v")
    step = tn.train.get_or_create_global_step()
    given = []

    def compute(at):
        given.append(at)
        return np.float64(at + 1)
    inner = tn.train.GradientDescentOptimizer(1.0)
    optimizers = [tn.train.SyncReplicasOptimizer(inner, needed, workers) for _ in range(workers)]
    trains = []
    for optimizer in optimizers:
        gradient = tn.py_func(compute, [step], tn.float64)
        gradient.set_shape([])
        trains.append(optimizer.apply_gradients([(gradient, v)], step))
    hooks = [optimizer.make_session_run_hook(i == 0) for i, optimizer in enumerate(optimizers)]
    with Threads() as threads:
        with tn.train.MonitoredSession(hooks=hooks) as session:
            raw = session._raw

            def work(worker):
                try:
                    while True:
                        raw.run(trains[worker], options=LIMIT)
                except (tn.errors.CancelledError, tn.errors.FailedPreconditionError):
                    pass  # the session is closed
            for worker in range(workers):
                threads.start(work, worker)
            sums = {-n * (n + 1) / 2 for n in range(10 ** 5)}
            at = 0
            while at < steps:
                at, value = raw.run([step, v], options=LIMIT)
                assert value in sums
    assert len(given) >= steps * needed


def test_more_gradients_than_workers():
    """One worker that gives three gradients for each step."""
    v = tn.Variable(np.float64(0))
    g = tn.placeholder(tn.float64, [])
    step = tn.train.get_or_create_global_step()
    optimizer = tn.train.SyncReplicasOptimizer(tn.train.GradientDescentOptimizer(1.0), 3, 1)
    train = optimizer.minimize(g * v, global_step=step)
    hook = optimizer.make_session_run_hook(True, num_tokens=2)
    with tn.train.MonitoredSession(hooks=[hook]) as session:
        for value in (3.0, 6.0, 9.0, 30.0, 30.0, 60.0):
            session.run(train, {g: value})
        end = time.monotonic() + 60
        while session.run(step) < 2 and time.monotonic() < end:
            pass
        assert session.run([step, v]) == [2, -46.0]
    with pytest.raises(ValueError, match=r"Too few tokens .* 1 \(num_tokens\) vs 2 \(needed\)"):
        optimizer.get_init_tokens_op(1)
    optimizer.get_init_tokens_op(2)


def test_averages_are_kept_with_the_steps():
    v = tn.Variable(np.float64(8), name="v")
    averages = tn.train.ExponentialMovingAverage(0.5)
    cluster = Cluster(2, 2, lambda i: v * 2.0, variable_averages=averages,
                      variables_to_average=[v])
    average = averages.average(v)
    with cluster.session() as session:
        cluster.run(session, 3)
        end = time.monotonic() + 60
        while session.run(average) != 3.75 and time.monotonic() < end:
            pass  # they are updated after the tokens are there
        assert session.run([v, average]) == [2.0, 3.75]  # 8 and 6, then 4, then 2


def test_a_lost_session_goes_on():
    """The chief's queue runner and the tokens are there in each session anew."""
    v = tn.Variable(np.float64(0))
    lose = [3]

    class Losing(tn.train.SessionRunHook):
        def before_run(self, run_context):
            lose[0] -= 1
            if lose[0] == 0:
                raise tn.errors.UnavailableError(None, None, "lost")
    step = tn.train.get_or_create_global_step()
    optimizer = tn.train.SyncReplicasOptimizer(tn.train.GradientDescentOptimizer(1.0), 1)
    train = optimizer.minimize(v * 1.0, global_step=step)
    begun = time.monotonic()
    with tn.train.MonitoredSession(hooks=[optimizer.make_session_run_hook(True, num_tokens=0),
                                          Losing()]) as session:
        for _ in range(6):
            session.run(train, options=LIMIT)
        assert session.run([step, v]) == [4, -4.0]
    assert time.monotonic() - begun < 20, "a thread that waits for gradients keeps it open"
    assert not [t for t in threading.enumerate() if t.name.startswith("QueueRunnerThread")]


SOON = tn.RunOptions(timeout_in_ms=20000)


class TwoWorkers:
    """Each with a variable that it pulls at; neither runs on its own."""

    def __init__(self, session):
        self.run = lambda fetches: session.run(fetches, options=SOON)
        w, v = (tn.Variable(np.float64(0), name=name) for name in "wv")
        step = tn.train.get_or_create_global_step()
        self.values, losses = [step, w, v], [2 * w + w * v, 4 * v + w * v]
        self.optimizers = [tn.train.SyncReplicasOptimizer(
            tn.train.GradientDescentOptimizer(1.0), 2, replica=i) for i in range(2)]
        self.trains = [optimizer.minimize(loss, global_step=step)
                       for optimizer, loss in zip(self.optimizers, losses)]
        self.chief = self.optimizers[0]
        self.sync = self.chief.get_chief_queue_runner().enqueue_ops
        self.run(tn.global_variables_initializer())
        self.run(self.chief.chief_init_op)
        self.run(self.optimizers[1].local_step_init_op)

    def await_gradients(self, count):
        """Waits until so many are there of each variable."""
        there = [each.num_accumulated() for each, _ in self.chief._accumulators]
        end = time.monotonic() + 20
        while min(self.run(there)) < count:
            assert time.monotonic() < end
            time.sleep(0.001)


def test_a_chief_that_was_lost_before_it_gave_tokens_gives_them_when_it_is_back():
    with tn.Session() as session:
        two = TwoWorkers(session)
        takes = [accumulator.take_grad(2) for accumulator, _ in two.chief._accumulators]
        with Threads() as threads:
            for train in two.trains:
                threads.start(two.run, train)
            assert two.run(takes) == [1.0, 2.0]  # and then it is lost
            two.run(two.chief.chief_init_op)
        with Threads() as threads:
            for each in two.trains + [two.sync]:
                threads.start(two.run, each)
        assert two.run(two.values) == [1, -1.0, -2.0]


def test_no_variable_moves_while_a_gradient_of_another_one_is_missing():
    """A worker that is lost between two of its gradients computes both again."""
    with tn.Session() as session:
        two = TwoWorkers(session)
        half = [op for op in two.trains[1].graph.get_operations()
                if op.type == "AccumulatorApplyGradient"][2]
        with Threads() as threads:
            threads.start(two.run, two.sync)
            threads.start(two.run, two.trains[0])
            two.await_gradients(1)
            two.run(half)
            time.sleep(0.05)
            assert two.run(two.values) == [0, 0.0, 0.0]
            threads.start(two.run, two.trains[1])
        assert two.run(two.values) == [1, -1.0, -2.0]


def test_no_worker_takes_the_token_of_another_one():
    with tn.Session() as session:
        two = TwoWorkers(session)
        two.run(two.chief.get_init_tokens_op(2))
        with Threads() as threads:
            two.run(two.trains[0])
            threads.start(two.run, two.trains[0])  # its own is gone
            time.sleep(0.05)
            two.run(two.trains[1])
            two.run(two.sync)
        assert two.run(two.values) == [1, -1.0, -2.0]


def test_devices_of_the_parts():
    with tn.device(tn.train.replica_device_setter(2, worker_device="/job:worker/task:1")):
        step = tn.train.get_or_create_global_step()
        v = tn.Variable([1.0], name="v")
        optimizer = tn.train.SyncReplicasOptimizer(tn.train.GradientDescentOptimizer(1.0), 2)
        optimizer.minimize(tn.reduce_sum(v), global_step=step)
    assert (step.device, v.device) == ("/job:ps/task:0", "/job:ps/task:1")
    assert optimizer._local_step.device == "/job:worker/task:1"
    assert optimizer._local_step in tn.local_variables()
    assert optimizer._accumulators[0][0].accumulator_ref.op.device == "/job:ps/task:1"
    assert optimizer._queue.queue_ref.op.device == "/job:ps/task:0"


def test_what_is_refused():
    inner = tn.train.GradientDescentOptimizer(1.0)
    optimizer = tn.train.SyncReplicasOptimizer(inner, 2)
    v = tn.Variable(1.0)
    with pytest.raises(ValueError, match="Global step is required to check staleness"):
        optimizer.minimize(v * 2.0)
    with pytest.raises(ValueError, match="at least one variable"):
        optimizer.apply_gradients([], tn.train.get_or_create_global_step())
    for call in (optimizer.get_chief_queue_runner, optimizer.get_init_tokens_op,
                 lambda: optimizer.make_session_run_hook(True).begin()):
        with pytest.raises(ValueError, match="should be called after apply_gradients"):
            call()
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="replicas_to_aggregate must be at least 1"):
            tn.train.SyncReplicasOptimizer(inner, wrong)
    with pytest.raises(TypeError, match="opt must be an Optimizer"):
        tn.train.SyncReplicasOptimizer(3, 2)
