# SPDX-License-Identifier: Apache-2.0
"""treenail-bench: from the command line to the exit status."""

from __future__ import annotations

import argparse
import os
import signal
import sys

import treenail as tn
from treenail.benchmark import _options
from treenail.benchmark._measurement import Benchmark, Diverged
from treenail.benchmark._models import MODELS
from treenail.benchmark._report import ReportFile, Task, place_of
from treenail.benchmark._step import OPTIMIZERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def _list_models() -> None:
    for name, model in sorted(MODELS.items()):
        size = ", %dx%d" % (model.image_size, model.image_size) if model.image_size else ""
        print("%-11s %s\n%-11s batch size %d%s, counts %s" % (
            name, model.reference, "", model.batch_size, size, model.unit))


def _problem_of(error: Exception, options: argparse.Namespace) -> str:
    # Where in this program an operation was created is of no use to those who run it.
    text = error.message if isinstance(error, tn.errors.OpError) else str(error)
    if isinstance(error, tn.errors.ResourceExhaustedError):
        return "out of memory with --batch-size %d: %s; a smaller batch needs less" % (
            options.batch_size, text)
    return text


class _Signals:
    """SIGINT and SIGTERM (which is how Slurm ends a job) interrupt alike; `received` is the last
    one, or 0. One that is ignored stays so."""

    def __init__(self) -> None:
        self.received = 0
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._interrupt)

    def _interrupt(self, number: int, _frame: Any) -> None:
        self.received = number
        raise KeyboardInterrupt


def _perform(options: argparse.Namespace, task: Task, file: ReportFile | None,
             signals: _Signals) -> int:
    benchmark, problem = Benchmark(options, task), ""
    try:
        benchmark.run()
    except (Diverged, tn.errors.OpError) as error:
        problem = _problem_of(error, options)
        print("treenail-bench: " + problem, file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        problem = "interrupted by " + signal.Signals(signals.received).name
    interrupted = bool(signals.received)
    benchmark.conclude(problem if interrupted else "failed" if problem else "")
    if file:
        try:
            file.write(benchmark.report(interrupted, problem))
        except OSError as error:
            return _refuse_report(options, error)
        print("report: " + file.path, flush=True)
    return 128 + signals.received if interrupted else 1 if problem else 0


def _refuse_report(options: argparse.Namespace, error: Exception) -> int:
    print("treenail-bench: --report %s: %s" % (
        options.report, getattr(error, "strerror", None) or error), file=sys.stderr)
    return 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program; its exit status."""
    parser = _options.parser(tn.__version__, MODELS, sorted(OPTIMIZERS))
    options = _options.parse(parser, MODELS, sys.argv[1:] if arguments is None else arguments)
    if options.list_models:
        _list_models()
        return 0
    signals, task, file = _Signals(), Task(), None
    try:
        file = ReportFile(place_of(options.report, task)) if options.report is not None else None
    except (OSError, ValueError) as error:
        return _refuse_report(options, error)
    try:
        return _perform(options, task, file, signals)
    except KeyboardInterrupt:  # a second time, while results are shown or written
        return 128 + signals.received
    except OSError as error:  # whoever read the output has gone, or its disk is full
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the last flush
        print("treenail-bench: cannot write the results: %s" % error.strerror, file=sys.stderr)
        return 2
    finally:
        if file:
            file.close()
