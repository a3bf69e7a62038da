# SPDX-License-Identifier: Apache-2.0
"""A loop that a tensor ends: its body is traced once, and becomes a While.

The variables that one iteration hands to the next enter the body as arguments. The others (flags of
`break`, what each iteration writes before it reads it, the function's result) get their place when
the body has been traced, and only there. Where the trace shows that a variable has another dtype
or a shape that varies, or is a list that grows, the body is traced again, knowing that.
"""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import convert_to_tensor, scope_of
from treenail._framework import _DefaultGraph, control_dependencies, get_default_graph
from treenail._function_graph import Traced
from treenail._ops import ops
from treenail._precision import common_precision
from treenail._shape import TensorShape
from treenail.autograph._branches import FLAGS, RESULT, settled, share_captures
from treenail.autograph._effects import call_of_bodies
from treenail.autograph._cells import UNBOUND, Undecided, set_values, value_of, values_of
from treenail.autograph._lists import GrowingList, kind_of
from treenail.autograph._places import decided, refusal
from treenail.autograph._values import (Merge, Mismatch, Nest, Slot, alike, built, common_shape,
                                        convertible, dtype_of, fits, in_graph, parts_of, same,
                                        shape_of_pair, shown, truth)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

_ATTEMPTS = 12


class _Again(Exception):
    """The loop is to be traced once more; args: which loop."""


class _Leaf:
    """A tensor that iterations hand on."""

    def __init__(self, name: str, first: Any) -> None:
        self.name, self.first = name, first
        self.weak = dtype_of(first) is None  # a number of Python's, of any dtype that it fits


class _Learned:
    """What traces of the body have shown, by variable and number of its leaf."""

    def __init__(self) -> None:
        self.dtypes: dict = {}
        self.shapes: dict = {}
        self.lists: dict = {}


class GraphLoop:
    """The loop `go: go = step()` over the variables in cells."""

    def __init__(self, what: str, own: Sequence, cells: dict, step: Callable,
                 functions: list) -> None:
        """own: the names that each iteration writes before it reads them."""
        self._what, self._cells, self._step, self._functions = what, cells, step, functions
        self._own = set(own)
        self._learned = _Learned()
        self._before = values_of(cells)
        self._probed = False

    def run(self, goes_on: Any) -> None:
        """Adds the loop, which runs while `goes_on`, a bool scalar, is true; sets the cells."""
        for _ in range(_ATTEMPTS):
            set_values(self._cells, self._before)
            try:
                if self._attempted(goes_on):
                    return
            except BaseException:
                set_values(self._cells, self._before)
                raise
        raise refusal(ValueError, "the values of %s keep changing their shapes" % self._what)

    def _attempted(self, goes_on: Any) -> bool:
        """Whether an attempt added the loop; if not, something was learned for another."""
        try:
            self._attempt(goes_on)
            return True
        except _Again as again:
            if again.args[0] is not self:
                raise
        except (TypeError, ValueError, ArithmeticError):
            if self._probed:
                raise
            self._probed = True
            if not self._learn_dtypes():
                raise
        return False

    # --- One attempt ------------------------------------------------------------------------------

    def _attempt(self, goes_on: Any) -> None:
        with scope_of(None, "while", [goes_on]) as scope:
            self._enter()
            body, new, going = self._trace(scope + "body")
            ends = self._ends(body, new)
            late = self._late(new)
            _While(scope, self, body, ends, going, late, goes_on)

    def _enter(self) -> None:
        """The variables' templates and leaves."""
        self.leaves: list = []
        self._templates: dict = {}
        for name, value in self._before.items():
            if name in self._own or name.startswith(FLAGS) or name == RESULT:
                continue
            if value is UNBOUND or isinstance(value, Undecided):
                continue
            if name in self._learned.lists:
                value = self._learned.lists[name].of_same_kind(value)
            self._templates[name] = self._spread(name, value)
        self.firsts = [convert_to_tensor(leaf.first, self._learned.dtypes.get(number))
                       for number, leaf in enumerate(self.leaves)]
        self.shapes = [self._learned.shapes.get(number, tensor.shape)
                       for number, tensor in enumerate(self.firsts)]

    def _spread(self, name: str, value: Any) -> Any:
        parts = parts_of(value)
        if parts is not None:
            return Nest(value, [self._spread(name, part) for part in parts])
        if not convertible(value) or isinstance(value, (str, bytes)):
            return value
        self.leaves.append(_Leaf(name, value))
        return Slot(len(self.leaves) - 1)

    def _trace(self, name: str) -> tuple:
        """(the body, its variables at its end, whether it goes on)"""
        result: dict = {}

        def run() -> None:
            self._set_arguments(arguments)
            with decided(self._what, self._functions):
                result["going"] = self._step()
            result["new"] = values_of(self._cells)
        arguments: list = []
        body = Traced(name, run, lambda graph: arguments.extend(
            self._arguments(graph)) or arguments)
        self.arguments = arguments
        return body, result["new"], result["going"]

    def _arguments(self, graph: Any) -> list:
        return [_argument(graph, tensor, shape)
                for tensor, shape in zip(self.firsts, self.shapes)]

    def _set_arguments(self, tensors: Sequence) -> None:
        set_values(self._cells, {name: built(template, tensors)
                                 for name, template in self._templates.items()})
        set_values(self._cells, {name: False for name in self._cells if name.startswith(FLAGS)})

    # --- What the body leaves ---------------------------------------------------------------------

    def _ends(self, body: Traced, new: dict) -> list:
        """The leaves' tensors at the end of the body. Raises _Again with what is to be changed."""
        ends: list = []
        for name, template in self._templates.items():
            try:
                with _DefaultGraph(body.graph):
                    self._aligned(name, template, new[name], ends)
            except Mismatch as mismatch:
                kind, why = mismatch.args
                raise refusal(kind, "%s hands %r on to its next iteration, which must be of one "
                              "kind throughout: %s"
                              % (self._what, _shown_name(name), why)) from None
        again = False
        with _DefaultGraph(body.graph):
            for number, (leaf, end) in enumerate(zip(self.leaves, ends)):
                ends[number], changed = self._end(number, leaf, end, body)
                again = again or changed
        if again:
            raise _Again(self)
        return ends

    def _end(self, number: int, leaf: _Leaf, end: Any, body: Traced) -> tuple:
        """(the tensor, whether something was learned)"""
        dtype = self.firsts[number].dtype
        own = dtype_of(end)
        if own is None and not fits(end, dtype):
            own = convert_to_tensor(end).dtype
        if own is not None and own != dtype and common_precision(own, dtype) is None:
            if not (leaf.weak and fits(leaf.first, own)) or number in self._learned.dtypes:
                raise refusal(TypeError, "%s begins with %r as %s, and has %s after one iteration"
                              % (self._what, _shown_name(leaf.name), shown(leaf.first),
                                 shown(end)))
            self._learned.dtypes[number] = own
            return end, True
        tensor = body._here(convert_to_tensor(end, dtype))
        wanted = common_shape(self.shapes[number], tensor.shape)
        if _extents(wanted) != _extents(self.shapes[number]):
            self._learned.shapes[number] = wanted
            return tensor, True
        return tensor, False

    def _aligned(self, name: str, template: Any, value: Any, found: list) -> None:
        """Appends the leaves of a value in the order of the template's."""
        if isinstance(template, Slot):
            if value is UNBOUND or isinstance(value, Undecided) or not convertible(value):
                raise _no_tensor(self.leaves[template.index].first, value)
            found.append(value)
        elif isinstance(template, Nest):
            self._aligned_parts(name, template, value, found)
        elif not same(template, value):
            raise _no_tensor(template, value)

    def _aligned_parts(self, name: str, template: Nest, value: Any, found: list) -> None:
        like = template.like
        if isinstance(like, list) and self._grows(name, like, value):
            raise _Again(self)
        if isinstance(like, GrowingList) and isinstance(value, list):
            value = like.of_same_kind(value) or value
        if parts_of(value) is None or not alike(like, value):
            raise Mismatch(ValueError, "it begins as %s and is %s after one iteration"
                           % (shown(like), shown(value)))
        if isinstance(like, GrowingList):
            wider = common_shape(like.element_shape, value.element_shape)
            if _extents(wider) != _extents(like.element_shape):
                self._learned.lists[name].element_shape = wider
                raise _Again(self)
        parts = [value[key] for key in like] if isinstance(like, dict) else parts_of(value)
        for part, other in zip(template.parts, parts):
            self._aligned(name, part, other, found)

    def _grows(self, name: str, like: list, value: Any) -> bool:
        if not isinstance(value, (list, GrowingList)) or like is not self._before[name] or (
                isinstance(value, list) and len(value) == len(like)):
            return False
        kind = value if isinstance(value, GrowingList) else kind_of(value or like)
        if kind is None or like and kind_of(like, kind.dtype) is None:
            raise Mismatch(ValueError, "a list that grows must be of tensors of one dtype")
        shape = kind.element_shape
        if like:
            shape = common_shape(shape, kind_of(like, kind.dtype).element_shape)
        self._learned.lists[name] = GrowingList(kind.dtype, shape, None)
        return True

    def _late(self, new: dict) -> dict:
        """{name: (template, its Merge)} of the variables that are no arguments."""
        found: dict = {}
        for name, value in new.items():
            if name in self._templates:
                continue
            merge = Merge(name == RESULT)
            before = self._before[name]
            try:
                template = UNBOUND if value is before is UNBOUND else merge.merged(before, value)
            except Mismatch as mismatch:
                kind, why = mismatch.args
                if name == RESULT:
                    raise refusal(kind, "%s returns values that no tensor can be on both ways: %s"
                                  % (self._what, why)) from None
                template, merge = Undecided(kind, "%s, which a tensor ends, leaves its value open, "
                                            "for it may run no iteration: %s"
                                            % (self._what, why)), Merge()
            found[name] = (template, merge)
        return found

    def leave(self, results: Sequence, late: dict) -> None:
        """Sets the cells to what the loop gives."""
        set_values(self._cells, {name: built(template, results)
                                 for name, template in self._templates.items()})
        at = len(self.leaves)
        for name, (template, merge) in late.items():
            set_values(self._cells, {name: built(template, results[at:])})
            at += len(merge.pairs)

    # --- Numbers of Python's, whose dtype the body tells ------------------------------------------

    def _learn_dtypes(self) -> bool:
        """Traces the body once with numbers of Python's as they are; whether that tells a dtype."""
        self._enter()
        weak = {number for number, leaf in enumerate(self.leaves) if leaf.weak}
        if not weak:
            return False
        values = [leaf.first if leaf.weak else tensor
                  for leaf, tensor in zip(self.leaves, self.firsts)]
        ends: list = []

        def run() -> None:
            self._set_arguments(values)
            with decided(self._what, self._functions):
                self._step()
            for name, template in self._templates.items():
                self._aligned(name, template, value_of(self._cells[name]), ends)
        try:
            probe = Traced("probe", run)
        except (_Again, Mismatch, TypeError, ValueError, ArithmeticError):
            return False
        around = _other_dtypes(probe)
        news = {}
        for number in weak:
            told, now = dtype_of(ends[number]), self.firsts[number].dtype
            guesses = [dtype for dtype in around if dtype.is_integer == now.is_integer]
            for dtype in guesses if told is None else [told]:
                if dtype != now and fits(self.leaves[number].first, dtype):
                    news.setdefault(number, dtype)
        self._learned.dtypes.update(news)
        return bool(news)


def _other_dtypes(body: Traced) -> list:
    """Of the numbers in a body, that Python's numbers do not have by themselves."""
    found = [t.dtype for op in body.graph.get_operations() for t in op.outputs]
    return [dtype for dtype in dict.fromkeys(found) if (dtype.is_integer or dtype.is_floating)
            and dtype not in (_core.int32, _core.float32)]


def _no_tensor(before: Any, after: Any) -> Mismatch:
    if isinstance(after, Undecided):
        return Mismatch(ValueError, "its value is left open, and it begins as " + shown(before))
    return Mismatch(ValueError, "it begins as %s and is %s after one iteration"
                    % (shown(before), shown(after)))


def _shown_name(name: str) -> str:
    return "the count of iterations" if name.startswith("ag__") else name


def _argument(graph: Any, tensor: Any, shape: Any) -> Any:
    if tensor.dtype == _core.resource:
        return _core.body_argument(graph, tensor, graph._unique_name("loop_var"))
    return ops.Placeholder(dtype=tensor.dtype, shape=shape, name="loop_var")


class _While:
    """The operation: arguments are the leaves, what came late, and whether it goes on."""

    def __init__(self, scope: str, loop: GraphLoop, body: Traced, ends: list, going: Any,
                 late: dict, goes_on: Any) -> None:
        pairs = [pair for _, merge in late.values() for pair in merge.pairs]
        with _DefaultGraph(body.graph):
            more = [body._here(in_graph(b, a, dtype)) for a, b, dtype in pairs]
            going = body._here(truth(going))
        firsts = [in_graph(a, end, dtype) for (a, _, dtype), end in zip(pairs, more)]
        shapes = [shape_of_pair(a, b, first, end)
                  for (a, b, _), first, end in zip(pairs, firsts, more)]
        self._firsts = loop.firsts + firsts + [goes_on]
        self._shapes = loop.shapes + shapes + [TensorShape([])]
        with _DefaultGraph(body.graph):
            body.inputs = list(loop.arguments) + [
                _argument(body.graph, tensor, shape)
                for tensor, shape in zip(self._firsts[len(ends):], self._shapes[len(ends):])]
        self._done = settled(body, ends + more + [going])
        loop.leave(self._added(scope, body), late)

    def _added(self, scope: str, body: Traced) -> Sequence:
        arguments: list = []
        holds = Traced(scope + "cond", lambda: None, lambda graph: arguments.extend(
            _argument(graph, t, s) for t, s in zip(self._firsts, self._shapes)) or arguments)
        holds.outputs = [arguments[-1]]
        captured, waits_for = share_captures([holds, body])
        library = get_default_graph()._library
        names = [holds.add_to(library), body.add_to(library, body.outputs + body.graph.arguments)]
        stateful = any(state for _, state in names) or any(
            t.dtype == _core.resource for t in captured)

        def make() -> Any:
            return (ops.While if stateful else ops.StatelessWhile)(
                self._firsts + captured, cond=names[0][0], body=names[1][0],
                output_shapes=self._shapes + [t.shape for t in captured], name=scope)
        with control_dependencies(waits_for):
            return call_of_bodies(make, bool(self._done))


def _extents(shape: TensorShape) -> Any:
    return None if shape.rank is None else shape.as_list()
