# SPDX-License-Identifier: Apache-2.0
"""The built product, installed below a temporary DESTDIR: for tests of what a user finds there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_tree import SOURCE

BUILD = Path(os.environ.get("TREENAIL_BUILD_DIR", ""))
needs_build = pytest.mark.skipif(not (BUILD / "gen/install.json").exists(),
                                 reason="TREENAIL_BUILD_DIR names no build: run by ninja test")


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, check=False, **more)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    destination = tmp_path_factory.mktemp("product")
    run(sys.executable, "-B", SOURCE / "gen/tools/install.py", "--manifest", "gen/install.json",
        cwd=BUILD, env=dict(os.environ, DESTDIR=str(destination)))
    return destination


def placed(installed, suffix):
    entries = json.loads((BUILD / "gen/install.json").read_text())["entries"]
    found = [e["to"] for e in entries if e["to"].endswith(suffix)]
    assert len(found) == 1, suffix
    return installed / found[0][1:]
