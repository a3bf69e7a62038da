# SPDX-License-Identifier: Apache-2.0
"""Variables in parts along one axis, as TensorFlow 1 has them: what a partitioner of a
variable_scope makes of get_variable.

Each part is a variable of its own, "w/part_0", "w/part_1", ..., that optimizers train. Used as a
tensor the whole is the parts one after the other; a checkpoint has it whole, under its own name, so
that it can be restored into another number of parts.
"""

from __future__ import annotations

import math
from collections import namedtuple

from treenail import _treenail as _core
from treenail._control import group
from treenail._convert import convert_to_tensor
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._treenail import DType, Operation, Tensor
from treenail._variables import delegated_operators

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator, Sequence

# What an initializer is told of a part: the whole's shape, and where in it the part begins.
PartitionInfo = namedtuple("PartitionInfo", ["full_shape", "var_offset"])
# Of which variable in checkpoints a variable is a part.
SliceInfo = namedtuple("SliceInfo", ["full_name", "full_shape", "var_offset", "var_shape"])


class PartitionedVariable:
    """A variable in parts along one axis, which iterating gives.

    Made by get_variable with a partitioner. Converts to a tensor: the parts joined.
    """

    __array_ufunc__ = None
    __array_priority__ = 100

    def __init__(self, name: str, shape: Any, dtype: Any, variable_list: Sequence,
                 partitions: Sequence) -> None:
        self._name, self._shape, self._dtype = name, TensorShape(shape), _core.as_dtype(dtype)
        self._variables, self._partitions = list(variable_list), list(partitions)
        axes = [axis for axis, count in enumerate(self._partitions) if count > 1]
        self._axis = axes[0] if axes else 0

    @property
    def name(self) -> str:
        """The whole's name."""
        return self._name

    @property
    def dtype(self) -> DType:
        """The dtype of the value."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The whole's shape."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """The whole's shape."""
        return self._shape

    @property
    def graph(self) -> Any:
        """The graph the parts belong to."""
        return self._variables[0].graph

    @property
    def _graph(self) -> Any:
        return self._variables[0]._graph

    @property
    def initializer(self) -> Operation:
        """An operation that initialises every part."""
        return group(*[v.initializer for v in self._variables])

    def as_tensor(self) -> Tensor:
        """The value of the whole: the parts joined along their axis."""
        values = [v.value() for v in self._variables]
        with self.graph.as_default(), self.graph.name_scope(self._name + "/ConcatPartitions/"):
            if len(values) == 1:
                return ops.Identity(values[0])
            return ops.Concat(values, self._axis)

    value = as_tensor

    def __treenail_tensor__(self) -> Tensor:
        return self.as_tensor()

    def __treenail_fetch__(self) -> tuple:
        return self._variables, self._joined

    def _joined(self, values: list) -> Any:
        import numpy
        return numpy.concatenate(values, self._axis)

    def __treenail_feed__(self, value: Any) -> list:
        import numpy
        array = numpy.asarray(value)
        if array.shape != tuple(self._shape.as_list()):
            raise ValueError("Cannot feed value of shape %s for variable %s, which has shape %s"
                             % (array.shape, self._name, self._shape))
        ends = [v._slice_info.var_offset[self._axis] for v in self._variables[1:]]
        return list(zip(self._variables, numpy.split(array, ends, self._axis)))

    def eval(self, session: Any = None) -> Any:
        """The value in `session`, by default the one of the surrounding `with`."""
        from treenail._session import session_or_default
        return session_or_default(session, self.graph).run(self)

    def shares(self, value: Tensor) -> list:
        """What each part has of a tensor of the whole's shape."""
        return [ops.Slice(value, list(v._slice_info.var_offset), v.shape.as_list())
                for v in self._variables]

    def assign_parts(self, method: str, value: Any) -> list:
        """The results of that method of each part, for its share of `value`: a tensor of the
        whole's shape, or another variable in such parts."""
        if isinstance(value, PartitionedVariable) and (
                [v.shape for v in value] == [v.shape for v in self]):
            shares = [v.value() for v in value]
        else:
            with self.graph.as_default():
                value = convert_to_tensor(value, self._dtype)
                if not value.shape.is_compatible_with(self._shape):
                    raise ValueError("Shapes %s of variable %s and %s of the value are incompatible"
                                     % (self._shape, self._name, value.shape))
                shares = self.shares(value)
        return [getattr(v, method)(share) for v, share in zip(self._variables, shares)]

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None) -> list:
        """Gives the parts new values; the results of their assignments, in a list."""
        return self.assign_parts("assign", value)

    def assign_add(self, delta: Any, use_locking: bool = False, name: str | None = None) -> list:
        """Adds to the parts; the results, in a list."""
        return self.assign_parts("assign_add", delta)

    def assign_sub(self, delta: Any, use_locking: bool = False, name: str | None = None) -> list:
        """Subtracts from the parts; the results, in a list."""
        return self.assign_parts("assign_sub", delta)

    def __getitem__(self, key: Any) -> Tensor:
        return self.as_tensor()[key]

    def __iter__(self) -> Iterator:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __repr__(self) -> str:
        return "<tn.PartitionedVariable %r shape=%s dtype=%s in %d parts>" % (
            self._name, self._shape, self._dtype.name, len(self))


delegated_operators(PartitionedVariable, PartitionedVariable.as_tensor)


def whole_of(parts: Sequence) -> PartitionedVariable:
    """The variable that all of its parts make up. Raises ValueError when one is missing."""
    info = parts[0]._slice_info
    parts = sorted(parts, key=lambda v: v._slice_info.var_offset)
    starts = [v._slice_info.var_offset for v in parts]
    axes = [a for a in range(len(info.full_shape)) if any(start[a] for start in starts)]
    axis = axes[0] if axes else 0
    partitions = [1] * len(info.full_shape)
    partitions[axis] = len(parts)
    if sum(v._slice_info.var_shape[axis] for v in parts) != info.full_shape[axis]:
        raise ValueError("the parts of variable %s can only be saved together, given are %s"
                         % (info.full_name, ", ".join(v._shared_name for v in parts)))
    return PartitionedVariable(info.full_name, info.full_shape, parts[0].dtype, parts, partitions)


def without_parts(variables: Sequence) -> list:
    """The variables, with the parts in place of a PartitionedVariable."""
    return [part for v in variables
            for part in (list(v) if isinstance(v, PartitionedVariable) else [v])]


# --- Making ---------------------------------------------------------------------------------------

def _partitions(partitioner: Any, name: str, shape: TensorShape, dtype: DType) -> list:
    """How many parts each axis has, as the partitioner says."""
    if not callable(partitioner):
        raise ValueError("A partitioner must be a callable, but saw: %s" % (partitioner,))
    if not shape.is_fully_defined():
        raise ValueError("Shape of a new partitioned variable (%s) must be fully defined, but "
                         "instead was %s." % (name, shape))
    counts = partitioner(shape=shape, dtype=dtype)
    if not isinstance(counts, (list, tuple)):
        raise ValueError("Partitioner must return a sequence, but saw: %s" % (counts,))
    if len(counts) != shape.ndims:
        raise ValueError("Partitioner returned a partition list that does not match the Variable's "
                         "rank: %s vs. %s" % (counts, shape))
    if any(count < 1 for count in counts):
        raise ValueError("Partitioner returned zero partitions for some axes: %s" % (counts,))
    if sum(count > 1 for count in counts) > 1:
        raise ValueError("Can only slice a variable along one dimension: shape: %s, partitioning: "
                         "%s" % (shape, counts))
    if any(count > max(extent, 1) for count, extent in zip(counts, shape.as_list())):
        raise ValueError("Partitioner returned more partitions than an axis is long: %s for shape "
                         "%s" % (counts, shape))
    return [int(count) for count in counts]


def _checked_initializer(initializer: Any, shape: TensorShape, dtype: DType) -> Any:
    """The initializer of the whole: a function, a tensor or an array, which has its shape."""
    if callable(initializer):
        return initializer
    if not isinstance(initializer, Tensor):
        if hasattr(initializer, "__treenail_tensor__"):
            initializer = convert_to_tensor(initializer, dtype)
        else:
            initializer = _core.to_array(initializer, dtype)
    given = TensorShape(initializer.shape)
    if not given.is_compatible_with(shape):
        raise ValueError("If initializer is a constant, it must have the shape %s of the variable, "
                         "not %s" % (shape, given))
    return initializer


def _initializer_of_part(whole: Any, info: SliceInfo) -> Callable:
    """The initializer of a part: its share of a value, or what the function gives for it."""
    begin, size = list(info.var_offset), list(info.var_shape)
    if isinstance(whole, Tensor):
        return lambda shape, dtype: ops.Slice(whole, begin, size)
    if not callable(whole):
        places = tuple(slice(b, b + n) for b, n in zip(begin, size))
        return lambda shape, dtype: convert_to_tensor(whole[places], dtype)
    from inspect import signature
    try:
        if "partition_info" not in signature(whole).parameters:
            return whole
    except ValueError:  # a compiled function that does not tell its parameters
        return whole
    told = PartitionInfo(list(info.full_shape), begin)
    return lambda shape, dtype: whole(shape, dtype=dtype, partition_info=told)


def make_parts(name: str, shape: TensorShape, dtype: DType, initializer: Any, partitioner: Any,
               make: Callable) -> PartitionedVariable:
    """The new variable; make(name, shape, initializer) makes each part."""
    counts = _partitions(partitioner, name, shape, dtype)
    initializer = _checked_initializer(initializer, shape, dtype)
    extents, parts = shape.as_list(), []
    axis = counts.index(max(counts))
    each, longer = divmod(extents[axis], counts[axis])
    begin = 0
    for number in range(counts[axis]):
        size = each + (number < longer)
        offset, own = [0] * len(extents), list(extents)
        offset[axis], own[axis] = begin, size
        begin += size
        info = SliceInfo(name, tuple(extents), tuple(offset), tuple(own))
        part = make("%s/part_%d" % (name, number), TensorShape(own),
                    _initializer_of_part(initializer, info))
        part._slice_info = info
        parts.append(part)
    return PartitionedVariable(name, shape, dtype, parts, counts)


# --- Partitioners ---------------------------------------------------------------------------------

def _axis_of(shape: TensorShape, axis: int) -> int:
    if not -shape.ndims <= axis < shape.ndims:
        raise ValueError("Cannot partition variable along axis %d when shape is only %s"
                         % (axis, shape))
    return axis % shape.ndims


def _bytes_of(dtype: DType, bytes_per_string_element: int) -> int:
    return bytes_per_string_element if dtype == _core.string else dtype.size


def _along(shape: TensorShape, axis: int, count: int) -> list:
    counts = [1] * shape.ndims
    counts[axis] = max(1, min(count, shape[axis]))
    return counts


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Callable:
    """A partitioner: num_shards parts along `axis`, fewer where it is shorter."""
    if isinstance(num_shards, bool) or not hasattr(num_shards, "__index__") or num_shards < 1:
        raise ValueError("num_shards must be a positive int, not %r" % (num_shards,))

    def partitioner(shape: TensorShape, dtype: DType, **unused: Any) -> list:
        return _along(shape, _axis_of(shape, axis), num_shards)
    return partitioner


def variable_axis_size_partitioner(max_shard_bytes: int, axis: int = 0,
                                   bytes_per_string_element: int = 16,
                                   max_shards: int | None = None) -> Callable:
    """A partitioner: as many parts along `axis` as keep each within max_shard_bytes, at most
    max_shards."""
    if max_shard_bytes < 1 or bytes_per_string_element < 1 or (
            max_shards is not None and max_shards < 1):
        raise ValueError("max_shard_bytes, bytes_per_string_element and max_shards must be "
                         "positive, not %r, %r and %r"
                         % (max_shard_bytes, bytes_per_string_element, max_shards))

    def partitioner(shape: TensorShape, dtype: DType, **unused: Any) -> list:
        where = _axis_of(shape, axis)
        row = shape.num_elements() // max(shape[where], 1) * _bytes_of(dtype,
                                                                       bytes_per_string_element)
        rows = max(1, max_shard_bytes // max(row, 1))
        count = math.ceil(shape[where] / rows)
        return _along(shape, where, count if max_shards is None else min(count, max_shards))
    return partitioner


def min_max_variable_partitioner(max_partitions: int = 1, axis: int = 0,
                                 min_slice_size: int = 256 << 10,
                                 bytes_per_string_element: int = 16) -> Callable:
    """A partitioner: at most max_partitions parts along `axis`, each of min_slice_size bytes or
    more."""
    if max_partitions < 1 or min_slice_size < 1 or bytes_per_string_element < 1:
        raise ValueError("max_partitions, min_slice_size and bytes_per_string_element must be "
                         "positive, not %r, %r and %r"
                         % (max_partitions, min_slice_size, bytes_per_string_element))

    def partitioner(shape: TensorShape, dtype: DType, **unused: Any) -> list:
        total = shape.num_elements() * _bytes_of(dtype, bytes_per_string_element)
        count = min(max_partitions, math.ceil(total / min_slice_size))
        return _along(shape, _axis_of(shape, axis), count)
    return partitioner


__all__ = ["PartitionedVariable", "fixed_size_partitioner", "variable_axis_size_partitioner",
           "min_max_variable_partitioner"]
