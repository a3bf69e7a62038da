# SPDX-License-Identifier: Apache-2.0
"""Placements by predicted cost: explanations, profiles, and sessions that use them."""

import json
import os
import sys

import numpy as np
import pytest

import treenail as tn

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(SOURCE, "tests", "simulated"))
import simulated  # noqa: E402  (the path must be set first)

WORKERS = ["/job:worker/task:%d/cpu:0" % task for task in range(4)]
QUICK = tn.placement.Options(links=[tn.placement.Link("/job:worker", "/job:worker", latency=1e-9,
                                                      bytes_per_second=1e15)])


@pytest.fixture(autouse=True)
def fresh(fresh_graph):
    """A default graph of its own."""


def network():
    """(feeds, training step) of a small perceptron."""
    x, y = tn.placeholder(tn.float32, [64, 32], name="x"), tn.placeholder(tn.int64, [64], name="y")
    logits = tn.layers.dense(tn.layers.dense(x, 48, activation=tn.nn.relu), 10)
    loss = tn.losses.sparse_softmax_cross_entropy(labels=y, logits=logits)
    train = tn.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    rng = np.random.RandomState(1)
    return {x: rng.rand(64, 32).astype(np.float32), y: rng.randint(0, 10, 64)}, [train, loss]


def traced(session, fetches, feed, runs=3):
    """Metadata of so many traced runs, after one that makes the plan."""
    session.run(fetches, feed)
    found = []
    for _ in range(runs):
        found.append(tn.RunMetadata())
        session.run(fetches, feed, tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE), found[-1])
    return found


# --- Explanations


def test_independent_operations_go_to_different_workers():
    x = tn.placeholder(tn.float32, [1000, 1000], name="x")
    for number in range(4):
        tn.exp(x, name="y%d" % number)
    found = tn.placement.explain(devices=WORKERS, options=QUICK)
    places = {node.name: node.device for node in found.nodes}
    names = ["/job:worker/replica:0/task:%d/device:CPU:0" % task for task in range(4)]
    assert sorted(places["y%d" % number] for number in range(4)) == names
    assert [use.device for use in found.devices] == names
    assert places["x"] == names[0]
    by_name = {node.name: node for node in found.nodes}
    assert by_name["x"].reason == "hands values on" and by_name["x"].feasible == (names[0],)
    assert by_name["y1"].reason == "predicted" and by_name["y1"].feasible == tuple(names)
    assert max(node.finish for node in found.nodes) == found.makespan
    assert {t.bytes for t in found.transfers} == {4_000_000} and len(found.transfers) == 3
    assert all(t.name == "x" and t.source == names[0] for t in found.transfers)
    assert found.strategy in [c.strategy for c in found.candidates]
    assert min(c.makespan for c in found.candidates) == found.makespan


def test_it_prints_a_table():
    x = tn.placeholder(tn.float32, [100, 100], name="x")
    y = tn.matmul(x, x, name="product")
    with tn.device("/job:worker/task:2"):
        z = tn.exp(y, name="z")
    found = tn.placement.explain(fetches=z, devices=WORKERS)
    assert repr(found).startswith("<tn.placement.Explanation of 4 operations on 4 devices: ")
    text = str(found)
    row = next(line for line in text.splitlines() if line.startswith("z "))
    assert "/task:2/device:CPU:0" in row and "asked for" in row
    assert "single device 0" in text and "round robin" in text
    assert "and 3 more, 2 of which take no time" in found.table(rows=1)


def test_only_what_is_fetched_counts_and_calls_are_looked_into():
    @tn.function
    def f(x):
        return tn.exp(tn.matmul(x, x, name="inner"), name="outer")
    x = tn.placeholder(tn.float32, [50, 50], name="x")
    y = f(x)
    tn.sin(x, name="left_out")
    names = [node.name for node in tn.placement.explain(fetches=y).nodes]
    assert any(name.endswith("/inner") for name in names) and "left_out" not in names


def test_loops_cost_their_body_as_often_as_they_go_round():
    x = tn.placeholder(tn.float32, [200, 200], name="x")
    y = tn.while_loop(lambda i, v: tn.less(i, 100), lambda i, v: (i + 1, tn.matmul(v, v)),
                      [tn.constant(0), x])[1]
    ten, twenty = (tn.placement.explain(
        fetches=y, options=tn.placement.Options(trip_count=count)).makespan for count in (10, 20))
    assert twenty / ten == pytest.approx(2, rel=0.05)


def test_a_thousand_imaginary_workers():
    x = tn.placeholder(tn.float32, [1000, 1000], name="x")
    tn.add_n([tn.exp(x * float(number)) for number in range(64)], name="sum")
    devices = ["/job:worker/task:%d/cpu:0" % task for task in range(1024)]
    found = tn.placement.explain(devices=devices, options=QUICK)
    assert len(found.devices) == 1024
    single = [c for c in found.candidates if c.strategy.startswith("single")]
    assert len(single) == 1 and found.makespan < 0.5 * single[0].makespan


def test_a_slow_device_is_left_alone():
    x = tn.placeholder(tn.float32, [1000, 1000], name="x")
    for number in range(8):
        tn.exp(x, name="y%d" % number)
    slow = tn.placement.DeviceModel("/job:worker/task:1", flops_per_second=1e6,
                                    bytes_per_second=1e6)
    found = tn.placement.explain(
        devices=WORKERS[:3], options=tn.placement.Options(devices=[slow], links=QUICK.links))
    used = {node.device for node in found.nodes}
    assert not any("task:1" in device for device in used) and len(used) == 2


def test_memory_that_does_not_suffice_is_refused_with_a_table():
    v = tn.Variable(tn.zeros([1000, 1000]), name="v")
    small = tn.placement.DeviceModel("/job:worker", memory_bytes=1_000_000)
    with pytest.raises(tn.errors.ResourceExhaustedError,
                       match=r"no placement fits the memory of the devices; the nearest needs\n"
                             r"  /job:worker/replica:0/task:0/device:CPU:0: \d+ bytes"):
        tn.placement.explain(fetches=v.read_value(), devices=WORKERS[:2],
                             options=tn.placement.Options(devices=[small]))


def test_requests_that_nothing_meets_are_refused_as_by_a_session():
    with tn.device("/gpu:3"):
        y = tn.exp(tn.placeholder(tn.float32, []))
    with pytest.raises(tn.errors.InvalidArgumentError, match='cannot be placed on "/gpu:3"'):
        tn.placement.explain(fetches=y)
    assert tn.placement.explain(fetches=y, allow_soft_placement=True).makespan > 0
    with pytest.raises(tn.errors.InvalidArgumentError, match="begin with a CPU"):
        tn.placement.explain(fetches=tn.exp(1.0), devices=["/gpu:0"])
    with pytest.raises(ValueError, match="devices must be different"):
        tn.placement.explain(fetches=tn.exp(1.0), devices=["/cpu:0", "/device:CPU:0"])


def test_the_graph_stays_as_it_is():
    feed, fetches = network()
    graph = tn.get_default_graph()
    before = [(op.name, op.device) for op in graph.get_operations()]
    first = tn.placement.explain(fetches=fetches, devices=WORKERS)
    again = tn.placement.explain(fetches=fetches, devices=WORKERS)
    assert [(op.name, op.device) for op in graph.get_operations()] == before
    assert first.nodes == again.nodes and first.transfers == again.transfers


# --- Devices that slow each other


def independent(slowdown, host="box", count=6):
    """What is predicted of so many operations of a second each on two devices."""
    x = tn.placeholder(tn.float32, [], name="x")
    fetches = [tn.exp(x).op for _ in range(count)]
    device = tn.placement.DeviceModel("/job:worker", flops_per_second=1e15, bytes_per_second=1e15,
                                      seconds_per_node=1, slowdown=slowdown, host=host)
    options = tn.placement.Options(devices=[device], links=QUICK.links)
    return tn.placement.explain(fetches=fetches, devices=WORKERS[:2], options=options)


def test_operations_take_longer_while_another_device_of_the_host_is_busy():
    found = independent(1.5)
    assert found.makespan == pytest.approx(4.5, rel=1e-6)
    assert [use.busy for use in found.devices] == pytest.approx([4.5, 4.5], rel=1e-6)
    longest = [node.finish - node.start for node in found.nodes if node.op == "Exp"]
    assert longest == pytest.approx([1.5] * 6, rel=1e-6)
    assert independent(1.5, host="").makespan == pytest.approx(3, rel=1e-6)


def test_a_second_device_is_taken_only_where_it_pays():
    found = independent(2.5)
    assert found.strategy == "single device 0" and found.makespan == pytest.approx(6)
    assert all("task:0" in node.device for node in found.nodes)
    assert found.devices[1].busy == 0


def test_a_profile_says_which_devices_slow_each_other(tmp_path):
    names = ["/job:worker/replica:0/task:%d/device:CPU:0" % task for task in range(2)]
    text = "treenail-placement-profile 3\nruns 0\n"
    text += "".join("device %s 1000000000000 1000000000000 1000000000\n" % name for name in names)
    text += "contention %s box 1000\ncontention %s box 2000\nend 4\n" % tuple(names)
    path = tmp_path / "p"
    path.write_text(text)
    profile = tn.placement.Profile.load(path)
    assert [(model.slowdown, model.host) for model in profile.devices] == [(1, "box"), (2, "box")]
    assert "slowdown=2, host='box'" in repr(profile.devices[1])
    x = tn.placeholder(tn.float32, [])
    fetches = []
    for task in range(2):
        with tn.device(WORKERS[task]):
            fetches.append(tn.exp(x).op)
    found = tn.placement.explain(fetches=fetches, devices=WORKERS[:2], profile=profile,
                                 options=QUICK)
    # The second device has done half when the first ends.
    assert [use.busy for use in found.devices] == pytest.approx([1, 1.5], rel=1e-3)
    path.write_text(text.replace("box 2000", "box 999"))
    with pytest.raises(tn.errors.InvalidArgumentError,
                       match="the slowdown in thousandths must be a whole number of at least 1000"):
        tn.placement.Profile.load(path)
    path.write_text(text.replace("contention /job:worker/replica:0/task:1", "contention /job:a"))
    with pytest.raises(tn.errors.InvalidArgumentError, match="has the figures of that device"):
        tn.placement.Profile.load(path)


@pytest.mark.parametrize("wrong", [0.5, 0, -1, float("nan"), float("inf")])
def test_a_slowdown_is_at_least_1(wrong):
    with pytest.raises(ValueError, match="slowdown must be finite and at least 1"):
        tn.placement.DeviceModel("/cpu:0", slowdown=wrong)


def test_what_no_slowdown_and_no_host_is():
    with pytest.raises(TypeError, match="slowdown must be a number"):
        tn.placement.DeviceModel("/cpu:0", slowdown="much")
    with pytest.raises(TypeError, match="host must be a str"):
        tn.placement.DeviceModel("/cpu:0", host=3)
    assert "slowdown" not in repr(tn.placement.DeviceModel("/cpu:0"))


# --- Profiles


def test_profiles_hold_what_traces_say(tmp_path):
    feed, fetches = network()
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        runs = traced(session, fetches, feed)
    profile = tn.placement.Profile.from_runs(runs)
    assert profile.runs == 3
    sums = {}
    for stats in (stats for run in runs for stats in run.nodes):
        sums.setdefault(stats.name, []).append(stats.end_ns - stats.start_ns)
    assert profile.seconds() == pytest.approx({name: sum(ns) / len(ns) / 1e9
                                               for name, ns in sums.items()})
    path = tmp_path / "step.profile"
    profile.save(path)
    assert tn.placement.Profile.load(path).seconds() == profile.seconds()
    found = tn.placement.explain(fetches=fetches, profile=profile)
    # Reading a variable is foreseen to take no time, and may have been interrupted.
    timed = {node.name for node in found.nodes if node.finish > node.start}
    total = sum(seconds for name, seconds in profile.seconds().items() if name in timed)
    assert any(node.measured for node in found.nodes)
    assert found.makespan == pytest.approx(total, rel=0.05)


def test_profiles_refuse_other_files(tmp_path):
    path = tmp_path / "p"
    path.write_text("treenail-placement-profile 1\nruns 1\nkernel CPU a x 5\nend 1\n")
    with pytest.raises(tn.errors.InvalidArgumentError, match="line 3 of a placement profile"):
        tn.placement.Profile.load(path)
    path.write_text("treenail-placement-profile 1\nruns 1\n")
    with pytest.raises(tn.errors.DataLossError, match="cut short"):
        tn.placement.Profile.load(path)
    with pytest.raises(tn.errors.NotFoundError):
        tn.placement.Profile.load(tmp_path / "none")
    with pytest.raises(ValueError, match="no operation was timed"):
        tn.placement.Profile.from_runs(tn.RunMetadata())


def test_predicted_and_measured_runs_lie_in_one_trace(tmp_path):
    feed, fetches = network()
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        run = traced(session, fetches, feed, 1)[0]
    found = tn.placement.explain(fetches=fetches, devices=WORKERS, options=QUICK)
    path = tmp_path / "trace.json"
    tn.placement.write_trace(path, found, run)
    events = json.loads(path.read_text())["traceEvents"]
    processes = {e["args"]["name"]: e["pid"] for e in events if e["name"] == "process_name"}
    assert set(processes) == {"predicted", "measured"}
    bars = [e for e in events if e["ph"] == "X"]
    assert sum(e["cat"] == "measured" for e in bars) == len(run.nodes)
    predicted = [e for e in bars if e["cat"] == "predicted"]
    assert len(predicted) == len(found.nodes) + sum(t.bytes > 0 for t in found.transfers)
    assert max(e["ts"] + e["dur"] for e in predicted) == pytest.approx(1e6 * found.makespan)
    lanes = {}
    for e in sorted(predicted, key=lambda e: e["ts"]):
        assert lanes.get(e["tid"], 0) <= e["ts"] + 1e-6
        lanes[e["tid"]] = e["ts"] + e["dur"]


# --- Sessions


def with_placement(count, options=None, **more):
    graph_options = tn.GraphOptions(placement=options or tn.placement.Options())
    return tn.Session(config=tn.ConfigProto(device_count={"CPU": count},
                                            graph_options=graph_options, **more))


def trained(session, feed, fetches, steps=3):
    session.run(tn.global_variables_initializer())
    return [session.run(fetches, feed)[1] for _ in range(steps)]


def test_a_session_places_by_cost_where_it_is_asked_to(capfd):
    x = tn.placeholder(tn.float32, [500, 500], name="x")
    ys = [tn.exp(x, name="y0"), tn.cos(x, name="y1")]
    with tn.device("/cpu:1"):
        asked = tn.sin(x, name="asked")

    def places(session):
        with session:
            session.run(ys + [asked], {x: np.zeros([500, 500])})
        rows = [line.split() for line in capfd.readouterr().err.splitlines()[1:]]
        return {row[0]: row[2][-5:] for row in rows}
    usual = places(tn.Session(config=tn.ConfigProto(device_count={"CPU": 3},
                                                    log_device_placement=True)))
    assert usual == {"y0": "CPU:0", "y1": "CPU:0", "asked": "CPU:1"}
    by_cost = places(with_placement(3, log_device_placement=True))
    assert by_cost["asked"] == "CPU:1"
    assert {by_cost["y0"], by_cost["y1"]} == {"CPU:0", "CPU:2"}


def test_results_have_the_same_bits_wherever_operations_run():
    tn.set_random_seed(1)
    feed, fetches = network()
    with tn.Session() as session:
        usual = trained(session, feed, fetches)
    with with_placement(3) as session:
        by_cost = trained(session, feed, fetches)
    assert usual == by_cost


@simulated.needs_library
def test_variables_stay_where_they_were_put_first():
    """Of a device with memory of its own: what one run initialises, others find there."""
    simulated.library().sim_seed(1)
    tn.set_random_seed(1)
    feed, fetches = network()
    with tn.Session(config=tn.ConfigProto(device_count={"SIM": 0})) as session:
        usual = trained(session, feed, fetches)
    quick = tn.placement.DeviceModel("/device:SIM:*", flops_per_second=1e15, bytes_per_second=1e15,
                                     seconds_per_node=0)
    link = tn.placement.Link("", "", latency=1e-9, bytes_per_second=1e15)
    options = tn.placement.Options(devices=[quick], links=[link])
    with with_placement(1, options) as session:
        by_cost = trained(session, feed, fetches)
        metadata = tn.RunMetadata()
        session.run(fetches, feed, run_metadata=metadata)
        assert metadata.devices, "nothing ran on the devices that cost nothing"
    np.testing.assert_allclose(by_cost, usual, rtol=1e-5)
    tn.reset_default_graph()


def test_options_are_checked():
    for wrong, error in [({"profile": 3}, TypeError), ({"devices": [1]}, TypeError),
                         ({"links": 2}, TypeError), ({"unknown_dimension": 0}, ValueError),
                         ({"trip_count": -1}, ValueError), ({"trip_count": "a"}, TypeError)]:
        with pytest.raises(error, match=next(iter(wrong))):
            tn.placement.Options(**wrong)
    with pytest.raises(ValueError, match="bytes_per_second must be more than 0"):
        tn.placement.Link("/job:a", "/job:b", latency=0, bytes_per_second=0)
    with pytest.raises(ValueError, match="shared_by"):
        tn.placement.Link("/job:a", "/job:b", latency=0, bytes_per_second=1, shared_by="all")
    with pytest.raises(tn.errors.InvalidArgumentError, match="device"):
        tn.placement.DeviceModel("nonsense:::")
    with pytest.raises(TypeError, match="GraphOptions.placement"):
        tn.GraphOptions(placement=3)
    assert tn.GraphOptions(placement=None).placement is None
