# SPDX-License-Identifier: Apache-2.0
"""SessionManager: sessions whose variables are restored, initialised, or those of another task."""

from __future__ import annotations

import logging
import time

from treenail import errors
from treenail._checks import having
from treenail._framework import Graph, get_default_graph
from treenail._session import Session
from treenail.train._checkpoint import get_checkpoint_state, latest_checkpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from treenail.train._saver import Saver

_log = logging.getLogger("treenail")


class SessionManager:
    """Makes sessions that are ready to train.

    local_init_op, ready_op, ready_for_local_init_op, local_init_feed_dict: as of Scaffold; without
    a ready_op a session is taken to be ready. graph: by default the default graph.
    recovery_wait_secs: between two looks at a model or a directory that others are to make ready.
    local_init_run_options: RunOptions for local_init_op.

        manager = tn.train.SessionManager(ready_op=tn.report_uninitialized_variables())
        session = manager.prepare_session("", init_op=init, saver=saver, checkpoint_dir="run")
    """

    def __init__(self, local_init_op: Any = None, ready_op: Any = None,
                 ready_for_local_init_op: Any = None, graph: Graph | None = None,
                 recovery_wait_secs: float = 30, local_init_run_options: Any = None,
                 local_init_feed_dict: dict | None = None) -> None:
        if graph is not None and not isinstance(graph, Graph):
            raise TypeError("graph must be a tn.Graph, not %r" % (graph,))
        if ready_for_local_init_op is not None and local_init_op is None:
            raise ValueError("If you pass a ready_for_local_init_op you must also pass a "
                             "local_init_op, ready_for_local_init_op is %r"
                             % (ready_for_local_init_op,))
        self._local_init_op, self._ready_op = local_init_op, ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = get_default_graph() if graph is None else graph
        self._recovery_wait_secs = seconds(recovery_wait_secs, "recovery_wait_secs")
        self._local_init_run_options = local_init_run_options
        self._local_init_feed_dict = local_init_feed_dict

    # --- For the chief ----------------------------------------------------------------------------

    def prepare_session(self, master: str, init_op: Any = None, saver: Saver | None = None,
                        checkpoint_dir: Any = None, checkpoint_filename_with_path: Any = None,
                        wait_for_checkpoint: bool = False, max_wait_secs: float = 7200,
                        config: Any = None, init_feed_dict: dict | None = None,
                        init_fn: Callable | None = None) -> Session:
        """A session whose variables are those of the latest checkpoint; where there is none, those
        that init_op and init_fn(session) give. Then local_init_op is run.

        master: the target, '' for this process. saver: what restores. checkpoint_dir,
        checkpoint_filename_with_path: one of them at most. wait_for_checkpoint: whether to wait for
        one, max_wait_secs at most.

        Raises RuntimeError when the model is not ready then, ValueError for both paths, and what
        restoring raises.
        """
        session, loaded = self._restored(master, saver, checkpoint_dir,
                                         checkpoint_filename_with_path, wait_for_checkpoint,
                                         max_wait_secs, config)
        with _closed_on_error(session):
            if not loaded:
                if init_op is None and not init_fn and self._local_init_op is None:
                    raise RuntimeError("Model is not initialized and no init_op or init_fn or "
                                       "local_init_op was given")
                if init_op is not None:
                    session.run(init_op, init_feed_dict)
                if init_fn:
                    init_fn(session)
            for ready, why in (self._local_init(session), self._ready(session)):
                if not ready:
                    raise RuntimeError(
                        "Init operations did not make model ready. Init op: %s, init fn: %s, "
                        "local_init_op: %s, error: %s" % (
                            _name(init_op), init_fn, _name(self._local_init_op), why))
        return session

    def recover_session(self, master: str, saver: Saver | None = None, checkpoint_dir: Any = None,
                        checkpoint_filename_with_path: Any = None,
                        wait_for_checkpoint: bool = False, max_wait_secs: float = 7200,
                        config: Any = None) -> tuple:
        """(session, whether its variables are those of a checkpoint and the model is ready): as
        prepare_session, without initialising anything."""
        session, loaded = self._restored(master, saver, checkpoint_dir,
                                         checkpoint_filename_with_path, wait_for_checkpoint,
                                         max_wait_secs, config)
        if not loaded:
            return session, False
        with _closed_on_error(session):
            for ready, why in (self._local_init(session), self._ready(session)):
                if not ready:
                    _log.info("Restoring model from %s did not make model ready: %s",
                              checkpoint_dir or checkpoint_filename_with_path, why)
                    return session, False
        return session, True

    # --- For the others ---------------------------------------------------------------------------

    def wait_for_session(self, master: str, config: Any = None,
                         max_wait_secs: float = float("inf")) -> Session:
        """A session of a model that another task, the chief, has made ready; local_init_op is run.

        Looks every recovery_wait_secs. Raises DeadlineExceededError after max_wait_secs.
        """
        end = time.monotonic() + seconds(max_wait_secs, "max_wait_secs")
        while True:
            session, why = None, "the target cannot be reached"
            try:
                session = Session(master, graph=self._graph, config=config)
                ready, why = self._local_init(session)
                if ready:
                    ready, why = self._ready(session)
                if ready:
                    return session
            except (errors.AbortedError, errors.UnavailableError) as error:
                why = str(error)
            except BaseException:
                _close(session)
                raise
            _close(session)
            _log.info("Waiting for model to be ready: %s", why)
            if time.monotonic() + self._recovery_wait_secs > end:
                raise errors.DeadlineExceededError(
                    None, None, "Session was not ready after waiting %g secs: %s"
                    % (max_wait_secs, why))
            time.sleep(self._recovery_wait_secs)

    # --- Parts ------------------------------------------------------------------------------------

    def _restored(self, master: str, saver: Any, directory: Any, filename: Any, wait: bool,
                  max_wait_secs: float, config: Any) -> tuple:
        """(new session, whether a checkpoint was restored into it)."""
        if directory and filename:
            raise ValueError("Can not provide both checkpoint_dir %r and "
                             "checkpoint_filename_with_path %r." % (directory, filename))
        if saver is not None:
            having(saver, "restore", "saver", "a Saver")
        end = time.monotonic() + seconds(max_wait_secs, "max_wait_secs")
        session = Session(master, graph=self._graph, config=config)
        with _closed_on_error(session):
            if saver is None or not (directory or filename):
                return session, False
            if filename:
                saver.restore(session, filename)
                return session, True
            path = latest_checkpoint(directory)
            while path is None and wait and time.monotonic() < end:
                _log.info("Waiting for checkpoint to be available.")
                time.sleep(min(self._recovery_wait_secs, max(0.0, end - time.monotonic())))
                path = latest_checkpoint(directory)
            if path is None:
                return session, False
            saver.restore(session, path)
            state = get_checkpoint_state(directory)
            if state is not None:
                saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        return session, True

    def _local_init(self, session: Session) -> tuple:
        """(whether local_init_op was run, or there is none; why not)."""
        if self._local_init_op is None:
            return True, None
        ready, why = _nothing_missing(session, self._ready_for_local_init_op,
                                      "Variables not initialized")
        if not ready:
            return False, "Model not ready for local init: %s" % why
        session.run(self._local_init_op, self._local_init_feed_dict,
                    self._local_init_run_options)
        return True, None

    def _ready(self, session: Session) -> tuple:
        return _nothing_missing(session, self._ready_op, "Variables not initialized")


def seconds(value: Any, name: str) -> float:
    """`value`, where it is a number of seconds. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise ValueError("%s must be a number of seconds, at least 0, not %r" % (name, value))
    return value


def _name(op: Any) -> str:
    return getattr(op, "name", None) or str(op)


def _nothing_missing(session: Session, op: Any, what: str) -> tuple:
    """(whether `op` gives no names, or there is none; which names)."""
    if op is None:
        return True, None
    try:
        missing = session.run(op)
    except errors.FailedPreconditionError as error:
        if "uninitialized" not in str(error) and "no value" not in str(error):
            raise
        return False, "Model not ready: %s" % error
    if missing is None or len(missing) == 0:
        return True, None
    names = [name.decode() if isinstance(name, bytes) else str(name) for name in missing]
    return False, "%s: %s" % (what, ", ".join(names))


def _close(session: Session | None) -> None:
    """A session that cannot be closed properly, for its task is gone, is no use anyway."""
    if session is not None:
        try:
            session.close()
        except errors.OpError:
            pass


class _closed_on_error:  # noqa: N801 (a context manager in the manner of contextlib's)
    """A context manager that closes a session when its block fails."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, *unused: Any) -> None:
        if kind is not None:
            _close(self._session)


__all__ = ["SessionManager"]
