# SPDX-License-Identifier: Apache-2.0
"""All-reduce between two processes, and a training step on two processes of one processor each.

In shared memory from C++ (bench/collectives): beside what it cannot beat, memcpy by both processes
at once, and torch.distributed with Gloo where torch runs beside. Over MPI from C++, too, and from
Python: beside the same algorithm in C (workers/all_reduce_mpi.c, compiled by mpicc). Each process
of a training has one thread and a processor of its own; the gradients of the others come on top of
its own batch.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Callable, Dict, List, Sequence, Tuple

import peers
import pypi
from harness import BENCH, Outcome, Row

WORKERS = os.path.join(BENCH, "workers")
RANKS = 2
LIMITS_US = {1 << 10: 30.0}
PLANNED, COPIED = 1.3, 4.0  # of two concurrent memcpys, for 64 MiB
SCALING = 1.8
BUSY = ("Other programs ran meanwhile (load %.1f): what waits for another process waits for its "
        "turn on a processor as well, so that these figures say little of the targets.")
SMALL = ("Over MPI, small values: a group compares what its ranks ask for, and finds executions "
         "that belong together by key, which plain C need not.")
OVER_MPI = {"all_reduce": "", "planned": ", planned into the group's memory",
            "treenail": ", by Session.run"}
OPENMPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", str(RANKS)]


def size_text(size: int) -> str:
    return "%d MiB" % (size >> 20) if size >= 1 << 20 else "%d KiB" % (size >> 10)


def lines_of(command: Sequence[str]) -> List[dict]:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def median(values: List[float]) -> float:
    return sorted(values)[len(values) // 2]


def ranks(interpreter: str, program: str, count: int, *arguments: str) -> List[dict]:
    """What rank 0 of a group prints; each rank has a processor of its own."""
    cpus = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as directory:
        started = [subprocess.Popen(
            [interpreter, "-B", os.path.join(WORKERS, program), str(rank), str(count), directory,
             *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            preexec_fn=lambda rank=rank: os.sched_setaffinity(0, {cpus[rank % len(cpus)]}))
            for rank in range(count)]
        try:
            printed = [process.communicate(timeout=300)[0] for process in started]
        finally:
            for process in started:
                process.kill()
                process.wait()
    return [json.loads(line) for line in printed[0].splitlines() if line.startswith("{")]


def torch_interpreters(guests: pypi.Guests, outcome: Outcome) -> List[Tuple[str, str]]:
    found = [("torch (Gloo)", path) for name, path in guests.interpreters.items()
             if name == "torch"]
    probe = [peers.INTERPRETER, "-c", "import torch.distributed as d; assert d.is_available()"]
    if not found and subprocess.run(probe, stderr=subprocess.DEVNULL, check=False).returncode == 0:
        found = [("torch (Gloo)", peers.INTERPRETER)]
    if not found:
        outcome.skipped.append("torch.distributed with Gloo: no torch here, and none from PyPI was "
                               "asked for")
    return found


def collected(rounds: int, measure: Callable[[], List[dict]]) -> Dict[Tuple[str, int], float]:
    found: Dict[Tuple[str, int], List[float]] = {}
    for _ in range(rounds):
        for line in measure():
            found.setdefault((line["name"], line["bytes"]), []).append(line["seconds"] * 1e6)
    return {key: median(values) for key, values in found.items()}


def in_shared_memory(build: str, rounds: int, torches: List[Tuple[str, str]],
                     outcome: Outcome) -> None:
    program = os.path.join(build, "bench/collectives_bench")
    found = collected(rounds, lambda: lines_of([program, str(RANKS)]))
    others = {name: collected(min(rounds, 3), lambda: ranks(path, "all_reduce_torch.py", RANKS))
              for name, path in torches}
    for (kind, size), took in sorted(found.items(), key=lambda item: (item[0][1], item[0][0])):
        if kind == "memcpy":
            continue
        copying = found["memcpy", size]
        row = Row("all-reduce of %s, 2 processes%s" % (
            size_text(size), ", planned into shared memory" if kind == "planned" else ""), took,
            "µs", limit=LIMITS_US.get(size), note="memcpy by both: %.1f µs" % copying)
        if size == 64 << 20:
            row.limit = round(copying * (PLANNED if kind == "planned" else COPIED))
        row.beside({name: values["all_reduce", size] for name, values in others.items()
                    if ("all_reduce", size) in values})
        outcome.rows.append(row)


def over_mpi(build: str, rounds: int, outcome: Outcome) -> None:
    for tool in ("mpicc.openmpi", "mpirun.openmpi"):
        if shutil.which(tool) is None:
            outcome.skipped.append("all-reduce over MPI: no %s" % tool)
            return
    with tempfile.TemporaryDirectory() as directory:
        program = os.path.join(directory, "all_reduce_mpi")
        subprocess.run(["mpicc.openmpi", "-O2", "-o", program,
                        os.path.join(WORKERS, "all_reduce_mpi.c")], check=True)
        ours = [sys.executable, "-B", os.path.join(WORKERS, "all_reduce_treenail.py")]
        bench = [os.path.join(build, "bench/collectives_bench"), str(RANKS), "mpi"]
        found = collected(rounds, lambda: lines_of(OPENMPI + ours) + lines_of(OPENMPI + bench)
                          + lines_of(OPENMPI + [program]))
    for (kind, size), took in sorted(found.items(), key=lambda item: (item[0][1], item[0][0])):
        if kind not in OVER_MPI:
            continue
        row = Row("all-reduce of %s over Open MPI%s" % (size_text(size), OVER_MPI[kind]), took,
                  "µs", wanted=None if kind == "treenail" else 0.9)
        row.beside({"the same in C": found["c", size]})
        outcome.rows.append(row)


def scaling(rounds: int, torches: List[Tuple[str, str]], outcome: Outcome) -> None:
    programs = [("Treenail", sys.executable, "parallel_treenail.py")]
    programs += [(name, path, "parallel_torch.py") for name, path in torches]
    gain = {}
    for name, interpreter, program in programs:
        steps: Dict[int, List[float]] = {1: [], 2: []}
        for _ in range(rounds):
            for count in steps:
                steps[count].append(ranks(interpreter, program, count)[0]["seconds"])
        gain[name] = 2 * median(steps[1]) / median(steps[2]), median(steps[1]), median(steps[2])
    times, alone, together = gain["Treenail"]
    row = Row("CNN, synchronous step of 2 processes of one processor each, 64 images each",
              together * 1e3, "ms", limit=round(2 * alone / SCALING * 1e3, 2),
              note="1 process: %.2f ms, so %.2f times its images per second" % (alone * 1e3, times))
    row.beside({"%s, %.2f times" % (name, g[0]): g[2] * 1e3 for name, g in gain.items()
                if name != "Treenail"})
    outcome.rows.append(row)


def measure(build: str, rounds: int, guests: pypi.Guests) -> Outcome:
    outcome = Outcome()
    torches = torch_interpreters(guests, outcome)
    in_shared_memory(build, rounds, torches, outcome)
    over_mpi(build, min(rounds, 5), outcome)
    scaling(min(rounds, 5), torches, outcome)
    load = os.getloadavg()[0]
    if load > RANKS + 0.5:
        outcome.notes.append(BUSY % load)
    outcome.explain({"all-reduce of 1 KiB over": SMALL})
    return outcome
