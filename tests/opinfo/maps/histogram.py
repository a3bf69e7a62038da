# SPDX-License-Identifier: Apache-2.0
"""Counts: histograms, of one axis and of several; the most frequent number."""

import math

import treenail as tn

from common import moved, rank, scalar_like, shape
from mapping import maps
from maps.indexing import gather
from maps.ordering import searchsorted


def _edges(x, bins):
    """Those given, or equal ones from the least to the greatest number of a vector."""
    if isinstance(bins, tn.Tensor):
        return bins
    if not shape(x)[0]:
        low, high = scalar_like(0, x), scalar_like(1, x)
    else:
        low, high = tn.reduce_min(x), tn.reduce_max(x)
        single = tn.cast(tn.equal(low, high), x.dtype) / 2
        low, high = low - single, high + single
    return tn.linspace(low, high, bins + 1)


def _places(x, edges):
    """In which bin each number of a vector lies, and whether in any."""
    last = tn.equal(x, edges[-1])
    place = searchsorted(edges, x, right=True) - 1 - tn.cast(last, tn.int64)
    return place, tn.logical_and(x >= edges[0], x <= edges[-1])


def _histogram(columns, all_edges, weight, density):
    """Sums of weights in the cells of a grid, whose axes are those of the vectors."""
    sizes = [shape(e)[0] - 1 for e in all_edges]
    cell, inside = tn.zeros(shape(columns[0]), dtype=tn.int64), tn.fill(shape(columns[0]), True)
    for x, edges, count in zip(columns, all_edges, sizes):
        place, within = _places(x, edges)
        cell, inside = cell * count + place, tn.logical_and(inside, within)
    weight = tn.ones_like(columns[0]) if weight is None else tn.reshape(weight, [-1])
    found = tn.unsorted_segment_sum(tn.boolean_mask(weight, inside), tn.boolean_mask(cell, inside),
                                    math.prod(sizes))
    found = tn.reshape(found, sizes)
    if not density:
        return found
    found = found / tn.reduce_sum(found)
    for axis, edges in enumerate(all_edges):
        widths = tn.reshape(edges[1:] - edges[:-1], [-1] + [1] * (len(sizes) - 1 - axis))
        found = found / widths
    return found


def _in_no_order(x, bins, weight=None, density=False):
    """Where a number lies between edges that do not ascend is a matter of the search."""
    bins = bins if isinstance(bins, (list, tuple)) else [bins]
    return any(hasattr(b, "dim") and bool((b[1:] < b[:-1]).any()) for b in bins)


@maps("histogram", distrust=_in_no_order)
def histogram(x, bins, weight=None, density=False):
    x = tn.reshape(x, [-1])
    edges = _edges(x, bins)
    return _histogram([x], [edges], weight, density), edges


@maps("histogramdd", distrust=_in_no_order)
def histogramdd(x, bins, weight=None, density=False):
    columns = tn.unstack(tn.reshape(x, [-1, shape(x)[-1]]), axis=1)
    edges = [_edges(column, count) for column, count in zip(columns, bins)]
    return _histogram(columns, edges, weight, density), edges


# At which of equal numbers torch stands is its own affair: floats, where they are rare.
@maps("mode", dtypes=("float32", "float64"))
def mode(x, dim=-1, keepdim=False):
    if not rank(x):
        return tn.identity(x), tn.zeros([], dtype=tn.int64)
    front = moved(x, dim % rank(x), rank(x) - 1)
    order = tn.argsort(front, axis=-1)
    rising = tn.sort(front, axis=-1)
    equal = tn.equal(tn.expand_dims(rising, -1), tn.expand_dims(rising, -2))
    most = tn.argmax(tn.reduce_sum(tn.cast(equal, tn.int32), axis=-1), axis=-1)
    index = gather(tn.cast(order, tn.int64), -1, tn.expand_dims(most, -1))
    found = moved(gather(front, -1, index), rank(x) - 1, dim % rank(x))
    index = moved(index, rank(x) - 1, dim % rank(x))
    return (found, index) if keepdim else (tn.squeeze(found, axis=[dim]),
                                           tn.squeeze(index, axis=[dim]))
