# SPDX-License-Identifier: Apache-2.0
"""Bodies of functions: graphs that read values of the graph around them, which become arguments."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import IndexedSlices, convert_to_tensor
from treenail._framework import Graph, _ControlDependencies, _DefaultGraph, _flat_list
from treenail._framework import get_default_graph
from treenail._nest import flatten, is_nested, map_structure
from treenail._ops import ops
from treenail._sparse import SparseTensor
from treenail._tensor_array import TensorArray
from treenail._treenail import Operation, Tensor
from treenail._variable_scope import _store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence


class FunctionGraph(Graph):
    """The body of a function while it is built. Variables and collections are those of the graph
    around."""

    def __init__(self, name: str, outer: Graph) -> None:
        super().__init__()
        _core.mark_function_body(self)
        self._name, self._outer = name, outer
        self._collections = outer._collections
        self.seed = outer.seed
        self._ask_for_devices_of(outer)
        self._variable_store = _store(outer)
        # What is traced with immediate execution ends with whoever holds it.
        self._own_library = Graph() if outer._immediate else None
        self._stand_ins: dict = {}  # what is used here of the graph around: what stands for it
        self.captured: list = []  # of the graph around, those that are passed as arguments
        self.arguments: list = []  # what stands for them, behind the function's own arguments
        self.waits_for: list = []  # operations of the graph around that operations here wait for
        # Whether what its operations do is done in their order, and all of it (tn.function).
        self.program_order: bool = getattr(outer, "program_order", False)
        self.may_make_variables = True

    @property
    def _root(self) -> Graph:
        return self._outer._root

    @property
    def _library(self) -> Graph:
        return self._outer._library if self._own_library is None else self._own_library

    def _is_within(self, graph: Graph) -> bool:
        return self._outer is graph or self._outer._is_within(graph)

    def _op_seed(self) -> int:
        return self._outer._op_seed() + self._num_nodes

    def capture(self, tensor: Tensor, copy: bool = True) -> Tensor:
        """What stands in this body for a tensor of a graph around it: a copy of a small constant
        where `copy` is given, else an argument. Raises ValueError for a tensor of another graph."""
        found = self._stand_ins.get(tensor)
        if found is not None:
            return found
        if not self._is_within(tensor.graph):
            raise ValueError("%r is of another graph%s." % (
                tensor, "" if not isinstance(tensor.graph, FunctionGraph) else
                ": it belongs to the body of %r; return it from there" % tensor.graph._name))
        if tensor.graph is not self._outer:
            tensor = self._stand_ins[tensor] = self._stand_in(self._outer.capture(tensor), copy)
            return tensor
        return self._stand_in(tensor, copy)

    def _stand_in(self, tensor: Tensor, copy: bool) -> Tensor:
        found = self._stand_ins.get(tensor)
        if found is not None:
            return found
        name = self._unique_name(tensor.op.name.rpartition("/")[2])
        found = _core.copied_constant(self, tensor, name) if copy else None
        if found is None:
            found = _core.body_argument(self, tensor, name)
            self.captured.append(tensor)
            self.arguments.append(found)
        self._stand_ins[tensor] = found
        return found

    def capture_concrete(self, tensor: Tensor, name: str) -> Tensor:
        """What stands in this body for a tensor of immediate execution that is too large for a
        constant, or state."""
        outer = self._outer
        if outer._immediate:
            found = _core.body_argument(self, tensor, self._unique_name("captured"))
            self.captured.append(tensor)
            self.arguments.append(found)
            return found
        return self._stand_in(_core.concrete_in_graph(outer, tensor, name), copy=False)

    def run_all_in_order(self) -> list:
        """What the function's results must wait for: every operation that does something. Those
        of which others see the order keep it."""
        acting = [(op, _core.acts(op)) for op in self.get_operations()]
        seen = [op for op, kind in acting if kind == 2]
        for before, op in zip(seen, seen[1:]):
            op._add_control_input(before)
        return [op for op, kind in acting if kind == 1] + seen[-1:]

    def control_dependencies(self, control_inputs) -> _ControlDependencies:
        if control_inputs is None:
            return super().control_dependencies(None)
        here: list = []
        for item in _flat_list(control_inputs):
            if getattr(item, "graph", self) is self:
                here.append(item)
            else:  # done before the function is called
                self.waits_for.append(getattr(item, "op", item))
        return super().control_dependencies(here)

    def _op_in_graph_around(self, op: Operation) -> Operation | None:
        """What the call waits for, for an operation of some graph around."""
        if op.graph is self._outer:
            return op
        if isinstance(self._outer, FunctionGraph):
            self._outer.waits_for.append(op)
        return None

    def calls_wait_for(self) -> list:
        """Operations of the graph directly around."""
        found = [self._op_in_graph_around(op) for op in self.waits_for]
        return [op for op in found if op is not None]


class GradientBody(FunctionGraph):
    """The copy of a body that is being differentiated, as gradient rules written in Python see it.
    What they hold on to of the body itself is found here under its name; what they read of the
    graph around becomes an argument of the backward part."""

    def __init__(self, outer: Graph) -> None:
        super().__init__("gradients", outer)

    def _is_within(self, graph: Graph) -> bool:
        return _core.stands_for(self, graph) or super()._is_within(graph)

    def capture(self, tensor: Tensor, copy: bool = True) -> Tensor:
        here = self.counterpart(tensor)
        return super().capture(tensor, copy) if here is None else here

    def counterpart(self, tensor: Any) -> Any:
        if not isinstance(tensor, Tensor) or tensor.graph is self:
            return None
        return _core.counterpart(self, tensor)

    def control_dependencies(self, control_inputs) -> _ControlDependencies:
        if control_inputs is None:
            return super().control_dependencies(None)
        return super().control_dependencies([self._done(item) for item in _flat_list(
            control_inputs)])

    def _done(self, item: Any) -> Any:
        """What is there once an operation of some graph has run: arguments are, when the backward
        part is called."""
        item = item.handle if hasattr(item, "handle") else item
        if item.graph is self:
            return item
        if _core.stands_for(self, item.graph):
            return self.get_operation_by_name(getattr(item, "op", item).name)
        with _DefaultGraph(self._outer), self._outer.control_dependencies([item]):
            done = ops.Identity(convert_to_tensor(True))
        return self.capture(done)


def make_variable_in(graph: Any) -> None:
    """Raises ValueError where a function that is traced may make no variables any more."""
    while isinstance(graph, FunctionGraph):
        if not graph.may_make_variables:
            raise ValueError("tn.function-decorated function tried to create variables on "
                             "non-first call: make them outside, or keep them (if self.v is None)")
        graph = graph._outer


def _capture(graph: FunctionGraph, tensor: Tensor) -> Tensor:
    return graph.capture(tensor)


def _capture_concrete(graph: FunctionGraph, tensor: Tensor, name: str) -> Tensor:
    return graph.capture_concrete(tensor, name)


class Traced:
    """A body that has been built: what the Python function returned, in its graph."""

    def __init__(self, name: str, function: Callable, arguments: Callable | None = None) -> None:
        """arguments: called with the new graph, gives the function's arguments there, a list."""
        outer = get_default_graph()
        self.graph = FunctionGraph(name, outer)
        with _DefaultGraph(self.graph):
            self.inputs = [] if arguments is None else arguments(self.graph)
            returned = function()
            self.structure = map_structure(self._as_value, returned) if is_nested(
                returned) else self._as_value(returned)
        self.outputs: list = [tensor for leaf in flatten(self.structure)
                              for tensor in components(leaf)]
        if self.graph.program_order:
            self._wait_for_all()

    def _wait_for_all(self) -> None:
        """The results come when all that the body does is done. A body without results gives
        one."""
        with _DefaultGraph(self.graph):
            acting = self.graph.run_all_in_order()
            outputs = self.outputs or [convert_to_tensor(True)]
            if acting:
                with self.graph.control_dependencies([_core.create_op(
                        self.graph, "NoOp", (), None, "done", acting)]):
                    outputs = [ops.Identity(t) for t in outputs]
            if self.outputs:
                self.structure = assembled(self.structure, outputs)
            self.outputs = outputs

    def _as_value(self, value: Any) -> Any:
        if isinstance(value, Operation) and self.graph.program_order:
            return None  # it runs
        if value is None or isinstance(value, (SparseTensor, IndexedSlices)):
            return value
        if isinstance(value, TensorArray):
            return value._with_flow(self._here(value.flow))
        if isinstance(value, Operation):  # true when it has run
            with self.graph.control_dependencies([value]):
                return ops.Identity(convert_to_tensor(True))
        return self._here(convert_to_tensor(value))

    def _here(self, tensor: Tensor) -> Tensor:
        return tensor if tensor.graph is self.graph else self.graph.capture(tensor)

    def captures_all(self, tensors: Sequence) -> None:
        """Every one of these tensors of the graph around becomes an argument, in this order."""
        for tensor in tensors:
            if tensor not in self.graph.captured:
                self.graph._stand_in(tensor, copy=False)
        place = {tensor: i for i, tensor in enumerate(tensors)}
        pairs = sorted(zip(self.graph.captured, self.graph.arguments),
                       key=lambda pair: place[pair[0]])
        self.graph.captured = [pair[0] for pair in pairs]
        self.graph.arguments = [pair[1] for pair in pairs]

    def add_to(self, library: Graph, outputs: Sequence | None = None) -> tuple:
        """(name of the function in the graph's library, whether it has stateful operations)"""
        return _core.add_function(library, self.graph._name, self.graph,
                                  self.inputs + self.graph.arguments,
                                  list(self.outputs if outputs is None else outputs))


def components(leaf: Any) -> list:
    """The tensors of a leaf of a structure."""
    if isinstance(leaf, SparseTensor):
        return [leaf.indices, leaf.values, leaf.dense_shape]
    if isinstance(leaf, IndexedSlices):
        return [leaf.values, leaf.indices] + ([] if leaf.dense_shape is None else [
            leaf.dense_shape])
    if isinstance(leaf, TensorArray):
        return [leaf.flow]
    return [] if leaf is None else [leaf]


def assembled(structure: Any, tensors: Sequence) -> Any:
    """The structure with these tensors in place of its own; the reverse of components()."""
    remaining = iter(tensors)

    def leaf(old: Any) -> Any:
        parts = [next(remaining) for _ in components(old)]
        if isinstance(old, (SparseTensor, IndexedSlices)):
            return type(old)(*parts)
        if isinstance(old, TensorArray):
            return old._with_flow(parts[0])
        return parts[0] if parts else None
    return map_structure(leaf, structure) if is_nested(structure) else leaf(structure)
