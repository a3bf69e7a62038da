# SPDX-License-Identifier: Apache-2.0
"""What a loop of the graph may go through: the rows of tensors, numbers from one to another, lists
that grew, and enumerate() and zip() of these."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._array import range as range_of
from treenail._array import shape as shape_of
from treenail._convert import convert_to_tensor
from treenail._ops import ops
from treenail._tensor_array import TensorArray
from treenail._treenail import Tensor
from treenail.autograph._lists import GrowingList
from treenail.autograph._places import refusal
from treenail.autograph._values import convertible, is_symbolic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Counted:
    """As many elements as `count` says, an int32 scalar; `item(i)` is number i."""

    def __init__(self, count: Any) -> None:
        self.count = count

    def first(self) -> Any:
        """What the loop counts from."""
        return 0

    def step(self) -> Any:
        """What it goes on by."""
        return 1

    def holds(self, index: Any) -> Tensor:
        """Whether there is an element of that number."""
        return ops.Less(index, self.count)

    def item(self, index: Any) -> Any:
        """An element."""
        raise NotImplementedError

    def length(self) -> Any:
        """How many elements there are."""
        return self.count

    def __iter__(self) -> Any:
        raise refusal(TypeError, "how many elements there are, a run tells: only a `for` of a "
                      "converted function goes through them")


class Rows(Counted):
    """The rows of a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        if tensor.shape.rank == 0:
            raise refusal(TypeError, "a tensor of shape () has no elements to go through")
        extent = tensor.shape[0] if tensor.shape.rank is not None else None
        super().__init__(convert_to_tensor(extent if extent is not None else shape_of(tensor)[0],
                                           _core.int32))
        self._rows = TensorArray(tensor.dtype, self.count).unstack(tensor)

    def item(self, index: Any) -> Tensor:
        return self._rows.read(index)


class Elements(Counted):
    """The elements of a list that grew."""

    def __init__(self, values: GrowingList) -> None:
        super().__init__(values.length())
        self._values = values

    def item(self, index: Any) -> Tensor:
        return self._values[index]


class Numbers(Counted):
    """start, start + delta, ... before limit: integer scalars of one dtype."""

    def __init__(self, start: Any, limit: Any = None, delta: Any = 1) -> None:
        if limit is None:
            start, limit = 0, start
        values = range_of(start, limit, delta)
        self._start, self._limit, self._delta = values.op.inputs
        self._upwards = delta if isinstance(delta, int) else None
        super().__init__(None)

    @staticmethod
    def of(tensor: Tensor) -> Numbers | None:
        """What made this tensor, where tn.range of integers did."""
        if tensor.op.type != "Range" or not tensor.dtype.is_integer:
            return None
        made = object.__new__(Numbers)
        made._start, made._limit, made._delta = tensor.op.inputs
        made._upwards = _known(made._delta)
        made.count = None
        return made

    def first(self) -> Any:
        return self._start

    def step(self) -> Any:
        return self._delta

    def holds(self, index: Any) -> Tensor:
        if self._upwards is not None:
            return (ops.Less if self._upwards > 0 else ops.Greater)(index, self._limit)
        return ops.Select(ops.Greater(self._delta, 0), ops.Less(index, self._limit),
                          ops.Greater(index, self._limit))

    def item(self, index: Any) -> Tensor:
        return index

    def length(self) -> Tensor:
        return ops.Size(ops.Range(self._start, self._limit, self._delta))

    def nth(self, index: Any) -> Tensor:
        """Number `index` of them."""
        return self._start + ops.Cast(index, DstT=self._start.dtype) * self._delta


class Together(Counted):
    """zip() of countable values: as many as the shortest has."""

    def __init__(self, parts: list) -> None:
        self._parts = parts
        counts = [ops.Cast(part.length(), DstT=_core.int32) for part in parts]
        shortest = counts[0]
        for count in counts[1:]:
            shortest = ops.Minimum(shortest, count)
        super().__init__(shortest)

    def item(self, index: Any) -> tuple:
        return tuple(_nth(part, index) for part in self._parts)


class Numbered(Counted):
    """enumerate() of countable values."""

    def __init__(self, values: Counted, start: Any = 0) -> None:
        super().__init__(ops.Cast(values.length(), DstT=_core.int32))
        self._values, self._from = values, start

    def item(self, index: Any) -> tuple:
        return index + self._from, _nth(self._values, index)


def _nth(values: Counted, index: Any) -> Any:
    return values.nth(index) if isinstance(values, Numbers) else values.item(index)


def _known(tensor: Tensor) -> int | None:
    from treenail._convert import constant_value
    value = constant_value(tensor)
    return None if value is None or not value else int(value)


def counted(values: Any) -> Counted | None:
    """What a loop of the graph goes through; None for what Python does."""
    if isinstance(values, Counted):
        return values
    if isinstance(values, GrowingList):
        return Elements(values)
    if not is_symbolic(values):
        return None
    tensor = convert_to_tensor(values)
    return Numbers.of(tensor) or Rows(tensor)


def together(values: tuple, is_rest: Any = None) -> Together | None:
    """zip(*values) where one of them is of a tensor; None where Python can do it."""
    found = [counted(value) for value in values]
    if all(part is None for part in found):
        return None
    return Together([part or _as_rows(value) for part, value in zip(found, values)])


def _as_rows(values: Any) -> Counted:
    if isinstance(values, range):
        values = list(values)
    if not (convertible(values) or isinstance(values, (list, tuple))):
        raise refusal(TypeError, "zip() of a tensor and %r: the latter is no tensor, and nothing "
                      "that becomes one" % (values,))
    return Rows(convert_to_tensor(values))
