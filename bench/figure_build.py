# SPDX-License-Identifier: Apache-2.0
"""How long the build takes on two processors, in a copy of the tree, without a compiler cache.

The product alone, one kernel level: configure from nothing, everything, nothing to do, and one
kernel file touched (compiled, and its library linked again): the one that takes longest. Then
everything with the four levels of x86-64.
"""

import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Callable, List, Optional, Tuple

from harness import SOURCE, Outcome, Row, limit_cpus, run

sys.path.insert(0, os.path.join(SOURCE, "gen", "tools"))
import build_times  # noqa: E402

ONE_LEVEL = ("--kernel-isas=none",)
FOUR_LEVELS = ("--isa-baseline=x86-64", "--kernel-isas=x86-64-v2,x86-64-v3,x86-64-v4")


def copy_tree(into: str) -> None:
    """The files that git knows or would know; else all but hidden ones and build directories."""
    try:
        listed = run(["git", "-C", SOURCE, "ls-files", "-z", "--cached", "--others",
                      "--exclude-standard"]).split("\0")
    except (RuntimeError, OSError):
        listed = [os.path.relpath(os.path.join(folder, name), SOURCE)
                  for folder, folders, names in os.walk(SOURCE) for name in names
                  if not folders.sort() and "/build" not in folder and "/." not in folder]
    for path in filter(None, listed):
        source = os.path.join(SOURCE, path)
        if not os.path.isfile(source):
            continue
        os.makedirs(os.path.dirname(os.path.join(into, path)), exist_ok=True)
        shutil.copy2(source, os.path.join(into, path))


def processor_seconds() -> float:
    """What ended child processes and theirs have used; a busy machine does not change it much."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def clock(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def measure(rounds: int) -> Outcome:
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS",
                                   "PYTHONPATH")}
    environment["CCACHE_DISABLE"] = "1"

    with tempfile.TemporaryDirectory() as folder:
        tree, build = os.path.join(folder, "tree"), os.path.join(folder, "build")
        copy_tree(tree)

        def command(*words: str) -> None:
            done = subprocess.run(words, cwd=tree, env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, universal_newlines=True, check=False,
                                  preexec_fn=lambda: limit_cpus(2))
            if done.returncode != 0:
                raise RuntimeError("%s failed:\n%s" % (" ".join(words), done.stdout[-3000:]))

        def configure(*levels: str) -> float:
            shutil.rmtree(build, ignore_errors=True)
            return clock(lambda: command("/usr/bin/python3", "configure.py", "--build-dir", build,
                                         *levels))

        def ninja() -> float:
            return clock(lambda: command("ninja", "-C", build, "-j2"))

        def dearest_kernel() -> str:
            seconds = build_times.read(os.path.join(build, ".ninja_log"))
            _, output = max((took, output) for output, took in seconds.items()
                            if "/kernels/cpu/" in output and output.endswith(".cc.o"))
            return output[output.index("kernels/cpu/"):-len(".o")]

        def touch(source: str) -> float:
            later = time.time() + 1
            os.utime(os.path.join(tree, source), (later, later))
            return ninja()

        def full_build() -> Tuple[float, float]:
            used = processor_seconds()
            return ninja(), processor_seconds() - used

        times = max(3, rounds)
        configured = statistics.median(configure(*ONE_LEVEL) for _ in range(times))
        full, used = full_build()
        nothing = statistics.median(ninja() for _ in range(times))
        dearest = dearest_kernel()
        touched = statistics.median(touch(dearest) for _ in range(times))
        all_levels: Optional[Tuple[float, float]] = None
        if platform.machine() == "x86_64":
            configure(*FOUR_LEVELS)
            all_levels = full_build()
    rows: List[Row] = [
        Row("configure", configured, "s", 2.0),
        Row("full build from clean, one kernel level, 2 processors", full, "s", 150.0),
        Row("ninja with nothing to do", nothing, "s", 0.1),
        Row("ninja after touching %s" % dearest, touched, "s", 8.0),
    ]
    rows[1].note = "one run; %.0f s of processor time" % used
    if all_levels is not None:
        rows.append(Row("full build with the four levels of x86-64, 2 processors", all_levels[0],
                        "s", 240.0))
        rows[-1].note = "one run; %.0f s of processor time" % all_levels[1]
    return Outcome(rows)
