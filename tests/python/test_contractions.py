# SPDX-License-Identifier: Apache-2.0
"""matmul, matvec, tensordot and trace against NumPy by random arguments, and their gradients.
Contradictions of extents and axes: test_math.py."""

import random

import numpy as np
import pytest

import treenail as tn
from differences import differences_agree

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = ("float32", "float64", "complex64", "complex128") + INTEGERS


def values(rng, shape, dtype):
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        return rng.integers(info.min, info.max, shape, kind, endpoint=True)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if kind.kind == "c" else x).astype(dtype)


def agrees(found, wanted, dtype, where=""):
    assert found.dtype == np.dtype(dtype) and found.shape == wanted.shape, where
    if np.dtype(dtype).kind in "iu":
        np.testing.assert_array_equal(found, wanted, err_msg=where)
    else:
        tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-12
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance, err_msg=where)


def turned(x, transpose, adjoint):
    y = np.swapaxes(x, -1, -2) if transpose or adjoint else x
    return np.conj(y) if adjoint else y


def seen(choose, shape):
    """What is known of a shape: all, some, the rank, or nothing."""
    chance = choose.choice((0.0, 0.4, 1.0, None))
    return None if chance is None else [None if choose.random() < chance else n for n in shape]


def batches(choose):
    """Two leading parts that broadcast."""
    whole = [choose.choice((1, 2, 3)) for _ in range(choose.randint(0, 3))]
    if choose.random() < 0.05 and whole:
        whole[0] = 0

    def part():
        last = whole[choose.randint(0, len(whole)):]
        return tuple(1 if choose.random() < 0.3 else n for n in last)

    return part(), part()


@pytest.mark.parametrize("block", range(4))
def test_matmul_by_random_arguments(block):
    with tn.Session() as session:
        for seed in range(100 * block, 100 * block + 60):
            choose, rng = random.Random(seed), np.random.default_rng(seed)
            m, n, k = (choose.choice((0, 1, 2, 3, 5, 17)) for _ in range(3))
            (first, second), dtype = batches(choose), choose.choice(DTYPES)
            ta, aa, tb, ab = (flag for _ in "ab" for flag in choose.choice(
                ((False, False), (True, False), (False, True))))
            a = values(rng, first + ((k, m) if ta or aa else (m, k)), dtype)
            b = values(rng, second + ((n, k) if tb or ab else (k, n)), dtype)
            x, y = (tn.placeholder(dtype, seen(choose, v.shape)) for v in (a, b))
            product = tn.matmul(x, y, ta, tb, aa, ab, a_is_sparse=choose.random() < 0.5)
            where = "%s %s %s %s (seed %d)" % (dtype, a.shape, b.shape, (ta, tb, aa, ab), seed)
            with np.errstate(over="ignore"):
                wanted = np.matmul(turned(a, ta, aa), turned(b, tb, ab))
            assert product.shape.is_compatible_with(wanted.shape), where
            agrees(session.run(product, {x: a, y: b}), wanted, dtype, where)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("flags", [{}, {"transpose_a": True}, {"transpose_b": True},
                                   {"adjoint_a": True}, {"adjoint_b": True},
                                   {"transpose_a": True, "adjoint_b": True},
                                   {"adjoint_a": True, "transpose_b": True},
                                   {"adjoint_a": True, "adjoint_b": True}])
@pytest.mark.parametrize("first,second", [((), ()), ((2, 1), (3,)), ((), (2,))])
def test_gradients_of_matmul(first, second, flags, known, dtype):
    rng = np.random.default_rng(4)
    arrays = [values(rng, first + ((3, 2) if flags.get("transpose_a", flags.get("adjoint_a"))
                                   else (2, 3)), dtype),
              values(rng, second + ((2, 3) if flags.get("transpose_b", flags.get("adjoint_b"))
                                    else (3, 2)), dtype)]
    differences_agree(lambda a, b: tn.matmul(a, b, **flags), arrays,
                      None if known else [None, None])


def test_matmul_refuses():
    with pytest.raises(ValueError, match="Only one of transpose and adjoint can be True"):
        tn.matmul(np.ones((2, 2)), np.ones((2, 2)), transpose_a=True, adjoint_a=True)
    for a, b in (((3,), (3, 2)), ((2, 3), (3,)), ((), (2, 2)), ((2, 2, 3), (3,))):
        with pytest.raises(ValueError, match="rank"):
            tn.matmul(tn.ones(a), tn.ones(b))
        x = tn.placeholder(tn.float32)
        with tn.Session() as session, pytest.raises(tn.errors.InvalidArgumentError, match="rank"):
            session.run(tn.matmul(x, tn.placeholder_with_default(tn.ones(b), None)),
                        {x: np.ones(a)})
    with tn.eager(), pytest.raises(tn.errors.InvalidArgumentError, match="rank"):
        tn.matmul([1.0, 2.0], [[1.0], [2.0]])


def test_matmul_of_bytes_in_wider_numbers(evaluate):
    a, b = np.array([[100, -100]], np.int8), np.array([[100], [100]], np.int8)
    assert evaluate(tn.matmul(a, b, output_type=tn.int32)).tolist() == [[0]]
    product = tn.matmul(a, b, transpose_a=True, transpose_b=True, output_type=tn.int32)
    assert product.dtype == tn.int32
    assert evaluate(product).tolist() == [[10000, 10000], [-10000, -10000]]


def test_matvec(evaluate):
    rng = np.random.default_rng(0)
    a, b = values(rng, (2, 3, 4), "complex128"), values(rng, (3,), "complex128")
    for flags, wanted in (({"transpose_a": True}, np.swapaxes(a, -1, -2) @ b),
                          ({"adjoint_a": True}, np.conj(np.swapaxes(a, -1, -2)) @ b)):
        agrees(evaluate(tn.matvec(a, b, b_is_sparse=True, **flags)), wanted, "complex128")
    assert evaluate(tn.matvec(tn.constant([[1, 2]], tn.float64), [3, 4])).tolist() == [11]
    differences_agree(lambda x, y: tn.linalg.matvec(x, y, adjoint_a=True), [a, b])
    with pytest.raises(ValueError, match="rank"):
        tn.matvec(tn.ones([2, 3]), tn.constant(1.0))


@pytest.mark.parametrize("block", range(4))
def test_tensordot_by_random_arguments(block):
    with tn.Session() as session:
        for seed in range(100 * block, 100 * block + 60):
            choose, rng = random.Random(seed), np.random.default_rng(seed)
            ranks = choose.randint(0, 4), choose.randint(0, 4)
            count = choose.randint(0, min(ranks))
            shapes = [[choose.choice((1, 2, 3, 4)) for _ in range(r)] for r in ranks]
            left, right = (choose.sample(range(r), count) for r in ranks)
            if choose.random() < 0.3:
                axes = count
                left, right = list(range(ranks[0] - count, ranks[0])), list(range(count))
            else:
                axes = [[i - r * choose.randint(0, 1) for i in side]
                        for r, side in zip(ranks, (left, right))]
                if count == 1 and choose.random() < 0.5:
                    axes = [side[0] for side in axes]
            for i, j in zip(left, right):
                shapes[1][j] = shapes[0][i]
            dtype = choose.choice(DTYPES)
            a, b = (values(rng, shape, dtype) for shape in shapes)
            x, y = (tn.placeholder(dtype, seen(choose, v.shape)) for v in (a, b))
            given = tn.constant(axes) if count and choose.random() < 0.3 else axes
            product = tn.tensordot(x, y, given)
            where = "%s %s %s over %s (seed %d)" % (dtype, a.shape, b.shape, axes, seed)
            with np.errstate(over="ignore"):
                wanted = np.tensordot(a, b, axes)
            assert product.shape.is_compatible_with(wanted.shape), where
            agrees(session.run(product, {x: a, y: b}), wanted, dtype, where)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("known", ["all", "ranks", "none"])
@pytest.mark.parametrize("axes", [0, 1, [[0, 1], [2, 0]], [[1], [0]]])
def test_gradients_of_tensordot(axes, known, dtype):
    rng = np.random.default_rng(4)
    arrays = [values(rng, (2, 3), dtype), values(rng, (3, 2, 2), dtype)]
    shapes = {"all": None, "ranks": [[None] * 2, [None] * 3], "none": [None, None]}
    differences_agree(lambda a, b: tn.tensordot(a, b, axes), arrays, shapes[known])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (0, 3), (2, 3, 3), (2, 0, 3, 4)])
def test_trace(shape, dtype, evaluate):
    x = values(np.random.default_rng(2), shape, dtype)
    with np.errstate(over="ignore"):
        wanted = np.trace(x, axis1=-2, axis2=-1, dtype=dtype)
    for known in (shape, [None] * len(shape), None):
        fed = tn.placeholder(dtype, known)
        agrees(evaluate(tn.trace(fed), {fed: x}), np.asarray(wanted), dtype)


def test_gradients_of_trace():
    for shape in ((3, 3), (2, 2, 4)):
        x = values(np.random.default_rng(2), shape, "complex128")
        for known in (None, [None]):
            differences_agree(lambda a: tn.trace(a) * tn.trace(a), [x], known)
    with pytest.raises(ValueError, match="rank"):
        tn.trace(tn.ones([3]))
