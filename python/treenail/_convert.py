# SPDX-License-Identifier: Apache-2.0
"""Values as tensors: constants, conversion, IndexedSlices."""

from __future__ import annotations

from collections import namedtuple

from treenail import _treenail as _core
from treenail._framework import Graph, executing_eagerly, get_default_graph, name_scope
from treenail._ops import ops
from treenail._precision import common_precision
from treenail._shape import TensorShape
from treenail._treenail import DType, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


class IndexedSlices:
    """Some rows of a larger tensor: row `indices[i]` is `values[i]`. What the gradient of a gather
    is.

    values: [n, ...]. indices: int32 or int64 [n]. dense_shape: an integer vector, or None.
    """

    def __init__(self, values: Tensor, indices: Tensor, dense_shape: Tensor | None = None) -> None:
        self._values, self._indices, self._dense_shape = values, indices, dense_shape

    @property
    def values(self) -> Tensor:
        """The rows, [n, ...]."""
        return self._values

    @property
    def indices(self) -> Tensor:
        """Which rows they are, [n]."""
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        """The shape of the larger tensor, where known."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """What is known of the larger tensor's shape."""
        if self._dense_shape is None:
            return TensorShape(None)
        return constant_value_as_shape(self._dense_shape)

    @property
    def name(self) -> str:
        """The name of `values`."""
        return self._values.name

    @property
    def op(self):
        """The operation that gives `values`."""
        return self._values.op

    @property
    def dtype(self) -> DType:
        """The dtype of `values`."""
        return self._values.dtype

    @property
    def device(self) -> str:
        """The device of `values`."""
        return self._values.device

    @property
    def graph(self) -> Graph:
        """The graph of `values`."""
        return self._values.graph

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self._values, self._indices, self._dense_shape)

    def __treenail_tensor__(self) -> Tensor:
        if self._dense_shape is None:
            raise ValueError("Tensor conversion requested for IndexedSlices without dense_shape: %s"
                             % self)
        rows = ops.UnsortedSegmentSum(self._values, self._indices, self._dense_shape[0])
        return ops.Reshape(rows, self._dense_shape)

    def __treenail_fetch__(self) -> tuple:
        parts = [self._values, self._indices] + ([] if self._dense_shape is None
                                                 else [self._dense_shape])
        return parts, lambda values: IndexedSlicesValue(*(values if len(values) == 3 else values
                                                          + [None]))

    def __treenail_feed__(self, value: Any) -> list:
        parts = [self._values, self._indices] + ([] if self._dense_shape is None
                                                 else [self._dense_shape])
        given = list(value) if isinstance(value, (tuple, list)) else []
        if len(given) == 3 and len(parts) == 2 and given[2] is None:  # as it was fetched
            given.pop()
        if len(given) != len(parts):
            raise TypeError("an IndexedSlicesValue, or a tuple (values, indices%s), is needed, not "
                            "%r" % (", dense_shape" if len(parts) == 3 else "", value))
        return list(zip(parts, given))

    def __repr__(self) -> str:
        return "IndexedSlices(indices=%s, values=%s%s)" % (
            self._indices.name, self._values.name,
            "" if self._dense_shape is None else ", dense_shape=%s" % self._dense_shape.name)


IndexedSlicesValue = namedtuple("IndexedSlicesValue", ["values", "indices", "dense_shape"])
IndexedSlicesValue.__doc__ = """What fetching an IndexedSlices gives: arrays `values`, `indices` and
`dense_shape` (or None). Feeding one takes it, or any such tuple."""


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None,
             verify_shape: bool = False) -> Tensor:
    """A constant.

    value: a number, string, (nested) list or array. dtype: the natural one when None: int32 (int64
    where needed), float32, complex128, bool, string; an array keeps its own. shape: the value is
    reshaped; too few elements are completed by repeating the last one, as in TensorFlow 1, unless
    verify_shape. A scalar fills any shape, an empty one too.

    Raises TypeError for a value of another kind or dtype, ValueError for ragged lists, too many
    elements and integers that do not fit.
    """
    graph = get_default_graph()
    if shape is None:
        return _core.constant(graph, value, dtype, name, hasattr(value, "dtype"))
    array = _core.to_array(value, None if hasattr(value, "dtype") else dtype)
    if dtype is not None and hasattr(value, "dtype"):
        array = array.astype(_core.as_dtype(dtype).as_numpy_dtype)
    return _core.constant(graph, _shaped(array, TensorShape(shape), verify_shape), dtype, name,
                          True)


def _shaped(array, shape: TensorShape, verify_shape: bool):
    import numpy
    if not shape.is_fully_defined():
        raise ValueError("the shape of a constant must be fully known, not %s" % shape)
    wanted, given = shape.num_elements(), array.size
    if verify_shape and tuple(shape) != array.shape:
        raise TypeError("Expected Tensor's shape: %s, got %s." % (tuple(shape), array.shape))
    if given > wanted and (wanted or array.ndim):
        raise ValueError("Too many elements provided. Needed at most %d, but received %d"
                         % (wanted, given))
    if given == wanted:
        return array.reshape(tuple(shape))
    if not wanted:
        return numpy.empty(tuple(shape), array.dtype)
    if given == 0:
        raise ValueError("no elements were given for a constant of shape %s" % shape)
    flat = array.reshape(-1)
    if given == 1:
        return numpy.full(tuple(shape), flat[0], array.dtype)
    return numpy.concatenate([flat, numpy.full(wanted - given, flat[-1],
                                               array.dtype)]).reshape(tuple(shape))


def convert_to_tensor(value: Any, dtype: Any = None, name: str | None = None,
                      preferred_dtype: Any = None, dtype_hint: Any = None) -> Tensor:
    """`value` as a Tensor: itself, the value of a variable, a stack of tensors in a list, or a
    constant.

    dtype: needed; preferred_dtype: taken where the value fits it. Raises TypeError or ValueError
    when it does not convert.
    """
    if not isinstance(value, Tensor):
        hint = preferred_dtype if dtype_hint is None else dtype_hint
        if dtype is None and hint is not None:
            try:
                return _converted(value, hint, name)
            except (TypeError, ValueError):
                pass
        value = _converted(value, dtype, name)
    elif value._is_concrete and not executing_eagerly():
        value = _core.concrete_in_graph(get_default_graph(), value, name or "Const")
    if dtype is not None and value.dtype != dtype:
        if common_precision(value.dtype, dtype) is not None:
            return _core.cast_in_scope(value, dtype)
        raise ValueError("Tensor conversion requested dtype %s for Tensor with dtype %s: %r"
                         % (_core.as_dtype(dtype).name, value.dtype.name, value))
    return value


def convert_to_wide(value: Any) -> Tensor:
    """As convert_to_tensor; in a scope of mixed precision what is narrow is cast to float32."""
    value = convert_to_tensor(value)
    wide = common_precision(value.dtype, _core.float32)
    return value if wide is None else _core.cast_in_scope(value, wide)


def convert_beside(x: Tensor, y: Any) -> tuple:
    """(x, y) as tensors of one dtype: that of x; in a scope of mixed precision float32 where only
    one of them is narrow."""
    dtype = getattr(y, "dtype", None)
    wide = common_precision(x.dtype, dtype) if isinstance(dtype, DType) else None
    return convert_to_tensor(x, wide), convert_to_tensor(y, wide or x.dtype)


def _converted(value: Any, dtype: Any, name: str | None) -> Tensor:
    if hasattr(value, "__treenail_tensor__"):
        return value.__treenail_tensor__()
    if isinstance(value, (list, tuple)) and _holds_tensor(value):
        return _pack(value, dtype, name)
    return _core.constant(get_default_graph(), value, dtype, name, False)


def _holds_tensor(values: Sequence) -> bool:
    for value in values:
        if isinstance(value, Tensor) or hasattr(value, "__treenail_tensor__"):
            return True
        if isinstance(value, (list, tuple)) and _holds_tensor(value):
            return True
    return False


def _dtypes(values: Sequence):
    """Those of the tensors in a list, as they come."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _dtypes(value)
        elif isinstance(value, Tensor) or hasattr(value, "__treenail_tensor__"):
            yield value.dtype


def _common_dtype(values: Sequence):
    """That of the first tensor; in a scope of mixed precision float32 where it is not that of
    all."""
    dtypes = _dtypes(values)
    first = next(dtypes, None)
    if _core.precision() is None:
        return first
    return next((_core.float32 for dtype in dtypes if common_precision(first, dtype)), first)


def _pack(values: Sequence, dtype: Any = None, name: str | None = None) -> Tensor:
    """A list that holds tensors, as one tensor; Python numbers in it take the tensors' dtype."""
    if dtype is None:
        dtype = _common_dtype(values)
    parts = []
    for value in values:
        nested = isinstance(value, (list, tuple)) and _holds_tensor(value)
        parts.append(_pack(value, dtype) if nested else convert_to_tensor(value, dtype))
    return ops.Pack(parts, name=name or "stack")


def convert_n_to_tensor(values: Sequence, dtype: Any = None) -> list:
    """Each of `values` as a tensor."""
    return [convert_to_tensor(value, dtype) for value in values]


def convert_to_tensor_or_indexed_slices(value: Any, dtype: Any = None, name: str | None = None):
    """`value` itself if it is an IndexedSlices, else as a tensor."""
    if isinstance(value, IndexedSlices):
        if dtype is not None and value.dtype != dtype:
            raise ValueError("Tensor conversion requested dtype %s for IndexedSlices with dtype %s"
                             % (_core.as_dtype(dtype).name, value.dtype.name))
        return value
    return convert_to_tensor(value, dtype, name)


def constant_value(tensor: Any):
    """The value of a tensor as an array where building the graph knows it, else None."""
    return tensor._known_value if isinstance(tensor, Tensor) else None


def constant_value_as_shape(tensor: Tensor) -> TensorShape:
    """The shape that an integer vector spells, as far as it is known; -1 counts as unknown."""
    elements = tensor._known_elements
    if elements is None:
        rank = tensor.shape[0] if tensor.shape.ndims == 1 else None
        return TensorShape(None if rank is None else [None] * rank)
    return TensorShape([None if e is None or e < 0 else e for e in elements])


def is_tensor(value: Any) -> bool:
    """Whether `value` is a tensor, sparse ones included, or stands for one."""
    return isinstance(value, Tensor) or hasattr(value, "__treenail_tensor__") or hasattr(
        value, "__treenail_feed__")


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor whose value each run must be given: `sess.run(y, feed_dict={x: value})`.

    shape: extents, None where any is accepted; None for any rank. Raises ValueError for a negative
    extent, RuntimeError with immediate execution.
    """
    if executing_eagerly():
        raise RuntimeError("tn.placeholder() is not compatible with eager execution.")
    return ops.Placeholder(dtype=dtype, shape=shape, name=name)


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """A tensor that has the value of `input` unless a run is given another, of this shape."""
    return ops.PlaceholderWithDefault(input, shape, name=name)


class scope_of:  # noqa: N801 (used like a function)
    """The scope of a composite function: name_scope(name, default, values)."""

    __slots__ = ("_scope",)

    def __init__(self, name: str | None, default: str, values: Sequence = ()) -> None:
        self._scope = None if executing_eagerly() else name_scope(
            name, default, [v for v in values if v is not None])

    def __enter__(self) -> str:
        return "" if self._scope is None else self._scope.__enter__()

    def __exit__(self, *unused) -> None:
        if self._scope is not None:
            self._scope.__exit__()
