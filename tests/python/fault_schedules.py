# SPDX-License-Identifier: Apache-2.0
"""A program: fault_schedules.py MODE FIRST COUNT. Servers and clients of this one process train
under random schedules of faults, carried by the tests' transport without a network
(tests/transport), which delays messages, cuts connections and lets them fall silent. Run by
test_fault_schedules.py. Prints a line for each seed; one that takes more than 90 seconds ends the
program with the stacks of all threads."""

import faulthandler
import logging
import os
import random
import re
import sys
import tempfile
import threading
import time

import numpy as np

import treenail as tn

LAST, SILENCE_MS = 8, 40
LOST = (tn.errors.UnavailableError, tn.errors.AbortedError, tn.errors.DeadlineExceededError)
NAMES_A_TASK = re.compile("/job:|the server localhost:|this server has no such session")


class Servers:
    """One process's cluster, with faults by the seed."""

    def __init__(self, seed, cuts=60, silences=15, most=6, **tasks):
        os.environ["TREENAIL_TEST_FAULTS"] = "%d %d %d %d %d" % (seed, cuts, silences, most, 300)
        port = 1000
        self.spec = {}
        for job, count in tasks.items():
            self.spec[job] = ["localhost:%d" % (port + i) for i in range(count)]
            port += count
        self.config = tn.ConfigProto(keepalive_in_ms=SILENCE_MS)
        self.servers = {(job, i): tn.train.Server(self.spec, job, i, config=self.config)
                        for job, count in tasks.items() for i in range(count)}

    def restart(self, task):
        self.servers[task].stop()
        self.servers[task].start()

    def target(self, job, index=0):
        return "grpc://" + self.spec[job][index]

    def close(self):
        for server in self.servers.values():
            server.stop()


def allowed(error):
    """Raises what is no way to end."""
    if not isinstance(error, LOST) or not NAMES_A_TASK.search(str(error)):
        raise AssertionError("ended with %r" % error) from error
    return type(error).__name__


def read(servers, values):
    """Their values, when the connections hold."""
    for _ in range(10):
        try:
            with tn.Session(servers.target("ps"), config=servers.config) as session:
                return session.run(values)
        except LOST as error:
            allowed(error)
    raise AssertionError("more than ten connections were lost")


# --- One client, whose graph lies across all tasks --------------------------------------------

def across(devices):
    """(training step, weights, global step): two workers' parts of a gradient."""
    with tn.device(devices[0]):
        w = tn.get_variable("w", [6], initializer=tn.ones_initializer())
        step = tn.train.get_or_create_global_step()
    parts = []
    for i, device in enumerate(devices[1:]):
        with tn.device(device):
            x = tn.constant(np.linspace(0.1, 1 + i, 6).astype(np.float32))
            parts.append(tn.sin(w * x) * tn.cast(step + 1, tn.float32))
    with tn.device(devices[0]):
        with tn.control_dependencies(parts):
            train = tn.group(w.assign_sub(0.1 * (parts[0] + parts[1])), step.assign_add(1))
    return train, w, step


def expected():
    """By number of steps, the weights of one process."""
    with tn.Graph().as_default(), tn.Session() as session:
        train, w, _ = across(["", "", ""])
        session.run(tn.global_variables_initializer())
        found = [session.run(w)]
        for _ in range(4 * LAST):
            session.run(train)
            found.append(session.run(w))
    return found


class Restart(tn.train.SessionRunHook):
    """Restarts a task, at a time by chance, in one schedule of three."""

    def __init__(self, servers, rng):
        tasks = [t for t in servers.servers if t != ("worker", 0)]
        self.servers, self.task = servers, rng.choice(tasks)
        self.left = rng.randrange(2 * LAST) if rng.random() < 0.34 else -1

    def after_run(self, run_context, run_values):
        self.left -= 1
        if self.left == 0:
            self.servers.restart(self.task)


def in_graph(seed, folder, state):
    state = state or expected()
    rng, servers = random.Random(seed), Servers(seed, ps=1, worker=2)
    devices = ["/job:ps", "/job:worker/task:0", "/job:worker/task:1"]
    with tn.Graph().as_default():
        train, w, step = across(devices)
        hooks = [tn.train.StopAtStepHook(last_step=LAST), Restart(servers, rng)]
        told = "ended"
        try:
            with tn.train.MonitoredTrainingSession(
                    master=servers.target("worker"), checkpoint_dir=folder, hooks=hooks,
                    save_checkpoint_steps=2, log_step_count_steps=None,
                    save_summaries_steps=None, config=servers.config) as session:
                while not session.should_stop():
                    session.run(train)
            there = read(servers, [step, w])
            assert LAST <= there[0] < 4 * LAST, there[0]
            assert (there[1] == state[there[0]]).all(), (there, state[there[0]])
        except LOST as error:  # what end() of a hook does is not begun again
            told = allowed(error)
    checkpoint = tn.train.latest_checkpoint(folder)
    assert checkpoint or told != "ended"
    if checkpoint:
        saved = tn.train.load_checkpoint(checkpoint)
        assert (saved.get_tensor("w") == state[saved.get_tensor("global_step")]).all()
    servers.close()
    return state, told


# --- Workers that add to shared variables, each for itself ------------------------------------

def asynchronous(seed, folder, state):
    servers, workers, tries = Servers(seed, ps=1, worker=3), 3, 8
    done, failed, wrong = [0] * workers, [0] * workers, []

    def graph():
        with tn.device("/job:ps/task:0"):
            total = tn.get_variable("total", [3], initializer=tn.zeros_initializer())
        with tn.device("/job:ps/task:0"):
            return total, total.assign_add(tn.fill([3], 1.0))

    def work(index):
        config = tn.ConfigProto(keepalive_in_ms=SILENCE_MS, device_filters=["/job:ps"],
                                operation_timeout_in_ms=20000)
        session = None
        try:
            with tn.Graph().as_default():
                _, add = graph()
                while done[index] + failed[index] < tries:
                    try:
                        session = session or tn.Session(servers.target("worker", index),
                                                        config=config)
                    except LOST as error:
                        allowed(error)
                        continue
                    try:
                        session.run(add)
                        done[index] += 1
                    except LOST as error:
                        allowed(error)
                        failed[index] += 1
                        session = session.close()
        except BaseException as error:
            wrong.append(error)
    with tn.Graph().as_default():
        total, _ = graph()
        while True:
            try:
                with tn.Session(servers.target("ps"), config=servers.config) as session:
                    session.run(total.initializer)
                break
            except LOST as error:
                allowed(error)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if wrong:
            raise wrong[0]
        found = read(servers, total)
    servers.close()
    assert (found == found[0]).all()
    assert sum(done) <= found[0] <= sum(done) + sum(failed), (found, done, failed)
    return None, "%d made, %d lost" % (sum(done), sum(failed))


# --- SyncReplicasOptimizer with a worker that is not waited for --------------------------------

def sync_replicas(seed, folder, state):
    servers, workers = Servers(seed, most=3, ps=1, worker=3), 3
    ends, wrong = [""] * workers, []

    def graph():
        with tn.device("/job:ps/task:0"):
            w = tn.get_variable("w", [3], initializer=tn.zeros_initializer())
            step = tn.train.get_or_create_global_step()
        return w, step

    def work(index):
        config = tn.ConfigProto(keepalive_in_ms=SILENCE_MS, operation_timeout_in_ms=1500,
                                device_filters=["/job:ps", "/job:worker/task:%d" % index])
        try:
            with tn.Graph().as_default():
                w, step = graph()
                optimizer = tn.train.SyncReplicasOptimizer(
                    tn.train.GradientDescentOptimizer(1.0), replicas_to_aggregate=2,
                    total_num_replicas=workers)
                with tn.device("/job:worker/task:%d" % index):
                    loss = tn.reduce_sum(w)
                train = optimizer.minimize(loss, global_step=step)
                hooks = [optimizer.make_session_run_hook(index == 0),
                         tn.train.StopAtStepHook(last_step=LAST)]
                with tn.train.MonitoredTrainingSession(
                        master=servers.target("worker", index), is_chief=index == 0, hooks=hooks,
                        checkpoint_dir=folder if index == 0 else None, save_checkpoint_steps=2,
                        log_step_count_steps=None, save_summaries_steps=None, config=config,
                        max_wait_secs=20, stop_grace_period_secs=5) as session:
                    while not session.should_stop():
                        session.run(train)
            ends[index] = "ended"
        except LOST as error:
            ends[index] = allowed(error)
        except BaseException as error:
            wrong.append(error)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]
    checkpoint = tn.train.latest_checkpoint(folder)
    if checkpoint:  # each step moves by the mean of gradients of 1
        saved = tn.train.load_checkpoint(checkpoint)
        assert (saved.get_tensor("w") == -saved.get_tensor("global_step")).all(), (
            saved.get_tensor("w"), saved.get_tensor("global_step"))
    servers.close()
    return None, ", ".join(ends)


# --- SyncReplicasOptimizer without backup workers: each step waits for all ----------------------

def shared_model():
    """Two variables, and what a worker makes of them: (variables, step, loss of a worker)."""
    w = tn.get_variable("w", [6], initializer=tn.ones_initializer())
    v = tn.get_variable("v", [6], initializer=tn.ones_initializer())

    def loss(worker):
        x = tn.constant(np.linspace(0.1, 1 + worker, 6).astype(np.float32))
        return tn.reduce_sum(tn.sin(w * x) * v)
    return [w, v], tn.train.get_or_create_global_step(), loss


def in_one_process(workers):
    """By number of steps, the variables of one process that adds the workers' gradients."""
    with tn.Graph().as_default(), tn.Session() as session:
        variables, _, loss = shared_model()
        parts = [tn.gradients(loss(i), variables) for i in range(workers)]
        means = [sum(each[1:], each[0]) / float(workers) for each in zip(*parts)]
        train = tn.train.GradientDescentOptimizer(0.1).apply_gradients(zip(means, variables))
        session.run(tn.global_variables_initializer())
        found = [session.run(variables)]
        for _ in range(2 * LAST):
            session.run(train)
            found.append(session.run(variables))
    return found


class InStep:
    """Workers that train in step. One that ends with an error is started again, as by whoever
    watches over a cluster, until the chief has reached the last step."""

    WORKERS, STARTS = 3, 8

    def __init__(self, servers, folder):
        self.servers, self.folder = servers, folder
        self.over, self.ends, self.wrong = threading.Event(), [], []

    def device(self, index):
        return tn.train.replica_device_setter(cluster=tn.train.ClusterSpec(self.servers.spec),
                                              worker_device="/job:worker/task:%d" % index)

    def train(self, index):
        config = tn.ConfigProto(keepalive_in_ms=SILENCE_MS, operation_timeout_in_ms=1500,
                                device_filters=["/job:ps", "/job:worker/task:%d" % index])
        with tn.Graph().as_default(), tn.device(self.device(index)):
            _, step, loss = shared_model()
            optimizer = tn.train.SyncReplicasOptimizer(
                tn.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=self.WORKERS,
                total_num_replicas=self.WORKERS)
            train = optimizer.minimize(loss(index), global_step=step)
            hooks = [optimizer.make_session_run_hook(index == 0),
                     tn.train.StopAtStepHook(last_step=LAST)]
            with tn.train.MonitoredTrainingSession(
                    master=self.servers.target("worker", index), is_chief=index == 0, hooks=hooks,
                    checkpoint_dir=self.folder if index == 0 else None, save_checkpoint_steps=2,
                    log_step_count_steps=None, save_summaries_steps=None, config=config,
                    max_wait_secs=20, stop_grace_period_secs=5) as session:
                while not session.should_stop():
                    session.run(train)

    def work(self, index):
        try:
            for _ in range(self.STARTS):
                pause = 0.05
                try:
                    self.train(index)
                    if index == 0:
                        self.over.set()
                    pause = 2.0  # for the chief, which may be set back to the last checkpoint yet
                except LOST as error:
                    self.ends.append(allowed(error))
                if self.over.wait(pause):
                    return
            raise AssertionError("worker %d was started %d times" % (index, self.STARTS))
        except BaseException as error:
            self.wrong.append(error)

    def run(self):
        threads = [threading.Thread(target=self.work, args=(i,)) for i in range(self.WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.wrong:
            raise self.wrong[0]


def in_step(seed, folder, state):
    state = state or in_one_process(InStep.WORKERS)
    servers = Servers(seed, most=3, ps=2, worker=InStep.WORKERS)
    training = InStep(servers, folder)
    training.run()
    saved = tn.train.load_checkpoint(tn.train.latest_checkpoint(folder))
    with tn.Graph().as_default(), tn.device(training.device(0)):
        variables, step, _ = shared_model()
        there = read(servers, [step] + variables)
    for found in (there, [saved.get_tensor(name) for name in ("global_step", "w", "v")]):
        assert LAST <= found[0] <= 2 * LAST, found
        assert (np.array(found[1:]) == state[found[0]]).all(), (found, state[found[0]])
    servers.close()
    return state, "ended after %d errors" % len(training.ends)


# --- Runs in parts and traced runs over all tasks ----------------------------------------------

def in_parts(session, feeds, sums, rng):
    """One run in three parts, whose values are known."""
    handle = session.partial_run_setup(sums, feeds)
    given, total = [float(rng.randrange(100)) for _ in feeds], 0.0
    for feed, value, wanted in zip(feeds, given, sums):
        total += value
        got = session.partial_run(handle, wanted, {feed: value})
        assert got == total, (got, total)
    options, metadata = tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE), tn.RunMetadata()
    got = session.run(sums[-1], dict(zip(feeds, given)), options, metadata)
    assert got == total and metadata.nodes, (got, total)


def parts(seed, folder, state):
    rng, servers = random.Random(seed), Servers(seed, ps=1, worker=2)
    restart, told = rng.randrange(3 * LAST), "ended"
    with tn.Graph().as_default():
        feeds, sums, total = [], [], 0.0
        for task in ["/job:ps", "/job:worker/task:0", "/job:worker/task:1"]:
            with tn.device(task):
                feeds.append(tn.placeholder(tn.float32, []))
                total = feeds[-1] + total
                sums.append(total)
        for attempt in range(10):
            try:
                with tn.Session(servers.target("worker"), config=servers.config) as session:
                    for i in range(LAST):
                        if attempt == 0 and i == restart:
                            servers.restart(("worker", 1))
                        in_parts(session, feeds, sums, rng)
                break
            except LOST as error:
                told = allowed(error)
        else:
            raise AssertionError("more than ten connections were lost")
    servers.close()
    return state, told


def main():
    mode, first, count = globals()[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])
    logging.getLogger("treenail").setLevel(logging.ERROR)
    tn.train._wrapped_sessions.RecoverableSession.FIRST_PAUSE = 0.001
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    state = None
    for seed in range(first, first + count):
        faulthandler.dump_traceback_later(90, exit=True)
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(dir=memory) as folder:
            print("seed", seed, end=" ", flush=True)
            state, told = mode(seed, folder, state)
        print("%s: %s, %.2f s" % (sys.argv[1], told, time.monotonic() - begun), flush=True)
        tn.summary.FileWriterCache.clear()
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main()
