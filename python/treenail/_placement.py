# SPDX-License-Identifier: Apache-2.0
"""What devices and links are taken to be like, and how long operations took: what placements are
predicted from."""

from __future__ import annotations

from math import isfinite
from operator import index
from os import fsencode

from treenail import _treenail as _core
from treenail._checks import a_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

_SHARING = ("pair", "source", "destination", "both")  # as PlacementProblem::Sharing numbers them
_MOST_SLOTS = 2 ** 31 - 1


def _number(value: Any, what: str, least: float = 0.0) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError("%s must be a number, not %r" % (what, value)) from None
    if not isfinite(number) or number < least or (least == 0.0 and number < 0):
        raise ValueError("%s must be finite and at least %g, got %r" % (what, least, value))
    return number


def _positive(value: Any, what: str) -> float:
    number = _number(value, what)
    if number <= 0:
        raise ValueError("%s must be more than 0, got %r" % (what, value))
    return number


def _whole(value: Any, what: str, least: int, most: int = 2 ** 62) -> int:
    try:
        number = index(value)
    except TypeError:
        raise TypeError("%s must be an int, not %r" % (what, value)) from None
    if not least <= number <= most:
        raise ValueError("%s must be in [%d, %d], got %d" % (what, least, most, number))
    return number


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError("%s must be a str, not %r" % (what, value))
    return value


class DeviceModel:
    """What all devices of a name are like; parts that the name leaves out may be anything.

    devices: "/device:CPU:*", "/job:worker". flops_per_second: floating-point operations, a
    multiply-add being two; bytes_per_second: of its memory; seconds_per_node: beside what an
    operation computes; an operation takes that and the longer of the two others. slots: operations
    at once. memory_bytes: what it may hold at once; 0: no limit. CPUs of one task share the memory
    of that of them that has most. slowdown: how many times as long operations take while all other
    devices of the host are busy, at least 1; while some of them are, so many parts of what that is
    more. host: any name, the same for those that slow each other; without one nothing does, but at
    a server those of one machine, as its tasks tell. What is not given is that of a usual core of a
    CPU, or of a usual accelerator for other kinds of devices. Raises TypeError and ValueError.
    """

    def __init__(self, devices: str, *, flops_per_second: float | None = None,
                 bytes_per_second: float | None = None, seconds_per_node: float | None = None,
                 slots: int = 1, memory_bytes: int = 0, slowdown: float = 1.0,
                 host: str = "") -> None:
        self.devices = _text(devices, "devices")
        kind = _core.device_kind(self.devices)
        flops, memory, node = _core.usual_speed(kind or "CPU")
        self.flops_per_second = flops if flops_per_second is None else _positive(
            flops_per_second, "flops_per_second")
        self.bytes_per_second = memory if bytes_per_second is None else _positive(
            bytes_per_second, "bytes_per_second")
        self.seconds_per_node = node if seconds_per_node is None else _number(
            seconds_per_node, "seconds_per_node")
        self.slots = _whole(slots, "slots", 1, _MOST_SLOTS)
        self.memory_bytes = _whole(memory_bytes, "memory_bytes", 0)
        self.slowdown = _number(slowdown, "slowdown", 1.0)
        self.host = _text(host, "host")

    def _fields(self) -> tuple:
        return (self.devices, self.flops_per_second, self.bytes_per_second, self.seconds_per_node,
                self.slots, self.memory_bytes, self.slowdown, self.host)

    def __repr__(self) -> str:
        fields = self._fields()
        shared = ", slowdown=%g, host=%r" % fields[6:] if self.slowdown > 1 or self.host else ""
        return ("DeviceModel(%r, flops_per_second=%g, bytes_per_second=%g, seconds_per_node=%g, "
                "slots=%d, memory_bytes=%d%s)" % (fields[:6] + (shared,)))


class Link:
    """What carries values from the devices of one name to those of another.

    source, destination: names of which parts may be left out. latency: seconds from the last byte
    sent until the value is there. bytes_per_second: while it is sent the link is occupied.
    shared_by: whose transfers wait for one another: "pair", those between two memories;
    "source", all that leave a memory; "destination", all that go to one; "both", as network cards
    have it, all that leave the one and all that go to the other. Raises TypeError and ValueError.
    """

    def __init__(self, source: str, destination: str, *, latency: float, bytes_per_second: float,
                 shared_by: str = "pair") -> None:
        self.source = _text(source, "source")
        self.destination = _text(destination, "destination")
        for name in (source, destination):
            _core.device_kind(name)
        self.latency = _number(latency, "latency")
        self.bytes_per_second = _positive(bytes_per_second, "bytes_per_second")
        if shared_by not in _SHARING:
            raise ValueError("shared_by must be 'pair', 'source', 'destination' or 'both', not %r"
                             % (shared_by,))
        self.shared_by = shared_by

    def _fields(self) -> tuple:
        return (self.source, self.destination, self.latency, self.bytes_per_second,
                _SHARING.index(self.shared_by))

    def __repr__(self) -> str:
        return "Link(%r, %r, latency=%g, bytes_per_second=%g, shared_by=%r)" % (
            self._fields()[:4] + (self.shared_by,))


class Profile:
    """How long operations took, by name and kind of device, and what devices of a cluster and the
    links between its tasks were measured to be like, and how much devices slow each other.

    Made of traced runs (from_runs) and by tn.placement.measure, and kept in a file
    (docs/formats/placement-profile.md), which is read when somebody asks for it and never else:
    placements do not change by themselves.
    """

    def __init__(self) -> None:
        self._text = _core.placement_profile(None, [], 0, [], [], [])

    @classmethod
    def from_runs(cls, run_metadata: Any) -> Profile:
        """Of what Session.run filled under RunOptions(trace_level=RunOptions.FULL_TRACE), or of a
        list of such; those of the first runs, which make plans, are better left out. Raises
        TypeError, and ValueError where no operation was timed."""
        from treenail._session_options import RunMetadata
        runs = run_metadata if isinstance(run_metadata, (list, tuple)) else [run_metadata]
        kernels = []
        for metadata in runs:
            if not isinstance(metadata, RunMetadata):
                raise TypeError("run_metadata must be a RunMetadata or a list of them, not %r"
                                % (metadata,))
            for stats in metadata.nodes:
                kernels.append((_core.device_kind(stats.device), stats.name,
                                tuple(name for name, _ in stats.fused),
                                stats.end_ns - stats.start_ns))
        if not kernels:
            raise ValueError("no operation was timed: Session.run needs "
                             "options=tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE)")
        profile = cls()
        profile._text = _core.placement_profile(None, kernels, len(runs), [], [], [])
        return profile

    def _with_figures(self, devices: list, links: list, contention: list) -> Profile:
        """This one, with (device, flops per second, bytes per second, ns per node),
        (task, task, ns, bytes per second) and (device, host, thousandths) in place of what it has
        of the same."""
        profile = Profile()
        profile._text = _core.placement_profile(self._text, [], 0, devices, links, contention)
        return profile

    @classmethod
    def load(cls, path: Any) -> Profile:
        """The profile in a file. Raises OSError's kin of tn.errors, InvalidArgumentError for what
        is no profile, naming the line, and DataLossError for one that was cut short."""
        profile = cls()
        profile._text = _core.load_placement_profile(fsencode(a_path(path, "path")))
        return profile

    def save(self, path: Any) -> None:
        """Writes a file that is there whole or not at all."""
        _core.write_file(a_path(path, "path"), self._text)

    @property
    def runs(self) -> int:
        """How many runs it is of."""
        return _core.placement_profile_entries(self._text)[0]

    def seconds(self) -> dict[str, float]:
        """{operation: mean seconds of an execution}, of fused ones by the last one's name."""
        sums: dict = {}
        for _, name, _, count, ns in _core.placement_profile_entries(self._text)[1]:
            of_name = sums.setdefault(name, [0, 0])
            of_name[0] += count
            of_name[1] += ns
        return {name: ns / 1e9 / count for name, (count, ns) in sums.items()}

    @property
    def devices(self) -> list[DeviceModel]:
        """What was measured of devices, by full name; memory_bytes is 0."""
        found, _, contention = _core.placement_profile_entries(self._text)[2:]
        models = []
        for name, (flops, size, ns) in found.items():
            host, thousandths = contention.get(name, ("", 1000))
            models.append(DeviceModel(name, flops_per_second=flops, bytes_per_second=size,
                                      seconds_per_node=1e-9 * ns, slowdown=thousandths / 1000,
                                      host=host))
        return models

    @property
    def links(self) -> list[Link]:
        """What was measured of links between tasks."""
        found = _core.placement_profile_entries(self._text)[3]
        return [Link(source, destination, latency=1e-9 * ns, bytes_per_second=size)
                for (source, destination), (ns, size) in found.items()]

    def __repr__(self) -> str:
        runs, entries, devices, links, _ = _core.placement_profile_entries(self._text)
        figures = ", %d devices and %d links" % (len(devices), len(links)) if devices else ""
        return "<tn.placement.Profile of %d kernels in %d runs%s>" % (len(entries), runs, figures)


class Options:
    """Asks a session (GraphOptions.placement) to place operations by what they are predicted to
    cost; it has an effect where the session has several devices. At a server these are the devices
    of all its tasks, and what has state does not move.

    What operations ask for, their state and their colocation come first. profile: a Profile;
    without one, and for what it does not have, estimates. devices, links: DeviceModels and Links,
    of which the first that fits counts; else usual ones. unknown_dimension: what stands for a size
    that the graph does not know. trip_count: how often a loop is thought to go round. Raises
    TypeError and ValueError.
    """

    def __init__(self, *, profile: Profile | None = None, devices: Sequence[DeviceModel] = (),
                 links: Sequence[Link] = (), unknown_dimension: int = 64,
                 trip_count: float = 10.0) -> None:
        if profile is not None and not isinstance(profile, Profile):
            raise TypeError("profile must be a tn.placement.Profile, not %r" % (profile,))
        self.profile = profile
        self.devices = _all_of(devices, DeviceModel, "devices")
        self.links = _all_of(links, Link, "links")
        self.unknown_dimension = _whole(unknown_dimension, "unknown_dimension", 1, 2 ** 40)
        self.trip_count = _number(trip_count, "trip_count")

    def _model(self, told: bytes | None = None) -> tuple:
        """For the core. told: what the tasks of a cluster tell of themselves."""
        return ([device._fields() for device in self.devices],
                [link._fields() for link in self.links],
                self.profile and self.profile._text, self.unknown_dimension, self.trip_count,
                told)

    def __repr__(self) -> str:
        return ("Options(profile=%r, devices=%r, links=%r, unknown_dimension=%d, trip_count=%g)"
                % (self.profile, self.devices, self.links, self.unknown_dimension,
                   self.trip_count))


def _all_of(values: Any, kind: type, what: str) -> list:
    try:
        values = list(values)
    except TypeError:
        raise TypeError("%s must be a list of %s, not %r" % (what, kind.__name__, values)) from None
    for value in values:
        if not isinstance(value, kind):
            raise TypeError("%s must be a list of %s, and has %r" % (what, kind.__name__, value))
    return values
