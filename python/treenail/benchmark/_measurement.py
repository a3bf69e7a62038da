# SPDX-License-Identifier: Apache-2.0
"""One measurement, from options to rates: what runs, what is shown meanwhile, what is reported."""

from __future__ import annotations

import argparse
import datetime
import math
import sys
import time
from typing import NamedTuple

import treenail as tn
from treenail.benchmark._models import MODELS, Inputs, Model
from treenail.benchmark._rates import Rates
from treenail.benchmark._report import FORMAT, Task, environment, memory
from treenail.benchmark._step import Learning, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RULE = "-" * 64


class Diverged(Exception):
    """A loss that is no number."""


class Ticker:
    """One line on a terminal, drawn again and again, gone before anything else is printed."""

    def __init__(self, stream: Any = None) -> None:
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._drawn = 0.0

    def show(self, text: str) -> None:
        """Draws, at most ten times a second."""
        if self._live and time.monotonic() - self._drawn >= 0.1:
            self._drawn = time.monotonic()
            self._stream.write("\r\x1b[K" + text)
            self._stream.flush()

    def clear(self) -> None:
        """Takes the line away."""
        if self._live and self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn = 0.0


class Measured(NamedTuple):
    """A step: what it took, its loss, and when it was over, in seconds since the first began."""

    seconds: float
    loss: float
    over: float


class Benchmark:
    """The measurement; what it has found so far is in `steps` and `stages` whenever it is
    interrupted. stages: seconds of what came before the steps."""

    def __init__(self, options: argparse.Namespace, task: Task) -> None:
        self.options, self.task = options, task
        self.model: Model = MODELS[options.model]
        self.count = options.batch_size * self.model.units
        self.steps: list[Measured] = []
        self.stages: dict[str, float] = {}
        self.built: Step | None = None
        self._ticker = Ticker()
        self._began = datetime.datetime.now(datetime.timezone.utc)

    def run(self) -> None:
        """Measures. Raises what Treenail raises, Diverged, and KeyboardInterrupt."""
        options = self.options
        if options.device:
            _look_for(options.device)
        begin = time.perf_counter()
        self.built = step = Step(
            self.model, Inputs(options.batch_size, options.image_size, not options.forward_only,
                               options.data_format),
            Learning(options.optimizer, options.learning_rate, options.weight_decay), options.seed,
            options.device)
        begin = self._stage("graph", begin)
        config = tn.ConfigProto(intra_op_parallelism_threads=options.threads or 0,
                                allow_soft_placement=bool(options.device))
        with tn.Session(graph=step.graph, config=config) as session:
            self._introduce(step)
            session.run(step.initialize)
            begin = self._stage("initialization", begin)
            fetches = [step.loss] if step.update is None else [step.loss, step.update]
            try:
                self._warm_up(session, fetches)
                self._measure(session, fetches, self._stage("warm-up", begin))
            finally:
                self._ticker.clear()

    def _stage(self, name: str, begin: float) -> float:
        now = time.perf_counter()
        self.stages[name] = now - begin
        return now

    def _introduce(self, step: Step) -> None:
        options, model, task, info = self.options, self.model, self.task, tn.build_info()
        images = " of %dx%dx3, %s" % (options.image_size, options.image_size, options.data_format)
        rows = [
            ("Treenail", "%s, kernels of %s, %d threads (%s)" % (
                info["version"], info["kernel_level"] or "no level", info["num_threads"],
                info["threads_origin"])),
            ("Model", "%s (%s)" % (model.name, model.reference)),
            ("Size", "%s trainable parameters, %s multiply-adds per %s forward" % (
                format(step.parameters, ","), _in_millions(step.multiply_adds), model.unit[:-1])),
            ("Mode", "forward only" if options.forward_only else
             "training, %s, learning rate %g, weight decay %g" % (
                 options.optimizer, options.learning_rate, options.weight_decay)),
            ("Batch", "%d %s%s, float32, synthetic" % (
                self.count, model.unit, images if options.image_size else ""))]
        if options.device:
            rows.append(("Device", options.device))
        if task.count > 1 or task.slurm:
            job = ", job %s" % task.slurm["SLURM_JOB_ID"] if "SLURM_JOB_ID" in task.slurm else ""
            rows.append(("Task", "rank %d of %d%s" % (task.rank, task.count, job)))
        print("".join("%-10s %s\n" % (name + ":", text) for name, text in rows), end="", flush=True)

    def _timed(self, session: tn.Session, fetches: list, index: int) -> tuple:
        begin = time.perf_counter()
        loss = float(session.run(fetches)[0])
        taken = time.perf_counter() - begin
        if not math.isfinite(loss):
            raise Diverged("the loss is %g at step %d: the training diverged; a lower "
                           "--learning-rate than %g may help" % (
                               loss, index + 1, self.options.learning_rate))
        return taken, loss

    def _warm_up(self, session: tn.Session, fetches: list) -> None:
        count = self.options.num_warmup_batches
        print("Running warm up (steps: %d)" % count, flush=True)
        for index in range(count):
            taken, _ = self._timed(session, fetches, index)
            self._ticker.show("warm up %d/%d, %.3g s per step" % (index + 1, count, taken))
        self._ticker.clear()
        print("Done warm up\nStep\t%s/sec\ttotal_loss" % (
            "Img" if self.model.unit == "images" else self.model.unit.capitalize()), flush=True)

    def _measure(self, session: tn.Session, fetches: list, begin: float) -> None:
        count, every = self.options.num_batches, self.options.display_every
        for index in range(count):
            taken, loss = self._timed(session, fetches, index + self.options.num_warmup_batches)
            over = time.perf_counter() - begin
            self.steps.append(Measured(taken, loss, over))
            if index == 0 or (index + 1) % every == 0:
                self._ticker.clear()
                print("%d\t%s\t%.3f" % (index + 1, self.rates.text(self.model.unit), loss),
                      flush=True)
            self._ticker.show("step %d/%d, %.3g s per step, %.0f s left" % (
                index + 1, count, taken, over / (index + 1) * (count - index - 1)))

    @property
    def rates(self) -> Rates:
        """Of the steps so far, of which there must be one."""
        return Rates.of(self.count, [step.seconds for step in self.steps])

    @property
    def total(self) -> float:
        """Units per second of the whole measured time, with what lies between the steps."""
        return self.count * len(self.steps) / self.steps[-1].over

    def conclude(self, problem: str) -> None:
        """The last lines. problem: why it ended early, or nothing."""
        if problem:
            print("%s; measured: %d of %d batches" % (problem, len(self.steps),
                                                      self.options.num_batches))
        if self.steps:
            print(RULE)
            print("total %s/sec: %.2f" % (self.model.unit, self.total))
            print(RULE)
        used = memory()
        print("peak memory: %.0f MiB of the process, %.0f MiB of tensors" % (
            used["peak_resident_bytes"] / 2 ** 20, used["peak_tensor_bytes"] / 2 ** 20), flush=True)

    def report(self, interrupted: bool, problem: str) -> dict[str, Any]:
        """All that is known, for programs."""
        options, step = self.options, self.built
        stages = dict(self.stages, measured=self.steps[-1].over) if self.steps else self.stages
        training = not options.forward_only
        return {
            "program": "treenail-bench", "format": FORMAT,
            "began": self._began.isoformat(timespec="seconds"),
            "interrupted": interrupted, "problem": problem,
            "model": self.model.name, "reference": self.model.reference,
            "unit": self.model.unit, "units_per_example": self.model.units,
            "mode": "training" if training else "forward only", "precision": "float32",
            "batch_size": options.batch_size, "image_size": options.image_size or None,
            "data_format": options.data_format or None, "device": options.device or None,
            "optimizer": options.optimizer if training else None,
            "learning_rate": options.learning_rate if training else None,
            "weight_decay": options.weight_decay if training else None, "seed": options.seed,
            "trainable_parameters": step.parameters if step else None,
            "multiply_adds_per_unit": step.multiply_adds if step else None,
            "num_batches": options.num_batches, "num_warmup_batches": options.num_warmup_batches,
            "batches_measured": len(self.steps),
            "per_second": dict(vars(self.rates), total=self.total) if self.steps else None,
            "step_seconds": [step.seconds for step in self.steps],
            "losses": [step.loss for step in self.steps], "stage_seconds": stages,
            "memory": memory(), "environment": environment(),
            "rank": self.task.rank, "tasks": self.task.count, "slurm": self.task.slurm}


def _look_for(device: str) -> None:
    """Raises what says why a device is not there: what is placed softly would go to the CPU."""
    with tn.eager(), tn.device(device):
        tn.zeros([1])


def _in_millions(number: int) -> str:
    return "%.3g G" % (number / 1e9) if number >= 1e9 else "%.3g M" % (number / 1e6)
