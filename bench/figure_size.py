# SPDX-License-Identifier: Apache-2.0
"""Installed size of library and Python module: what `ninja install` puts below DESTDIR."""

import json
import os
import sys
import tempfile

from harness import SOURCE, Absent, Outcome, Row, run


def installed_bytes(build: str) -> int:
    manifest = os.path.join(build, "gen/install.json")
    if not os.path.exists(manifest):
        raise Absent("installed size: %s is no build directory" % build)
    with tempfile.TemporaryDirectory() as destination:
        run([sys.executable, "-B", os.path.join(SOURCE, "gen/tools/install.py"), "--manifest",
             "gen/install.json"], cwd=build, env=dict(os.environ, DESTDIR=destination))
        return sum(os.lstat(os.path.join(folder, name)).st_size
                   for folder, _, names in os.walk(destination) for name in names)


def build_type(build: str) -> str:
    with open(os.path.join(build, "gen/configuration.json"), encoding="utf-8") as stream:
        text = json.dumps(json.load(stream))
    return next((kind for kind in ("debugoptimized", "debug", "release") if '"%s"' % kind in text),
                "release")


def measure(build: str) -> Outcome:
    outcome = Outcome()
    try:
        megabytes = installed_bytes(build) / 1e6
    except Absent as absent:
        outcome.skipped.append(str(absent))
        return outcome
    row = Row("installed size of library and Python module", megabytes, "MB", 20.0)
    row.note = "%s build" % build_type(build)
    outcome.rows.append(row)
    return outcome
