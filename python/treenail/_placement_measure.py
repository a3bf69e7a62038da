# SPDX-License-Identifier: Apache-2.0
"""What the devices of a cluster and the links between its tasks are like, measured by runs of a
session there: the way that values go in every other run."""

from __future__ import annotations

import time
from statistics import mean

from treenail import _treenail as _core
from treenail._array import fill
from treenail._control import no_op
from treenail._framework import Graph, control_dependencies, device
from treenail._math import matmul
from treenail._placement import Profile, _whole
from treenail._random import random_uniform
from treenail._session import Session
from treenail._session_options import (
    ConfigProto, GraphOptions, OptimizerOptions, RunMetadata, RunOptions)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HOPS = 16  # of a scalar there and back, in one run
_FLOPS_SIZE = 512  # of square matrices
_FLOPS_COUNT = 4
_MEMORY_FLOATS = 4 << 20
_MEMORY_COUNT = 4
_NODES = 400
_LARGE_FLOATS = 2 << 20
_TOGETHER_SECONDS = 0.05  # of products, on each device
_FEWEST_TOGETHER = 4
_PAUSE = 0.1  # seconds before each run of these, in which what else the machine runs has its turn


def measure(target: str, *, config: ConfigProto | None = None, profile: Profile | None = None,
            repeats: int = 5) -> Profile:
    """A profile of what the devices of a server's cluster and the links between its tasks are like.

    target: "grpc://host:port". config: of the session that measures, whose device_filters leave
    tasks out. profile: whose operations' times the result has as well, and whose figures of what is
    not measured here. repeats: how often each is measured; the quickest counts.

    Each CPU multiplies matrices of 512 x 512 and goes through 16 MiB; from each task to each
    other, scalars go there and back, and 8 MiB go once: n tasks take time as n * (n - 1). CPUs of
    one machine also multiply at once: by how much longer products take then is their slowdown.
    What waits for memory may be slowed more than products, what stays in registers less. The tasks
    and the machine should have nothing else to do meanwhile. Transfers between two tasks are taken
    to wait for one another and for no others. Raises TypeError and ValueError, and as Session().
    """
    if not isinstance(target, str) or not target:
        raise TypeError('target must be "grpc://host:port", not %r' % (target,))
    if profile is not None and not isinstance(profile, Profile):
        raise TypeError("profile must be a tn.placement.Profile, not %r" % (profile,))
    repeats = _whole(repeats, "repeats", 1, 1000)
    with Session(target, graph=Graph(), config=config) as session:
        names = [each.name for each in session.list_devices() if each.device_type == "CPU"]
        hosts = _core.device_hosts(session._figures(), names)
    config = _unplaced(config)
    devices = [(name,) + _device(target, config, name, repeats) for name in names]
    first = {}  # of the CPUs of a task
    for name in names:
        first.setdefault(name[:name.index("/device:")], name)
    links = [(one, other) + _link(target, config, first[one], first[other], repeats)
             for one in first for other in first if one != other]
    contention = []
    for host in sorted(set(hosts) - {""}):
        members = [each[:2] for each, its in zip(devices, hosts) if its == host]
        if len(members) > 1:
            contention += _contention(target, config, members, repeats)
    return (profile or Profile())._with_figures(devices, links, contention)


def _unplaced(config: ConfigProto | None) -> ConfigProto:
    """The same that matters for the way there, with nothing merged, folded or fused."""
    given = config or ConfigProto()
    return ConfigProto(
        device_filters=given.device_filters, keepalive_in_ms=given.keepalive_in_ms,
        credentials=given.credentials, operation_timeout_in_ms=given.operation_timeout_in_ms,
        graph_options=GraphOptions(optimizer_options=OptimizerOptions(
            opt_level=OptimizerOptions.L0)))


def _quickest(target: str, config: ConfigProto, build: Any, repeats: int) -> list[float]:
    """Seconds of the quickest run of each of the operations that build() makes, run in turn, so
    that what else the machine does meets all alike."""
    with Graph().as_default() as graph:
        wanted = build()
    with Session(target, graph=graph, config=config) as session:
        for each in wanted:
            session.run(each)  # makes the plan
        best = [float("inf")] * len(wanted)
        for _ in range(repeats):
            for i, each in enumerate(wanted):
                begin = time.perf_counter()
                session.run(each)
                best[i] = min(best[i], time.perf_counter() - begin)
    return best


def _rate(amount: float, seconds: float, longest: float) -> int:
    """By the seconds that are left when what else runs had to do is taken away, or, where they are
    lost in noise, by those of the longest run: too low rather than much too high."""
    return max(1, int(amount / (seconds if seconds > 0.02 * longest else longest)))


def _device(target: str, config: ConfigProto, name: str, repeats: int) -> tuple:
    """(floating-point operations per second, bytes per second, ns per node) of one device."""
    def build() -> list:
        with device(name):
            seed = random_uniform([])  # so that nothing can be known before a run
            nothing = seed.op
            product = fill([_FLOPS_SIZE, _FLOPS_SIZE], seed * 0.0 + 1 / _FLOPS_SIZE)
            with control_dependencies([product]):
                filled = no_op()
            for _ in range(_FLOPS_COUNT):
                product = matmul(product, product)
            values = fill([_MEMORY_FLOATS], seed)
            with control_dependencies([values]):
                written = no_op()
            for _ in range(_MEMORY_COUNT):
                values = -values
            small = seed
            for _ in range(_NODES):
                small = -small
        return [nothing, filled, product.op, written, values.op, small.op]

    nothing, filled, product, written, values, small = _quickest(target, config, build, repeats)
    return (_rate(_FLOPS_COUNT * 2.0 * _FLOPS_SIZE ** 3, product - filled, product),
            _rate(_MEMORY_COUNT * 2 * 4.0 * _MEMORY_FLOATS, values - written, values),
            max(0, int(1e9 * (small - nothing) / _NODES)))


def _link(target: str, config: ConfigProto, source: str, destination: str, repeats: int) -> tuple:
    """(latency in ns, bytes per second) from the one device to the other."""
    def build() -> list:
        with device(source):
            seed = random_uniform([])
            small, large = fill([1], seed), fill([_LARGE_FLOATS], seed)
        ends = []
        for value in (small, large):
            with device(destination):
                there = value[:1]
            with device(source):
                with control_dependencies([value]):
                    ends.append((there + 1.0).op)
        back = seed
        for _ in range(_HOPS):
            with device(destination):
                there = back + 1.0
            with device(source):
                back = there + 1.0
        with device(source), control_dependencies([large]):
            filled = no_op()
        with device(source), control_dependencies([small]):
            nothing = no_op()
        return [nothing, ends[0], filled, ends[1], back.op]

    nothing, once, filled, far, hops = _quickest(target, config, build, repeats)
    latency = max(0.0, hops - nothing) / (2 * _HOPS)
    # Both go there and back once; what is left is the size.
    seconds = (far - filled) - (once - nothing)
    return int(1e9 * latency), _rate(4.0 * (_LARGE_FLOATS - 1), seconds, far)


def _contention(target: str, config: ConfigProto, members: list, repeats: int) -> list[tuple]:
    """[(device, host, thousandths)] of the devices of one host, which goes by its first task.
    members: [(device, floating-point operations per second)]."""
    def chain(name: str, flops: int) -> Any:
        with device(name):
            seed = random_uniform([])
            product = fill([_FLOPS_SIZE, _FLOPS_SIZE], seed * 0.0 + 1 / _FLOPS_SIZE)
            count = int(_TOGETHER_SECONDS * flops / (2.0 * _FLOPS_SIZE ** 3))
            for _ in range(max(_FEWEST_TOGETHER, count)):
                product = matmul(product, product)
            return product.op

    with Graph().as_default() as graph:
        chains = [chain(name, flops) for name, flops in members]
    alone = {name: float("inf") for name, _ in members}
    together = dict(alone)
    with Session(target, graph=graph, config=config) as session:
        for each in chains + [chains]:
            session.run(each)  # makes the plan
        for _ in range(repeats):
            for each in chains:
                _keep_quickest(alone, _products(session, each))
            _keep_quickest(together, _products(session, chains))
    host = members[0][0][:members[0][0].index("/device:")]
    return [(name, host, max(1000, int(1000 * together[name] / alone[name])))
            for name, _ in members]


def _products(session: Session, chains: Any) -> dict[str, list]:
    """{device: [(start, end)]} of the products in a run, in ns, in the order in which they began.
    The clocks of tasks on one machine agree."""
    time.sleep(_PAUSE)
    metadata = RunMetadata()
    session.run(chains, options=RunOptions(trace_level=RunOptions.FULL_TRACE),
                run_metadata=metadata)
    found: dict = {}
    for stats in metadata.nodes:
        if stats.op == "MatMul":
            found.setdefault(stats.device, []).append((stats.start_ns, stats.end_ns))
    return found


def _while_all_work(products: dict[str, list]) -> dict[str, list]:
    """{device: [ns]} of those that began when all devices had, and ended before one had nothing
    more to do; of a device that has none of these, all."""
    begin = max(times[0][0] for times in products.values())
    end = min(times[-1][1] for times in products.values())
    return {name: [e - b for b, e in times if b >= begin and e <= end] or [e - b for b, e in times]
            for name, times in products.items()}


def _keep_quickest(best: dict[str, float], products: dict[str, list]) -> None:
    """Of means, not medians: devices that share a core take turns, and few products meet one."""
    for name, times in _while_all_work(products).items():
        best[name] = min(best[name], mean(times))
