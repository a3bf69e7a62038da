# SPDX-License-Identifier: Apache-2.0
"""What an output of the build was made from, by ninja's graph and its log of dependencies."""

import os
import subprocess
from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Set

from proving import SOURCE


class Unusable(Exception):
    """The bill cannot be written; the text says why."""


def run(command: List[str], cwd: str = ".", may_fail: bool = False) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=dict(os.environ, LC_ALL="C"), check=False)
    except OSError as error:
        raise Unusable("%s: %s" % (command[0], error.strerror)) from None
    if done.returncode and not may_fail:
        raise Unusable("%s: exit status %d: %s" % (
            " ".join(command[:6]), done.returncode, done.stderr.decode(errors="replace")[-500:]))
    return done.stdout.decode(errors="replace")


def below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


@dataclass
class Origin:
    """tree: files of the source tree, from its top. system: headers, absolute. linked: other
    outputs of the build that are installed files themselves."""

    tree: Set[str] = field(default_factory=set)
    system: Set[str] = field(default_factory=set)
    linked: Set[str] = field(default_factory=set)


class Graph:
    """ninja's graph of one build directory, asked in few calls."""

    def __init__(self, build: str, ninja: str = "ninja"):
        self.build, self.ninja = os.path.realpath(build), ninja
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            raise Unusable("%s is no build directory: there is no build.ninja" % build)
        self.produced = {line.rsplit(": ", 1)[0] for line in self.ask("targets", "all")}
        self.known: Dict[str, List[str]] = {}
        self.origins: Dict[str, Origin] = {}
        self.headers: Dict[str, List[str]] = {}
        name = ""
        for line in self.ask("deps"):
            if line.startswith("    "):
                self.headers[name].append(line.strip())
            elif line:
                name = line.split(": #deps ", 1)[0]
                self.headers[name] = []

    def ask(self, *words: str) -> List[str]:
        return run([self.ninja, "-t", *words], self.build).splitlines()

    def learn(self, nodes: Iterable[str]) -> None:
        """The inputs of each node, explicit and implicit; those that only order do not count."""
        wanted = sorted(set(nodes) - set(self.known))
        for start in range(0, len(wanted), 200):
            name, reading = "", False
            for line in self.ask("query", *wanted[start:start + 200]):
                if not line.startswith(" "):
                    name, reading = line.rstrip(":"), False
                    self.known[name] = []
                elif not line.startswith("    "):
                    reading = line.startswith("  input:")
                elif reading and not line.startswith("    || "):
                    text = line[4:]
                    self.known[name].append(text[2:] if text.startswith("| ") else text)

    def inputs(self, node: str) -> List[str]:
        if node.endswith(".o") and node not in self.headers:
            raise Unusable("%s: ninja's log has no headers of it; build before the bill is written"
                           % node)
        return self.known[node] + self.headers.get(node, [])

    def origin(self, output: str, products: Set[str]) -> Origin:
        """What went into an output; where another product went in, that one is named alone."""
        if output in self.origins:
            return self.origins[output]
        found = self.origins[output] = Origin()
        if output not in self.produced:
            self.leaf(output, found)
            if not found.tree and not found.system:  # configure.py wrote it
                self.learn(["build.ninja"])
                for name in self.known["build.ninja"]:
                    self.leaf(name, found)
            return found
        todo, seen = {output}, {output}
        while todo:
            self.learn(todo)
            reached = {name for node in todo for name in self.inputs(node)} - seen
            seen |= reached
            todo = set()
            for name in reached:
                if name in self.produced and name in products:
                    found.linked.add(name)
                elif name in self.produced:
                    todo.add(name)
                else:
                    self.leaf(name, found)
        return found

    def leaf(self, name: str, found: Origin) -> None:
        """A file that the build did not make. What configure.py writes into the build directory
        besides (version scripts, lists) only says how to build."""
        path = os.path.normpath(os.path.join(self.build, name))
        real = os.path.realpath(path)
        if os.path.isdir(real) or not os.path.exists(real):
            return
        if below(real, self.build) and self.build != os.path.realpath(SOURCE):
            return
        if below(real, os.path.realpath(SOURCE)):
            found.tree.add(os.path.relpath(real, os.path.realpath(SOURCE)))
        else:
            found.system.add(path)


# ---- licences --------------------------------------------------------------------------------
