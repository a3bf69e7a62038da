# SPDX-License-Identifier: Apache-2.0
"""Sessions: fetches, feeds, options, default sessions, threads, interruption."""

import collections
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import treenail as tn

Pair = collections.namedtuple("Pair", "first second")


def test_fetches_of_any_structure():
    a, b = tn.constant(1, name="a"), tn.constant([2.0], name="b")
    v = tn.Variable(3, name="v")
    with tn.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(a) == 1
        assert sess.run([a, (b, [a])]) == [1, (np.float32([2]), [1])]
        assert sess.run({"x": a, "y": {"z": b}}) == {"x": 1, "y": {"z": np.float32([2])}}
        assert sess.run(Pair(a, [b])) == Pair(1, [np.float32([2])])
        ordered = sess.run(collections.OrderedDict([("z", a), ("y", b)]))
        assert isinstance(ordered, collections.OrderedDict) and list(ordered) == ["z", "y"]
        assert sess.run("a:0") == 1 and sess.run(["a", "b:0"]) == [None, np.float32([2])]
        assert sess.run(v) == 3 and sess.run("v:0") == 3 and sess.run(v.initializer) is None
        assert sess.run([]) == [] and sess.run({}) == {} and sess.run(()) == ()
        assert sess.run([a, a, [a]]) == [1, 1, [1]]
        deep = a
        for _ in range(50):
            deep = [deep]
        result = sess.run(deep)
        for _ in range(50):
            result = result[0]
        assert result == 1


def test_indexed_slices_are_fetched_as_values():
    v = tn.Variable(tn.zeros([3, 2]))
    gradient = tn.gradients(tn.gather(v, [1, 1]), v)[0]
    with tn.Session() as sess:
        sess.run(v.initializer)
        value = sess.run(gradient)
        assert value.indices.tolist() == [1, 1] and value.values.tolist() == [[1, 1], [1, 1]]
        assert value.dense_shape.tolist() == [3, 2]


def test_feeds():
    x = tn.placeholder(tn.float32, [None], name="x")
    y = x * 2
    z = y + 1
    v = tn.Variable([1.0, 1.0])
    with tn.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(z, {x: [1, 2]}).tolist() == [3, 5]
        assert sess.run(z, {"x:0": (1, 2)}).tolist() == [3, 5]
        assert sess.run(z, {y: [10]}).tolist() == [11]  # any tensor may be fed
        assert sess.run([x, y], {x: [1]})[0].tolist() == [1]
        assert sess.run(x, {x: [7]}).tolist() == [7]
        assert sess.run(v + 1, {v: [5, 5]}).tolist() == [6, 6]
        assert sess.run(z, {x: np.arange(3)}).tolist() == [1, 3, 5]
        default = tn.placeholder_with_default([1.0], [None])
        assert sess.run(default).tolist() == [1] and sess.run(default,
                                                              {default: [2, 3]}).tolist() == [2, 3]


def test_default_sessions():
    x = tn.constant(2)
    assert tn.get_default_session() is None
    with pytest.raises(ValueError, match="No default session is registered"):
        x.eval()
    with tn.Session() as sess:
        assert tn.get_default_session() is sess and x.eval() == 2 and (x + 1).eval({x: 5}) == 6
        x.op.run()
        with tn.Session(graph=tn.Graph()) as other:
            assert tn.get_default_session() is other
            with pytest.raises(ValueError, match="runs another graph"):
                x.eval()
    assert tn.get_default_session() is None
    outer = tn.Session()
    with outer.as_default():
        assert x.eval() == 2
    assert outer.run(x) == 2  # still open
    outer.close()


def test_interactive_session():
    x = tn.constant(2)
    sess = tn.InteractiveSession()
    assert x.eval() == 2
    sess.close()
    assert tn.get_default_session() is None


def test_a_closed_session_runs_nothing():
    x = tn.constant(1)
    with tn.Session() as sess:
        sess.run(x)
    with pytest.raises(tn.errors.FailedPreconditionError, match="the session is closed"):
        sess.run(x)
    sess.close()


def test_sessions_have_state_of_their_own():
    v = tn.Variable(0)
    add = v.assign_add(1)
    with tn.Session() as one, tn.Session() as two:
        one.run(v.initializer)
        two.run(v.initializer)
        assert [one.run(add), one.run(add), two.run(add)] == [1, 2, 1]


def test_make_callable():
    x, y = tn.placeholder(tn.float32), tn.placeholder(tn.float32)
    with tn.Session() as sess:
        f = sess.make_callable({"sum": x + y}, [x, y])
        assert f(1, 2) == {"sum": 3}
        with pytest.raises(ValueError, match="takes 2 values"):
            f(1)


def test_make_callable_refuses_what_a_run_would():
    x = tn.placeholder(tn.float32, name="x")
    with tn.Graph().as_default():
        elsewhere = tn.constant(1.0)
    with tn.Session() as sess:
        for fetches in ("nosuch:0", "nosuch", [x, {"k": ("nosuch:0",)}], "x:1", elsewhere):
            with pytest.raises(ValueError, match="cannot be interpreted as a Tensor"):
                sess.make_callable(fetches)
        for fetches in (None, 3, [x, 3.0]):
            with pytest.raises(TypeError, match="has invalid type"):
                sess.make_callable(fetches)
        for feed in ("nosuch:0", "nosuch", "x:1", elsewhere, 3, None):
            with pytest.raises(TypeError, match="Cannot interpret feed_dict key as Tensor"):
                sess.make_callable(x, [x, feed])
        assert sess.make_callable(["x:0", []], ["x:0"])(5) == [5, []]


def test_the_graph_may_grow():
    x = tn.placeholder(tn.float32, [])
    y = x + 1
    with tn.Session() as sess:
        assert sess.run(y, {x: 1}) == 2
        for i in range(5):
            y = y * 2
            assert sess.run(y, {x: 1}) == 2 ** (i + 2)


def test_run_metadata_and_options():
    x = tn.placeholder(tn.float32, [None])
    metadata = tn.RunMetadata()
    with tn.Session() as sess:
        sess.run(x * 2, {x: [1]}, options=tn.RunOptions(timeout_in_ms=60000), run_metadata=metadata)
        assert metadata.nodes_executed >= 1 and metadata.specialized and metadata.cost_ns > 0


def test_configuration():
    threads = tn._core.num_threads()
    try:
        with tn.Session(config=tn.ConfigProto(intra_op_parallelism_threads=3)) as sess:
            assert tn.build_info()["num_threads"] == 3
            assert sess.run(tn.constant(1)) == 1
    finally:
        tn._core.set_num_threads(threads)
    options = tn.OptimizerOptions(opt_level=tn.OptimizerOptions.L0)
    config = tn.ConfigProto(graph_options=tn.GraphOptions(optimizer_options=options))
    with tn.Session(config=config) as sess:
        assert sess.run(tn.constant(1.0) + 1.0) == 2
    with tn.device("/gpu:0"):
        placed = tn.constant(1.0, name="placed") + 1.0
    with tn.Session(config=tn.ConfigProto(allow_soft_placement=True)) as sess:
        assert sess.run(placed) == 2
    with tn.Session() as sess, pytest.raises(tn.errors.InvalidArgumentError,
                                             match='cannot be placed on "/gpu:0"'):
        sess.run(placed)
    with pytest.raises(TypeError, match="config must be"):
        tn.Session(config={})
    with pytest.raises(TypeError, match="graph must be"):
        tn.Session(graph=3)
    with pytest.raises(TypeError, match='target must be \'\' or "grpc://host:port"'):
        tn.Session(3)


def _slow_graph(seconds=30):
    """A fetch that keeps one thread busy for about that long."""
    x = tn.placeholder(tn.float32, [800, 800])
    y = x
    for _ in range(int(seconds * 80)):
        y = tn.matmul(y, x)
    return x, tn.reduce_sum(y)


def test_timeout():
    x, y = _slow_graph()
    with tn.Session() as sess:
        begun = time.monotonic()
        with pytest.raises(tn.errors.DeadlineExceededError) as info:
            sess.run(y, {x: np.eye(800, dtype=np.float32)},
                     options=tn.RunOptions(timeout_in_ms=300))
        assert time.monotonic() - begun < 25
        assert isinstance(info.value, TimeoutError)


def test_closing_cancels_what_runs():
    x, y = _slow_graph()
    sess = tn.Session()
    outcome = []

    def work():
        try:
            sess.run(y, {x: np.eye(800, dtype=np.float32)})
            outcome.append("done")
        except tn.errors.OpError as error:
            outcome.append(type(error).__name__)
    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(2)
    sess.close()
    thread.join(30)
    assert outcome == ["CancelledError"]


def test_other_threads_go_on_while_a_graph_runs():
    x, y = _slow_graph(2)
    with tn.Session() as sess:
        done = threading.Event()
        thread = threading.Thread(target=lambda: (sess.run(y, {x: np.eye(800, dtype=np.float32)}),
                                                  done.set()))
        thread.start()
        count = 0
        while not done.is_set():
            count += 1
            time.sleep(0.001)
        thread.join()
    assert count > 20


def test_many_threads_share_a_session():
    x = tn.placeholder(tn.float32, [None])
    v = tn.Variable(0.0)
    y = tn.reduce_sum(x * 2)
    add = v.assign_add(1.0, read_value=False)
    failures = []
    with tn.Session() as sess:
        sess.run(v.initializer)

        def work(number):
            for i in range(100):
                size = 1 + (i + number) % 50
                if sess.run(y, {x: np.full(size, number, np.float32)}) != 2 * number * size:
                    failures.append(number)
                sess.run(add)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures and sess.run(v) == 800


def test_a_graph_grows_while_another_thread_runs_it():
    x = tn.placeholder(tn.float32, [64, 64])
    y = tn.matmul(x, x)
    graph = tn.get_default_graph()
    stop = threading.Event()
    failures = []
    with tn.Session() as sess:
        def work():
            while not stop.is_set():
                if not np.array_equal(sess.run(y, {x: np.eye(64, dtype=np.float32)}), np.eye(64)):
                    failures.append(1)
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        with graph.as_default():
            for i in range(300):
                assert sess.run(tn.constant(i) + 1) == i + 1
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures


_INTERRUPTED = """
import os, signal, threading, time
import numpy as np
import treenail as tn
x = tn.placeholder(tn.float32, [800, 800])
y = x
for _ in range(3000):
    y = tn.matmul(y, x)
y = tn.reduce_sum(y)
sess = tn.Session()
threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
begun = time.monotonic()
try:
    sess.run(y, {x: np.eye(800, dtype=np.float32)})
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - begun < 20)
print(sess.run(tn.constant(1) + 1))
"""


def test_ctrl_c_interrupts_a_run():
    result = subprocess.run([sys.executable, "-c", _INTERRUPTED], stdout=subprocess.PIPE, text=True,
                            timeout=120, check=True)
    assert result.stdout.split() == ["interrupted", "True", "2"]


_FORKED = """
import os
import numpy as np
import treenail as tn
x = tn.placeholder(tn.float32, [300, 300])
y = tn.reduce_sum(tn.matmul(x, x))
sess = tn.Session()
value = np.eye(300, dtype=np.float32)
print(sess.run(y, {x: value}), flush=True)
child = os.fork()
if child == 0:
    print(sess.run(y, {x: value}), flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


def test_a_forked_child_runs_graphs():
    result = subprocess.run([sys.executable, "-c", _FORKED], stdout=subprocess.PIPE, text=True,
                            timeout=120, check=True)
    assert result.stdout.split() == ["300.0", "300.0", "0"]


_EXITING = """
import numpy as np, threading
import treenail as tn
x = tn.placeholder(tn.float32, [None])
y = tn.reduce_sum(x)
sess = tn.Session()
def work():
    while True:
        sess.run(y, {x: np.ones(5000, np.float32)})
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
import time
time.sleep(0.3)
print("leaving")
"""


def test_leaving_while_threads_run_is_no_crash():
    result = subprocess.run([sys.executable, "-c", _EXITING], stdout=subprocess.PIPE, text=True,
                            timeout=120, check=False)
    assert result.returncode == 0 and result.stdout.split() == ["leaving"]


def test_signal_handlers_run_between_kernels():
    x, y = _slow_graph(3)
    calls = []
    old = signal.signal(signal.SIGUSR1, lambda *unused: calls.append(time.monotonic()))
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGUSR1))
    try:
        with tn.Session() as sess:
            timer.start()
            sess.run(y, {x: np.eye(800, dtype=np.float32)})
            ended = time.monotonic()
        assert calls and calls[0] < ended
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, old)


@pytest.mark.parametrize("make,field", [
    (lambda: tn.ConfigProto(intra_op_parallelism_threads="a"),
     "ConfigProto.intra_op_parallelism_threads must be of type int, not 'a' of type 'str'"),
    (lambda: tn.ConfigProto(operation_timeout_in_ms=1.5), "ConfigProto.operation_timeout_in_ms"),
    (lambda: tn.ConfigProto(allow_soft_placement="yes"), "ConfigProto.allow_soft_placement"),
    (lambda: tn.ConfigProto(graph_options=tn.GPUOptions()), "ConfigProto.graph_options"),
    (lambda: setattr(tn.ConfigProto(), "inter_op_parallelism_threads", None),
     "ConfigProto.inter_op_parallelism_threads must be of type int, not None"),
    (lambda: tn.RunOptions(timeout_in_ms=[1]), "RunOptions.timeout_in_ms must be of type int"),
    (lambda: tn.GPUOptions(allow_growth=2), "GPUOptions.allow_growth must be of type bool")])
def test_options_of_another_type(make, field):
    with pytest.raises(TypeError, match=field):
        make()


def test_options_take_numbers_of_numpy():
    config = tn.ConfigProto(intra_op_parallelism_threads=np.int64(2), allow_soft_placement=1)
    assert config.intra_op_parallelism_threads == 2 and config.allow_soft_placement is True
    assert tn.GPUOptions(per_process_gpu_memory_fraction=1).per_process_gpu_memory_fraction == 1.0
    config.allow_soft_placement = np.False_
    assert config.allow_soft_placement is False


@pytest.mark.parametrize("kind", [tn.Session, tn.InteractiveSession])
def test_a_session_that_was_never_opened(kind):
    session = kind.__new__(kind)
    session.close()
    with pytest.raises(RuntimeError, match="this session was never opened"):
        session.run("x:0")


def test_fetches_that_change_during_the_run_are_an_error():
    x = tn.constant(1.0)
    fetches = []

    class Growing:
        def __treenail_fetch__(self):
            return x, self.combine

        def combine(self, value):
            fetches.append(x)
            return value

    class Multiplying(Growing):
        def combine(self, value):
            fetches.append(self)
            return value

    for made in (Growing(), Multiplying()):
        fetches[:] = [made]
        with tn.Session() as session:
            with pytest.raises(ValueError, match="fetches was changed while it was run"):
                session.run(fetches)
            assert session.run(x) == 1


def _table(capfd):
    """The rows that were logged, without the heading: lists of words."""
    lines = capfd.readouterr().err.splitlines()
    if not lines:
        return []
    assert lines[0].split() == ["operation", "type", "device", "asked", "for"]
    assert len({line.index("/job:localhost") for line in lines[1:]}) == 1  # columns
    return [line.split() for line in lines[1:]]


CPU = "/job:localhost/replica:0/task:0/device:CPU:%d"


def test_placement_is_logged(capfd):
    x = tn.placeholder(tn.float32, [2, 2], name="x")
    with tn.device("/cpu:1"):
        v = tn.get_variable("v", initializer=tn.eye(2))
        product = tn.matmul(x, v, name="product")
    config = tn.ConfigProto(log_device_placement=True, device_count={"CPU": 2})
    with tn.Session(config=config) as sess:
        sess.run(tn.global_variables_initializer())
        capfd.readouterr()
        sess.run(product, {x: np.eye(2)})
        rows = _table(capfd)
        assert ["product", "MatMul", CPU % 1, "/cpu:1"] in rows
        sess.run(product, {x: np.eye(2)})
        assert _table(capfd) == []
        sess.run(tn.negative(product, name="negative"), {x: np.eye(2)})
        assert _table(capfd) == [["negative", "Neg", CPU % 0]]
    with tn.Session() as sess:
        sess.run(tn.negative(x), {x: np.eye(2)})
    assert capfd.readouterr().err == ""


def test_a_sessions_time_limit_is_that_of_runs_whose_options_have_none():
    x, slow = _slow_graph()
    with tn.Session(config=tn.ConfigProto(operation_timeout_in_ms=100)) as sess:
        for options in (None, tn.RunOptions()):
            with pytest.raises(tn.errors.DeadlineExceededError):
                sess.run(slow, {x: np.zeros((800, 800))}, options=options)


def test_placement_is_logged_with_a_time_limit(capfd):
    config = tn.ConfigProto(log_device_placement=True, operation_timeout_in_ms=100)
    x, slow = _slow_graph()
    with tn.Session(config=config) as sess:
        with pytest.raises(tn.errors.DeadlineExceededError):
            sess.run(slow, {x: np.zeros((800, 800))})
        assert [row for row in _table(capfd) if row[1] == "MatMul"]


def test_several_cpu_devices():
    """One network over four devices has the bits of one on one device, and each value is where it
    was asked for."""
    def network(devices):
        with tn.Graph().as_default() as graph:
            tn.set_random_seed(3)
            x = tn.placeholder(tn.float32, [None, 8])
            h = x
            for i in range(4):
                with tn.device("/cpu:%d" % (i % devices)):
                    h = tn.layers.dense(h, 8, activation=tn.nn.tanh, name="layer%d" % i)
            loss = tn.reduce_mean(tn.square(h))
            step = tn.train.AdamOptimizer(0.01).minimize(
                loss, colocate_gradients_with_ops=True)
            config = tn.ConfigProto(device_count={"CPU": devices, "SIM": 0})
            with tn.Session(graph=graph, config=config) as sess:
                assert [d.name for d in sess.list_devices()] == [CPU % i for i in range(devices)]
                sess.run(tn.global_variables_initializer())
                value = np.linspace(-1, 1, 40, dtype=np.float32).reshape(5, 8)
                losses = [sess.run([loss, step], {x: value})[0] for _ in range(5)]
                metadata = tn.RunMetadata()
                sess.run(h, {x: value}, tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE),
                         metadata)
                return losses, {node.device for node in metadata.nodes}
    one, four = network(1), network(4)
    assert one[0] == four[0]
    assert one[1] == {CPU % 0} and four[1] == {CPU % i for i in range(4)}


def test_devices_that_are_not_there():
    config = tn.ConfigProto(device_count={"CPU": 2})
    for device in ("/cpu:2", "/gpu:0", "/job:worker/cpu:0", "/device:XPU:1"):
        with tn.Graph().as_default():
            with tn.device(device):
                y = tn.constant(1.0, name="y") + 1.0
            with tn.Session(config=config) as sess:
                with pytest.raises(tn.errors.InvalidArgumentError, match="session has") as info:
                    sess.run(y)
                assert 'cannot be placed on "%s"' % device in str(info.value)
                assert "test_session.py" in str(info.value)  # where it was created
            config_soft = tn.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=True)
            with tn.Session(config=config_soft) as sess:
                assert sess.run(y) == 2


@pytest.mark.parametrize("count, error", [
    ({"CPU": "two"}, TypeError), ({"CPU": True}, TypeError), ({3: 1}, TypeError),
    ({"CPU": -1}, ValueError), ({"CPU": 10**6}, ValueError), ({"GPU": -1}, ValueError),
])
def test_wrong_numbers_of_devices(count, error):
    with pytest.raises(error, match="device_count"):
        tn.Session(config=tn.ConfigProto(device_count=count))


def test_state_and_what_works_on_it_are_in_one_place():
    with tn.device("/cpu:1"):
        v = tn.Variable(1.0)
    with tn.device("/cpu:0"):
        add = v.assign_add(1.0)
    config = {"device_count": {"CPU": 2}}
    with tn.Session(config=tn.ConfigProto(**config)) as sess:
        sess.run(v.initializer)
        with pytest.raises(tn.errors.InvalidArgumentError, match="what it works on"):
            sess.run(add)
    with tn.Session(config=tn.ConfigProto(allow_soft_placement=True, **config)) as sess:
        sess.run(v.initializer)
        assert sess.run(add) == 2


def test_texts_of_sessions_and_options():
    assert repr(tn.ConfigProto()) == "ConfigProto()"
    config = tn.ConfigProto(allow_soft_placement=True, gpu_options=tn.GPUOptions(allow_growth=True))
    config.device_count["GPU"] = 0
    assert repr(config) == ("ConfigProto(allow_soft_placement=True, device_count={'GPU': 0}, "
                            "gpu_options=GPUOptions(allow_growth=True))")
    assert repr(tn.RunOptions(timeout_in_ms=5)) == "RunOptions(timeout_in_ms=5)"
    tn.constant(1)
    session = tn.Session()
    assert repr(session) == "<tn.Session of <tn.Graph of 1 operation>>"
    session.close()
    assert repr(session) == "<tn.Session of <tn.Graph of 1 operation>, closed>"
    assert repr(tn.Session.__new__(tn.Session)) == "<tn.Session that was never opened>"
