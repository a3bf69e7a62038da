# SPDX-License-Identifier: Apache-2.0
"""How fast the measured steps were, and how far that varies: the definitions of TensorFlow's
tf_cnn_benchmarks, so that the numbers mean the same."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import fmean, median, pstdev

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

# Times the median absolute deviation, the standard deviation of a normal distribution.
DEVIATIONS = 1.4826


@dataclass(frozen=True)
class Rates:
    """Units per second. With r the rate of each step and n their number: mean: all units over all
    step times (so a slow step weighs by its length). median: of r. uncertainty: the standard
    deviation of r over sqrt(n), the standard error. jitter: 1.4826 times the median of |r - median
    of r|, the spread that a few outliers do not move.
    """

    mean: float
    median: float
    uncertainty: float
    jitter: float

    @classmethod
    def of(cls, count: int, seconds: Sequence[float]) -> Rates:
        """Of steps over `count` units each that took `seconds`."""
        rates = [count / s for s in seconds]
        middle = median(rates)
        return cls(count / fmean(seconds), middle, pstdev(rates) / sqrt(len(rates)),
                   DEVIATIONS * median(abs(r - middle) for r in rates))

    def text(self, unit: str) -> str:
        """One phrase, with as many decimals as tf_cnn_benchmarks shows, more where it is slow."""
        decimals = 1 if self.mean >= 10 else 3
        return "%s/sec: %.*f +/- %.*f (jitter = %.*f)" % (
            unit, decimals, self.mean, decimals, self.uncertainty, decimals, self.jitter)
