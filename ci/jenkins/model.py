# SPDX-License-Identifier: Apache-2.0
"""What a declarative Jenkinsfile says: stages, matrix, conditions, steps; from its syntax tree.

Everything that is not known here is refused by its name, file and line, before anything runs. The
tables below are the whole of it: a directive or step that they lack is one that runner.py cannot
carry out. Meanings are those of Jenkins's Pipeline Syntax reference.
"""

import itertools
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, NoReturn, Optional, Sequence, Tuple

from expressions import check
from syntax import Node, Refused, refuse

# In the order in which Jenkins runs them, whatever the order in the file.
POST = ("always", "changed", "fixed", "regression", "aborted", "failure", "success", "unstable",
        "unsuccessful", "cleanup")
PARAMETERS = ("string", "choice", "booleanParam")
# Name of a step -> its parameters, the first of which may stand without its name. A name that ends
# in ! is needed; * stands for a block of steps.
STEPS: Dict[str, Tuple[str, ...]] = {
    "archiveArtifacts": ("artifacts!", "allowEmptyArchive", "excludes", "fingerprint"),
    "catchError": ("message", "buildResult", "catchInterruptions", "stageResult", "*"),
    "deleteDir": (), "dir": ("path!", "*"), "echo": ("message!",), "error": ("message!",),
    "junit": ("testResults!", "allowEmptyResults"), "sh": ("script!", "label"),
    "stash": ("name!", "includes", "excludes", "allowEmpty"), "unstable": ("message!",),
    "unstash": ("name!",)}
OPTIONS: Dict[str, Tuple[str, ...]] = {
    "buildDiscarder": ("strategy!",), "disableConcurrentBuilds": (), "parallelsAlwaysFailFast": (),
    "skipStagesAfterUnstable": (), "timeout": ("time!", "unit"), "timestamps": ()}
STAGE_OPTIONS = ("timeout", "timestamps")
UNITS = {"SECONDS": 1, "MINUTES": 60, "HOURS": 3600}


@dataclass
class Step:
    name: str
    line: int
    arguments: Dict[str, Node]
    block: List["Step"] = field(default_factory=list)


@dataclass
class Condition:
    """Of `when`: 'expression', 'environment', 'equals', or 'allOf', 'anyOf', 'not' of others."""

    name: str
    line: int
    arguments: Dict[str, Node]
    inner: List["Condition"] = field(default_factory=list)


@dataclass
class Scope:
    """What pipeline, stage and matrix have in common. `agent` is None where nothing is said."""

    line: int
    agent: Optional[Node] = None  # {'any': True}, {'none': True} or {'label': expression}
    environment: List[Tuple[str, Node]] = field(default_factory=list)
    options: Dict[str, Dict[str, Node]] = field(default_factory=dict)
    post: Dict[str, List[Step]] = field(default_factory=dict)
    stages: List["Stage"] = field(default_factory=list)


@dataclass
class Stage(Scope):
    name: str = ""
    before_agent: bool = False
    when: List[Condition] = field(default_factory=list)
    steps: Optional[List[Step]] = None
    parallel: List["Stage"] = field(default_factory=list)
    matrix: Optional["Matrix"] = None
    fail_fast: bool = False


@dataclass
class Matrix(Stage):
    """A stage in itself, run once per cell."""

    axes: Dict[str, List[str]] = field(default_factory=dict)
    excludes: List[Dict[str, Tuple[bool, List[str]]]] = field(default_factory=list)

    def cells(self) -> Iterator[Dict[str, str]]:
        """Each combination of axis values that no exclude matches."""
        for values in itertools.product(*self.axes.values()):
            cell = dict(zip(self.axes, values))
            if not any(all((cell[axis] in names) == wanted
                           for axis, (wanted, names) in exclude.items())
                       for exclude in self.excludes):
                yield cell


@dataclass
class Pipeline(Scope):
    path: str = ""
    parameters: Dict[str, Dict[str, Any]] = field(default_factory=dict)


def cell_name(cell: Dict[str, str]) -> str:
    return "Matrix - " + ", ".join("%s = '%s'" % item for item in cell.items())


class Reader:
    """Reads one file; `refuse` ends it."""

    def __init__(self, path: str):
        self.path = path
        self.parameters: Dict[str, Dict[str, Any]] = {}

    def refuse(self, node: Node, text: str) -> NoReturn:
        raise refuse(self.path, node["line"], text)

    # ---- pieces ----------------------------------------------------------------------------------

    def expression(self, node: Node) -> Node:
        return check(node, self.path, self.parameters)

    def constant(self, node: Node, what: str, kind: type = str) -> Any:
        if node["kind"] != "constant" or not isinstance(node["value"], kind):
            self.refuse(node, "%s must be %s" % (what, {
                str: "a plain text", bool: "true or false", int: "a plain number"}[kind]))
        return node["value"]

    def calls(self, block: Node, where: str, known: Sequence[str]) -> Iterator[Node]:
        """The calls in a block, each of a known name; a bare name is a call without arguments."""
        if block["parameters"]:
            self.refuse(block, "the block of %s takes a parameter" % where)
        for node in block["body"]:
            if node["kind"] == "variable":
                node = {"kind": "call", "line": node["line"], "name": node["name"], "of": None,
                        "positional": [], "named": [], "block": None}
            if node["kind"] == "call" and node["of"] is not None:
                self.refuse(node, "'%s' in %s is called on something else: each directive and each "
                            "step stands on a line of its own" % (node["name"], where))
            if node["kind"] != "call" or not node["name"]:
                self.refuse(node, "%s in %s: only these may stand there: %s" % (
                    node.get("what") or "a " + node["kind"], where, ", ".join(known)))
            if node["name"] not in known:
                self.refuse(node, "'%s' is not known in %s; ci/run-jenkinsfile knows %s" % (
                    node["name"], where, ", ".join(known)))
            yield node

    def once(self, block: Node, where: str, known: Sequence[str]) -> Dict[str, Node]:
        found: Dict[str, Node] = {}
        for node in self.calls(block, where, known):
            if node["name"] in found:
                self.refuse(node, "'%s' stands twice in %s" % (node["name"], where))
            found[node["name"]] = node
        return found

    def block(self, node: Node) -> Node:
        if node["block"] is None or node["positional"] or node["named"]:
            self.refuse(node, "'%s' needs a block in braces, and nothing else" % node["name"])
        return node["block"]

    def single(self, node: Node) -> Node:
        """The one argument."""
        if len(node["positional"]) != 1 or node["named"] or node["block"]:
            self.refuse(node, "'%s' takes one value" % node["name"])
        return node["positional"][0]

    def arguments(self, node: Node, names: Sequence[str]) -> Dict[str, Node]:
        """Arguments by their names, checked; the first of `names` may be given without."""
        plain = [name.rstrip("!") for name in names if name != "*"]
        if len(node["positional"]) > (1 if plain else 0):
            self.refuse(node, "'%s' takes %s" % (node["name"], "one value without a name" if plain
                                                 else "no value"))
        found = dict(zip(plain, node["positional"]))
        for key, value in node["named"]:
            name = key["value"] if key["kind"] == "constant" else ""
            if name not in plain:
                self.refuse(node, "'%s' has no parameter '%s' here; known: %s" % (
                    node["name"], name, ", ".join(plain) or "none"))
            if name in found:
                self.refuse(node, "'%s' gets '%s' twice" % (node["name"], name))
            found[name] = value
        for name in names:
            if name.endswith("!") and name[:-1] not in found:
                self.refuse(node, "'%s' needs '%s'" % (node["name"], name[:-1]))
        if (node["block"] is not None) != ("*" in names):
            self.refuse(node, "'%s' %s block" % (
                node["name"], "needs a" if "*" in names else "takes no"))
        return found

    # ---- steps and conditions --------------------------------------------------------------------

    def steps(self, block: Node, where: str) -> List[Step]:
        found = []
        for node in self.calls(block, where, sorted(STEPS)):
            arguments = self.arguments(node, STEPS[node["name"]])
            for value in arguments.values():
                self.expression(value)
            for name in ("buildResult", "stageResult"):
                if name in arguments and self.constant(arguments[name], name) not in (
                        "SUCCESS", "UNSTABLE", "FAILURE"):
                    self.refuse(node, "%s is '%s'; it may be SUCCESS, UNSTABLE or FAILURE" % (
                        name, arguments[name]["value"]))
            inner = self.steps(node["block"], "'%s'" % node["name"]) if node["block"] else []
            found.append(Step(node["name"], node["line"], arguments, inner))
        if not found:
            self.refuse(block, "there is no step in %s" % where)
        return found

    def condition(self, node: Node) -> Condition:
        name = node["name"]
        if name == "expression":
            body = self.block(node)["body"]
            if len(body) != 1:
                self.refuse(node, "'expression' must hold one expression")
            return Condition(name, node["line"], {"value": self.expression(body[0])})
        if name in ("environment", "equals"):
            names = ("name!", "value!") if name == "environment" else ("expected!", "actual!")
            found = self.arguments(node, names)
            return Condition(name, node["line"],
                             {key: self.expression(value) for key, value in found.items()})
        inner = [self.condition(n) for n in self.calls(
            self.block(node), "'%s'" % name, ("allOf", "anyOf", "environment", "equals",
                                              "expression", "not"))]
        if not inner or (name == "not" and len(inner) != 1):
            self.refuse(node, "'%s' needs %s condition" % (
                name, "one" if name == "not" else "at least one"))
        return Condition(name, node["line"], {}, inner)

    # ---- directives ------------------------------------------------------------------------------

    def agent(self, node: Node) -> Node:
        if node["block"] is None:
            value = self.single(node)
            if value["kind"] == "variable" and value["name"] in ("any", "none"):
                return {value["name"]: True}
            self.refuse(node, "an agent is 'any', 'none' or { label '...' }")
        found = self.once(self.block(node), "'agent'", ("label",))
        if not found:
            self.refuse(node, "an agent is 'any', 'none' or { label '...' }")
        return {"label": self.expression(self.single(found["label"]))}

    def environment(self, node: Node) -> List[Tuple[str, Node]]:
        found: List[Tuple[str, Node]] = []
        for entry in self.block(node)["body"]:
            if entry["kind"] != "binary" or entry["op"] != "=" or (
                    entry["left"]["kind"] != "variable"):
                self.refuse(entry, "in 'environment' only NAME = value may stand")
            name, value = entry["left"]["name"], entry["right"]
            if value["kind"] == "call" and value["name"] == "credentials":
                self.refuse(entry, "credentials('...') of %s: secrets are Jenkins's, and no stage "
                            "of this tree needs one" % name)
            if value["kind"] not in ("constant", "gstring"):
                self.refuse(entry, "%s must be a text" % name)
            found.append((name, self.expression(value)))
        return found

    def options(self, node: Node, where: str, known: Sequence[str]) -> Dict[str, Dict[str, Node]]:
        found = {}
        for name, call in self.once(self.block(node), where, known).items():
            found[name] = self.arguments(call, OPTIONS[name])
            if name == "timeout":
                self.constant(found[name]["time"], "the time of a timeout", int)
                unit = found[name].get("unit")
                if unit and self.constant(unit, "the unit of a timeout") not in UNITS:
                    self.refuse(call, "the unit of a timeout is '%s'; known: %s" % (
                        unit["value"], ", ".join(UNITS)))
        return found

    def post(self, node: Node) -> Dict[str, List[Step]]:
        found = self.once(self.block(node), "'post'", POST)
        return {name: self.steps(self.block(found[name]), "'%s'" % name)
                for name in POST if name in found}

    def read_parameters(self, node: Node) -> None:
        for call in self.calls(self.block(node), "'parameters'", PARAMETERS):
            kind = call["name"]
            choices = ("choices!",) if kind == "choice" else ("defaultValue",)
            given = self.arguments(call, ("name!", "description") + choices)
            name = self.constant(given["name"], "the name of a parameter")
            record: Dict[str, Any] = {"kind": kind, "description": ""}
            if "description" in given:
                record["description"] = self.constant(given["description"], "a description")
            if kind == "choice":
                if given["choices"]["kind"] != "list" or not given["choices"]["items"]:
                    self.refuse(call, "the choices of %s must be a list of texts" % name)
                record["choices"] = [self.constant(item, "a choice")
                                     for item in given["choices"]["items"]]
                record["default"] = record["choices"][0]
            else:
                of = bool if kind == "booleanParam" else str
                record["default"] = self.constant(
                    given["defaultValue"], "the default of " + name, of) if (
                        "defaultValue" in given) else of()
            if name in self.parameters:
                self.refuse(call, "the parameter %s is declared twice" % name)
            self.parameters[name] = record

    # ---- stages ----------------------------------------------------------------------------------

    def common(self, scope: Scope, found: Dict[str, Node], where: str,
               options: Sequence[str]) -> None:
        if "agent" in found:
            scope.agent = self.agent(found["agent"])
        if "environment" in found:
            scope.environment = self.environment(found["environment"])
        if "options" in found:
            scope.options = self.options(found["options"], "'options' of " + where, options)
        if "post" in found:
            scope.post = self.post(found["post"])

    def conditional(self, stage: Stage, found: Dict[str, Node]) -> None:
        if "when" not in found:
            return
        for node in self.calls(self.block(found["when"]), "'when'",
                               ("allOf", "anyOf", "beforeAgent", "environment", "equals",
                                "expression", "not")):
            if node["name"] == "beforeAgent":
                stage.before_agent = self.constant(self.single(node), "beforeAgent", bool)
            else:
                stage.when.append(self.condition(node))
        if not stage.when:
            self.refuse(found["when"], "'when' has no condition")

    def stages(self, node: Node, nested: bool) -> List[Stage]:
        """`nested`: within parallel or matrix, where neither may stand again."""
        found = [self.stage(call, nested) for call in self.calls(
            self.block(node), "'%s'" % node["name"], ("stage",))]
        if not found:
            self.refuse(node, "'%s' has no stage" % node["name"])
        names = [stage.name for stage in found]
        for stage in found:
            if names.count(stage.name) > 1:
                raise refuse(self.path, stage.line, "there are two stages '%s'" % stage.name)
        return found

    def stage(self, node: Node, nested: bool) -> Stage:
        if len(node["positional"]) != 1 or node["named"] or node["block"] is None:
            self.refuse(node, "a stage is written stage('Name') { ... }")
        name = self.constant(node["positional"][0], "the name of a stage")
        where = "stage '%s'" % name
        contents = ("steps", "stages", "parallel", "matrix")
        found = self.once(node["block"], where, ("agent", "environment", "failFast", "options",
                                                 "post", "when") + contents)
        given = [key for key in contents if key in found]
        if len(given) != 1:
            self.refuse(node, "%s has %s; it must have exactly one of %s" % (
                where, " and ".join(given) or "nothing to do", ", ".join(contents)))
        stage = Stage(node["line"], name=name)
        self.common(stage, found, where, STAGE_OPTIONS)
        self.conditional(stage, found)
        if given[0] in ("parallel", "matrix"):
            if nested:
                self.refuse(node, "%s: no parallel or matrix within another" % where)
            if stage.agent is not None:
                self.refuse(found["agent"], "%s: a stage of parallel branches has no agent" % where)
        if "failFast" in found:
            if given[0] not in ("parallel", "matrix"):
                self.refuse(found["failFast"], "failFast is for parallel branches")
            stage.fail_fast = self.constant(self.single(found["failFast"]), "failFast", bool)
        if "steps" in found:
            stage.steps = self.steps(self.block(found["steps"]), "the steps of " + where)
        elif "matrix" in found:
            stage.matrix = self.matrix(found["matrix"], name)
        elif "parallel" in found:
            stage.parallel = self.stages(found["parallel"], True)
        else:
            stage.stages = self.stages(found["stages"], nested)
        return stage

    def matrix(self, node: Node, name: str) -> Matrix:
        where = "the matrix of '%s'" % name
        found = self.once(self.block(node), where, ("agent", "axes", "environment", "excludes",
                                                    "options", "post", "stages", "when"))
        for needed in ("axes", "stages"):
            if needed not in found:
                self.refuse(node, "%s has no '%s'" % (where, needed))
        matrix = Matrix(node["line"], name=name)
        self.common(matrix, found, where, STAGE_OPTIONS)
        self.conditional(matrix, found)
        for axis in self.calls(self.block(found["axes"]), "'axes'", ("axis",)):
            parts = self.once(self.block(axis), "'axis'", ("name", "values"))
            label, values = self.axis(axis, parts, "values")
            if label in matrix.axes:
                self.refuse(axis, "there are two axes %s" % label)
            matrix.axes[label] = values
        for exclude in self.calls(self.block(found["excludes"]), "'excludes'", ("exclude",)) if (
                "excludes" in found) else ():
            matrix.excludes.append(self.exclude(exclude, matrix.axes))
        if not matrix.axes or not any(True for _ in matrix.cells()):
            self.refuse(node, "%s has no cell" % where)
        matrix.stages = self.stages(found["stages"], True)
        return matrix

    def axis(self, node: Node, parts: Dict[str, Node], key: str) -> Tuple[str, List[str]]:
        if "name" not in parts or key not in parts or not parts[key]["positional"]:
            self.refuse(node, "an axis has a name and %s" % key)
        return self.constant(self.single(parts["name"]), "the name of an axis"), [
            self.constant(value, "the value of an axis") for value in parts[key]["positional"]]

    def exclude(self, node: Node, axes: Dict[str, List[str]]) -> Dict[str, Tuple[bool, List[str]]]:
        result = {}
        for axis in self.calls(self.block(node), "'exclude'", ("axis",)):
            parts = self.once(self.block(axis), "'axis'", ("name", "notValues", "values"))
            key = "notValues" if "notValues" in parts else "values"
            name, values = self.axis(axis, parts, key)
            for value in values:
                if value not in axes.get(name, ()):
                    self.refuse(axis, "the excluded axis %s has no value '%s'" % (name, value))
            result[name] = (key == "values", values)
        if not result:
            self.refuse(node, "'exclude' names no axis")
        return result

    def pipeline(self, statements: List[Node]) -> Pipeline:
        if len(statements) != 1 or statements[0]["kind"] != "call" or (
                statements[0]["name"] != "pipeline"):
            line = statements[0]["line"] if statements else 1
            if len(statements) > 1 and statements[0].get("name") == "pipeline":
                line = statements[1]["line"]
            raise refuse(self.path, line, "a declarative Jenkinsfile is one block pipeline { } and "
                         "nothing beside it")
        node = statements[0]
        found = self.once(self.block(node), "'pipeline'", (
            "agent", "environment", "options", "parameters", "post", "stages"))
        if "parameters" in found:
            self.read_parameters(found["parameters"])
        result = Pipeline(node["line"], path=self.path, parameters=self.parameters)
        self.common(result, found, "'pipeline'", sorted(OPTIONS))
        for needed in ("agent", "stages"):
            if needed not in found:
                self.refuse(node, "'pipeline' has no '%s'" % needed)
        result.stages = self.stages(found["stages"], False)
        return result


def read(statements: List[Node], path: str) -> Pipeline:
    """The pipeline in a syntax tree of `syntax.tree`; raises Refused."""
    return Reader(path).pipeline(statements)


__all__ = ["Pipeline", "Refused", "Stage", "Step", "cell_name", "read"]
