# SPDX-License-Identifier: Apache-2.0
"""Summaries of training for TensorBoard: ops that make them, and writers of event files.

    tn.summary.scalar("loss", loss)
    merged = tn.summary.merge_all()
    with tn.summary.FileWriter("logs", session.graph) as writer:
        for step in range(100):
            writer.add_summary(session.run(merged), step)

A tag is the name given, below the name scopes around it and made unique; `family` groups tags:
it stands before them and in the name scope.
"""

from __future__ import annotations

import os
import re
import threading
import time
import weakref
from contextlib import contextmanager as _contextmanager

from treenail import _treenail as _core
from treenail._checks import a_path, having
from treenail._convert import convert_to_tensor, name_scope
from treenail._event_file import EventFile as _EventFile
from treenail._framework import Graph, GraphKeys, add_to_collections
from treenail._framework import get_collection as _get_collection
from treenail._graph_def import graph_def as _graph_def
from treenail._messages import (Event, HistogramProto, SessionLog, Summary,  # noqa: F401
                                SummaryMetadata)
from treenail._messages import TaggedRunMetadata as _TaggedRunMetadata
from treenail._names import no_attribute as _no_attribute
from treenail._ops import ops
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Sequence

_NOT_IN_TAGS = re.compile(r"[^-/\w\.]", re.ASCII)


def _clean(name: str) -> str:
    return _NOT_IN_TAGS.sub("_", name).lstrip("/")


@_contextmanager
def _scope(name: str, family: str | None, default: str, values: Sequence) -> Iterator[tuple]:
    """(tag, name of the op) of a summary."""
    name = _clean(name)
    family = None if family is None else _clean(family)
    base = name if family is None else "%s/%s" % (family, name)
    with name_scope(base, default, values) as scope:
        tag = scope.rstrip("/")
        yield (tag if family is None else "%s/%s" % (family, tag)), scope


def _collect(summary: Tensor, collections: Sequence | None, default: Sequence) -> Tensor:
    # What was computed at once is a value, not part of a graph.
    if hasattr(summary, "op") and summary.graph is not None:
        add_to_collections(default if collections is None else collections, summary)
    return summary


def scalar(name: str, tensor: Any, collections: Sequence | None = None,
           family: str | None = None) -> Tensor:
    """A summary of one real number, a scalar string.

    collections: of the graph that it is put into; by default GraphKeys.SUMMARIES, which
    merge_all() merges.
    """
    with _scope(name, family, "ScalarSummary", [tensor]) as (tag, scope):
        summary = ops.ScalarSummary(tag, tensor, name=scope)
        return _collect(summary, collections, [GraphKeys.SUMMARIES])


def histogram(name: str, values: Any, collections: Sequence | None = None,
              family: str | None = None) -> Tensor:
    """A summary of the distribution of real numbers. Raises InvalidArgumentError when one of them
    is not finite."""
    with _scope(name, family, "HistogramSummary", [values]) as (tag, scope):
        summary = ops.HistogramSummary(tag, values, name=scope)
        return _collect(summary, collections, [GraphKeys.SUMMARIES])


def image(name: str, tensor: Any, max_outputs: int = 3, collections: Sequence | None = None,
          family: str | None = None) -> Tensor:
    """A summary of the first `max_outputs` images of [batch, height, width, channels], uint8 or
    real; 1 channel is grey, 3 are RGB, 4 RGB and alpha.

    Real images are scaled, each by itself: to [0, 255], or about 128 where values are negative.
    """
    with _scope(name, family, "ImageSummary", [tensor]) as (tag, scope):
        summary = ops.ImageSummary(tag, tensor, max_images=max_outputs, name=scope)
        return _collect(summary, collections, [GraphKeys.SUMMARIES])


def audio(name: str, tensor: Any, sample_rate: Any, max_outputs: int = 3,
          collections: Sequence | None = None, family: str | None = None) -> Tensor:
    """A summary of the first `max_outputs` sounds of [batch, frames] or [batch, frames, channels],
    samples in [-1, 1]. sample_rate: a scalar, in Hz."""
    with _scope(name, family, "AudioSummary", [tensor]) as (tag, scope):
        sample_rate = convert_to_tensor(sample_rate, _core.float32, name="sample_rate")
        summary = ops.AudioSummary(tag, tensor, sample_rate, max_outputs=max_outputs, name=scope)
        return _collect(summary, collections, [GraphKeys.SUMMARIES])


def tensor_summary(name: str, tensor: Any, summary_description: str | None = None,
                   collections: Sequence | None = None,
                   summary_metadata: SummaryMetadata | None = None, family: str | None = None,
                   display_name: str | None = None) -> Tensor:
    """A summary that holds a tensor whole. summary_metadata: which plugin of TensorBoard shows it;
    display_name and summary_description are set in it."""
    if summary_metadata is not None and not hasattr(summary_metadata, "SerializeToString"):
        raise TypeError("summary_metadata must be a SummaryMetadata, not %r" % (summary_metadata,))
    metadata = SummaryMetadata() if summary_metadata is None else SummaryMetadata.FromString(
        summary_metadata.SerializeToString())
    if summary_description is not None:
        metadata.summary_description = summary_description
    if display_name is not None:
        metadata.display_name = display_name
    with _scope(name, family, "TensorSummary", [tensor]) as (tag, scope):
        serialized = convert_to_tensor(metadata.SerializeToString(), _core.string)
        summary = ops.TensorSummary(tag, tensor, serialized, name=scope)
        return _collect(summary, collections, [GraphKeys.SUMMARIES])


def text(name: str, tensor: Any, collections: Sequence | None = None) -> Tensor:
    """A summary of strings of any shape, shown as Markdown, in tables. Raises ValueError for
    another dtype."""
    tensor = convert_to_tensor(tensor)
    if tensor.dtype != _core.string:
        raise ValueError("Expected tensor %s to have dtype string, got %s" % (
            tensor.name, tensor.dtype.name))
    plugin = SummaryMetadata.PluginData(plugin_name="text")
    return tensor_summary(name, tensor, collections=collections,
                          summary_metadata=SummaryMetadata(plugin_data=plugin))


def merge(inputs: Sequence, collections: Sequence | None = None,
          name: str | None = None) -> Tensor:
    """One summary with the values of all `inputs`. Running it raises InvalidArgumentError when a
    tag is there twice."""
    inputs = [_clean_input(summary) for summary in inputs]
    with name_scope(name, "Merge", inputs):
        merged = ops.MergeSummary(inputs, name=name)
        return _collect(merged, collections, [])


def _clean_input(summary: Any) -> Any:
    return summary.SerializeToString() if isinstance(summary, Summary) else summary


def merge_all(key: str = GraphKeys.SUMMARIES, scope: str | None = None,
              name: str | None = None) -> Tensor | None:
    """merge() of a collection of the default graph: of those whose names match the regular
    expression `scope`, if one is given; None where there are none."""
    summaries = _get_collection(key, scope)
    return merge(summaries, name=name) if summaries else None


class FileWriter:
    """Writes events to a file in a directory, which TensorBoard reads meanwhile.

    The file and its directory are made with the first event. Events wait until there are
    `max_queue` of them, until the first has waited `flush_secs` seconds (a thread of the writer's
    sees to it), or for flush() and close(); at the end of the program, and when the writer is not
    used any more, what waits is written as well. Any threads may share a writer. A process that was
    forked writes to a file of its own.

    graph: is written first, as by add_graph(). filename_suffix: the end of the file's name.
    Methods raise OSError when the file cannot be written; events wait then and are tried again.
    """

    def __init__(self, logdir: Any, graph: Any = None, max_queue: int = 10,
                 flush_secs: float = 120, graph_def: Any = None,
                 filename_suffix: str | None = None) -> None:
        self._logdir = a_path(logdir, "logdir")
        self._settings = (max_queue, flush_secs, filename_suffix or "")
        self._run_tags: set = set()
        self._open()
        if graph is not None or graph_def is not None:
            self.add_graph(graph, graph_def=graph_def)

    def _open(self) -> None:
        self._file = _EventFile(os.fsdecode(self._logdir), *self._settings)
        # Called when the writer is forgotten, or else at the end of the program.
        self._finalizer = weakref.finalize(self, self._file.close)

    def get_logdir(self) -> Any:
        """The directory, as it was given."""
        return self._logdir

    def add_event(self, event: Event | bytes) -> None:
        """Adds an Event (or its bytes) as it is."""
        if not isinstance(event, bytes):
            event = having(event, "SerializeToString", "event", "an Event or its bytes"
                           ).SerializeToString()
        self._file.add(event)

    def _add(self, global_step: Any, **what: Any) -> None:
        step = None if global_step is None else int(global_step)
        self.add_event(Event(wall_time=time.time(), step=step, **what))

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Adds what running a summary op gave, or a Summary, at a step. Raises ValueError for bytes
        that are no summary."""
        if not isinstance(summary, Summary):
            data = summary if isinstance(summary, bytes) else bytes(_item(summary))
            summary = Summary.FromString(data)
        self._add(global_step, summary=summary)

    def add_session_log(self, session_log: SessionLog, global_step: Any = None) -> None:
        """Adds that a session began, ended or saved a checkpoint."""
        self._add(global_step, session_log=session_log)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Adds a graph for TensorBoard's graph view; values of constants beyond 64 KiB are left
        out.

        graph: a Graph. graph_def, in place of it: a Graph, too (as session.graph_def), or a
        GraphDef, or its bytes, which are taken as they are.
        """
        if (graph is None) == (graph_def is None):
            raise ValueError("Please pass only graph, or graph_def (deprecated), but not both: %r, "
                             "%r" % (graph, graph_def))
        if graph is not None and not isinstance(graph, Graph):
            raise TypeError("The passed graph must be an instance of Graph, not %r" % (graph,))
        self._add(global_step, graph_def=_graph_bytes(graph_def if graph is None else graph))

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Adds what a run told about itself, under a name of its own. Raises ValueError for a tag
        that was used before.

        run_metadata: the RunMetadata that Session.run filled, or the bytes of TensorFlow's.
        """
        if tag in self._run_tags:
            raise ValueError("The provided tag was already used for this event type: %r" % (tag,))
        if not isinstance(run_metadata, (bytes, bytearray)):
            if not hasattr(run_metadata, "SerializeToString"):
                raise TypeError("run_metadata must be a RunMetadata or the bytes of one, not %r"
                                % (run_metadata,))
            run_metadata = run_metadata.SerializeToString()
        tagged = _TaggedRunMetadata(tag=tag, run_metadata=bytes(run_metadata))
        self._add(global_step, tagged_run_metadata=tagged)
        self._run_tags.add(tag)

    def flush(self) -> None:
        """Writes what waits."""
        self._file.flush()

    def close(self) -> None:
        """Writes what waits and closes the file. Further events raise FailedPreconditionError
        until reopen()."""
        self._file.close()
        self._finalizer.detach()

    def reopen(self) -> None:
        """After close(): further events go to a new file."""
        if not self._file._closed:
            return
        self._open()

    def __repr__(self) -> str:
        return "<tn.summary.FileWriter of %r%s>" % (self._logdir,
                                                    ", closed" if self._file._closed else "")

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *unused) -> None:
        self.close()


def _graph_bytes(graph: Any) -> bytes:
    """The bytes of a GraphDef."""
    if isinstance(graph, Graph):
        return _graph_def(graph)
    if hasattr(graph, "SerializeToString"):
        return graph.SerializeToString()
    if isinstance(graph, (bytes, bytearray, memoryview)):
        return bytes(graph)
    raise TypeError("graph_def must be a Graph, a GraphDef or its bytes, not %r" % (graph,))


def _item(summary: Any) -> bytes:
    """The bytes of a scalar string array or tensor."""
    if isinstance(summary, Tensor) and not summary._is_concrete:
        raise TypeError("a summary must be what a run gave, not %r itself" % (summary,))
    value = summary.numpy() if isinstance(summary, Tensor) else summary
    value = value.item() if hasattr(value, "item") else value
    if not isinstance(value, (bytes, bytearray)):
        raise TypeError("a summary must be the bytes of one, or a Summary, not %r" % (summary,))
    return value


class FileWriterCache:
    """One FileWriter for each directory."""

    _cache: dict = {}
    _lock = threading.Lock()

    @staticmethod
    def get(logdir: Any) -> FileWriter:
        """The writer of this directory, made if need be."""
        with FileWriterCache._lock:
            key = a_path(logdir, "logdir")
            if key not in FileWriterCache._cache:
                FileWriterCache._cache[key] = FileWriter(key, graph=_core.get_default_graph())
            return FileWriterCache._cache[key]

    @staticmethod
    def clear() -> None:
        """Closes and forgets all of them."""
        with FileWriterCache._lock:
            for writer in FileWriterCache._cache.values():
                writer.close()
            FileWriterCache._cache.clear()


__all__ = ["scalar", "histogram", "image", "audio", "text", "tensor_summary", "merge", "merge_all",
           "FileWriter", "FileWriterCache", "Summary", "SummaryMetadata", "HistogramProto",
           "SessionLog", "Event"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
