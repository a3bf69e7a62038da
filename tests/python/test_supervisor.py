# SPDX-License-Identifier: Apache-2.0
"""tn.train.Supervisor: what it makes, its sessions, its threads."""

import os
import threading
import time

import numpy as np
import pytest

import treenail as tn
from needs import needs_hdf5


def counting():
    step = tn.train.get_or_create_global_step()
    return step.assign_add(1, read_value=False), step


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "nothing happens"
        time.sleep(0.01)


@needs_hdf5
def test_a_session_with_services(tmp_path):
    train, step = counting()
    tn.summary.scalar("step", step)
    supervisor = tn.train.Supervisor(logdir=str(tmp_path), save_model_secs=0.05,
                                     save_summaries_secs=0.05)
    assert tn.get_default_graph().finalized and supervisor.is_chief
    assert supervisor.save_path == str(tmp_path / "model.ckpt")
    with supervisor.managed_session() as session:
        assert tn.get_default_session() is session
        until(lambda: (session.run(train), session.run(step) > 20
                       and tn.train.latest_checkpoint(str(tmp_path)))[1])
        assert not supervisor.should_stop()
        supervisor.request_stop()
    assert supervisor.should_stop() and supervisor.coord.joined
    with pytest.raises(tn.errors.FailedPreconditionError):
        session.run(step)
    saved = int(tn.train.load_variable(str(tmp_path), "global_step"))
    assert tn.train.latest_checkpoint(str(tmp_path)).endswith("-%d" % saved)
    leaf, = [name for name in os.listdir(tmp_path) if "tfevents" in name]
    data = (tmp_path / leaf).read_bytes()
    assert b"step" in data and b"global_step/sec" in data
    with supervisor.managed_session() as session:  # goes on
        assert session.run(step) == saved


def test_without_a_directory_there_are_no_services():
    train, step = counting()
    supervisor = tn.train.Supervisor()
    before = threading.active_count()
    with supervisor.managed_session() as session:
        assert threading.active_count() == before
        session.run(train)
        assert session.run(supervisor.global_step) == 1
        with pytest.raises(RuntimeError, match="requires a summary writer"):
            supervisor.summary_computed(session, b"")


def test_what_is_given_is_used():
    v = tn.get_variable("v", [], initializer=tn.zeros_initializer())
    start = tn.placeholder(tn.float32, [])
    add = v.assign_add(0.5)
    supervisor = tn.train.Supervisor(init_op=v.assign(start), init_feed_dict={start: 2.0},
                                     init_fn=lambda session: session.run(add), saver=None,
                                     summary_op=None, summary_writer=None)
    assert supervisor.saver is None and supervisor.summary_op is None
    with supervisor.managed_session() as session:
        assert session.run(v) == 2.5
    with tn.Graph().as_default():
        tn.get_variable("w", [], initializer=tn.zeros_initializer())
        with pytest.raises(RuntimeError, match="did not make model ready.*w"):
            with tn.train.Supervisor(init_op=tn.no_op()).managed_session():
                pass


@pytest.mark.parametrize("raised, comes_out", [
    (ValueError("mine"), True), (tn.errors.OutOfRangeError(None, None, "the end"), False),
    (KeyboardInterrupt(), True)])
def test_what_leaves_the_block(raised, comes_out):
    counting()
    supervisor = tn.train.Supervisor()
    caught = None
    try:
        with supervisor.managed_session() as session:
            raise raised
    except BaseException as error:
        caught = error
    assert caught is (raised if comes_out else None)
    assert supervisor.should_stop()
    with pytest.raises(tn.errors.FailedPreconditionError):
        session.run(tn.train.get_global_step())


def test_threads_of_ones_own():
    counting()
    supervisor = tn.train.Supervisor()
    called = []
    with supervisor.managed_session() as session:
        supervisor.loop(0.001, called.append, args=[7])
        until(lambda: len(called) > 3)
        assert session.run(supervisor.global_step) == 0
    count = len(called)
    time.sleep(0.02)
    assert len(called) == count and set(called) == {7}

    def bad():
        raise ValueError("the thread's own")
    with pytest.raises(ValueError, match="the thread's own"):
        with supervisor.managed_session():
            supervisor.loop(None, bad)
            until(supervisor.should_stop)


def test_queue_runners_are_started_and_stopped():
    queue = tn.FIFOQueue(3, tn.float32, [])
    value = tn.py_func(lambda: np.float32(2), [], tn.float32)
    value.set_shape([])
    tn.train.add_queue_runner(tn.train.QueueRunner(queue, [queue.enqueue(value)]))
    element = queue.dequeue()
    supervisor = tn.train.Supervisor(stop_grace_secs=30)
    with supervisor.managed_session() as session:
        assert [session.run(element) for _ in range(9)] == [2.0] * 9
    assert not [t for t in threading.enumerate() if t.name.startswith("QueueRunnerThread")]


def test_others_wait():
    looks = []

    def look():
        looks.append(1)
        return np.array([b"v"] if len(looks) < 3 else [], object)
    ready = tn.py_func(look, [], tn.string)
    supervisor = tn.train.Supervisor(is_chief=False, ready_op=ready, local_init_op=None,
                                     recovery_wait_secs=0.01)
    with supervisor.managed_session() as session:
        assert len(looks) == 3
        with pytest.raises(RuntimeError, match="Only chief supervisor can start standard"):
            supervisor.start_standard_services(session)
    with tn.Graph().as_default():
        tn.get_variable("w", [])
        late = tn.train.Supervisor(is_chief=False, recovery_wait_secs=0.01)
        with pytest.raises(tn.errors.DeadlineExceededError, match="w"):
            late.prepare_or_wait_for_session(max_wait_secs=0.05)
