# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms (workers/fourier.py) beside FFTW with measured plans and the distribution's
SciPy (pocketfft), NumPy and torch, at 1 and at 2 threads (docs/decisions/fft.md)."""

import os
import sys
from typing import List

import peers
from harness import BENCH, Absent, Best, Outcome, Worker, ask_all, hold_together, interleave

sys.path.insert(0, os.path.join(BENCH, "workers"))
import fourier  # noqa: E402

TOLERANCE = 1e-3  # of the sums over a result, in float32

PEERS = ("fftw", "scipy", "numpy", "torch")


def others(threads: int, outcome: Outcome) -> List[Worker]:
    found = []
    for library in PEERS:
        try:
            found.append(Worker("%s, %s" % (library, peers.with_threads(threads)), "fourier.py",
                                [library, str(threads)], peers.INTERPRETER,
                                {"OMP_NUM_THREADS": str(threads)}, cpus=threads, guest=True))
        except Absent as absent:
            outcome.leave_out("", [str(absent)])
    return found


def measure(rounds: int) -> Outcome:
    outcome = Outcome()
    for threads in (1, 2):
        workers = [Worker("treenail", "fourier.py", ["treenail", str(threads)], cpus=threads)]
        try:
            workers += others(threads, outcome)
            for work in fourier.TRANSFORMS:
                left_out: List[str] = []
                alive = [worker for worker in workers if worker.alive]
                answers = ask_all(alive, left_out, what="start", title=work.title)
                digests = {worker.name: answers[worker.name]["digests"] for worker in alive}
                hold_together(alive, "sums of the result", digests, TOLERANCE, 1.0, left_out)
                found = interleave(alive, rounds, left_out, what="time", fill=0.03)
                ask_all(alive, left_out, what="stop")
                figure = "%s, %s" % (work.title, peers.with_threads(threads))
                row = Best().row(figure, found, alive, None)
                outcome.rows.append(row)
                outcome.leave_out(figure, left_out)
                print(row.progress, flush=True)
        finally:
            for worker in workers:
                worker.close()
    return outcome
