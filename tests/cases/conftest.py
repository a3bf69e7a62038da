# SPDX-License-Identifier: Apache-2.0
"""Lets the family files say `from harness import ...`, without hiding the standard library.

pytest puts this folder first on the path, where array.py would be taken for the standard module.
"""

import sys
from pathlib import Path

HERE = str(Path(__file__).resolve().parent)
sys.path[:] = [entry for entry in sys.path if entry != HERE] + [HERE]
