# SPDX-License-Identifier: Apache-2.0
"""What a training shows: a progress bar while it runs, a loss curve when it is done. Plain lines
where no terminal reads."""

from __future__ import annotations

import sys
import time


class ProgressBar:
    """One line that is drawn again and again: [=======>      ] 240/600  loss 0.214  1.2 ms/step"""

    def __init__(self, total: int, label: str, quiet: bool = False, stream=None) -> None:
        self._total, self._label, self._quiet = total, label, quiet
        self._stream = stream or sys.stdout
        self._live = self._stream.isatty()
        self._begun = time.monotonic()
        self._first: int | None = None
        self._shown = 0.0
        self._quarter = -1

    def update(self, done: int, loss: float) -> None:
        """Draws, at most ten times a second; without a terminal one line per quarter."""
        if self._quiet:
            return
        if self._first is None:
            self._first = done - 1
        now = time.monotonic()
        last = done >= self._total
        quarter = 4 * done // self._total
        if self._live and (last or now
                           - self._shown >= 0.1) or not self._live and quarter > self._quarter:
            self._shown, self._quarter = now, quarter
            rate = 1000 * (now - self._begun) / max(1, done - self._first)
            filled = 28 * done // self._total
            bar = "=" * filled + (">" if filled < 28 else "") + " " * (27 - filled)
            text = "%s [%s] %d/%d  loss %.4f  %.2f ms/step" % (self._label, bar, done, self._total,
                                                               loss, rate)
            self._stream.write(("\r\x1b[K" + text + ("\n" if last else "")) if self._live else text
                               + "\n")
            self._stream.flush()

    def close(self) -> None:
        """Ends a line that is not complete."""
        if self._live and not self._quiet and self._shown:
            self._stream.write("\n")


def curve(values: list, width: int = 64, height: int = 10) -> str:
    """Losses over steps as a drawing of `height` lines, on a logarithmic scale; each column is a
    mean."""
    import math
    if not values:
        return ""
    columns = min(width, len(values))
    means = []
    for c in range(columns):
        part = values[c * len(values) // columns:(c + 1) * len(values) // columns]
        means.append(math.log10(max(sum(part) / len(part), 1e-6)))
    low, high = min(means), max(means)
    span = (high - low) or 1.0
    rows = [round((height - 1) * (high - m) / span) for m in means]
    lines = []
    for row in range(height):
        value = 10 ** (high - span * row / (height - 1))
        marks = "".join("*" if r == row else "." if r < row else " " for r in rows)
        lines.append("%9.4f |%s" % (value, marks.rstrip()))
    lines.append("     loss +" + "-" * columns)
    lines.append("           1%s%d steps" % (" " * max(1, columns - 1 - len(str(len(values)))),
                                             len(values)))
    return "\n".join(lines)
