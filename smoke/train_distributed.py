#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a network on handwritten digits with several processes, on one machine or many: each takes
its part of every batch, and gradients are averaged.

    mpirun -n 2 python3 smoke/train_distributed.py mlp
    srun --mpi=pmix -N 2 -n 2 python3 smoke/train_distributed.py cnn --checkpoint-dir run
    python3 smoke/train_distributed.py mlp --alone 2   the same parts in one process: the same bits

With --checkpoint-dir rank 0 saves there, and a training that finds a checkpoint goes on from it: a
launcher ends all processes when one is lost, and the job is started again.

Exit status: 0, the accuracy reached what is needed; 1, it did not; 2, bad arguments or data.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def parse(arguments: list | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("network", choices=["mlp", "cnn"])
    parser.add_argument("--steps", type=int,
                        help="training steps in all; default: 600 (mlp), 400 (cnn)")
    parser.add_argument("--batch", type=int, default=64,
                        help="images per step of all processes together [64]")
    parser.add_argument("--learning-rate", type=float, default=0.002, help="of Adam [0.002]")
    parser.add_argument("--seed", type=int, default=1,
                        help="of initial values and of the order of images [1]")
    parser.add_argument("--alone", type=int, metavar="N",
                        help="no other process: compute the parts of N processes in this one")
    parser.add_argument("--checkpoint-dir", metavar="DIR",
                        help="where checkpoints are written, and read from at the beginning")
    parser.add_argument("--checkpoint-every", type=int, default=100, metavar="N",
                        help="steps between checkpoints [100]")
    parser.add_argument("--report", metavar="FILE", help="write rank, host, accuracy, losses and a "
                        "digest of the variables as JSON; %%d in the name becomes the rank")
    parser.add_argument("--quiet", action="store_true", help="show the result alone")
    options = parser.parse_args(arguments)
    for name in ("steps", "batch", "alone", "checkpoint_every"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            parser.error("--%s must be at least 1" % name.replace("_", "-"))
    return options


class Place:
    """Which parts of the batch are this process's: all of them, or its rank's."""

    def __init__(self, tn, alone: int | None) -> None:
        self.together = alone is None
        if self.together:
            tn.distributed.init()
            self.rank, self.size = tn.distributed.rank(), tn.distributed.size()
            self.transport = tn.distributed.transport()
        else:
            self.rank, self.size, self.transport = 0, alone, "none"
        self.parts = [self.rank] if self.together else list(range(self.size))


class Part:
    """The network on one part of a batch; all parts share its variables."""

    def __init__(self, tn, kind: str, data, first: bool) -> None:
        import models
        self.images = tn.placeholder(tn.float32, [None, *data.shape, 1])
        self.labels = tn.placeholder(tn.int64, [None])
        with tn.variable_scope("network", reuse=not first):
            logits = models.logits_of(kind, self.images, data.classes)
        self.loss = tn.losses.sparse_softmax_cross_entropy(labels=self.labels, logits=logits)
        self.hits = tn.reduce_mean(tn.cast(tn.equal(tn.argmax(logits, 1), self.labels),
                                           tn.float64))


class Training:
    """One training from its options to its report."""

    def __init__(self, options: argparse.Namespace) -> None:
        import dataset
        import models
        import treenail as tn
        self.tn, self.options, self.data = tn, options, dataset.load_digits()
        self.place = Place(tn, options.alone)
        if options.batch % self.place.size or options.batch > len(self.data.train_labels):
            raise dataset.DataError(
                "--batch %d: needed is a multiple of the %d processes, of at most %d images" % (
                    options.batch, self.place.size, len(self.data.train_labels)))
        usual = models.STEPS[options.network]
        self.steps = options.steps or usual
        self.needed = models.NEEDED[options.network] if self.steps >= usual else 0.0
        tn.set_random_seed(options.seed)
        self.parts = [Part(tn, options.network, self.data, number == 0)
                      for number in range(len(self.place.parts))]
        self.step = tn.train.get_or_create_global_step()
        self.loss, self.descend = self.step_of_all()
        self.variables = sorted(tn.global_variables(), key=lambda v: v.name)
        self.losses: list = []

    def step_of_all(self) -> tuple:
        """(loss, training step) over all parts, wherever they are computed; sums follow the order
        of ranks in either case."""
        tn, losses = self.tn, [part.loss for part in self.parts]
        adam = tn.train.AdamOptimizer(self.options.learning_rate)
        if self.place.together:
            optimizer = tn.distributed.DistributedOptimizer(adam)
            descend = optimizer.minimize(losses[0], global_step=self.step)
            return tn.distributed.all_reduce(losses[0], "mean"), descend
        pairs = [adam.compute_gradients(loss) for loss in losses]
        means = [self.mean([gradient for gradient, _ in same]) for same in zip(*pairs)]
        variables = [variable for _, variable in pairs[0]]
        return self.mean(losses), adam.apply_gradients(zip(means, variables),
                                                       global_step=self.step)

    def mean(self, values: list):
        """Of one value of each part."""
        return functools.reduce(lambda a, b: a + b, values) / float(len(values))

    def feed(self, number: int) -> dict:
        """This process's share of the batch of a step: a step that is done again is the same."""
        images, labels = self.data.batch(number, self.options.batch, self.options.seed)
        size, fed = self.options.batch // self.place.size, {}
        for part, place in zip(self.parts, self.place.parts):
            fed[part.images] = images[size * place:size * (place + 1)]
            fed[part.labels] = labels[size * place:size * (place + 1)]
        return fed

    def run(self) -> int:
        """Trains and reports; the exit status."""
        from terminal import ProgressBar
        tn, options, chief = self.tn, self.options, self.place.rank == 0
        test = {self.parts[0].images: self.data.test_images,
                self.parts[0].labels: self.data.test_labels}
        final = tn.train.FinalOpsHook([self.parts[0].hits, self.variables], test)
        hooks = [tn.train.StopAtStepHook(last_step=self.steps), final]
        if self.place.together:
            hooks.insert(0, tn.distributed.BroadcastVariablesHook())
        bar = ProgressBar(self.steps, options.network, options.quiet or not chief)
        with tn.train.MonitoredTrainingSession(
                checkpoint_dir=options.checkpoint_dir if chief else None,
                save_checkpoint_steps=options.checkpoint_every, save_summaries_steps=None,
                log_step_count_steps=None, hooks=hooks) as session:
            self.train(session, bar)
        return self.report(*final.final_ops_values)

    def train(self, session, bar) -> None:
        """The steps that are left."""
        number = self.began = int(session.run_step_fn(
            lambda step_context: step_context.session.run(self.step)))
        while not session.should_stop():
            loss, _ = session.run([self.loss, self.descend], self.feed(number))
            self.losses.append(float(loss))
            number += 1
            bar.update(number, self.losses[-1])

    def report(self, accuracy: float, values: list) -> int:
        """Says what came out; the exit status."""
        place, info = self.place, self.tn.build_info()
        digest = hashlib.sha256(b"".join(
            variable.name.encode() + value.tobytes()
            for variable, value in zip(self.variables, values))).hexdigest()
        print("rank %d of %d on %s (%s): steps %d to %d, test accuracy %.4f, needed %.4f, digest %s"
              % (place.rank, place.size, socket.gethostname(), place.transport, self.began,
                 self.steps, accuracy, self.needed, digest[:16]), flush=True)
        if self.options.report:
            name = self.options.report.replace("%d", str(place.rank))
            with open(name, "w", encoding="utf-8") as stream:
                json.dump({"network": self.options.network, "rank": place.rank, "size": place.size,
                           "host": socket.gethostname(), "transport": place.transport,
                           "began": self.began, "steps": self.steps, "accuracy": float(accuracy),
                           "needed": self.needed, "losses": self.losses, "digest": digest,
                           "kernel_level": info["kernel_level"],
                           "num_threads": info["num_threads"]}, stream, indent=1)
        return 0 if accuracy >= self.needed else 1


def main(arguments: list | None = None) -> int:
    """Runs one training; the exit status."""
    options = parse(arguments)
    import dataset
    try:
        return Training(options).run()
    except dataset.DataError as error:
        print("train_distributed.py: %s" % error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
