# SPDX-License-Identifier: Apache-2.0
"""Batches of matrices that are broadcast: what the operations of linear algebra, which want equal
ones, leave to be done. Extents are ints where they are known and scalar tensors otherwise."""

from __future__ import annotations

from treenail import _array, _math
from treenail import _treenail as _core
from treenail._convert import convert_to_tensor
from treenail._ops import ops
from treenail._shape import TensorShape, broadcast_static_shape
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def as_tensor(value: Any, dtype: Any) -> Tensor:
    """`value` as a tensor: of that dtype where it is a number or list that has none of its own."""
    return convert_to_tensor(value, preferred_dtype=None if hasattr(value, "dtype") else dtype)


def at_least_rank(what: str, value: Any, rank: int) -> Tensor:
    """`value` as a tensor. Raises ValueError where it is known to have fewer axes."""
    x = convert_to_tensor(value)
    if x.shape.ndims is not None and x.shape.ndims < rank:
        raise ValueError("Argument %s must have at least %d dimension%s.  Found: %s"
                         % (what, rank, "" if rank == 1 else "s", x))
    return x


def extent(x: Tensor, axis: int) -> Any:
    """An extent, counted from the end: an int, or an int32 scalar."""
    known = None if x.shape.ndims is None else x.shape[axis]
    return ops.Shape(x)[axis] if known is None else known


def shape_vector(parts: Any) -> Tensor:
    """Extents, ints and scalars, as an int32 vector."""
    return convert_to_tensor(list(parts), _core.int32)


def joined(*parts: Any) -> Tensor:
    """One int32 vector of lists of extents and int32 vectors."""
    return _array.concat([shape_vector(p) if isinstance(p, (list, tuple, TensorShape)) else p
                          for p in parts], 0)


def batch_shape(x: Tensor, count: int = 2) -> TensorShape:
    """What is known of the axes before the last `count`."""
    return x.shape[:-count]


def batch_vector(x: Tensor, count: int = 2) -> Any:
    """The extents before the last `count`: a list where all are known, else an int32 vector."""
    known = batch_shape(x, count)
    return known.as_list() if known.is_fully_defined() else ops.Shape(x)[:-count]


def broadcast_vectors(*shapes: Any) -> Any:
    """The shape that several broadcast to, lists or int32 vectors; a list where all are lists."""
    result = shapes[0]
    for shape in shapes[1:]:
        if isinstance(result, list) and isinstance(shape, list):
            result = broadcast_static_shape(result, shape).as_list()
        else:
            result = ops.BroadcastArgs(*[s if isinstance(s, Tensor) else shape_vector(s)
                                         for s in (result, shape)])
    return result


def broadcast_batch(x: Tensor, batch: Any, count: int = 2) -> Tensor:
    """x, whose last `count` axes stay, for the batch that its own and `batch`, a list of extents or
    an int32 vector, broadcast to."""
    own = batch_vector(x, count)
    both = broadcast_vectors(own, batch)
    if isinstance(both, list) and own == both:
        return x
    return ops.BroadcastTo(x, joined(both, [extent(x, i) for i in range(-count, 0)]))


def with_one_batch(*tensors: Tensor) -> list:
    """Matrices, repeated so that all have the batch that theirs broadcast to."""
    if all(x.shape.ndims == 2 for x in tensors):
        return list(tensors)
    batch = broadcast_vectors(*[batch_vector(x) for x in tensors])
    return [broadcast_batch(x, batch) for x in tensors]


def as_columns(rhs: Tensor) -> Tensor:
    """[..., n, k] as one matrix [n, ... k]: the batch beside the columns. The rank is known."""
    rank = rhs.shape.ndims
    moved = _array.transpose(rhs, [rank - 2, *range(rank - 2), rank - 1])
    others = _array.extents_of(moved)[1:]
    return ops.Reshape(moved, shape_vector([extent(rhs, -2), count_of(others)]))


def from_columns(columns: Tensor, like: Tensor) -> Tensor:
    """Back from `as_columns` to the axes of `like`; there may be another number of rows."""
    rank = like.shape.ndims
    extents = _array.extents_of(like)
    rows = [extent(columns, -2), *extents[:-2], extents[-1]]
    moved = ops.Reshape(columns, shape_vector(rows))
    return _array.transpose(moved, [*range(1, rank - 1), 0, rank - 1])


def count_of(extents: Any) -> Any:
    """The product of extents."""
    result = 1
    for n in extents:
        result = result * n
    return result


def solve_with(function: Callable, matrix: Tensor, rhs: Tensor) -> Tensor:
    """function(matrix, rhs), which wants equal batches, of batches that are broadcast.

    One matrix for a whole batch of right sides is worked on once: these stand beside each other.
    """
    if matrix.shape.ndims == 2 and rhs.shape.ndims is not None and rhs.shape.ndims > 2:
        return from_columns(function(matrix, as_columns(rhs)), rhs)
    return function(*with_one_batch(matrix, rhs))


def product(a: Tensor, b: Tensor, adjoint_a: bool = False, adjoint_b: bool = False) -> Tensor:
    """The product of matrices, batches broadcast."""
    if a.shape.ndims == 2 and b.shape.ndims == 2:
        return _math.matmul(a, b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)
    return ops.BatchMatMul(a, b, adj_x=adjoint_a, adj_y=adjoint_b)


def vector_product(function: Callable, x: Tensor) -> Tensor:
    """function, of matrices, on vectors [..., n]."""
    return ops.Squeeze(function(ops.ExpandDims(x, -1)), squeeze_dims=[-1])
