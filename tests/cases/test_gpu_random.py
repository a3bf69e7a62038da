# SPDX-License-Identifier: Apache-2.0
"""Random numbers on a GPU against the CPU's, which test_random.py holds to its oracles.

Streams are the same on both. Numbers that are bits of them are so too; those that log, sin and cos
go into may be off by what two libraries differ in.
"""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

import numpy as np
import pytest
import treenail as tn

from test_gpu import DEVICE, cusim

pytestmark = cusim.needs_gpu()

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
FLOATS = ["float32", "float64", "float16", "bfloat16"]
REALS = ["RandomUniform", "RandomStandardNormal", "TruncatedNormal"]
STATELESS = ["StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"]
SIZES = [0, 1, 3, 4, 5, 1000, 100003]
SEEDS = [(0, 1), (87654321, 42), (-1, 2**62)]
RANGES = [
    ("int32", -5, 1000),
    ("int32", -(2**31), 2**31 - 1),
    ("int64", 0, 10**15),
    ("int64", -(2**63), 2**63 - 1),
]
ONES = 2**32 - 1


def on(device: str, op: str, inputs: Sequence[Any], attrs: Dict[str, Any]) -> List[np.ndarray]:
    """What two runs of a session give, whose node must have run on the device."""
    metadata = tn.RunMetadata()
    options = tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE)
    with tn.Graph().as_default() as graph:
        # Fed, lest a stateless op be computed beforehand where its inputs are.
        given = [tn.placeholder(each.dtype.name, each.shape) for each in inputs]
        with tn.device(device):
            output = graph.create_op(op, given, attrs).outputs[0]
        feeds = dict(zip(given, inputs))
        with tn.Session(graph=graph) as session:
            results = [
                session.run(output, feeds, options=options, run_metadata=metadata)
                for _ in range(2)
            ]
    places = {node.op: node.device for node in metadata.nodes}
    assert places[op] == device, places
    return [np.asarray(result) for result in results]


def bits(values: np.ndarray) -> np.ndarray:
    return values.view("u%d" % values.itemsize)


def ordered(values: np.ndarray) -> np.ndarray:
    """Numbers as integers, neighbours one apart."""
    raw = bits(values).astype(np.int64)
    least = -(2 ** (8 * values.itemsize - 1))
    signed = values.view("i%d" % values.itemsize).astype(np.int64)
    return np.where(signed < 0, least - signed, raw)


def check(op: str, inputs: Sequence[Any], attrs: Dict[str, Any]) -> None:
    for ours, theirs in zip(on(DEVICE, op, inputs, attrs), on(CPU, op, inputs, attrs)):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        if "Normal" in op:
            assert np.abs(ordered(ours) - ordered(theirs)).max(initial=0) <= 4
        else:
            np.testing.assert_array_equal(bits(ours), bits(theirs))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", REALS)
@pytest.mark.parametrize("n", SIZES)
def test_counted_streams(op: str, dtype: str, n: int) -> None:
    for seed, seed2 in SEEDS:
        attrs = {"dtype": dtype, "seed": seed, "seed2": seed2}
        check(op, [np.array([n], np.int32)], attrs)


@pytest.mark.parametrize("dtype, low, high", RANGES)
@pytest.mark.parametrize("n", SIZES)
def test_integers(dtype: str, low: int, high: int, n: int) -> None:
    shape, bounds = np.array([n], np.int64), [np.array(low, dtype), np.array(high, dtype)]
    check("RandomUniformInt", [shape] + bounds, {"seed": 11, "seed2": 12})
    check("StatelessRandomUniformInt", [shape, np.array([4, -5])] + bounds, {})


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", STATELESS)
@pytest.mark.parametrize(
    "seed",
    [
        np.array([7, -8], np.int32),
        np.array([7, ONES - 7], np.uint32),
        np.array([2**40, -(2**62)], np.int64),
        np.array([2**64 - 1, 2**63], np.uint64),
        np.array([1, 2, 3, 4, 5, 6], np.uint32),
        # Sums that carry from word to word: past the first 16 blocks, into each of the words.
        np.array([ONES - 15, 0, 3, 4, 5, 6], np.uint32),
        np.array([ONES - 15, ONES, ONES, 4, ONES, 6], np.uint32),
    ],
    ids=lambda seed: "%s-%d" % (seed.dtype, seed[0]),
)
def test_seeds(op: str, dtype: str, seed: np.ndarray) -> None:
    for n in (5, 1000):
        check(op, [np.array([n], np.int32), seed], {"dtype": dtype})


def test_places_in_a_stream() -> None:
    check("RandomStream", [np.array([3, 7], np.int64)], {"seed": 5, "seed2": -9})


@pytest.mark.parametrize("op", REALS)
def test_runs_continue_the_stream(op: str) -> None:
    """The comparison with the CPU's would hold, too, where both gave the same numbers again."""
    attrs = {"dtype": "float32", "seed": 5, "seed2": 6}
    first, second = on(DEVICE, op, [np.array([1000], np.int32)], attrs)
    assert (first != second).mean() > 0.99
