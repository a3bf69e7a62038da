# SPDX-License-Identifier: Apache-2.0
"""A series applied to an unpacked source tree: wholly or not at all, and once.

Every patch is tried on copies of the files that it changes; only when the whole series went
through do the results take their places. A run that dies between the first and the last of these
moves leaves a journal, and the next one begins by putting everything back.
"""

import fcntl
import json
import os
import re
import shutil
import subprocess
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from patching import diff
from patching.series import Patch, Refused, Series, digest

RECORD = ".stack-patches"
_WORK = ".stack-patches.work"
_BEGUN = "begun"  # in the work folder: the files of the tree are being exchanged


class Outcome(NamedTuple):
    """What became of a tree: whether it changed, and what GNU patch found worth saying."""

    changed: bool
    notes: Tuple[str, ...] = ()


class DoesNotApply(Refused):
    """A patch does not fit the tree; the tree is as it was."""


# ---- the record ------------------------------------------------------------------------------


def read_record(tree: str) -> Optional[Dict]:
    """What was applied to a tree; None where nothing ever was."""
    path = os.path.join(tree, RECORD)
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
        if not isinstance(found, dict) or not isinstance(found.get("patches"), list):
            raise ValueError
        return found
    except FileNotFoundError:
        return None
    except ValueError:
        raise Refused("%s is not a record of ours; unpack the sources afresh" % path) from None


def _already(tree: str, wanted: Dict) -> bool:
    """Is the tree as wanted? Raises Refused where it can no longer become so."""
    present = read_record(tree)
    if present and present["patches"] and present.get("digest") != wanted["digest"]:
        raise Refused("%s has other patches already (%s %s, %s: %s); unpack the sources afresh" % (
            tree, present.get("component"), present.get("version"), present.get("variant"),
            ", ".join(map(str, present["patches"]))))
    return present == wanted


# ---- trying ----------------------------------------------------------------------------------


def _inside(tree: str, path: str) -> str:
    """The file of the tree that a patch means; never one outside, nor behind a link."""
    full = os.path.join(tree, path)
    if os.path.realpath(full) != os.path.join(os.path.realpath(tree), path):
        raise DoesNotApply("%s: %s is a link, or lies behind one" % (tree, path))
    return full


def _say(name: str, text: str) -> str:
    """What GNU patch said, as a sentence: hunk and file."""
    file, found, offsets = "", [], []
    for line in text.splitlines():
        match = re.match(r"patching file '?(.*?)'?$", line)
        file = match.group(1) if match else file
        match = re.match(r"Hunk #(\d+) FAILED at (\d+)", line)
        if match:
            found.append("hunk %s of %s, for line %s, does not fit" % (
                match.group(1), file, match.group(2)))
        match = re.match(r"Hunk #(\d+) succeeded at (\d+)(?: with fuzz \d+)? \(offset (-?\d+)",
                         line)
        if match:
            offsets.append("hunk %s of %s fits at line %s, %s off" % (
                match.group(1), file, *match.groups()[1:]))
        if "previously applied" in line or "Reversed" in line:
            found.append("%s looks as if it had the change already" % file)
    return "%s: %s" % (name, "; ".join(found or offsets or [text.strip()]))


def _try(patch: Patch, stage: str) -> List[str]:
    """Applies a patch to the copies in a folder. Returns notes; raises DoesNotApply."""
    command = ["patch", "-p1", "--fuzz=0", "--no-backup-if-mismatch", "--forward", "--force",
               "--reject-file=-", "-d", stage, "-i", patch.path]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
                              env=dict(os.environ, LC_ALL="C"), check=False)
    except FileNotFoundError:
        raise Refused("the program patch is not installed; apt-get install patch, or dnf install "
                      "patch") from None
    if done.returncode:
        raise DoesNotApply("does not apply: " + _say(patch.name, done.stdout))
    return [_say(patch.name, done.stdout)] if "(offset " in done.stdout else []


def _stage(patch: Patch, tree: str, stage: str, staged: Dict[str, bool]) -> None:
    """Copies what a patch changes and no patch before it did. staged: {path: was in the tree}"""
    for change in diff.changes(patch.diffs()):
        copy = os.path.join(stage, change.path)
        if change.path not in staged:
            original = _inside(tree, change.path)
            staged[change.path] = os.path.exists(original)
            if staged[change.path]:
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                shutil.copy2(original, copy)
        present = os.path.exists(copy)
        if change.before == diff.NOTHING and present:
            raise DoesNotApply("does not apply: %s: it would make %s, which is there already" % (
                patch.name, change.path))
        if change.before != diff.NOTHING and not present:
            raise DoesNotApply("does not apply: %s: there is no file %s" % (
                patch.name, change.path))


# ---- exchanging ------------------------------------------------------------------------------


def _recover(tree: str) -> None:
    """Puts back what a run that died had exchanged, and removes what it left."""
    work = os.path.join(tree, _WORK)
    journal = os.path.join(work, _BEGUN)
    if os.path.exists(journal):
        with open(journal, encoding="utf-8") as stream:
            staged = json.load(stream)
        for path, existed in staged.items():
            target, old = os.path.join(tree, path), os.path.join(work, "old", path)
            if existed and os.path.exists(old):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                os.replace(old, target)
            elif not existed and os.path.exists(target):
                os.remove(target)
        os.remove(journal)
    shutil.rmtree(work, ignore_errors=True)


def _exchange(tree: str, staged: Dict[str, bool]) -> None:
    """The copies take their places. Done is done when the journal is gone."""
    work = os.path.join(tree, _WORK)
    for path, existed in staged.items():
        if existed:
            old = os.path.join(work, "old", path)
            os.makedirs(os.path.dirname(old), exist_ok=True)
            shutil.copy2(os.path.join(tree, path), old)
    journal = os.path.join(work, _BEGUN)
    with open(journal + ".new", "w", encoding="utf-8") as stream:
        json.dump(staged, stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(journal + ".new", journal)
    for path in staged:
        target, copy = os.path.join(tree, path), os.path.join(work, "new", path)
        if os.path.exists(copy):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.replace(copy, target)
        elif os.path.exists(target):
            os.remove(target)
    os.remove(journal)


def apply(series: Series, tree: str, variant: str = "patched") -> Outcome:
    """Applies what series.chosen() gave for a variant to a tree, and records it there; nothing
    where that was done before."""
    if not os.path.isdir(tree):
        raise Refused("%s is no directory; name an unpacked source tree" % tree)
    record = {"component": series.component, "version": series.version, "variant": variant,
              "digest": digest(series), "patches": [patch.name for patch in series.patches]}
    lock = os.open(tree, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _recover(tree)
        if _already(tree, record):
            return Outcome(False)
        return Outcome(True, tuple(_put(series.patches, tree, record)))
    except BlockingIOError:
        raise Refused("another process is patching %s" % tree) from None
    finally:
        os.close(lock)


def add(patch: Patch, tree: str) -> None:
    """One patch, without a record: for a copy that is thrown away."""
    _put((patch,), tree, None)


def _put(patches: Sequence[Patch], tree: str, record: Optional[Dict]) -> List[str]:
    stage = os.path.join(tree, _WORK, "new")
    os.makedirs(stage)
    staged: Dict[str, bool] = {}
    notes: List[str] = []
    try:
        for patch in patches:
            _stage(patch, tree, stage, staged)
            notes += _try(patch, stage)
        if record is not None:  # one file among the others
            staged[RECORD] = os.path.exists(os.path.join(tree, RECORD))
            with open(os.path.join(stage, RECORD), "w", encoding="utf-8") as stream:
                stream.write(json.dumps(record, indent=1, sort_keys=True) + "\n")
        _exchange(tree, staged)
    finally:
        _recover(tree)
    return notes
