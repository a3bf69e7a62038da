# SPDX-License-Identifier: Apache-2.0
"""Functions with gradients of their own, with immediate execution: a call is one entry of each tape
that is open. The operations of the function stand on the tapes beside it, for gradients of its
gradient."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import IndexedSlices, convert_to_tensor
from treenail._function_graph import assembled, components
from treenail._nest import flatten, is_nested, map_structure
from treenail._ops import ops
from treenail._tape import GradientTape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def call_at_once(name: str, f: Callable, args: tuple, kwargs: dict, tensor: Callable,
                 takes_variables: Callable) -> Any:
    """What f(*args) gives, known to tapes by its gradient function."""
    args = map_structure(tensor, args)
    with GradientTape() as own:
        returned = f(*args, **kwargs)
    if not isinstance(returned, (tuple, list)) or len(returned) != 2 or not callable(returned[1]):
        raise TypeError("%s must return a value and a gradient function, not %r" % (name, returned))
    structure, grad_fn = returned
    structure = map_structure(tensor, structure) if is_nested(structure) else tensor(structure)
    inputs = [t for leaf in flatten(args) for t in components(leaf)]
    results = [t for leaf in flatten(structure) for t in components(leaf)]
    if not results:
        raise TypeError("%s must return a tensor or a nest of tensors, not %r" % (name, structure))
    variables = [v for v in own.watched_variables() if not any(v.handle is t for t in inputs)]
    if variables and not takes_variables(grad_fn):
        raise TypeError("If using @custom_gradient with a function that uses variables, then "
                        "grad_fn must accept a 'variables' keyword argument: %s reads %s"
                        % (name, ", ".join(v.name for v in variables)))
    rule = _Rule(name, grad_fn, results, inputs, variables)
    return assembled(structure, _core.record_call(inputs + [v.handle for v in variables], results,
                                                  rule))


class _Rule:
    def __init__(self, name: str, grad_fn: Callable, results: list, inputs: list,
                 variables: list) -> None:
        self._name, self._grad_fn, self._results = name, grad_fn, results
        self._inputs, self._variables = inputs, variables

    def __call__(self, arriving: list, needed: list) -> list:
        dys = [ops.ZerosLike(y) if g is None else IndexedSlices(*g) if isinstance(g, tuple) else g
               for g, y in zip(arriving, self._results)]
        return [self._checked(number, g) for number, g in enumerate(self._gradients(dys))]

    def _gradients(self, dys: list) -> list:
        if not self._variables:
            return self._counted(self._grad_fn(*dys))
        given = self._grad_fn(*dys, variables=list(self._variables))
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise ValueError("the gradient function of %s must give two lists, for arguments and "
                             "for variables, not %r" % (self._name, given))
        of_variables = flatten(given[1])
        if len(of_variables) != len(self._variables):
            raise ValueError("Must return gradient for each variable from @custom_gradient "
                             "grad_fn: %s reads %d, it gave %d" % (
                                 self._name, len(self._variables), len(of_variables)))
        return self._counted(given[0]) + of_variables

    def _counted(self, given: Any) -> list:
        given = flatten(given)
        if len(given) != len(self._inputs):
            raise ValueError("the gradient function of %s gives %d gradients for %d arguments"
                             % (self._name, len(given), len(self._inputs)))
        return given

    def _checked(self, number: int, gradient: Any) -> Any:
        if gradient is None:
            return None
        if isinstance(gradient, IndexedSlices):
            return gradient.values, gradient.indices, gradient.dense_shape
        gradient = convert_to_tensor(gradient)
        of = [*self._inputs, *self._variables][number]
        if gradient.dtype != of.dtype or not gradient.shape.is_compatible_with(of.shape):
            raise ValueError("the gradient function of %s gives %s%s for argument %d, which is %s%s"
                             % (self._name, gradient.dtype.name, gradient.shape, number,
                                of.dtype.name, of.shape))
        return gradient
