# SPDX-License-Identifier: Apache-2.0
"""All cases on a device with memory and a queue of its own (tests/simulated), soft placement off.

Whatever the runtime does wrong on the way (a copy too few, a wait too few, memory freed or used
again too early, a host access) ends the process; that the op ran there, the run's metadata tells.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, List, Sequence

import pytest
import treenail as tn

import backend
import families
import harness
import runner

sys.path.append(str(Path(__file__).resolve().parents[1] / "simulated"))
import simulated  # noqa: E402  (the path must be set first)

pytestmark = simulated.needs_library
OPS = families.load()
DEVICE = simulated.DEVICES[0]
# Integers from what is known when the plan is made.
FOLDED = {"BroadcastArgs"}


def works_on_strings(case: harness.Case, values: Sequence[Any]) -> bool:
    return "string" in [v.dtype for v in backend.flat(values)] + list(case.attrs.values())


def check_on_device(case: harness.Case, dtype: str, known_shapes: bool) -> None:
    values = case.values(dtype)
    attrs = runner.case_attrs(case, dtype)
    immediate = backend.execute(case.op.name, values, attrs)
    graph = backend.OpGraph(case.op.name, values, attrs, known_shapes, device=DEVICE)
    metadata = tn.RunMetadata()
    try:
        if works_on_strings(case, values):
            with pytest.raises(tn.errors.InvalidArgumentError, match="have no kernel for it"):
                graph.run(graph.outputs, values)
            return
        results: List[Any] = graph.session.run(
            graph.outputs, graph.feed(values), options=simulated.traced(), run_metadata=metadata
        )
    finally:
        graph.close()
    places = simulated.ran_on(metadata)
    assert places.get("op", DEVICE) == DEVICE, places
    what = "%s on the simulated device" % runner.describe(case, dtype, values)
    for i, (result, array) in enumerate(zip(results, immediate)):
        if case.option("same_bits") and not runner.same_bits(runner.as_array(result), array):
            raise runner.CaseError("%s, output %d:\n%r\nnot\n%r" % (what, i, result, array))


@pytest.mark.parametrize("name", sorted(OPS))
def test_op(name: str) -> None:
    if name in simulated.left_out() and not backend.DESCRIPTIONS[name]["any_device"]:
        assert refused(OPS[name].cases[0]), "left out, and not refused"
        return
    before = simulated.library().sim_kernels_run(0)
    for case in OPS[name].cases:
        for dtype in runner.dtypes(case):
            for known in (True, False) if case.option("unknown_shapes") else (True,):
                check_on_device(case, dtype, known)
    idle = backend.DESCRIPTIONS[name]["any_device"] or backend.DESCRIPTIONS[name]["view"]
    assert (
        idle or name in FOLDED or simulated.library().sim_kernels_run(0) > before
    ), "nothing ran on the device"
    assert simulated.library().sim_live_blocks(0) == 0


def refused(case: harness.Case) -> bool:
    """Is the op refused on the device, by a sentence with its name?"""
    dtype = runner.dtypes(case)[0]
    values = case.values(dtype)
    graph = backend.OpGraph(case.op.name, values, runner.case_attrs(case, dtype), device=DEVICE)
    try:
        with pytest.raises(tn.errors.InvalidArgumentError, match="have no kernel for it") as info:
            graph.session.run(graph.node, graph.feed(values))
        return case.op.name in str(info.value)
    finally:
        graph.close()


def test_what_is_left_out_has_a_reason() -> None:
    reasons = simulated.left_out()
    assert all(reasons.values())
    assert not set(reasons) - set(backend.DESCRIPTIONS)
