# SPDX-License-Identifier: Apache-2.0
"""A patch file in two parts: a header in DEP-3's form, and unified diffs.

Only what GNU patch does by itself with -p1 is understood; what needs git (renames, modes, binary
files) is refused, for an Ansible role, dpkg-source and rpmbuild all apply these files.
"""

import re
from typing import Dict, List, NamedTuple, Tuple

_BEGIN = re.compile(r"(--- |diff |Index: )")
_FIELD = re.compile(r"([A-Z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*):(?:[ \t](.*)|$)")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NEEDS_GIT = re.compile(r"(GIT binary patch|Binary files |rename |copy |old mode |new mode )")
NOTHING = "/dev/null"


class Malformed(Exception):
    """What is wrong with the text of a patch, with its line."""


class Change(NamedTuple):
    """One file that a patch changes: its paths before and after, without a/ and b/; NOTHING where
    the patch makes the file or removes it."""

    before: str
    after: str

    @property
    def path(self) -> str:
        return self.before if self.after == NOTHING else self.after


def split(text: str) -> Tuple[str, str]:
    """(header, diffs); a line '---' alone may stand between them, as dpkg-source writes it."""
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if _BEGIN.match(line) or line.rstrip() == "---":
            return "".join(lines[:number]), "".join(lines[number:])
    raise Malformed("there is no diff in it")


def fields(header: str) -> Dict[str, str]:
    """The fields of a header; the lines of a long one are joined by line breaks."""
    found: Dict[str, str] = {}
    name = ""
    for number, line in enumerate(header.splitlines(), 1):
        match = _FIELD.match(line)
        if match:
            name = match.group(1)
            if name in found:
                raise Malformed("line %d: the field %s is there twice" % (number, name))
            found[name] = (match.group(2) or "").strip()
        elif line[:1] in (" ", "\t") and name:
            found[name] += "\n" + line.strip()
        elif line.strip():
            raise Malformed("line %d: '%s' is neither 'Field: value' nor, with a blank before it, "
                            "more of the field above" % (number, line.strip()))
    return found


def _path(line: str, number: int) -> str:
    """The path of a line '--- a/x' or '+++ b/x'."""
    path = line[4:].split("\t")[0].rstrip()
    if path == NOTHING:
        return path
    inner = path.partition("/")[2]
    if path.startswith("/") or not inner or ".." in path.split("/"):
        raise Malformed("line %d: '%s' is not a path below one leading folder (a/..., b/...: "
                        "patches are applied with -p1)" % (number, path))
    return inner


def changes(text: str) -> List[Change]:
    """The files that the diffs in a patch change, each once; every hunk must be complete."""
    lines = text.splitlines()
    found: List[Change] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if _NEEDS_GIT.match(line):
            raise Malformed("line %d: '%s' needs git; write a plain diff" % (at + 1, line))
        if line.startswith("@@"):
            raise Malformed("line %d: a hunk without '--- a/file' and '+++ b/file'" % (at + 1))
        if not line.startswith("--- ") or not lines[at + 1:at + 2] or (
                not lines[at + 1].startswith("+++ ")):
            at += 1
            continue
        change = Change(_path(line, at + 1), _path(lines[at + 1], at + 2))
        if NOTHING not in change and change.before != change.after:
            raise Malformed("line %d: %s becomes %s; a patch may not rename" % (
                at + 1, change.before, change.after))
        if change.path in [known.path for known in found]:
            raise Malformed("line %d: %s is changed twice" % (at + 1, change.path))
        found.append(change)
        at = _hunks(lines, at + 2)
    if not found:
        raise Malformed("there is no diff in it")
    return found


def _hunks(lines: List[str], at: int) -> int:
    """The line behind the hunks that begin at a line."""
    begin = at
    while at < len(lines):
        match = _HUNK.match(lines[at])
        if not match:
            break
        start, at = at, at + 1
        left = [1 if group is None else int(group) for group in match.groups()]
        while any(left):
            if at >= len(lines) or lines[at][:1] not in ("", " ", "-", "+", "\\"):
                raise Malformed("line %d: the hunk ends early; %d old and %d new lines are "
                                "missing" % (start + 1, *left))
            sign = lines[at][:1]
            left[0] -= sign in ("", " ", "-")
            left[1] -= sign in ("", " ", "+")
            at += 1
        if at < len(lines) and lines[at].startswith("\\"):
            at += 1
    if at == begin:
        raise Malformed("line %d: a file without a hunk" % (begin + 1))
    return at
