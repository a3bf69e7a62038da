# SPDX-License-Identifier: Apache-2.0
"""Proof about Jenkins's pipeline: a cell of its matrix, run for real."""

import json
import os
import platform
import shutil
import sys

from proving import SOURCE, Failed, NotRun, need, proof, run


@proof
def jenkins_cell():
    """ci/run-jenkinsfile builds and trains in a cell of ci/Jenkinsfile and keeps its manifest"""
    need("groovy", "groovy")
    if shutil.which("git") is None or not os.path.exists(os.path.join(SOURCE, ".git")):
        raise NotRun("the pipeline checks out a commit, and this tree is no git repository")
    level = {"x86_64": "x86-64", "aarch64": "armv8-a"}.get(platform.machine())
    if level is None:
        raise NotRun("ci/Jenkinsfile has no cell for " + platform.machine())
    work = os.path.abspath("jenkins-proof")
    shutil.rmtree(os.path.join(work, "builds"), ignore_errors=True)
    run([sys.executable, "-B", os.path.join(SOURCE, "ci/run-jenkinsfile"), "--work-dir", work,
         "--label", "deb", "--only", "Build", "--only", "Train", "--axis",
         "CELL_ARCH=" + platform.machine(), "--axis", "CELL_FORMAT=deb", "--axis",
         "CELL_ISA=" + level])
    with open(os.path.join(work, "builds/1/result.json"), encoding="utf-8") as stream:
        result = json.load(stream)
    cell = [stage for stage in result["stages"] if stage["name"] == "Packages"][0]["stages"][0]
    times = {stage["name"]: stage["seconds"] for stage in cell["stages"]
             if stage["result"] == "SUCCESS"}
    if sorted(times) != ["Build", "Train"]:
        raise Failed("of the cell only these succeeded: %s" % ", ".join(sorted(times)))
    name = "%s-deb-%s" % (platform.machine(), level)
    path = os.path.join(work, "builds/1/archive/build/reports", name, "manifest.json")
    with open(path, encoding="utf-8") as stream:
        manifest = json.load(stream)
    found = manifest["configuration"]["facts"]["IsaBaseline"], manifest["source"]["commit"]
    if found != (level, result["commit"]):
        raise Failed("the manifest is of %s at %s" % found)
    return "%s: built in %.0f s, trained in %.0f s, tests %d passed, %d failed" % (
        cell["name"], times["Build"], times["Train"], *result["tests"][:2])
