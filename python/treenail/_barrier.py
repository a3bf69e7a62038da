# SPDX-License-Identifier: Apache-2.0
"""TensorFlow 1's Barrier: what belongs together comes one component at a time."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import constant_value, convert_to_tensor
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._treenail import Operation, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _type_list(types: Any) -> list:
    return [_core.as_dtype(t) for t in (types if isinstance(types, (list, tuple)) else [types])]


def _shape_list(shapes: Any, count: int) -> list:
    if shapes is None:
        return [TensorShape(None)] * count
    if isinstance(shapes, TensorShape):
        shapes = [shapes]
    if not isinstance(shapes, (list, tuple)):
        raise TypeError("shapes must be a TensorShape or a list or tuple of shapes, not %r"
                        % (shapes,))
    if all(extent is None or isinstance(extent, int) for extent in shapes):  # one shape
        shapes = [shapes]
    if len(shapes) != count:
        raise ValueError("shapes must be as many as the types, %d, not %d: %r"
                         % (count, len(shapes), shapes))
    return [TensorShape(shape) for shape in shapes]


class Barrier:
    """Puts elements together from components that come one by one, in any order and from any run,
    and gives them once they are complete.

    types: dtypes of the components, one or a list. shapes: their shapes, as many; None for any and
    for unknown extents. shared_name: barriers of one session that are called so are one.

    Raises ValueError for a shape of no elements.
    """

    def __init__(self, types: Any, shapes: Any = None, shared_name: str | None = None,
                 name: str = "barrier") -> None:
        self._types = _type_list(types)
        self._shapes = _shape_list(shapes, len(self._types))
        for i, shape in enumerate(self._shapes):
            if shape.num_elements() == 0:
                raise ValueError("Empty tensors are not supported, but received shape '%s' at "
                                 "index %d" % (shape, i))
        self._barrier_ref = ops.Barrier(component_types=self._types, shapes=self._shapes,
                                        shared_name=shared_name or "", name=name)
        self._name = self._barrier_ref.op.name.rpartition("/")[2]

    @property
    def barrier_ref(self) -> Tensor:
        """The handle that operations on the barrier take."""
        return self._barrier_ref

    @property
    def name(self) -> str:
        """The name of the operation that gives the handle, without its scope."""
        return self._name

    def _named(self, name: str | None, what: str) -> str:
        return name or "%s_Barrier%s" % (self._name, what)

    def insert_many(self, component_index: int, keys: Any, values: Any,
                    name: str | None = None) -> Operation:
        """Inserts one component of several elements: all of them, or none.

        component_index: which, from 0. keys: strings [n]. values: [n, ...], of the component's
        dtype and shape.

        The run raises InvalidArgumentError where a key has that component already, and
        CancelledError where the barrier is closed and a key is new.
        """
        if isinstance(component_index, int) and 0 <= component_index < len(self._types):
            values = convert_to_tensor(values, self._types[component_index])
        return ops.BarrierInsertMany(self._barrier_ref, keys, values,
                                     component_index=component_index,
                                     name=self._named(name, "InsertMany"))

    def take_many(self, num_elements: Any, allow_small_batch: bool = False,
                  timeout: int | None = None, name: str | None = None) -> tuple:
        """Takes complete elements: (indices, keys, values).

        num_elements: how many, an int32 scalar; the run waits until there are so many. Who waits
        longest is served first. allow_small_batch: once the barrier is closed, fewer will do, at
        least one. timeout: None; RunOptions(timeout_in_ms=...) is that of a run.

        indices, int64 [n], ascend with the insertion that began an element, the order in which
        elements come; keys: strings [n]; values: a list of one [n, ...] per component.

        The run raises OutOfRangeError where the barrier is closed and will not have enough.
        """
        if timeout is not None and timeout != -1:
            raise ValueError("timeout must be None, not %r: RunOptions(timeout_in_ms=...) is that "
                             "of a run" % (timeout,))
        taken = ops.BarrierTakeMany(self._barrier_ref, num_elements, component_types=self._types,
                                    allow_small_batch=allow_small_batch,
                                    name=self._named(name, "TakeMany"))
        indices, keys, values = taken
        known = None if allow_small_batch else constant_value(indices.op.inputs[1])
        batch = TensorShape([None if known is None else max(int(known), 0)])
        for tensor in (indices, keys):
            tensor.set_shape(batch)
        for value, shape in zip(values, self._shapes):
            value.set_shape(batch.concatenate(shape))
        return taken

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Closes the barrier: no element begins any more. cancel_pending_enqueues: those that have
        begun do not get complete, either.

        The run raises CancelledError where it is closed already.
        """
        return ops.BarrierClose(self._barrier_ref, cancel_pending_enqueues=cancel_pending_enqueues,
                                name=self._named(name, "Close"))

    def ready_size(self, name: str | None = None) -> Tensor:
        """How many complete elements there are, an int32 scalar."""
        return ops.BarrierReadySize(self._barrier_ref, name=self._named(name, "ReadySize"))

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """How many elements lack a component, an int32 scalar."""
        return ops.BarrierIncompleteSize(self._barrier_ref,
                                         name=self._named(name, "IncompleteSize"))


__all__ = ["Barrier"]
