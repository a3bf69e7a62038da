# SPDX-License-Identifier: Apache-2.0
"""Values from one task to another over MPI beside plain C over the same MPI (workers/move_mpi.c,
compiled here), and by gRPC. Shared memory is turned off; both processes are on this machine."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Dict, List, Tuple

from figure_clusters import MOVES, ports
from harness import BENCH, Outcome, Row

WORKERS = os.path.join(BENCH, "workers")
LAUNCHERS = {"Open MPI": ("mpicc.openmpi", ["mpirun.openmpi", "--allow-run-as-root",
                                            "--oversubscribe", "-n", "2"]),
             "MPICH": ("mpicc.mpich", ["mpirun.mpich", "-n", "2"])}
WANTED = 0.9  # of the rate of plain C

Figures = Dict[Tuple[str, str, int], List[float]]  # by way, what, bytes


def collect(into: Figures, command: List[str], name: str, mpi: str = "yes") -> None:
    environment = {**os.environ, "TREENAIL_SHARED_MEMORY": "no", "TREENAIL_MPI_VALUES": mpi}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300, check=True,
                          env=environment)
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            found = json.loads(line)
            if found["name"].startswith("way ") and found["name"] != (
                    "way MPI" if mpi == "yes" else "way messages"):
                raise RuntimeError("values came by %s" % found["name"])
            into.setdefault((name, found["name"], found["bytes"]), []).append(
                found["seconds"] * 1e6)


def measure(rounds: int) -> Outcome:
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as directory:
        for mpi, (compiler, launcher) in LAUNCHERS.items():
            if shutil.which(compiler) is None or shutil.which(launcher[0]) is None:
                outcome.skipped.append("values over %s: no %s" % (mpi, compiler))
                continue
            raw = os.path.join(directory, compiler)
            subprocess.run([compiler, "-O2", "-o", raw, os.path.join(WORKERS, "move_mpi.c")],
                           check=True)
            found: Figures = {}
            for number in range(rounds):
                collect(found, launcher + [raw], "raw")
                for way, wanted in (("MPI", "yes"), ("gRPC", "no")):
                    addresses = ",".join("localhost:%d" % port for port in ports(2))
                    done = os.path.join(directory, "%s-%s-%d" % (compiler, way, number))
                    collect(found, launcher + [sys.executable, "-B",
                                               os.path.join(WORKERS, "move_treenail.py"),
                                               addresses, done], way, wanted)
            medians = {key: sorted(took)[len(took) // 2] for key, took in found.items()}
            for way, what, size in sorted(medians, key=lambda key: key[2]):
                if way != "MPI" or what not in MOVES:
                    continue
                took = medians[way, what, size]
                row = Row("%s, %s" % (MOVES[what] % (size >> 20), mpi), took, "µs", wanted=WANTED,
                          note="%.2f GB/s; by gRPC %.0f µs" % (size / took / 1e3,
                                                               medians["gRPC", what, size]))
                row.beside({"plain C": medians["raw", "many" if what == "many" else "raw", size]})
                outcome.rows.append(row)
    return outcome
