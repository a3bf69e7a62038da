# SPDX-License-Identifier: Apache-2.0
"""Runs one case at once: forward against the oracle, gradients against finite differences."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

import backend
from harness import COMPLEX, EPSILON, HALVES, Case, ErrorCase, Value, from_bfloat16, wide


class CaseError(AssertionError):
    """A result is not what was stated."""


def describe(case: Case, dtype: str, values: Sequence[Any]) -> str:
    shapes = ", ".join("%s%s" % (v.dtype, list(v.array.shape)) for v in backend.flat(values))
    attrs = ", ".join("%s=%r" % item for item in case.attrs_for(dtype).items())
    return "%s(%s%s) on %s" % (case.op.name, shapes, "; " + attrs if attrs else "", dtype)


def case_attrs(case: Case, dtype: str) -> dict:
    attrs = case.attrs_for(dtype)
    if dtype == "bfloat16":
        # bfloat16 crosses as uint16, so the type cannot be read off the arrays.
        for attr in backend.DESCRIPTIONS[case.op.name]["attrs"]:
            if attr["name"] == "T" and attr["kind"] == "type":
                attrs.setdefault("T", dtype)
    return attrs


def dtypes(case: Case) -> Tuple[str, ...]:
    """The dtypes of the case; one round for ops whose inputs are all literal."""
    return tuple(case.option("dtypes"))


# --- Forward
# --------------------------------------------------------------------------------------------------


def expected(case: Case, dtype: str, values: Sequence[Any]) -> List[np.ndarray]:
    inputs = [
        [v.numbers for v in value] if isinstance(value, list) else value.numbers for value in values
    ]
    attrs = case.attrs_for(dtype) if case.option("oracle_attrs") else {}
    with np.errstate(all="ignore"):
        result = case.op.oracle(*inputs, **attrs)
    return (
        [np.asarray(r) for r in result]
        if isinstance(result, (list, tuple))
        else [np.asarray(result)]
    )


def is_bfloat16(actual: np.ndarray, want: np.ndarray) -> bool:
    """Bits that stand for numbers; no op gives uint16 where its oracle computes floats."""
    return actual.dtype == np.uint16 and want.dtype.kind == "f"


def compare(case: Case, what: str, actual: np.ndarray, want: np.ndarray) -> None:
    if is_bfloat16(actual, want):
        actual = from_bfloat16(actual)
        result_type = "bfloat16"
    else:
        result_type = actual.dtype.name
        if want.dtype.kind not in "fc" or want.dtype.kind != wide(result_type).kind:
            if want.dtype != actual.dtype:
                raise CaseError("%s: dtype is %s, expected %s" % (what, actual.dtype, want.dtype))
    if actual.shape != want.shape:
        raise CaseError("%s: shape is %s, expected %s" % (what, actual.shape, want.shape))
    if result_type not in EPSILON:
        if not np.array_equal(actual, want):
            raise CaseError("%s:\n%r\nexpected\n%r" % (what, actual, want))
        return
    compare_floats(case, result_type, what, actual, want)


def compare_floats(
    case: Case, result_type: str, what: str, actual: np.ndarray, want: np.ndarray
) -> None:
    if result_type in COMPLEX:
        parts = [(actual.real, want.real), (actual.imag, want.imag)]
        scale = np.abs(want)
    else:
        parts, scale = [(actual, want)], None
    epsilon = EPSILON[result_type]
    units = case.option("half_ulps") if result_type in HALVES else case.option("ulps")
    if result_type in COMPLEX:
        units *= 2
    for got, exact in parts:
        got = got.astype(np.float64)
        with np.errstate(all="ignore"):
            rounded = round_to(exact, result_type)
            finite = np.isfinite(rounded)
            special = exact == 0
            size = np.abs(exact) if scale is None else scale
            if case.option("norm") and finite.any():
                size = np.full(exact.shape, np.max(np.abs(exact[finite]), initial=0.0))
            allowed = np.maximum(
                units * epsilon * np.where(finite & np.isfinite(size), size, 0),
                smallest(result_type),
            ) + case.option("slack")
            wrong = finite & ~(np.abs(got - exact) <= allowed)
            wrong |= ~finite & ~((got == rounded) | (np.isnan(got) & np.isnan(rounded)))
            if case.option("signed_zeros"):
                zeros = special & (got == 0)
                wrong |= zeros & (np.signbit(got) != np.signbit(exact))
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.ndim else ()
            raise CaseError(
                "%s: element %s of %d wrong ones is %r, expected %r (allowed error %g)"
                % (
                    what,
                    list(at),
                    int(wrong.sum()),
                    got[at],
                    exact[at],
                    np.broadcast_to(allowed, got.shape)[at],
                )
            )


def round_to(exact: np.ndarray, result_type: str) -> np.ndarray:
    """Where the result type overflows, infinity is right."""
    limit = {
        "float16": 65520.0,
        "bfloat16": 3.3961775292304601e38,
        "float32": 3.4028235677973366e38,
        "complex64": 3.4028235677973366e38,
    }.get(result_type)
    if limit is None:
        return exact
    return np.where(np.abs(exact) >= limit, np.copysign(np.inf, exact), exact)


def smallest(result_type: str) -> float:
    """One step below the normal numbers: what is left of relative precision there."""
    return {
        "float16": 2.0**-24,
        "bfloat16": 2.0**-133,
        "float32": 2.0**-149,
        "complex64": 2.0**-149,
    }.get(result_type, 2.0**-1074)


def executed(case: Case, dtype: str) -> List[np.ndarray]:
    """What immediate execution gives."""
    return backend.execute(case.op.name, case.values(dtype), case_attrs(case, dtype))


def executed_in_all(case: Case) -> Dict[str, List[np.ndarray]]:
    """The same, by dtype."""
    return {dtype: executed(case, dtype) for dtype in dtypes(case)}


def check_forward(case: Case, dtype: str, actual: Sequence[np.ndarray]) -> None:
    """Against the oracle."""
    values = case.values(dtype)
    check_outputs(case, describe(case, dtype, values), actual, expected(case, dtype, values))


def check_outputs(
    case: Case, what: str, actual: Sequence[np.ndarray], want: Sequence[np.ndarray]
) -> None:
    """Against what the oracle has given."""
    if len(actual) != len(want):
        raise CaseError("%s: %d outputs, expected %d" % (what, len(actual), len(want)))
    for i, (a, w) in enumerate(zip(actual, want)):
        compare(case, what if len(want) == 1 else "%s, output %d" % (what, i), a, w)


# --- Gradients
# ------------------------------------------------------------------------------------------------

STEP = 1e-6
MOST_ELEMENTS = 40
DIRECTIONS = 6


def gradient_dtype(case: Case) -> str:
    available = case.option("dtypes")
    return next((d for d in ("float64", "complex128") if d in available), "")


def gradient_cases(cases: Sequence[Case]) -> List[Case]:
    """Those whose gradients are checked."""
    return [
        case
        for case in cases
        if case.option("grad")
        and gradient_dtype(case)
        and backend.DESCRIPTIONS.get(case.op.name, {}).get("differentiable")
    ]


def differentiated(case: Case, values: Sequence[Any], dtype: str) -> List[int]:
    """Flat numbers of the inputs whose gradients are checked."""
    if case.option("wrt") is not None:
        return list(case.option("wrt"))
    return [
        i for i, v in enumerate(backend.flat(values)) if v.dtype in (dtype, "complex128", "float64")
    ]


def shifted(values: Sequence[Any], flat_index: int, delta: np.ndarray) -> List[Any]:
    """The inputs with `delta` added to one of them."""
    count = 0
    result: List[Any] = []
    for value in values:
        group = value if isinstance(value, list) else [value]
        moved = []
        for v in group:
            array = v.array + delta if count == flat_index else v.array
            moved.append(Value(array, array, v.dtype, v.literal))
            count += 1
        result.append(moved if isinstance(value, list) else moved[0])
    return result


def directions(array: np.ndarray, hermitian: bool = False) -> List[np.ndarray]:
    """Unit directions for small inputs, random ones for larger: the same each time. hermitian: of
    each what a Hermitian matrix may move along."""
    if hermitian:
        return [(d + np.conj(np.swapaxes(d, -1, -2))) / 2 for d in directions(array)]
    steps = [1.0, 1j] if array.dtype.kind == "c" else [1.0]
    if array.size <= MOST_ELEMENTS:
        units = []
        for i in range(array.size):
            for step in steps:
                unit = np.zeros(array.size, array.dtype)
                unit[i] = step
                units.append(unit.reshape(array.shape))
        return units
    rng = np.random.default_rng(7)
    return [
        rng.choice([-1.0, 1.0], array.shape) * (steps[i % len(steps)]) for i in range(DIRECTIONS)
    ]


def inner(a: np.ndarray, b: np.ndarray) -> float:
    """Re sum(conj(a) b)"""
    product = np.conj(a) * b if a.dtype.kind == "c" else a * b
    return float(product.real.sum())


def differences(case: Case, function: Any, values: Sequence[Any], i: int) -> List[float]:
    """Central differences of function(values), a real number, in the directions of flat input i."""
    array = backend.flat(values)[i].array
    return [
        (function(shifted(values, i, delta)) - function(shifted(values, i, -delta))) / (2 * STEP)
        for delta in (STEP * d for d in directions(array, case.option("hermitian")))
    ]


def check_against_differences(
    case: Case, what: str, i: int, x: np.ndarray, gradient: np.ndarray, measured: Sequence[float]
) -> None:
    """`gradient` should be that of input i, which is x, where the differences are these."""
    if gradient.shape != x.shape or gradient.dtype != x.dtype:
        raise CaseError(
            "%s: gradient %d is %s%s, the input %s%s"
            % (what, i, gradient.dtype, list(gradient.shape), x.dtype, list(x.shape))
        )
    scale = max(1.0, float(np.max(np.abs(gradient), initial=0.0)))
    for direction, difference in zip(directions(x, case.option("hermitian")), measured):
        analytic = inner(gradient, direction)
        tolerance = (
            case.option("grad_tolerance")
            * scale
            * max(1.0, float(np.sqrt(np.sum(np.abs(direction)))))
        )
        if not abs(difference - analytic) <= tolerance:
            at = (
                np.argwhere(direction != 0)[0].tolist()
                if x.ndim and x.size <= MOST_ELEMENTS
                else "a random direction"
            )
            raise CaseError(
                "%s: gradient of input %d at %s is %r, differences give %r"
                % (what, i, at, analytic, difference)
            )


class GradientCheck:
    """One case's op in a graph, with random weights for its outputs: L = Re sum(conj(w) y)."""

    def __init__(self, case: Case, dtype: str, known_shapes: bool, device: str = "") -> None:
        self.case, self.dtype = case, dtype
        # Of inputs: differences of the op, the same whether shapes are known.
        self.measured: Dict[int, List[float]] = {}
        self.values = case.values(dtype)
        self.attrs = case_attrs(case, dtype)
        self.what = "%s, %s shapes" % (
            describe(case, dtype, self.values),
            "known" if known_shapes else "unknown",
        )
        self.graph = backend.OpGraph(case.op.name, self.values, self.attrs, known_shapes, device)
        self.inputs = [
            i
            for i in differentiated(case, self.values, dtype)
            if self.graph.placeholders[i] is not None
        ]
        self.rng = np.random.default_rng(11)
        outputs = backend.execute(case.op.name, self.values, self.attrs)
        self.weights = {k: self.weight(y) for k, y in enumerate(outputs) if y.dtype.kind in "fc"}

    def weight(self, y: np.ndarray) -> np.ndarray:
        w = self.rng.uniform(-1, 1, y.shape)
        return (w + 1j * self.rng.uniform(-1, 1, y.shape) if y.dtype.kind == "c" else w).astype(
            y.dtype
        )

    def first(self) -> Tuple[List[Any], List[Optional[np.ndarray]]]:
        """The gradients in the graph, and their values; None where there is none."""
        ys = [self.graph.outputs[k] for k in self.weights]
        xs = [self.graph.placeholders[i] for i in self.inputs]
        gradients = self.graph.gradients(ys, xs, list(self.weights.values()))
        results = iter(self.graph.run([g for g in gradients if g is not None], self.values))
        arrays = [None if g is None else np.asarray(next(results)) for g in gradients]
        for i, array in zip(self.inputs, arrays):
            if i not in self.measured:
                self.measured[i] = differences(self.case, self._loss, self.values, i)
            self._check(self.what, i, array, self.measured[i])
        return gradients, arrays

    def _check(
        self, what: str, i: int, array: Optional[np.ndarray], measured: Sequence[float]
    ) -> None:
        x = backend.flat(self.values)[i].array
        gradient = np.zeros_like(x) if array is None else array
        check_against_differences(self.case, what, i, x, gradient, measured)

    def _loss(self, values: Sequence[Any]) -> float:
        outputs = backend.execute(self.case.op.name, values, self.attrs)
        return sum(inner(w, outputs[k]) for k, w in self.weights.items())

    def second(self, gradients: Sequence[Any]) -> None:
        known = [g for g in gradients if g is not None]
        if not known:
            return
        arrays = [np.asarray(a) for a in self.graph.run(known, self.values)]
        weights = [self.weight(a) for a in arrays]
        xs = [self.graph.placeholders[i] for i in self.inputs]
        seconds = self.graph.gradients(known, xs, weights)

        def loss(values: Sequence[Any]) -> float:
            return sum(
                inner(w, np.asarray(a)) for w, a in zip(weights, self.graph.run(known, values))
            )

        results = iter(self.graph.run([g for g in seconds if g is not None], self.values))
        for i, g in zip(self.inputs, seconds):
            array = None if g is None else np.asarray(next(results))
            measured = differences(self.case, loss, self.values, i)
            self._check(self.what + ", second gradient", i, array, measured)


# --- Errors
# ---------------------------------------------------------------------------------------------------


def error_attrs(case: ErrorCase) -> dict:
    attrs = dict(case.attrs)
    if case.dtype == "bfloat16":
        attrs.setdefault("T", case.dtype)
    return attrs


def run_error_immediately(case: ErrorCase) -> None:
    backend.execute(case.op.name, case.values(), error_attrs(case))
