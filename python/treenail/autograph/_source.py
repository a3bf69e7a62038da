# SPDX-License-Identifier: Apache-2.0
"""The syntax tree of a function, found in the file that it comes from."""

from __future__ import annotations

import __future__
import ast
import linecache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Callable

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_files: dict = {}  # {name: (lines, {first line of a function: [(node, class around)]})}


class NoSource(ValueError):
    """The source of a function is not there, or is not what the function was made of."""


def function_node(function: Callable) -> ast.AST:
    """A copy of the tree of a function, names that are a class's own as Python mangles them.

    Raises NoSource.
    """
    code = function.__code__  # type: ignore[attr-defined]
    found = [(node, around) for node, around in _nodes(code, function.__globals__).get(
        code.co_firstlineno, []) if _fits(node, code)]
    if len(found) > 1:
        found = [pair for pair in found if _same_code(pair[0], code)] or found
    if not found:
        raise NoSource("the source of %s, line %d of %s, cannot be found"
                       % (code.co_name, code.co_firstlineno, code.co_filename))
    node, around = found[0]
    node = copied(node)
    return _Mangled(around).visit(node) if around else node


def copied(node: Any) -> Any:
    """A copy of a tree; copy.deepcopy takes five times as long.

    What others have hung on it is left out: IPython's tracebacks give nodes their parents, also
    ast.Load(), which is one object in all trees.
    """
    made = node.__class__.__new__(node.__class__)
    kept = vars(node)
    for name in (*node._fields, *node._attributes):
        if name not in kept:
            continue
        value = kept[name]
        if isinstance(value, list):
            value = [copied(item) if isinstance(item, ast.AST) else item for item in value]
        elif isinstance(value, ast.AST):
            value = copied(value)
        setattr(made, name, value)
    return made


def _nodes(code: CodeType, namespace: dict) -> dict:
    lines = linecache.getlines(code.co_filename, namespace)
    known = _files.get(code.co_filename)
    if known is None or known[0] is not lines and known[0] != lines:
        index: dict = {}
        try:
            _add_functions(ast.parse("".join(lines)), None, index)
        except (SyntaxError, ValueError):
            index = {}
        known = _files[code.co_filename] = (lines, index)
    return known[1]


def _add_functions(node: ast.AST, around: str | None, index: dict) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _FUNCTIONS):
            first = min([child.lineno, *[d.lineno for d in getattr(child, "decorator_list", [])]])
            index.setdefault(first, []).append((child, around))
        _add_functions(child, child.name if isinstance(child, ast.ClassDef) else around, index)


def _fits(node: Any, code: CodeType) -> bool:
    """Whether the function of that node may have that code."""
    args = node.args
    names = [arg.arg for arg in [*args.posonlyargs, *args.args, *args.kwonlyargs]]
    count = code.co_argcount + code.co_kwonlyargcount
    return getattr(node, "name", "<lambda>") == code.co_name and len(names) == count and all(
        code.co_varnames[i].endswith(name) for i, name in enumerate(names))


def _same_code(node: Any, code: CodeType) -> bool:
    """Of several functions on one line: whether this one compiles to that code."""
    names = list(code.co_freevars)
    around = ast.parse("def around(%s): return 0" % ", ".join(names))
    around.body[0].body[0].value = copied(node)  # type: ignore[attr-defined]
    outer = compile(around, code.co_filename, "exec", code.co_flags & FUTURE, True).co_consts[0]
    made = [c for c in outer.co_consts if hasattr(c, "co_code") and c.co_name == code.co_name]
    return bool(made) and (made[0].co_code, made[0].co_names, made[0].co_freevars) == (
        code.co_code, code.co_names, code.co_freevars) and _plain(made[0]) == _plain(code)


FUTURE = __future__.annotations.compiler_flag


def _plain(code: CodeType) -> list:
    return [c for c in code.co_consts if not hasattr(c, "co_code")]


class _Mangled(ast.NodeTransformer):
    """`__name` in a class is `_Class__name`."""

    def __init__(self, around: str) -> None:
        self._prefix = "_" + around.lstrip("_")

    def _name(self, name: str) -> str:
        private = name.startswith("__") and not name.endswith("__") and "." not in name
        return self._prefix + name if private and self._prefix != "_" else name

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field in ("id", "attr", "arg", "name"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                setattr(node, field, self._name(value))
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            node.names = [self._name(name) for name in node.names]
        return super().generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node  # its inner names are its own
