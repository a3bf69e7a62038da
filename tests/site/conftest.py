# SPDX-License-Identifier: Apache-2.0
"""What all tests of the site's half stand on."""

import os
import signal
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What quick tests and proofs have in common, and the generator's tests, the module's and ours.
sys.path[:0] = [os.path.join(TOP, each) for each in ("gen/site", "tests/gen", "tests/support")]
from small_tree import small_tree  # noqa: E402,F401  (a fixture; the path must be set first)

# A job that a shell started in the background ignores SIGINT, and so do its children: programs that
# are sent one here must get it.
signal.signal(signal.SIGINT, signal.default_int_handler)
