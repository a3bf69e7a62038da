# SPDX-License-Identifier: Apache-2.0
"""Functions around the ops of framework/ops/counting.cc, against NumPy."""

import numpy as np
import pytest

import treenail as tn


def run(tensor, feed=None):
    with tn.Session() as sess:
        return sess.run(tensor, feed)


@pytest.mark.parametrize("arr", [[1, 1, 2, 3, 2, 4, 4, 5], [0], [], [[7, 2], [2, 2]]])
def test_bincount(arr):
    flat = np.array(arr, np.int32).ravel()
    x = tn.placeholder(tn.int32, None)
    feed = {x: np.array(arr, np.int32)}
    np.testing.assert_array_equal(run(tn.bincount(x), feed), np.bincount(flat))
    np.testing.assert_array_equal(run(tn.bincount(x, minlength=9), feed),
                                  np.bincount(flat, minlength=9))
    np.testing.assert_array_equal(run(tn.bincount(x, maxlength=3), feed), np.bincount(flat)[:3])
    weights = np.arange(flat.size, dtype=np.float64).reshape(np.shape(arr)) / 4
    np.testing.assert_array_equal(run(tn.bincount(x, weights), feed),
                                  np.bincount(flat, weights.ravel()))
    assert run(tn.bincount(x, dtype=tn.int64), feed).dtype == np.int64


def test_bincount_refuses_negative_numbers():
    with pytest.raises(tn.errors.InvalidArgumentError, match=r"arr\[1\] is -3"):
        run(tn.bincount([2, -3]))
    with pytest.raises(tn.errors.InvalidArgumentError, match=r"arr\[0\] is -3"):
        run(tn.bincount([-3]))


def test_histograms():
    values = np.random.RandomState(0).uniform(-1, 6, 1000).astype(np.float32)
    wanted = np.histogram(np.clip(values, 0, 5), 5, (0, 5))[0]
    np.testing.assert_array_equal(run(tn.histogram_fixed_width(values, [0.0, 5.0], 5)), wanted)
    bins = run(tn.histogram_fixed_width_bins(values.reshape(10, 100), [0.0, 5.0], 5))
    assert bins.shape == (10, 100) and bins.dtype == np.int32
    np.testing.assert_array_equal(np.bincount(bins.ravel(), minlength=5), wanted)


def test_setdiff1d():
    out, places = run(tn.setdiff1d(["a", "b", "c", "b"], ["b", "x"]))
    assert list(out) == [b"a", b"c"] and list(places) == [0, 2]


def test_nth_element():
    x = np.random.RandomState(1).randn(3, 8).astype(np.float32)
    np.testing.assert_array_equal(run(tn.nth_element(x, 2)), np.sort(x)[:, 2])
    np.testing.assert_array_equal(run(tn.nth_element(x, 0, reverse=True)), x.max(1))
