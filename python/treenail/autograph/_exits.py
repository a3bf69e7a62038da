# SPDX-License-Identifier: Apache-2.0
"""The ways out of blocks: what follows a branch that leaves goes into the other branch, so that
`if c: return a` and `return b` behind it are two branches of one condition."""

from __future__ import annotations

import ast

_LOOPS = (ast.While, ast.For, ast.AsyncFor)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def contains(nodes: list, kinds: tuple, through_loops: bool = True) -> bool:
    """Whether a node of these kinds is among the nodes or in them, outside of inner functions."""
    for node in nodes:
        if isinstance(node, kinds):
            return True
        if isinstance(node, SCOPES) or (not through_loops and isinstance(node, _LOOPS)):
            if isinstance(node, _LOOPS) and contains(node.orelse, kinds, False):
                return True
            continue
        if contains(list(ast.iter_child_nodes(node)), kinds, through_loops):
            return True
    return False


def leaves(nodes: list, always: tuple = (ast.Return, ast.Break, ast.Continue, ast.Raise)) -> bool:
    """Whether what follows these statements is never reached."""
    return any(_leaves(node, always) for node in nodes)


def _leaves(node: ast.stmt, always: tuple) -> bool:
    if isinstance(node, always):
        return True
    if isinstance(node, ast.If):
        return leaves(node.body, always) and leaves(node.orelse, always)
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return leaves(node.body, always)
    if isinstance(node, _LOOPS):
        endless = isinstance(node, ast.While) and isinstance(
            node.test, ast.Constant) and node.test.value
        return (endless or leaves(node.orelse, always)) and not contains(
            node.body, (ast.Break,), through_loops=False)
    if isinstance(node, ast.Try):
        return leaves(node.finalbody, always) or (
            (leaves(node.body, always) or leaves(node.orelse, always))
            and all(leaves(handler.body, always) for handler in node.handlers))
    return False


def always_returns(nodes: list) -> bool:
    """Whether a function of these statements never runs off its end."""
    return leaves(nodes, (ast.Return, ast.Raise))


def folded(nodes: list) -> list:
    """The same statements, what follows an `if` with a branch that leaves in its other branch."""
    result: list = []
    for place, node in enumerate(nodes):
        result.append(node)
        rest = nodes[place + 1:]
        if not isinstance(node, ast.If) or not contains([node], (ast.Return, ast.Break,
                                                                 ast.Continue)):
            continue
        if leaves(node.body):
            node.orelse = folded(node.orelse + rest)
            node.body = folded(node.body)
            break
        if leaves(node.orelse):
            node.body = folded(node.body + rest)
            node.orelse = folded(node.orelse)
            break
    return result


def without_last_continue(nodes: list) -> list:
    """The same statements of a loop's body; a `continue` behind which nothing comes is none."""
    if not nodes:
        return nodes
    last = nodes[-1]
    if isinstance(last, ast.Continue):
        return nodes[:-1] + [ast.copy_location(ast.Pass(), last)]
    if isinstance(last, ast.If):
        last.body = without_last_continue(last.body)
        last.orelse = without_last_continue(last.orelse)
    return nodes
