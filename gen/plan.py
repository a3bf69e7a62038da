# SPDX-License-Identifier: Apache-2.0
"""Records and facts to edges. Pure: no process, no file is read or written here.

This file lays out the directories of a build, the flags and rules, and what one component's sources
become; plan_parts.py goes through the kinds of records, plan_targets.py adds the named targets.
"""

import os
import re
import shlex
from dataclasses import dataclass, field
from typing import Dict, List, NamedTuple, Sequence, Tuple

from gen import isa, records
from gen.model import Model
from gen.ninja import Plan, Rule, escape_value
from gen.options import Options
from gen.facts import Facts

# Fedora's packages are built with libstdc++'s own checks, and end where one fails.
OPTIMISATION = {"release": ("-O2", "-g0", "-DNDEBUG"),
                "debugoptimized": ("-O2", "-g", "-D_GLIBCXX_ASSERTIONS"),
                "debug": ("-O0", "-g", "-D_GLIBCXX_ASSERTIONS")}
LINK_MEMORY_MIB = 1500
# What nearly every file includes, before the house headers that a library names; precompiled, it
# saves half a second of two per file.
PRECOMPILED = ("algorithm", "array", "atomic", "bit", "cmath", "complex", "cstdint", "cstring",
               "functional", "map", "memory", "mutex", "optional", "span", "string", "string_view",
               "unordered_map", "utility", "variant", "vector")


def shell(words: Sequence[str]) -> str:
    """Words as one shell text inside a ninja value."""
    return escape_value(" ".join(shlex.quote(word) for word in words))


class Installed(NamedTuple):
    """A file to be installed. where: its directory or name there, by kind (gen/install.py).
    package: the part of the installation that it belongs to, where the kind does not say it."""

    kind: str
    path: str
    where: str
    package: str = "runtime"


@dataclass
class Context:
    """What every planning function needs; `up` leads from the build directory to the sources."""

    model: Model
    options: Options
    facts: Facts
    up: str
    plan: Plan = field(default_factory=Plan)
    objects: Dict[str, List[str]] = field(default_factory=dict)
    install: List[Installed] = field(default_factory=list)
    left_out: List[Tuple[str, str]] = field(default_factory=list)
    products: List[str] = field(default_factory=list)
    wheel_files: List[str] = field(default_factory=list)
    test_files: List[str] = field(default_factory=list)

    @property
    def soversion(self) -> str:
        return self.model.version.split(".")[0]

    @property
    def private(self) -> str:
        """The directory of our own plugins below libdir."""
        return "treenail-" + self.soversion

    def source(self, path: str) -> str:
        return os.path.join(self.up, path)

    def enabled(self, features: Sequence[str]) -> bool:
        return all(self.facts.externals.get(f) is not None and self.facts.externals[f].found
                   for f in features)

    def env(self, name: str) -> Tuple[str, ...]:
        return tuple(shlex.split(self.options.env(name)))

    @property
    def sanitizers(self) -> Tuple[str, ...]:
        value = self.options.get("sanitize")
        return ("-fsanitize=" + value, "-fno-omit-frame-pointer") if value else ()

    @property
    def buildtype(self) -> str:
        return self.options.get("buildtype")


def _mode_flags(context: Context) -> Tuple[str, ...]:
    """Flags that both compile and link edges take."""
    flags = context.sanitizers
    if context.options.flag("coverage"):
        flags += ("--coverage",)
    if context.options.flag("lto"):
        flags += ("-flto=auto",) if context.facts.cxx.family == "gcc" else ("-flto=thin",)
    return flags


def common_compile_flags(context: Context, language: str) -> Tuple[str, ...]:
    """Ours first, then the environment's, then what no environment may change."""
    facts = context.facts
    standard = "-std=c++20" if language == "cxx" else "-std=c11"
    warnings = facts.warnings
    if language == "c":
        warnings = tuple(w for w in warnings if w not in ("-Wnon-virtual-dtor",
                                                          "-Woverloaded-virtual"))
    ours = OPTIMISATION[context.buildtype] + warnings
    if context.options.flag("werror"):
        ours += ("-Werror",)
    environment = context.env("CPPFLAGS") + context.env("CXXFLAGS" if language == "cxx"
                                                        else "CFLAGS")
    path_map = "-ffile-prefix-map=%s/=" % context.up if context.up != "." else ""
    always = (standard,) + tuple(facts.compile_flags) + _mode_flags(context)
    if path_map:
        always += (path_map,)
    return ours + environment + always + tuple(facts.isa.core_flags) + facts.isa_note_flags


def debug_level(flags: Sequence[str]) -> int:
    """How much debug information these flags ask for, 0 to 3; the last that says so wins."""
    level = 0
    for flag in flags:
        asked = re.fullmatch(r"-g(?:gdb)?([0-3]?)|-gdwarf(?:-\d)?", flag)
        if asked:
            level = int(asked.group(1) or 2)
    return level


def unoptimised(context: Context) -> bool:
    """Does the environment ask for little optimisation? Then nothing is optimised more."""
    return bool({"-O0", "-Og", "-O1"} & set(context.env("CXXFLAGS")))


def kernel_flags(context: Context, level: isa.Level, compact: bool) -> Tuple[str, ...]:
    """What a level adds; it stands after the environment's flags, for the level must win."""
    flags = tuple(context.facts.isa.kernel_flags(level))
    if context.buildtype != "debug" and not unoptimised(context) and not compact:
        flags = ("-O3",) + flags
    return flags + ('-DTREENAIL_ISA_LEVEL="%s"' % level.name,)


def debug_flags(context: Context, component: str) -> Tuple[str, ...]:
    """What leaves out the variables of a component that can do without, where a distribution's
    flags ask for debug information."""
    wanted = context.model.components[component].debug_variables or context.buildtype != "release"
    return () if wanted or debug_level(context.env("CXXFLAGS")) < 2 else ("-g1",)


def isa_note(context: Context, level: isa.Level) -> Tuple[str, ...]:
    """What makes the linker mark a library with its level, where the compiler does not.

    glibc refuses to load a library whose mark asks for more than the CPU has.
    """
    if not context.facts.isa_note_by_linker or level == isa.X86[0]:
        return ()
    return ("-Wl,-z," + level.name,)


def link_flags(context: Context) -> Tuple[str, ...]:
    flags = context.env("LDFLAGS") + _mode_flags(context)
    return flags + ("-Wl,--as-needed", "-Wl,-z,relro", "-Wl,-z,now")


def shared_flags(context: Context) -> Tuple[str, ...]:
    """Undefined symbols are errors, except where a sanitizer's runtime is in the program.

    Nothing is unloaded: pool threads and fork handlers run until the process ends.
    """
    flags = ("-shared", "-Wl,-z,nodelete")
    if not (context.sanitizers and context.facts.cxx.family == "clang"):
        flags += ("-Wl,-z,defs",)
    return flags


def add_rules(context: Context) -> None:
    plan, facts = context.plan, context.facts
    cxx, cc = shell(facts.cxx.command), shell(facts.cc.command)
    depth = max(1, min(8, facts.memory_mib // LINK_MEMORY_MIB))
    plan.pools.append(("link", depth))
    plan.variables += [
        ("builddir", "."),
        ("tools", escape_value(context.source("gen/tools"))),
        ("packaging", escape_value(context.source("gen/packaging"))),
        # A tool's output may hold a path that the terminal's encoding lacks.
        ("python", shell(["env", "PYTHONDONTWRITEBYTECODE=1", "PYTHONIOENCODING=:backslashreplace",
                          facts.build_python])),
    ]

    def compile_rule(name: str, compiler: str) -> None:
        plan.rules.append(Rule(name, (
            ("command", compiler + " $flags -MD -MF $out.d -c $in -o $out"),
            ("description", "%s $shown" % name.upper()), ("deps", "gcc"), ("depfile", "$out.d"))))

    compile_rule("cxx", cxx)
    compile_rule("cc", cc)
    plan.rules.append(Rule("precompile", (
        ("command", cxx + " $flags -MD -MF $out.d -x c++-header -c $in -o $out"),
        ("description", "PCH $out"), ("deps", "gcc"), ("depfile", "$out.d"))))
    plan.rules.append(Rule("link", (
        ("command", cxx + " $flags -o $out @$out.rsp $libs"),
        ("description", "LINK $out"), ("pool", "link"), ("rspfile", "$out.rsp"),
        ("rspfile_content", "$in"))))
    plan.rules.append(Rule("symlink", (
        ("command", "ln -sfn $target $out"), ("description", "LN $out"))))
    plan.rules.append(Rule("generate", (
        ("command", "$python $tools/$tool $arguments @$out.rsp"),
        ("description", "GEN $out"), ("restat", "1"), ("rspfile", "$out.rsp"),
        ("rspfile_content", "$in_newline"))))
    plan.rules.append(Rule("tool", (
        ("command", "$python $tools/$tool $arguments"), ("description", "$shown"),
        ("restat", "1"))))
    plan.rules.append(Rule("console", (
        ("command", "$command"), ("description", "$shown"), ("pool", "console"))))


def add_flag_variables(context: Context) -> None:
    """The flags of each language, written out once; edges refer to them."""
    roots = sorted({h.root for h in context.model.of(records.Headers)})
    includes = ("-I" + context.up, "-Igen", *("-I" + context.source(root) for root in roots))
    for language in ("cxx", "c"):
        context.plan.variables.append(
            (language + "flags", shell(common_compile_flags(context, language) + includes)))
    context.plan.variables.append(("linkflags", shell(link_flags(context))))
    context.plan.variables.append(("sharedflags", shell(shared_flags(context))))


def object_path(directory: str, path: str) -> str:
    return "obj/%s/%s.o" % (directory, path)


def for_this_machine(context: Context, path: str) -> bool:
    """Sources named for another architecture are not compiled."""
    stem = path.rsplit(".", 1)[0]
    machine = context.facts.machine
    if stem.endswith("_x86"):
        return machine == "x86_64"
    if stem.endswith("_aarch64"):
        return machine == "aarch64"
    return True


def precompiling(context: Context, flags: Sequence[str] = ()) -> bool:
    """Compiler caches see the precompiled header as an input that changes all the time. And GCC's
    bears traces of where the memory of its process was: after reading one, the choice among equal
    descriptions of where a variable is differs from build to build. So there is none where the
    flags ask for descriptions of variables, as a distribution's do."""
    wanted = context.options.get("pch")
    if wanted == "auto":
        return not context.facts.cxx.cached and not (
            context.facts.cxx.family == "gcc"
            and debug_level(context.env("CXXFLAGS") + tuple(flags)) > 1)
    return wanted == "yes"


def precompile(context: Context, name: str, flags: Sequence[str] = (),
               more: Sequence[str] = ()) -> str:
    """A precompiled header for objects with the same flags; its name, empty without one.

    It is given on the command line, so no source knows of it, and every source must still include
    what it uses: builds through a compiler cache, and clang-tidy, do without it.
    """
    if not precompiling(context, flags):
        return ""
    path = "gen/pch/%s.h" % name
    if path in context.plan.files:
        return name
    context.plan.files[path] = "".join("#include <%s>\n" % h for h in (*PRECOMPILED, *more))
    context.plan.edge("precompile", [path + ".gch"], [path], flags="$cxxflags" + (
        " " + shell(flags) if flags else ""))
    return name


def compile_sources(context: Context, directory: str, sources: Sequence[str],
                    flags: Sequence[str] = (), order_only: Sequence[str] = ("generated-headers",),
                    generated: Sequence[str] = (), pch: str = "") -> List[str]:
    """Compile edges for sources of the tree and for generated ones; returns the objects."""
    objects = []
    todo = [(context.source(p), p) for p in sources if for_this_machine(context, p)]
    todo += [(p, p) for p in generated]
    extra = " " + shell(flags) if flags else ""
    for path, shown in todo:
        language = "c" if path.endswith(".c") else "cxx"
        output = object_path(directory, shown)
        header = "gen/pch/%s.h" % pch if pch and language == "cxx" else ""
        implicit = [header + ".gch"] if header else []
        words = extra + (" " + shell(("-include", header)) if header else "")
        label = shown if directory in ("core", "") else "%s [%s]" % (shown, directory)
        context.plan.edge("cc" if language == "c" else "cxx", [output], [path], implicit=implicit,
                          order_only=order_only, flags="$%sflags%s" % (language, words),
                          shown=escape_value(label))
        if not path.endswith(".cu"):  # tools take the name for device code, whatever the flags say
            context.plan.compile_commands.append((path, output, language + "\0" + extra))
        objects.append(output)
    return objects


def system_includes(cflags: Sequence[str]) -> Tuple[str, ...]:
    """-I as -isystem: warnings in other people's headers are none of ours."""
    flags: List[str] = []
    for flag in cflags:
        if flag == "-I/usr/include":
            continue  # named explicitly it would move before the compiler's own headers
        flags += ["-isystem", flag[2:]] if flag.startswith("-I") else [flag]
    return tuple(flags)


def external_flags(context: Context, component: str) -> Tuple[str, ...]:
    """Include flags of a component's external libraries. Of -pthread, which some name, nothing but
    links depends, and all of ours have it; Clang would refuse the precompiled header."""
    flags: Tuple[str, ...] = ()
    for name in context.model.components[component].external:
        external = context.facts.externals.get(name)
        if external is not None:
            flags += tuple(f for f in system_includes(external.cflags) if f != "-pthread")
    return flags


def version_script(nodes: Sequence[Tuple[str, Sequence[str]]]) -> str:
    """A linker version script; everything not named is local."""
    text = []
    for index, (name, patterns) in enumerate(nodes):
        head = name + " {\n" if name else "{\n"
        local = "  local:\n    *;\n" if index == len(nodes) - 1 else ""
        names = "".join("    %s;\n" % p for p in patterns)
        text.append("%s  global:\n%s%s};\n" % (head, names, local))
    return "".join(text)
