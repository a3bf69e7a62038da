# SPDX-License-Identifier: Apache-2.0
"""Proof that trainings run under Slurm: ci/site/slurm_check.py with this build, on a cluster of
ci/hosts."""

import os
import re
import sys

from hosts_proof import check_slurm, up
from proving import SOURCE, Failed, need, proof, run


@proof
def slurm():
    """Slurm: trainings by srun, sbatch, mpirun and the job scripts; threads; a node that is lost"""
    check_slurm()
    need("mpirun", "openmpi")
    with up("slurm", "--slurm", "2", "--share", os.getcwd()) as (state, seconds):
        text = run([sys.executable, "-B", os.path.join(SOURCE, "ci/site/slurm_check.py"),
                    "--treenail", ".", "--hosts", state], status=None)
    held = re.findall(r"^(\S+) +ok ", text, re.MULTILINE)
    others = re.findall(r"^(\S+) +(?:FAILED|not run) .*", text, re.MULTILINE)
    if not held or "FAILED" in text:
        raise Failed(text[-4000:])
    return "cluster up in %.1f s; %s%s" % (
        seconds, ", ".join(held), "; not run: " + ", ".join(others) if others else "")
