# SPDX-License-Identifier: Apache-2.0
"""Writing to variables by functions: tn.assign, tn.scatter_update and their like."""

from __future__ import annotations

from treenail._convert import IndexedSlices, convert_to_tensor
from treenail._framework import graph_of
from treenail._ops import ops
from treenail._treenail import Tensor
from treenail._variables import Variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def variable_of(ref: Any) -> Any:
    """The variable that `ref` is, or whose value or handle it is, such as
    graph.get_tensor_by_name("w:0"). Raises TypeError for anything else."""
    if not isinstance(ref, Tensor):
        if hasattr(ref, "assign"):
            return ref
    elif hasattr(ref, "op"):
        op = ref.op.inputs[0].op if ref.op.type == "ReadVariableOp" else ref.op
        if op.type == "VarHandleOp":
            found = getattr(op.outputs[0], "_variable", None)
            if found is None:
                found = Variable._from_operations(op)
            if found is not None:
                return found
    raise TypeError("needed is a Variable, or the tensor of one, not %r" % (ref,))


def assign(ref: Variable, value: Any, validate_shape: bool | None = None,
           use_locking: bool | None = None, name: str | None = None) -> Tensor:
    """ref.assign(value).

    validate_shape: False lets the variable take values of every shape from now on, in this graph;
    what was made of it before keeps the static shape it had. Raises ValueError for another shape
    than the variable's without it, and for a partitioned variable.
    """
    ref = variable_of(ref)
    if validate_shape is not False:
        return ref.assign(value, name=name)
    with graph_of([ref]).as_default():
        value = convert_to_tensor(value, ref.dtype)
    if isinstance(ref, Variable) and not (value.shape.is_fully_defined()
                                          and value.shape.is_compatible_with(ref.shape)):
        ref._admit_all_shapes()
    result = ref.assign(value, name=name)
    result.set_shape(value.shape)
    return result


def assign_add(ref: Variable, value: Any, use_locking: bool | None = None,
               name: str | None = None) -> Tensor:
    """ref.assign_add(value)."""
    return variable_of(ref).assign_add(value, name=name)


def assign_sub(ref: Variable, value: Any, use_locking: bool | None = None,
               name: str | None = None) -> Tensor:
    """ref.assign_sub(value)."""
    return variable_of(ref).assign_sub(value, name=name)


def count_up_to(ref: Variable, limit: int, name: str | None = None) -> Tensor:
    """Adds one to an integer scalar `ref` and gives the value before; OutOfRangeError when that is
    `limit`."""
    ref = variable_of(ref)
    return ops.ResourceCountUpTo(ref.handle, limit=limit, T=ref.dtype, name=name)


def _rows(ref: Any, method: str, indices: Any, updates: Any, name: str | None) -> Tensor:
    ref = variable_of(ref)
    with graph_of([ref]).as_default():
        slices = IndexedSlices(updates, convert_to_tensor(indices))
    return getattr(ref, method)(slices, name=name)


def scatter_update(ref: Variable, indices: Any, updates: Any, use_locking: bool = True,
                   name: str | None = None) -> Tensor:
    """Replaces the rows of `ref` at `indices`; the result is the new value."""
    return _rows(ref, "scatter_update", indices, updates, name)


def scatter_add(ref: Variable, indices: Any, updates: Any, use_locking: bool = False,
                name: str | None = None) -> Tensor:
    """Adds to the rows of `ref` at `indices`; the result is the new value."""
    return _rows(ref, "scatter_add", indices, updates, name)


def scatter_sub(ref: Variable, indices: Any, updates: Any, use_locking: bool = False,
                name: str | None = None) -> Tensor:
    """Subtracts from the rows of `ref` at `indices`; the result is the new value."""
    return _rows(ref, "scatter_sub", indices, updates, name)


def scatter_nd_update(ref: Variable, indices: Any, updates: Any, use_locking: bool = True,
                      name: str | None = None) -> Tensor:
    """Replaces what stands in `ref` at `indices` [..., k], which address its first k axes, by
    `updates` [..., ref.shape[k:]]; the result is the new value."""
    return variable_of(ref).scatter_nd_update(indices, updates, name)


def scatter_nd_add(ref: Variable, indices: Any, updates: Any, use_locking: bool = False,
                   name: str | None = None) -> Tensor:
    """Adds `updates` to `ref` at `indices`, as scatter_nd_update; the result is the new value."""
    return variable_of(ref).scatter_nd_add(indices, updates, name)


def scatter_nd_sub(ref: Variable, indices: Any, updates: Any, use_locking: bool = False,
                   name: str | None = None) -> Tensor:
    """Subtracts `updates` from `ref` at `indices`, as scatter_nd_update; the result is the new
    value."""
    return variable_of(ref).scatter_nd_sub(indices, updates, name)


def scatter_mul(ref: Variable, indices: Any, updates: Any, use_locking: bool = False,
                name: str | None = None) -> Tensor:
    """Multiplies the rows of `ref` at `indices`; the result is the new value."""
    return _rows(ref, "scatter_mul", indices, updates, name)


def scatter_min(ref: Variable, indices: Any, updates: Any, use_locking: bool = False,
                name: str | None = None) -> Tensor:
    """Lowers the rows of `ref` at `indices` to at most `updates`; the result is the new value."""
    return _rows(ref, "scatter_min", indices, updates, name)


def scatter_max(ref: Variable, indices: Any, updates: Any, use_locking: bool = False,
                name: str | None = None) -> Tensor:
    """Raises the rows of `ref` at `indices` to at least `updates`; the result is the new value."""
    return _rows(ref, "scatter_max", indices, updates, name)


__all__ = ["assign", "assign_add", "assign_sub", "count_up_to", "scatter_update", "scatter_add",
           "scatter_sub", "scatter_nd_update", "scatter_nd_add", "scatter_nd_sub", "scatter_mul",
           "scatter_min", "scatter_max"]
