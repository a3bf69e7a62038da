# SPDX-License-Identifier: Apache-2.0
"""What the steps of a Jenkinsfile do here: processes, reports, kept files.

A step gets the build, its context and its evaluated arguments; it may raise StepFailed. Messages
are Jenkins's own where one would look for them in a log.
"""

import hashlib
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Optional

import junit
from files import matching
from process_group import group

RESULTS = ("SUCCESS", "UNSTABLE", "FAILURE", "NOT_BUILT", "ABORTED")


def worse(one: str, other: str) -> str:
    return max(one, other, key=RESULTS.index)


class StepFailed(Exception):
    result = "FAILURE"


class Interrupted(StepFailed):
    """By Ctrl-C or a time limit."""

    result = "ABORTED"


@dataclass
class Record:
    """What became of a stage. `skipped` says why it did not run."""

    name: str
    result: str = "SUCCESS"
    skipped: str = ""
    seconds: float = 0.0
    children: List["Record"] = field(default_factory=list)

    def add(self, result: str) -> None:
        self.result = worse(self.result, result)


@dataclass(frozen=True)
class Context:
    """Where steps run: `place` is the folder, '' where no agent was entered."""

    record: Record
    environment: Dict[str, str]
    place: str = ""

    def having(self, **variables: str) -> "Context":
        return replace(self, environment=dict(self.environment, **variables))

    def folder(self) -> str:
        if not self.place:
            raise StepFailed("Attempted to execute a step that requires a node context while "
                             "'agent none' was specified. Be sure to specify your own agent.")
        os.makedirs(self.place, exist_ok=True)
        return self.place


# ---- processes -----------------------------------------------------------------------------------


def _follow(build: Any, process: "subprocess.Popen[bytes]") -> None:
    """Shows the output by lines until the program ends, though a child of it may keep the pipe;
    Interrupted when a time limit has passed."""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)  # type: ignore
        rest = b""
        while True:
            left = build.time_left()
            if left <= 0:
                raise Interrupted("Timeout has been exceeded")
            if not selector.select(min(left, 1.0)):
                if process.poll() is not None:
                    break
                continue
            chunk = os.read(process.stdout.fileno(), 65536)  # type: ignore
            if not chunk:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                build.show(line.decode(errors="replace"))
        if rest:
            build.show(rest.decode(errors="replace"))


def sh(build: Any, context: Context, script: str, label: str = "") -> None:
    """The script by sh -xe, or by its own #! line."""
    folder = context.folder()
    build.show("[Pipeline] sh" + (" (%s)" % label if label else ""))
    with tempfile.NamedTemporaryFile("w", suffix=".sh", prefix="script-", delete=False) as stream:
        stream.write(script)
    try:
        os.chmod(stream.name, 0o700)
        words = [stream.name] if script.startswith("#!") else ["/bin/sh", "-xe", stream.name]
        with group(words, ((signal.SIGTERM, 10.0), (signal.SIGKILL, None)), cwd=folder,
                   env=dict(os.environ, **context.environment)) as process:
            _follow(build, process)
            left = build.time_left()
            status = process.wait(None if left == float("inf") else max(left, 0.1))
    except KeyboardInterrupt:
        raise Interrupted("interrupted by Ctrl-C") from None
    except subprocess.TimeoutExpired:
        raise Interrupted("Timeout has been exceeded") from None
    finally:
        os.unlink(stream.name)
    if status:
        raise StepFailed("script returned exit code %d" % (status if status > 0 else 128 - status))


# ---- what is said --------------------------------------------------------------------------------


def echo(build: Any, context: Context, message: str) -> None:
    build.show(message)


def error(build: Any, context: Context, message: str) -> None:
    raise StepFailed(message)


def unstable(build: Any, context: Context, message: str) -> None:
    build.show("WARNING: " + message)
    build.worsen(context, "UNSTABLE")


# ---- what is kept --------------------------------------------------------------------------------


def archive(build: Any, context: Context, artifacts: str, allowEmptyArchive: bool = False,
            excludes: str = "", fingerprint: bool = False) -> None:
    names = matching(context.folder(), artifacts, excludes)
    if not names:
        text = "No artifacts found that match the file pattern \"%s\". Configuration error?" % (
            artifacts)
        if not allowEmptyArchive:
            raise StepFailed(text)
        build.show(text)
        return
    for name in names:
        target = os.path.join(build.folder, "archive", name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(os.path.join(context.place, name), target)
        if fingerprint:
            with open(target, "rb") as stream:
                build.fingerprints[name] = hashlib.sha256(stream.read()).hexdigest()
    if fingerprint:
        with open(os.path.join(build.folder, "fingerprints.json"), "w", encoding="utf-8") as stream:
            json.dump(build.fingerprints, stream, indent=1, sort_keys=True)
    build.show("Archiving artifacts: " + ", ".join(names))


def junit_step(build: Any, context: Context, testResults: str,
               allowEmptyResults: bool = False) -> None:
    """A failed test, and a report that cannot be read, make stage and build unstable."""
    build.show("Recording test results")
    names = matching(context.folder(), testResults)
    if not names:
        if not allowEmptyResults:
            raise StepFailed("No test report files were found. Configuration error?")
        build.show("No test report files were found.")
        return
    bad = 0
    for name in names:
        path = os.path.join(context.place, name)
        try:
            passed, failed, skipped = junit.counts(path)
        except (OSError, ElementTree.ParseError) as reason:
            build.show("Failed to read test report file %s: %s" % (name, reason))
            passed, failed, skipped = 0, 1, 0
        bad += failed
        build.tests = [sum(pair) for pair in zip(build.tests, (passed, failed, skipped))]
        build.show("  %s: %d passed, %d failed, %d skipped" % (name, passed, failed, skipped))
        target = os.path.join(build.folder, "junit", context.record.name.replace("/", "-"), name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(path, target)
    if bad:
        build.worsen(context, "UNSTABLE")


def _stash_path(build: Any, name: str) -> str:
    if not re.fullmatch(r"[\w.()=', -]+", name):
        raise StepFailed("'%s' is no name of a stash" % name)
    return os.path.join(build.folder, "stashes", name + ".tar")


def stash(build: Any, context: Context, name: str, includes: str = "", excludes: str = "",
          allowEmpty: bool = False) -> None:
    names = matching(context.folder(), includes, excludes)
    if not names and not allowEmpty:
        raise StepFailed("No files included in stash '%s'" % name)
    path = _stash_path(build, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for leaf in names:
            tar.add(os.path.join(context.place, leaf), leaf, recursive=False)
    build.show("Stashed %d file(s) as '%s'" % (len(names), name))


def unstash(build: Any, context: Context, name: str) -> None:
    path = _stash_path(build, name)
    if not os.path.exists(path):
        raise StepFailed("No such saved stash '%s'" % name)
    with tarfile.open(path) as tar:
        tar.extractall(context.folder())


def delete_dir(build: Any, context: Context) -> None:
    shutil.rmtree(context.folder())


RUN = {"archiveArtifacts": archive, "deleteDir": delete_dir, "echo": echo, "error": error,
       "junit": junit_step, "sh": sh, "stash": stash, "unstable": unstable, "unstash": unstash}


class Deadlines:
    """Nested time limits; the nearest counts."""

    def __init__(self) -> None:
        self.ends: List[float] = []

    def left(self) -> float:
        return min(self.ends) - time.monotonic() if self.ends else float("inf")

    def within(self, seconds: Optional[float]) -> "Deadlines":
        self.ends.append(time.monotonic() + seconds if seconds else float("inf"))
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        self.ends.pop()
