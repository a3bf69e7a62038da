# SPDX-License-Identifier: Apache-2.0
"""Subscripts of tensors: x[1], x[:, -1], x[..., tn.newaxis], x[mask], with ints, slices and scalar
tensors."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import _holds_tensor, _pack, convert_to_tensor, scope_of
from treenail._ops import ops
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

newaxis = None


def _index(value):
    """An int, or a scalar tensor, of a subscript."""
    if isinstance(value, Tensor) or hasattr(value, "__treenail_tensor__"):
        value = convert_to_tensor(value)
        if value.dtype not in (_core.int32, _core.int64):
            raise TypeError("a tensor used as an index must be int32 or int64, not %s"
                            % value.dtype.name)
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError("Only integers, slices (`:`), ellipsis (`...`), tn.newaxis (`None`) and "
                        "scalar int32/int64 tensors are valid indices, got %r" % (value,))
    return value.__index__()


def _vector(values):
    if _holds_tensor(values):
        wide = any(isinstance(v, Tensor) and v.dtype == _core.int64 for v in values)
        dtype = _core.int64 if wide else _core.int32
        return _pack([ops.Cast(v, dtype) if isinstance(v, Tensor) and v.dtype != dtype else v
                      for v in values], dtype), dtype
    wide = any(not -2**31 <= v < 2**31 for v in values)
    return values, _core.int64 if wide else _core.int32


def _is_mask(key) -> bool:
    """Whether a subscript is a bool tensor, or a bool array."""
    if isinstance(key, Tensor):
        return key.dtype == _core.bool
    return bool(hasattr(key, "dtype") and getattr(key, "shape", ()) and str(key.dtype) == "bool")


def _ranges(key) -> tuple:
    """(begin, end, strides, masks) of a subscript, as lists."""
    begin, end, strides = [], [], []
    masks = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0,
             "shrink_axis_mask": 0}
    for position, item in enumerate(key if isinstance(key, tuple) else (key,)):
        bit = 1 << position
        if isinstance(item, slice):
            for part, values, mask in ((item.start, begin, "begin_mask"),
                                       (item.stop, end, "end_mask")):
                if part is None:
                    masks[mask] |= bit
                values.append(0 if part is None else _index(part))
            strides.append(1 if item.step is None else _index(item.step))
            continue
        if item is Ellipsis:
            masks["ellipsis_mask"] |= bit
            begin.append(0)
            end.append(0)
        elif item is None:
            masks["new_axis_mask"] |= bit
            begin.append(0)
            end.append(0)
        else:
            index = _index(item)
            masks["shrink_axis_mask"] |= bit
            begin.append(index)
            end.append(index + 1)
        strides.append(1)
    return begin, end, strides, masks


def _as_tensors(*lists) -> list:
    """begin, end and strides as vectors of one dtype."""
    vectors = [_vector(v) for v in lists]
    dtype = _core.int64 if any(d == _core.int64 for _, d in vectors) else _core.int32
    return [ops.Cast(v, dtype) if isinstance(v, Tensor) and d != dtype
            else convert_to_tensor(v, dtype) for v, d in vectors]


def get_item(tensor: Tensor, key) -> Tensor:
    """tensor[key]."""
    if _is_mask(key):
        return boolean_mask(tensor, key)
    begin, end, strides, masks = _ranges(key)
    if not begin:
        return ops.Identity(tensor)
    begin, end, strides = _as_tensors(begin, end, strides)
    return ops.StridedSlice(tensor, begin, end, strides, name="strided_slice", **masks)


def assign_item(handle: Tensor, key, value: Tensor, name: str | None = None):
    """The operation that writes `value`, of the shape of that part, to variable[key]. Raises
    TypeError for a bool mask."""
    if _is_mask(key):
        raise TypeError("a part that a bool mask chooses cannot be assigned: use scatter_nd_update "
                        "with tn.where(mask)")
    begin, end, strides, masks = _ranges(key)
    if not begin:
        begin, end, strides, masks["ellipsis_mask"] = [0], [0], [1], 1
    begin, end, strides = _as_tensors(begin, end, strides)
    return ops.ResourceStridedSliceAssign(handle, begin, end, strides, value,
                                          name=name or "strided_slice_assign", **masks)


def boolean_mask(tensor: Any, mask: Any, name: str | None = "boolean_mask",
                 axis: int | None = None) -> Tensor:
    """The elements (or slices) where `mask` is true; mask's axes are those of `tensor` from `axis`
    (0) on.

    Raises ValueError for shapes known to differ, InvalidArgumentError when run with such.
    """
    with scope_of(name, "boolean_mask", [tensor, mask]):
        tensor, mask = convert_to_tensor(tensor), convert_to_tensor(mask, _core.bool)
        axis = axis or 0
        if mask.shape.ndims is None:
            raise ValueError("Number of mask dimensions must be specified, even if some dimensions "
                             "are None.")
        if mask.shape.ndims == 0:
            raise ValueError("mask cannot be scalar.")
        end = axis + mask.shape.ndims
        masked = tensor.shape[axis:end]
        masked.assert_is_compatible_with(mask.shape)
        sizes = ops.Shape(tensor, out_type=_core.int64)
        if masked.is_fully_defined() and mask.shape.is_fully_defined():
            count = convert_to_tensor(mask.shape.num_elements(), _core.int64)
        else:
            # BroadcastArgs refuses extents that differ, reshaping to the product 1 beside another.
            count = ops.Prod(ops.BroadcastArgs(sizes[axis:end],
                                               ops.Shape(mask, out_type=_core.int64)), [0])
        flat = ops.Reshape(tensor, ops.Concat([sizes[:axis], ops.ExpandDims(count, 0),
                                               sizes[end:]], 0))
        chosen = ops.Where(ops.Reshape(mask, ops.ExpandDims(count, 0)))
        return ops.Gather(flat, ops.Squeeze(chosen, squeeze_dims=[1]), axis)


def strided_slice(input_, begin, end, strides=None, begin_mask: int = 0, end_mask: int = 0,
                  ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0,
                  var=None, name: str | None = None) -> Tensor:
    """Elements begin, begin + strides, ... before end, along each axis; the masks are those of the
    op StridedSlice."""
    if strides is None:
        begin = convert_to_tensor(begin)
        strides = ops.OnesLike(begin)
    return ops.StridedSlice(input_, begin, end, strides, begin_mask=begin_mask, end_mask=end_mask,
                            ellipsis_mask=ellipsis_mask, new_axis_mask=new_axis_mask,
                            shrink_axis_mask=shrink_axis_mask, name=name)
