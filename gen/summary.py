# SPDX-License-Identifier: Apache-2.0
"""What configure prints: the help page and the summary at the end."""

import os
import shlex
import textwrap
from typing import List, Set, Tuple

from gen.deps import FEATURES, NON_FREE
from gen.install import directories, is_searched, python_directory
from gen.options import ENVIRONMENT, TABLE
from gen.plan import Context

INTRODUCTION = """\
Configures a build of Treenail: looks at the machine and writes build.ninja.

usage: ./configure.py [OPTION]... [VARIABLE=VALUE]...

Without options: a release build in build/, with every feature whose library is
installed, for the distribution's own Python. Then:  ninja -C build
"""
EXAMPLES = """\
Examples
  ./configure.py --prefix=/usr --auto-features=yes            as a package is built
  ./configure.py --isa-baseline=x86-64-v2 --kernel-isas=x86-64-v3,x86-64-v4
  ./configure.py --build-dir=build-asan --sanitize=address,undefined
  ./configure.py --only=cuda --prefix=/usr       the plugin of GPUs alone
  ./configure.py --host=aarch64-linux-gnu --host-python=3.11   cross compiling
  ./configure.py CXX="ccache g++" CXXFLAGS="-O2 -g"

Every feature is 'auto' (taken when found), 'yes' (an error when missing) or 'no'.
--without-X is --with-X=no. The usual options of debhelper and rpm that have nothing
to decide here are accepted. `ninja help` lists the targets of a configured build.
"""
WIDTH = 30
FEATURE_NAMES = {f.name for f in FEATURES + NON_FREE}
OF_FEATURE = {"cuda-arch": "cuda", "only": "cuda"}


def _choices(name: str, metavar: str) -> str:
    row = TABLE[name]
    if row.choices:
        return "=" + "|".join(row.choices)
    return "=" + metavar if metavar else ""


def help_page(features: Set[str]) -> str:
    """The page of `--help`, at most 84 columns wide, with the features this tree has."""
    lines = [INTRODUCTION]
    sections = ["Build", "Python", "Instruction sets", "Features", "Cross compiling",
                "Directories", "Other"]
    for section in sections:
        lines.append(section)
        for row in TABLE.values():
            feature = row.name[5:] if row.name.startswith("with-") else OF_FEATURE.get(
                row.name, row.name)
            if row.section != section or row.name == "regenerate":
                continue
            if feature in FEATURE_NAMES and feature not in features:
                continue
            head = "  --" + row.name + _choices(row.name, row.metavar)
            text = row.text + (" [%s]" % row.default if row.default else "")
            body = textwrap.wrap(text, 84 - WIDTH)
            if len(head) > WIDTH - 2:
                lines.append(head)
                head = ""
            for index, part in enumerate(body):
                lines.append(("%-*s%s" % (WIDTH, head if index == 0 else "", part)).rstrip())
        lines.append("")
    lines.append("Variables, from the environment or as arguments; kept for later runs")
    for name, text in ENVIRONMENT.items():
        lines.append("  %-*s%s" % (WIDTH - 2, name, text))
    return "\n".join(lines) + "\n\n" + EXAMPLES


def _kernel_lines(context: Context) -> List[Tuple[str, str]]:
    choice = context.facts.isa
    rows = [("baseline", "%s (%s)" % (choice.baseline.name, choice.reason)),
            ("kernels for", ", ".join(level.name for level in choice.all))]
    if context.facts.refused_levels:
        rows.append(("", "not %s: the compiler does not know it"
                     % ", ".join(context.facts.refused_levels)))
    return rows


def _python_lines(context: Context) -> List[Tuple[str, str]]:
    rows = []
    for python in context.facts.pythons:
        if python.facts:
            where = "%s " % python.path if python.path else ""
            rows.append(("Python", "%s%s (%s)" % (
                where, ".".join(map(str, python.facts["version"])), python.why)))
        else:
            rows.append(("Python", "left out: " + python.why))
    return rows


def _mode(context: Context) -> str:
    options = context.options
    words = [options.get("buildtype")]
    if options.get("sanitize"):
        words.append("sanitizers " + options.get("sanitize"))
    words += [name for name in ("coverage", "lto", "werror") if options.flag(name)]
    return ", ".join(words)


def summary(context: Context, build: str) -> str:
    """Found, left out and why, and what to do next."""
    facts = context.facts
    places = directories(context.options, facts)
    lines = ["", "Treenail %s, %s, on %s" % (context.model.version, _mode(context),
                                             facts.distro.name)]

    def row(name: str, text: str) -> None:
        lines.append("  %-14s%s" % (name, text))

    row("compiler", "%s (%s %s for %s)%s" % (
        shlex.join(facts.cxx.command), facts.cxx.family.upper() if facts.cxx.family == "gcc"
        else "Clang", facts.cxx.version, facts.machine, ", cross build" if facts.cross else ""))
    if facts.installed:
        row("built alone", context.options.only)
        row("for", "%s, build %s (%s)" % (facts.installed.path, facts.installed.private_abi,
                                          facts.installed.how))
    else:
        for name, text in _kernel_lines(context) + _python_lines(context):
            row(name, text)
    row("prefix", places["prefix"])
    row("libraries", places["libdir"])
    for python in facts.pythons:
        if python.facts:
            folder = python_directory(places["prefix"], python)
            row("package", folder)
            if not is_searched(folder, python):
                row("", "which Python does not search: export PYTHONPATH=" + shlex.quote(folder))
    found = sorted((n, e) for n, e in facts.externals.items() if e.found)
    lines.append("Found")
    for name, external in found:
        text = external.how + (" " + external.version if external.version else "")
        row(name, text)
    left_out = sorted((n, e) for n, e in facts.externals.items() if not e.found)
    if left_out and not facts.installed:
        lines.append("Left out")
        for name, external in left_out:
            row(name, external.why_not)
    here = os.path.relpath(build)
    shown = shlex.quote(here if len(here) < len(build) else build)
    lines += ["", "Now run:  ninja -C %s     (and `ninja -C %s help` for more)" % (shown, shown),
              ""]
    return "\n".join(lines)
