# SPDX-License-Identifier: Apache-2.0
"""Training steps of a recurrent cell in a loop of the graph (dynamic_rnn over a cell without an op
of its own), against the unrolled graph and torch's cell in a loop of Python, at 1 and at 2 threads.

All begin with the same weights and data and must agree on the first losses.
"""

import os
import sys
from typing import List

import peers
import pypi
from harness import BENCH, Best, Outcome, Row, Worker, ask_all, hold_together, interleave

sys.path.insert(0, os.path.join(BENCH, "workers"))
import loop  # noqa: E402

STEPS = 5
TOLERANCE = 2e-3  # of losses, in float32 and summed in another order
# How many times faster than the peer is promised: at most 1.3 and 1.15 times its time.
UNROLLED, TORCH = 0.77, 0.87


def ours(form: str, threads: int) -> Worker:
    name = {"loop": "treenail", "unrolled": "the same, unrolled"}[form]
    return Worker(name, "loop_treenail.py", [form, str(threads)], sys.executable, cpus=threads)


def only_torch(guests: pypi.Guests) -> pypi.Guests:
    """Others have no worker here."""
    return pypi.Guests({name: path for name, path in guests.interpreters.items()
                        if name == "torch"}, guests.missing)


def rows(figure: str, workers: List[Worker], rounds: int, left_out: List[str],
         best: List[Best]) -> List[Row]:
    """Beside the unrolled graph, and beside torch; `best`, one for each, remember other threads."""
    answers = ask_all(workers, left_out, what="losses", steps=STEPS)
    losses = {name: answer["losses"] for name, answer in answers.items()}
    hold_together(workers, "losses", losses, TOLERANCE, 1.0, left_out)
    found = interleave(workers, rounds, left_out, what="train", fill=0.2)
    looped, unrolled, *others = workers

    def beside(some: List[Worker], so_far: Best, promised: float) -> Row:
        return so_far.row(figure, {w.name: found[w.name] for w in some}, some, promised)
    made = [beside([looped, unrolled], best[0], UNROLLED)]
    return made + ([beside([looped, *others], best[1], TORCH)] if others else [])


def measure(rounds: int, guests: pypi.Guests = pypi.NOBODY) -> Outcome:
    outcome, best = Outcome(), [Best(), Best()]
    for threads in (1, 2):
        figure = "%s: a training step, %s" % (loop.TITLE, peers.with_threads(threads))
        left_out: List[str] = []
        workers = [ours("loop", threads), ours("unrolled", threads)]
        workers += peers.all_of("loop", [], threads, only_torch(guests), outcome, figure,
                                training=True)
        started = list(workers)
        try:
            made = rows(figure, workers, rounds, left_out, best)
            print("\n".join(row.progress for row in made), flush=True)
            outcome.rows += made
        finally:
            for worker in started:
                worker.close()
        outcome.leave_out(figure, left_out)
    return outcome
