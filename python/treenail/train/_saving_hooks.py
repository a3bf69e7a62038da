# SPDX-License-Identifier: Apache-2.0
"""Hooks of training loops that write files: checkpoints, summaries, rates, traces."""

from __future__ import annotations

import logging
import os

from treenail import errors
from treenail._checks import a_path, having
from treenail._framework import GraphKeys, get_default_graph
from treenail._session_options import RunOptions
from treenail.train._basic_hooks import SecondOrStepTimer, an_interval, needed_global_step
from treenail.train._session_run_hook import (SessionRunArgs, SessionRunContext, SessionRunHook,
                                              SessionRunValues)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from treenail.train._saver import Saver
    from treenail.train._scaffold import Scaffold

_log = logging.getLogger("treenail")


def _writer_of(directory: Any) -> Any:
    from treenail.summary import FileWriterCache
    return FileWriterCache.get(directory)


def _add_log(writer: Any, step: int, **fields: Any) -> None:
    from treenail.summary import SessionLog
    writer.add_session_log(SessionLog(**fields), step)


class CheckpointSaverListener:
    """What is called around each checkpoint that a CheckpointSaverHook saves; subclasses define
    what they need."""

    def begin(self) -> None:
        """As SessionRunHook.begin."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Before a checkpoint is saved."""

    def after_save(self, session: Any, global_step_value: int) -> bool | None:
        """After it was saved. True asks the loop to stop."""

    def end(self, session: Any, global_step_value: int) -> None:
        """At the end of the loop, after the last checkpoint."""


class CheckpointSaverHook(SessionRunHook):
    """Saves checkpoints: when the session is made, every so many steps or seconds, and at the end.

    checkpoint_dir: where; made if need be. save_secs, save_steps: exactly one of them. saver,
    scaffold: who saves, one of them at most; by default the saver in the graph's collection
    GraphKeys.SAVERS. checkpoint_basename: the files are named "<basename>-<step>". listeners:
    CheckpointSaverListeners. The graph is saved beside them, as "graph.tng".
    """

    def __init__(self, checkpoint_dir: Any, save_secs: float | None = None,
                 save_steps: int | None = None, saver: Saver | None = None,
                 checkpoint_basename: str = "model.ckpt", scaffold: Scaffold | None = None,
                 listeners: Sequence | None = None) -> None:
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver %r and scaffold %r."
                             % (saver, scaffold))
        if not isinstance(checkpoint_basename, str):
            raise TypeError("checkpoint_basename must be a str, not %r" % (checkpoint_basename,))
        self._saver = saver if saver is None else having(saver, "save", "saver", "a Saver")
        self._scaffold = scaffold if scaffold is None else having(scaffold, "saver", "scaffold",
                                                                  "a Scaffold")
        self._directory = os.fsdecode(a_path(checkpoint_dir, "checkpoint_dir"))
        self._path = os.path.join(self._directory, checkpoint_basename)
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        if listeners is not None and not isinstance(listeners, (list, tuple)):
            raise TypeError("listeners must be a list of CheckpointSaverListeners, not %r"
                            % (listeners,))
        self._listeners = [having(each, "after_save", "an element of listeners",
                                  "a CheckpointSaverListener") for each in listeners or ()]

    def begin(self) -> None:
        """Makes the directory, and finds the global step. Raises RuntimeError when there is
        none."""
        self._step = needed_global_step("CheckpointSaverHook")
        os.makedirs(self._directory, exist_ok=True)
        self._writer = _writer_of(self._directory)
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Saves the graph, and the first checkpoint."""
        step = int(session.run(self._step))
        try:
            session.graph.save(os.path.join(self._directory, "graph.tng"))
        except (errors.InvalidArgumentError, errors.UnimplementedError) as error:
            _log.info("The graph is not saved: %s", error)  # it holds what no file can
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Fetches the global step."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Saves where it is due."""
        if not self._timer.should_trigger_for_step(int(run_values.results) + 1):
            return
        step = int(run_context.session.run(self._step))
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._save(run_context.session, step):
                run_context.request_stop()

    def end(self, session: Any) -> None:
        """Saves the last step, unless that was done."""
        step = int(session.run(self._step))
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        self._writer.flush()
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session: Any, step: int) -> bool:
        """Saves; whether a listener asks to stop."""
        _log.info("Saving checkpoints for %d into %s.", step, self._path)
        for listener in self._listeners:
            listener.before_save(session, step)
        self._get_saver().save(session, self._path, global_step=step)
        from treenail.summary import SessionLog
        _add_log(self._writer, step, status=SessionLog.CHECKPOINT, checkpoint_path=self._path)
        asked = [listener.after_save(session, step) for listener in self._listeners]
        return any(asked)

    def _get_saver(self) -> Any:
        if self._saver is not None:
            return self._saver
        if self._scaffold is not None:
            return self._scaffold.saver
        found = get_default_graph().get_collection(GraphKeys.SAVERS)
        if len(found) != 1:
            raise RuntimeError("There are %d items in collection %s. Please indicate which one to "
                               "use by passing it to the constructor of CheckpointSaverHook."
                               % (len(found), GraphKeys.SAVERS))
        self._saver = found[0]
        return self._saver


class StepCounterHook(SessionRunHook):
    """Counts steps per second, and with batch_size examples per second: as summaries
    "global_step/sec" and "examples/sec", and in the log.

    every_n_steps, every_n_secs: exactly one of them. output_dir: for the event file;
    summary_writer: in place of it. batch_size: an int, or a tensor, which is fetched.
    """

    def __init__(self, every_n_steps: int | None = 100, every_n_secs: float | None = None,
                 output_dir: Any = None, summary_writer: Any = None,
                 batch_size: Any = None) -> None:
        if (every_n_steps is None) == (every_n_secs is None):
            raise ValueError("exactly one of every_n_steps and every_n_secs should be provided, "
                             "not %r and %r" % (every_n_steps, every_n_secs))
        self._timer = SecondOrStepTimer(every_n_secs, every_n_steps)
        self._writer, self._output_dir = summary_writer, output_dir
        if output_dir is not None:
            a_path(output_dir, "output_dir")
        self._fetched_size = hasattr(batch_size, "op")
        self._batch_size = (batch_size if self._fetched_size
                            else an_interval(batch_size, "batch_size", True))

    def begin(self) -> None:
        """Finds the global step. Raises RuntimeError when there is none."""
        if self._writer is None and self._output_dir is not None:
            self._writer = _writer_of(self._output_dir)
        self._step = needed_global_step("StepCounterHook")
        self._examples = 0
        self._timer.reset()

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Fetches the global step, and the batch size."""
        size = [self._batch_size] if self._fetched_size else []
        return SessionRunArgs([self._step] + size)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes the rates where that is due."""
        size = run_values.results[1] if self._fetched_size else self._batch_size
        self._examples += int(size or 0)
        if not self._timer.should_trigger_for_step(int(run_values.results[0]) + 1):
            return
        step = int(run_context.session.run(self._step))
        if not self._timer.should_trigger_for_step(step):
            return
        seconds, steps = self._timer.update_last_triggered_step(step)
        examples, self._examples = self._examples, 0
        if seconds:
            self._show(steps, examples, seconds, step)

    def _show(self, steps: int, examples: int, seconds: float, step: int) -> None:
        rates = {"global_step/sec": steps / seconds}
        if self._batch_size is not None:
            rates["examples/sec"] = examples / seconds
        if steps <= 0:
            _log.warning("The global step has not grown since it was %d: is it increased by the "
                         "training operation?", step - steps)
        _log.info(", ".join("%s: %g" % rate for rate in rates.items()))
        if self._writer is not None:
            from treenail.summary import Summary
            values = [Summary.Value(tag=tag, simple_value=rate) for tag, rate in rates.items()]
            self._writer.add_summary(Summary(value=values), step)

    def end(self, session: Any) -> None:
        """Writes what waits."""
        if self._writer is not None:
            self._writer.flush()


class SummarySaverHook(SessionRunHook):
    """Saves summaries every so many steps or seconds: of the first run, and then when it is due.

    save_steps, save_secs: exactly one of them. output_dir: for the event file; summary_writer: in
    place of it. scaffold, summary_op: exactly one of them says what is saved; a list of summaries
    as well.
    """

    def __init__(self, save_steps: int | None = None, save_secs: float | None = None,
                 output_dir: Any = None, summary_writer: Any = None,
                 scaffold: Scaffold | None = None, summary_op: Any = None) -> None:
        if (scaffold is None) == (summary_op is None):
            raise ValueError("Exactly one of scaffold or summary_op must be provided, not %r and %r"
                             % (scaffold, summary_op))
        if scaffold is not None:
            having(scaffold, "summary_op", "scaffold", "a Scaffold")
        if output_dir is not None:
            a_path(output_dir, "output_dir")
        self._scaffold, self._summary_op = scaffold, summary_op
        self._writer, self._output_dir = summary_writer, output_dir
        self._timer = SecondOrStepTimer(save_secs, save_steps)

    def begin(self) -> None:
        """Finds the global step. Raises RuntimeError when there is none."""
        if self._writer is None and self._output_dir is not None:
            self._writer = _writer_of(self._output_dir)
        self._next_step: int | None = None
        self._step = needed_global_step("SummarySaverHook")
        self._timer.reset()

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Fetches the global step, and the summaries where they are due."""
        self._due = self._next_step is None or self._timer.should_trigger_for_step(self._next_step)
        return SessionRunArgs([self._step] + (self._summaries() if self._due else []))

    def _summaries(self) -> list:
        op = self._scaffold.summary_op if self._scaffold is not None else self._summary_op
        if op is None:
            return []
        return list(op) if isinstance(op, (list, tuple)) else [op]

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes them."""
        if self._writer is None:
            return
        step = int(run_values.results[0]) + 1
        if self._due:
            step = int(run_context.session.run(self._step))
        if self._next_step is None:
            from treenail.summary import SessionLog
            _add_log(self._writer, step, status=SessionLog.START)
        if self._due:
            self._timer.update_last_triggered_step(step)
            for summary in run_values.results[1:]:
                self._writer.add_summary(summary, step)
        self._next_step = step + 1

    def end(self, session: Any) -> None:
        """Writes what waits."""
        if self._writer is not None:
            self._writer.flush()


class ProfilerHook(SessionRunHook):
    """Every so many steps or seconds notes what each operation of a run does, in
    "timeline-<step>.json", which chrome://tracing and ui.perfetto.dev show.

    save_steps, save_secs: exactly one of them. output_dir: made if need be. show_dataflow,
    show_memory: accepted; what operations allocate is always shown.
    """

    def __init__(self, save_steps: int | None = None, save_secs: float | None = None,
                 output_dir: Any = "", show_dataflow: bool = True,
                 show_memory: bool = False) -> None:
        self._directory = os.fsdecode(a_path(output_dir, "output_dir"))
        self._timer = SecondOrStepTimer(save_secs, save_steps)

    def begin(self) -> None:
        """Finds the global step. Raises RuntimeError when there is none."""
        self._next_step: int | None = None
        self._step = needed_global_step("ProfilerHook")
        self._timer.reset()

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for a trace where it is due; never of the first run, which makes the plan."""
        self._due = self._next_step is not None and self._timer.should_trigger_for_step(
            self._next_step)
        options = RunOptions(trace_level=RunOptions.FULL_TRACE) if self._due else None
        return SessionRunArgs(self._step, options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes it."""
        step = int(run_values.results) + 1
        if self._next_step is None:
            self._timer.update_last_triggered_step(step)
        if self._due:
            from treenail.profiler import write_trace
            step = int(run_context.session.run(self._step))
            self._timer.update_last_triggered_step(step)
            os.makedirs(self._directory or ".", exist_ok=True)
            write_trace(os.path.join(self._directory, "timeline-%d.json" % step),
                        run_values.run_metadata)
        self._next_step = step + 1


__all__ = ["CheckpointSaverHook", "CheckpointSaverListener", "ProfilerHook", "StepCounterHook",
           "SummarySaverHook"]
