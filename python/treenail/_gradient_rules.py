# SPDX-License-Identifier: Apache-2.0
"""Gradient rules written in Python: of op types, or of names that
Graph.gradient_override_map gives to single operations. They hold in branches and loops, too."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import IndexedSlices, convert_to_tensor
from treenail._ops import ops
from treenail._treenail import Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


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
        return [_plain(op, g) for g in result]


def _plain(op: Operation, gradient: Any) -> Any:
    """What the compiled module takes, in the graph of `op`."""
    if gradient is None:
        return None
    if isinstance(gradient, IndexedSlices):
        return tuple(_here(op, part) for part in (gradient.values, gradient.indices,
                                                  gradient.dense_shape))
    return _here(op, convert_to_tensor(gradient))


def _here(op: Operation, tensor: Any) -> Any:
    """What stands for a tensor of a graph around that of `op`, where it is a body."""
    graph = op.graph
    if tensor is None or tensor.graph is graph or not graph._is_within(tensor.graph):
        return tensor
    return graph.capture(tensor)


class RegisterGradient:
    """A decorator that makes a function the gradient rule of an op type, or of a name for
    gradient_override_map.

    The function gets the Operation and the gradient of each output, and returns the gradient of
    each input (or None), of its dtype and shape; of a variable's handle that of its value. For
    operations in branches and loops it is called where these are differentiated, once for each
    gradient that is asked for; it may read tensors of the body and of the graphs around. Raises
    KeyError when the op has a gradient already.
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

__all__ = ["RegisterGradient", "NotDifferentiable", "NoGradient"]
