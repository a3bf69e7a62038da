# SPDX-License-Identifier: Apache-2.0
"""What a call costs with immediate execution, without and with a tape, beside torch's; calls of
tn.function; and training steps written three ways."""

import sys
from typing import Dict, List

import peers
import pypi
from figure_loops import only_torch
from figure_networks import agree, networks
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


def steps(network: str, rounds: int, guests: pypi.Guests, outcome: Outcome) -> List[Row]:
    """Of a network by a graph, by tn.function and at once."""
    figure = "a training step of %s" % networks.TITLES[network]
    forms = [Worker("treenail" + (", " + form) * bool(form), "network_treenail.py",
                    [network, "0", "1"] + [form] * bool(form), sys.executable, cpus=1)
             for form in ("", "function", "eager")]
    left_out: List[str] = []
    workers = forms + peers.all_of("network", [network, "0"], 1, guests, outcome, figure,
                                   training=True)
    started = list(workers)
    try:
        agree(workers, "train", left_out)
        found = {name: seconds * 1e3
                 for name, seconds in interleave(workers, rounds, left_out, what="train",
                                                 fill=0.2).items()}
    finally:
        for worker in started:
            worker.close()
    outcome.leave_out(figure, left_out)
    session, function, at_once = (found.pop(worker.name) for worker in forms)
    eager = Row(figure + ", at once", at_once, "ms", wanted=1.0)
    eager.beside({name: time for name, time in found.items() if "compiled" not in name})
    return [eager, Row(figure + ", by tn.function", function, "ms", wanted=0.97, peer=session,
                       peer_name="the graph's in a session")]


def measure(rounds: int, guests: pypi.Guests = pypi.NOBODY) -> Outcome:
    outcome = Outcome()
    guests = only_torch(guests)
    workers = [Worker("treenail", "immediate_treenail.py", ["1"], sys.executable, cpus=1)]
    workers += peers.all_of("immediate", [], 1, guests, outcome)
    try:
        outcome.rows += single_calls(workers, rounds)
    finally:
        for worker in workers:
            worker.close()
    for network in ("mlp", "cnn", "lstm"):
        outcome.rows += steps(network, rounds, guests, outcome)
    print("\n".join(row.progress for row in outcome.rows), flush=True)
    return outcome
