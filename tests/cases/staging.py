# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/staging.cc."""

from harness import no_case

for name in "Stage Unstage StagePeek StageSize StageClear".split():
    no_case(name, "state between runs; tests/python/test_staging.py")
