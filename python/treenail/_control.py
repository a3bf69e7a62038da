# SPDX-License-Identifier: Apache-2.0
"""Order of execution: groups of operations, and values that wait for operations."""

from __future__ import annotations

from treenail._convert import IndexedSlices, convert_to_tensor
from treenail._framework import (Operation, _flat_list, control_dependencies, executing_eagerly,
                                 graph_of, name_scope)
from treenail._ops import ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing: something to hang control dependencies on."""
    return ops.NoOp(name=name)  # None with immediate execution


def _operation(value: Any) -> Operation:
    if isinstance(value, Operation):
        return value
    op = getattr(value, "op", None)
    if not isinstance(op, Operation):
        raise TypeError("needed are operations, tensors or variables, not %r" % (value,))
    return op


def group(*inputs: Any, name: str | None = None) -> Operation:
    """One operation that has run when all of `inputs` (operations, tensors, variables, lists of
    such) have."""
    flat = _flat_list(list(inputs))
    if executing_eagerly():
        return ops.NoOp()
    operations = [_operation(value) for value in flat]
    with graph_of(flat).as_default(), control_dependencies(operations):
        return ops.NoOp(name=name or "group_deps")


def tuple(tensors: Sequence, name: str | None = None,
          control_inputs: Sequence | None = None) -> list:  # noqa: A001
    """The tensors, each available only when all of them, and `control_inputs`, have been computed.

    None stays None. Raises ValueError when there is nothing but None.
    """
    values = [t for t in tensors if t is not None]
    if not values:
        raise ValueError("Must have at least one Tensor")
    if executing_eagerly():
        return list(tensors)
    with graph_of(values).as_default(), name_scope(name, "tuple"):
        gate = [_operation(t) for t in values] + [_operation(c) for c in control_inputs or ()]
        with control_dependencies([group(*gate)]):
            return [None if t is None else _identity(t) for t in tensors]


def _identity(value: Any) -> Any:
    if isinstance(value, IndexedSlices):
        return IndexedSlices(ops.Identity(value.values), value.indices, value.dense_shape)
    return value if isinstance(value, Operation) else ops.Identity(value)


def with_dependencies(dependencies: Sequence, output_tensor: Any, name: str | None = None) -> Any:
    """`output_tensor`, available only after `dependencies` have run."""
    if executing_eagerly():
        return output_tensor
    with graph_of([output_tensor]).as_default(), control_dependencies(list(dependencies)):
        if isinstance(output_tensor, IndexedSlices):
            return _identity(output_tensor)
        return ops.Identity(convert_to_tensor(output_tensor), name=name or "control_dependency")


__all__ = ["no_op", "group", "tuple"]
