# SPDX-License-Identifier: Apache-2.0
"""Sessions at servers in processes of their own: what they compute is what one process computes,
and what happens to a process is told, soon, by its name."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import treenail as tn
from cluster_processes import Cluster
from free_ports import free_ports

pytestmark = pytest.mark.skipif("grpc" not in tn.build_info()["features"],
                                reason="this build has no gRPC")

PS, WORKERS = "/job:ps/task:0", ["/job:worker/task:0", "/job:worker/task:1"]
SOFT = tn.ConfigProto(allow_soft_placement=True)


def both(cluster):
    """A session of this process, and one at the cluster."""
    return tn.Session(config=SOFT), tn.Session(cluster.target("worker"))


def test_data_parallel_training_has_the_bits_of_one_process(cluster):
    tn.set_random_seed(3)
    with tn.device(PS):
        w = tn.get_variable("w", [20, 5])
        b = tn.get_variable("b", [5], initializer=tn.zeros_initializer())
    x, y = tn.placeholder(tn.float32, [None, 20]), tn.placeholder(tn.int64, [None])
    losses = []
    for worker, part_x, part_y in zip(WORKERS, tn.split(x, 2), tn.split(y, 2)):
        with tn.device(worker):
            logits = tn.nn.dropout(tn.matmul(part_x, w) + b, keep_prob=0.7, seed=5)
            losses.append(tn.losses.sparse_softmax_cross_entropy(part_y, logits))
    with tn.device(PS):
        loss = tn.add_n(losses) / 2
    train = tn.train.AdamOptimizer(0.01).minimize(loss)
    found = []
    for session in both(cluster):
        rng = np.random.RandomState(0)
        with session:
            session.run(tn.global_variables_initializer())
            run = [session.run([loss, train], {x: rng.randn(8, 20), y: rng.randint(0, 5, 8)})[0]
                   for _ in range(12)]
            found.append((run, session.run(w)))
    assert found[0][0] == found[1][0] and len(set(found[0][0])) == 12
    assert (found[0][1] == found[1][1]).all()


def test_queues_and_tables_of_a_parameter_server_are_shared(cluster):
    with tn.device(PS):
        queue = tn.FIFOQueue(10, tn.int32, shapes=[[]], shared_name="jobs")
    value = tn.placeholder(tn.int32, [])
    put, get, size = queue.enqueue(value), queue.dequeue(), queue.size()
    with tn.device(WORKERS[1]):
        twice = get * 2
    got = []

    def consume():
        with tn.Session(cluster.target("worker", 1), graph=value.graph) as session:
            got.extend(session.run(twice) for _ in range(5))
    thread = threading.Thread(target=consume)
    thread.start()
    with tn.Session(cluster.target("worker")) as session:
        for i in range(5):
            session.run(put, {value: i})
        thread.join(60)
        assert got == [0, 2, 4, 6, 8]
        assert session.run(size) == 0


def test_containers_are_reset_by_name(cluster):
    kept = tn.Variable(1.0, name="kept")
    with tn.container("scratch"):
        gone = tn.Variable(2.0, name="gone")
    target = cluster.target("worker")
    with tn.Session(target) as session:
        session.run(tn.global_variables_initializer())
    tn.Session.reset(target, ["scratch"])
    with tn.Session(target) as session:
        assert session.run(kept) == 1
        with pytest.raises(tn.errors.FailedPreconditionError, match="gone"):
            session.run(gone)


def test_every_session_sees_what_another_has_assigned(cluster):
    with tn.device(PS):
        v = tn.get_variable("v", [], initializer=tn.zeros_initializer())
    add = v.assign_add(1.0)
    with tn.Session(cluster.target("worker")) as one, tn.Session(cluster.target("ps")) as two:
        one.run(v.initializer)
        for session in (one, two, one):
            session.run(add)
        assert one.run(v) == two.run(v) == 3


def test_control_flow_whose_bodies_stay_on_one_task(cluster):
    x = tn.placeholder(tn.float32, [])
    with tn.device(WORKERS[1]):
        doubled = tn.while_loop(lambda v: v < 100, lambda v: v * 2, [x])
        sign = tn.cond(x > 3, lambda: doubled + 1, lambda: -doubled)
    y = sign + 1
    for session in both(cluster):
        with session:
            assert session.run(y, {x: 5.0}) == 162
            assert session.run(y, {x: 3.0}) == -191


@pytest.mark.parametrize("bad, message", [
    ("/job:ps/task:7", 'cannot be placed on "/job:ps/task:7": this session has /job:worker'),
    ("/job:trainer", "cannot be placed on"),
    ("/gpu:0", "cannot be placed on"),
])
def test_a_device_that_the_cluster_lacks(cluster, bad, message):
    with tn.device(bad):
        c = tn.constant(1.0) + 1.0
    with tn.Session(cluster.target("worker")) as session, \
            pytest.raises(tn.errors.InvalidArgumentError, match=message):
        session.run(c)
    with tn.Session(cluster.target("worker"), config=SOFT) as session:
        assert session.run(c) == 2


def test_a_handle_does_not_leave_its_task(cluster):
    with tn.device(PS):
        list_ = tn.raw_ops.TensorListReserve(element_shape=[-1], num_elements=3,
                                             element_dtype=tn.float32)
    with tn.device(WORKERS[0]):
        length = tn.raw_ops.TensorListLength(input_handle=list_)
    with tn.Session(cluster.target("worker")) as session, \
            pytest.raises(tn.errors.UnimplementedError,
                          match="place its readers where it is"):
        session.run(length)


def test_errors_name_the_node_and_leave_the_session_usable(cluster):
    x = tn.placeholder(tn.float32, [None])
    with tn.device(PS):
        checked = tn.check_numerics(x, "bad input", name="checked")
    with tn.device(WORKERS[1]):
        y = tn.reduce_sum(checked)
    with tn.Session(cluster.target("worker")) as session:
        for _ in range(5):
            with pytest.raises(tn.errors.InvalidArgumentError,
                               match=r'^\[CheckNumerics node "checked"\] bad input'):
                session.run(y, {x: [1.0, np.inf]})
        assert session.run(y, {x: [1.0, 2.0]}) == 3


def test_timeouts_and_interrupts_end_remote_runs(cluster):
    with tn.device(PS):
        got = tn.FIFOQueue(1, tn.float32, name="never").dequeue()
    with tn.device(WORKERS[1]):
        y = got + 1
    with tn.Session(cluster.target("worker")) as session:
        with pytest.raises(tn.errors.DeadlineExceededError):
            session.run(y, options=tn.RunOptions(timeout_in_ms=200))
        begun = time.monotonic()
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            session.run(y)
        assert time.monotonic() - begun < 20
        assert session.run(tn.constant(2)) == 2


def test_large_values_and_many_small_ones(cluster):
    with tn.device(PS):
        large = tn.get_variable("large", [3 << 20], initializer=tn.ones_initializer())
        small = [tn.fill([i], float(i)) for i in range(100)]
    with tn.device(WORKERS[0]):
        sums = [tn.reduce_sum(large)] + [tn.reduce_sum(each) for each in small]
    with tn.Session(cluster.target("worker")) as session:
        session.run(large.initializer)
        assert session.run(sums) == [3 << 20] + [float(i * i) for i in range(100)]
        assert session.run(large).shape == (3 << 20,)


def test_a_child_of_a_fork_is_told_to_connect_for_itself(cluster):
    c = tn.constant(3.0)
    with tn.Session(cluster.target("worker")) as session:
        assert session.run(c) == 3
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                session.run(c)
                said = "no error"
            except tn.errors.FailedPreconditionError as error:
                said = str(error)
            os.write(writer, said.encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            assert "belongs to the process that was forked" in pipe.read()
        os.waitpid(child, 0)
        assert session.run(c) == 3


def test_a_killed_task_is_named_and_its_variables_are_not_taken_for_new_ones():
    with Cluster(ps=2, worker=1) as cluster:
        with tn.device("/job:ps/task:1"):
            v = tn.get_variable("v", [], initializer=tn.ones_initializer())
        waits = v + tn.py_func(lambda: np.float32(0), [], tn.float32, stateful=True)
        with tn.Session(cluster.target("worker")) as session:
            session.run(v.initializer)
            assert session.run(v) == 1
            cluster.kill("ps", 1)
            begun = time.monotonic()
            with pytest.raises(tn.errors.UnavailableError,
                               match="the task /job:ps/replica:0/task:1 "):
                session.run(v)
            assert time.monotonic() - begun < 10
            cluster.start("ps", 1)
            cluster.wait("ps", 1)
            with pytest.raises((tn.errors.AbortedError, tn.errors.UnavailableError)) as caught:
                for _ in range(100):
                    try:
                        session.run(v)
                    except tn.errors.UnavailableError:
                        time.sleep(0.1)
            assert isinstance(caught.value, tn.errors.AbortedError)
            assert "/job:ps/replica:0/task:1 was restarted" in str(caught.value)
            del waits
        with tn.Session(cluster.target("worker")) as session:
            with pytest.raises(tn.errors.FailedPreconditionError, match="uninitialized"):
                session.run(v)


def test_a_step_ends_when_a_task_dies_in_it():
    with Cluster(ps=1, worker=1) as cluster:
        with tn.device("/job:ps/task:0"):
            got = tn.FIFOQueue(1, tn.float32, name="never").dequeue()
        with tn.device("/job:worker/task:0"):
            y = got + 1
        with tn.Session(cluster.target("worker")) as session:
            threading.Timer(0.5, cluster.signal, ("ps", 0, signal.SIGKILL)).start()
            with pytest.raises(tn.errors.UnavailableError, match="/job:ps/replica:0/task:0"):
                session.run(y)


def test_a_session_waits_for_servers_that_are_still_to_come():
    ports = free_ports(2)
    spec = {"ps": ["localhost:%d" % ports[0]], "worker": ["localhost:%d" % ports[1]]}
    server = tn.train.Server(spec, "worker", 0)
    with tn.device("/job:ps/task:0"):
        c = tn.constant(2.0) * 2
    found = []

    def late():
        time.sleep(0.5)
        found.append(tn.train.Server(spec, "ps", 0))
    thread = threading.Thread(target=late)
    thread.start()
    with tn.Session(server.target) as session:
        assert session.run(c) == 4
    thread.join()
    server.stop()
    found[0].stop()
    with pytest.raises(RuntimeError, match="does not run"):
        server.target


def test_a_session_waits_for_those_tasks_alone_that_it_is_to_know():
    ports = free_ports(3)
    spec = {"ps": ["localhost:%d" % ports[0]],
            "worker": ["localhost:%d" % port for port in ports[1:]]}  # the second never comes
    with tn.device("/job:ps/task:0"):
        v = tn.get_variable("v", [], initializer=tn.ones_initializer())
    servers = [tn.train.Server(spec, job, 0) for job in spec]
    config = tn.ConfigProto(device_filters=["/job:ps"])
    with tn.Session(servers[1].target, config=config) as session:
        assert sorted(device.name for device in session.list_devices()) == [
            "/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"]
        session.run(v.initializer)
        assert session.run(v) == 1
        with tn.device("/job:worker/task:1"):
            there = v + 1
        with pytest.raises(tn.errors.InvalidArgumentError, match="cannot be placed on"):
            session.run(there)
    with pytest.raises(tn.errors.InvalidArgumentError, match="ps"):
        tn.Session(servers[1].target, config=tn.ConfigProto(device_filters=["ps"]))
    for server in servers:
        server.stop()


@pytest.mark.parametrize("wrong, kind", [
    ({"device_filters": "/job:ps"}, TypeError), ({"device_filters": [1]}, TypeError),
    ({"keepalive_in_ms": -1}, ValueError), ({"keepalive_in_ms": 1.5}, TypeError)])
def test_options_of_sessions_at_servers_are_checked(wrong, kind):
    with pytest.raises(kind, match="ConfigProto.%s must be" % next(iter(wrong))):
        tn.ConfigProto(**wrong)


def test_what_a_server_is_refused():
    with pytest.raises(ValueError, match='protocol must be "grpc"'):
        tn.train.Server({"w": ["localhost:0"]}, protocol="http")
    with pytest.raises(TypeError, match="`cluster` must be a dictionary .* not 'localhost:0'"):
        tn.train.Server("localhost:0")
    with pytest.raises(TypeError, match="Task address must be a str .* not 1, of task 0 of job"):
        tn.train.Server({"w": [1]})
    for nothing in ({}, {"w": []}):
        with pytest.raises(ValueError, match="the cluster has no tasks"):
            tn.train.Server(nothing)
    with pytest.raises(ValueError, match="job_name must say which of ps, w this is"):
        tn.train.Server({"w": ["localhost:0"], "ps": ["localhost:0"]})
    with pytest.raises(ValueError, match="task_index must say which of the 2 tasks"):
        tn.train.Server({"w": ["localhost:0", "localhost:1"]})
    with pytest.raises(tn.errors.NotFoundError, match="the cluster has no"):
        tn.train.Server({"w": ["localhost:0"]}, "w", 3)
    with pytest.raises(tn.errors.PermissionDeniedError, match="plain_text"):
        tn.train.Server({"w": ["0.0.0.0:0"]})
    with pytest.raises(tn.errors.InvalidArgumentError, match='needed is "host:port"'):
        tn.train.Server({"w": ["localhost"]})
    with pytest.raises(tn.errors.InvalidArgumentError, match="target is"):
        tn.Session("localhost:2222")
    port, = free_ports(1)
    with pytest.raises(tn.errors.UnavailableError, match="the server localhost:%d" % port):
        tn.Session("grpc://localhost:%d" % port)
    with pytest.raises(TypeError, match="config must be"):
        tn.train.Server({"w": ["localhost:0"]}, config=3)


def test_a_program_may_end_with_its_server_and_sessions_open():
    text = """
import treenail as tn
server = tn.train.Server.create_local_server()
session = tn.Session(server.target)
print(session.run(tn.constant(5.0) + 1), server.target.startswith("grpc://localhost:"), server)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "6.0 True <tn.train.Server /job:local/task:0>\n"
    assert done.stderr == ""


@pytest.mark.parametrize("options, rounded", [
    ({}, lambda x: x),
    ({"enable_bfloat16_sendrecv": True}, lambda x: to_bfloat16(x)),
    ({"sendrecv_dtype": tn.bfloat16}, lambda x: to_bfloat16(x)),
    ({"sendrecv_dtype": tn.float16}, lambda x: x.astype(np.float16).astype(np.float32)),
])
def test_values_between_tasks_are_rounded_where_that_is_asked_for(cluster, options, rounded):
    bits = np.random.RandomState(3).randint(0, 2 ** 32, 5000, dtype=np.uint64).astype(np.uint32)
    x = bits.view(np.float32)
    x = np.concatenate([x[np.isfinite(x)], np.float32([0, -0.0, np.inf, -np.inf, 65519, 65520, 1])])
    fed, exact = tn.placeholder(tn.float32, [None]), tn.placeholder(tn.float64, [None])
    with tn.device(PS):
        there, precise, done = tn.negative(fed), tn.negative(exact), tn.no_op()
    with tn.device(WORKERS[1]), tn.control_dependencies([done]):
        here, twice, unchanged = tn.identity(there), there * 2, tn.identity(precise)
    config = tn.ConfigProto(graph_options=tn.GraphOptions(**options))
    with tn.Session(cluster.target("worker"), config=config) as session, \
            np.errstate(over="ignore"):
        got, doubled, doubles, at_once = session.run([here, twice, unchanged, there],
                                                     {fed: x, exact: x.astype(np.float64)})
        np.testing.assert_array_equal(got.view(np.uint32), rounded(-x).view(np.uint32))
        np.testing.assert_array_equal(doubled, rounded(-x) * 2)
        np.testing.assert_array_equal(doubles, -x.astype(np.float64))
        np.testing.assert_array_equal(at_once, -x)  # fetched where it is


def to_bfloat16(x):
    """The nearest, ties to even, of finite and infinite float32: bits alone."""
    bits = x.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).astype(np.uint32).view(np.float32)


def test_rounding_to_another_dtype_is_refused():
    with pytest.raises(ValueError, match="must be tn.bfloat16, tn.float16 or None, not tn.int32"):
        tn.Session(config=tn.ConfigProto(graph_options=tn.GraphOptions(sendrecv_dtype=tn.int32)))


def test_a_cluster_within_this_process():
    workers, ps = tn.test.create_local_cluster(num_workers=2, num_ps=1)
    with tn.device("/job:ps/task:0"):
        v = tn.get_variable("v", [], initializer=tn.zeros_initializer())
        after = v.assign_add(1.0)
    with tn.device("/job:worker/task:1"):
        more = tn.identity(after)
    with tn.Session(workers[0].target) as session, tn.Session(workers[1].target) as other:
        session.run(tn.global_variables_initializer())
        assert session.run(more) == 1 and other.run(more) == 2
    for server in workers + ps:
        server.stop()
    only, none = tn.test.create_local_cluster(1, 0, worker_config=tn.ConfigProto())
    assert len(only) == 1 and none == []
    only[0].stop()
    for wrong in ({"num_workers": 0, "num_ps": 0}, {"num_workers": -1, "num_ps": 1},
                  {"num_workers": 1.0, "num_ps": 0}):
        with pytest.raises(ValueError, match="needed are numbers"):
            tn.test.create_local_cluster(**wrong)
    with pytest.raises(ValueError, match="needed is \"grpc\""):
        tn.test.create_local_cluster(1, 1, protocol="grpc+verbs")
