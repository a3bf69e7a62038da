# SPDX-License-Identifier: Apache-2.0
"""Operators that are known by their extents: what identities and zeros have in common."""

from __future__ import annotations

from treenail import _assertions, _math
from treenail import _treenail as _core
from treenail._control import with_dependencies
from treenail._convert import constant_value, constant_value_as_shape, convert_to_tensor
from treenail._ops import ops
from treenail._shape import TensorShape, broadcast_static_shape
from treenail._treenail import Tensor
from treenail.linalg import _batches
from treenail.linalg._operator import LinearOperator
from treenail.linalg._parts import argument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _extent(what: str, value: Any) -> tuple:
    """(int or None, tensor). Raises TypeError or ValueError for what is no extent."""
    tensor = convert_to_tensor(value, preferred_dtype=_core.int32)
    if not tensor.dtype.is_integer:
        raise TypeError("Argument %s must be integer type.  Found: %s" % (what, value))
    if tensor.shape.ndims not in (0, None):
        raise ValueError("Argument %s must be a 0-D Tensor.  Found: %s" % (what, value))
    known = constant_value(tensor)
    if known is not None and known < 0:
        raise ValueError("Argument %s must be non-negative.  Found: %s" % (what, known))
    return None if known is None else int(known), _math.cast(tensor, _core.int32)


def _batch(value: Any) -> tuple:
    """(TensorShape, int32 vector) of a batch_shape, by default of none."""
    if value is None:
        return TensorShape([]), _batches.shape_vector([])
    if isinstance(value, TensorShape):
        value = value.as_list()
    tensor = convert_to_tensor(value, preferred_dtype=_core.int32)
    if tensor.shape.num_elements() == 0:  # an empty list is of float32
        return TensorShape([]), _batches.shape_vector([])
    if not tensor.dtype.is_integer:
        raise TypeError("Argument batch_shape must be integer type.  Found: %s" % (value,))
    if tensor.shape.ndims not in (1, None):
        raise ValueError("Argument batch_shape must be a 1-D Tensor.  Found: %s" % (value,))
    known = constant_value(tensor)
    if known is not None and (known < 0).any():
        raise ValueError("Argument batch_shape must be non-negative.  Found: %s" % (known,))
    return constant_value_as_shape(tensor), _math.cast(tensor, _core.int32)


def known_extents(num_rows: Any, num_columns: Any) -> tuple:
    """(rows, columns), None where a run tells."""
    rows = _extent("num_rows", num_rows)[0]
    return rows, rows if num_columns is None else _extent("num_columns", num_columns)[0]


def _check_rows(rows: Any, argument_rows: Any, asked: bool) -> list:
    if not asked:
        return []
    return [_assertions.assert_equal(rows, argument_rows,
                                     message="Argument has another number of rows than the operator"
                                             " has columns.")]


class OfExtents(LinearOperator):
    """What is known by its extents alone. assert_proper_shapes: that they go with those of
    arguments is checked by operations where it is not known before a run."""

    def __init__(self, num_rows: Any, num_columns: Any, batch_shape: Any, dtype: Any,
                 assert_proper_shapes: bool, hints: dict, name: str) -> None:
        self._known_rows, self._row_count = _extent("num_rows", num_rows)
        self._known_columns, self._column_count = (
            (self._known_rows, self._row_count) if num_columns is None
            else _extent("num_columns", num_columns))
        self._known_batch, self._batch_extents = _batch(batch_shape)
        self._assert_proper_shapes = assert_proper_shapes
        super().__init__(dtype, name=name, **hints)

    def _shape(self) -> TensorShape:
        return self._known_batch.concatenate([self._known_rows, self._known_columns])

    def _shape_tensor(self) -> Tensor:
        return _batches.joined(self._batch_extents, [self._row_count, self._column_count])

    def _checked(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        """The argument, or its adjoint."""
        x = argument(x, adjoint_arg)
        checks = _check_rows(self._rows() if adjoint else self._columns(), _batches.extent(x, -2),
                             self._assert_proper_shapes)
        if not checks:
            return x
        return with_dependencies(checks, x)


def repeated(x: Tensor, operator: LinearOperator) -> Tensor:
    """x for the batch that its own and the operator's broadcast to."""
    return _batches.broadcast_batch(x, operator._batch_vector())


def with_added_diagonal(x: Tensor, operator: LinearOperator, diagonal: Tensor) -> Tensor:
    """x, broadcast to the operator's shape, plus a diagonal that broadcasts to it."""
    if operator.shape.is_fully_defined() and x.shape.is_fully_defined():
        shape = broadcast_static_shape(x.shape, operator.shape)
        wide = x if shape == x.shape else ops.BroadcastTo(x, _batches.shape_vector(shape.as_list()))
    else:
        wide = ops.BroadcastTo(x, ops.BroadcastArgs(ops.Shape(x), operator._shape_vector()))
    return ops.MatrixSetDiag(wide, ops.MatrixDiagPart(wide) + diagonal)


def covers_batch(operator: LinearOperator, other: LinearOperator) -> bool:
    """Whether the batch of `operator` is known to be that of products with `other`."""
    own, others = operator.batch_shape, other.batch_shape
    if not (own.is_fully_defined() and others.is_fully_defined()):
        return others.ndims == 0
    return broadcast_static_shape(own, others) == own
