# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/functional.cc."""

from harness import no_case

for name in ("PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", "Case",
             "StatelessCase", "While", "StatelessWhile"):
    no_case(name, "calls functions of a graph: tests/python/test_control_flow.py")
