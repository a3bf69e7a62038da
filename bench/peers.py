# SPDX-License-Identifier: Apache-2.0
"""The peer of this machine's distribution: python3-torch, in each BLAS that is installed for it.

The variant is chosen by LD_LIBRARY_PATH, which holds for one process; the distribution's
alternative is left as it is. torch keeps its default allocator.
"""

import glob
import os
from typing import Dict, List

from harness import Absent, Worker

INTERPRETER = "/usr/bin/python3"


def blas_variants() -> Dict[str, Dict[str, str]]:
    """Name → environment. Without OpenBLAS directories, the one that torch finds by itself."""
    found = {}
    for directory in sorted(glob.glob("/usr/lib/*/openblas-*")):
        if glob.glob(os.path.join(directory, "libblas.so.3")):
            found[os.path.basename(directory)] = {"LD_LIBRARY_PATH": directory}
    return found or {"default BLAS": {}}


def torch_workers(program: str, arguments: List[str], threads: int) -> List[Worker]:
    """One worker per BLAS variant, limited to `threads` processors and threads. Raises Absent."""
    workers = []
    for name, environment in blas_variants().items():
        limits = {"OMP_NUM_THREADS": str(threads), **environment}
        title = "torch, %s, %d thread%s" % (name, threads, "s" * (threads > 1))
        workers.append(Worker(title, program, [*arguments, str(threads)], INTERPRETER, limits,
                              cpus=threads))
    if not workers:
        raise Absent("torch: no BLAS for it")
    return workers
