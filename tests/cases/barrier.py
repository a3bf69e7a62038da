# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/barrier.cc."""

from harness import no_case

for name in ("Barrier", "BarrierInsertMany", "BarrierTakeMany", "BarrierClose", "BarrierReadySize",
             "BarrierIncompleteSize"):
    no_case(name, "state between runs; tests/python/test_barrier.py")
