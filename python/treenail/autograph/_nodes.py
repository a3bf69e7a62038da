# SPDX-License-Identifier: Apache-2.0
"""Pieces of syntax that the conversion puts into a function: calls of the helpers in _helpers.py,
and functions of no argument that stand for a block or an operand."""

from __future__ import annotations

import ast

HELPERS = "ag__"  # the name by which converted code knows _helpers.py


def load(name: str) -> ast.Name:
    """A name that is read."""
    return ast.Name(name, ast.Load())


def call(helper: str, *args: ast.expr) -> ast.Call:
    """`ag__.helper(*args)`, which stays as it is."""
    node = ast.Call(ast.Attribute(load(HELPERS), helper, ast.Load()), list(args), [])
    node.made_here = True
    return node


def assign(name: str, value: ast.expr) -> ast.Assign:
    """`name = value`."""
    return ast.Assign([ast.Name(name, ast.Store())], value)


def thunk(value: ast.expr) -> ast.Lambda:
    """`lambda: value`."""
    return ast.Lambda(no_arguments(), value)


def no_arguments(*names: str) -> ast.arguments:
    """Parameters of these names."""
    return ast.arguments(posonlyargs=[], args=[ast.arg(name) for name in names], vararg=None,
                         kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[])


def function(name: str, body: list, *parameters: str) -> ast.FunctionDef:
    """`def name(*parameters): body`."""
    node = ast.FunctionDef(name=name, args=no_arguments(*parameters), body=body or [ast.Pass()],
                           decorator_list=[], returns=None)
    node.type_params = []  # Python 3.12
    return node


def names(words: object) -> ast.Tuple:
    """A tuple of strings."""
    return ast.Tuple([ast.Constant(word) for word in sorted(words)], ast.Load())


def at(place: ast.AST, *nodes: ast.AST) -> list:
    """The nodes, on the line of `place` where they have none of their own."""
    for node in nodes:
        if not hasattr(node, "lineno"):
            ast.copy_location(node, place)
        node.end_lineno = getattr(node, "end_lineno", None) or node.lineno
        _fill(node, node.lineno, node.col_offset)
    return list(nodes)


def _fill(node: ast.AST, line: int, column: int) -> None:
    if "lineno" in node._attributes:
        if not hasattr(node, "lineno"):
            node.lineno, node.col_offset = line, column
            node.end_lineno, node.end_col_offset = line, column
        line, column = node.lineno, node.col_offset
    for child in ast.iter_child_nodes(node):
        _fill(child, line, column)
