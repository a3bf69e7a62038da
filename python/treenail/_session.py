# SPDX-License-Identifier: Apache-2.0
"""Sessions: running parts of a graph, with state that lasts from run to run."""

from __future__ import annotations

import threading
from collections import namedtuple

from treenail import _treenail as _core
from treenail._checks import having
from treenail._feeds import fed_tensors
from treenail._framework import Graph, get_default_graph
from treenail._session_options import (ConfigProto, GPUOptions, GraphOptions, OptimizerOptions,
                                       RunMetadata, RunOptions, device_limits)
from treenail._shown import public_name
from treenail._treenail import Operation, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence


_stacks = threading.local()


def _stack() -> list:
    if not hasattr(_stacks, "sessions"):
        _stacks.sessions = []
    return _stacks.sessions


DeviceAttributes = namedtuple("DeviceAttributes", "name device_type memory_limit_bytes")
DeviceAttributes.__doc__ = """A device of a session.

name: the full name. device_type: "CPU". memory_limit_bytes: what it may take; 0: all there is."""


class Session(_core.SessionBase):
    """Runs parts of a graph and keeps the values of its variables.

    Several threads may run one session at once, and several sessions one graph. As a context
    manager a session is the default one, its graph the default graph, and leaving closes it.

    target: '' (this process), or "grpc://host:port" of a server (tn.train.Server), whose cluster
    runs the graph then, and keeps the variables beyond the session. graph: by default the default
    graph. config: a ConfigProto.
    """

    _closed = True  # until __init__ has opened it

    def __init__(self, target: str = "", graph: Graph | None = None,
                 config: ConfigProto | None = None) -> None:
        if not isinstance(target, str):
            raise TypeError("target must be '' or \"grpc://host:port\", but got %r" % (target,))
        if graph is not None and not isinstance(graph, Graph):
            raise TypeError("graph must be a tn.Graph, but got %r" % (graph,))
        if config is not None and not isinstance(config, ConfigProto):
            raise TypeError("config must be a tn.ConfigProto, but got %r" % (config,))
        config = config or ConfigProto()
        options = config.graph_options.optimizer_options
        plain = options.opt_level < 0
        self._config, self._closed, self._contexts = config, False, []
        self._target = target
        if config.intra_op_parallelism_threads > 0:
            _core.set_num_threads(config.intra_op_parallelism_threads)
        graph = get_default_graph() if graph is None else graph
        if graph._immediate:
            raise RuntimeError("a Session runs a graph, and operations run at once here: give it "
                               "one, as tn.Session(graph=g)")
        self._open(graph, options.do_constant_folding and not plain,
                   options.do_common_subexpression_elimination and not plain,
                   config.allow_soft_placement,
                   options.do_elementwise_fusion and not plain,
                   device_limits(config.device_count), config.log_device_placement, target,
                   config.graph_options.placement and config.graph_options.placement._model(),
                   tuple(config.device_filters), config.keepalive_in_ms, config.credentials,
                   config.graph_options._sent_as())
        self._default_options = None
        if config.operation_timeout_in_ms:
            self._default_options = RunOptions(timeout_in_ms=config.operation_timeout_in_ms)
            self.run = self._run_with_options

    def _run_with_options(self, fetches: Any, feed_dict: Any = None, options: Any = None,
                          run_metadata: Any = None) -> Any:
        limit = self._default_options.timeout_in_ms
        if options is None:
            options = self._default_options
        elif isinstance(options, RunOptions) and options.timeout_in_ms == 0:
            options = RunOptions(trace_level=options.trace_level, timeout_in_ms=limit)
        return _core.SessionBase.run(self, fetches, feed_dict, options, run_metadata)

    @property
    def sess_str(self) -> str:
        """The target: '', or "grpc://host:port"."""
        return self._target

    @staticmethod
    def reset(target: str, containers: Sequence | None = None, config: Any = None) -> None:
        """Removes the variables, queues and tables of `containers` (all, where None) from every
        task of the cluster that `target` is of, and ends the sessions there.

        target: "grpc://host:port". config: a ConfigProto, for its credentials. Raises
        InvalidArgumentError for another target, UnavailableError where nothing answers there.
        """
        if config is not None and not isinstance(config, ConfigProto):
            raise TypeError("config must be a tn.ConfigProto, but got %r" % (config,))
        _core.reset_cluster(target, config.credentials if config is not None else "",
                            [] if containers is None else list(containers))

    @property
    def graph_def(self) -> Graph:
        """The graph that is run."""
        return self.graph

    def make_callable(self, fetches: Any, feed_list: Sequence = (),
                      accept_options: bool = False) -> Callable:
        """A function that runs `fetches`; its arguments are the values of the tensors in
        feed_list.

        Raises TypeError and ValueError for fetches and feeds that make no sense.
        """
        keys = list(feed_list)
        self._check(fetches, keys)
        run = self.run

        def function(*values: Any, options: Any = None, run_metadata: Any = None) -> Any:
            if len(values) != len(keys):
                raise ValueError("the callable takes %d values (%s), %d were given"
                                 % (len(keys), ", ".join(getattr(k, "name", str(k)) for k in keys),
                                    len(values)))
            return run(fetches, dict(zip(keys, values)), options, run_metadata)
        return function

    def partial_run_setup(self, fetches: Any, feeds: Sequence | None = None) -> str:
        """Begins a run that is fed and fetched from in several calls of partial_run().

        fetches: all that will be asked for, as for run(). feeds: all the tensors that will be fed.
        The handle that names the run is valid until each of them has been named once in
        partial_run(), an operation has failed, or the session is closed.

        Raises TypeError and ValueError for fetches and feeds that make no sense.
        """
        return self._partial_run_setup(fetches, fed_tensors([] if feeds is None else list(feeds)))

    def partial_run(self, handle: str, fetches: Any, feed_dict: Any = None) -> Any:
        """Goes on with a run that partial_run_setup() began, and gives the values of `fetches`.

        Each feed and each fetch of the set-up may be named once. What is fetched must need no feed
        that is still to come. Operations run once, as soon as what they need is there; a value that
        was fed may be changed after the call.

        Raises InvalidArgumentError for a handle, feed or fetch that is not (or no longer) awaited,
        and the run stays as it was; what operations raise ends it.
        """
        if not isinstance(handle, str):
            raise TypeError("handle must be what partial_run_setup() gave, a str, but got %r"
                            % (handle,))
        return self._partial_run(handle, fetches, feed_dict)

    def as_default(self) -> _DefaultSession:
        """A context manager in which this is the default session; leaving does not close it."""
        return _DefaultSession(self)

    def close(self) -> None:
        """Cancels what runs and frees the variables. Later runs raise FailedPreconditionError.

        A run in flight keeps what it uses until it has ended; fetched arrays stay as they are."""
        if not self._closed:
            self._closed = True
            _core.SessionBase.close(self)

    def list_devices(self) -> list:
        """The devices, each with name, device_type and memory_limit_bytes; 0: unknown."""
        host = _core.build_info()["memory_limit"] or 0
        kinds = [(name, name.split(":")[-2]) for name in self._device_names()]
        return [DeviceAttributes(name, kind, host if kind == "CPU" else 0)
                for name, kind in kinds]

    def __repr__(self) -> str:
        name = public_name(self)
        if "_config" not in self.__dict__:
            return "<%s that was never opened>" % name
        return "<%s of %r%s>" % (name, self.graph, ", closed" if self._closed else "")

    def __enter__(self) -> Session:
        context, graph = _DefaultSession(self), self.graph.as_default()
        graph.__enter__()
        context.__enter__()
        self._contexts.append((context, graph))
        return self

    def __exit__(self, *unused) -> None:
        context, graph = self._contexts.pop()
        context.__exit__()
        graph.__exit__()
        self.close()


class _DefaultSession:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> Session:
        _stack().append(self._session)
        return self._session

    def __exit__(self, *unused) -> None:
        _stack().pop()


class InteractiveSession(Session):
    """A session that is the default one from its making until it is closed: for shells and
    notebooks."""

    _default_graph: Any = None

    def __init__(self, target: str = "", graph: Graph | None = None,
                 config: ConfigProto | None = None) -> None:
        super().__init__(target, graph, config)
        self._default_graph = None
        if graph is not None:
            self._default_graph = graph.as_default()
            self._default_graph.__enter__()
        _stack().append(self)

    def close(self) -> None:
        """Closes the session; it is no longer the default one."""
        sessions = _stack()
        if self in sessions:
            sessions.remove(self)
        if self._default_graph is not None:
            self._default_graph.__exit__()
            self._default_graph = None
        super().close()


def get_default_session() -> Session | None:
    """The innermost session of a `with` on this thread, or None."""
    sessions = _stack()
    return sessions[-1] if sessions else None


def session_or_default(session: Session | None, graph: Graph | None = None) -> Session:
    """`session`, or the default one. Raises ValueError when there is none, or it runs another
    graph."""
    given = session
    if session is not None:
        having(session, "run", "session", "a Session")
    session = session or get_default_session()
    if session is None:
        raise ValueError("Cannot evaluate: No default session is registered. Use `with "
                         "sess.as_default()` or pass an explicit session.")
    if graph is not None and session.graph is not graph:
        raise ValueError("Cannot use the %s session to evaluate: it runs another graph."
                         % ("given" if given else "default"))
    return session


def _eval(self: Tensor, feed_dict: dict | None = None, session: Session | None = None) -> Any:
    """The value of this tensor in `session` (the default one)."""
    return session_or_default(session, self.graph).run(self, feed_dict)


def _run(self: Operation, feed_dict: dict | None = None, session: Session | None = None) -> None:
    """Runs this operation in `session` (the default one)."""
    session_or_default(session, self.graph).run(self, feed_dict)


_eval.__name__, _eval.__qualname__ = "eval", "Tensor.eval"
_run.__name__, _run.__qualname__ = "run", "Operation.run"
Tensor.eval = _eval
Operation.run = _run

__all__ = ["Session", "InteractiveSession", "ConfigProto", "GraphOptions", "GPUOptions",
           "OptimizerOptions", "RunOptions", "RunMetadata", "get_default_session"]
