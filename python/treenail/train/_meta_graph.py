# SPDX-License-Identifier: Apache-2.0
"""Graphs in files together with their collections: export_meta_graph and import_meta_graph.

Such a file is a graph file (docs/formats/graph.md) with one constant more: JSON that says which
variables, tensors, operations and plain values each collection holds. So tn.load_graph reads it,
too.
"""

from __future__ import annotations

import json
import os

from treenail import _treenail as _core
from treenail._checks import a_path
from treenail._convert import constant
from treenail._framework import Graph, GraphKeys, get_default_graph
from treenail._partitioned import SliceInfo
from treenail._treenail import Operation, Tensor
from treenail._variables import Variable
from treenail.train._saver import Saver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

_NODE = "meta_graph/collections"


def _stored(item: Any) -> dict | None:
    """How an element of a collection stands in the file; None for what cannot be kept."""
    if isinstance(item, Variable):
        info = item._slice_info
        return {"variable": item.op.name, "trainable": item.trainable,
                "part": None if info is None else [info.full_name, *map(list, info[1:])]}
    if isinstance(item, Tensor):
        return {"tensor": item.name}
    if isinstance(item, Operation):
        return {"operation": item.name}
    if isinstance(item, (str, int, float, bool)):
        return {"value": item}
    return None


def export_meta_graph(filename: Any, graph: Graph | None = None,
                      collection_list: Sequence | None = None,
                      clear_devices: bool = False) -> None:
    """Writes a graph, by default the default graph, and its collections to a file for
    import_meta_graph.

    collection_list: the names of the collections to keep; all by default. Of a collection
    variables, tensors, operations, numbers and strings are kept, other objects not. clear_devices:
    without the devices that operations ask for. Raises as Graph.save.
    """
    graph = get_default_graph() if graph is None else graph
    if not isinstance(graph, Graph):
        raise TypeError("graph must be a tn.Graph, not %r" % (graph,))
    if isinstance(collection_list, str) or not hasattr(collection_list or [], "__iter__"):
        raise TypeError("collection_list must be a list of names of collections, not %r"
                        % (collection_list,))
    path = os.fsdecode(a_path(filename, "filename"))
    kept = {}
    for key in graph.get_all_collection_keys() if collection_list is None else collection_list:
        items = [_stored(item) for item in graph.get_collection(key)]
        if isinstance(key, str):
            kept[key] = [item for item in items if item is not None]
    # The graph stays as it is, and may be final: what is added is added to a copy.
    beside = "%s.%d.graph" % (path, os.getpid())
    copy = Graph()
    try:
        graph.save(beside)
        _core.load_graph_into(copy, beside)
    finally:
        if os.path.exists(beside):
            os.remove(beside)
    if clear_devices:
        _clear(copy.get_operations())
    with copy.as_default():
        constant(json.dumps(kept, sort_keys=True), name=_NODE)
    copy.save(path)


def _clear(operations: Any) -> None:
    for op in operations:
        op._set_device("")


class _Imported:
    """The elements of a file's collections in the graph that it was added to."""

    def __init__(self, operations: dict) -> None:
        self._operations = operations
        self._variables: dict = {}

    def operation(self, name: str) -> Operation:
        """By its name in the file."""
        return self._operations[name]

    def tensor(self, name: str) -> Tensor:
        """By its name in the file."""
        op, _, number = name.rpartition(":")
        return self._operations[op].outputs[int(number)]

    def variable(self, item: dict) -> Variable | None:
        """One object for a variable, in however many collections it is."""
        name = item["variable"]
        if name not in self._variables:
            made = Variable._from_operations(self.operation(name))
            if made is not None:
                made._trainable = bool(item["trainable"])
                if item["part"] is not None:
                    made._slice_info = SliceInfo(item["part"][0], *map(tuple, item["part"][1:]))
            self._variables[name] = made
        return self._variables[name]

    def element(self, item: dict) -> Any:
        """An element, or None."""
        if "variable" in item:
            return self.variable(item)
        if "tensor" in item:
            return self.tensor(item["tensor"])
        return self.operation(item["operation"]) if "operation" in item else item["value"]

    def saved(self, items: list) -> dict:
        """{name in checkpoints: variable, or the parts of one}."""
        named: dict = {}
        for item in items:
            variable = self.variable(item) if "variable" in item else None
            if variable is None:
                continue
            if item["part"] is None:
                named[item["variable"]] = variable
            else:
                named.setdefault(item["part"][0], []).append(variable)
        return named


def import_meta_graph(meta_graph_or_file: Any, clear_devices: bool = False,
                      import_scope: str | None = None, **kwargs: Any) -> Saver | None:
    """Adds the operations of a file that export_meta_graph wrote to the default graph, and their
    collections, and gives a Saver of its global variables; None where there are none.

    meta_graph_or_file: the file's path. clear_devices: operations ask for no devices. import_scope:
    a scope around all their names; the Saver goes by the names without it. kwargs: as of Saver.
    Raises as tn.import_graph, and ValueError for a graph file without collections.

        saver = tn.train.import_meta_graph("run/model.meta")
        saver.restore(session, tn.train.latest_checkpoint("run"))
    """
    path = a_path(meta_graph_or_file, "meta_graph_or_file")
    graph = get_default_graph()
    if graph._immediate:
        raise RuntimeError("import_meta_graph() adds to a graph, and operations run at once here")
    if import_scope is not None and not isinstance(import_scope, str):
        raise TypeError("import_scope must be a str, not %r" % (import_scope,))
    source = Graph()
    _core.load_graph_into(source, path)
    if source._find_operation(_NODE) is None:
        raise ValueError("meta_graph_or_file %r is a graph file without collections: "
                         "tn.import_graph reads it" % (meta_graph_or_file,))
    prefix = graph.unique_name(import_scope) if import_scope else graph.get_name_scope()
    found = _Imported(_core.import_graph(graph, path, prefix, {}))
    if clear_devices:
        _clear(found._operations.values())
    kept = json.loads(_text_of(source))
    for key, items in kept.items():
        for item in items:
            element = found.element(item)
            if element is not None:
                graph.add_to_collection(key, element)
    named = found.saved(kept.get(GraphKeys.GLOBAL_VARIABLES, []))
    return Saver(named, **kwargs) if named else None


def _text_of(source: Graph) -> str:
    from treenail._session import Session
    with Session(graph=source) as session:
        return session.run(_NODE + ":0").decode()


__all__ = ["export_meta_graph", "import_meta_graph"]
