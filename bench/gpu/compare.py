#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of several files of figures.py and direct.cu side by side, the first one's ratio to each.

    python3 bench/gpu/compare.py treenail.json torch.json direct.json
"""

from __future__ import annotations

import json
import sys
from typing import Any, Dict, List


def row(name: str, files: List[Dict[str, Any]]) -> str:
    """Microseconds of each, and the others' ratio to the first: above 1, the first is faster."""
    seconds = [f["figures"].get(name, {}).get("median") for f in files]
    cells = ["%.1f" % (s * 1e6) if s else "" for s in seconds]
    ratios = ["%.2f" % (s / seconds[0]) if s else "" for s in seconds[1:]]
    return "| %s | %s |" % (name, " | ".join(cells + ratios))


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    files = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as stream:
            files.append(json.load(stream))
    names = [f["framework"] for f in files]
    print("| | %s |" % " | ".join(["%s, µs" % n for n in names] + ["÷ %s" % n for n in names[1:]]))
    print("|---" * (2 * len(files)) + "|")
    for name in files[0]["figures"]:
        print(row(name, files))
    return 0


if __name__ == "__main__":
    sys.exit(main())
