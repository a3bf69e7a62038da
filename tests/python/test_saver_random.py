# SPDX-License-Identifier: Apache-2.0
"""Savers of random variables, devices and parts against a plain second one that keeps arrays in a
dict; every optimizer's slots and moving averages; several threads that save."""

import os
import random
import threading

import numpy as np
import pytest

import treenail as tn

from waiting import Threads

pytestmark = pytest.mark.skipif("hdf5" not in tn.build_info()["features"],
                                reason="this build has no HDF5")
DEVICES = 3


def session():
    return tn.Session(config=tn.ConfigProto(device_count={"CPU": DEVICES}))


def random_model(rng):
    """{name: variable}, some in parts on several devices."""
    made = {}
    for i in range(rng.randrange(1, 7)):
        name = rng.choice(["a/b%d", "v%d", "net/w%d/Adam"]) % i
        shape = [rng.randrange(1, 6) for _ in range(rng.randrange(4))]
        dtype = rng.choice([tn.float32, tn.float64, tn.int32, tn.int64, tn.bool, tn.complex64])
        parts = None
        if shape and rng.random() < 0.4:
            parts = tn.fixed_size_partitioner(rng.randrange(1, 5), rng.randrange(len(shape)))

        def placed(op):
            return "/cpu:%d" % rng.randrange(DEVICES) if op.type == "VarHandleOp" else op.device
        with tn.device(placed):
            made[name] = tn.get_variable(name, shape, dtype, tn.zeros_initializer(),
                                         partitioner=parts, trainable=False)
    return made


def value_of(variable, numbers):
    shape, dtype = variable.shape.as_list(), variable.dtype.as_numpy_dtype
    return np.asarray(numbers.randn(*shape) * 3).astype(dtype)


@pytest.mark.parametrize("seed", range(10))
def test_random_models(seed, tmp_path):
    rng, numbers = random.Random(seed), np.random.RandomState(seed)
    variables = random_model(rng)
    savers = [tn.train.Saver(sharded=True, max_to_keep=3), tn.train.Saver(max_to_keep=3)]
    chosen = rng.sample(sorted(variables), rng.randrange(1, len(variables) + 1))
    some = tn.train.Saver({"other/" + name: variables[name] for name in chosen},
                          sharded=rng.random() < 0.5)
    writes = {}
    for name, variable in variables.items():
        x = tn.placeholder(variable.dtype, variable.shape)
        assigned = variable.assign(x)
        writes[name] = assigned, x
    kept, now = {}, {}  # {path: values}: the plain second saver
    with session() as sess:
        sess.run(tn.global_variables_initializer())
        for turn in range(8):
            for name, (write, x) in writes.items():
                now[name] = value_of(variables[name], numbers)
                sess.run(write, {x: now[name]})
            saver = rng.choice(savers + [some])
            folder = tmp_path / str((savers + [some]).index(saver))
            folder.mkdir(exist_ok=True)
            path = saver.save(sess, str(folder / "m"), rng.randrange(3) if turn % 2 else turn)
            kept[path] = {"other/" + n: now[n] for n in chosen} if saver is some else dict(now)
            for path in [path for path in kept if not tn.train.checkpoint_exists(path)]:
                del kept[path]
            for path, values in kept.items():
                reader = tn.train.load_checkpoint(path)
                assert sorted(reader.get_variable_to_shape_map()) == sorted(values)
                for name, value in values.items():
                    np.testing.assert_array_equal(reader.get_tensor(name), value)
            path = rng.choice(sorted(kept))
            if path.startswith(str(tmp_path / "2")):
                some.restore(sess, path)
                now.update({name: kept[path]["other/" + name] for name in chosen})
            else:
                rng.choice(savers).restore(sess, path)
                now = dict(kept[path])
            for name, variable in variables.items():
                np.testing.assert_array_equal(sess.run(variable), now[name])
        for folder in tmp_path.iterdir():  # nothing is left of checkpoints that are gone
            for leaf in os.listdir(folder):
                name = leaf.partition(".shard-")[0]
                assert name == "checkpoint" or str(folder / name) in kept, leaf


OPTIMIZERS = {
    "GradientDescent": lambda: tn.train.GradientDescentOptimizer(0.1),
    "Momentum": lambda: tn.train.MomentumOptimizer(0.1, 0.9),
    "Adam": lambda: tn.train.AdamOptimizer(0.1), "Adagrad": lambda: tn.train.AdagradOptimizer(0.1),
    "RMSProp": lambda: tn.train.RMSPropOptimizer(0.1, momentum=0.5, centered=True),
    "Ftrl": lambda: tn.train.FtrlOptimizer(0.1),
    "Adadelta": lambda: tn.train.AdadeltaOptimizer(0.1),
    "ProximalGradientDescent": lambda: tn.train.ProximalGradientDescentOptimizer(0.1),
    "ProximalAdagrad": lambda: tn.train.ProximalAdagradOptimizer(0.1),
}


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_a_training_that_goes_on_has_the_same_bits(name, tmp_path, rng):
    """With slots, moving averages and the global step in the checkpoint."""
    data = rng.rand(8, 5, 3).astype(np.float32)

    def build():
        x = tn.placeholder(tn.float32, [5, 3])
        with tn.device("/cpu:1"):
            w = tn.get_variable("w", [3, 4], partitioner=tn.fixed_size_partitioner(2),
                                initializer=tn.random_uniform_initializer(seed=1))
        b = tn.get_variable("b", [4], initializer=tn.ones_initializer())
        loss = tn.reduce_sum(tn.square(tn.matmul(x, w) + b))
        step = tn.train.get_or_create_global_step()
        optimizer = OPTIMIZERS[name]()
        update = optimizer.minimize(loss, global_step=step)
        averages = tn.train.ExponentialMovingAverage(0.5, step)
        with tn.control_dependencies([update]):
            train = averages.apply()
        own = [v for v in tn.global_variables()]
        assert {v.op.name for v in optimizer.variables()} <= {v.op.name for v in own}
        return x, train, own, averages, w
    x, train, own, _, _ = build()
    saver = tn.train.Saver(sharded=True)
    with session() as sess:
        sess.run(tn.global_variables_initializer())
        for batch in data[:4]:
            sess.run(train, {x: batch})
        path = saver.save(sess, str(tmp_path / "model"))
        for batch in data[4:]:
            sess.run(train, {x: batch})
        wanted = sess.run(own)
    with tn.Graph().as_default(), session() as sess:
        x, train, own, averages, w = build()
        tn.train.Saver().restore(sess, path)
        for batch in data[4:]:
            sess.run(train, {x: batch})
        for a, b in zip(sess.run(own), wanted):
            np.testing.assert_array_equal(a, b)
        tn.train.Saver(averages.variables_to_restore()).restore(sess, path)
        whole = tn.train.load_checkpoint(path)
        np.testing.assert_array_equal(sess.run(w),
                                      whole.get_tensor("w/ExponentialMovingAverage"))
        np.testing.assert_array_equal(sess.run("b:0"),
                                      whole.get_tensor("b/ExponentialMovingAverage"))


def test_threads_that_save_at_once(tmp_path):
    with tn.device("/cpu:1"):
        v = tn.get_variable("v", [100], initializer=tn.zeros_initializer())
    step = tn.train.get_or_create_global_step()
    advance = tn.group(v.assign_add(tn.ones([100])), step.assign_add(1))
    saver = tn.train.Saver(sharded=True, max_to_keep=4)
    path = str(tmp_path / "model")
    with session() as sess:
        sess.run(tn.global_variables_initializer())
        numbers, lock = iter(range(1000)), threading.Lock()

        def work():
            for _ in range(8):
                with lock:
                    number = next(numbers)
                sess.run(advance)
                saver.save(sess, path, number)
        with Threads() as threads:
            for _ in range(3):
                threads.start(work)
        assert len(saver.last_checkpoints) == 4
        state = tn.train.get_checkpoint_state(str(tmp_path))
        assert sorted(state.all_model_checkpoint_paths) == sorted(saver.last_checkpoints)
        for name in saver.last_checkpoints:
            value = tn.train.load_variable(name, "v")
            assert value.shape == (100,) and len(set(value)) == 1
        assert len(os.listdir(tmp_path)) == 1 + 4 * 3


def test_a_fork_saves_by_itself(tmp_path):
    with tn.device("/cpu:1"):
        tn.get_variable("v", [10], initializer=tn.ones_initializer())
    tn.get_variable("w", [10], initializer=tn.ones_initializer())
    saver = tn.train.Saver(sharded=True)
    with session() as sess:
        sess.run(tn.global_variables_initializer())
        first = saver.save(sess, str(tmp_path / "model"), 1)
        pid = os.fork()
        if not pid:
            status = 1
            try:
                saver.save(sess, str(tmp_path / "child"), 1)
                saver.restore(sess, first)
                status = 0
            finally:
                os._exit(status)
        saver.save(sess, str(tmp_path / "model"), 2)
        assert os.waitpid(pid, 0)[1] == 0
    for name in ("model-1", "model-2", "child-1"):
        assert tn.train.load_variable(str(tmp_path / name), "v").tolist() == [1.0] * 10
