# SPDX-License-Identifier: Apache-2.0
"""A cell that reads of a memory in each step: AttentionWrapper and its state."""

from __future__ import annotations

import collections

from treenail._array import concat, expand_dims, identity, squeeze, zeros
from treenail._convert import convert_to_tensor, scope_of
from treenail._framework import control_dependencies
from treenail._math import matmul
from treenail._nest import flatten, is_nested, map_structure
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._tensor_array import TensorArray
from treenail._treenail import Tensor, int32
from treenail.rnn._base import CellsWithin, RNNCell, batch_of
from treenail.rnn._given import check_cell
from treenail.seq2seq._attention import AttentionMechanism, projection, same_batch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_TILE = ("Are you using the BeamSearchDecoder?  You may need to tile %s via the "
         "tn.seq2seq.tile_batch function with argument multiplier=beam_width.")


class AttentionWrapperState(collections.namedtuple("AttentionWrapperState", (
        "cell_state", "attention", "time", "alignments", "alignment_history", "attention_state"))):
    """The state of an AttentionWrapper: that of the cell within, the last attention [batch, size],
    the number of the step, the last alignments [batch, memory time], a TensorArray of all of them
    or (), and the state of the mechanism. For several mechanisms the last three are tuples."""

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """The state with these parts in place of its own. Raises ValueError for parts of another
        shape or structure."""
        def checked(old: Any, new: Any) -> Any:
            if not isinstance(old, Tensor) or not isinstance(new, Tensor):
                return new
            if not old.shape.is_compatible_with(new.shape):
                raise ValueError("The shape of the AttentionWrapperState is expected to be same as "
                                 "the one to clone. self.shape: %s, input.shape: %s"
                                 % (old.shape, new.shape))
            new = identity(new)
            new.set_shape(old.shape)
            return new
        return map_structure(checked, self, super()._replace(**kwargs))


def _attended(mechanism: Any, cell_output: Tensor, state: Any, layer: Any) -> tuple:
    """(attention, alignments, next state): the values of the memory weighted by the alignments, by
    way of the layer where there is one."""
    alignments, next_state = mechanism(cell_output, state)
    context = squeeze(matmul(expand_dims(alignments, 1), mechanism.values), [1])
    attention = context if layer is None else layer(concat([cell_output, context], 1))
    return attention, alignments, next_state


def _checked_mechanisms(given: Any) -> tuple:
    if not isinstance(given, (list, tuple)):
        if not isinstance(given, AttentionMechanism):
            raise TypeError("attention_mechanism must be an AttentionMechanism or list of multiple "
                            "AttentionMechanism instances, saw type: %s" % type(given).__name__)
        return (given,)
    for one in given:
        if not isinstance(one, AttentionMechanism):
            raise TypeError("attention_mechanism must contain only instances of "
                            "AttentionMechanism, saw type: %s" % type(one).__name__)
    return tuple(given)


def _one_each(given: Any, mechanisms: tuple, what: str, kind: str) -> tuple:
    given = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    if len(given) != len(mechanisms):
        raise ValueError("If provided, %s must contain exactly one %s per attention_mechanism, "
                         "saw: %d vs %d" % (what, kind, len(given), len(mechanisms)))
    return given


def _output_units(layer: Any) -> int:
    units = getattr(layer, "units", None)
    if not isinstance(units, int):
        raise ValueError("attention_layer must say its size in `units`, as Dense does: %r"
                         % (layer,))
    return units


class AttentionWrapper(CellsWithin, RNNCell):
    """A cell around another whose inputs are joined with what is read of a memory, and whose
    outputs ask for what to read next (Luong, Pham and Manning 2015, arXiv:1508.04025; input
    feeding).

    In each step the cell gets cell_input_fn(inputs, attention), by default both joined along the
    last axis; its output is the query to attention_mechanism, one or a list; what is read, the
    context, is the attention, or attention_layer([output, context]). attention_layer_size: of a
    dense layer without bias for that, one for each mechanism; attention_layer: the layers
    themselves. output_attention: the attention is the output, else the cell's own is.
    alignment_history: the state keeps the alignments of all steps. initial_cell_state: what
    zero_state begins with, the final state of an encoder for instance. attention_fn(mechanism,
    cell_output, attention_state, attention_layer): gives (attention, alignments, next state) in
    place of the above. Shapes: inputs [batch, size], outputs [batch, output_size].

    Raises TypeError for what is no cell or mechanism and functions that are not callable,
    ValueError for layers of another number than mechanisms, and for layers and sizes both. Batches
    that differ between memory, states and queries: InvalidArgumentError, by the graph or the run.
    """

    def __init__(self, cell: RNNCell, attention_mechanism: Any, attention_layer_size: Any = None,
                 alignment_history: bool = False, cell_input_fn: Callable | None = None,
                 output_attention: bool = True, initial_cell_state: Any = None,
                 name: str | None = None, attention_layer: Any = None,
                 attention_fn: Callable | None = None) -> None:
        super().__init__(name=name)
        check_cell(cell, "cell")
        for what, function in (("cell_input_fn", cell_input_fn), ("attention_fn", attention_fn)):
            if function is not None and not callable(function):
                raise TypeError("%s must be callable, saw type: %s"
                                % (what, type(function).__name__))
        self._is_multi = isinstance(attention_mechanism, (list, tuple))
        self._mechanisms = _checked_mechanisms(attention_mechanism)
        self._cell, self._alignment_history = cell, alignment_history
        self._output_attention = output_attention
        self._cell_input_fn = cell_input_fn or (lambda x, attention: concat([x, attention], -1))
        self._attention_fn = attention_fn or _attended
        self._set_layers(attention_layer_size, attention_layer)
        with scope_of(name, "AttentionWrapperInit"):
            self._initial_cell_state = self._checked_state(initial_cell_state)

    def _set_layers(self, sizes: Any, layers: Any) -> None:
        if sizes is not None and layers is not None:
            raise ValueError("Only one of attention_layer_size and attention_layer should be set: "
                             "%r, %r" % (sizes, layers))
        self._layers: tuple = (None,) * len(self._mechanisms)
        if sizes is not None:
            sizes = _one_each(sizes, self._mechanisms, "attention_layer_size", "integer")
            self._layers = tuple(
                projection(size, "attention_layer", mechanism.dtype)
                for size, mechanism in zip(sizes, self._mechanisms))
        elif layers is not None:
            self._layers = _one_each(layers, self._mechanisms, "attention_layer", "layer")
        self._attention_size = sum(
            mechanism.values.shape[-1] if layer is None else _output_units(layer)
            for layer, mechanism in zip(self._layers, self._mechanisms))

    def _checks(self, batch_size: Any, what: str, tile: str) -> list:
        message = ("When %s AttentionWrapper %s: Non-matching batch sizes between the memory "
                   "(encoder output) and %s.  %s" % (what[0], self.name, what[1], _TILE % tile))
        return [op for mechanism in self._mechanisms
                for op in same_batch(batch_size, mechanism.batch_size, message)]

    def _checked_state(self, state: Any) -> Any:
        if state is None:
            return None
        state = map_structure(convert_to_tensor, state)
        with control_dependencies(self._checks(
                batch_of(flatten(state)[-1]), ("constructing", "initial_cell_state"),
                "your initial state")):
            return map_structure(identity, state)

    def _cells(self) -> list:
        within = [self._cell, *self._layers]
        for mechanism in self._mechanisms:
            within += [getattr(mechanism, "query_layer", None),
                       getattr(mechanism, "memory_layer", None)]
        return [part for part in within if hasattr(part, "variables")]

    def _item_or_tuple(self, parts: Any) -> Any:
        parts = tuple(parts)
        return parts if self._is_multi else parts[0]

    def _each(self, part: Any) -> tuple:
        return tuple(part) if self._is_multi else (part,)

    @property
    def output_size(self) -> Any:
        """The size of the attention, or without output_attention that of the cell's outputs."""
        return self._attention_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> AttentionWrapperState:
        """An AttentionWrapperState of sizes."""
        sizes = [mechanism.alignments_size for mechanism in self._mechanisms]
        return AttentionWrapperState(
            cell_state=self._cell.state_size, attention=self._attention_size,
            time=TensorShape([]), alignments=self._item_or_tuple(sizes),
            alignment_history=self._item_or_tuple(
                size if self._alignment_history else () for size in sizes),
            attention_state=self._item_or_tuple(m.state_size for m in self._mechanisms))

    def zero_state(self, batch_size: Any, dtype: Any) -> AttentionWrapperState:
        """The first state: initial_cell_state or the cell's zeros, no attention yet. Errors at run
        time: InvalidArgumentError for another batch size than the memory's."""
        with scope_of(None, type(self).__name__ + "ZeroState"):
            state = self._initial_cell_state
            if state is None:
                state = self._cell.get_initial_state(batch_size=batch_size, dtype=dtype)
            with control_dependencies(self._checks(
                    batch_size, ("calling zero_state of", "the requested batch size"),
                    "your encoder outputs")):
                state = map_structure(identity, state)
            first = [m.initial_alignments(batch_size, dtype) for m in self._mechanisms]
            return AttentionWrapperState(
                cell_state=state, time=zeros([], int32),
                attention=zeros(ops.Pack([batch_size, self._attention_size]), dtype),
                alignments=self._item_or_tuple(first),
                attention_state=self._item_or_tuple(
                    m.initial_state(batch_size, dtype) for m in self._mechanisms),
                alignment_history=self._item_or_tuple(
                    TensorArray(dtype, 0, dynamic_size=True, element_shape=alignments.shape)
                    if self._alignment_history else () for alignments in first))

    def call(self, inputs: Tensor, state: AttentionWrapperState) -> tuple:
        """(attention or the cell's outputs, next state). Raises TypeError for another state."""
        if not isinstance(state, AttentionWrapperState):
            raise TypeError("Expected state to be instance of AttentionWrapperState. Received type "
                            "%s instead." % type(state).__name__)
        output, cell_state = self._cell(self._cell_input_fn(inputs, state.attention),
                                        state.cell_state)
        if is_nested(output):
            raise TypeError("the cell within an AttentionWrapper must give one tensor, not %r"
                            % (output,))
        with control_dependencies(self._checks(batch_of(output), (
                "applying", "the query (decoder output)"), "your memory input")):
            output = identity(output)
        found = [self._attention_fn(mechanism, output, last, layer) for mechanism, last, layer in
                 zip(self._mechanisms, self._each(state.attention_state), self._layers)]
        attention = concat([part for part, _, _ in found], 1)
        next_state = AttentionWrapperState(
            time=state.time + 1, cell_state=cell_state, attention=attention,
            alignments=self._item_or_tuple(alignments for _, alignments, _ in found),
            attention_state=self._item_or_tuple(last for _, _, last in found),
            alignment_history=self._item_or_tuple(
                history.write(state.time, alignments) if self._alignment_history else ()
                for history, (_, alignments, _) in zip(self._each(state.alignment_history),
                                                       found)))
        return attention if self._output_attention else output, next_state
