# SPDX-License-Identifier: Apache-2.0
"""The tree of a pipeline's stages as text: what would run where and under which condition."""

from typing import Iterator, List

from expressions import source
from model import STEPS, Condition, Pipeline, Scope, Stage, Step, cell_name


def _condition(condition: Condition) -> str:
    if condition.inner:
        return "%s(%s)" % (condition.name, "; ".join(map(_condition, condition.inner)))
    if condition.name == "expression":
        return source(condition.arguments["value"])
    return "%s %s" % (condition.name, ", ".join(
        "%s: %s" % (name, source(node)) for name, node in condition.arguments.items()))


def _steps(steps: List[Step], indent: str) -> Iterator[str]:
    for step in steps:
        plain = STEPS[step.name][:1]  # may stand without its name
        shown = [source(node) if name + "!" in plain else "%s: %s" % (name, source(node))
                 for name, node in step.arguments.items()]
        yield "%s%s" % (indent, " ".join([step.name, ", ".join(shown)]).strip())
        yield from _steps(step.block, indent + "  ")


def _scope(scope: Scope, indent: str) -> Iterator[str]:
    if scope.agent is not None:
        label = scope.agent.get("label")
        kind = "label " + source(label) if label else next(iter(scope.agent))
        yield "%sagent %s" % (indent, kind)
    for name, arguments in scope.options.items():
        yield "%soption %s" % (indent, " ".join([name] + [
            "%s: %s" % (key, source(node)) for key, node in arguments.items()]))
    for name, node in scope.environment:
        yield "%senvironment %s = %s" % (indent, name, source(node))


def _post(scope: Scope, indent: str) -> Iterator[str]:
    for name, steps in scope.post.items():
        yield "%spost %s" % (indent, name)
        yield from _steps(steps, indent + "  ")


def _stage(stage: Stage, indent: str) -> Iterator[str]:
    yield "%sstage %s" % (indent, stage.name)
    yield from _body(stage, indent + "  ")


def _body(stage: Stage, indent: str) -> Iterator[str]:
    yield from _scope(stage, indent)
    if stage.when:
        yield "%swhen%s %s" % (indent, " (before the agent)" if stage.before_agent else "",
                               "; ".join(map(_condition, stage.when)))
    yield from _steps(stage.steps or [], indent)
    if stage.parallel or stage.matrix:
        yield "%s%s%s" % (indent, "parallel" if stage.parallel else "matrix",
                          " (failFast)" if stage.fail_fast else "")
    for inner in stage.parallel:
        yield from _stage(inner, indent + "  ")
    if stage.matrix:
        for cell in stage.matrix.cells():
            yield "%s  cell %s" % (indent, cell_name(cell))
        yield "%s  each cell" % indent
        yield from _body(stage.matrix, indent + "    ")
    for inner in stage.stages:
        yield from _stage(inner, indent)
    yield from _post(stage, indent)


def plan(pipeline: Pipeline) -> str:
    lines = ["pipeline"]
    lines += _scope(pipeline, "  ")
    for name, record in pipeline.parameters.items():
        shown = " | ".join(record["choices"]) if "choices" in record else repr(record["default"])
        lines.append("  parameter %s: %s %s" % (name, record["kind"], shown))
    for stage in pipeline.stages:
        lines += _stage(stage, "  ")
    lines += _post(pipeline, "  ")
    return "\n".join(lines) + "\n"
