# SPDX-License-Identifier: Apache-2.0
"""Groups of processes that meet by gRPC: who they are, by TF_CONFIG and by hand, and what becomes
of the others when one ends, is silent, or forks. What they compute: test_collectives.py."""

import json
import time

import pytest

import process_group
import treenail as tn
from certificates import Authority, needs_openssl
from free_ports import free_ports
from treenail.distributed import _addresses

pytestmark = pytest.mark.skipif("grpc" not in tn.build_info()["features"],
                                reason="this build has no gRPC")


def tf_config(cluster, job, index):
    return json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})


def test_tf_config_makes_a_group_that_shares_memory_on_one_host(tmp_path):
    ports = free_ports(3)
    cluster = {"worker": ["localhost:%d" % ports[0]], "chief": ["localhost:%d" % ports[1]],
               "ps": ["localhost:%d" % ports[2]]}
    program = """
D = tn.distributed
os.environ["TF_CONFIG"] = eval(%r)[rank]
found = []
for transport in ("auto", "grpc"):
    D.init(transport)
    with tn.Session() as session:
        x = D.all_gather(tn.constant([D.rank() + 10 * rank]))
        found.append((D.rank(), D.size(), D.local_rank(), D.transport(), session.run(x).tolist()))
    D.shutdown()
leave(found)
""" % repr([tf_config(cluster, "worker", 0), tf_config(cluster, "chief", 0)])
    assert process_group.run(tmp_path, program, 2) == [
        [(1, 2, 1, "shared_memory", [10, 1]), (1, 2, 1, "grpc", [10, 1])],
        [(0, 2, 0, "shared_memory", [10, 1]), (0, 2, 0, "grpc", [10, 1])]]


def test_one_group_after_another_whoever_is_first(tmp_path):
    program = """
import random
D = tn.distributed
random.seed(rank)
for round in range(12):
    D.init(("auto", "grpc")[round % 2], rank=rank,
           cluster=os.environ["TEST_ADDRESSES"].split(","), join_timeout=30)
    with tn.Session() as session:
        assert session.run(D.all_reduce(tn.constant(1.0 * rank))) == 3.0
    D.shutdown()
    time.sleep(random.choice([0, 0.02]))
leave(True)
"""
    assert all(process_group.run(tmp_path, program, 3, process_group.by_grpc(3)))


@needs_openssl
def test_groups_by_certificates_of_their_hosts(tmp_path):
    authority = Authority(tmp_path / "site")
    authority.sign("host", "IP:127.0.0.1,DNS:localhost")
    authority.sign("alice", "URI:user:alice")
    program = """
D = tn.distributed
os.environ["TREENAIL_CREDENTIALS"] = eval(%r)[rank]
os.environ["GRPC_VERBOSITY"] = "NONE"
def joined():
    tn.distributed.init("grpc", rank=rank, cluster=os.environ["TEST_ADDRESSES"].split(","),
                        join_timeout=%g)
    with tn.Session() as session:
        total.append(session.run(D.all_reduce(tn.ones([3]))).tolist())
    D.shutdown()
total = []
said = error_of(joined)
leave((total, said))
"""
    for names, limit in ((["host", "host"], 30), (["host", "alice"], 2)):
        files = [str(authority.credentials(name)) for name in names]
        directory = tmp_path / "-".join(names)
        directory.mkdir()
        found = process_group.Group(directory, program % (repr(files), limit), 2,
                                    process_group.by_grpc(2)).wait()
        if names[1] == "host":
            assert found == [([[2.0] * 3], (None, ""))] * 2
        else:  # who is no host of a rank takes no part, and is not taken for one
            assert found[0][0] == found[1][0] == []
            assert found[0][1][0] == "DeadlineExceededError"
            assert found[1][1][0] == "PermissionDeniedError"
            assert "the group is for the hosts of its ranks" in found[1][1][1]


def test_a_rank_that_is_killed_ends_what_waits_for_it(tmp_path):
    program = """
import signal
D = tn.distributed
join()
with tn.Session() as session:
    first = session.run(D.all_reduce(tn.ones([3])))
    if rank == 1:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    begun = time.time()
    waiting = error_of(lambda: session.run(D.all_reduce(tn.ones([100000]))))
    late = time.time() - begun
    later = error_of(lambda: session.run(D.barrier()))
leave((first.tolist(), waiting, late, later))
"""
    group = process_group.Group(tmp_path, program, 3, process_group.by_grpc(3))
    results = group.wait()
    assert results[1] is None
    for found in results[::2]:
        assert found[0] == [3.0] * 3
        for kind, text in (found[1], found[3]):
            assert kind == "UnavailableError" and "lost rank 1 (127.0.0.1:" in text, text
        assert found[2] < 3


def test_a_rank_that_is_silent_is_named_when_time_is_over(tmp_path):
    program = """
D = tn.distributed
join(timeout=0.5)
with tn.Session() as session:
    session.run(D.barrier())
    if rank == 1:
        time.sleep(1.0)
    found = error_of(lambda: session.run(D.all_reduce(tn.ones([3]), key="late")))
    if rank == 0:
        time.sleep(1.5)
leave(found)
"""
    found = process_group.run(tmp_path, program, 2, process_group.by_grpc(2))
    assert found[0][0] == "DeadlineExceededError"
    wanted = "all_reduce 'late' (execution 0): rank 1 has not asked for it within 0.5 s"
    assert wanted in found[0][1]
    assert found[1] == (None, "")  # the other has given its part


@pytest.mark.parametrize("meet", [lambda size: None, process_group.by_grpc])
def test_a_late_rank_learns_that_the_others_gave_up_and_left(tmp_path, meet):
    """They had given their part, of which this rank's slice was never summed."""
    program = """
D = tn.distributed
join(timeout=30 if rank == 1 else 0.5)
total = D.all_reduce(tn.ones([100000]), key="late")
with tn.Session() as session:
    session.run(D.barrier())
    if rank == 1:
        time.sleep(2)
    begun = time.time()
    found = error_of(lambda: session.run(total))
    leave((found, time.time() - begun))
D.shutdown()
"""
    found = process_group.run(tmp_path, program, 3, meet(3))
    for rank in (0, 2):
        assert found[rank][0][0] == "DeadlineExceededError"
        assert "rank 1 has not asked for it within 0.5 s" in found[rank][0][1]
    (kind, text), late = found[1]
    assert kind == "UnavailableError" and "has left the group" in text, text
    assert late < 10


@pytest.mark.parametrize("meet", [lambda size: None, process_group.by_grpc])
def test_the_child_of_a_fork_is_no_member_and_the_parent_goes_on(tmp_path, meet):
    program = """
import multiprocessing
D = tn.distributed
join()
given = tn.placeholder_with_default(tn.ones([50000]), [50000])
total = tn.reduce_sum(D.all_reduce(given + 1))  # computed in memory of the group, if it has some

def in_child(queue):
    with tn.Session() as session:
        queue.put(error_of(lambda: session.run(total)))

def segments():
    with open("/proc/self/maps") as maps:
        return maps.read().count("memfd:treenail")

with tn.Session() as session:
    session.run(total)
    before = segments()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(queue,))
    child.start()
    found = queue.get(timeout=20)
    child.join(20)
    leave((found, child.exitcode, session.run(total), segments() - before))
"""
    for found, status, total, more in process_group.run(tmp_path, program, 2, meet(2)):
        assert found[0] == "FailedPreconditionError" and "the child is no member" in found[1]
        assert status == 0 and total == 200_000
        assert more == 0  # the child has taken none of the group's memory


def test_a_rank_without_the_others_gives_up_in_time():
    addresses = ["127.0.0.1:%d" % port for port in free_ports(2)]
    begun = time.time()
    with pytest.raises(tn.errors.DeadlineExceededError, match=r"rank 1 \(127.0.0.1:"):
        tn.distributed.init(rank=0, cluster=addresses, join_timeout=0.4)
    assert time.time() - begun < 3 and not tn.distributed.is_initialized()


@pytest.mark.parametrize("arguments, error, words", [
    ({"cluster": ["a:1", "b:2"]}, ValueError, "rank must say which of the 2 addresses"),
    ({"cluster": ["a:1", "b:2"], "rank": 2}, ValueError, r"rank 2 is not in \[0, 2\)"),
    ({"cluster": ["a:1", 2], "rank": 0}, TypeError, "cluster must list addresses"),
    ({"cluster": 3, "rank": 0}, TypeError, "cluster must be a resolver"),
    ({"cluster": {"worker": {0: "a:1", 2: "b:1"}}, "rank": 0}, ValueError, "leaves out tasks"),
    ({"cluster": ["a:1", "a:1"], "rank": 0}, ValueError, "given for two ranks"),
    ({"cluster": ["nonsense", "a:1"], "rank": 0}, ValueError, 'needed is "host:port"'),
    ({"cluster": ["0.0.0.0:0", "a:1"], "rank": 0}, tn.errors.PermissionDeniedError,
     "refuses to listen on 0.0.0.0:0"),
    ({"cluster": ["a:1"], "rank": 0, "directory": "/tmp/x"}, ValueError, "needs no directory"),
    ({"transport": "grpc"}, ValueError, "needs the addresses of the ranks"),
])
def test_wrong_arguments_say_what_is_needed(arguments, error, words, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.delenv("SLURM_STEP_NODELIST", raising=False)
    with pytest.raises(error, match=words):
        tn.distributed.init(**arguments)


def test_ranks_are_the_tasks_that_train():
    cluster = tn.train.ClusterSpec({"worker": ["w0:1", "w1:1"], "ps": ["p:1"], "chief": ["c:1"]})
    assert _addresses.of_cluster(cluster, 2) == (["c:1", "w0:1", "w1:1"], 2)
    resolver = tn.distribute.cluster_resolver.SimpleClusterResolver(
        {"worker": ["w0:1", "w1:1"], "ps": ["p:1"]}, task_type="worker", task_id=1)
    assert _addresses.of_cluster(resolver, None) == (["w0:1", "w1:1"], 1)
    resolver.task_type = "ps"
    with pytest.raises(ValueError, match="task 1 of job 'ps'; a rank of the group is one of 2 of"):
        _addresses.of_cluster(resolver, None)
