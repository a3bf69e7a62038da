# SPDX-License-Identifier: Apache-2.0
"""Training loops under random schedules of faults: each reaches its last step, with what that many
steps give, loses no checkpoint that was acknowledged, and leaves no thread.

TREENAIL_FAULT_SEEDS="200" asks for more than 8 schedules of each kind.
"""

import os
import random
import tempfile
import threading
import time

import numpy as np
import pytest

import treenail as tn

pytestmark = pytest.mark.skipif("hdf5" not in tn.build_info()["features"],
                                reason="this build has no HDF5")
LAST = 12
FAULTS = 9  # at most, in one schedule
SEEDS = range(int(os.environ.get("TREENAIL_FAULT_SEEDS", "8")))


class Faults:
    """Decides where a task is lost."""

    def __init__(self, seed):
        self.rng, self.left, self.told = random.Random(seed), FAULTS, []

    def may_lose(self, where):
        if self.left and self.rng.random() < 0.12:
            self.left -= 1
            self.told.append(where)
            kind = self.rng.choice([tn.errors.AbortedError, tn.errors.UnavailableError])
            raise kind(None, None, "lost: " + where)


class Hook(tn.train.SessionRunHook):
    """Loses tasks around runs, or in a thread beside them."""

    def __init__(self, faults):
        self.faults = faults

    def after_create_session(self, session, coord):
        self.coord = coord
        self.faults.may_lose("after_create_session")

    def before_run(self, run_context):
        if self.faults.left and self.faults.rng.random() < 0.05:
            self.faults.left -= 1
            self.faults.told.append("thread")
            self.coord.request_stop(tn.errors.UnavailableError(None, None, "lost: thread"))
        self.faults.may_lose("before_run")

    def after_run(self, run_context, run_values):
        self.faults.may_lose("after_run")


class Listener(tn.train.CheckpointSaverListener):
    """Loses tasks around checkpoints, and notes what was acknowledged."""

    def __init__(self, faults):
        self.faults, self.saved = faults, []

    def before_save(self, session, global_step_value):
        self.faults.may_lose("before_save")

    def after_save(self, session, global_step_value):
        self.saved.append(global_step_value)
        self.faults.may_lose("after_save")


class Creator(tn.train.ChiefSessionCreator):
    """Loses tasks while it makes sessions of several devices."""

    def __init__(self, faults, *args, **kwargs):
        super().__init__(*args, config=tn.ConfigProto(device_count={"CPU": 2}), **kwargs)
        self.faults = faults

    def create_session(self):
        self.faults.may_lose("create_session")
        return super().create_session()


def model(with_queue):
    """(what a step runs, scaffold): the step and 2 for each step, on two devices."""
    step = tn.train.get_or_create_global_step()
    with tn.device("/cpu:1"):
        total = tn.get_variable("total", [50], initializer=tn.zeros_initializer())
    one = tn.constant(1.0)
    if with_queue:
        queue = tn.FIFOQueue(2, tn.float32, [[]])
        tn.train.add_queue_runner(tn.train.QueueRunner(queue, [queue.enqueue(1.0)] * 2))
        one = queue.dequeue()
    train = tn.group(total.assign_add(tn.fill([50], one * 2.0)), step.assign_add(1))
    return train, tn.train.Scaffold(saver=tn.train.Saver(sharded=True, max_to_keep=2))


@pytest.fixture
def memory_path():
    """A directory in memory, where there is one: a checkpoint is synced at every save."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as path:
        yield path


@pytest.mark.parametrize("with_queue", [False, True])
def test_random_faults(with_queue, memory_path, monkeypatch):
    monkeypatch.setattr(tn.train._wrapped_sessions.RecoverableSession, "FIRST_PAUSE", 0.0005)
    before, told = threading.active_count(), set()
    for seed in SEEDS:
        faults, folder = Faults(seed), os.path.join(memory_path, str(seed))
        with tn.Graph().as_default():
            train, scaffold = model(with_queue)
            listener = Listener(faults)
            hooks = [tn.train.CheckpointSaverHook(folder, save_steps=3, scaffold=scaffold,
                                                  listeners=[listener]),
                     Hook(faults), tn.train.StopAtStepHook(last_step=LAST)]
            begun, runs = time.monotonic(), 0
            session = tn.train.MonitoredSession(
                Creator(faults, scaffold, checkpoint_dir=folder), hooks, max_wait_secs=30)
            try:
                while not session.should_stop():
                    session.run(train)
                    runs += 1
                    assert runs < 50 * LAST
                faults.left = 0  # what end() does is not repeated
            finally:
                session.close()
            assert time.monotonic() - begun < 60
        told.update(faults.told)
        state = tn.train.get_checkpoint_state(folder)
        # A run that is lost when the last step was saved is begun again, and makes one more.
        last = int(state.model_checkpoint_path.rpartition("-")[2])
        assert LAST <= last <= LAST + faults.told.count("after_run") + faults.told.count(
            "after_save") + faults.told.count("thread"), faults.told
        assert listener.saved[-1] == last
        for path in state.all_model_checkpoint_paths:
            at = int(path.rpartition("-")[2])
            assert tn.train.load_variable(path, "global_step") == at
            np.testing.assert_array_equal(tn.train.load_variable(path, "total"), [2.0 * at] * 50)
    tn.summary.FileWriterCache.clear()
    assert told == {"create_session", "after_create_session", "before_run", "after_run",
                    "before_save", "after_save", "thread"}
    end = time.monotonic() + 30
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() <= before, threading.enumerate()
