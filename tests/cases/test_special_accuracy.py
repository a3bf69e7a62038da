# SPDX-License-Identifier: Apache-2.0
"""Special functions against tables that mpmath made (data/make_special_tables.py).

Of one operand: within 2 units in the last place of float32, float16 and bfloat16; of float64 within
4, or 4 epsilon absolutely (near zeros of the function). Of more operands in float64: the worst
error and the 99th percentile are at most SciPy's on the same points, and 1e-11. At every ISA level.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest
from scipy import special

import backend
import harness

FOLDER = Path(__file__).parent / "data" / "special"
ONE = ("Lgamma", "Digamma", "Erfinv", "Ndtri", "BesselI0e", "BesselI1e")
WITH_ZEROS = ("Lgamma", "Digamma")
SCIPY = {"Zeta": special.zeta, "Polygamma": special.polygamma, "Igamma": special.gammainc,
         "Igammac": special.gammaincc, "Betainc": special.betainc}
SMALLEST = {"float64": 2.0**-1022, "float32": 2.0**-126, "float16": 2.0**-14, "bfloat16": 2.0**-126}
LARGEST = {"float64": 1e308, "float32": 3.4e38, "float16": 65500.0, "bfloat16": 3.38e38}


def table(name: str) -> Tuple[List[np.ndarray], np.ndarray, np.ndarray]:
    """Operands, values, and what the values' rounding to float64 left."""
    lines = (FOLDER / (name + ".txt")).read_text().splitlines()
    columns = np.array([[float.fromhex(x) for x in line.split()] for line in lines]).T
    return list(columns[:-2]), columns[-2], columns[-1]


def evaluate(name: str, operands: List[np.ndarray], dtype: str) -> np.ndarray:
    values = [harness.Value(harness.stored(x, dtype), x, dtype) for x in operands]
    (result,) = backend.execute(name, values, {"T": dtype} if dtype == "bfloat16" else {})
    return harness.seen(result, dtype).astype(np.float64)


def errors_of_one(name: str, dtype: str) -> Dict[str, Any]:
    """The largest error in units in the last place, and how many points there were."""
    (x,), value, rest = table(name)
    with np.errstate(over="ignore"):
        held = (harness.seen(harness.stored(x, dtype), dtype) == x) & (np.abs(x) >= SMALLEST[dtype])
    held &= (np.abs(value) >= SMALLEST[dtype]) & (np.abs(value) <= LARGEST[dtype])
    x, value, rest = x[held], value[held], rest[held]
    error = np.abs((evaluate(name, [x], dtype) - value) - rest)
    epsilon = harness.EPSILON[dtype]
    units = error / (epsilon * 2.0 ** np.floor(np.log2(np.abs(value))))
    if dtype == "float64" and name in WITH_ZEROS:
        units = np.minimum(units, error / epsilon)
    worst = int(np.argmax(units))
    return {"ulp": units[worst], "at": x[worst], "points": len(x)}


def check_one(name: str, dtype: str) -> None:
    found = errors_of_one(name, dtype)
    assert found["points"] > 20, found
    assert found["ulp"] <= (4 if dtype == "float64" else 2), found


@pytest.mark.parametrize("dtype", harness.FLOATS)
@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_operand(name: str, dtype: str) -> None:
    check_one(name, dtype)


def relative(got: np.ndarray, value: np.ndarray, rest: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        error = np.abs(((got - value) - rest) / value)
    return np.where(np.isfinite(error), error, np.inf)


def errors_of_more(name: str) -> Dict[str, Any]:
    operands, value, rest = table(name)
    ours = relative(evaluate(name, operands, "float64"), value, rest)
    with np.errstate(all="ignore"):
        theirs = relative(SCIPY[name](*operands), value, rest)
    return {"worst": ours.max(), "at": [float(x[ours.argmax()]) for x in operands],
            "p99": np.percentile(ours, 99), "scipy_worst": theirs.max(),
            "scipy_p99": np.percentile(theirs, 99), "points": len(value)}


@pytest.mark.parametrize("name", SCIPY)
def test_functions_of_more_operands(name: str) -> None:
    found = errors_of_more(name)
    assert found["points"] == 2000, found
    assert found["worst"] <= min(1e-11, found["scipy_worst"]), found
    assert found["p99"] <= found["scipy_p99"], found


def test_derivative_of_igamma_in_a() -> None:
    operands, value, rest = table("IgammaGradA")
    errors = relative(evaluate("IgammaGradA", operands, "float64"), value, rest)
    assert len(value) >= 700
    assert errors.max() <= 1e-9, [x[errors.argmax()] for x in operands]


@pytest.mark.parametrize("name", SCIPY)
def test_functions_of_more_operands_in_float32(name: str) -> None:
    operands, value, rest = table(name)
    operands = [x.astype(np.float32).astype(np.float64) for x in operands]
    exact = evaluate(name, operands, "float64")
    with np.errstate(invalid="ignore"):
        held = (np.abs(exact) > SMALLEST["float32"]) & (np.abs(exact) < LARGEST["float32"])
    got = evaluate(name, operands, "float32")
    units = np.abs(got - exact) / (2.0**-23 * 2.0 ** np.floor(np.log2(np.abs(exact))))
    assert held.sum() > 1000
    assert units[held].max() <= 2, [x[held][units[held].argmax()] for x in operands]


@pytest.mark.parametrize("level", backend.other_levels())
def test_levels(level: str) -> None:
    program = (
        "import sys; sys.path.append(%r); import harness, test_special_accuracy as t\n"
        "for name in t.ONE:\n"
        "  for dtype in harness.FLOATS: t.check_one(name, dtype)\n"
        "print('checked')" % str(Path(__file__).parent))
    assert backend.run_at_level(level, ["-c", program]).splitlines()[-1] == "checked"
