# SPDX-License-Identifier: Apache-2.0
"""Derivatives made of several gradients: Jacobians and Hessians, and products with them.

A Jacobian is a loop over the elements of its output. The gradient for one is built once, in the
graph, for a gradient that arrives from outside; what depends on that becomes the body of the loop.
"""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._array import one_hot
from treenail._control_flow import while_loop
from treenail._convert import IndexedSlices, convert_to_tensor, scope_of
from treenail._framework import executing_eagerly, get_default_graph, graph_of
from treenail._function_graph import FunctionGraph
from treenail._gradients import _as_list, gradients, value_of
from treenail._nest import flatten, pack
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._tensor_array import TensorArray
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def _dense(gradient: Any) -> Any:
    return convert_to_tensor(gradient) if isinstance(gradient, IndexedSlices) else gradient


def _differentiable(output: Any, what: str) -> Tensor:
    if executing_eagerly():
        raise RuntimeError("this differentiates the operations of a graph; with immediate "
                           "execution use tn.GradientTape, which has jacobian and "
                           "batch_jacobian, too")
    output = convert_to_tensor(output)
    if not (output.dtype.is_floating or output.dtype.is_complex):
        raise TypeError("%s must be of a floating or complex dtype, not %r" % (what, output))
    return output


class _Pullback:
    """Gradients of one tensor with respect to others, for gradients that arrive at it, in loops."""

    def __init__(self, output: Tensor, xs: list, **options: Any) -> None:
        self._incoming = ops.Placeholder(dtype=output.dtype, shape=output.shape, name="incoming")
        self.found = [_dense(g) for g in gradients(output, xs, self._incoming, **options)]
        self._results = [g for g in self.found if g is not None]
        self._shapes = [ops.Shape(value_of(x, output.graph), out_type=_core.int32)
                        for x, g in zip(xs, self.found) if g is not None]
        self._read = _core.read_beside(self._incoming, self._results)

    def _of(self, incoming: Tensor) -> list:
        """In the body of a loop: the gradients that there are."""
        body = get_default_graph()
        assert isinstance(body, FunctionGraph)
        inner = [body.capture(tensor) for tensor in self._read]
        return _core.copied_dependents(body, self._incoming, self._results, incoming, inner)

    def rows(self, count: Any, incoming: Callable, parallel_iterations: Any) -> list:
        """One after the other for incoming(0), incoming(1), ...: [count, *shape] for each x, None
        where there is no gradient."""
        arrays = [TensorArray(g.dtype, count, element_shape=g.shape) for g in self._results]

        def step(i: Tensor, *arrays: TensorArray) -> tuple:
            rows = self._of(incoming(i))
            return (i + 1, *[array.write(i, row) for array, row in zip(arrays, rows)])
        arrays = while_loop(lambda i, *_: i < count, step, (0, *arrays), maximum_iterations=count,
                            parallel_iterations=_iterations(parallel_iterations))[1:]
        stacked = iter([ops.TensorListStack(array.flow, shape, element_dtype=array.dtype)
                        for array, shape in zip(arrays, self._shapes)])  # there may be no row
        return [None if g is None else next(stacked) for g in self.found]


def _iterations(parallel_iterations: Any) -> int:
    return 10 if parallel_iterations is None else parallel_iterations


def _size(x: Tensor) -> Tensor:
    return ops.Size(x, out_type=_core.int32)


def _with_shape(rows: Tensor, output: Tensor, rest: Tensor, known: TensorShape) -> Tensor:
    """`rows` as [output's shape, rest]."""
    shape = ops.Concat([ops.Shape(output, out_type=_core.int32), rest], 0)
    result = ops.Reshape(rows, shape)
    result.set_shape(known)
    return result


def _jacobian(output: Tensor, xs: list, parallel_iterations: Any, **options: Any) -> list:
    with graph_of([output]).as_default():
        count, shape = _size(output), ops.Shape(output, out_type=_core.int32)

        def incoming(i: Tensor) -> Tensor:
            return ops.Reshape(one_hot(i, count, dtype=output.dtype), shape)
        pullback = _Pullback(output, xs, **options)
        if all(g is None for g in pullback.found):
            return pullback.found
        return [None if rows is None else _with_shape(
            rows, output, ops.Shape(rows, out_type=_core.int32)[1:],
            output.shape.concatenate(g.shape))
            for rows, g in zip(pullback.rows(count, incoming, parallel_iterations),
                               pullback.found)]


def jacobian(output: Any, inputs: Any, use_pfor: bool = True,
             parallel_iterations: int | None = None) -> Any:
    """The derivatives of each element of `output` with respect to each of `inputs`: [output.shape,
    input.shape], None where no path leads.

    inputs: a tensor or variable, or a nest of them, of which the result is one. A loop over the
    elements of the output, so that shapes may be unknown. parallel_iterations: as for
    tn.while_loop. use_pfor: TensorFlow's, changes nothing here.

    Raises TypeError for an output that is no floating or complex number, and as tn.gradients.
    """
    output = _differentiable(output, "output")
    with scope_of(None, "jacobian", [output]):
        return pack(inputs, _jacobian(output, flatten(inputs), parallel_iterations))


def batch_jacobian(output: Any, inp: Any, use_pfor: bool = True,
                   parallel_iterations: int | None = None) -> Any:
    """The derivatives of each row of `output` [n, ...] with respect to the same row of `inp`
    [n, ...]: [n, output.shape[1:], inp.shape[1:]], None where no path leads.

    Row i of the output depends on row i of inp alone, which is not checked: derivatives by other
    rows are added. use_pfor, parallel_iterations: as for tn.jacobian.

    Raises TypeError for an output that is no floating or complex number, ValueError where the
    numbers of rows differ, and as tn.gradients. Errors at run time: InvalidArgumentError where they
    differ.
    """
    output, x = _differentiable(output, "output"), convert_to_tensor(inp)
    if not output.shape.with_rank_at_least(1)[:1].is_compatible_with(
            x.shape.with_rank_at_least(1)[:1]):
        raise ValueError("Need first dimension of output shape (%s) and inp shape (%s) to match."
                         % (output.shape, x.shape))
    with scope_of(None, "batch_jacobian", [output]), graph_of([output]).as_default():
        pullback = _Pullback(output, [inp])
        if pullback.found == [None]:
            return None
        return _rows_by_rows(pullback, output, x, parallel_iterations)


def _rows_by_rows(pullback: _Pullback, output: Tensor, x: Tensor, parallel: Any) -> Tensor:
    shape = ops.Shape(output, out_type=_core.int32)
    row = ops.Prod(shape[1:], [0])

    def incoming(i: Tensor) -> Tensor:
        return ops.BroadcastTo(ops.Reshape(one_hot(i, row, dtype=output.dtype),
                                           ops.Concat([[1], shape[1:]], 0)), shape)
    (rows,) = pullback.rows(row, incoming, parallel)
    inner = ops.Shape(x, out_type=_core.int32)
    columns = ops.Prod(inner[1:], [0])
    rows = ops.Reshape(rows, ops.Pack([row, inner[0], columns]))
    return _with_shape(ops.Transpose(rows, [1, 0, 2]), output, inner[1:],
                       output.shape.concatenate(x.shape[1:]))


def hessians(ys: Any, xs: Any, name: str = "hessians", colocate_gradients_with_ops: bool = False,
             gate_gradients: bool = False, aggregation_method: Any = None) -> list:
    """The second derivatives of the sum of ys with respect to each x, [x.shape, x.shape].

    Shapes may be unknown: a loop goes over the elements of the first derivative. The other
    parameters: as for tn.gradients. Raises ValueError where no path leads from ys to an x.
    """
    options = {"name": name, "colocate_gradients_with_ops": colocate_gradients_with_ops,
               "gate_gradients": gate_gradients, "aggregation_method": aggregation_method}
    xs = _as_list(xs)
    results = []
    for x, gradient in zip(xs, gradients(ys, xs, **options)):
        if gradient is None:
            raise ValueError("no path leads from ys to %r" % (x,))
        gradient = _dense(gradient)
        (hessian,) = _jacobian(gradient, [x], None, **options)
        if hessian is None:
            extents = ops.Shape(gradient)
            hessian = ops.Fill(ops.Concat([extents, extents], 0),
                               convert_to_tensor(0, gradient.dtype))
            hessian.set_shape(gradient.shape.concatenate(gradient.shape))
        results.append(hessian)
    return results


def _vectors(v: Any, values: list, what: str) -> list:
    v = _as_list(v)
    if len(v) != len(values):
        raise ValueError("%s and v must have the same length, not %d and %d"
                         % (what, len(values), len(v)))
    return v


def hessian_vector_product(ys: Any, xs: Any, v: Any) -> list:
    """The matrix of second derivatives of the sum of ys, times the vector v: for each x a tensor of
    its shape, None where no path leads. It costs about as much as two gradients.

    v: for each x a tensor of its shape, taken as a constant. Raises ValueError for another number,
    dtype or shape than xs have, and as tn.gradients.
    """
    xs = _as_list(xs)
    v = _vectors(v, xs, "xs")
    with graph_of(_as_list(ys)).as_default():
        pairs = _pairs(gradients(ys, xs), v)
        if not pairs:
            return [None] * len(xs)
        return gradients([g for g, _ in pairs], xs, [ops.StopGradient(one) for _, one in pairs])


def _pairs(found: list, v: list) -> list:
    """The gradients that there are, each with its vector."""
    return [(_dense(g), convert_to_tensor(one, g.dtype)) for g, one in zip(found, v)
            if g is not None]


def jacobian_vector_product(ys: Any, xs: Any, v: Any) -> list:
    """How ys change as xs move along v: for each y the sum of its derivatives times v, of its
    shape, None where no path leads. It costs about as much as two gradients, however many elements
    ys and xs have.

    v: for each x a tensor of its shape. Raises ValueError for another number, dtype or shape than
    xs have, and as tn.gradients.
    """
    xs = _as_list(xs)
    v = _vectors(v, xs, "xs")
    with graph_of(_as_list(ys)).as_default():
        ys = [_differentiable(y, "ys") for y in _as_list(ys)]
        # Gradients are linear in what arrives: its value does not matter.
        arriving = [ops.OnesLike(y) for y in ys]
        pairs = _pairs(gradients(ys, xs, arriving), v)
        if not pairs:
            return [None] * len(ys)
        return gradients([g for g, _ in pairs], arriving, [one for _, one in pairs])


__all__ = ["hessians", "jacobian", "batch_jacobian", "hessian_vector_product",
           "jacobian_vector_product"]
