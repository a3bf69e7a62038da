# SPDX-License-Identifier: Apache-2.0
"""Devices with memory and a queue of their own: the simulated ones (tests/simulated). All op cases
on them: tests/cases/test_devices.py."""

import contextlib
import importlib.util
import os
import re
import sys
import threading

import numpy as np
import pytest

import treenail as tn
from free_ports import free_ports

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(SOURCE, "tests", "simulated"))
import simulated  # noqa: E402  (the path must be set first)

pytestmark = simulated.needs_library
SIM, OTHER = "/device:SIM:0", "/device:SIM:1"


@pytest.fixture(autouse=True)
def nothing_is_left(fresh_graph):
    """The library, with an order of delays of its own; what is allocated is freed again."""
    simulated.library().sim_seed(1)
    with simulated.nothing_left():
        yield simulated.library()
        tn.reset_default_graph()


@contextlib.contextmanager
def lost(device, after=0):
    """The device is lost after so many more tasks, and there again afterwards."""
    simulated.library().sim_lose(device, after)
    try:
        yield
    finally:
        simulated.library().sim_restore(device)


# --- What crosses


def test_sessions_have_the_devices_unless_told_otherwise():
    def names(**count):
        with tn.Session(config=tn.ConfigProto(device_count=count)) as sess:
            return [(d.name.split("device:")[1], d.device_type) for d in sess.list_devices()]
    assert names() == [("CPU:0", "CPU"), ("SIM:0", "SIM"), ("SIM:1", "SIM")]
    assert names(SIM=1, CPU=2) == [("CPU:0", "CPU"), ("CPU:1", "CPU"), ("SIM:0", "SIM")]
    assert names(SIM=0) == [("CPU:0", "CPU")]


def test_a_value_crosses_once_for_each_destination():
    x = tn.placeholder(tn.float32, [64])
    with tn.device(SIM):
        readers = [tn.exp(x) * tn.cos(x), tn.square(x)]
        y = tn.add_n(readers)
    host = [y + 1.0, y * 2.0, tn.tanh(y)]
    with tn.Session() as sess:
        feed = {x: np.linspace(0, 1, 64)}
        sess.run(host, feed)
        with simulated.counted_copies() as made:
            sess.run(host, feed)
    assert made == [1, 1, 0, 0]


def test_lists_hold_values_of_a_device_in_host_memory():
    x = tn.placeholder(tn.float32, [4])
    array = tn.TensorArray(tn.float32, 3, element_shape=[4])
    with tn.device(SIM):
        y = tn.exp(x)
    array = array.write(0, y).write(2, y * 2.0)
    with tn.device(SIM):
        z = tn.square(array.stack())
    gradient = tn.gradients(z, x)[0]
    value = np.float32([0, 1, -1, 0.5])
    with tn.Session(config=tn.ConfigProto(allow_soft_placement=True)) as sess:
        got, slope = sess.run([z, gradient], {x: value})
    e = np.exp(value)
    np.testing.assert_allclose(got, [e * e, 0 * e, 4 * e * e], rtol=1e-5)
    np.testing.assert_allclose(slope, 10 * e * e, rtol=1e-5)


def test_constants_cross_when_the_plan_is_made():
    c = tn.constant(np.arange(4, dtype=np.float32))
    x = tn.placeholder(tn.float32, [4])
    with tn.device(SIM):
        y = x * c + c
    with tn.Session() as sess:
        sess.run(y, {x: np.ones(4)})
        with simulated.counted_copies() as made:
            np.testing.assert_array_equal(sess.run(y, {x: np.ones(4)}), [0, 2, 4, 6])
    assert made == [1, 1, 0, 0]


def test_between_devices_of_a_kind_values_cross_directly():
    x = tn.placeholder(tn.float32, [8])
    with tn.device(SIM):
        y = tn.exp(x)
    with tn.device(OTHER):
        z = [tn.square(y), tn.negative(y)]
    with tn.Session() as sess:
        sess.run(z, {x: np.zeros(8)})
        with simulated.counted_copies(1) as made, simulated.counted_copies(0) as first:
            squares, minus = sess.run(z, {x: np.zeros(8)})
    assert first == [1, 0, 0, 0] and made == [0, 2, 0, 1]
    np.testing.assert_array_equal([squares[0], minus[0]], [1, -1])


def test_shapes_are_asked_where_the_value_is():
    x = tn.placeholder(tn.float32, [None, 3])
    with tn.device(SIM):
        y = tn.exp(x)
        rows = tn.shape(y)[0]
        flat = tn.reshape(y, [rows * 3])
    with tn.Session() as sess:
        for n in (2, 5, 2):
            a, b = sess.run([rows, flat], {x: np.zeros((n, 3))})
            assert a == n and b.shape == (n * 3,)


def test_the_metadata_tells_what_a_run_needs_of_each_device():
    x = tn.placeholder(tn.float32, [1024])
    with tn.device(SIM):
        y = tn.reduce_sum(tn.exp(x) * tn.cos(x))
    metadata = tn.RunMetadata()
    with tn.Session() as sess:
        sess.run(y, {x: np.zeros(1024)}, run_metadata=metadata)
    (memory,) = metadata.devices
    assert memory.device == simulated.DEVICES[0]
    assert 2 * 4096 <= memory.arena_bytes <= memory.peak_bytes < 5 * 4096


def test_data_dependent_shapes():
    x = tn.placeholder(tn.float32, [None])
    with tn.device(SIM):
        kept = tn.boolean_mask(x, x > 0)
        total = tn.reduce_sum(kept * 2.0)
        values, index = tn.unique(tn.cast(kept, tn.int32))
    with tn.Session() as sess:
        for data in ([1, -1, 3, 3], [-1, -2], [], np.arange(100)):
            data = np.array(data, np.float32)
            k, t, v, i = sess.run([kept, total, values, index], {x: data})
            np.testing.assert_array_equal(k, data[data > 0])
            assert t == 2 * data[data > 0].sum()
            np.testing.assert_array_equal(v[i], data[data > 0])


# --- State and order


def counter():
    with tn.device(SIM):
        v = tn.Variable(np.zeros(4, np.float32), name="v")
    return v


def test_what_waits_on_the_host_waits_for_the_queue():
    v = counter()
    order = []
    with tn.device(SIM):
        added = v.assign_add(np.ones(4))
        slow = [tn.matmul(tn.ones([64, 64]) * v[0], tn.ones([64, 64])) for _ in range(4)]
    with tn.control_dependencies([added.op] + [s.op for s in slow]):
        noted = tn.py_func(lambda: order.append(
            simulated.library().sim_kernels_run(0)) or np.float32(1), [], tn.float32)
    with tn.Session() as sess:
        sess.run(v.initializer)
        before = simulated.library().sim_kernels_run(0)
        sess.run([noted, added])
        done = simulated.library().sim_kernels_run(0)
    assert order[0] >= before + 5 and order[0] <= done


def test_variables_live_on_their_device_and_keep_their_values():
    v = counter()
    with tn.device(SIM):
        v.assign_add(np.ones(4), name="add")
        scattered = tn.scatter_update(v, [1, 2], [5.0, 6.0])
    read = v.read_value()
    with tn.Session() as sess:
        sess.run(v.initializer)
        old = sess.run(read)
        for _ in range(3):
            sess.run("add")
        np.testing.assert_array_equal(old, 0)
        np.testing.assert_array_equal(sess.run(v), 3)
        sess.run(scattered)
        np.testing.assert_array_equal(sess.run(v), [3, 5, 6, 3])


def test_loops_and_branches_over_a_variable():
    v = counter()
    n = tn.placeholder(tn.int32, [])
    total = tn.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + v * 2.0),
                          [0, tn.zeros([4])])[1]
    change = tn.cond(n > 2, lambda: v.assign_add(np.ones(4)), lambda: v.assign_sub(np.ones(4)))
    slope = tn.gradients(total, v)[0]
    with tn.Session() as sess:
        sess.run(v.initializer)
        np.testing.assert_array_equal(sess.run(change, {n: 3}), 1)
        found, by_v = sess.run([total, slope], {n: 3})
        np.testing.assert_array_equal(found, 6)
        np.testing.assert_array_equal(by_v, 6)
        np.testing.assert_array_equal(sess.run(change, {n: 1}), 0)


def test_bodies_ask_for_the_device_around_them():
    x = tn.placeholder(tn.float32, [2])
    with tn.device(SIM):
        y = tn.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, tn.tanh(s) * 2.0), [0, x])[1]
    metadata = tn.RunMetadata()
    with tn.Session() as sess:
        sess.run(y, {x: np.ones(2)}, options=simulated.traced(), run_metadata=metadata)
    places = simulated.ran_on(metadata)
    assert {place for name, place in places.items() if "/body/" in name} == {simulated.DEVICES[0]}
    assert places[y.op.name].endswith("CPU:0")


def test_an_uninitialised_variable_is_named():
    v = counter()
    with tn.device(SIM):
        twice = v * 2.0
    with tn.Session() as sess:
        with pytest.raises(tn.errors.FailedPreconditionError, match="uninitialized value v"):
            sess.run(twice)
        with pytest.raises(tn.errors.FailedPreconditionError, match="uninitialized value v"):
            sess.run(v.assign_add(np.ones(4)))


def test_runs_at_the_same_time():
    v = counter()
    x = tn.placeholder(tn.float32, [4])
    with tn.device(SIM):
        y = tn.reduce_sum(tn.exp(x) * 2.0)
        add = v.assign_add(np.ones(4))
    wrong = []
    with tn.Session() as sess:
        sess.run(v.initializer)

        def work(n):
            for _ in range(20):
                got = sess.run(y, {x: np.full(4, n, np.float32)})
                if not np.isclose(got, 8 * np.exp(np.float32(n))):
                    wrong.append(got)
                sess.run(add.op)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong
        np.testing.assert_array_equal(sess.run(v), 80)


def test_partial_runs():
    a, b = tn.placeholder(tn.float32, [3]), tn.placeholder(tn.float32, [3])
    with tn.device(SIM):
        first = tn.exp(a)
        second = first * b
    with tn.Session() as sess:
        handle = sess.partial_run_setup([first, second], [a, b])
        np.testing.assert_array_equal(sess.partial_run(handle, first, {a: np.zeros(3)}), 1)
        np.testing.assert_array_equal(sess.partial_run(handle, second, {b: np.arange(3)}),
                                      [0, 1, 2])
        given_up = sess.partial_run_setup([first, second], [a, b])
        sess.partial_run(given_up, first, {a: np.zeros(3)})


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_over_three_devices(seed):
    """Against the same program on the CPU alone, by bits."""
    results = []
    for devices in (["/cpu:0"], ["/cpu:0", SIM, OTHER]):
        rng = np.random.RandomState(seed)
        places = np.random.RandomState(seed + 100)
        graph = tn.Graph()
        with graph.as_default():
            x = tn.placeholder(tn.float32, [5, 5])
            values = [x, tn.constant(rng.uniform(-1, 1, (5, 5)).astype(np.float32))]
            with tn.device(devices[seed % len(devices)]):
                v = tn.Variable(np.eye(5, dtype=np.float32))
            updates = []
            for _ in range(40):
                one, other = (values[rng.randint(len(values))] for _ in range(2))
                op = rng.randint(8)
                with tn.device(devices[places.randint(len(devices))]):
                    made = [lambda: one + other, lambda: one * other, lambda: tn.tanh(one),
                            lambda: tn.matmul(one, other) * 0.1, lambda: tn.transpose(one),
                            lambda: tn.reshape(tn.reshape(one, [25]), [5, 5]),
                            lambda: one - tn.reduce_mean(other, axis=0),
                            lambda: tn.concat([one[:2], other[2:]], 0)][op]()
                if rng.randint(4) == 0:
                    with tn.control_dependencies(updates[-1:]):
                        updates.append(v.assign_add(made * 0.01).op)
                values.append(tn.clip_by_value(made, -2.0, 2.0))
            fetches = values[-6:]
        with tn.Session(graph=graph) as sess:
            sess.run(v.initializer)
            found = []
            for step in range(4):
                feed = {x: np.full((5, 5), 0.1 * step, np.float32)}
                found += sess.run([fetches, updates], feed)[0]
            results.append(found + [sess.run(v)])
    for one, other in zip(*results):
        assert one.tobytes() == other.tobytes()


# --- Networks


def _smoke(name):
    path = os.path.join(SOURCE, "smoke", name + ".py")
    spec = importlib.util.spec_from_file_location("smoke_" + name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind,steps", [("mlp", 40), ("cnn", 8)])
def test_smoke_networks_and_their_checkpoints(kind, steps, tmp_path):
    """The same bits as on the CPU, where nothing is fused there; a checkpoint of one device goes on
    on another."""
    models, dataset = _smoke("models"), _smoke("dataset")
    data = dataset.load_digits()

    def train(device, begin, end, restore="", save=""):
        network = models.Network(kind, data.shape, data.classes, 1, 0.002, device)
        losses = []
        with tn.Session(graph=network.graph) as sess:
            sess.run(network.initialize)
            if restore:
                network.saver.restore(sess, restore)
            for step in range(begin, end):
                images, labels = data.batch(step, 64, 1)
                losses.append(sess.run([network.loss, network.train],
                                       {network.images: images, network.labels: labels})[0])
            accuracy = network.accuracy(sess, data.test_images[:100], data.test_labels[:100])
            path = network.saver.save(sess, str(tmp_path / save)) if save else ""
            return losses, accuracy, sess.run(network.variables), path

    half = steps // 2
    there = train(SIM, 0, steps)
    here = train("", 0, steps)
    assert there[0][0] > there[0][-1]
    assert there[:2] == here[:2]
    for one, other in zip(there[2], here[2]):
        np.testing.assert_array_equal(one, other)
    saved = train(SIM, 0, half, save="a")[3]
    again = train("", half, steps, restore=saved)
    for one, other in zip(again[2], here[2]):
        np.testing.assert_array_equal(one, other)
    back = train(SIM, half, steps, restore=train("", 0, half, save="b")[3])
    for one, other in zip(back[2], here[2]):
        np.testing.assert_array_equal(one, other)


# --- What goes wrong


def test_an_operation_without_a_kernel_is_named_with_its_line():
    with tn.device(SIM):
        s = tn.string_join(["a", "b"], name="joined")
    with tn.Session() as sess:
        with pytest.raises(tn.errors.InvalidArgumentError) as info:
            sess.run(s)
    text = str(info.value)
    assert '[StringJoin node "joined"] cannot be placed on %s' % simulated.DEVICES[0] in text
    assert "no kernel for it with inputs (string, string)" in text and "allow_soft" in text
    assert re.search(r"test_devices\.py\", line \d+", text)
    with tn.Session(config=tn.ConfigProto(allow_soft_placement=True)) as sess:
        assert sess.run(s) == b"ab"


def test_devices_that_are_not_there():
    with tn.device("/device:SIM:7"):
        y = tn.negative(1.0, name="y")
    with tn.Session() as sess:
        with pytest.raises(tn.errors.InvalidArgumentError, match=r'"/device:SIM:7": this session '
                           r"has .*CPU:0, .*SIM:0, .*SIM:1"):
            sess.run(y)
    with tn.Session(config=tn.ConfigProto(allow_soft_placement=True)) as sess:
        assert sess.run(y) == -1


def test_state_of_one_operation_is_in_one_memory():
    v = counter()
    with tn.device(OTHER):
        m = tn.Variable(np.zeros(4, np.float32), name="m")
    apply = tn.raw_ops.ResourceApplyMomentum(var=v.handle, accum=m.handle, lr=0.1,
                                             grad=np.ones(4, np.float32), momentum=0.9,
                                             name="apply")
    with tn.Session() as sess:
        with pytest.raises(tn.errors.InvalidArgumentError, match="apply.*works on state in the "
                           "memory of two devices"):
            sess.run(apply)


def test_errors_that_the_queue_finds_are_the_operations():
    x = tn.placeholder(tn.int32, [2])
    v = counter()
    with tn.device(SIM):
        picked = tn.gather(tn.constant([1.0, 2.0, 3.0]) * 2.0, x, name="picked")
        after = tn.exp(picked, name="after")
        update = v.assign_add(tn.zeros([4]) + tn.reduce_sum(after))
    with tn.Session() as sess:
        sess.run(v.initializer)
        for _ in range(10):
            with pytest.raises(tn.errors.InvalidArgumentError, match=r'\[\w+ node "picked"\] .*9'):
                sess.run([after, update.op], {x: [1, 9]})
            np.testing.assert_array_equal(sess.run(v), 0)
            np.testing.assert_allclose(sess.run(after, {x: [0, 1]}), np.exp([2.0, 4.0]), rtol=1e-6)


def test_out_of_memory(nothing_is_left):
    x = tn.placeholder(tn.float32, [1 << 16])
    with tn.device(SIM):
        y = tn.exp(tn.cos(x) * 2.0, name="y")
    with tn.Session() as sess:
        sess.run(y, {x: np.zeros(1 << 16)})
        for nth in range(1, 4):
            nothing_is_left.sim_fail_allocation(0, nth)
            try:
                with pytest.raises(tn.errors.ResourceExhaustedError, match="SIM:0 has no memory"):
                    for _ in range(4):
                        sess.run(y, {x: np.zeros(1 << 16)})
            finally:
                nothing_is_left.sim_fail_allocation(0, 0)
            np.testing.assert_allclose(sess.run(y, {x: np.zeros(1 << 16)})[0], np.exp(2), rtol=1e-6)
    nothing_is_left.sim_set_limit(0, 1 << 16)
    try:
        with tn.Session() as sess, pytest.raises(tn.errors.ResourceExhaustedError) as info:
            sess.run(y, {x: np.zeros(1 << 16)})
        assert "node" in str(info.value) and "limit is 65536" in str(info.value)
    finally:
        nothing_is_left.sim_set_limit(0, 0)


@pytest.mark.parametrize("after", range(0, 24, 3))
def test_a_lost_device_ends_the_run_and_nothing_hangs(after):
    x = tn.placeholder(tn.float32, [16])
    v = counter()
    with tn.device(SIM):
        y = tn.exp(x)
        for _ in range(6):
            y = tn.cos(y) * 2.0
        add = v.assign_add(tn.reshape(y, [4, 4])[0])
    with tn.Session() as sess:
        sess.run(v.initializer)
        sess.run(y, {x: np.zeros(16)})
        with lost(0, after):
            with pytest.raises(tn.errors.UnavailableError, match=r"node .*SIM:0 was lost") as info:
                for _ in range(10):
                    sess.run([y, add], {x: np.zeros(16)})
            assert "test_devices.py" in str(info.value)
        sess.run([y, add], {x: np.zeros(16)})


def test_a_cancelled_run_leaves_nothing_behind():
    x = tn.placeholder(tn.float32, [64, 64])
    with tn.device(SIM):
        y = x
        for _ in range(60):
            y = tn.matmul(y, x) * 0.01
    options = tn.RunOptions(timeout_in_ms=1)
    ended = 0
    with tn.Session() as sess:
        sess.run(y, {x: np.ones((64, 64))})
        for _ in range(10):
            try:
                sess.run(y, {x: np.ones((64, 64))}, options=options)
            except tn.errors.DeadlineExceededError:
                ended += 1
    assert ended > 0


@pytest.mark.parametrize("device", range(2))
@pytest.mark.parametrize("what", range(6))
def test_every_detector_detects(nothing_is_left, device, what):
    nothing_is_left.sim_record_violations(1)
    try:
        simulated.recorded_violations()
        nothing_is_left.sim_misuse(device, what)
        count, text = simulated.recorded_violations()
    finally:
        nothing_is_left.sim_record_violations(0)
    assert count == 1 and "SIM:%d" % device in text


def test_a_child_has_no_simulated_device():
    x = tn.placeholder(tn.float32, [4])
    with tn.device(SIM):
        y = tn.exp(x)
    with tn.Session() as sess:
        sess.run(y, {x: np.zeros(4)})
        pid = os.fork()
        if pid == 0:
            try:
                sess.run(y, {x: np.zeros(4)})
            except tn.errors.FailedPreconditionError as error:
                os._exit(0 if "fork" in str(error) else 2)
            except BaseException:
                os._exit(3)
            os._exit(1)
        status = os.waitpid(pid, 0)[1]
        assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0
        np.testing.assert_array_equal(sess.run(y, {x: np.zeros(4)}), 1)


def test_libraries_that_are_none():
    with pytest.raises(tn.errors.NotFoundError, match="/nonexistent/device.so"):
        tn.load_pluggable_device_library("/nonexistent/device.so")
    example = simulated.BUILD / "tests/plugins/libtreenail-example.so"
    with pytest.raises(tn.errors.FailedPreconditionError, match="does not export "
                       "treenail_device_library"):
        tn.load_pluggable_device_library(str(example))
    with pytest.raises(TypeError, match="library_location"):
        tn.load_pluggable_device_library(3)
    tn.load_pluggable_device_library(str(simulated.LIBRARY))  # again: nothing happens


def test_loops_on_the_cpu_overlap_beside_accelerators():
    begun = [threading.Event() for _ in range(6)]

    def meets(i):
        begun[i].set()
        assert i == 5 or begun[i + 1].wait(60), "iteration %d never began" % (i + 1)
        return np.int64(i)

    def body(i, total):
        value = tn.py_func(meets, [i], tn.int64, stateful=False)
        value.set_shape([])
        return i + 1, total + value
    total = tn.while_loop(lambda i, _: i < 6, body, [0, tn.constant(0, tn.int64)],
                          parallel_iterations=2)[1]
    with tn.Session() as session:
        assert session.run(total) == 15


@pytest.mark.skipif("grpc" not in tn.build_info()["features"], reason="this build has no gRPC")
@pytest.mark.parametrize("rounds", [False, True])
def test_values_go_from_devices_to_other_tasks(rounds):
    """Though a device has no kernels that send, or round what is sent."""
    options = {"enable_bfloat16_sendrecv": True} if rounds else {}
    spec = {"w": ["localhost:%d" % port for port in free_ports(2)]}
    servers = [tn.train.Server(spec, "w", task) for task in range(2)]
    x = tn.placeholder(tn.float32, [4])
    with tn.device("/job:w/task:0/device:SIM:1"):
        doubled = x + x
    with tn.device("/job:w/task:1/device:SIM:0"):
        negative = -doubled
    with tn.device("/job:w/task:0"):
        found = negative * 3.0
    with tn.control_dependencies([negative]):
        with tn.device("/job:w/task:0/device:SIM:0"):
            after = x + 1.0
    config = tn.ConfigProto(graph_options=tn.GraphOptions(**options))
    try:
        with tn.Session(servers[0].target, config=config) as session:
            for value in range(3):
                fed = np.arange(4, dtype=np.float32) + value
                got = session.run([found, after], {x: fed})
                assert (got[0] == -6 * fed).all() and (got[1] == fed + 1).all()
    finally:
        for server in servers:
            server.stop()
