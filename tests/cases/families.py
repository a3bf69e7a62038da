# SPDX-License-Identifier: Apache-2.0
"""Finds the family files beside this one: each states the cases of its ops when it is imported."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import Dict, List

import harness

HERE = Path(__file__).resolve().parent
# What is not a family.
MACHINERY = {
    "harness", "backend", "runner", "modes", "families", "conftest", "stateful", "texts", "wire"
}


def paths() -> List[Path]:
    return [
        path
        for path in sorted(HERE.glob("*.py"))
        if path.stem not in MACHINERY and not path.stem.startswith("test_")
    ]


@lru_cache(maxsize=None)
def load() -> Dict[str, harness.Op]:
    """All ops of all families, stated once in a process. Loaded by path: array.py is no business of
    the standard module."""
    for path in paths():
        spec = importlib.util.spec_from_file_location("op_cases_" + path.stem, path)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    return harness.OPS
