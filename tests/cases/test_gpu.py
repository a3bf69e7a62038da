# SPDX-License-Identifier: Apache-2.0
"""All cases on a GPU, against their oracles: a real one, or the simulated CUDA (tests/cuda_sim).

`ninja test-gpu` and `ninja test-cuda-sim` run them; without a GPU they are skipped. gpu_ops.txt
says which ops a GPU computes, and on which dtypes.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any, Dict, List, Sequence

import pytest
import treenail as tn

import backend
import families
import harness
import modes
import runner

sys.path.append(str(Path(__file__).resolve().parents[1] / "cuda_sim"))
import cusim  # noqa: E402  (the path must be set first)

OPS = families.load()
DEVICE = "/job:localhost/replica:0/task:0/device:GPU:0"
LIST = Path(__file__).resolve().parent / "gpu_ops.txt"
UPDATE = bool(os.environ.get("TREENAIL_UPDATE_GPU_OPS"))

pytestmark = cusim.needs_gpu()


def stated() -> Dict[str, List[str]]:
    """{op: the dtypes of its cases that a GPU computes}."""
    lines = [line.split("#")[0].strip() for line in LIST.read_text("utf-8").splitlines()]
    return {line.split(":")[0]: line.split(":")[1].split() for line in lines if line}


def has_no_kernel(error: Exception) -> bool:
    return "have no kernel for it" in str(error)


def on_gpu(case: harness.Case, dtype: str) -> Any:
    """What the GPU gives; None where it has no kernel."""
    try:
        with tn.eager(), tn.device(DEVICE):
            return runner.executed(case, dtype)
    except tn.errors.InvalidArgumentError as error:
        if has_no_kernel(error):
            return None
        raise


def check_in_graph(case: harness.Case, dtypes: Sequence[str]) -> None:
    """The same in a session, where each node must have run on the GPU."""
    metadata = tn.RunMetadata()
    graph = modes.CaseGraph(case, list(dtypes), DEVICE)
    options = tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE)
    results = graph.run(options=options, run_metadata=metadata)
    places = {node.name: node.device for node in metadata.nodes if not node.op.startswith("_")}
    for (dtype, _, node), found in zip(graph.nodes, results):
        assert places.get(node.node.name, DEVICE) == DEVICE, places
        runner.check_forward(case, dtype, [modes.as_array(each) for each in found])


def works_on_a_gpu(name: str) -> bool:
    """Is it an op of whose kernels a GPU has its own?"""
    description = backend.DESCRIPTIONS[name]
    return not (description["any_device"] or description["view"] or description["computes_sizes"])


@pytest.mark.parametrize("name", sorted(filter(works_on_a_gpu, OPS)))
def test_op(name: str) -> None:
    served = set()
    for case in OPS[name].cases:
        there = []
        for dtype in runner.dtypes(case):
            found = on_gpu(case, dtype)
            if found is None:
                continue
            runner.check_forward(case, dtype, found)
            there.append(dtype)
        if there:
            check_in_graph(case, there)
        served.update(there)
    if UPDATE:
        update(name, sorted(served))
    assert sorted(served) == stated().get(name, [])


@pytest.mark.parametrize("name", sorted(stated()))
def test_errors(name: str) -> None:
    """What the CPU refuses a GPU refuses, in the same words."""
    for case in OPS[name].errors:
        kind = backend.error_class(case.code)
        with tn.eager(), tn.device(DEVICE), pytest.raises(kind) as raised:
            runner.run_error_immediately(case)
        assert has_no_kernel(raised.value) or re.search(case.message, str(raised.value)), case


def update(name: str, dtypes: List[str]) -> None:
    found = stated()
    found.pop(name, None)
    if dtypes:
        found[name] = dtypes
    head = [line for line in LIST.read_text("utf-8").splitlines() if line.startswith("#")]
    rows = ["%s: %s" % (op, " ".join(found[op])) for op in sorted(found)]
    LIST.write_text("\n".join(head + rows) + "\n", "utf-8")
