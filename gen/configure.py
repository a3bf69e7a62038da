# SPDX-License-Identifier: Apache-2.0
"""The order of the steps of a configure run; called by configure.py and, through it, by ninja."""

import json
import os
import shlex
import sys
from typing import Dict, List, Sequence, Tuple

from gen import installed_library, records
from gen.deps import FEATURES, NON_FREE
from gen.errors import ConfigureError
from gen.examine import examine
from gen.install import distinct_pythons, plan_install
from gen.leftovers import remove_dead
from gen.model import TOP_FOLDERS, Model, load, walk
from gen.ninja import Plan, render
from gen.options import Options, absolute_pythons, build_directory, parse
from gen.plan import Context, add_flag_variables, add_rules
from gen.plan_devices import plan_devices
from gen.plan_only import plan_part
from gen.plan_parts import plan_records
from gen.plan_targets import plan_targets, regeneration
from gen.facts import Facts
from gen.probe import Prober

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CONFIGURATION = "gen/configuration.json"
SOURCE_FOLDERS = (*TOP_FOLDERS, "gen", "ci", ".ci", ".git")
# debhelper may build below them.
PACKAGING_FOLDERS = ("debian", "debian-cuda", "rpm", "ansible", "patches")


def make_plan(model: Model, options: Options, facts: Facts, up: str,
              generator: Sequence[str]) -> Context:
    """Pure: the same model, options and facts give the same plan."""
    context = Context(model, options, facts, up)
    add_rules(context)
    add_flag_variables(context)
    if options.only:
        plan_part(context)
    else:
        programs = plan_records(context)
        plan_devices(context)
        plan_install(context)
        plan_targets(context, programs)
    regeneration(context, generator, context.source("configure.py"))
    return context


def features_in_tree(model: Model) -> set:
    return {part.feature for kind in (records.Adapter, records.DeviceLibrary)
            for part in model.of(kind) if model.present(part.component)}


def _refuse_absent_features(model: Model, options: Options) -> None:
    for feature in FEATURES + NON_FREE:
        name = "blas" if feature.name == "blas" else "with-" + feature.name
        wanted = options.given(name) and options.get(name) not in ("auto", "no", "none")
        if wanted and feature.name not in features_in_tree(model):
            raise ConfigureError("--%s=%s: this source tree has no part that uses %s"
                                 % (name, options.get(name), feature.name))


def write_if_changed(path: str, text: str) -> None:
    try:
        with open(path, encoding="utf-8") as stream:
            if stream.read() == text:
                return
    except OSError:
        pass
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write(path, text)


def write(path: str, text: str) -> None:
    """Whole or not at all."""
    with open(path + ".new", "w", encoding="utf-8") as stream:
        stream.write(text)
    os.replace(path + ".new", path)


def compile_commands(plan: Plan, facts: Facts, build: str) -> str:
    """For editors and clang-tidy: every compile edge with its flags in full."""
    variables = dict(plan.variables)
    commands = []
    for path, output, flags in plan.compile_commands:
        language, _, extra = flags.partition("\0")
        compiler = facts.cc if language == "c" else facts.cxx
        text = "%s %s%s -c %s -o %s" % (shlex.join(compiler.command),
                                        variables[language + "flags"], extra, path, output)
        commands.append({"directory": build, "file": os.path.normpath(os.path.join(build, path)),
                         "output": output, "command": text.replace("$$", "$")})
    return json.dumps(commands, indent=1) + "\n"


def generator_files() -> List[str]:
    found = ["configure.py"]
    folder = os.path.join(SOURCE, "gen")
    found += ["gen/" + name for name in sorted(os.listdir(folder)) if name.endswith(".py")]
    return found


def stored_options(build: str) -> Options:
    path = os.path.join(build, CONFIGURATION)
    try:
        with open(path, encoding="utf-8") as stream:
            stored = json.load(stream)
        arguments, environment = list(stored["arguments"]), dict(stored["environment"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ConfigureError("--regenerate: %s cannot be read; configure again" % path)
    return parse(arguments, environment)


def check_directories(source: str, build: str) -> None:
    """Refuse a build directory among the sources, and paths that no search path can hold."""
    below = os.path.relpath(os.path.realpath(build), os.path.realpath(source))
    if below == ".":
        raise ConfigureError("the build directory must not be the source tree; leave out "
                             "--build-dir and build/ is used")
    top = below.split(os.sep)[0]
    if top in SOURCE_FOLDERS or below in PACKAGING_FOLDERS:
        raise ConfigureError("the build directory %s lies in the source folder %s/; name one "
                             "beside it, as --build-dir=build-%s" % (build, top, top.strip(".")))
    for path in (os.path.realpath(source), os.path.realpath(build)):
        if ":" in path or "\n" in path:
            raise ConfigureError("%r has a colon or line break, so PYTHONPATH and run paths "
                                 "cannot hold it; move the tree or build elsewhere" % path)


def _consistent_plan(build: str, options: Options) -> Tuple[Context, Facts]:
    """Plan from one state of the tree: a file that appears meanwhile would be missed for good."""
    up = os.path.relpath(os.path.realpath(SOURCE), os.path.realpath(build))
    for _ in range(5):
        model = load(SOURCE)
        _refuse_absent_features(model, options)
        prober = Prober(build, options, use_cache=not options.flag("no-cache"))
        try:
            facts = examine(prober, options, features_in_tree(model))
        finally:
            prober.finish()
        if facts.installed:
            installed_library.check(model, facts.installed)
        facts.pythons = distinct_pythons(options, facts)
        context = make_plan(model, options, facts, up, generator_files())
        if walk(SOURCE) == (list(model.files), list(model.directories)):
            break
    return context, facts


def _configure(options: Options, build: str, keep_options: bool) -> Context:
    """Look, plan and write; build.ninja comes last, so that it is newer than what it is made of.

    Then goes what only earlier configurations made.
    """
    os.makedirs(os.path.join(build, "gen"), exist_ok=True)
    context, facts = _consistent_plan(build, options)
    if not keep_options:
        stored = [a for a in options.arguments if a != "--no-cache"]
        write(os.path.join(build, CONFIGURATION), json.dumps(
            {"arguments": stored, "environment": options.environment}, indent=1, sort_keys=True))
    text = render(context.plan)
    for path, content in sorted(context.plan.files.items()):
        write_if_changed(os.path.join(build, path), content)
    write(os.path.join(build, "compile_commands.json"),
          compile_commands(context.plan, facts, os.path.realpath(build)))
    write(os.path.join(build, "build.ninja"), text)
    remove_dead(build, context.plan)
    return context


def run(arguments: Sequence[str], environment: Dict[str, str], cwd: str) -> Tuple[Context, str]:
    """Configure; returns the finished context and the build directory."""
    options = parse(absolute_pythons(arguments, cwd), environment)
    again = options.flag("regenerate")
    if again:
        build = cwd
        options = stored_options(build)
    else:
        build = build_directory(options, SOURCE, cwd)
    check_directories(SOURCE, build)
    try:
        return _configure(options, build, keep_options=again), build
    except OSError as error:
        if error.filename is None:  # a full disk does not say where it is
            error.filename = build
        raise


def _run_and_report(arguments: Sequence[str]) -> None:
    if any(a in ("--help", "-h") for a in arguments):
        from gen.summary import help_page
        print(help_page(features_in_tree(load(SOURCE))), end="")
        return
    if "--version" in arguments:
        print("treenail " + load(SOURCE).version)
        return
    context, build = run(arguments, dict(os.environ), os.getcwd())
    from gen.summary import summary
    if "--regenerate" not in arguments:
        print(summary(context, build), end="", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Exit status 0, 1 with a sentence, or 130 when interrupted."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.reconfigure(errors="backslashreplace")  # paths may hold what the locale lacks
    try:
        _run_and_report(arguments)
        return 0
    except ConfigureError as error:
        message = str(error)
    except OSError as error:
        message = ": ".join(str(p) for p in (error.filename, error.strerror or error) if p)
    except UnicodeError as error:
        message = "a path or file is not UTF-8, which build.ninja must be: %s" % error
    except KeyboardInterrupt:
        sys.stderr.write("configure.py: interrupted\n")
        return 130
    sys.stderr.write("configure.py: %s\n" % message)
    return 1
