# SPDX-License-Identifier: Apache-2.0
"""Sessions at servers that are placed by predicted cost, what is measured for it, and a pipeline of
LSTM layers over tasks: with the bits of one process, by hand and by cost."""

import os
import sys

import numpy as np
import pytest

import treenail as tn
from treenail import _placement_measure
from cluster_processes import Cluster
from free_ports import free_ports

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(SOURCE, "examples"))
import lstm_pipeline  # noqa: E402  (the path must be set first)

pytestmark = pytest.mark.skipif("grpc" not in tn.build_info()["features"],
                                reason="this build has no gRPC")
QUICK = [tn.placement.Link("", "", latency=1e-9, bytes_per_second=1e15)]
SLOW = [tn.placement.DeviceModel("/device:CPU:*", flops_per_second=1e3, bytes_per_second=1e3)]
TASKS = ["/job:worker/replica:0/task:%d" % task for task in range(2)]


@pytest.fixture(autouse=True)
def fresh(fresh_graph):
    """A default graph of its own."""


@pytest.fixture(name="servers", scope="module")
def servers_fixture():
    """Two workers, in this process."""
    spec = {"worker": ["localhost:%d" % port for port in free_ports(2)]}
    servers = [tn.train.Server(spec, "worker", task) for task in range(2)]
    yield servers
    for server in servers:
        server.stop()


def by_cost(server, options, **more):
    return tn.Session(server.target, config=tn.ConfigProto(
        graph_options=tn.GraphOptions(placement=options), **more))


def test_a_session_at_a_server_runs_where_it_is_predicted_to_end_first(servers, capfd):
    x = tn.placeholder(tn.float32, [100], name="x")
    parts = [tn.exp(x * float(number), name="part%d" % number) for number in range(6)]
    total = tn.add_n(parts, name="total")
    feed = {x: np.linspace(0, 1, 100).astype(np.float32)}
    with tn.Session() as session:
        expected = session.run(total, feed)
    options = tn.placement.Options(devices=SLOW, links=QUICK)
    with by_cost(servers[0], options, log_device_placement=True) as session:
        found = tn.placement.explain(fetches=total, session=session)
        assert (session.run(total, feed) == expected).all()
        assert [use.device for use in found.devices] == [
            device.name for device in session.list_devices()]
    rows = [line.split() for line in capfd.readouterr().err.splitlines()]
    used = set()
    for node in found.nodes:
        if node.name.startswith("part"):
            used.add(node.device)
            assert [node.device] == [row[2] for row in rows if row[0] == node.name]
    assert used == {task + "/device:CPU:0" for task in TASKS}


def test_explanations_for_a_server_keep_state_where_it_is_and_know_the_tasks_memory(servers):
    v = tn.get_variable("v", [1000], initializer=tn.zeros_initializer())
    with tn.device("/job:worker/task:1"):
        w = tn.get_variable("w", [1000], initializer=tn.zeros_initializer())
    y = tn.exp(v) + tn.exp(w)
    with tn.Session(servers[0].target) as session:
        found = tn.placement.explain(fetches=y, session=session)
        places = {node.name: node for node in found.nodes}
        assert places["v"].device.startswith(TASKS[0]) and places["w"].device.startswith(TASKS[1])
        assert places["v"].reason == "its state is there"
        few = tn.placement.Options(devices=[tn.placement.DeviceModel("", memory_bytes=100)])
        with pytest.raises(tn.errors.ResourceExhaustedError, match="no placement fits"):
            tn.placement.explain(fetches=y, session=session, options=few)
        with pytest.raises(ValueError, match="those of the session"):
            tn.placement.explain(fetches=y, session=session, devices=["/cpu:0"])
    with tn.Session() as session, pytest.raises(TypeError, match="one at a server"):
        tn.placement.explain(fetches=y, session=session)


def test_figures_are_measured_when_somebody_asks_and_kept_in_the_profile(servers, tmp_path):
    profile = tn.placement.measure(servers[0].target, repeats=1)
    assert {model.devices for model in profile.devices} == {
        task + "/device:CPU:0" for task in TASKS}
    assert {(link.source, link.destination) for link in profile.links} == {
        (TASKS[0], TASKS[1]), (TASKS[1], TASKS[0])}
    # Both are on this machine: in this process even.
    assert {model.host for model in profile.devices} == {TASKS[0]}
    for model in profile.devices:
        assert 1 <= model.slowdown < 100
        assert 1e8 < model.flops_per_second < 1e14 and 1e7 < model.bytes_per_second < 1e13
        assert model.seconds_per_node < 1e-2
    for link in profile.links:
        assert link.latency < 1 and 1e5 < link.bytes_per_second < 1e13
    path = tmp_path / "cluster.profile"
    profile.save(path)
    again = tn.placement.Profile.load(path)
    assert repr(again.links) == repr(profile.links)
    assert repr(again.devices) == repr(profile.devices)
    assert "2 devices and 2 links" in repr(again)
    x = tn.placeholder(tn.float32, [10])
    with by_cost(servers[0], tn.placement.Options(profile=again)) as session:
        assert (session.run(tn.exp(x), {x: np.zeros(10)}) == 1).all()
    more = tn.placement.measure(servers[0].target, repeats=1, profile=again)
    assert len(more.devices) == 2


def test_where_devices_of_a_machine_slow_each_other_a_session_leaves_all_on_one(servers, capfd):
    x = tn.placeholder(tn.float32, [100], name="x")
    total = tn.add_n([tn.exp(x * float(n), name="part%d" % n) for n in range(6)], name="total")
    for slowdown, tasks in ((1.0, set(TASKS)), (5.0, {TASKS[0]})):
        device = tn.placement.DeviceModel("/device:CPU:*", flops_per_second=1e3,
                                          bytes_per_second=1e3, slowdown=slowdown)
        options = tn.placement.Options(devices=[device], links=QUICK)
        with by_cost(servers[0], options, log_device_placement=True) as session:
            found = tn.placement.explain(fetches=total, session=session)
            session.run(total, {x: np.zeros(100)})
        rows = [line.split() for line in capfd.readouterr().err.splitlines()]
        ran = {row[2] for row in rows if row[0].startswith("part")}
        assert ran == {task + "/device:CPU:0" for task in tasks}
        assert {use.device for use in found.devices if use.busy} == ran


def test_products_count_while_all_devices_work():
    found = _placement_measure._while_all_work({
        "a": [(0, 10), (10, 20), (20, 31), (31, 40)], "b": [(15, 29), (29, 35)]})
    assert found == {"a": [11], "b": [14, 6]}
    assert _placement_measure._while_all_work({"a": [(3, 9)]}) == {"a": [6]}
    # Where one is done before another has ended anything, that is all there is to go by.
    found = _placement_measure._while_all_work({"a": [(0, 50)], "b": [(5, 6)]})
    assert found == {"a": [50], "b": [1]}


def test_a_rate_is_of_the_longest_run_where_noise_is_all_that_is_left():
    rate = _placement_measure._rate
    assert rate(1e6, 0.5, 1.0) == 2e6
    for seconds in (-1.0, 0.0, 1e-9):
        assert rate(1e6, seconds, 2.0) == 5e5


@pytest.mark.parametrize("wrong, kind", [
    ({"target": ""}, TypeError), ({"target": 3}, TypeError), ({"profile": "p"}, TypeError),
    ({"repeats": 0}, ValueError), ({"repeats": 1.5}, TypeError)])
def test_what_measure_is_refused(wrong, kind):
    with pytest.raises(kind, match=next(iter(wrong))):
        tn.placement.measure(**{"target": "grpc://localhost:1", **wrong})


def test_lstm_layers_over_tasks_train_with_the_bits_of_one_process():
    steps = 4
    expected = lstm_pipeline.trained("", ["", ""], steps)
    with Cluster(worker=2) as cluster:
        tasks = ["/job:worker/task:%d" % task for task in range(2)]
        found = {"by hand": lstm_pipeline.trained(cluster.target("worker"), tasks, steps)}
        for name, links in (("by cost", ()), ("by cost, spread", QUICK)):
            tn.Session.reset(cluster.target("worker"))
            found[name] = lstm_pipeline.trained(cluster.target("worker"), tasks, steps, True, links)
    for name, losses in found.items():
        assert losses == expected, name


def test_placed_by_cost_a_run_ends_when_a_task_dies():
    with Cluster(ps=1, worker=1) as cluster:
        x = tn.placeholder(tn.float32, [100])
        total = tn.add_n([tn.exp(x * float(number)) for number in range(6)])
        options = tn.placement.Options(devices=SLOW, links=QUICK)
        config = tn.ConfigProto(graph_options=tn.GraphOptions(placement=options))
        with tn.Session(cluster.target("worker"), config=config) as session:
            session.run(total, {x: np.zeros(100)})
            cluster.kill("ps", 0)
            with pytest.raises(tn.errors.UnavailableError, match="/job:ps/replica:0/task:0"):
                session.run(total, {x: np.zeros(100)})
