# SPDX-License-Identifier: Apache-2.0
"""Two sessions run from two threads against one on one thread: what a server with a session per
thread gains by the second processor. At least 1.8 times the throughput is promised, where both
processors are free.
"""

import statistics
import sys
from typing import Dict, List

import peers
from harness import Outcome, Row, Worker

PROMISED = 1.8


def measure(rounds: int) -> Outcome:
    outcome = Outcome()
    found: Dict[int, List[float]] = {1: [], 2: []}
    workers = {callers: Worker("treenail", "callers_treenail.py", [str(callers)], sys.executable,
                               cpus=callers) for callers in found}
    try:
        for turn in range(rounds + 1):  # the first round warms up
            for callers, worker in workers.items():
                seconds = worker.ask(callers=callers, fill=0.2)["seconds"]
                if turn > 0:
                    found[callers].append(seconds)
    finally:
        for worker in workers.values():
            worker.close()
    row = Row("MLP 784-512-512-10, batch 1: a run, two sessions from two threads",
              statistics.median(found[2]) * 1e6, "µs", wanted=PROMISED)
    row.beside({"one session, %s" % peers.with_threads(1): statistics.median(found[1]) * 1e6})
    outcome.rows.append(row)
    return outcome
