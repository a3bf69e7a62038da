# SPDX-License-Identifier: Apache-2.0
"""What the guide must name because the product reads it."""

import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]


def test_the_guide_names_every_environment_variable():
    read = set()
    for folder in ("framework", "kernels", "python"):
        for path in sorted((SOURCE / folder).rglob("*")):
            if path.suffix in (".cc", ".h", ".py"):
                read.update(re.findall(r'"(TREENAIL_[A-Z_]+)"', path.read_text(encoding="utf-8")))
    guide = (SOURCE / "docs/guide.md").read_text(encoding="utf-8")
    assert len(read) > 3
    assert sorted(name for name in read if "`%s`" % name not in guide) == []
