# SPDX-License-Identifier: Apache-2.0
"""The same series for the packages: debian/patches of a source package, Patch: lines of a spec.

dpkg-source and %autosetup -p1 apply what they are given in the order of debian/patches/series and
of the numbers. What was exported before and is no longer in the series is taken away again.
"""

import os
import re
import shutil
from typing import List, Optional

from patching.series import NAME, Refused, Series, in_order

_MARK = "# Written by patches.py export-deb.\n"
_LINE = re.compile(r"^Patch\d*:[ \t]*(\S+)\n", re.MULTILINE)
_SOURCE = re.compile(r"^Source\d*:.*\n", re.MULTILINE)
_SETUP = re.compile(r"^%autosetup\b(.*)$", re.MULTILINE)


def _write(path: str, data: bytes, done: List[str]) -> None:
    try:
        with open(path, "rb") as stream:
            if stream.read() == data:
                return
    except FileNotFoundError:
        pass
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as stream:
        stream.write(data)
    done.append("wrote " + path)


def _data(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()


def to_debian(series: Series, debian: str) -> List[str]:
    """Makes DEBIAN/patches say the series; what it did, a line each."""
    in_order(series)
    if os.path.basename(os.path.abspath(debian)) != "debian" or not os.path.isdir(debian):
        raise Refused("%s is no folder debian of a source package" % debian)
    folder, done = os.path.join(debian, "patches"), []
    listed = os.path.join(folder, "series")
    if os.path.isdir(folder) and not (
            os.path.isfile(listed) and _data(listed).startswith(_MARK.encode())):
        raise Refused("%s was not written by export-deb; move its patches into patches/%s/%s, and "
                      "the folder away" % (folder, series.component, series.version))
    if not series.patches:
        if os.path.isdir(folder):
            shutil.rmtree(folder)
            done.append("removed " + folder)
        return done
    names = [patch.name for patch in series.patches]
    done += copied(series, folder)
    _write(listed, (_MARK + "".join(name + "\n" for name in names)).encode(), done)
    for name in sorted(os.listdir(folder)):
        if name not in names and name != "series":
            os.remove(os.path.join(folder, name))
            done.append("removed " + os.path.join(folder, name))
    return done


def spec_text(series: Series, text: str) -> str:
    """The text of a spec with the Patch: lines of the series, behind its last Source: line."""
    others = [name for name in _LINE.findall(text) if not NAME.fullmatch(name)]
    if others:
        raise Refused("the spec applies %s, which no series names; make it a patch of patches/%s/%s"
                      % (", ".join(others), series.component, series.version))
    rest = _LINE.sub("", text)
    lines = "".join("%-16s%s\n" % ("Patch%d:" % number, patch.name)
                    for number, patch in enumerate(series.patches, 1))
    if not lines:
        return rest
    setup = _SETUP.search(rest)
    if not setup or "-p1" not in setup.group(1).split():
        raise Refused("the spec does not apply patches: its %prep needs %autosetup -p1")
    sources = list(_SOURCE.finditer(rest))
    if not sources:
        raise Refused("the spec has no Source: line, behind which the Patch: lines would stand")
    return rest[:sources[-1].end()] + lines + rest[sources[-1].end():]


def copied(series: Series, folder: str) -> List[str]:
    """Copies the patches to a folder, as rpmbuild's SOURCES."""
    done: List[str] = []
    for patch in series.patches:
        _write(os.path.join(folder, patch.name), _data(patch.path), done)
    return done


def to_rpm(series: Series, spec: str, sources: Optional[str] = None) -> List[str]:
    """Makes a spec say the series, and copies the patches to rpmbuild's SOURCES."""
    in_order(series)
    done: List[str] = []
    _write(spec, spec_text(series, _data(spec).decode()).encode(), done)
    return done + (copied(series, sources) if sources else [])
