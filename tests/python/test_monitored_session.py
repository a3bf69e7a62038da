# SPDX-License-Identifier: Apache-2.0
"""Sessions that survive: made ready, made anew when a task is lost, ended with their threads."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import treenail as tn
from needs import needs_hdf5

LOST = [tn.errors.AbortedError, tn.errors.UnavailableError]


def counting():
    """(operation of a step, global step, variable that a step adds 2 to)."""
    step = tn.train.get_or_create_global_step()
    total = tn.get_variable("total", [], initializer=tn.zeros_initializer())
    return tn.group(step.assign_add(1), total.assign_add(2.0)), step, total


class Failing(tn.train.SessionRunHook):
    """Raises an error after (or before) runs of these numbers, each once, and notes what is
    called."""

    def __init__(self, error, at, before=False):
        self.error, self.at, self.before, self.runs = error, list(at), before, 0
        self.calls = []

    def begin(self):
        self.calls.append("begin")

    def after_create_session(self, session, coord):
        self.calls.append("session")

    def _fail(self):
        self.runs += 1
        if self.runs in self.at:
            raise self.error(None, None, "a task was lost")

    def before_run(self, run_context):
        if self.before:
            self._fail()

    def after_run(self, run_context, run_values):
        if not self.before:
            self._fail()

    def end(self, session):
        self.calls.append("end")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Lost sessions come back without pauses."""
    monkeypatch.setattr(tn.train._wrapped_sessions.RecoverableSession, "FIRST_PAUSE", 0.001)
    yield
    tn.summary.FileWriterCache.clear()


# --- The loop -------------------------------------------------------------------------------------


def test_a_session_is_initialised_and_the_graph_final():
    train, step, total = counting()
    with tn.train.MonitoredSession() as session:
        assert tn.get_default_graph().finalized and session.graph is tn.get_default_graph()
        session.run(train)
        assert session.run([step, total]) == [1, 2.0]
        assert not session.should_stop()
    assert not tn.get_default_graph().finalized
    assert session.should_stop() and session.graph is None
    for call in (session.close, lambda: session.run(step)):
        with pytest.raises(RuntimeError, match="already closed"):
            call()


def test_hooks_are_called_in_order():
    train, step, _ = counting()
    told = []

    class Telling(tn.train.SessionRunHook):
        def begin(self):
            told.append("begin")
            self.extra = tn.constant(7)  # the graph may still grow

        def after_create_session(self, session, coord):
            told.append(session.run(self.extra))
            assert isinstance(coord, tn.train.Coordinator)
            with pytest.raises(RuntimeError, match="finalized"):
                tn.constant(1)

        def before_run(self, run_context):
            told.append("before")
            assert run_context.original_args.fetches is train
            return tn.train.SessionRunArgs({"extra": self.extra, "step": step})

        def after_run(self, run_context, run_values):
            told.append(run_values.results)
            assert isinstance(run_values.run_metadata, tn.RunMetadata)
            assert isinstance(run_values.options, tn.RunOptions)
            if run_values.results["step"] >= 1:
                run_context.request_stop()

        def end(self, session):
            told.append(("end", session.run(step)))
    with tn.train.MonitoredSession(hooks=[Telling()]) as session:
        while not session.should_stop():
            session.run(train)
        with pytest.raises(RuntimeError, match="even after should_stop"):
            session.run(train)
    assert told == ["begin", 7, "before", {"extra": 7, "step": 0}, "before",
                    {"extra": 7, "step": 1}, ("end", 2)]


def test_feeds_and_options_of_hooks_are_merged():
    x, y = tn.placeholder(tn.float32, []), tn.placeholder(tn.float32, [])
    both = x * 10 + y
    seen = []

    class Asking(tn.train.SessionRunHook):
        def __init__(self, **asked):
            self.asked = asked

        def before_run(self, run_context):
            return tn.train.SessionRunArgs(None, **self.asked)

        def after_run(self, run_context, run_values):
            seen.append((run_values.results, run_values.options.timeout_in_ms,
                         run_values.options.trace_level, len(run_values.run_metadata.nodes) > 0))
    traced = tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE)
    hooks = [Asking(feed_dict={y: 2.0}, options=tn.RunOptions(timeout_in_ms=50000)),
             Asking(options=traced)]
    with tn.train.MonitoredSession(hooks=hooks) as session:
        own = tn.RunMetadata()
        assert session.run(both, {x: 4.0}, tn.RunOptions(timeout_in_ms=40000), own) == 42.0
        assert own.nodes
        assert seen == [(None, 50000, 3, True)] * 2
        with pytest.raises(RuntimeError, match="Same tensor is fed"):
            session.run(both, {x: 4.0, y: 1.0})


def test_without_hooks_that_fetch_values_are_the_callers(rng):
    x = tn.placeholder(tn.float32, [3])
    value = rng.rand(3).astype(np.float32)
    fetches = {"a": [x * 2, (x,)], "b": x}
    with tn.train.MonitoredSession(hooks=[tn.train.SessionRunHook()]) as session:
        got = session.run(fetches, {x: value})
        np.testing.assert_array_equal(got["a"][0], value * 2)
        np.testing.assert_array_equal(got["a"][1][0], value)
        assert session.run([]) == []


@pytest.mark.parametrize("error, comes_out", [
    (tn.errors.OutOfRangeError(None, None, "the end"), False), (StopIteration("x"), False),
    (ValueError("mine"), True), (KeyboardInterrupt(), True),
    (tn.errors.InvalidArgumentError(None, None, "bad"), True)])
def test_what_leaves_the_block(error, comes_out):
    train, _, _ = counting()
    hook = Failing(tn.errors.AbortedError, [])
    session = tn.train.MonitoredSession(hooks=[hook])
    raised = None
    try:
        with session:
            raise error
    except BaseException as caught:
        raised = caught
    assert raised is (error if comes_out else None)
    assert hook.calls == ["begin", "session"] + ([] if comes_out else ["end"])
    assert session.should_stop() and not tn.get_default_graph().finalized


def test_a_hook_that_fails_at_the_end_leaves_nothing_open():
    counting()

    class Bad(tn.train.SessionRunHook):
        def end(self, session):
            self.session = session
            raise ValueError("mine")
    hook = Bad()
    with pytest.raises(ValueError, match="mine"):
        with tn.train.MonitoredSession(hooks=[hook]):
            pass
    with pytest.raises(tn.errors.FailedPreconditionError, match="closed"):
        hook.session.run(tn.no_op())
    assert not tn.get_default_graph().finalized


def test_steps_that_are_functions():
    train, step, _ = counting()
    stopping = tn.train.StopAtStepHook(last_step=3)

    def advance(step_context):
        step_context.session.run(train)  # no hooks
        return step_context.run_with_hooks(step)
    with tn.train.MonitoredSession(hooks=[stopping]) as session:
        assert session.run_step_fn(advance) == 1

        def end(step_context):
            step_context.request_stop()
        assert session.run_step_fn(end) is None and session.should_stop()
        for wrong in (lambda: 1, lambda context: 1, 3, None, lambda step_context, y: 1):
            with pytest.raises(ValueError, match="step_fn must be a function of one argument"):
                session.run_step_fn(wrong)


# --- Recovery -------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", LOST)
@pytest.mark.parametrize("before", [False, True])
def test_without_a_checkpoint_a_lost_session_begins_anew(error, before):
    train, step, total = counting()
    hook = Failing(error, [3], before)
    with tn.train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(4):
            session.run(train)
        assert session.run([step, total]) == [2, 4.0]  # of the second session
    assert hook.calls == ["begin", "session", "session", "end"]


@needs_hdf5
@pytest.mark.parametrize("error", LOST)
def test_a_lost_session_goes_on_from_the_last_checkpoint(error, tmp_path):
    train, step, total = counting()
    hook = Failing(error, [4, 9, 10])
    seen = []
    with tn.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path), save_checkpoint_steps=2, log_step_count_steps=None,
            hooks=[hook, tn.train.StopAtStepHook(last_step=10)]) as session:
        while not session.should_stop():
            session.run(train)
            seen.append(int(session._raw.run(step)))
    assert hook.calls.count("session") == 4 and seen[-1] == 10
    # The run that failed is done again, from a checkpoint at most two steps before it; it had
    # been saved itself where the checkpoint's hook came first.
    assert all(before - 2 <= after <= before + 2 for before, after in zip(seen, seen[1:]))
    latest = tn.train.latest_checkpoint(str(tmp_path))
    assert latest.endswith("-10") and tn.train.load_variable(latest, "total") == 20.0


@needs_hdf5
def test_a_second_program_goes_on(tmp_path):
    for last in (3, 7):
        with tn.Graph().as_default():
            train, step, total = counting()
            with tn.train.MonitoredTrainingSession(
                    checkpoint_dir=str(tmp_path), save_checkpoint_secs=600,
                    hooks=[tn.train.StopAtStepHook(last_step=last)]) as session:
                begun = session.run(step) if last == 7 else 3
                assert begun == 3
                while not session.should_stop():
                    session.run(train)
    assert tn.train.load_variable(str(tmp_path), "total") == 14.0
    with tn.Graph().as_default():  # a third one has nothing to do
        counting()
        with tn.train.MonitoredTrainingSession(
                checkpoint_dir=str(tmp_path),
                hooks=[tn.train.StopAtStepHook(last_step=7)]) as session:
            assert session.should_stop()
    assert tn.train.load_variable(str(tmp_path), "total") == 14.0


def test_a_session_that_is_lost_while_it_is_made():
    train, step, _ = counting()

    class Creator(tn.train.SessionCreator):
        tries = 0

        def create_session(self):
            self.tries += 1
            if self.tries in (1, 2, 4):
                raise LOST[self.tries % 2](None, None, "not yet")
            return tn.train.ChiefSessionCreator().create_session()
    creator = Creator()
    with tn.train.MonitoredSession(creator, [Failing(LOST[0], [2])]) as session:
        session.run(train)
        session.run(train)
        assert creator.tries == 5 and session.run(step) == 1


def test_a_session_that_does_not_come_back_is_given_up():
    train, _, _ = counting()
    hook = Failing(LOST[1], range(1, 10 ** 6))
    begun = time.monotonic()
    with pytest.raises(tn.errors.UnavailableError, match="a task was lost"):
        with tn.train.MonitoredSession(hooks=[hook], max_wait_secs=0.3) as session:
            session.run(train)
    assert hook.runs > 3 and time.monotonic() - begun < 10


def test_pauses_grow_between_tries(monkeypatch):
    pauses = []
    monkeypatch.setattr(tn.train._wrapped_sessions.time, "sleep", pauses.append)
    train, _, _ = counting()
    with tn.train.MonitoredSession(hooks=[Failing(LOST[0], [1, 2, 3, 4, 6])]) as session:
        session.run(train)
        session.run(train)
    assert pauses == [0.001, 0.002, 0.004, 0.008, 0.001]


def test_other_errors_come_out():
    train, _, _ = counting()
    hook = Failing(tn.errors.InvalidArgumentError, [2])
    with pytest.raises(tn.errors.InvalidArgumentError, match="a task was lost"):
        with tn.train.MonitoredSession(hooks=[hook]) as session:
            session.run(train)
            session.run(train)
    assert hook.calls == ["begin", "session"]


def test_a_singular_session_does_not_recover():
    train, step, _ = counting()
    with pytest.raises(tn.errors.AbortedError):
        with tn.train.SingularMonitoredSession(hooks=[Failing(LOST[0], [2])]) as session:
            assert isinstance(session.raw_session(), tn.Session)
            session.run(train)
            session.run(train)
    assert session.raw_session() is None


def test_a_step_function_is_begun_again_as_a_whole():
    train, step, total = counting()
    begun = []

    def advance(step_context):
        begun.append(step_context.session)
        step_context.session.run(train)
        step_context.run_with_hooks(train)
        return step_context.session.run(step)
    with tn.train.MonitoredSession(hooks=[Failing(LOST[1], [2])]) as session:
        assert session.run_step_fn(advance) == 2
        assert session.run_step_fn(advance) == 2  # a new session's
    assert len(begun) == 3 and begun[1] is not begun[2]


# --- Threads --------------------------------------------------------------------------------------


def queue_of(function, size=3):
    queue = tn.FIFOQueue(size, tn.float32, [])
    value = tn.py_func(function, [], tn.float32)
    value.set_shape([])
    tn.train.add_queue_runner(tn.train.QueueRunner(queue, [queue.enqueue(value)] * 2))
    return queue.dequeue()


def runner_threads():
    return [t for t in threading.enumerate() if t.name.startswith("QueueRunnerThread")]


def test_input_threads_run_and_end():
    element = queue_of(lambda: np.float32(1.5))
    with tn.train.MonitoredSession() as session:
        for _ in range(20):
            assert session.run(element) == 1.5
        assert len(runner_threads()) == 3
    assert runner_threads() == []


def test_the_end_of_the_input_ends_the_loop():
    left = iter(range(7))

    def give():
        try:
            return np.float32(next(left))
        except StopIteration:
            raise tn.errors.OutOfRangeError(None, None, "no more") from None
    queue = tn.FIFOQueue(3, tn.float32, [])
    value = tn.py_func(give, [], tn.float32)
    value.set_shape([])
    tn.train.add_queue_runner(tn.train.QueueRunner(
        queue, [queue.enqueue(value)],
        queue_closed_exception_types=(tn.errors.OutOfRangeError, tn.errors.UnknownError)))
    element, got = queue.dequeue(), []
    with tn.train.MonitoredSession() as session:
        while not session.should_stop():
            got.append(session.run(element))
    assert got == list(range(7)) and runner_threads() == []


def test_errors_of_input_threads_come_out():
    calls = []

    def give():
        calls.append(1)
        if len(calls) > 5:
            raise ValueError("the disk is gone")
        return np.float32(1)
    element = queue_of(give)
    with pytest.raises(Exception, match="the disk is gone"):
        with tn.train.MonitoredSession() as session:
            while not session.should_stop():
                session.run(element)
    assert runner_threads() == []


def test_a_thread_that_lost_its_task_has_the_session_made_anew():
    calls = []

    def give():
        calls.append(1)
        return np.float32(len(calls))
    element = queue_of(give)
    coords = []

    class Noting(tn.train.SessionRunHook):
        def after_create_session(self, session, coord):
            coords.append(coord)
    with tn.train.MonitoredSession(hooks=[Noting()]) as session:
        session.run(element)
        coords[0].request_stop(tn.errors.UnavailableError(None, None, "lost"))
        assert not session.should_stop()
        session.run(element)
        assert len(coords) == 2
        coords[1].request_stop()
        assert session.should_stop()
    assert runner_threads() == []


# --- Who makes sessions ---------------------------------------------------------------------------


def test_initialising():
    v = tn.get_variable("v", [], initializer=tn.zeros_initializer())
    local = tn.get_variable("l", [], initializer=tn.ones_initializer(), trainable=False,
                            collections=[tn.GraphKeys.LOCAL_VARIABLES])
    start = tn.placeholder(tn.float32, [])
    scaffold = tn.train.Scaffold(init_op=v.assign(start), init_feed_dict={start: 3.0},
                                 init_fn=lambda scaffold, session: session.run(add))
    add = v.assign_add(0.5)
    with tn.train.MonitoredSession(tn.train.ChiefSessionCreator(scaffold)) as session:
        assert session.run([v, local]) == [3.5, 1.0]
    assert scaffold.init_fn is not None and scaffold.saver is not None
    copied = tn.train.Scaffold(copy_from_scaffold=scaffold, init_feed_dict={start: 4.0})
    assert copied.init_op is scaffold.init_op and copied.saver is scaffold.saver
    with tn.train.MonitoredSession(tn.train.ChiefSessionCreator(copied)) as session:
        assert session.run(v) == 4.5


def test_a_model_that_is_not_ready():
    v = tn.get_variable("v", [], initializer=tn.zeros_initializer())
    tn.get_variable("w", [], initializer=tn.zeros_initializer())
    scaffold = tn.train.Scaffold(init_op=v.initializer)
    with pytest.raises(RuntimeError, match="did not make model ready.*not initialized: w"):
        tn.train.MonitoredSession(tn.train.ChiefSessionCreator(scaffold))
    assert not tn.get_default_graph().finalized
    manager = tn.train.SessionManager(ready_op=tn.report_uninitialized_variables())
    with pytest.raises(RuntimeError, match="no init_op or init_fn or local_init_op was given"):
        manager.prepare_session("")
    session, ready = manager.recover_session("")
    assert not ready
    session.close()
    with pytest.raises(ValueError, match="you must also pass a local_init_op"):
        tn.train.SessionManager(ready_for_local_init_op=tn.constant([1]))


def test_a_collection_of_several_is_refused():
    counting()
    for _ in range(2):
        tn.add_to_collection(tn.GraphKeys.INIT_OP, tn.no_op())
    with pytest.raises(RuntimeError, match="More than one item in the collection \"init_op\""):
        tn.train.MonitoredSession()


def readiness(after):
    """An operation that names a variable until it was looked at so many times."""
    looks = []

    def look():
        looks.append(1)
        return np.array([b"v"] if len(looks) <= after else [], object)
    return tn.py_func(look, [], tn.string), looks


def test_others_wait_for_the_chief():
    ready, looks = readiness(3)
    value = tn.constant(5)
    scaffold = tn.train.Scaffold(ready_op=ready, ready_for_local_init_op=tn.constant([], tn.string))
    worker = tn.train.WorkerSessionCreator(scaffold, recovery_wait_secs=0.01)
    with tn.train.MonitoredSession(worker) as session:
        assert session.run(value) == 5
    assert len(looks) == 4


def test_the_wait_for_the_chief_has_a_limit():
    tn.get_variable("v", [])
    begun = time.monotonic()
    worker = tn.train.WorkerSessionCreator(max_wait_secs=0.2, recovery_wait_secs=0.02)
    with pytest.raises(tn.errors.DeadlineExceededError, match="after waiting 0.2 secs.*v"):
        tn.train.MonitoredSession(worker)
    assert time.monotonic() - begun < 10


@needs_hdf5
def test_who_is_not_the_chief_saves_nothing(tmp_path):
    ready, _ = readiness(0)
    step = tn.train.get_or_create_global_step()
    scaffold = tn.train.Scaffold(ready_op=ready, ready_for_local_init_op=tn.constant([], tn.string),
                                 local_init_op=step.initializer)
    chief_hook, hook = Failing(LOST[0], []), Failing(LOST[0], [])
    with tn.train.MonitoredTrainingSession(
            is_chief=False, checkpoint_dir=str(tmp_path), save_checkpoint_steps=1,
            scaffold=scaffold, hooks=[hook], chief_only_hooks=[chief_hook]) as session:
        session.run(step)
    assert os.listdir(tmp_path) == []
    assert chief_hook.calls == [] and hook.calls == ["begin", "session", "end"]


@needs_hdf5
def test_a_manager_restores(tmp_path):
    v = tn.get_variable("v", [], initializer=tn.zeros_initializer())
    saver = tn.train.Saver()
    init = tn.global_variables_initializer()
    manager = tn.train.SessionManager(ready_op=tn.report_uninitialized_variables(),
                                      recovery_wait_secs=0.02)
    add = v.assign_add(1.0)
    with manager.prepare_session("", init, saver, str(tmp_path)) as session:
        session.run(add)
        path = saver.save(session, str(tmp_path / "model"), 1)
    with manager.prepare_session("", init, saver, str(tmp_path)) as session:
        assert session.run(v) == 1.0
    with manager.prepare_session("", saver=saver, checkpoint_filename_with_path=path) as session:
        assert session.run(v) == 1.0
    session, ready = manager.recover_session("", saver, str(tmp_path))
    assert ready and session.run(v) == 1.0
    session.close()
    with pytest.raises(ValueError, match="Can not provide both"):
        manager.prepare_session("", init, saver, str(tmp_path), path)
    later = tmp_path / "later"
    later.mkdir()
    begun = time.monotonic()
    with manager.prepare_session("", init, saver, str(later), wait_for_checkpoint=True,
                                 max_wait_secs=0.1) as session:
        assert session.run(v) == 0.0 and time.monotonic() - begun >= 0.1

    def appear():
        time.sleep(0.1)
        with tn.Session(graph=v.graph) as other:
            other.run(init)
            saver.save(other, str(later / "model"), 1)
    thread = threading.Thread(target=appear)
    thread.start()
    session, ready = manager.recover_session("", saver, str(later), wait_for_checkpoint=True,
                                             max_wait_secs=60)
    thread.join()
    assert ready
    session.close()


@needs_hdf5
def test_arguments_of_a_training_session(tmp_path):
    train, _, _ = counting()
    tn.summary.scalar("x", 1.0)
    kinds = []

    def hooks_of(**given):
        with tn.train.MonitoredTrainingSession(**given) as session:
            kinds[:] = [type(hook).__name__ for hook in session._hooks]
            session.run(train)
        return kinds
    folder = str(tmp_path / "a")
    assert hooks_of() == []
    assert hooks_of(checkpoint_dir=folder) == ["StepCounterHook", "SummarySaverHook",
                                               "CheckpointSaverHook"]
    assert hooks_of(checkpoint_dir=folder, save_checkpoint_secs=None, save_summaries_steps=0,
                    log_step_count_steps=None) == []
    assert hooks_of(summary_dir=str(tmp_path / "b")) == ["StepCounterHook", "SummarySaverHook"]
    assert hooks_of(checkpoint_dir=folder, save_summaries_secs=3, save_checkpoint_steps=5,
                    log_step_count_steps=0) == ["SummarySaverHook", "CheckpointSaverHook"]
    with pytest.raises(ValueError, match="save_checkpoint_secs is 3 and save_checkpoint_steps 4"):
        tn.train.MonitoredTrainingSession(save_checkpoint_secs=3, save_checkpoint_steps=4)


# --- Signals --------------------------------------------------------------------------------------

TRAINING = r"""
import sys
import numpy as np
import treenail as tn
folder, catches = sys.argv[1], sys.argv[2] == "catches"
step = tn.train.get_or_create_global_step()
v = tn.get_variable("v", [300, 300], initializer=tn.zeros_initializer())
train = tn.group(v.assign_add(tn.ones([300, 300])), step.assign_add(1))
class Tell(tn.train.SessionRunHook):
    def before_run(self, run_context):
        return tn.train.SessionRunArgs(step)
    def after_run(self, run_context, run_values):
        print(int(run_values.results) + 1, flush=True)
hooks = [Tell()] + [tn.train.StopAtSignalHook()] * catches
with tn.train.MonitoredTrainingSession(checkpoint_dir=folder, save_checkpoint_steps=7,
                                       hooks=hooks) as session:
    while not session.should_stop():
        session.run(train)
"""


@needs_hdf5
@pytest.mark.parametrize("how, catches", [("SIGINT", ""), ("SIGTERM", ""), ("SIGTERM", "catches"),
                                          ("SIGKILL", "")])
def test_signals_lose_nothing_that_was_saved(tmp_path, how, catches):
    process = subprocess.Popen(
        [sys.executable, "-c", TRAINING, str(tmp_path), catches], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    for line in process.stdout:
        if int(line) >= 30:
            break
    process.send_signal(getattr(signal, how))
    output, errors = process.communicate(timeout=60)
    last = int((line + output).split()[-1])
    latest = tn.train.latest_checkpoint(str(tmp_path))
    saved = int(tn.train.load_variable(latest, "global_step"))
    value = tn.train.load_variable(latest, "v")
    assert (value == saved).all(), "the checkpoint is of no one step"
    if catches:
        assert process.returncode == 0, errors
        assert saved == last, "the last steps are lost"
        return
    assert last - 8 <= saved <= last + 1
    if how == "SIGINT":
        assert "KeyboardInterrupt" in errors
    else:
        assert process.returncode == -getattr(signal, how)
