# SPDX-License-Identifier: Apache-2.0
"""tn.map_fn, tn.foldl, tn.foldr and tn.scan, against NumPy and loops in Python."""

import collections

import numpy as np
import pytest

import treenail as tn
from running import run

X = np.arange(12, dtype=np.float32).reshape(4, 3)
Pair = collections.namedtuple("Pair", "a b")


def test_map_fn():
    np.testing.assert_array_equal(run(tn.map_fn(lambda row: row * 2.0 + 1.0, X)), X * 2 + 1)
    x = tn.placeholder(tn.float32, [None, None])
    y = tn.map_fn(lambda row: tn.reduce_sum(row), x)
    np.testing.assert_array_equal(run(y, {x: X}), X.sum(1))
    assert run(y, {x: X[:0]}).shape == (0,)


def test_map_fn_of_nests():
    y = tn.map_fn(lambda p: {"sum": p.a + p.b[0], "int": tn.cast(p.b[0], tn.int32)},
                  Pair(X, [X * 10]), dtype={"sum": tn.float32, "int": tn.int32})
    got = run([y["sum"], y["int"]])
    np.testing.assert_array_equal(got[0], X * 11)
    np.testing.assert_array_equal(got[1], X * 10)
    same = tn.map_fn(lambda p: Pair(p.b, p.a), Pair(X, X + 1.0))
    assert isinstance(same, Pair)
    np.testing.assert_array_equal(run(same.a), X + 1)


def test_map_fn_with_variables_and_inner_loops():
    w = tn.get_variable("w", initializer=np.float32([1, 10, 100]))
    y = tn.map_fn(lambda row: tn.map_fn(lambda e: e + 1.0, row * w), X, parallel_iterations=3)
    np.testing.assert_array_equal(run(y), X * [1, 10, 100] + 1)


def test_map_fn_of_different_shapes():
    y = tn.map_fn(lambda n: tn.ones([n]), np.int32([1, 1]), dtype=tn.float32, infer_shape=False)
    assert run(y).tolist() == [[1], [1]]
    ragged = tn.map_fn(lambda n: tn.ones([n]), np.int32([1, 2]), dtype=tn.float32)
    with pytest.raises(tn.errors.InvalidArgumentError, match="stacked"):
        run(ragged)


def test_folds():
    def fold(values, value=None):
        for row in values:
            value = row if value is None else value * 2 + row
        return value

    def fn(total, row):
        return total * 2.0 + row
    np.testing.assert_array_equal(run(tn.foldl(fn, X)), fold(X))
    np.testing.assert_array_equal(run(tn.foldr(fn, X)), fold(X[::-1]))
    first = np.float32([5, 6, 7])
    np.testing.assert_array_equal(run(tn.foldl(fn, X, first)), fold(X, first))
    np.testing.assert_array_equal(run(tn.foldr(fn, X, initializer=first)), fold(X[::-1], first))
    n = tn.placeholder(tn.float32, [None, 3])
    np.testing.assert_array_equal(run(tn.foldl(fn, n, first), {n: X[:0]}), first)
    with pytest.raises(tn.errors.InvalidArgumentError, match="element 0 in a list with 0"):
        run(tn.foldl(fn, n), {n: X[:0]})


def test_folds_of_nests():
    value = tn.foldl(lambda s, rows: (s[0] + rows[0], s[1] + 1), (X, X),
                     (np.zeros(3, np.float32), 0))
    got = run(list(value))
    np.testing.assert_array_equal(got[0], X.sum(0))
    assert got[1] == 4


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("initializer", [None, np.float32([5, 6, 7])])
def test_scan(reverse, initializer):
    y = tn.scan(lambda total, row: total * 2.0 + row, X, initializer, reverse=reverse)
    value, expected = initializer, {}
    for i in (reversed(range(4)) if reverse else range(4)):
        value = X[i] if value is None else value * 2 + X[i]
        expected[i] = value
    assert y.shape.as_list() == [4, 3]
    np.testing.assert_array_equal(run(y), [expected[i] for i in range(4)])


def test_scan_of_nests():
    y = tn.scan(lambda s, rows: Pair(s.b, s.a + s.b), np.zeros(6), Pair(0, 1))
    assert run(y.a).tolist() == [1, 1, 2, 3, 5, 8]
    x = tn.placeholder(tn.float32, [None, 3])
    z = tn.scan(lambda s, rows: [s[0] + rows[0], s[1] - rows[1]], [x, x])
    np.testing.assert_array_equal(run(z[0], {x: X}), np.cumsum(X, 0))


@pytest.mark.parametrize("build,error,message", [
    (lambda: tn.map_fn(3, X), TypeError, "fn must be callable"),
    (lambda: tn.scan(3, X), TypeError, "fn must be callable"),
    (lambda: tn.foldl(None, X), TypeError, "fn must be callable"),
    (lambda: tn.map_fn(lambda r: r, 1.0), ValueError, "rank"),
    (lambda: tn.map_fn(lambda r: r, []), ValueError, "elems"),
    (lambda: tn.map_fn(lambda r: (r, r), X), ValueError, "same nested structure"),
    (lambda: tn.map_fn(lambda r: r[0], (X, X[:3])), ValueError, "compatible|4.*3"),
    (lambda: tn.map_fn(lambda r: tn.cast(r, tn.int32), X), ValueError, "int32"),
    (lambda: tn.foldl(lambda a, r: (a, r), X), ValueError, "same nested structure"),
    (lambda: tn.scan(lambda a, r: tn.concat([a, r], 0), X), ValueError, "shape"),
    (lambda: tn.map_fn(lambda r: r, tn.SparseTensor([[0]], [1.0], [2])), TypeError, "sparse"),
])
def test_what_they_refuse(build, error, message):
    with pytest.raises(error, match=message):
        build()
