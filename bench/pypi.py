# SPDX-License-Identifier: Apache-2.0
"""Guests from PyPI, for `bench/run.py --pypi`: what a user would otherwise install.

Each package lives in a virtual environment of its own, outside the source tree, so that neither
versions nor failures of one touch another. An environment that was installed in full, with these
versions, is used again; one that cannot be made leaves its package out, with the reason. Nothing
else of Treenail reads PyPI.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Dict, List, Sequence, Tuple

from harness import Absent, brief

# Name → what pip installs. Version numbers stand here alone.
PINS: Dict[str, Tuple[str, ...]] = {
    "torch": ("torch==2.15.0", "numpy==2.4.6"),
    "tensorflow": ("tensorflow-cpu==2.21.0", "numpy==2.4.6"),
    "jax": ("jax==0.10.2", "jaxlib==0.10.2", "numpy==2.4.6"),
    "onnxruntime": ("onnxruntime==1.31.1", "onnx==1.23.2", "numpy==2.4.6"),
}
LOADS = {"torch": "torch", "tensorflow": "tensorflow", "jax": "jax",
         "onnxruntime": "onnxruntime, onnx"}
COMPLETE = "treenail-bench.txt"  # written last into an environment: what was installed, for whom


@dataclass(frozen=True)
class Guests:
    """The interpreters that have the packages, and why packages that were asked for have none."""

    interpreters: Dict[str, str] = field(default_factory=dict)
    missing: Tuple[str, ...] = ()

    @property
    def note(self) -> str:
        return "From PyPI: %s." % ", ".join(pin for name in self.interpreters
                                            for pin in PINS[name][:1])


NOBODY = Guests()


def parse(text: str) -> List[str]:
    """The names in a list with commas. Raises ValueError."""
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name not in PINS:
            raise ValueError("%r is none of the packages %s" % (name, ", ".join(PINS)))
    if not names:
        raise ValueError("no package is named; there are %s" % ", ".join(PINS))
    return names


def record(name: str) -> str:
    return "%s for Python %d.%d\n" % (" ".join(PINS[name]), *sys.version_info[:2])


def is_whole(folder: str, name: str) -> bool:
    """Whether the environment was installed to its end, with these versions, and still runs."""
    try:
        with open(os.path.join(folder, COMPLETE), encoding="utf-8") as stream:
            if stream.read() != record(name):
                return False
        return subprocess.run([interpreter(folder), "-c", ""], check=False).returncode == 0
    except OSError:
        return False


def interpreter(folder: str) -> str:
    return os.path.join(folder, "bin", "python")


def run_shown(command: Sequence[str]) -> None:
    """Runs it and shows its lines as they come. Raises Absent with the complaint or last line."""
    said: List[str] = []
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, universal_newlines=True,
                              env=dict(os.environ, **CLEAN)) as process:
            for line in process.stdout or ():
                said.append(line.strip())
                print("    " + said[-1], flush=True)
    except OSError as error:
        raise Absent(str(error)) from None
    if process.returncode:
        complaints = [line for line in said if line.lower().startswith("error")]
        last = (complaints or [line for line in said if line] or ["no word"])[-1]
        shown = " ".join([os.path.basename(command[0]), *command[1:3]])
        raise Absent("%s: exit status %d: %s" % (shown, process.returncode, brief(last)))


# The user's own packages must not stand in for what is pinned.
CLEAN = {"PYTHONPATH": "", "PYTHONNOUSERSITE": "1"}


def installed(name: str, directory: str) -> str:
    """The interpreter of the package's environment, which is made where it is not there. Raises
    Absent; then nothing stays behind."""
    folder = os.path.join(directory, name)
    if is_whole(folder, name):
        return interpreter(folder)
    print("  fetching %s into %s" % (" ".join(PINS[name]), folder), flush=True)
    try:
        os.makedirs(directory, exist_ok=True)
        run_shown([sys.executable, "-m", "venv", "--clear", folder])
        run_shown([interpreter(folder), "-m", "pip", "install", "--no-input", "--progress-bar",
                   "off", *PINS[name]])
        run_shown([interpreter(folder), "-c", "import " + LOADS[name]])
        with open(os.path.join(folder, COMPLETE), "w", encoding="utf-8") as stream:
            stream.write(record(name))
    except (Absent, OSError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise Absent("%s from PyPI: %s" % (name, error)) from None
    return interpreter(folder)


def invite(names: Sequence[str], directory: str) -> Guests:
    interpreters, missing = {}, []
    for name in names:
        try:
            interpreters[name] = installed(name, os.path.abspath(directory))
        except Absent as absent:
            missing.append(str(absent))
            print("  left out: %s" % absent, flush=True)
    return Guests(interpreters, tuple(missing))
