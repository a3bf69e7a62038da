# SPDX-License-Identifier: Apache-2.0
"""MonitoredSession: a session with hooks, threads and recovery; and who makes sessions for it."""

from __future__ import annotations

from treenail._checks import having
from treenail._framework import GraphKeys, get_default_graph
from treenail.train._basic_hooks import StopAtSignalHook
from treenail.train._coordinator import Coordinator
from treenail.train._queue_runner import start_queue_runners
from treenail.train._scaffold import Scaffold
from treenail.train._session_manager import SessionManager, seconds
from treenail.train._wrapped_sessions import (CoordinatedSession, HookedSession, RecoverableSession,
                                              StepContext, WrappedSession)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

    from treenail._framework import Graph
    from treenail._session import Session


class SessionCreator:
    """What makes sessions for a MonitoredSession: again and again, where tasks are lost."""

    def create_session(self) -> Session:
        """A session that is ready to train. Subclasses define it; this raises
        NotImplementedError."""
        raise NotImplementedError("create_session is not implemented for %s." % self)


class _Creator(SessionCreator):
    def __init__(self, scaffold: Scaffold | None, master: str, config: Any) -> None:
        if scaffold is not None and not isinstance(scaffold, Scaffold):
            raise TypeError("scaffold must be a Scaffold, not %r" % (scaffold,))
        self._scaffold = scaffold or Scaffold()
        self._master, self._config = master, config

    def _manager(self, recovery_wait_secs: float) -> SessionManager:
        """A SessionManager for the finished scaffold."""
        scaffold = self._scaffold.finalize()
        return SessionManager(local_init_op=scaffold.local_init_op, ready_op=scaffold.ready_op,
                              ready_for_local_init_op=scaffold.ready_for_local_init_op,
                              local_init_feed_dict=scaffold.local_init_feed_dict,
                              graph=get_default_graph(), recovery_wait_secs=recovery_wait_secs)


class ChiefSessionCreator(_Creator):
    """Makes sessions for the chief: restores the latest checkpoint, or initialises.

    scaffold: by default Scaffold(). master: the target. config: a ConfigProto. checkpoint_dir,
    checkpoint_filename_with_path: one of them at most.
    """

    def __init__(self, scaffold: Scaffold | None = None, master: str = "", config: Any = None,
                 checkpoint_dir: Any = None, checkpoint_filename_with_path: Any = None) -> None:
        super().__init__(scaffold, master, config)
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_filename_with_path = checkpoint_filename_with_path

    def create_session(self) -> Session:
        """As SessionManager.prepare_session."""
        manager, scaffold = self._manager(30), self._scaffold
        return manager.prepare_session(
            self._master, saver=scaffold.saver, checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path,
            config=self._config, init_op=scaffold.init_op,
            init_feed_dict=scaffold.init_feed_dict, init_fn=scaffold.init_fn)


class WorkerSessionCreator(_Creator):
    """Makes sessions for tasks that are not the chief: waits, max_wait_secs at most, until the
    chief has made the model ready.

    recovery_wait_secs: between two looks.
    """

    def __init__(self, scaffold: Scaffold | None = None, master: str = "", config: Any = None,
                 max_wait_secs: float = 30 * 60, recovery_wait_secs: float = 1.0) -> None:
        super().__init__(scaffold, master, config)
        self._max_wait_secs = seconds(max_wait_secs, "max_wait_secs")
        self._recovery_wait_secs = seconds(recovery_wait_secs, "recovery_wait_secs")

    def create_session(self) -> Session:
        """As SessionManager.wait_for_session."""
        return self._manager(self._recovery_wait_secs).wait_for_session(
            self._master, config=self._config, max_wait_secs=self._max_wait_secs)


class _Monitored:
    """What MonitoredSession and SingularMonitoredSession have in common."""

    StepContext = StepContext

    def __init__(self, session_creator: Any, hooks: Sequence | None, should_recover: bool,
                 stop_grace_period_secs: float, max_wait_secs: float = 7200) -> None:
        creator = having(session_creator or ChiefSessionCreator(), "create_session",
                         "session_creator", "a SessionCreator")
        hooks = () if hooks is None else hooks
        if not isinstance(hooks, (list, tuple)):
            raise TypeError("hooks must be a list of SessionRunHooks, not %r" % (hooks,))
        self._hooks = [having(hook, "before_run", "an element of hooks", "a SessionRunHook")
                       for hook in hooks]
        self._grace = seconds(stop_grace_period_secs, "stop_grace_period_secs")
        seconds(max_wait_secs, "max_wait_secs")
        self._creator, self._graph = creator, get_default_graph()
        self._was_final = self._graph.finalized
        self._raw: Any = None
        self._session: Any = None
        try:
            for hook in self._hooks:
                hook.begin()
            self._session = (RecoverableSession(self._create, max_wait_secs) if should_recover
                             else self._create())
        except BaseException:
            self._release()
            raise

    def _create(self) -> CoordinatedSession:
        """A new session in its layers; threads and hooks are told of it."""
        self._raw = session = self._creator.create_session()
        coord = Coordinator(clean_stop_exception_types=[])
        try:
            with self._graph.as_default():
                if self._graph.get_collection(GraphKeys.QUEUE_RUNNERS):
                    start_queue_runners(sess=session, coord=coord)
            for hook in self._hooks:
                hook.after_create_session(session, coord)
        except BaseException:
            coord.request_stop()
            session.close()
            raise
        return CoordinatedSession(HookedSession(session, self._hooks), coord, self._grace)

    @property
    def graph(self) -> Graph | None:
        """The graph that is run; None when closed."""
        return None if self._raw is None else self._raw.graph

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None,
            run_metadata: Any = None) -> Any:
        """As Session.run, with the hooks around it. Raises RuntimeError when closed."""
        return self._open().run(fetches, feed_dict, options, run_metadata)

    def run_step_fn(self, step_fn: Callable) -> Any:
        """step_fn(step_context), for steps of several runs: step_context.session runs without
        hooks, step_context.run_with_hooks(...) with them, step_context.request_stop() ends the
        loop. Where a task is lost, the whole step is begun again. Gives what step_fn gives.

        Raises ValueError unless step_fn takes one argument, step_context.
        """
        import inspect
        try:
            taken = list(inspect.signature(step_fn).parameters)
        except (TypeError, ValueError):
            taken = []
        if taken not in (["step_context"], ["self", "step_context"]):
            raise ValueError("step_fn must be a function of one argument, step_context, not %r"
                             % (step_fn,))
        session = self._open()
        try:
            if isinstance(session, RecoverableSession):
                return session.run_step_fn(step_fn, lambda: self._raw, None)
            return session.run_step_fn(step_fn, self._raw, None)
        except StopIteration:
            self._request_stop(session)
            return None

    @staticmethod
    def _request_stop(session: WrappedSession) -> None:
        while not isinstance(session, CoordinatedSession):
            session = session._session
        session._coord.request_stop()

    def _open(self) -> Any:
        if self._session is None:
            raise RuntimeError("Session is already closed.")
        return self._session

    def should_stop(self) -> bool:
        """Whether the loop should end: a hook or a thread asked for it, or this is closed. Raises
        what a thread has raised."""
        return self._session is None or self._session.should_stop()

    def close(self) -> None:
        """Calls the hooks' end(), stops the threads and closes the session. Raises RuntimeError
        when it is closed already."""
        self._close(None)

    def _close(self, kind: Any) -> None:
        try:
            if kind is None and self._session is not None:
                for hook in self._hooks:
                    hook.end(self._raw)
        finally:
            session, self._session, self._raw = self._session, None, None
            try:
                if session is None:
                    raise RuntimeError("Session is already closed.")
                session.close()
            finally:
                self._release()

    def _release(self) -> None:
        """What was changed outside of the session is put back, however it has ended."""
        if not self._was_final:
            self._graph._unsafe_unfinalize()
        for hook in self._hooks:
            if isinstance(hook, StopAtSignalHook):
                hook.release()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        """The end of the input (OutOfRangeError, StopIteration) is no error."""
        from treenail.errors import OutOfRangeError
        if kind in (OutOfRangeError, StopIteration):
            kind = None
        self._close(kind)
        return kind is None


class MonitoredSession(_Monitored):
    """A session for a training loop: with hooks, with threads that stop together, and made anew,
    from the last checkpoint, when a task of it is lost.

        with tn.train.MonitoredSession(session_creator=tn.train.ChiefSessionCreator(
                checkpoint_dir="run"), hooks=[saving, stopping]) as session:
            while not session.should_stop():
                session.run(train)

    session_creator: by default ChiefSessionCreator(). hooks: SessionRunHooks.
    stop_grace_period_secs: how long threads may take to end. max_wait_secs: how long a session that
    was lost may take to come back.

    The hooks' begin() is called; the session is made, which finalizes the graph; queue runners are
    started. When a run raises AbortedError or UnavailableError, the session is closed, another one
    made and initialised or restored, and the run begun again. Leaving the block without an error,
    or at the end of the input, calls the hooks' end(). All threads are stopped, and what one of
    them has raised is raised here. It is no Session: use session.run alone.
    """

    def __init__(self, session_creator: Any = None, hooks: Sequence | None = None,
                 stop_grace_period_secs: float = 120, max_wait_secs: float = 7200) -> None:
        super().__init__(session_creator, hooks, True, stop_grace_period_secs, max_wait_secs)


class SingularMonitoredSession(_Monitored):
    """As MonitoredSession, of one session that is never made anew.

    scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path: as of
    ChiefSessionCreator.
    """

    def __init__(self, hooks: Sequence | None = None, scaffold: Scaffold | None = None,
                 master: str = "", config: Any = None, checkpoint_dir: Any = None,
                 stop_grace_period_secs: float = 120,
                 checkpoint_filename_with_path: Any = None) -> None:
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir,
                                      checkpoint_filename_with_path)
        super().__init__(creator, hooks, False, stop_grace_period_secs)

    def raw_session(self) -> Session | None:
        """The session itself; None when closed."""
        return self._raw


__all__ = ["ChiefSessionCreator", "MonitoredSession", "SessionCreator", "SingularMonitoredSession",
           "WorkerSessionCreator"]
