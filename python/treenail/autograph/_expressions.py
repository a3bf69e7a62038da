# SPDX-License-Identifier: Apache-2.0
"""Expressions in which a tensor may stand where Python wants a value of its own: conditions,
comparisons, calls, and names whose value a branch or loop left undecided."""

from __future__ import annotations

import ast
import copy

from treenail.autograph import _scopes
from treenail.autograph._nodes import at, call, load, thunk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Functions of Python that look at the frame that calls them.
_OF_THE_FRAME = ("locals", "globals", "vars", "eval", "exec", "dir", "super", "breakpoint")
_BINDS = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)


def _binds(*nodes: ast.expr) -> bool:
    """Whether an expression cannot become a function of its own: it would bind names there, or
    give the generator's values there."""
    return any(isinstance(part, _BINDS) for node in nodes for part in ast.walk(node))


def convert_expressions(node: ast.AST, has_class: bool) -> None:
    """Converts the expressions of a function whose statements are converted, in place."""
    _Expressions(has_class).function(node)


class _Expressions(ast.NodeTransformer):
    def __init__(self, has_class: bool) -> None:
        self._has_class = has_class  # whether __class__ is a free variable of the function
        self._checked: frozenset = frozenset()
        self._first: str | None = None  # the first parameter, for super()

    def function(self, node: ast.AST) -> None:
        """What is inside of a function's scope."""
        scope = getattr(node, "scope", None) or _scopes.Scope(node)
        before = self._checked, self._first
        self._checked = (self._checked - scope.locals) | getattr(node, "checked", set())
        if not isinstance(node, ast.Lambda):
            self._first = scope.parameters[0] if scope.parameters else None
        self._body(node)
        self._checked, self._first = before

    def _body(self, node: ast.AST) -> None:
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
            return
        node.body = [self.visit(item) for item in node.body]

    # --- Scopes -----------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if _scopes.is_block(node):
            self._body(node)
            return node
        node.decorator_list = [self.visit(item) for item in node.decorator_list]
        self._defaults(node.args)
        self.function(node)
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def _defaults(self, args: ast.arguments) -> None:
        args.defaults = [self.visit(item) for item in args.defaults]
        args.kw_defaults = [item and self.visit(item) for item in args.kw_defaults]

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self._defaults(node.args)
        self.function(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def _comprehension(self, node: Any) -> ast.AST:
        before = self._checked
        for part in node.generators:
            part.iter = at(part.iter, call("iterated", self.visit(part.iter)))[0]
            self._checked = self._checked - _scopes.stored([part.target])
            part.ifs = [at(item, call("python_value", self.visit(item)))[0] for item in part.ifs]
        for field in ("key", "value", "elt"):
            if hasattr(node, field):
                setattr(node, field, self.visit(getattr(node, field)))
        self._checked = before
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    # --- Names and calls --------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self._checked:
            return at(node, call("read", load(node.id), ast.Constant(node.id)))[0]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        node.args = [self.visit(item) for item in node.args]
        node.keywords = [self.visit(item) for item in node.keywords]
        if hasattr(node, "made_here"):
            return node
        if isinstance(function, ast.Name) and function.id in _OF_THE_FRAME:
            return self._super(node) if function.id == "super" else node
        if hasattr(function, "made_writable"):
            node.func.value = self.visit(function.value)
            return node
        node.func = at(function, call("callee", self.visit(function)))[0]
        return node

    def _super(self, node: ast.Call) -> ast.AST:
        if self._has_class and self._first and not node.args and not node.keywords:
            node.args = at(node, load("__class__"), load(self._first))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        named = isinstance(node.value, ast.Name)
        node.value = self.visit(node.value)
        index: Any = self.visit(node.slice)
        node.slice = index
        if isinstance(index, (ast.Constant, ast.Slice, ast.Tuple)):
            return node
        if isinstance(node.ctx, ast.Load):
            return at(node, call("item", node.value, index))[0]
        around = [copy.deepcopy(node.value)] if named else []
        node.slice = at(index, call("item_to_change", index, *around))[0]
        return node

    # --- Conditions -------------------------------------------------------------------------------

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        values = [self.visit(value) for value in node.values]
        if _binds(*values[1:]):
            node.values = [at(value, call("python_value", value))[0] for value in values]
            return node
        helper = "both" if isinstance(node.op, ast.And) else "either"
        return at(node, call(helper, values[0], *[thunk(value) for value in values[1:]]))[0]

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        node.operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return at(node, call("negated", node.operand))[0]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        test, yes, no = (self.visit(part) for part in (node.test, node.body, node.orelse))
        if _binds(yes, no):
            node.test, node.body, node.orelse = at(test, call("python_value", test))[0], yes, no
            return node
        return at(node, call("choice", test, thunk(yes), thunk(no)))[0]

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        parts = [self.visit(part) for part in (node.left, *node.comparators)]
        kinds = [type(op).__name__ for op in node.ops]
        node.left, node.comparators = parts[0], parts[1:]
        if len(kinds) == 1:
            if kinds[0] not in ("Eq", "NotEq", "In", "NotIn") or any(
                    isinstance(part, ast.Constant) and isinstance(part.value, (str, type(None)))
                    for part in parts):
                return node
            return at(node, call("compared", ast.Constant(kinds[0]), *parts))[0]
        if _binds(*parts[1:]):
            node.left = call("python_value", node.left)
            return at(node, node)[0]
        links = [ast.Tuple([ast.Constant(kind), thunk(part)], ast.Load())
                 for kind, part in zip(kinds, parts[1:])]
        return at(node, call("chain", parts[0], *links))[0]

    # --- Assertions -------------------------------------------------------------------------------

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        said = ast.Constant(ast.unparse(node.test))
        test = self.visit(node.test)
        node.msg = node.msg and self.visit(node.msg)
        message = node.msg if node.msg is not None and not _binds(node.msg) else ast.Constant(None)
        node.test = at(node, call("asserted", test, thunk(message), said))[0]
        return node
