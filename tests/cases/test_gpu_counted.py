# SPDX-License-Identifier: Apache-2.0
"""Results on a GPU whose sizes hang on values, against the CPU's bits, and without a thread that
waits for them."""

from __future__ import annotations

import gc
from typing import Any, List

import numpy as np
import pytest
import treenail as tn
from treenail import _treenail as core

from test_gpu import DEVICE, cusim
from test_gpu_indexing import CPU, check_bits, on, on_the_gpu, reals  # noqa: F401

pytestmark = cusim.needs_gpu()

KINDS = ["bool", "int8", "uint16", "float16", "float32", "int64", "float64", "complex64", "complex128"]


def sparse(shape: Any, dtype: str, part: float) -> np.ndarray:
    """Zeros of both signs, and some NaN among the others."""
    rng = np.random.default_rng(1)
    x = (1 + rng.integers(0, 90, shape)).astype(dtype)
    if dtype[0] in "fc":
        x = np.where(rng.uniform(size=shape) < 0.1, x.dtype.type(np.nan), x)
        return np.where(rng.uniform(size=shape) < part, x, x.dtype.type(-0.0))
    return np.where(rng.uniform(size=shape) < part, x, x.dtype.type(0))


# --- Where


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("part", [0.0, 0.02, 0.7, 1.0])
def test_places_of_what_is_true(part: float, dtype: str) -> None:
    for shape in [(2047,), (2048,), (2049,), (30, 1, 400), (7, 9, 11, 13, 1), (), (0, 3), (1,)]:
        check_bits("Where", sparse(shape, dtype, part))


def test_the_imaginary_part_alone_makes_it_true() -> None:
    check_bits("Where", np.array([0j, 1j, -0.0 - 0j, 2], np.complex64))
    check_bits("Where", np.array([0j, 1j, -0.0 - 0j, 2], np.complex128))


def test_more_chunks_than_a_launch_has_blocks() -> None:
    check_bits("Where", sparse((3, 700001), "int8", 0.3))


# --- Partitions


@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "int64", "complex128"])
@pytest.mark.parametrize("n,partitions,width", [
    (100003, 3, ()), (5000, 700, (3,)), (70, 2, (41, 30)), (9, 1, (2,)), (0, 4, (3,)), (20, 5, (0,)),
])
def test_rows_dealt_out(n: int, partitions: int, width: Any, dtype: str) -> None:
    rng = np.random.default_rng(n)
    numbers = rng.integers(0, partitions, n).astype(np.int32)
    numbers[numbers == 2] = 0  # nobody's
    data = (9 * rng.normal(size=(n, *width))).astype(dtype)
    check_bits("DynamicPartition", data, numbers, num_partitions=partitions)
    if n % 10 == 0:
        shape = (n // 10, 10)
        check_bits("DynamicPartition", data.reshape(shape + width), numbers.reshape(shape),
                   num_partitions=partitions)


def stitched(device: str, indices: List[np.ndarray], data: List[np.ndarray]) -> np.ndarray:
    with tn.device(device):
        lists = [[core.tensor(each, each.dtype.name) for each in part] for part in (indices, data)]
        return np.asarray(core.execute("DynamicStitch", lists, {})[0])


@pytest.mark.parametrize("dtype", ["bool", "float32", "complex128"])
def test_rows_put_together(dtype: str) -> None:
    rng = np.random.default_rng(0)
    indices = [rng.integers(0, 3000, n).astype(np.int32) for n in (5000, 0, 400, 3)]
    data = [(9 * rng.normal(size=(len(each), 7))).astype(dtype) for each in indices]
    ours, theirs = stitched(DEVICE, indices, data), stitched(CPU, indices, data)
    assert ours.shape == theirs.shape and ours.tobytes() == theirs.tobytes()
    assert stitched(DEVICE, [indices[1]], [data[1]]).shape == (0, 7)
    indices[2][[100, 300]], indices[3][0] = -7, -1
    with pytest.raises(tn.errors.InvalidArgumentError, match=r"indices\[2\] holds -7 at place 100;"):
        stitched(DEVICE, indices, data)


# --- Segments


# Runs of one row, of less and more than the 64 that a block takes, with gaps between; rows of one
# number, of less and of more than a block's.
SEGMENTS = [(100003, 50000, 2), (100003, 7, 1), (9000, 1, 70), (20000, 90, 33), (130, 2, 3000),
            (63, 1, 5), (64, 1, 5), (65, 1, 5), (1, 9, 4), (0, 3, 4), (30, 4, 0)]
REDUCTIONS = ["Sum", "Prod", "Max", "Min", "Mean"]


def ids_of(n: int, segments: int) -> np.ndarray:
    return np.sort(2 * np.random.default_rng(n).integers(0, segments, n))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint32"])
@pytest.mark.parametrize("n,segments,width", SEGMENTS)
def test_segments_of_sorted_ids(n: int, segments: int, width: int, dtype: str) -> None:
    ids = ids_of(n, segments)
    data = (9 * np.random.default_rng(1).normal(size=(n, width))).astype(dtype)
    for i, name in enumerate(REDUCTIONS):
        check_bits("Segment" + name, data, ids.astype(np.int32 if i % 2 else np.int64))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("n,segments,width", SEGMENTS)
def test_segments_of_chosen_rows(n: int, segments: int, width: int, dtype: str) -> None:
    ids = ids_of(n, segments)
    indices = np.random.default_rng(2).integers(0, 57, n)
    data = (9 * np.random.default_rng(1).normal(size=(57, width))).astype(dtype)
    for i, name in enumerate(["Sum", "Mean", "SqrtN"]):
        kinds = [np.int32, np.int64] if i % 2 else [np.int64, np.int32]
        check_bits("SparseSegment" + name, data, indices.astype(kinds[0]), ids.astype(kinds[1]))


def test_sums_that_wrap_and_means_of_signed_numbers() -> None:
    ids = np.zeros(300, np.int64)
    for dtype in ("int8", "uint8", "int64"):
        data = np.full((300, 2), -7).astype(dtype)
        check_bits("SegmentSum", data, ids)
        check_bits("SegmentMean", data, ids)


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_ids_at_fault(kind: str) -> None:
    ids = np.arange(10000).astype(kind)
    data = np.ones((10000, 2), np.float32)

    def refused(op: str, match: str, *inputs: Any) -> None:
        with pytest.raises(tn.errors.InvalidArgumentError, match=match):
            on(DEVICE, op, inputs, {})

    ids[[7000, 9000]] = 6998
    falls = r"not increasing: segment_ids\[6999\] = 6999, segment_ids\[7000\] = 6998"
    refused("SegmentSum", falls, data, ids)
    indices = np.zeros(10000, kind)
    refused("SparseSegmentMean", falls, data, indices, ids)
    indices[[8000, 8001]] = 10000, -1
    beyond = r"indices\[8000\] = 10000 is not in \[0, 10000\)"
    refused("SparseSegmentMean", beyond, data, indices, ids)
    ids[0] = -1
    refused("SegmentMax", r"must be >= 0: segment_ids\[0\] = -1", data, ids)


# --- In steps


def graph_of_sizes(x: Any) -> Any:
    """What is above 1, its squares summed by the signs of its neighbours, and how many there are."""
    places = tn.where(x > 1.0)
    chosen = tn.gather_nd(x, places)
    parts = tn.dynamic_partition(chosen, tn.cast(chosen > 2.0, tn.int32), 2)
    return tn.reduce_sum(tn.square(parts[0])), tn.shape(parts[1])[0], tn.exp(chosen)


def test_steps_whose_sizes_change() -> None:
    with tn.Graph().as_default(), tn.device(DEVICE):
        x = tn.placeholder(tn.float32, [None])
        results = graph_of_sizes(x)
        with tn.Session() as session:
            for n in (10, 3000, 0, 17, 3000):
                given = 2 * reals((n,))
                total, above, powers = session.run(results, {x: given})
                chosen = given[given > 1]
                np.testing.assert_allclose(total, np.sum(chosen[chosen <= 2] ** 2), rtol=1e-5)
                assert above == np.sum(chosen > 2)
                np.testing.assert_allclose(powers, np.exp(chosen), rtol=1e-5)


def test_gradients_pass_through_partitions() -> None:
    with tn.Graph().as_default(), tn.device(DEVICE):
        x = tn.placeholder(tn.float32, [40, 3])
        numbers = tn.constant(np.arange(40) % 3, tn.int32)
        parts = tn.dynamic_partition(x, numbers, 3)
        loss = sum(tn.reduce_sum(tn.exp(part) * (i + 1.0)) for i, part in enumerate(parts))
        gradient = tn.gradients(loss, [x])[0]
        with tn.Session(config=tn.ConfigProto(allow_soft_placement=True)) as session:
            given = reals((40, 3))
            found = session.run(gradient, {x: given})
    np.testing.assert_allclose(found, np.exp(given) * (np.arange(40) % 3 + 1)[:, None], rtol=1e-5)


@cusim.needs_simulator
def test_no_thread_waits_for_a_size() -> None:
    """The only thread of a session starts what counts, then computes what lets the GPU go on."""
    library = cusim.library()

    def let_it_go(value: np.ndarray) -> np.ndarray:
        library.cusim_hold(0, 0)
        return value

    with tn.Graph().as_default():
        x = tn.placeholder(tn.float32, [5000])
        with tn.device(DEVICE):
            sizes = [tn.shape(tn.where(x > i))[0] for i in range(5)]
        released = tn.py_func(let_it_go, [x], tn.float32)
        one = tn.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        with tn.Session(config=one) as session:
            given = 3 * reals((5000,))
            session.run([sizes, released], {x: given})  # a plan waits for its constants
            for _ in range(3):
                library.cusim_hold(0, 1)
                try:
                    found, _ = session.run([sizes, released], {x: given})
                finally:
                    library.cusim_hold(0, 0)
                assert [int(n) for n in found] == [int(np.sum(given > i)) for i in range(5)]


@cusim.needs_simulator
def test_memory_of_passes_is_given_back() -> None:
    x = core.tensor(sparse((90000,), "float32", 0.5), "float32")
    for _ in range(3):
        core.execute("Where", [x], {})
    gc.collect()
    before = cusim.live()
    for _ in range(50):
        core.execute("Where", [x], {})
    assert cusim.live() == before
