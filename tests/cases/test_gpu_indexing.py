# SPDX-License-Identifier: Apache-2.0
"""Rows that indices choose, on a GPU: variables by the tests that the CPU passes, and so many
indices that several blocks sort and add them, against the CPU's bits."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Sequence

import numpy as np
import pytest
import treenail as tn
from treenail import _treenail as core

import test_training
import test_variables
from stateful import Variable
from test_gpu import DEVICE, cusim

# Collected here once more: they work on variables of the GPU.
from test_training import (  # noqa: F401
    test_dense_updates,
    test_repeated_rows_are_updated_one_after_the_other,
    test_sparse_adam_is_adam_on_the_dense_gradient,
    test_sparse_updates,
)
from test_variable_parts import (  # noqa: F401
    test_a_part_of_another_shape,
    test_assigning_a_part,
    test_errors_change_nothing,
    test_scattering_at_places,
)
from test_variables import test_bad_indices_change_nothing  # noqa: F401

pytestmark = cusim.needs_gpu()

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


@pytest.fixture(autouse=True)
def on_the_gpu() -> Iterator[None]:
    with tn.eager(), tn.device(DEVICE):
        yield


def kept(name: str, dtype: str) -> bool:
    """Complex numbers are added on a GPU, and not multiplied."""
    return name != "Mul" or not dtype.startswith("complex")


SCATTER_CASES = [case for case in test_variables.SCATTER_CASES if kept(case[0], case[2])]


@pytest.mark.parametrize("name,function,dtype", SCATTER_CASES)
@pytest.mark.parametrize(
    "shape,indices",
    [((4, 3), [2, 0, 2]), ((5,), [[4, 1], [0, 0]]), ((3, 2), np.zeros(0, np.int64)), ((40, 50), None)],
)
def test_scattering_rows(name: str, function: Any, dtype: str, shape: Any, indices: Any) -> None:
    test_variables.test_scattering_rows(name, function, dtype, shape, indices)


@pytest.mark.parametrize(
    "name,function,dtype",
    [case for case in SCATTER_CASES if case[2] in ("float32", "complex64", "uint8")],
)
def test_scattering_one_value(name: str, function: Any, dtype: str) -> None:
    test_variables.test_scattering_one_value(name, function, dtype)


def on(device: str, op: str, inputs: Sequence[Any], attrs: Dict[str, Any]) -> List[np.ndarray]:
    with tn.device(device):
        given = [core.tensor(np.asarray(each), np.asarray(each).dtype.name) for each in inputs]
        return [np.asarray(each) for each in core.execute(op, given, attrs)]


def check_bits(op: str, *inputs: Any, **attrs: Any) -> None:
    for ours, theirs in zip(on(DEVICE, op, inputs, attrs), on(CPU, op, inputs, attrs)):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        assert ours.tobytes() == theirs.tobytes()


def reals(shape: Sequence[int], dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(2).normal(size=shape).astype(dtype)


# Tiles of 4096 indices; runs from 64 on; rows of one number, of less and of more than a block's.
MANY = [
    (4096, 100, 3), (4097, 4097, 1), (100003, 50000, 2), (100003, 7, 1), (9000, 1, 70),
    (20000, 90, 33), (130, 2, 3000), (63, 1, 5), (64, 1, 5), (65, 1, 5),
]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "complex64"])
@pytest.mark.parametrize("n,rows,width", MANY)
def test_sums_have_the_bits_of_the_cpu(n: int, rows: int, width: int, dtype: str) -> None:
    ids = np.random.default_rng(n).integers(-1, rows, n)
    data = (10 * reals((n, width))).astype(dtype)
    check_bits("UnsortedSegmentSum", data, ids, np.int32(rows))
    check_bits("ScatterNd", np.maximum(ids, 0)[:, None], data, np.array([rows, width]))


@pytest.mark.parametrize("op", ["UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin"])
def test_other_reductions_of_long_segments(op: str) -> None:
    ids = np.random.default_rng(0).integers(-2, 30, 10000).astype(np.int32)
    data = reals((10000, 4))
    data[17] = np.nan
    check_bits(op, data, ids, np.int32(31))


@pytest.mark.parametrize("n,rows,width", MANY)
def test_the_last_of_many_stays(n: int, rows: int, width: int) -> None:
    places = np.random.default_rng(n).integers(0, rows, n)
    check_bits("TensorScatterUpdate", reals((rows, width)), places[:, None], reals((n, width)))


@pytest.mark.parametrize("op", ["ResourceScatterAdd", "ResourceScatterSub", "ResourceScatterMax"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_many_rows_of_a_variable(op: str, dtype: str) -> None:
    indices = np.random.default_rng(3).integers(0, 500, 30000)
    updates = reals((30000, 9), dtype)
    found = []
    for device in (DEVICE, CPU):
        with tn.device(device):
            variable = Variable(dtype, reals((500, 9)))
            variable.call(op, indices, core.tensor(updates, dtype))
            found.append(variable.read().tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("rule", ["Momentum", "Adagrad", "Adam", "ProximalAdagrad"])
def test_sparse_updates_have_the_bits_of_the_cpu(rule: str) -> None:
    indices = np.random.default_rng(3).integers(0, 300, 6000)
    found = []
    for device in (DEVICE, CPU):
        with tn.device(device):
            run = test_training.Run(
                next(each for each in test_training.RULES if each[0] == rule), (300, 20), "float32"
            )
            run.update("ResourceSparseApply" + rule, run.gradient((6000, 20))[0], indices)
            found.append([variable.read().tobytes() for variable in run.variables])
    assert found[0] == found[1]


@cusim.needs_simulator
def test_these_tests_are_of_the_gpu() -> None:
    with cusim.counted() as moved:
        variable = Variable("float32", np.zeros((3, 2)))
        variable.call("ResourceScatterAdd", np.array([2, 2]), np.ones((2, 2), np.float32))
    assert moved["launches"] >= 3, moved
    np.testing.assert_array_equal(variable.read(), [[0, 0], [0, 0], [2, 2]])


def test_an_index_at_fault_leaves_all_of_many_rows() -> None:
    indices = np.arange(10000) % 100
    indices[7777] = 100
    start = reals((100, 3))
    variables = [Variable("float32", start) for _ in range(3)]
    gradient = reals((10000, 3))
    match = r"indices\[7777\] = 100 is not in \[0, 100\)"
    with pytest.raises(tn.errors.InvalidArgumentError, match=match):
        variables[0].call("ResourceScatterSub", indices, gradient)
    scalars = [np.float32(each) for each in (0.9, 0.99, 0.1, 0.9, 0.99, 1e-5)]
    handles = [each.handle for each in variables]
    with pytest.raises(tn.errors.InvalidArgumentError, match=match):
        core.execute("ResourceSparseApplyAdam", handles + scalars + [gradient, indices])
    for variable in variables:
        np.testing.assert_array_equal(variable.read(), start)


def test_numbers_of_rows_beyond_32_bits() -> None:
    shape, places = np.array([2**33, 2, 0]), np.array([[2**33 - 1, 1], [5, 0], [2**33 - 1, 1]])
    check_bits("ScatterNd", places, np.zeros((3, 0), np.float32), shape)
    places[1] = [2**33, 1]
    with pytest.raises(
        tn.errors.InvalidArgumentError,
        match=r"indices\[1\] = \[8589934592, 1\] does not index into param shape",
    ):
        on(DEVICE, "ScatterNd", [places, np.zeros((3, 0), np.float32), shape], {})
