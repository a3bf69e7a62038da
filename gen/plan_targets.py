# SPDX-License-Identifier: Apache-2.0
"""The named targets: all, test and its relatives, install, wheel, docs, help and so on."""

import json
from typing import Dict, Sequence

from gen import records, sanitizers
from gen.ninja import Rule, escape_value
from gen.plan import Context, shell


def console(context: Context, name: str, help_text: str, command: str,
            needs: Sequence[str] = (), hidden: bool = False) -> None:
    """A target that runs one command with the terminal to itself, whenever it is asked for."""
    context.plan.edge("console", [name], implicit=list(needs) + ["always"], command=command,
                      shown=escape_value(name))
    if not hidden:
        context.plan.help.append((name, help_text))


def tool(context: Context, name: str, *arguments: str, folder: str = "tools") -> str:
    """The command that runs one of gen/tools."""
    text = "$python $%s/%s" % (folder, name)
    return text + " " + shell(arguments) if arguments else text


def packaging(context: Context, name: str, *arguments: str) -> str:
    """The command that runs one of gen/packaging."""
    return tool(context, name, *arguments, folder="packaging")


def plan_tests(context: Context, programs: Dict[str, str]) -> None:
    """test, its halves, and the sanitizer runs in builds of their own."""
    model, plan = context.model, context.plan
    checks: Dict[str, object] = {}
    for program in model.of(records.TestProgram):
        if program.name in programs:
            checks[program.name] = {"path": programs[program.name],
                                    "checks": list(program.checks)}
    gtest = context.facts.externals["gtest"]
    manifest = {
        "source": context.up, "programs": checks, "python": context.facts.pythons[0].path,
        "pytest": [{"folder": folder, "shards": group.shards}
                   for group in model.of(records.PythonTests) for folder in group.folders],
        "missing": {} if gtest.found else {"GoogleTest": gtest.why_not},
    }
    plan.files["gen/tests.json"] = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    built = sorted(programs.values()) + context.test_files
    plan.phony("tests", ["all"] + built + context.wheel_files,
               "build the tests without running them")
    plan.phony("tests-cxx", ["all-native"] + built)
    if context.facts.cross:
        sentence = "a cross build cannot run its tests; the programs are in tests/ (ninja tests)"
        for name in ("test", "test-cxx", "test-python"):
            console(context, name, sentence, shell(["echo", sentence]) + "; exit 1")
        return
    run = ("run_tests.py", "--manifest", "gen/tests.json", "--junit")
    console(context, "test", "build and run every test", tool(context, *run, "reports/unit.xml"),
            ["tests"])
    console(context, "test-cxx", "build and run the C++ tests",
            tool(context, *run, "reports/unit-cxx.xml", "--only", "cxx"), ["tests-cxx"])
    console(context, "test-python", "run the tests of Python and of the generator",
            tool(context, *run, "reports/unit-python.xml", "--only", "python"), ["tests"])
    for check, about in sanitizers.CHECKS.items():
        chosen = sorted(path for name, path in programs.items()
                        if check in checks[name]["checks"])  # type: ignore
        console(context, "run-" + check, "",
                tool(context, *run, "reports/%s.xml" % check, "--only", "cxx", "--check", check),
                ["all-native"] + context.test_files + chosen, hidden=True)
        console(context, "check-" + check, "%s under -fsanitize=%s, in sanitize-%s/" % (
            about.tests, about.flag, check),
            tool(context, "subbuild.py", "--directory", "sanitize-" + check, "--target",
                 "run-" + check, "--", *about.configured))
    console(context, "check-laws", "layers, includes and ownership of sources",
            tool(context, "laws.py"))
    for name, report, text in (
            ("quick", "proofs", "the proofs that take less than a minute or two"),
            ("slow", "proofs-slow", "all proofs: sanitizers, emulation, reproducibility, ...")):
        console(context, "check-" + name, text, tool(
            context, "proofs.py", "--" + name, "--junit", "reports/%s.xml" % report), ["tests"])
    console(context, "check-packaging",
            "debian/, rpm/ and the product against the facts that they repeat",
            packaging(context, "check_packaging.py", "--junit", "reports/packaging.xml"), ["all"])
    plan.files["gen/site.json"] = json.dumps({
        "source": context.up, "programs": {}, "python": context.facts.pythons[0].path,
        "pytest": [{"folder": "tests/site", "shards": 1}], "missing": {}},
        indent=1, sort_keys=True) + "\n"
    console(context, "check-site", "ansible/, ci/ and patches/ by the quick tests of tests/site",
            tool(context, "run_tests.py", "--manifest", "gen/site.json", "--junit",
                 "reports/site.xml"), ["all"])


def plan_launcher(context: Context) -> None:
    python = context.facts.pythons[0]
    if not python.facts or not python.path:
        return
    context.plan.edge("tool", ["python3"],
                      implicit=[context.source("gen/tools/launcher.py")], tool="launcher.py",
                      arguments=shell(["--output", "python3", "--interpreter", python.path]),
                      shown="GEN python3")
    context.products.append("python3")


def plan_install_targets(context: Context) -> None:
    run = ("install.py", "--manifest", "gen/install.json")
    console(context, "install", "install below $$DESTDIR and the configured prefix",
            tool(context, *run), ["all"])
    console(context, "uninstall", "remove what install put there",
            tool(context, *run, "--uninstall"))
    console(context, "dist", "a reproducible source archive in dist/",
            tool(context, "dist.py", "--source", context.up, "--into", "dist"))
    if context.wheel_files:
        console(context, "wheel", "a Python wheel in dist/, named by the ISA baseline",
                tool(context, "wheel.py", "--manifest", "gen/wheel.json", "--into", "dist"),
                ["all"] + context.wheel_files)


def plan_packages(context: Context) -> None:
    """Packages are built from the source archive, in builds of their own."""
    console(context, "deb", "Debian packages, source and binary, in deb/",
            packaging(context, "deb_packages.py"))
    console(context, "deb-cuda", "the Debian package of the plugin of GPUs, in deb-cuda/",
            packaging(context, "deb_cuda.py"))
    console(context, "deb-autopkgtest", "the tests of debian/tests on the packages in deb/",
            packaging(context, "clean_room.py", "--as-installed"))
    for release in ("bookworm", "trixie"):
        console(context, "deb-clean-room-" + release, "the same in a new chroot of " + release,
                packaging(context, "clean_room.py", release))
        console(context, "deb-autopkgtest-" + release, "the same tests on the packages made there",
                packaging(context, "clean_room.py", release, "--as-installed", "--packages",
                          "deb-clean-room/%s/root/build/one" % release))
    console(context, "rpm", "RPM packages, source and binary, in rpm/",
            packaging(context, "rpm_packages.py"))


def plan_scripts(context: Context) -> None:
    """Targets described by the folders themselves: smoke, bench, generate."""
    if context.facts.cross:
        return
    for script in context.model.of(records.Script):
        if script.present not in context.model.files:
            continue
        words = [word.format(build=".", source=context.up) for word in script.arguments]
        command = "./python3 " + shell([context.source(script.present)] + words)
        console(context, script.name, script.help, command, script.needs)


def plan_documentation(context: Context) -> None:
    if "docs/conf.py" not in context.model.files or context.facts.cross:
        return
    console(context, "docs", "HTML documentation in html/ (Sphinx)",
            tool(context, "docs.py", "--python", context.facts.pythons[0].path), ["all"])


def plan_clean(context: Context, *folders: str) -> None:
    console(context, "clean", "remove what was built (ninja -t clean)",
            "rm -rf %s && %s -t clean" % (shell(folders), shell([context.facts.ninja or "ninja"])))


def plan_help(context: Context) -> None:
    plan = context.plan
    console(context, "build-times", "the files that took longest to compile",
            tool(context, "build_times.py", "--log", ".ninja_log"))
    console(context, "help", "this list", "cat gen/help.txt")
    order = ["all", "test", "smoke", "bench", "install", "uninstall", "docs", "dist", "wheel",
             "deb", "rpm"]
    rows = sorted(plan.help, key=lambda row: (order.index(row[0]) if row[0] in order
                                              else len(order), row[0]))
    width = max(len(name) for name, _ in rows) + 2
    plan.files["gen/help.txt"] = "".join("  %-*s%s\n" % (
        width, name, text.replace("$$", "$")) for name, text in rows)


def plan_targets(context: Context, programs: Dict[str, str]) -> None:
    plan = context.plan
    plan.edge("phony", ["always"])
    plan_launcher(context)
    plan.phony("all-native", [p for p in context.products if p.startswith("lib")])
    plan.phony("all", context.products, "the product (default)")
    plan.defaults = ["all"]
    plan_tests(context, programs)
    plan_install_targets(context)
    plan_packages(context)
    plan_scripts(context)
    plan_documentation(context)
    plan_clean(context, "dist", "deb", "deb-cuda", "rpm", "html", "doctrees")
    plan_help(context)


def regeneration(context: Context, generator: Sequence[str], configure: str) -> None:
    """build.ninja again, when an option, a targets file, the generator or a globbed folder changes.

    Folders count, for a new file changes the folder. configure.py writes build.ninja last, so that
    it is newer than everything it was made from.
    """
    model = context.model
    inputs = [context.source(p) for p in (*model.targets_files, "VERSION", *generator)]
    inputs += [context.source(d) for d in model.globbed_folders()]
    for path in inputs:  # what has been removed since is out of date, not an error
        context.plan.edge("phony", [path])
    inputs.append("gen/configuration.json")
    context.plan.rules.append(Rule("regenerate", (
        ("command", "$python %s --regenerate" % configure), ("description", "CONFIGURE"),
        ("generator", "1"))))
    context.plan.edge("regenerate", ["build.ninja"], implicit=inputs)
