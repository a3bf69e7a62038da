# SPDX-License-Identifier: Apache-2.0
"""Groups that mpirun starts, for each MPI that is here: as many ranks, and the same bits as in
shared memory. What all operations compute: tests/collectives/exchange_test.cc."""

import functools
import shutil
import subprocess
import sys

import numpy as np
import pytest

import treenail as tn

from mpi_jobs import LAUNCHERS, launched

PROGRAM = """
import sys
import numpy as np
import treenail as tn
D = tn.distributed
D.init(sys.argv[1], join_timeout=30, timeout=30)
D.init(sys.argv[1])
rank, size = D.rank(), D.size()

def normal(rank, n):
    return np.random.RandomState(rank).randn(n).astype(np.float32)

with tn.Graph().as_default(), tn.Session() as session:
    fetches = [D.all_reduce(tn.constant(normal(rank, n))) for n in (5, 300001)]
    fetches.append(D.broadcast(tn.constant(normal(rank, 100000)), 1))
    fetches.append(D.all_gather(tn.constant(normal(rank, rank * 30000))))
    fetches.append(D.all_to_all(tn.range(size * 3) + 100 * rank))
    found = session.run(fetches)
    try:
        session.run(D.all_reduce(tn.zeros([2 + rank]), key="m"))
    except tn.errors.InvalidArgumentError as error:
        refused = "all ranks must ask for the same" in str(error)
np.savez(sys.argv[2] % rank, place=[rank, size, D.local_rank(), D.local_size()],
         transport=D.transport(), refused=refused, **{"f%d" % i: f for i, f in enumerate(found)})
"""


# Rank 1 in a container of its own, with another directory to meet in, and other IPC namespaces
# where $UNSHARE says so.
CONTAINER = """
if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then
    exec unshare --mount $UNSHARE sh -ec '
        mount -t tmpfs tmpfs "$XDG_RUNTIME_DIR"
        exec "$@"' container "$@"
fi
exec "$@"
"""


def why_no_container():
    """What hinders one here, or ''."""
    if shutil.which("unshare") is None:
        return "there is no unshare"
    done = subprocess.run(["unshare", "--mount", "--ipc", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
                          capture_output=True, text=True)
    return done.stderr.strip()


def normal(rank, n):
    return np.random.RandomState(rank).randn(n).astype(np.float32)


@pytest.mark.parametrize("implementation", sorted(LAUNCHERS))
@pytest.mark.parametrize("transport, ranks", [("mpi", 3), ("auto", 2)])
def test_groups_that_mpirun_starts(implementation, transport, ranks, tmp_path):
    done = launched(implementation, ranks, PROGRAM, transport, str(tmp_path / "rank%d.npz"))
    assert done.returncode == 0, done.stdout
    for rank in range(ranks):
        with np.load(str(tmp_path / ("rank%d.npz" % rank))) as found:
            assert found["place"].tolist() == [rank, ranks, rank, ranks]
            assert found["transport"] == ("mpi" if transport == "mpi" else "shared_memory")
            for i, n in enumerate((5, 300001)):
                total = functools.reduce(np.add, [normal(r, n) for r in range(ranks)])
                assert found["f%d" % i].tobytes() == total.tobytes()
            np.testing.assert_array_equal(found["f2"], normal(1, 100000))
            np.testing.assert_array_equal(
                found["f3"], np.concatenate([normal(r, r * 30000) for r in range(ranks)]))
            part = np.arange(3 * rank, 3 * rank + 3)
            np.testing.assert_array_equal(
                found["f4"], np.concatenate([part + 100 * r for r in range(ranks)]))
            assert found["refused"]


@pytest.mark.skipif(bool(why_no_container()), reason=why_no_container() or "-")
# MPICH 4.0 itself was seen to hang in MPI_Init between IPC namespaces of one host.
@pytest.mark.parametrize("implementation, unshare", [("mpich", ""), ("openmpi", "--ipc")])
def test_ranks_in_containers_that_share_no_directory_go_over_mpi(implementation, unshare, tmp_path):
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    program = PROGRAM.replace("join_timeout=30", "join_timeout=4")
    done = launched(implementation, 2, program, "auto", str(tmp_path / "rank%d.npz"),
                    before=["sh", "-c", CONTAINER, "sh"], XDG_RUNTIME_DIR=str(meeting),
                    UNSHARE=unshare)
    assert done.returncode == 0, done.stdout
    for rank in range(2):
        with np.load(str(tmp_path / ("rank%d.npz" % rank))) as found:
            assert found["transport"] == "mpi"
            assert found["f1"].tobytes() == (normal(0, 300001) + normal(1, 300001)).tobytes()


@pytest.mark.parametrize("implementation, other", [("openmpi", "mpich"), ("mpich", "openmpi")])
def test_the_launcher_of_another_mpi_is_an_error(implementation, other):
    if tn.build_info()["adapters"].get("mpi-" + other) is None:
        pytest.skip("this build has no adapter of %s" % other)
    program = "import treenail as tn; tn.distributed.init()"
    done = launched(implementation, 2, program, TREENAIL_MPI=other)
    assert done.returncode != 0
    assert "the launcher announces 2 processes, but" in done.stdout
    assert "sees 1: it was started by the launcher of another MPI" in done.stdout
    assert "Choose by TREENAIL_MPI=" + implementation in done.stdout


def test_an_mpi_that_is_none_of_these():
    program = "import treenail as tn; tn.distributed.init()"
    done = launched("openmpi", 2, program, TREENAIL_MPI="intel")
    assert "TREENAIL_MPI" in done.stdout and "openmpi" in done.stdout and "mpich" in done.stdout


def test_mpi_needs_a_launcher():
    with pytest.raises(ValueError, match="mpirun or srun is needed"):
        done = subprocess.run([sys.executable, "-c", "import treenail as tn\n"
                               "tn.distributed.init('mpi')"], stderr=subprocess.PIPE, text=True,
                              check=False, timeout=60)
        raise ValueError(done.stderr)
