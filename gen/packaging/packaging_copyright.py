# SPDX-License-Identifier: Apache-2.0
"""debian/copyright held to what files say of themselves, as licensecheck reads it."""

import fnmatch
import re

from packaging_files import read_control, tree_file
from proving import SOURCE, need, run, tracked

# Files that speak of licences and are under none of those.
SPEAKING = {
    "debian/copyright": "it lists all of them",
    "smoke/DATA.md": "it says where the digits are from",
    "gen/packaging/packaging_copyright.py": "this list",
}


def stanzas(source):
    """(pattern, licence, line) of each Files stanza, in order; the licences that have a text."""
    rows, texts = [], set()
    for stanza in read_control(tree_file("debian/copyright", source)):
        licence = stanza["License"].value.split("\n")[0] if "License" in stanza else ""
        if "Files" in stanza:
            rows += [(pattern, licence, stanza["Files"].line)
                     for pattern in stanza["Files"].value.split()]
        elif licence:
            texts.add(licence)
    return rows, texts


def said_by_files(names, source):
    """{path: licence} by licensecheck; UNKNOWN where a file says nothing."""
    need("licensecheck", "licensecheck")
    found = dict.fromkeys(names, "UNKNOWN")  # of data it says nothing at all
    for at in range(0, len(names), 500):
        for line in run(["licensecheck", "--machine", "--shortname-scheme=spdx,debian",
                         *names[at:at + 500]], cwd=source).splitlines():
            path, _, licence = line.partition("\t")
            found[path] = licence.strip()
    return found


def debian_copyright(source=SOURCE, said=None):
    """debian/copyright gives each file the licence that it states itself"""
    path, found = "debian/copyright", []
    rows, texts = stanzas(source)
    said = said_by_files(tracked(source), source) if said is None else said
    for pattern, licence, line in rows:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in said):
            found.append("%s:%d: %s matches no file" % (path, line, pattern))
        if licence not in texts:
            found.append("%s:%d: %s has no stanza with its text" % (path, line, licence))
    for name, stated in sorted(said.items()):
        if stated == "UNKNOWN" or name in SPEAKING:
            continue
        licence, line = next(((licence, line) for pattern, licence, line in reversed(rows)
                              if fnmatch.fnmatchcase(name, pattern)), ("no licence", 1))
        if re.sub(r"\W", "", stated).lower() != re.sub(r"\W", "", licence).lower():
            found.append("%s:%d: %s for %s, which says %s" % (path, line, licence, name, stated))
    return found, "%d files" % len(said)
