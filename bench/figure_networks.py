# SPDX-License-Identifier: Apache-2.0
"""Training steps, inference and peak memory of whole networks (workers/networks.py), against torch,
at 1 and at 2 threads.

All frameworks begin with the same weights and data and must agree on the outputs and on the first
losses: so they do the same work. torch counts with its best BLAS; at two threads also with one,
where that is faster. Guests from PyPI (pypi.py) run beside it when they are asked for.
"""

import os
import statistics
import sys
from typing import Dict, List, Tuple

import peers
import pypi
from harness import (BENCH, Best, Outcome, Row, Worker, ask_all, hold_together, interleave,
                     only_counted)

sys.path.insert(0, os.path.join(BENCH, "workers"))
import networks  # noqa: E402

STEPS = 5
TOLERANCE = 2e-3  # of what is compared, in float32 and summed in another order

# How many times faster than the peer is promised, at 1 and at 2 threads.
PROMISED: Dict[str, Dict[str, Tuple[float, float]]] = {
    "mlp": {"train": (1.1, 1.4), "infer": (0.95, 0.95)},
    "lenet": {"train": (1.8, 1.8), "infer": (1.0, 1.0)},
    "cnn": {"train": (2.2, 2.2), "infer": (1.0, 1.0)},
    "lstm": {"train": (1.35, 1.2), "infer": (1.0, 1.0)},
    "resnet": {"train": (2.3, 2.0), "infer": (1.0, 1.0)},
    "transformer": {"train": (1.05, 1.05), "infer": (1.0, 1.0)},
}

# What was measured about figures that miss their promise.
BOUNDS = {
    "MLP": "MLP: quiet, a training step is 2.05 ms on one thread and 1.13 on two (Zen 4, "
           "x86-64-v4), nearly all of it products at 95 to 102 GFLOP/s of a peak of 116. A weight "
           "packed for good would not help: docs/decisions/prepacked.md.",
    "CNN": "CNN training: quiet 29.0 ms on one thread (Zen 4, x86-64-v4). Dense layers take 13.2, "
           "at 91 to 96 GFLOP/s of a peak of 116, convolutions 14.2, by Winograd's algorithm "
           "but for the first. Updates behind their products save the gradient's memory and no "
           "time. Remain: blocks of whole rows for them, fewer padded points than 16 for 14 in a "
           "Winograd tile row.",
    "ResNet": "ResNet: quiet 37 to 39 ms on one thread, 51 within the same minutes when others use "
              "the caches: activations of 6.4 MB pass L2, where direct convolutions compute four "
              "times as much per byte. Tried: Relu in the sweep of the batch normalisation before "
              "it (no difference).",
    "LSTM": "LSTM: quiet 10.9 ms a training step on one thread, 5.7 on two, of which products are "
            "9.0 at the peak of one thread; inference 4.9 ms, products 3.6.",
    "LeNet": "LeNet: quiet 2.7 ms a training step on one thread, 1.6 on two; inference 0.89 and "
             "0.52. Convolutions take 2.0 of the 2.7: the first 0.36 forward and 0.45 for its "
             "filter, the second 0.28, 0.29 and 0.62 for its input, whose six channels are added "
             "pixel by pixel. Six columns of a tile of eight are used.",
    "transformer": "Transformer: quiet 49.0 ms a training step on one thread, 26.1 on two; most of "
                   "it products of 1024 rows, for which see the section on kernels.",
}


def agree(workers: List[Worker], kind: str, left_out: List[str]) -> None:
    what = "losses" if kind == "train" else "outputs"
    request = {"steps": STEPS} if kind == "train" else {}
    found = ask_all(workers, left_out, what=what, **request)
    answers = {name: answer[what] for name, answer in found.items()}
    scale = max([1.0] + [abs(value) for value in answers[workers[0].name]])
    hold_together(workers, what, answers, TOLERANCE, scale, left_out)


def memory_row(figure: str, workers: List[Worker], left_out: List[str]) -> Row:
    answers = ask_all(workers, left_out, what="memory")
    used = {name: answer["memory"] for name, answer in answers.items()}
    row = Row(figure + ", peak memory over what the import took", used.pop("treenail"), "MiB",
              wanted=1.0)
    row.beside(only_counted(used, workers))
    if any(worker.guest for worker in workers):
        row.everyone = used
    return row


def run_network(network: str, size: int, kind: str, rounds: int, outcome: Outcome,
                guests: pypi.Guests) -> None:
    title = networks.TITLES[network]
    if size:
        title = title.replace("batch %d" % networks.INPUTS[network][0], "batch %d" % size)
    best = Best()
    for threads in (1, 2):
        figure = "%s, %s" % (title, peers.with_threads(threads))
        ours = Worker("treenail", "network_treenail.py", [network, str(size), str(threads)],
                      sys.executable, cpus=threads)
        left_out: List[str] = []
        workers = [ours] + peers.all_of("network", [network, str(size)], threads, guests, outcome,
                                        figure, training=kind == "train")
        started = list(workers)
        try:
            agree(workers, kind, left_out)
            found = interleave(workers, rounds, left_out, what=kind, fill=0.2)
            outcome.rows.append(best.row(figure, found, workers,
                                         PROMISED[network][kind][threads - 1]))
            print(outcome.rows[-1].progress, flush=True)
            if kind == "train":
                outcome.rows.append(memory_row(figure, workers, left_out))
        finally:
            for worker in started:
                worker.close()
        outcome.leave_out(figure, left_out)


def measure_training(rounds: int, guests: pypi.Guests = pypi.NOBODY) -> Outcome:
    outcome = Outcome()
    for network in PROMISED:
        run_network(network, 0, "train", rounds, outcome, guests)
    outcome.explain(BOUNDS)
    return outcome


def measure_inference(rounds: int, guests: pypi.Guests = pypi.NOBODY) -> Outcome:
    outcome = Outcome()
    run_network("mlp", 1, "infer", rounds, outcome, guests)
    for network in PROMISED:
        run_network(network, 0, "infer", rounds, outcome, guests)
    ratios = [row.ratio for row in outcome.rows if row.ratio is not None]
    if ratios:
        outcome.notes.append("Geometric mean of the ratios: %.2f (1.4 is promised)."
                             % statistics.geometric_mean(ratios))
    return outcome
