# SPDX-License-Identifier: Apache-2.0
"""Values between tasks of a cluster that mpirun has started: they come over MPI with their bits,
whatever is cancelled, and the job ends. What becomes of lost and late ones without a launcher:
tests/distributed/mpi_values_test.cc."""

import json

import pytest

from free_ports import free_ports
from mpi_jobs import LAUNCHERS, launched

# Each rank is a task; rank 0 drives, and tells the others by a file when all is over.
PROGRAM = """
import json, os, sys, time
import numpy as np
import treenail as tn
ports, done, then = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK")))
if then == "group first":
    tn.distributed.init("mpi")
server = tn.train.Server({"w": ["localhost:%d" % p for p in ports]}, "w", rank)
if then == "group after":
    tn.distributed.init("mpi")

def moved(value, source, target):
    with tn.device("/job:w/task:%d" % source):
        given = tn.identity(value)
    with tn.device("/job:w/task:%d" % target):
        return tn.identity(given)

def way():
    return server.transports.get("/job:w/replica:0/task:1", "")

def drive():
    feed, large = tn.placeholder(tn.float32, [None]), tn.placeholder(tn.float32, [None])
    there = moved(feed, 1, 0)
    random = np.random.RandomState(5)
    values = [random.randn(200001).astype("f4"), random.randn(400, 401), random.randn(7),
              random.randint(-99, 99, 600000).astype("i1"), random.rand(300000) < 0.5,
              (random.randn(70000) + 1j * random.randn(70000)).astype("c8"),
              np.array([b"a" * 200000, b"b"], dtype=object)]
    routes = [(i % 3, (i + 1 + i // 3) % 3) for i in range(len(values))]
    fetches = [moved(tn.placeholder_with_default(value, value.shape), *route)
               for value, route in zip(values, routes)]
    with tn.Session(server.target) as session:
        end = time.time() + 15
        session.run(there, {feed: np.zeros(9, "f4")})
        while not way().startswith(sys.argv[4]) and time.time() < end:
            time.sleep(0.05)
            session.run(there, {feed: np.zeros(9, "f4")})
        for _ in range(5):
            for found, value in zip(session.run(fetches), values):
                assert found.dtype == value.dtype and found.tobytes() == value.tobytes() \\
                    or value.dtype == object and found.tolist() == value.tolist()
        late = 0
        for i in range(40):
            value = random.randn(500000).astype("f4")
            try:
                options = tn.RunOptions(timeout_in_ms=1 + i % 25)
                found = session.run(there, {feed: value}, options=options)
                assert found.tobytes() == value.tobytes()
            except tn.errors.DeadlineExceededError:
                late += 1
        value = random.randn(3000001).astype("f4")
        for _ in range(3):
            assert session.run(there, {feed: value}).tobytes() == value.tobytes()
        group = []
        if then.startswith("group"):
            group = [tn.distributed.transport(), tn.distributed.size()]
        print("RESULT " + json.dumps([way(), late, group]), flush=True)

if rank == 0:
    try:
        drive()
    finally:
        open(done, "w").close()
end = time.time() + 60
while not os.path.exists(done) and time.time() < end:
    time.sleep(0.05)
"""


def run(implementation, tmp_path, then="", expect="MPI", ranks=3, tasks=3, **environment):
    given = {"TREENAIL_SHARED_MEMORY": "no", **environment}
    done = launched(implementation, ranks, PROGRAM, json.dumps(free_ports(tasks)),
                    str(tmp_path / "done"), then, expect, **given)
    assert done.returncode == 0, done.stdout
    line = [each for each in done.stdout.splitlines() if "RESULT " in each]
    assert len(line) == 1, done.stdout
    return json.loads(line[0].split("RESULT ")[1])


@pytest.mark.parametrize("implementation", sorted(LAUNCHERS))
@pytest.mark.parametrize("then", ["alone", "group first", "group after"])
def test_values_come_over_mpi(implementation, then, tmp_path):
    way, _, group = run(implementation, tmp_path, then)
    found = way.replace(",", "").split()
    assert found[:1] + found[2:3] == ["MPI", "values"] and way.endswith(
        ': TREENAIL_SHARED_MEMORY is "no"')
    assert int(found[1]) >= 8 and int(found[3]) > 8 * 200001 * 4
    assert group == (["mpi", 3] if then.startswith("group") else [])


@pytest.mark.parametrize("why, environment", [
    ('TREENAIL_MPI_VALUES is "no"', {"TREENAIL_MPI_VALUES": "no"}),
    ("all tasks are on one host; TREENAIL_MPI_VALUES=yes has it nevertheless",
     {"TREENAIL_SHARED_MEMORY": "{tmp}/not/there"})])
def test_why_they_do_not(why, environment, tmp_path):
    environment = {name: text.replace("{tmp}", str(tmp_path)) for name, text in environment.items()}
    way, _, _ = run("openmpi", tmp_path, expect="messages", **environment)
    assert way.startswith("messages: ") and way.endswith("; no MPI: " + why)


def test_a_rank_that_fails_ends_the_job(tmp_path):
    # While rank 0 drives, and afterwards, when it would wait for the others to end as well.
    program = PROGRAM.replace("if rank == 0:", "if rank == 2:\n    sys.exit(3)\nif rank == 0:")
    done = launched("openmpi", 3, program, json.dumps(free_ports(3)), str(tmp_path / "done"), "",
                    "MPI", TREENAIL_SHARED_MEMORY="no")
    assert done.returncode != 0 and "RESULT " not in done.stdout
