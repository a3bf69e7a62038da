# SPDX-License-Identifier: Apache-2.0
"""Counting and binning elements."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import convert_to_tensor, scope_of
from treenail._math import reduce_max
from treenail._ops import ops
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def bincount(arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None,
             dtype: Any = _core.int32, name: str | None = None) -> Tensor:
    """How often each number from 0 on occurs in the int32 tensor `arr`: a vector.

    weights: of arr's shape; then the sum of the weights of each number's occurrences, in their
    dtype instead of `dtype`. minlength, maxlength: least and greatest length of the result, which
    is max(arr) + 1 otherwise; numbers beyond it are left out. Raises InvalidArgumentError for
    negative numbers.
    """
    with scope_of(name, "bincount", [arr]):
        arr = convert_to_tensor(arr, _core.int32)
        filled = ops.Cast(ops.Greater(ops.Size(arr), 0), _core.int32)
        size = filled * (reduce_max(arr) + 1)
        if minlength is not None:
            size = ops.Maximum(convert_to_tensor(minlength, _core.int32), size)
        if maxlength is not None:
            size = ops.Minimum(convert_to_tensor(maxlength, _core.int32), size)
        # The kernel finds negative numbers; the length is not theirs to spoil.
        size = ops.Maximum(size, 0)
        weights = convert_to_tensor([], dtype) if weights is None else weights
        return ops.Bincount(arr, size, weights)


def histogram_fixed_width(values: Any, value_range: Any, nbins: Any = 100,
                          dtype: Any = _core.int32, name: str | None = None) -> Tensor:
    """How many values fall into each of `nbins` bins of the same width over value_range = [low,
    high]: a vector. Values outside count in the bin at that end, NaN in none."""
    values = convert_to_tensor(values)
    return ops.HistogramFixedWidth(values, convert_to_tensor(value_range, values.dtype),
                                   convert_to_tensor(nbins, _core.int32), dtype=dtype, name=name)


def histogram_fixed_width_bins(values: Any, value_range: Any, nbins: Any = 100,
                               dtype: Any = _core.int32, name: str | None = None) -> Tensor:
    """The bin of each value, in the shape of `values`: as histogram_fixed_width counts them."""
    with scope_of(name, "histogram_fixed_width_bins", [values]):
        values = convert_to_tensor(values)
        ends = ops.Cast(convert_to_tensor(value_range, values.dtype), _core.float64)
        low, high = ops.Unpack(ends, num=2)
        nbins = ops.Cast(convert_to_tensor(nbins, _core.int32), _core.float64)
        scaled = (ops.Cast(values, _core.float64) - low) / (high - low)
        bins = ops.Floor(nbins * scaled)
        return ops.Cast(ops.ClipByValue(bins, ops.ZerosLike(nbins), nbins - 1.0), dtype)


def setdiff1d(x: Any, y: Any, index_dtype: Any = _core.int32, name: str | None = None):
    """(out, idx): the elements of vector x that are not in vector y, in their order, and their
    places in x."""
    return ops.ListDiff(x, y, out_idx=index_dtype, name=name)


def nth_element(input: Any, n: Any, reverse: bool = False, name: str | None = None) -> Tensor:
    """The n-th smallest element along the last axis, counted from 0; `reverse`: the n-th
    largest."""
    return ops.NthElement(input, n, reverse=reverse, name=name)


__all__ = ["bincount", "histogram_fixed_width", "histogram_fixed_width_bins", "setdiff1d",
           "nth_element"]
