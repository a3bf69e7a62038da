# SPDX-License-Identifier: Apache-2.0
"""Which names statements bind, and which values of a loop's body flow into its next iteration.

A name that begins with PREFIX was made by the conversion (_statements.py); no program has such.
"""

from __future__ import annotations

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

PREFIX = "ag__"
BLOCK = PREFIX + "block"  # functions that stand for a block of the program's function
# Methods that change a container in place.
CHANGES = ("append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update",
           "add", "discard", "setdefault", "popitem", "appendleft", "popleft")
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def is_block(node: ast.AST) -> bool:
    """Whether this function definition was made for a block."""
    return isinstance(node, ast.FunctionDef) and node.name.startswith(BLOCK)


class _Stored(ast.NodeVisitor):
    """Names bound in one function's scope."""

    def __init__(self) -> None:
        self.names: set = set()
        self.declared: dict = {"global": set(), "nonlocal": set()}

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.names.add(node.id)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if is_block(node):
            for item in node.body:
                if isinstance(item, ast.Nonlocal):
                    self.names.update(item.names)
            return
        self.names.add(node.name)
        for part in [*node.decorator_list, *node.args.defaults, *node.args.kw_defaults]:
            if part is not None:
                self.visit(part)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.names.add(node.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for part in [*node.args.defaults, *node.args.kw_defaults]:
            if part is not None:
                self.visit(part)

    def _comprehension(self, node: ast.AST) -> None:
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr):
                self.names.add(part.target.id)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Import(self, node: ast.Import) -> None:
        self.names.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.names.add(node.name)
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> None:
        self.declared["global"].update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.declared["nonlocal"].update(node.names)

    def visit_MatchAs(self, node: ast.AST) -> None:
        name = getattr(node, "name", None) or getattr(node, "rest", None)
        if name:
            self.names.add(name)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchMapping = visit_MatchAs


def stored(nodes: Iterable) -> set:
    """The names that these statements or expressions bind in their function's scope."""
    visitor = _Stored()
    for node in nodes:
        visitor.visit(node)
    return visitor.names


class Scope:
    """The names of a function: parameters, locals, and those it declares as another scope's."""

    def __init__(self, node: ast.AST) -> None:
        self.parameters = parameters(node.args)
        visitor = _Stored()
        for item in node.body if isinstance(node.body, list) else [node.body]:
            visitor.visit(item)
        self.globals = visitor.declared["global"]
        self.nonlocals = visitor.declared["nonlocal"]
        self.locals = (visitor.names | set(self.parameters)) - self.globals - self.nonlocals
        self.fresh = _fresh(node, self.locals - set(self.parameters))

    def rebinds(self, name: str) -> bool:
        """Whether a block may bind this name by declaring it nonlocal."""
        return name in self.locals or name in self.nonlocals


def parameters(args: ast.arguments) -> list:
    """All names that a call binds."""
    found = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    found += [arg for arg in (args.vararg, args.kwarg) if arg is not None]
    return [arg.arg for arg in found]


def _is_new(value: ast.AST) -> bool:
    if isinstance(value, (ast.List, ast.Dict, ast.Set, *_COMPREHENSIONS)):
        return True
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in (
        "list", "dict", "set")


def _fresh(node: ast.AST, names: set) -> set:
    """Those of the names that stand only for containers made here, and for no other's alias."""
    made, other = set(), set()
    for part in ast.walk(node):
        if isinstance(part, ast.Assign):
            for target, value in _pairs(part):
                if isinstance(target, ast.Name):
                    (made if _is_new(value) else other).add(target.id)
                if isinstance(value, ast.Name):
                    other.add(value.id)  # another name stands for it, too
        elif isinstance(part, ast.NamedExpr):
            other.add(part.target.id)
        elif isinstance(part, (ast.For, ast.comprehension)):
            other |= stored([part.target])
        else:
            other.update(value.id for value in _kept(part) if isinstance(value, ast.Name))
    return (made - other) & names


def _pairs(node: ast.Assign) -> list:
    """(target, value) of an assignment; a value that has two names is no new one's."""
    if len(node.targets) > 1:
        nothing = ast.Constant(None)
        return [(part, nothing) for target in node.targets for part in ast.walk(target)]
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(
            target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts))
    return [(target, value)]


def _kept(node: ast.AST) -> list:
    """The values that an expression puts into a container."""
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)) and isinstance(
            getattr(node, "ctx", ast.Load()), ast.Load):
        return node.elts
    if isinstance(node, ast.Dict):
        return node.values
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) \
            and node.func.attr in CHANGES:
        return node.args
    return []


class _Flow:
    """Names read before they are surely written, and those surely written at every end."""

    def __init__(self) -> None:
        self.exposed: set = set()
        self.ends: list = []
        self._depth = 0

    def reads(self, node: ast.AST | None, written: set) -> None:
        if node is None:
            return
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Store):
                if part.id not in written:
                    self.exposed.add(part.id)

    def statements(self, nodes: list, written: set) -> set | None:
        """What is surely written behind them; None where that is never reached."""
        for node in nodes:
            result = self.statement(node, written)
            if result is None:
                return None
            written = result
        return written

    def statement(self, node: ast.stmt, written: set) -> set | None:
        kind = "_" + type(node).__name__
        return getattr(self, kind, self._simple)(node, written)

    def _simple(self, node: ast.stmt, written: set) -> set | None:
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            if node.target.id not in written:
                self.exposed.add(node.target.id)
        self.reads(node, written)
        if isinstance(node, (ast.Return, ast.Raise)):
            self.ends.append(written)
            return None
        deleted = set()
        if isinstance(node, ast.Delete):
            deleted = stored([node])
        return (written | stored([node])) - deleted

    def _Break(self, node: ast.stmt, written: set) -> None:
        if not self._depth:
            self.ends.append(written)

    _Continue = _Break

    def _If(self, node: ast.If, written: set) -> set | None:
        self.reads(node.test, written)
        written = written | stored([node.test])
        ways = [self.statements(part, set(written)) for part in (node.body, node.orelse)]
        ways = [way for way in ways if way is not None]
        return set.intersection(*ways) if ways else None

    def _loop(self, node: ast.stmt, written: set) -> set:
        inside = set(written)
        if isinstance(node, ast.While):
            self.reads(node.test, written)
        else:
            self.reads(node.iter, written)
            self.reads(node.target, written)
            inside |= stored([node.target])
        self._depth += 1
        self.statements(node.body, inside)
        self._depth -= 1
        self.statements(node.orelse, set(written))
        return written

    _While = _For = _AsyncFor = _loop

    def _With(self, node: ast.With, written: set) -> set | None:
        for item in node.items:
            self.reads(item.context_expr, written)
            written = written | stored([part for part in (item.optional_vars,) if part])
        return self.statements(node.body, written)

    _AsyncWith = _With

    def _Try(self, node: ast.Try, written: set) -> set:
        self.statements(node.body, set(written))
        for handler in node.handlers:
            self.reads(handler.type, written)
            self.statements(handler.body, written | ({handler.name} if handler.name else set()))
        self.statements(node.orelse, set(written))
        after = self.statements(node.finalbody, set(written))
        return written if after is None else after

    _TryStar = _Try

    def _Match(self, node: ast.AST, written: set) -> set:
        self.reads(node.subject, written)
        for case in node.cases:
            inside = written | stored([case.pattern])
            self.reads(case.guard, inside)
            self.statements(case.body, inside)
        return written


def own_of_iterations(body: list, test: ast.expr | None = None,
                      target: ast.expr | None = None) -> set:
    """The names that each iteration of a loop writes before it reads them: what one leaves in them
    does not matter to the next."""
    flow = _Flow()
    written = stored([target]) if target is not None else set()
    end = flow.statements(body, written)
    if end is not None:
        flow.ends.append(end)
    sure = set.intersection(*flow.ends) if flow.ends else set()
    flow.reads(test, sure)
    return sure - flow.exposed
