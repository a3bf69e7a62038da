# SPDX-License-Identifier: Apache-2.0
"""Every case at the levels below the best one, at the lowest in every mode, against the oracle,
and against the results of the best one, of some larger runs too. (How a mode runs kernels is the same
code for all levels.)

Levels are held to each other by bounds that say how far they may be apart:

  * sums, products and convolutions: c · eps · Σ|terms|, where Σ|terms| is the op itself on the
    absolute values of its numbers, and c counts roundings: CONSTANTS, constant();
  * everything else: each side within the ulps that its case states, so twice those apart;
  * whole numbers, booleans, strings, infinities and NaN: the same.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import numpy as np
import pytest

import backend
import families
import modes
import runner
from harness import EPSILON, HALVES, Value, from_bfloat16

OPS = families.load()
FLOATING = ("float32", "float64", "float16", "bfloat16", "complex64", "complex128")
# Ops that are linear in each of their numbers, and the c of their bound. A sum is blocked, so that
# a term meets few roundings. Winograd's transforms magnify them, most in windows of 5 x 5, where 50
# has been measured.
SUM, CONVOLUTION, WINDOW_5 = 4.0, 16.0, 100.0
CONSTANTS: Dict[str, float] = dict(
    {
        name: SUM
        for name in (
            "AddN AvgPool AvgPool3D AvgPool3DGrad AvgPoolGrad BatchMatMul BiasAddGrad Cumsum "
            "L2Loss MatMul Mean SegmentMean SegmentSum SparseSegmentMean SparseSegmentSqrtN "
            "SparseSegmentSum Sum UnsortedSegmentSum"
        ).split()
    },
    **{
        name + direction: CONVOLUTION
        for name in ("Conv2D", "Conv3D", "DepthwiseConv2dNative")
        for direction in ("", "BackpropFilter", "BackpropInput")
    },
)


def constant(op: str, values: List[Any]) -> float:
    """The c of a run. The second input of a convolution is its filter, or the extents of one."""
    if CONSTANTS[op] != CONVOLUTION:
        return CONSTANTS[op]
    given = values[1].array
    extents = given.shape if given.ndim > 1 else tuple(given)
    return WINDOW_5 if extents[-4:-2] == (5, 5) else CONVOLUTION


RNG = np.random.default_rng(2026)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


# Large enough for the blocked, packed and transformed kernels; signs mixed, so that Σ|terms| is far
# above the result.
CONV = {"strides": [1, 1, 1, 1], "padding": "SAME"}
LARGE: List[Tuple[str, List[np.ndarray], Dict[str, Any]]] = [
    ("Sum", [normal(100003), np.int32(0)], {}),
    ("Sum", [normal(67, 1031), np.int32(0)], {}),
    ("Sum", [normal(67, 1031), np.int32(1)], {}),
    ("Mean", [normal(31, 17, 129), np.array([0, 2], np.int32)], {}),
    ("MatMul", [normal(129, 517), normal(517, 67)], {}),
    ("MatMul", [normal(517, 65), normal(517, 33)], {"transpose_a": True}),
    ("MatMul", [normal(1, 1025), normal(1025, 300)], {}),
    ("BatchMatMul", [normal(5, 37, 129), normal(5, 129, 41)], {}),
    ("Conv2D", [normal(2, 23, 29, 64), normal(3, 3, 64, 48)], CONV),
    ("Conv2D", [normal(1, 19, 17, 32), normal(5, 5, 32, 40)], CONV),
    ("Conv2D", [normal(2, 17, 17, 24), normal(3, 3, 24, 32)], dict(CONV, strides=[1, 2, 2, 1])),
    (
        "Conv2DBackpropInput",
        [np.array([2, 23, 29, 48], np.int32), normal(3, 3, 48, 64), normal(2, 23, 29, 64)],
        CONV,
    ),
    (
        "Conv2DBackpropFilter",
        [normal(2, 23, 29, 48), np.array([3, 3, 48, 64], np.int32), normal(2, 23, 29, 64)],
        CONV,
    ),
    ("DepthwiseConv2dNative", [normal(2, 23, 29, 40), normal(3, 3, 40, 2)], CONV),
]


def large_values(arrays: Sequence[Any], dtype: str) -> List[Value]:
    given = [a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays]
    return [Value(a, a, a.dtype.name) for a in given]


def of_case(case: Any, dtype: str) -> str:
    return "%s: %s" % (case.name, runner.describe(case, dtype, case.values(dtype)))


def work() -> Iterator[Tuple[str, str, List[Any], Dict[str, Any], Any, str]]:
    """(what, op, values, attributes, case or None, dtype) of every run."""
    for op in OPS.values():
        for case in op.cases:
            for dtype in runner.dtypes(case):
                values = case.values(dtype)
                attrs = runner.case_attrs(case, dtype)
                yield of_case(case, dtype), op.name, values, attrs, case, dtype
    for number, (name, arrays, attrs) in enumerate(LARGE):
        for dtype in ("float32", "float64"):
            what = "large %d: %s on %s" % (number, name, dtype)
            yield what, name, large_values(arrays, dtype), attrs, None, dtype


def dump(path: str, in_every_mode: bool) -> None:
    """All results at the level in use, for another process to compare; and that they are the same
    in every mode."""
    results = {}
    for op in OPS.values():
        for case in op.cases:
            found = modes.check(case) if in_every_mode else runner.executed_in_all(case)
            for dtype, values in found.items():
                results[of_case(case, dtype)] = values
    for what, name, values, attrs, case, _ in work():
        if case is None:
            results[what] = backend.execute(name, values, attrs)
    with open(path, "wb") as stream:
        pickle.dump((backend.core.kernel_level(), results), stream)


def absolute(value: Any) -> Any:
    """The value with the sizes of its numbers; whole numbers say where and stay."""
    if isinstance(value, list):
        return [absolute(v) for v in value]
    if value.dtype == "bfloat16":
        return Value(value.array & np.uint16(0x7FFF), np.abs(value.numbers), value.dtype)
    if value.array.dtype.kind not in "fc":
        return value
    array = np.abs(value.array).astype(value.array.dtype)
    return Value(array, array, value.dtype)


def allowed(
    op: str, values: List[Any], attrs: Dict[str, Any], case: Any, dtype: str, output: int,
    larger: np.ndarray,
) -> np.ndarray:
    """How far apart two levels may be, per element."""
    if op in CONSTANTS:
        terms = backend.execute(op, [absolute(v) for v in values], attrs)[output]
        terms = from_bfloat16(terms) if dtype == "bfloat16" else np.abs(terms)
        bound = constant(op, values) * EPSILON[dtype] * np.asarray(terms, np.float64)
    else:
        stated = case.option("half_ulps") if dtype in HALVES else case.option("ulps")
        size = larger
        if case.option("norm") and size.size:
            finite = size[np.isfinite(size)]
            size = np.full(size.shape, np.max(finite, initial=0.0))
        bound = 2 * stated * EPSILON[dtype] * size + 2 * case.option("slack")
        bound = bound * (2 if dtype.startswith("complex") else 1)
    return np.maximum(np.where(np.isfinite(bound), bound, np.inf), 2 * runner.smallest(dtype))


def differences(
    what: str, op: str, values: List[Any], attrs: Dict[str, Any], case: Any,
    one: Sequence[np.ndarray], other: Sequence[np.ndarray],
) -> List[str]:
    """What is wrong between the results of two levels, a sentence each."""
    wrong = []
    for output, (a, b) in enumerate(zip(one, other)):
        if a.shape != b.shape or a.dtype != b.dtype:
            wrong.append("%s, output %d: %s%s and %s%s" % (what, output, a.dtype, a.shape, b.dtype,
                                                           b.shape))
            continue
        dtype = a.dtype.name
        halves = a.dtype == np.uint16 and " on bfloat16" in what
        if halves:
            a, b, dtype = from_bfloat16(a), from_bfloat16(b), "bfloat16"
        if dtype not in FLOATING:
            if not modes.same_bits(a, b):
                wrong.append("%s, output %d: the %s differ" % (what, output, dtype))
            continue
        with np.errstate(all="ignore"):
            wide = np.complex128 if a.dtype.kind == "c" else np.float64
            a, b = a.astype(wide), b.astype(wide)
            bound = allowed(op, values, attrs, case, dtype, output, np.maximum(np.abs(a),
                                                                               np.abs(b)))
            finite = np.isfinite(a) & np.isfinite(b)
            same = (a == b) | (np.isnan(a) & np.isnan(b)) | (~np.isfinite(bound))
            bad = np.where(finite, ~(np.abs(a - b) <= bound), ~same)
        if bad.any():
            at = tuple(np.argwhere(bad)[0])
            wrong.append("%s, output %d: element %s is %r and %r, %.3g apart, %.3g allowed" % (
                what, output, list(at), a[at], b[at], abs(a[at] - b[at]), bound[at]))
    return wrong


def dumped(level: str, folder: Path) -> Dict[str, List[np.ndarray]]:
    """The results of a process at that level, by what they are."""
    path = folder / level
    lowest = level == backend.other_levels()[0]
    program = "import sys; sys.path.append(%r); import test_level_agreement as t; t.dump(%r, %r)" % (
        str(Path(__file__).parent), str(path), lowest)
    backend.run_at_level(level, ["-c", program])
    with open(path, "rb") as stream:
        found, results = pickle.load(stream)
    assert found == level
    return results


@pytest.mark.skipif(not backend.other_levels(), reason="there is one level")
def test_levels(tmp_path: Path) -> None:
    """One pass for all levels: the oracles take most of the time."""
    others = {level: dumped(level, tmp_path) for level in backend.other_levels()}
    wrong = []
    for what, name, values, attrs, case, dtype in work():
        best = backend.execute(name, values, attrs)
        want = runner.expected(case, dtype, values) if case is not None else None
        for level, results in others.items():
            one = "%s at %s" % (what, level)
            found = results.pop(what)
            wrong += differences(one, name, values, attrs, case, best, found)
            if case is not None:
                wrong += beside_the_oracle(one, case, found, want)
    assert not any(others.values())
    assert not wrong, "%d differ:\n%s" % (len(wrong), "\n".join(wrong[:40]))


def beside_the_oracle(
    what: str, case: Any, found: Sequence[np.ndarray], want: Sequence[np.ndarray]
) -> List[str]:
    try:
        runner.check_outputs(case, what, found, want)
    except runner.CaseError as error:
        return [str(error)]
    return []


@pytest.mark.parametrize("op, units, agrees", [
    ("Sum", 3.0, True), ("Sum", 5.0, False), ("Conv2D", 15.0, True), ("Conv2D", 17.0, False),
    ("Exp", 1.0, True), ("Exp", 100.0, False)])
def test_a_difference_is_measured(op: str, units: float, agrees: bool) -> None:
    """One result moved by a number of units of what the bound counts: Σ|terms|, or the value."""
    case = next(c for c in OPS[op].cases if c.values("float32")[0].array.size > 3)
    values, attrs = case.values("float32"), runner.case_attrs(case, "float32")
    one = backend.execute(op, values, attrs)
    size = backend.execute(op, [absolute(v) for v in values], attrs)[0] if (
        op in CONSTANTS) else np.abs(one[0])
    other = [one[0].astype(np.float64)]
    other[0].flat[0] += units * EPSILON["float32"] * size.flat[0] * (1 + 1e-3)
    near = [np.asarray(other[0], np.float32)]
    assert (not differences(op, op, values, attrs, case, one, near)) == agrees


def test_constants_are_of_ops_with_cases() -> None:
    assert not [name for name in CONSTANTS if name not in OPS]
