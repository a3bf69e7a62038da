# SPDX-License-Identifier: Apache-2.0
"""norm and normalize against NumPy by random arguments, and their gradients. All forms with known
shapes, and refusals of ord: test_linalg.py."""

import random

import numpy as np
import pytest

import treenail as tn
from differences import differences_agree

VECTORS = ("euclidean", 1, 2, 3, 0.5, 2.5, np.float32(4), np.inf)
MATRICES = ("euclidean", "fro", 1, 2, np.inf)


def wanted_norm(x, ord, axis, keep):
    if axis is None:
        y = np.linalg.norm(x.ravel(), 2 if ord == "euclidean" else ord)
        return np.reshape(y, [1] * x.ndim) if keep else y
    if isinstance(axis, int):
        return np.linalg.norm(x, 2 if ord == "euclidean" else ord, axis, keep)
    return np.linalg.norm(x, "fro" if ord == "euclidean" else ord, tuple(axis), keep)


def arguments(seed):
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    shape = [choose.randint(1, 4) for _ in range(choose.randint(1, 4))]
    x = rng.normal(size=shape)
    if choose.random() < 0.4:
        x = x + 1j * rng.normal(size=shape)
    rank = len(shape)
    axis = choose.choice((None, choose.randrange(-rank, rank)))
    if rank > 1 and choose.random() < 0.5:
        axis = [i - rank * choose.randint(0, 1) for i in choose.sample(range(rank), 2)]
        axis = choose.choice((tuple, list))(axis)
    ord = choose.choice(MATRICES if isinstance(axis, (tuple, list)) else VECTORS)
    chance = choose.choice((0.0, 0.5, 1.0, None))
    known = None if chance is None else [None if choose.random() < chance else n for n in shape]
    return x, ord, axis, known, choose.random() < 0.5


@pytest.mark.parametrize("block", range(3))
def test_random_arguments(block):
    with tn.Session() as session:
        for seed in range(100 * block, 100 * block + 50):
            x, ord, axis, known, keep = arguments(seed)
            fed = tn.placeholder(x.dtype, known)
            size = tn.norm(fed, ord, axis, keep)
            quotient = tn.linalg.normalize(fed, ord, axis)
            where = "%s %r over %r of %s, known %s (seed %d)" % (
                x.dtype, ord, axis, x.shape, known, seed)
            found, (divided, by) = session.run([size, quotient], {fed: x})
            wanted = wanted_norm(x, ord, axis, keep)
            assert found.shape == wanted.shape, where
            assert size.shape.is_compatible_with(wanted.shape), where
            np.testing.assert_allclose(found, wanted, rtol=1e-11, err_msg=where)
            kept = wanted_norm(x, ord, axis, True)
            assert by.shape == kept.shape and by.dtype == x.dtype, where
            np.testing.assert_allclose(divided, x / kept, rtol=1e-11, err_msg=where)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("ord,axis", [("euclidean", None), (1, 1), (2, 0), (3, -1), (2.5, None),
                                      (np.inf, 1), ("fro", (0, 1)), (1, (0, 2)), (np.inf, (-1, 0)),
                                      (2, (0, 1))])
def test_gradients(ord, axis, known, dtype):
    x = np.random.default_rng(5).normal(size=(2, 3, 2)) + 3.0
    if dtype == "complex128":
        x = x + 1j * np.random.default_rng(6).normal(size=x.shape)
    shapes = None if known else [None]
    differences_agree(lambda t: tn.norm(t, ord, axis), [x], shapes)
    differences_agree(lambda t: tn.linalg.normalize(t, ord, axis)[0], [x], shapes)


def test_axes_that_there_are_not():
    x = tn.ones([2, 3])
    for axis in (2, -3, (0, 2)):
        with pytest.raises(ValueError, match=r"'axis' -?\d is not in \[-2, 2\)"):
            tn.norm(x, axis=axis)
    with pytest.raises(ValueError, match="2 unique integers"):
        tn.norm(x, axis=(0, -2))
    with pytest.raises(ValueError, match="2 unique integers"):
        tn.linalg.normalize(x, axis=(1, 1))


def test_a_vector_of_zeros_has_no_direction(evaluate):
    quotient, size = evaluate(tn.linalg.normalize([[0.0, 0.0], [3.0, 4.0]], axis=1))
    assert np.isnan(quotient[0]).all() and size.tolist() == [[0.0], [5.0]]
    np.testing.assert_allclose(quotient[1], [0.6, 0.8])
