# SPDX-License-Identifier: Apache-2.0
"""Threads that keep queues filled: TensorFlow 1's QueueRunner and start_queue_runners."""

from __future__ import annotations

import threading
import weakref

from treenail._checks import having
from treenail._framework import GraphKeys, add_to_collection
from treenail.errors import OpError, OutOfRangeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from treenail._queues import QueueBase
    from treenail._session import Session
    from treenail._treenail import Operation
    from treenail.train._coordinator import Coordinator


class QueueRunner:
    """Runs enqueue operations again and again, each in a thread of its own, until one of them finds
    that there is no more.

        queue = tn.FIFOQueue(32, tn.float32, [])
        runner = tn.train.QueueRunner(queue, [queue.enqueue(example)] * 4)
        coord = tn.train.Coordinator()
        threads = runner.create_threads(session, coord, start=True)
        ...
        coord.request_stop()
        coord.join(threads)

    queue: a QueueBase. enqueue_ops: operations, one per thread. close_op: run when the last of the
    threads has found the end; queue.close() by default. cancel_op: run when the coordinator stops;
    queue.close(cancel_pending_enqueues=True) by default. queue_closed_exception_types: a tuple of
    errors that mean the end of the data; OutOfRangeError by default. Any other error stops the
    coordinator. Raises ValueError and TypeError.
    """

    def __init__(self, queue: QueueBase | None = None, enqueue_ops: Sequence | None = None,
                 close_op: Operation | None = None, cancel_op: Operation | None = None,
                 queue_closed_exception_types: tuple | None = None,
                 queue_runner_def: Any = None, import_scope: str | None = None) -> None:
        if queue_runner_def is not None:
            raise ValueError("queue_runner_def must be None: there are no such protocol buffers; "
                             "give queue and enqueue_ops")
        if queue is None or not enqueue_ops:
            raise ValueError("Must provide queue and enqueue_ops.")
        self._queue = having(queue, "queue_ref", "queue", "a queue, such as a tn.FIFOQueue")
        self._enqueue_ops = list(enqueue_ops)
        self._ends = _error_types(queue_closed_exception_types)
        self._close_op = queue.close() if close_op is None else close_op
        self._cancel_op = (queue.close(cancel_pending_enqueues=True) if cancel_op is None
                           else cancel_op)
        self._lock = threading.Lock()
        self._running: Any = weakref.WeakKeyDictionary()  # {session: threads that enqueue}
        self._raised: list = []

    @property
    def queue(self) -> QueueBase:
        """The queue that is filled."""
        return self._queue

    @property
    def enqueue_ops(self) -> list:
        """The operations that fill it."""
        return self._enqueue_ops

    @property
    def close_op(self) -> Operation:
        """What is run when there is no more."""
        return self._close_op

    @property
    def cancel_op(self) -> Operation:
        """What is run when the coordinator stops."""
        return self._cancel_op

    @property
    def queue_closed_exception_types(self) -> tuple:
        """The errors that mean that there is no more."""
        return self._ends

    @property
    def exceptions_raised(self) -> list:
        """What threads without a coordinator have raised since they were made."""
        return self._raised

    @property
    def name(self) -> str:
        """The queue's name."""
        return self._queue.name

    def create_threads(self, sess: Session, coord: Coordinator | None = None, daemon: bool = False,
                       start: bool = False) -> list:
        """The threads that fill the queue in `sess`, one per enqueue operation, and with a
        coordinator one more, which runs cancel_op when it stops; none while those made before
        run.

        coord: what stops them, and is told their errors; without one errors are in
        exceptions_raised, and raised in the thread. daemon: whether they let the program end.
        start: whether they are started.
        """
        having(sess, "run", "sess", "a Session")
        with self._lock:
            if self._running.get(sess, 0) > 0:
                return []
            self._running[sess] = len(self._enqueue_ops)
            self._raised = []
        threads = [self._thread(self._fill, (sess, op, coord), getattr(op, "name", op))
                   for op in self._enqueue_ops]
        if coord is not None:
            threads.append(self._thread(self._cancel_on_stop, (sess, coord), "close_on_stop"))
        for thread in threads:
            thread.daemon = daemon
            thread.only_runs = True  # so that closing the session may end it
            if coord is not None:
                coord.register_thread(thread)
            if start:
                thread.start()
        return threads

    def _thread(self, target: Any, args: tuple, what: str) -> threading.Thread:
        return threading.Thread(target=target, args=args,
                                name="QueueRunnerThread-%s-%s" % (self.name, what))

    def _fill(self, sess: Session, enqueue_op: Operation, coord: Coordinator | None) -> None:
        try:
            enqueue = sess.make_callable(enqueue_op)
            while coord is None or not coord.should_stop():
                enqueue()
        except self._ends:
            if self._one_less(sess) == 0:
                self._run_quietly(sess, self._close_op)
        except Exception as error:
            self._one_less(sess)
            if coord is None:
                with self._lock:
                    self._raised.append(error)
                raise
            coord.request_stop(error)
        else:
            self._one_less(sess)

    def _one_less(self, sess: Session) -> int:
        with self._lock:
            self._running[sess] -= 1
            return self._running[sess]

    def _cancel_on_stop(self, sess: Session, coord: Coordinator) -> None:
        coord.wait_for_stop()
        self._run_quietly(sess, self._cancel_op)

    @staticmethod
    def _run_quietly(sess: Session, close_op: Operation) -> None:
        """The queue may be closed, and the session, too."""
        try:
            sess.run(close_op)
        except (OpError, RuntimeError):
            pass

    def __repr__(self) -> str:
        return "<tn.train.QueueRunner of %r, %d threads>" % (self._queue, len(self._enqueue_ops))


def _error_types(types: Any) -> tuple:
    if types is None:
        return (OutOfRangeError,)
    if not isinstance(types, tuple) or not types or not all(
            isinstance(t, type) and issubclass(t, OpError) for t in types):
        raise TypeError("queue_closed_exception_types, when provided, must be a tuple of tn.errors "
                        "classes, but saw: %r" % (types,))
    return types


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Adds a QueueRunner to a collection of the default graph, for start_queue_runners()."""
    add_to_collection(collection, having(qr, "create_threads", "qr", "a QueueRunner"))


def start_queue_runners(sess: Session | None = None, coord: Coordinator | None = None,
                        daemon: bool = True, start: bool = True,
                        collection: str = GraphKeys.QUEUE_RUNNERS) -> list:
    """Starts the threads of all queue runners in a collection of the session's graph, and gives
    them.

    sess: by default that of the surrounding `with`. coord, daemon, start: as of
    QueueRunner.create_threads(). Raises ValueError without a session.
    """
    if sess is None:
        from treenail._session import get_default_session
        sess = get_default_session()
        if sess is None:
            raise ValueError("Cannot start queue runners: No default session is registered. Use "
                             "`with sess.as_default()` or pass an explicit session to "
                             "start_queue_runners(sess=sess)")
    graph = having(sess, "graph", "sess", "a Session").graph
    with graph.as_default():
        return [thread for runner in graph.get_collection(collection)
                for thread in runner.create_threads(sess, coord=coord, daemon=daemon, start=start)]
