# SPDX-License-Identifier: Apache-2.0
"""What the functions that run cells are given: cells, first states, lengths; and what a row keeps
when its sequence is over."""

from __future__ import annotations

from treenail._array import shape_of
from treenail._assertions import Assert
from treenail._convert import convert_to_tensor
from treenail._framework import control_dependencies
from treenail._math import cast
from treenail._nest import map_structure
from treenail._ops import ops
from treenail._tensor_array import TensorArray
from treenail._treenail import Tensor, int64
from treenail.rnn._base import RNNCell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def check_cell(cell: Any, what: str) -> None:
    """Raises TypeError for what is no cell."""
    if not isinstance(cell, RNNCell):
        raise TypeError("The argument %s is not an RNNCell: %r" % (what, cell))


def converted(value: Any) -> Any:
    """A leaf of a state: an array of tensors as it is, anything else as a tensor."""
    return value if isinstance(value, TensorArray) else convert_to_tensor(value)


def first_state(cell: RNNCell, state: Any, batch_size: Any, dtype: Any) -> Any:
    """The state that is given, or the cell's first one. Raises ValueError without either."""
    if state is not None:
        return map_structure(converted, state)
    if dtype is None:
        raise ValueError("If there is no initial_state, you must give a dtype.")
    return cell.get_initial_state(batch_size=batch_size, dtype=dtype)


def lengths_of(sequence_length: Any, batch_size: Any = None) -> Tensor | None:
    """The lengths, int64. batch_size: how many there must be, an int or a scalar tensor.

    Raises ValueError for what is no vector of that many; where only a run tells, the run raises
    InvalidArgumentError.
    """
    if sequence_length is None:
        return None
    lengths = convert_to_tensor(sequence_length)
    if lengths.shape.ndims not in (None, 1):
        raise ValueError("sequence_length must be a vector of length batch_size, but saw shape: %s"
                         % lengths.shape)
    if batch_size is not None:
        lengths = _one_for_each_row(lengths, batch_size)
    return cast(lengths, int64)


def _one_for_each_row(lengths: Tensor, batch_size: Any) -> Tensor:
    known = lengths.shape[0] if lengths.shape.ndims is not None else None
    if known is not None and isinstance(batch_size, int):
        if known != batch_size:
            raise ValueError("sequence_length must be a vector of length batch_size, which is %d, "
                             "but saw shape: %s" % (batch_size, lengths.shape))
        return lengths
    # One length would do for all rows without this, as what is chosen by it broadcasts.
    rule = Assert(ops.Equal(ops.Size(lengths), batch_size), [
        "Expected shape for Tensor %s is " % lengths.name, ops.Pack([batch_size]),
        " but saw shape: ", shape_of(lengths)])
    with control_dependencies([rule]):
        return ops.Identity(lengths)


def kept(over: Tensor, behind: Any, new: Any) -> Any:
    """`behind` in the rows whose sequence is over, `new` in the others. What has no rows (an array
    of tensors, a scalar) is always the new one."""
    if isinstance(new, TensorArray) or new.shape.ndims == 0:
        return new
    ndims = new.shape.ndims
    if ndims is None:
        raise ValueError("outputs and states must have a known rank when sequence_length is given")
    chosen = ops.Select(ops.Reshape(over, [-1] + [1] * (ndims - 1)), behind, new)
    chosen.set_shape(new.shape)
    return chosen


def zeros_behind(over: Tensor, output: Tensor) -> Tensor:
    """An output of one step with zeros in the rows whose sequence is over."""
    return kept(over, ops.ZerosLike(output), output)
