# SPDX-License-Identifier: Apache-2.0
"""Values between tasks of one host: lent in shared memory, by message where the host refuses, and
freed whatever happens to a process."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest

import treenail as tn
from cluster_processes import Cluster
from free_ports import free_ports
from memory_group import memory_group

pytestmark = pytest.mark.skipif("grpc" not in tn.build_info()["features"],
                                reason="this build has no gRPC")

PS = "/job:ps/replica:0/task:0"
PROGRAM = """
import os, sys, time
import numpy as np
import treenail as tn
cluster, how = eval(sys.argv[1]), sys.argv[2]
server = tn.train.Server(cluster, "worker")
with tn.device("/job:ps"):
    v = tn.get_variable("v", [500_000], initializer=tn.ones_initializer())
    step = v.assign_add(tn.ones([500_000]))
    value = tn.identity(v)
with tn.device("/job:worker"):
    here = tn.negative(value)
with tn.Session(server.target) as session:
    session.run(tn.global_variables_initializer())
    end = time.time() + 60
    while not server.transports.get("/job:ps/replica:0/task:0", "").startswith("shared"):
        assert (session.run(here) == -1).all()
        if how == "messages" and server.transports:
            time.sleep(0.5)
            break
        assert time.time() < end, server.transports
    for i in range(5):
        assert (session.run(here) == -1 - i).all()
        session.run(step)
    print(server.transports["/job:ps/replica:0/task:0"], flush=True)
    if how == "fork" and os.fork() == 0:
        os.closerange(0, 3)
        time.sleep(20)
        os._exit(0)
    print("ready", flush=True)
    sys.stdin.read()
"""


def segments_of(pid):
    """The bytes of each segment of shared memory that a process has mapped."""
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        ends = [line.split()[0].split("-") for line in maps if "memfd:treenail" in line]
    return [int(end, 16) - int(begin, 16) for begin, end in ends]


def lent_to_others(pid):
    return len(segments_of(pid))


def wait_until(what, seconds=10.0):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


class Pair:
    """A parameter server, and a program that is a worker; each with an environment of its own."""

    def __init__(self, how="", ps=None, worker=None, ps_within=()):
        ports = free_ports(2)
        self.spec = {"ps": ["localhost:%d" % ports[0]], "worker": ["localhost:%d" % ports[1]]}
        serve = ("import sys, treenail as tn\ntn.train.Server(eval(sys.argv[1]), 'ps').join()")
        self.ps = self._begin(serve, ps, within=ps_within)
        self.worker = self._begin(PROGRAM, worker, how)

    def _begin(self, program, environment, *arguments, within=()):
        return subprocess.Popen([*within, sys.executable, "-c", program, repr(self.spec),
                                 *arguments],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                env={**os.environ, **(environment or {})})

    def said(self):
        line = self.worker.stdout.readline().strip()
        assert self.worker.stdout.readline() == "ready\n"
        return line

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in (self.ps, self.worker):
            process.kill()
            process.communicate()


def test_a_task_on_this_host_lends_its_values():
    with Pair() as pair:
        values, lent = map(int, re.findall(r"\d+", pair.said()))
        assert values >= 5 and lent == 2_000_000 * values
        # All of them lay in the same memory, one after the other.
        assert lent_to_others(pair.ps.pid) == lent_to_others(pair.worker.pid) == 1


@pytest.mark.parametrize("how", ["", "fork"])
def test_memory_lent_to_a_killed_process_is_freed(how):
    with Pair(how) as pair:
        pair.said()
        assert lent_to_others(pair.ps.pid) == 1
        pair.worker.send_signal(signal.SIGKILL)
        wait_until(lambda: lent_to_others(pair.ps.pid) == 0, 3)
        assert pair.ps.poll() is None


def test_a_killed_lender_is_told_by_its_name():
    with Pair() as pair:
        pair.said()
        with tn.Graph().as_default():
            with tn.device("/job:ps"):
                queue = tn.FIFOQueue(1, tn.float32, shapes=[[]])
                never = queue.dequeue()
            with tn.device("/job:worker"):
                here = -never
            with tn.Session("grpc://" + pair.spec["worker"][0]) as session:
                killer = subprocess.Popen(["sh", "-c", "sleep 0.5; kill -9 %d" % pair.ps.pid])
                begun = time.monotonic()
                with pytest.raises(tn.errors.UnavailableError, match="/job:ps/replica:0/task:0"):
                    session.run(here)
                assert time.monotonic() - begun < 5
                killer.wait()


@pytest.mark.parametrize("worker, ps, reason", [
    ({"TREENAIL_SHARED_MEMORY": "no"}, {}, "is \"no\""),
    ({}, {"TREENAIL_SHARED_MEMORY": "no"}, "does not answer"),
    ({}, {"TREENAIL_SHARED_MEMORY": "/proc/nowhere"}, "does not answer"),
])
def test_values_go_by_message_where_no_socket_connects(worker, ps, reason):
    with Pair("messages", ps, worker) as pair:
        said = pair.said()
        assert said.startswith("messages: ") and reason in said


def _other_mounts():
    """A command that starts another one with an IPC and a mount namespace of its own, as containers
    of one pod have them: the directory of the sockets is another one there."""
    sockets = "/tmp/treenail-%d" % os.getuid()
    os.makedirs(sockets, 0o700, exist_ok=True)
    command = ["unshare", "--ipc", "--mount", "sh", "-c",
               'mount -t tmpfs -o mode=700 none "$0" && exec "$@"', sockets]
    done = subprocess.run([*command, "true"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    if done.returncode:
        pytest.skip("no namespaces of its own for a process: %s" % done.stdout.strip())
    return command


def test_values_go_by_message_to_a_container_of_the_same_host():
    with Pair("messages", ps_within=_other_mounts()) as pair:
        said = pair.said()
        assert said.startswith("messages: ") and "does not answer" in said
        assert lent_to_others(pair.ps.pid) == 0


def test_values_go_by_message_where_there_is_no_memory_to_lend():
    with Pair(ps={"TREENAIL_SHARED_MEMORY_LIMIT": "1000"}) as pair:
        values, lent = map(int, re.findall(r"\d+", pair.said()))
        assert values < 5 and lent == 0
        assert lent_to_others(pair.ps.pid) == 0


def test_values_go_by_message_where_a_control_group_would_kill_the_lender():
    megabyte = 1_000_000
    with memory_group(2000 * megabyte) as group, Pair(ps_within=group.within) as pair:
        pair.said()

        def has_segment(megabytes):
            return any(megabytes <= size // megabyte < megabytes + 10
                       for size in segments_of(pair.ps.pid))

        def lent(megabytes):
            """Whether a value of that size is lent when it goes to the worker."""
            with tn.Graph().as_default(), tn.Session("grpc://" + pair.spec["worker"][0]) as session:
                with tn.device("/job:ps"):
                    there = tn.fill([megabytes * megabyte // 4], tn.constant(megabytes, tn.float32))
                with tn.device("/job:worker"):
                    assert session.run(tn.reduce_min(there)) == megabytes
            assert pair.ps.poll() is None, "the kernel has killed it"
            return has_segment(megabytes)

        group.leave(120 * megabyte)
        assert not lent(80)  # room for the value, none for a segment as well
        group.leave(400 * megabyte)
        wait_until(lambda: lent(80))  # it is asked again after a while
        group.leave(140 * megabyte)
        wait_until(lambda: lent(100))  # by that of 80, which nobody uses
        assert not has_segment(80)


@pytest.fixture
def short_path():
    """A directory whose name leaves room for that of a socket."""
    with tempfile.TemporaryDirectory() as directory:
        yield directory


def test_sockets_of_processes_that_are_gone_are_removed(short_path):
    directory = os.path.join(short_path, "sockets")
    environment = {"TREENAIL_SHARED_MEMORY": directory}
    with Pair(ps=environment, worker=environment) as pair:
        pair.said()
        assert os.stat(directory).st_mode & 0o777 == 0o700
        left = os.listdir(directory)
        assert len(left) == 2
    for name in left:
        os.utime(os.path.join(directory, name), (1, 1))
    with Pair(ps=environment, worker=environment) as pair:
        pair.said()
        assert not set(left) & set(os.listdir(directory))


def test_random_values_have_the_bits_that_were_sent():
    rng = np.random.RandomState(7)
    dtypes = [np.float32, np.float64, np.int8, np.int64, np.bool_, np.complex64]
    fed = [rng.randint(0, 100, rng.randint(1, 60_000)).astype(rng.choice(dtypes))
           for _ in range(24)] + [np.array([b"", b"x" * 50_000, b"y"], object)]
    with Cluster(ps=1, worker=1) as cluster, tn.Graph().as_default():
        feeds, back = {}, []
        for value in fed:
            kind = tn.string if value.dtype == object else tn.as_dtype(value.dtype)
            placeholder = tn.placeholder(kind, value.shape)
            feeds[placeholder] = value
            with tn.device("/job:ps"):
                there = tn.identity(placeholder)
            with tn.device("/job:worker"):
                back.append(tn.identity(there))
        with tn.Session(cluster.target("worker")) as session:
            for _ in range(8):
                for got, value in zip(session.run(back, feeds), fed):
                    np.testing.assert_array_equal(got, value)
