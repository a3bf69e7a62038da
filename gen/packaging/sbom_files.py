# SPDX-License-Identifier: Apache-2.0
"""The files of a package, and which of them the install manifest knows."""

import fnmatch
import json
import os
import re
from dataclasses import dataclass
from importlib.util import source_from_cache
from typing import Any, Dict, List, Set, Tuple

from sbom_graph import Unusable

# What packaging adds to the files of the manifest; no source of ours went into it.
METADATA = ("usr/share/doc/*", "usr/share/doc-base/*", "usr/share/lintian/overrides/*",
            "usr/share/licenses/*", "usr/share/bug/*", "usr/share/python3/*",
            "usr/lib/.build-id/*")
# What rpm splits off into packages of its own, after a build and before the bills.
SPLIT_OFF = ("usr/lib/debug/*", "usr/src/debug/*")
CONTROL = "DEBIAN"  # dpkg-deb's own directory; it is no part of what is installed
HTML = re.compile(r"usr/share/doc/[^/]+/html/")


@dataclass
class Shipped:
    """A file of the package. name: from its root."""

    name: str
    path: str
    output: str = ""  # of the build, from the manifest
    compiled: str = ""  # of byte-compiled Python: the source's name in the package
    data: bytes = b""

    @property
    def elf(self) -> bool:
        return self.data.startswith(b"\x7fELF")


def read_manifest(build: str) -> Dict[str, Dict[str, Any]]:
    """Installed name without the first slash -> entry."""
    path = os.path.join(build, "gen/install.json")
    try:
        with open(path, encoding="utf-8") as stream:
            return {e["to"].lstrip("/"): e for e in json.load(stream)["entries"]}
    except OSError as error:
        raise Unusable("%s: %s; configure first" % (path, error.strerror)) from None


def matches(name: str, patterns: Tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def compiled_from(name: str) -> str:
    """The .py that packaging has byte-compiled to this file; else ''."""
    try:
        return source_from_cache(name) if name.endswith(".pyc") else ""
    except ValueError:  # beside its source, as Python 2 had it
        return name[:-1]


def is_metadata(name: str, package: str, shared: bool) -> bool:
    """Is it one of packaging's own files (in a shared directory: of this package)?"""
    if not matches(name, METADATA):
        return False
    return not shared or package in name.split("/")[3:5]


def shipped_files(root: str, package: str, entries: Dict[str, Dict[str, Any]], output: str,
                  parts: Set[str]) -> List[Shipped]:
    """The package's regular files; raises for one that neither manifest nor packaging explains, in
    a directory that several packages share for one that is no other package's either."""
    if not os.path.isdir(root):
        raise Unusable("--root=%s is no directory" % root)
    found, strange = [], []
    for folder, folders, leaves in os.walk(root):
        inner = os.path.relpath(folder, root)
        if inner == ".":
            folders[:] = [name for name in folders if name != CONTROL]
        for leaf in leaves + [n for n in folders if os.path.islink(os.path.join(folder, n))]:
            path = os.path.join(folder, leaf)
            name = os.path.normpath(os.path.join(inner, leaf))
            if os.path.realpath(path) == os.path.realpath(output):
                continue
            compiled = compiled_from(name)
            known = compiled or (name if name in entries else
                                 name[:-3] if name.endswith(".gz") else "")
            entry = entries.get(known)
            if entry is None and not is_metadata(name, package, False):
                if not parts or not matches(name, SPLIT_OFF):
                    strange.append(name)
                continue
            if compiled and not os.path.exists(os.path.join(root, compiled)):
                strange.append(name)
            if parts and (entry["package"] not in parts if entry
                          else not is_metadata(name, package, True)):
                continue
            if os.path.islink(path):
                continue
            with open(path, "rb") as stream:
                found.append(Shipped(name, path, entry.get("from", "") if entry else "",
                                     compiled if entry else "", stream.read()))
    if strange:
        raise Unusable("%s: the install manifest has no such file, and it is none that packaging "
                       "adds (%s)" % (", ".join(sorted(strange)), " ".join(METADATA)))
    if not any(item.output or HTML.match(item.name) for item in found):
        raise Unusable("%s holds no file of the install manifest%s" % (
            root, "'s parts " + ",".join(sorted(parts)) if parts else ""))
    return sorted(found, key=lambda item: item.name)
