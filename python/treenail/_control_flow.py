# SPDX-License-Identifier: Apache-2.0
"""Branches and loops: tn.cond, tn.case, tn.switch_case, tn.while_loop."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._assertions import Assert
from treenail._convert import convert_to_tensor, scope_of
from treenail._framework import (_DefaultGraph, control_dependencies, executing_eagerly,
                                 get_default_graph)
from treenail._function_graph import Traced, assembled, components
from treenail._math import reduce_sum
from treenail._nest import flatten, is_nested, map_structure
from treenail._ops import ops
from treenail._precision import common_precision
from treenail._shape import TensorShape, as_shape
from treenail._tensor_array import TensorArray
from treenail._treenail import Operation, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence


def cond(pred: Any, true_fn: Callable | None = None, false_fn: Callable | None = None,
         strict: bool = False, name: str | None = None, fn1: Callable | None = None,
         fn2: Callable | None = None) -> Any:
    """What `true_fn()` returns where `pred`, a bool scalar, is true, else what `false_fn()` does;
    only that one runs.

    Both return a tensor, or nested tuples, lists and dictionaries of tensors and TensorArrays, of
    the same structure and dtypes; an operation counts as a bool that is there when it has run.
    Lists and tuples of one value are unpacked unless `strict`. What the functions read of the
    surroundings is computed before, whichever runs. fn1, fn2: older names of the functions.

    Raises TypeError for what is not callable, for a Python bool as `pred` and for different dtypes,
    ValueError for different structures and for functions that return nothing.
    """
    true_fn, false_fn = _one_of(true_fn, fn1, "true_fn", "fn1"), _one_of(false_fn, fn2, "false_fn",
                                                                         "fn2")
    if isinstance(pred, bool):
        raise TypeError("pred must not be a Python bool")
    with scope_of(name, "cond", [pred]) as scope:
        pred = convert_to_tensor(pred, _core.bool)
        if not pred.shape.is_compatible_with(()):
            raise ValueError("pred must be a scalar, not of shape %s" % pred.shape)
        if executing_eagerly():
            return _at_once(true_fn if pred else false_fn, "true_fn" if pred else "false_fn",
                            strict)
        branches = _branches(scope, {"true_fn": true_fn, "false_fn": false_fn}, strict)
        return branches.call("If", [pred], dict(zip(("then_branch", "else_branch"),
                                                    branches.functions)))


def _at_once(function: Callable, name: str, strict: bool) -> Any:
    """What a branch gives with immediate execution."""
    result = function()
    if result is None:
        raise ValueError("%s must have a return value." % name)
    if is_nested(result):
        result = map_structure(_converted, result)
        return result if strict else _unpacked(result)
    return _converted(result)


def _one_of(function: Any, old: Any, name: str, old_name: str) -> Callable:
    if function is not None and old is not None:
        raise TypeError("cond(): %s and %s may not be set simultaneously." % (old_name, name))
    function = old if function is None else function
    if not callable(function):
        raise TypeError("%s must be callable." % name)
    return function


class _branches:
    """Functions of no argument, traced, that give the same: of which one is to be called."""

    def __init__(self, scope: str, functions: dict, strict: bool) -> None:
        graph = get_default_graph()
        self._scope = scope
        traced = [Traced(scope + name, function) for name, function in functions.items()]
        for branch, name in zip(traced, functions):
            if not strict:
                branch.structure = _unpacked(branch.structure)
            if not branch.outputs and branch.structure is None:
                raise ValueError("%s must have a return value." % name)
        self._structure = traced[0].structure
        self._check_structures(traced, list(functions))
        self._to_common_precision(traced)
        self._check_dtypes(traced, list(functions))
        self._captured = list(dict.fromkeys(t for b in traced for t in b.graph.captured))
        self._waits_for = [op for b in traced for op in b.graph.calls_wait_for()]
        for branch in traced:
            branch.captures_all(self._captured)
        added = [branch.add_to(graph._library) for branch in traced]
        self.functions = [name for name, _ in added]
        self._stateful = any(stateful for _, stateful in added) or any(
            t.dtype == _core.resource for t in self._captured)
        self._dtypes = [t.dtype for t in traced[0].outputs]
        self._shapes = [_common_shape([b.outputs[i].shape for b in traced])
                        for i in range(len(self._dtypes))]

    @staticmethod
    def _check_structures(traced: list, names: list) -> None:
        first = traced[0]
        for branch, name in zip(traced[1:], names[1:]):
            try:
                map_structure(lambda *_: None, [first.structure], [branch.structure])
                if len(first.outputs) != len(branch.outputs):
                    raise ValueError
            except ValueError:
                raise ValueError("%s and %s must return the same structure, not %r and %r"
                                 % (names[0], name, first.structure, branch.structure)) from None

    @staticmethod
    def _to_common_precision(traced: list) -> None:
        """In a scope of mixed precision a result that is narrow on one way only is made wide."""
        for i, wanted in enumerate(traced[0].outputs):
            dtype = wanted.dtype
            for branch in traced[1:]:
                dtype = common_precision(dtype, branch.outputs[i].dtype) or dtype
            for branch in traced:
                if common_precision(dtype, branch.outputs[i].dtype) is not None:
                    with _DefaultGraph(branch.graph):
                        branch.outputs[i] = _core.cast_in_scope(branch.outputs[i], dtype)

    @staticmethod
    def _check_dtypes(traced: list, names: list) -> None:
        first = traced[0]
        for branch, name in zip(traced[1:], names[1:]):
            for a, b in zip(first.outputs, branch.outputs):
                if a.dtype != b.dtype:
                    raise TypeError("%s and %s must return values of the same dtype: %s is %s, %s "
                                    "is %s" % (names[0], name, a.name, a.dtype.name, b.name,
                                               b.dtype.name))

    def call(self, op: str, chooses: list, functions: dict) -> Any:
        kind = op if self._stateful else "Stateless" + op
        with control_dependencies(self._waits_for):
            results = getattr(ops, kind)(*chooses, self._captured, Tout=self._dtypes,
                                         output_shapes=self._shapes, name=self._scope, **functions)
        if isinstance(results, Operation):
            results = []
        return assembled(self._structure, results)


def _unpacked(structure: Any) -> Any:
    while isinstance(structure, (list, tuple)) and len(structure) == 1 and not hasattr(
            structure, "_fields"):
        structure = structure[0]
    return structure


def _common_shape(shapes: Sequence[TensorShape]) -> TensorShape:
    """What holds for all of them."""
    if any(s.rank is None or s.rank != shapes[0].rank for s in shapes):
        return TensorShape(None)
    return TensorShape([extents[0] if all(e == extents[0] for e in extents) else None
                        for extents in zip(*[s.as_list() for s in shapes])])


def switch_case(branch_index: Any, branch_fns: Any, default: Callable | None = None,
                name: str = "switch_case") -> Any:
    """What branch number `branch_index`, an int32 scalar, returns; only that one runs.

    branch_fns: a list of functions without arguments, or {number: function} or pairs of these with
    the numbers 0, 1, ... default: runs for any other number; without it the last function does.
    What the functions return: as for tn.cond.

    Raises TypeError and ValueError as tn.cond, and for numbers that leave a gap.
    """
    functions = _numbered(branch_fns)
    if default is not None:
        functions.append(default)
    for function in functions:
        if not callable(function):
            raise TypeError("branch_fns must be callable, not %r" % (function,))
    with scope_of(name, "switch_case", [branch_index]) as scope:
        branch_index = convert_to_tensor(branch_index, _core.int32)
        if executing_eagerly():
            number = int(branch_index) if 0 <= int(branch_index) < len(functions) else -1
            return _at_once(functions[number], "branch%d" % (number % len(functions)), False)
        branches = _branches(scope, {"branch%d" % i: function
                                     for i, function in enumerate(functions)}, False)
        return branches.call("Case", [branch_index], {"branches": branches.functions})


def _numbered(branch_fns: Any) -> list:
    if isinstance(branch_fns, dict):
        branch_fns = list(branch_fns.items())
    if not isinstance(branch_fns, (list, tuple)) or not branch_fns:
        raise TypeError("branch_fns must be a list of functions, pairs or a dict, not %r"
                        % (branch_fns,))
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in branch_fns):
        return list(branch_fns)
    by_number = dict(branch_fns)
    if sorted(by_number) != list(range(len(branch_fns))):
        raise ValueError("branch indices must be 0 to %d, each once, not %s"
                         % (len(branch_fns) - 1, sorted(number for number, _ in branch_fns)))
    return [by_number[number] for number in range(len(branch_fns))]


def case(pred_fn_pairs: Any, default: Callable | None = None, exclusive: bool = False,
         strict: bool = False, name: str = "case") -> Any:
    """What the function of the first true condition returns.

    pred_fn_pairs: pairs (bool scalar, function without arguments), or a dict of them, which needs
    `exclusive` for its order. default: runs where none is true; without it one must be. exclusive:
    at most one may be true. Errors at run time: InvalidArgumentError where a rule is broken.

    Raises TypeError and ValueError as tn.cond.
    """
    if isinstance(pred_fn_pairs, dict):
        pred_fn_pairs = list(pred_fn_pairs.items())
    pairs = list(pred_fn_pairs)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError("Each entry in pred_fn_pairs must be a 2-tuple, not %r" % (pair,))
        if not isinstance(pair[0], Tensor) or pair[0].dtype != _core.bool:
            raise TypeError("pred must be a bool Tensor, not %r" % (pair[0],))
        if not callable(pair[1]):
            raise TypeError("fn for pred %s must be callable." % _shown(pair[0]))
    if not pairs:
        raise ValueError("pred_fn_pairs must have at least one pair")
    if default is not None and not callable(default):
        raise TypeError("default must be callable.")
    with scope_of(name, "case", [pred for pred, _ in pairs]):
        rules = _rules_of_case([pred for pred, _ in pairs], exclusive, default is None)
        with control_dependencies(rules):
            pairs = [(ops.Identity(pred), function) for pred, function in pairs]
        if default is None:
            default = pairs.pop()[1]
        chosen = default
        for pred, function in reversed(pairs):
            chosen = _choice(pred, function, chosen, strict)
        return chosen() if pairs else _strictly(chosen(), strict)


def _choice(pred: Tensor, function: Callable, otherwise: Callable, strict: bool) -> Callable:
    return lambda: cond(pred, function, otherwise, strict=strict)


def _strictly(result: Any, strict: bool) -> Any:
    return result if strict else _unpacked(result)


def _rules_of_case(preds: list, exclusive: bool, one_needed: bool) -> list:
    held = reduce_sum(ops.Cast(ops.Pack(preds), DstT=_core.int32))
    names = [_shown(pred) for pred in preds]
    rules = []
    if exclusive:
        rules.append(Assert(ops.LessEqual(held, 1), [
            "Input error: more than one of the conditions (%s) of an exclusive tn.case is true"
            % ", ".join(names), ops.Pack(preds)]))
    if one_needed:
        rules.append(Assert(ops.GreaterEqual(held, 1), [
            "Input error: none of the conditions (%s) of a tn.case without a default is true"
            % ", ".join(names)]))
    return rules


def while_loop(cond: Callable, body: Callable, loop_vars: Any,  # noqa: A002
               shape_invariants: Any = None, parallel_iterations: int = 10, back_prop: bool = True,
               swap_memory: bool = False, name: str | None = None,
               maximum_iterations: Any = None, return_same_structure: bool = False) -> Any:
    """`loop_vars` as `body` leaves them when `cond` is no longer true of them.

    loop_vars: tensors, TensorArrays, or what converts to tensors, in nested tuples, lists and
    dictionaries; `cond(*loop_vars)` gives a bool scalar, `body(*loop_vars)` the next values, of the
    same structure and dtypes. shape_invariants: of the same structure, what holds of each value's
    shape in every iteration; by default the shape that it begins with. What both functions read of
    the surroundings is computed once, before. maximum_iterations: the loop ends after so many.
    parallel_iterations: how many may be under way at once; the results are the same for any.
    back_prop, swap_memory: as TensorFlow 1 takes them; they change nothing here. A single loop
    variable is returned as it is, not in a list, unless `return_same_structure`.

    Raises TypeError for what is not callable and for a value that changes its dtype, ValueError for
    no loop variables, another structure, and a shape that grows or changes without an invariant
    that allows it.
    """
    for what, function in (("cond", cond), ("body", body)):
        if not callable(function):
            raise TypeError("%s must be callable." % what)
    if not isinstance(parallel_iterations, int) or parallel_iterations < 1:
        raise TypeError("parallel_iterations must be a positive integer.")
    if not is_nested(loop_vars):
        loop_vars = [loop_vars]
    if not flatten(loop_vars):
        raise ValueError("No loop variables provided")
    with scope_of(name, "while", flatten(loop_vars)) as scope:
        loop = _Loop(scope, loop_vars, shape_invariants, maximum_iterations)
        results = loop.run_at_once(cond, body) if executing_eagerly() else loop.run(
            cond, body, parallel_iterations)
    single = len(results) == 1 and isinstance(results, (list, tuple))
    return results[0] if single and not return_same_structure else results


class _Loop:
    """The values of a loop: its variables, the number of the iteration where it matters, and what
    is read of the surroundings."""

    def __init__(self, scope: str, loop_vars: Any, shape_invariants: Any, maximum: Any) -> None:
        self._scope = scope
        self._structure = map_structure(_converted, loop_vars)
        self._first = [t for leaf in flatten(self._structure) for t in components(leaf)]
        if shape_invariants is None:
            self._invariants = [t.shape for t in self._first]
        else:
            self._invariants = self._given_invariants(shape_invariants)
        self._maximum = None if maximum is None else self._bound(maximum)
        if maximum is not None:
            self._first.append(convert_to_tensor(0, self._maximum.dtype))
            self._invariants.append(TensorShape([]))

    @staticmethod
    def _bound(maximum: Any) -> Tensor:
        bound = convert_to_tensor(maximum)
        if not bound.shape.is_compatible_with(()) or bound.dtype not in (_core.int32, _core.int64):
            raise ValueError("maximum_iterations must be an integer scalar, not %r" % (maximum,))
        return bound

    def _given_invariants(self, shapes: Any) -> list:
        found: list = []

        def one(leaf: Any, shape: Any) -> None:
            parts = components(leaf)
            if len(parts) != 1 or isinstance(leaf, TensorArray):
                found.extend(t.shape for t in parts)
                return
            invariant = as_shape(shape)
            if not _less_specific(invariant, parts[0].shape):
                raise ValueError("The shape invariant specified for %s is not compatible with the "
                                 "initial shape of the loop variable. It enters the loop with "
                                 "shape %s, but the specified shape invariant is %s."
                                 % (_shown(parts[0]), parts[0].shape, invariant))
            found.append(invariant)
        shapes = _shapes_like(self._structure, shapes)
        for leaf, shape in zip(flatten(self._structure), shapes):
            one(leaf, shape)
        return found

    def _arguments(self, graph: Any) -> list:
        return [_core.body_argument(graph, t, graph._unique_name("loop_var"))
                if t.dtype == _core.resource else
                ops.Placeholder(dtype=t.dtype, shape=shape, name="loop_var")
                for t, shape in zip(self._first, self._invariants)]

    def run(self, cond: Callable, body: Callable, parallel_iterations: int) -> Any:
        library = get_default_graph()._library
        holds, step = self._trace_cond(cond), self._trace_body(body)
        captured = list(dict.fromkeys(holds.graph.captured + step.graph.captured))
        holds.captures_all(captured)
        step.captures_all(captured)
        outputs = [t if t.graph is step.graph else step.graph.capture(t) for t in step.outputs]
        names = [traced.add_to(library, out) for traced, out in (
            (holds, holds.outputs), (step, outputs + step.graph.arguments))]
        stateful = any(s for _, s in names) or any(t.dtype == _core.resource for t in captured)
        op = ops.While if stateful else ops.StatelessWhile
        waits_for = holds.graph.calls_wait_for() + step.graph.calls_wait_for()
        with control_dependencies(waits_for):
            results = op(self._first + captured, cond=names[0][0], body=names[1][0],
                         output_shapes=self._invariants + [t.shape for t in captured],
                         parallel_iterations=parallel_iterations, name=self._scope)
        return assembled(self._structure, results)

    def run_at_once(self, cond: Callable, body: Callable) -> Any:
        """The results, with immediate execution."""
        values = self._first
        while bool(self._holds(cond, values)):
            values = self._step(body, values)
        return assembled(self._structure, values)

    def _holds(self, cond: Callable, values: list) -> Tensor:
        result = convert_to_tensor(_call(cond, assembled(self._structure, values)), _core.bool)
        if not result.shape.is_compatible_with(()):
            raise ValueError("cond must give a scalar, not a tensor of shape %s" % result.shape)
        if self._maximum is not None:
            result = ops.LogicalAnd(ops.Less(values[-1], self._maximum), result)
        return result

    def _step(self, body: Callable, values: list) -> list:
        returned = _call(body, assembled(self._structure, values))
        single = isinstance(self._structure, (list, tuple)) and len(self._structure) == 1
        if single and not (is_nested(returned) and len(returned) == 1):
            returned = [returned]
        new = self._checked(returned)
        if self._maximum is not None:
            new.append(ops.Add(values[-1], convert_to_tensor(1, self._maximum.dtype)))
        return new

    def _trace_cond(self, cond: Callable) -> Traced:
        arguments: list = []
        return Traced(self._scope + "cond", lambda: self._holds(cond, arguments),
                      lambda graph: arguments.extend(self._arguments(graph)) or arguments)

    def _trace_body(self, body: Callable) -> Traced:
        arguments: list = []
        return Traced(self._scope + "body", lambda: self._step(body, arguments),
                      lambda graph: arguments.extend(self._arguments(graph)) or arguments)

    def _checked(self, returned: Any) -> list:
        """The tensors of what the body returned, in order. Raises TypeError and ValueError."""
        if isinstance(returned, (list, tuple)) and isinstance(self._structure, (list, tuple)):
            returned = type(self._structure)(returned) if not hasattr(
                self._structure, "_fields") else returned
        values: list = []

        def one(old: Any, new: Any) -> None:
            parts = components(old)
            if isinstance(old, TensorArray) != isinstance(new, TensorArray):
                raise TypeError("a loop variable that is a TensorArray stays one: %r enters the "
                                "loop, the body returns %r" % (old, new))
            if len(parts) == 1 and not isinstance(new, TensorArray):
                new = convert_to_tensor(new, parts[0].dtype if not isinstance(
                    getattr(new, "dtype", None), _core.DType) else None)
            values.extend(components(new))
        try:
            map_structure(one, self._structure, returned)
        except ValueError as error:
            if "nested structure" not in str(error):
                raise
            raise ValueError("The two structures don't have the same nested structure: the loop "
                             "variables are %r, the body returns %r"
                             % (self._structure, returned)) from None
        values = [_core.cast_in_scope(new, old.dtype) if common_precision(
            old.dtype, new.dtype) else new for old, new in zip(self._first, values)]
        for old, shape, new in zip(self._first, self._invariants, values):
            if old.dtype != new.dtype:
                raise TypeError("Loop variable %s enters the loop with dtype %s, but has dtype %s "
                                "after one iteration" % (_shown(old), old.dtype.name,
                                                         new.dtype.name))
            if not _less_specific(shape, new.shape):
                raise ValueError("Input tensor '%s' enters the loop with shape %s, but has shape "
                                 "%s after one iteration. To allow the shape to vary across "
                                 "iterations, use the `shape_invariants` argument of "
                                 "tn.while_loop to specify a less-specific shape."
                                 % (_shown(old), shape, new.shape))
        return values


def _shown(tensor: Tensor) -> str:
    return getattr(tensor, "name", None) or repr(tensor)


def _call(function: Callable, variables: Any) -> Any:
    return function(**variables) if isinstance(variables, dict) else function(*variables)


def _converted(value: Any) -> Any:
    """A tensor, or a sparse one or an array of tensors as it is."""
    if isinstance(value, TensorArray) or len(components(value)) > 1:
        return value
    return convert_to_tensor(value)


def _shapes_like(structure: Any, shapes: Any) -> list:
    """One shape for each leaf of the structure; a list of numbers is a shape."""
    if not is_nested(structure):
        return [shapes]
    parts = list(structure.values()) if isinstance(structure, dict) else structure
    if not is_nested(shapes) or len(shapes) != len(parts):
        raise ValueError("shape_invariants must have the structure of loop_vars: %r, not %r"
                         % (structure, shapes))
    if isinstance(structure, dict):
        return [s for key in sorted(structure) for s in _shapes_like(structure[key], shapes[key])]
    return [s for part, shape in zip(parts, shapes) for s in _shapes_like(part, shape)]


def _less_specific(invariant: TensorShape, shape: TensorShape) -> bool:
    """Whether every shape that `shape` allows is allowed by `invariant`."""
    if invariant.rank is None:
        return True
    if shape.rank != invariant.rank:
        return False
    return all(want is None or want == got
               for want, got in zip(invariant.as_list(), shape.as_list()))


__all__ = ["cond", "case", "switch_case", "while_loop"]
