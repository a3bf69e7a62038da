# SPDX-License-Identifier: Apache-2.0
"""Single operations (workers/works.py) against torch, and the guests from PyPI that were asked for,
at 1 and at 2 threads: the result is fresh."""

import os
import sys
from typing import List

import peers
import pypi
from harness import BENCH, Best, Outcome, Worker, ask_all, hold_together, interleave

sys.path.insert(0, os.path.join(BENCH, "workers"))
import works  # noqa: E402

TOLERANCE = 1e-3  # of the sums over a result, in float32 and by other algorithms


def start(work: works.Work, workers: List[Worker], left_out: List[str]) -> None:
    """Raises where frameworks do not compute the same; guests that cannot leave the list."""
    answers = ask_all(workers, left_out, what="start", title=work.title)
    for worker in list(workers):
        if "absent" in answers[worker.name]:  # the framework has nothing of this kind
            workers.remove(worker)
    digests = {worker.name: answers[worker.name]["digests"] for worker in workers}
    hold_together(workers, "sums of the result", digests, TOLERANCE, 1.0, left_out)


def measure(rounds: int, guests: pypi.Guests = pypi.NOBODY) -> Outcome:
    outcome = Outcome()
    best = {work.title: Best() for work in works.WORKS}
    for threads in (1, 2):
        started = [Worker("treenail", "works_treenail.py", [str(threads)], cpus=threads)]
        try:
            started += peers.all_of("works", [], threads, guests, outcome)
            for work in works.WORKS:
                left_out: List[str] = []
                alive = [worker for worker in started if worker.alive]
                workers = list(alive)
                start(work, workers, left_out)
                found = interleave(workers, rounds, left_out, what="time", fill=0.1)
                ask_all([worker for worker in alive if worker.alive], left_out, what="stop")
                figure = "%s, %s" % (work.title, peers.with_threads(threads))
                row = best[work.title].row(figure, found, workers,
                                           work.wanted(threads, bool(guests.interpreters)))
                outcome.rows.append(row)
                outcome.leave_out(figure, left_out)
                print(row.progress, flush=True)
        finally:
            for worker in started:
                worker.close()
    return outcome
