# SPDX-License-Identifier: Apache-2.0
"""Which questions configure asks, and in which order; the answers become one `Facts` record.

probe.py knows how to ask; what follows from the answers is decided in plan.py.
"""

import os
import shutil
from typing import Dict, List, Sequence, Set, Tuple

from gen import cuda
from gen import distro as distros
from gen import installed_library, interpreters, isa, libraries, probe
from gen.deps import BY_NAME, FEATURES
from gen.errors import ConfigureError
from gen.facts import DISTRIBUTION_PYTHON, External, Facts, Interpreter
from gen.options import Options
from gen.toolchain import Answers, Toolchain

WARNINGS = ("-Wall", "-Wextra", "-Wno-psabi", "-Wno-unused-parameter",
            "-Wno-missing-field-initializers", "-Wcast-qual", "-Wnon-virtual-dtor",
            "-Woverloaded-virtual", "-Wvla")
COMPILE_FLAGS = ("-fPIC", "-ffp-contract=off", "-fno-math-errno", "-fno-semantic-interposition",
                 "-fdiagnostics-color=always")
PYTHON_TEST_MODULES = tuple(d.python for d in BY_NAME.values() if d.python)


def _plain(triplet: str) -> Tuple[str, str]:
    """Machine and system, without the vendor: config.guess says pc, Fedora redhat, Debian none."""
    machine, _, system = triplet.partition("-")
    if not system.startswith("linux"):
        system = system.partition("-")[2] or system
    return machine, "linux-gnu" if system == "linux" else system


def _triplet(prober: probe.Prober, options: Options) -> str:
    """The host triplet of a cross build; empty for a native one."""
    host, build = options.get("host"), options.get("build")
    if not host or host == build:
        return ""
    if build:
        return "" if _plain(host) == _plain(build) else host
    if host.split("-")[0] != os.uname().machine and options.env("CXX"):
        return host  # what CXX compiles for says nothing about this machine
    _, own, _ = prober.run((probe.split_words(options.env("CXX")) or ["g++"]) + ["-dumpmachine"])
    return "" if _plain(own.strip()) == _plain(host) else host


def _tool(options: Options, variable: str, triplet: str, name: str) -> str:
    given = options.env(variable)
    if given:
        return given
    prefixed = "%s-%s" % (triplet, name)
    return prefixed if triplet and shutil.which(prefixed) else name


def _features(prober: probe.Prober, tools: Toolchain, pkg: Sequence[str], options: Options,
              wanted: Set[str], distro: distros.Distro, triplet: str) -> Dict[str, External]:
    found = {}
    for dep in FEATURES:
        if dep.name not in wanted:
            continue
        state = options.feature(dep.name)
        if state == "no":
            option = "--blas=none" if dep.name == "blas" else "--with-%s=no" % dep.name
            asked = options.given("blas") if dep.name == "blas" else (
                options.get("with-" + dep.name) == "no")
            found[dep.name] = External(
                False, why_not="not wanted (%s)" % (option if asked else "--auto-features=no"))
            continue
        if dep.name == "blas":
            result = libraries.find_blas(prober, tools, pkg, options.get("blas"), triplet)
        elif dep.name == "lapack":
            result = libraries.find_lapack(tools, found.get("blas", External(False)))
        else:
            result = libraries.find_library(prober, tools, pkg, dep)
        hint = libraries.install_hint(distro, result, dep.name,
                                      options.get("blas") if dep.name == "blas" else "")
        if not result.found and state == "yes":
            name = ("--blas=" + options.get("blas") if options.get("blas") != "auto" or
                    dep.name != "blas" else "--auto-features=yes")
            if dep.name != "blas":
                name = ("--with-%s=yes" % dep.name if options.get("with-" + dep.name) == "yes"
                        else "--auto-features=yes")
            raise ConfigureError("%s, but %s: %s; %s" % (
                name, dep.name, result.why_not, hint))
        if not result.found:
            result = External(False, why_not="%s; %s" % (result.why_not, hint))
        found[dep.name] = result
    return found


def _ninja(prober: probe.Prober, distro: distros.Distro) -> str:
    """The program ninja, which a configured build is of no use without."""
    path = shutil.which("ninja") or shutil.which("ninja-build")
    if path is None:
        raise ConfigureError("ninja was not found; " + distro.install_hint("ninja"))
    _, version, _ = prober.run([path, "--version"])
    if libraries.version_tuple(version) < libraries.version_tuple(BY_NAME["ninja"].minimum):
        raise ConfigureError("%s is version %s; %s or later is needed" % (
            path, version.strip(), BY_NAME["ninja"].minimum))
    return path


def _pybind11(prober: probe.Prober, tools: Toolchain, pkg: Sequence[str],
              pythons: Sequence[Interpreter], distro: distros.Distro) -> External:
    """Headers alone are needed: pkg-config, else the Python package's own, else the plain path."""
    result = libraries.pkg_config(prober, pkg, "pybind11", BY_NAME["pybind11"].minimum)
    if result.found:
        return result
    others = [p.facts["pybind11"] for p in pythons if p.facts["pybind11"]] + ["/usr/include"]
    for include in others if not result.version else ():  # the one that is too old lies there, too
        if os.path.exists(os.path.join(include, "pybind11", "pybind11.h")):
            flags = () if include == "/usr/include" else ("-I" + include,)
            return External(True, flags, (), "", include)
    raise ConfigureError("pybind11 is needed (%s): %s; %s" % (
        BY_NAME["pybind11"].why, result.why_not,
        libraries.install_hint(distro, result, "pybind11")))


def _eigen(prober: probe.Prober, tools: Toolchain, pkg: Sequence[str],
           distro: distros.Distro) -> External:
    """Headers alone are needed: pkg-config, else where distributions have them."""
    dep = BY_NAME["eigen"]
    result = libraries.pkg_config(prober, pkg, dep.modules[0], dep.minimum)
    if result.found:
        return result
    if not result.version and os.path.exists("/usr/include/eigen3/Eigen/Core"):
        return External(True, ("-I/usr/include/eigen3",), (), "", "/usr/include/eigen3")
    raise ConfigureError("Eigen is needed (%s): %s; %s" % (
        dep.why, result.why_not, libraries.install_hint(distro, result, "eigen")))


def _isa(tools: Toolchain, options: Options, machine: str,
         answers: Answers) -> Tuple[isa.Choice, List[str]]:
    isa.refuse_disagreement(machine, answers.cc_macros, answers.cxx_macros)
    named = {variable: words for variable, words in tools.words.items()
             if variable in ("CXX", "CPPFLAGS", "CXXFLAGS") and isa.names_isa(words)}
    chosen = isa.choose(machine, answers.cxx_macros, [w for ws in named.values() for w in ws],
                        options.get("isa-baseline") or None, options.get("kernel-isas"),
                        " and ".join(named))
    refused = []
    for level in chosen.extra:
        if not tools.accepts(level.flags):
            if options.get("kernel-isas") != "auto":
                raise ConfigureError(
                    "--kernel-isas: the compiler '%s' does not take %s, which level %s needs"
                    % (" ".join(tools.cxx), " ".join(level.flags), level.name))
            refused.append(level)
    extra = tuple(level for level in chosen.extra if level not in refused)
    return (isa.Choice(chosen.baseline, chosen.core_flags, extra, chosen.reason),
            [level.name for level in refused])


def _cross_python(options: Options, triplet: str) -> Interpreter:
    """Facts about the host system's interpreter, which cannot run here."""
    version = options.get("host-python")
    if not version:
        return Interpreter("", "cross build without --host-python: no Python module", {})
    parts = version.split(".")
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        raise ConfigureError("--host-python=%s: a version like 3.11 is needed" % version)
    tag = "cpython-%s%s-%s" % (parts[0], parts[1], triplet)
    include = "/usr/include/python" + version
    platform = os.path.join("/usr/include", triplet, "python" + version)
    searched = ["/usr/lib/python3/dist-packages",
                "/usr/local/lib/python%s/dist-packages" % version]
    return Interpreter("", "--host-python", {
        "searched": searched, "implementation": "cpython",
        "version": [int(parts[0]), int(parts[1]), 0],
        "ext_suffix": ".%s.so" % tag, "soabi": tag, "include": include,
        "platinclude": platform if os.path.isdir(platform) else include,
        "deb_system": "/BASE/lib/python3/dist-packages",
        "posix_prefix": "/BASE/lib/python%s/site-packages" % version,
        "posix_local": "/BASE/local/lib/python%s/dist-packages" % version,
        "pybind11": "", "platform": "linux", "modules": []})


def _compilers(prober: probe.Prober, options: Options, tools: Toolchain,
               triplet: str, facts: Facts) -> None:
    """What compiles, for what, and the flags that it takes."""
    answers = tools.examine()
    facts.cc, facts.cxx = answers.cc, answers.cxx
    facts.machine = tools.machine(answers.cxx_macros, facts.cxx.triplet)
    if triplet and facts.cxx.triplet.split("-")[0] != triplet.split("-")[0]:
        raise ConfigureError("--host=%s, but '%s' compiles for %s" % (
            triplet, " ".join(tools.cxx), facts.cxx.triplet))
    facts.isa, facts.refused_levels = _isa(tools, options, facts.machine, answers)
    facts.warnings = tools.accepted(WARNINGS)
    facts.compile_flags = tools.accepted(COMPILE_FLAGS)
    if facts.machine == "s390x":
        # Else it computes float in double: C in the ISO modes, and C++ since GCC 13.
        facts.compile_flags += tools.accepted(("-fexcess-precision=fast",))
    if facts.machine == "x86_64" and tools.accepts(["-mneeded"]):
        facts.isa_note_flags = ("-mneeded",)
    elif facts.machine == "x86_64":
        facts.isa_note_by_linker, _ = tools.links("int probe;\n", [
            "-shared", "-fPIC", "-Wl,--fatal-warnings", "-Wl,-z,x86-64-v2"])
    facts.nm = _tool(options, "NM", triplet, "nm")
    facts.ar = _tool(options, "AR", triplet, "ar")
    facts.strip = _tool(options, "STRIP", triplet, "strip")
    facts.multiarch = facts.cxx.triplet if os.path.isdir(
        "/usr/lib/" + facts.cxx.triplet) or facts.distro.family == "debian" else ""


def _for_all(prober: probe.Prober, tools: Toolchain, pkg: Sequence[str], options: Options,
             facts: Facts, features: Set[str], triplet: str) -> None:
    """The libraries and interpreters that a build of everything is for."""
    facts.externals.update(
        _features(prober, tools, pkg, options, features, facts.distro, facts.multiarch))
    for name in ("gtest", "benchmark"):
        result = libraries.find_library(prober, tools, pkg, BY_NAME[name])
        if not result.found:
            result = External(False, why_not="%s; %s" % (
                result.why_not, libraries.install_hint(facts.distro, result, name)))
        facts.externals[name] = result
    facts.externals["eigen"] = _eigen(prober, tools, pkg, facts.distro)
    _pythons(prober, tools, pkg, options, facts, triplet)


def examine(prober: probe.Prober, options: Options, features: Set[str]) -> Facts:
    """Ask everything; raises ConfigureError where something needed is missing."""
    distro = distros.this_distro()
    triplet = _triplet(prober, options)
    tools = Toolchain(prober, options, triplet, distro)
    if triplet:
        distro = distros.for_triplet(distro, triplet)
    facts = Facts(distro=distro, cross=bool(triplet))
    _compilers(prober, options, tools, triplet, facts)
    pkg = options.env("PKG_CONFIG").split() or [_tool(options, "PKG_CONFIG", triplet, "pkg-config")]
    facts.build_python = DISTRIBUTION_PYTHON if os.access(
        DISTRIBUTION_PYTHON, os.X_OK) else shutil.which("python3") or "python3"
    facts.ninja = _ninja(prober, distro)
    facts.memory_mib = probe.memory_mib()
    if options.only:
        facts.pythons = (Interpreter("", "--only=" + options.only, {}),)
    else:
        _for_all(prober, tools, pkg, options, facts, features, triplet)
    if "cuda" in features:
        facts.externals["cuda"], facts.cuda = cuda.find_cuda(
            prober, options, facts.cxx, facts.machine, distro, facts.cross)
    if options.only:
        facts.installed = installed_library.find(prober, pkg, options, facts)
    return facts


def _pythons(prober: probe.Prober, tools: Toolchain, pkg: Sequence[str], options: Options,
             facts: Facts, triplet: str) -> None:
    if triplet:
        facts.pythons = (_cross_python(options, triplet),)
    else:
        facts.pythons = tuple(interpreters.choose_pythons(prober, options, PYTHON_TEST_MODULES))
    facts.externals["pybind11"] = _pybind11(prober, tools, pkg,
                                            [p for p in facts.pythons if p.facts], facts.distro)
    for python in facts.pythons:
        if python.facts:
            facts.python_flags[python.facts["soabi"]] = interpreters.python_headers(
                prober, tools, python, facts.distro.install_hint("python-dev"))
