# SPDX-License-Identifier: Apache-2.0
"""`if` and its kin: what Python decides stays Python's; where a tensor decides, both branches are
traced, and what they leave in the function's variables is joined."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import convert_to_tensor, scope_of
from treenail._framework import _DefaultGraph, control_dependencies, get_default_graph
from treenail._function_graph import Traced
from treenail._ops import ops
from treenail.autograph._cells import (UNBOUND, Undecided, cells_of, set_values, value_of,
                                       values_of)
from treenail.autograph._effects import call_of_bodies, effects, true_after
from treenail.autograph._places import decided, place, refusal
from treenail.autograph._values import (Merge, Mismatch, built, in_graph, is_symbolic,
                                        shape_of_pair, truth)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

RESULT = "ag__value"  # the variable that holds what the function returns
FLAGS = ("ag__returned", "ag__break_", "ag__continue_")


def branch(test: Any, yes: Callable, no: Callable | None, names: Sequence) -> None:
    """`if test: yes() else: no()`."""
    if not is_symbolic(test):
        if test:
            yes()
        elif no is not None:
            no()
        return
    choose("the `if` at " + place(), truth(test), yes, no or _nothing, cells_of(names, yes, no))


def unless(flags: Callable, block: Callable, names: Sequence) -> None:
    """Runs a block unless one of the flags is set."""
    flag = any_of(flags())
    if not is_symbolic(flag):
        if not flag:
            block()
        return
    guarded("what may be left before " + place(), flag, block, cells_of(names, block))


def guarded(what: str, flag: Any, block: Callable, cells: dict) -> None:
    """Runs a block where `flag`, a tensor, is false; in there no flag is set."""
    def unset() -> None:
        set_values(cells, {name: False for name, cell in cells.items()
                           if name.startswith(FLAGS) and is_symbolic(value_of(cell))})
        block()
    choose(what, truth(flag), _nothing, unset, cells, [block])


def _nothing() -> None:
    pass


def any_of(flags: Sequence) -> Any:
    """Whether one of the flags, bools of Python and of tensors, is set."""
    if any(flag is True for flag in flags):
        return True
    tensors = [flag for flag in flags if flag is not False]
    if not tensors:
        return False
    result = tensors[0]
    for flag in tensors[1:]:
        result = ops.LogicalOr(result, flag)
    return result


def choice(test: Any, yes: Callable, no: Callable) -> Any:
    """`yes() if test else no()`."""
    if not is_symbolic(test):
        return yes() if test else no()
    return choose("the conditional expression at " + place(), truth(test), yes, no, {})


def choose(what: str, pred: Any, yes: Callable, no: Callable, cells: dict,
           functions: Sequence | None = None) -> Any:
    """What the branch of `pred` returns; the cells hold what it leaves there. functions: of the
    program, where yes and no are not."""
    with scope_of(None, "cond", [pred]) as scope:
        before = values_of(cells)
        ways = []
        for name, function in (("true_fn", yes), ("false_fn", no)):
            try:
                with decided(what, functions or [function]):
                    ways.append(_Way(scope + name, function, cells))
            finally:
                set_values(cells, before)
        merges = _merges(what, ways, cells)
        results = _If(scope, pred, [way.traced for way in ways], merges).results
    for name, (template, merge, at) in merges.items():
        value = built(template, results[at:at + len(merge.pairs)])
        if name is not None:
            set_values(cells, {name: value})
    template, merge, at = merges[None]
    value = built(template, results[at:at + len(merge.pairs)])
    if isinstance(value, Undecided):
        value.refuse("the value")
    return value


class _Way:
    """A branch, traced: what it returns (under None), and what it leaves in the cells."""

    def __init__(self, name: str, function: Callable, cells: dict) -> None:
        self.values: dict = {}

        def run() -> None:
            result = function()
            self.values = {None: result, **values_of(cells)}
        self.traced = Traced(name, run)


def _merges(what: str, ways: list, cells: dict) -> dict:
    """{name: (template, its Merge, number of its first result)}"""
    found: dict = {}
    count = 0
    for name in (None, *cells):
        a, b = (way.values[name] for way in ways)
        merge = Merge(name == RESULT)
        try:
            template = UNBOUND if a is b is UNBOUND else merge.merged(a, b)
        except Mismatch as mismatch:
            template, merge = _undecided(what, name, mismatch), Merge()
        found[name] = (template, merge, count)
        count += len(merge.pairs)
    return found


def _undecided(what: str, name: str | None, mismatch: Mismatch) -> Undecided:
    kind, why = mismatch.args
    if name == RESULT:
        raise refusal(kind, "%s returns values that no tensor can be on both ways: %s"
                      % (what, why)) from None
    return Undecided(kind, "%s, which a tensor decides, leaves its value open: %s" % (what, why))


class _If:
    """The operation, and its results in the order of all pairs of all merges."""

    def __init__(self, scope: str, pred: Any, traced: list, merges: dict) -> None:
        pairs = [pair for _, merge, _ in merges.values() for pair in merge.pairs]
        outputs = [self._outputs(branch, pairs, number) for number, branch in enumerate(traced)]
        self._shapes = [shape_of_pair(a, b, x, y) for (a, b, _), x, y in zip(pairs, *outputs)]
        self._done = [settled(branch, tensors) for branch, tensors in zip(traced, outputs)]
        self.results: Sequence = []
        if not pairs and not any(done for done in self._done):
            return  # nothing comes of it
        if not pairs:
            self._shapes = [convert_to_tensor(True).shape]
            for branch, done in zip(traced, self._done):
                with _DefaultGraph(branch.graph):
                    branch.outputs = [true_after(done)]
        self.results = self._added(scope, pred, traced)

    @staticmethod
    def _outputs(branch: Traced, pairs: list, number: int) -> list:
        with _DefaultGraph(branch.graph):
            return [branch._here(in_graph(pair[number], pair[1 - number], pair[2]))
                    for pair in pairs]

    def _added(self, scope: str, pred: Any, traced: list) -> Sequence:
        captured, waits_for = share_captures(traced)
        library = get_default_graph()._library
        added = [branch.add_to(library) for branch in traced]
        stateful = any(state for _, state in added) or any(
            t.dtype == _core.resource for t in captured)
        names = [name for name, _ in added]

        def make() -> Any:
            return (ops.If if stateful else ops.StatelessIf)(
                pred, captured, Tout=[t.dtype for t in traced[0].outputs],
                output_shapes=self._shapes, then_branch=names[0], else_branch=names[1], name=scope)
        with control_dependencies(waits_for):
            return call_of_bodies(make, any(self._done))


def settled(branch: Traced, tensors: list) -> list:
    """Makes the tensors the body's results, behind what it does: those operations."""
    done = effects(branch.graph)
    with _DefaultGraph(branch.graph), control_dependencies(done):
        branch.outputs = [ops.Identity(t) for t in tensors] if done else tensors
    return done


def share_captures(traced: list) -> tuple:
    """(tensors around that one of the bodies reads, operations that one of them waits for)"""
    captured = list(dict.fromkeys(t for body in traced for t in body.graph.captured))
    for body in traced:
        body.captures_all(captured)
    return captured, [op for body in traced for op in body.graph.calls_wait_for()]


# --- Operators ------------------------------------------------------------------------------------

def both(value: Any, *others: Callable) -> Any:
    """`value and other() and ...`."""
    return _joined(value, others, both)


def either(value: Any, *others: Callable) -> Any:
    """`value or other() or ...`."""
    return _joined(value, others, either)


def _joined(value: Any, others: Sequence, operator: Callable) -> Any:
    goes_on = operator is both
    for number, other in enumerate(others):
        if is_symbolic(value):
            return _decided_by(value, operator, other, others[number + 1:])
        if bool(value) is not goes_on:
            return value
        value = other()
    return value


def _decided_by(value: Any, operator: Callable, other: Callable, rest: Sequence) -> Any:
    def further() -> Any:
        return operator(other(), *rest)

    def same() -> Any:
        return value
    ways = (further, same) if operator is both else (same, further)
    return choose("the `%s` at %s" % ("and" if operator is both else "or", place()), truth(value),
                  *ways, {})


def negated(value: Any) -> Any:
    """`not value`."""
    return ops.LogicalNot(truth(value)) if is_symbolic(value) else not value
