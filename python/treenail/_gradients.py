# SPDX-License-Identifier: Apache-2.0
"""Gradients of a graph. Rules written in Python: _gradient_rules.py, _custom_gradient.py; second
derivatives: _derivatives.py."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import IndexedSlices, convert_to_tensor
from treenail._framework import executing_eagerly, graph_of
from treenail._ops import ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class AggregationMethod:
    """How gradients of several uses of a value are summed. Every method means the one sum there is:
    in the order in which they arrive, by one operation, which holds no more than the sum and its
    terms."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


class UnconnectedGradients:
    """What tn.gradients gives for an x that no y depends on: None, or zeros of its shape."""

    NONE = "none"
    ZERO = "zero"


def _as_list(values: Any) -> list:
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _source(x: Any, graph: Any) -> Any:
    """What stands for x in the graph: of a variable its handle, so that every read of it counts; in
    the body of a function what is passed to it."""
    x = x.handle if hasattr(x, "handle") else x.values if isinstance(x, IndexedSlices) else x
    around = getattr(x, "graph", graph)
    return x if around is graph or not graph._is_within(around) else graph.capture(x)


def _target(y: Any, graph: Any) -> Any:
    """A y as a tensor of the graph; a rule's y of a body is that of the copy which it is called
    for."""
    y = y.values if isinstance(y, IndexedSlices) else convert_to_tensor(y)
    here = graph.counterpart(y) if hasattr(graph, "counterpart") else None
    return y if here is None else here


def _check_choices(aggregation_method: Any, unconnected: Any) -> None:
    known = range(AggregationMethod.ADD_N, AggregationMethod.EXPERIMENTAL_ACCUMULATE_N + 1)
    if aggregation_method is not None and not (isinstance(aggregation_method, int)
                                               and aggregation_method in known):
        raise ValueError("Invalid aggregation_method specified %r: it must be one of "
                         "tn.AggregationMethod" % (aggregation_method,))
    if not isinstance(unconnected, str) or unconnected not in (UnconnectedGradients.NONE,
                                                               UnconnectedGradients.ZERO):
        raise ValueError("Unknown value for unconnected_gradients: %r: it must be one of "
                         "tn.UnconnectedGradients" % (unconnected,))


def gradients(ys: Any, xs: Any, grad_ys: Any = None, name: str = "gradients",
              colocate_gradients_with_ops: bool = False, gate_gradients: bool = False,
              aggregation_method: Any = None, stop_gradients: Any = None,
              unconnected_gradients: Any = UnconnectedGradients.NONE) -> list:
    """d(sum of ys)/dx for each x of xs: a Tensor of its shape, an IndexedSlices (of gathered rows),
    or None where no path leads.

    xs: tensors or variables. grad_ys: the gradients that arrive at ys, instead of ones; each
    broadcasts to the shape of its y. stop_gradients: tensors and variables taken as constants, also
    where branches and loops read them. unconnected_gradients: what to give where no path leads, one
    of tn.UnconnectedGradients. gate_gradients: no gradient of an operation's inputs is used before
    all of them are computed. aggregation_method: one of tn.AggregationMethod, which all mean the
    same sum. colocate_gradients_with_ops: changes nothing, for operations of a gradient always ask
    for the device of the operation they differentiate.

    Raises UnimplementedError when an operation on the way has no gradient, ValueError for dtypes
    and shapes that do not fit and for an unknown method.
    """
    if executing_eagerly():
        raise RuntimeError("tn.gradients is not supported when eager execution is enabled. Use "
                           "tn.GradientTape instead.")
    _check_choices(aggregation_method, unconnected_gradients)
    ys, xs = _as_list(ys), _as_list(xs)
    if not xs:
        return []
    with graph_of(ys).as_default() as graph:
        ys = [_target(y, graph) for y in ys]
        given = None
        if grad_ys is not None:
            grad_ys = _as_list(grad_ys)
            if len(grad_ys) != len(ys):
                raise ValueError("Passed %d grad_ys for %d ys" % (len(grad_ys), len(ys)))
            given = [None if g is None else convert_to_tensor(g, y.dtype) for g,
                     y in zip(grad_ys, ys)]
        stops = None
        if stop_gradients is not None:
            stops = [_source(s, graph) for s in _as_list(stop_gradients)]
        found = _core.gradients(graph, ys, [_source(x, graph) for x in xs], given, stops, name
                                or "gradients", bool(gate_gradients))
        found = [IndexedSlices(*g) if isinstance(g, tuple) else g for g in found]
        if unconnected_gradients == UnconnectedGradients.ZERO:
            found = [ops.ZerosLike(value_of(x, graph)) if g is None else g
                     for x, g in zip(xs, found)]
    return found


def value_of(x: Any, graph: Any) -> Any:
    """The tensor, of this graph, that a gradient with respect to x is like."""
    return convert_to_tensor(x) if hasattr(x, "handle") else _source(x, graph)


__all__ = ["AggregationMethod", "UnconnectedGradients", "gradients"]
