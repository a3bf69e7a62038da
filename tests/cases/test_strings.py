# SPDX-License-Identifier: Apache-2.0
"""String elements are counted pointers, not bytes: the ops that move elements copy them properly."""

import gc

import numpy as np
import pytest
from treenail import _treenail as core

WORDS = np.array([[b"a", b"bb", b""], [b"ccc", b"a longer one that lies outside", b"e"]], object)
I32 = np.int32


def ints(*values):
    return np.array(values, I32)


CASES = [
    ("Identity", [WORDS], {}, WORDS),
    ("Transpose", [WORDS, ints(1, 0)], {}, WORDS.T),
    ("Concat", [[WORDS, WORDS], I32(0)], {}, np.concatenate([WORDS, WORDS])),
    ("Pack", [[WORDS, WORDS]], {"axis": 2}, np.stack([WORDS, WORDS], 2)),
    ("Gather", [WORDS, ints(1, 0, 1), I32(0)], {}, WORDS[[1, 0, 1]]),
    ("GatherNd", [WORDS, np.array([[1, 2], [0, 0]], I32)], {}, WORDS[[1, 0], [2, 0]]),
    ("Tile", [WORDS, ints(1, 2)], {}, np.tile(WORDS, (1, 2))),
    ("Fill", [ints(2, 2), np.array(b"x", object)], {}, np.full((2, 2), b"x", object)),
    ("ZerosLike", [WORDS], {}, np.full((2, 3), b"", object)),
    ("Reverse", [WORDS, ints(0, 1)], {}, WORDS[::-1, ::-1]),
    ("Slice", [WORDS, ints(0, 1), ints(2, 2)], {}, WORDS[:, 1:]),
    ("StridedSlice", [WORDS, ints(0, 2), ints(2, 0), ints(1, -1)], {}, WORDS[:, 2:0:-1]),
    (
        "Pad",
        [WORDS, np.array([[1, 0], [0, 1]], I32), np.array(b"p", object)],
        {},
        np.pad(WORDS, [(1, 0), (0, 1)], constant_values=b"p"),
    ),
    (
        "MirrorPad",
        [WORDS, np.array([[0, 0], [1, 1]], I32)],
        {"mode": "REFLECT"},
        WORDS[:, [1, 0, 1, 2, 1]],
    ),
    ("BroadcastTo", [WORDS[0], ints(2, 3)], {}, np.broadcast_to(WORDS[0], (2, 3))),
    ("Unique", [np.array([b"b", b"a", b"b"], object)], {}, np.array([b"b", b"a"], object)),
    (
        "OneHot",
        [ints(1), I32(2), np.array(b"on", object), np.array(b"off", object)],
        {},
        np.array([[b"off", b"on"]], object),
    ),
    (
        "Diag",
        [WORDS[0]],
        {},
        np.array([[b"a", b"", b""], [b"", b"bb", b""], [b"", b"", b""]], object),
    ),
    (
        "TensorScatterUpdate",
        [WORDS, np.array([[1, 1]], I32), np.array([b"new"], object)],
        {},
        np.array([[b"a", b"bb", b""], [b"ccc", b"new", b"e"]], object),
    ),
    ("DynamicStitch", [[ints(1, 0)], [WORDS]], {}, WORDS[::-1]),
    (
        "RandomShuffle",
        [np.array([b"same", b"same"], object)],
        {},
        np.array([b"same", b"same"], object),
    ),
]


@pytest.mark.parametrize("op,inputs,attrs,wanted", CASES, ids=[c[0] for c in CASES])
def test_strings_are_moved(op, inputs, attrs, wanted):
    for _ in range(3):  # what was freed wrongly would be reused
        result = core.execute(op, inputs, attrs)[0]
        gc.collect()
        assert result.dtype == object and result.shape == wanted.shape
        assert result.tolist() == wanted.tolist()


def test_a_variable_of_strings():
    handle = core.execute_tensors("VarHandleOp", [], {"dtype": "string", "shape": [2, 3]})
    core.execute("AssignVariableOp", [handle, WORDS])
    core.execute("ResourceScatterUpdate", [handle, ints(0), WORDS[1:]])
    assert (
        core.execute("ReadVariableOp", [handle], {"dtype": "string"})[0].tolist()
        == WORDS[[1, 1]].tolist()
    )
    assert (
        core.execute("ResourceGather", [handle, ints(1)], {"dtype": "string"})[0].tolist()
        == WORDS[1:].tolist()
    )
