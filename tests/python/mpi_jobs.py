# SPDX-License-Identifier: Apache-2.0
"""Programs of several ranks that mpirun starts, for each MPI that is here."""

import os
import shutil
import subprocess
import sys
import tempfile

import pytest

import treenail as tn

LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n"],
             "mpich": ["mpirun.mpich", "-n"]}


def launched(implementation, ranks, program, *arguments, before=(), **environment):
    """The ended job: Python's `program` on each rank, all output in its stdout.

    before: a command on each rank that starts Python. Skips the test where that MPI is not here."""
    command = LAUNCHERS[implementation]
    problem = tn.build_info()["adapters"].get("mpi-" + implementation)
    if problem is None:
        pytest.skip("this build has no adapter of %s" % implementation)
    if shutil.which(command[0]) is None:
        pytest.skip("%s is not installed" % command[0])
    with tempfile.TemporaryDirectory() as own:  # Open MPI leaves files behind
        return subprocess.run(command + [str(ranks), *before, sys.executable, "-c", program,
                                         *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=90, check=False,
                              env={**os.environ, "OMPI_MCA_orte_tmpdir_base": own, **environment})
