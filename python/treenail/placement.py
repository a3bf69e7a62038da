# SPDX-License-Identifier: Apache-2.0
"""On which devices operations run where they ask for none: predictions, and why.

    runs = [tn.RunMetadata() for _ in range(10)]      # filled by traced runs
    profile = tn.placement.Profile.from_runs(runs)
    print(tn.placement.explain(fetches=train, devices=["/cpu:0", "/gpu:0"], profile=profile))
    options = tn.GraphOptions(placement=tn.placement.Options(profile=profile))
    session = tn.Session(config=tn.ConfigProto(graph_options=options))

A simulated execution places operations greedily where they are predicted to end first (Abadi et
al., "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2016, section
3.2.1); what is taken is the best of that, of each device alone, and of all devices in turn.
docs/placement.md says it in full.
"""

from __future__ import annotations

import json
import os
from collections import namedtuple

from treenail import _treenail as _core
from treenail._checks import a_path
from treenail._framework import Graph, get_default_graph
from treenail._names import no_attribute as _no_attribute
from treenail._placement import DeviceModel, Link, Options, Profile
from treenail._placement_measure import measure
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail._session import Session
from treenail._session_options import RunMetadata
from treenail._treenail import Operation, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

NodePlacement = namedtuple("NodePlacement", "name op device feasible start finish reason measured")
NodePlacement.__doc__ = """Where one operation runs, and what is predicted of it.

name, op: of inlined functions with the calls around, "f/x". device: the full name. feasible: the
full names of the devices that may run it, with all that must be with it. start, finish: seconds
since the run began. reason: "asked for", "its state is there", "hands values on", "only kernel",
"only device" or "predicted". measured: whether its time is from the profile.
"""

DeviceUse = namedtuple("DeviceUse", "device operations busy peak_bytes")
DeviceUse.__doc__ = """What a device has to do.

Number of operations, the sum of their seconds, and the most bytes that its memory holds at once."""

Transfer = namedtuple("Transfer", "name bytes source destination start finish")
Transfer.__doc__ = """A value that goes from one memory to another.

The operation that made it, bytes (0: only that the operation has ended), the first devices of
either memory, seconds since the run began."""

Candidate = namedtuple("Candidate", "strategy makespan fits")
Candidate.__doc__ = """A placement that was tried.

How it came about, predicted seconds of a run, and whether it fits the devices' memory."""


class _Found(dict):
    """What the core has found of a placement."""


class Explanation:
    """A predicted placement, which tn.placement.explain makes: print it, or look at its parts.

    nodes: a NodePlacement for each operation that runs, in the order in which they are predicted to
    start. devices: a DeviceUse for each. transfers: Transfers. candidates: what was tried;
    strategy: which of them it is. makespan: predicted seconds of a run. Raises TypeError where a
    program makes one.
    """

    def __init__(self, found: dict, devices: list) -> None:
        if not isinstance(found, _Found):
            raise TypeError("found must be what tn.placement.explain has found, not %r" % (found,))
        every = tuple(devices)
        rows = [NodePlacement(name, op, devices[device],
                              every if allowed is None else tuple(devices[d] for d in allowed),
                              start, finish, reason, bool(measured))
                for name, op, device, allowed, start, finish, reason, measured in found["nodes"]]
        self.nodes = sorted(rows, key=lambda node: node.start)
        counts = {device: 0 for device in devices}
        for node in rows:
            counts[node.device] += 1
        self.devices = [DeviceUse(*fields) for fields in zip(
            devices, counts.values(), found["busy"], found["peak_bytes"])]
        self.transfers = [
            Transfer(name, size, devices[source], devices[destination], start, finish)
            for name, size, source, destination, start, finish in found["transfers"]]
        self.candidates = [Candidate(strategy, makespan, bool(fits))
                           for strategy, makespan, fits in found["candidates"]]
        self.strategy = self.candidates[found["chosen"]].strategy
        self.makespan = found["makespan"]

    def table(self, rows: int = 40) -> str:
        """The operations that take time as a table, at most so many; the rest is counted."""
        cells = [("operation", "type", "device", "start ms", "finish ms", "why", "feasible")]
        short = _short_names([use.device for use in self.devices])
        timed = [node for node in self.nodes if node.finish > node.start]
        for node in timed[:rows]:
            feasible = ("all" if len(node.feasible) == len(self.devices) else
                        " ".join(short[device] for device in node.feasible[:4])
                        + (" ..." if len(node.feasible) > 4 else ""))
            cells.append((_shortened(node.name), node.op, short[node.device],
                          "%.3f" % (1e3 * node.start), "%.3f" % (1e3 * node.finish),
                          node.reason + (" (measured)" if node.measured else ""), feasible))
        lines = _aligned(cells)
        lines.append("and %d more, %d of which take no time"
                     % (len(self.nodes) - len(cells) + 1, len(self.nodes) - len(timed)))
        return "\n".join(lines)

    def __str__(self) -> str:
        short = _short_names([use.device for use in self.devices])
        uses = [("device", "operations", "busy ms", "of the run", "peak MB")]
        for use in self.devices[:40]:
            uses.append((short[use.device], "%d" % use.operations, "%.3f" % (1e3 * use.busy),
                         "%.0f %%" % (100 * use.busy / self.makespan if self.makespan else 0),
                         "%.2f" % (use.peak_bytes / 1e6)))
        tried = [("placement", "ms", "fits")] + [
            (c.strategy, "%.3f" % (1e3 * c.makespan), "yes" if c.fits else "no")
            for c in self.candidates]
        crossing = [t for t in self.transfers if t.bytes]
        return "\n".join(
            ["predicted: %.3f ms, %s; %d transfers of %.2f MB" % (
                1e3 * self.makespan, self.strategy, len(crossing),
                sum(t.bytes for t in crossing) / 1e6), ""]
            + [self.table(), ""] + _aligned(uses) + [""] + _aligned(tried))

    def __repr__(self) -> str:
        return "<tn.placement.Explanation of %d operations on %d devices: %.3f ms>" % (
            len(self.nodes), len(self.devices), 1e3 * self.makespan)


def explain(graph: Graph | None = None, fetches: Any = None, *, feeds: Sequence = (),
            devices: Sequence[str] | None = None, allow_soft_placement: bool = False,
            options: Options | None = None, profile: Profile | None = None,
            session: Session | None = None) -> Explanation:
    """What a run of `fetches` would be like, and why operations are where they are.

    graph: by default that of the fetches, or the default graph. fetches: tensors and operations, or
    one; by default all that the graph has. feeds: tensors that are given; placeholders are whether
    they stand here or not. devices: names, a CPU first, on which what is fed and fetched lies; of
    this process, of others, or imagined ("/job:worker/task:7/cpu:0"); parts that are left out are
    those of this process; by default its CPU. session: one at a server, whose devices these are
    then, with what their tasks tell of themselves, its options where none are given and its own
    allow_soft_placement; what has state stays where a session has it. Of kinds of devices of which
    this process has no kernels it is taken that they have all. options: models of devices and
    links, and more; profile: in place of theirs.

    Raises as Session.run for requests that no device satisfies and contradictions,
    ResourceExhaustedError with a table of the devices where no placement fits their memory,
    TypeError and ValueError.
    """
    if options is not None and not isinstance(options, Options):
        raise TypeError("options must be a tn.placement.Options, not %r" % (options,))
    wanted = _flat(fetches)
    if graph is None:
        graph = wanted[0].graph if wanted else get_default_graph()
    if not isinstance(graph, Graph):
        raise TypeError("graph must be a tn.Graph, not %r" % (graph,))
    if fetches is None:
        wanted = list(graph.get_operations())
    names, told = _full_names(devices), None
    if session is not None:
        if not isinstance(session, Session) or not session.sess_str:
            raise TypeError('session must be one at a server ("grpc://host:port"), not %r'
                            % (session,))
        if devices is not None:
            raise ValueError("devices are those of the session, got %r as well" % (devices,))
        names, told = session._device_names(), session._figures()
        options = options or session._config.graph_options.placement
        allow_soft_placement = allow_soft_placement or session._config.allow_soft_placement
    if profile is not None:
        options = Options(profile=profile, **({} if options is None else {
            "devices": options.devices, "links": options.links,
            "unknown_dimension": options.unknown_dimension, "trip_count": options.trip_count}))
    found = _core.predict_placement(
        graph, _flat(feeds), [w for w in wanted if isinstance(w, Tensor)],
        [w for w in wanted if isinstance(w, Operation)], names, allow_soft_placement,
        (options or Options())._model(told))
    return Explanation(_Found(found), names)


def write_trace(path: Any, explanation: Explanation, run_metadata: Any = None) -> None:
    """Writes a trace in Chrome's format, which chrome://tracing and ui.perfetto.dev show: the
    predicted run, a lane per device and per link, and below it the measured one.

    run_metadata: what Session.run filled under RunOptions(trace_level=RunOptions.FULL_TRACE).
    The file is there whole or not at all. Raises TypeError, OSError.
    """
    if not isinstance(explanation, Explanation):
        raise TypeError("explanation must be a tn.placement.Explanation, not %r" % (explanation,))
    if run_metadata is not None and not isinstance(run_metadata, RunMetadata):
        raise TypeError("run_metadata must be a RunMetadata, not %r" % (run_metadata,))
    events = _predicted_events(explanation)
    if run_metadata is not None:
        events += _measured_events(run_metadata)
    path = os.fsdecode(a_path(path, "path"))
    _core.write_file(path, json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}))


_PREDICTED, _MEASURED = 1, 2  # processes of the trace
_MOST_LETTERS = 60


def _named(kind: str, process: int, name: str, lane: int = 0) -> dict:
    return {"name": kind, "ph": "M", "pid": process, "tid": lane, "args": {"name": name}}


def _predicted_events(explanation: Explanation) -> list:
    events = [_named("process_name", _PREDICTED, "predicted")]
    lanes: dict = {}

    def lane_of(name: str, start: float, finish: float) -> int:
        """The first lane of that name which is free from `start` on."""
        number = 0
        while lanes.get((name, number), (0, 0.0))[1] > start:
            number += 1
        lane = lanes.get((name, number), (len(lanes) + 1, 0.0))[0]
        if (name, number) not in lanes:
            events.append(_named("thread_name", _PREDICTED, name, lane))
        lanes[name, number] = (lane, finish)
        return lane

    for node in explanation.nodes:
        lane = lane_of(node.device, node.start, node.finish)
        events.append({"name": node.op, "cat": "predicted", "ph": "X", "pid": _PREDICTED,
                       "tid": lane, "ts": 1e6 * node.start, "dur": 1e6 * (node.finish - node.start),
                       "args": {"node": node.name, "why": node.reason}})
    for sent in sorted((t for t in explanation.transfers if t.bytes), key=lambda t: t.start):
        lane = lane_of("%s to %s" % (sent.source, sent.destination), sent.start, sent.finish)
        events.append({"name": "transfer", "cat": "predicted", "ph": "X", "pid": _PREDICTED,
                       "tid": lane, "ts": 1e6 * sent.start, "dur": 1e6 * (sent.finish - sent.start),
                       "args": {"node": sent.name, "bytes": sent.bytes}})
    return events


def _measured_events(run_metadata: RunMetadata) -> list:
    events = [_named("process_name", _MEASURED, "measured")]
    lanes: dict = {}
    for stats in run_metadata.nodes:
        lane = lanes.setdefault((stats.device, stats.thread), len(lanes) + 1)
        events.append({"name": "+".join([op for _, op in stats.fused] + [stats.op]),
                       "cat": "measured", "ph": "X", "pid": _MEASURED, "tid": lane,
                       "ts": stats.start_ns / 1e3, "dur": (stats.end_ns - stats.start_ns) / 1e3,
                       "args": {"node": stats.name, "fused": [name for name, _ in stats.fused]}})
    for (device, thread), lane in lanes.items():
        events.append(_named("thread_name", _MEASURED, "%s, thread %d" % (device, thread), lane))
    return events


def _full_names(devices: Any) -> list:
    if devices is None or isinstance(devices, str):
        devices = [devices or "/cpu:0"]
    names = [_core.full_device_name(_a_name(device)) for device in devices]
    if len(set(names)) != len(names):
        raise ValueError("devices must be different, got %r" % (names,))
    return names


def _a_name(device: Any) -> str:
    if not isinstance(device, str):
        raise TypeError("devices must be a list of str, and has %r" % (device,))
    return device


def _flat(values: Any) -> list:
    """Tensors and operations of nested lists, tuples and dicts; variables give what they read."""
    if values is None:
        return []
    if isinstance(values, (list, tuple)):
        return [each for value in values for each in _flat(value)]
    if isinstance(values, dict):
        return [each for value in values.values() for each in _flat(value)]
    if hasattr(values, "__treenail_tensor__"):
        values = values.__treenail_tensor__()
    if isinstance(values, (Tensor, Operation)):
        return [values]
    raise TypeError("fetches and feeds must be tensors and operations, not %r" % (values,))


def _short_names(devices: list) -> dict:
    """Without the parts that all have in common."""
    parts = [device.strip("/").split("/") for device in devices]
    keep = [i for i in range(len(parts[0])) if len({tuple(p)[i] for p in parts}) > 1
            ] if all(len(p) == len(parts[0]) for p in parts) else list(range(len(parts[0])))
    last = len(parts[0]) - 1
    return {device: "/" + "/".join(p[i] for i in sorted({*keep, last}) if i < len(p))
            for device, p in zip(devices, parts)}


def _shortened(name: str) -> str:
    return name if len(name) <= _MOST_LETTERS else "..." + name[3 - _MOST_LETTERS:]


def _aligned(cells: list) -> list:
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip()
            for row in cells]


__all__ = ["Candidate", "DeviceModel", "DeviceUse", "Explanation", "Link", "NodePlacement",
           "Options", "Profile", "Transfer", "explain", "measure", "write_trace"]


def __getattr__(name: str) -> Any:
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
