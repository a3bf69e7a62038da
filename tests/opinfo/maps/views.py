# SPDX-License-Identifier: Apache-2.0
"""The same numbers in another shape: reshape, transpose, slices, splits, broadcasts."""

import treenail as tn

from common import axes, counted, dims, moved, rank, shape, size
from mapping import maps


@maps("reshape", "view", "reshape_as", "view_as")
def reshape(x, *sizes):
    sizes = shape(sizes[0]) if isinstance(sizes[0], tn.Tensor) else dims(*sizes)
    return tn.reshape(x, sizes)


@maps("ravel")
def ravel(x):
    return tn.reshape(x, [size(x)])


@maps("flatten")
def flatten(x, start_dim=0, end_dim=-1):
    if not rank(x):
        return tn.reshape(x, [1])
    s, (a, b) = shape(x), axes([start_dim, end_dim], rank(x))
    middle = 1
    for extent in s[a:b + 1]:
        middle *= extent
    return tn.reshape(x, s[:a] + [middle] + s[b + 1:])


@maps("unflatten")
def unflatten(x, dim, sizes):
    s, d = shape(x), dim % rank(x)
    sizes, known = list(sizes), 1
    for extent in sizes:
        known *= abs(extent)
    sizes = [s[d] // known if extent == -1 else extent for extent in sizes]
    return tn.reshape(x, s[:d] + sizes + s[d + 1:])


@maps("squeeze")
def squeeze(x, dim=None):
    if dim is None:
        return tn.squeeze(x)
    ones = [d for d in axes(dim, rank(x)) if rank(x) and shape(x)[d] == 1]
    return tn.squeeze(x, axis=ones) if ones else tn.identity(x)


@maps("unsqueeze")
def unsqueeze(x, dim):
    return tn.expand_dims(x, dim)


@maps("transpose")
def transpose(x, dim0, dim1):
    order = list(range(rank(x)))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return tn.transpose(x, order) if order else tn.identity(x)


@maps("T", "t")
def reversed_axes(x):
    return tn.transpose(x) if rank(x) > 1 else tn.identity(x)


@maps("H")
def adjoint(x):
    return tn.transpose(x, conjugate=True) if rank(x) > 1 else tn.conj(x)


@maps("mT")
def matrix_transpose(x):
    return tn.matrix_transpose(x) if rank(x) else tn.identity(x)


@maps("mH")
def matrix_adjoint(x):
    return tn.matrix_transpose(x, conjugate=True) if rank(x) else tn.conj(x)


@maps("permute")
def permute(x, *order):
    order = dims(*order)
    return tn.transpose(x, axes(order, rank(x))) if order else tn.identity(x)


@maps("movedim")
def movedim(x, source, destination):
    n = rank(x)
    if not n:
        return tn.identity(x)
    source, destination = axes(source, n), axes(destination, n)
    order = [d for d in range(n) if d not in source]
    for d, s in sorted(zip(destination, source)):
        order.insert(d, s)
    return tn.transpose(x, order)


@maps("expand", "broadcast_to")
def expand(x, sizes):
    own = [1] * (len(sizes) - rank(x)) + shape(x)
    return tn.broadcast_to(x, [o if s == -1 else s for s, o in zip(sizes, own)])


@maps("expand_as")
def expand_as(x, other):
    return tn.broadcast_to(x, tn.shape(other))


@maps("broadcast_tensors")
def broadcast_tensors(x, *others):
    target = tn.shape(x)
    for other in others:
        target = tn.broadcast_dynamic_shape(target, tn.shape(other))
    return [tn.broadcast_to(t, target) for t in (x, *others)]


@maps("narrow", "narrow_copy")
def narrow(x, dim, start, length):
    d = dim % rank(x)
    if isinstance(start, tn.Tensor):
        begin = [tn.cast(start, tn.int32) if i == d else 0 for i in range(rank(x))]
        return tn.slice(x, tn.stack(begin), [length if i == d else -1 for i in range(rank(x))])
    begin = [start % shape(x)[d] if i == d and start < 0 else start if i == d else 0
             for i in range(rank(x))]
    return tn.slice(x, begin, [length if i == d else -1 for i in range(rank(x))])


def _along(x, dim, item):
    return x[(slice(None),) * (dim % rank(x)) + (item,)]


@maps("select")
def select(x, dim, index):
    return _along(x, dim, index)


@maps("slice")
def slice_dim(x, dim=0, start=None, end=None, step=1):
    return _along(x, dim, slice(start, end, step))


@maps("chunk")
def chunk(x, chunks, dim=0):
    extent = shape(x)[dim]
    return split(x, max(-(-extent // chunks), 1), dim)


@maps("split", "split/list_args", "split_with_sizes")
def split(x, sizes, dim=0):
    extent = shape(x)[dim]
    if isinstance(sizes, int):
        sizes = [min(sizes, extent - i) for i in range(0, extent, sizes)] or [0]
    return tn.split(x, list(sizes), axis=dim)


@maps("tensor_split")
def tensor_split(x, parts, dim=0):
    if isinstance(parts, tn.Tensor):
        return _split_at_tensor(x, parts, dim)
    extent = shape(x)[dim]
    if isinstance(parts, int):
        return tn.split(x, [extent // parts + (i < extent % parts) for i in range(parts)], axis=dim)
    edges = [0, *parts, extent]
    return [_along(x, dim, slice(a, b)) for a, b in zip(edges[:-1], edges[1:])]


def _split_at_tensor(x, parts, dim):
    """The samples hold the sections in a tensor; a program would know how many it asks for."""
    with tn.Session(graph=parts.graph) as session:
        known = session.run(parts)
    return tensor_split(x, int(known) if known.ndim == 0 else [int(k) for k in known], dim)


@maps("hsplit")
def hsplit(x, parts):
    return tensor_split(x, parts, 0 if rank(x) == 1 else 1)


@maps("vsplit")
def vsplit(x, parts):
    return tensor_split(x, parts, 0)


@maps("dsplit")
def dsplit(x, parts):
    return tensor_split(x, parts, 2)


@maps("unbind")
def unbind(x, dim=0):
    return tn.unstack(x, axis=dim)


@maps("stack")
def stack(tensors, dim=0):
    return tn.stack(tensors, axis=dim)


@maps("cat")
def cat(tensors, dim=0):
    # torch passes over a vector of no element beside tensors of higher rank.
    kept = [t for t in tensors if shape(t) != [0]] or tensors[:1]
    return tn.concat(kept, axis=dim)


@maps("hstack")
def hstack(tensors):
    tensors = [atleast(t, 1) for t in tensors]
    return tn.concat(tensors, axis=0 if rank(tensors[0]) == 1 else 1)


@maps("vstack")
def vstack(tensors):
    return tn.concat([atleast(t, 2) for t in tensors], axis=0)


@maps("dstack")
def dstack(tensors):
    return tn.concat([atleast(t, 3) for t in tensors], axis=2)


@maps("column_stack")
def column_stack(tensors):
    return tn.concat([tn.reshape(t, [size(t), 1]) if rank(t) < 2 else t for t in tensors], axis=1)


def atleast(x, count):
    if count == 3 and rank(x) == 2:
        return tn.expand_dims(x, 2)
    while rank(x) < min(count, 2):
        x = tn.expand_dims(x, 0)
    return tn.expand_dims(x, 2) if count == 3 and rank(x) == 2 else x


def _each(count):
    def mapped(x, *others):
        if isinstance(x, (list, tuple)):
            return [atleast(t, count) for t in x]
        return [atleast(t, count) for t in (x, *others)]
    return mapped


for _count in (1, 2, 3):
    maps("atleast_%dd" % _count)(_each(_count))


@maps("flip")
def flip(x, dims):
    return tn.reverse(x, axes(dims, rank(x)) if dims else []) if rank(x) else tn.identity(x)


@maps("fliplr")
def fliplr(x):
    return tn.reverse(x, [1])


@maps("flipud")
def flipud(x):
    return tn.reverse(x, [0])


@maps("roll")
def roll(x, shifts, dim=None):
    shifts = list(shifts) if isinstance(shifts, (list, tuple)) else [shifts]
    if not rank(x):
        return tn.identity(x)
    if dim is None or dim == ():
        return tn.reshape(tn.roll(tn.reshape(x, [-1]), shifts[0], 0), shape(x))
    return tn.roll(x, shifts, axes(dim, rank(x)))


@maps("rot90")
def rot90(x, k=1, dim=(0, 1)):
    a, b = axes(dim, rank(x))
    order = list(range(rank(x)))
    order[a], order[b] = order[b], order[a]
    k %= 4
    if k == 2:
        return tn.reverse(x, [a, b])
    if k == 1:
        return tn.transpose(tn.reverse(x, [b]), order)
    return tn.reverse(tn.transpose(x, order), [b]) if k == 3 else tn.identity(x)


@maps("repeat", "tile")
def tile(x, *counts):
    counts = dims(*counts)
    counts = [1] * (rank(x) - len(counts)) + counts
    x = tn.reshape(x, [1] * (len(counts) - rank(x)) + shape(x))
    return tn.tile(x, counts)


@maps("meshgrid/variadic_tensors")
def meshgrid(x, *others, indexing="ij"):
    return tn.meshgrid(x, *others, indexing=indexing)


@maps("meshgrid/list_of_tensors")
def meshgrid_list(tensors, indexing="ij"):
    return tn.meshgrid(*tensors, indexing=indexing)


@maps("view_as_real")
def view_as_real(x):
    return tn.stack([tn.real(x), tn.imag(x)], axis=-1)


@maps("view_as_complex")
def view_as_complex(x):
    return tn.complex(x[..., 0], x[..., 1])


@maps("sum_to_size")
def sum_to_size(x, *sizes):
    sizes = dims(*sizes)
    if sizes == shape(x) and sizes:
        return tn.identity(x)
    x = counted(x)
    lead = rank(x) - len(sizes)
    x = tn.reduce_sum(x, axis=list(range(lead))) if lead else x
    ones = [i for i, s in enumerate(sizes) if s == 1 and shape(x)[i] != 1]
    return tn.reduce_sum(x, axis=ones, keepdims=True) if ones else tn.identity(x)


@maps("as_strided")
def as_strided(x, sizes, strides, storage_offset=0):
    """Memory here is row-major, as the samples' is: positions of the elements, then a gather."""
    return tn.gather(tn.reshape(x, [-1]), _positions(sizes, strides, storage_offset))


def _is_differentiated(x, *args, **kwargs):
    """torch 1.13 gives x the gradient of what replaces it."""
    return x.requires_grad


@maps("as_strided_scatter", distrust=_is_differentiated)
def as_strided_scatter(x, source, sizes, strides, storage_offset=0):
    positions = tn.reshape(_positions(sizes, strides, storage_offset), [-1, 1])
    flat = tn.tensor_scatter_update(tn.reshape(x, [-1]), positions, tn.reshape(source, [-1]))
    return tn.reshape(flat, shape(x))


def _positions(sizes, strides, offset):
    positions = tn.constant(offset or 0)
    for extent, stride in zip(sizes, strides):
        positions = tn.expand_dims(positions, -1) + tn.range(extent) * stride
    return positions


def _pieces(x, d, start, end, step):
    """Row numbers of x[start:end:step] along an axis."""
    return list(range(shape(x)[d]))[slice(start, end, step)]


def _with_rows(x, rows, source, d):
    """x with these rows of axis d replaced."""
    front = moved(x, d, 0)
    at = tn.constant(rows, shape=[len(rows), 1], dtype=tn.int32)
    return moved(tn.tensor_scatter_update(front, at, moved(source, d, 0)), 0, d)


@maps("slice_scatter")
def slice_scatter(x, source, dim=0, start=None, end=None, step=1):
    d = dim % rank(x)
    return _with_rows(x, _pieces(x, d, start, end, step), source, d)


@maps("select_scatter")
def select_scatter(x, source, dim, index):
    d = dim % rank(x)
    return _with_rows(x, [index % shape(x)[d]], tn.expand_dims(source, d), d)


@maps("resize_", "resize_as_")
def resize(x, other):
    target = shape(other) if isinstance(other, tn.Tensor) else list(other)
    count = 1
    for extent in target:
        count *= extent
    return tn.reshape(tn.slice(tn.reshape(x, [-1]), [0], [count]), target)


@maps("repeat_interleave")
def repeat_interleave(x, repeats, dim=None, output_size=None):
    if dim is None:
        x, dim = tn.reshape(x, [-1]), 0
    if isinstance(repeats, int):
        return tn.repeat(x, repeats, axis=dim) if rank(x) else tn.tile(tn.reshape(x, [1]),
                                                                       [repeats])
    if size(repeats) == 1:
        repeats = tn.tile(tn.reshape(repeats, [1]), [shape(x)[dim]])
    # Output position p shows the row whose running total of repeats first exceeds p.
    repeats = tn.cast(repeats, tn.int32)
    last = tn.cumsum(repeats)
    position = tn.range(tn.reduce_sum(repeats))
    row = tn.reduce_sum(tn.cast(tn.expand_dims(position, 1) >= tn.expand_dims(last, 0), tn.int32),
                        axis=1)
    return tn.gather(x, row, axis=dim)


@maps("nn.functional.pixel_shuffle")
def pixel_shuffle(x, upscale_factor):
    r, s = upscale_factor, shape(x)
    lead, (c, h, w) = s[:-3], s[-3:]
    n = len(lead)
    x = tn.reshape(x, lead + [c // r // r, r, r, h, w])
    x = tn.transpose(x, list(range(n)) + [n, n + 3, n + 1, n + 4, n + 2])
    return tn.reshape(x, lead + [c // r // r, h * r, w * r])


@maps("nn.functional.pixel_unshuffle")
def pixel_unshuffle(x, downscale_factor):
    r, s = downscale_factor, shape(x)
    lead, (c, h, w) = s[:-3], s[-3:]
    n = len(lead)
    x = tn.reshape(x, lead + [c, h // r, r, w // r, r])
    x = tn.transpose(x, list(range(n)) + [n, n + 2, n + 4, n + 1, n + 3])
    return tn.reshape(x, lead + [c * r * r, h // r, w // r])


@maps("combinations")
def combinations(x, r=2, with_replacement=False):
    import itertools
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    picks = [list(p) for p in choose(range(shape(x)[0]), r)]
    return tn.gather(x, tn.constant(picks, shape=[len(picks), r], dtype=tn.int32))


@maps("cartesian_prod")
def cartesian_prod(*tensors):
    if len(tensors) == 1:
        return tn.identity(tensors[0])
    grids = tn.meshgrid(*tensors, indexing="ij")
    return tn.stack([tn.reshape(g, [-1]) for g in grids], axis=1)
