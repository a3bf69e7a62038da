# SPDX-License-Identifier: Apache-2.0
"""A GPU as a device: a real one, or the simulated CUDA (tests/cuda_sim), into which some of these
look. `ninja test-gpu` and `ninja test-cuda-sim` run them; without a GPU they are skipped. All op
cases: tests/cases/test_gpu.py."""

import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import treenail as tn

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIMULATED = os.path.join(SOURCE, "tests", "cuda_sim")
sys.path.append(SIMULATED)
import cusim  # noqa: E402  (the path must be set first)

pytestmark = cusim.needs_gpu()
GPU, OTHER = "/gpu:0", "/gpu:1"
OPTIMIZERS = {"descent": (lambda: tn.train.GradientDescentOptimizer(0.5), 14),
              "momentum": (lambda: tn.train.MomentumOptimizer(0.1, 0.9), 14),
              "adam": (lambda: tn.train.AdamOptimizer(0.05), 16)}


def in_a_process(program, **environment):
    """What a program prints that spoils its process's GPU, or has an environment of its own."""
    found = subprocess.run([sys.executable, "-c", START + program], text=True, check=False,
                           env=dict(os.environ, CUSIM=SIMULATED, **environment),
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert found.returncode == 0, found.stdout
    return found.stdout.splitlines()


START = """
import os, sys, numpy as np, treenail as tn
sys.path.append(os.environ["CUSIM"])
import cusim
x = tn.placeholder(tn.float32, [64])
with tn.device("/gpu:0"):
    y = tn.exp(x) * 2.0 + x
on_cpu = tn.exp(x)
sess = tn.Session()
feed = {x: np.zeros(64, np.float32)}

def outcome(work):
    try:
        return float(np.ravel(work())[0])
    except tn.errors.OpError as error:
        return type(error).__name__ + ": " + str(error).splitlines()[0]

def at_once():
    with tn.eager(), tn.device("/gpu:0"):
        return tn.exp(tn.zeros([1])).numpy()
"""


class Mlp:
    """A network on a device, its data, and a training step."""

    def __init__(self, optimizer, device=GPU, hidden=1):
        rng = np.random.RandomState(0)
        data = rng.randn(32, 20).astype(np.float32)
        self.graph = tn.Graph()
        with self.graph.as_default():
            x = tn.placeholder(tn.float32, [32, 20])
            labels = tn.placeholder(tn.int64, [32])
            with tn.device(device):
                h = x
                for width in [16] * hidden + [4]:
                    fan_in = int(h.shape[1])
                    w = tn.Variable(rng.randn(fan_in, width).astype(np.float32) * 0.3)
                    b = tn.Variable(np.zeros(width, np.float32))
                    logits = tn.matmul(h, w) + b
                    h = tn.nn.relu(logits)
                self.loss = tn.reduce_mean(tn.nn.sparse_softmax_cross_entropy_with_logits(
                    labels=labels, logits=logits))
                self.train = optimizer().minimize(self.loss)
            self.initialize = tn.global_variables_initializer()
            self.variables = tn.global_variables()
        self.feed = {x: data, labels: (data[:, 0] > 0) * 2 + (data[:, 1] > 0)}

    def session(self):
        """With its variables as they are first, and the steps planned."""
        sess = tn.Session(graph=self.graph)
        sess.run(self.initialize)
        sess.run(self.train, self.feed)
        return sess

    def losses(self, steps):
        with self.session() as sess:
            return [sess.run([self.loss, self.train], self.feed)[0] for _ in range(steps)]


# --- What crosses


def test_sessions_list_the_gpus():
    def names(**count):
        with tn.Session(config=tn.ConfigProto(device_count=count)) as sess:
            return [d.name.split("device:")[1] for d in sess.list_devices()]
    found = names()
    assert found[:2] == ["CPU:0", "GPU:0"]
    assert found[1:] == ["GPU:%d" % i for i in range(len(found) - 1)]
    assert names(GPU=0) == ["CPU:0"]


@cusim.needs_simulator
def test_a_value_crosses_once_for_each_destination():
    x = tn.placeholder(tn.float32, [64])
    with tn.device(GPU):
        y = tn.exp(x) * tn.cos(x) + tn.square(x)
    host = [y + 1.0, y * 2.0, tn.tanh(y)]
    feed = {x: np.linspace(0, 1, 64)}
    with tn.Session() as sess:
        sess.run(host, feed)
        with cusim.counted() as moved:
            sess.run(host, feed)
    copies = {name: n for name, n in moved.items() if "copies" in name or "bytes" in name}
    assert copies == {"copies_in": 1, "copies_out": 1, "bytes_in": 256, "bytes_out": 256}


@cusim.needs_simulator
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_training_step_copies_its_batch_and_launches_its_kernels(name):
    optimizer, launches = OPTIMIZERS[name]
    network = Mlp(optimizer)
    with network.session() as sess:
        for _ in range(5):
            with cusim.counted() as moved:
                sess.run(network.train, network.feed)
            del moved["synchronisations"]
            assert moved == {
                "launches": launches, "library_calls": 5, "memsets": 1,
                "copies_in": 2, "bytes_in": 32 * 20 * 4 + 32 * 8,
                "copies_out": 1, "bytes_out": 8 * 33}  # whether a label was out of range


@cusim.needs_simulator
def test_within_a_step_the_host_does_not_wait():
    """Who waits is the thread of completions: for what was fed, for the labels' verdict, for the
    end. It is no more where there is more to compute."""
    waits = []
    for hidden in (1, 4):
        network = Mlp(OPTIMIZERS["momentum"][0], hidden=hidden)
        with network.session() as sess, cusim.counted() as moved:
            for _ in range(10):
                sess.run(network.train, network.feed)
        waits.append(moved["synchronisations"])
    assert waits == [50, 50]


def test_fetches_beyond_the_staging_memory_and_many_small_ones():
    x = tn.placeholder(tn.float32, [])
    many = (65 << 20) // 4
    with tn.device(GPU):
        large = tn.fill([many], 2.0) * x
        small = [tn.fill([3], float(i)) * x for i in range(200)]
    with tn.Session() as sess:
        for value in (1.0, 3.0):
            found = sess.run(large, {x: value})
            assert found.shape == (many,) and found.min() == found.max() == 2 * value
            rows = sess.run(small, {x: value})
            np.testing.assert_array_equal(rows, [[i * value] * 3 for i in range(200)])
        both = sess.run([large] + small, {x: 1.0})
    assert both[0][-1] == 2 and both[200][0] == 199


def test_between_gpus_values_cross_directly():
    x = tn.placeholder(tn.float32, [8])
    with tn.device(GPU):
        y = tn.exp(x)
    with tn.device(OTHER):
        z = [tn.square(y), tn.negative(y)]
    with tn.Session() as sess:
        if len(sess.list_devices()) < 3:
            pytest.skip("there is one GPU")
        for _ in range(20):
            squares, minus = sess.run(z, {x: np.zeros(8)})
            np.testing.assert_array_equal([squares[0], minus[7]], [1, -1])
        if cusim.library():
            with cusim.counted(1) as there, cusim.counted(0) as here:
                sess.run(z, {x: np.zeros(8)})
            assert here["copies_in"] == 1 and "copies_out" not in here
            assert there["copies_peer"] == 1 and "copies_in" not in there


# --- Training


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_networks_train_as_on_the_cpu(name):
    """Sums are added in another order there."""
    here, there = (Mlp(OPTIMIZERS[name][0], device).losses(30) for device in ("/cpu:0", GPU))
    assert there[-1] < there[0] / 2
    np.testing.assert_allclose(there, here, rtol=1e-3)


def test_variables_live_on_the_gpu():
    network = Mlp(OPTIMIZERS["adam"][0])
    metadata = tn.RunMetadata()
    with network.session() as sess:
        sess.run(network.train, network.feed, run_metadata=metadata,
                 options=tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE))
        places = {n.device for n in metadata.nodes if not n.op.startswith("_")}
        assert places == {cusim.DEVICES[0]}
        w = network.variables[0]
        old, _, new = sess.run(w), sess.run(network.train, network.feed), sess.run(w)
    assert (old != new).any()


@cusim.needs_simulator
def test_late_streams_give_the_same_bits():
    found = set()
    try:
        for seed in range(1, 21):
            cusim.library().cusim_seed(seed)
            found.add(np.float32(Mlp(OPTIMIZERS["adam"][0], hidden=2).losses(3)).tobytes())
    finally:
        cusim.library().cusim_seed(0)
    assert len(found) == 1


def test_two_sessions_and_four_threads_at_once():
    x = tn.placeholder(tn.float32, [4])
    with tn.device(GPU):
        v = tn.Variable(np.zeros(4, np.float32))
        y = tn.reduce_sum(tn.exp(x) * 2.0)
        add = v.assign_add(np.ones(4))
    wrong = []

    def work(sess, n):
        for _ in range(20):
            found = sess.run(y, {x: np.full(4, n, np.float32)})
            if not np.isclose(found, 8 * np.exp(np.float32(n))):
                wrong.append(found)
            sess.run(add.op)
    with tn.Session() as one, tn.Session() as other:
        for sess in (one, other):
            sess.run(v.initializer)
        threads = [threading.Thread(target=work, args=(sess, n))
                   for sess in (one, other) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        for sess in (one, other):
            np.testing.assert_array_equal(sess.run(v), 80)


def test_two_sessions_transform_by_one_plan_each_in_its_own_memory():
    """Runs of one kernel, queued one before the other is done."""
    rng = np.random.default_rng(3)
    values = [rng.standard_normal((6, 60)).astype(np.float32) for _ in range(4)]
    x = tn.placeholder(tn.float32, [6, 60])
    with tn.device(GPU):
        y = tn.irfft2d(tn.rfft2d(x, [6, 60]) * 2.0, [6, 60])
    wrong = []

    def work(sess, n):
        for _ in range(20):
            found = sess.run(y, {x: values[n]})
            if not np.allclose(found, 2 * values[n], atol=1e-4):
                wrong.append(found)
    with tn.Session() as one, tn.Session() as other:
        threads = [threading.Thread(target=work, args=(sess, n))
                   for sess in (one, other) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


@cusim.needs_simulator
def test_nothing_is_left_after_steps():
    network = Mlp(OPTIMIZERS["adam"][0])
    with network.session() as sess:
        sess.run([network.train, network.loss], network.feed)
        before = cusim.live()
        for _ in range(50):
            sess.run([network.train, network.loss], network.feed)
        assert cusim.live() == before


# --- What goes wrong


REFUSED = {
    "gather": (lambda x, i: tn.gather(x, i, name="op"), [1, 7], r"indices\[1\] = 7 is not in"),
    "division": (lambda x, i: tn.floordiv(tn.cast(x, tn.int32)[:2], i, name="op"), [1, 0],
                 "Integer division by zero"),
    "power": (lambda x, i: tn.pow(tn.cast(x, tn.int32)[:2], i, name="op"), [1, -1],
              "Integers to negative integer powers"),
    "labels": (lambda x, i: tn.nn.sparse_softmax_cross_entropy_with_logits(
        labels=i, logits=tn.reshape(x, [2, 3]), name="op"), [0, 3], "label value of 3"),
    "steps": (lambda x, i: tn.raw_ops.BlockGRU(
        tn.cast(i[1], tn.int64), tn.reshape(x, [3, 2, 1]), tn.zeros([2, 1]), tn.zeros([2, 2]),
        tn.zeros([2, 1]), tn.zeros([2]), tn.zeros([1]), name="op").h[0, :, 0], [0, 4],
              r"seq_len_max = 4 is not in \[0, 3\]"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_kernel_refuses_is_said_as_on_the_cpu(name):
    make, bad, sentence = REFUSED[name]
    values = np.arange(6, dtype=np.float32)

    def said(work):
        with pytest.raises(tn.errors.InvalidArgumentError, match=sentence) as info:
            work()
        return str(info.value).splitlines()[0]

    def in_a_session(device):
        tn.reset_default_graph()
        x, i = tn.placeholder(tn.float32, [6]), tn.placeholder(tn.int32, [2])
        with tn.device(device):
            y = tn.exp(tn.cast(make(x, i), tn.float32))
        with tn.Session() as sess:
            texts = {said(lambda: sess.run(y, {x: values, i: bad})) for _ in range(5)}
            good = sess.run(y, {x: values, i: [1, 1]})
        assert len(texts) == 1 and good.shape == (2,)
        return texts.pop()

    def at_once(device):
        with tn.eager(), tn.device(device):
            text = said(lambda: make(tn.constant(values), tn.constant(bad)).numpy())
            make(tn.constant(values), tn.constant([1, 1])).numpy()
        return text
    assert in_a_session(GPU) == in_a_session("/cpu:0")
    assert at_once(GPU) == at_once("/cpu:0")


@cusim.needs_simulator
def test_out_of_memory():
    lines = in_a_process("""
with tn.device("/gpu:0"):
    huge = tn.reduce_sum(tn.fill([1 << 24], 1.0) * x[0], name="huge")
for limit, work in [(1 << 20, y), (0, y), (32 << 20, huge), (32 << 20, y), (0, huge)]:
    cusim.library().cusim_set_limit(0, limit)
    print(outcome(lambda: sess.run(work, {x: np.zeros(64)})))
print(outcome(lambda: sess.run(on_cpu, feed)))
""")
    for refused, asked in ((0, "2 MiB|[0-9]+ bytes"), (2, "64 MiB|128 MiB")):
        assert re.match(r"ResourceExhaustedError: \[.* node .*GPU:0: out of memory: (%s) asked "
                        r"for, .* in use, .* the largest blocks in use: " % asked, lines[refused])
    assert [lines[1], lines[3], lines[4], lines[5]] == ["2.0", "2.0", "0.0", "1.0"]


@cusim.needs_simulator
@pytest.mark.parametrize("memory", ["device", "pinned"])
def test_the_driver_refuses_memory_once(memory):
    """It is asked for no more than what is needed, and fetches go without pinned memory."""
    lines = in_a_process("""
cusim.library().cusim_fail_allocation(%d, 1)
print(outcome(lambda: sess.run(y, feed)))
print(outcome(lambda: sess.run(y, feed)))
""" % (-1 if memory == "pinned" else 0))
    assert lines == ["2.0", "2.0"]


def test_the_limit_of_the_environment():
    lines = in_a_process("""
with tn.device("/gpu:0"):
    huge = tn.fill([1 << 22], 1.0) * x[0]
print(outcome(lambda: sess.run(y, feed)))
print(outcome(lambda: sess.run(huge, feed)))
print(outcome(lambda: sess.run(y, feed)))
""", TREENAIL_GPU_MEMORY_LIMIT="8M")
    assert lines[0] == lines[2] == "2.0"
    assert lines[1].startswith("ResourceExhaustedError: [") and "limit 8 MiB" in lines[1]


@cusim.needs_simulator
@pytest.mark.parametrize("after", [0, 1, 2, 3, 4, 5])
def test_a_lost_gpu_is_named_and_the_cpu_goes_on(after):
    lines = in_a_process("""
sess.run(y, feed)
cusim.library().cusim_lose(0, %d)
while True:
    said = outcome(lambda: sess.run(y, feed))
    if said != 2.0:
        break
print(said)
print(outcome(lambda: sess.run(y, feed)))
print(outcome(at_once))
print(outcome(lambda: sess.run(on_cpu, feed)))
""" % after)
    assert all(line.startswith("UnavailableError: ") and "GPU:0" in line and "LAUNCH_FAILED" in line
               for line in lines[:3]), lines
    assert lines[3:] == ["1.0"]


@cusim.needs_simulator
@pytest.mark.parametrize("after", range(8))
def test_a_gpu_that_is_lost_while_it_counts(after):
    """Between the pass that counts and the one that writes, and within them."""
    lines = in_a_process("""
with tn.device("/gpu:0"):
    places = tn.where(tn.exp(x) > 0.5)
sess.run(places, feed)
cusim.library().cusim_lose(0, %d)
while True:
    said = outcome(lambda: sess.run(places, feed))
    if isinstance(said, str):
        break
print(said)
print(outcome(lambda: sess.run(on_cpu, feed)))
""" % after)
    assert lines[0].startswith("UnavailableError: ") and "LAUNCH_FAILED" in lines[0], lines
    assert lines[1:] == ["1.0"]


@cusim.needs_simulator
def test_what_waits_for_a_lost_gpu_is_not_computed_from_its_memory():
    """The other GPU is asked to copy a value whose kernel will never run."""
    lines = in_a_process("""
import threading
with tn.device("/gpu:0"):
    v = tn.Variable(np.zeros(64, np.float32))
    a = tn.exp(v.read_value())
with tn.device("/gpu:1"):
    b, own = tn.square(a), tn.exp(x)
sess.run(v.initializer)
print(outcome(lambda: sess.run(b)))
cusim.library().cusim_hold(0, 1)
run = threading.Thread(target=lambda: print(outcome(lambda: sess.run(b))))
run.start()
run.join(0.3)
cusim.library().cusim_lose(0, 0)
cusim.library().cusim_hold(0, 0)
run.join()
print(outcome(lambda: sess.run(own, feed)))
""", TREENAIL_CUDA_SIM_DEVICES="2")
    assert lines[0] == lines[2] == "1.0"
    assert re.match("UnavailableError: .*GPU:0 has failed", lines[1])


@pytest.mark.parametrize("used", [False, True])
def test_a_child_has_no_gpu_and_its_parent_goes_on(used):
    lines = in_a_process("""
sess.run(%s, feed)
sys.stdout.flush()
pid = os.fork()
if pid == 0:
    print(outcome(lambda: sess.run(y, feed)))
    print(outcome(at_once))
    print(outcome(lambda: sess.run(on_cpu, feed)), flush=True)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
print(outcome(lambda: sess.run(y, feed)))
""" % ("y" if used else "on_cpu"))
    assert all(line.startswith("FailedPreconditionError: ") and "forked" in line
               for line in lines[:2]), lines
    assert lines[2:] == ["1.0", "2.0"]


def test_a_network_of_unknown_batch_trains_there_without_soft_placement():
    with tn.Graph().as_default(), tn.device(GPU):
        x, y = tn.placeholder(tn.float32, [None, 4]), tn.placeholder(tn.int64, [None])
        logits = tn.layers.dense(tn.layers.dense(x, 8, activation=tn.nn.relu), 2)
        loss = tn.reduce_mean(
            tn.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        right = tn.reduce_mean(tn.cast(tn.equal(tn.argmax(logits, 1), y), tn.float32))
        train = tn.train.AdamOptimizer(0.05).minimize(loss)
        start = tn.global_variables_initializer()
        features = np.random.RandomState(1).randn(32, 4).astype(np.float32)
        feed = {x: features, y: (features[:, 0] > 0).astype(np.int64)}
        with tn.Session() as sess:
            sess.run(start)
            before = sess.run(loss, feed)
            for _ in range(40):
                sess.run(train, feed)
            assert sess.run(loss, feed) < before / 4
            assert sess.run(right, feed) > 0.95


def test_convolutions_of_unaligned_values():
    """cuDNN takes tensors at multiples of 16 bytes; a slice need not lie so."""
    images = np.arange(2 * 4 * 5 * 1, dtype=np.float32).reshape(2, 4, 5, 1)
    row = np.concatenate([[0.0], images.ravel()]).astype(np.float32)
    taps = np.array([1, 10, 100, 1000], np.float32).reshape(2, 2, 1, 1)

    def gradients(device):
        with tn.Graph().as_default(), tn.device(device):
            x = tn.reshape(tn.constant(row)[1:], images.shape)
            y = tn.nn.conv2d(x, tn.constant(taps), [1, 2, 1, 1], "SAME")
            with tn.Session() as sess:
                return sess.run([y, *tn.gradients(tn.square(y), [x])])

    for on_gpu, on_cpu in zip(gradients(GPU), gradients("/cpu:0")):
        np.testing.assert_allclose(on_gpu, on_cpu, rtol=1e-6)


TENSOR_FLOATS = """
with tn.device("/gpu:0"):
    y = tn.matmul(tn.fill([1, 1], 1 + 2.0 ** -12), tn.fill([1, 1], 1.0))
print(outcome(lambda: tn.Session().run(y)))
"""


@pytest.mark.parametrize("value, found", [
    ("0", "1.000244140625"), ("1", "1.0"),
    ("yes", r"InvalidArgumentError: .*TREENAIL_GPU_TF32.*yes.*")])
def test_products_cut_their_factors_where_it_is_allowed(value, found):
    said, = in_a_process(TENSOR_FLOATS, TREENAIL_GPU_TF32=value)
    assert re.fullmatch(found, said), said
