# SPDX-License-Identifier: Apache-2.0
"""Shapes and the arrangement of elements: TensorFlow 1's array functions."""

from __future__ import annotations

import builtins

from treenail import _treenail as _core
from treenail._convert import IndexedSlices, convert_beside, convert_to_tensor, scope_of
from treenail._ops import ops
from treenail._refusals import at_once
from treenail._shape import TensorShape, broadcast_static_shape  # noqa: F401 (public here)
from treenail._slicing import boolean_mask, newaxis, strided_slice  # noqa: F401 (public here)
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

_range = builtins.range


def _one_of(new: Any, old: Any, new_name: str, old_name: str) -> Any:
    """The value of a parameter that has an older name, too."""
    if old is None:
        return new
    if new is not None:
        raise ValueError("Cannot specify both '%s' and '%s'" % (new_name, old_name))
    return old


def is_fully_known(shape: Any) -> bool:
    """Whether `shape` holds no tensor and no None."""
    if isinstance(shape, TensorShape):
        return shape.is_fully_defined()
    if isinstance(shape, Tensor) or hasattr(shape, "__treenail_tensor__"):
        return False
    return not isinstance(shape, (list, tuple)) or all(isinstance(d, int) for d in shape)


def shape_tensor(shape: Any) -> Any:
    """A shape argument as the ops take it: an integer vector."""
    if isinstance(shape, TensorShape):
        shape.assert_is_fully_defined()
        return shape.as_list()
    if isinstance(shape, int) and not isinstance(shape, bool):
        return [shape]
    return shape


def as_scalar(tensor: Tensor, what: str) -> Tensor:
    """`tensor` known to be a scalar: a placeholder without a shape is held to it when run.

    What is computed with a value of unknown rank has an unknown shape. Raises ValueError for
    another rank.
    """
    if tensor.shape.ndims == 0:
        return tensor
    if tensor.shape.ndims is not None:
        raise ValueError("%s must be a scalar, not a tensor of shape %s" % (what, tensor.shape))
    return ops.Reshape(tensor, [])


# --- Shape information ----------------------------------------------------------------------------

def shape(input: Any, name: str | None = None, out_type: Any = _core.int32) -> Tensor:
    """The shape of `input`, an integer vector; a constant where it is fully known."""
    if isinstance(input, IndexedSlices):
        return ops.Cast(input.dense_shape, out_type)
    return ops.Shape(input, out_type=out_type, name=name)


def shape_n(input: Sequence, out_type: Any = _core.int32, name: str | None = None) -> list:
    """The shapes of several tensors."""
    return ops.ShapeN(input, out_type=out_type, name=name)


def size(input: Any, name: str | None = None, out_type: Any = _core.int32) -> Tensor:
    """The number of elements, a scalar."""
    return ops.Size(input, out_type=out_type, name=name)


def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of axes, an int32 scalar."""
    return ops.Rank(input, name=name)


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The shape that two shapes (integer vectors) broadcast to."""
    return ops.BroadcastArgs(shape_x, shape_y)


@at_once("Reshape", "inputs")
def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """The same elements under another shape; one extent may be -1: what is left."""
    return ops.Reshape(tensor, shape_tensor(shape), name=name)


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """A new axis of extent 1 before `axis`; negative axes count from behind the last."""
    axis = _one_of(axis, dim, "axis", "dim")
    if axis is None:
        raise ValueError("Must specify an axis argument to tn.expand_dims()")
    return ops.ExpandDims(input, axis, name=name)


def squeeze(input: Any, axis: Any = None, name: str | None = None,
            squeeze_dims: Any = None) -> Tensor:
    """Without axes of extent 1: all of them, or those listed in `axis`."""
    axis = _one_of(axis, squeeze_dims, "axis", "squeeze_dims")
    axes = [] if axis is None else [axis] if isinstance(axis, int) else list(axis)
    return ops.Squeeze(input, squeeze_dims=axes, name=name)


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """`input` repeated along axes of extent 1, and new ones before, until it has `shape`."""
    return ops.BroadcastTo(input, shape_tensor(shape), name=name)


# --- Making tensors -------------------------------------------------------------------------------

def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """A tensor of shape `dims` with every element equal to the scalar `value`."""
    return ops.Fill(shape_tensor(dims), value, name=name)


def _filled(shape: Any, value: int, dtype: Any, name: str | None, default_name: str) -> Tensor:
    dtype = _core.as_dtype(dtype)
    element = {"bool": builtins.bool(value), "string": ""}.get(dtype.name, value)
    with scope_of(name, default_name, [shape] if isinstance(shape, Tensor) else []) as scope:
        scalar = convert_to_tensor(element, dtype)
        if isinstance(shape, (list, tuple)) and not shape:
            return ops.Identity(scalar, name=scope)
        return ops.Fill(shape_tensor(shape), scalar, name=scope)


def zeros(shape: Any, dtype: Any = _core.float32, name: str | None = None) -> Tensor:
    """A tensor of zeros (False, empty strings)."""
    return _filled(shape, 0, dtype, name, "zeros")


def ones(shape: Any, dtype: Any = _core.float32, name: str | None = None) -> Tensor:
    """A tensor of ones (True)."""
    return _filled(shape, 1, dtype, name, "ones")


def zeros_like(tensor: Any, dtype: Any = None, name: str | None = None,
               optimize: bool = True) -> Tensor:
    """Zeros in the shape of `tensor`, of its dtype or `dtype`."""
    tensor = convert_to_tensor(tensor)
    if dtype is None or tensor.dtype == dtype:
        return ops.ZerosLike(tensor, name=name)
    return zeros(shape_of(tensor), dtype, name)


def ones_like(tensor: Any, dtype: Any = None, name: str | None = None,
              optimize: bool = True) -> Tensor:
    """Ones in the shape of `tensor`, of its dtype or `dtype`."""
    tensor = convert_to_tensor(tensor)
    if dtype is None or tensor.dtype == dtype:
        return ops.OnesLike(tensor, name=name)
    return ones(shape_of(tensor), dtype, name)


def shape_of(tensor: Tensor) -> Any:
    """The shape of a tensor: as a list where it is fully known, else as a tensor."""
    static = tensor.shape
    return static.as_list() if static.is_fully_defined() else ops.Shape(tensor)


def extents_of(tensor: Tensor) -> list:
    """The extents of a tensor of known rank: ints where they are known, else scalar tensors."""
    known = tensor.shape.as_list()
    if None in known:
        dynamic = ops.Shape(tensor)
        known = [dynamic[i] if n is None else n for i, n in enumerate(known)]
    return known


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None,
          name: str | None = "range") -> Tensor:
    """start, start + delta, ... before limit; range(n) begins at 0. Floating-point and integer
    types."""
    if limit is None:
        start, limit = 0, start
    with scope_of(name, "range", [start, limit, delta]) as scope:
        if dtype is not None:
            start, limit, delta = [_cast(convert_to_tensor(v), dtype) for v in (start, limit,
                                                                                delta)]
            return ops.Range(start, limit, delta, name=scope)
        values = [start, limit, delta]
        order = [_core.int32, _core.int64, _core.float32, _core.float64]
        tensors = [convert_to_tensor(v) for v in values]
        widest = max((t.dtype for t in tensors if t.dtype in order), key=order.index,
                     default=_core.int32)
        return ops.Range(*[_cast(t, widest) for t in tensors], name=scope)


def _cast(tensor: Tensor, dtype: Any) -> Tensor:
    return tensor if tensor.dtype == dtype else ops.Cast(tensor, dtype)


def linspace(start: Any, stop: Any, num: Any, name: str | None = None) -> Tensor:
    """`num` evenly spaced values from `start` to `stop`, both included."""
    return ops.LinSpace(start, stop, num, name=name)


lin_space = linspace


def one_hot(indices: Any, depth: Any, on_value: Any = None, off_value: Any = None,
            axis: int | None = None, dtype: Any = None, name: str | None = None) -> Tensor:
    """A new axis of extent `depth` that holds `on_value` (1) at the index and `off_value` (0)
    elsewhere.

    axis: where the new axis goes, by default last. dtype: float32 unless the values tell another.
    An index outside [0, depth) gives off_value throughout.
    """
    given = [v for v in (on_value, off_value) if v is not None]
    if dtype is None:
        dtype = convert_to_tensor(given[0]).dtype if given else _core.float32
    on_value = convert_to_tensor(1 if on_value is None else on_value, dtype)
    off_value = convert_to_tensor(0 if off_value is None else off_value, dtype)
    return ops.OneHot(indices, depth, on_value, off_value, axis=-1 if axis is None else axis,
                      name=name)


def eye(num_rows: int, num_columns: int | None = None, batch_shape: Any = None,
        dtype: Any = _core.float32, name: str | None = None) -> Tensor:
    """The identity matrix, [..., num_rows, num_columns], repeated for `batch_shape`."""
    with scope_of(name, "eye"):
        columns = num_rows if num_columns is None else num_columns
        dtype = _core.as_dtype(dtype)
        kind = dtype if dtype.is_floating or dtype.is_integer else _core.float32
        matrix = _cast(one_hot(range(num_rows), columns, dtype=kind), dtype)
        if batch_shape is None:
            return matrix
        full = concat([convert_to_tensor(batch_shape, _core.int32), [num_rows, columns]], 0)
        return ops.BroadcastTo(matrix, full)


def identity(input: Any, name: str | None = None) -> Tensor:
    """A tensor with the value of `input`."""
    return ops.Identity(input, name=name)


def identity_n(input: Sequence, name: str | None = None) -> list:
    """Tensors with the values of `input`, given together."""
    return ops.IdentityN(input, name=name)


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """The value of `input`, taken as a constant by tn.gradients."""
    return ops.StopGradient(input, name=name)


# --- Joining and parting --------------------------------------------------------------------------

def _check_some(values: Sequence) -> None:
    if not values:
        raise ValueError("values is an empty list; needed is at least one tensor")


def _check_axis(axis: int, rank: int) -> None:
    if not -rank <= axis < rank:
        raise ValueError("axis = %d not in [%d, %d)" % (axis, -rank, rank))


def concat(values: Any, axis: Any, name: str | None = "concat") -> Tensor:
    """Tensors joined along an existing axis, a scalar in [-rank, rank). Raises ValueError for an
    empty list and an axis out of range, TypeError for the arguments in the order of TensorFlow
    before 1.0, the axis first."""
    if not isinstance(values, (list, tuple)):
        values = [values]
    _check_some(values)
    if isinstance(axis, (list, tuple)):
        raise TypeError("concat takes a list of tensors and then the axis, a scalar; the axis "
                        "given is a list of %d" % len(axis))
    if len(values) == 1 and isinstance(axis, int):
        value = convert_to_tensor(values[0])
        if value.shape.ndims is not None:
            _check_axis(axis, value.shape.ndims)
            return ops.Identity(value, name=name)
    return ops.Concat(list(values), axis, name=name)


def stack(values: Sequence, axis: int = 0, name: str | None = "stack") -> Tensor:
    """Tensors of one shape joined along a new axis. Raises ValueError for an empty list."""
    if isinstance(values, Tensor):
        values = unstack(values)
    values = list(values)
    _check_some(values)
    return ops.Pack(values, axis=axis, name=name)


def unstack(value: Any, num: int | None = None, axis: int = 0,
            name: str | None = "unstack") -> list:
    """The slices of a tensor along `axis`, without that axis. num: how many, where the shape does
    not tell."""
    if num is None:
        value = convert_to_tensor(value)
        static = value.shape
        if static.ndims is not None:
            _check_axis(axis, static.ndims)
            num = static[axis]
        if num is None:
            raise ValueError("Cannot infer num from shape %s" % static)
    return ops.Unpack(value, num=num, axis=axis, name=name)


def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None,
          name: str | None = "split") -> list:
    """A tensor parted along `axis`: into so many equal pieces, or into pieces of the given sizes
    (one may be -1)."""
    if isinstance(num_or_size_splits, int):
        return ops.Split(axis, value, num_split=num_or_size_splits, name=name)
    if num is None:
        if isinstance(num_or_size_splits, (list, tuple)):
            num = len(num_or_size_splits)
        else:
            num_or_size_splits = convert_to_tensor(num_or_size_splits)
            num = num_or_size_splits.shape[0] if num_or_size_splits.shape.ndims == 1 else None
        if num is None:
            raise ValueError("Cannot infer num from shape %s" % num_or_size_splits.shape)
    return ops.SplitV(value, num_or_size_splits, axis, num_split=num, name=name)


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """`input` repeated multiples[i] times along each axis i."""
    return ops.Tile(input, multiples, name=name)


def repeat(input: Any, repeats: int, axis: int | None = None, name: str | None = None) -> Tensor:
    """Each element (or slice along `axis`) repeated `repeats` times; without axis the input is
    flattened first."""
    with scope_of(name, "Repeat", [input]):
        input = convert_to_tensor(input)
        if axis is None:
            input, axis = ops.Reshape(input, [-1]), 0
        ndims = input.shape.with_rank_at_least(1).ndims
        if ndims is None:
            raise ValueError("the rank of the input of tn.repeat must be known")
        axis = axis % ndims
        wide = ops.Tile(ops.ExpandDims(input, axis + 1),
                        [1] * (axis + 1) + [repeats] + [1] * (ndims - axis - 1))
        sizes = ops.Shape(input)
        return ops.Reshape(wide, concat([sizes[:axis], [-1], sizes[axis + 1:]], 0))


# --- Rearranging ----------------------------------------------------------------------------------

def transpose(a: Any, perm: Any = None, name: str | None = "transpose",
              conjugate: bool = False) -> Tensor:
    """Axis i of the result is axis perm[i] of `a`; without perm the axes in reverse order."""
    with scope_of(name, "transpose", [a]) as scope:
        a = convert_to_tensor(a)
        op = ops.ConjugateTranspose if conjugate and a.dtype.is_complex else ops.Transpose
        if perm is None:
            if a.shape.ndims is not None:
                perm = list(_range(a.shape.ndims))[::-1]
            else:
                last = ops.Rank(a) - 1
                perm = last - range(0, last + 1, 1)
        return op(a, perm, name=scope)


def matrix_transpose(a: Any, name: str | None = "matrix_transpose",
                     conjugate: bool = False) -> Tensor:
    """The last two axes exchanged."""
    with scope_of(name, "matrix_transpose", [a]):
        a = convert_to_tensor(a)
        ndims = a.shape.ndims
        if ndims is None:
            first = ops.Rank(a) - 2
            perm = concat([range(first), [first + 1, first]], 0)
        elif ndims < 2:
            raise ValueError("Argument 'a' should be a (batch) matrix, with rank >= 2. Found: %s"
                             % a.shape)
        else:
            perm = list(_range(ndims - 2)) + [ndims - 1, ndims - 2]
        return transpose(a, perm, conjugate=conjugate)


def pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", name: str | None = None,
        constant_values: Any = 0) -> Tensor:
    """Elements added around: paddings[i] = (before, after) for axis i.

    mode: CONSTANT (constant_values; 0 stands for False and the empty string too), REFLECT
    (mirrored without the edge), SYMMETRIC (with it).
    """
    mode = str(mode).upper()
    if mode in ("REFLECT", "SYMMETRIC"):
        return ops.MirrorPad(tensor, paddings, mode=mode, name=name)
    if mode != "CONSTANT":
        raise ValueError("Unknown padding mode: %s" % mode)
    tensor = convert_to_tensor(tensor)
    if type(constant_values) is int and constant_values == 0:
        constant_values = {_core.bool: False, _core.string: ""}.get(tensor.dtype, 0)
    return ops.Pad(tensor, paddings, convert_to_tensor(constant_values, tensor.dtype), name=name)


def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """size[i] elements from begin[i] on along each axis i; size -1: all that follow."""
    return ops.Slice(input_, begin, size, name=name)


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """The elements in reverse order along the axes listed."""
    return ops.Reverse(tensor, axis if isinstance(axis, (list, tuple, Tensor)) else [axis],
                       name=name)


def reverse_sequence(input: Any, seq_lengths: Any, seq_axis: int | None = None,
                     batch_axis: int | None = None, name: str | None = None,
                     seq_dim: int | None = None, batch_dim: int | None = None) -> Tensor:
    """The first seq_lengths[b] elements along seq_axis in reverse order, for each entry b along
    batch_axis."""
    return ops.ReverseSequence(input, seq_lengths,
                               seq_dim=_one_of(seq_axis, seq_dim, "seq_axis", "seq_dim"),
                               batch_dim=_one_of(batch_axis, batch_dim, "batch_axis",
                                                 "batch_dim") or 0, name=name)


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """The elements moved by `shift` along `axis`, those that fall off coming in at the other
    end. Copies two pieces per axis that is shifted, 2^n of n such axes."""
    return ops.Roll(input, shift, axis, name=name)


def meshgrid(*args: Any, indexing: str = "xy", name: str | None = "meshgrid") -> list:
    """N vectors as N tensors of rank N that together give every combination, as numpy.meshgrid."""
    if indexing not in ("xy", "ij"):
        raise ValueError("indexing parameter must be either 'xy' or 'ij'")
    with scope_of(name, "meshgrid", args):
        vectors = [ops.Reshape(convert_to_tensor(v), [-1]) for v in args]
        order = list(_range(len(vectors)))
        if indexing == "xy" and len(vectors) > 1:
            order[0], order[1] = 1, 0
        sizes = ops.Pack([ops.Size(vectors[i]) for i in order]) if vectors else []
        result = []
        for i, vector in enumerate(vectors):
            extents = [1] * len(vectors)
            extents[order.index(i)] = -1
            result.append(ops.BroadcastTo(ops.Reshape(vector, extents), sizes))
        return result


# --- Selecting ------------------------------------------------------------------------------------

def gather(params: Any, indices: Any, validate_indices: Any = None, name: str | None = None,
           axis: Any = None, batch_dims: int = 0) -> Tensor:
    """Slices of `params` along `axis` (0) at `indices`: result[..., i, j, ...] = params[...,
    indices[i, j], ...].

    The first batch_dims axes of both go together. Raises InvalidArgumentError for an index outside
    params when run.
    """
    if hasattr(params, "sparse_read") and (axis is None or axis == 0) and batch_dims == 0:
        return params.sparse_read(indices, name=name)
    return ops.Gather(params, indices, batch_dims if axis is None else axis, batch_dims=batch_dims,
                      name=name)


def gather_nd(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """params[tuple(indices[i])] for each row i of `indices`."""
    return ops.GatherNd(params, indices, name=name)


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Zeros of `shape` with updates[i] added at indices[i]."""
    return ops.ScatterNd(indices, updates, shape_tensor(shape), name=name)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Elements of x where `condition` is true, of y elsewhere; without x and y the coordinates of
    true elements (of numbers those that are not zero), int64 [n, rank].

    A condition of rank 1 chooses whole rows of x and y, as in TensorFlow 1; otherwise the three
    broadcast. A condition whose rank only a run tells must not make the result larger than x and y.
    """
    if (x is None) != (y is None):
        raise ValueError("x and y must both be non-None or both be None.")
    if x is None:
        return ops.Where(convert_to_tensor(condition, preferred_dtype=_core.bool), name=name)
    condition = convert_to_tensor(condition, _core.bool)
    x = convert_to_tensor(x, None if not isinstance(y, Tensor) or hasattr(x, "dtype") else y.dtype)
    x, y = convert_beside(x, y)
    chooses_rows = condition.shape.ndims == 1
    if chooses_rows and x.shape.ndims is not None:
        if x.shape.ndims > 1:
            condition = ops.Reshape(condition, [-1] + [1] * (x.shape.ndims - 1))
        return ops.Select(condition, x, y, name=name)
    if condition.shape.ndims is not None and not chooses_rows:
        return ops.Select(condition, x, y, name=name)
    return _where_of_unknown_rank(condition, x, y, name)


def _where_of_unknown_rank(condition: Tensor, x: Tensor, y: Tensor, name: str | None) -> Tensor:
    """where(condition, x, y), the rank of the condition or of x not being known."""
    with scope_of(name, "Select", [condition, x, y]) as scope:
        ndims = x.shape.ndims
        if ndims is None or ndims > 1:
            # A vector gets an axis of extent 1 for each axis of a row.
            axes = ops.Maximum((ops.Rank(x) if ndims is None else ndims) - 1, 0)
            if condition.shape.ndims is None:
                axes = axes * ops.Cast(ops.Equal(ops.Rank(condition), 1), _core.int32)
            ones = ops.Fill(ops.ExpandDims(axes, 0), 1)
            condition = ops.Reshape(condition, concat([ops.Shape(condition), ones], 0))
        both = broadcast_static_shape(x.shape, y.shape)
        if both.ndims is None:
            return ops.Select(condition, x, y, name=scope)
        if both.is_fully_defined():
            sizes = both.as_list()
        else:
            sizes = ops.BroadcastArgs(ops.Shape(x), ops.Shape(y))
        return ops.Reshape(ops.Select(condition, x, y), sizes, name=scope)


def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = _core.bool,
                  name: str | None = None) -> Tensor:
    """mask[..., j] = j < lengths[...], for j below maxlen (the largest length)."""
    with scope_of(name, "SequenceMask", [lengths]):
        lengths = convert_to_tensor(lengths)
        if maxlen is None:
            flat = ops.Reshape(lengths, [-1])
            maxlen = ops.Maximum(ops.Max(flat, [0]), ops.ZerosLike(ops.Max(flat, [0])))
        positions = ops.Range(*[_cast(convert_to_tensor(v), lengths.dtype) for v in (0, maxlen, 1)])
        mask = ops.Less(positions, ops.ExpandDims(lengths, -1))
        return _cast(mask, dtype)


def dynamic_partition(data: Any, partitions: Any, num_partitions: int,
                      name: str | None = None) -> list:
    """The slices of `data` sorted into num_partitions tensors by the number in `partitions`."""
    return ops.DynamicPartition(data, partitions, num_partitions=num_partitions, name=name)


def dynamic_stitch(indices: Sequence, data: Sequence, name: str | None = None) -> Tensor:
    """The inverse of dynamic_partition: slice data[m][i] goes to place indices[m][i]."""
    return ops.DynamicStitch(indices, data, name=name)


def unique(x: Any, out_idx: Any = _core.int32, name: str | None = None):
    """(y, idx): the distinct elements of a vector in order of appearance, and for each element its
    place in y."""
    return ops.Unique(x, out_idx=out_idx, name=name)


def diag(diagonal: Any, name: str | None = None) -> Tensor:
    """A tensor of twice the rank with `diagonal` on its diagonal, zero elsewhere."""
    return ops.Diag(diagonal, name=name)


def diag_part(input: Any, name: str | None = None) -> Tensor:
    """The diagonal of a tensor of shape [D1..Dk, D1..Dk]."""
    return ops.DiagPart(input, name=name)


def space_to_batch_nd(input: Any, block_shape: Any, paddings: Any,
                      name: str | None = None) -> Tensor:
    """Blocks of the spatial axes moved into the batch axis."""
    return ops.SpaceToBatchND(input, block_shape, paddings, name=name)


def batch_to_space_nd(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """The inverse of space_to_batch_nd."""
    return ops.BatchToSpaceND(input, block_shape, crops, name=name)


def space_to_batch(input: Any, paddings: Any, block_size: Any = None, name: str | None = None,
                   block_shape: Any = None) -> Tensor:
    """Blocks of block_size x block_size pixels of [batch, height, width, channels], padded by
    `paddings` [2, 2], moved into the batch axis."""
    return space_to_batch_nd(convert_to_tensor(input), _square(block_size, block_shape), paddings,
                             name=name)


def batch_to_space(input: Any, crops: Any, block_size: Any = None, name: str | None = None,
                   block_shape: Any = None) -> Tensor:
    """The inverse of space_to_batch: crops [2, 2] are cut off."""
    return batch_to_space_nd(convert_to_tensor(input), _square(block_size, block_shape), crops,
                             name=name)


def _square(block_size: Any, block_shape: Any) -> list:
    size = _one_of(block_size, block_shape, "block_size", "block_shape")
    if isinstance(size, bool) or not hasattr(size, "__index__") or size < 2:
        raise ValueError("block_size must be an int of at least 2, not %r" % (size,))
    return [size.__index__()] * 2


def space_to_depth(input: Any, block_size: int, name: str | None = None,
                   data_format: str = "NHWC") -> Tensor:
    """block_size x block_size pixels moved into the channels."""
    return ops.SpaceToDepth(input, block_size=block_size, data_format=data_format, name=name)


def depth_to_space(input: Any, block_size: int, name: str | None = None,
                   data_format: str = "NHWC") -> Tensor:
    """The inverse of space_to_depth."""
    return ops.DepthToSpace(input, block_size=block_size, data_format=data_format, name=name)


def tensor_scatter_update(tensor: Any, indices: Any, updates: Any,
                          name: str | None = None) -> Tensor:
    """`tensor` with updates[i] in place of the slice at indices[i]."""
    return ops.TensorScatterUpdate(tensor, indices, updates, name=name)


def tensor_scatter_add(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """`tensor` with updates[i] added at indices[i]."""
    return ops.TensorScatterAdd(tensor, indices, updates, name=name)


def tensor_scatter_sub(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """`tensor` with updates[i] subtracted at indices[i]."""
    return ops.TensorScatterSub(tensor, indices, updates, name=name)


__all__ = ["shape", "shape_n", "size", "rank", "broadcast_dynamic_shape", "broadcast_static_shape",
           "reshape", "expand_dims", "squeeze", "broadcast_to", "fill", "zeros", "ones",
           "zeros_like", "ones_like", "range", "linspace", "lin_space", "one_hot", "eye",
           "identity", "identity_n", "stop_gradient", "concat", "stack", "unstack", "split", "tile",
           "repeat", "transpose", "matrix_transpose", "pad", "slice", "strided_slice", "reverse",
           "reverse_sequence", "roll", "meshgrid", "gather", "gather_nd", "scatter_nd",
           "boolean_mask", "where", "sequence_mask", "dynamic_partition", "dynamic_stitch",
           "unique", "diag", "diag_part", "space_to_batch_nd", "batch_to_space_nd",
           "space_to_batch", "batch_to_space", "space_to_depth", "depth_to_space",
           "tensor_scatter_update", "tensor_scatter_add", "tensor_scatter_sub", "newaxis"]
