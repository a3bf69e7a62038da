#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All the smoke tests: both networks learn, and what they learn survives.

For each network: it reaches the required accuracy on held-out digits; another process reads its
checkpoint and gets the same accuracy; a training that was killed resumes to the same bits; 1, 2, 3 and
8 threads give the same bits. Runs train.py with this interpreter, so it tests the Treenail that this
interpreter imports: of a build tree or installed. Exit status 0 when all hold.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, List, Optional

HERE = os.path.dirname(os.path.abspath(__file__))
THREADS = (1, 2, 3, 8)
TIMEOUT_S = 600


class Failed(Exception):
    """A property does not hold; the text says which and what was seen."""


class Checker:
    """Runs trainings in a scratch folder and compares their results."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def _command(self, model: str, *arguments: str) -> List[str]:
        return [sys.executable, os.path.join(HERE, "train.py"), model, *arguments]

    def train(self, model: str, name: str, *arguments: str, show: bool = False) -> Dict[str, Any]:
        result = os.path.join(self._directory, "%s-%s.json" % (model, name))
        output: Optional[int] = None if show else subprocess.PIPE
        done = subprocess.run(self._command(model, "--result", result, *arguments), stdout=output,
                              stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise Failed("%s %s ended with status %d\n%s" % (model, name, done.returncode, done.stdout or ""))
        with open(result, encoding="utf-8") as stream:
            return json.load(stream)

    def checkpoint(self, model: str, name: str) -> str:
        return os.path.join(self._directory, "%s-%s" % (model, name))

    def kill_and_resume(self, model: str, stop: signal.Signals, *arguments: str) -> Dict[str, Any]:
        """Ends a training by a signal after its first checkpoint, then goes on in a new process."""
        directory = self.checkpoint(model, "interrupted")
        process = subprocess.Popen(self._command(model, "--checkpoint-dir", directory, *arguments),
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            deadline = time.monotonic() + TIMEOUT_S
            while not os.path.exists(os.path.join(directory, "checkpoint")):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise Failed("%s wrote no checkpoint: %s" % (model, process.communicate()[0]))
                time.sleep(0.002)
            process.send_signal(stop)
            output = process.communicate(timeout=TIMEOUT_S)[0]
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        expected = 130 if stop == signal.SIGINT else -stop
        if process.returncode not in (expected, 0):
            raise Failed("%s ended with status %d on %s\n%s" % (model, process.returncode, stop.name, output))
        return self.train(model, "resumed", "--checkpoint-dir", directory, "--resume", *arguments)

    def check(self, model: str, stop: signal.Signals) -> None:
        directory = self.checkpoint(model, "whole")
        whole = self.train(model, "whole", "--checkpoint-dir", directory, show=True)
        again = self.train(model, "evaluated", "--checkpoint-dir", directory, "--evaluate")
        same("%s: accuracy read from its checkpoint by another process" % model, again["accuracy"], whole["accuracy"])
        same("%s: weights read from its checkpoint by another process" % model, again["digest"], whole["digest"])
        resumed = self.kill_and_resume(model, stop)
        same("%s: weights after %s and --resume" % (model, stop.name), resumed["digest"], whole["digest"])
        digests = {n: self.train(model, "threads%d" % n, "--epochs", "3", "--threads", str(n),
                                 "--required-accuracy", "0")["digest"] for n in THREADS}
        for threads, digest in digests.items():
            same("%s: weights with %d threads" % (model, threads), digest, digests[THREADS[0]])


def same(what: str, seen: Any, expected: Any) -> None:
    if seen != expected:
        raise Failed("%s: %s, expected %s" % (what, seen, expected))
    print("  ok  %s: %s" % (what, seen if not isinstance(seen, str) else seen[:16]), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--directory", help="keep checkpoints and results there (default: a scratch folder)")
    parser.add_argument("--model", choices=("mlp", "cnn"), help="only this network")
    options = parser.parse_args()
    directory = options.directory or tempfile.mkdtemp(prefix="treenail-smoke-")
    if options.directory:
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
    try:
        checker = Checker(directory)
        for model, stop in (("mlp", signal.SIGKILL), ("cnn", signal.SIGINT)):
            if options.model in (None, model):
                checker.check(model, stop)
    except (Failed, subprocess.TimeoutExpired) as error:
        print("smoke: %s" % error, file=sys.stderr)
        return 1
    finally:
        if not options.directory:
            shutil.rmtree(directory, ignore_errors=True)
    print("All smoke tests passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
