# SPDX-License-Identifier: Apache-2.0
"""tn.train.Checkpoint and CheckpointManager. Oracle: a training that is not interrupted, and h5py
for what a file holds."""

import gc
import os
import time
import weakref

import numpy as np
import pytest

import treenail as tn
from treenail import _object_graph

X = np.random.RandomState(0).randn(5, 2).astype(np.float32)


class Net:
    def __init__(self):
        self.first = tn.layers.Dense(4, name="anything")
        self.blocks = [tn.layers.Dense(3), {"scale": tn.Variable(2.0)}]

    def __call__(self, x):
        return self.blocks[0](tn.nn.relu(self.first(x))) * self.blocks[1]["scale"]

    def variables(self):
        return self.first.variables + self.blocks[0].variables + [self.blocks[1]["scale"]]


class Training:
    def __init__(self, traced=False, optimizer=tn.train.AdamOptimizer):
        self.net, self.optimizer = Net(), optimizer(0.003)
        self.done = tn.Variable(0, dtype=tn.int64, trainable=False)
        self.checkpoint = tn.train.Checkpoint(model=self.net, optimizer=self.optimizer,
                                              step=self.done)
        self.run = tn.function(self._step) if traced else self._step

    def _step(self, x):
        with tn.GradientTape() as tape:
            loss = tn.reduce_sum(tn.square(self.net(x)))
        variables = self.net.variables()
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables),
                                       global_step=self.done)
        return loss

    def steps(self, count):
        return [float(self.run(tn.constant(X))) for _ in range(count)]


@pytest.fixture()
def at_once():
    with tn.eager():
        yield


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("kind", [tn.train.AdamOptimizer, tn.train.RMSPropOptimizer,
                                  lambda r: tn.train.MomentumOptimizer(r, 0.9)])
def test_a_training_goes_on_where_it_was_saved(at_once, tmp_path, traced, kind):
    ours = Training(traced, kind)
    ours.steps(3)
    path = ours.checkpoint.save(tmp_path / "ckpt")
    assert path == str(tmp_path / "ckpt-1")
    expected = ours.steps(3)
    other = Training(traced, kind)  # whose layers and optimizer have no variables yet
    status = other.checkpoint.restore(tn.train.latest_checkpoint(tmp_path))
    assert int(other.done) == 3
    assert other.steps(3) == expected
    status.assert_consumed().assert_existing_objects_matched().assert_nontrivial_match()
    assert other.checkpoint.save(tmp_path / "ckpt") == str(tmp_path / "ckpt-2")


def test_restoring_over_what_is_there(at_once, tmp_path):
    ours = Training()
    ours.steps(2)
    path = ours.checkpoint.save(tmp_path / "ckpt")
    expected = ours.steps(3)
    ours.checkpoint.restore(path).assert_consumed()
    assert ours.steps(3) == expected


def test_names_in_the_file(at_once, tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    shared = tn.Variable([1.0, 2.0], name="ignored")
    inner = tn.train.Checkpoint(z=shared)
    c = tn.train.Checkpoint(a=inner, odd={"a.b/c": tn.Variable(3.0), 7: tn.Variable(4.0)},
                            second=[shared])
    c.itself = c
    path = c.write(tmp_path / "plain")
    assert path == str(tmp_path / "plain") and not (tmp_path / "checkpoint").exists()
    found = {}
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, item: found.__setitem__(name, item)
                        if isinstance(item, h5py.Dataset) else None)
        names = [name for name, _ in tn.train.list_variables(path)]
        assert sorted(names) == ["a/z", "odd/7", "odd/a..b.Sc"]
        assert found["a/z"][...].tolist() == [1.0, 2.0]


def test_graphs_and_immediate_execution_share_files(tmp_path):
    with tn.eager():
        ours = Training()
        ours.steps(2)
        path = ours.checkpoint.save(tmp_path / "ckpt")
        expected = [v.numpy() for v in ours.net.variables()]
    with tn.Graph().as_default(), tn.Session() as session:
        net = Net()
        y = net(tn.constant(X))
        more = tn.Variable(5.0)
        checkpoint = tn.train.Checkpoint(model=net, more=more)
        status = checkpoint.restore(path)
        status.initialize_or_restore(session)
        for value, variable in zip(expected, net.variables()):
            np.testing.assert_array_equal(session.run(variable), value)
        assert session.run(more) == 5
        with pytest.raises(AssertionError, match="more is not in the checkpoint"):
            status.assert_existing_objects_matched()
        before = len(tn.get_default_graph().get_operations())
        session.run(net.variables()[0].assign(np.zeros((2, 4))))
        status.run_restore_ops()
        np.testing.assert_array_equal(session.run(net.variables()[0]), expected[0])
        result = session.run(y)
        assert checkpoint.save(tmp_path / "graph") == str(tmp_path / "graph-2")
        middle = len(tn.get_default_graph().get_operations())
        assert checkpoint.save(tmp_path / "graph", session) == str(tmp_path / "graph-3")
        assert before < middle and len(tn.get_default_graph().get_operations()) < middle + 8
    with tn.eager():
        net = Net()
        tn.train.Checkpoint(model=net).restore(str(tmp_path / "graph-3"))
        np.testing.assert_allclose(net(tn.constant(X)), result, rtol=1e-6)


def test_a_new_graph_counts_from_one(tmp_path):
    with tn.Graph().as_default(), tn.Session() as session:
        v = tn.Variable(3.0)
        checkpoint = tn.train.Checkpoint(v=v)
        checkpoint.restore(None).initialize_or_restore()
        assert session.run(v) == 3
        assert [checkpoint.save(tmp_path / "c") for _ in range(2)] == [
            str(tmp_path / "c-1"), str(tmp_path / "c-2")]
        assert tn.train.latest_checkpoint(tmp_path) == str(tmp_path / "c-2")


def test_parts_of_a_variable_stand_as_one(tmp_path):
    for parts in (3, 2):
        with tn.Graph().as_default(), tn.Session() as session:
            v = tn.get_variable("v", [6, 2], partitioner=tn.fixed_size_partitioner(parts),
                                initializer=tn.random_normal_initializer(seed=parts))
            checkpoint = tn.train.Checkpoint(v=v)
            session.run(tn.global_variables_initializer())
            if parts == 3:
                value = session.run(tn.convert_to_tensor(v))
                path = checkpoint.write(tmp_path / "parts")
            else:
                checkpoint.restore(path).run_restore_ops()
                np.testing.assert_array_equal(session.run(tn.convert_to_tensor(v)), value)


def test_what_is_set_later_is_restored_then(at_once, tmp_path):
    path = tn.train.Checkpoint(a=tn.Variable(1.0), b=[tn.Variable(2.0)]).save(tmp_path / "c")
    checkpoint = tn.train.Checkpoint()
    status = checkpoint.restore(path)
    with pytest.raises(AssertionError, match="Nothing except the save counter"):
        status.assert_nontrivial_match()
    checkpoint.a = tn.Variable(10.0)
    assert float(checkpoint.a) == 1
    with pytest.raises(AssertionError, match="no variable is there for b/0"):
        status.assert_consumed()
    checkpoint.a.assign(11.0)
    checkpoint.b = [tn.Variable(20.0)]
    assert float(checkpoint.b[0]) == 2 and float(checkpoint.a) == 11  # each once
    status.assert_consumed().expect_partial()


def test_values_wait_no_longer_than_the_objects(at_once, tmp_path):
    path = tn.train.Checkpoint(a=tn.Variable(1.0)).save(tmp_path / "c")
    net = Net()
    status = weakref.ref(tn.train.Checkpoint(model=net).restore(path))
    gc.collect()
    assert status() in _object_graph._waiting
    del net
    gc.collect()
    assert status() is None


def test_layers_alone_wait_for_their_values(at_once, tmp_path):
    ours = Training()
    ours.steps(1)
    path = tn.train.Checkpoint(model=ours.net).save(tmp_path / "c")
    net = Net()
    status = weakref.ref(tn.train.Checkpoint(model=net).restore(path))
    gc.collect()
    np.testing.assert_array_equal(net(tn.constant(X)), ours.net(tn.constant(X)))
    gc.collect()
    assert status() is None


def test_metrics(at_once, tmp_path):
    mean = tn.metrics.Mean()
    mean([1.0, 2.0, 6.0])
    path = tn.train.Checkpoint(mean=mean).save(tmp_path / "c")
    again = tn.metrics.Mean()
    status = tn.train.Checkpoint(mean=again).restore(path)
    again([11.0])
    assert float(again.result()) == 5
    status.assert_consumed()


def test_ten_thousand_variables(at_once, tmp_path):
    many = [tn.Variable(float(i)) for i in range(10_000)]
    path = tn.train.Checkpoint(many=many).write(tmp_path / "many")
    for v in many:
        v.assign(-1.0)
    tn.train.Checkpoint(many=many).restore(path).assert_existing_objects_matched()
    assert [float(v) for v in many] == list(range(10_000))


@pytest.mark.parametrize("value", [3, "text", None, np.ones(2), len, np, Net,
                                   tn.constant([1.0], tn.float32)],
                         ids=lambda value: type(value).__name__)
def test_what_holds_no_variables_is_refused(value):
    if isinstance(value, tn.Tensor):
        with tn.Graph().as_default():
            value = tn.constant(1.0)
    with pytest.raises(ValueError, match="expecting a trackable object .*got thing="):
        tn.train.Checkpoint(thing=value)


def test_bad_paths_and_files(at_once, tmp_path):
    checkpoint = tn.train.Checkpoint(v=tn.Variable([1.0, 2.0]))
    with pytest.raises(ValueError, match="not a valid checkpoint: .*nowhere"):
        checkpoint.restore(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="Parent directory of .* doesn't exist"):
        checkpoint.save(tmp_path / "absent" / "c")
    with pytest.raises(TypeError, match="a path"):
        checkpoint.save(3)
    path = checkpoint.save(tmp_path / "c")
    other = tn.train.Checkpoint(v=tn.Variable([1.0, 2.0, 3.0]))
    with pytest.raises(tn.errors.InvalidArgumentError, match=r"shape \(3,\), in .*\(2,\)"):
        other.restore(path)
    wrong = tn.train.Checkpoint(v=tn.Variable([1, 2]))
    with pytest.raises(tn.errors.InvalidArgumentError, match="float32.*int32|int32.*float32"):
        wrong.restore(path)
    assert wrong.v.numpy().tolist() == [1, 2]
    with open(path, "r+b") as file:
        file.seek(os.path.getsize(path) // 2)
        file.write(b"\xff" * 64)
    with pytest.raises(tn.errors.DataLossError):
        checkpoint.restore(path)
    with pytest.raises(ValueError, match="No variables to save"):
        tn.train.Checkpoint(layer=tn.layers.Dense(3)).write(tmp_path / "empty")


def test_graphs_need_a_session(tmp_path):
    with tn.Graph().as_default():
        checkpoint = tn.train.Checkpoint(v=tn.Variable(1.0))
        for call in (lambda: checkpoint.save(tmp_path / "c"),
                     lambda: checkpoint.write(tmp_path / "c"),
                     lambda: checkpoint.restore(None).initialize_or_restore()):
            with pytest.raises(ValueError, match="needs a session"):
                call()


def test_no_checkpoint_yet(at_once, tmp_path):
    checkpoint = tn.train.Checkpoint(v=tn.Variable(1.0))
    status = checkpoint.restore(tn.train.latest_checkpoint(tmp_path))
    status.initialize_or_restore()
    with pytest.raises(AssertionError, match="No checkpoint specified"):
        status.assert_consumed()
    assert float(checkpoint.v) == 1


# --- CheckpointManager ----------------------------------------------------------------------------

def test_a_manager_keeps_the_last(at_once, tmp_path):
    checkpoint = tn.train.Checkpoint(v=tn.Variable(1.0))
    manager = tn.train.CheckpointManager(checkpoint, tmp_path / "made", 2)
    assert manager.latest_checkpoint is None and manager.checkpoints == []
    paths = [manager.save() for _ in range(4)]
    assert manager.checkpoints == paths[-2:] and manager.latest_checkpoint == paths[-1]
    assert sorted(os.listdir(tmp_path / "made")) == ["checkpoint", "ckpt-3", "ckpt-4"]
    state = tn.train.get_checkpoint_state(str(tmp_path / "made"))
    assert state.all_model_checkpoint_paths == paths[-2:]
    again = tn.train.CheckpointManager(checkpoint, tmp_path / "made", 2, checkpoint_name="x")
    assert again.checkpoints == paths[-2:]
    assert again.save(checkpoint_number=9) == str(tmp_path / "made" / "x-9")
    assert again.save(checkpoint_number=tn.Variable(10)) == str(tmp_path / "made" / "x-10")
    assert sorted(os.listdir(tmp_path / "made")) == ["checkpoint", "x-10", "x-9"]


def test_a_manager_keeps_some_for_good(at_once, tmp_path, monkeypatch):
    checkpoint = tn.train.Checkpoint(v=tn.Variable(1.0))
    manager = tn.train.CheckpointManager(checkpoint, tmp_path, 1, keep_checkpoint_every_n_hours=2)
    begin = time.time()
    for hour in range(1, 7):
        path = manager.save()
        os.utime(path, (begin + 3600 * hour,) * 2)
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "ckpt-2", "ckpt-4", "ckpt-6"]


def test_a_manager_in_a_graph(tmp_path):
    with tn.Graph().as_default(), tn.Session() as session:
        v = tn.Variable(1.0)
        manager = tn.train.CheckpointManager(tn.train.Checkpoint(v=v), tmp_path, None)
        session.run(v.initializer)
        assert [manager.save() for _ in range(3)] == [str(tmp_path / ("ckpt-%d" % i))
                                                      for i in (1, 2, 3)]


@pytest.mark.parametrize("arguments, error, text", [
    ((3,), TypeError, "must be a tn.train.Checkpoint, not 3"),
    ((None, 0), ValueError, "positive integer or `None` for `max_to_keep`, got 0"),
    ((None, "two"), TypeError, "integer|str"),
])
def test_bad_managers(at_once, tmp_path, arguments, error, text):
    checkpoint = arguments[0] or tn.train.Checkpoint(v=tn.Variable(1.0))
    with pytest.raises(error, match=text):
        tn.train.CheckpointManager(checkpoint, tmp_path, *(arguments[1:] or (1,)))
