# SPDX-License-Identifier: Apache-2.0
"""Layers around a session, each adding one thing: hooks, threads that stop together, recovery.

A MonitoredSession runs through a recoverable session, that through a coordinated one, that through
one with hooks, that through the session itself. When an error says that a task was lost
(PREEMPTION_ERRORS), the recoverable session throws the others away and makes them anew.
"""

from __future__ import annotations

import logging
import sys
import time

from treenail import errors
from treenail._session_options import RunMetadata, RunOptions
from treenail.train._session_run_hook import (SessionRunArgs, SessionRunContext, SessionRunValues)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

    from treenail.train._coordinator import Coordinator

_log = logging.getLogger("treenail")

PREEMPTION_ERRORS = (errors.AbortedError, errors.UnavailableError)


class WrappedSession:
    """A session around another one."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._wrapped = isinstance(session, WrappedSession)

    @property
    def graph(self) -> Any:
        """The graph that is run."""
        return self._session.graph

    @property
    def sess_str(self) -> str:
        """The target."""
        return self._session.sess_str

    def should_stop(self) -> bool:
        """Whether this layer or one below wants no more runs."""
        if self._session is None or self.check_stop():
            return True
        return self._wrapped and self._session.should_stop()

    def check_stop(self) -> bool:
        """Whether this layer wants no more runs."""
        return False

    def close(self) -> None:
        """Closes the session; that its task is gone is no error."""
        session, self._session = self._session, None
        if session is not None:
            try:
                session.close()
            except PREEMPTION_ERRORS as error:
                _log.info("An error occurred while closing a session, and is ignored: %s", error)

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None,
            run_metadata: Any = None) -> Any:
        """As Session.run."""
        return self._session.run(fetches, feed_dict, options, run_metadata)

    def run_step_fn(self, step_fn: Callable, raw_session: Any, with_hooks: Callable | None) -> Any:
        """step_fn(step_context), whose run_with_hooks is the innermost one that a layer defines."""
        if self._wrapped:
            return self._session.run_step_fn(step_fn, raw_session, with_hooks or self.run)
        return step_fn(StepContext(raw_session, with_hooks or self.run))


class StepContext:
    """What a function given to run_step_fn() works with."""

    def __init__(self, session: Any, run_with_hooks_fn: Callable) -> None:
        self._session, self._run_with_hooks_fn = session, run_with_hooks_fn

    @property
    def session(self) -> Any:
        """The session itself: its runs call no hooks."""
        return self._session

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """As MonitoredSession.run."""
        return self._run_with_hooks_fn(*args, **kwargs)

    def request_stop(self) -> None:
        """Ends the step at once; should_stop() is True afterwards. Raises StopIteration, which the
        step must let through."""
        raise StopIteration("step_fn has requested the iterations to stop.")


class HookedSession(WrappedSession):
    """Calls hooks around each run."""

    def __init__(self, session: Any, hooks: Sequence) -> None:
        super().__init__(session)
        self._hooks = hooks
        self._plain = RunOptions()  # of runs for which nobody asks for more
        self._stop = False

    def check_stop(self) -> bool:
        """Whether a hook asked to stop."""
        return self._stop

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None,
            run_metadata: Any = None) -> Any:
        """As Session.run, with what the hooks ask for. Raises RuntimeError where a tensor is fed
        twice, and after a request to stop."""
        if self.should_stop():
            raise RuntimeError("Run called even after should_stop requested.")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self._session)
        requests = [hook.before_run(context) for hook in self._hooks]
        options, run_metadata = options or self._plain, run_metadata or RunMetadata()
        asked = [fetches]
        feeds = dict(feed_dict or {})
        for hook, request in zip(self._hooks, requests):
            if request is None:
                continue
            if request.fetches is not None:
                asked.append(request.fetches)
            for key, value in (request.feed_dict or {}).items():
                if key in feeds:
                    raise RuntimeError("Same tensor is fed by a hook (%r) and the user or another "
                                       "hook: %r" % (hook, key))
                feeds[key] = value
            options = _merged(options, request.options)
        results = iter(self._session.run(asked, feeds, options, run_metadata))
        own = next(results)
        for hook, request in zip(self._hooks, requests):
            given = None if request is None or request.fetches is None else next(results)
            hook.after_run(context, SessionRunValues(given, options, run_metadata))
        self._stop = self._stop or context.stop_requested
        return own


def _merged(options: RunOptions, more: RunOptions | None) -> RunOptions:
    """The more telling trace level, and the longer limit; 0 is none."""
    if more is None:
        return options
    times = [options.timeout_in_ms, more.timeout_in_ms]
    return RunOptions(trace_level=max(options.trace_level, more.trace_level),
                      timeout_in_ms=max(times))


class CoordinatedSession(WrappedSession):
    """Runs until its coordinator stops, and then ends the coordinator's threads."""

    def __init__(self, session: Any, coord: Coordinator, stop_grace_period_secs: float) -> None:
        super().__init__(session)
        self._coord, self._grace = coord, stop_grace_period_secs

    def check_stop(self) -> bool:
        """Whether the coordinator was asked to stop. Raises what a thread has raised."""
        self._coord.raise_requested_exception()
        return self._coord.should_stop()

    def close(self) -> None:
        """Stops the threads, then closes the session: earlier where nothing else ends a thread that
        waits in a run of it. Raises what a thread has raised."""
        self._coord.request_stop()
        begun = time.monotonic()
        try:
            self._coord.end_fillers(super().close, self._grace)
            left = max(0.0, self._grace - (time.monotonic() - begun))
            self._coord.join(stop_grace_period_secs=left, ignore_live_threads=True)
        finally:
            super().close()

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """As Session.run. Where a thread has failed, and this run because of it, raises what the
        thread has raised, if a lost task is the reason."""
        try:
            return self._session.run(*args, **kwargs)
        except PREEMPTION_ERRORS:
            raise
        except Exception:
            original = sys.exc_info()[1]
            try:
                self._coord.raise_requested_exception()
            except PREEMPTION_ERRORS:
                raise
            except BaseException as cause:
                if not isinstance(original, errors.OutOfRangeError):
                    raise original
                raise cause from original  # the queue ended because its filler had failed
            raise


class RecoverableSession(WrappedSession):
    """Makes its session anew, by create(), when a task was lost; the run is then begun again.

    A try follows another after ever longer pauses, and when nothing has succeeded for max_wait_secs
    the error is raised.
    """

    FIRST_PAUSE, LONGEST_PAUSE = 0.05, 10.0  # seconds

    def __init__(self, create: Callable, max_wait_secs: float) -> None:
        self._create, self._max_wait_secs = create, max_wait_secs
        self._pause, self._lost_since, self._closed = self.FIRST_PAUSE, None, False
        super().__init__(None)
        self._renew()
        self._succeeded()

    def _succeeded(self) -> None:
        self._pause, self._lost_since = self.FIRST_PAUSE, None

    def _lost(self, error: Exception) -> None:
        """Waits before the next try. Raises `error` when it has taken too long."""
        now = time.monotonic()
        self._lost_since = now if self._lost_since is None else self._lost_since
        if now - self._lost_since + self._pause > self._max_wait_secs:
            raise error
        _log.warning("A task of the session was lost; it is made anew in %g seconds, from the last "
                     "checkpoint if there is one: %s", self._pause, error)
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, self.LONGEST_PAUSE)

    def _renew(self) -> None:
        while self._session is None:
            try:
                self._session = self._create()
                self._wrapped = True
            except PREEMPTION_ERRORS as error:
                self._lost(error)

    def check_stop(self) -> bool:
        """Whether the loop should end: not where the session was lost, which the next run finds."""
        if self._session is None:
            return self._closed
        try:
            return self._session.check_stop()
        except PREEMPTION_ERRORS as error:
            self._throw_away(error)
            return False

    def should_stop(self) -> bool:
        """Whether the loop should end."""
        if self.check_stop():
            return True
        return self._session is not None and self._session.should_stop()

    def _throw_away(self, error: Exception) -> None:
        try:
            super().close()
        except Exception as second:  # what threads raised while the session was lost
            _log.info("While a lost session was closed: %s", second)
        self._lost(error)

    def close(self) -> None:
        """Closes the session for good."""
        self._closed = True
        super().close()

    def _tried(self, call: Callable) -> Any:
        while True:
            try:
                self._renew()
                result = call()
                self._succeeded()
                return result
            except PREEMPTION_ERRORS as error:
                self._throw_away(error)

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None,
            run_metadata: Any = None) -> Any:
        """As Session.run, begun again with a new session where a task is lost."""
        return self._tried(lambda: self._session.run(fetches, feed_dict, options, run_metadata))

    def run_step_fn(self, step_fn: Callable, raw_session: Any, with_hooks: Callable | None) -> Any:
        """The same of a step that is a function; raw_session: a function that gives the session."""
        return self._tried(lambda: self._session.run_step_fn(step_fn, raw_session(), with_hooks))
