# SPDX-License-Identifier: Apache-2.0
"""Immediate execution of one op without a graph, and graphs in files."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._framework import Graph, GraphKeys, get_default_graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def execute(op: str, inputs: Sequence = (), **attrs: Any) -> Any:
    """Runs one op now: execute("MatMul", [a, b], transpose_a=True).

    inputs: arrays, numbers, lists or concrete tensors; a list argument of the op takes a list.
    attrs: its attributes. The result is a concrete Tensor (see Tensor.numpy), several as a named
    tuple, None for an op without outputs. No gradient is recorded.

    Raises NotFoundError for an unknown op, and what the op raises.
    """
    return _core.execute_tensors(op, inputs, attrs)


def load_graph(path: Any) -> Graph:
    """The graph that Graph.save wrote.

    Its variables are found again by name (tn.global_variables), untrained: restore a checkpoint or
    run an initializer. Other collections are not in the file.

    Raises NotFoundError (no such file, or an op nobody registered), InvalidArgumentError (no graph
    file), DataLossError (truncated or altered), UnimplementedError (written by a newer Treenail).
    """
    graph = Graph()
    _core.load_graph_into(graph, path)
    _find_variables(graph, graph.get_operations())
    return graph


def import_graph(path: Any, name: str | None = "import", input_map: dict | None = None,
                 return_elements: Sequence | None = None) -> Any:
    """Adds the operations of a graph file to the default graph, under a name prefix.

    name: the prefix, made unique; '' for none. input_map: {"node:0" in the file: tensor to use in
    its place}. return_elements: names in the file whose tensors ("node:0") or operations ("node")
    are given back, in that order. Raises as load_graph, and ValueError for names that are not in
    the file.
    """
    graph = get_default_graph()
    prefix = graph.unique_name(name) if name else graph.get_name_scope()
    imported = _core.import_graph(graph, path, prefix, dict(input_map or {}))
    _find_variables(graph, imported.values())
    if return_elements is None:
        return None
    found = []
    for element in return_elements:
        op_name, _, number = element.partition(":")
        if op_name not in imported:
            raise ValueError("return_element %r not found in the graph file" % element)
        op = imported[op_name]
        found.append(op.outputs[int(number)] if number else op)
    return found


def _find_variables(graph: Graph, operations: Any) -> None:
    """Makes Variable objects for the handles among `operations` that have the reads and assignments
    of variables."""
    from treenail._variables import Variable
    for op in operations:
        if op.type == "VarHandleOp":
            variable = Variable._from_operations(op)
            if variable is not None:
                graph.add_to_collection(GraphKeys.GLOBAL_VARIABLES, variable)
