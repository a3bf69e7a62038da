# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/softmax.cc. Oracle: the formulas in NumPy, in float64."""

import numpy as np

from harness import FLOATS, T, ints, op, rand


def log_softmax(x):
    with np.errstate(all="ignore"):
        shifted = x - x.max(axis=-1, keepdims=True, initial=-np.inf)
        return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def softmax(x):
    return np.exp(log_softmax(x))


def cross_entropy(logits, labels):
    with np.errstate(all="ignore"):
        terms = np.where(labels == 0, 0, labels * log_softmax(logits))
        return -terms.sum(axis=-1), softmax(logits) - labels


def sparse_cross_entropy(logits, labels):
    picked = np.zeros_like(logits)
    picked[np.arange(len(labels)), labels] = 1
    return cross_entropy(logits, picked)


SHAPES = ((3,), (1, 1), (2, 10), (2, 3, 7), (0, 5), (5, 0), (3, 8), (2, 2, 2, 33))
for name, oracle in (("Softmax", softmax), ("LogSoftmax", log_softmax)):
    op(name, oracle, dtypes=FLOATS, domain=(-5, 5), norm=True, ulps=8, grad=2).cases_of(
        *[(shape,) for shape in SHAPES]
    ).case((3, 1000), options={"grad": 0, "ulps": 16}).case((700, 10), options={"grad": 0}).case(
        T([[1e4, -1e4, 0], [-80.0, -100.0, 1]]), options={"dtypes": ("float32", "float64"), "grad": 0}
    ).special([[1.0, np.nan, 2.0], [0.0, 1.0, -1.0], [np.inf, 0.0, 1.0], [-np.inf, 0.0, 0.0]]).error(
        "InvalidArgument", "rank", ()
    )


def distribution(rows, classes):
    """Rows that sum to 1, as labels do: exact in every dtype."""
    weights = np.random.default_rng(rows * 100 + classes).integers(0, 5, (rows, classes))
    weights[:, 0] += 1
    quarters = np.zeros((rows, classes))
    for row, weight in zip(quarters, weights):
        for place in np.argsort(-weight, kind="stable")[: min(4, classes)]:
            row[place] += 0.25
        row[0] += 1 - row.sum()
    return T(quarters)


# Only rows that sum to 1 are labels, so their gradient is checked elsewhere: along the loss, which is linear in them.
losses = op(
    "SoftmaxCrossEntropyWithLogits",
    cross_entropy,
    dtypes=FLOATS,
    domain=(-5, 5),
    norm=True,
    ulps=16,
    grad=2,
    wrt=[0],
)
for rows, classes in ((1, 1), (3, 10), (5, 8), (2, 33), (4, 3)):
    losses.case((rows, classes), distribution(rows, classes))
losses.case((0, 3), (0, 3)).case((64, 10), distribution(64, 10), options={"grad": 0})
losses.case((2, 1000), distribution(2, 1000), options={"grad": 0})
losses.case((3, 5), rand((3, 5), 0, 1), options={"wrt": [1], "grad": 1})
losses.case(T([[-np.inf, 0.0, 1.0]]), T([[0.0, 0.5, 0.5]]), options={"grad": 0})
losses.error(
    "InvalidArgument",
    r"logits and labels must be same size: logits_size=\[2,10\] labels_size=\[2,9\]",
    (2, 10),
    (2, 9),
)
losses.error("InvalidArgument", "rank", (3,), (3,))

sparse = op(
    "SparseSoftmaxCrossEntropyWithLogits",
    sparse_cross_entropy,
    dtypes=FLOATS,
    domain=(-5, 5),
    norm=True,
    ulps=16,
    grad=2,
)
for dtype in ("int32", "int64"):
    for rows, classes in ((1, 1), (3, 10), (5, 8), (2, 33)):
        sparse.case((rows, classes), ints((rows,), 0, classes, dtype))
    sparse.case((0, 3), ints((0,), 0, 3, dtype))
    sparse.case((300, 10), ints((300,), 0, 10, dtype), options={"grad": 0})
    sparse.error(
        "InvalidArgument",
        r"Received a label value of 12 which is outside the valid range of \[0, 10\)\. .*labels\[1\]",
        (3, 10),
        np.array([9, 12, 11], dtype),
    )
    sparse.error(
        "InvalidArgument", r"label value of -1 which is outside", (1, 10), np.array([-1], dtype)
    )
sparse.error("InvalidArgument", "must have the same first dimension", (3, 10), ints((2,), 0, 3))
sparse.error("InvalidArgument", "rank", (3,), ints((3,), 0, 3))
