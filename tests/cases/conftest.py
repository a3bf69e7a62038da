# SPDX-License-Identifier: Apache-2.0
"""Lets the family files say `from harness import ...`, without hiding the standard library.

pytest puts this folder first on the path, where array.py would be taken for the standard module.
"""

import gc
import sys
from pathlib import Path

HERE = str(Path(__file__).resolve().parent)
sys.path[:] = [entry for entry in sys.path if entry != HERE] + [HERE]


def pytest_collection_finish():
    """Ten thousand collected tests live to the end: the garbage collector need not look at them
    again, in some tests of strings three times each."""
    gc.collect()
    gc.freeze()
