#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on handwritten digits and says how well it reads the ones it has never
seen.

    python3 smoke/train.py mlp                       UCI digits, a perceptron
    python3 smoke/train.py cnn --data ~/mnist        MNIST in its IDX files, a convolutional network
    python3 smoke/train.py cnn --checkpoint-dir run  interrupt it, then go on with --resume

Exit status: 0, the accuracy reached what is needed; 1, it did not; 2, bad arguments or data; 130,
interrupted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def parse(arguments: list | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("network", choices=["mlp", "cnn"])
    parser.add_argument("--data", default="digits", metavar="DIR", help="a directory with the four "
                        "IDX files of MNIST; default: the UCI digits beside this file")
    parser.add_argument("--steps", type=int,
                        help="training steps in all; default: 600 (mlp), 400 (cnn)")
    parser.add_argument("--batch", type=int, default=64, help="images per step [64]")
    parser.add_argument("--learning-rate", type=float, default=0.002, help="of Adam [0.002]")
    parser.add_argument("--seed", type=int, default=1,
                        help="of initial values and of the order of images [1]")
    parser.add_argument("--threads", type=int,
                        help="threads that work on one operation; default: as many as there are "
                        "CPUs")
    parser.add_argument("--device", default="", metavar="NAME",
                        help="what runs the network, such as /device:GPU:0 [the CPU]")
    parser.add_argument("--checkpoint-dir", metavar="DIR", help="where checkpoints are written")
    parser.add_argument("--checkpoint-every", type=int, default=100, metavar="N",
                        help="steps between checkpoints [100]")
    parser.add_argument("--resume", action="store_true",
                        help="go on from the latest checkpoint in --checkpoint-dir")
    parser.add_argument("--evaluate", action="store_true", help="no training: the test accuracy of "
                        "the latest checkpoint in --checkpoint-dir")
    parser.add_argument("--needed", type=float,
                        help="test accuracy below which the exit status is 1; "
                        "default for the UCI digits: 0.95 (mlp), 0.965 (cnn)")
    parser.add_argument("--report", metavar="FILE",
                        help="write accuracy, losses and a digest of the variables as JSON")
    parser.add_argument("--quiet", action="store_true", help="show the result alone")
    options = parser.parse_args(arguments)
    if (options.resume or options.evaluate) and not options.checkpoint_dir:
        parser.error("--resume and --evaluate need --checkpoint-dir")
    for name in ("steps", "threads", "batch", "checkpoint_every"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            parser.error("--%s must be at least 1" % name.replace("_", "-"))
    return options


def digest(session, variables: list) -> str:
    """A checksum over the bits of all variables, in the order of their names."""
    total = hashlib.sha256()
    for variable in sorted(variables, key=lambda v: v.name):
        total.update(variable.name.encode() + session.run(variable).tobytes())
    return total.hexdigest()


class Training:
    """One training from its options to its report."""

    def __init__(self, options: argparse.Namespace) -> None:
        import dataset
        import models
        import treenail as tn
        self.tn, self.options = tn, options
        self.data = dataset.load(options.data)
        if options.batch > len(self.data.train_labels):
            raise dataset.DataError("--batch %d is more than the %d images there are"
                                    % (options.batch, len(self.data.train_labels)))
        self.steps = options.steps or models.STEPS[options.network]
        self.needed = options.needed
        if self.needed is None:
            usual = options.data == "digits" and self.steps >= models.STEPS[options.network]
            self.needed = models.NEEDED[options.network] if usual else 0.0
        self.network = models.Network(options.network, self.data.shape, self.data.classes,
                                      options.seed, options.learning_rate, options.device)
        self.losses: list = []

    def run(self) -> int:
        """Trains and reports; the exit status."""
        tn, options = self.tn, self.options
        # What the device has no kernel for runs on the CPU.
        config = tn.ConfigProto(intra_op_parallelism_threads=options.threads or 0,
                                allow_soft_placement=bool(options.device))
        with tn.Session(graph=self.network.graph, config=config) as session:
            begin = self.prepare(session)
            if not options.evaluate:
                try:
                    self.train(session, begin)
                except KeyboardInterrupt:
                    self.interrupted(session)
                    return 130
            accuracy = self.network.accuracy(session, self.data.test_images, self.data.test_labels)
            self.report(session, accuracy)
        return 0 if accuracy >= self.needed else 1

    def prepare(self, session) -> int:
        """Initial values, or those of a checkpoint; the step to begin with."""
        options, tn = self.options, self.tn
        directory = options.checkpoint_dir
        latest = tn.train.latest_checkpoint(directory) if directory else None
        if (options.resume or options.evaluate) and latest:
            self.network.saver.restore(session, latest)
            state = tn.train.get_checkpoint_state(options.checkpoint_dir)
            self.network.saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
            step = int(session.run(self.network.step))
            if not options.quiet:
                print("%s: %d steps done" % (latest, step), flush=True)
            return step
        if options.evaluate:
            raise FileNotFoundError("%s holds no checkpoint" % options.checkpoint_dir)
        session.run(self.network.initialize)
        return 0

    def train(self, session, begin: int) -> None:
        """The steps, with a checkpoint every now and then."""
        from terminal import ProgressBar
        options, network = self.options, self.network
        bar = ProgressBar(self.steps, options.network, options.quiet)
        try:
            for step in range(begin, self.steps):
                images, labels = self.data.batch(step, options.batch, options.seed)
                loss, _ = session.run([network.loss, network.train],
                                      {network.images: images, network.labels: labels})
                self.losses.append(float(loss))
                bar.update(step + 1, self.losses[-1])
                if options.checkpoint_dir and ((step + 1) % options.checkpoint_every == 0 or step
                                               + 1 == self.steps):
                    self.save(session, step + 1)
        except KeyboardInterrupt:
            bar.close()
            raise

    def save(self, session, step: int) -> None:
        """Writes a checkpoint."""
        os.makedirs(self.options.checkpoint_dir, exist_ok=True)
        self.network.saver.save(session, os.path.join(self.options.checkpoint_dir, "model"),
                                global_step=step)

    def interrupted(self, session) -> None:
        """Says how to go on."""
        directory = self.options.checkpoint_dir
        print("interrupted after step %d" % int(session.run(self.network.step)))
        if directory:
            print("go on with: train.py %s --checkpoint-dir %s --resume"
                  % (self.options.network, directory), flush=True)

    def report(self, session, accuracy: float) -> None:
        """Curve, libraries and accuracy for a person; a JSON file for a program."""
        import libraries
        from terminal import curve
        options, info = self.options, self.tn.build_info()
        if not options.quiet:
            if self.losses:
                print(curve(self.losses))
            print("kernels of level %s, %d threads; loaded by this process:"
                  % (info["kernel_level"], info["num_threads"]))
            print(libraries.describe())
        verdict = "" if not self.needed else ", needed %.4f: %s" % (
            self.needed, "reached" if accuracy >= self.needed else "NOT REACHED")
        print("%s on %s: test accuracy %.4f (%d images%s)"
              % (options.network, self.data.name, accuracy, len(self.data.test_labels), verdict),
              flush=True)
        if options.report:
            with open(options.report, "w", encoding="utf-8") as stream:
                json.dump({"network": options.network, "accuracy": accuracy, "needed": self.needed,
                           "steps": int(session.run(self.network.step)), "losses": self.losses,
                           "digest": digest(session, self.network.variables),
                           "kernel_level": info["kernel_level"],
                           "num_threads": info["num_threads"],
                           "libraries": libraries.loaded()}, stream, indent=1)


def main(arguments: list | None = None) -> int:
    """Runs one training; the exit status."""
    options = parse(arguments)
    import dataset
    try:
        return Training(options).run()
    except (dataset.DataError, FileNotFoundError) as error:
        print("train.py: %s" % error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main())
