# SPDX-License-Identifier: Apache-2.0
"""Groups of processes that train while ranks are killed or stopped and links are cut, late or
silent, as a seed says: what the ranks run, what is done to them, and what may become of it. Used
by test_group_schedules.py."""

import contextlib
import os
import random
import re
import signal
import time

import numpy as np  # noqa: F401  (of MODEL)

import process_group
import treenail as tn
from free_ports import free_ports
from slow_links import Link

SIZE, LAST = 3, 30
LIMIT_S = 60  # of a schedule; none comes near it
LONG_S, BRIEF_S = (2.5, 3.2), (0.02, 0.25)  # beyond what ranks wait for each other, and below
LOST = ("UnavailableError", "DeadlineExceededError")
NAMES_A_RANK = re.compile(r"\brank (\d)")

# Gradients that travel together, and one that travels alone, computed where the others read it.
MODEL = """
SHAPES = {"w": [50, 40], "b": [40], "v": [40, 700]}

def data(rank):
    random = np.random.RandomState(rank)
    return random.randn(8, 50).astype(np.float32), random.randn(8, 700).astype(np.float32)

def model(rank, variables):
    x, y = data(rank)
    hidden = tn.tanh(tn.matmul(tn.constant(x), variables["w"]) + variables["b"])
    return tn.reduce_mean(tn.square(tn.matmul(hidden, variables["v"]) - tn.constant(y)))

def make_variables():
    random = np.random.RandomState(9)
    return {name: tn.get_variable(name, initializer=(
        0.1 * random.randn(*shape)).astype(np.float32)) for name, shape in SHAPES.items()}

def optimizer():
    return tn.train.MomentumOptimizer(0.05, 0.9)
"""
exec(MODEL)

PROGRAM = MODEL + """
D = tn.distributed
last, seed, links, patience = (
    eval(os.environ["TEST_" + each]) for each in ("LAST", "SEED", "LINKS", "PATIENCE"))
pauses = np.random.RandomState([seed, rank])
done, values, progress = 0, {}, open(os.path.join(where, "progress%d" % rank), "wb", buffering=0)

def train():
    global done
    if links:
        addresses, ports = links
        D.init("grpc", rank=rank, cluster=addresses, listen="127.0.0.1:%d" % ports[rank],
               join_timeout=patience, timeout=2, keepalive_in_ms=1000)
    else:
        D.init(rank=rank, size=size, directory=os.path.join(where, "group"),
               join_timeout=patience, timeout=2)
    variables = make_variables()
    step = D.DistributedOptimizer(optimizer(), bucket_bytes=100_000).minimize(
        model(rank, variables))
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        try:
            session.run(D.broadcast_variables())
            for _ in range(last):
                time.sleep(pauses.uniform(0, 0.004))
                session.run(step)
                done += 1
                progress.write(b".")
        finally:
            values.update(session.run(variables))
    D.shutdown()

said = error_of(train)
leave((done, said, values))
"""


def alone():
    """By number of steps, the variables of one process that computes all ranks' parts."""
    with tn.Graph().as_default(), tn.Session() as session:
        variables = make_variables()  # noqa: F821
        names, listed = zip(*variables.items())
        parts = [tn.gradients(model(r, variables), listed) for r in range(SIZE)]  # noqa: F821
        means = [sum(each[1:], each[0]) / float(SIZE) for each in zip(*parts)]
        train = optimizer().apply_gradients(zip(means, listed))  # noqa: F821
        session.run(tn.global_variables_initializer())
        found = [dict(zip(names, session.run(listed)))]
        for _ in range(LAST):
            session.run(train)
            found.append(dict(zip(names, session.run(listed))))
    return found


class Schedule:
    """What is done to which rank, when it has made how many steps; -1 and 0: while the group forms,
    or soon after."""

    def __init__(self, seed, over_links):
        rng = random.Random(5000 + seed)  # of the first four, some end well by either transport
        kinds = ["kill", "stop"] + (["cut", "silence", "delay"] if over_links else [])
        self.faults = []
        for _ in range(rng.choice([1, 1, 1, 2])):
            at = -1 if rng.random() < 0.1 else rng.randrange(LAST)
            kind, rank = rng.choice(kinds), rng.randrange(SIZE)
            seconds = 0.0 if kind in ("kill", "cut") else rng.uniform(
                *(LONG_S if kind != "delay" and rng.random() < 0.3 else BRIEF_S))
            later = rng.uniform(0, 0.4 if at < 0 else 0.004)
            self.faults.append((at, later, kind, rank, seconds))
        self.faults.sort()

    def __str__(self):
        return ", ".join("%s rank %d at %d%s" % (kind, rank, at, " for %.2f s" % s if s else "")
                         for at, _, kind, rank, s in self.faults)

    @property
    def patience(self):
        """Seconds for which ranks wait until the group is there."""
        return 3 if self.faults[0][0] <= 0 else 30

    @property
    def killed(self):
        return {rank for _, _, kind, rank, _ in self.faults if kind == "kill"}

    @property
    def is_brief(self):
        """Whether nothing is lost by it."""
        return all(kind not in ("kill", "cut") and seconds < LONG_S[0]
                   for _, _, kind, _, seconds in self.faults)


class Training:
    """The ranks' processes in a directory, and the links by which others reach them."""

    def __init__(self, directory, seed, schedule, over_links):
        self.directory, self.links, ports = str(directory), [], []
        self._ends = contextlib.ExitStack()  # of what is for a while
        if over_links:
            ports = free_ports(SIZE)
            self.links = [self._ends.enter_context(Link(port)) for port in ports]
        links = ([link.address for link in self.links], ports) if over_links else None
        given = {"LAST": LAST, "SEED": seed, "LINKS": links, "PATIENCE": schedule.patience}
        self.schedule, self._lasting = schedule, []  # when what is for a while is over, and how
        self.group = process_group.Group(directory, PROGRAM, SIZE, {
            "TEST_" + name: repr(value) for name, value in given.items()})

    def _steps(self, rank):
        with contextlib.suppress(OSError):
            return os.path.getsize(os.path.join(self.directory, "progress%d" % rank))
        return -1

    def _reach(self, rank, steps):
        """Waits until the rank has made so many steps, or ends without."""
        end = time.monotonic() + LIMIT_S
        while self._steps(rank) < steps and self.group.processes[rank].poll() is None:
            assert time.monotonic() < end
            self._end_what_is_over()
            time.sleep(0.001)

    def _end_what_is_over(self):
        now = time.monotonic()
        for each in [each for each in self._lasting if each[0] <= now]:
            self._lasting.remove(each)
            each[1]()

    def begin(self, kind, rank):
        """Does it, and gives what ends it, where anything does."""
        process, link = self.group.processes[rank], self.links and self.links[rank]
        if kind == "kill":
            return process.kill()
        if kind == "stop":
            process.send_signal(signal.SIGSTOP)
            return lambda: process.send_signal(signal.SIGCONT)
        if kind == "cut":
            return link.cut()
        if kind == "silence":
            link.fall_silent()
            return link.flow
        link.delay = 0.01
        return lambda: setattr(link, "delay", 0.0)

    def suffer(self):
        """One fault after the other; what is for a while lasts beside the next."""
        for at, later, kind, rank, seconds in self.schedule.faults:
            self._reach(rank, at)
            time.sleep(later)
            end = self.begin(kind, rank)
            if end is not None:
                self._lasting.append((time.monotonic() + seconds, end))
        while self._lasting:
            self._end_what_is_over()
            time.sleep(0.001)

    def run(self):
        """What the ranks left."""
        try:
            with self._ends:
                self.suffer()
                return self.group.wait(LIMIT_S)
        finally:
            for process in self.group.processes:
                process.kill()
                process.communicate()
