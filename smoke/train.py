#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train a small network on handwritten digits and say how well it does on held-out ones.

Runs from a build tree (build/python3 smoke/train.py mlp) and against an installed Treenail alike.
Exit status: 0 when the required accuracy is reached, 1 when it is not, 2 for wrong arguments or data,
130 when interrupted (a checkpoint is written first if --checkpoint-dir is given).
"""

import argparse
import hashlib
import json
import os
import sys
import time
from typing import Any, Dict, List, Tuple

import numpy as np

import datasets
import display
import networks
import treenail as tn


def parse(arguments: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", choices=sorted(networks.MODELS), help="which network to train")
    parser.add_argument("--data", metavar="DIR", help="folder with MNIST's four IDX files (default: the digits "
                        "shipped with Treenail)")
    parser.add_argument("--epochs", type=int, default=40, help="times through the training data (%(default)s)")
    parser.add_argument("--batch-size", type=int, default=32, help="images per step (%(default)s)")
    parser.add_argument("--learning-rate", type=float, default=1e-3, help="of Adam (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of weights and of the order of images (%(default)s)")
    parser.add_argument("--threads", type=int, help="threads to use (default: Treenail's choice)")
    parser.add_argument("--checkpoint-dir", metavar="DIR", help="write checkpoints there, one per 10 epochs and at "
                        "the end")
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint")
    parser.add_argument("--evaluate", action="store_true", help="only test the newest checkpoint")
    parser.add_argument("--required-accuracy", type=float, help="fail below this (default on the shipped digits: "
                        "%s; else none)" % networks.REQUIRED_ACCURACY)
    parser.add_argument("--result", metavar="FILE", help="write the outcome as JSON")
    options = parser.parse_args(arguments)
    if (options.resume or options.evaluate) and not options.checkpoint_dir:
        parser.error("--resume and --evaluate need --checkpoint-dir")
    for name in ("epochs", "batch_size"):
        if getattr(options, name) < 1:
            parser.error("--%s must be at least 1" % name.replace("_", "-"))
    return options


def load(options: argparse.Namespace) -> datasets.Dataset:
    return datasets.load_mnist(options.data) if options.data else datasets.load_digits()


def accuracy(session: Any, net: networks.Network, data: datasets.Dataset, batch: int = 500) -> float:
    hits = 0
    for begin in range(0, len(data.test_labels), batch):
        hits += int(session.run(net.correct, {net.images: data.test_images[begin:begin + batch],
                                              net.labels: data.test_labels[begin:begin + batch]}))
    return hits / len(data.test_labels)


def digest(session: Any) -> str:
    """SHA-256 over names and bytes of all variables: equal exactly when training gave the same bits."""
    sha = hashlib.sha256()
    variables = sorted(tn.global_variables(), key=lambda v: v.name)
    for variable, value in zip(variables, session.run(variables)):
        sha.update(variable.name.encode())
        sha.update(np.ascontiguousarray(value).tobytes())
    return sha.hexdigest()


class Training:
    """A run through all epochs. The order of images depends on seed and epoch alone, so that a resumed
    training sees the same batches as one that was never interrupted."""

    def __init__(self, options: argparse.Namespace, data: datasets.Dataset, net: networks.Network,
                 session: Any) -> None:
        self._options, self._data, self._net, self._session = options, data, net, session
        self._per_epoch = max(len(data.train_labels) // options.batch_size, 1)
        self.losses: List[float] = []

    @property
    def steps(self) -> int:
        return self._per_epoch * self._options.epochs

    def save(self) -> None:
        if self._options.checkpoint_dir:
            os.makedirs(self._options.checkpoint_dir, exist_ok=True)
            path = os.path.join(self._options.checkpoint_dir, "model.ckpt")
            self._net.saver.save(self._session, path, global_step=self._net.global_step)

    def run(self) -> None:
        step = int(self._session.run(self._net.global_step))
        progress = display.Progress(self.steps)
        try:
            while step < self.steps:
                epoch, within = divmod(step, self._per_epoch)
                order = np.random.RandomState(self._options.seed * 100003 + epoch).permutation(
                    len(self._data.train_labels))
                for batch in range(within, self._per_epoch):
                    self._step(order[batch * self._options.batch_size:(batch + 1) * self._options.batch_size])
                    step += 1
                    progress.show(step, "step %d of %d, loss %.4f" % (step, self.steps, self.losses[-1]))
                if (epoch + 1) % 10 == 0:
                    self.save()
        finally:
            progress.end()
        self.save()

    def _step(self, rows: np.ndarray) -> None:
        _, loss = self._session.run([self._net.train, self._net.loss],
                                    {self._net.images: self._data.train_images[rows],
                                     self._net.labels: self._data.train_labels[rows]})
        self.losses.append(float(loss))


def restore(session: Any, net: networks.Network, directory: str) -> None:
    newest = tn.train.latest_checkpoint(directory)
    if newest is None:
        raise datasets.DataError("there is no checkpoint in %s" % directory)
    net.saver.restore(session, newest)


def train(options: argparse.Namespace) -> Tuple[float, Dict[str, Any]]:
    data = load(options)
    net = networks.build(options.model, data.train_images.shape[1:], options.learning_rate, options.seed)
    config = tn.ConfigProto(intra_op_parallelism_threads=options.threads or 0)
    begin = time.monotonic()
    with tn.Session(config=config) as session:
        session.run(net.init)
        if options.resume or options.evaluate:
            restore(session, net, options.checkpoint_dir)
        training = Training(options, data, net, session)
        if not options.evaluate:
            print("Training the %s on %d images of %s, %d steps of %d" % (
                options.model, len(data.train_labels), data.name, training.steps, options.batch_size))
            try:
                training.run()
            except KeyboardInterrupt:
                training.save()
                print("Interrupted at step %d%s" % (
                    session.run(net.global_step),
                    "; go on with --resume" if options.checkpoint_dir else ""))
                raise
        reached = accuracy(session, net, data)
        result = {"model": options.model, "accuracy": reached, "digest": digest(session),
                  "steps": int(session.run(net.global_step)), "seconds": round(time.monotonic() - begin, 2),
                  "losses": training.losses[-5:], "libraries": display.loaded_libraries()}
    if training.losses:
        print("Loss")
        print("\n".join(display.curve(training.losses)))
    print("Test accuracy of the %s: %.4f on %d held-out images" % (options.model, reached, len(data.test_labels)))
    print("Loaded: " + "; ".join("%s %s" % item for item in result["libraries"].items()))
    return reached, result


def main(arguments: List[str]) -> int:
    options = parse(arguments)
    required = options.required_accuracy
    if required is None:
        required = 0.0 if options.data else networks.REQUIRED_ACCURACY[options.model]
    try:
        reached, result = train(options)
    except KeyboardInterrupt:
        return 130
    except (datasets.DataError, tn.errors.OpError) as error:
        print("train.py: %s" % error, file=sys.stderr)
        return 2
    if options.result:
        partial = options.result + ".part"
        with open(partial, "w", encoding="utf-8") as out:
            json.dump(result, out, indent=1)
            out.write("\n")
        os.replace(partial, options.result)
    if reached < required:
        print("train.py: the accuracy %.4f is below the required %.4f" % (reached, required), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
