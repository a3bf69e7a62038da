# SPDX-License-Identifier: Apache-2.0
"""Supervisor: TensorFlow 1's older training helper, with threads that save and count."""

from __future__ import annotations

import contextlib
import logging
import os
import time

from treenail._array import concat
from treenail._checks import a_path, having
from treenail._control import group
from treenail._framework import Graph, GraphKeys, get_default_graph
from treenail._variables import (global_variables, global_variables_initializer,
                                 report_uninitialized_variables)
from treenail.errors import OpError
from treenail.train._coordinator import Coordinator, LooperThread
from treenail.train._global_step import get_global_step
from treenail.train._queue_runner import start_queue_runners
from treenail.train._saver import Saver
from treenail.train._scaffold import Scaffold
from treenail.train._session_manager import SessionManager, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator, Sequence

    from treenail._session import Session

_log = logging.getLogger("treenail")
_DEFAULT = 0  # Supervisor.USE_DEFAULT


def _is_default(value: Any) -> bool:
    return value is _DEFAULT


class Supervisor:
    """Makes a session that is restored or initialised, and runs threads that save checkpoints and
    summaries beside the training.

        supervisor = tn.train.Supervisor(logdir="run")
        with supervisor.managed_session() as session:
            while not supervisor.should_stop():
                session.run(train, {x: batch})

    Each operation may be given, be None for none, or is made (USE_DEFAULT), as Scaffold does, when
    the Supervisor is; then the graph is finalized. graph: by default the default graph. is_chief:
    whether this task initialises and saves; the others wait for it. logdir: where checkpoints and
    event files go; None for neither. summary_op: all summaries. saver: of all variables.
    global_step: the scalar that counts. save_summaries_secs, save_model_secs: from one to the next;
    0 for never. recovery_wait_secs: between two looks of the others. stop_grace_secs: how long
    threads may take to end. checkpoint_basename: files are named "<basename>-<step>".
    session_manager, summary_writer: in place of those that are made. init_fn(session): called after
    init_op. local_init_run_options: RunOptions of local_init_op.

    MonitoredTrainingSession does the same within the loop, and recovers besides.
    """

    USE_DEFAULT = _DEFAULT

    def __init__(self, graph: Graph | None = None, ready_op: Any = USE_DEFAULT,
                 ready_for_local_init_op: Any = USE_DEFAULT, is_chief: bool = True,
                 init_op: Any = USE_DEFAULT, init_feed_dict: dict | None = None,
                 local_init_op: Any = USE_DEFAULT, logdir: Any = None,
                 summary_op: Any = USE_DEFAULT, saver: Any = USE_DEFAULT,
                 global_step: Any = USE_DEFAULT, save_summaries_secs: float = 120,
                 save_model_secs: float = 600, recovery_wait_secs: float = 30,
                 stop_grace_secs: float = 120, checkpoint_basename: str = "model.ckpt",
                 session_manager: Any = None, summary_writer: Any = USE_DEFAULT,
                 init_fn: Callable | None = None, local_init_run_options: Any = None) -> None:
        if graph is not None and not isinstance(graph, Graph):
            raise TypeError("graph must be a tn.Graph, not %r" % (graph,))
        self._graph = get_default_graph() if graph is None else graph
        self._logdir = None if logdir is None else os.fsdecode(a_path(logdir, "logdir"))
        self._is_chief, self._init_feed_dict, self._init_fn = is_chief, init_feed_dict, init_fn
        self._save_summaries_secs = seconds(save_summaries_secs, "save_summaries_secs")
        self._save_model_secs = seconds(save_model_secs, "save_model_secs")
        self._stop_grace_secs = seconds(stop_grace_secs, "stop_grace_secs")
        self._save_path = None
        if self._logdir is not None:
            self._save_path = os.path.join(self._logdir, checkpoint_basename)
        self._coord = Coordinator()
        with self._graph.as_default():
            self._make_operations(init_op, ready_op, ready_for_local_init_op, local_init_op,
                                  summary_op, global_step, saver)
        self._summary_writer = summary_writer
        if _is_default(summary_writer):
            self._summary_writer = self._own_writer()
        self._managed_threads: list = []
        self._session_manager = session_manager or SessionManager(
            local_init_op=self._local_init_op, ready_op=self._ready_op, graph=self._graph,
            ready_for_local_init_op=(None if self._local_init_op is None
                                     else self._ready_for_local_init_op),
            recovery_wait_secs=recovery_wait_secs,
            local_init_run_options=local_init_run_options)
        having(self._session_manager, "prepare_session", "session_manager", "a SessionManager")
        self._graph.finalize()

    def _make_operations(self, init_op: Any, ready_op: Any, ready_for_local_init_op: Any,
                         local_init_op: Any, summary_op: Any, global_step: Any,
                         saver: Any) -> None:
        from treenail.summary import merge_all

        def chosen(given: Any, key: str, make: Callable) -> Any:
            if not _is_default(given):
                return given
            found = self._graph.get_collection(key)
            if found:
                return found[0]
            made = make()
            if made is not None:
                self._graph.add_to_collection(key, made)
            return made
        self._init_op = chosen(init_op, GraphKeys.INIT_OP,
                               lambda: group(global_variables_initializer(), name="init_all"))
        self._ready_op = chosen(ready_op, GraphKeys.READY_OP,
                                lambda: concat([report_uninitialized_variables()], 0))
        self._ready_for_local_init_op = chosen(
            ready_for_local_init_op, GraphKeys.READY_FOR_LOCAL_INIT_OP,
            lambda: report_uninitialized_variables(global_variables(),
                                                   name="report_uninitialized_globals"))
        self._local_init_op = chosen(local_init_op, GraphKeys.LOCAL_INIT_OP,
                                     Scaffold.default_local_init_op)
        self._summary_op = chosen(summary_op, GraphKeys.SUMMARY_OP, merge_all)
        self._global_step = get_global_step() if _is_default(global_step) else global_step
        self._saver = chosen(saver, GraphKeys.SAVERS,
                             lambda: Saver(allow_empty=True) if global_variables() else None)

    def _own_writer(self) -> Any:
        if self._logdir is None or not self._is_chief:
            return None
        from treenail.summary import FileWriter
        return FileWriter(self._logdir)

    # --- What it is -------------------------------------------------------------------------------

    @property
    def coord(self) -> Coordinator:
        """The Coordinator of the threads."""
        return self._coord

    @property
    def is_chief(self) -> bool:
        """Whether this task initialises and saves."""
        return self._is_chief

    @property
    def session_manager(self) -> Any:
        """The SessionManager."""
        return self._session_manager

    @property
    def init_op(self) -> Any:
        """What initialises global variables, or None."""
        return self._init_op

    @property
    def init_feed_dict(self) -> Any:
        """Feeds of init_op."""
        return self._init_feed_dict

    @property
    def ready_op(self) -> Any:
        """What gives the names of variables without values, or None."""
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        """The same, of those that local_init_op needs."""
        return self._ready_for_local_init_op

    @property
    def summary_op(self) -> Any:
        """What merges the summaries, or None."""
        return self._summary_op

    @property
    def summary_writer(self) -> Any:
        """The FileWriter, or None."""
        return self._summary_writer

    @property
    def saver(self) -> Any:
        """The Saver, or None."""
        return self._saver

    @property
    def global_step(self) -> Any:
        """The scalar that counts steps, or None."""
        return self._global_step

    @property
    def save_path(self) -> str | None:
        """What names of checkpoints begin with, or None."""
        return self._save_path

    @property
    def save_model_secs(self) -> float:
        """Seconds from one checkpoint to the next; 0 for never."""
        return self._save_model_secs

    @property
    def save_summaries_secs(self) -> float:
        """Seconds from one summary to the next; 0 for never."""
        return self._save_summaries_secs

    # --- Sessions ---------------------------------------------------------------------------------

    def prepare_or_wait_for_session(self, master: str = "", config: Any = None,
                                    wait_for_checkpoint: bool = False,
                                    max_wait_secs: float = 7200,
                                    start_standard_services: bool = True) -> Session:
        """A session that is ready: of the chief restored or initialised, of others waited for.
        Queue runners, and the chief's threads, are started."""
        self._coord.clear_stop()
        if self._summary_writer is not None:
            self._summary_writer.reopen()
        if self._is_chief:
            session = self._session_manager.prepare_session(
                master, init_op=self._init_op, saver=self._saver, checkpoint_dir=self._logdir,
                wait_for_checkpoint=wait_for_checkpoint, max_wait_secs=max_wait_secs,
                config=config, init_feed_dict=self._init_feed_dict, init_fn=self._init_fn)
            if self._summary_writer is not None:
                self._summary_writer.add_graph(self._graph)
            if start_standard_services:
                self.start_standard_services(session)
        else:
            session = self._session_manager.wait_for_session(master, config=config,
                                                             max_wait_secs=max_wait_secs)
        self.start_queue_runners(session)
        return session

    @contextlib.contextmanager
    def managed_session(self, master: str = "", config: Any = None,
                        start_standard_services: bool = True,
                        close_summary_writer: bool = True) -> Iterator[Session]:
        """A context manager around prepare_or_wait_for_session(), which stops the threads and
        closes the session when it is left. What the block or a thread raises comes out; the end of
        the input is no error."""
        session = None
        try:
            session = self.prepare_or_wait_for_session(
                master=master, config=config, start_standard_services=start_standard_services)
            with session.as_default(), self._graph.as_default():
                yield session
        except Exception as error:
            self._coord.request_stop(error)
        finally:
            try:
                self._coord.request_stop()
                if session is not None:
                    self._coord.end_fillers(session.close, self._stop_grace_secs)
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                if session is not None:
                    with contextlib.suppress(OpError):  # its task may be gone
                        session.close()

    def start_queue_runners(self, sess: Session, queue_runners: Sequence | None = None) -> list:
        """Starts the threads of queue runners, by default of all in the graph, and gives them."""
        having(sess, "run", "sess", "a Session")
        if queue_runners is None:
            if not self._graph.get_collection(GraphKeys.QUEUE_RUNNERS):
                return []
            threads = start_queue_runners(sess=sess, coord=self._coord)
        else:
            threads = [thread for runner in queue_runners for thread in having(
                runner, "create_threads", "an element of queue_runners", "a QueueRunner"
            ).create_threads(sess, coord=self._coord, daemon=True, start=True)]
        self._managed_threads += threads
        return threads

    # --- Threads ----------------------------------------------------------------------------------

    def start_standard_services(self, sess: Session) -> list | None:
        """Starts the threads that save checkpoints and summaries and count steps, and gives them.
        Raises RuntimeError unless this is the chief."""
        if not self._is_chief:
            raise RuntimeError("Only chief supervisor can start standard services. Because only "
                               "chief supervisors can write events.")
        having(sess, "run", "sess", "a Session")
        if self._logdir is None:
            _log.warning("Standard services need a 'logdir' passed to the Supervisor")
            return None
        self._log_status("START", sess)
        threads = []
        if self._save_summaries_secs and self._summary_writer is not None:
            if self._summary_op is not None:
                threads.append(self._looper(self._save_summaries_secs, self._summaries_once, sess))
            if self._global_step is not None:
                self._counted = int(sess.run(self._global_step)), time.monotonic()
                threads.append(self._looper(self._save_summaries_secs, self._count_once, sess))
        if self._saver is not None and self._save_model_secs:
            os.makedirs(self._logdir, exist_ok=True)
            threads.append(self._looper(self._save_model_secs, self._save_once, sess))
        self._managed_threads += threads
        return threads

    def _looper(self, seconds: float, target: Callable, sess: Session) -> LooperThread:
        return LooperThread.loop(self._coord, seconds, target=target, args=(sess,))

    def _summaries_once(self, sess: Session) -> None:
        self.summary_computed(sess, sess.run(self._summary_op))

    def _count_once(self, sess: Session) -> None:
        from treenail.summary import Summary
        step, now = int(sess.run(self._global_step)), time.monotonic()
        (before, then), self._counted = self._counted, (step, now)
        if now > then and step != before:
            rate = (step - before) / (now - then)
            value = Summary.Value(tag="%s/sec" % self._global_step.op.name, simple_value=rate)
            self._summary_writer.add_summary(Summary(value=[value]), step)
            _log.info("%s: %g", value.tag, rate)

    def _save_once(self, sess: Session) -> None:
        self._saver.save(sess, self._save_path, global_step=self._global_step)
        self._log_status("CHECKPOINT", sess, checkpoint_path=self._save_path)

    def _log_status(self, status: str, sess: Session | None, **fields: Any) -> None:
        """Writes that the session began, saved or ended."""
        if self._summary_writer is None:
            return
        from treenail.summary import SessionLog
        step = None
        if sess is not None and self._global_step is not None:
            step = int(sess.run(self._global_step))
        self._summary_writer.add_session_log(
            SessionLog(status=getattr(SessionLog, status), **fields), step)

    def loop(self, timer_interval_secs: float | None, target: Callable,
             args: Sequence | None = None, kwargs: dict | None = None) -> LooperThread:
        """A thread, started, that calls target(*args, **kwargs) every so many seconds, or again and
        again, until the supervisor stops."""
        if not callable(target):
            raise TypeError("target must be a function, not %r" % (target,))
        thread = LooperThread.loop(self._coord, timer_interval_secs, target, args, kwargs)
        self._managed_threads.append(thread)
        return thread

    Loop = loop

    def summary_computed(self, sess: Session, summary: Any, global_step: Any = None) -> None:
        """Writes a summary that the program has computed, at a step; by default the global step in
        `sess`. Raises RuntimeError without a summary writer."""
        if self._summary_writer is None:
            raise RuntimeError("Supervisor.summary_computed(): Writing a summary requires a "
                               "summary writer.")
        if global_step is None and self._global_step is not None:
            global_step = int(having(sess, "run", "sess", "a Session").run(self._global_step))
        self._summary_writer.add_summary(summary, global_step)

    def stop(self, threads: Sequence | None = None, close_summary_writer: bool = True,
             ignore_live_threads: bool = False) -> None:
        """Stops the threads, these or all that were started, and raises what one of them has
        raised."""
        self._coord.request_stop()
        try:
            self._coord.join(self._managed_threads if threads is None else threads,
                             stop_grace_period_secs=self._stop_grace_secs,
                             ignore_live_threads=ignore_live_threads)
        finally:
            if close_summary_writer and self._summary_writer is not None:
                self._log_status("STOP", None)
                self._summary_writer.close()
            self._managed_threads = []

    def request_stop(self, ex: Any = None) -> None:
        """Asks the threads to stop, as Coordinator.request_stop."""
        self._coord.request_stop(ex)

    def should_stop(self) -> bool:
        """Whether they were asked."""
        return self._coord.should_stop()

    def stop_on_exception(self) -> Any:
        """A context manager: what is raised inside asks them to stop."""
        return self._coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Waits until they are asked."""
        self._coord.wait_for_stop()


__all__ = ["Supervisor"]
