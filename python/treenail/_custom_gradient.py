# SPDX-License-Identifier: Apache-2.0
"""Functions with gradients of their own: tn.custom_gradient.

In a graph a call is the function's operations and one more, CustomGradient, that hands on their
results, and whose rule is the gradient function. That is called when a gradient is asked for, in
branches and loops for the copy of the body that is differentiated (_function_graph.GradientBody).
"""

from __future__ import annotations

import functools
import itertools
import weakref

from treenail import _treenail as _core
from treenail._convert import IndexedSlices, convert_to_tensor
from treenail._framework import executing_eagerly, get_default_graph
from treenail._function_graph import FunctionGraph, GradientBody, assembled, components
from treenail._nest import flatten, is_nested, map_structure
from treenail._ops import ops
from treenail._precision import as_around, common_precision
from treenail._sparse import SparseTensor
from treenail._tensor_array import TensorArray
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_numbers = itertools.count()
# By what CustomGradient operations name them; graphs hold them.
_calls: weakref.WeakValueDictionary[str, _Call] = weakref.WeakValueDictionary()


def custom_gradient(f: Callable) -> Callable:
    """A decorator that gives a function a gradient of its own.

    f: called with tensors (or nests of tensors), gives `(y, grad_fn)`: y a tensor or a nest of
    tensors, grad_fn(*dys) the gradients of f's arguments, of their dtypes and shapes or None, given
    those of the tensors of y. Where f reads variables that are not arguments, `grad_fn(*dys,
    variables=None)` gets the list of them and returns two lists, the gradients of the arguments and
    of these. What f reads besides, values of the surroundings, has no gradient through it.

    grad_fn is called when a gradient through a call of f is asked for, and each time: a gradient of
    the gradient is that of its operations. It may read what f computed. A call of f may stand in
    branches and loops; tensors that grad_fn makes for them belong to them, as those of f do.

    Raises TypeError where f or what it gives is not of this form and for a grad_fn that takes no
    `variables` though f reads some, ValueError for keyword arguments in a graph; gradients of
    another number, dtype or shape than the arguments are a ValueError of tn.gradients.
    """
    if not callable(f):
        raise TypeError("custom_gradient: f must be a function, not %r" % (f,))

    @functools.wraps(f, updated=())
    def decorated(*args: Any, **kwargs: Any) -> Any:
        if executing_eagerly():
            from treenail._immediate_custom import call_at_once
            return call_at_once(f, args, kwargs)
        return _call_in_graph(f, args, kwargs)
    return decorated


def _call_in_graph(f: Callable, args: tuple, kwargs: dict) -> Any:
    if kwargs:
        raise ValueError("custom_gradient: in a graph a function takes no keyword arguments, not "
                         "%s" % ", ".join(sorted(kwargs)))
    return _Call(f, args).run()


class _Call:
    """A call of a function that has a gradient of its own."""

    def __init__(self, f: Callable, args: tuple) -> None:
        self._name, self._precision = name_of(f), as_around()
        self._graph = get_default_graph()
        self._args = map_structure(self._here, args)
        first = self._graph._num_nodes
        self._structure, self._grad_fn = value_and_grad_fn(self._name, f(*self._args))
        self._inputs = tensors_in(self._args)
        self._results = tensors_in(self._structure)
        self._variables = variables_read(self._results, self._inputs, self._graph, first)
        check_takes_variables(self._name, self._grad_fn, self._variables)

    def _here(self, value: Any) -> Any:
        """An argument as a tensor of the graph, so that f and its gradient mean the same by it."""
        value = _tensor(value)
        if not isinstance(self._graph, FunctionGraph):
            return value
        return assembled(value, [t if t.graph is self._graph else self._graph.capture(t)
                                 for t in components(value)])

    def run(self) -> Any:
        """What f gave, behind the operation that has the gradient."""
        name = "%s-%d" % (self._name, next(_numbers))
        _calls[name] = self
        self._graph._library._py_functions.append(self)
        self._held = _tensors_held(self._grad_fn) if isinstance(
            self._graph, GradientBody) else []
        arguments = self._inputs + [v.handle for v in self._variables] + self._held
        results = ops.CustomGradient(self._results, arguments, function=name)
        return assembled(self._structure, results)

    def rule(self, dys: tuple) -> list:
        """The gradient of the operation's inputs: results, arguments, variables, what is held."""
        with self._precision:
            given = in_dtypes(gradients_given(self._name, self._grad_fn, dys, len(self._inputs),
                                              self._variables), [*self._inputs, *self._variables])
        return [None] * len(self._results) + given + [None] * len(self._held)


def _rule(op: Any, *dys: Any) -> list:
    name = op.get_attr("function")
    call = _calls.get(name)
    if call is None:
        raise LookupError("No gradient defined for operation %r: its gradient function, %r, is not "
                          "in this process; graph files do not hold it" % (op.name, name))
    return call.rule(dys)


_core.register_gradient("CustomGradient", _rule, True)


def name_of(f: Callable) -> str:
    """What messages call the function."""
    return getattr(f, "__name__", type(f).__name__)


def tensors_in(structure: Any) -> list:
    """The tensors of a nest, in order."""
    return [t for leaf in flatten(structure) for t in components(leaf)]


def value_and_grad_fn(name: str, returned: Any) -> tuple:
    """(the value as tensors, the gradient function) of what the function gave. Raises TypeError for
    another form."""
    if not isinstance(returned, (tuple, list)) or len(returned) != 2 or not callable(returned[1]):
        raise TypeError("%s must return a value and a gradient function, not %r" % (name, returned))
    structure, grad_fn = returned
    structure = map_structure(_tensor, structure) if is_nested(structure) else _tensor(structure)
    if not tensors_in(structure):
        raise TypeError("%s must return a tensor or a nest of tensors, not %r" % (name, structure))
    return structure, grad_fn


def check_takes_variables(name: str, grad_fn: Callable, variables: list) -> None:
    """Raises TypeError where there are variables and grad_fn does not take them."""
    if variables and not _takes_variables(grad_fn):
        raise TypeError("If using @custom_gradient with a function that uses variables, then "
                        "grad_fn must accept a 'variables' keyword argument: %s reads %s"
                        % (name, ", ".join(v.name for v in variables)))


def gradients_given(name: str, grad_fn: Callable, dys: Any, arguments: int,
                    variables: list) -> list:
    """What grad_fn gives for the arguments and then for the variables. Raises ValueError for
    another number of gradients."""
    given = grad_fn(*dys, variables=list(variables)) if variables else grad_fn(*dys)
    of_variables: list = []
    if variables:
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise ValueError("the gradient function of %s must give two lists, for arguments and "
                             "for variables, not %r" % (name, given))
        given, of_variables = given[0], flatten(given[1])
        if len(of_variables) != len(variables):
            raise ValueError("Must return gradient for each variable from @custom_gradient "
                             "grad_fn: %s reads %d, it gave %d" % (name, len(variables),
                                                                   len(of_variables)))
    given = flatten(given)
    if len(given) != arguments:
        raise ValueError("the gradient function of %s gives %d gradients for %d arguments"
                         % (name, len(given), arguments))
    return [*given, *of_variables]


def in_dtypes(gradients: list, like: list) -> list:
    """In a scope of mixed precision, which gradients are computed in where the function is, those
    of other dtypes than their arguments are cast."""
    return [_core.cast_in_scope(g, x.dtype) if isinstance(g, Tensor) and common_precision(
        g.dtype, x.dtype) else g for g, x in zip(gradients, like)]


def _tensor(value: Any) -> Any:
    if isinstance(value, (SparseTensor, IndexedSlices, TensorArray)) or value is None:
        return value
    return convert_to_tensor(value)


def _takes_variables(grad_fn: Callable) -> bool:
    from inspect import Parameter, signature
    parameters = signature(grad_fn).parameters
    return "variables" in parameters or any(p.kind is Parameter.VAR_KEYWORD
                                            for p in parameters.values())


def variables_read(results: list, arguments: list, graph: Any, first: int) -> list:
    """The variables that the results depend on by operations of the graph from number `first` on,
    without those that are arguments, in the order in which they are met."""
    found: dict = {}
    seen = set(arguments)
    stack = list(reversed(results))
    while stack:
        tensor = stack.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        variable = _variable_of(tensor)
        if variable is not None:
            found[variable] = None
        elif tensor.graph is graph and (tensor.op._id >= first or tensor.op.type in _HAND_ON):
            stack.extend(reversed(tensor.op.inputs))
    return list(found)


# Of a variable's value, as it may have been read before: a part of it, or cast.
_HAND_ON = ("ReadVariableOp", "Identity", "Concat", "Cast")


def _variable_of(tensor: Tensor) -> Any:
    """The variable of a handle, which may have been passed to a body."""
    while tensor.dtype == _core.resource:
        variable = getattr(tensor, "_variable", None)
        if variable is not None or not isinstance(tensor.graph, FunctionGraph):
            return variable
        around = [outer for outer, inner in tensor.graph._stand_ins.items() if inner is tensor]
        if not around:
            return None
        tensor = around[0]
    return None


def _tensors_held(function: Callable) -> list:
    """Tensors that a gradient function holds on to: what a gradient of it may need of a body whose
    values are gone by then."""
    found: dict = {}
    for cell in getattr(function, "__closure__", None) or ():
        try:
            leaves = flatten(cell.cell_contents)
        except ValueError:  # not assigned yet
            continue
        found.update((leaf, None) for leaf in leaves if isinstance(leaf, Tensor))
    return list(found)


__all__ = ["custom_gradient"]
