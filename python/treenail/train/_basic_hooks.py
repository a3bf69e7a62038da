# SPDX-License-Identifier: Apache-2.0
"""Hooks of training loops that write no files: when to stop, what to watch, what to feed."""

from __future__ import annotations

import logging
import math
import time

from treenail._framework import get_default_graph
from treenail.train._global_step import get_global_step
from treenail.train._session_run_hook import (SessionRunArgs, SessionRunContext, SessionRunHook,
                                              SessionRunValues)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

_log = logging.getLogger("treenail")


def an_interval(value: Any, name: str, whole: bool) -> Any:
    """`value`: None, or a positive number, a whole one for steps. Raises TypeError, ValueError."""
    if value is None:
        return None
    fits = hasattr(value, "__index__") if whole else isinstance(value, (int, float))
    if isinstance(value, bool) or not fits:
        raise TypeError("%s must be %s or None, not %r of type '%s'"
                        % (name, "an int" if whole else "a number of seconds", value,
                           type(value).__name__))
    if not value > 0:
        raise ValueError("%s must be positive, not %r" % (name, value))
    return value.__index__() if whole else value


def needed_global_step(user: str) -> Any:
    """The global step of the default graph. Raises RuntimeError when there is none."""
    step = get_global_step()
    if step is None:
        raise RuntimeError("Global step should be created to use %s." % user)
    return step


class SecondOrStepTimer:
    """Says when something that is done every so many seconds, or every so many steps, is due.

    every_secs, every_steps: exactly one of them.
    """

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        self._every_secs = an_interval(every_secs, "every_secs", False)
        self._every_steps = an_interval(every_steps, "every_steps", True)
        if (every_secs is None) == (every_steps is None):
            raise ValueError("exactly one of every_secs and every_steps must be given, not %r and "
                             "%r" % (every_secs, every_steps))
        self.reset()

    def reset(self) -> None:
        """As if it had never triggered."""
        self._last_step: int | None = None
        self._last_time: float | None = None

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether it is due at this step: at the first, never twice at one, and when the interval
        is over."""
        if self._last_step is None:
            return True
        if self._last_step == step:
            return False
        if self._every_secs is not None:
            return time.monotonic() >= self._last_time + self._every_secs
        return step >= self._last_step + self._every_steps

    def update_last_triggered_step(self, step: int) -> tuple:
        """Notes that it was done at `step`. (seconds, steps) since the time before; (None, None)
        the first time."""
        now = time.monotonic()
        if self._last_step is None:
            elapsed = None, None
        else:
            elapsed = now - self._last_time, step - self._last_step
        self._last_time, self._last_step = now, step
        return elapsed

    def last_triggered_step(self) -> int | None:
        """The step at which it was done last, or None."""
        return self._last_step


class LoggingTensorHook(SessionRunHook):
    """Logs values of tensors every so many runs or seconds, and, with at_end, at the end.

    tensors: {what it is called: tensor or its name}, or a list. Exactly one of every_n_iter and
    every_n_secs is given, or at_end. formatter({name: value}): gives the line. Lines go to the
    logger "treenail" of Python's logging, at level INFO.
    """

    def __init__(self, tensors: Any, every_n_iter: int | None = None,
                 every_n_secs: float | None = None, at_end: bool = False,
                 formatter: Callable | None = None) -> None:
        only_at_end = at_end and every_n_iter is None and every_n_secs is None
        if not only_at_end and (every_n_iter is None) == (every_n_secs is None):
            raise ValueError("either at_end and/or exactly one of every_n_iter and every_n_secs "
                             "must be provided, every_n_iter is %r, every_n_secs %r"
                             % (every_n_iter, every_n_secs))
        if isinstance(tensors, dict):
            self._names, self._tensors = list(tensors), list(tensors.values())
        elif isinstance(tensors, (list, tuple)):
            self._tensors = list(tensors)
            self._names = [str(getattr(t, "name", t)) for t in tensors]
        else:
            raise TypeError("tensors must be a dict or a list of tensors, not %r" % (tensors,))
        if formatter is not None and not callable(formatter):
            raise TypeError("formatter must be a function of a dict, not %r" % (formatter,))
        self._formatter, self._at_end = formatter, at_end
        self._timer = None if only_at_end else SecondOrStepTimer(every_n_secs, every_n_iter)

    def begin(self) -> None:
        """Looks up tensors given by name."""
        if self._timer is not None:
            self._timer.reset()
        self._iterations, self._due = 0, False
        graph = get_default_graph()
        self._fetches = [graph.as_graph_element(tensor) for tensor in self._tensors]

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Fetches the tensors where they are due."""
        self._due = self._timer is not None and self._timer.should_trigger_for_step(
            self._iterations)
        return SessionRunArgs(self._fetches) if self._due else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Logs them."""
        if self._due:
            elapsed, _ = self._timer.update_last_triggered_step(self._iterations)
            self._show(run_values.results, elapsed)
        self._iterations += 1

    def end(self, session: Any) -> None:
        """Logs them once more, with at_end."""
        if self._at_end:
            self._show(session.run(self._fetches), None)

    def _show(self, values: Sequence, elapsed: float | None) -> None:
        named = dict(zip(self._names, values))
        if self._formatter is not None:
            _log.info(self._formatter(named))
            return
        text = ", ".join("%s = %s" % item for item in named.items())
        _log.info(text if elapsed is None else "%s (%.3f sec)" % (text, elapsed))


class StopAtStepHook(SessionRunHook):
    """Asks to stop after so many steps of this loop, or at a step: at once where a session begins
    there. Exactly one of num_steps and last_step is given."""

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if (num_steps is None) == (last_step is None):
            raise ValueError("exactly one of num_steps and last_step must be specified, not %r and "
                             "%r" % (num_steps, last_step))
        self._num_steps = an_interval(num_steps, "num_steps", True)
        self._last_step = last_step
        if last_step is not None:
            if isinstance(last_step, bool) or not hasattr(last_step, "__index__"):
                raise TypeError("last_step must be an int, not %r" % (last_step,))
            self._last_step = last_step.__index__()

    def begin(self) -> None:
        """Finds the global step."""
        self._step = needed_global_step("StopAtStepHook")

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Finds the last step, the first time."""
        step = int(session.run(self._step))
        if self._last_step is None:
            self._last_step = step + self._num_steps
        if step >= self._last_step:  # a training that was complete already
            coord.request_stop()

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Fetches the global step."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """The fetched step may be that before this run or after it: near the end, looks again."""
        if int(run_values.results) + 1 >= self._last_step:
            if int(run_context.session.run(self._step)) >= self._last_step:
                run_context.request_stop()


class NanLossDuringTrainingError(RuntimeError):
    """The loss was not a number: the training has diverged."""

    def __str__(self) -> str:
        return "NaN loss during training."


class NanTensorHook(SessionRunHook):
    """Watches a loss for NaN: raises NanLossDuringTrainingError, or, unless fail_on_nan_loss, asks
    to stop.

    loss_tensor: a scalar tensor or its name.
    """

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss, self._fail = loss_tensor, fail_on_nan_loss

    def begin(self) -> None:
        """Looks up a tensor given by name."""
        self._fetch = get_default_graph().as_graph_element(self._loss)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Fetches the loss."""
        return SessionRunArgs(self._fetch)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Looks at it."""
        if not math.isnan(run_values.results):
            return
        _log.error("Model diverged with loss = NaN.")
        if self._fail:
            raise NanLossDuringTrainingError
        run_context.request_stop()


class GlobalStepWaiterHook(SessionRunHook):
    """Delays a task until the global step has got somewhere: workers that begin one after the
    other disturb each other less.

    wait_until_step: at once where it is 0 or less. The wait ends when the session's threads are
    asked to stop, too.
    """

    PAUSE = 0.5  # seconds between two looks

    def __init__(self, wait_until_step: int) -> None:
        if isinstance(wait_until_step, bool) or not hasattr(wait_until_step, "__index__"):
            raise TypeError("wait_until_step must be an int, not %r" % (wait_until_step,))
        self._wait_until_step = wait_until_step.__index__()
        self._coord: Any = None

    def begin(self) -> None:
        """Finds the global step."""
        self._done = False
        self._step = needed_global_step("GlobalStepWaiterHook")

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Remembers who may end the wait."""
        self._coord = coord

    def before_run(self, run_context: SessionRunContext) -> None:
        """Waits, before the first run."""
        told = -math.inf
        while not self._done and self._wait_until_step > 0:
            step = int(run_context.session.run(self._step))
            if step >= self._wait_until_step:
                break
            if time.monotonic() > told + 100:
                _log.info("Waiting for global step %d before starting training. Current step is "
                          "%d.", self._wait_until_step, step)
                told = time.monotonic()
            if self._coord is None:
                time.sleep(self.PAUSE)
            elif self._coord.wait_for_stop(self.PAUSE):
                return
        self._done = True


class FinalOpsHook(SessionRunHook):
    """Runs something at the end of the loop, such as the value of a metric: final_ops_values then
    holds what it gave."""

    def __init__(self, final_ops: Any, final_ops_feed_dict: dict | None = None) -> None:
        self._ops, self._feeds = final_ops, final_ops_feed_dict
        self._values: Any = None

    @property
    def final_ops_values(self) -> Any:
        """What final_ops gave; None before the end."""
        return self._values

    def end(self, session: Any) -> None:
        """Runs them."""
        if self._ops is not None:
            self._values = session.run(self._ops, self._feeds)


class FeedFnHook(SessionRunHook):
    """Feeds every run with the dict that feed_fn() gives."""

    def __init__(self, feed_fn: Callable) -> None:
        if not callable(feed_fn):
            raise TypeError("feed_fn must be a function that gives a dict, not %r" % (feed_fn,))
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the values."""
        return SessionRunArgs(fetches=None, feed_dict=self.feed_fn())


class StopAtSignalHook(SessionRunHook):
    """Ends the loop in an orderly way when the process gets a signal, by default SIGTERM, which
    batch systems send some time before they kill: after the run in progress the loop stops, and
    other hooks save as they do at any end.

    signals: their numbers. Needs the main thread, whose handlers are put back at the end; a second
    signal does what it did before.
    """

    def __init__(self, signals: Sequence | None = None) -> None:
        import signal
        numbers = (signal.SIGTERM,) if signals is None else signals
        try:
            self._signals = [signal.Signals(number) for number in numbers]
        except (TypeError, ValueError):
            raise ValueError("signals must be a list of numbers of signals, not %r"
                             % (signals,)) from None
        self._before: dict = {}
        self._received = False

    def begin(self) -> None:
        """Takes the signals over. Raises ValueError on another thread than the main one."""
        import signal
        self._received = False
        for number in self._signals:
            self._before[number] = signal.signal(number, self._note)

    def _note(self, number: int, frame: Any) -> None:
        self._received = True
        self.release()

    def release(self) -> None:
        """Puts the handlers back; a session calls it however it ends."""
        import signal
        before, self._before = self._before, {}
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    @property
    def received(self) -> bool:
        """Whether there was a signal."""
        return self._received

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Asks to stop where there was one."""
        if self._received:
            run_context.request_stop()


__all__ = ["FeedFnHook", "FinalOpsHook", "GlobalStepWaiterHook", "LoggingTensorHook",
           "NanLossDuringTrainingError", "NanTensorHook", "SecondOrStepTimer", "StopAtSignalHook",
           "StopAtStepHook"]
