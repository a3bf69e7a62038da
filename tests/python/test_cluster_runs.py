# SPDX-License-Identifier: Apache-2.0
"""Runs in parts and traces of runs at servers. Parts are held to those of a session of one process,
on random graphs over several tasks: the same bits, the same refusals."""

import json
import os
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

TASKS = ["/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"]
SOFT = tn.ConfigProto(allow_soft_placement=True)


def random_graph(rng):
    """Feeds, and values of which each knows what feeds it needs: {tensor: set of feeds}."""
    feeds, needs = [], {}
    for i in range(rng.randint(1, 4)):
        with tn.device(rng.choice(TASKS)):
            feeds.append(tn.placeholder(tn.float32, [3], name="feed%d" % i))
        needs[feeds[-1]] = {feeds[-1]}
    for i in range(rng.randint(3, 14)):
        inputs = [rng.choice(list(needs)) for _ in range(2)]
        with tn.device(rng.choice(TASKS)):
            kind = rng.randrange(5)
            if kind == 0:
                value = tn.random_uniform([3], seed=i)
                used = []
            elif kind == 1:
                value, used = tn.tanh(inputs[0]), inputs[:1]
            elif kind == 2:
                value, used = inputs[0] * inputs[1], inputs
            elif kind == 3:
                with tn.control_dependencies([inputs[1]]):
                    value, used = inputs[0] + 1.5, inputs
            else:
                value, used = inputs[0] - inputs[1], inputs
        needs[value] = set().union(*(needs[each] for each in used)) if used else set()
    return feeds, needs


def refusal(session, handle, fetches, fed):
    with pytest.raises(tn.errors.InvalidArgumentError) as caught:
        session.partial_run(handle, fetches, fed)
    return caught.value.message


@pytest.mark.parametrize("seed", range(25))
def test_random_graphs_in_random_parts_have_the_bits_of_one_process(cluster, seed):
    rng = random.Random(seed)
    tn.set_random_seed(seed)
    feeds, needs = random_graph(rng)
    fetches = rng.sample(list(needs), rng.randint(1, len(needs)))
    fetches += [rng.choice(fetches)] * rng.randrange(2)
    with tn.Session(config=SOFT) as here, tn.Session(cluster.target("worker")) as there:
        for _ in range(2):
            handles = [session.partial_run_setup(fetches, feeds) for session in (here, there)]
            fed, fetched = set(), set()
            while len(fed) < len(feeds) or len(fetched) < len(set(fetches)):
                missing = [feed for feed in feeds if feed not in fed]
                early = [f for f in dict.fromkeys(fetches)
                         if f not in fetched and not needs[f] <= fed]
                if early and rng.random() < 0.3:
                    said = [refusal(session, handle, early[0], {})
                            for session, handle in zip((here, there), handles)]
                    assert "cannot be computed from what has been fed" in said[1]
                    assert said[1].partition(" it needs ")[0] == said[0].partition(" it needs ")[0]
                new = rng.sample(missing, rng.randint(0, min(2, len(missing))))
                values = {feed: np.float32([rng.random() for _ in range(3)]) for feed in new}
                fed |= set(new)
                ready = [f for f in dict.fromkeys(fetches) if f not in fetched and needs[f] <= fed]
                wanted = rng.sample(ready, rng.randint(0, len(ready)))
                fetched |= set(wanted)
                got = [session.partial_run(handle, wanted, values)
                       for session, handle in zip((here, there), handles)]
                for one, other in zip(*got):
                    np.testing.assert_array_equal(one, other)
            assert "has ended" in refusal(there, handles[1], fetches[0], {})


def chain():
    """Three feeds at three tasks; each sum needs those before."""
    feeds, sums, total = [], [], None
    for task in TASKS:
        with tn.device(task):
            feeds.append(tn.placeholder(tn.float32, []))
            total = feeds[-1] * 2 if total is None else total + feeds[-1]
            sums.append(total)
    return feeds, sums


def test_many_runs_in_parts_at_once_from_several_threads(cluster):
    feeds, sums = chain()
    errors = []
    with tn.Session(cluster.target("worker")) as session:
        def work(k):
            try:
                for i in range(10):
                    handle = session.partial_run_setup(sums, feeds)
                    assert session.partial_run(handle, sums[0], {feeds[0]: k}) == 2 * k
                    assert session.partial_run(handle, [], {feeds[2]: 1}) == []
                    assert session.partial_run(handle, sums[1:], {feeds[1]: i}) == [
                        2 * k + i, 2 * k + i + 1]
            except BaseException as error:  # shown by the main thread
                errors.append(error)
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors


def test_what_changes_state_happens_once(cluster):
    with tn.device(TASKS[0]):
        count = tn.get_variable("count", [], initializer=tn.zeros_initializer())
        step = tn.placeholder(tn.float32, [])
        more = count.assign_add(step)
    with tn.device(TASKS[2]):
        twice = more * 2
    with tn.Session(cluster.target("worker")) as session:
        session.run(count.initializer)
        for i in range(1, 6):
            handle = session.partial_run_setup([more.op, twice], [step])
            session.partial_run(handle, more.op, {step: 1})
            assert session.partial_run(handle, twice) == 2 * i
        assert session.run(count) == 5


def test_an_error_ends_it_and_the_session_goes_on(cluster):
    with tn.device(TASKS[0]):
        x, y = tn.placeholder(tn.float32, [None]), tn.placeholder(tn.float32, [None])
        total = tn.add(x, y, name="total")
    with tn.device(TASKS[2]):
        twice = total * 2
    with tn.Session(cluster.target("worker")) as session:
        handle = session.partial_run_setup([twice], [x, y])
        with pytest.raises(tn.errors.InvalidArgumentError, match="total"):
            session.partial_run(handle, twice, {x: [1, 2], y: [1, 2, 3]})
        assert "has ended" in refusal(session, handle, twice, {x: [1, 2], y: [1, 2]})
        assert session.run(twice, {x: [1], y: [2]}) == [6]


def test_a_part_that_waits_ends_with_its_session(cluster):
    with tn.device(TASKS[0]):
        queue = tn.FIFOQueue(1, tn.float32, shapes=[[]])
        got = queue.dequeue()
    with tn.device(TASKS[1]):
        x = tn.placeholder(tn.float32, [])
        total = got + x
    session = tn.Session(cluster.target("worker"))
    handle = session.partial_run_setup([total], [x])
    closing = threading.Timer(0.3, session.close)
    closing.start()
    begin = time.monotonic()
    with pytest.raises((tn.errors.CancelledError, tn.errors.FailedPreconditionError,
                        tn.errors.AbortedError)):
        session.partial_run(handle, total, {x: 1})
    assert time.monotonic() - begin < 10
    closing.join()
    with pytest.raises(tn.errors.FailedPreconditionError, match="closed"):
        session.partial_run(handle, total, {x: 1})


def test_ctrl_c_ends_the_run_everywhere(cluster):
    with tn.device(TASKS[0]):
        queue = tn.FIFOQueue(1, tn.float32, shapes=[[]])
        got, put = queue.dequeue(), queue.enqueue(3.0)
    with tn.device(TASKS[1]):
        x = tn.placeholder(tn.float32, [])
        total = got + x
    with tn.Session(cluster.target("worker")) as session:
        handle = session.partial_run_setup([total], [x])
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            session.partial_run(handle, total, {x: 1})
        assert "has ended" in refusal(session, handle, total, {x: 1})
        session.run(put)   # which the run that was given up does not take
        assert session.run(got) == 3


def test_a_killed_task_ends_the_run_in_parts_and_is_named():
    with Cluster(ps=1, worker=2) as running:
        feeds, sums = chain()
        with tn.Session(running.target("worker")) as session:
            handle = session.partial_run_setup(sums, feeds)
            assert session.partial_run(handle, sums[0], {feeds[0]: 1}) == 2
            running.kill("worker", 1)
            assert session.partial_run(handle, sums[1], {feeds[1]: 1}) == 3
            with pytest.raises(tn.errors.UnavailableError, match="/job:worker/.*task:1"):
                session.partial_run(handle, sums[2], {feeds[2]: 1})
            assert "has ended" in refusal(session, handle, sums[2], {feeds[2]: 1})


def test_runs_in_parts_that_are_open_have_a_limit():
    with Cluster(worker=1) as running:
        feeds = [tn.placeholder(tn.float32, [])]
        total = feeds[0] + 1
        with tn.Session(running.target("worker")) as session:
            handles = [session.partial_run_setup([total], feeds) for _ in range(1000)]
            with pytest.raises(tn.errors.ResourceExhaustedError, match="max-partial-runs"):
                session.partial_run_setup([total], feeds)
            assert session.partial_run(handles[0], total, {feeds[0]: 1}) == 2
            session.partial_run_setup([total], feeds)
        with tn.Session(running.target("worker")) as session:
            session.partial_run_setup([total], feeds)


def test_a_child_of_a_fork_cannot_go_on_with_it(cluster):
    feeds, sums = chain()
    with tn.Session(cluster.target("worker")) as session:
        handle = session.partial_run_setup(sums, feeds)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                session.partial_run(handle, sums[0], {feeds[0]: 1})
            except tn.errors.FailedPreconditionError:
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert session.partial_run(handle, sums[0], {feeds[0]: 1}) == 2


# --- Traces --------------------------------------------------------------------------------------


def traced(session, fetches, feeds=None):
    metadata = tn.RunMetadata()
    options = tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE)
    return session.run(fetches, feeds, options, metadata), metadata


def test_a_trace_has_the_nodes_of_all_tasks_on_one_timeline(cluster, tmp_path):
    feeds, sums = chain()
    x = {feed: 1.0 for feed in feeds}
    with tn.Session(cluster.target("worker")) as session:
        session.run(sums[2], x)
        plain = tn.RunMetadata()
        session.run(sums[2], x, None, plain)
        assert plain.nodes == [] and plain.clock_error_ns == 0
        for _ in range(5):
            begin = time.perf_counter_ns()
            value, metadata = traced(session, sums[2], x)
            took = time.perf_counter_ns() - begin
            assert value == 4
            computed = {node.name: node for node in metadata.nodes if not node.op.startswith("_")}
            assert [computed[s.op.name].device for s in sums] == [
                "/job:ps/replica:0/task:0/device:CPU:0",
                "/job:worker/replica:0/task:0/device:CPU:0",
                "/job:worker/replica:0/task:1/device:CPU:0"]
            # Each sum needs the one before, at another task of this machine, whose clock is one.
            for before, after in zip(sums, sums[1:]):
                assert computed[before.op.name].end_ns <= computed[after.op.name].start_ns
            assert {"_Send", "_Recv"} <= {node.op for node in metadata.nodes}
            starts = [node.start_ns for node in metadata.nodes]
            assert starts == sorted(starts) and starts[0] >= 0
            assert max(node.end_ns for node in metadata.nodes) <= took
            assert 0 < metadata.clock_error_ns < took
            assert len(metadata.nodes) == metadata.nodes_executed
        assert metadata.SerializeToString()
        path = tmp_path / "step.json"
        tn.profiler.write_trace(path, metadata)
    events = json.loads(path.read_text())["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    assert sorted(names.values()) == ["/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0",
                                      "/job:worker/replica:0/task:1"]
    for event in events:
        if event["ph"] == "X":
            assert event["args"]["device"].startswith(names[event["pid"]])


def test_the_profiler_and_its_hook_at_a_server(cluster, tmp_path):
    with tn.device(TASKS[0]):
        step = tn.train.get_or_create_global_step()
        weights = tn.get_variable("weights", [8, 8])
        count = step.assign_add(1)
    with tn.device(TASKS[1]):
        train = tn.group(tn.matmul(weights, weights), count)
    hook = tn.train.ProfilerHook(save_steps=2, output_dir=str(tmp_path))
    target = cluster.target("worker")
    with tn.train.MonitoredTrainingSession(master=target, hooks=[hook]) as session:
        for _ in range(6):
            session.run(train)
    written = sorted(tmp_path.glob("timeline-*.json"))
    assert written
    ops = {e["name"] for e in json.loads(written[-1].read_text())["traceEvents"]}
    assert "MatMul" in ops and "_Recv" in ops
    profiler = tn.profiler.Profiler()
    with tn.Session(cluster.target("worker")) as session:
        session.run(tn.global_variables_initializer())
        profiler.run(session, train)
    assert "MatMul" in profiler.table(peak_gflops=1.0)


def test_a_failed_run_has_no_trace(cluster):
    with tn.device(TASKS[2]):
        bad = tn.matmul(tn.placeholder(tn.float32, [None, None], name="a"), tn.ones([2, 2]))
    metadata = tn.RunMetadata()
    with tn.Session(cluster.target("worker")) as session:
        with pytest.raises(tn.errors.InvalidArgumentError):
            session.run(bad, {"a:0": np.ones([2, 3])},
                        tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE), metadata)
    assert metadata.nodes == []
