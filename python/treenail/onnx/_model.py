# SPDX-License-Identifier: Apache-2.0
"""Loading an ONNX file, and what that gives."""

from __future__ import annotations

import os

from treenail._checks import a_path
from treenail._convert import convert_to_tensor
from treenail._framework import Graph, name_scope
from treenail._session import Session
from treenail.onnx import _schema, _tensors
from treenail.onnx._errors import invalid
from treenail.onnx._importer import Importer
from treenail.onnx._sequence import plain
from treenail.onnx._wire import WireError, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Model:
    """An ONNX model that is part of a graph.

    graph: the tn.Graph. inputs, outputs: {ONNX name: Tensor}, in the model's order; inputs are
    placeholders, of a sequence a list of them, and so are outputs. values: every named value of the
    model's graph, weights and what nodes give, to look at or to build on. name: of the model's
    graph. opset: the version of the standard operator set, None where the model imports none;
    opsets: {domain: version}. ir_version, producer, producer_version, domain, model_version,
    doc_string: as the file has them. metadata: {key: value}.
    """

    def __init__(self, graph: Graph, message: Any, importer: Importer, inputs: dict,
                 outputs: dict) -> None:
        self.graph: Graph = graph
        self.inputs: dict[str, Any] = inputs
        self.outputs: dict[str, Any] = outputs
        self.values: dict[str, Any] = {n: plain(v) for n, v in importer.values.items()}
        self.opsets: dict[str, int] = importer.opsets
        self.opset: int | None = importer.opsets.get("")
        self.name: str = message.graph.name or ""
        self.ir_version: int = message.ir_version or 0
        self.producer: str = message.producer_name or ""
        self.producer_version: str = message.producer_version or ""
        self.domain: str = message.domain or ""
        self.model_version: int = message.model_version or 0
        self.doc_string: str = message.doc_string or ""
        self.metadata: dict[str, str] = {e.key or "": e.value or ""
                                         for e in message.metadata_props}
        self._session: Session | None = None

    def run(self, feeds: Any = None, fetches: Any = None) -> dict:
        """{output name: array} for the given inputs.

        feeds: {input name: value}, or the values in the order of `inputs`. fetches: names in
        `values` to compute instead of the outputs. The session is kept from call to call. Raises
        ValueError for names that are not there, inputs that are missing, and what running raises.
        """
        if feeds is not None and not isinstance(feeds, dict):
            feeds = list(feeds)
            if len(feeds) != len(self.inputs):
                raise ValueError("%d values were given for the inputs %s"
                                 % (len(feeds), list(self.inputs)))
            feeds = dict(zip(self.inputs, feeds))
        feeds = feeds or {}
        for name in feeds:
            if name not in self.inputs:
                raise ValueError("the model has no input %r, but %s" % (name, list(self.inputs)))
        for name in self.inputs:
            if name not in feeds:
                raise ValueError("no value was given for input %r" % name)
        names = list(self.outputs if fetches is None else fetches)
        for name in names:
            if name not in self.values:
                raise ValueError("the model has no value %r" % (name,))
        if self._session is None:
            self._session = Session(graph=self.graph)
        fed: dict = {}
        for name, value in feeds.items():
            place = self.inputs[name]
            if not isinstance(place, list):
                fed[place] = value
            elif len(value) == len(place):
                fed.update(zip(place, value))
            else:
                raise ValueError("input %r is a sequence of %d, but %d values were given"
                                 % (name, len(place), len(value)))
        return self._session.run({name: self.values[name] for name in names}, fed)

    def close(self) -> None:
        """Frees the session that `run` keeps; another run opens a new one."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<tn.onnx.Model %r, opset %s: %s -> %s>" % (
            self.name, self.opset, ", ".join(self.inputs), ", ".join(self.outputs))


def load(source: Any, graph: Graph | None = None, input_map: dict | None = None,
         shapes: dict | None = None, directory: Any = None, name: str = "") -> Model:
    """Builds the model of an ONNX file into a graph.

    source: a path, the bytes of a file, or a binary file object. graph: where to build; a new
    tn.Graph when None. input_map: {input name: tensor of `graph`} to use in the place of
    placeholders. shapes: {input name: shape} to take in the place of what the file says: fixed
    extents where it leaves them open, which more operators can work with, or the reverse; for an
    input that is a sequence a list with the shape of each element, which must be given.
    directory: the folder of the files that hold weights beside the model (external data), by
    default that of the path; nothing outside it is opened. name: a scope for the names of
    operations.

    Weights become constants. Nodes are built as operations of this library, so that the graph can
    be run, differentiated, built on and saved like any other.

    Raises InvalidArgumentError (a ValueError) for bytes that are no ONNX model or contradict
    themselves, UnimplementedError for ops, types and operator sets that are not understood,
    NotFoundError and PermissionDeniedError for a file that cannot be read.
    """
    data, folder = _read(source, directory)
    try:
        message = parse(_schema.MODEL, data)
    except WireError as error:
        raise invalid("not an ONNX model: %s" % error) from None
    if message.graph is None:
        raise invalid("not an ONNX model: it has no graph")
    graph = graph or Graph()
    with graph.as_default():
        given = {key: convert_to_tensor(value) for key, value in (input_map or {}).items()}
        importer = Importer(graph, message, _tensors.Folder(folder), given, shapes or {})
        try:
            with name_scope(name or None):
                inputs, outputs = importer.build()
        finally:
            importer.close()
    return Model(graph, message, importer, inputs, outputs)


def _read(source: Any, directory: Any) -> tuple:
    """(the bytes, the folder of external data or None)."""
    folder = None if directory is None else a_path(directory, "directory")
    if isinstance(source, (bytes, bytearray, memoryview)):
        return source, folder
    if hasattr(source, "read"):
        data = source.read()
        if not isinstance(data, bytes):
            raise TypeError("the file must be opened in binary mode")
        return data, folder
    path = a_path(source, "source")
    try:
        with open(path, "rb") as stream:
            data = stream.read()
    except OSError as error:
        raise _file_error(path, error) from None
    return data, os.path.dirname(path) or "." if folder is None else folder


def _file_error(path: Any, error: OSError) -> Exception:
    from treenail import errors
    kind = (errors.NotFoundError if isinstance(error, FileNotFoundError)
            else errors.PermissionDeniedError if isinstance(error, PermissionError)
            else errors.InvalidArgumentError)
    return kind(None, None, "%s: %s" % (path, error.strerror))
