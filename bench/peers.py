# SPDX-License-Identifier: Apache-2.0
"""Who runs beside Treenail: this distribution's python3-torch, in each BLAS that is installed for
it, and the guests from PyPI that were asked for (pypi.py).

The BLAS is chosen by LD_LIBRARY_PATH, which holds for one process; the distribution's alternative
is left as it is. torch keeps its default allocator. Where guests run, torch runs once more with the
C library's allocator told to keep what is freed: that is shown and not counted, as no user does it.
There too, this distribution's NumPy does the single operations, products by each BLAS.
"""

import glob
import os
from dataclasses import dataclass
from functools import partial
from typing import Callable, Dict, Iterator, List, Tuple

import pypi
from harness import Absent, Failed, Outcome, Worker

INTERPRETER = "/usr/bin/python3"
# glibc: no mapping of its own for a large block, and nothing given back.
TUNED = {"GLIBC_TUNABLES": "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184"}


@dataclass(frozen=True)
class Variant:
    """One way to run a package."""

    package: str               # its key in pypi.PINS
    title: str                 # how rows name it
    program: str               # workers/<kind>_<program>.py
    mode: Tuple[str, ...] = ()  # further arguments of the program
    environment: Tuple[Tuple[str, str], ...] = ()
    trains: bool = True
    counted: bool = True


VARIANTS = (
    Variant("torch", "torch, eager", "torch"),
    Variant("torch", "torch, eager, tuned allocator", "torch", environment=tuple(TUNED.items()),
            counted=False),
    Variant("torch", "torch, compiled", "torch", ("compiled",)),
    Variant("tensorflow", "tensorflow, tf.function", "tensorflow"),
    Variant("tensorflow", "tensorflow, XLA", "tensorflow", ("xla",)),
    Variant("jax", "jax, jit", "jax"),
    Variant("onnxruntime", "onnxruntime", "onnxruntime", trains=False),
)


def with_threads(threads: int) -> str:
    return "%d thread%s" % (threads, "s" * (threads > 1))


def blas_variants() -> Dict[str, Dict[str, str]]:
    """Name → environment. Without OpenBLAS directories, the one that torch finds by itself."""
    found = {}
    for directory in sorted(glob.glob("/usr/lib/*/openblas-*")):
        if glob.glob(os.path.join(directory, "libblas.so.3")):
            found[os.path.basename(directory)] = {"LD_LIBRARY_PATH": directory}
    return found or {"default BLAS": {}}


def torch_workers(program: str, arguments: List[str], threads: int) -> List[Worker]:
    """One worker per BLAS variant, limited to `threads` processors and threads. Raises Absent."""
    return [packaged_worker("torch", program, arguments, threads, name) for name in blas_variants()]


def packaged_worker(package: str, program: str, arguments: List[str], threads: int, blas: str,
                    tuned: bool = False) -> Worker:
    """A worker with what this distribution packages."""
    limits = {"OMP_NUM_THREADS": str(threads), **blas_variants()[blas], **(TUNED if tuned else {})}
    title = "%s, %s, %s%s" % (package, blas, "tuned allocator, " * tuned, with_threads(threads))
    return Worker(title, program, [*arguments, str(threads)], INTERPRETER, limits, cpus=threads,
                  guest=tuned or package != "torch", counted=not tuned)


def guest_worker(variant: Variant, kind: str, arguments: List[str], threads: int,
                 guests: pypi.Guests) -> Worker:
    interpreter = guests.interpreters[variant.package]
    home = os.path.dirname(os.path.dirname(interpreter))
    environment = {
        **pypi.CLEAN, **dict(variant.environment), "OMP_NUM_THREADS": str(threads),
        "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3",
        # What torch.compile has built serves again, and is built by the worker itself.
        "TORCHINDUCTOR_CACHE_DIR": os.path.join(home, "inductor"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }
    version = pypi.PINS[variant.package][0].split("==")[1]
    name, comma, rest = variant.title.partition(",")
    title = "%s %s%s%s, %s" % (name, version, comma, rest, with_threads(threads))
    return Worker(title, "%s_%s.py" % (kind, variant.program),
                  [*arguments, str(threads), *variant.mode], interpreter, environment,
                  cpus=threads, guest=True, counted=variant.counted)


def starts(kind: str, arguments: List[str], threads: int, guests: pypi.Guests,
           training: bool) -> Iterator[Callable[[], Worker]]:
    for blas in blas_variants():
        torch = partial(packaged_worker, "torch", kind + "_torch.py", arguments, threads, blas)
        yield torch
        if guests.interpreters:
            yield partial(torch, tuned=True)
        if guests.interpreters and kind == "works":
            yield partial(packaged_worker, "numpy", "works_numpy.py", arguments, threads, blas)
    for variant in VARIANTS:
        if variant.package in guests.interpreters and (variant.trains or not training):
            yield partial(guest_worker, variant, kind, arguments, threads, guests)


def all_of(kind: str, arguments: List[str], threads: int, guests: pypi.Guests, outcome: Outcome,
           figure: str = "", training: bool = False) -> List[Worker]:
    """The peers of a `kind` of worker ("network" or "works"), without those that are not there and
    guests that do not start: the outcome says why."""
    workers: List[Worker] = []
    for start in starts(kind, arguments, threads, guests, training):
        try:
            workers.append(start())
        except Absent as absent:
            outcome.leave_out("", [str(absent)])
        except Failed as failure:
            if not failure.guest:
                raise
            outcome.leave_out(figure, [str(failure)])
    return workers
