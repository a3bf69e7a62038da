# SPDX-License-Identifier: Apache-2.0
"""tn.recompute_grad: gradients that compute a function again instead of keeping what it computed.

A call is a function of the graph (PartitionedCall) that says so; its backward part has the forward
part in it (framework/graph/recompute.h).
"""

from __future__ import annotations

import functools

from treenail._convert import scope_of
from treenail._framework import control_dependencies, executing_eagerly, get_default_graph
from treenail._function_graph import Traced, assembled
from treenail._nest import flatten
from treenail._ops import ops
from treenail._treenail import Operation, Tensor, resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def recompute_grad(f: Callable) -> Callable:
    """A decorator: gradients through a call of `f` compute it again, from its arguments, instead of
    keeping what it computed in between. A chain of n such calls needs memory for what n calls
    return and for the inside of one, and time for computing everything twice.

    f: called with any arguments, returns a tensor or a nest of tensors. It is traced at each call,
    as a branch of tn.cond is, and with immediate execution as by tn.function; variables and what
    else it reads of the surroundings have gradients as ever. The gradients have the bits of those
    of f: random numbers are the same again, and what was read of variables, or has effects, is
    kept. So is a loop or branch in f that draws random
    numbers or writes. Useful in bodies of loops, too, of which each iteration then keeps no more
    than the arguments of its calls.

    Raises TypeError for what is not callable, ValueError for a function that returns nothing.
    """
    if not callable(f):
        raise TypeError("recompute_grad: f must be a function, not %r" % (f,))

    at_once: list = []

    @functools.wraps(f, updated=())
    def decorated(*args: Any, **kwargs: Any) -> Any:
        if not executing_eagerly():
            return _call(f, args, kwargs)
        if not at_once:
            from treenail._function import Function
            at_once.append(Function(f, autograph=False, recompute=True))
        return at_once[0](*args, **kwargs)
    return decorated


def _call(f: Callable, args: tuple, kwargs: dict) -> Any:
    name = getattr(f, "__name__", type(f).__name__)
    graph = get_default_graph()
    with scope_of(None, "recompute", flatten(args)) as scope:
        traced = Traced(scope + "f", lambda: f(*args, **kwargs))
        if not traced.outputs:
            raise ValueError("%s must return a tensor or a nest of tensors, not %r"
                             % (name, traced.structure))
        own = len(traced.outputs)
        collected = _collected(traced)
        function, stateful = traced.add_to(graph._library)
        stateful = stateful or any(t.dtype == resource for t in traced.graph.captured)
        op = ops.StatefulPartitionedCall if stateful else ops.PartitionedCall
        with control_dependencies(traced.graph.calls_wait_for()):
            results = op(
                traced.graph.captured, f=function, Tout=[t.dtype for t in traced.outputs],
                output_shapes=[t.shape for t in traced.outputs], recompute=True, name=scope)
        for (items, place, _), result in zip(collected, results[own:]):
            items[place] = result
        return assembled(traced.structure, results[:own])


def _collected(traced: Traced) -> list:
    """What f has put into collections (losses, updates), as further outputs: (collection, place,
    value). An operation is true when it has run."""
    found = []
    for items in traced.graph._collections.values():
        for place, item in enumerate(items):
            if isinstance(item, (Tensor, Operation)) and item.graph is traced.graph:
                with traced.graph.as_default():
                    found.append((items, place, traced._as_value(item)))
    traced.outputs.extend(value for _, _, value in found)
    return found


__all__ = ["recompute_grad"]
