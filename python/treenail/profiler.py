# SPDX-License-Identifier: Apache-2.0
"""What the operations of runs did: tables by operation and by node, and traces for Perfetto.

    profiler = tn.profiler.Profiler()
    for batch in batches:
        profiler.run(session, train, {x: batch})
    print(profiler.table())
    profiler.write_trace("step.json")     # chrome://tracing, ui.perfetto.dev
"""

from __future__ import annotations

import json
import os
from time import perf_counter_ns

from treenail._checks import a_path, having
from treenail._names import no_attribute as _no_attribute
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail._session_options import NodeStats, RunMetadata, RunOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PEAK_SIZE = 768
_peak: list = []


class Profiler:
    """Runs of sessions in which every operation is timed, one after the other.

    The runs take longer by some 100 ns per operation; results are the same.
    """

    def __init__(self) -> None:
        self._begin = perf_counter_ns()
        self._runs: list = []  # (start in ns since the first, metadata)

    def run(self, session: Any, fetches: Any, feed_dict: Any = None) -> Any:
        """session.run(fetches, feed_dict), noting what the operations do."""
        having(session, "run", "session", "a Session")
        metadata = RunMetadata()
        start = perf_counter_ns() - self._begin
        result = session.run(fetches, feed_dict, RunOptions(trace_level=RunOptions.FULL_TRACE),
                             metadata)
        self._runs.append((start, metadata))
        return result

    def table(self, by: str = "op", rows: int = 30, peak_gflops: float | None = None) -> str:
        """The function `table`, over all runs."""
        return table([metadata for _, metadata in self._runs], by, rows, peak_gflops)

    def write_trace(self, path: Any) -> None:
        """The function `write_trace`, of all runs."""
        _write_events(path, [(start, metadata) for start, metadata in self._runs])

    def __repr__(self) -> str:
        return "<tn.profiler.Profiler of %d runs>" % len(self._runs)


def table(run_metadata: Any, by: str = "op", rows: int = 30,
          peak_gflops: float | None = None) -> str:
    """A table of what took the time, the most first.

    run_metadata: what Session.run filled under RunOptions(trace_level=RunOptions.FULL_TRACE), or a
    list of such. by: "op", or "node" for a line per operation of the graph. rows: beyond them the
    rest is summed up. peak_gflops: what the last column is a share of, in 10^9 floating-point
    operations per second; by default what a product of matrices reaches here, measured once.
    Columns: number of kernels, time in ms and as a share of all, MB allocated, GFLOP/s and its
    share of the peak where operations count theirs. Raises ValueError where no operation was timed.
    """
    if by not in ("op", "node"):
        raise ValueError("by must be \"op\" or \"node\", not %r" % (by,))
    groups: dict = {}
    for stats in _stats_of(run_metadata):
        groups.setdefault(_kind(stats) if by == "op" else stats.name, []).append(stats)
    lines = sorted((_Line(name, stats) for name, stats in groups.items()),
                   key=lambda line: -line.ns)
    total = _Line("all", [stats for members in groups.values() for stats in members])
    if len(lines) > rows:
        rest = [stats for line in lines[rows:] for stats in line.stats]
        lines[rows:] = [_Line("%d others" % (len(lines) - rows), rest)]
    if peak_gflops is None and total.flops:
        peak_gflops = measured_peak()
    cells = [("kernel" if by == "op" else "operation", "count", "ms", "share", "MB", "GFLOP/s",
              "of peak")]
    cells += [line.cells(total.ns, peak_gflops) for line in lines + [total]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return "\n".join("  ".join([row[0].ljust(widths[0])]
                               + [text.rjust(width) for text, width in zip(row[1:], widths[1:])])
                     for row in cells)


def write_trace(path: Any, run_metadata: Any) -> None:
    """Writes a trace in Chrome's format, which chrome://tracing and ui.perfetto.dev show: a line
    per thread, a bar per kernel, of a cluster a process per task. The file is there whole or not at
    all. Raises ValueError where no operation was timed, OSError."""
    _stats_of(run_metadata)
    runs = run_metadata if isinstance(run_metadata, (list, tuple)) else [run_metadata]
    starts, at = [], 0
    for metadata in runs:
        starts.append((at, metadata))
        at += max((stats.end_ns for stats in metadata.nodes), default=0)
    _write_events(path, starts)


def measured_peak() -> float:
    """What a product of float32 matrices reaches here on all threads, in GFLOP/s; measured once."""
    if not _peak:
        import treenail as tn
        with tn.Graph().as_default(), tn.Session() as session:
            a = tn.Variable(tn.ones([_PEAK_SIZE, _PEAK_SIZE]))
            product = tn.matmul(a, a).op
            session.run(a.initializer)
            session.run(product)
            times = []
            for _ in range(8):
                begin = perf_counter_ns()
                session.run(product)
                times.append(perf_counter_ns() - begin)
        _peak.append(2.0 * _PEAK_SIZE ** 3 / min(times))
    return _peak[0]


class _Line:
    """Kernels that a table shows together."""

    def __init__(self, name: str, stats: list) -> None:
        self.name, self.stats = name, stats
        self.ns = sum(s.end_ns - s.start_ns for s in stats)
        self.bytes = sum(s.bytes_allocated for s in stats)
        self.flops = sum(s.flops for s in stats)

    def cells(self, total_ns: int, peak_gflops: float | None) -> tuple:
        rate = self.flops / self.ns if self.ns else 0.0
        return (self.name, "%d" % len(self.stats), "%.3f" % (self.ns / 1e6),
                "%.1f %%" % (100.0 * self.ns / total_ns if total_ns else 0.0),
                "%.2f" % (self.bytes / 1e6), "%.2f" % rate if self.flops else "",
                "%.0f %%" % (100 * rate / peak_gflops) if self.flops and peak_gflops else "")


def _kind(stats: NodeStats) -> str:
    return "+".join([op for _, op in stats.fused] + [stats.op])


def _stats_of(run_metadata: Any) -> list:
    runs = run_metadata if isinstance(run_metadata, (list, tuple)) else [run_metadata]
    for metadata in runs:
        if not isinstance(metadata, RunMetadata):
            raise TypeError("run_metadata must be a RunMetadata or a list of them, not %r"
                            % (metadata,))
    found = [stats for metadata in runs for stats in metadata.nodes]
    if not found:
        raise ValueError("no operation was timed: Session.run needs "
                         "options=tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE)")
    return found


def _write_events(path: Any, runs: list) -> None:
    _stats_of([metadata for _, metadata in runs])
    events = []
    processes: dict = {}  # by task
    for step, (begin, metadata) in enumerate(runs):
        for s in metadata.nodes:
            task = s.device.rpartition("/device:")[0]
            process = processes.setdefault(task, os.getpid() + len(processes))
            events.append({
                "name": _kind(s), "cat": "kernel", "ph": "X", "pid": process, "tid": s.thread,
                "ts": (begin + s.start_ns) / 1e3, "dur": (s.end_ns - s.start_ns) / 1e3,
                "args": {"node": s.name, "fused": [name for name, _ in s.fused], "run": step,
                         "device": s.device, "bytes_allocated": s.bytes_allocated,
                         "bytes_in_use": s.bytes_in_use, "flops": s.flops}})
    if len(processes) > 1:
        events += [{"name": "process_name", "ph": "M", "pid": process, "args": {"name": task}}
                   for task, process in processes.items()]
    path = os.fsdecode(a_path(path, "path"))
    temporary = "%s.%d.tmp" % (path, os.getpid())
    try:
        with open(temporary, "w", encoding="utf-8") as stream:
            json.dump({"traceEvents": events, "displayTimeUnit": "ns"}, stream)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


__all__ = ["Profiler", "table", "write_trace", "measured_peak"]


def __getattr__(name: str) -> Any:
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
