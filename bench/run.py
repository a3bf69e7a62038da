#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure the figures that Treenail promises, side by side with its peers, and write RESULTS.md.

`ninja bench` runs this with the module of the build. On a machine that does other work, figures are
worth little: the load is recorded with them. With --pypi, what a user would otherwise install from
PyPI runs beside (pypi.py).
"""

import argparse
import datetime
import importlib.util
import os
import re
import subprocess
import sys
from typing import Callable, Dict, List, NamedTuple, Tuple

import figure_build
import figure_callers
import figure_calls
import figure_clusters
import figure_collectives
import figure_contention
import figure_executor
import figure_fourier
import figure_fused
import figure_immediate
import figure_import
import figure_kernels
import figure_loops
import figure_mpi_values
import figure_networks
import figure_recovery
import figure_size
import figure_works
import pypi
from harness import BENCH, Outcome, Row, cpu_model, formatted


class Asked(NamedTuple):
    build: str  # the directory
    rounds: int
    guests: pypi.Guests


class Family(NamedTuple):
    title: str
    measure: Callable[[Asked], Outcome]


FAMILIES = {
    "build": Family("The build", lambda a: figure_build.measure(a.rounds)),
    "import": Family("Starting up", lambda a: figure_import.measure(a.rounds)),
    "calls": Family("Calls from Python", lambda a: figure_calls.measure(a.rounds)),
    "kernels": Family("Kernels and levels", lambda a: figure_kernels.measure(a.build, a.rounds)),
    "fused": Family("Fused groups", lambda a: figure_fused.measure(a.build, a.rounds)),
    "works": Family("Single operations", lambda a: figure_works.measure(a.rounds, a.guests)),
    "special": Family("Special functions",
                      lambda a: figure_works.measure(a.rounds, wanted=figure_works.works.SPECIAL)),
    "linalg": Family("Linear algebra", lambda a: figure_works.measure(
        a.rounds, a.guests, figure_works.works.LINALG)),
    "fourier": Family("Fourier transforms", lambda a: figure_fourier.measure(a.rounds)),
    "training": Family("Training",
                       lambda a: figure_networks.measure_training(a.rounds, a.guests)),
    "inference": Family("Inference",
                        lambda a: figure_networks.measure_inference(a.rounds, a.guests)),
    "loops": Family("Recurrent cells in loops",
                    lambda a: figure_loops.measure(a.rounds, a.guests)),
    "immediate": Family("Immediate execution",
                        lambda a: figure_immediate.measure(a.rounds, a.guests)),
    "contention": Family("Beside a busy process", lambda a: figure_contention.measure(a.rounds)),
    "clusters": Family("Sessions at servers", lambda a: figure_clusters.measure(a.rounds)),
    "mpi-values": Family("Values between tasks over MPI",
                         lambda a: figure_mpi_values.measure(a.rounds)),
    "recovery": Family("Processes that are killed", lambda a: figure_recovery.measure(a.rounds)),
    "collectives": Family("Two processes", lambda a: figure_collectives.measure(
        a.build, a.rounds, a.guests)),
    "callers": Family("Two callers at once", lambda a: figure_callers.measure(a.rounds)),
    "size": Family("Size", lambda a: figure_size.measure(a.build)),
    "executor": Family("The executor, from C++",
                       lambda a: figure_executor.measure(a.build, a.rounds)),
}
WITH_GUESTS = ("works", "linalg", "training", "inference", "loops", "immediate",
               "collectives")
BESIDE_GUESTS = ", beside packages from PyPI"  # sections of their own
HEADINGS = [family.title + more for family in FAMILIES.values() for more in ("", BESIDE_GUESTS)]


def parse(arguments: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", action="append", choices=sorted(FAMILIES), metavar="NAME",
                        help="one family of figures (%s); may be repeated" % ", ".join(FAMILIES))
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds (%(default)s)")
    parser.add_argument("--build", default="build", metavar="DIR", help="the build to measure")
    parser.add_argument("--output", default=os.path.join(BENCH, "RESULTS.md"), metavar="FILE",
                        help="(%(default)s)")
    parser.add_argument("--pypi", nargs="?", const=",".join(pypi.PINS), metavar="NAMES",
                        help="also measure against packages from PyPI, fetched into virtual "
                        "environments: all (8 GB), or some of %s" % ", ".join(pypi.PINS))
    parser.add_argument("--pypi-directory", metavar="DIR",
                        help="where these environments are, and stay (pypi-peers in the build)")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    try:
        options.guests = pypi.parse(options.pypi) if options.pypi is not None else []
    except ValueError as error:
        parser.error("--pypi: %s" % error)
    if options.guests and not set(options.only or FAMILIES) & set(WITH_GUESTS):
        parser.error("--pypi: packages from PyPI are measured in %s" % ", ".join(WITH_GUESTS))
    if options.pypi_directory is None:
        options.pypi_directory = os.path.join(options.build, "pypi-peers")
    return options


def target(row: Row) -> str:
    words = []
    if row.limit is not None:
        words.append("at most %g %s" % (row.limit, row.unit))
    if row.wanted is not None:
        words.append("ratio %g" % row.wanted)
    return ", ".join(words)


def cells(row: Row) -> Tuple[str, ...]:
    peer = ratio = ""
    if row.peer is not None and row.ratio is not None:
        peer = "%s (%s)" % (formatted(row.peer, row.unit), row.peer_name)
        ratio = "%.2f" % row.ratio
    figure = row.figure + (" (%s)" % row.note if row.note else "")
    return figure, formatted(row.ours, row.unit), peer, ratio, target(row), row.verdict


def side_by_side(rows: List[Row]) -> List[str]:
    """A table of all peers with the rows' thread count, where guests were among them."""
    def title(peer: str) -> str:
        return re.sub(r", \d+ threads?$", "", peer)

    rows = [row for row in rows if row.everyone]
    titles = list(dict.fromkeys(title(peer) for row in rows for peer in row.everyone))
    if not titles:
        return []
    lines = ["All of them:", "", "| figure | Treenail | %s |" % " | ".join(titles),
             "|---" * (2 + len(titles)) + "|"]
    for row in rows:
        found = {title(peer): formatted(value, "").strip() for peer, value in row.everyone.items()}
        lines.append("| %s, %s | %s | %s |" % (
            row.figure, row.unit, formatted(row.ours, "").strip(),
            " | ".join(found.get(peer, "-") for peer in titles)))
    return lines + [""]


def level_in_use() -> str:
    import treenail
    info = treenail.build_info()
    used, best = info["kernel_level"], info["best_level"]
    return "level " + used + (" of a CPU that runs " + best if best != used else "")


def section(heading: str, outcome: Outcome, level: str, command: str) -> str:
    lines = ["## " + heading, "", "%s; %s; load %.1f; `%s`" % (
        datetime.date.today(), level, os.getloadavg()[0], command), "",
             "| figure | Treenail | peer | ratio | target | |", "|---|---|---|---|---|---|"]
    lines += ["| %s |" % " | ".join(cells(row)) for row in outcome.rows]
    lines += [""] + side_by_side(outcome.rows) + outcome.notes
    lines += ["Left out: %s" % text for text in dict.fromkeys(outcome.skipped)]
    return "\n".join(lines).rstrip() + "\n"


HEAD = """# Results of `ninja bench`

Machine: %s, %d processors. Medians of interleaved rounds, each framework alone in its process;
a ratio above 1 means that Treenail is faster or smaller. Written by bench/run.py; each section
bears its date, the kernel level, and the load at its end.

"""


def merge(path: str, fresh: Dict[str, str]) -> str:
    """The page with the fresh sections in place of their old ones. Others stay as they were, those
    written by hand (figures by turns with older code, growth) behind the ones written here."""
    sections: Dict[str, str] = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as stream:
            parts = re.split(r"^(?=## )", stream.read(), flags=re.MULTILINE)[1:]
        sections = {part[3:].split("\n", 1)[0]: part.rstrip() + "\n" for part in parts}
    sections.update(fresh)
    order = [heading for heading in HEADINGS if heading in sections]
    order += [heading for heading in sections if heading not in HEADINGS]
    head = HEAD % (cpu_model(), os.cpu_count() or 1)
    return head + "\n".join(sections[heading] for heading in order)


def main(arguments: List[str]) -> int:
    options = parse(arguments)
    wanted = options.only or list(FAMILIES)
    if importlib.util.find_spec("treenail") is None:
        print("There is no module treenail for %s. `ninja bench` runs this with the launcher of "
              "its build; so does build/python3 bench/run.py" % sys.executable, file=sys.stderr)
        return 1
    command = "build/python3 bench/run.py" + "".join(" --only %s" % n for n in options.only or ())
    command += " --rounds %d" % options.rounds
    if subprocess.run(["ninja", "-C", options.build, "--quiet", "bench-programs"],
                      check=False).returncode:
        print("The programs that measure could not be built in %s" % options.build, file=sys.stderr)
        return 1
    guests = pypi.NOBODY
    if options.guests:
        command += " --pypi " + ",".join(options.guests)
        print("Packages from PyPI, in %s" % options.pypi_directory, flush=True)
        guests = pypi.invite(options.guests, options.pypi_directory)
    asked = Asked(os.path.abspath(options.build), options.rounds, guests)
    fresh, missed = {}, 0
    for name, family in FAMILIES.items():
        if name not in wanted:
            continue
        print("Measuring: %s" % family.title.lower(), flush=True)
        outcome = family.measure(asked)
        heading = family.title
        if name in WITH_GUESTS and options.guests:
            heading += BESIDE_GUESTS
            outcome.notes += [guests.note] if guests.interpreters else []
            outcome.skipped = [*guests.missing, *outcome.skipped]
        fresh[heading] = section(heading, outcome, level_in_use(), command)
        missed += sum("missed" in row.verdict for row in outcome.rows)
        print(fresh[heading], flush=True)
        text = merge(options.output, fresh)
        with open(options.output + ".part", "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(options.output + ".part", options.output)
    verdict = "%d targets missed" % missed if missed else "every target met"
    print("%s; written to %s" % (verdict, options.output))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
