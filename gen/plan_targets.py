# SPDX-License-Identifier: Apache-2.0
"""The named targets: all, test and its relatives, install, docs, lint and so on."""

import json
import os
from typing import Dict

from gen import records
from gen.plan import Context, shell


def python_tool(context: Context, name: str, tool: str, arguments: str, help_text: str,
                implicit: object = (), shown: str = "") -> None:
    """A target that runs one of gen/tools on the console."""
    path = context.source("gen/tools/" + tool)
    context.plan.edge("console", [name], implicit=list(implicit) + ["always"],  # type: ignore
                      command="$python %s %s" % (path, arguments), shown=shown or name)
    context.plan.help.append((name, help_text))


def plan_tests(context: Context, programs: Dict[str, str]) -> None:
    """test: everything; test-cxx: the GoogleTest programs; test-python: what pytest runs."""
    model, plan = context.model, context.plan
    checks: Dict[str, object] = {}
    for program in model.of(records.TestProgram):
        if program.name in programs:
            checks[program.name] = {"path": programs[program.name],
                                    "checks": list(program.checks)}
    manifest = {
        "source": context.up, "programs": checks, "python": context.facts.pythons[0].path,
        "pytest": [{"folder": folder, "shards": group.shards}
                   for group in model.of(records.PythonTests) for folder in group.folders],
        "missing": {} if context.facts.externals["gtest"].found else {
            "GoogleTest": context.facts.externals["gtest"].why_not},
    }
    plan.files["gen/tests.json"] = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    built = sorted(programs.values()) + context.test_files
    plan.phony("tests", ["all"] + built, "build the tests without running them")
    plan.phony("tests-cxx", built + ["all-native"])
    tool = "run_tests.py"
    python_tool(context, "test", tool, "--manifest gen/tests.json", "build and run every test",
                ["tests"], "TEST")
    python_tool(context, "test-cxx", tool, "--manifest gen/tests.json --only cxx",
                "build and run the C++ tests", ["tests-cxx"])
    python_tool(context, "test-python", tool, "--manifest gen/tests.json --only python",
                "run the Python tests", ["tests"])


def plan_launcher(context: Context) -> None:
    python = context.facts.pythons[0]
    if not python.facts or not python.path:
        return
    context.plan.edge("tool", ["python3"],
                      implicit=[context.source("gen/tools/launcher.py")], tool="launcher.py",
                      arguments=shell(["--output", "python3", "--interpreter", python.path]),
                      shown="GEN python3")
    context.products.append("python3")


def plan_targets(context: Context, programs: Dict[str, str]) -> None:
    plan = context.plan
    plan.edge("phony", ["always"])
    plan_launcher(context)
    native = [p for p in context.products if p.startswith("lib")]
    plan.phony("all-native", native)
    plan.phony("all", context.products, "the product (default)")
    plan.defaults = ["all"]
    plan_tests(context, programs)
    plan.files["gen/help.txt"] = "".join(
        "  %-26s %s\n" % row for row in sorted(plan.help))
    plan.edge("console", ["help"], implicit=["always"],
              command="cat gen/help.txt", shown="targets of this build:")


def regeneration(context: Context, gen_files: object, configure: str) -> None:
    """build.ninja again, when an option, a targets file, the generator or a folder changes."""
    model = context.model
    inputs = [context.source(p) for p in list(model.targets_files) + ["VERSION"]
              + list(gen_files)]  # type: ignore
    folders = sorted({os.path.dirname(p) for p in model.files
                      if p.endswith((".cc", ".c", ".h", ".py", ".pyi"))}
                     | {d for d in model.directories})
    inputs += [context.source(d) for d in folders if not d.startswith("tests/gen")]
    inputs.append("gen/configuration.json")
    context.plan.rules.append(_regen_rule(context, configure))
    context.plan.edge("regenerate", ["build.ninja"], implicit=inputs)


def _regen_rule(context: Context, configure: str) -> object:
    from gen.ninja import Rule
    return Rule("regenerate", (
        ("command", "$python %s --regenerate" % configure),
        ("description", "CONFIGURE"), ("generator", "1"), ("pool", "console")))
