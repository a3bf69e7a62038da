# SPDX-License-Identifier: Apache-2.0
"""Sorts and scans on a GPU that take several blocks, several passes, or hang on ties: the cases of
test_gpu.py are too small for that."""

from __future__ import annotations

from typing import Any, List, Tuple

import numpy as np
import pytest
import treenail as tn
from treenail import _treenail as core

from harness import REALS
from test_gpu import DEVICE, cusim
from test_gpu_indexing import check_bits, on

pytestmark = cusim.needs_gpu()

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def special(shape: Tuple[int, ...], dtype: str) -> np.ndarray:
    """Many ties; of floats also zeros of both signs, infinities and NaNs of both signs."""
    rng = np.random.default_rng(5)
    if dtype.startswith(("int", "uint")):
        info = np.iinfo(dtype)
        ends = np.array([info.min, info.max, 0, 1], dtype)
        return np.where(rng.random(shape) < 0.1, rng.choice(ends, shape),
                        rng.integers(0, 100, shape).astype(dtype))
    odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-7, -1e-7], dtype)
    some = (rng.integers(-999, 999, shape) / 7).astype(dtype)
    return np.where(rng.random(shape) < 0.1, rng.choice(odd, shape), some)


# Tiles of 4096 and 2048; k of a few, of a tile, and of nearly all.
SHAPES: List[Tuple[Tuple[int, ...], List[int]]] = [
    ((3, 5), [0, 1, 5]), ((2, 2048), [7, 2048]), ((2, 2049), [1, 2049]), ((4097,), [4097]),
    ((3, 20000), [1, 100, 1024, 2048, 5000, 19999]), ((1, 70001), [3, 40000]),
]


@pytest.mark.parametrize("dtype", [each for each in REALS if each != "bfloat16"])
@pytest.mark.parametrize("shape,ks", SHAPES)
def test_the_largest(dtype: str, shape: Tuple[int, ...], ks: List[int]) -> None:
    with tn.eager():
        for k in ks:
            check_bits("TopK", special(shape, dtype), np.int32(k))


def test_the_largest_of_bfloat16() -> None:
    values = core.tensor(special((2, 9000), "float32"), "bfloat16")
    found = []
    for device in (DEVICE, CPU):
        with tn.eager(), tn.device(device):
            results = core.execute("TopK", [values, np.int32(8000)], {})
            found.append([np.asarray(each).tobytes() for each in results])
    assert found[0] == found[1]


@pytest.mark.parametrize("classes", [3, 100, 5000])
def test_whether_among_the_largest(classes: int) -> None:
    rng = np.random.default_rng(0)
    predictions = rng.integers(0, 50, (300, classes)).astype(np.float32)
    predictions[7, 2], predictions[8, 1] = np.nan, np.inf
    targets = rng.integers(-1, classes + 1, 300)
    with tn.eager():
        for k in (0, 1, 2, classes):
            check_bits("InTopK", predictions, targets, np.int64(k))


SCANNED = [
    ((3, 2047), 1), ((3, 2048), 1), ((2, 100003), 1), ((1, 1 << 20), 1), ((5000, 7), 1),
    ((9001, 3), 0), ((3, 5001, 2), 1), ((300, 70), 0), ((40, 33), 1), ((100, 1), 1),
]


@pytest.mark.parametrize("shape,axis", SCANNED)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_and_products(
    shape: Tuple[int, ...], axis: int, exclusive: bool, reverse: bool
) -> None:
    attrs = {"exclusive": exclusive, "reverse": reverse}
    rng = np.random.default_rng(1)
    with tn.eager():
        for dtype in ("int8", "uint16", "int32", "int64"):
            values = rng.integers(0, 100, shape).astype(dtype)
            check_bits("Cumsum", values, np.int32(axis), **attrs)
            check_bits("Cumprod", 2 * values + 1, np.int32(axis), **attrs)
        for dtype in ("float32", "float64", "complex64"):
            # Sums of whole numbers, and products of powers of 2, are exact in every order.
            values = rng.integers(-9, 9, shape).astype(dtype)
            check_bits("Cumsum", values, np.int32(axis), **attrs)
            if dtype != "complex64":
                powers = (2.0 ** rng.integers(-1, 2, shape)).astype(dtype)
                check_products(powers, axis, attrs)


def check_products(powers: np.ndarray, axis: int, attrs: Any) -> None:
    """Where no running product leaves the range of normal numbers."""
    depth = np.abs(np.cumsum(np.log2(powers), axis)).max(initial=0)
    if depth < 60:
        check_bits("Cumprod", powers, np.int32(axis), **attrs)


def test_running_sums_round_little() -> None:
    values = np.random.default_rng(1).normal(size=(2, 300000))
    with tn.eager():
        (found,) = on(DEVICE, "Cumsum", [values, np.int32(1)], {})
        again = on(DEVICE, "Cumsum", [values, np.int32(1)], {})[0]
    np.testing.assert_allclose(found, np.cumsum(values, 1), rtol=0, atol=1e-10)
    assert found.tobytes() == again.tobytes()
