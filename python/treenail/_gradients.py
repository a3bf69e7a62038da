# SPDX-License-Identifier: Apache-2.0
"""Gradients of a graph, and gradient rules written in Python."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import IndexedSlices, convert_to_tensor
from treenail._framework import executing_eagerly, graph_of
from treenail._ops import ops
from treenail._treenail import Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class AggregationMethod:
    """How gradients of several uses of a value are summed; every value means the one way there
    is."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


def _as_list(values: Any) -> list:
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _source(x: Any, graph: Any) -> Any:
    """What stands for x in the graph: of a variable its handle, so that every read of it counts; in
    the body of a function what is passed to it."""
    x = x.handle if hasattr(x, "handle") else x.values if isinstance(x, IndexedSlices) else x
    around = getattr(x, "graph", graph)
    return x if around is graph or not graph._is_within(around) else graph.capture(x)


def gradients(ys: Any, xs: Any, grad_ys: Any = None, name: str = "gradients",
              colocate_gradients_with_ops: bool = False, gate_gradients: bool = False,
              aggregation_method: Any = None, stop_gradients: Any = None) -> list:
    """d(sum of ys)/dx for each x of xs: a Tensor, an IndexedSlices (of gathered rows), or None
    where no path leads.

    xs: tensors or variables. grad_ys: the gradients that arrive at ys, instead of ones.
    stop_gradients: tensors taken as constants. Raises UnimplementedError when an operation on the
    way has no gradient.
    """
    if executing_eagerly():
        raise RuntimeError("tn.gradients is not supported when eager execution is enabled. Use "
                           "tn.GradientTape instead.")
    ys, xs = _as_list(ys), _as_list(xs)
    if not xs:
        return []
    with graph_of(ys).as_default() as graph:
        ys = [y.values if isinstance(y, IndexedSlices) else convert_to_tensor(y) for y in ys]
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
                                or "gradients")
    return [IndexedSlices(*g) if isinstance(g, tuple) else g for g in found]


def _call_gradient(function: Callable, op: Operation, output_gradients: list, scope: str) -> list:
    """Called by the compiled module for a rule written in Python: one gradient per input, slices as
    tuples."""
    if function is None:
        return [None] * len(op.inputs)
    with op.graph.as_default(), op.graph.name_scope(scope):
        given = []
        for output, gradient in zip(op.outputs, output_gradients):
            if isinstance(gradient, tuple):
                gradient = IndexedSlices(*gradient)
            elif gradient is None and (output.dtype.is_floating or output.dtype.is_complex):
                gradient = ops.ZerosLike(output)
            given.append(gradient)
        result = function(op, *given)
        result = list(result) if isinstance(result, (list, tuple)) else [result]
        return [_plain(g) for g in result]


def _plain(gradient: Any) -> Any:
    if isinstance(gradient, IndexedSlices):
        return gradient.values, gradient.indices, gradient.dense_shape
    return None if gradient is None else convert_to_tensor(gradient)


class RegisterGradient:
    """A decorator that makes a function the gradient rule of an op type, or of a name for
    gradient_override_map.

    The function gets the Operation and the gradient of each output, and returns the gradient of
    each input (or None). Raises KeyError when the op has a gradient already.
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f: Callable) -> Callable:
        _core.register_gradient(self._op_type, f)
        return f


def NotDifferentiable(op_type: str) -> None:  # noqa: N802 (TensorFlow's name)
    """States that an op has no gradient: tn.gradients takes its outputs as constants. Raises
    KeyError when the op has a gradient, or was named already."""
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string, not %r" % (op_type,))
    _core.register_gradient(op_type, None)


NoGradient = NotDifferentiable


def hessians(ys: Any, xs: Any, name: str = "hessians", colocate_gradients_with_ops: bool = False,
             gate_gradients: bool = False, aggregation_method: Any = None) -> list:
    """The second derivatives of ys with respect to each x, [x.shape, x.shape]; shapes must be fully
    known."""
    results = []
    for x, gradient in zip(_as_list(xs), gradients(ys, xs, name=name)):
        if gradient is None:
            raise ValueError("no path leads from ys to %r" % (x,))
        flat = ops.Reshape(gradient, [-1])
        count = flat.shape[0]
        if count is None:
            raise ValueError("the shape of %r must be fully known" % (x,))
        rows = [gradients(flat[i], x, name=name)[0] for i in range(count)]
        extents = convert_to_tensor(x).shape.as_list()
        zeros = None
        if any(row is None for row in rows):
            zeros = ops.ZerosLike(convert_to_tensor(x))
        results.append(ops.Reshape(ops.Pack([zeros if row is None else row for row in rows]),
                                   extents + extents))
    return results


__all__ = ["AggregationMethod", "gradients", "RegisterGradient", "NotDifferentiable", "NoGradient",
           "hessians"]
