# SPDX-License-Identifier: Apache-2.0
"""Branches and loops of a function become functions that helpers call: so that a helper may run
one of them, as Python does, or trace all of them, where a tensor decides.

A block is an inner function that declares what it binds nonlocal: the variables stay the function's
own, and helpers reach them through the cells (_cells.py). The ways out of blocks become flags:
`return x` sets ag__value and ag__returned, `break` ag__break_N, `continue` ag__continue_N; what
follows runs `unless` one of them is set.
"""

from __future__ import annotations

import ast

from treenail.autograph import _exits, _scopes
from treenail.autograph._nodes import assign, at, call, function, load, names, thunk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RETURNED, VALUE = _scopes.PREFIX + "returned", _scopes.PREFIX + "value"
_GENERATORS = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
_PLAIN_CALLS = ("isinstance", "issubclass", "hasattr", "callable")


def is_pythons(test: ast.expr) -> bool:
    """Whether a condition never is a tensor, whatever its operands are."""
    if isinstance(test, ast.Constant):
        return True
    if isinstance(test, ast.Compare):
        return all(isinstance(op, (ast.Is, ast.IsNot)) for op in test.ops) and len(test.ops) == 1
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_pythons(test.operand)
    if isinstance(test, ast.BoolOp):
        return all(is_pythons(value) for value in test.values)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name):
        return test.func.id in _PLAIN_CALLS
    return isinstance(test, ast.Name) and test.id in ("TYPE_CHECKING", "__debug__")


def convert_blocks(node: ast.AST) -> None:
    """Converts the statements of a function, and of the functions in it, in place. The node gets
    `scope`, its names, and `checked`, those whose value may be one that must not be read."""
    scope = node.scope = _scopes.Scope(node)
    node.checked = set()
    if isinstance(node, ast.Lambda):
        _inner_functions([node.body])
        return
    generator = isinstance(node, ast.AsyncFunctionDef) or _exits.contains(node.body, _GENERATORS)
    if generator or _finally_leaves(node.body):
        node.body = _Plain().block(node.body)
        _inner_functions(node.body)
        return
    _Blocks(scope).convert(node)


def _inner_functions(nodes: list) -> None:
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            convert_blocks(node)
        elif not isinstance(node, ast.ClassDef):
            _inner_functions(list(ast.iter_child_nodes(node)))


def _finally_leaves(nodes: list) -> bool:
    kinds = (ast.Return, ast.Break, ast.Continue)
    return any(isinstance(part, ast.Try) and _exits.contains(part.finalbody, kinds)
               for node in nodes for part in ast.walk(node))


class _Plain:
    """Blocks that stay where they are, as in a generator: a tensor as condition is refused."""

    def block(self, nodes: list) -> list:
        for node in nodes:
            if isinstance(node, (ast.If, ast.While)):
                node.test = at(node.test, call("python_value", node.test))[0]
            elif isinstance(node, ast.For):
                node.iter = at(node.iter, call("iterated", node.iter))[0]
            if not isinstance(node, _exits.SCOPES):
                self.block(list(ast.iter_child_nodes(node)))
        return nodes


class _Loop:
    """The flags of a loop."""

    def __init__(self, number: int) -> None:
        self.breaks = "%sbreak_%d" % (_scopes.PREFIX, number)
        self.continues = "%scontinue_%d" % (_scopes.PREFIX, number)


class _Blocks:
    """The conversion of one function's statements."""

    def __init__(self, scope: _scopes.Scope) -> None:
        self._scope = scope
        self._count = 0
        self._flags: set = set()
        self._bound: set = set()  # in any block
        self._declarations: list = []
        self._flagged = False  # whether returns become flags
        self._depth = 0

    def convert(self, node: ast.FunctionDef) -> None:
        body = _exits.folded(node.body)
        self._flagged = any(not isinstance(item, ast.Return) and _exits.contains(
            [item], (ast.Return,)) for item in body)
        returns = _exits.always_returns(body)
        last = node.body[-1]
        body, _ = self._block(body, None)
        begin: list = []
        if self._flagged:
            begin.append(assign(RETURNED, ast.Constant(False)))
            end = ast.Return(call("result", ast.Constant(True) if returns else load(RETURNED),
                                  thunk(load(VALUE))))
            body += at(last, end)
        begin[:0] = self._local_names()
        doc = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
        node.body = doc + self._declarations + at(node, *begin) + body[len(doc):]
        node.checked = {name for name in self._bound if not name.startswith(_scopes.PREFIX)}

    def _local_names(self) -> list:
        """What makes names that blocks bind the function's own."""
        own = [name for name in sorted(self._bound)
               if name in self._scope.locals and name not in self._scope.parameters
               or name.startswith(_scopes.PREFIX) and name != RETURNED]
        return [ast.If(ast.Constant(False), [assign(name, ast.Constant(None)) for name in own],
                       [])] if own else []

    # --- Lists of statements ----------------------------------------------------------------------

    def _block(self, nodes: list, loop: _Loop | None) -> tuple:
        """(the statements, the flags that they may set)"""
        nodes = _exits.folded(nodes)
        result: list = []
        for place, node in enumerate(nodes):
            made, flags = self._statement(node, loop)
            result += at(node, *made)
            if flags:
                rest, more = self._block(nodes[place + 1:], loop)
                if rest:
                    result += self._unless(flags, rest, nodes[place + 1])
                return result, flags | more
        return result, set()

    def _statement(self, node: ast.stmt, loop: _Loop | None) -> tuple:
        kind = getattr(self, "_" + type(node).__name__, None)
        if kind is not None:
            return kind(node, loop)
        return self._simple(node), set()

    def _function(self, nodes: list, *parameters: str) -> ast.FunctionDef:
        """An inner function of these converted statements."""
        self._count += 1
        bound = {name for name in _scopes.stored(nodes) - set(parameters)
                 if name.startswith(_scopes.PREFIX) or self._scope.rebinds(name)}
        self._bound |= bound
        changed = _scopes.stored(nodes) & self._scope.globals
        begin: list = [ast.Nonlocal(sorted(bound))] if bound else []
        begin += [ast.Global(sorted(changed))] if changed else []
        return function("%s_%d" % (_scopes.BLOCK, self._count), begin + nodes, *parameters)

    def _names(self, *functions: ast.FunctionDef) -> ast.Tuple:
        return names(_scopes.stored([f for f in functions if f is not None]))

    def _unless(self, flags: set, nodes: list, place: ast.stmt) -> list:
        block = self._function(nodes)
        read = thunk(ast.Tuple([load(flag) for flag in sorted(flags)], ast.Load()))
        return at(place, block, ast.Expr(call("unless", read, load(block.name),
                                              self._names(block))))

    # --- Ways out ---------------------------------------------------------------------------------

    def _Return(self, node: ast.Return, loop: _Loop | None) -> tuple:
        if not self._flagged:
            return [node], set()
        value = node.value or ast.Constant(None)
        return [assign(VALUE, value), assign(RETURNED, ast.Constant(True))], {RETURNED}

    def _Break(self, node: ast.Break, loop: _Loop) -> tuple:
        self._flags.add(loop.breaks)
        return [assign(loop.breaks, ast.Constant(True))], {loop.breaks}

    def _Continue(self, node: ast.Continue, loop: _Loop) -> tuple:
        self._flags.add(loop.continues)
        return [assign(loop.continues, ast.Constant(True))], {loop.continues}

    def _Raise(self, node: ast.Raise, loop: _Loop | None) -> tuple:
        return [ast.Expr(call("raising")), node], set()

    # --- Branches and loops -----------------------------------------------------------------------

    def _If(self, node: ast.If, loop: _Loop | None) -> tuple:
        yes, flags = self._block(node.body, loop)
        no, more = self._block(node.orelse, loop)
        if is_pythons(node.test):
            node.body, node.orelse = yes or [ast.Pass()], no
            return [node], flags | more
        first = self._function(yes)
        second = self._function(no) if no else None
        made = at(node.body[0], first) + (at(node.orelse[0], second) if second else [])
        made.append(ast.Expr(call("branch", node.test, load(first.name),
                                  load(second.name) if second else ast.Constant(None),
                                  self._names(first, second))))
        return made, flags | more

    def _loop(self, node: ast.stmt, make: Any, loop: _Loop | None) -> tuple:
        self._count += 1
        inner = _Loop(self._count)
        own = _scopes.own_of_iterations(node.body, getattr(node, "test", None),
                                        getattr(node, "target", None))
        body, flags = self._block(_exits.without_last_continue(node.body), inner)
        begin = [assign(inner.breaks, ast.Constant(False))] if inner.breaks in flags else []
        if inner.continues in flags:
            body[:0] = [assign(inner.continues, ast.Constant(False))]
        exits = flags - {inner.continues}
        read = thunk(ast.Tuple([load(flag) for flag in sorted(exits)], ast.Load()))
        made = begin + make(node, body, names(own), read)
        outside = flags - {inner.continues, inner.breaks}
        if node.orelse:
            rest, more = self._block(node.orelse, loop)
            made = at(node, *made)
            if exits:
                rest = self._unless(exits, rest, node.orelse[0])
            return made + rest, outside | more
        return made, outside

    def _While(self, node: ast.While, loop: _Loop | None) -> tuple:
        def make(node: ast.While, body: list, own: ast.expr, exits: ast.expr) -> list:
            test = self._function([ast.Return(node.test)])
            block = self._function(body)
            return at(node.test, test) + at(node.body[0], block) + [ast.Expr(call(
                "while_loop", load(test.name), load(block.name), self._names(test, block), own,
                exits))]
        return self._loop(node, make, loop)

    def _For(self, node: ast.For, loop: _Loop | None) -> tuple:
        def make(node: ast.For, body: list, own: ast.expr, exits: ast.expr) -> list:
            item = "%sitem" % _scopes.PREFIX
            bind = ast.Assign([node.target], load(item))
            block = self._function(at(node.target, *self._simple(bind)) + body, item)
            return at(node.body[0], block) + [ast.Expr(call(
                "for_loop", node.iter, load(block.name), self._names(block), own, exits))]
        return self._loop(node, make, loop)

    # --- What stays in place ----------------------------------------------------------------------

    def _With(self, node: ast.With, loop: _Loop | None) -> tuple:
        node.body, flags = self._block(node.body, loop)
        return [node], flags

    def _Try(self, node: ast.Try, loop: _Loop | None) -> tuple:
        node.body, flags = self._block(node.body, loop)
        for handler in node.handlers:
            handler.body, more = self._block(handler.body, loop)
            handler.body[:0] = at(handler, ast.Expr(call("caught")))
            flags |= more
        orelse = node.orelse
        if orelse:
            rest, more = self._block(orelse, loop)
            node.orelse = self._unless(flags, rest, orelse[0]) if flags else rest
            flags = flags | more
        if node.finalbody:
            node.finalbody, _ = self._block(node.finalbody, loop)
        return [node], flags

    _TryStar = _Try

    def _Match(self, node: ast.AST, loop: _Loop | None) -> tuple:
        node.subject = call("python_value", node.subject)
        flags: set = set()
        for case in node.cases:
            case.body, more = self._block(case.body, loop)
            flags |= more
        return [node], flags

    def _FunctionDef(self, node: ast.FunctionDef, loop: _Loop | None) -> tuple:
        convert_blocks(node)
        return [node], set()

    _AsyncFunctionDef = _FunctionDef

    def _ClassDef(self, node: ast.ClassDef, loop: _Loop | None) -> tuple:
        return [node], set()

    def _Global(self, node: ast.stmt, loop: _Loop | None) -> tuple:
        self._declarations += at(node, node)
        return [ast.Pass()], set()

    _Nonlocal = _Global

    def _AnnAssign(self, node: ast.AnnAssign, loop: _Loop | None) -> tuple:
        if not isinstance(node.target, ast.Name):
            return self._simple(node), set()
        if node.value is None:
            return [ast.Pass()], set()
        return self._simple(ast.Assign([node.target], node.value)), set()

    # --- Simple statements ------------------------------------------------------------------------

    def _simple(self, node: ast.stmt) -> list:
        _inner_functions([node])
        before = self._checks(node)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            if self._scope.rebinds(node.target.id):
                before += self._writable(node.target.id, "operator")
            node = ast.copy_location(assign(node.target.id, call(
                "in_place", ast.Constant(type(node.op).__name__), load(node.target.id),
                node.value)), node)
        return before + [node]

    def _checks(self, node: ast.stmt) -> list:
        """What is done before a statement that changes an object or a global variable."""
        made: list = []
        for part in ast.walk(node):
            if isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx,
                                                                                   ast.Load):
                made += self._check_of_target(part)
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
                base = part.func.value
                if part.func.attr in _scopes.CHANGES and isinstance(base, ast.Name) \
                        and self._scope.rebinds(base.id):
                    part.func.made_writable = True
                    made += self._writable(base.id)
        for name in sorted(_scopes.stored([node]) & self._scope.globals):
            made.append(ast.Expr(call("changing", ast.Constant("the global variable %r" % name))))
        for name in sorted(_scopes.stored([node]) & self._scope.nonlocals):
            made.append(ast.Expr(call("changing_around", ast.Constant(name))))
        return made

    def _check_of_target(self, part: ast.expr) -> list:
        if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name) \
                and self._scope.rebinds(part.value.id):
            return self._writable(part.value.id, "item")
        what = "the attribute %r of an object" % part.attr if isinstance(
            part, ast.Attribute) else "an item of an object"
        return [ast.Expr(call("changing", ast.Constant(what)))]

    def _writable(self, name: str, what: str = "method") -> list:
        return [assign(name, call("writable", load(name), ast.Constant(name),
                                  ast.Constant(name in self._scope.fresh), ast.Constant(what)))]
