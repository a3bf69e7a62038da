# SPDX-License-Identifier: Apache-2.0
"""tn.distribute's strategies of one process. What a strategy trains has the bits of the same split
written out by hand: a part of the batch for each replica, gradients added in their order."""

import numpy as np
import pytest

import treenail as tn

D = tn.distribute
CPUS = ["/cpu:0", "/cpu:1", "/cpu:2"]


def config():
    return tn.ConfigProto(device_count={"CPU": 3})


def data(replicas, seed=0):
    random = np.random.RandomState(seed)
    images = random.randn(replicas, 8, 6).astype(np.float32)
    return images, random.randint(0, 3, (replicas, 8))


OPTIMIZERS = {
    "sgd": lambda: tn.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tn.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: tn.train.AdamOptimizer(0.01),
    "adagrad": lambda: tn.train.AdagradOptimizer(0.1),
    "rmsprop": lambda: tn.train.RMSPropOptimizer(0.01, momentum=0.9),
}


def model(x):
    def begin(seed):  # that does not depend on how many operations there are
        return tn.glorot_uniform_initializer(seed=seed)
    hidden = tn.layers.dense(x, 5, activation=tn.nn.tanh, name="hidden",
                             kernel_initializer=begin(1))
    return tn.layers.dense(hidden, 3, name="out", kernel_initializer=begin(2))


def share(x, y, replicas):
    losses = tn.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(x))
    return tn.reduce_sum(losses) / (8.0 * replicas)


def by_hand(optimizer, replicas, steps=4):
    """The final variables by name, and the losses."""
    images, labels = data(replicas)
    with tn.Graph().as_default():
        tn.set_random_seed(7)
        opt, step = OPTIMIZERS[optimizer](), tn.train.get_or_create_global_step()
        shares, gradients = [], []
        for i in range(replicas):
            with tn.variable_scope(tn.get_variable_scope(), reuse=i > 0):
                shares.append(share(images[i], labels[i], replicas))
            gradients.append(tn.gradients(shares[-1], tn.trainable_variables()))
        totals = []
        for several in zip(*gradients):
            total = several[0]
            for one in several[1:]:
                total = total + one
            totals.append(total)
        train = opt.apply_gradients(list(zip(totals, tn.trainable_variables())), step)
        loss = shares[0]
        for one in shares[1:]:
            loss = loss + one
        return trained(train, loss, steps)


def trained(train, loss, steps):
    with tn.Session(config=config()) as session:
        session.run(tn.global_variables_initializer())
        losses = [session.run([loss, train])[0] for _ in range(steps)]
        values = session.run({v.name: v for v in tn.global_variables()})
    return values, losses


def by_strategy(strategy, optimizer, replicas, steps=4):
    images, labels = data(replicas)
    with tn.Graph().as_default():
        tn.set_random_seed(7)
        with strategy.scope():
            step = tn.train.get_or_create_global_step()
            opt = OPTIMIZERS[optimizer]()

            def replica_fn(x, y):
                loss = share(x, y, replicas)
                return loss, opt.minimize(loss, global_step=step)
            parts = strategy.experimental_distribute_values_from_function(
                lambda context: (images[context.replica_id_in_sync_group],
                                 labels[context.replica_id_in_sync_group]))
            losses, train = strategy.experimental_run_v2(replica_fn, args=parts)
            loss = strategy.reduce(D.ReduceOp.SUM, losses, axis=None)
        assert isinstance(train, tn.Operation)
        values = trained(train, loss, steps)
        mirrored = [v for v in tn.global_variables() if len(getattr(v, "values", ())) > 1]
        with tn.Session(config=config()) as session:
            session.run(tn.global_variables_initializer())
            session.run(train)
            for variable in mirrored:
                copies = session.run(list(variable.values))
                for copy in copies[1:]:
                    np.testing.assert_array_equal(copies[0], copy)
    return values


def assert_same(got, wanted):
    assert got[1] == wanted[1]
    assert set(got[0]) == set(wanted[0])
    for name, value in wanted[0].items():
        np.testing.assert_array_equal(got[0][name], value, err_msg=name)


@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
@pytest.mark.parametrize("replicas", [2, 3])
def test_a_mirrored_model_has_the_bits_of_the_same_split_by_hand(optimizer, replicas):
    assert_same(by_strategy(D.MirroredStrategy(CPUS[:replicas]), optimizer, replicas),
                by_hand(optimizer, replicas))


@pytest.mark.parametrize("strategy", [lambda: D.OneDeviceStrategy("/cpu:1"), D.MirroredStrategy,
                                      D.Strategy, lambda: D.ParameterServerStrategy()])
def test_a_strategy_of_one_replica_is_training_without_one(strategy, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert_same(by_strategy(strategy(), "adam", 1), by_hand("adam", 1))


def test_checkpoints_go_from_one_device_to_replicas_and_back(tmp_path):
    def build(strategy):
        tn.set_random_seed(3)
        with strategy.scope():
            opt = tn.train.MomentumOptimizer(0.1, 0.9)

            def replica_fn():
                x = np.full([2, 4], 1.0 + D.get_replica_context().replica_id_in_sync_group)
                return opt.minimize(tn.reduce_sum(tn.layers.dense(x.astype(np.float32), 2)))
            return strategy.run(replica_fn)

    def step(strategy, restore, save):
        with tn.Graph().as_default(), tn.Session(config=config()) as session:
            train, saver = build(strategy), tn.train.Saver()
            session.run(tn.global_variables_initializer())
            if restore:
                saver.restore(session, restore)
            before = session.run(tn.global_variables())
            session.run(train)
            path = saver.save(session, str(tmp_path / save))
            return path, before, session.run(tn.global_variables()), \
                [session.run(list(v.values)) for v in tn.global_variables() if hasattr(v, "values")]
    first, _, after_one, _ = step(D.Strategy(), None, "one")
    second, before, after_two, copies = step(D.MirroredStrategy(CPUS[:2]), first, "two")
    np.testing.assert_equal(before, after_one)
    for of_one in copies:
        np.testing.assert_array_equal(of_one[0], of_one[1])
    _, before, _, _ = step(D.Strategy(), second, "three")
    np.testing.assert_equal(before, after_two)


def test_replicas_know_themselves_and_meet():
    strategy = D.MirroredStrategy(CPUS)
    assert D.get_replica_context().num_replicas_in_sync == 1 and not D.has_strategy()
    seen = []
    with tn.Graph().as_default(), tn.Session(config=config()) as session:
        def replica_fn(x):
            context = D.get_replica_context()
            assert not D.in_cross_replica_context() and D.get_strategy() is strategy
            mean = context.all_reduce(D.ReduceOp.MEAN, x)
            total = context.all_reduce("sum", {"a": x * 2.0})
            merged = context.merge_call(lambda s, v: (seen.append(v), s.reduce("SUM", v))[1],
                                        args=(x,))
            gradient = tn.gradients(total["a"] * (1.0 + context.replica_id_in_sync_group), x)[0]
            return {"mean": mean, "total": total["a"], "merged": merged, "gradient": gradient,
                    "device": x.device}
        with strategy.scope():
            assert D.in_cross_replica_context() and D.get_replica_context() is None
            given = strategy.experimental_distribute_values_from_function(
                lambda c: float(c.replica_id_in_sync_group + 1))
            got = strategy.run(lambda x: replica_fn(tn.constant(x)), args=(given,))
        devices = strategy.experimental_local_results(got.pop("device"))
        assert [d[-1] for d in devices] == ["0", "1", "2"]
        values = session.run({k: list(strategy.experimental_local_results(v))
                              for k, v in got.items()})
    assert values == {"mean": [2.0] * 3, "total": [12.0] * 3, "merged": [6.0],
                      "gradient": [12.0] * 3}  # (1 + 2 + 3) * 2
    assert len(seen) == 1 and len(seen[0].values) == 3


def test_what_replicas_assign_is_aggregated():
    strategy = D.MirroredStrategy(CPUS[:2])
    with tn.Graph().as_default(), tn.Session(config=config()) as session:
        with strategy.scope():
            made = {how: tn.Variable(1.0, aggregation=how, name=how) for how in (
                "SUM", "MEAN", "ONLY_FIRST_REPLICA")}
            plain = tn.Variable(1.0, name="plain")
            own = tn.Variable(0.0, synchronization=tn.VariableSynchronization.ON_READ,
                              aggregation=tn.VariableAggregation.SUM, name="own")

            def replica_fn():
                number = D.get_replica_context().replica_id_in_sync_group
                done = [v.assign_add(1.0 + number) for v in made.values()]
                done.append(own.assign_add(10.0 ** number))
                return done
            written = strategy.run(replica_fn)
            with pytest.raises(ValueError, match="You must specify an aggregation method"):
                strategy.run(lambda: plain.assign(2.0))
            across = plain.assign_add(5.0)
        session.run(tn.global_variables_initializer())
        session.run([strategy.experimental_local_results(w) for w in written])
        assert session.run(list(made.values())) == [4.0, 2.5, 2.0]
        assert session.run(list(made["SUM"].values)) == [4.0, 4.0]
        assert session.run(own) == 11.0 and session.run(list(own.values)) == [1.0, 10.0]
        assert session.run(across) == 6.0 and session.run(list(plain.values)) == [6.0, 6.0]
        plain.load(9.0, session)
        assert session.run(list(plain.values)) == [9.0, 9.0]


def test_sparse_gradients_are_joined():
    strategy = D.MirroredStrategy(CPUS[:2])
    with tn.Graph().as_default(), tn.Session(config=config()) as session:
        with strategy.scope():
            table = tn.get_variable("table", initializer=np.ones([4, 2], np.float32))

            def replica_fn():
                number = D.get_replica_context().replica_id_in_sync_group
                rows = tn.nn.embedding_lookup(table, [number, 3])
                return tn.train.GradientDescentOptimizer(1.0).minimize(tn.reduce_sum(rows))
            train = strategy.run(replica_fn)
        session.run(tn.global_variables_initializer())
        session.run(train)
        wanted = [[0, 0], [0, 0], [1, 1], [-1, -1]]
        for copy in session.run(list(table.values)):
            np.testing.assert_array_equal(copy, wanted)


def test_reduce_takes_axes_and_refuses_what_it_cannot_mean():
    strategy = D.MirroredStrategy(CPUS[:2])
    with tn.Graph().as_default(), tn.Session(config=config()) as session:
        ragged = strategy.experimental_distribute_values_from_function(
            lambda c: tn.constant([[1.0, 2.0]] if c.replica_id_in_sync_group else
                                  [[3.0, 4.0], [5.0, 6.0]]))
        assert session.run(strategy.reduce("MEAN", ragged, axis=0)).tolist() == [3.0, 4.0]
        assert session.run(strategy.reduce("SUM", ragged, axis=0)).tolist() == [9.0, 12.0]
        assert session.run(strategy.reduce("MEAN", tn.constant(3.0), axis=None)) == 3.0
        with pytest.raises(ValueError, match="cannot be reduced with the given reduce op SUM"):
            strategy.reduce("SUM", tn.constant(3.0))
        with pytest.raises(ValueError, match="ReduceOp.SUM or MEAN, not 'MAX'"):
            strategy.reduce("MAX", ragged)


def test_batch_normalization_averages_over_replicas():
    images, _ = data(2)

    def moved(strategy):
        with tn.Graph().as_default(), tn.Session(config=config()) as session:
            with strategy.scope():
                def replica_fn(x):
                    y = tn.layers.batch_normalization(x, training=True, momentum=0.5)
                    with tn.control_dependencies(tn.get_collection(tn.GraphKeys.UPDATE_OPS)):
                        return tn.train.GradientDescentOptimizer(0.1).minimize(tn.reduce_sum(y * y))
                train = strategy.run(replica_fn, args=(
                    strategy.experimental_distribute_values_from_function(
                        lambda c: images[c.replica_id_in_sync_group]),))
            session.run(tn.global_variables_initializer())
            session.run(train)
            return session.run({v.name: v for v in tn.global_variables()})
    got = moved(D.MirroredStrategy(CPUS[:2]))
    mean = images.mean(axis=1)
    np.testing.assert_allclose(got["batch_normalization/moving_mean:0"],
                               0.5 * (mean[0] + mean[1]) / 2, rtol=1e-5)


def test_wrong_calls_say_what_is_needed():
    strategy = D.MirroredStrategy(CPUS[:2])
    with tn.Graph().as_default():
        with strategy.scope():
            w = tn.get_variable("w", [2])
            opt = tn.train.GradientDescentOptimizer(0.1)
            with pytest.raises(RuntimeError, match="called in a replica"):
                opt.minimize(tn.reduce_sum(w))
            with pytest.raises(RuntimeError, match="Mixing different"):
                D.MirroredStrategy().scope().__enter__()

            def uneven():
                context = D.get_replica_context()
                if context.replica_id_in_sync_group == 0:
                    context.merge_call(lambda strategy: None)
            with pytest.raises(ValueError, match="merge_call"):
                strategy.run(uneven)

            def failing():
                if D.get_replica_context().replica_id_in_sync_group == 1:
                    raise KeyError("mine")
                opt.minimize(tn.reduce_sum(w))
            with pytest.raises(KeyError, match="mine"):
                strategy.run(failing)

            def other_variables():
                number = D.get_replica_context().replica_id_in_sync_group
                return tn.Variable(1.0, name="v%d" % number)
            with pytest.raises(ValueError, match="that replica 0 has not made"):
                strategy.run(other_variables)
            with pytest.raises(RuntimeError, match="cannot be called within one"):
                strategy.run(lambda: strategy.run(lambda: None))
        assert not D.has_strategy()
    with pytest.raises(ValueError, match="names '/cpu:0' twice"):
        D.MirroredStrategy(["/cpu:0", "cpu:0"])
    with pytest.raises(NotImplementedError, match="no tn.data yet"):
        strategy.experimental_distribute_dataset(None)
    with pytest.raises(ValueError, match="Invalid variable aggregation mode: 'MAX'"):
        tn.Variable(1.0, aggregation="MAX")


def test_layers_and_scopes_are_named_as_without_replicas():
    def names(strategy):
        with tn.Graph().as_default():
            tn.layers.dense(tn.ones([1, 2]), 1)
            with strategy.scope(), tn.variable_scope("tower", reuse=tn.AUTO_REUSE):
                def replica_fn():
                    x = tn.layers.dense(tn.layers.dense(tn.ones([2, 3]), 4), 2)
                    return x + tn.Variable(1.0) + tn.Variable(2.0, name="bias")
                strategy.run(replica_fn)
                tn.layers.dense(tn.ones([1, 2]), 1)
            tn.layers.dense(tn.ones([1, 2]), 1)
            return [v.name for v in tn.global_variables()]
    assert names(D.MirroredStrategy(CPUS)) == names(D.Strategy())


def test_ways_to_reduce_are_taken_and_change_nothing():
    for ops in (D.CrossDeviceOps(), D.ReductionToOneDevice(), D.HierarchicalCopyAllReduce(2),
                D.NcclAllReduce()):
        assert isinstance(ops, D.CrossDeviceOps)
        assert D.MirroredStrategy(CPUS[:2], cross_device_ops=ops).num_replicas_in_sync == 2
    with pytest.raises(TypeError, match="cross_device_ops must be a tn.distribute.CrossDeviceOps"):
        D.MirroredStrategy(CPUS[:2], cross_device_ops="nccl")
    with pytest.raises(ValueError, match="communication must be AUTO, RING or NCCL"):
        D.MultiWorkerMirroredStrategy("UCX")
    with pytest.raises(ValueError, match="needed is None"):
        D.ReductionToOneDevice("/cpu:0")
    with pytest.raises(ValueError, match="num_packs is -1"):
        D.NcclAllReduce(-1)
    ways = D.experimental.CollectiveCommunication
    assert [ways.AUTO, ways.RING, ways.NCCL] == ["AUTO", "RING", "NCCL"]
