# SPDX-License-Identifier: Apache-2.0
"""All cases on a device with memory and a queue of its own (tests/simulated), soft placement off.

Whatever the runtime does wrong on the way (a copy too few, a wait too few, memory freed or used
again too early, a host access) ends the process; that the op ran there, the run's metadata tells.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Sequence

import pytest
import treenail as tn

import backend
import families
import harness
import modes
import runner

sys.path.append(str(Path(__file__).resolve().parents[1] / "simulated"))
import simulated  # noqa: E402  (the path must be set first)

pytestmark = simulated.needs_library
OPS = families.load()
DEVICE = simulated.DEVICES[0]
# Integers from what is known when the plan is made.
FOLDED = {"BroadcastArgs"}


def works_on_strings(case: harness.Case, values: Sequence[Any]) -> bool:
    return any(
        isinstance(each, str) and each == "string"
        for each in [v.dtype for v in backend.flat(values)] + list(case.attrs.values())
    )


def check_on_device(case: harness.Case, dtypes: Sequence[str]) -> None:
    refused_types = [d for d in dtypes if works_on_strings(case, case.values(d))]
    for dtype in refused_types:
        assert refused(case, dtype)
    immediate = {d: runner.executed(case, d) for d in dtypes if d not in refused_types}
    if not immediate:
        return
    for dtype, expected in immediate.items():
        with tn.eager(), tn.device(DEVICE):  # which copies what the case gives there and back
            found = runner.executed(case, dtype)
        modes.compare(case, dtype, "at once on the simulated device", found, expected)
    metadata = tn.RunMetadata()
    graph = modes.CaseGraph(case, list(immediate), DEVICE)
    results = graph.run(options=simulated.traced(), run_metadata=metadata)
    places = simulated.ran_on(metadata)
    for _, _, node in graph.nodes:
        assert places.get(node.node.name, DEVICE) == DEVICE, places
    graph.compare("the simulated device", results, immediate)


@pytest.mark.parametrize("name", sorted(OPS))
def test_op(name: str) -> None:
    if name in simulated.left_out() and not backend.DESCRIPTIONS[name]["any_device"]:
        first = OPS[name].cases[0]
        assert refused(first, runner.dtypes(first)[0]), "left out, and not refused"
        return
    before = simulated.library().sim_kernels_run(0)
    seen: set = set()  # the device knows sizes of elements, not what they mean: each dtype once
    for case in OPS[name].cases:
        dtypes = runner.dtypes(case)
        check_on_device(case, [d for d in dtypes if d not in seen] or dtypes[:1])
        seen.update(dtypes)
    idle = backend.DESCRIPTIONS[name]["any_device"] or backend.DESCRIPTIONS[name]["view"]
    assert (
        idle or name in FOLDED or simulated.library().sim_kernels_run(0) > before
    ), "nothing ran on the device"
    assert simulated.library().sim_live_blocks(0) == 0


def refused(case: harness.Case, dtype: str) -> bool:
    """Is the op refused on the device, by a sentence with its name?"""
    graph = modes.CaseGraph(case, [dtype], DEVICE)
    with pytest.raises(tn.errors.InvalidArgumentError, match="have no kernel for it") as info:
        graph.run()
    with pytest.raises(tn.errors.InvalidArgumentError, match="have no kernel") as at_once:
        with tn.eager(), tn.device(DEVICE):
            runner.executed(case, dtype)
    return case.op.name in str(info.value) and case.op.name in str(at_once.value)


def test_what_is_left_out_has_a_reason() -> None:
    reasons = simulated.left_out()
    assert all(reasons.values())
    assert not set(reasons) - set(backend.DESCRIPTIONS)
