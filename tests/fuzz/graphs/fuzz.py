# SPDX-License-Identifier: Apache-2.0
"""Random graphs, run in every way and held to a NumPy interpreter and to each other, bit for bit.

  fuzz.py [--seconds S | --graphs N] [--seed N] [--level LEVEL] [--profile NAME] [--only SEED]
          [--device NAME]

Graph i is made from seed + i alone. One that fails is made small and printed as a Python program;
--keep FOLDER writes it there too. Ends with status 1 where one failed. A level other than the best
is taken by TREENAIL_CPU_ISA or --level; --all-levels goes through all that this machine runs.
On a device (--device /gpu:0) runs what it has kernels for; programs of branches, loops and calls
are left out there.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import os
import sys
import time
from typing import Any, Callable, Counter, List, Optional

import cases_path  # noqa: F401

PER_CHILD = 200
# The kind of programs of branches, loops and calls (bodies.py): one of so many, where none is asked
# for.
BODIES, EVERY_BODIES = "bodies", 8


def options(arguments: Optional[List[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0, help="stop after so long")
    parser.add_argument("--graphs", type=int, default=0, help="stop after so many (100)")
    parser.add_argument("--seed", type=int, default=0, help="of the first graph")
    parser.add_argument("--only", type=int, help="this graph alone")
    parser.add_argument("--profile", default="", help="only graphs of this kind")
    parser.add_argument("--nodes", type=int, default=0, help="so many nodes, about")
    parser.add_argument("--level", default="", help="the ISA level of the kernels")
    parser.add_argument("--device", default="", help="where the graphs run, as far as they can")
    parser.add_argument("--keep", default="", metavar="FOLDER", help="failing programs go there")
    parser.add_argument("--failures", type=int, default=10, help="stop after so many")
    parser.add_argument("--coverage", action="store_true", help="print how often each op was run")
    parser.add_argument("--shrink-seconds", type=float, default=60)
    parser.add_argument("--hang-seconds", type=float, default=120)
    return parser.parse_args(arguments)


class Fuzz:
    """One series of graphs."""

    def __init__(self, given: argparse.Namespace, out: Callable[[str], Any] = print) -> None:
        self.given, self.out = given, out
        self.covered: Counter[str] = collections.Counter()
        self.profiles: Counter[str] = collections.Counter()
        self.nodes = self.runs = self.graphs = 0
        self.failures: List[str] = []  # the programs' texts
        self.keys: List[str] = []

    def one(self, seed: int, trace: Any) -> Any:
        if self._of_bodies(seed):
            return self._one_of_bodies(seed)
        import checker
        import configurations
        import generator
        configurations.need_device()
        program = generator.generate(seed, self.given.profile, self.given.nodes)
        runs = checker.check(program, seed, trace)
        ops = collections.Counter(n.op for n in program.nodes.values())
        return ops, sorted(program.traits), runs

    def _of_bodies(self, seed: int) -> bool:
        return self.given.profile == BODIES or (
            not self.given.profile and not self.given.device and
            seed % EVERY_BODIES == EVERY_BODIES - 1)

    def _one_of_bodies(self, seed: int) -> Any:
        import bodies
        import body_modes
        program = bodies.generate(seed)
        runs = body_modes.check(program)
        return collections.Counter(bodies.kinds(program.block)), [BODIES], runs

    def run(self) -> None:
        from children import Batch
        given = self.given
        last = given.graphs or (0 if given.seconds else 100)
        end = time.monotonic() + (given.seconds or 1e9)
        seeds = itertools.count(given.seed)
        done = 0
        while time.monotonic() < end and len(self.failures) < given.failures and (
                not last or done < last):
            part = list(itertools.islice(seeds, min(PER_CHILD, last - done if last else PER_CHILD)))
            if given.only is not None:
                part, last = [given.only], 1
            reached = 0
            for seed, failure, figures in Batch(self.one, given.hang_seconds).run(part, end):
                reached += 1
                self.graphs += 1
                if failure:
                    self._failed(seed, *failure)
                    if len(self.failures) >= given.failures:
                        break
                else:
                    self._count(*figures)
            done += max(reached, 1)
            if reached < len(part):  # it crashed: go on behind
                seeds = itertools.chain(part[reached:], seeds)

    def _count(self, ops: Any, traits: List[str], runs: int) -> None:
        self.covered.update(ops)
        self.profiles.update(traits)
        self.nodes += sum(ops.values())
        self.runs += runs

    def _failed(self, seed: int, key: str, text: str, trial: Any) -> None:
        if self._of_bodies(seed):
            return self._keep(seed, key, self._smallest_bodies(seed, key, text))
        import checker
        import generator
        from children import verdict
        from printer import show
        from shrinker import Shrinker
        self.out("seed %d: %s\n  in the run %s" % (seed, text[:1000], trial and trial.way.text()))
        program = generator.generate(seed, self.given.profile, self.given.nodes)
        how = ""
        if trial is not None:
            first = verdict(program, trial, checker.again, self.given.hang_seconds)
            same = first is not None and first[0] == key

            def fails(a: Any, b: Any) -> bool:
                found = verdict(a, b, checker.again, self.given.hang_seconds)
                return found is not None and found[0] == key
            if same:
                shrinker = Shrinker(fails, self.given.shrink_seconds)
                program, trial = shrinker.shrink(program, trial)
                found = verdict(program, trial, checker.again, self.given.hang_seconds)
                text = found[1] if found else text
                how = "%d nodes after %d candidates" % (len(program.nodes), shrinker.tried)
            else:
                how = "that run alone gives %s: not made smaller" % (first,)
            self.out("  " + how)
            shown = show(program, trial, "Seed %d, %s" % (seed, text))
        else:
            shown = "# seed %d: %s\n" % (seed, text)
        self._keep(seed, key, shown)

    def _smallest_bodies(self, seed: int, key: str, text: str) -> str:
        import bodies
        import body_modes
        from children import verdict
        self.out("seed %d: %s" % (seed, text[:1000]))

        def fails(block: Any) -> bool:
            found = verdict(bodies.BodyProgram(block, program.inputs), None,
                            lambda candidate, _: body_modes.check(candidate),
                            self.given.hang_seconds)
            return found is not None and found[0] == key
        program = bodies.generate(seed)
        program.block = bodies.smallest(program.block, fails,
                                        time.monotonic() + self.given.shrink_seconds)
        return "# seed %d, %s\n%s" % (seed, text.replace("\n", "\n# "), bodies.show(program))

    def _keep(self, seed: int, key: str, shown: str) -> None:
        self.out(shown)
        self.failures.append(shown)
        self.keys.append(key)
        if self.given.keep:
            os.makedirs(self.given.keep, exist_ok=True)
            path = os.path.join(self.given.keep, "seed_%d.py" % seed)
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(shown)

    def summary(self) -> str:
        from configurations import level
        kinds = ", ".join("%s %d" % item for item in sorted(self.profiles.items()))
        return "%s from seed %d: %d graphs, %d nodes of %d ops, %d runs, %d failed (%s)" % (
            os.environ.get("TREENAIL_CPU_ISA", "") or level(), self.given.seed, self.graphs,
            self.nodes, len(self.covered), self.runs, len(self.failures), kinds)


def main() -> int:
    given = options()
    if given.level:
        os.environ["TREENAIL_CPU_ISA"] = given.level
    if given.device:
        os.environ["TREENAIL_FUZZ_DEVICE"] = given.device
    fuzz = Fuzz(given)
    begin = time.monotonic()
    fuzz.run()
    if given.coverage:
        for name, count in sorted(fuzz.covered.items()):
            print("%6d %s" % (count, name))
    print("%s in %.0f s" % (fuzz.summary(), time.monotonic() - begin))
    return 1 if fuzz.failures else 0


if __name__ == "__main__":
    sys.exit(main())
