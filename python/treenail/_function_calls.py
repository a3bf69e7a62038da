# SPDX-License-Identifier: Apache-2.0
"""Traced functions as immediate execution calls them, and their gradients.

A part of a traced graph, from some of its values to others, is a function. Its gradient stands in
the same graph: since a plan is cut at what it is fed, the backward part is another function of it,
fed with what the forward part kept. It is one entry of each tape, whatever it computes within.
"""

from __future__ import annotations

import itertools
from operator import and_

from treenail import _treenail as _core
from treenail._framework import _DefaultGraph
from treenail._ops import ops
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def _differentiable(tensor: Tensor) -> bool:
    return tensor.dtype.is_floating or tensor.dtype.is_complex


_sites = itertools.count()


class GraphCall:
    """The values `outputs` of a traced graph as a function of its values `inputs`."""

    def __init__(self, graph: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor],
                 recompute: bool = False, instead_of: GraphCall | None = None) -> None:
        """recompute: gradients compute what they need again, but what would be another value.
        instead_of: the call whose random numbers go on here."""
        self._graph, self._inputs, self._outputs = graph, list(inputs), list(outputs)
        self.name, _ = _core.add_function(graph._library, graph._name, graph, self._inputs,
                                          self._outputs, True)
        self._site = "%s/%d" % (self.name, next(_sites)) if instead_of is None else instead_of._site
        self._run = _core.CalledFunction(graph._library, self.name, graph, self._site)
        self._recompute = recompute
        self._forward: GraphCall | None = None  # which also gives what gradients need
        self._only: tuple | None = None  # of which inputs; of all where None
        self._kept: list = []  # values of the graph: what it gives besides
        self._backward: dict = {}

    def __call__(self, values: list) -> list:
        """The outputs for these concrete tensors."""
        if not _core.any_recorded(values):
            return self._run(values)
        return self._recorded(values)

    def _recorded(self, values: list) -> list:
        if self._forward is None or self._only is not None and self._only != _recorded(values):
            self._prepare(values)
        results = self._forward._run(values)  # type: ignore[union-attr]
        known: list = []

        def rule(arriving: list, needed: list) -> list:
            return self._gradients(values, known, arriving, needed)
        known.extend(_core.record_call(values, results, rule))
        return known[:len(self._outputs)]

    # --- Gradients --------------------------------------------------------------------------------

    def _prepare(self, values: list) -> None:
        """The forward part: it keeps what gradients of all outputs read of the graph, and what
        would be another value if it were computed again. Where some input has no gradient that
        can be made, only those count that tapes watch now."""
        which = tuple(_differentiable(t) for t in self._outputs)
        everything = tuple(t.dtype == _core.resource or _differentiable(t) for t in self._inputs)
        try:
            self._only = None
            used = self._add_gradient(which, everything)[2]
        except Exception:
            self._only = _recorded(values)
            used = self._add_gradient(which, tuple(map(and_, everything, self._only)))[2]
        self._kept = [t for t in used if t not in self._outputs and (
            not self._recompute or not _core.may_run_again(t.op, self._graph._library))]
        self._forward = GraphCall(self._graph, self._inputs, self._outputs + self._kept,
                                  instead_of=self)
        self._backward.clear()  # they were made without what is kept now

    def _add_gradient(self, arriving: tuple, needed: tuple) -> tuple:
        """(placeholders of the gradients that arrive, [gradient or None for each input], what is
        read of the graph as it was before)"""
        graph, ys = self._graph, self._outputs + self._kept
        before = graph._num_nodes
        with _DefaultGraph(graph), graph.name_scope("gradients/"), graph.control_dependencies(None):
            given = [ops.Placeholder(dtype=y.dtype, shape=y.shape, name="grad_ys")
                     for y, there in zip(ys, arriving) if there]
            asked = [x for x, there in zip(self._inputs, needed) if there]
            reached = [y for y, there in zip(ys, arriving) if there]
            found = _core.gradients(graph, reached, asked, given, self._inputs, "gradients",
                                    False) if given and asked else []
        by_input = dict(zip(asked, found))
        used = _read_of_older(graph, before)
        return given, [by_input.get(x) for x in self._inputs], used

    def _gradients(self, values: list, known: list, arriving: list, needed: list) -> list:
        """Called when a tape goes back through a call: one gradient per input, slices as
        tuples."""
        arriving = [_dense(g) for g in arriving]
        key = tuple(g is not None for g in arriving), tuple(needed)
        call, form = self._backward.get(key) or self._make_backward(*key)
        if call is None:
            return [None] * len(values)
        results = iter(call(values + known + [g for g in arriving if g is not None]))
        return [None if parts is None else next(results) if parts == 1 else
                tuple(next(results) for _ in range(parts)) for parts in form]

    def _make_backward(self, arriving: tuple, needed: tuple) -> tuple:
        given, found, _ = self._add_gradient(arriving, needed)
        outputs = [t for g in found if g is not None
                   for t in (g if isinstance(g, tuple) else (g,))]
        form = [None if g is None else len(g) if isinstance(g, tuple) else 1 for g in found]
        call = None
        if outputs:
            fed = self._inputs + self._outputs + self._kept + given
            call = GraphCall(self._graph, *_each_once(self._graph, fed, outputs))
        self._backward[arriving, needed] = call, form
        return call, form


def _each_once(graph: Any, inputs: list, outputs: list) -> tuple:
    """The same inputs and outputs, where a value that would be fed twice is fed as another that
    nobody reads."""
    seen: set = set()
    once = []
    for tensor in inputs:
        if tensor in seen:
            with _DefaultGraph(graph), graph.control_dependencies(None):
                tensor = ops.Placeholder(dtype=tensor.dtype, shape=tensor.shape, name="again")
        seen.add(tensor)
        once.append(tensor)
    return once, outputs


def _read_of_older(graph: Any, before: int) -> list:
    """The values of operations below number `before` that those from it on read, and the values of
    operations that give another one each time, as far as such a value leads to these."""
    found: dict = {}
    stack = []
    for op in graph.get_operations()[before:]:
        for tensor in op.inputs:
            if tensor.op._id < before:
                stack.append(tensor)
                found[tensor] = None
    seen = set(stack)
    while stack:
        tensor = stack.pop()
        if not _core.may_run_again(tensor.op, graph._library):
            found[tensor] = None
        for each in tensor.op.inputs:
            if each not in seen:
                seen.add(each)
                stack.append(each)
    return [t for t in found if t.op.type not in ("Const", "Placeholder")]


def _recorded(values: list) -> tuple:
    """Which of these tensors tapes watch."""
    return tuple(bool(_core.any_recorded([value])) for value in values)


def _dense(gradient: Any) -> Any:
    """A gradient that arrives, as one tensor."""
    if not isinstance(gradient, tuple):
        return gradient
    from treenail._convert import IndexedSlices, convert_to_tensor
    return convert_to_tensor(IndexedSlices(*gradient))
