# SPDX-License-Identifier: Apache-2.0
"""TensorFlow 1's StagingArea and MapStagingArea (tf.contrib.staging, data_flow_ops): tuples of
tensors that are put in one run and taken in another."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._control import no_op
from treenail._convert import convert_to_tensor, scope_of
from treenail._framework import colocate_with, get_default_graph
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._treenail import Operation, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def _listed(values: Any, what: str) -> list:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError("%s must be a list, not %r" % (what, values))
    return list(values)


def _as_many(values: list, count: int, what: str) -> list:
    if len(values) != count:
        raise ValueError("StagingArea %s must be the same length as dtypes, %d, not %d: %r"
                         % (what, count, len(values), values))
    return values


class BaseStagingArea:
    """What staging areas have in common.

    Programs make a StagingArea or a MapStagingArea. dtypes: of the tensors of a tuple. shapes:
    theirs, None for any. names: theirs, for tuples that are dictionaries. shared_name: areas of one
    session that are called so are one. capacity: how many tuples, memory_limit: how many bytes fit;
    0 for any number.
    """

    def __init__(self, dtypes: Sequence, shapes: Sequence | None = None,
                 names: Sequence | None = None, shared_name: str | None = None,
                 capacity: int = 0, memory_limit: int = 0) -> None:
        if shared_name is None:
            shared_name = get_default_graph().unique_name(type(self).__name__)
        elif not isinstance(shared_name, str):
            raise ValueError("shared_name must be a string, not %r" % (shared_name,))
        self._name = shared_name
        self._dtypes = [_core.as_dtype(dtype) for dtype in _listed(dtypes, "dtypes")]
        count = len(self._dtypes)
        self._shapes = [TensorShape(None)] * count if shapes is None else [
            TensorShape(s) for s in _as_many(_listed(shapes, "shapes"), count, "shapes")]
        self._names = None if names is None else _as_many(_listed(names, "names"), count, "names")
        self._capacity, self._memory_limit = capacity, memory_limit
        with scope_of(None, self._name + "_root"):
            self._root = no_op()

    @property
    def name(self) -> str:
        """The name that operations on the area share."""
        return self._name

    @property
    def dtypes(self) -> list:
        """The dtypes of a tuple."""
        return self._dtypes

    @property
    def shapes(self) -> list:
        """What is known of the shapes of a tuple."""
        return self._shapes

    @property
    def names(self) -> list | None:
        """The names of a tuple's tensors, or None."""
        return self._names

    @property
    def capacity(self) -> int:
        """How many tuples fit; 0: any number."""
        return self._capacity

    @property
    def memory_limit(self) -> int:
        """How many bytes fit; 0: any number."""
        return self._memory_limit

    def _area(self) -> dict:
        return {"shared_name": self._name, "capacity": self._capacity,
                "memory_limit": self._memory_limit}

    def _call(self, op_name: str, name: str | None, default: str, *inputs: Any,
              **attrs: Any) -> Any:
        with scope_of(name, "%s_%s" % (self._name, default)) as scope, colocate_with(self._root):
            return getattr(ops, op_name)(*inputs, name=scope, **self._area(), **attrs)

    def _tuple(self, values: Any, indices: Any) -> tuple:
        """(tensors, places) of what is put: a dictionary where there are names, else a list."""
        if isinstance(values, dict):
            if not self._names:
                raise ValueError("Staging areas must have names to put a dictionary: %r"
                                 % (values,))
            if not set(values).issubset(self._names):
                raise ValueError("Keys in dictionary to put do not match names of staging area. "
                                 "Dictionary: %s, names: %s"
                                 % (sorted(map(str, values)), self._names))
            indices = [i for i, key in enumerate(self._names) if key in values]
            values = [values[self._names[i]] for i in indices]
        elif self._names:
            raise ValueError("You must put a dictionary into a staging area with names, not %r"
                             % (values,))
        elif not isinstance(values, (list, tuple)):
            values, indices = [values], [0] if indices is None else indices
        if indices is None:
            raise ValueError("Indices must be given where a list is put: %r" % (values,))
        indices = _listed(indices, "indices")
        if len(indices) != len(values):
            raise ValueError("Number of indices '%d' doesn't match number of values '%d': %r"
                             % (len(indices), len(values), indices))
        return [self._component(v, i) for v, i in zip(values, indices)], indices

    def _component(self, value: Any, i: Any) -> Tensor:
        if not isinstance(i, int) or not 0 <= i < len(self._dtypes):
            raise ValueError("index %r is not in [0, %d), the tensors of a tuple"
                             % (i, len(self._dtypes)))
        tensor = convert_to_tensor(value, None if hasattr(value, "dtype") else self._dtypes[i],
                                   name="component_%d" % i)
        if tensor.dtype != self._dtypes[i]:
            raise ValueError("Datatypes do not match. Received %s, the staging area has %s"
                             % (tensor.dtype.name, self._dtypes[i].name))
        tensor.shape.assert_is_compatible_with(self._shapes[i])
        return tensor

    def _given(self, tensors: Sequence, indices: Sequence) -> Any:
        for tensor, i in zip(tensors, indices):
            tensor.set_shape(self._shapes[i])
        if self._names:
            return {self._names[i]: tensor for tensor, i in zip(tensors, indices)}
        return list(tensors)


class StagingArea(BaseStagingArea):
    """A queue of tuples of tensors, which are put in one run and taken in another: what the next
    step needs is prepared while this one computes.

    dtypes, shapes, names, shared_name, capacity, memory_limit: as BaseStagingArea. put() waits for
    room, get() for a tuple.
    """

    def put(self, values: Any, name: str | None = None) -> Operation:
        """Puts a tuple: a list of tensors, one tensor, or a dictionary where there are names. Waits
        until there is room.

        Raises ValueError for other tensors than the area's; the run raises ResourceExhaustedError
        for a tuple larger than memory_limit.
        """
        if not isinstance(values, (list, tuple, dict)):
            values = [values]
        if len(values) != len(self._dtypes):
            raise ValueError("Unexpected number of values, %d, the staging area takes %d: %r"
                             % (len(values), len(self._dtypes), values))
        tensors, _ = self._tuple(values, range(len(values)))
        return self._call("Stage", name, "put", tensors)

    def _all(self, tensors: Sequence) -> Any:
        return self._given(tensors, range(len(self._dtypes)))

    def get(self, name: str | None = None) -> Any:
        """Takes the tuple that was put first, a list, or a dictionary where there are names. Waits
        until there is one."""
        return self._all(self._call("Unstage", name, "get", dtypes=self._dtypes))

    def peek(self, index: Any, name: str | None = None) -> Any:
        """The tuple in place `index`, an int32 scalar, where it stays. Waits until there is one."""
        return self._all(self._call("StagePeek", name, "peek", index, dtypes=self._dtypes))

    def size(self, name: str | None = None) -> Tensor:
        """How many tuples there are, an int32 scalar."""
        return self._call("StageSize", name, "size", dtypes=self._dtypes)

    def clear(self, name: str | None = None) -> Operation:
        """Takes all tuples out, and drops them."""
        return self._call("StageClear", name, "clear", dtypes=self._dtypes)


class MapStagingArea(BaseStagingArea):
    """A staging area whose tuples have keys, int64 scalars. A tuple can be put and taken in parts,
    and is there to be taken once all of it was put.

    dtypes, shapes, names, shared_name, capacity, memory_limit: as BaseStagingArea. ordered: get()
    without a key takes the tuple of the lowest key.
    """

    def __init__(self, dtypes: Sequence, shapes: Sequence | None = None,
                 names: Sequence | None = None, shared_name: str | None = None,
                 ordered: bool = False, capacity: int = 0, memory_limit: int = 0) -> None:
        super().__init__(dtypes, shapes, names, shared_name, capacity, memory_limit)
        self._prefix = "OrderedMap" if ordered else "Map"

    def _indices(self, indices: Any) -> list:
        if indices is None:
            return list(range(len(self._dtypes)))
        if not isinstance(indices, (tuple, list)):
            raise TypeError("indices must be a list, not %r" % (indices,))
        if not indices:
            raise ValueError("Empty indices: %r" % (indices,))
        if all(isinstance(i, str) for i in indices):
            missing = [i for i in indices if i not in (self._names or ())]
            if missing:
                raise ValueError("Named index %r is not in the names of the staging area, %s"
                                 % (missing[0], self._names))
            return [self._names.index(i) for i in indices]
        if not all(isinstance(i, int) and 0 <= i < len(self._dtypes) for i in indices):
            raise ValueError("indices must all be names, or all be in [0, %d), not %r"
                             % (len(self._dtypes), indices))
        return list(indices)

    def put(self, key: Any, vals: Any, indices: Sequence | None = None,
            name: str | None = None) -> Operation:
        """Puts a tuple, or a part of one: a list of tensors and their places, which ascend, or a
        dictionary where there are names. Waits until there is room.

        key: an int64 scalar. The run raises InvalidArgumentError for what was put under the key
        already.
        """
        tensors, indices = self._tuple(vals, indices)
        return self._call(self._prefix + "Stage", name, "put", _key(key), indices, tensors,
                          dtypes=self._dtypes)

    def _part(self, op_name: str, name: str | None, what: str, key: Any, indices: Any) -> Any:
        indices = self._indices(indices)
        tensors = self._call(self._prefix + op_name, name, what, key, indices,
                             dtypes=[self._dtypes[i] for i in indices])
        return self._given(tensors, indices)

    def peek(self, key: Any, indices: Sequence | None = None, name: str | None = None) -> Any:
        """The tuple of that key, or those of its tensors that `indices`, places or names, say,
        where they stay: a list, or a dictionary where there are names. Waits until it is there."""
        return self._part("Peek", name, "peek", _key(key), indices)

    def get(self, key: Any = None, indices: Sequence | None = None, name: str | None = None) -> Any:
        """Takes a tuple, or a part as peek(): (key, the tuple). Waits until it is there.

        key: None for whichever there is. The run raises InvalidArgumentError for a part that is
        taken already.
        """
        if key is not None:
            key = _key(key)
            return key, self._part("Unstage", name, "pop", key, indices)
        indices = self._indices(indices)
        key, tensors = self._call(self._prefix + "UnstageNoKey", name, "popitem", indices,
                                  dtypes=[self._dtypes[i] for i in indices])
        return key, self._given(tensors, indices)

    def size(self, name: str | None = None) -> Tensor:
        """How many complete tuples there are, an int32 scalar."""
        return self._call(self._prefix + "Size", name, "size", dtypes=self._dtypes)

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """How many tuples lack a part, an int32 scalar."""
        return self._call(self._prefix + "IncompleteSize", name, "incomplete_size",
                          dtypes=self._dtypes)

    def clear(self, name: str | None = None) -> Operation:
        """Takes all tuples out, complete or not, and drops them."""
        return self._call(self._prefix + "Clear", name, "clear", dtypes=self._dtypes)


def _key(key: Any) -> Tensor:
    return convert_to_tensor(key, _core.int64, name="key")


__all__ = ["StagingArea", "MapStagingArea"]
