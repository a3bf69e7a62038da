# SPDX-License-Identifier: Apache-2.0
"""What the user asked for: the table of options, the parser, and the record that is kept.

The same table drives parsing, `--help` and the suggestions for misspelt options. Nothing here looks
at the machine; defaults that depend on it ("auto") are resolved by probe and plan. The arguments
and the environment variables below are stored in the build directory, so that ninja can regenerate.
"""

import difflib
import os
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence, Tuple

from gen.deps import FEATURES, NON_FREE
from gen.errors import ConfigureError

ENVIRONMENT = {
    "CC": "C compiler, may be several words (ccache gcc)",
    "CXX": "C++ compiler, may be several words (ccache g++)",
    "AR": "archiver",
    "NM": "symbol lister",
    "STRIP": "symbol stripper",
    "PKG_CONFIG": "pkg-config program",
    "PKG_CONFIG_PATH": "extra directories for pkg-config",
    "PKG_CONFIG_LIBDIR": "replaces pkg-config's own directories",
    "PKG_CONFIG_SYSROOT_DIR": "sysroot that pkg-config prepends",
    "CUDA_HOME": "directory of the CUDA toolkit",
    "CUDA_PATH": "the same, where CUDA_HOME is not set",
    "CFLAGS": "flags for C, taken literally",
    "CXXFLAGS": "flags for C++, taken literally",
    "CPPFLAGS": "preprocessor flags, taken literally",
    "LDFLAGS": "linker flags, taken literally",
}

DIRECTORIES = (
    ("prefix", "/usr/local", "architecture-independent files"),
    ("exec-prefix", "${prefix}", "architecture-dependent files"),
    ("bindir", "${exec_prefix}/bin", "user programs"),
    ("sbindir", "${exec_prefix}/sbin", "system programs"),
    ("libexecdir", "${exec_prefix}/libexec", "programs run by programs"),
    ("sysconfdir", "${prefix}/etc", "configuration of one machine"),
    ("sharedstatedir", "${prefix}/com", "modifiable data"),
    ("localstatedir", "${prefix}/var", "modifiable data of one machine"),
    ("runstatedir", "${localstatedir}/run", "data of running programs"),
    ("libdir", "", "libraries [${exec_prefix}/lib; with prefix /usr the distribution's]"),
    ("includedir", "${prefix}/include", "C and C++ headers"),
    ("oldincludedir", "/usr/include", "headers for other compilers"),
    ("datarootdir", "${prefix}/share", "read-only data"),
    ("datadir", "${datarootdir}", "read-only data of packages"),
    ("infodir", "${datarootdir}/info", "info pages"),
    ("localedir", "${datarootdir}/locale", "translations"),
    ("mandir", "${datarootdir}/man", "manual pages"),
    ("docdir", "${datarootdir}/doc/treenail", "documentation"),
    ("htmldir", "${docdir}", "HTML documentation"),
    ("dvidir", "${docdir}", "DVI documentation"),
    ("pdfdir", "${docdir}", "PDF documentation"),
    ("psdir", "${docdir}", "PostScript documentation"),
)

# Options that debhelper, %configure and habit pass, and that have nothing to decide here.
NO_OPS = (
    "disable-option-checking", "enable-option-checking", "disable-maintainer-mode",
    "enable-maintainer-mode", "disable-dependency-tracking", "enable-dependency-tracking",
    "disable-silent-rules", "enable-silent-rules", "enable-shared", "disable-static",
    "disable-rpath",
)
NO_OPS_WITH_VALUE = ("program-prefix", "program-suffix", "program-transform-name", "cache-file",
                     "srcdir", "with-gnu-ld")

# What --disable-option-checking makes acceptable, as in any configure script.
AUTOCONF_PREFIXES = ("enable-", "disable-", "with-", "without-")

TRISTATE = ("auto", "yes", "no")
BLAS_CHOICES = ("auto", "generic", "flexiblas", "openblas", "blis", "none")
NAMES_NON_FREE = tuple(dep.name for dep in NON_FREE)
SANITIZERS = ("address", "undefined", "thread")
# What can be built alone, for a libtreenail that is installed: parts of NON_FREE.
ALL, PARTS = "all", NAMES_NON_FREE


@dataclass(frozen=True)
class Option:
    """One row of the table. `metavar` empty: a switch that takes no value."""

    name: str
    section: str
    text: str
    metavar: str = ""
    default: str = ""
    choices: Tuple[str, ...] = ()
    repeat: bool = False


def _table() -> List[Option]:
    rows = [
        Option("build-dir", "Build", "where everything is written", "DIR"),
        Option("buildtype", "Build", "optimisation and debug information", "TYPE", "release",
               ("release", "debugoptimized", "debug")),
        Option("sanitize", "Build", "'address', 'undefined', both with a comma, or 'thread'",
               "LIST"),
        Option("coverage", "Build", "instrument for gcov"),
        Option("lto", "Build", "optimise across files at link time"),
        Option("werror", "Build", "compiler warnings are errors"),
        Option("pch", "Build", "precompile common headers; 'auto': unless the compiler is run "
               "through a cache, or CXXFLAGS have GCC's -g", "TRI", "auto", TRISTATE),
        Option("only", "Build", "'cuda': the plugin of GPUs alone, for the libtreenail that is "
               "installed below --prefix, or that pkg-config knows", "PART", ALL, (ALL, *PARTS)),
        Option("no-cache", "Build", "forget earlier probe results"),
        Option("python", "Python", "build a module for this interpreter; may be repeated; "
               "default: the distribution's /usr/bin/python3", "PROGRAM", repeat=True),
        Option("isa-baseline", "Instruction sets", "what every CPU that runs this build has; "
               "default: the compiler's generic level, or the one that CXXFLAGS name",
               "LEVEL"),
        Option("kernel-isas", "Instruction sets", "levels that kernels are compiled for besides "
               "the baseline, separated by commas; the best one is chosen at start-up; "
               "'auto': x86-64-v3 and -v4, or armv8.2-a; 'none': the baseline alone", "LIST",
               "auto"),
        Option("auto-features", "Features", "what 'auto' means below; packages use 'yes'", "TRI",
               "auto", TRISTATE),
        Option("blas", "Features", "which BLAS is linked; 'auto' prefers the distribution's "
               "switchable one", "NAME", "auto", BLAS_CHOICES),
        Option("build", "Cross compiling", "system that compiles", "TRIPLET"),
        Option("host", "Cross compiling", "system that runs the result; tools <triplet>-g++, "
               "<triplet>-ar, <triplet>-pkg-config", "TRIPLET"),
        Option("target", "Cross compiling", "accepted and ignored", "TRIPLET"),
        Option("host-python", "Cross compiling", "Python version of the host system, as 3.11; "
               "without it a cross build has no Python module", "VERSION"),
        Option("help", "Other", "this page"),
        Option("version", "Other", "print the version"),
        Option("regenerate", "Other", "used by ninja: configure again with the stored options"),
    ]
    for name, default, text in DIRECTORIES:
        rows.append(Option(name, "Directories", text, "DIR", default))
    for feature in FEATURES:
        if feature.name != "blas":
            rows.append(Option("with-" + feature.name, "Features", feature.why, "TRI", "auto",
                               TRISTATE))
    for dep in NON_FREE:
        rows.append(Option("with-" + dep.name, "Features", dep.why + "; 'auto': unless "
                           "--auto-features says yes or no", "TRI", "auto", TRISTATE))
    rows.append(Option("cuda-arch", "Features", "GPUs that get code of their own, as 80,90; later "
                       "ones compile it when it is loaded; 'auto': the usual ones that nvcc knows",
                       "LIST", "auto"))
    return rows


TABLE = {row.name: row for row in _table()}


@dataclass(frozen=True)
class Options:
    """The parsed command line: `get` reads a value, `given` says whether it was named."""

    values: Dict[str, str] = field(default_factory=dict)
    pythons: Tuple[str, ...] = ()
    environment: Dict[str, str] = field(default_factory=dict)
    arguments: Tuple[str, ...] = ()

    def get(self, name: str) -> str:
        return self.values.get(name, TABLE[name].default)

    def given(self, name: str) -> bool:
        return name in self.values

    def flag(self, name: str) -> bool:
        return self.values.get(name, "no") != "no"

    def feature(self, name: str) -> str:
        """'auto', 'yes' or 'no' for one feature, after --auto-features."""
        if name == "blas":
            return {"none": "no", "auto": self.get("auto-features")}.get(self.get("blas"), "yes")
        value, general = self.get("with-" + name), self.get("auto-features")
        if name in NAMES_NON_FREE:  # packages use yes, and take nothing that is not free
            general = "auto" if general == "auto" else "no"
        return general if value == "auto" else value

    @property
    def only(self) -> str:
        """The part that is built alone; '' where everything is."""
        return "" if self.get("only") == ALL else self.get("only")

    def env(self, name: str) -> str:
        return self.environment.get(name, "")

    def directory(self, name: str) -> str:
        """An absolute directory with ${...} expanded; the empty string where plan must decide."""
        return expand_directory(name, {row[0]: self.get(row[0]) for row in DIRECTORIES})


def expand_directory(name: str, values: Dict[str, str]) -> str:
    text = values[name]
    for _ in range(len(values)):
        before = text
        for other in values:
            key = other.replace("-", "_")
            if other != name:
                text = text.replace("${%s}" % key, values[other])
        if text == before:
            break
    if "${" in text:
        raise ConfigureError("--%s=%s: cannot expand '%s'" % (name, values[name], text))
    return text


def _suggest(name: str) -> str:
    if name.startswith(("with-", "without-")):
        names = ["with-" + f.name for f in FEATURES + NON_FREE if f.name != "blas"]
        near = difflib.get_close_matches("with-" + name.split("-", 1)[1], names, 1, 0.8)
        hint = "did you mean --%s?" % near[0] if near else "there is no such feature"
        return "; %s; these are: %s, and --blas=NAME" % (
            hint, ", ".join("--" + n for n in names))
    known = list(TABLE) + ["without-" + f.name for f in FEATURES + NON_FREE]
    near = difflib.get_close_matches(name, known, 1, 0.6)
    return "; did you mean --%s?" % near[0] if near else "; see ./configure.py --help"


def _check_value(row: Option, value: str) -> None:
    if row.choices and value not in row.choices:
        near = difflib.get_close_matches(value, row.choices, 1)
        hint = "; did you mean '%s'?" % near[0] if near else ""
        raise ConfigureError("--%s=%s: it must be one of %s%s"
                             % (row.name, value, ", ".join(row.choices), hint))
    if row.section == "Directories" and value and not value.startswith(("/", "${")):
        hint = "; the shell expands ~ only where a word begins: --%s=\"$HOME%s\"" % (
            row.name, value[1:]) if value == "~" or value.startswith("~/") else ""
        raise ConfigureError("--%s=%s: an absolute directory is needed%s" % (
            row.name, value, hint))
    if row.name in ("build", "host") and value and "-" not in value:
        raise ConfigureError("--%s=%s: a triplet such as %s-linux-gnu is needed" % (
            row.name, value, value))
    if not row.metavar and value not in ("yes", "no"):
        raise ConfigureError("--%s=%s: it takes no value but yes or no" % (row.name, value))
    if row.name == "sanitize":
        names = [n for n in value.split(",") if n]
        unknown = [n for n in names if n not in SANITIZERS]
        if unknown:
            raise ConfigureError("--sanitize=%s: '%s' is not one of %s"
                                 % (value, unknown[0], ", ".join(SANITIZERS)))
        if "thread" in names and len(names) > 1:
            raise ConfigureError("--sanitize=%s: 'thread' cannot be combined with another one"
                                 % value)


def _normalise(name: str) -> Tuple[str, Optional[str]]:
    """Option name and, for --without-X and --disable-X spellings, the value it stands for."""
    if name.startswith("without-") and "with-" + name[8:] in TABLE:
        return "with-" + name[8:], "no"
    if name == "without-blas":
        return "blas", "none"
    for switch in ("coverage", "lto", "werror"):
        if name == "enable-" + switch:
            return switch, "yes"
        if name in ("disable-" + switch, "no-" + switch):
            return switch, "no"
    return name, None


def _set_variable(word: str, env: Dict[str, str]) -> None:
    key, value = word.split("=", 1)
    if key not in ENVIRONMENT:
        raise ConfigureError("'%s': not a variable that configure reads; these are: %s"
                             % (word, ", ".join(sorted(ENVIRONMENT))))
    env[key] = value


def _find_row(word: str, name: str, unchecked: bool) -> Optional[Option]:
    """The option's row; none where a foreign option may pass."""
    if name == "with-blas":
        raise ConfigureError("%s: choose with --blas=%s" % (word, "|".join(BLAS_CHOICES)))
    row = TABLE.get(name)
    if row is None and not (unchecked and name.startswith(AUTOCONF_PREFIXES)):
        raise ConfigureError("unknown option '%s'%s" % (word.split("=")[0], _suggest(name)))
    return row


def _value(row: Option, equals: str, value: str, rest: List[str]) -> str:
    """What stands after '=', the next word, or what the bare option means."""
    if equals:
        return value
    if not row.metavar or row.choices == TRISTATE:
        return "yes"
    if not rest:
        raise ConfigureError("--%s needs a value: --%s=%s" % (row.name, row.name, row.metavar))
    return rest.pop(0)


def _check_only(values: Dict[str, str]) -> None:
    """A part that is built alone must be there."""
    part = values.get("only", ALL)
    if part == ALL:
        return
    if values.get("with-" + part) == "no":
        raise ConfigureError("--only=%s and --with-%s=no: nothing is left to build" % (part, part))
    values["with-" + part] = "yes"


def parse(arguments: Sequence[str], environment: Dict[str, str]) -> Options:
    """Parse a command line; raises ConfigureError with a sentence for whatever is wrong with it."""
    values: Dict[str, str] = {}
    pythons: List[str] = []
    env = {k: environment[k] for k in ENVIRONMENT if environment.get(k)}
    unchecked = "--disable-option-checking" in arguments
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in ("-h", "-help"):
            word = "--help"
        if not word.startswith("-") and "=" in word:
            _set_variable(word, env)
            continue
        if not word.startswith("--"):
            raise ConfigureError("unexpected argument '%s'; see ./configure.py --help" % word)
        name, equals, value = word[2:].partition("=")
        if name in NO_OPS or (name in NO_OPS_WITH_VALUE and equals):
            continue
        if name in NO_OPS_WITH_VALUE:
            rest[:1] = []
            continue
        name, implied = _normalise(name)
        row = _find_row(word, name, unchecked)
        if row is None:
            continue
        value = _value(row, equals, value, rest) if implied is None else implied
        _check_value(row, value)
        if row.repeat:
            pythons.append(value)
        else:
            values[name] = value
    _check_only(values)
    if "host-python" in values and "host" not in values:
        raise ConfigureError("--host-python=%s is for cross builds, with --host=TRIPLET; a native "
                             "build takes --python=PROGRAM" % values["host-python"])
    env = {k: v for k, v in env.items() if v}
    return Options(values, tuple(pythons), env, tuple(arguments))


def absolute_pythons(arguments: Sequence[str], cwd: str) -> List[str]:
    """The arguments with relative paths of interpreters resolved: ninja runs somewhere else."""
    found: List[str] = []
    for word in arguments:
        head, value = "", ""
        if word.startswith("--python="):
            head, value = "--python=", word[len("--python="):]
        elif found and found[-1] == "--python":
            value = word
        if os.sep in value:
            word = head + os.path.normpath(os.path.join(cwd, value))
        found.append(word)
    return found


def build_directory(options: Options, source: str, cwd: str) -> str:
    """--build-dir, else the current directory when it is not the source tree, else build/."""
    if options.given("build-dir"):
        if not options.get("build-dir"):
            raise ConfigureError("--build-dir= names no directory")
        return os.path.normpath(os.path.join(cwd, options.get("build-dir")))
    if os.path.realpath(cwd) == os.path.realpath(source):
        return os.path.join(source, "build")
    return cwd
