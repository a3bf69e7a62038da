# SPDX-License-Identifier: Apache-2.0
"""Test reports in JUnit's XML, as Jenkins and others read them: write one, count what one says."""

import os
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Tuple

# XML 1.0 cannot hold these at all, not even escaped.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class Case:
    """One test; `verdict` is 'passed', 'failed' or 'skipped', `text` what there is to say of it."""

    group: str
    name: str
    verdict: str
    seconds: float = 0.0
    message: str = ""
    text: str = ""


@dataclass
class Suite:
    name: str
    cases: List[Case] = field(default_factory=list)
    properties: Dict[str, str] = field(default_factory=dict)


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("?", text)


def _element(suite: Suite) -> ElementTree.Element:
    def count(verdict: str) -> str:
        return str(sum(case.verdict == verdict for case in suite.cases))

    element = ElementTree.Element("testsuite", {
        "name": suite.name, "tests": str(len(suite.cases)), "failures": count("failed"),
        "errors": "0", "skipped": count("skipped"),
        "time": "%.3f" % sum(case.seconds for case in suite.cases)})
    if suite.properties:
        holder = ElementTree.SubElement(element, "properties")
        for name, value in sorted(suite.properties.items()):
            ElementTree.SubElement(holder, "property", {"name": name, "value": _clean(value)})
    for case in suite.cases:
        node = ElementTree.SubElement(element, "testcase", {
            "classname": _clean(case.group), "name": _clean(case.name),
            "time": "%.3f" % case.seconds})
        if case.verdict != "passed":
            tag = "failure" if case.verdict == "failed" else "skipped"
            inner = ElementTree.SubElement(node, tag, {"message": _clean(case.message)})
            inner.text = _clean(case.text) or None
    return element


def verdicts(name: str, rows: Iterable[Tuple[str, str, float, str]]) -> Suite:
    """A suite of rows (name, 'ok' or 'FAILED' or 'not run', seconds, text)."""
    words = {"ok": "passed", "FAILED": "failed", "not run": "skipped"}
    return Suite(name, [Case(name, row, words[verdict], seconds, text.split("\n")[0], text)
                        for row, verdict, seconds, text in rows])


def write(path: str, suites: Iterable[Suite]) -> None:
    """Whole or not at all; the folder is made."""
    root = ElementTree.Element("testsuites")
    root.extend([_element(suite) for suite in suites])
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    ElementTree.ElementTree(root).write(path + ".new", encoding="utf-8", xml_declaration=True)
    os.replace(path + ".new", path)


def counts(path: str) -> Tuple[int, int, int]:
    """(passed, failed, skipped) of a report; raises OSError or ElementTree.ParseError."""
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped
