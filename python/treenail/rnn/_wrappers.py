# SPDX-License-Identifier: Apache-2.0
"""Cells around other cells: stacks, dropout, residual connections, devices."""

from __future__ import annotations

import hashlib

from treenail import _normalization
from treenail._array import concat, split
from treenail._convert import constant_value, convert_to_tensor
from treenail._framework import device, graph_of
from treenail._math import cast
from treenail._ops import ops
from treenail._random import random_uniform
from treenail._treenail import Tensor
from treenail._variable_scope import variable_scope
from treenail.rnn._base import CellsWithin, LSTMStateTuple, RNNCell, positive_int
from treenail._nest import flatten, is_nested, map_structure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence


def _check_cell(cell: Any, what: str = "cell") -> None:
    if not isinstance(cell, RNNCell):
        raise TypeError("The parameter %s is not an RNNCell: %r" % (what, cell))


class MultiRNNCell(CellsWithin, RNNCell):
    """Cells in a row, the outputs of each the inputs of the next.

    The state is a tuple of theirs; without state_is_tuple they are joined along axis 1. Variable
    scopes: cell_0, cell_1, ...
    """

    def __init__(self, cells: Sequence, state_is_tuple: bool = True) -> None:
        super().__init__()
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        if not is_nested(cells):
            raise TypeError("cells must be a list or tuple, but saw: %r." % (cells,))
        for cell in cells:
            _check_cell(cell, "cells")
        if not state_is_tuple and any(is_nested(c.state_size) for c in cells):
            raise ValueError("Some cells return tuples of states, but the flag state_is_tuple is "
                             "not set.  State sizes are: %s" % [c.state_size for c in cells])
        self._within, self._state_is_tuple = list(cells), state_is_tuple

    def _cells(self) -> list:
        return self._within

    @property
    def state_size(self) -> Any:
        """A tuple of the cells' sizes, or their sum."""
        sizes = tuple(cell.state_size for cell in self._within)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        """That of the last cell."""
        return self._within[-1].output_size

    def call(self, inputs: Tensor, state: Any) -> tuple:
        """(outputs of the last cell, new states)."""
        if self._state_is_tuple:
            if not is_nested(state) or len(state) != len(self._within):
                raise ValueError("Expected state to be a tuple of length %d, but received: %r"
                                 % (len(self._within), state))
            states = list(state)
        else:
            states = list(split(state, [cell.state_size for cell in self._within], 1))
        for i, cell in enumerate(self._within):
            with variable_scope("cell_%d" % i):
                inputs, states[i] = cell(inputs, states[i])
        return inputs, tuple(states) if self._state_is_tuple else concat(states, 1)

    def _takes_sequences(self) -> bool:
        return (type(self).call is MultiRNNCell.call and self._state_is_tuple
                and all(cell._takes_sequences() for cell in self._within))

    def _sequence(self, inputs: Tensor, state: Any, lengths: Tensor | None) -> tuple:
        states = []
        for i, cell in enumerate(self._within):
            with variable_scope("cell_%d" % i):
                inputs, last = cell._over(inputs, state[i], lengths)
                states.append(last)
        return inputs, tuple(states)


class _Wrapper(CellsWithin, RNNCell):
    """A cell around one other, in that one's variable scope."""

    def __init__(self, cell: RNNCell) -> None:
        super().__init__()
        _check_cell(cell)
        self._cell = cell

    def _cells(self) -> list:
        return [self._cell]

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple:
        """(outputs, new state) of one step."""
        inputs = convert_to_tensor(inputs)
        with graph_of([inputs]).as_default():
            return self._step(inputs, state, scope)

    def _step(self, inputs: Tensor, state: Any, scope: Any) -> tuple:
        raise NotImplementedError("Abstract method")

    def _takes_sequences(self) -> bool:
        return type(self) in _OF_SEQUENCES and self._cell._takes_sequences()

    def _over(self, inputs: Tensor, state: Any, lengths: Tensor | None) -> tuple:
        return self._sequence(inputs, state, lengths)

    @property
    def wrapped_cell(self) -> RNNCell:
        """The cell within."""
        return self._cell

    @property
    def state_size(self) -> Any:
        """That of the cell within."""
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        """That of the cell within."""
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """That of the cell within."""
        return self._cell.zero_state(batch_size, dtype)


def _default_filter(state: Any) -> Any:
    """Dropout may touch all parts of a state but the c of an LSTM."""
    return LSTMStateTuple(c=False, h=True) if isinstance(state, LSTMStateTuple) else True


def _chosen(visitor: Callable, state: Any, wanted: bool = True) -> Any:
    """The state's structure with a bool for each leaf, as the visitor says of it and of what it
    lies in."""
    answer = visitor(state) if wanted else False
    if not is_nested(state):
        return bool(answer)
    answers = [answer] * len(state) if isinstance(answer, bool) else list(answer)
    return [_chosen(visitor, part, a) for part, a in zip(state, answers)]


class DropoutWrapper(_Wrapper):
    """Dropout on inputs, outputs and state of a cell (Gal and Ghahramani 2015, arXiv:1512.05287).

    A probability is that of keeping an element, a number or a scalar tensor. variational_recurrent:
    the same elements are dropped in every step; needs dtype, and input_size where inputs are
    dropped. dropout_state_filter_visitor(state): the same structure of bools, by default all but
    the c of an LSTM.
    """

    def __init__(self, cell: RNNCell, input_keep_prob: Any = 1.0, output_keep_prob: Any = 1.0,
                 state_keep_prob: Any = 1.0, variational_recurrent: bool = False,
                 input_size: Any = None, dtype: Any = None, seed: int | None = None,
                 dropout_state_filter_visitor: Callable | None = None) -> None:
        super().__init__(cell)
        if dropout_state_filter_visitor is not None and not callable(dropout_state_filter_visitor):
            raise TypeError("dropout_state_filter_visitor must be callable")
        self._filter = dropout_state_filter_visitor or _default_filter
        self._keep = {}
        for what, value in (("input", input_keep_prob), ("state", state_keep_prob),
                            ("output", output_keep_prob)):
            known = value if isinstance(value, (int, float)) else constant_value(
                convert_to_tensor(value))
            if known is not None and not 0 <= known <= 1:
                raise ValueError("Parameter %s_keep_prob must be between 0 and 1: %s"
                                 % (what, known))
            self._keep[what] = value if known is None else float(known)
        self._seed, self._variational = seed, variational_recurrent
        self._noise: dict = {}
        if variational_recurrent:
            self._make_noise(input_size, dtype)

    def _make_noise(self, input_size: Any, dtype: Any) -> None:
        if dtype is None:
            raise ValueError("When variational_recurrent=True, dtype must be provided")
        if self._drops("input") and input_size is None:
            raise ValueError("When variational_recurrent=True and input_keep_prob < 1.0 or is "
                             "unknown, input_size must be provided")
        sizes = {"input": input_size, "state": self.state_size, "output": self.output_size}
        for what, size in sizes.items():
            if self._drops(what):
                # One row of noise for the whole batch, drawn again in each run.
                self._noise[what] = [
                    random_uniform([1, positive_int(leaf, "the size of the " + what)],
                                   dtype=dtype, seed=self._seed_of(what, i))
                    for i, leaf in enumerate(flatten(size))]

    def _drops(self, what: str) -> bool:
        return not isinstance(self._keep[what], float) or self._keep[what] < 1

    def _seed_of(self, what: str, index: int) -> int | None:
        if self._seed is None:
            return None
        text = "%s%s_%d" % (self._seed, what, index)
        return int(hashlib.md5(text.encode()).hexdigest()[:8], 16) & 0x7FFFFFFF

    def _dropped(self, what: str, value: Any) -> Any:
        """Dropout of all leaves that the filter chooses."""
        if not self._drops(what):
            return value
        visitor = self._filter if what == "state" else (lambda _: True)
        leaves = iter(range(len(flatten(value))))

        def one(leaf: Tensor, drop: bool) -> Tensor:
            index = next(leaves)
            if not drop:
                return leaf
            if not self._variational:
                return _normalization.dropout(leaf, keep_prob=self._keep[what],
                                              seed=self._seed_of(what, index))
            keep = self._keep[what]
            keep = convert_to_tensor(keep, leaf.dtype) if isinstance(keep, float) else cast(
                keep, leaf.dtype)
            return leaf / keep * ops.Floor(keep + cast(self._noise[what][index], leaf.dtype))
        return map_structure(one, value, _chosen(visitor, value))

    def _step(self, inputs: Tensor, state: Any, scope: Any) -> tuple:
        output, new_state = self._cell(self._dropped("input", inputs), state, scope)
        return self._dropped("output", output), self._dropped("state", new_state)

    def _takes_sequences(self) -> bool:
        return super()._takes_sequences() and not self._drops("state")

    def _sequence(self, inputs: Tensor, state: Any, lengths: Tensor | None) -> tuple:
        # Noise of one row for the whole batch serves all of time as well; other noise is
        # independent anyway.
        outputs, last = self._cell._over(self._dropped("input", inputs), state, lengths)
        return self._dropped("output", outputs), last


def _check_residual(inputs: Tensor, outputs: Tensor) -> None:
    if not inputs.shape.is_compatible_with(outputs.shape):
        raise ValueError("the inputs of a residual cell have shape %s, its outputs %s"
                         % (inputs.shape, outputs.shape))


class ResidualWrapper(_Wrapper):
    """outputs + inputs of a cell, or residual_fn(inputs, outputs)."""

    def __init__(self, cell: RNNCell, residual_fn: Callable | None = None) -> None:
        super().__init__(cell)
        self._residual_fn = residual_fn

    def _step(self, inputs: Tensor, state: Any, scope: Any) -> tuple:
        outputs, new_state = self._cell(inputs, state, scope)
        if self._residual_fn is not None:
            return self._residual_fn(inputs, outputs), new_state
        _check_residual(inputs, outputs)
        return inputs + outputs, new_state

    def _takes_sequences(self) -> bool:
        return super()._takes_sequences() and self._residual_fn is None

    def _sequence(self, inputs: Tensor, state: Any, lengths: Tensor | None) -> tuple:
        outputs, last = self._cell._over(inputs, state, lengths)
        _check_residual(inputs, outputs)
        return inputs + outputs, last


class DeviceWrapper(_Wrapper):
    """A cell whose operations are placed on a device."""

    def __init__(self, cell: RNNCell, device: Any) -> None:
        super().__init__(cell)
        self._device = device

    def _step(self, inputs: Tensor, state: Any, scope: Any) -> tuple:
        with device(self._device):
            return self._cell(inputs, state, scope)

    def _sequence(self, inputs: Tensor, state: Any, lengths: Tensor | None) -> tuple:
        with device(self._device):
            return self._cell._over(inputs, state, lengths)


# A wrapper of somebody's own may do anything in a step.
_OF_SEQUENCES = (DropoutWrapper, ResidualWrapper, DeviceWrapper)
