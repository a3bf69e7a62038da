# SPDX-License-Identifier: Apache-2.0
"""Hooks of training loops: when each does what, and what it writes."""

import io
import json
import logging
import os
import re
import signal
import threading

import numpy as np
import pytest

import treenail as tn
from needs import needs_hdf5


class Clock:
    """Time that passes when a test says so."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(tn.train._basic_hooks, "time", made)
    monkeypatch.setattr(tn.train._progress_hook, "time", made)
    return made


@pytest.fixture(autouse=True)
def closed_writers():
    yield
    tn.summary.FileWriterCache.clear()


@pytest.fixture
def train():
    """An operation that adds one to the global step."""
    return tn.train.get_or_create_global_step().assign_add(1, read_value=False)


def loop(train, hooks, runs=1000, feeds=lambda: None, between=lambda: None):
    """Runs until a hook asks to stop, or so many times; how many times it was."""
    done = 0
    with tn.train.MonitoredSession(hooks=hooks) as session:
        while not session.should_stop() and done < runs:
            session.run(train, feeds())
            between()
            done += 1
    return done


def events(folder):
    """The events of a directory, read by a plain second reader of TFRecord files."""
    found = []
    for leaf in sorted(os.listdir(folder)):
        if "tfevents" not in leaf:
            continue
        with open(os.path.join(folder, leaf), "rb") as file:
            data = file.read()
        at = 0
        while at < len(data):
            size = int.from_bytes(data[at:at + 8], "little")
            found.append(tn.Event.FromString(data[at + 12:at + 12 + size]))
            at += 16 + size
    return found


def values(folder):
    """[(step, tag, value)] of all summaries."""
    return [(event.step, value.tag, value.simple_value) for event in events(folder)
            for value in (event.summary.value if event.summary else ())]


# --- The timer ------------------------------------------------------------------------------------


def test_a_timer_of_steps():
    timer = tn.train.SecondOrStepTimer(every_steps=3)
    due = []
    for step in range(12):
        for _ in range(2):  # the second question at one step is answered by no
            if timer.should_trigger_for_step(step):
                due.append((step, timer.update_last_triggered_step(step)[1]))
    assert due == [(0, None), (3, 3), (6, 3), (9, 3)]
    assert timer.last_triggered_step() == 9
    timer.reset()
    assert timer.last_triggered_step() is None and timer.should_trigger_for_step(9)


def test_a_timer_of_seconds(clock):
    timer = tn.train.SecondOrStepTimer(every_secs=1.0)
    due = []
    for step in range(10):
        if timer.should_trigger_for_step(step):
            due.append((step, timer.update_last_triggered_step(step)))
        clock.now += 0.4
    assert [step for step, _ in due] == [0, 3, 6, 9]
    assert due[1][1] == (pytest.approx(1.2), 3)


@pytest.mark.parametrize("given, error", [
    ({}, ValueError), ({"every_secs": 1.0, "every_steps": 1}, ValueError),
    ({"every_steps": 0}, ValueError), ({"every_steps": -1}, ValueError),
    ({"every_steps": 1.5}, TypeError), ({"every_secs": "a"}, TypeError),
    ({"every_secs": float("nan")}, ValueError), ({"every_steps": True}, TypeError)])
def test_what_is_no_interval(given, error):
    with pytest.raises(error, match="every_"):
        tn.train.SecondOrStepTimer(**given)


# --- Stopping -------------------------------------------------------------------------------------


def test_stopping_at_a_step(train):
    assert loop(train, [tn.train.StopAtStepHook(last_step=5)]) == 5
    assert loop(train, [tn.train.StopAtStepHook(num_steps=4)]) == 4
    start = tn.train.get_global_step().assign(10)
    scaffold = tn.train.Scaffold(init_op=start)
    with tn.train.MonitoredSession(tn.train.ChiefSessionCreator(scaffold),
                                   [tn.train.StopAtStepHook(num_steps=3)]) as session:
        done = 0
        while not session.should_stop():
            session.run(train)
            done += 1
    assert done == 3
    for given in ({}, {"num_steps": 1, "last_step": 1}):
        with pytest.raises(ValueError, match="exactly one of num_steps and last_step"):
            tn.train.StopAtStepHook(**given)


def test_a_step_counter_is_needed():
    for hook in (tn.train.StopAtStepHook(last_step=5), tn.train.StepCounterHook(),
                 tn.train.GlobalStepWaiterHook(3), tn.train.ProgressBarHook(3)):
        with tn.Graph().as_default():
            with pytest.raises(RuntimeError, match="Global step should be created to use "
                               + type(hook).__name__):
                tn.train.MonitoredSession(hooks=[hook])


def test_steps_that_several_sessions_share_are_looked_at_again(train):
    """The step fetched with a run may be stale: the hook asks anew before it stops."""
    hook = tn.train.StopAtStepHook(last_step=3)
    none = tn.no_op()
    with tn.train.MonitoredSession(hooks=[hook]) as session:
        session.run(train)
        session.run(train)
        session.run(none)  # fetches 2, and adds nothing
        assert not session.should_stop()
        session.run(train)
        assert session.should_stop()


def test_a_loss_that_is_not_a_number():
    loss = tn.placeholder(tn.float32, [], name="loss")
    fed = iter([1.0, float("inf"), float("nan"), 2.0])
    with pytest.raises(tn.train.NanLossDuringTrainingError, match="NaN loss during training."):
        loop(loss, [tn.train.NanTensorHook(loss)], feeds=lambda: {loss: next(fed)})
    assert next(fed) == 2.0
    fed = iter([1.0, float("nan"), 2.0])
    assert loop(loss, [tn.train.NanTensorHook("loss:0", fail_on_nan_loss=False)],
                feeds=lambda: {loss: next(fed)}) == 2


def test_a_signal_ends_the_loop(train):
    before = signal.getsignal(signal.SIGTERM)
    hook = tn.train.StopAtSignalHook()
    sent = iter([None, None, signal.SIGTERM])

    def kill():
        number = next(sent, None)
        if number is not None:
            os.kill(os.getpid(), number)
    assert loop(train, [hook], between=kill) == 4  # the run after it is the last one
    assert hook.received and signal.getsignal(signal.SIGTERM) is before
    with pytest.raises(ValueError, match="mine"):
        with tn.train.MonitoredSession(hooks=[tn.train.StopAtSignalHook([signal.SIGUSR1])]):
            assert signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL
            raise ValueError("mine")
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
    with pytest.raises(ValueError, match="signals must be a list of numbers of signals"):
        tn.train.StopAtSignalHook(["SIGTERM"])


# --- Watching -------------------------------------------------------------------------------------


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO, "treenail")
    return lambda: [record.getMessage() for record in caplog.records]


def test_logging_values(train, lines, clock):
    step = tn.train.get_global_step()
    before = tn.identity(step, name="before")
    hook = tn.train.LoggingTensorHook({"step": before}, every_n_iter=3)
    loop(train, [hook], 7, between=lambda: clock.sleep(0.5))
    assert lines() == ["step = 0", "step = 3 (1.500 sec)", "step = 6 (1.500 sec)"]


def test_logging_by_time_by_name_and_at_the_end(train, lines, clock):
    tn.identity(tn.train.get_global_step(), name="before")
    hook = tn.train.LoggingTensorHook(["before:0"], every_n_secs=2.0, at_end=True,
                                      formatter=lambda named: "now %d" % named["before:0"])
    loop(train, [hook], 8, between=lambda: clock.sleep(0.5))
    assert lines() == ["now 0", "now 4", "now 8"]
    only = tn.train.LoggingTensorHook(["before:0"], at_end=True)
    loop(train, [only], 2)
    assert lines()[3:] == ["before:0 = 2"]
    for given in ({}, {"every_n_iter": 1, "every_n_secs": 1.0}):
        with pytest.raises(ValueError, match="exactly one of every_n_iter and every_n_secs"):
            tn.train.LoggingTensorHook(["before:0"], **given)


def test_steps_and_examples_per_second(train, tmp_path, lines, clock):
    hook = tn.train.StepCounterHook(every_n_steps=4, output_dir=str(tmp_path), batch_size=32)
    loop(train, [hook], 10, between=lambda: clock.sleep(0.5))
    # The timer begins with the first run; the times of runs 2 to 5 and 6 to 9 are counted.
    assert values(tmp_path) == [(5, "global_step/sec", 2.0), (5, "examples/sec", 64.0),
                                (9, "global_step/sec", 2.0), (9, "examples/sec", 64.0)]
    assert lines() == ["global_step/sec: 2, examples/sec: 64"] * 2


def test_batches_of_different_sizes(train, tmp_path, clock):
    x = tn.placeholder(tn.float32, [None])
    hook = tn.train.StepCounterHook(every_n_steps=None, every_n_secs=3.0,
                                    output_dir=str(tmp_path), batch_size=tn.size(x))
    sizes = iter([5, 1, 2, 3, 10, 20, 30])
    loop(train, [hook], 7, lambda: {x: np.zeros(next(sizes))}, lambda: clock.sleep(1.0))
    assert values(tmp_path) == [(4, "global_step/sec", 1.0), (4, "examples/sec", 2.0),
                                (7, "global_step/sec", 1.0), (7, "examples/sec", 20.0)]


def test_a_step_that_does_not_grow_is_told(lines, clock):
    tn.train.get_or_create_global_step()
    hook = tn.train.StepCounterHook(every_n_steps=None, every_n_secs=1.0)
    loop(tn.no_op(), [hook], 3, between=lambda: clock.sleep(1.0))
    assert lines() == []  # at one step the timer never is due twice
    hook._show(0, 0, 1.0, 7)
    assert "has not grown since it was 7" in lines()[0]


def test_waiting_for_a_step(train, clock):
    step = tn.train.get_global_step()
    looks = []

    class Waiter(tn.train.GlobalStepWaiterHook):
        PAUSE = 0.001
    waiter = Waiter(3)
    with tn.train.SingularMonitoredSession(hooks=[waiter]) as session:
        raw = session.raw_session()

        def others():
            for _ in range(3):
                looks.append(int(raw.run(step)))
                raw.run(train)
        thread = threading.Thread(target=others)
        thread.start()
        assert session.run(step) >= 3
        thread.join()
    assert looks == [0, 1, 2]
    assert loop(train, [tn.train.GlobalStepWaiterHook(0)], 1) == 1


def test_a_wait_ends_when_the_session_stops(train):
    class Waiter(tn.train.GlobalStepWaiterHook):
        PAUSE = 0.001

        def after_create_session(self, session, coord):
            super().after_create_session(session, coord)
            threading.Timer(0.05, coord.request_stop).start()
    assert loop(train, [Waiter(10 ** 9)]) == 1


def test_final_operations_and_feeds(train):
    x = tn.placeholder(tn.float32, [])
    total = tn.get_variable("total", [], initializer=tn.zeros_initializer())
    fed = iter(range(100))
    final = tn.train.FinalOpsHook({"total": total, "more": total + x}, {x: 0.5})
    feeding = tn.train.FeedFnHook(lambda: {x: next(fed)})
    loop([train, total.assign_add(x)], [feeding, final], 5)
    assert final.final_ops_values == {"total": 10.0, "more": 10.5}


# --- Progress -------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_without_a_terminal_is_plain_lines(train, clock):
    out = io.StringIO()
    hook = tn.train.ProgressBarHook(100, {"loss": tn.constant(0.25)}, "mlp", out, parts=4)
    loop(train, [hook, tn.train.StopAtStepHook(last_step=100)], between=lambda: clock.sleep(0.25))
    lines = out.getvalue().splitlines()
    shown = [re.search(r"(\d+)/100", line).group(1) for line in lines]
    assert shown == ["1", "25", "50", "75", "100"]
    assert "\r" not in out.getvalue() and "\x1b" not in out.getvalue()
    assert lines[2] == ("mlp [==============>             ] 50/100  loss = 0.25  4.08 steps/s  "
                        "ETA 0:12")
    assert lines[-1].startswith("mlp [============================] 100/100 ")


def test_progress_on_a_terminal_is_one_line(train, clock):
    out = Terminal()
    hook = tn.train.ProgressBarHook(50, stream=out)
    loop(train, [hook, tn.train.StopAtStepHook(last_step=50)], between=lambda: clock.sleep(0.04))
    drawn = out.getvalue().split("\r\x1b[K")[1:]
    assert len(drawn) == 18  # every 0.1 s, so every third step, and the last one
    assert out.getvalue().count("\n") == 1 and out.getvalue().endswith("\n")
    assert "50/50" in drawn[-1]


def test_the_eta_of_a_training_that_goes_on(clock):
    step = tn.train.get_or_create_global_step()
    out = io.StringIO()
    scaffold = tn.train.Scaffold(init_op=step.assign(9000))
    hook = tn.train.ProgressBarHook(10000, stream=out, parts=10000)
    advance = step.assign_add(1)
    with tn.train.MonitoredSession(tn.train.ChiefSessionCreator(scaffold), [hook]) as session:
        for _ in range(3):
            clock.sleep(4)
            session.run(advance)
    assert out.getvalue().splitlines()[-1].endswith("9003/10000  0.25 steps/s  ETA 1:06:28")


def test_a_stream_that_is_gone_does_not_end_the_training(train):
    out = io.StringIO()
    out.close()
    assert loop(train, [tn.train.ProgressBarHook(3, stream=out)], 3) == 3


# --- Files ----------------------------------------------------------------------------------------


@needs_hdf5
def test_checkpoints_by_steps(train, tmp_path):
    told = []

    class Listener(tn.train.CheckpointSaverListener):
        def begin(self):
            told.append("begin")

        def before_save(self, session, global_step_value):
            told.append(("before", global_step_value))
            assert not os.path.exists(tmp_path / ("m-%d" % global_step_value))

        def after_save(self, session, global_step_value):
            told.append(("after", global_step_value))
            assert os.path.exists(tmp_path / ("m-%d" % global_step_value))

        def end(self, session, global_step_value):
            told.append(("end", global_step_value))
    hook = tn.train.CheckpointSaverHook(str(tmp_path), save_steps=3, saver=tn.train.Saver(),
                                        checkpoint_basename="m", listeners=[Listener()])
    loop(train, [hook], 7)
    steps = [0, 3, 6, 7]
    assert told == ["begin"] + [(word, step) for step in steps
                                for word in ("before", "after")] + [("end", 7)]
    assert [event.session_log.checkpoint_path for event in events(tmp_path)
            if event.session_log] == [str(tmp_path / "m")] * 4
    graph = tn.load_graph(str(tmp_path / "graph.tng"))
    assert graph.get_operation_by_name("global_step").type == "VarHandleOp"


@needs_hdf5
def test_checkpoints_by_seconds(train, tmp_path, clock):
    folder = tmp_path / "made"
    hook = tn.train.CheckpointSaverHook(str(folder), save_secs=10, saver=tn.train.Saver())
    loop(train, [hook], 12, between=lambda: clock.sleep(4.0))
    assert sorted(int(name.split("-")[1]) for name in os.listdir(folder)
                  if name.startswith("model.ckpt-")) == [0, 4, 7, 10, 12]


@needs_hdf5
def test_a_listener_may_stop_the_loop(train, tmp_path):
    class Listener(tn.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            return global_step_value >= 4
    scaffold = tn.train.Scaffold()
    hook = tn.train.CheckpointSaverHook(str(tmp_path), save_steps=2, scaffold=scaffold,
                                        listeners=[Listener()])
    with tn.train.MonitoredSession(tn.train.ChiefSessionCreator(scaffold), [hook]) as session:
        done = 0
        while not session.should_stop():
            session.run(train)
            done += 1
    assert done == 4


def test_who_saves_must_be_clear(train, tmp_path):
    with pytest.raises(ValueError, match="both saver .* and scaffold"):
        tn.train.CheckpointSaverHook(str(tmp_path), save_steps=1, saver=tn.train.Saver(),
                                     scaffold=tn.train.Scaffold())
    with pytest.raises(ValueError, match="exactly one of every_secs and every_steps"):
        tn.train.CheckpointSaverHook(str(tmp_path))
    for _ in range(2):
        tn.add_to_collection(tn.GraphKeys.SAVERS, tn.train.Saver())
    hook = tn.train.CheckpointSaverHook(str(tmp_path), save_steps=1)
    scaffold = tn.train.Scaffold(saver=tn.train.Saver())
    with pytest.raises(RuntimeError, match="2 items in collection savers"):
        tn.train.MonitoredSession(tn.train.ChiefSessionCreator(scaffold), [hook])


def test_summaries(train, tmp_path):
    step = tn.train.get_global_step()
    with tn.control_dependencies([train]):
        summary = tn.summary.scalar("twice", step.read_value() * 2)
    hook = tn.train.SummarySaverHook(save_steps=3, output_dir=str(tmp_path), summary_op=summary)
    loop(train, [hook], 8)
    assert values(tmp_path) == [(1, "twice", 2.0), (4, "twice", 8.0), (7, "twice", 14.0)]
    starts = [event.step for event in events(tmp_path)
              if event.session_log and event.session_log.status == tn.SessionLog.START]
    assert starts == [1]
    for given in ({}, {"summary_op": summary, "scaffold": tn.train.Scaffold()}):
        with pytest.raises(ValueError, match="Exactly one of scaffold or summary_op"):
            tn.train.SummarySaverHook(save_steps=1, **given)


def test_summaries_of_a_scaffold_by_time(train, tmp_path, clock):
    tn.summary.scalar("one", 1.0)
    tn.summary.scalar("two", 2.0)
    scaffold = tn.train.Scaffold()
    hook = tn.train.SummarySaverHook(save_secs=2.5, output_dir=str(tmp_path), scaffold=scaffold)
    with tn.train.MonitoredSession(tn.train.ChiefSessionCreator(scaffold), [hook]) as session:
        for _ in range(6):
            session.run(train)
            clock.sleep(1.0)
    assert [(step, tag) for step, tag, _ in values(tmp_path)] == [
        (1, "one"), (1, "two"), (4, "one"), (4, "two")]


def test_traces(train, tmp_path):
    hook = tn.train.ProfilerHook(save_steps=3, output_dir=str(tmp_path / "made"))
    loop(train, [hook], 9)
    assert sorted(os.listdir(tmp_path / "made")) == ["timeline-%d.json" % n for n in (4, 7)]
    with open(tmp_path / "made" / "timeline-4.json", encoding="utf-8") as stream:
        trace = json.load(stream)
    assert any("AssignAdd" in event["name"] for event in trace["traceEvents"])
