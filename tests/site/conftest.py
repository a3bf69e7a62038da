# SPDX-License-Identifier: Apache-2.0
"""What all tests of the site's half stand on."""

import os
import signal
import sys

# What quick tests and proofs have in common.
sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir, os.pardir, "gen", "site"))

# A job that a shell started in the background ignores SIGINT, and so do its children: programs that
# are sent one here must get it.
signal.signal(signal.SIGINT, signal.default_int_handler)
