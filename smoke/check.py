#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The smoke test: trains both networks and checks what a user relies on. Exit status 0 when
everything holds.

    build/python3 smoke/check.py                  the module of the build tree
    /usr/bin/python3 smoke/check.py               an installed one

Checked: the test accuracy is reached; another process gets the same accuracy from the checkpoint; a
training stopped by SIGINT, and one killed by SIGKILL, resume to the same variables, bit for bit; 1,
2, 3 and 8 threads give the same bits; the file is HDF5 that h5py reads (where h5py is installed).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TRAIN = os.path.join(HERE, "train.py")
THREADS = (1, 2, 3, 8)


class Failure(Exception):
    """A property that does not hold."""


def command(*arguments: str) -> list:
    """The command line of train.py with this interpreter."""
    return [sys.executable, TRAIN, *arguments]


def train(directory: str, name: str, *arguments: str, show: bool = False) -> dict:
    """Runs train.py to its end and gives its report."""
    report = os.path.join(directory, name + ".json")
    line = command(*arguments, "--report", report, *([] if show else ["--quiet"]))
    done = subprocess.run(line, stdout=None if show else subprocess.PIPE, stderr=None if show
                          else subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise Failure("%s: exit status %d\n%s"
                      % (" ".join(line[1:]), done.returncode, done.stdout or ""))
    with open(report, encoding="utf-8") as stream:
        return json.load(stream)


def need_equal(what: str, values: dict) -> None:
    """Fails unless all values are the same."""
    if len(set(values.values())) != 1:
        raise Failure("%s differ: %s" % (what,
                                         ", ".join("%s: %s" % (k, str(v)[:16]) for k,
                                                   v in values.items())))


def has_checkpoints() -> bool:
    """Whether this build can write checkpoints: they need HDF5."""
    import treenail
    try:
        return bool(treenail._core.hdf5_version())
    except treenail.errors.UnimplementedError as error:
        print("     no checkpoints, so nothing that needs them is checked: %s" % error)
        return False


def accuracy(directory: str, network: str, checkpoints: bool) -> tuple:
    """The training itself, shown; its report."""
    where = ["--checkpoint-dir", os.path.join(directory, network)] if checkpoints else []
    report = train(directory, network, network, *where, show=True)
    if report["accuracy"] < report["needed"] or report["needed"] <= 0:
        raise Failure("accuracy %.4f, needed %.4f" % (report["accuracy"], report["needed"]))
    return report, "test accuracy %.4f" % report["accuracy"]


def another_process(directory: str, network: str, first: dict) -> str:
    """A checkpoint gives the same accuracy in another process."""
    again = train(directory, network + "-again", network, "--checkpoint-dir",
                  os.path.join(directory, network), "--evaluate")
    need_equal("accuracies", {"training": first["accuracy"], "checkpoint": again["accuracy"]})
    need_equal("variables", {"training": first["digest"], "checkpoint": again["digest"]})
    return "the checkpoint gives %.4f in another process" % again["accuracy"]


def interrupted(directory: str, network: str, first: dict, how: signal.Signals) -> str:
    """A training stopped half-way resumes to the same variables."""
    where = os.path.join(directory, "%s-%s" % (network, how.name))
    line = command(network, "--checkpoint-dir", where, "--checkpoint-every", "20", "--quiet")
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    state = os.path.join(where, "checkpoint")
    limit = time.monotonic() + 120
    while not os.path.exists(state) and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.02)
    if process.poll() is not None:
        raise Failure("the training ended before it could be stopped: %s" % process.stdout.read())
    process.send_signal(how)
    output, _ = process.communicate(timeout=60)
    wanted = 130 if how == signal.SIGINT else -int(how)
    if process.returncode != wanted:
        raise Failure("%s: exit status %d, needed %d\n%s"
                      % (how.name, process.returncode, wanted, output))
    resumed = train(directory, "%s-%s" % (network, how.name), network, "--checkpoint-dir", where,
                    "--resume")
    if len(resumed["losses"]) >= len(first["losses"]):
        raise Failure("%s: the second process began anew" % how.name)
    need_equal("variables", {"uninterrupted": first["digest"], "resumed": resumed["digest"]})
    return "stopped by %s, resumed for the last %d steps: the same bits" % (how.name,
                                                                            len(resumed["losses"]))


def threads(directory: str, network: str) -> str:
    """Any number of threads gives the same bits."""
    steps = "120" if network == "mlp" else "40"
    digests = {}
    for count in THREADS:
        report = train(directory, "%s-%d" % (network, count), network, "--steps", steps,
                       "--threads", str(count))
        digests[count] = report["digest"]
    need_equal("variables after %s steps with so many threads" % steps, digests)
    return "the same bits with %s threads" % ", ".join(map(str, THREADS))


def readable(directory: str, network: str) -> str:
    """h5py reads the checkpoint."""
    try:
        import h5py
    except ImportError:
        return "h5py is not installed: not tried"
    where = os.path.join(directory, network)
    path = sorted(os.path.join(where,
                               name) for name in os.listdir(where) if name.startswith("model-"))[-1]
    names = []
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, item: names.append(name) if isinstance(item,
                                                                            h5py.Dataset) else None)
    if not any(name.endswith("kernel") for name in names):
        raise Failure("h5py finds no kernel in %s: %s" % (path, names))
    return "h5py reads %d tensors from the checkpoint" % len(names)


def check(network: str) -> int:
    """All properties of one network; how many fail."""
    failures = 0
    checkpoints = has_checkpoints()
    with tempfile.TemporaryDirectory(prefix="treenail-smoke-") as directory:
        try:
            first, text = accuracy(directory, network, checkpoints)
        except Failure as failure:
            print("FAIL %s: %s" % (network, failure), flush=True)
            return 1
        print("ok   %s: %s" % (network, text), flush=True)
        properties = [lambda: threads(directory, network)]
        if checkpoints:
            properties += [lambda: another_process(directory, network, first),
                           lambda: interrupted(directory, network, first, signal.SIGINT),
                           lambda: interrupted(directory, network, first, signal.SIGKILL),
                           lambda: readable(directory, network)]
        for prove in properties:
            try:
                print("ok   %s: %s" % (network, prove()), flush=True)
            except Failure as failure:
                failures += 1
                print("FAIL %s: %s" % (network, failure), flush=True)
    return failures


def main() -> int:
    """Checks both networks; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("network", nargs="*", choices=["mlp", "cnn", []], metavar="network",
                        help="mlp or cnn; default: both")
    options = parser.parse_args()
    # What a shell starts in the background ignores SIGINT, and so would the trainings.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    failures = sum(check(network) for network in options.network or ["mlp", "cnn"])
    import treenail
    print("treenail %s from %s" % (treenail.__version__, os.path.dirname(treenail.__file__)))
    print("smoke test: %s" % ("everything holds" if not failures else "%d properties do not hold"
                              % failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
