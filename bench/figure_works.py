# SPDX-License-Identifier: Apache-2.0
"""Single operations (workers/works.py) against torch, and the guests from PyPI that were asked for,
at 1 and at 2 threads: the result is fresh."""

import os
import sys
from typing import List, Sequence

import peers
import pypi
from harness import BENCH, Best, Outcome, Worker, ask_all, hold_together, interleave

sys.path.insert(0, os.path.join(BENCH, "workers"))
import works  # noqa: E402

TOLERANCE = 1e-3  # of the sums over a result, in float32 and by other algorithms

# What was measured about figures that miss their promise: on a virtual machine whose neighbours
# come and go (Zen 4, x86-64-v4). "Quiet" figures are the least of runs minutes apart from these.
BOUNDS = {
    "add": "Single element-wise operations: the memory's rate is the bound. Quiet, one thread: add "
           "6.6 ms for 192 MiB, tanh 5.7 and gelu 7.4 for 128. The promises are ratios to peers "
           "whose fresh result is fresh memory (torch, jax: 40 ms and more for add); peers that "
           "reuse memory freed before, as Treenail does, are at the same rate.",
    "chain": "The chain: values stay in vector registers from one operation to the next, as in "
             "XLA; one thread, x86-64-v4, 7.6 ms, 5 of them tanh, which is what it takes from the "
             "cache too (section on fused groups). Two threads are bound by the memory's rate.",
    "sum": "Sum: 64 MiB are read at the memory's rate, by torch too (quiet: 1.5 ms, one thread).",
    "transpose": "Transpose: quiet 18.5 ms, one thread; it reads and writes by squares of blocks.",
    "matmul": "Products of 1024 and more: see the section on kernels.",
    "convolution 3x3": "Winograd: quiet, one thread, forward and with backward, at 64 channels 6.2 "
                       "and 20.6 ms, 128: 5.4 and 17.7, 256: 6.4 and 21.0, 512: 8.1 and 25.9. Of "
                       "64 channels forward the products are 4.1 ms at the peak, the transforms "
                       "and their way through L2 the rest. At 512 channels 7 pixels are padded to "
                       "8, which makes the products 5.3 ms, and the transformed filters are "
                       "36 MiB, read once a run from beyond L2.",
    "convolution 5x5": "Winograd 5x5: quiet, one thread, 3.6 ms forward and 12.3 with backward; 14 "
                       "pixels are padded to 16.",
    "Cholesky": "Cholesky factors of 8x8 in float64 read and write 98 MiB in 4.6 ms (quiet, one "
                "thread, Zen 5): the memory's rate. Stores bypass the caches where outputs are "
                "larger than these, which spares reading what is overwritten.",
}


def start(work: works.Work, workers: List[Worker], left_out: List[str]) -> None:
    """Raises where frameworks do not compute the same; guests that cannot leave the list."""
    answers = ask_all(workers, left_out, what="start", title=work.title)
    for worker in list(workers):
        if "absent" in answers[worker.name]:  # the framework has nothing of this kind
            workers.remove(worker)
    digests = {worker.name: answers[worker.name]["digests"] for worker in workers}
    hold_together(workers, "sums of the result", digests, TOLERANCE, 1.0, left_out)


def measure(rounds: int, guests: pypi.Guests = pypi.NOBODY,
            wanted: Sequence[works.Work] = tuple(works.WORKS)) -> Outcome:
    outcome = Outcome()
    best = {work.title: Best() for work in wanted}
    for threads in (1, 2):
        started = [Worker("treenail", "works_treenail.py", [str(threads)], cpus=threads)]
        try:
            started += peers.all_of("works", [], threads, guests, outcome)
            for work in wanted:
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
    outcome.explain(BOUNDS)
    return outcome
