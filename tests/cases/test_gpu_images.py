# SPDX-License-Identifier: Apache-2.0
"""Pooling and normalisation on a GPU against the CPU, where cases show too little: NaN and ties in
gradients, the same bits, and more work than a launch has blocks."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

import numpy as np
import pytest
import treenail as tn

from test_gpu import DEVICE, cusim

pytestmark = cusim.needs_gpu()

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def on(
    device: str, op: str, inputs: Sequence[np.ndarray], attrs: Dict[str, Any]
) -> List[np.ndarray]:
    """What the op gives, whose node must have run on the device."""
    metadata = tn.RunMetadata()
    options = tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE)
    with tn.Graph().as_default() as graph, tn.device(device):
        given = [tn.placeholder(each.dtype.name, each.shape) for each in inputs]
        outputs = graph.create_op(op, given, attrs).outputs
        with tn.Session(graph=graph) as session:
            feeds = dict(zip(given, inputs))
            results = session.run(outputs, feeds, options=options, run_metadata=metadata)
    places = {node.op: node.device for node in metadata.nodes}
    assert places[op] == device, places
    return [np.asarray(result) for result in results]


# --- Pooling


def images(shape: Sequence[int], dtype: str) -> np.ndarray:
    """With ties, NaN and infinities."""
    rng = np.random.RandomState(len(shape))
    x = np.round(rng.normal(size=shape) * 2)
    x[rng.uniform(size=shape) < 0.02] = np.nan
    x[rng.uniform(size=shape) < 0.02] = np.inf
    return x.astype(dtype)


POOLINGS = {
    "overlapping": ((3, 17, 13, 8), [3, 2], [2, 1], "SAME", "NHWC"),
    "side by side": ((2, 12, 10, 16), [2, 2], [2, 2], "VALID", "NHWC"),
    "gaps": ((2, 11, 12, 5), [2, 1], [3, 3], "VALID", "NHWC"),
    "channels second": ((2, 4, 9, 11), [3, 3], [1, 2], "SAME", "NCHW"),
    "volumes": ((2, 5, 6, 7, 4), [2, 3, 2], [1, 2, 2], "SAME", "NDHWC"),
    "volumes, channels second": ((2, 3, 5, 6, 7), [3, 1, 2], [2, 2, 1], "VALID", "NCDHW"),
    "more than the blocks": ((8, 5, 96, 80), [2, 2], [1, 2], "SAME", "NCHW"),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", POOLINGS)
def test_poolings_give_the_bits_of_the_cpu(name: str, dtype: str) -> None:
    shape, size, strides, padding, data_format = POOLINGS[name]
    kind = "Pool3D" if len(shape) == 5 else "Pool"
    before, after = ([1, 1], []) if data_format[1] == "C" else ([1], [1])
    attrs = {"ksize": before + size + after, "strides": before + strides + after,
             "padding": padding, "data_format": data_format}  # fmt: skip
    rng = np.random.RandomState(1)

    def same(op: str, *inputs: np.ndarray) -> np.ndarray:
        found, wanted = (on(d, op, inputs, attrs)[0] for d in (DEVICE, CPU))
        np.testing.assert_array_equal(found, wanted, op)
        return wanted

    x = images(shape, dtype)
    y = same("Max" + kind, x)
    same("Avg" + kind, x)
    dy, g = (rng.normal(size=each.shape).astype(dtype) for each in (y, x))
    same("Max%sGrad" % kind, x, y, dy)
    same("Max%sGradGrad" % kind, x, y, g)
    same("Avg%sGrad" % kind, np.array(shape, np.int32), dy)
    if data_format == "NHWC":
        del attrs["data_format"]
        same("MaxPoolWithArgmax", x)


# --- Normalisation


def near(op: str, inputs: Sequence[np.ndarray], attrs: Dict[str, Any]) -> None:
    """Sums are added in another order."""
    for found, wanted in zip(on(DEVICE, op, inputs, attrs), on(CPU, op, inputs, attrs)):
        scale = np.abs(wanted).max()
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * scale, err_msg=op)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "shape, data_format",
    [((2, 1500, 3, 3), "NCHW"), ((2, 3, 3, 1500), "NHWC"), ((8, 40, 40, 70), "NHWC"),
     ((16, 3, 31, 33), "NCHW"), ((700, 9, 1, 1), "NCHW"), ((100, 30, 30, 1), "NHWC")],
)  # fmt: skip
def test_batches(shape: Sequence[int], data_format: str, training: bool) -> None:
    rng = np.random.RandomState(3)
    x, dy = rng.normal(3, 1, (2, *shape)).astype(np.float32)
    channels = shape[1 if data_format == "NCHW" else 3]
    scale, offset, mean, variance = rng.uniform(0.5, 1.5, (4, channels)).astype(np.float32)
    attrs = {"data_format": data_format, "is_training": training}
    near("FusedBatchNorm", [x, scale, offset, mean, variance], attrs)
    near("FusedBatchNormGrad", [dy, x, scale, mean, variance], attrs)


@pytest.mark.parametrize("shape", [(600, 2048), (20, 2049), (9000, 30), (70000, 2), (1, 5000)])
def test_rows(shape: Sequence[int]) -> None:
    rng = np.random.RandomState(4)
    x, dy = rng.normal(3, 1, (2, *shape)).astype(np.float32)
    scale, offset = rng.uniform(0.5, 1.5, (2, shape[1])).astype(np.float32)
    mean, inverse = rng.uniform(0.5, 1.5, (2, shape[0])).astype(np.float32)
    near("LayerNorm", [x, scale, offset], {})
    near("LayerNormGrad", [dy, x, scale, mean, inverse], {})
