# SPDX-License-Identifier: Apache-2.0
"""Sessions at servers beside what gRPC itself takes (workers/rpc_raw.cc, compiled here): an empty
run, and tensors from one task to another, by gRPC and lent in shared memory. Every process is on
this machine."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from typing import Dict, Iterator, List, Tuple

from harness import BENCH, Outcome, Row

WORKERS = os.path.join(BENCH, "workers")
OURS = os.path.join(WORKERS, "cluster_treenail.py")
EMPTY, STREAM = 1.5, 0.95  # of an empty call's time, and of a stream's rate
LENT = 4e3  # bytes in a microsecond
MOVES = {"moved": "a run that moves %d MiB to another task",
         "many": "each of 64 values of %d MiB in one run"}
WAYS = {"gRPC": "no", "lent": ""}  # TREENAIL_SHARED_MEMORY

Figures = Dict[Tuple[str, int], List[float]]


def compiled(directory: str) -> str:
    """The raw program, or '' where gRPC's headers are not here."""
    asked = subprocess.run(["pkg-config", "--cflags", "--libs", "grpc++"], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True, check=False)
    if asked.returncode:
        return ""
    program = os.path.join(directory, "rpc_raw")
    subprocess.run(["g++", "-std=c++17", "-O2", "-o", program,
                    os.path.join(WORKERS, "rpc_raw.cc"), *asked.stdout.split()], check=True)
    return program


@contextlib.contextmanager
def serving(commands: List[List[str]], memory: str = "",
            wait: bool = True) -> Iterator[List[str]]:
    """The first line that each of them prints, if that is waited for; they end with the block."""
    environment = {**os.environ, "TREENAIL_SHARED_MEMORY": memory}
    started = [subprocess.Popen(c, stdout=subprocess.PIPE, text=True, env=environment)
               for c in commands]
    try:
        yield [process.stdout.readline().strip() for process in started] if wait else []
    finally:
        for process in started:
            process.kill()
            process.communicate()


def collect(into: Figures, command: List[str], way: str = "") -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300, check=True)
    for line in done.stdout.splitlines():
        found = json.loads(line)
        name = found["name"] + (way and ", " + way)
        into.setdefault((name, found["bytes"]), []).append(found["seconds"] * 1e6)


def ports(count: int) -> List[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    numbers = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return numbers


def measure(rounds: int) -> Outcome:
    outcome = Outcome()
    found: Figures = {}
    with tempfile.TemporaryDirectory() as directory:
        raw = compiled(directory)
        if not raw:
            outcome.skipped.append("sessions at servers: no headers of gRPC")
            return outcome
        python = [sys.executable, "-B", OURS]
        with contextlib.ExitStack() as running:
            said = running.enter_context(serving([[raw, "serve"]]))
            clusters = {}
            for way, memory in WAYS.items():
                clusters[way] = json.dumps({job: ["localhost:%d" % port]
                                            for job, port in zip(("ps", "worker"), ports(2))})
                running.enter_context(serving([python + ["serve", clusters[way], job]
                                               for job in ("ps", "worker")], memory))
            for _ in range(rounds):
                collect(found, [raw, "ask", said[0]])
                for way, cluster in clusters.items():
                    collect(found, python + ["ask", cluster], way)
    medians = {key: sorted(values)[len(values) // 2] for key, values in found.items()}
    calls = {name: medians[name, 0] for name in ("empty, synchronous", "empty, callback")}
    row = Row("an empty run at a server", medians["empty, gRPC", 0], "µs",
              limit=round(EMPTY * min(calls.values()), 1))
    row.beside({"gRPC, %s" % name: took for name, took in calls.items()})
    outcome.rows.append(row)
    for (name, size), took in sorted(medians.items(), key=lambda item: item[0][1]):
        what = name.split(",")[0]
        if what in MOVES:
            lent = name.endswith("lent")
            row = Row(MOVES[what] % (size >> 20) + name[len(what):], took, "µs",
                      note="%.2f GB/s" % (size / took / 1e3),
                      **({"limit": round(size / LENT, 1)} if lent else {"wanted": STREAM}))
            row.beside({"gRPC, a stream": medians["stream", size]})
            outcome.rows.append(row)
    for way in WAYS:
        row = Row("a run that moves 200 values of 256 bytes to another task, " + way,
                  medians["small, together, " + way, 200], "µs")
        row.beside({"of unknown size, one by one": medians["small, one by one, " + way, 200]})
        outcome.rows.append(row)
    return outcome
