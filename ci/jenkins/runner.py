# SPDX-License-Identifier: Apache-2.0
"""Run a pipeline as Jenkins would, with one executor: parallel branches one after another.

A stage: its options, then its agent (with a checkout), `when` (before the agent with beforeAgent),
environment, steps or inner stages, post. A failed stage makes those after it skip; parallel
branches all run, unless failFast. The conditions of `post` look at the worst of the build so far
and of the stage, each at its turn, so that what junit says in `always` decides `unstable`. A stage
whose label no agent here has is not run, and the summary says so.
"""

import os
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, TextIO

from expressions import text_of, truth, value
from model import UNITS, Condition, Matrix, Pipeline, Scope, Stage, Step, cell_name
from steps import RUN, Context, Deadlines, Interrupted, Record, StepFailed, worse
from syntax import Refused

Error = Optional[StepFailed]


class NoAgent(Exception):
    """No agent here has the label."""


class Choice:
    """What a run is limited to: stages by name, cells by values of their axes."""

    def __init__(self, stages: Sequence[str] = (), axes: Optional[Dict[str, str]] = None):
        self.stages, self.axes = list(stages), axes or {}

    def stage(self, stage: Stage) -> bool:
        """Whether the stage, or one within it, is chosen."""
        inner = stage.stages + stage.parallel + (stage.matrix.stages if stage.matrix else [])
        return not self.stages or stage.name in self.stages or any(map(self.stage, inner))

    def within(self, stage: Stage) -> "Choice":
        """The choice for what the stage holds: all of it, where the stage itself is named."""
        return Choice((), self.axes) if stage.name in self.stages else self

    def cell(self, cell: Dict[str, str]) -> bool:
        return all(cell.get(name, wanted) == wanted for name, wanted in self.axes.items())


class Build:
    """One run of a pipeline, in `folder`; `workspaces` and the commit are kept by the caller."""

    def __init__(self, pipeline: Pipeline, parameters: Dict[str, Any], folder: str, number: int,
                 previous: Optional[str], checkout: Callable[[], str], labels: Sequence[str],
                 log: TextIO):
        self.pipeline, self.parameters, self.folder = pipeline, parameters, folder
        self.number, self.previous, self.checkout = number, previous, checkout
        self.labels, self.log = set(labels), log
        self.result = "SUCCESS"
        self.tests: List[int] = [0, 0, 0]
        self.fingerprints: Dict[str, str] = {}
        self.stamps = 0
        self.deadlines = Deadlines()
        self.record = Record("pipeline")

    # ---- what steps use --------------------------------------------------------------------------

    def show(self, text: str) -> None:
        line = (time.strftime("[%H:%M:%S] ") if self.stamps else "") + text
        print(line, flush=True)
        self.log.write(line + "\n")
        self.log.flush()

    def worsen(self, context: Context, result: str, stage: str = "") -> None:
        """Of the build, and of the stage, to `stage` where that is another."""
        self.result = worse(self.result, result)
        context.record.add(stage or result)

    def time_left(self) -> float:
        return self.deadlines.left()

    def value(self, node: Dict[str, Any], context: Context) -> Any:
        try:
            return value(node, self.pipeline.path, self.parameters, context.environment,
                         self.result)
        except Refused as reason:
            raise StepFailed(str(reason)) from None

    # ---- steps -----------------------------------------------------------------------------------

    def steps(self, steps: Sequence[Step], context: Context) -> None:
        for step in steps:
            given = {name: self.value(node, context) for name, node in step.arguments.items()}
            if step.name == "catchError":
                self.catch_error(step, context, given)
            elif step.name == "dir":
                self.steps(step.block, Context(context.record, context.environment, os.path.join(
                    context.folder(), text_of(given["path"]))))
            else:
                if self.time_left() <= 0:
                    raise Interrupted("Timeout has been exceeded")
                RUN[step.name](self, context, **given)

    def catch_error(self, step: Step, context: Context, given: Dict[str, Any]) -> None:
        """The error is said, its result set; the stage stays as it is unless stageResult says."""
        try:
            self.steps(step.block, context)
        except StepFailed as reason:
            stopped = isinstance(reason, Interrupted)
            if stopped and not given.get("catchInterruptions", True):
                raise
            self.show("ERROR: %s" % reason)
            if given.get("message"):
                self.show(text_of(given["message"]))
            build = reason.result if stopped else given.get("buildResult", "FAILURE")
            stage = reason.result if stopped else given.get("stageResult", "SUCCESS")
            self.worsen(context, build, stage)

    # ---- directives ------------------------------------------------------------------------------

    def holds(self, condition: Condition, context: Context) -> bool:
        given = {name: self.value(node, context) for name, node in condition.arguments.items()}
        if condition.name == "expression":
            return truth(given["value"])
        if condition.name == "environment":
            return context.environment.get(text_of(given["name"])) == text_of(given["value"])
        if condition.name == "equals":
            return given["expected"] == given["actual"]
        inner = [self.holds(each, context) for each in condition.inner]
        if condition.name == "not":
            return not inner[0]
        return all(inner) if condition.name == "allOf" else any(inner)

    def when(self, stage: Stage, context: Context) -> bool:
        return all(self.holds(condition, context) for condition in stage.when)

    def entered(self, scope: Scope, context: Context) -> Context:
        """The context within the agent of a scope, where it names one."""
        if scope.agent is None or "none" in scope.agent:
            return context
        wanted = []
        if "label" in scope.agent:
            label = text_of(self.value(scope.agent["label"], context))
            wanted = [word.strip() for word in label.split("&&")]
            for word in wanted:
                if word not in self.labels:
                    raise NoAgent("no agent here has the label '%s'" % word)
        place = self.checkout()
        self.show("Running in %s" % place)
        return Context(context.record, dict(context.environment, WORKSPACE=place), place)

    def with_environment(self, scope: Scope, context: Context) -> Context:
        for name, node in scope.environment:
            context = context.having(**{name: text_of(self.value(node, context))})
        return context

    @contextmanager
    def with_options(self, scope: Scope) -> Iterator[None]:
        seconds = None
        if "timeout" in scope.options:
            given = scope.options["timeout"]
            unit = given["unit"]["value"] if "unit" in given else "MINUTES"
            seconds = given["time"]["value"] * UNITS[unit]
        self.stamps += "timestamps" in scope.options
        try:
            with self.deadlines.within(seconds):
                yield
        finally:
            self.stamps -= "timestamps" in scope.options

    def post(self, scope: Scope, context: Context, error: Error) -> Error:
        """Runs what is due in Jenkins's order; returns the first error."""
        for name, steps in scope.post.items():
            combined = worse(self.result, worse(context.record.result,
                                                error.result if error else "SUCCESS"))
            if not due(name, combined, self.previous):
                continue
            self.show("Post: %s" % name)
            try:
                # A time limit that has passed must not keep the clean-up from running.
                with Fresh(self):
                    self.steps(steps, context)
            except StepFailed as reason:
                self.show("Error when executing %s post condition: %s" % (name, reason))
                self.worsen(context, reason.result)
                error = error or reason
        return error

    # ---- stages ----------------------------------------------------------------------------------

    def skip(self, stage: Stage, context: Context, why: str) -> None:
        context.record.skipped = why
        self.show("Stage \"%s\" skipped %s" % (context.record.name, why))

    def stage(self, stage: Stage, parent: Context, error: Error, choice: Choice,
              name: str = "") -> Error:
        """Runs a stage; returns its error. `error` is one of before: then it is skipped."""
        record = Record(name or stage.name)
        parent.record.children.append(record)
        context = Context(record, dict(parent.environment, STAGE_NAME=record.name), parent.place)
        self.show("[Pipeline] { (%s)" % record.name)
        began = time.monotonic()
        if error is not None:
            self.skip(stage, context, "due to earlier failure(s)")
        elif not choice.stage(stage):
            self.skip(stage, context, "for it was not chosen")
        elif self.result == "UNSTABLE" and "skipStagesAfterUnstable" in self.pipeline.options:
            self.skip(stage, context, "due to earlier stage(s) marking the build as unstable")
        else:
            try:
                with self.with_options(stage):
                    error = self.inside(stage, context, choice.within(stage))
            except NoAgent as reason:
                self.skip(stage, context, "for %s" % reason)
            except StepFailed as reason:
                error = self.failed(context, reason)
        record.seconds = time.monotonic() - began
        parent.record.add(record.result)
        return error

    def failed(self, context: Context, reason: StepFailed) -> StepFailed:
        self.show("ERROR: %s" % reason)
        self.worsen(context, reason.result)
        return reason

    def inside(self, stage: Stage, context: Context, choice: Choice) -> Error:
        branches = bool(stage.parallel or stage.matrix)
        if stage.before_agent and not self.when(stage, context):
            self.skip(stage, context, "due to when conditional")
            return None
        outer = context = self.entered(stage, context)
        if not stage.before_agent and not self.when(stage, context):
            self.skip(stage, context, "due to when conditional")
            return None
        context = self.with_environment(stage, context)
        if branches:
            # Jenkins runs this post outside of the stage's environment.
            return self.post(stage, outer, self.branches(stage, context, choice))
        error: Error = None
        if stage.steps is not None:
            try:
                self.steps(stage.steps, context)
            except StepFailed as reason:
                error = self.failed(context, reason)
        else:
            error = self.sequence(stage.stages, context, choice)
        return self.post(stage, context, error)

    def sequence(self, stages: Sequence[Stage], context: Context, choice: Choice) -> Error:
        error: Error = None
        for stage in stages:
            error = self.stage(stage, context, error, choice) or error
        return error

    def branches(self, stage: Stage, context: Context, choice: Choice) -> Error:
        fast = stage.fail_fast or "parallelsAlwaysFailFast" in self.pipeline.options
        first: Error = None
        for name, branch, inner in self.each_branch(stage, context, choice):
            if first is not None and fast:
                record = Record(name, "ABORTED", "for another branch failed (failFast)")
                context.record.children.append(record)
                self.show("Stage \"%s\" skipped %s" % (name, record.skipped))
                continue
            error = self.stage(branch, inner, None, choice, name)
            first = first or error
            if isinstance(error, Interrupted):
                fast = True  # the whole build was stopped, or its time is up
        return first

    def each_branch(self, stage: Stage, context: Context, choice: Choice) -> Iterator[Any]:
        for branch in stage.parallel:
            yield branch.name, branch, context
        matrix: Optional[Matrix] = stage.matrix
        for cell in matrix.cells() if matrix else ():
            if choice.cell(cell):
                yield cell_name(cell), matrix, context.having(**cell)

    # ---- the whole -------------------------------------------------------------------------------

    def run(self, environment: Dict[str, str], choice: Choice) -> str:
        pipeline = self.pipeline
        context = Context(self.record, environment)
        error: Error = None
        try:
            with self.with_options(pipeline):
                context = self.with_environment(pipeline, self.entered(pipeline, context))
                error = self.sequence(pipeline.stages, context, choice)
        except NoAgent as reason:
            error = self.failed(context, StepFailed(str(reason)))
        except StepFailed as reason:
            error = self.failed(context, reason)
        if pipeline.post:
            self.show("[Pipeline] { (Declarative: Post Actions)")
            self.stamps += "timestamps" in pipeline.options
            self.post(pipeline, context, error)
        self.result = worse(self.result, self.record.result)
        return self.result


class Fresh:
    """Post conditions run on their own time."""

    def __init__(self, build: Build):
        self.build, self.kept = build, build.deadlines

    def __enter__(self) -> None:
        self.build.deadlines = Deadlines()

    def __exit__(self, *_: Any) -> None:
        self.build.deadlines = self.kept


def due(name: str, result: str, previous: Optional[str]) -> bool:
    """Whether a condition of post holds; `previous` is the result of the build before, if any."""
    if name == "changed":
        return previous is None or result != previous
    if name == "fixed":
        return result == "SUCCESS" and previous in ("FAILURE", "UNSTABLE")
    if name == "regression":
        return previous is not None and worse(previous, result) != previous
    return name in ("always", "cleanup") or (name == "unsuccessful" and result != "SUCCESS") or (
        name.upper() == result)
