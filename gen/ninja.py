# SPDX-License-Identifier: Apache-2.0
"""Edges to the text of build.ninja. Pure: the same plan gives the same bytes."""

from dataclasses import dataclass, field
from typing import Dict, List, Sequence, Tuple

from gen.errors import ConfigureError


@dataclass(frozen=True)
class Rule:
    name: str
    variables: Tuple[Tuple[str, str], ...]


@dataclass(frozen=True)
class Edge:
    """One build statement; paths are relative to the build directory."""

    rule: str
    outputs: Tuple[str, ...]
    inputs: Tuple[str, ...] = ()
    implicit: Tuple[str, ...] = ()
    order_only: Tuple[str, ...] = ()
    implicit_outputs: Tuple[str, ...] = ()
    variables: Tuple[Tuple[str, str], ...] = ()


@dataclass
class Plan:
    """Everything that build.ninja says, and small files that configure writes beside it."""

    variables: List[Tuple[str, str]] = field(default_factory=list)
    pools: List[Tuple[str, int]] = field(default_factory=list)
    rules: List[Rule] = field(default_factory=list)
    edges: List[Edge] = field(default_factory=list)
    defaults: List[str] = field(default_factory=list)
    help: List[Tuple[str, str]] = field(default_factory=list)
    files: Dict[str, str] = field(default_factory=dict)
    compile_commands: List[Tuple[str, str, str]] = field(default_factory=list)

    def edge(self, rule: str, outputs: Sequence[str], inputs: Sequence[str] = (),
             implicit: Sequence[str] = (), order_only: Sequence[str] = (),
             implicit_outputs: Sequence[str] = (), **variables: str) -> Edge:
        made = Edge(rule, tuple(outputs), tuple(inputs), tuple(implicit), tuple(order_only),
                    tuple(implicit_outputs), tuple(sorted(variables.items())))
        self.edges.append(made)
        return made

    def phony(self, name: str, inputs: Sequence[str], help_text: str = "") -> None:
        self.edge("phony", [name], inputs)
        if help_text:
            self.help.append((name, help_text))


def escape_path(path: str) -> str:
    if "\n" in path:
        raise ConfigureError("a file name with a line break cannot be built: %r" % path)
    return path.replace("$", "$$").replace(" ", "$ ").replace(":", "$:")


def escape_value(text: str) -> str:
    return text.replace("$", "$$")


def _check(plan: Plan) -> None:
    """Duplicates and cycles are fatal here; ninja 1.10 would only warn about the first."""
    rules = {rule.name for rule in plan.rules} | {"phony"}
    made: Dict[str, Edge] = {}
    for edge in plan.edges:
        if edge.rule not in rules:
            raise ConfigureError("generator: rule '%s' does not exist" % edge.rule)
        for output in edge.outputs + edge.implicit_outputs:
            if output in made:
                raise ConfigureError("generator: two edges make %s" % output)
            made[output] = edge
    state: Dict[str, int] = {}
    for start in sorted(made):
        stack = [(start, 0)]
        while stack:
            path, step = stack.pop()
            if step == 1:
                state[path] = 2
                continue
            if state.get(path) == 2 or path not in made:
                continue
            if state.get(path) == 1:
                continue
            state[path] = 1
            stack.append((path, 1))
            edge = made[path]
            for need in edge.inputs + edge.implicit + edge.order_only:
                if state.get(need) == 1:
                    raise ConfigureError("generator: %s depends on itself" % need)
                if need in made and state.get(need) != 2:
                    stack.append((need, 0))


def render(plan: Plan) -> str:
    """The text of build.ninja."""
    _check(plan)
    lines = ["# Written by configure.py; edit targets.py or gen/ instead.",
             "ninja_required_version = 1.10", ""]
    for name, value in plan.variables:
        lines.append("%s = %s" % (name, value))
    for name, depth in plan.pools:
        lines += ["", "pool " + name, "  depth = %d" % depth]
    for rule in plan.rules:
        lines += ["", "rule " + rule.name]
        lines += ["  %s = %s" % pair for pair in rule.variables]
    lines.append("")
    for edge in plan.edges:
        text = "build " + " ".join(map(escape_path, edge.outputs))
        if edge.implicit_outputs:
            text += " | " + " ".join(map(escape_path, edge.implicit_outputs))
        text += ": " + edge.rule
        if edge.inputs:
            text += " " + " ".join(map(escape_path, edge.inputs))
        if edge.implicit:
            text += " | " + " ".join(map(escape_path, edge.implicit))
        if edge.order_only:
            text += " || " + " ".join(map(escape_path, edge.order_only))
        lines.append(text)
        lines += ["  %s = %s" % pair for pair in edge.variables]
    if plan.defaults:
        lines += ["", "default " + " ".join(map(escape_path, plan.defaults))]
    return "\n".join(lines) + "\n"
