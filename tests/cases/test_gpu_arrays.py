# SPDX-License-Identifier: Apache-2.0
"""Sums of many values, borders and sequences on a GPU against the CPU's bits, where cases show too
little: more terms than one launch takes, and more elements than a launch has threads."""

from __future__ import annotations

from typing import Any, List

import numpy as np
import pytest
import treenail as tn
from treenail import _treenail as core

from test_gpu import DEVICE, cusim
from test_gpu_indexing import CPU, check_bits, on_the_gpu, reals  # noqa: F401

pytestmark = cusim.needs_gpu()


def many_zeros(array: np.ndarray) -> np.ndarray:
    """With zeros of both signs, which a sum begun with 0 would not keep."""
    array.ravel()[::3] *= 0
    return array


# --- Sums


def added(device: str, terms: List[np.ndarray], dtype: str) -> bytes:
    with tn.device(device):
        given = [core.tensor(term, dtype) for term in terms]
        (found,) = core.execute("AddN", [given], {})
        return np.asarray(found).tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "uint16", "complex64"])
@pytest.mark.parametrize("count,n", [(1, 5), (2, 1), (2, 70001), (8, 1003), (9, 64), (20, 3001)])
def test_sums_of_many_terms(count: int, n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    kind = "float32" if dtype == "bfloat16" else dtype
    terms = [many_zeros((20 * rng.normal(size=n)).astype(kind)) for _ in range(count)]
    assert added(DEVICE, terms, dtype) == added(CPU, terms, dtype)


@cusim.needs_simulator
def test_eight_terms_are_one_launch() -> None:
    x = core.tensor(reals((64,)), "float32")
    core.execute("AddN", [[x] * 8], {})
    for count, launches in ((8, 1), (9, 2), (17, 3)):
        with cusim.counted() as moved:
            core.execute("AddN", [[x] * count], {})
        assert moved["launches"] == launches


def test_a_value_with_several_readers_has_its_gradient_on_the_gpu() -> None:
    """Without soft placement: all of it has kernels there."""
    with tn.Graph().as_default(), tn.device(DEVICE):
        x = tn.placeholder(tn.float32, [50])
        y = tn.tanh(x)
        loss = tn.reduce_sum(y * y) + tn.reduce_sum(tn.exp(y)) + tn.reduce_sum(tn.sin(y))
        (gradient,) = tn.gradients(loss, [x])
        checked = tn.check_numerics(gradient, "gradient")
        with tn.Session() as session:
            given = reals((50,))
            found = session.run(checked, {x: given})
    t = np.tanh(given.astype(np.float64))
    np.testing.assert_allclose(found, (2 * t + np.exp(t) + np.cos(t)) * (1 - t * t), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_last_of_many_numbers_is_not_finite(dtype: str) -> None:
    x = reals((100003,), dtype)
    check_bits("CheckNumerics", x, message="m")
    for last, what in (([np.nan], "NaN"), ([-np.inf], "Inf"), ([np.inf, np.nan], "Inf and NaN")):
        x[-len(last):] = last
        with pytest.raises(tn.errors.InvalidArgumentError, match="m : Tensor had %s values" % what):
            core.execute("CheckNumerics", [core.tensor(x, dtype)], {"message": "m"})


def test_a_slice_is_added_to_and_what_else_reads_the_array_keeps_it() -> None:
    with tn.Graph().as_default() as graph, tn.device(DEVICE):
        x = tn.placeholder(tn.float32, [200, 30])
        y = tn.exp(x)
        ends = [tn.constant(each) for each in ([3, 1], [180, 28], [7, 3])]
        value = tn.ones([26, 9])
        masks = {
            name: 0
            for name in ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
        }
        (z,) = graph.create_op("TensorStridedSliceAdd", [y, *ends, value], masks).outputs
        with tn.Session() as session:
            given = reals((200, 30))
            before, after, alone = *session.run([y, z], {x: given}), session.run(z, {x: given})
    want = before.copy()
    want[3:180:7, 1:28:3] += 1
    np.testing.assert_array_equal(after, want)
    np.testing.assert_array_equal(alone, want)


# --- Borders


PADDINGS = {
    "rows": ((300, 7), [[5, 9], [0, 0]]),
    "an axis between": ((3, 40, 50), [[0, 0], [39, 4], [0, 0]]),
    "all": ((6, 5, 4, 3), [[5, 4], [1, 4], [3, 0], [2, 2]]),
    "as far as can be": ((2, 2, 2, 2, 2), [[1, 1]] * 5),
    "nothing": ((0, 4), [[0, 0], [3, 3]]),
    "a number": ((), np.zeros((0, 2), np.int32)),
}


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64", "complex128"])
@pytest.mark.parametrize("shape,paddings", PADDINGS.values(), ids=list(PADDINGS))
def test_borders_that_mirror(shape: Any, paddings: Any, dtype: str, mode: str) -> None:
    paddings = np.array(paddings, np.int32)
    outer = [n + sum(ends) for n, ends in zip(shape, paddings)]
    check_bits("MirrorPad", many_zeros((9 * reals(shape)).astype(dtype)), paddings, mode=mode)
    check_bits("MirrorPadGrad", many_zeros((9 * reals(outer)).astype(dtype)), paddings, mode=mode)


# --- Sequences


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex128", "bool"])
@pytest.mark.parametrize("shape,seq,batch", [
    ((70, 90, 11), 1, 0), ((90, 70, 11), 0, 1), ((3, 50, 4, 60), 3, 1), ((5, 7), 1, 0), ((0, 7), 1, 0),
    ((4, 0), 1, 0), ((4, 5, 0), 1, 0),
])
def test_sequences_in_reverse(shape: Any, seq: int, batch: int, dtype: str) -> None:
    lengths = np.random.default_rng(0).integers(0, shape[seq] + 1, shape[batch])
    x = reals(shape).astype(dtype)
    check_bits("ReverseSequence", x, lengths, seq_dim=seq, batch_dim=batch)
    check_bits("ReverseSequence", x, lengths.astype(np.int32), seq_dim=seq, batch_dim=batch)


@pytest.mark.parametrize("length", [-1, 6])
@pytest.mark.parametrize("width", [2, 0])
def test_a_length_at_fault(length: int, width: int) -> None:
    lengths = np.array([5, 0, length, 7])
    match = r"seq_lengths\[2\] = %d is not in \[0, 5\], the extent" % length
    with pytest.raises(tn.errors.InvalidArgumentError, match=match):
        x = core.tensor(np.zeros((4, 5, width), np.float32), "float32")
        core.execute("ReverseSequence", [x, core.tensor(lengths, "int64")], {"seq_dim": 1})


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64"])
def test_evenly_spaced_numbers(dtype: str) -> None:
    for ends in ([0, 2000, 1], [1, 700, 3], [40, -900, -7], [5, 5, 1]):
        check_bits("Range", *np.array(ends, dtype))
    if dtype.startswith("float"):
        for num in (1, 2, 3, 70001):
            check_bits("LinSpace", np.dtype(dtype).type(-1.1), np.dtype(dtype).type(7.3), np.int32(num))


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float32", "int16"])
def test_transposed_and_conjugated(dtype: str) -> None:
    x = reals((40, 50, 7)).astype(dtype)
    if dtype.startswith("complex"):
        x += 1j * reals((40, 50, 7))[::-1]
    check_bits("ConjugateTranspose", x, np.array([2, 0, 1], np.int32))
    check_bits("ConjugateTranspose", x[:0], np.array([0, 2, 1], np.int32))


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("n,size", [(100003, 40), (5000, 5000), (70, 0), (0, 3)])
def test_counting_into_bins(n: int, size: int, dtype: str) -> None:
    numbers = np.random.default_rng(n).integers(0, size + 9, n).astype(np.int32)
    check_bits("Bincount", numbers, np.int32(size), many_zeros((9 * reals((n,))).astype(dtype)))
    check_bits("Bincount", numbers, np.int32(size), np.zeros(0, dtype))
    if n:
        numbers[n // 2:] = -3
        match = r"Input arr must be non-negative, but arr\[%d\] is -3" % (n // 2)
        with pytest.raises(tn.errors.InvalidArgumentError, match=match):
            check_bits("Bincount", numbers, np.int32(size), np.zeros(0, dtype))
