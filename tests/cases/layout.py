# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/layout.cc. Oracle: NumPy."""

import itertools

import numpy as np

from harness import ALL_NUMBERS, EVERYTHING, T, op

moves = dict(dtypes=EVERYTHING, domain=(-9, 9), grad=2)

# Blocks, rows and odd sizes of the strided copy; ranks up to 8.
TRANSPOSES = [
    ((33, 65), [1, 0]),
    ((5, 37, 66), [0, 2, 1]),
    ((40, 3, 50), [2, 1, 0]),
    ((2, 3, 4, 5, 6), [4, 2, 0, 3, 1]),
    ((7, 19, 4), [1, 0, 2]),
    ((0, 3), [1, 0]),
    ((1, 1), [1, 0]),
    ((2,) * 8, [7, 6, 5, 4, 3, 2, 1, 0]),
    ((), []),
    ((3, 4), [-1, -2]),
    ((130, 131), [1, 0]),
    ((64, 64), [1, 0]),
]
PERMUTATION_ERRORS = [
    (r"perm is no permutation: axis 0 is named twice", (2, 3), [0, 0]),
    (r"perm = 2 is not in \[-2, 2\)", (2, 3), [0, 2]),
    (r"transpose expects a vector of size 2. But input\(1\) is a vector of size 1", (2, 3), [0]),
]
for name, oracle in (
    ("Transpose", lambda x, perm: x.transpose(perm)),
    (
        "ConjugateTranspose",
        lambda x, perm: np.conj(x.transpose(perm)) if x.dtype.kind == "c" else x.transpose(perm),
    ),
):
    cases = op(name, oracle, **moves).cases_of(*TRANSPOSES)
    cases.cases_of(*[((2, 3, 4), list(perm)) for perm in itertools.permutations(range(3))])
    cases.case(
        (700, 900), [1, 0], options={"dtypes": ("float32", "uint8", "complex128"), "grad": 0}
    )
    for message, shape, perm in PERMUTATION_ERRORS:
        cases.error("InvalidArgument", message, shape, perm)


def padded(x, paddings, value):
    return np.pad(x, [tuple(p) for p in paddings], constant_values=value) if x.ndim else x


op("Pad", padded, **moves).case((2, 3), [[1, 2], [0, 0]], ()).case(
    (2, 3), [[0, 0], [2, 1]], ()
).case((2, 3, 4), [[1, 1], [0, 3], [0, 0]], ()).case((2, 3), [[0, 0], [0, 0]], ()).case(
    (0, 2), [[1, 1], [0, 0]], ()
).case(
    (), np.zeros((0, 2), np.int32), (), options={"grad": 1}
).case(
    (4,), np.array([[3, 0]], np.int64), ()
).case(
    (4, 28, 28, 3),
    [[0, 0], [2, 2], [2, 2], [0, 0]],
    T(0),
    options={"dtypes": ("float32", "int8"), "grad": 0},
).error(
    "InvalidArgument",
    "Paddings must be non-negative: -1 0",
    (3,),
    np.array([[-1, 0]], np.int32),
    (),
).error(
    "InvalidArgument",
    "The first dimension of paddings must be the rank of inputs",
    (3,),
    np.zeros((2, 2), np.int32),
    (),
)


def mirror(x, paddings, mode):
    return np.pad(x, [tuple(p) for p in paddings], mode=mode.lower())


def mirror_adjoint(g, paddings, mode):
    shape = [n - a - b for n, (a, b) in zip(g.shape, paddings)]
    source = mirror(np.arange(int(np.prod(shape))).reshape(shape), paddings, mode)
    out = np.zeros(int(np.prod(shape)), g.dtype)
    np.add.at(out, source.ravel(), g.ravel())
    return out.reshape(shape)


MIRRORS = [
    ((3, 4), [[2, 1], [0, 3]], "REFLECT"),
    ((3, 4), [[3, 1], [0, 4]], "SYMMETRIC"),
    ((5,), [[4, 4]], "REFLECT"),
    ((1, 2), [[1, 1], [2, 0]], "SYMMETRIC"),
    ((2, 3, 4), [[0, 0], [2, 2], [0, 0]], "REFLECT"),
    ((2, 3), [[0, 0], [0, 0]], "REFLECT"),
]
mirrors = op("MirrorPad", mirror, **moves)
adjoints = op(
    "MirrorPadGrad",
    mirror_adjoint,
    dtypes=ALL_NUMBERS,
    domain=(-9, 9),
    grad=2,
    ulps=8,
    half_ulps=4,
    norm=True,
)
for shape, paddings, mode in MIRRORS:
    mirrors.case(shape, paddings, mode=mode)
    adjoints.case(tuple(n + a + b for n, (a, b) in zip(shape, paddings)), paddings, mode=mode)
mirrors.error(
    "InvalidArgument",
    "paddings must be no greater than the dimension size less 1: 3 greater than 2",
    (3,),
    np.array([[3, 0]], np.int32),
    mode="REFLECT",
).error(
    "InvalidArgument",
    "paddings must be no greater than the dimension size: 4 greater than 3",
    (3,),
    np.array([[0, 4]], np.int32),
    mode="SYMMETRIC",
).error(
    "InvalidArgument",
    'attribute "mode" = "EDGE" is not one of',
    (3,),
    np.array([[1, 0]], np.int32),
    mode="EDGE",
)
adjoints.error(
    "InvalidArgument", "exceed its extent 3", (3,), np.array([[2, 2]], np.int32), mode="SYMMETRIC"
)

op("Tile", lambda x, multiples: np.tile(x, multiples), **moves).case((2, 3), [2, 1]).case(
    (2, 3), [1, 3]
).case((2, 3), [2, 2]).case((), []).case((3,), [0], options={"grad": 1}).case(
    (2, 1, 3), [1, 4, 1]
).case(
    (1, 2, 1, 2, 1, 2), [2, 1, 2, 1, 1, 2]
).case(
    (2, 3), np.array([1, 1], np.int64)
).case(
    (300,), [400], options={"dtypes": ("float32", "int8"), "grad": 0}
).error(
    "InvalidArgument", r"Expected multiples\[0\] >= 0, but got -1", (2,), [-1]
).error(
    "InvalidArgument",
    "Expected multiples argument to be a vector of length 2 but got length 1",
    (2, 3),
    [1],
)

op("Reverse", lambda x, axis: np.flip(x, tuple(axis)), **moves).case((3, 4), [0]).case(
    (3, 4), [1, 0]
).case((3, 4), [-1]).case((2, 3, 4), np.array([1], np.int64)).case((), []).case((3,), []).case(
    (0, 3), [0]
).case(
    (70001,), [0], options={"dtypes": ("float32", "uint8", "complex128"), "grad": 0}
).error(
    "InvalidArgument", r"axis = 2 is not in \[-2, 2\)", (2, 3), [2]
).error(
    "InvalidArgument", "axis 1 specified more than once", (2, 3), [1, -1]
)


def reverse_sequence(x, lengths, seq_dim, batch_dim=0):
    out = x.copy()
    for b, n in enumerate(lengths):
        source = np.moveaxis(np.take(x, b, batch_dim), seq_dim - (seq_dim > batch_dim), 0)
        target = np.moveaxis(np.moveaxis(out, batch_dim, 0)[b], seq_dim - (seq_dim > batch_dim), 0)
        target[:n] = source[:n][::-1]
    return out


op("ReverseSequence", reverse_sequence, **moves).case(
    (3, 5), np.array([0, 3, 5], np.int64), seq_dim=1
).case((4, 2, 3), [4, 1], seq_dim=0, batch_dim=1).case(
    (2, 3, 4), [1, 2, 3, 3], seq_dim=1, batch_dim=2
).case(
    (0, 3), np.zeros(0, np.int64), seq_dim=1
).error(
    "InvalidArgument", r"seq_lengths\[1\] = 4 is not in \[0, 3\]", (2, 3), [3, 4], seq_dim=1
).error(
    "InvalidArgument", "batch_dim == seq_dim == 0", (2, 3), [1, 1], seq_dim=0
).error(
    "InvalidArgument", "the length of seq_lengths are 2 and 3", (2, 3), [1, 1, 1], seq_dim=1
)

op(
    "Roll",
    lambda x, shift, axis: np.roll(x, tuple(np.atleast_1d(shift)), tuple(np.atleast_1d(axis))),
    **moves
).case((3, 4), [1, -2], [0, 1]).case((5,), 7, 0).case((3, 4), [1, 1], [1, 1]).case(
    (3, 4), 0, -1
).case(
    (0, 3), 2, 1
).case(
    (2, 3, 4), np.array([-1, 1, 2], np.int64), np.array([0, 1, 2], np.int64)
).error(
    "InvalidArgument", r"axis = 1 is not in \[-1, 1\)", (3,), 1, 1
).error(
    "InvalidArgument", "shift and axis must have the same size", (3,), [1, 2], [0]
)
