# SPDX-License-Identifier: Apache-2.0
"""Operations that are run for what they do: in the order of the program, and whenever the block
runs in which they stand, though no value is taken from them."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._control import with_dependencies
from treenail._framework import (_DefaultGraph, control_dependencies, executing_eagerly,
                                 get_default_graph)
from treenail._nest import is_nested, map_structure
from treenail._ops import ops
from treenail._treenail import Operation, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

# Stateful operations that are run for their value alone.
_READERS = frozenset(("ReadVariableOp", "VarHandleOp", "VariableShape", "VarIsInitializedOp",
                      "ResourceGather", "ResourceGatherNd", "Placeholder"))
_VALUES = ("Random", "Handle", "Normal", "Uniform", "Multinomial", "Sampler")
_kinds: set = set()  # types of operations that are run for what they do


def _does_something(op: Operation) -> bool:
    if not _kinds:
        _kinds.update(info["name"] for info in _core.describe_ops()
                      if info["stateful"] and info["name"] not in _READERS
                      and not any(word in info["name"] for word in _VALUES))
    return op.type in _kinds


def effects(graph: Any) -> list:
    """Operations to wait for, that all is done what those of a body do."""
    pure = vars(graph).get("_pure_calls", ())
    found = [op for op in graph.get_operations() if _does_something(op) and op not in pure]
    with _DefaultGraph(graph):
        return [_read(op) for op in found]


def _read(op: Operation) -> Operation:
    """What waits for a branch: it runs for its results alone, so one of them is read."""
    return ops.Identity(op.outputs[0]).op if op.type in ("If", "Case") and op.outputs else op


def call_of_bodies(make: Callable, does_something: bool) -> Any:
    """The results of an If or While, in the order of effects where its bodies have some."""
    if not does_something:
        results = make()
        if results:
            vars(get_default_graph()).setdefault("_pure_calls", set()).add(results[0].op)
        return results
    made: list = []
    in_order(lambda: made.extend(make()) or made[0])
    return made


def in_order(make: Callable) -> Any:
    """What `make()` gives, an operation or a tensor that runs behind what was made so before."""
    graph = get_default_graph()
    last = vars(graph).get("_last_effect")
    with control_dependencies([] if last is None else [last]):
        made = make()
    graph._last_effect = _read(made if isinstance(made, Operation) else made.op)
    return made


def after_effects(function: Callable, args: tuple, kwargs: dict) -> Any:
    """What function(*args, **kwargs) returns, its tensors behind what the converted statements of
    the call do. Operations that the program makes itself are its own to run."""
    if executing_eagerly():
        return function(*args, **kwargs)
    graph = get_default_graph()
    around = vars(graph).pop("_last_effect", None)
    try:
        result = function(*args, **kwargs)
        last = vars(graph).pop("_last_effect", None)
    finally:
        graph._last_effect = around
    if last is None:
        return result

    def behind(value: Any) -> Any:
        if isinstance(value, Tensor) and not value._is_concrete and value.op is not last:
            return with_dependencies([last], value)
        return value
    return map_structure(behind, result) if is_nested(result) else behind(result)


def true_after(operations: list) -> Tensor:
    """A true that is there when these operations have run."""
    with control_dependencies(operations):
        return ops.Identity(True)
