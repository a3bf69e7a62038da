# SPDX-License-Identifier: Apache-2.0
"""Which values are tensors of a graph, and what two values have in common: as results of the two
branches of a condition, or as what a loop begins with and goes on with.

A template is a structure in which Slot(i) stands for tensor number i.
"""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import IndexedSlices, convert_to_tensor
from treenail._framework import executing_eagerly
from treenail._function_graph import assembled, components
from treenail._nest import is_nested
from treenail._ops import ops
from treenail._precision import common_precision
from treenail._shape import TensorShape
from treenail._sparse import SparseTensor
from treenail._tensor_array import TensorArray
from treenail._treenail import Tensor
from treenail.autograph._cells import UNBOUND, Undecided
from treenail.autograph._lists import GrowingList, kind_of
from treenail.autograph._places import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

_PLAIN = (bool, int, float, complex, str, bytes)
_PARTS = (TensorArray, SparseTensor, IndexedSlices, GrowingList)
_EMPTY = object()  # what stands for a tensor in a branch that gives none


def is_symbolic(value: Any) -> bool:
    """Whether a value has to be computed by a run, and may be no condition of Python's."""
    if isinstance(value, Tensor):
        return not value._is_concrete
    if value is None or type(value) in _PLAIN:
        return False
    return hasattr(type(value), "__treenail_tensor__") and not executing_eagerly()


def any_symbolic(values: Any) -> bool:
    """Whether one of these, or of what lists, tuples and dictionaries among them hold, is."""
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, (list, tuple)):
        return any(any_symbolic(value) for value in values)
    return is_symbolic(values) or isinstance(values, GrowingList)


def truth(value: Any) -> Tensor:
    """The bool scalar that a tensor stands for as a condition. Raises ValueError where it has more
    elements than one, TypeError where it has no truth."""
    if isinstance(value, GrowingList):
        return ops.Greater(value.length(), 0)
    tensor = convert_to_tensor(value)
    if tensor.shape.rank not in (None, 0):
        raise refusal(ValueError, "a condition must be a scalar, not a tensor of shape %s: "
                      "tn.reduce_any and tn.reduce_all make one of many" % tensor.shape)
    if tensor.dtype == _core.bool:
        return tensor
    if not (tensor.dtype.is_integer or tensor.dtype.is_floating):
        raise refusal(TypeError, "a condition must be a bool or a number, not a tensor of dtype %s"
                      % tensor.dtype.name)
    return ops.NotEqual(tensor, convert_to_tensor(0, tensor.dtype))


class Mismatch(Exception):
    """Two values have nothing in common that a tensor could be. args: the error's class, and what
    is said of the two."""


class Slot:
    """Tensor number `index`."""

    def __init__(self, index: int) -> None:
        self.index = index


class Nest:
    """A tuple, list or dictionary, or the tensors of a TensorArray, sparse tensor or list."""

    def __init__(self, like: Any, parts: list) -> None:
        self.like, self.parts = like, parts


def built(template: Any, tensors: Sequence) -> Any:
    """The structure with these tensors."""
    if isinstance(template, Slot):
        return tensors[template.index]
    if not isinstance(template, Nest):
        return template
    parts = [built(part, tensors) for part in template.parts]
    like = template.like
    if isinstance(like, GrowingList):
        return like.with_flow(parts[0])
    if isinstance(like, _PARTS):
        return assembled(like, parts)
    if isinstance(like, dict):
        return type(like)(zip(like, parts))
    return type(like)(*parts) if hasattr(like, "_fields") else type(like)(parts)


def parts_of(value: Any) -> list | None:
    """What a structure is made of; None for a leaf."""
    if isinstance(value, GrowingList):
        return [value.flow]
    if isinstance(value, _PARTS):
        return components(value)
    if is_nested(value):
        return list(value.values()) if isinstance(value, dict) else list(value)
    return None


def alike(a: Any, b: Any) -> bool:
    """Whether two structures have the same kind and number of parts."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (TensorArray, GrowingList)):
        return a.dtype == b.dtype
    if isinstance(a, dict):
        return list(a) == list(b) or set(a) == set(b)
    return len(parts_of(a) or ()) == len(parts_of(b) or ())


def same(a: Any, b: Any) -> bool:
    """Whether they are one object, or equal values of Python."""
    if a is b or type(a) is not type(b) or type(a) not in _PLAIN:
        return a is b
    return repr(a) == repr(b) if type(a) in (float, complex) else a == b  # 0.0 is not -0.0


def convertible(value: Any) -> bool:
    """Whether a value becomes a tensor where one is needed."""
    return isinstance(value, (Tensor, *_PLAIN)) or hasattr(value, "__treenail_tensor__") or type(
        value).__module__ == "numpy" and hasattr(value, "dtype")


class Merge:
    """Values of one variable on two ways: `template` with the pairs of leaves that differ."""

    def __init__(self, is_result: bool = False) -> None:
        self.is_result = is_result  # a function's result counts only on the way that has one
        self.pairs: list = []

    def merged(self, a: Any, b: Any) -> Any:
        """The template. Raises Mismatch."""
        if same(a, b):
            return a
        for value in (a, b):
            if isinstance(value, Undecided):
                return value
        if a is UNBOUND or b is UNBOUND:
            return self._one_sided(a, b)
        return self._structure(a, b)

    def _structure(self, a: Any, b: Any) -> Any:
        if isinstance(a, (list, GrowingList)) and isinstance(b, (list, GrowingList)) and not (
                type(a) is type(b) is list and len(a) == len(b)):
            kind, flows = _both_growing(a, b)
            self.pairs.append((*flows, _core.variant))
            return Nest(kind, [Slot(len(self.pairs) - 1)])
        parts = parts_of(a)
        if parts is not None and alike(a, b):
            others = [b[key] for key in a] if isinstance(a, dict) else parts_of(b)
            return Nest(a, [self.merged(x, y) for x, y in zip(parts, others)])
        if parts is not None or parts_of(b) is not None:
            raise Mismatch(ValueError, "its structures differ: %s and %s" % (shown(a), shown(b)))
        if not (convertible(a) and convertible(b)):
            raise Mismatch(ValueError, "it is %s on one way and %s on the other, which no tensor "
                           "can be" % (shown(a), shown(b)))
        dtype = common_dtype(a, b)
        self.pairs.append((a, b, dtype))
        return Slot(len(self.pairs) - 1)

    def _one_sided(self, a: Any, b: Any) -> Any:
        if not self.is_result:
            raise Mismatch(ValueError, "only one way gives it a value; give it one before")
        return self._with_stand_ins(b if a is UNBOUND else a, a is UNBOUND)

    def _with_stand_ins(self, value: Any, first: bool) -> Any:
        parts = parts_of(value)
        if parts is not None:
            return Nest(value, [self._with_stand_ins(part, first) for part in parts])
        if not is_symbolic(value):
            return value
        value = convert_to_tensor(value)
        if value.dtype == _core.resource:
            raise Mismatch(ValueError, "only one way gives it a value")
        self.pairs.append((_EMPTY, value, value.dtype) if first else (value, _EMPTY, value.dtype))
        return Slot(len(self.pairs) - 1)


def in_graph(value: Any, other: Any, dtype: Any) -> Tensor:
    """A leaf of a pair as a tensor of the default graph."""
    if isinstance(value, _Elements):
        return value.flow()
    if value is not _EMPTY:
        return convert_to_tensor(value, dtype)
    if dtype == _core.variant:
        return ops.EmptyTensorList(-1, -1, element_dtype=_core.float32)
    extents = other.shape.as_list() if other.shape.rank is not None else []
    return ops.Fill([extent or 0 for extent in extents] if extents else convert_to_tensor(
        [], _core.int32), convert_to_tensor(_zero(dtype), dtype))


def _zero(dtype: Any) -> Any:
    return "" if dtype == _core.string else dtype == _core.bool and False or 0


class _Elements:
    """The flow of a list of these values, made where it is needed."""

    dtype = _core.variant

    def __init__(self, values: list, kind: GrowingList) -> None:
        self._values, self._kind = values, kind

    def flow(self) -> Tensor:
        """The list as a tensor of the default graph."""
        return self._kind.of_same_kind(self._values).flow


def _both_growing(a: Any, b: Any) -> tuple:
    """Two lists as lists that grow, and their flows."""
    kinds = [x if isinstance(x, GrowingList) else kind_of(x) for x in (a, b) if not (
        isinstance(x, list) and not x)]
    if None in kinds:
        raise Mismatch(ValueError, "its lists have %s and %s elements, and not all are tensors of "
                       "one dtype" % (_count(a), _count(b)))
    if len({kind.dtype for kind in kinds}) > 1:
        raise Mismatch(ValueError, "its lists have elements of different dtypes: %s and %s"
                       % (shown(a), shown(b)))
    kind = kinds[0] if len(kinds) == 1 else kinds[0].common(kinds[1])
    return kind, [x.flow if isinstance(x, GrowingList) else _Elements(x, kind) for x in (a, b)]


def _count(value: Any) -> str:
    return "unknown many" if isinstance(value, GrowingList) else str(len(value))


def dtype_of(value: Any) -> Any:
    """The dtype of a tensor, variable or array; None for a number of Python's."""
    if type(value) in _PLAIN:
        return None
    return _core.as_dtype(value.dtype)


def natural_dtype(value: Any) -> Any:
    """The dtype that a value has as a tensor."""
    return dtype_of(value) or (convert_to_tensor(value).dtype if type(value) is int else {
        bool: _core.bool, float: _core.float32, complex: _core.complex128}.get(
            type(value), _core.string))


def fits(value: Any, dtype: Any) -> bool:
    """Whether a number of Python's may be of that dtype."""
    if type(value) is bool:
        return dtype == _core.bool
    if type(value) in (str, bytes):
        return dtype == _core.string
    if type(value) is int:
        return dtype.is_integer or dtype.is_floating or dtype.is_complex
    return dtype.is_complex or (type(value) is float and dtype.is_floating)


def common_dtype(a: Any, b: Any) -> Any:
    """The dtype that both may have. Raises Mismatch."""
    first, second = dtype_of(a), dtype_of(b)
    if first is None and second is None:
        first, second = natural_dtype(a), natural_dtype(b)
        if first != second:
            numbers = type(a) in (int, float) and type(b) in (int, float)
            wide = {type(a), type(b)} == {int}
            if not numbers:
                raise Mismatch(TypeError, "it is %s on one way and %s on the other"
                               % (shown(a), shown(b)))
            return _core.int64 if wide else first if first.is_floating else second
        return first
    if first is None or second is None:
        dtype, number = (second, a) if first is None else (first, b)
        if not fits(number, dtype):
            raise Mismatch(TypeError, "it is %s on one way and %s on the other"
                           % (shown(a), shown(b)))
        return dtype
    if first != second:
        wide = common_precision(first, second)
        if wide is not None:
            return wide
        raise Mismatch(TypeError, "it has dtype %s on one way and %s on the other"
                       % (first.name, second.name))
    return first


def shown(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, Tensor):
        return "a tensor of %s%s" % (value.dtype.name, "" if value.shape.rank is None else
                                     ", shape %s" % value.shape)
    import reprlib
    return "unbound" if value is UNBOUND else reprlib.repr(value)


def common_shape(a: TensorShape, b: TensorShape) -> TensorShape:
    """What holds for both."""
    if a.rank is None or a.rank != b.rank:
        return TensorShape(None)
    return TensorShape([x if x == y else None for x, y in zip(a.as_list(), b.as_list())])


def shape_of_pair(first: Any, second: Any, a: Tensor, b: Tensor) -> TensorShape:
    """What is known of the shape of two leaves' common tensor."""
    if first is _EMPTY or second is _EMPTY:
        return b.shape if first is _EMPTY else a.shape
    return common_shape(a.shape, b.shape)
