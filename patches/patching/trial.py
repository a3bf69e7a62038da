# SPDX-License-Identifier: Apache-2.0
"""The tests of patches: run on a tree or prefix, or on both sides of each patch of a series.

A test is a program beside the series. It gets two words, 'tree' and a source tree or 'prefix' and
an installation, reads that and writes into its working directory alone, which is new and empty. It
ends with 0 where the defect is gone, 1 where it is there, 77 where it cannot tell here; what it
printed last says why. Any other end is a fault of the test. What several tests of a series share
lies in tests/support.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from typing import List, NamedTuple, Sequence

from patching import applying
from patching.series import ROOT, Patch, Refused, Series, in_order

CANNOT_TELL = 77
_TREE = ("configure", "configure.ac", "CMakeLists.txt", "Makefile", "setup.py", "pyproject.toml",
         "meson.build", "debian")


class Run(NamedTuple):
    """How a test ended: 'passed', 'failed', 'skipped' or 'broken', and what it said."""

    end: str
    seconds: float
    text: str

    @property
    def reason(self) -> str:
        lines = self.text.strip().splitlines()
        return lines[-1] if lines else "it said nothing"


class Verdict(NamedTuple):
    """What is to be done about a patch: `todo` is empty where nothing is."""

    patch: str
    word: str
    seconds: float = 0.0
    text: str = ""
    todo: bool = False


def kind_of(path: str) -> str:
    """'tree' or 'prefix'."""
    if not os.path.isdir(path):
        raise Refused("%s is no directory; name a source tree or a prefix" % path)
    return "tree" if any(os.path.exists(os.path.join(path, name)) for name in _TREE) else "prefix"


def run_test(patch: Patch, path: str) -> Run:
    """The test of a patch on a tree or a prefix."""
    tests = patch.tests()
    test = tests[0]
    command = ([sys.executable, "-B"] if test.endswith(".py") else []) + [
        os.path.abspath(test), kind_of(path), os.path.abspath(path)]
    environment = dict(os.environ, PYTHONPATH=ROOT, PYTHONDONTWRITEBYTECODE="1", LC_ALL="C.UTF-8")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="patch-test-") as folder:
        try:
            done = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  encoding="utf-8", errors="replace", check=False)
        except OSError as reason:
            return Run("broken", 0.0, "%s: %s" % (test, reason.strerror))
    end = {0: "passed", 1: "failed", CANNOT_TELL: "skipped"}.get(done.returncode, "broken")
    # A Python program that dies of an exception ends with 1, too.
    if end == "failed" and "Traceback (most recent call last)" in done.stdout:
        end = "broken"
    return Run(end, time.monotonic() - begin, done.stdout)


def tested(series: Series, path: str) -> List[Verdict]:
    """The test of each patch on a tree or prefix that has the series."""
    found = []
    for patch in in_order(series).patches:
        run = run_test(patch, path)
        found.append(Verdict(patch.name, run.end, run.seconds, run.text,
                             run.end in ("failed", "broken")))
    return found


# ---- needed ----------------------------------------------------------------------------------


def _judge(patch: Patch, tree: str) -> Verdict:
    """Leaves the tree with the patch, where it applies."""
    without, obstacle = run_test(patch, tree), ""
    try:
        applying.add(patch, tree)
    except applying.DoesNotApply as reason:
        obstacle = str(reason)
    if without.end == "broken":
        return Verdict(patch.name, "the test is broken", without.seconds, without.text, True)
    if without.end == "passed":
        how = "; it does not apply either: %s" % obstacle if obstacle else ""
        return Verdict(patch.name, "no longer needed", without.seconds,
                       "its test passes without it%s\n%s" % (how, without.text), True)
    if obstacle:
        return Verdict(patch.name, "no longer applies", without.seconds, obstacle, True)
    if without.end == "skipped":
        return Verdict(patch.name, "not tested", without.seconds, without.reason)
    after = run_test(patch, tree)
    seconds = without.seconds + after.seconds
    if after.end == "passed":
        return Verdict(patch.name, "needed", seconds, "without it: " + without.reason)
    return Verdict(patch.name, "does not help", seconds,
                   "its test fails with it, too (%s)\n%s" % (after.end, after.text), True)


def needed(series: Series, tree: str, say=lambda verdict: None) -> List[Verdict]:
    """Judges each patch by its test, without it and with it, on a copy of an unpatched tree to
    which those before it were applied. say: is told each verdict as it comes."""
    in_order(series)
    record = applying.read_record(tree)
    if record and record["patches"]:
        raise Refused("%s is patched already; name a tree as it was unpacked" % tree)
    if kind_of(tree) != "tree":
        raise Refused("%s is no source tree: it has none of %s" % (tree, ", ".join(_TREE)))
    found = []
    with tempfile.TemporaryDirectory(prefix="patch-needed-") as folder:
        copy = os.path.join(folder, os.path.basename(os.path.abspath(tree)))
        shutil.copytree(tree, copy, symlinks=True)
        for patch in series.patches:
            found.append(_judge(patch, copy))
            say(found[-1])
    return found


# ---- reports ---------------------------------------------------------------------------------


def as_junit(suite: str, verdicts: Sequence[Verdict]) -> str:
    """JUnit's XML: what is to be done is a failure, what was not tested is skipped."""
    top = ElementTree.Element("testsuites")
    node = ElementTree.SubElement(
        top, "testsuite", name=suite, tests=str(len(verdicts)),
        failures=str(sum(v.todo for v in verdicts)), errors="0",
        skipped=str(sum(v.word in ("skipped", "not tested") for v in verdicts)),
        time="%.3f" % sum(v.seconds for v in verdicts))
    for verdict in verdicts:
        case = ElementTree.SubElement(node, "testcase", classname=suite, name=verdict.patch,
                                      time="%.3f" % verdict.seconds)
        # XML has no control characters, which compilers' output may have.
        text = "".join(c for c in verdict.text if c >= " " or c in "\n\t")
        if verdict.todo:
            ElementTree.SubElement(case, "failure", message=verdict.word).text = text
        elif verdict.word in ("skipped", "not tested"):
            ElementTree.SubElement(case, "skipped", message=text.strip()[-200:])
        else:
            ElementTree.SubElement(case, "system-out").text = text
    return ElementTree.tostring(top, encoding="unicode") + "\n"


def as_json(series: Series, against: str, verdicts: Sequence[Verdict]) -> str:
    return json.dumps({
        "component": series.component, "version": series.version, "against": against,
        "patches": [verdict._asdict() for verdict in verdicts]}, indent=1, sort_keys=True) + "\n"
