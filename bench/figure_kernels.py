# SPDX-License-Identifier: Apache-2.0
"""What kernels make of the machine: matrix products against the peak of fused multiply-adds, and
the gain of the level in use over the baseline. bench/kernels, a Google Benchmark program, by turns.
Levels are compared without any adapter, for at the baseline a BLAS would multiply.
"""

import glob
import os
import re
import statistics
import tempfile
from typing import Dict, List

from harness import Outcome, Row, benchmarks

PEAK = "Peak/fused_multiply_add"
# Product m x n x k, threads → the promised share of so many times the peak of one thread.
PRODUCTS = (("64x64x64", 1, 0.85), ("64x512x784", 1, 0.80), ("64x512x784/b_kept", 1, 0.85),
            ("512x512x512", 1, 0.90), ("1024x1024x1024", 1, 0.90),
            ("2048x2048x2048", 1, 0.90), ("1024x1024x1024", 2, 0.86))
# Kernel, and how many times faster than at the baseline it is promised to be.
LEVELS = (("Exp/[65536]", 1.8), ("Gelu/[65536]", 1.8), ("Softmax/[1024,1024]", 1.8),
          ("Tanh/[65536]", 1.6), ("MatMul/64x512x784", 2.5),
          ("Conv2D/8x56x56x64/3x3x64/SAME/stride_1", 2.5))
# What was measured about figures that miss their promise.
BOUNDS = {
    "matrix product": "Large products depend on caches that neighbours of a virtual machine share. "
                      "Quiet, side by side in one process, processor time of one thread, x86-64-v4 "
                      "on Zen 4: 0.93 of the peak at 512x512x512, 0.90 at 1024x1024x1024, 0.91 at "
                      "2048x2048x2048; OpenBLAS 0.87, 0.89, 0.89. Tried: rows of A copied "
                      "together and fetched ahead (2 to 4 % more), passes of 96 to 192 instead of "
                      "256 (less), blocks of 128 to 512 columns (the same). Remains: the first.",
}
BASELINE = {"x86_64": "x86-64", "aarch64": "armv8-a"}


def microseconds(program: str, names: List[str], **variables: str) -> Dict[str, float]:
    """Name → microseconds; names that the program does not know are left out."""
    pattern = "|".join("^%s/" % name.replace("[", "\\[") for name in names)  # POSIX, not Python's
    found = {}
    for entry in benchmarks(program, "--benchmark_min_time=0.05", "--benchmark_filter=" + pattern,
                            **variables):
        assert entry["time_unit"] == "us"
        found[entry["name"].replace("/real_time", "")] = entry["real_time"]
    return found


def medians(found: List[Dict[str, float]]) -> Dict[str, float]:
    return {name: statistics.median(turn[name] for turn in found) for name in found[0]}


def measure(build: str, rounds: int) -> Outcome:
    outcome = Outcome()
    program = os.path.join(build, "bench/kernels_bench")
    if not os.path.exists(program):
        outcome.skipped.append("kernels: no %s; `ninja bench` builds it where Google Benchmark is "
                               "installed" % program)
        return outcome
    products = ["MatMul/" + shape for shape, _, _ in PRODUCTS] + ["MatMul/1x512x784"]
    baseline = BASELINE.get(os.uname().machine, "")
    levels = [name for name, _ in LEVELS] if baseline else []
    found, fast, slow = [], [], []
    with tempfile.TemporaryDirectory() as bare:
        for kernels in glob.glob(os.path.join(build, "lib/treenail-*/kernels")):
            os.symlink(os.path.abspath(kernels), os.path.join(bare, "kernels"))
        for _ in range(rounds):
            found.append(microseconds(program, [PEAK] + products))
            if levels:
                fast.append(microseconds(program, levels, TREENAIL_LIBRARY_DIR=bare))
                slow.append(microseconds(program, levels, TREENAIL_LIBRARY_DIR=bare,
                                         TREENAIL_CPU_ISA=baseline))
    add_products(outcome, medians(found))
    outcome.explain(BOUNDS)
    if levels:
        add_levels(outcome, medians(fast), medians(slow), baseline)
    return outcome


def add_products(outcome: Outcome, found: Dict[str, float]) -> None:
    peaks = [2e-3 * int(bits) / 32 * 12 * 1000 / time  # of fma_peak() in kernels_bench.cc
             for name, time in found.items()
             for bits in re.findall(PEAK + r"/(\d+)_bits", name)]
    if not peaks:
        outcome.skipped.append("shares of the peak: it is measured on x86-64 with AVX2 and FMA")
        return
    peak = max(peaks)  # GFLOP/s
    for shape, threads, share in PRODUCTS:
        m, n, k = map(int, shape.split("/")[0].split("x"))
        time = found["MatMul/%s/threads:%d" % (shape, threads)]
        row = Row("matrix product %s, %d thread%s" % (shape, threads, "s" * (threads > 1)), time,
                  "µs", note="%.1f GFLOP/s" % (2e-3 * m * n * k / time), wanted=share)
        row.beside({"at the peak of %.1f GFLOP/s a thread" % peak:
                    2e-3 * m * n * k / (threads * peak)})
        outcome.rows.append(row)
    time = found["MatMul/1x512x784/threads:1"]
    rate = 2e-3 * 512 * 784 / time
    outcome.rows.append(Row("row times matrix, 1x512x784, 1 thread", time, "µs",
                            limit=2e-3 * 512 * 784 / 30, note="%.1f GFLOP/s" % rate))


def add_levels(outcome: Outcome, fast: Dict[str, float], slow: Dict[str, float],
               baseline: str) -> None:
    for name, ratio in LEVELS:
        key = name + "/threads:1"
        row = Row("%s, best level of this machine" % name, fast[key], "µs", wanted=ratio)
        row.beside({"level " + baseline: slow[key]})
        outcome.rows.append(row)
