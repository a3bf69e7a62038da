# SPDX-License-Identifier: Apache-2.0
"""Calls of a function for each of several replicas, on a thread each, of which one runs at a time:
replica after replica, up to the next merge_call() of all, so that graphs are built in one order.
Each thread begins in the surroundings of the caller."""

from __future__ import annotations

import copy
import threading

from treenail._control import no_op
from treenail._framework import get_default_graph
from treenail._precision import as_around
from treenail._replica import current
from treenail._variable_scope import _store, get_variable_scope
from treenail.distribute._mirrored_variable import MirroredVariable
from treenail.distribute._replica_context import ReplicaContext
from treenail.distribute._values import regroup, select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class _Abandoned(BaseException):
    """Ends the thread of a replica whose call has failed elsewhere."""


class _Surroundings:
    """What the caller's thread has around the call, for the threads of its replicas."""

    def __init__(self) -> None:
        self.graph = get_default_graph()
        self.name_scope = self.graph._scope
        self.functions = self.graph._device_functions.stack
        self.variable_scope = get_variable_scope()
        self.opened = _store().opened
        self.precision = as_around()
        self.made: dict = {}  # variables of the first replica, by name
        self.anchor = no_op(name="replicas") if self.graph._has_controllers() else None

    def enter(self, replica: ReplicaContext, number: int) -> list:
        """Enters it on a replica's thread; the contexts, to leave."""
        graph = self.graph
        own = self.name_scope + ("replica_%d/" % number if number else "")
        store = _store(graph)
        store.opened, store.current = copy.deepcopy(self.opened), self.variable_scope
        if number:  # what the first has made, the others find
            store.current = self.variable_scope._copy(_reuse=True)
        contexts = [graph.as_default(), graph.name_scope(own),
                    graph.control_dependencies([self.anchor] if self.anchor is not None else []),
                    *[graph.device(function) for function, _ in self.functions],
                    graph.device(replica.devices[0]), self.precision]
        for context in contexts:
            context.__enter__()
        return contexts


class ReplicaThread:
    """One replica's call."""

    def __init__(self, number: int, replica: ReplicaContext, surroundings: _Surroundings,
                 call: Callable) -> None:
        self.replica, self._number = replica, number
        self._surroundings, self._call = surroundings, call
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._abandoned = False
        self.wanted: Any = None   # (function, args, kwargs) of a merge_call
        self.anchor: Any = None   # of the control dependencies around it
        self.merged: Any = None
        self.result: Any = None
        self.opened: Any = None  # names of scopes, at the end
        self.error: Any = None
        self.over = False
        self._taken: dict = {}  # how many variables, by name
        replica._thread = self
        self._thread = threading.Thread(target=self._run, daemon=True,
                                        name="replica %d" % number)
        self._thread.start()

    def _run(self) -> None:
        self._go.acquire()
        try:
            if not self._abandoned:
                self._build()
        except _Abandoned:
            pass
        except BaseException as error:  # noqa: B902 (the caller's thread raises it)
            self.error = error
        self.over = True
        self._stopped.release()

    def _build(self) -> None:
        current.strategy, current.replica = self.replica.strategy, self.replica
        contexts = self._surroundings.enter(self.replica, self._number)
        try:
            self.result = self._call()
            self.opened = _store().opened
        finally:
            for context in reversed(contexts):
                context.__exit__(None, None, None)

    def step(self) -> None:
        """Lets it go on until it meets the others, or ends. Raises what it has raised."""
        self.wanted = None
        self._go.release()
        self._stopped.acquire()
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    def meet(self, *wanted: Any) -> Any:
        """On its own thread: waits until the caller's has merged."""
        graph = get_default_graph()
        self.anchor = no_op(name="merge") if graph._has_controllers() else None
        self.wanted = wanted
        self._stopped.release()
        self._go.acquire()
        if self._abandoned:
            raise _Abandoned
        return self.merged

    def new_variable(self, name: str | None) -> Any:
        """What the first replica makes, and the others find, the n-th of a name the n-th time."""
        made = self._surroundings.made.setdefault(name or "Variable", [])
        if self._number == 0:
            made.append(object.__new__(MirroredVariable))
            return made[-1]
        count = self._taken.get(name or "Variable", 0)
        self._taken[name or "Variable"] = count + 1
        if count >= len(made):
            raise ValueError("replica %d makes a variable %r that replica 0 has not made; all "
                             "replicas must make the same" % (self._number, name or "Variable"))
        return made[count]

    def abandon(self) -> None:
        """Ends the thread."""
        self._abandoned = True
        self._go.release()
        self._thread.join()


def call_for_each(strategy: Any, replicas: list, fn: Callable, args: tuple, kwargs: dict) -> Any:
    """fn(*args, **kwargs) of each replica, with its part of the arguments; the results regrouped.
    """
    surroundings = _Surroundings()

    def call_of(number: int) -> Callable:
        return lambda: fn(*select(number, args), **select(number, kwargs))
    threads = [ReplicaThread(number, replica, surroundings, call_of(number))
               for number, replica in enumerate(replicas)]
    try:
        while not threads[0].over:
            for thread in threads:
                thread.step()
            if any(thread.over != threads[0].over for thread in threads):
                raise ValueError("merge_call() was called by some replicas, and not by replica %d; "
                                 "all must call it alike"
                                 % [t.over for t in threads].index(True))
            if not threads[0].over:
                _merge(strategy, surroundings.graph, threads)
    finally:
        for thread in threads:
            if not thread.over:
                thread.abandon()
    opened, own = _store().opened, threads[0].opened
    opened.times, opened.inner, opened.numbers = own.times, own.inner, own.numbers
    return regroup([thread.result for thread in threads])


def _merge(strategy: Any, graph: Any, threads: list) -> None:
    merge_fn = threads[0].wanted[0]
    args = regroup([tuple(thread.wanted[1]) for thread in threads])
    kwargs = regroup([dict(thread.wanted[2]) for thread in threads])
    anchors = [thread.anchor for thread in threads if thread.anchor is not None]
    with graph.control_dependencies(anchors):
        result = merge_fn(strategy, *args, **kwargs)
    for number, thread in enumerate(threads):
        thread.merged = select(number, result)
