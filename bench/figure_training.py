# SPDX-License-Identifier: Apache-2.0
"""A training step of an MLP and of a LeNet-like CNN, batch 64, against torch at 1 and at 2 threads.

Both frameworks begin with the same weights and data and must agree on the first losses: so they do
the same work. torch counts with its best BLAS; at two threads also with one, where that is faster.
"""

import sys
from typing import Dict, List

import peers
from harness import Absent, Outcome, Row, Worker, interleave

STEPS = 5
TOLERANCE = 2e-3  # of the loss after a few steps in float32, summed in another order
NAMES = {"mlp": "MLP 784-512-512-10, batch 64, training step",
         "cnn": "LeNet-like CNN, batch 64, 28x28, training step"}


def check_agreement(workers: List[Worker]) -> None:
    answers = {worker.name: worker.ask(what="losses", steps=STEPS)["losses"] for worker in workers}
    reference = answers[workers[0].name]
    for name, losses in answers.items():
        for ours, theirs in zip(reference, losses):
            if abs(ours - theirs) > TOLERANCE * max(1.0, abs(ours)):
                raise RuntimeError("%s and %s do not compute the same: losses %s and %s" % (
                    workers[0].name, name, reference, losses))


def measure_network(network: str, rounds: int, outcome: Outcome) -> None:
    single: Dict[str, float] = {}
    for threads in (1, 2):
        workers = [Worker("treenail", "training_treenail.py", [network, str(threads)],
                          sys.executable, cpus=threads)]
        try:
            workers += peers.torch_workers("training_torch.py", [network], threads)
        except Absent as absent:
            outcome.skipped.append(str(absent))
        try:
            check_agreement(workers)
            found = interleave(workers, rounds, what="step", fill=0.2)
        finally:
            for worker in workers:
                worker.close()
        ours = found.pop("treenail") * 1e3
        candidates = {**found, **single}
        single = found
        row = Row("%s, %d thread%s" % (NAMES[network], threads, "s" if threads > 1 else ""), ours,
                  "ms", beat=True)
        if candidates:
            row.peer_name = min(candidates, key=lambda name: candidates[name])
            row.peer = candidates[row.peer_name] * 1e3
        outcome.rows.append(row)


def measure(rounds: int) -> Outcome:
    outcome = Outcome()
    for network in ("mlp", "cnn"):
        measure_network(network, rounds, outcome)
    return outcome
