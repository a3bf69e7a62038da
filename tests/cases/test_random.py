# SPDX-License-Identifier: Apache-2.0
"""Ops of framework/ops/random.cc against three oracles: Philox4x32-10 written in NumPy (checked against Random123's
known answers), streams recorded from TensorFlow, and statistics."""

import json
from pathlib import Path

import numpy as np
import pytest
import treenail as tn
from treenail import _treenail as core

from harness import FLOATS, from_bfloat16, to_bfloat16

RECORDED = json.loads((Path(__file__).parent / "data" / "tensorflow_random.json").read_text())
RUNS = 3


# --- Philox in NumPy -----------------------------------------------------------------------------


def philox(counter, key):
    """Blocks for counters [n, 4] (uint32) and one key: 10 rounds of Salmon et al., SC 2011."""
    a, b, c, d = (counter[:, i].astype(np.uint64) for i in range(4))
    key = [int(k) for k in key]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        p, q = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
        a, b, c, d = (
            (q >> np.uint64(32)) ^ b ^ np.uint64(key[0]),
            q & low,
            (p >> np.uint64(32)) ^ d ^ np.uint64(key[1]),
            p & low,
        )
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack([a, b, c, d], 1).astype(np.uint32)


def test_the_oracle_gives_the_known_answers():
    """kat_vectors of Random123, philox4x32-10."""
    ones = 0xFFFFFFFF
    for counter, key, wanted in (
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([ones] * 4, [ones] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ):
        assert philox(np.array([counter], np.uint32), key)[0].tolist() == wanted


class Stream:
    """The words of a stream, block by block."""

    def __init__(self, counter, key):
        self.counter, self.key = counter, key

    @classmethod
    def counted(cls, seed, seed2):
        seed, seed2 = seed % 2**64, seed2 % 2**64
        return cls([0, 0, seed2 % 2**32, seed2 >> 32], [seed % 2**32, seed >> 32])

    @classmethod
    def seeded(cls, seed):
        words = [int(s) % 2**64 for s in seed]
        counter = np.array(
            [[words[0] % 2**32, words[0] >> 32, words[1] % 2**32, words[1] >> 32]], np.uint32
        )
        mixed = philox(counter, [0x3EC8F720, 0x02461E29])[0].tolist()
        return cls([0, 0] + mixed[2:], mixed[:2])

    def blocks(self, first, count):
        """Words [count, 4] of blocks first, first + 1, ..."""
        start = (
            self.counter[0]
            + (self.counter[1] << 32)
            + (self.counter[2] << 64)
            + (self.counter[3] << 96)
        )
        numbers = [(start + first + i) % 2**128 for i in range(count)]
        words = [[n >> shift & 0xFFFFFFFF for shift in (0, 32, 64, 96)] for n in numbers]
        return philox(np.array(words, np.uint32).reshape(-1, 4), self.key)


# --- Distributions -------------------------------------------------------------------------------


def unit32(words):
    return ((words & np.uint32(0x7FFFFF)) | np.uint32(0x3F800000)).view(np.float32) - np.float32(1)


def unit64(high, low):
    bits = ((high & np.uint32(0xFFFFF)).astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
    return (bits | np.uint64(0x3FF) << np.uint64(52)).view(np.float64) - 1.0


def uniform(words, dtype):
    if dtype == "float32":
        return unit32(words).ravel()
    if dtype == "float64":
        return unit64(words[:, 0::2], words[:, 1::2]).ravel()
    bits = 10 if dtype == "float16" else 7
    return (words & np.uint32(2**bits - 1)).ravel() / 2.0**bits


def normal(words, dtype):
    if dtype == "float64":
        u, v = unit64(words[:, 0], words[:, 1]), unit64(words[:, 2], words[:, 3])
    else:
        u, v = unit32(words[:, 0::2]).astype(np.float64), unit32(words[:, 1::2]).astype(np.float64)
        v = (2 * np.pi * v).astype(np.float32).astype(np.float64) / (2 * np.pi)
    radius = np.sqrt(-2 * np.log(np.maximum(u, 1e-7)))
    return np.stack([np.sin(2 * np.pi * v) * radius, np.cos(2 * np.pi * v) * radius], -1).reshape(
        -1
    )


def truncated(stream, first, n, dtype):
    group = 2 if dtype == "float64" else 4
    out = []
    for g in range(-(-n // group)):
        drawn = normal(stream.blocks(first + g * group * 64, 12), dtype)
        out.append(drawn[np.abs(drawn) < 2][:group])
    return np.concatenate(out)[:n] if out else np.zeros(0)


def expected(op, dtype, stream, first, n):
    if "Truncated" in op:
        return truncated(stream, first, n, dtype)
    per_block = 2 if dtype in ("float64", "int64") else 4
    words = stream.blocks(first, -(-n // per_block))
    return (uniform if "Uniform" in op else normal)(words, dtype)[:n]


def integers(dtype, low, high, stream, first, n):
    words = stream.blocks(first, -(-n // (2 if dtype == "int64" else 4))).astype(np.uint64)
    bits = words[:, 0::2] | words[:, 1::2] << np.uint64(32) if dtype == "int64" else words
    return np.array([low + int(b) % (high - low) for b in bits.ravel()[:n]], dtype)


def in_session(op, inputs, attrs, runs=RUNS):
    with tn.Graph().as_default() as graph:
        node = graph.create_op(op, inputs, attrs)
        with tn.Session(graph=graph) as session:
            results = [session.run(node.outputs[0]) for _ in range(runs)]
    dtype = attrs.get("dtype")
    return [from_bfloat16(np.asarray(r)) if dtype == "bfloat16" else np.asarray(r) for r in results]


def rounded(values, dtype):
    return from_bfloat16(to_bfloat16(values)) if dtype == "bfloat16" else values.astype(dtype)


# The C library's log, sin and cos may be a unit off the correctly rounded ones.
TOLERANCE = {"float32": 3e-6, "float64": 1e-14, "float16": 1e-3, "bfloat16": 8e-3}
REALS = ("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
STATELESS = ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal")
SEEDS = [(0, 1), (87654321, 42), (-1, 2**62), (2**63 - 1, -(2**63))]


@pytest.mark.parametrize("op", REALS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [[], [0], [1], [3], [4], [5, 7], [2, 3, 67]])
def test_stateful_streams(op, dtype, shape):
    n = int(np.prod(shape))
    for seed, seed2 in SEEDS:
        attrs = {"dtype": dtype, "seed": seed, "seed2": seed2}
        results = in_session(op, [np.array(shape, np.int32)], attrs)
        for run, result in enumerate(results):
            wanted = rounded(
                expected(op, dtype, Stream.counted(seed, seed2), run * n * 256, n), dtype
            )
            assert result.shape == tuple(shape)
            np.testing.assert_allclose(
                result.ravel(), wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
            )
            if op == "RandomUniform":
                np.testing.assert_array_equal(result.ravel(), wanted)


@pytest.mark.parametrize("op", STATELESS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [0, 1, 4, 131])
def test_stateless_streams(op, dtype, n):
    for seed in ([0, 0], [7, -8], [2**40, -(2**62)]):
        given = core.tensor(np.array(seed, np.int64))
        result = np.asarray(core.execute(op, [np.array([n], np.int32), given], {"dtype": dtype})[0])
        result = from_bfloat16(result) if dtype == "bfloat16" else result
        wanted = rounded(expected(op, dtype, Stream.seeded(seed), 0, n), dtype)
        np.testing.assert_allclose(result, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("op", REALS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_next_place_in_a_stream_gives_its_numbers(op, dtype):
    """In turns with what it is the place of: both have a counter of their own."""
    stateless = STATELESS[REALS.index(op)]
    shape, seeds = np.array([3, 7], np.int32), {"seed": 5, "seed2": -9}
    with tn.Graph().as_default() as graph, tn.Session(graph=graph) as session:
        numbers = graph.create_op(op, [shape], {"dtype": dtype, **seeds}).outputs[0]
        place = graph.create_op("RandomStream", [shape], seeds).outputs[0]
        again = graph.create_op(stateless, [shape, place], {"dtype": dtype}).outputs[0]
        assert place.dtype == tn.uint32 and place.shape == [6]
        for _ in range(3):
            ours, theirs = session.run([again, numbers])
            np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


@pytest.mark.parametrize(
    "dtype, seed",
    [("int32", [7, -8]), ("uint32", [7, 2**32 - 8]), ("uint64", [2**64 - 1, 2**63])],
)
def test_seeds_of_other_dtypes_count_modulo_two_to_the_64(dtype, seed):
    shape = np.array([9], np.int32)
    same = [s - 2**64 if s >= 2**63 else s for s in seed]
    for op in STATELESS:
        given, wide = (core.tensor(np.array(s, t)) for s, t in ((seed, dtype), (same, np.int64)))
        np.testing.assert_array_equal(
            core.execute(op, [shape, given])[0], core.execute(op, [shape, wide])[0]
        )


@pytest.mark.parametrize(
    "dtype,low,high",
    [
        ("int32", -5, 1000),
        ("int32", -(2**31), 2**31 - 1),
        ("int64", 0, 10**15),
        ("int64", -(2**63), 2**63 - 1),
        ("int32", 7, 8),
    ],
)
def test_uniform_integers(dtype, low, high):
    bounds = [np.array(low, dtype), np.array(high, dtype)]
    results = in_session(
        "RandomUniformInt", [np.array([3, 11], np.int64)] + bounds, {"seed": 11, "seed2": 12}
    )
    for run, result in enumerate(results):
        wanted = integers(dtype, low, high, Stream.counted(11, 12), run * 33 * 256, 33)
        np.testing.assert_array_equal(result.ravel(), wanted)
    once = core.execute(
        "StatelessRandomUniformInt", [np.array([33], np.int32), np.array([4, 5], np.int32)] + bounds
    )[0]
    np.testing.assert_array_equal(once, integers(dtype, low, high, Stream.seeded([4, 5]), 0, 33))


def test_the_lowest_word_of_the_counter_carries():
    """A stream whose counter passes 2^32 within one result: seeds cannot reach that, an earlier large request can."""
    n = 2**22 - 2**10  # blocks reserved: 2^30 - 2^18
    with tn.Graph().as_default() as graph:
        size = tn.placeholder(tn.int32, [1])
        out = graph.create_op(
            "RandomUniform", [size], {"dtype": "float32", "seed": 3, "seed2": 4}
        ).outputs[0]
        with tn.Session(graph=graph) as session:
            for _ in range(4):
                session.run(out, {size: [n]})
            first = 4 * n * 256
            session.run(out, {size: [2**12 - 1]})
            first += (2**12 - 1) * 256
            assert first == 2**32 - 256
            result = session.run(out, {size: [3000]})
    np.testing.assert_array_equal(
        result, expected("RandomUniform", "float32", Stream.counted(3, 4), first, 3000)
    )


@pytest.mark.parametrize(
    "case", RECORDED["cases"], ids=lambda case: "%s-%s" % (case["op"], case["dtype"])
)
def test_streams_of_tensorflow(case):
    op, dtype, attrs = case["op"], case["dtype"], dict(case["attrs"])
    inputs = case["inputs"]
    if op == "RandomShuffle":
        given = [np.array(inputs[0], np.int32)]
    elif op == "Multinomial":
        given = [np.array(inputs[0], dtype), np.int32(inputs[1])]
    else:
        given = [np.array(inputs[0], np.int32)]
        rest = inputs[1:]
        if op.startswith("Stateless"):
            given.append(np.array(rest.pop(0), np.int64))
        given += [np.array(bound, dtype) for bound in rest]
        if not rest:
            attrs["dtype"] = dtype
    results = in_session(op, given, attrs, len(case["runs"]))
    for result, wanted in zip(results, case["runs"]):
        wanted = np.array(wanted)
        if "Normal" not in op:
            np.testing.assert_array_equal(result, wanted)
        else:
            np.testing.assert_allclose(
                result, wanted, rtol=TOLERANCE[dtype] / 10, atol=TOLERANCE[dtype] / 10
            )


# --- What holds for any generator ----------------------------------------------------------------


def moments(x):
    x = x.astype(np.float64)
    return x.mean(), x.var()


@pytest.mark.parametrize("dtype", FLOATS)
def test_statistics(dtype):
    n = 200_000
    shape = np.array([n], np.int32)
    attrs = {"dtype": dtype, "seed": 5, "seed2": 6}
    slack = 6 / np.sqrt(n) + {"float16": 1e-3, "bfloat16": 6e-3}.get(dtype, 0)
    u = in_session("RandomUniform", [shape], attrs, 1)[0]
    assert 0 <= u.min() and u.max() < 1
    assert abs(moments(u)[0] - 0.5) < slack and abs(moments(u)[1] - 1 / 12) < slack
    counts = np.histogram(u.astype(np.float64), 16, (0, 1))[0]
    assert np.sum((counts - n / 16) ** 2 / (n / 16)) < 50  # chi-squared, 15 degrees: p < 1e-5
    z = in_session("RandomStandardNormal", [shape], attrs, 1)[0].astype(np.float64)
    assert abs(moments(z)[0]) < slack and abs(moments(z)[1] - 1) < 3 * slack
    assert abs(np.mean(np.abs(z) < 1) - 0.682689) < slack
    t = in_session("TruncatedNormal", [shape], attrs, 1)[0].astype(np.float64)
    assert np.abs(t).max() <= 2
    assert abs(moments(t)[0]) < slack and abs(moments(t)[1] - 0.7737413) < 3 * slack


def test_results_do_not_depend_on_the_number_of_threads():
    shape = np.array([100_003], np.int32)
    before = core.num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 8):
            core.set_num_threads(threads)
            results.append(
                [
                    in_session(op, [shape], {"dtype": "float32", "seed": 5, "seed2": 6}, 1)[
                        0
                    ].tobytes()
                    for op in REALS
                ]
            )
    finally:
        core.set_num_threads(before)
    assert all(r == results[0] for r in results)


def test_seeds_of_zero_differ_from_session_to_session():
    shape = np.array([4], np.int32)
    results = {
        in_session("RandomUniform", [shape], {"dtype": "float64"}, 1)[0].tobytes() for _ in range(4)
    }
    assert len(results) == 4


def test_two_operations_have_streams_of_their_own():
    with tn.Graph().as_default() as graph:
        attrs = {"dtype": "float32", "seed": 1, "seed2": 2}
        a, b = (
            graph.create_op("RandomUniform", [np.array([3], np.int32)], attrs).outputs[0]
            for _ in range(2)
        )
        with tn.Session(graph=graph) as session:
            first_a = session.run(a)
            both = session.run([a, b])
    np.testing.assert_array_equal(first_a, both[1])
    assert (first_a != both[0]).any()


@pytest.mark.parametrize("shape", [(), (0,), (1,), (9,), (6, 2), (5, 0), (257, 130)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex128", "bool"])
def test_shuffling_permutes_rows(shape, dtype):
    values = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    result = in_session("RandomShuffle", [values], {"seed": 9, "seed2": 9}, 1)[0]
    assert result.shape == values.shape and result.dtype == values.dtype
    if values.ndim:
        assert sorted(r.tobytes() for r in values) == sorted(r.tobytes() for r in result)


def test_every_permutation_occurs():
    counts = {}
    for result in in_session(
        "RandomShuffle", [np.arange(4, dtype=np.int32)], {"seed": 1, "seed2": 1}, 2400
    ):
        counts[tuple(result)] = counts.get(tuple(result), 0) + 1
    assert len(counts) == 24
    assert (
        np.sum((np.array(list(counts.values())) - 100) ** 2 / 100) < 60
    )  # chi-squared, 23 degrees: p < 1e-4


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("output_dtype", ["int32", "int64"])
def test_multinomial_frequencies(dtype, output_dtype):
    logits = np.log([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]])
    logits[1, 2] = np.inf  # not finite: probability 0
    given = (
        core.tensor(to_bfloat16(logits), dtype)
        if dtype == "bfloat16"
        else core.tensor(logits.astype(dtype))
    )
    attrs = {"seed": 3, "seed2": 1, "output_dtype": output_dtype}
    drawn = core.execute("Multinomial", [given, np.int32(50_000)], attrs)[0]
    assert drawn.dtype == output_dtype and drawn.shape == (2, 50_000)
    np.testing.assert_allclose(
        np.bincount(drawn[0], minlength=3) / 50_000, [0.1, 0.2, 0.7], atol=0.02
    )
    np.testing.assert_allclose(
        np.bincount(drawn[1], minlength=3) / 50_000, [2 / 3, 1 / 3, 0], atol=0.02
    )


ERRORS = [
    (
        "RandomUniform",
        [np.array([-1], np.int32)],
        {"dtype": "float32"},
        "Dimension -1 must be >= 0",
    ),
    (
        "RandomUniformInt",
        [np.array([2], np.int32), np.int32(3), np.int32(3)],
        {},
        "Need minval < maxval, got 3 >= 3",
    ),
    (
        "StatelessRandomUniform",
        [np.array([2], np.int32), np.array([1], np.int64)],
        {"dtype": "float32"},
        "seed must have shape",
    ),
    (
        "StatelessRandomUniform",
        [np.array([2], np.int32), np.zeros(6, np.int64)],
        {"dtype": "float32"},
        "seed must have shape",
    ),
    ("RandomStream", [np.array([-1], np.int32)], {}, "Dimension -1 must be >= 0"),
    (
        "Multinomial",
        [np.zeros((2, 0), np.float32), np.int32(1)],
        {},
        "num_classes should be positive",
    ),
    (
        "Multinomial",
        [np.zeros((2, 3), np.float32), np.int32(-1)],
        {},
        "num_samples should be non-negative, got -1",
    ),
    (
        "Multinomial",
        [np.full((1, 2), np.nan, np.float32), np.int32(1)],
        {},
        "row 0 of logits has no finite element",
    ),
    ("Multinomial", [np.zeros(2, np.float32), np.int32(1)], {}, "logits must have rank 2"),
]


@pytest.mark.parametrize("op,inputs,attrs,message", ERRORS)
def test_errors(op, inputs, attrs, message):
    with pytest.raises(tn.errors.InvalidArgumentError, match=message):
        core.execute(op, inputs, attrs)
