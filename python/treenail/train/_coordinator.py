# SPDX-License-Identifier: Apache-2.0
"""Threads of a program that stop together: TensorFlow 1's Coordinator and LooperThread."""

from __future__ import annotations

import contextlib
import sys
import threading
import time

from treenail._checks import having

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator, Sequence


class Coordinator:
    """Tells threads when to stop, and hands what one of them raised to whoever joins them.

        coord = tn.train.Coordinator()
        def work():
            with coord.stop_on_exception():
                while not coord.should_stop():
                    ...
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        coord.join(threads)

    clean_stop_exception_types: exceptions that stop the threads as request_stop() does, without
    being raised again; OutOfRangeError by default.
    """

    def __init__(self, clean_stop_exception_types: Any = None) -> None:
        if clean_stop_exception_types is None:
            from treenail.errors import OutOfRangeError
            clean_stop_exception_types = (OutOfRangeError,)
        self._clean = tuple(clean_stop_exception_types)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._raised: Any = None
        self._joined = False
        self._threads: set = set()

    def request_stop(self, ex: Any = None) -> None:
        """Asks the threads to stop. ex: an exception, or what sys.exc_info() gives, for join() to
        raise; the first one counts. Once join() has returned a later exception is raised here."""
        with self._lock:
            raised = self._exception(ex)
            if self._joined:
                if raised is None:
                    return
                raise raised
            if not self._stop.is_set():
                self._raised = raised
                self._stop.set()

    def _exception(self, ex: Any) -> Any:
        if ex is None:
            return None
        raised = ex[1] if isinstance(ex, tuple) and len(ex) == 3 else ex
        if not isinstance(raised, BaseException):
            raise TypeError("ex must be an exception or what sys.exc_info() gives, not %r" % (ex,))
        return None if isinstance(raised, self._clean) else raised

    def clear_stop(self) -> None:
        """Takes the request back: should_stop() is False again."""
        with self._lock:
            self._joined = False
            self._raised = None
            self._stop.clear()

    def should_stop(self) -> bool:
        """Whether the threads were asked to stop."""
        return self._stop.is_set()

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Waits until the threads are asked to stop, `timeout` seconds at most; whether they
        were."""
        return self._stop.wait(timeout)

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """What is raised inside is given to request_stop(), and goes no further."""
        try:
            yield
        except BaseException:
            self.request_stop(sys.exc_info())

    def register_thread(self, thread: threading.Thread) -> None:
        """A thread that join() waits for."""
        with self._lock:
            self._threads.add(thread)

    def join(self, threads: Sequence | None = None, stop_grace_period_secs: float = 120.0,
             ignore_live_threads: bool = False) -> None:
        """Waits until the threads, and those registered, have ended; and raises what one of them
        gave to request_stop().

        stop_grace_period_secs: how long after the request to stop they are waited for. Raises
        RuntimeError, with their names, when some go on then, unless ignore_live_threads.
        """
        given = [having(thread, "is_alive", "an element of threads", "a Thread")
                 for thread in threads or ()]
        waited = list(self._threads.union(given))
        while any(thread.is_alive() for thread in waited) and not self.wait_for_stop(0.05):
            pass
        end = time.monotonic() + stop_grace_period_secs
        while any(thread.is_alive() for thread in waited) and time.monotonic() < end:
            for thread in waited:
                thread.join(max(0.0, min(0.05, end - time.monotonic())))
        stragglers = [thread.name for thread in waited if thread.is_alive()]
        with self._lock:
            self._joined = True
            self._threads.clear()
            raised = self._raised
        if raised is not None:
            raise raised
        if stragglers and not ignore_live_threads:
            raise RuntimeError("Coordinator stopped with threads still running: %s"
                               % " ".join(stragglers))

    def end_fillers(self, close: Callable, grace_secs: float, patience_secs: float = 0.5) -> None:
        """After the request to stop: waits for the registered threads, and where all that is left,
        after patience_secs, only runs operations again and again (its attribute only_runs), calls
        close(), which is to cancel these. Gives up after grace_secs."""
        begun = time.monotonic()
        while time.monotonic() - begun < grace_secs:
            alive = [thread for thread in list(self._threads) if thread.is_alive()]
            if not alive:
                return
            if time.monotonic() - begun >= patience_secs and all(
                    getattr(thread, "only_runs", False) for thread in alive):
                close()
                return
            alive[0].join(0.02)

    @property
    def joined(self) -> bool:
        """Whether join() has returned."""
        return self._joined

    def raise_requested_exception(self) -> None:
        """Raises what was given to request_stop(), if anything was."""
        with self._lock:
            if self._raised is not None:
                raise self._raised


class LooperThread(threading.Thread):
    """A thread that calls `target` again and again until its coordinator asks to stop.

    timer_interval_secs: from one call to the next; without it they follow one another. Subclasses
    may define run_loop(), start_loop() and stop_loop() instead of giving `target`.
    """

    def __init__(self, coord: Coordinator, timer_interval_secs: float | None,
                 target: Callable | None = None, args: Sequence | None = None,
                 kwargs: dict | None = None) -> None:
        super().__init__()
        if not isinstance(coord, Coordinator):
            raise ValueError("'coord' argument must be a Coordinator: %s" % (coord,))
        self.daemon = True
        self._coord, self._interval, self._function = coord, timer_interval_secs, target
        self._arguments, self._keywords = tuple(args or ()), dict(kwargs or {})
        coord.register_thread(self)

    @staticmethod
    def loop(coord: Coordinator, timer_interval_secs: float | None, target: Callable,
             args: Sequence | None = None, kwargs: dict | None = None) -> LooperThread:
        """A LooperThread that was started."""
        looper = LooperThread(coord, timer_interval_secs, target=target, args=args, kwargs=kwargs)
        looper.start()
        return looper

    def run(self) -> None:
        """Calls until the coordinator asks to stop."""
        with self._coord.stop_on_exception():
            self.start_loop()
            due = time.monotonic()
            while not self._coord.wait_for_stop(max(0.0, due - time.monotonic())
                                                if self._interval else 0.0):
                self.run_loop()
                due += self._interval or 0.0
            self.stop_loop()

    def start_loop(self) -> None:
        """Called once at first."""

    def stop_loop(self) -> None:
        """Called once at last."""

    def run_loop(self) -> None:
        """Called each time; `target` by default."""
        if self._function is not None:
            self._function(*self._arguments, **self._keywords)


__all__ = ["Coordinator", "LooperThread"]
