# SPDX-License-Identifier: Apache-2.0
"""Every case of every family, in every mode, and the errors they state; no op is forgotten.

test_level_agreement.py runs them at the other ISA levels.
"""

from __future__ import annotations

from typing import Dict, List, Set

import pytest
import treenail as tn

import backend
import families
import harness
import modes
import runner

OPS = families.load()
CASES = [case for op in OPS.values() for case in op.cases]
ERRORS = [error for op in OPS.values() for error in op.errors]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_forward(case: harness.Case) -> None:
    for dtype, results in modes.check(case).items():
        runner.check_forward(case, dtype, results)


GRADIENT_CASES = runner.gradient_cases(CASES)


@pytest.mark.parametrize("case", GRADIENT_CASES, ids=lambda case: case.name)
def test_gradient(case: harness.Case) -> None:
    for op_type in modes.check_gradient(case):
        # Closure: what a gradient is made of has a gradient itself, or by nature none.
        description = backend.DESCRIPTIONS[op_type]
        assert description["differentiable"] or description["non_differentiable"], op_type


@pytest.mark.parametrize("name", sorted(modes.NEED_CONSTANTS))
def test_gradients_that_need_constants(name: str) -> None:
    """The reason still holds."""
    case = next(case for case in GRADIENT_CASES if case.op.name == name)
    check = runner.GradientCheck(case, runner.gradient_dtype(case), True)
    arrays = check.first()[1]
    check.graph.close()
    with pytest.raises(tn.errors.UnimplementedError, match=modes.NEED_CONSTANTS[name]):
        modes.check_function_gradient(check, arrays)


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: case.name)
def test_error(case: harness.ErrorCase) -> None:
    kind = backend.error_class(case.code)
    with pytest.raises(kind, match=case.message):
        runner.run_error_immediately(case)
    for known_shapes in (True, False):
        with pytest.raises(kind, match=case.message):
            modes.error_in_graph(case, known_shapes)
    with pytest.raises(kind, match=case.message):
        modes.error_in_function(case)


def test_every_op_has_a_case() -> None:
    missing = sorted(
        name
        for name in backend.DESCRIPTIONS
        if not (name in OPS and OPS[name].cases) and name not in harness.WITHOUT_CASE
    )
    assert (
        not missing
    ), "ops without a case (state one, or no_case() with the reason): " + ", ".join(missing)


def test_no_op_is_excused_that_has_cases_or_is_gone() -> None:
    idle = sorted(
        name for name in harness.WITHOUT_CASE if name not in backend.DESCRIPTIONS or name in OPS
    )
    assert not idle, idle
    unknown = sorted(set(OPS) - set(backend.DESCRIPTIONS))
    assert not unknown, unknown


def test_every_gradient_has_a_case() -> None:
    covered: Set[str] = {case.op.name for case in GRADIENT_CASES}
    missing = sorted(
        name
        for name, d in backend.DESCRIPTIONS.items()
        if d["differentiable"]
        and name not in covered
        and name not in harness.WITHOUT_CASE
        and name not in harness.WITHOUT_GRADIENT_CASE
    )
    idle = sorted(name for name in harness.WITHOUT_GRADIENT_CASE if name in covered)
    assert not idle, idle
    assert not missing, "gradients without a case: " + ", ".join(missing)


def test_every_kernel_type_has_a_case() -> None:
    """Each dtype that an op has a kernel for (as attribute T) is among those of its cases."""
    missing: Dict[str, List[str]] = {}
    for name, op in OPS.items():
        types = backend.kernel_types(name)
        used = {dtype for case in op.cases for dtype in runner.dtypes(case)}
        left = sorted(types - used)
        if left and types:
            missing[name] = left
    assert not missing, missing
