# SPDX-License-Identifier: Apache-2.0
"""A Python function as one whose control flow may depend on tensors.

The new function has the old one's globals, cells, defaults, file and lines: what it changes, the
old one changes, and tracebacks and errors show the program's own lines.
"""

from __future__ import annotations

import ast
import types
import weakref

from treenail.autograph import _source
from treenail.autograph._expressions import convert_expressions
from treenail.autograph._nodes import HELPERS, function
from treenail.autograph._places import MARK
from treenail.autograph._scopes import BLOCK
from treenail.autograph._statements import convert_blocks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_FACTORY, _FUNCTION = "ag__factory", "ag__function"
_codes: dict = {}  # {id of a code: (weak reference to it, converted code)}


def converted_function(original: Callable, helpers: Any) -> Callable:
    """The function converted; `helpers` is what it knows as ag__.

    Raises NoSource where the source is not there.
    """
    code = original.__code__  # type: ignore[attr-defined]
    known = _codes.get(id(code))
    if known is None:
        known = _codes[id(code)] = (weakref.ref(code, _forget(id(code))), _converted_code(original))
    made = known[1]
    cells = dict(zip(code.co_freevars, original.__closure__ or ()))  # type: ignore[attr-defined]
    cells[HELPERS] = types.CellType(helpers)
    result = types.FunctionType(
        made, original.__globals__, original.__name__,  # type: ignore[attr-defined]
        original.__defaults__, tuple(cells[name] for name in made.co_freevars))  # type: ignore
    for name in ("__kwdefaults__", "__doc__", "__module__", "__qualname__", "__annotations__"):
        setattr(result, name, getattr(original, name))
    vars(result).update(vars(original), __wrapped__=original)
    return result


def _forget(key: int) -> Callable:
    return lambda _: _codes.pop(key, None)


def converted_tree(original: Callable) -> ast.AST:
    """The syntax tree of the converted function, its name and parameters as they were."""
    node = _source.function_node(original)
    convert_blocks(node)
    convert_expressions(node, "__class__" in original.__code__.co_freevars)  # type: ignore
    return node


def _converted_code(original: Callable) -> types.CodeType:
    code = original.__code__  # type: ignore[attr-defined]
    node: Any = converted_tree(original)
    node.args.defaults, node.args.kw_defaults = [], [None for _ in node.args.kwonlyargs]
    if not isinstance(node, ast.Lambda):
        node.decorator_list, node.returns, node.name = [], None, _FUNCTION
    for arg in ast.walk(node.args):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    body = [ast.Expr(node)] if isinstance(node, ast.Lambda) else [node]
    factory = function(_FACTORY, body, *code.co_freevars, HELPERS)
    tree = ast.fix_missing_locations(ast.Module([factory], []))
    module = compile(tree, code.co_filename, "exec", code.co_flags & _source.FUTURE, True)
    name = "<lambda>" if isinstance(node, ast.Lambda) else _FUNCTION
    return _finished(_named(_named(module, _FACTORY), name), code)


def _named(code: types.CodeType, name: str) -> types.CodeType:
    return next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)


def _finished(made: types.CodeType, original: types.CodeType) -> types.CodeType:
    """The code, and codes in it, with the mark; what was made for it under the function's name."""
    block = made.co_name.startswith(BLOCK)
    named = block or made.co_name == _FUNCTION
    inner = [_finished(c, original) if isinstance(c, types.CodeType) else c
             for c in made.co_consts]
    changes: dict = {"co_consts": (*inner, (MARK, block))}
    if named:
        changes["co_name"] = original.co_name
    if hasattr(made, "co_qualname"):  # Python 3.11
        inside = made.co_qualname.rpartition(_FUNCTION)[2]
        changes["co_qualname"] = original.co_qualname + ("" if named else inside)
    return made.replace(**changes)
