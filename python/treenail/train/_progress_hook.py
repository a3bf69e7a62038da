# SPDX-License-Identifier: Apache-2.0
"""A progress bar for training loops."""

from __future__ import annotations

import sys
import time

from treenail._checks import having
from treenail.train._basic_hooks import an_interval, needed_global_step
from treenail.train._session_run_hook import (SessionRunArgs, SessionRunContext, SessionRunHook,
                                              SessionRunValues)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WIDTH = 28  # characters of the bar


def _duration(seconds: float) -> str:
    """"1:02:03" or "2:03"."""
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return "%d:%02d:%02d" % (hours, minutes, rest) if hours else "%d:%02d" % (minutes, rest)


class ProgressBarHook(SessionRunHook):
    """Shows how far a training is, how fast, and when it will have ended:

        train [=========>                  ] 240/600  loss = 0.214  812 steps/s  ETA 0:01

    On a terminal that is one line, drawn again at most ten times a second; elsewhere (a file, a
    pipe, a batch system's log) a plain line for each `parts`-th part of the way.

    last_step: the global step at which the training ends; the hook itself does not stop it.
    tensors: {what it is called: scalar tensor}, shown beside the bar. label: stands before it.
    stream: what is written to; standard error by default.
    """

    def __init__(self, last_step: int, tensors: dict | None = None, label: str = "train",
                 stream: Any = None, parts: int = 20) -> None:
        if last_step is None or parts is None:
            raise TypeError("last_step and parts must be ints, not %r and %r" % (last_step, parts))
        self._last = an_interval(last_step, "last_step", True)
        self._parts = an_interval(parts, "parts", True)
        if tensors is not None and not isinstance(tensors, dict):
            raise TypeError("tensors must be a dict of scalar tensors, not %r" % (tensors,))
        self._names, self._tensors = list(tensors or ()), list((tensors or {}).values())
        self._label = label
        self._stream = stream if stream is None else having(stream, "write", "stream",
                                                            "a text stream")

    def begin(self) -> None:
        """Finds the global step. Raises RuntimeError when there is none."""
        self._step = needed_global_step("ProgressBarHook")
        self._out = sys.stderr if self._stream is None else self._stream
        self._live = not getattr(self._out, "closed", False) and bool(
            getattr(self._out, "isatty", lambda: False)())
        self._first: int | None = None
        self._drawn, self._part, self._open = 0.0, -1, False

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Rates count from here on."""
        self._first, self._begun = int(session.run(self._step)), time.monotonic()

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Fetches the global step and what is shown beside the bar."""
        return SessionRunArgs([self._step] + self._tensors)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Draws where it is time."""
        done = int(run_values.results[0]) + 1
        now = time.monotonic()
        part = self._parts * done // self._last
        if self._live:
            due = now - self._drawn >= 0.1 or done >= self._last
        else:
            due = part > self._part
        if due:
            self._drawn, self._part = now, part
            self._draw(self._line(done, run_values.results[1:], now))

    def _line(self, done: int, values: Any, now: float) -> str:
        filled = min(_WIDTH, _WIDTH * done // self._last)
        bar = "=" * filled + (">" if filled < _WIDTH else "")
        told = ["%s = %.4g" % item for item in zip(self._names, values)]
        steps, seconds = done - self._first, now - self._begun
        if steps > 0 and seconds > 0:
            told.append("%.3g steps/s" % (steps / seconds))
            told.append("ETA %s" % _duration(max(0, self._last - done) * seconds / steps))
        return "%s [%s] %d/%d  %s" % (self._label, bar.ljust(_WIDTH), done, self._last,
                                      "  ".join(told))

    def _draw(self, line: str) -> None:
        """A stream that is gone ends the bar, not the training."""
        try:
            self._out.write("\r\x1b[K" + line if self._live else line + "\n")
            self._out.flush()
            self._open = self._live
        except (OSError, ValueError):
            pass

    def end(self, session: Any) -> None:
        """Ends the line."""
        if self._open:
            self._open = False
            try:
                self._out.write("\n")
                self._out.flush()
            except (OSError, ValueError):
                pass


__all__ = ["ProgressBarHook"]
