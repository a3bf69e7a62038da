# SPDX-License-Identifier: Apache-2.0
"""What all benchmarks share: workers in processes of their own, interleaved rounds, medians, rows.

A worker is a Python program that answers a line of JSON for each line of JSON it is sent
(workers/*.py). Each framework is alone in its process; rounds go from worker to worker, so that
whatever else the machine does meets all of them alike. A worker that waits uses no CPU.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Sequence

BENCH = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(BENCH)


class Absent(Exception):
    """A peer or a part that is not there; the text says why."""


class Failed(RuntimeError):
    """A worker that gave no answer; the text names it and says why."""

    def __init__(self, text: str, guest: bool = False) -> None:
        super().__init__(text)
        self.guest = guest  # the benchmark goes on without it


@dataclass
class Row:
    """One line of the result; all its numbers have the same unit."""

    figure: str
    ours: float
    unit: str
    limit: Optional[float] = None    # ours must be at most this
    peer: Optional[float] = None
    peer_name: str = ""
    wanted: Optional[float] = None   # the ratio must be at least this
    note: str = ""
    everyone: Dict[str, float] = field(default_factory=dict)  # all peers, if guests are among them

    @property
    def ratio(self) -> Optional[float]:
        """How many times faster (smaller) ours is."""
        return self.peer / self.ours if self.peer is not None and self.ours > 0 else None

    @property
    def verdict(self) -> str:
        wanted = []
        if self.limit is not None:
            wanted.append(self.ours <= self.limit)
        if self.wanted is not None and self.ratio is not None:
            wanted.append(self.ratio >= self.wanted)
        if not wanted:
            return ""
        return "met" if all(wanted) else "**missed**"

    @property
    def progress(self) -> str:
        """What is shown while the benchmark runs."""
        text = "  %s: %s" % (self.figure, formatted(self.ours, self.unit))
        if self.peer is not None:
            text += "; %s %s" % (self.peer_name, formatted(self.peer, self.unit))
        return text

    def beside(self, peers: Dict[str, float]) -> None:
        """Names the best of the peers."""
        if peers:
            self.peer_name = min(peers, key=lambda name: peers[name])
            self.peer = peers[self.peer_name]


@dataclass
class Outcome:
    """Rows of one family of figures, sentences about them, and what was left out and why."""

    rows: List[Row] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)
    skipped: List[str] = field(default_factory=list)

    def explain(self, bounds: Dict[str, str]) -> None:
        """Notes what bounds the figures that miss their promise; by the beginnings of their
        names."""
        self.notes += [text for begin, text in bounds.items()
                       if any(row.figure.startswith(begin) and "missed" in row.verdict
                              for row in self.rows)]

    def leave_out(self, figure: str, reasons: List[str]) -> None:
        """Notes who did not take part in a figure; with no figure, in any."""
        self.skipped += ["%s: %s" % (figure, reason) if figure else reason for reason in reasons]


class Worker:
    """One process. `environment` is added to ours; `cpus` limits the processors it may use.

    A guest is there because it was asked for: what it cannot do is noted, where the failure of
    another worker ends the benchmark. What is not `counted` is shown, and no row is held to it.
    """

    def __init__(self, name: str, program: str, arguments: Sequence[str] = (),
                 interpreter: str = sys.executable, environment: Optional[Dict[str, str]] = None,
                 cpus: int = 0, guest: bool = False, counted: bool = True) -> None:
        self.name = name
        self.guest = guest
        self.counted = counted
        self.alive = True
        self._errors = tempfile.TemporaryFile() if guest else None
        self._process = subprocess.Popen(
            [interpreter, "-B", os.path.join(BENCH, "workers", program), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            universal_newlines=True, env=dict(os.environ, **(environment or {})),
            preexec_fn=(lambda: limit_cpus(cpus)) if cpus else None)
        try:
            answer = self._read()
        except Failed:
            self.close()
            raise
        if "absent" in answer:
            self.close()
            raise Absent("%s: %s" % (name, answer["absent"]))
        self.about = answer

    def _ended(self) -> Failed:
        self.alive = False
        said = ""
        if self._errors is not None:
            self._errors.seek(0)
            lines = self._errors.read().decode(errors="replace").strip().splitlines()
            said = ": " + brief(lines[-1]) if lines else ""
        return Failed("%s: the process ended with status %s%s" % (
            self.name, self._process.wait(), said), self.guest)

    def _read(self) -> Dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise self._ended()
        answer: Dict[str, Any] = json.loads(line)
        if "failed" in answer:
            raise Failed("%s: %s" % (self.name, answer["failed"]), self.guest)
        return answer

    def ask(self, **request: Any) -> Dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None
        return self._read()

    def close(self) -> None:
        if self._process.stdin:
            try:
                self._process.stdin.close()
            except BrokenPipeError:
                pass  # it has ended, and what it was sent last was never read
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        if self._errors is not None:
            self._errors.close()


def brief(text: str) -> str:
    """The text on one line that fits into a sentence."""
    words = " ".join(text.split())
    return words if len(words) <= 300 else words[:297] + "..."


def limit_cpus(count: int) -> None:
    """The calling process uses at most `count` of its processors from now on."""
    mine = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, set(mine[:count]))


def serve(about: Dict[str, Any], answer: Callable[[Dict[str, Any]], Dict[str, Any]]) -> None:
    """A worker's main loop: says what it is, then answers each request.

    What a framework prints goes to standard error, lest it be taken for an answer.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(reply: Dict[str, Any]) -> None:
        answers.write(json.dumps(reply) + "\n")
        answers.flush()

    say(about)
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception as error:  # whatever a framework raises: the benchmark decides
            traceback.print_exc()
            reply = {"failed": "%s: %s" % (type(error).__name__, brief(str(error)))}
        say(reply)


def timed(call: Callable[[], Any], seconds: float = 0.25) -> float:
    """Seconds per call, over as many calls as fill `seconds`."""
    calls, elapsed = 1, 0.0
    while True:
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        elapsed = time.perf_counter() - begin
        if elapsed >= seconds:
            return elapsed / calls
        calls = max(calls + 1, int(calls * min(10.0, 1.2 * seconds / max(elapsed, 1e-9))))


def resident(peak: bool = False) -> float:
    """MiB of memory that this process has, or has had at most since forget_peak()."""
    field_name = "VmHWM:" if peak else "VmRSS:"
    with open("/proc/self/status", encoding="utf-8") as stream:
        for line in stream:
            if line.startswith(field_name):
                return int(line.split()[1]) / 1024.0
    raise RuntimeError("/proc/self/status has no " + field_name)


def forget_peak() -> None:
    with open("/proc/self/clear_refs", "w", encoding="ascii") as stream:
        stream.write("5")


def serve_network(about: Dict[str, Any], imported: float, losses: Callable[[int], List[float]],
                  outputs: Callable[[], List[float]], calls: Dict[str, Callable[[], Any]]) -> None:
    """serve() for workers that train and infer; `imported` is resident() after the imports.

    Requests: losses (of the first steps from the initial weights), outputs (the first of them, with
    those weights), train and infer (seconds), memory (MiB at most in twenty training steps, less
    what the imports took).
    """
    def answer(request: Dict[str, Any]) -> Dict[str, Any]:
        what = request["what"]
        if what == "losses":
            return {"losses": losses(request["steps"])}
        if what == "outputs":
            return {"outputs": outputs()}
        if what == "memory":
            forget_peak()
            for _ in range(20):
                calls["train"]()
            return {"memory": resident(peak=True) - imported}
        return {"seconds": timed(calls[what], request["fill"])}

    serve(about, answer)


def serve_works(about: Dict[str, Any], by_title: Dict[str, Any],
                call_of: Callable[[Any], Callable[[], Any]],
                values_of: Optional[Callable[[Any, Any], List[Any]]] = None) -> None:
    """serve() for workers that time single operations (workers/works.py).

    Requests: start (a work's `title`; answers with sums over its results, so that frameworks can
    be compared, or "absent" where call_of raises NotImplementedError), time (seconds), stop (its
    memory is given back).
    """
    import numpy as np
    running: List[Callable[[], Any]] = []

    def digests(work: Any, result: Any) -> List[float]:
        """Of each result its size, its sum and its sum with weights that tell places apart."""
        if values_of is not None:
            arrays = values_of(work, result)
        else:
            arrays = result if isinstance(result, list) else [result]
        out = []
        for array in arrays:
            flat = np.abs(np.asarray(array)).reshape(-1).astype(np.float64)
            weights = 1 + np.arange(flat.size) % 7
            out += [float(flat.size), float(flat.sum()), float(flat @ weights)]
        return out

    def answer(request: Dict[str, Any]) -> Dict[str, Any]:
        if request["what"] == "start":
            work = by_title[request["title"]]
            try:
                running[:] = [call_of(work)]
            except NotImplementedError as error:
                return {"absent": str(error)}
            return {"digests": digests(work, running[0]())}
        if request["what"] == "stop":
            running.clear()
            return {}
        return {"seconds": timed(running[0], request["fill"])}

    serve(about, answer)


def ask_all(workers: List[Worker], left_out: List[str], **request: Any) -> Dict[str, Any]:
    """The answers by name. A guest that fails leaves the list; why is added to `left_out`."""
    answers = {}
    for worker in list(workers):
        try:
            answers[worker.name] = worker.ask(**request)
        except Failed as failure:
            if not failure.guest:
                raise
            left_out.append(str(failure))
            workers.remove(worker)
    return answers


def hold_together(workers: List[Worker], what: str, answers: Dict[str, List[float]],
                  tolerance: float, scale: float, left_out: List[str]) -> None:
    """Raises where frameworks do not compute the same numbers, within `tolerance` of each or of
    `scale`: the first worker has the reference. A guest that does not leaves the list."""
    reference = answers[workers[0].name]
    for worker in workers[1:]:
        values = answers[worker.name]
        if len(values) == len(reference) and all(
                abs(a - b) <= tolerance * max(scale, abs(a)) for a, b in zip(reference, values)):
            continue
        reason = "%s: does not compute the same %s as %s: %s, not %s" % (
            worker.name, what, workers[0].name, values[:5], reference[:5])
        if not worker.guest:
            raise RuntimeError(reason)
        left_out.append(reason)
        workers.remove(worker)


def interleave(workers: List[Worker], rounds: int, left_out: Optional[List[str]] = None,
               **request: Any) -> Dict[str, float]:
    """The median of each worker's answers' "seconds" by name; the first round warms up. Guests that
    fail are left out, as in ask_all()."""
    seconds: Dict[str, List[float]] = {worker.name: [] for worker in workers}
    for turn in range(rounds + 1):
        answers = ask_all(workers, [] if left_out is None else left_out, **request)
        for name, answer in answers.items():
            if turn > 0:
                seconds[name].append(answer["seconds"])
    return {worker.name: statistics.median(seconds[worker.name]) for worker in workers}


class Best:
    """The fastest peer of a work so far: at two threads also what it took with one."""

    def __init__(self) -> None:
        self._found: Dict[str, float] = {}

    def row(self, figure: str, found: Dict[str, float], workers: Sequence[Worker],
            promised: Optional[float]) -> Row:
        """Held against the fastest of the peers that count; `found` are seconds by name, ours are
        the first worker's."""
        milliseconds = {name: seconds * 1e3 for name, seconds in found.items()}
        row = Row(figure, milliseconds.pop(workers[0].name), "ms", wanted=promised)
        self._found.update(only_counted(milliseconds, workers))
        row.beside(self._found)
        if any(worker.guest for worker in workers):
            row.everyone = milliseconds
        return row


def only_counted(found: Dict[str, float], workers: Sequence[Worker]) -> Dict[str, float]:
    return {worker.name: found[worker.name] for worker in workers
            if worker.counted and worker.name in found}


def alternate(tasks: Dict[str, Callable[[], float]], rounds: int) -> Dict[str, float]:
    """As interleave(), for plain functions that return what they measured; nothing warms up."""
    found: Dict[str, List[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            found[name].append(task())
    return {name: statistics.median(values) for name, values in found.items()}


def run(command: Sequence[str], **more: Any) -> str:
    """The output; a failure raises with its end."""
    done = subprocess.run(list(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, check=False, **more)
    if done.returncode != 0:
        raise RuntimeError("%s: exit status %d\n%s" % (" ".join(command), done.returncode,
                                                       done.stdout[-3000:]))
    return str(done.stdout)


def benchmarks(program: str, *arguments: str, **variables: str) -> List[Dict[str, Any]]:
    """The entries that a Google Benchmark program reports, with these environment variables."""
    environment = dict(os.environ, **variables)
    done = subprocess.run([program, "--benchmark_format=json", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, env=environment, check=True)
    found: List[Dict[str, Any]] = json.loads(done.stdout)["benchmarks"]
    return found


def cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            for line in stream:
                if line.startswith(("model name", "Model")):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def formatted(value: float, unit: str) -> str:
    digits = 3 if value < 10 else 2 if value < 100 else 1
    return "%.*f %s" % (digits, value, unit)
