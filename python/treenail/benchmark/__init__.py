# SPDX-License-Identifier: Apache-2.0
"""The acceptance benchmark: known networks on synthetic data, as the program treenail-bench.

The program and its report are the interface (docs/site/benchmark.md, man treenail-bench); the
modules in here are private.
"""

from treenail.benchmark._program import main

__all__ = ["main"]
