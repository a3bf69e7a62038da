# SPDX-License-Identifier: Apache-2.0
"""Norms of vectors and matrices, and tensors divided by theirs."""

from __future__ import annotations

from numbers import Real

from treenail import _array, _linalg, _math
from treenail import _treenail as _core
from treenail._convert import convert_to_tensor, scope_of
from treenail._ops import ops
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_INFINITY = float("inf")


def _checked_norm(ord: Any, axis: Any) -> bool:
    """Whether it is a norm of matrices."""
    whole = "'axis' must be None, an integer, or a tuple of 2 unique integers, got %r" % (axis,)
    of_matrices = isinstance(axis, (tuple, list))
    if of_matrices:
        if len(axis) != 2 or not all(isinstance(i, int) for i in axis) or axis[0] == axis[1]:
            raise ValueError(whole)
        if ord not in ("euclidean", "fro", 1, 2, _INFINITY):
            raise ValueError("'ord' must be 'euclidean', 'fro', 1, 2 or inf for matrices, got %r"
                             % (ord,))
        return True
    if axis is not None and not isinstance(axis, int):
        raise ValueError(whole)
    number = isinstance(ord, Real) and ord > 0
    if ord != "euclidean" and not number:
        raise ValueError("'ord' must be 'euclidean' or a positive number for vectors, got %r"
                         % (ord,))
    return False


def _check_axes(x: Tensor, axis: Any) -> None:
    """Raises ValueError where an axis is out of range, and where two are the same one."""
    rank = x.shape.ndims
    if rank is None or axis is None:
        return
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    for i in axes:
        if not -rank <= i < rank:
            raise ValueError("'axis' %d is not in [%d, %d): the tensor has shape %s"
                             % (i, -rank, rank, x.shape))
    if len({i % rank for i in axes}) != len(axes):
        raise ValueError("'axis' must be a tuple of 2 unique integers, got %r for shape %s"
                         % (axis, x.shape))


def _orders(x: Tensor, axis: Any) -> tuple:
    """Permutations that bring these two axes to the end, and back."""
    rank = x.shape.ndims
    if rank is not None:
        last = [i % rank for i in axis]
        order = [i for i in range(rank) if i not in last] + last
        return order, [order.index(i) for i in range(rank)]
    count = ops.Rank(x)
    every = ops.Range(0, count, 1)
    last = ops.Pack([count + i if i < 0 else convert_to_tensor(i, _core.int32) for i in axis])
    order = _array.concat([ops.ListDiff(every, last)[0], last], 0)
    return order, ops.InvertPermutation(order)


def _largest_singular_value(x: Tensor, axis: Any) -> Tensor:
    """Along these two axes, which stay with extent 1."""
    order, back = _orders(x, axis)
    values = _linalg.svd(_array.transpose(x, order), compute_uv=False)
    largest = ops.ExpandDims(_math.reduce_max(values, axis=-1, keepdims=True), -1)
    return _array.transpose(largest, back)


def _vector_norm(x: Tensor, ord: Any, axis: Any) -> Tensor:
    size = _math.abs(x)
    if ord == 1:
        return _math.reduce_sum(size, axis, keepdims=True)
    if ord == _INFINITY:
        return _math.reduce_max(size, axis, keepdims=True)
    power = float(ord)
    return ops.Pow(_math.reduce_sum(ops.Pow(size, power), axis, keepdims=True), 1.0 / power)


def _kept_norm(x: Tensor, ord: Any, axis: Any) -> Tensor:
    """With the axes that it is of, of extent 1."""
    of_matrices = _checked_norm(ord, axis)
    _check_axes(x, axis)
    if of_matrices and ord == 2:
        return _largest_singular_value(x, axis)
    if ord in ("euclidean", "fro", 2):
        return ops.Sqrt(_math.reduce_sum(x * _math.conj(x), axis, keepdims=True))
    if of_matrices:
        first, second = axis if ord == 1 else (axis[1], axis[0])
        sums = _math.reduce_sum(_math.abs(x), first, keepdims=True)
        return _math.reduce_max(sums, second, keepdims=True)
    return _vector_norm(x, ord, axis)


def norm(tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: bool | None = None,
         name: str | None = None, keep_dims: bool | None = None) -> Tensor:
    """Norm of vectors (axis a number, or None for all elements) or matrices (axis two numbers).

    ord: 'euclidean', or 'fro' of matrices, the root of the sum of squares; any positive number of
    vectors, inf the largest; of matrices 1 (the largest sum over axis[0]), inf (over axis[1]) and 2
    (the largest singular value). The root of a sum of squares has the dtype of the tensor, though
    that be complex; others are real. Raises ValueError for another ord or axis.
    """
    keep = bool(keepdims if keepdims is not None else keep_dims)
    with scope_of(name, "norm", [tensor]):
        result = _kept_norm(convert_to_tensor(tensor), ord, axis)
        return result if keep else _array.squeeze(result, axis)


def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None,
              name: str | None = None) -> tuple:
    """(the tensor divided by its norm along `axis`, that norm, with the axes kept).

    ord and axis: as in norm. Where the norm is zero the quotient is NaN.
    """
    with scope_of(name, "normalize", [tensor]):
        x = convert_to_tensor(tensor)
        size = _math.cast(_kept_norm(x, ord, axis), x.dtype)
        return x / size, size


__all__ = ["norm", "normalize"]
