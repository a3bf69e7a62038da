# SPDX-License-Identifier: Apache-2.0
"""Showing a training in a terminal or a log: progress bar, loss curve, libraries in use."""

import os
import re
import sys
import time
from typing import Dict, List, Sequence, TextIO

BLOCKS = " ▁▂▃▄▅▆▇█"
# What to look for in the process's memory map.
LIBRARIES = {"BLAS": r"/(lib(?:openblas|blas|cblas|blis|flexiblas|atlas|mkl_rt)[^/]*\.so[^/]*)$",
             "HDF5": r"/(libhdf5[^/]*\.so[^/]*)$", "oneDNN": r"/(libdnnl[^/]*\.so[^/]*)$",
             "kernels": r"/kernels/([^/]+)/libtreenail-kernels-cpu\.so$",
             "treenail": r"/(libtreenail\.so[^/]*)$"}


class Progress:
    """A bar that is redrawn in place on a terminal; on a log, a line each tenth of the way."""

    def __init__(self, total: int, stream: TextIO = sys.stdout) -> None:
        self._total, self._stream = max(total, 1), stream
        self._terminal = stream.isatty()
        self._begin = time.monotonic()
        self._last_tenth = -1
        self._last_draw = 0.0

    def show(self, done: int, text: str) -> None:
        share = done / self._total
        if self._terminal:
            now = time.monotonic()
            if now - self._last_draw < 0.05 and done < self._total:
                return
            self._last_draw = now
            filled = int(share * 30)
            spent = now - self._begin
            self._stream.write("\r[%s%s] %3d %%  %s  %.0f s " % ("#" * filled, "." * (30 - filled),
                                                                 share * 100, text, spent))
        elif int(share * 10) > self._last_tenth:
            self._last_tenth = int(share * 10)
            self._stream.write("  %3d %%  %s\n" % (share * 100, text))
        self._stream.flush()

    def end(self) -> None:
        if self._terminal:
            self._stream.write("\n")


def curve(values: Sequence[float], width: int = 60, height: int = 6) -> List[str]:
    """`values` over time as lines of block characters, the largest at the top."""
    if not values:
        return []
    width = min(width, len(values))
    columns = [values[i * len(values) // width:(i + 1) * len(values) // width] for i in range(width)]
    means = [sum(c) / len(c) for c in columns]
    top = max(means) or 1.0
    lines = []
    for row in range(height - 1, -1, -1):
        cells = [min(max(m / top * height - row, 0), 1) for m in means]
        label = "%8.3f" % (top * (row + 1) / height)
        lines.append("%s |%s" % (label, "".join(BLOCKS[round(c * 8)] for c in cells)))
    return lines


def loaded_libraries() -> Dict[str, str]:
    """Kind → file name of each library of interest that this process has mapped."""
    found: Dict[str, str] = {}
    if not os.path.exists("/proc/self/maps"):
        return found
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = sorted({line.split(None, 5)[5].strip() for line in maps if line.count("/")})
    for kind, pattern in LIBRARIES.items():
        names = [m.group(1) for m in (re.search(pattern, os.path.realpath(p) if kind == "BLAS" else p)
                                      for p in paths) if m]
        if names:
            found[kind] = ", ".join(dict.fromkeys(names))
    return found
