# SPDX-License-Identifier: Apache-2.0
"""What a call costs with immediate execution, without and with a tape, beside torch's; calls of
tn.function; and a training step written three ways."""

import sys
from typing import Dict, List

import peers
import pypi
from figure_loops import only_torch
from harness import Outcome, Row, Worker, interleave

# (what, figure, at most so many µs, at most so many with a tape)
CALLS = (("add", "a + b of two scalars", 0.25, 0.45),
         ("number", "a + 1.0", 0.45, 0.75),
         ("matmul", "matmul of 1x1", 0.45, 0.75),
         ("sum", "reduce_sum of 3", 0.45, 0.75),
         ("reshape", "reshape of 3", 0.45, 0.75),
         ("index", "x[0] of 2x2", 0.45, 0.75),
         ("read", "the value of a variable", 0.45, 0.75))


def microseconds(figure: str, found: Dict[str, float], limit: float) -> Row:
    row = Row(figure, found.pop("treenail") * 1e6, "µs", limit)
    row.beside({name: seconds * 1e6 for name, seconds in found.items()})
    return row


def single_calls(workers: List[Worker], rounds: int) -> List[Row]:
    rows = []
    for what, figure, plain, taped in CALLS:
        for form, limit in (("", plain), (", with a tape", taped)):
            found = interleave(workers, rounds, what=what + form)
            rows.append(microseconds(figure + form, found, limit))
    rows.append(microseconds("backward, per op, of 1,000 products and sums of scalars",
                             interleave(workers, rounds, what="backward"), 0.8))
    rows.append(microseconds("a call of tn.function of one op",
                             interleave(workers[:1], rounds, what="function"), 3.0))
    return rows


def steps(workers: List[Worker], rounds: int) -> List[Row]:
    """Of the same network by a graph, by tn.function and at once."""
    found = {form: interleave(workers if form == "eager" else workers[:1], rounds,
                              what="step, " + form) for form in ("graph", "function", "eager")}
    ours = {form: of.pop("treenail") * 1e3 for form, of in found.items()}
    eager = Row("a training step of an MLP, 784-256-256-10, batch 64, at once", ours["eager"], "ms",
                wanted=1.0)
    eager.beside({name: seconds * 1e3 for name, seconds in found["eager"].items()})
    function = Row("the same by tn.function", ours["function"], "ms", wanted=0.97,
                   peer=ours["graph"], peer_name="the graph's in a session")
    return [eager, function]


def measure(rounds: int, guests: pypi.Guests = pypi.NOBODY) -> Outcome:
    outcome = Outcome()
    workers = [Worker("treenail", "immediate_treenail.py", ["1"], sys.executable, cpus=1)]
    workers += peers.all_of("immediate", [], 1, only_torch(guests), outcome)
    try:
        outcome.rows += single_calls(workers, rounds) + steps(workers, rounds)
        print("\n".join(row.progress for row in outcome.rows), flush=True)
    finally:
        for worker in workers:
            worker.close()
    return outcome
