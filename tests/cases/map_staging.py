# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/map_staging.cc."""

from harness import no_case

NAMES = ["%s%s" % (prefix, name) for prefix in ("Map", "OrderedMap") for name in (
    "Stage", "Unstage", "UnstageNoKey", "Peek", "Size", "IncompleteSize", "Clear")]
for name in NAMES:
    no_case(name, "state between runs; tests/python/test_staging.py")
