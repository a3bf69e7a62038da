# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/beam_search.cc. Oracle: each beam followed back, one at a time."""

import numpy as np

from harness import op

I32 = ("int32",)


def gather_tree(step_ids, parent_ids, max_sequence_lengths, end_token):
    out = np.full_like(step_ids, end_token)
    time, batch, beams = step_ids.shape
    for b in range(batch):
        for k in range(beams):
            path, beam = [], k
            for t in reversed(range(min(time, max_sequence_lengths[b]))):
                path.insert(0, step_ids[t, b, beam])
                beam = parent_ids[t, b, beam]
            if end_token in path:
                path = path[: path.index(end_token) + 1]
            out[: len(path), b, k] = path
    return out


def i32(values):
    return np.array(values, np.int32)


def random(time, batch, beams, seed=0):
    rng = np.random.RandomState(seed)
    return rng.randint(0, 6, (time, batch, beams)).astype(np.int32), rng.randint(
        0, max(beams, 1), (time, batch, beams)
    ).astype(np.int32)


END = i32(5)
STEPS = i32([[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]], [[-1, -1, -1]]])
PARENTS = i32([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]], [[-1, -1, -1]]])
op("GatherTree", gather_tree, dtypes=I32).case(STEPS, PARENTS, i32([3]), i32(10)).case(
    *random(7, 3, 4), i32([7, 3, 1]), END
).case(*random(5, 4, 1), i32([9, 5, 0, -2]), END).case(*random(1, 2, 3), i32([1, 1]), END).case(
    *random(0, 2, 3), i32([1, 0]), END
).case(*random(3, 0, 3), i32([]), END).case(*random(3, 2, 0), i32([3, 3]), END).error(
    "InvalidArgument",
    r"invalid parent id 3 at \(batch, time, beam\) == \(0, 1, 2\): it is not in \[0, 3\)",
    STEPS[:2],
    i32([[[0, 0, 0]], [[0, 1, 3]]]),
    i32([2]),
    END,
    on="int32",
).error(
    "InvalidArgument", "invalid parent id -1", STEPS, PARENTS, i32([4]), END, on="int32"
).error(
    "InvalidArgument", "shapes of step_ids and parent_ids", STEPS, PARENTS[:2], i32([2]), END, on="int32"
).error(
    "InvalidArgument", "max_sequence_lengths", STEPS, PARENTS, i32([2, 2]), END, on="int32"
).error("InvalidArgument", "rank 0", STEPS, PARENTS, i32([2]), i32([5]), on="int32")
