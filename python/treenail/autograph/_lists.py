# SPDX-License-Identifier: Apache-2.0
"""Lists that grow where a tensor decides: how many elements they have, a run tells."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import convert_to_tensor
from treenail._ops import ops
from treenail._shape import TensorShape, as_shape
from treenail._treenail import Tensor
from treenail.autograph._places import innermost, refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class GrowingList:
    """Tensors of one dtype, to be appended to, read by number, and stacked with tn.stack.

    What a Python list becomes that grows in a loop which a tensor ends, or in one of two branches.
    As a tensor it is its elements, stacked.
    """

    def __init__(self, dtype: Any, shape: TensorShape, flow: Tensor | None) -> None:
        self.dtype, self.element_shape, self.flow = dtype, shape, flow

    def with_flow(self, flow: Tensor) -> GrowingList:
        """The list of the same kind that this tensor holds."""
        return GrowingList(self.dtype, self.element_shape, flow)

    def copied(self) -> GrowingList:
        """The same list: appending to one leaves the other."""
        return self.with_flow(self.flow)

    def common(self, other: GrowingList) -> GrowingList:
        """This list, with what is known of the elements of both."""
        from treenail.autograph._values import common_shape
        return GrowingList(self.dtype, common_shape(self.element_shape, other.element_shape),
                           self.flow)

    def of_same_kind(self, values: list) -> GrowingList | None:
        """The list of these values, of this one's dtype; None where they are of another."""
        kind = kind_of(values, self.dtype) if values else self
        if kind is None or kind.dtype != self.dtype:
            return None
        made = GrowingList(self.dtype, kind.element_shape, ops.EmptyTensorList(
            -1, -1, element_dtype=self.dtype))
        made.extend(values)
        made.element_shape = self.element_shape
        return made

    def _shape_value(self) -> Any:
        shape = self.element_shape
        return -1 if shape.rank is None else convert_to_tensor(
            [-1 if extent is None else extent for extent in shape.as_list()], _core.int32)

    def append(self, value: Any) -> None:
        """Adds an element. Raises TypeError for one of another dtype."""
        from treenail.autograph._values import common_shape, convertible, dtype_of, fits, shown
        own = convertible(value) and dtype_of(value)
        if not (own == self.dtype if own else convertible(value) and fits(value, self.dtype)):
            raise refusal(TypeError, "a list of tensors of %s cannot take %s"
                          % (self.dtype.name, shown(value)))
        value = convert_to_tensor(value, self.dtype)
        self.element_shape = common_shape(self.element_shape, value.shape)
        self.flow = ops.TensorListPushBack(self.flow, value)

    def extend(self, values: Any) -> None:
        """Adds elements of a Python list."""
        for value in values:
            self.append(value)

    def pop(self, index: int = -1) -> Tensor:
        """Takes the last element away. Raises NotImplementedError for another."""
        if index != -1:
            raise refusal(NotImplementedError, "only the last element can be taken from a list "
                          "that grew where a tensor decides, not number %r" % (index,))
        self.flow, value = ops.TensorListPopBack(self.flow, self._shape_value(),
                                                 element_dtype=self.dtype)
        return value

    def stack(self) -> Tensor:
        """The elements as rows of one tensor."""
        return ops.TensorListStack(self.flow, self._shape_value(), element_dtype=self.dtype)

    def concat(self) -> Tensor:
        """The elements, one behind the other along their first axis."""
        return ops.TensorListConcatV2(self.flow, self._shape_value(), convert_to_tensor(
            [], _core.int64), element_dtype=self.dtype)[0]

    def length(self) -> Tensor:
        """How many elements there are, an int32 scalar."""
        return ops.TensorListLength(self.flow)

    __treenail_tensor__ = stack

    def __getitem__(self, index: Any) -> Tensor:
        if isinstance(index, slice):
            return self.stack()[index]
        index = convert_to_tensor(index, _core.int32)
        index = ops.Select(ops.Less(index, 0), ops.Add(index, self.length()), index)
        return ops.TensorListGetItem(self.flow, index, self._shape_value(),
                                     element_dtype=self.dtype)

    def __setitem__(self, index: Any, value: Any) -> None:
        value = convert_to_tensor(value, self.dtype)
        self.flow = ops.TensorListSetItem(self.flow, convert_to_tensor(index, _core.int32), value)

    def __iadd__(self, values: Any) -> GrowingList:
        self.extend(values)
        return self

    def __add__(self, values: Any) -> GrowingList:
        made = self.copied()
        made.extend(values)
        return made

    def __iter__(self) -> Any:
        raise refusal(TypeError, "how many elements this list has, a run tells: go through it with "
                      "`for` in a converted function, or stack it with tn.stack")

    def __len__(self) -> int:
        raise refusal(TypeError, "how many elements this list has, a run tells: len() of it is a "
                      "tensor in a converted function")

    def __repr__(self) -> str:
        return "<a list of tensors of %s that grows>" % self.dtype.name


def kind_of(values: list, dtype: Any = None) -> GrowingList | None:
    """The kind (a list without a flow) of a list of tensors and numbers of one dtype; None for any
    other."""
    from treenail.autograph._values import Mismatch, common_dtype, common_shape, convertible
    from treenail.autograph._values import natural_dtype
    if not values or not all(convertible(value) for value in values):
        return None
    try:
        for value in values:
            dtype = natural_dtype(value) if dtype is None else dtype
            dtype = common_dtype(value, _OfDtype(dtype))
    except Mismatch:
        return None
    shape = as_shape(getattr(values[0], "shape", ()))
    for value in values[1:]:
        shape = common_shape(shape, as_shape(getattr(value, "shape", ())))
    return GrowingList(dtype, shape, None)


class _OfDtype:
    """Anything of that dtype."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype


def is_container(value: Any) -> bool:
    """Whether methods change this object in place: a list, dictionary, set, deque, array, ..."""
    return isinstance(value, (list, dict, set, bytearray)) or type(value).__module__ in (
        "collections", "array", "numpy") and hasattr(value, "__setitem__")


def writable(value: Any, name: str, fresh: bool, how: str) -> Any:
    """What variable `name` is to be before the object in it is changed: a copy where a tensor
    decides whether it is. fresh: no other name stands for it. how: what changes it, a "method", an
    "operator", or the setting of an "item"."""
    if type(value) is GrowingList:
        return value.copied()
    if innermost() is None or isinstance(value, Tensor) or not (
            is_container(value) or how == "item"):
        return value
    if not fresh or type(value) not in (list, dict, set):
        raise refusal(NotImplementedError, "%r is changed within %s, which a tensor decides, and "
                      "comes from elsewhere, or is known by another name, too: the change would be "
                      "made once, while the graph is built, whatever the tensor is"
                      % (name, innermost()))
    return value.copy()
