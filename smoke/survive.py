#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a perceptron on handwritten digits in a MonitoredTrainingSession that is killed (SIGKILL)
again and again, and goes on each time; shows that it ends with the very bits of a training that was
left alone.

    python3 smoke/survive.py                 600 steps, killed 3 times
    python3 smoke/survive.py --train run     one training in this directory; interrupt it, and go on

Exit status: 0, the same bits, and the accuracy is reached; 1, not so.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

BATCH, SEED, LONGEST = 64, 1, 120.0  # images, of everything random, seconds


def network(tn) -> tuple:
    """(images, labels, loss, hits, training step, global step) in the default graph."""
    tn.set_random_seed(SEED)
    images = tn.placeholder(tn.float32, [None, 8, 8, 1])
    labels = tn.placeholder(tn.int64, [None])
    hidden = tn.layers.dense(tn.reshape(images, [-1, 64]), 64, activation=tn.nn.relu)
    logits = tn.layers.dense(hidden, 10)
    loss = tn.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    hits = tn.reduce_mean(tn.cast(tn.equal(tn.argmax(logits, 1), labels), tn.float32))
    step = tn.train.get_or_create_global_step()
    return images, labels, loss, hits, tn.train.AdamOptimizer(0.005).minimize(loss, step), step


def train(directory: str, steps: int, every: int) -> None:
    """Trains up to so many steps, and prints the step at which it begins, the accuracy, and a
    digest of all variables."""
    import dataset
    import treenail as tn
    data = dataset.load_digits()
    images, labels, loss, hits, descend, step = network(tn)
    variables = sorted(tn.global_variables(), key=lambda v: v.name)

    def one(step_context) -> None:
        # The batch belongs to the step: a step that is done again is the same.
        number = int(step_context.session.run(step))
        batch = dict(zip((images, labels), data.batch(number, BATCH, SEED)))
        step_context.run_with_hooks(descend, batch)
    test = {images: data.test_images, labels: data.test_labels}
    final = tn.train.FinalOpsHook([hits, variables], test)
    hooks = [tn.train.StopAtStepHook(last_step=steps), tn.train.NanTensorHook(loss), final,
             tn.train.StopAtSignalHook()]
    if sys.stderr.isatty():
        hooks.append(tn.train.ProgressBarHook(steps, {"loss": loss}))
    with tn.train.MonitoredTrainingSession(checkpoint_dir=directory, save_checkpoint_steps=every,
                                           save_summaries_steps=None, log_step_count_steps=None,
                                           hooks=hooks) as session:
        print("begins at step %d" % session.run_step_fn(
            lambda step_context: step_context.session.run(step)), flush=True)
        while not session.should_stop():
            session.run_step_fn(one)
    accuracy, values = final.final_ops_values
    digest = hashlib.sha256(b"".join(value.tobytes() for value in values)).hexdigest()
    print("accuracy %.4f digest %s" % (accuracy, digest), flush=True)


def begin(directory: str, options: argparse.Namespace) -> subprocess.Popen:
    """A training in a process of its own."""
    line = [sys.executable, os.path.abspath(__file__), "--train", directory, "--steps",
            str(options.steps), "--every", str(options.every)]
    return subprocess.Popen(line, stdout=subprocess.PIPE, text=True)


def killed(directory: str, options: argparse.Namespace, number: int) -> str:
    """Begins a training and kills it once it has saved so much; what it printed."""
    process = begin(directory, options)
    wanted = options.steps * number // (options.kills + 1)
    limit = time.monotonic() + LONGEST
    while process.poll() is None and time.monotonic() < limit:
        if any(int(name.rpartition("-")[2]) >= wanted for name in os.listdir(directory)
               if name.startswith("model.ckpt-") and name.rpartition("-")[2].isdigit()):
            break
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    return process.communicate(timeout=LONGEST)[0].splitlines()[0]


def main() -> int:
    """Shows what the page says; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--steps", type=int, default=600, help="training steps in all [600]")
    parser.add_argument("--every", type=int, default=20, help="steps between checkpoints [20]")
    parser.add_argument("--kills", type=int, default=3, help="how often it is killed [3]")
    parser.add_argument("--train", metavar="DIR", help="only train, with checkpoints in DIR")
    options = parser.parse_args()
    if options.train:
        train(options.train, options.steps, options.every)
        return 0
    with tempfile.TemporaryDirectory(prefix="treenail-survive-") as directory:
        alone, often = [os.path.join(directory, name) for name in ("alone", "often")]
        os.mkdir(alone), os.mkdir(often)
        wanted = begin(alone, options).communicate(timeout=LONGEST)[0].splitlines()[-1]
        print("left alone: %s" % wanted)
        for number in range(1, options.kills + 1):
            print("%s, killed" % killed(often, options, number))
        last = begin(often, options).communicate(timeout=LONGEST)[0].splitlines()
        print("%s, ends: %s" % (last[0], last[-1]))
    went_on = options.kills == 0 or int(last[0].split()[-1]) > 0
    reached = float(wanted.split()[1]) >= 0.95 or options.steps < 600
    same = wanted == last[-1]
    print("the same bits: %s; went on from checkpoints: %s; accuracy reached: %s"
          % (same, went_on, reached))
    return 0 if same and went_on and reached else 1


if __name__ == "__main__":
    sys.exit(main())
