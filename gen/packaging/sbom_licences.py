# SPDX-License-Identifier: Apache-2.0
"""The licence of each file of the tree, and of several together."""

import fnmatch
import os
import re
from typing import Iterable

from packaging_copyright import stanzas
from gen.install import metadata

UNKNOWN = "NOASSERTION"
# Where debian/copyright is not there.
WITHOUT_A_LINE = {"smoke/digits.csv": "CC-BY-4.0", "tests/random123/kat_vectors": "BSD-3-Clause"}
DEBIAN_NAMES = {"Expat": "MIT", "GPL-2+": "GPL-2.0-or-later", "GPL-3+": "GPL-3.0-or-later",
                "BSD-2-clause": "BSD-2-Clause", "BSD-3-clause": "BSD-3-Clause"}
_LICENCE = re.compile(rb"SPDX-License-Identifier:\s*([A-Za-z0-9.+() -]*[A-Za-z0-9.+)])")


class Licences:
    """The licence of each file of the tree."""

    def __init__(self, source: str):
        self.source = source
        self.whole = re.findall(r"^License: (.*)$", metadata("0"), re.MULTILINE)[0]
        there = os.path.exists(os.path.join(source, "debian/copyright"))
        self.stanzas = stanzas(source)[0] if there else []

    def of(self, name: str) -> str:
        with open(os.path.join(self.source, name), "rb") as stream:
            line = _LICENCE.search(stream.read(2000))
        if line:
            return line.group(1).decode()
        for pattern, licence, _ in reversed(self.stanzas):
            if fnmatch.fnmatchcase(name, pattern):
                return in_spdx(licence)
        return WITHOUT_A_LINE.get(name, self.whole)


def in_spdx(licence: str) -> str:
    """An expression of debian/copyright in SPDX's words."""
    return " ".join(word.upper() if word in ("and", "or") else DEBIAN_NAMES.get(word, word)
                    for word in licence.split())


def together(licences: Iterable[str]) -> str:
    """All of them at once."""
    parts = sorted({part for licence in licences for part in licence.split(" AND ")} - {UNKNOWN})
    if not parts:
        return UNKNOWN
    return " AND ".join("(%s)" % p if " OR " in p and len(parts) > 1 else p for p in parts)
