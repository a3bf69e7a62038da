# SPDX-License-Identifier: Apache-2.0
"""tn.train.MixedPrecision: what its scale does, and that models train with it as in float32."""

import os

import numpy as np
import pytest

import treenail as tn

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NARROW = ["bfloat16", "float16"]
scope = tn.train.mixed_precision


def dynamic(optimizer=None, **more):
    return tn.train.MixedPrecision(optimizer or tn.train.MomentumOptimizer(0.5, 0.5), "float16",
                                   **{"initial_loss_scale": 8.0, "increment_period": 3, **more})


class Trained:
    """A variable that a gradient is fed to."""

    def __init__(self, optimizer, shape=(2,)):
        self.v = tn.get_variable("v", shape, initializer=tn.zeros_initializer())
        self.fed = tn.placeholder(tn.float32, shape)
        self.step = tn.train.create_global_step()
        self.optimizer = optimizer
        self.gradients = optimizer.compute_gradients(tn.reduce_sum(self.v * self.fed))
        self.train = optimizer.apply_gradients(self.gradients, self.step)
        self.session = tn.Session()
        self.session.run(tn.global_variables_initializer())

    def run(self, *gradients):
        """(scale, good steps, global step) after each."""
        found = []
        good = [v for v in self.optimizer.variables() if v.name.startswith(
            "MixedPrecision/good_steps")][0]
        for gradient in gradients:
            self.session.run(self.train, {self.fed: np.broadcast_to(np.float32(
                gradient), self.fed.shape.as_list())})
            found.append(tuple(int(value) for value in self.session.run(
                [self.optimizer.loss_scale, good, self.step])))
        return found


def test_the_scale_follows_the_gradients():
    trained = Trained(dynamic())
    assert trained.run(1, 1, 1, 1, np.inf, 1, np.nan, 1, 1, 1) == [
        (8, 1, 1), (8, 2, 2), (16, 0, 3), (16, 1, 4), (8, 0, 4), (8, 1, 5), (4, 0, 5), (4, 1, 6),
        (4, 2, 7), (8, 0, 8)]


def test_a_step_that_is_skipped_changes_nothing():
    for optimizer in (tn.train.AdamOptimizer(0.1), tn.train.MomentumOptimizer(0.1, 0.9)):
        with tn.Graph().as_default():
            trained = Trained(dynamic(optimizer))
            trained.run(1, 2)
            kept = [v for v in tn.global_variables() if "MixedPrecision" not in v.name]
            before = trained.session.run(kept)
            trained.run((1.0, np.inf), (np.nan, 1.0), -np.inf)
            assert len(kept) > 2
            for old, new in zip(before, trained.session.run(kept)):
                assert np.array_equal(old, new)
            trained.run(1)
            assert not np.array_equal(before[0], trained.session.run(kept)[0])


def test_the_scale_stays_within_bounds():
    trained = Trained(dynamic(initial_loss_scale=4.0))
    assert [scale for scale, _, _ in trained.run(*[np.inf] * 4)] == [2, 1, 1, 1]
    with tn.Graph().as_default():
        small = Trained(dynamic(initial_loss_scale=0.5))
        small.run(np.inf)
        assert small.session.run(small.optimizer.loss_scale) == 0.5
    with tn.Graph().as_default():
        large = Trained(dynamic(initial_loss_scale=2.0 ** 127, increment_period=1))
        large.run(1e-30, 1e-30)
        assert large.session.run(large.optimizer.loss_scale) == np.float32(2.0 ** 127)


@pytest.mark.parametrize("loss_scale", [None, 1, 1024, "dynamic"])
@pytest.mark.parametrize("dtype", NARROW)
def test_steps_are_those_of_the_optimizer(dtype, loss_scale):
    def run(wrap):
        with tn.Graph().as_default():
            trained = Trained(wrap(tn.train.AdamOptimizer(0.1)))
            for gradient in (1.0, (0.5, -2.0), (1e-3, 7.0)):
                trained.session.run(trained.train, {trained.fed: np.broadcast_to(np.float32(
                    gradient), [2])})
            return trained.session.run([trained.v, trained.step])
    found = run(lambda inner: tn.train.MixedPrecision(inner, dtype, loss_scale))
    wanted = run(lambda inner: inner)
    assert np.array_equal(found[0], wanted[0]) and found[1] == wanted[1] == 3


def test_small_gradients_survive_in_float16():
    tiny = 2.0 ** -20  # squared it is below what float16 holds
    v = tn.get_variable("v", initializer=np.float32([[1.0]]))
    with scope("float16"):
        y = tn.matmul(tn.matmul(tn.ones([1, 1]), v), tn.constant([[tiny]]))
        loss = tn.reduce_sum(y) * tiny
    lost = tn.train.MixedPrecision(tn.train.GradientDescentOptimizer(1.0), "float16", 1)
    kept = tn.train.MixedPrecision(tn.train.GradientDescentOptimizer(1.0), "float16", 2.0 ** 20)
    both = [optimizer.compute_gradients(loss)[0][0] for optimizer in (lost, kept)]
    assert [g.dtype for g in both] == [tn.float32] * 2
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        assert [float(g) for g in session.run(both)] == [0.0, tiny ** 2]


def test_the_loss_is_given_unscaled_and_may_be_narrow():
    v = tn.get_variable("v", initializer=np.float32([[3.0]]))
    with scope("float16"):
        loss = tn.matmul(v, v)
    assert loss.dtype == tn.float16
    pairs = dynamic(initial_loss_scale=2.0 ** 30).compute_gradients(loss)
    scaled = dynamic(initial_loss_scale=2.0 ** 4).compute_gradients(
        loss, grad_loss=tn.cast(tn.constant([[2.0]]), tn.float16))
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        assert np.isinf(session.run(pairs[0][0]))  # the scale is beyond float16
        assert session.run(scaled[0][0]) == 12 and session.run(loss) == 9


def test_gradients_of_rows_and_of_other_dtypes():
    table = tn.get_variable("table", initializer=np.ones((4, 2), np.float32))
    double = tn.get_variable("double", initializer=np.ones(2, np.float64))
    half = tn.get_variable("half", initializer=np.ones(2, np.float16))
    unused = tn.get_variable("unused", [1])
    rows = tn.nn.embedding_lookup(table, tn.constant([1, 3, 1]))
    fed = tn.placeholder_with_default(1.0, [])
    loss = tn.reduce_sum(rows) * fed + tn.cast(tn.reduce_sum(double), tn.float32) \
        + tn.cast(tn.reduce_sum(half * half), tn.float32)
    optimizer = dynamic(tn.train.AdamOptimizer(0.1))
    pairs = optimizer.compute_gradients(loss, [table, double, half, unused])
    assert isinstance(pairs[0][0], tn.IndexedSlices) and pairs[3][0] is None
    assert [g.dtype for g, _ in pairs[:3]] == [tn.float32, tn.float64, tn.float16]
    train = optimizer.apply_gradients(pairs)
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        assert session.run(pairs[0][0]).values.tolist() == np.ones((3, 2)).tolist()
        assert session.run(pairs[2][0]).tolist() == [2, 2]
        session.run(train, {fed: np.inf})
        assert session.run(table).tolist() == np.ones((4, 2)).tolist()
        session.run(train)
        assert np.all(session.run(table)[[1, 3]] < 1) and np.all(session.run(table)[[0, 2]] == 1)


def test_what_is_passed_on():
    inner = tn.train.MomentumOptimizer(0.5, 0.5)
    optimizer = dynamic(inner)
    trained = Trained(optimizer)
    slot = optimizer.get_slot(trained.v, "momentum")
    assert slot is inner.get_slot(trained.v, "momentum") is not None
    assert optimizer.get_slot_names() == ["momentum"]
    assert [v.name for v in optimizer.variables()] == [
        "MixedPrecision/good_steps:0", "MixedPrecision/loss_scale:0", "v/Momentum:0"]
    assert not any(v in tn.trainable_variables() for v in optimizer.variables())
    assert tn.get_collection(tn.GraphKeys.TRAIN_OP) == [trained.train]
    assert all(op.graph is tn.get_default_graph()
               for op in tn.get_collection(tn.GraphKeys.TRAIN_OP))


def test_a_learning_rate_that_changes():
    step = tn.train.create_global_step()
    rate = tn.train.piecewise_constant(step, [0], [1.0, 0.25])
    v = tn.get_variable("v", initializer=np.float32(10.0))
    train = dynamic(tn.train.GradientDescentOptimizer(rate)).minimize(v * 1.0, step)
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        seen = []
        for _ in range(3):
            session.run(train)
            seen.append(float(session.run(v)))
    assert seen == [9.0, 8.75, 8.5]


def test_an_optimizer_of_one_s_own_is_called():
    class Clipped(tn.train.GradientDescentOptimizer):
        def apply_gradients(self, grads_and_vars, global_step=None, name=None):
            return super().apply_gradients([(tn.clip_by_value(g, -1.0, 1.0), v)
                                            for g, v in grads_and_vars], global_step, name)
    trained = Trained(dynamic(Clipped(1.0)))
    assert trained.run(100, np.inf)[-1] == (4, 0, 1)
    assert trained.session.run(trained.v).tolist() == [-1, -1]


@pytest.fixture
def group():
    """Of this process alone; where another file has joined one it stays."""
    joined = not tn.distributed.is_initialized()
    if joined:
        tn.distributed.init("none")
    yield
    if joined:
        tn.distributed.shutdown()


def test_with_gradients_of_all_ranks(group):
    inner = tn.distributed.DistributedOptimizer(dynamic())
    trained = Trained(inner)
    trained.optimizer = inner._optimizer
    assert trained.run(1, np.inf) == [(8, 1, 1), (4, 0, 1)]
    with tn.Graph().as_default():
        outer = Trained(dynamic(tn.distributed.DistributedOptimizer(
            tn.train.GradientDescentOptimizer(0.5))))
        assert outer.run(1, np.inf) == [(8, 1, 1), (4, 0, 1)]


def test_saved_and_restored(tmp_path):
    def made_trained():
        return Trained(dynamic())
    with tn.Graph().as_default():
        trained = made_trained()
        trained.run(1, 1, 1, 1, 1)
        path = tn.train.Saver().save(trained.session, str(tmp_path / "model"))
    assert sorted(name for name, _ in tn.train.list_variables(path)) == [
        "MixedPrecision/good_steps", "MixedPrecision/loss_scale", "global_step", "v", "v/Momentum"]
    with tn.Graph().as_default():
        trained = made_trained()
        tn.train.Saver().restore(trained.session, path)
        assert trained.run(1) == [(32, 0, 6)]


def test_a_checkpoint_of_objects(tmp_path):
    def one_step(optimizer, v, value):
        pairs = optimizer.compute_gradients(lambda: tn.reduce_sum(v * value))
        optimizer.apply_gradients(pairs)
    with tn.eager():
        v, optimizer = tn.Variable([1.0]), dynamic()
        for value in (1.0, 1.0, 1.0, np.inf, 2.0):
            one_step(optimizer, v, value)
        path = tn.train.Checkpoint(v=v, optimizer=optimizer).save(str(tmp_path / "model"))
        names = {name for name, _ in tn.train.list_variables(path)}
        assert {"optimizer/loss_scale", "optimizer/good_steps", "optimizer/slots/momentum/v"} \
            <= names
        other, again = tn.Variable([0.0]), dynamic()
        tn.train.Checkpoint(v=other, optimizer=again).restore(path)
        one_step(optimizer, v, 1.0)
        one_step(again, other, 1.0)
        assert again.loss_scale.numpy() == 8 and np.array_equal(v.numpy(), other.numpy())
        assert [int(x.numpy()) for x in again.variables() if "good" in x.name] == [2]


@pytest.mark.parametrize("traced", [False, True])
def test_with_immediate_execution(traced):
    with tn.eager():
        v, step = tn.Variable([[2.0]]), tn.Variable(0, dtype=tn.int64, trainable=False)
        optimizer, seen = dynamic(), []

        def loss(factor):
            y = tn.matmul(v, v)
            seen.append(y.dtype.name)
            return tn.reduce_sum(y * factor)

        def train(factor):
            optimizer.minimize(lambda: loss(factor), step)
            return optimizer.loss_scale
        if traced:
            train = tn.function(train)
        values = [float(train(tn.constant(f)).numpy()) for f in (1.0, np.inf, 1.0, 1.0, 1.0)]
        assert values == [8, 4, 4, 4, 8] and set(seen) == {"float16"}
        assert step.numpy() == 4 and np.isfinite(v.numpy()).all() and v.dtype == tn.float32


def test_a_loss_that_is_a_function_is_computed_in_a_scope():
    v = tn.get_variable("v", initializer=np.float32([[1.0]]))
    seen = []

    def loss():
        seen.append(tn.matmul(v, v).dtype.name)
        return tn.reduce_sum(tn.matmul(v, v))
    tn.train.MixedPrecision(tn.train.GradientDescentOptimizer(0.1)).minimize(loss)
    dynamic().minimize(loss)
    assert seen == ["bfloat16", "float16"]


SGD = tn.train.GradientDescentOptimizer


@pytest.mark.parametrize("make, error, text", [
    (lambda: tn.train.MixedPrecision(3), TypeError, "optimizer is 3; needed is an Optimizer"),
    (lambda: tn.train.MixedPrecision(None), TypeError, "optimizer is None"),
    (lambda: tn.train.MixedPrecision(dynamic()), ValueError, "scales the loss already"),
    (lambda: tn.train.MixedPrecision(tn.distributed.DistributedOptimizer(dynamic())), ValueError,
     "scales the loss already"),
    (lambda: tn.train.MixedPrecision(tn.train.SyncReplicasOptimizer(SGD(0.1), 2)), ValueError,
     "SyncReplicasOptimizer is around MixedPrecision"),
    (lambda: tn.train.MixedPrecision(SGD(0.1), "int8"), ValueError, "dtype is 'int8'; needed is"),
    (lambda: tn.train.MixedPrecision(SGD(0.1), "float32"), ValueError,
     "needed is 'bfloat16' or 'float16'$"),
    (lambda: tn.train.MixedPrecision(SGD(0.1), 3.5), TypeError, "dtype is 3.5"),
    (lambda: dynamic(loss_scale=-2), ValueError,
     "loss_scale is -2; needed is 'dynamic', None or a finite number above 0"),
    (lambda: dynamic(loss_scale=0.0), ValueError, "loss_scale is 0.0"),
    (lambda: dynamic(loss_scale=np.inf), ValueError, "loss_scale is inf"),
    (lambda: dynamic(loss_scale=True), TypeError, "loss_scale is True"),
    (lambda: dynamic(loss_scale="often"), TypeError, "loss_scale is 'often'"),
    (lambda: dynamic(initial_loss_scale=0), ValueError, "initial_loss_scale is 0"),
    (lambda: dynamic(multiplier=1), ValueError, "multiplier is 1; needed is a finite number above"),
    (lambda: dynamic(increment_period=0), ValueError, "increment_period is 0"),
    (lambda: dynamic(increment_period=1.5), TypeError, "increment_period is 1.5; needed is an int"),
    (lambda: dynamic().minimize(tn.constant(3)), ValueError, "Invalid type int32 for loss"),
    (lambda: dynamic().minimize(tn.constant(3.0)), ValueError, "No variables to optimize"),
    (lambda: dynamic().apply_gradients([]), ValueError, "No variables provided"),
])
def test_refusals(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_a_gradient_that_is_not_there():
    v = tn.get_variable("v", [2])
    with pytest.raises(ValueError, match="No gradients provided"):
        dynamic().minimize(tn.constant(3.0), var_list=[v])
    with pytest.raises(ValueError, match="No gradients provided"):
        dynamic().apply_gradients([(None, v)])


@pytest.mark.parametrize("around", [False, True])
@pytest.mark.parametrize("devices", [["/cpu:0"], ["/cpu:0", "/cpu:1"]])
@pytest.mark.parametrize("inner", [tn.train.AdamOptimizer, tn.train.GradientDescentOptimizer])
def test_replicas_of_a_strategy(inner, devices, around):
    strategy, seen = tn.distribute.MirroredStrategy(devices), []
    fed = tn.placeholder(tn.float32, [len(devices)])
    optimizer = dynamic(inner(0.5))
    with strategy.scope():
        v = tn.get_variable("v", initializer=np.float32([[2.0]]))
        step = tn.train.get_or_create_global_step()

        def minimized():
            number = tn.distribute.get_replica_context().replica_id_in_sync_group
            if around:
                y = tn.matmul(v, tn.ones([1, 1]))
            else:
                with scope("float16"):
                    y = tn.matmul(v, tn.ones([1, 1]))
            seen.append(y.dtype)
            return optimizer.minimize(tn.reduce_sum(tn.cast(y, tn.float32)) * fed[number], step)
        with scope("float16" if around else "float32"):
            train = strategy.run(minimized)
        results = [optimizer.loss_scale, step, v]
    assert seen == [tn.float16] * len(devices)
    with tn.Session(config=tn.ConfigProto(device_count={"CPU": 2})) as session:
        session.run(tn.global_variables_initializer())
        found = []
        for last in (1.0, np.inf, 1.0, 1.0, 1.0, -np.inf):
            session.run(strategy.experimental_local_results(train),
                        {fed: np.float32([1.0] * (len(devices) - 1) + [last])})
            found.append([float(np.squeeze(value)) for value in session.run(results)])
        copies = session.run(list(getattr(v, "values", [v])))
    assert [(scale, step) for scale, step, _ in found] == [
        (8, 1), (4, 1), (4, 2), (4, 3), (8, 4), (4, 4)]
    assert found[1][2] == found[0][2] and np.isfinite(found[5][2]) and found[5][2] == found[4][2]
    assert all(np.array_equal(copy, copies[0]) for copy in copies)


def test_an_optimizer_of_one_s_own_in_a_replica():
    class Own(SGD):
        def apply_gradients(self, *args, **kwargs):
            return super().apply_gradients(*args, **kwargs)
    strategy = tn.distribute.MirroredStrategy(["/cpu:0"])
    with strategy.scope():
        v = tn.get_variable("v", initializer=np.float32([[2.0]]))
        plain = tn.train.MixedPrecision(Own(0.25))
        train = strategy.run(lambda: plain.minimize(lambda: tn.reduce_sum(tn.matmul(v, v))))
        with pytest.raises(RuntimeError, match="needs an optimizer with the apply_gradients of"):
            strategy.run(lambda: dynamic(Own(0.25)).minimize(tn.reduce_sum(tn.matmul(v, v))))
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        session.run(strategy.experimental_local_results(train))
        assert session.run(v) == 1


# --- Training -------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def digits():
    rows = np.loadtxt(os.path.join(ROOT, "smoke", "digits.csv"), delimiter=",")
    rows = np.random.RandomState(1).permutation(rows)
    return rows[:, :64].astype(np.float32) / 16, rows[:, 64].astype(np.int64)


def perceptron(x):
    return tn.layers.dense(tn.layers.dense(x, 64, activation=tn.nn.relu), 10)


def convolutions(x):
    h = tn.layers.conv2d(tn.reshape(x, [-1, 8, 8, 1]), 16, 3, padding="same", use_bias=False)
    h = tn.nn.relu(tn.layers.batch_normalization(h, training=True))
    return tn.layers.dense(tn.layers.flatten(tn.layers.max_pooling2d(h, 2, 2)), 10)


def recurrent(x):
    cell = tn.rnn.LSTMCell(32)
    outputs, _ = tn.nn.dynamic_rnn(cell, tn.reshape(x, [-1, 8, 8]), dtype=tn.float32)
    return tn.layers.dense(outputs[:, -1], 10)


def trained(model, dtype, digits, epochs):
    """(share of right answers, mean loss) on what was not trained on."""
    images, labels = digits
    with tn.Graph().as_default():
        x, y = tn.placeholder(tn.float32, [None, 64]), tn.placeholder(tn.int64, [None])
        with scope(dtype):
            logits = model(x)
            loss = tn.losses.sparse_softmax_cross_entropy(labels=y, logits=logits)
        right = tn.reduce_mean(tn.cast(tn.equal(tn.argmax(logits, 1), y), tn.float32))
        optimizer = tn.train.AdamOptimizer(0.005)
        if dtype != "float32":
            optimizer = tn.train.MixedPrecision(optimizer, dtype)
        train = optimizer.minimize(loss)
        assert logits.dtype == dtype and loss.dtype == tn.float32
        values = np.random.RandomState(5)
        with tn.Session() as session:
            session.run(tn.global_variables_initializer())
            for v in tn.trainable_variables():  # as seeds follow from the number of operations
                if len(v.shape) > 1:
                    v.load(0.1 * values.standard_normal(v.shape.as_list()).astype(np.float32),
                           session)
            for _ in range(epochs):
                for i in range(0, 1200, 40):
                    session.run(train, {x: images[i:i + 40], y: labels[i:i + 40]})
            return session.run([right, loss], {x: images[1200:], y: labels[1200:]})


@pytest.mark.parametrize("model, epochs", [(perceptron, 5), (convolutions, 3), (recurrent, 24)])
def test_training_reaches_what_float32_does(model, epochs, digits):
    right, loss = trained(model, "float32", digits, epochs)
    assert right > 0.9
    for dtype in NARROW:
        also, its_loss = trained(model, dtype, digits, epochs)
        assert also > right - 0.02, (dtype, also, right)
        assert its_loss < 1.2 * loss + 0.02, (dtype, its_loss, loss)
