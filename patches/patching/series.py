# SPDX-License-Identifier: Apache-2.0
"""The series of patches of one version of one component, and what must hold of it.

A component without any folder has no patches. One that has patches for some version needs a series
for every version, if only an empty one: so a new version does not lose its patches unnoticed.
"""

import datetime
import hashlib
import json
import os
import re
from typing import Dict, List, NamedTuple, Tuple

from patching import diff

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VARIANTS = ("upstream", "pinned", "patched")
NAME = re.compile(r"(\d{4})-[a-z0-9]+(?:-[a-z0-9]+)*\.patch")
_ORIGIN = re.compile(r"(upstream|backport|vendor|other)\b(, .+)?|https?://.+")
_URL = re.compile(r"https?://\S+")


class Refused(Exception):
    """A sentence for whoever asked: what is wrong, and what is needed."""


class Patch(NamedTuple):
    """A patch of a series; its file need not exist, nor be in order (`check` says so)."""

    name: str
    path: str

    @property
    def stem(self) -> str:
        return self.name[:-len(".patch")] if self.name.endswith(".patch") else self.name

    def text(self) -> str:
        # Bytes that are no UTF-8 survive: sources are in many encodings.
        with open(self.path, encoding="utf-8", errors="surrogateescape", newline="") as stream:
            return stream.read()

    def header(self) -> Dict[str, str]:
        return diff.fields(diff.split(self.text())[0])

    def diffs(self) -> str:
        return diff.split(self.text())[1]

    def tests(self) -> List[str]:
        """The files that test it; one is right."""
        folder = os.path.join(os.path.dirname(self.path), "tests")
        return [os.path.join(folder, name) for name in _listed(folder)
                if name.partition(".")[0] == self.stem]


class Series(NamedTuple):
    """The patches of a component's version, in the order in which they are applied."""

    component: str
    version: str
    folder: str
    patches: Tuple[Patch, ...]

    def __str__(self) -> str:
        return "%s %s" % (self.component, self.version)


def _listed(folder: str) -> List[str]:
    try:
        return sorted(name for name in os.listdir(folder)
                      if not name.startswith(".") and name != "__pycache__")
    except FileNotFoundError:
        return []


def components(root: str = ROOT) -> Dict[str, List[str]]:
    """{component: its versions that have a folder}"""
    found = {}
    for name in _listed(root):
        folder = os.path.join(root, name)
        if os.path.isdir(folder) and not os.path.exists(os.path.join(folder, "__init__.py")):
            found[name] = [v for v in _listed(folder) if os.path.isdir(os.path.join(folder, v))]
    return found


def _lines(path: str) -> List[str]:
    with open(path, encoding="utf-8") as stream:
        return [text for text in (line.partition("#")[0].strip() for line in stream) if text]


def load(component: str, version: str, root: str = ROOT) -> Series:
    """The series of a version; an empty one of a component that never had a patch."""
    for word in (component, version):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+~_-]*", word):
            raise Refused("'%s' is neither the name of a component nor a version" % word)
    folder = os.path.join(root, component, version)
    path = os.path.join(folder, "series")
    if not os.path.isfile(path):
        known = components(root).get(component)
        if known is None:
            return Series(component, version, folder, ())
        raise Refused(
            "%s %s has no series of patches, %s: review those for it and write "
            "patches/%s/%s/series, which may be empty; or choose the variant pinned" % (
                component, version,
                "only %s" % ", ".join(known) if known else "nor has any other version",
                component, version))
    return Series(component, version, folder, tuple(
        Patch(name, os.path.join(folder, name)) for name in _lines(path)))


def chosen(component: str, version: str, variant: str, root: str = ROOT) -> Series:
    """The series that a variant applies: none but `patched` applies any, and that one is in
    order."""
    if variant not in VARIANTS:
        raise Refused("unknown variant '%s'; there are %s" % (variant, ", ".join(VARIANTS)))
    if variant != "patched":
        return Series(component, version, os.path.join(root, component, version), ())
    return in_order(load(component, version, root))


def digest(series: Series) -> str:
    """SHA-256 over the diffs in their order. Neither headers nor file names are in it: a better
    description rebuilds nothing. Without patches it is the same for every component and variant,
    for then the sources alone tell two builds apart."""
    total = hashlib.sha256()
    for patch in series.patches:
        data = patch.diffs().encode("utf-8", "surrogateescape")
        total.update(b"%d\n" % len(data) + data)
    return total.hexdigest()


# ---- check -----------------------------------------------------------------------------------


def _header_faults(header: Dict[str, str]) -> List[str]:
    found = []
    for name in ("Description", "Last-Update"):
        if not header.get(name):
            found.append("the header has no %s" % name)
    if len(header.get("Description", "").split("\n")[0]) > 80:
        found.append("the first line of Description is longer than 80 characters")
    if "Origin" in header and not _ORIGIN.match(header["Origin"]):
        found.append("Origin is '%s'; it begins with upstream, backport, vendor, other or a URL"
                     % header["Origin"])
    if "Origin" not in header and not (header.get("Author") and header.get("Forwarded")):
        found.append("the header has neither Origin nor Author and Forwarded")
    forwarded = header.get("Forwarded", "no")
    if forwarded not in ("no", "not-needed", "yes") and not _URL.match(forwarded):
        found.append("Forwarded is '%s'; it is no, not-needed, yes or a URL" % forwarded)
    for name, value in header.items():
        if re.match(r"Bug(-|$)", name) and not _URL.match(value):
            found.append("%s is '%s', which is no URL" % (name, value))
    try:
        datetime.datetime.strptime(header.get("Last-Update") or "2000-01-01", "%Y-%m-%d")
    except ValueError:
        found.append("Last-Update is '%s'; a date is written 2026-01-31" % header["Last-Update"])
    return found


def _patch_faults(patch: Patch) -> List[str]:
    if not os.path.isfile(patch.path):
        return ["series names it, but there is no such file"]
    found = [] if NAME.fullmatch(patch.name) else [
        "a patch is called NNNN-what-it-does.patch, in lower case"]
    try:
        header, diffs = diff.split(patch.text())
        found += _header_faults(diff.fields(header))
        diff.changes(diffs)
    except diff.Malformed as fault:
        found.append(str(fault))
    tests = patch.tests()
    if len(tests) != 1:
        found.append("it has %s; one is needed, called tests/%s.py" % (
            "the tests " + ", ".join(map(os.path.basename, tests)) if tests else "no test",
            patch.stem))
    return found


def faults(series: Series) -> List[str]:
    """What is wrong with a series, a line each: 'component/version/file: sentence'."""
    found: List[Tuple[str, str]] = []
    names = [patch.name for patch in series.patches]
    for name in sorted(set(names)):
        if names.count(name) > 1:
            found.append(("series", "%s is listed %d times" % (name, names.count(name))))
    numbers = [match.group(1) for match in map(NAME.fullmatch, dict.fromkeys(names)) if match]
    if numbers != sorted(set(numbers)):
        found.append(("series", "the numbers of the patches do not rise: %s" % " ".join(numbers)))
    for patch in dict.fromkeys(series.patches):
        found += [(patch.name, text) for text in _patch_faults(patch)]
    found += [(name, "series does not name it") for name in _listed(series.folder)
              if name not in (*names, "series", "tests")]
    stems = {patch.stem for patch in series.patches}
    found += [("tests/" + name, "no patch of the series has this name")
              for name in _listed(os.path.join(series.folder, "tests"))
              if name.partition(".")[0] not in stems and name != "support"]
    place = "%s/%s" % (series.component, series.version)
    return ["%s/%s: %s" % (place, name, text) for name, text in found]


def check(root: str = ROOT) -> Tuple[List[Series], List[str]]:
    """Every series there is, and what is wrong with them."""
    every, found = [], []
    for component, versions in components(root).items():
        if not versions:
            found.append("%s: a component has a folder for each version" % component)
        for version in versions:
            try:
                every.append(load(component, version, root))
                found += faults(every[-1])
            except (Refused, UnicodeDecodeError) as fault:
                found.append("%s/%s: %s" % (component, version, fault))
    return every, found


def in_order(series: Series) -> Series:
    """The series; raises Refused where anything is wrong with it."""
    found = faults(series)
    if found:
        raise Refused("the patches of %s are not in order:\n%s" % (
            series, "\n".join("  " + line for line in found)))
    return series


def as_json(every: List[Series]) -> str:
    return json.dumps([{
        "component": s.component, "version": s.version, "digest": digest(s),
        "patches": [{"name": p.name, "header": p.header()} for p in s.patches]}
        for s in every], indent=1, sort_keys=True)
