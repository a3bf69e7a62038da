# SPDX-License-Identifier: Apache-2.0
"""Processes of a cluster that are killed or stopped, links that are cut, slow or silent, disks that
are full: what is told, how soon, and that training goes on where it can."""

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import treenail as tn
from cluster_processes import Cluster, serving
from free_ports import free_ports
from slow_link import SlowLink
from small_disk import small_disk

pytestmark = pytest.mark.skipif(
    not {"grpc", "hdf5"} <= set(tn.build_info()["features"]),
    reason="this build has no gRPC, or no checkpoints")
KEEPALIVE_MS = 1000
QUICK = tn.ConfigProto(keepalive_in_ms=KEEPALIVE_MS)


@pytest.fixture(autouse=True)
def graph():
    with tn.Graph().as_default() as made:
        yield made


def counter(job="ps"):
    """(variable, adds 1 to it) at the first task of the job."""
    with tn.device("/job:%s/task:0" % job):
        v = tn.get_variable("v", [], initializer=tn.zeros_initializer())
        return v, v.assign_add(1.0)


def test_a_stopped_task_is_noticed_when_the_keepalive_has_run_out():
    with Cluster(keepalive_in_ms=KEEPALIVE_MS, ps=1, worker=1) as cluster:
        v, add = counter()
        with tn.Session(cluster.target("worker"), config=QUICK) as session:
            session.run(v.initializer)
            cluster.signal("ps", 0, signal.SIGSTOP)
            begun = time.monotonic()
            with pytest.raises(tn.errors.UnavailableError, match="/job:ps/replica:0/task:0"):
                session.run(add)
            assert KEEPALIVE_MS / 2000 < time.monotonic() - begun < 10
            cluster.signal("ps", 0, signal.SIGCONT)
            for _ in range(100):  # it has lost nothing, and what it was sent it may have done
                try:
                    found = session.run(v)
                    break
                except tn.errors.UnavailableError:
                    time.sleep(0.1)
            assert found in (0, 1)


def test_a_stopped_master_is_noticed_by_its_client():
    with Cluster(keepalive_in_ms=KEEPALIVE_MS, worker=1) as cluster:
        v, add = counter("worker")
        with tn.Session(cluster.target("worker"), config=QUICK) as session:
            session.run(v.initializer)
            cluster.signal("worker", 0, signal.SIGSTOP)
            begun = time.monotonic()
            with pytest.raises(tn.errors.UnavailableError, match="the server localhost:"):
                session.run(add)
            assert time.monotonic() - begun < 10
            cluster.signal("worker", 0, signal.SIGCONT)


class KillOnce(tn.train.SessionRunHook):
    """Kills a task once, with the step `at`, and starts it again."""

    def __init__(self, cluster, task, at):
        self.cluster, self.task, self.at, self.killed = cluster, task, at, False

    def after_run(self, run_context, run_values):
        self.at -= 1
        if self.at == 0:
            self.cluster.kill(*self.task)
            self.cluster.start(*self.task)
            self.cluster.wait(*self.task)
            self.killed = True


@pytest.mark.parametrize("task", [("worker", 0), ("worker", 1)])
def test_training_goes_on_when_its_master_or_another_worker_is_killed(task, tmp_path):
    with Cluster(ps=1, worker=2) as cluster:
        v, add = counter()
        with tn.device("/job:worker/task:1"):
            seen = v + 1
        with tn.device("/job:ps/task:0"):
            step = tn.train.get_or_create_global_step()
        with tn.control_dependencies([seen, add]), tn.device("/job:ps/task:0"):
            train = step.assign_add(1)
        hook = KillOnce(cluster, task, at=13)
        with tn.train.MonitoredTrainingSession(
                cluster.target("worker"), checkpoint_dir=str(tmp_path), save_checkpoint_steps=5,
                hooks=[tn.train.StopAtStepHook(last_step=20), hook],
                log_step_count_steps=None, save_summaries_steps=None) as session:
            while not session.should_stop():
                session.run(train)
        assert hook.killed
    saved = tn.train.load_checkpoint(str(tmp_path))
    assert saved.get_tensor("global_step") == saved.get_tensor("v") == 20


@pytest.fixture
def linked(monkeypatch):
    """A parameter server that the others reach over a SlowLink: (its link, the worker's target)."""
    monkeypatch.setenv("TREENAIL_SHARED_MEMORY", "no")  # which would go round it
    ps, worker = free_ports(2)
    with SlowLink(ps) as link:
        seen = {"ps": ["localhost:%d" % link.port], "worker": ["localhost:%d" % worker]}
        own = {"ps": ["localhost:%d" % ps], "worker": seen["worker"]}
        processes = [serving(own, "ps", 0, KEEPALIVE_MS), serving(seen, "worker", 0, KEEPALIVE_MS)]
        try:
            for process in processes:
                assert process.stdout.readline() == "listens\n"
            yield link, "grpc://" + seen["worker"][0]
        finally:
            for process in processes:
                process.kill()
                process.communicate()


def test_a_link_that_is_cut_slow_or_silent(linked):
    link, target = linked
    v, add = counter()
    with tn.device("/job:ps/task:0"):
        never = tn.FIFOQueue(1, tn.float32).dequeue()
        large = tn.ones([1 << 18])  # 1 MiB
    with tn.device("/job:worker/task:0"):
        waits, total = never + 1, tn.reduce_sum(tn.identity(large))

    def within(seconds, fetch):
        begun = time.monotonic()
        with pytest.raises(tn.errors.UnavailableError, match="/job:ps/replica:0/task:0"):
            session.run(fetch)
        assert time.monotonic() - begun < seconds
    with tn.Session(target, config=QUICK) as session:
        session.run(v.initializer)
        threading.Timer(0.3, link.cut).start()
        within(1.3, waits)  # noticed at once
        for _ in range(50):
            try:
                session.run(add)
                break
            except tn.errors.UnavailableError:
                time.sleep(0.05)
        link.delay = 0.02
        for _ in range(3):
            session.run(add)
        assert session.run(v) == 4
        link.delay, link.rate = 0.0, 4 << 20
        begun = time.monotonic()
        assert session.run(total) == 1 << 18
        assert time.monotonic() - begun > 0.1  # it went over the link
        link.rate, link.silent = None, True
        within(8, add)
        link.silent = False


WORKER = """
import sys, time
import treenail as tn
spec, index, last = eval(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
server = tn.train.Server(spec, "worker", index)
with tn.device(tn.train.replica_device_setter(cluster=tn.train.ClusterSpec(spec),
                                              worker_device="/job:worker/task:%d" % index)):
    step = tn.train.get_or_create_global_step()
    made = [tn.get_variable("made%d" % i, [], initializer=tn.zeros_initializer())
            for i in range(3)]
    train = tn.group(made[index].assign_add(1.0), step.assign_add(1))
config = tn.ConfigProto(device_filters=["/job:ps"])
hooks = [tn.train.StopAtStepHook(last_step=last)]
with tn.train.MonitoredTrainingSession(
        server.target, is_chief=index == 0, hooks=hooks, config=config, checkpoint_dir=sys.argv[4],
        save_checkpoint_steps=50, log_step_count_steps=None, save_summaries_steps=None) as session:
    print("trains", flush=True)
    while not session.should_stop():
        session.run(train)
        time.sleep(0.005)
print("ended", flush=True)
"""


def test_workers_leave_come_back_and_join_asynchronous_training(tmp_path):
    absent = [("worker", i) for i in range(3)]
    with Cluster(ps=1, worker=3, absent=absent) as cluster:
        def worker(index):
            return subprocess.Popen([sys.executable, "-c", WORKER, repr(cluster.spec), str(index),
                                     "100000", str(tmp_path)], stdout=subprocess.PIPE, text=True)
        with tn.device("/job:ps/task:0"):
            step = tn.train.get_or_create_global_step()
            made = [tn.get_variable("made%d" % i, []) for i in range(3)]
        processes = {0: worker(0), 1: worker(1)}
        try:
            for each in processes.values():
                assert each.stdout.readline() == "trains\n"
            with tn.Session(cluster.target("ps"),
                            config=tn.ConfigProto(device_filters=["/job:ps"])) as session:
                def more(index):
                    """Waits until this worker has made more steps."""
                    before, end = session.run(made[index]), time.monotonic() + 30
                    while session.run(made[index]) <= before:
                        assert time.monotonic() < end
                        time.sleep(0.01)
                more(0)
                more(1)
                processes[1].kill()  # lost; the other goes on, and nobody waits for the third
                more(0)
                before = session.run(made[1])
                processes[1].wait()
                processes[1] = worker(1)
                assert processes[1].stdout.readline() == "trains\n"
                more(1)
                assert session.run(made[1]) > before
                processes[2] = worker(2)
                assert processes[2].stdout.readline() == "trains\n"
                more(2)
                more(0)
                for each in processes.values():
                    assert each.poll() is None
                assert abs(session.run(step) - sum(session.run(made))) <= 4
        finally:
            for each in processes.values():
                each.kill()
                each.communicate()


def test_a_full_disk_of_a_parameter_server_leaves_the_checkpoint_before(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    with small_disk(folder, "1500k"):
        with Cluster(ps=2, worker=1) as cluster:
            values = []
            for i in range(2):
                with tn.device("/job:ps/task:%d" % i):
                    values.append(tn.get_variable("v%d" % i, [50_000],
                                                  initializer=tn.zeros_initializer()))
            add = tn.group(*[v.assign_add(tn.ones([50_000])) for v in values])
            saver = tn.train.Saver(sharded=True, max_to_keep=10)
            with tn.Session(cluster.target("worker")) as session:
                session.run(tn.global_variables_initializer())
                done = 0
                with pytest.raises(tn.errors.ResourceExhaustedError):
                    for done in range(10):
                        saver.save(session, str(folder / "model"), global_step=done)
                        session.run(add)
                assert done >= 2
                latest = tn.train.latest_checkpoint(str(folder))
                assert latest.endswith("model-%d" % (done - 1))
                for v in values:
                    saved = tn.train.load_variable(latest, v.op.name)
                    np.testing.assert_array_equal(saved, [done - 1] * 50_000)
                saver.restore(session, latest)
                assert session.run(values[1])[7] == done - 1
