# SPDX-License-Identifier: Apache-2.0
"""tn.device with immediate execution, on the simulated devices (tests/simulated): where operations
run, what is copied, what is refused, state, gradients. Functions, and options of the process:
test_immediate_device_programs.py. All op cases so: tests/cases/test_devices.py."""

import os
import sys
import threading

import numpy as np
import pytest
import treenail as tn

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(SOURCE, "tests", "simulated"))
import simulated  # noqa: E402  (the path must be set first)

pytestmark = simulated.needs_library
SIM, OTHER = "/device:SIM:0", "/device:SIM:1"
THERE, BESIDE = simulated.DEVICES
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


@pytest.fixture(autouse=True)
def at_once():
    """Immediate execution, with an order of delays of its own; what is allocated is freed."""
    simulated.library().sim_seed(1)
    with simulated.nothing_left(), tn.eager():
        yield


def on(device, value):
    with tn.device(device):
        return tn.identity(value)


# --- Where operations run


def test_operations_run_where_they_ask_to():
    x = tn.constant([1.0, 2.0])
    ran = simulated.library().sim_kernels_run(0)
    with tn.device(SIM):
        y = x * 3.0
    assert y.device == THERE and x.device == CPU
    assert simulated.library().sim_kernels_run(0) == ran + 1
    np.testing.assert_array_equal(y.numpy(), [3, 6])


@pytest.mark.parametrize("name", ["device:SIM:0", "/device:sim:0", "/device:SIM:*",
                                  "/job:localhost/replica:0/task:0/device:SIM:0"])
def test_names_in_all_their_forms(name):
    with tn.device(name):
        assert tn.negative(1.0).device == THERE


def test_contexts_within_contexts():
    x = tn.constant(1.0)
    with tn.device(SIM):
        with tn.device(OTHER):
            assert tn.exp(x).device == BESIDE
        with tn.device("/job:localhost"):
            assert tn.exp(x).device == THERE
        with tn.device("/cpu:0"):
            assert tn.exp(x).device == CPU
        with tn.device(None):
            assert tn.exp(x).device == CPU
        assert tn.exp(x).device == THERE
    assert tn.exp(x).device == CPU


def test_without_a_request_operations_run_where_the_values_are():
    x = on(SIM, [1.0, 2.0])
    assert (x + 1.0).device == (1.0 + x).device == tn.reduce_sum(x).device == THERE
    assert (tn.constant([1.0, 1.0]) + x).device == THERE
    assert (on(OTHER, [1.0, 1.0]) + x).device == BESIDE  # the first of them
    assert tn.as_string(x).device == CPU  # no kernel for it there
    np.testing.assert_array_equal(tn.as_string(x).numpy(), [b"1.000000", b"2.000000"])
    # Where shapes lie says nothing of where to compute.
    assert tn.ones(on(SIM, [2])).device == CPU


def test_constants_and_random_numbers_are_made_there():
    with tn.device(SIM):
        assert tn.constant([1.0]).device == tn.zeros([2, 2]).device == THERE
        assert tn.random_uniform([3]).device == THERE
        assert tn.convert_to_tensor(np.ones(2)).device == THERE
        assert tn.constant([1, 2]).device == CPU  # int32: shapes, mostly
    tn.set_random_seed(1)
    with tn.device(SIM):
        one = tn.random_normal([5], seed=2).numpy()
    tn.set_random_seed(1)
    np.testing.assert_array_equal(one, tn.random_normal([5], seed=2).numpy())


def test_views_and_shapes_and_values_of_unknown_shape():
    x = on(SIM, np.arange(6, dtype=np.float32))
    with simulated.counted_copies() as made:
        rows = tn.reshape(x, [2, 3])
        assert rows.device == THERE and tn.shape(rows).device == CPU
        assert rows[1].device == THERE
    assert made == [0, 0, 0, 0]
    kept = tn.boolean_mask(x, x > 2.0)
    assert kept.device == THERE
    np.testing.assert_array_equal(kept.numpy(), [3, 4, 5])
    np.testing.assert_array_equal(rows[1].numpy(), [3, 4, 5])


def test_calls_that_are_kept_know_their_device():
    x = tn.constant([1.0, 2.0])
    for _ in range(2):
        for device, place in ((SIM, THERE), ("/cpu:0", CPU), (OTHER, BESIDE), (None, CPU)):
            with tn.device(device):
                y = tn.square(x)
                z = tn.reduce_sum(y, axis=[0])
            assert y.device == z.device == place
            assert float(z) == 5.0


# --- Copies


def test_a_value_crosses_once_for_a_call():
    x = tn.constant([1.0, 2.0])
    with tn.device(SIM), simulated.counted_copies() as made:
        y = x * x
    assert made == [1, 0, 0, 0]
    with simulated.counted_copies() as made:
        y = tn.exp(y) + y
    assert made == [0, 0, 0, 0]
    with simulated.counted_copies(1) as made:
        with tn.device(OTHER):
            z = y + 0.0
    assert made == [1, 0, 0, 1]  # a number; and from the other device, directly
    np.testing.assert_array_equal(z.numpy(), y.numpy())


def test_identity_and_cpu_copy():
    x = on(SIM, [1.0, 2.0])
    with simulated.counted_copies() as made:
        here = x.cpu()
    assert made == [0, 1, 0, 0] and here.device == CPU and here.cpu() is here
    with tn.device(SIM):
        assert x.cpu().device == on("/cpu:0", x).device == CPU
        assert on(OTHER, x).device == BESIDE
    with tn.Graph().as_default(), pytest.raises(NotImplementedError, match="lies nowhere yet"):
        tn.constant(1.0).cpu()


def test_host_inputs_go_to_the_host():
    x = on(SIM, np.arange(6, dtype=np.float32).reshape(2, 3))
    axis, shape = on(SIM, 1), on(SIM, np.int64([3, 2]))
    assert axis.device == shape.device == THERE
    total = tn.reduce_sum(x, axis=axis)
    assert total.device == THERE
    np.testing.assert_array_equal(total.numpy(), [3, 12])
    np.testing.assert_array_equal(tn.reshape(x, shape).numpy(), [[0, 1], [2, 3], [4, 5]])
    axis = on(SIM, 0)  # another value, and not the call that was kept
    np.testing.assert_array_equal(tn.reduce_sum(x, axis=axis).numpy(), [3, 5, 7])


# --- What Python makes of values


def test_values_are_read_by_copies():
    x = on(SIM, [[1.0, 2.0], [3.0, 4.0]])
    n = on(SIM, np.int32(3))
    assert n.device == THERE
    np.testing.assert_array_equal(x.numpy(), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(np.asarray(x), x.numpy())
    assert int(n) == 3 and float(n) == 3.0 and [1, 2, 3, 4][n:] == [4]
    assert bool(n > 2) and not bool(n > 3)
    assert len(x) == 2 and [row.numpy().tolist() for row in x] == [[1, 2], [3, 4]]
    assert 4.0 in x and 5.0 not in x
    assert str(n) == "tn.Tensor(3, shape=(), dtype=int32)"
    assert repr(n) == "<tn.Tensor: shape=(), dtype=int32, numpy=3>"
    assert "[3., 4.]" in repr(x)
    assert tn.equal(x, x).numpy().all()
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)


def test_other_libraries_get_a_copy_or_none():
    x = on(SIM, [1.0, 2.0])
    with pytest.raises(BufferError, match=r"memory of .*device:SIM:0.*x\.cpu\(\)"):
        np.from_dlpack(x)
    with pytest.raises(BufferError, match="device:SIM:0"):
        x.__dlpack__()
    with pytest.raises(BufferError, match="device:SIM:0"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    for capsule in (x.__dlpack__(dl_device=(1, 0)), x.__dlpack__(dl_device=(1, 0),
                                                                 max_version=(1, 0))):
        np.testing.assert_array_equal(tn.from_dlpack(capsule).numpy(), [1, 2])
    np.testing.assert_array_equal(np.from_dlpack(x.cpu()), [1, 2])


def test_graphs_are_written_whatever_is_asked_for(tmp_path):
    graph = tn.Graph()
    with graph.as_default():
        tn.constant([1.0, 2.0])
    with tn.device(SIM):
        tn.summary.FileWriter(str(tmp_path), graph).close()
    assert b"Const" in next(tmp_path.iterdir()).read_bytes()


def test_graphs_and_sessions_take_values_of_a_device():
    x = on(SIM, [1.0, 2.0])
    with tn.Graph().as_default():
        fed = tn.placeholder(tn.float32, [2])
        y = fed + x * 2.0
        with tn.Session() as session:
            np.testing.assert_array_equal(session.run(y, {fed: x}), [3, 6])
    assert tn.constant(x).device == CPU


# --- Refusals


@pytest.mark.parametrize("name", ["/gpu:0", "/cpu:1", "/device:SIM:2", "/job:worker"])
def test_a_device_that_is_not_there(name):
    x = tn.constant(1.0)
    with tn.device(name):
        for call in (lambda: x + x, lambda: tn.constant(2.0), lambda: tn.Variable(1.0),
                     lambda: tn.concat([x[None], x[None]], 0)):
            with pytest.raises(tn.errors.InvalidArgumentError) as info:
                call()
            assert 'cannot be placed on "%s' % name.partition(":")[0] in str(info.value)
            assert CPU in str(info.value) and THERE in str(info.value) and "[Op:" in str(info.value)


def test_an_operation_without_a_kernel():
    with tn.device(SIM):
        with pytest.raises(tn.errors.InvalidArgumentError, match=r"SIM devices have no kernel for "
                           r"it with inputs \(float32\).*\[Op:AsString\]"):
            tn.as_string(1.0)
        with tn.device("/cpu:0"):
            assert tn.as_string(1).numpy() == b"1"


def test_malformed_names_and_functions():
    with pytest.raises(ValueError, match="is not a device name"):
        with tn.device("/cpu:zero"):
            pass
    with pytest.raises(ValueError, match="does not support functions when eager"):
        with tn.device(lambda op: SIM):
            pass
    with pytest.raises(TypeError, match="a device must be a str"):
        with tn.device(7):
            pass
    assert tn.exp(0.0).device == CPU


def test_errors_of_the_device_are_those_of_the_call():
    x = on(SIM, [1.0, 2.0])
    with pytest.raises(tn.errors.InvalidArgumentError, match=r"\[Op:Gather"):
        tn.gather(x, [5])
    simulated.library().sim_fail_allocation(0, 1)
    with pytest.raises(tn.errors.ResourceExhaustedError):
        x + x
    simulated.library().sim_lose(0, 0)
    try:
        with pytest.raises(tn.errors.UnavailableError):
            x + x
        with pytest.raises(tn.errors.UnavailableError):
            x.numpy()
    finally:
        simulated.library().sim_restore(0)
    np.testing.assert_array_equal((x + x).numpy(), [2, 4])


# --- State


def test_variables_live_where_they_are_made():
    with tn.device(SIM):
        v = tn.Variable([1.0, 2.0])
        s = tn.Variable("text")
    assert v.device == v.read_value().device == THERE
    assert s.device == CPU and s.numpy() == b"text"
    v.assign_add([1.0, 1.0])
    v.assign(v * 2.0)
    v[0].assign(7.0)
    np.testing.assert_array_equal(v.numpy(), [7, 6])
    np.testing.assert_array_equal(tn.gather(v, [1]).numpy(), [6])
    with tn.device(OTHER):
        v.assign_sub([1.0, 1.0])  # what works on state runs where the state is
        assert v.read_value().device == THERE and (v + 0.0).device == BESIDE
        c = tn.get_variable("c", initializer=tn.ones([2]))
    assert c.device == BESIDE
    old = v.read_value()
    v.scatter_update(tn.IndexedSlices(tn.constant([9.0]), tn.constant([0])))
    np.testing.assert_array_equal(old.numpy(), [6, 5])
    np.testing.assert_array_equal(v.numpy(), [9, 5])


def test_state_of_one_operation_is_in_one_memory():
    with tn.device(SIM):
        v = tn.Variable([1.0], name="weights")
    m = tn.Variable([0.0], name="momenta")
    with pytest.raises(tn.errors.InvalidArgumentError, match='memory of two devices: "weights" is '
                       'on .*SIM:0, "momenta" on .*CPU:0 .Op:ResourceApplyMomentum'):
        tn.raw_ops.ResourceApplyMomentum(var=v._handle, accum=m._handle, lr=0.1, grad=[1.0],
                                         momentum=0.9)


def test_checkpoints(tmp_path):
    with tn.device(SIM):
        v = tn.Variable([1.0, 2.0], name="v")
    saver = tn.train.Saver([v])
    path = saver.save(None, str(tmp_path / "model"))
    v.assign([0.0, 0.0])
    with tn.device(SIM):
        saver.restore(None, path)
    np.testing.assert_array_equal(v.numpy(), [1, 2])
    here = tn.Variable([0.0, 0.0], name="v")
    tn.train.Saver([here]).restore(None, path)
    np.testing.assert_array_equal(here.numpy(), [1, 2])


# --- Gradients


def test_gradients_run_where_the_values_are():
    x = on(SIM, [[1.0, 2.0], [3.0, 4.0]])
    with tn.GradientTape() as tape:
        tape.watch(x)
        y = tn.reduce_mean(tn.matmul(x, x) * tn.exp(x), axis=0)[1]
    gradient = tape.gradient(y, x)
    assert gradient.device == THERE
    here = x.cpu()
    with tn.GradientTape() as tape:
        tape.watch(here)
        y = tn.reduce_mean(tn.matmul(here, here) * tn.exp(here), axis=0)[1]
    np.testing.assert_array_equal(gradient.numpy(), tape.gradient(y, here).numpy())


def test_gradients_pass_from_device_to_device():
    x = tn.constant([1.0, 2.0])
    axis = on(SIM, 0)
    with tn.GradientTape() as tape:
        tape.watch(x)
        with tn.device(SIM):
            y = x * x
        with tn.device(OTHER):
            z = tn.exp(y)
        total = tn.reduce_sum(z.cpu() + z, axis=axis)
    gradient = tape.gradient(total, x)
    np.testing.assert_allclose(gradient.numpy(), 4 * np.float32([1, 2]) * np.exp([1, 4]), 1e-6)


def train(device, steps=6):
    """A small network with everything that programs use: layers, a tape, an optimizer's slots."""
    tn.set_random_seed(3)
    random = np.random.RandomState(0)
    images = random.normal(size=(8, 6, 6, 1)).astype(np.float32)
    labels = random.randint(3, size=8)
    conv = tn.layers.Conv2D(4, 3, activation=tn.nn.relu)
    dense = tn.layers.Dense(3)
    optimizer = tn.train.AdamOptimizer(0.01)
    losses = []
    for _ in range(steps):
        with tn.device(device), tn.GradientTape() as tape:
            features = tn.reduce_max(conv(tn.constant(images)), axis=[1, 2])
            loss = tn.losses.sparse_softmax_cross_entropy(labels, dense(features))
        variables = conv.trainable_variables + dense.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        losses.append(loss.numpy())
    places = {v.device for v in variables + optimizer.variables()}
    return losses, [v.numpy() for v in variables], places


def test_training_gives_the_bits_of_the_cpu():
    there, weights, places = train(SIM)
    here, expected, _ = train("/cpu:0")
    assert places == {THERE}
    assert there == here and there[-1] < there[0]
    for one, other in zip(weights, expected):
        np.testing.assert_array_equal(one, other)


def test_two_threads_on_two_devices():
    x = tn.constant(np.linspace(-1, 1, 64, dtype=np.float32))
    shared = on(SIM, x)
    expected = tn.reduce_sum(tn.tanh(x * 0.5 + x)).numpy()
    wrong = []

    def work(device):
        with tn.eager(), tn.device(device):
            for _ in range(30):
                y = tn.reduce_sum(tn.tanh(x * 0.5 + shared))
                if y.numpy() != expected or device not in y.device:
                    wrong.append((device, y))
    threads = [threading.Thread(target=work, args=(d,)) for d in (SIM, OTHER, SIM)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert tn.exp(x).device == CPU  # contexts are a thread's own
