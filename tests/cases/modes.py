# SPDX-License-Identifier: Apache-2.0
"""Runs one case in every mode beside immediate execution: in a session and within a tn.function.

All dtypes of a case share one graph, one session and one trace: making those costs more than what
most cases compute.
"""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
import treenail as tn

import backend
from harness import Case, ErrorCase
from runner import (
    CaseError,
    GradientCheck,
    case_attrs,
    describe,
    error_attrs,
    executed_in_all,
    gradient_dtype,
)

Results = Dict[str, List[np.ndarray]]  # of each dtype


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return (
        a.dtype.kind in "OSU"
        and bool((a == b).all())
        or np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
    )


def as_array(result: Any) -> np.ndarray:
    """What a session gave; a scalar string comes as bytes, whose trailing zeros NumPy would drop."""
    return np.asarray(result, object) if isinstance(result, bytes) else np.asarray(result)


def shapes_known(case: Case) -> Tuple[bool, ...]:
    return (True, False) if case.option("unknown_shapes") else (True,)


def compare(
    case: Case, dtype: str, mode: str, found: Sequence[Any], immediate: Sequence[np.ndarray]
) -> None:
    """The bits of immediate execution."""
    what = "%s, %s" % (describe(case, dtype, case.values(dtype)), mode)
    if len(found) != len(immediate):
        raise CaseError("%s: %d outputs, not %d" % (what, len(found), len(immediate)))
    for i, (result, array) in enumerate(zip(found, immediate)):
        if case.option("same_bits") and not same_bits(as_array(result), array):
            raise CaseError(
                "%s, output %d:\n%r\nimmediate execution gives\n%r" % (what, i, result, array)
            )


class CaseGraph:
    """A case in one graph: a node of each dtype, with shapes known and unknown."""

    def __init__(self, case: Case, dtypes: Sequence[str], device: str = "") -> None:
        self.case, self.graph = case, tn.Graph()
        self.nodes: List[Tuple[str, bool, backend.OpNode]] = []
        with self.graph.as_default(), self.graph.device(device or None):
            for dtype in dtypes:
                for known in shapes_known(case):
                    self.nodes.append((dtype, known, self._node(dtype, known)))

    def _node(self, dtype: str, known: bool) -> backend.OpNode:
        name = "%s_%s" % (dtype, "known" if known else "unknown")
        values, attrs = self.case.values(dtype), case_attrs(self.case, dtype)
        return backend.OpNode(self.case.op.name, values, attrs, known, name)

    def check_shapes(self, immediate: Results) -> None:
        for dtype, known, node in self.nodes:
            exact = known and self.case.option("static_shape")
            for i, (tensor, array) in enumerate(zip(node.outputs, immediate[dtype])):
                check_static_shape(self.case, dtype, i, tensor, array, exact)

    def run(self, **how: Any) -> List[List[Any]]:
        """The outputs of each node, by one run."""
        feed: Dict[Any, Any] = {}
        for _, _, node in self.nodes:
            feed.update(node.feed())
        with tn.Session(graph=self.graph) as session:
            return session.run([node.outputs for _, _, node in self.nodes], feed, **how)

    def compare(self, where: str, results: Sequence[Any], immediate: Results) -> None:
        for (dtype, known, _), found in zip(self.nodes, results):
            mode = "%s with %s shapes" % (where, "known" if known else "unknown")
            compare(self.case, dtype, mode, found, immediate[dtype])


def check_graph(case: Case, immediate: Results) -> None:
    graph = CaseGraph(case, list(immediate))
    graph.check_shapes(immediate)
    graph.compare("a session", graph.run(), immediate)


def check_static_shape(
    case: Case, dtype: str, i: int, tensor: Any, array: np.ndarray, exact: bool
) -> None:
    shape = tensor.shape
    dims = None if shape.ndims is None else shape.as_list()
    fits = dims is None or (
        len(dims) == array.ndim and all(d is None or d == n for d, n in zip(dims, array.shape))
    )
    if not fits or (exact and dims != list(array.shape)):
        raise CaseError(
            "%s, output %d: the shape rule says %s, the result has %s"
            % (describe(case, dtype, case.values(dtype)), i, dims, array.shape)
        )


# --- Functions
# --------------------------------------------------------------------------------------------------


# Ops whose gradient is not made of arguments of a function as they are, and why: there the inputs in
# host memory are constants of its body.
NEED_CONSTANTS = {"Gather": "the gradient of Gather needs a constant axis"}


def traced(
    op: str, calls: Sequence[Tuple[Sequence[Any], dict]], constants: bool = False
) -> Tuple[Any, List[Any]]:
    """(a tn.function of the op called with each of these values and attributes, its arguments)

    constants: inputs in host memory are constants within, not arguments.
    """

    def every(*tensors: Any) -> List[List[Any]]:
        found = []
        given = iter(tensors)
        for values, attrs in calls:
            inputs = [next(given) for _ in backend.flat(values)]
            if constants:
                inputs = backend.with_constants(op, values, inputs)
            found.append(backend.call(op, values, iter(inputs), attrs))
        return found

    arguments = [backend.tensor(v) for values, _ in calls for v in backend.flat(values)]
    return tn.function(every, autograph=False), arguments


def check_function(case: Case, immediate: Results) -> None:
    function, arguments = traced(
        case.op.name, [(case.values(dtype), case_attrs(case, dtype)) for dtype in immediate]
    )
    with tn.eager():
        for dtype, found in zip(immediate, function(*arguments)):
            arrays = [np.asarray(f) for f in found]
            compare(case, dtype, "within a tn.function", arrays, immediate[dtype])


def check(case: Case) -> Results:
    """What immediate execution gives, and every other mode too."""
    immediate = executed_in_all(case)
    check_graph(case, immediate)
    check_function(case, immediate)
    return immediate


def check_function_gradient(
    check: GradientCheck, gradients: Sequence[Any], constants: bool = False
) -> None:
    """The gradients by a tape around a function have the bits of the graph's."""
    op = check.case.op.name
    function, arguments = traced(op, [(check.values, check.attrs)], constants)
    xs = [arguments[i] for i in check.inputs]
    with tn.eager():
        with tn.GradientTape() as tape:
            tape.watch(xs)
            outputs = function(*arguments)[0]
        weights = [tn.constant(w) for w in check.weights.values()]
        found = tape.gradient([outputs[k] for k in check.weights], xs, output_gradients=weights)
        for i, ours, graph in zip(check.inputs, found, gradients):
            if ours is not None:
                ours = tn.convert_to_tensor(ours).numpy()
            if (ours is None) != (graph is None) or (
                ours is not None and not same_bits(ours, graph)
            ):
                raise CaseError(
                    "%s, gradient of input %d by a tape around a tn.function:\n%r\nthe graph's:\n%r"
                    % (check.what, i, ours, graph)
                )


def check_gradient(case: Case) -> List[str]:
    """The op types that the gradients are made of."""
    types: List[str] = []
    measured: Dict[int, List[float]] = {}
    for known in shapes_known(case) if case.option("unknown_gradient") else (True,):
        check = GradientCheck(case, gradient_dtype(case), known)
        check.measured = measured
        try:
            if not check.inputs or not check.weights:
                return types
            gradients, arrays = check.first()
            if known:
                check_function_gradient(check, arrays, case.op.name in NEED_CONSTANTS)
            if case.option("grad") >= 2:
                check.second(gradients)
            types += check.graph.op_types()
        finally:
            check.graph.close()
    return types


# --- Errors
# --------------------------------------------------------------------------------------------------


def error_in_graph(case: ErrorCase, known_shapes: bool) -> None:
    values = case.values()
    graph = backend.OpGraph(case.op.name, values, error_attrs(case), known_shapes)
    try:
        graph.run(graph.outputs, values)
    finally:
        graph.close()


def error_in_function(case: ErrorCase) -> None:
    function, arguments = traced(case.op.name, [(case.values(), error_attrs(case))])
    with tn.eager():
        function(*arguments)
