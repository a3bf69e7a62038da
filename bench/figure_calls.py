# SPDX-License-Identifier: Apache-2.0
"""What a call costs: Session.run of a one-op graph, and of a chain of 1,000 tiny ops; one op at
once; a queue's element in and out, in runs of their own and in batches."""

import sys

import peers
from harness import Absent, Outcome, Row, Worker, interleave

FIGURES = (("one op", "Session.run of a one-op graph, ndarray in and out", 1e6, "µs", 3.0),
           ("chain", "Session.run of a chain of 1,000 tiny ops", 1e3, "ms", 0.25),
           ("execute", "immediate execution of one op, tensors in and out", 1e6, "µs", 0.6),
           ("queue", "Session.run of an enqueue and of a dequeue of a scalar", 1e6, "µs", 5.0),
           ("queue of many", "enqueue_many and dequeue_many of 1,000 scalars", 1e3, "ms", 0.3))
WITHOUT_PEERS = ("queue", "queue of many")  # torch has none


def measure(rounds: int) -> Outcome:
    outcome = Outcome()
    workers = [Worker("treenail", "calls_treenail.py", [], sys.executable)]
    try:
        workers += peers.torch_workers("calls_torch.py", [], 1)[:1]  # no BLAS is involved
    except Absent as absent:
        outcome.skipped.append(str(absent))
    try:
        for what, figure, scale, unit, limit in FIGURES:
            asked = workers[:1] if what in WITHOUT_PEERS else workers
            found = interleave(asked, rounds, what=what)
            row = Row(figure, found.pop("treenail") * scale, unit, limit)
            for name, seconds in found.items():
                row.peer, row.peer_name = seconds * scale, name.split(",")[0] + ", eager"
            outcome.rows.append(row)
    finally:
        for worker in workers:
            worker.close()
    return outcome
