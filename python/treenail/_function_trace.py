# SPDX-License-Identifier: Apache-2.0
"""A Python function traced for one kind of arguments."""

from __future__ import annotations

import weakref

from treenail import _treenail as _core
from treenail._convert import placeholder
from treenail._framework import control_dependencies, executing_eagerly, get_default_graph
from treenail._function_arguments import Arguments, Place, converted_for, map_structure_once
from treenail._function_calls import GraphCall
from treenail._function_graph import FunctionGraph, Traced, assembled
from treenail._nest import is_nested
from treenail._ops import ops
from treenail._treenail import Operation, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class Trace:
    """A function traced for one kind of arguments."""

    def __init__(self, name: str, function: Callable, arguments: Arguments, first: bool,
                 recompute: bool = False) -> None:
        self._name = name
        self._outer = weakref.ref(get_default_graph())
        self._specs = list(arguments.specs)
        structure = arguments.structure

        def made(graph: FunctionGraph) -> list:
            graph.program_order, graph.may_make_variables = True, first
            self._placeholders = [placeholder(s.dtype, s.shape, name=s.name or "args_%d" % i)
                                  for i, s in enumerate(self._specs)]
            return self._placeholders

        def call() -> Any:
            def put(value: Any) -> Any:
                if isinstance(value, Place):
                    return self._placeholders[value.number]
                return map_structure_once(put, value) if is_nested(value) else value
            return function(*put(structure[0]), **{k: put(v) for k, v in structure[1].items()})
        self._traced = Traced(name, call, made)
        graph = self._traced.graph
        self._graph_call: GraphCall | None = None
        self._function: tuple | None = None
        self.captured = graph.captured
        if get_default_graph()._immediate:
            self._graph_call = GraphCall(graph, self._traced.inputs + graph.arguments,
                                         self._traced.outputs, recompute)
        self._single = not is_nested(self._traced.structure) and len(self._traced.outputs) == 1 \
            and isinstance(self._traced.structure, Tensor)

    def valid(self) -> bool:
        """Whether the graph around is still the one it was traced in."""
        return self._outer() is get_default_graph()

    @property
    def graph(self) -> FunctionGraph:
        """The traced graph."""
        return self._traced.graph

    @property
    def inputs(self) -> list:
        """Its placeholders, and what stands for values of the surroundings."""
        return self._traced.inputs + self._traced.graph.arguments

    @property
    def outputs(self) -> list:
        """The tensors that it gives."""
        return list(self._traced.outputs)

    def __call__(self, *args: Any) -> Any:
        """Calls this trace on tensors, in order."""
        if len(args) != len(self._specs):
            raise TypeError("%s takes %d tensors, not %d" % (self._name, len(self._specs),
                                                             len(args)))
        tensors = [converted_for(spec, a) for spec, a in zip(self._specs, args)]
        for tensor, spec in zip(tensors, self._specs):
            if not spec.is_compatible_with(tensor):
                raise ValueError("%s takes %r, not %r" % (self._name, spec, tensor))
        return self.call(tensors)

    def call_at_once(self, args: tuple) -> Any:
        """As call(), of the arguments of which tensors are what counts."""
        return self.call([a for a in args if type(a) is Tensor])

    def call(self, tensors: list) -> Any:
        """What the function gives for these tensors."""
        if self._graph_call is None or not executing_eagerly():
            return self._call_in_graph(tensors)
        results = self._graph_call(tensors + self.captured)
        if self._single:
            return results[0]
        return assembled(self._traced.structure, results)

    def _call_in_graph(self, tensors: list) -> Any:
        graph = get_default_graph()
        if self._function is None:
            self._function = self._traced.add_to(graph._library)
        name, stateful = self._function
        op = ops.StatefulPartitionedCall if stateful or any(
            t.dtype == _core.resource for t in self.captured) else ops.PartitionedCall
        with control_dependencies(self._traced.graph.calls_wait_for()):
            results = op(tensors + self.captured, f=name, Tout=[
                t.dtype for t in self._traced.outputs], output_shapes=[
                    t.shape for t in self._traced.outputs], name=self._name)
        if isinstance(results, Operation):
            results = []
        return assembled(self._traced.structure, results)
