# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over the sources of the tree, many at once, for ci/lint (docs/decisions/linting.md).

clang-tidy walks every declaration that a source reaches, and most of those are the standard
library's: a dozen sources that one file includes cost little more than one of them alone. So
sources that have the same flags and declare no name twice are examined in batches. Where anything
is found, be it two sources that do not go together after all, the batch is halved until a source
stands alone: only what is found in one alone counts. A source without findings is remembered under
a hash of itself, of the house headers that it reaches and of the configuration.
"""

import concurrent.futures
import functools
import hashlib
import json
import os
import re
import shlex
import subprocess
import tempfile

from gen.check import read_includes

BATCH = 12
WORKERS = len(os.sched_getaffinity(0))
# What a line that begins at its left end declares: clang-format indents nothing in namespaces. A
# name that is missed, or is none, costs time alone.
DECLARED = re.compile(
    r"^(?!template\b|using\b|namespace\b|static_assert\b)"
    r"(?:[A-Z_]+\((\w+, \w+)\)"  # TEST(Suite, Name)
    r"|(?:struct|class|union|enum(?: class)?) (\w+)"
    r"|[A-Za-z_][^(={;\"/\n]*?(?<!:)\b(\w+)\s*[(={;\[])"
    r"|^(?:#\s*define\s+|namespace (?=\w+ =)|extern \"C\" (?:[\w:*]+ )+)(\w+)", re.MULTILINE)
CONSTANTS = re.compile(r"^(?:static )?constexpr .*$", re.MULTILINE)
FURTHER = re.compile(r", (k\w+) = ")  # of a line with several
HIDDEN = {"BENCHMARK_MAIN(": "int main(", "TREENAIL_PLUGIN(": "void tn_plugin_init("}


class NoBuild(Exception):
    """There is no configured build of this tree; the text says what to do."""


def flags_of_sources(top, build):
    """Source file -> the flags of its compile command that clang-tidy knows and needs."""
    path = os.path.join(build, "compile_commands.json")
    advice = "run ./configure.py, or name one with --build-dir"
    try:
        with open(path, encoding="utf-8") as stream:
            entries = json.load(stream)
    except (OSError, ValueError):
        raise NoBuild("clang-tidy needs a configured build, but there is no %s; %s" % (
            path, advice)) from None
    known = {}
    for entry in entries:
        name = os.path.relpath(os.path.realpath(entry["file"]), top)
        known.setdefault(name, flags_of(shlex.split(entry["command"]), build))
    if entries and all(name.startswith(os.pardir) for name in known):
        raise NoBuild("clang-tidy needs a configured build of this tree, but %s is about %s; %s" % (
            path, entries[0]["file"], advice))
    return known


def flags_of(words, build):
    flags, at = [], 0
    while at < len(words):
        word = words[at]
        if word == "-isystem":
            flags += [word, os.path.join(build, words[at + 1])]
            at += 1
        elif word.startswith("-I"):
            flags.append("-I" + os.path.normpath(os.path.join(build, word[2:])))
        elif word.startswith(("-D", "-std=")):
            flags.append(word)
        at += 1
    return flags


class Tidy:
    """One run over a tree: `findings` of named sources."""

    def __init__(self, top, build):
        self.top = top
        self.flags = flags_of_sources(top, build)
        self.memory = os.path.join(build, "lint")
        os.makedirs(self.memory, exist_ok=True)
        self.configuration = self.read(".clang-tidy")
        self.version = subprocess.run(["clang-tidy", "--version"], check=True,
                                      stdout=subprocess.PIPE).stdout.decode()

    @functools.lru_cache(maxsize=None)
    def read(self, name):
        with open(os.path.join(self.top, name), encoding="utf-8", errors="replace") as stream:
            return stream.read()

    @functools.lru_cache(maxsize=None)
    def includes(self, name):
        """The house headers that a file names."""
        return [include for _, include in read_includes(self.read(name))
                if os.path.isfile(os.path.join(self.top, include))]

    @functools.lru_cache(maxsize=None)
    def reached(self, name):
        """The house headers that it reaches."""
        todo, seen = self.includes(name), set()
        while todo:
            seen.update(todo)
            todo = [include for path in todo for include in self.includes(path)
                    if include not in seen]
        return seen

    @functools.lru_cache(maxsize=None)
    def declared(self, name):
        """Names that a file declares outside functions and classes, roughly."""
        text = self.read(name)
        for macro, made in HIDDEN.items():
            text = text.replace(macro, made)
        further = FURTHER.findall("\n".join(CONSTANTS.findall(text)))
        return {*further, *("".join(found) for found in DECLARED.findall(text))}

    def stamp(self, name):
        """The file that is there once the source was found clean as it is."""
        digest = hashlib.sha256(
            (self.version + self.configuration + " ".join(self.flags[name])).encode())
        for path in sorted({name} | self.reached(name)):
            digest.update(("%s\0%s\0" % (path, self.read(path))).encode())
        return os.path.join(self.memory, digest.hexdigest())

    def agree(self, name, others):
        """Whether one file may include a source and these others: none may declare what another
        does, or what a header declares that it does not reach itself."""
        mine, reached = self.declared(name), self.reached(name)
        return not any(
            mine & self.declared(other) or self.foreign(mine, self.reached(other) - reached)
            or self.foreign(self.declared(other), reached - self.reached(other))
            for other in others)

    def foreign(self, names, headers):
        return any(names & self.declared(header) for header in headers)

    def batches(self, names, size):
        """Lists of at most `size` names, neighbours before strangers: they share headers."""
        batches = []
        for name in sorted(names):
            kind = os.path.splitext(name)[1], self.flags[name]
            for fellows, theirs in batches:
                if len(fellows) < size and theirs == kind and self.agree(name, fellows):
                    fellows.append(name)
                    break
            else:
                batches.append(([name], kind))
        return [fellows for fellows, _ in batches]

    def run(self, source, flags, *options):
        """(whether nothing was found, what clang-tidy said)"""
        done = subprocess.run(["clang-tidy", "--quiet", *options, source, "--", *flags],
                              cwd=self.top, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False)
        return done.returncode == 0, done.stdout.decode(errors="replace")

    def run_together(self, names):
        """The same of sources, examined as one."""
        # What is found in an included file counts where this expression matches its path.
        shown = re.findall(r"^HeaderFilterRegex: *'(.*)'$", self.configuration, re.MULTILINE)
        paths = [os.path.join(self.top, name) for name in names]
        with tempfile.NamedTemporaryFile("w", dir=self.memory, encoding="utf-8",
                                         suffix=os.path.splitext(names[0])[1]) as together:
            together.write("".join('#include "%s"\n' % path for path in paths))
            together.flush()
            return self.run(
                together.name, self.flags[names[0]],
                "--config-file=" + os.path.join(self.top, ".clang-tidy"),
                "--header-filter=" + "|".join(shown + [re.escape(p) + "$" for p in paths]))

    def examine(self, names):
        """What is found in these sources, together or, where anything is, in smaller parts."""
        if len(names) > 1:
            if self.run_together(names)[0]:
                return self.remember(names)
            middle = len(names) // 2
            return self.examine(names[:middle]) + self.examine(names[middle:])
        clean, text = self.run(names[0], self.flags[names[0]])
        if clean:
            return self.remember(names)
        kept = [line for line in text.splitlines()
                if re.match(r"\S+:\d+:\d+: (warning|error)", line)]
        return [line.replace(self.top + "/", "") for line in kept] or [
            names[0] + ": " + text.strip()]

    def remember(self, names):
        for name in names:
            with open(self.stamp(name), "w", encoding="utf-8"):
                pass
        return []

    def findings(self, names):
        todo = [name for name in names if name in self.flags
                and not os.path.exists(self.stamp(name))]
        size = min(BATCH, -(-len(todo) // WORKERS))  # few are dealt out to all processors
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            found = pool.map(self.examine, self.batches(todo, size))
            return sorted({line for lines in found for line in lines})
