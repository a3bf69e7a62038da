# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/matmul.cc. Oracle: NumPy's matmul in float64, complex128 or the integers, which
wrap around."""

import numpy as np

from harness import COMPLEX, FLOATS, INTS, REAL_FLOATS, T, no_gradient_case, op

NUMBERS = FLOATS + INTS + COMPLEX
FLAGS = ((False, False), (True, False), (False, True), (True, True))


def turned(x, flag, conjugate=False):
    if not flag:
        return x
    y = np.swapaxes(x, -1, -2)
    return np.conj(y) if conjugate else y


def matmul(a, b, transpose_a=False, transpose_b=False):
    with np.errstate(all="ignore"):
        return np.matmul(turned(a, transpose_a), turned(b, transpose_b))


def batch_matmul(x, y, adj_x=False, adj_y=False):
    return np.matmul(turned(x, adj_x, True), turned(y, adj_y, True))


products = op("MatMul", matmul, dtypes=NUMBERS, norm=True, ulps=16, grad=2)
# [m, n, k]: each side 0 and 1, sizes around the register tile, several blocks of k, one row and one column of each kind.
SIZES = ((2, 3, 4), (0, 3, 2), (3, 0, 2), (3, 2, 0), (1, 1, 1), (7, 5, 9), (6, 16, 8), (13, 33, 17))
# An empty side next to sides that fill whole tiles: what an empty batch gives a layer.
EMPTY = ((0, 64, 3), (0, 80, 70), (70, 0, 80), (70, 80, 0))
LARGE = ((64, 10, 520), (1, 130, 300), (130, 1, 300), (1, 1, 1000), (5, 70, 257), (200, 100, 64), (65, 129, 600))
for ta, tb in FLAGS:
    for m, n, k in SIZES + EMPTY + LARGE:
        products.case(
            (k, m) if ta else (m, k),
            (n, k) if tb else (k, n),
            transpose_a=ta,
            transpose_b=tb,
            options={"grad": 2 if m * n * k <= 64 else 0, "ulps": 16 if k < 200 else 100},
        )
# Large enough for the system's BLAS at every level.
products.case((800, 780), (780, 770), options={"dtypes": REAL_FLOATS, "grad": 0, "ulps": 64})
# A right operand of 8 MiB, packed once for all blocks of rows.
for tb in (False, True):
    shape = (1510, 1450) if tb else (1450, 1510)
    products.case((1000, 1450), shape, transpose_b=tb, options={"dtypes": ("float32",), "grad": 0, "ulps": 100})
# Products and sums beyond the dtype wrap around; int64 beyond what a double holds is exact.
for dtype, low in (("int8", 2**6), ("int16", 2**14), ("int32", 2**30), ("int64", 2**62), ("int64", 2**53)):
    big = np.array([[low + 1, -low, 3], [7, low - 1, low]], dtype)
    products.case(big, big.T.copy(), options={"dtypes": (dtype,), "grad": 0})
    products.case(big, big, transpose_b=True, options={"dtypes": (dtype,), "grad": 0})
# 65535 squared is beyond an int, to which C++ promotes shorter integers.
for dtype in ("uint8", "uint16", "uint32", "uint64"):
    top = np.full((3, 5), np.iinfo(dtype).max, dtype)
    products.case(top, top, transpose_b=True, options={"dtypes": (dtype,), "grad": 0})
products.case((90, 40), (50, 40), transpose_b=True, options={"dtypes": COMPLEX, "grad": 0})
products.special([[1.0, np.nan], [np.inf, 0.0]], [[0.0, 1.0], [1.0, -np.inf]])
products.error(
    "InvalidArgument",
    r"inner dimensions differ: a is \[64,784\], b is \[512,10\]",
    (64, 784),
    (512, 10),
)
products.error(
    "InvalidArgument",
    r"inner dimensions differ: a is \[3,2\] \(transposed\), b is \[2,4\]",
    (3, 2),
    (2, 4),
    transpose_a=True,
)
products.error("InvalidArgument", "rank", (3,), (3, 2))
products.error("InvalidArgument", "dtype", np.ones((2, 2), np.float32), np.ones((2, 2), np.float64))

batches = op("BatchMatMul", batch_matmul, dtypes=NUMBERS, norm=True, ulps=16, grad=2)
for adj_x, adj_y in FLAGS:
    for batch_x, batch_y in (
        ((), ()),
        ((2,), (2,)),
        ((3,), (1,)),
        ((2, 1), (3,)),
        ((), (2, 2)),
        ((4,), ()),
        ((0,), (0,)),
        ((2, 0), (1,)),
    ):
        batches.case(
            batch_x + ((3, 2) if adj_x else (2, 3)),
            batch_y + ((4, 3) if adj_y else (3, 4)),
            adj_x=adj_x,
            adj_y=adj_y,
        )
    batches.case(
        (3,) + ((40, 70) if adj_x else (70, 40)),
        (3,) + ((90, 40) if adj_y else (40, 90)),
        adj_x=adj_x,
        adj_y=adj_y,
        options={"grad": 0},
    )
batches.error("InvalidArgument", r"inner dimensions differ: x is \[2,3,4\], y is", (2, 3, 4), (2, 3, 4))
batches.error("InvalidArgument", "Incompatible shapes", (2, 3, 4), (3, 4, 5))
batches.error("InvalidArgument", "rank", (3,), (3, 2))


def sparse_matmul(a, b, transpose_a=False, transpose_b=False, a_is_sparse=False, b_is_sparse=False):
    return matmul(a, b, transpose_a, transpose_b)


SPARSE = op("SparseMatMul", sparse_matmul, dtypes=("float32",), norm=True, ulps=8, grad=0)
no_gradient_case("SparseMatMul", "float32 has too few digits for differences: tests/python/test_gradients.py has it beside MatMul's")
for m, k, n in ((3, 4, 5), (1, 7, 1), (2, 0, 3), (0, 2, 3), (17, 9, 33)):
    for ta in (False, True):
        for tb in (False, True):
            SPARSE.case((k, m) if ta else (m, k), (n, k) if tb else (k, n), transpose_a=ta, transpose_b=tb)
zeros = np.random.default_rng(1).normal(size=(6, 8)) * (np.random.default_rng(2).random((6, 8)) < 0.2)
SPARSE.case(T(np.round(zeros * 8) / 8), (8, 3), a_is_sparse=True)
SPARSE.error("InvalidArgument", r"inner dimensions differ: a is \[3,4\], b is \[5,2\]", (3, 4), (5, 2))
SPARSE.error("InvalidArgument", "rank", (3,), (3, 2))
