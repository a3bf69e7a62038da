# SPDX-License-Identifier: Apache-2.0
"""Functions with gradients of their own, with immediate execution: a call is one entry of each tape
that is open. The operations of the function stand on the tapes beside it, for gradients of its
gradient."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import IndexedSlices, convert_to_tensor
from treenail._custom_gradient import (_tensor, check_takes_variables, gradients_given, in_dtypes,
                                       name_of, tensors_in, value_and_grad_fn)
from treenail._function_graph import assembled
from treenail._nest import map_structure
from treenail._ops import ops
from treenail._precision import as_around
from treenail._tape import GradientTape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def call_at_once(f: Callable, args: tuple, kwargs: dict) -> Any:
    """What f(*args) gives, known to tapes by its gradient function."""
    name, args, precision = name_of(f), map_structure(_tensor, args), as_around()
    with GradientTape() as own:
        returned = f(*args, **kwargs)
    structure, grad_fn = value_and_grad_fn(name, returned)
    inputs, results = tensors_in(args), tensors_in(structure)
    variables = [v for v in own.watched_variables() if not any(v.handle is t for t in inputs)]
    check_takes_variables(name, grad_fn, variables)
    like = [*inputs, *variables]

    def rule(arriving: list, needed: list) -> list:
        dys = [ops.ZerosLike(y) if g is None else IndexedSlices(*g) if isinstance(g, tuple) else g
               for g, y in zip(arriving, results)]
        with precision:
            given = in_dtypes(gradients_given(name, grad_fn, dys, len(inputs), variables), like)
        return [_checked(name, number, g, x) for number, (g, x) in enumerate(zip(given, like))]
    known = _core.record_call(inputs + [v.handle for v in variables], results, rule)
    return assembled(structure, known)


def _checked(name: str, number: int, gradient: Any, x: Any) -> Any:
    """A gradient as the tape takes it. Raises ValueError for another dtype or shape than x's."""
    if gradient is None:
        return None
    if isinstance(gradient, IndexedSlices):
        return gradient.values, gradient.indices, gradient.dense_shape
    gradient = convert_to_tensor(gradient)
    if gradient.dtype != x.dtype or not gradient.shape.is_compatible_with(x.shape):
        raise ValueError("the gradient function of %s gives %s%s for argument %d, which is %s%s"
                         % (name, gradient.dtype.name, gradient.shape, number, x.dtype.name,
                            x.shape))
    return gradient
