# SPDX-License-Identifier: Apache-2.0
"""Gradients of the cases of ops that a GPU computes, there: the op, and of its gradient what a GPU
has kernels for; the rest of it runs on the CPU. Held to differences of what the CPU computes."""

from __future__ import annotations

from typing import Any, List, Sequence

import pytest
import treenail as tn

import harness
import runner
import test_gpu

pytestmark = test_gpu.pytestmark


def cases() -> List[harness.Case]:
    served = test_gpu.stated()
    return [
        case
        for case in runner.gradient_cases([c for op in test_gpu.OPS.values() for c in op.cases])
        if runner.gradient_dtype(case) in served.get(case.op.name, [])
    ]


# One of each op, whose second gradient is checked, too.
FIRST = list({case.op.name: case for case in reversed(cases())}.values())


def check_places(check: runner.GradientCheck, gradients: Sequence[Any]) -> None:
    """Something of it has run on the GPU, where any kernel has."""
    metadata = tn.RunMetadata()
    options = tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE)
    check.graph.session.run(
        [g for g in gradients if g is not None],
        check.graph.feed(),
        options=options,
        run_metadata=metadata,
    )
    places = {node.op: node.device for node in metadata.nodes if not node.op.startswith("_")}
    assert not places or test_gpu.DEVICE in places.values(), places


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_gradient(case: harness.Case) -> None:
    check = runner.GradientCheck(case, runner.gradient_dtype(case), True, test_gpu.DEVICE)
    try:
        if check.inputs and check.weights:
            gradients, _ = check.first()
            check_places(check, gradients)
            if any(case is first for first in FIRST) and case.option("grad") >= 2:
                check.second(gradients)
    finally:
        check.graph.close()
