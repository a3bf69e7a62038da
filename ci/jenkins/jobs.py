# SPDX-License-Identifier: Apache-2.0
"""Render the jobs of ci/jobs, check the shell in them, compare them with ci/expected/jobs.

  ci/jenkins/jobs.py            say what differs; exit status 1
  ci/jenkins/jobs.py --write    make the expectation what is rendered now

jenkins-job-builder writes other XML in other major versions: where it is not the version that the
expectation was made with, rendering and shell are checked and the comparison is left out, with a
line that says so.
"""

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from typing import Dict, List

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Unusable(Exception):
    """The jobs cannot be rendered; the text says why."""


def version() -> str:
    done = subprocess.run(["jenkins-jobs", "--version"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    found = re.search(r"(\d+)\.\d", done.stdout.decode(errors="replace"))
    return found.group(1) if found else "unknown"


def rendered(paths: str) -> Dict[str, str]:
    """Name of a job, with dots for slashes -> its XML. `paths` as jenkins-jobs takes them."""
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(["jenkins-jobs", "--conf", os.devnull, "test", "--config-xml", "-o",
                               scratch, paths], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=dict(os.environ, HOME=scratch, XDG_CACHE_HOME=scratch),
                              check=False)
        if done.returncode:
            lines = done.stdout.decode(errors="replace").strip().splitlines()
            raise Unusable("jenkins-jobs: " + "\n".join(lines[-8:] or ["no output"]))
        found = {}
        for place, _, leaves in os.walk(scratch):
            if "config.xml" in leaves:
                with open(os.path.join(place, "config.xml"), encoding="utf-8") as stream:
                    name = os.path.relpath(place, scratch).replace(os.sep, ".")
                    found[name] = stream.read().rstrip("\n") + "\n"
    if not found:
        raise Unusable("%s has no job" % paths)
    return found


def shell_findings(jobs: Dict[str, str]) -> List[str]:
    """What shellcheck says of every shell step; Jenkins runs one without #! by sh -xe."""
    found = []
    for name, text in sorted(jobs.items()):
        for command in ElementTree.fromstring(text).iter("hudson.tasks.Shell"):
            script = command.findtext("command") or ""
            words = ["shellcheck", "-f", "gcc"] + ([] if script.startswith("#!") else ["-s", "sh"])
            done = subprocess.run(words + ["-"], input=script.encode(), stdout=subprocess.PIPE,
                                  check=False)
            found += [line.replace("-:", "job %s, shell:" % name, 1)
                      for line in done.stdout.decode().splitlines()]
    return found


def differences(jobs: Dict[str, str], folder: str) -> List[str]:
    expected = {}
    for leaf in os.listdir(folder) if os.path.isdir(folder) else ():
        if leaf.endswith(".xml"):
            with open(os.path.join(folder, leaf), encoding="utf-8") as stream:
                expected[leaf[:-4]] = stream.read()
    found = []
    for name in sorted(set(jobs) | set(expected)):
        path = "ci/expected/jobs/%s.xml" % name
        if name not in expected:
            found.append("job %s is new: %s is missing" % (name, path))
        elif name not in jobs:
            found.append("%s: there is no such job any more" % path)
        else:
            found += difflib.unified_diff(expected[name].splitlines(), jobs[name].splitlines(),
                                          path, "rendered", lineterm="", n=1)
    return found


def write(jobs: Dict[str, str], folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name, text in jobs.items():
        with open(os.path.join(folder, name + ".xml"), "w", encoding="utf-8") as stream:
            stream.write(text)
    with open(os.path.join(folder, "version"), "w", encoding="utf-8") as stream:
        stream.write(version() + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="rewrite the expectation")
    parser.add_argument("--jobs", default=os.path.join(TOP, "ci/jobs"), metavar="PATHS",
                        help="files and folders, separated by colons [ci/jobs]")
    parser.add_argument("--expected", default=os.path.join(TOP, "ci/expected/jobs"), metavar="DIR")
    options = parser.parse_args()
    for program in ("jenkins-jobs", "shellcheck"):
        if not shutil.which(program):
            sys.exit("%s is not installed" % program)
    try:
        jobs = rendered(options.jobs)
    except Unusable as reason:
        sys.exit(str(reason))
    if options.write:
        write(jobs, options.expected)
    found = shell_findings(jobs)
    try:
        with open(os.path.join(options.expected, "version"), encoding="utf-8") as stream:
            made_with = stream.read().strip()
    except OSError:
        made_with = version()
    if made_with == version():
        found += differences(jobs, options.expected)
    else:
        print("not compared: ci/expected/jobs is of jenkins-job-builder %s, here is %s" % (
            made_with, version()))
    print("\n".join(found or ["%d jobs" % len(jobs)]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
