# SPDX-License-Identifier: Apache-2.0
"""Lets the family files say `from harness import ...`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
