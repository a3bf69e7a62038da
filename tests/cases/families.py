# SPDX-License-Identifier: Apache-2.0
"""Finds the family files beside this one: each states the cases of its ops when it is imported."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Dict, List

import harness

HERE = Path(__file__).resolve().parent
# What is not a family.
MACHINERY = {"harness", "backend", "runner", "families", "conftest"}


def names() -> List[str]:
    return sorted(
        path.stem
        for path in HERE.glob("*.py")
        if path.stem not in MACHINERY and not path.stem.startswith("test_")
    )


def load() -> Dict[str, harness.Op]:
    """All ops of all families."""
    for name in names():
        importlib.import_module(name)
    return harness.OPS
