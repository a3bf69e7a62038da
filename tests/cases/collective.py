# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/collective.cc in a group of one process: what several compute is compared
with NumPy in tests/python/test_collectives.py."""

import numpy as np
from treenail import _treenail as core

from harness import ALL_NUMBERS, COMPLEX, EVERYTHING, FLOATS, REALS, many, op

core.join_single()

SHAPES = ((3,), (2, 0, 3), (4, 1))


def same(*values, **attrs):
    return values if len(values) != 1 else values[0]


reduced = op("CollectiveAllReduce", lambda values, **attrs: list(values), dtypes=ALL_NUMBERS, grad=2)
reduced.case(many((3,), (2, 2))).case(many(()), reduction="product", options={"dtypes": FLOATS})
reduced.case(many((2, 3)), reduction="mean", options={"dtypes": FLOATS + COMPLEX})
reduced.case(many((5,)), reduction="min", options={"dtypes": REALS})
reduced.case(many((5,)), reduction="max", options={"dtypes": REALS})
reduced.error("InvalidArgument", "the mean of int32 is asked for", many((2,)), reduction="mean",
              on="int32")
reduced.error("InvalidArgument", "the min of complex64 is asked for", many((2,)), reduction="min",
              on="complex64")
scattered = op("CollectiveReduceScatter", same, dtypes=ALL_NUMBERS, grad=2, static_shape=False)
scattered.case((4, 2)).case((0, 2)).case((2,), reduction="mean", options={"dtypes": FLOATS})
scattered.error("InvalidArgument", r"needed is rank 1 or more|at least", ())
moved = op("CollectiveBroadcast", same, dtypes=EVERYTHING, grad=2).case(()).case((0, 2)).case((2, 3))
moved.error("InvalidArgument", r"root 1 is not in \[0, 1\)", (2,), root=1)
moved.error("InvalidArgument", "root is -1; a rank is at least 0", (2,), root=-1)
for name in ("CollectiveAllGather", "CollectiveAllToAll"):
    cases = op(name, same, dtypes=EVERYTHING, grad=2, static_shape=name == "CollectiveAllToAll")
    for shape in SHAPES:
        cases.case(shape)
op("CollectiveBarrier", lambda: []).case()
op("CollectiveRank", lambda: [np.int32(0), np.int32(1)]).case()
