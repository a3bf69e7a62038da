# SPDX-License-Identifier: Apache-2.0
"""tn.train.Coordinator and LooperThread: threads that stop together."""

import sys
import threading
import time

import pytest

import treenail as tn


def started(*targets):
    threads = [threading.Thread(target=target, daemon=True) for target in targets]
    for thread in threads:
        thread.start()
    return threads


def test_threads_stop_when_one_asks():
    coord, counts = tn.train.Coordinator(), [0, 0, 0]

    def count(i):
        while not coord.should_stop():
            counts[i] += 1
            if i == 0 and counts[0] == 100:
                coord.request_stop()
    threads = started(*[lambda i=i: count(i) for i in range(3)])
    coord.join(threads)
    assert counts[0] == 100 and coord.joined and coord.should_stop()
    assert not any(thread.is_alive() for thread in threads)


def test_the_first_exception_is_raised_by_join():
    coord = tn.train.Coordinator()
    both = threading.Barrier(2)

    def fail(error, late):
        with coord.stop_on_exception():
            both.wait()
            if late:
                coord.wait_for_stop()
            raise error
    threads = started(lambda: fail(ValueError("first"), False),
                      lambda: fail(KeyError("second"), True))
    with pytest.raises(ValueError, match="first"):
        coord.join(threads)
    with pytest.raises(ValueError, match="first"):
        coord.raise_requested_exception()


def test_a_clean_end_of_data_is_no_error():
    coord = tn.train.Coordinator()
    limit = tn.Variable(0)
    step = tn.count_up_to(limit, 20)
    session = tn.Session()
    session.run(limit.initializer)

    def work():
        with coord.stop_on_exception():
            while not coord.should_stop():
                session.run(step)
    coord.join(started(work, work))
    assert session.run(limit) == 20
    own = tn.train.Coordinator(clean_stop_exception_types=(KeyError,))
    with own.stop_on_exception():
        raise KeyError("clean here")
    own.join()
    with own.stop_on_exception():
        pass
    assert own.should_stop()


def test_stragglers_are_named():
    coord, release = tn.train.Coordinator(), threading.Event()
    thread = threading.Thread(target=release.wait, name="stubborn", daemon=True)
    thread.start()
    coord.request_stop()
    with pytest.raises(RuntimeError, match="threads still running: stubborn"):
        coord.join([thread], stop_grace_period_secs=0.1)
    coord.clear_stop()
    coord.request_stop()
    coord.join([thread], stop_grace_period_secs=0.1, ignore_live_threads=True)
    release.set()


def test_a_request_after_join_is_raised_where_it_is_made():
    coord = tn.train.Coordinator()
    coord.request_stop()
    coord.join()
    coord.request_stop()
    with pytest.raises(ValueError, match="late"):
        coord.request_stop(ValueError("late"))


def test_what_sys_exc_info_gives_is_taken():
    coord = tn.train.Coordinator()
    try:
        raise ValueError("told")
    except ValueError:
        coord.request_stop(sys.exc_info())
    with pytest.raises(ValueError, match="told"):
        coord.join()
    coord.clear_stop()
    assert not coord.should_stop() and not coord.joined
    with pytest.raises(TypeError, match="ex must be an exception or what sys.exc_info"):
        coord.request_stop("stop")


def test_waiting_for_the_request():
    coord = tn.train.Coordinator()
    assert coord.wait_for_stop(0.01) is False
    started(coord.request_stop)
    assert coord.wait_for_stop(60) is True


def test_registered_threads_are_joined():
    coord, ended = tn.train.Coordinator(), []

    def work():
        coord.wait_for_stop()
        time.sleep(0.05)
        ended.append(True)
    thread, = started(work)
    coord.register_thread(thread)
    coord.request_stop()
    coord.join()
    assert ended == [True]


def test_a_looper_calls_until_the_coordinator_stops():
    coord, calls = tn.train.Coordinator(), []

    def call(*args, **kwargs):
        calls.append((args, kwargs))
        if len(calls) == 3:
            coord.request_stop()
    tn.train.LooperThread.loop(coord, None, call, args=(1,), kwargs={"b": 2})
    coord.join()
    assert calls == [((1,), {"b": 2})] * 3
    coord.clear_stop()
    del calls[:]
    looper = tn.train.LooperThread(coord, 0.01, call)
    looper.start()
    coord.join([looper])
    assert len(calls) == 3
    with pytest.raises(ValueError, match="'coord' argument must be a Coordinator: 3"):
        tn.train.LooperThread(3, None)


def test_what_a_looper_raises_goes_to_join():
    coord = tn.train.Coordinator()

    def fail():
        raise ValueError("in the loop")
    tn.train.LooperThread.loop(coord, 0.01, fail)
    with pytest.raises(ValueError, match="in the loop"):
        coord.join()
