# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/logging.cc."""

from harness import no_case

no_case("Assert", "gives nothing; tests/python/test_assertions.py")
no_case("Print", "writes to standard error; tests/python/test_assertions.py")
