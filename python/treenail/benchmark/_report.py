# SPDX-License-Identifier: Apache-2.0
"""The report: a JSON file whose place is proven writable before the work begins, and what it says
of the process, the machine and the task."""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import tempfile

import treenail as tn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = 1
# What says where a task ran and with how much; no other variable of Slurm's goes into a report.
SLURM = ("SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_JOB_NAME", "SLURM_JOB_PARTITION",
         "SLURM_JOB_NUM_NODES", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID",
         "SLURM_LOCALID", "SLURM_NODEID", "SLURMD_NODENAME", "SLURM_CPUS_PER_TASK",
         "SLURM_CPUS_ON_NODE", "SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU")


class Task:
    """Which of how many copies this process is, by what started it.

    Open MPI's variables come first: mpirun within a job starts several processes that all see the
    one task of Slurm's under which they run. In a batch script, which is no task, SLURM_PROCID is
    0 and SLURM_STEP_NUM_TASKS is missing.
    """

    def __init__(self, environment: Any = os.environ) -> None:
        self.rank, self.count = 0, 1
        for rank, count in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
                            ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")):
            words = environment.get(rank, ""), environment.get(count, "")
            if all(word.isdigit() for word in words):
                self.rank, self.count = int(words[0]), int(words[1])
                break
        self.slurm = {name: environment[name] for name in SLURM if name in environment}


def place_of(pattern: str, task: Task) -> str:
    """The path with Slurm's %t (rank), %j (job) and %% put in. Raises ValueError where several
    tasks would write one file."""
    if task.count > 1 and not re.search(r"(?<!%)(?:%%)*%t", pattern):
        raise ValueError("%d tasks would write the one report %s; put %%t, which becomes the rank, "
                         "into its name" % (task.count, pattern))
    values = {"t": str(task.rank), "j": task.slurm.get("SLURM_JOB_ID", "0"), "%": "%"}
    return re.sub("%([tj%])", lambda found: values[found.group(1)], pattern)


class ReportFile:
    """A file that is replaced as a whole when the report is there; until then what stood at its
    place stays. Opening it raises OSError or ValueError where it could not be written later."""

    def __init__(self, path: str) -> None:
        if not os.path.basename(path):
            raise ValueError("this names no file")
        self.path = path
        self._target, self._beside = os.path.realpath(path), ""
        if os.path.exists(path) and not os.path.isfile(path):
            # A terminal, a pipe, /dev/null; a directory is refused here.
            self._descriptor = os.open(path, os.O_WRONLY)
        else:
            folder, name = os.path.split(self._target)
            self._descriptor, self._beside = tempfile.mkstemp(prefix=name + ".", dir=folder)

    def write(self, report: dict) -> None:
        """Puts the report into its place, once. Raises OSError."""
        with open(self._descriptor, "w", encoding="utf-8", closefd=False) as stream:
            json.dump(report, stream, indent=1)
            stream.write("\n")
        if self._beside:
            os.fsync(self._descriptor)
            umask = os.umask(0o022)
            os.umask(umask)
            os.fchmod(self._descriptor, 0o666 & ~umask)  # temporary files are private
            os.replace(self._beside, self._target)
            self._beside = ""

    def close(self) -> None:
        """Without a report it leaves nothing behind."""
        os.close(self._descriptor)
        if self._beside:
            os.unlink(self._beside)


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
            found = re.search(r"^model name\s*:\s*(.*)$", stream.read(), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1) if found else platform.processor()


def environment() -> dict:
    """The library, what it has opened so far, and the machine."""
    info = tn.build_info()
    told = {key: info[key] for key in ("version", "build_id", "build_type", "isa_baseline",
                                       "kernel_level", "cpu_features", "num_threads",
                                       "threads_origin", "memory_limit")}
    told["libraries"] = {name: adapter["libraries"] for name, adapter in info["adapters"].items()
                         if adapter["loaded"]}
    told["variables"] = {name: value for name, value in sorted(os.environ.items())
                         if name.startswith("TREENAIL_")}
    told["module"] = os.path.dirname(os.path.abspath(tn.__file__))
    told["python"] = platform.python_version()
    told["host"], told["machine"] = platform.node(), platform.machine()
    told["cpu"], told["cpus_allowed"] = _cpu_model(), len(os.sched_getaffinity(0))
    return told


def memory() -> dict:
    """Bytes at the peak: of the whole process as the kernel counted them, and of tensors."""
    return {"peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "peak_tensor_bytes": tn._treenail.memory_info()["peak_bytes"]}
