#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ansible module: one step of building a component, once.

A step is a list of shell commands that ran to its end or did not: a stamp file says so. A step that
failed or was interrupted runs again as a whole, with everything that the steps before it left.
"""

import datetime
import errno
import fcntl
import fnmatch
import json
import os
import re
import subprocess
import time
import xml.etree.ElementTree as ElementTree

DOCUMENTATION = r"""
module: stack_step
short_description: Run the commands of one build step, unless they once ran to their end
options:
  component: {description: Name for messages., type: str, required: true}
  step: {description: Name of the step; names stamp and log., type: str, required: true}
  commands:
    description: Commands for bash, each must succeed.
    type: list
    elements: str
    required: true
  chdir: {description: Directory the commands run in., type: path, required: true}
  state: {description: Directory of stamps and logs., type: path, required: true}
  environment: {description: The environment; nothing else is passed., type: dict, default: {}}
  through:
    description: >-
      Words that bash is started by, as stack-env and its modules. With others the step does not run
      again.
    type: list
    elements: str
    default: []
  after: {description: Step without which this one is not tried., type: str, default: ""}
  tests:
    description: >-
      The commands are tests. Each runs whatever became of those before, and is a test of that name
      where nothing tells more (C(cases), C(junit)).
    type: bool
    default: false
  cases:
    description: >-
      Regular expression with groups C(test) and C(failed), which matches one line per test in what
      the commands say; C(failed) matches where it failed.
    type: str
  junit:
    description: Report in JUnit's format that the commands write; it decides, not the exit status.
    type: path
  quarantine:
    description: >-
      Known failures of this component, dictionaries with C(test) (shell pattern), C(reason),
      C(link) and C(expires) (date). Every other failure, and one whose date is over, fails the
      step.
    type: list
    elements: dict
    default: []
author: [Treenail developers]
"""

EXAMPLES = r"""
- name: Build
  stack_step:
    component: fftw
    step: build
    commands: [make -j2]
    chdir: /opt/stack/build/fftw-3.3.10-0a1b2c3d/source
    state: /opt/stack/build/fftw-3.3.10-0a1b2c3d
"""

RETURN = r"""
log: {description: What the commands said., type: str, returned: always}
seconds:
  description: How long the step took; of an earlier run if it was not repeated.
  type: float
  returned: success
report:
  description: >-
    Path of a report of the tests in JUnit's format, their own or one of what the commands told. A
    known failure is skipped in it, and says why; what failed beside the tests is one of its own.
  type: str
  returned: when tests ran now, whatever became of them
"""

# XML 1.0 cannot hold these, not even escaped.
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def tail(path, lines=30):
    with open(path, encoding="utf-8", errors="replace") as stream:
        return "".join(stream.readlines()[-lines:])


def explained(component, step, text, status):
    """Why a step failed, in a sentence, where its output tells."""
    if "No space left on device" in text:
        return "%s: %s failed, for the disk is full. Free some space and run the play again; it " \
               "goes on with this step" % (component, step)
    if "Killed signal" in text or "fatal error: Killed" in text or status == -9:
        return "%s: %s was killed, most likely for want of memory. Raise `memory` in " \
               "component.yml, so that fewer compilers run at once" % (component, step)
    return "%s: %s failed with exit status %d" % (component, step, status)


def reported(path):
    """[(name, whether it failed)] of a report."""
    return [("%s::%s" % (case.get("classname", ""), case.get("name", "")),
             case.find("failure") is not None or case.find("error") is not None)
            for case in ElementTree.parse(path).iter("testcase")]


def said(runs, cases):
    """The same of what commands said, [(command, exit status, output)]. One that told no test, or
    failed though none of its tests did, is a test itself."""
    found = []
    for command, status, text in runs:
        told = [(match["test"], bool(match["failed"]))
                for match in re.finditer(cases, text, re.MULTILINE)] if cases else []
        if not told or status and not any(failed for _, failed in told):
            told.append((" ".join(command.split()), status != 0))
        found += told
    return found


def judged(tests, quarantine, today):
    """({name of a known failure: why}, sentences about the others)."""
    known, bad = {}, []
    for name in [name for name, failed in tests if failed]:
        entry = next((q for q in quarantine if fnmatch.fnmatchcase(name, q["test"])), None)
        if entry is None:
            bad.append(name)
        elif str(entry["expires"]) < today:
            bad.append("%s: its quarantine ended on %s (%s)" % (
                name, entry["expires"], entry["link"]))
        else:
            known[name] = "failed, as known until %(expires)s: %(reason)s (%(link)s)" % entry
    return known, bad


def told(given, tests):
    """The tests as JUnit's XML: what the suite wrote, else what it is known to have tried."""
    root = ElementTree.Element("testsuites")
    if given.get("junit"):
        found = ElementTree.parse(given["junit"]).getroot()
        root.extend([found] if found.tag == "testsuite" else list(found))
    else:
        suite = ElementTree.SubElement(root, "testsuite", {"name": given["component"]})
        for name, failed in tests:
            add_case(suite, given["component"], name, "the log says how" if failed else "")
    return root


def add_case(suite, component, name, failure):
    case = ElementTree.SubElement(suite, "testcase", {
        "classname": component, "name": FORBIDDEN.sub("?", name)})
    if failure:
        ElementTree.SubElement(case, "failure", {"message": FORBIDDEN.sub("?", failure)})


def write_report(path, given, root, tests, known, failure):
    """The tests in `root`, with known failures skipped, and what failed beside them."""
    for case, (name, failed) in zip(root.iter("testcase"), tests):
        if failed and name in known:
            for node in case.findall("failure") + case.findall("error"):
                node.tag = "skipped"
                node.set("message", known[name])
    if failure:
        add_case(ElementTree.SubElement(root, "testsuite", {"name": given["component"]}),
                 given["component"], given["step"], failure)
    for suite in root.iter("testsuite"):
        cases = list(suite.iter("testcase"))
        suite.set("tests", str(len(cases)))
        for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(key, str(sum(case.find(tag) is not None for case in cases)))
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def verdict(given, runs, log, report):
    """{tests, quarantined} or {msg}: of tests what they told, which `report` has then, too; else
    the exit status."""
    status = next((status for _, status, _ in runs if status), 0)
    sentence = explained(given["component"], given["step"], tail(log), status)
    if not given.get("tests"):
        return {"msg": sentence} if status else {}
    try:
        tests = reported(given["junit"]) if given.get("junit") else said(runs, given.get("cases"))
    except (OSError, ElementTree.ParseError) as error:
        sentence = "%s and left no report: %s" % (sentence, error)
        write_report(report, given, ElementTree.Element("testsuites"), [], {}, sentence)
        return {"msg": sentence}
    known, bad = judged(tests, given["quarantine"], datetime.date.today().isoformat())
    wrong = bad or not tests or (status and not known)
    if wrong:
        sentence = "%s: of %d tests %d failed that no quarantine knows: %s" % (
            sentence, len(tests), len(bad), ", ".join(bad[:10]) or "none by its report")
    write_report(report, given, told(given, tests), tests, known,
                 sentence if wrong and not bad else "")
    return {"msg": sentence} if wrong else {"tests": len(tests), "quarantined": list(known)}


def executed(given, log):
    """[(what ran, its exit status, what it said)]. Tests run one by one, what else there is until
    one fails."""
    # Each in a shell of its own: where one goes, the next does not follow.
    scripts = given["commands"] if given.get("tests") else [
        "".join("(\n%s\n)\n" % command for command in given["commands"])]
    runs = []
    with open(log, "w", encoding="utf-8") as stream:
        for script in scripts:
            begin = os.path.getsize(log)
            status = subprocess.run(
                [*given.get("through", ()), "bash", "-c", "set -euo pipefail\n" + script],
                cwd=given["chdir"], check=False, stdin=subprocess.DEVNULL, stdout=stream,
                stderr=subprocess.STDOUT, env=given["environment"]).returncode
            with open(log, "rb") as told:
                told.seek(begin)
                runs.append((script, status, told.read().decode(errors="replace")))
    return runs


def perform(given):
    """{changed, log, seconds} or {failed, msg, log}."""
    os.makedirs(given["state"], exist_ok=True)
    stamp = os.path.join(given["state"], given["step"] + ".done")
    log = os.path.join(given["state"], given["step"] + ".log")
    before = given.get("after")
    if before and not os.path.exists(os.path.join(given["state"], before + ".done")):
        return {"failed": True, "log": log, "msg": "%s: %s was not tried, for %s failed" % (
            given["component"], given["step"], before)}
    wanted = {"commands": given["commands"], "environment": given["environment"]}
    with open(os.path.join(given["state"], "lock"), "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return {"failed": True, "log": log, "msg": "%s: another play is building this "
                        "component in %s" % (given["component"], given["state"])}
            # A file system without locks: one play at a time is then the caller's business.
        done = read_stamp(stamp)
        if done and done["wanted"] == wanted:
            return dict(done["result"], changed=False, log=log)
        if given.get("junit") and os.path.exists(given["junit"]):
            os.remove(given["junit"])
        begin = time.monotonic()
        runs = executed(given, log)
        # Where a package's suite writes suite.xml itself.
        report = os.path.join(given["state"], given["step"] + ".report.xml")
        result = dict(verdict(given, runs, log, report), seconds=round(time.monotonic() - begin, 1))
        ran = dict({"report": report} if given.get("tests") else {}, log=log)
        if "msg" in result:
            result["msg"] += "\n%s ends with:\n%s" % (log, tail(log))
            return dict(result, failed=True, **ran)
        with open(stamp + ".new", "w", encoding="utf-8") as stream:
            json.dump({"wanted": wanted, "result": result}, stream)
        os.replace(stamp + ".new", stamp)
    return dict(result, changed=True, **ran)


def read_stamp(path):
    try:
        with open(path, encoding="utf-8") as stream:
            return json.load(stream)
    except (OSError, ValueError):
        return None


def main():
    from ansible.module_utils.basic import AnsibleModule
    module = AnsibleModule(argument_spec={
        "component": {"type": "str", "required": True}, "step": {"type": "str", "required": True},
        "commands": {"type": "list", "elements": "str", "required": True},
        "chdir": {"type": "path", "required": True}, "state": {"type": "path", "required": True},
        "environment": {"type": "dict", "default": {}},
        "tests": {"type": "bool", "default": False}, "cases": {"type": "str"},
        "through": {"type": "list", "elements": "str", "default": []},
        "after": {"type": "str", "default": ""}, "junit": {"type": "path"},
        "quarantine": {"type": "list", "elements": "dict", "default": []}},
        supports_check_mode=True)
    given = dict(module.params)
    given["environment"] = {key: str(value) for key, value in given["environment"].items()}
    if module.check_mode:
        stamp = read_stamp(os.path.join(given["state"], given["step"] + ".done"))
        module.exit_json(changed=not stamp, component=given["component"], step=given["step"],
                         log="", seconds=0)
    try:
        result = perform(given)
    except OSError as error:
        module.fail_json(msg="%s: %s: %s" % (given["component"], given["step"], error))
    if result.pop("failed", False):
        module.fail_json(**result)
    module.exit_json(component=given["component"], step=given["step"], **result)


if __name__ == "__main__":
    main()
