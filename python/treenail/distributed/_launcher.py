# SPDX-License-Identifier: Apache-2.0
"""What the program that started this process says of it in the environment: rank, number of ranks,
and which of them are on this host. Nothing is written there, and nothing is asked of a network."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, NamedTuple

    class Announcement(NamedTuple):
        launcher: str
        rank: int
        size: int
        local_rank: int | None
        local_size: int | None
        job: str
else:
    from collections import namedtuple
    Announcement = namedtuple("Announcement", "launcher rank size local_rank local_size job")

# (name, size, rank, rank on the host, ranks on the host, what names the job). Innermost launcher
# first: mpirun inside a Slurm job sets its own variables beside Slurm's. SLURM_STEP_NUM_TASKS is
# of srun's steps; a batch script that starts one process has SLURM_NTASKS alone.
LAUNCHERS = (
    ("Treenail's own variables", "TREENAIL_SIZE", "TREENAIL_RANK", "TREENAIL_LOCAL_RANK",
     "TREENAIL_LOCAL_SIZE", ()),
    ("Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
     ("OMPI_MCA_orte_ess_jobid", "OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE")),
    ("Slurm's srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID", None,
     ("SLURM_JOB_ID", "SLURM_STEP_ID")),
    ("MPICH's mpirun", "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", ("PMI_PORT",)),
)


def announced(environment: Mapping[str, str] | None = None) -> Announcement | None:
    """What the launcher says, or None where the process was started alone.

    Raises ValueError where a variable is no number, or the rank is not among the ranks.
    """
    given = os.environ if environment is None else environment
    for name, size, rank, local_rank, local_size, job in LAUNCHERS:
        if size not in given or rank not in given:
            continue
        found = Announcement(name, _number(given, rank), _number(given, size),
                             _optional(given, local_rank), _optional(given, local_size),
                             "-".join(given.get(part, "") for part in job))
        if not 0 <= found.rank < found.size:
            raise ValueError("%s says that this is rank %d (%s) of %d (%s)"
                             % (name, found.rank, rank, found.size, size))
        return found
    return None


def _number(given: Mapping[str, str], name: str) -> int:
    try:
        return int(given[name])
    except ValueError:
        raise ValueError("the environment variable %s is %r; needed is a number"
                         % (name, given[name])) from None


def _optional(given: Mapping[str, str], name: str | None) -> int | None:
    return _number(given, name) if name is not None and name in given else None
