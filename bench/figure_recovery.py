# SPDX-License-Identifier: Apache-2.0
"""How long a training stands still when a process of it is killed (kill -9) and started anew at
once: from the signal to the first step after the checkpoint was restored. Every process is on this
machine."""

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import List, Tuple

from figure_clusters import ports
from harness import BENCH, Outcome, Row

PROGRAM = os.path.join(BENCH, "workers", "recovery_treenail.py")
LIMIT = 5.0  # seconds
KILLED_AT = 50
TASKS = {"a parameter server": ("ps", 0), "a worker": ("worker", 1),
         "the master": ("worker", 0), "the client": ("", 0)}


class Training:
    """A parameter server, two workers and the client that trains."""

    def __init__(self, folder: str) -> None:
        free = ports(3)
        cluster = {"ps": ["localhost:%d" % free[0]],
                   "worker": ["localhost:%d" % port for port in free[1:]]}
        self._cluster, self._folder = json.dumps(cluster), folder
        tasks = [("ps", 0), ("worker", 0), ("worker", 1)]
        self.processes = {task: self._started(task) for task in tasks}
        for task in tasks:
            self.processes[task].stdout.readline()
        self.processes["", 0] = self._started(("", 0))

    def _started(self, task: Tuple[str, int]) -> "subprocess.Popen[str]":
        words = ["serve", self._cluster, task[0], str(task[1])] if task[0] else [
            "train", self._cluster, self._folder]
        return subprocess.Popen([sys.executable, "-B", PROGRAM, *words], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True)

    def step(self) -> Tuple[int, float]:
        """The next step that the client has made, and when."""
        line = self.processes["", 0].stdout.readline()
        if not line:
            raise RuntimeError("the training has ended")
        number, at = line.split()
        return int(number), float(at)

    def kill(self, task: Tuple[str, int]) -> float:
        """Ends it, and starts it again."""
        killed = time.monotonic()
        self.processes[task].kill()
        self.processes[task].wait()
        self.processes[task] = self._started(task)
        return killed

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()


def standstill(task: Tuple[str, int]) -> Tuple[float, int]:
    """(seconds without a step, steps that were made again)."""
    with tempfile.TemporaryDirectory() as folder:
        training = Training(folder)
        try:
            last = training.step()
            while last[0] < KILLED_AT:
                last = training.step()
            killed = training.kill(task)
            while True:  # what it had said before
                now = training.step()
                if now[0] <= last[0] or now[1] - max(last[1], killed) > 0.5:
                    return now[1] - killed, last[0] - now[0] + 1
                last = now
        finally:
            training.close()


def measure(rounds: int) -> Outcome:
    outcome = Outcome()
    for name, task in TASKS.items():
        found: List[Tuple[float, int]] = sorted(standstill(task) for _ in range(max(rounds, 1)))
        took, again = found[len(found) // 2]
        outcome.rows.append(Row("training stands still, %s is killed" % name, round(took, 2), "s",
                                limit=LIMIT, note="%d steps made again" % max(again, 0)))
    return outcome
