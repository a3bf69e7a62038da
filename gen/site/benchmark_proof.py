# SPDX-License-Identifier: Apache-2.0
"""Proof that treenail-bench measures under Slurm: a cluster of two nodes (ci/hosts), copies by srun
and mpirun, a batch script, and a job that is cancelled."""

import contextlib
import glob
import json
import os
import shutil
import time

from hosts_proof import check_slurm, hosts
from proving import Failed, need, proof

PATIENCE = 300.0  # seconds for a job to begin or to end: some, but minutes on a busy machine
QUICK = ("--model=mlp", "--batch-size=8", "--num-batches=20")


class Cluster:
    """`folder` holds the hosts and what jobs write; all nodes see it."""

    def __init__(self, folder):
        self.folder = folder
        self._state = "--state=" + os.path.join(folder, "hosts")
        self.bench = os.path.abspath("bin/treenail-bench")

    def hosts(self, *words):
        return hosts(words[0], self._state, *words[1:])

    def login(self, *words):
        """The output of a command on the login node."""
        return self.hosts("run", "login", "--", *words)

    def submit(self, name, *lines):
        """The number of a job of two tasks, one a node, that runs these lines of shell."""
        script = os.path.join(self.folder, name + ".sh")
        with open(script, "w", encoding="utf-8") as stream:
            stream.write("\n".join(("#!/bin/sh", "set -e", *lines)) + "\n")
        return self.login("sbatch", "--parsable", "-N2", "-n2", "--ntasks-per-node=1", "-D",
                          self.folder, "-o", name + ".out", script).strip().splitlines()[-1]

    def wait(self, what, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise Failed("%s did not happen within %d s" % (what, PATIENCE))
            time.sleep(0.2)

    def finish(self, job):
        self.wait("the end of job " + job, lambda: not self.login(
            "squeue", "-h", "-o", "%i", "-j", job, "--states=PD,R,CG").strip())

    def reports(self, pattern, count):
        """Those that a job left, by rank."""
        names = glob.glob(os.path.join(self.folder, pattern))
        if len(names) != count:
            raise Failed("%s: %d reports, wanted are %d" % (pattern, len(names), count))
        found = []
        for name in names:
            with open(name, encoding="utf-8") as stream:
                found.append(json.load(stream))
        return sorted(found, key=lambda report: report["rank"])

    def text(self, name):
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8") as stream:
            return stream.read()


@contextlib.contextmanager
def cluster():
    """Up, and down again whatever happens."""
    check_slurm()
    need("mpirun", "openmpi")
    folder = os.path.abspath("benchmark-slurm")
    made = Cluster(folder)
    if os.path.isdir(folder):  # what an interrupted proof left
        made.hosts("down")
        shutil.rmtree(folder)
    os.makedirs(folder)
    try:
        made.hosts("up", "--slurm", "2")
        yield made
    finally:
        made.hosts("down")


def expect(condition, what, report):
    if not condition:
        raise Failed("%s; the report says: %s" % (what, json.dumps(report, indent=1)[:3000]))


def copies(slurm, pattern, launcher):
    """Two tasks, each on a node of its own, with a report each; the same bits."""
    slurm.login(*launcher, slurm.bench, *QUICK, "--report", os.path.join(slurm.folder, pattern))
    found = slurm.reports(pattern.replace("%t", "?"), 2)
    for rank, report in enumerate(found):
        expect((report["rank"], report["tasks"], report["environment"]["host"]) == (
            rank, 2, "node%d" % (rank + 1)), "%s: rank %d is not told apart" % (launcher[0], rank),
            report)
        expect(report["batches_measured"] == 20 and report["per_second"]["mean"] > 0,
               "nothing was measured", report)
    expect(found[0]["losses"] == found[1]["losses"], "copies with one seed differ", found[1])


def batch_script(slurm):
    """What runs in the script itself is one copy, though the job has two tasks."""
    slurm.finish(slurm.submit("batch", slurm.bench + " %s --report batch.json" % " ".join(QUICK)))
    report, = slurm.reports("batch.json", 1)
    expect((report["rank"], report["tasks"]) == (0, 1), "not one copy", report)
    expect(report["slurm"]["SLURM_JOB_ID"], "no number of a job", report)


def cancelled(slurm):
    """scancel ends it at once; what was measured is kept."""
    job = slurm.submit("long", "exec srun %s --model=mlp --num-batches=1000000000 --report "
                       "long-%%t.json" % slurm.bench)
    slurm.wait("the first step", lambda: slurm.text("long.out").count("\n100\t") >= 2)
    slurm.login("scancel", job)
    slurm.finish(job)
    for report in slurm.reports("long-?.json", 2):
        expect(report["interrupted"] and report["problem"] == "interrupted by SIGTERM"
               and report["batches_measured"] >= 100, "not kept", report)


@proof
def benchmark_slurm():
    """treenail-bench under srun, mpirun, sbatch: a report a copy, kept when a job is cancelled"""
    with cluster() as slurm:
        copies(slurm, "srun-%t.json", ["srun", "-N2", "-n2"])
        copies(slurm, "mpirun-%t.json", ["salloc", "-Q", "-N2", "-n2", "mpirun", "-n", "2",
                                         "--allow-run-as-root", "--map-by", "node"])
        batch_script(slurm)
        cancelled(slurm)
    return "two nodes: srun, mpirun, a batch script, scancel"
