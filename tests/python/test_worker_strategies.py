# SPDX-License-Identifier: Apache-2.0
"""tn.distribute's strategies over several processes: bits of the same training by hand in one
process, over gRPC and over shared memory; variables on parameter servers."""

import numpy as np
import pytest

import process_group
import treenail as tn
from cluster_processes import Cluster
from test_strategies import assert_same, by_hand, share

D = tn.distribute
needs_grpc = pytest.mark.skipif("grpc" not in tn.build_info()["features"],
                                reason="this build has no gRPC")

WORKER = """
from test_strategies import by_strategy
join()
D = tn.distribute
strategy = D.MultiWorkerMirroredStrategy()
found = {name: by_strategy(strategy, name, size) for name in ("sgd", "adam")}
found["is"] = (strategy.num_replicas_in_sync, strategy.extended.should_checkpoint,
               tn.distributed.transport())
with tn.Graph().as_default(), tn.Session() as session, strategy.scope():
    begun = tn.Variable(10.0 + rank, name="begun", aggregation=tn.VariableAggregation.SUM)
    first = tn.Variable(0.0, name="first", aggregation="ONLY_FIRST_REPLICA")
    table = tn.get_variable("table", initializer=np.ones([3, 2], np.float32))

    def replica_fn():
        number = D.get_replica_context().replica_id_in_sync_group
        rows = tn.nn.embedding_lookup(table, [number, 2])
        return [begun.assign_add(1.0 + number), first.assign(5.0 + number),
                tn.train.GradientDescentOptimizer(1.0).minimize(tn.reduce_sum(rows))]
    written = strategy.run(replica_fn)
    mean = strategy.reduce("MEAN", tn.constant(1.0 + rank), axis=None)
    session.run(tn.global_variables_initializer())
    start = session.run(begun)
    session.run(written)
    found["aggregated"] = start, session.run([begun, first]), session.run(mean)
    found["sparse"] = session.run(table).tolist()
leave(found)
"""


@pytest.mark.parametrize("transport", [pytest.param("grpc", marks=needs_grpc), "shared_memory"])
def test_workers_have_the_bits_of_one_process(tmp_path, transport):
    environment = process_group.by_grpc(2) if transport == "grpc" else {}
    results = process_group.run(tmp_path, WORKER, 2, environment)
    for rank, found in enumerate(results):
        assert found["is"] == (2, rank == 0, transport)
        for name in ("sgd", "adam"):
            assert_same(found[name], by_hand(name, 2))
        assert found["aggregated"] == (10.0, [13.0, 5.0], 1.5)
        assert found["sparse"] == [[0.0, 0.0], [0.0, 0.0], [-1.0, -1.0]]


@needs_grpc
def test_workers_at_parameter_servers_move_one_model():
    images = np.random.RandomState(3).randn(2, 8, 6).astype(np.float32)
    labels = np.random.RandomState(4).randint(0, 3, (2, 8))

    def build(strategy, worker):
        with strategy.scope():
            step = tn.train.get_or_create_global_step()
            opt = tn.train.MomentumOptimizer(0.1, 0.9)

            def replica_fn():
                loss = share(images[worker], labels[worker], 1)
                return opt.minimize(loss, global_step=step)
            return strategy.run(replica_fn)

    def values(session):
        return session.run({v.name: v for v in tn.global_variables()})
    with Cluster(ps=2, worker=2) as cluster:
        sessions, trains = [], []
        for worker in range(2):
            resolver = D.cluster_resolver.SimpleClusterResolver(
                cluster.spec, task_type="worker", task_id=worker)
            with tn.Graph().as_default() as graph:
                strategy = D.ParameterServerStrategy(resolver)
                assert strategy.num_replicas_in_sync == 1
                assert strategy.extended.experimental_should_init is (worker == 0)
                trains.append(build(strategy, worker))
                places = [v.device for v in tn.global_variables()]
                assert {p[:13] for p in places} == {"/job:ps/task:"}
                assert len(set(places)) == 2
                sessions.append(tn.Session(resolver.master(), graph=graph))
                if worker == 0:
                    sessions[0].run(tn.global_variables_initializer())
        for worker in (0, 1, 1, 0, 1):
            sessions[worker].run(trains[worker])
        with sessions[0].graph.as_default():
            got = values(sessions[0])
        for session in sessions:
            session.close()
    with tn.Graph().as_default(), tn.Session() as session:
        with tn.variable_scope(tn.get_variable_scope(), reuse=tn.AUTO_REUSE):
            opt, step = tn.train.MomentumOptimizer(0.1, 0.9), tn.train.get_or_create_global_step()
            alone = [opt.minimize(share(images[i], labels[i], 1), global_step=step)
                     for i in range(2)]
        session.run(tn.global_variables_initializer())
        for worker in (0, 1, 1, 0, 1):
            session.run(alone[worker])
        wanted = values(session)
    assert_same((got, 0), (wanted, 0))


def test_variables_are_dealt_by_bytes_and_tasks_are_checked(monkeypatch):
    cluster = {"ps": ["a:1", "b:1"], "worker": ["c:1"], "chief": ["d:1"]}

    def resolver(job, index):
        return D.cluster_resolver.SimpleClusterResolver(cluster, task_type=job, task_id=index)
    greedy = tn.train.GreedyLoadBalancingStrategy(2, tn.train.byte_size_load_fn)
    strategy = D.experimental.ParameterServerStrategy(resolver("chief", 0), greedy)
    with tn.Graph().as_default(), strategy.scope():
        made = [tn.get_variable("v%d" % i, [size]) for i, size in enumerate((100, 10, 10, 100))]
        assert [v.device[-1] for v in made] == ["0", "1", "1", "1"]
        seen = strategy.run(lambda: tn.constant(1.0).device)
        assert seen == "/job:chief/task:0"
    assert strategy.extended.parameter_devices == ("/job:ps/task:0", "/job:ps/task:1")
    assert strategy.extended.should_checkpoint
    assert not D.ParameterServerStrategy(resolver("worker", 0)).extended.should_checkpoint
    with pytest.raises(ValueError, match="task 1 of job 'ps' holds parameters"):
        D.ParameterServerStrategy(resolver("ps", 1))
    with pytest.raises(ValueError, match="this task is said to be None of job None"):
        D.ParameterServerStrategy(resolver(None, None))
