# SPDX-License-Identifier: Apache-2.0
"""What extends the runs of a MonitoredSession: SessionRunHook, and what its methods are given."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from treenail._session import Session
    from treenail.train._coordinator import Coordinator


class SessionRunArgs(namedtuple("SessionRunArgs", ["fetches", "feed_dict", "options"])):
    """What a hook adds to a run. fetches: as of Session.run; None for nothing. feed_dict, options:
    of these, too; options of several hooks and the caller are merged."""

    __slots__ = ()

    def __new__(cls, fetches: Any, feed_dict: Any = None, options: Any = None) -> SessionRunArgs:
        """All by name or in this order."""
        return super().__new__(cls, fetches, feed_dict, options)


SessionRunValues = namedtuple("SessionRunValues", ["results", "options", "run_metadata"])
SessionRunValues.__doc__ = """What a run gave a hook.

results: the values of the fetches that it asked for; None where it asked for none. options: the
RunOptions of the run. run_metadata: the RunMetadata that it filled."""


class SessionRunContext:
    """What a hook may know of a run, and ask of the loop: to stop after it."""

    def __init__(self, original_args: SessionRunArgs, session: Session) -> None:
        self._original_args, self._session, self._stop_requested = original_args, session, False

    @property
    def original_args(self) -> SessionRunArgs:
        """What the caller gave to run()."""
        return self._original_args

    @property
    def session(self) -> Session:
        """The session that runs; runs of it call no hooks."""
        return self._session

    @property
    def stop_requested(self) -> bool:
        """Whether a hook asked to stop."""
        return self._stop_requested

    def request_stop(self) -> None:
        """Asks the loop to stop: should_stop() is True after this run."""
        self._stop_requested = True


class SessionRunHook:
    """What is called around the runs of a MonitoredSession; subclasses define what they need.

    begin() is called once, while the graph may still grow; after_create_session() after that, and
    again for each session that replaces one that was lost; before_run() and after_run() around each
    run; end() when the loop ends without an error.
    """

    def begin(self) -> None:
        """Before the session is made; operations may be added to the default graph."""

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        """After a session was made, its variables initialised or restored. The graph is final."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Before each run: what is to be fetched and fed besides, or None."""
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """After each run that did not fail."""

    def end(self, session: Session) -> None:
        """At the end of the loop, when no run has failed; the session is open still."""


__all__ = ["SessionRunArgs", "SessionRunContext", "SessionRunHook", "SessionRunValues"]
