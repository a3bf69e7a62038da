# SPDX-License-Identifier: Apache-2.0
"""Clusters as data, and which server has which variable."""

import pytest

import treenail as tn

CLUSTER = {"ps": ["ps0:2222", "ps1:2222"], "worker": ["w0:2222", "w1:2222", "w2:2222"]}


def test_a_cluster():
    cluster = tn.train.ClusterSpec(CLUSTER)
    assert cluster.jobs == ["ps", "worker"] and cluster.as_dict() == CLUSTER
    assert cluster.num_tasks("worker") == 3 and cluster.task_indices("ps") == [0, 1]
    assert cluster.task_address("worker", 2) == "w2:2222"
    assert cluster.job_tasks("ps") == CLUSTER["ps"]
    assert cluster == tn.train.ClusterSpec(cluster) and cluster != tn.train.ClusterSpec({})
    assert hash(cluster) == hash(tn.train.ClusterSpec(CLUSTER))
    assert bool(cluster) and not tn.train.ClusterSpec({})
    assert eval(repr(cluster), {"ClusterSpec": tn.train.ClusterSpec}) == cluster


def test_a_cluster_with_tasks_missing():
    cluster = tn.train.ClusterSpec({"worker": {3: "d:1", 1: "b:1"}, "none": []})
    assert cluster.task_indices("worker") == [1, 3] and cluster.num_tasks("worker") == 2
    assert cluster.job_tasks("worker") == [None, "b:1", None, "d:1"]
    assert cluster.as_dict() == {"worker": {1: "b:1", 3: "d:1"}, "none": []}
    assert cluster.job_tasks("none") == []
    with pytest.raises(ValueError, match=r"No task with index 0 in job 'worker'; there are \[1, 3"):
        cluster.task_address("worker", 0)
    for call in (cluster.num_tasks, cluster.task_indices, cluster.job_tasks):
        with pytest.raises(ValueError, match="No such job in cluster: 'ps'"):
            call("ps")


@pytest.mark.parametrize("wrong", [
    3, ["a:1"], {3: ["a:1"]}, {"ps": "a:1"}, {"ps": [1]}, {"ps": {"0": "a:1"}}, {"ps": {-1: "a:1"}},
    {"ps": [""]}, {"": ["a:1"]}])
def test_what_is_no_cluster(wrong):
    with pytest.raises(TypeError, match="`cluster`"):
        tn.train.ClusterSpec(wrong)


def test_variables_go_to_servers_in_turn():
    with tn.device(tn.train.replica_device_setter(cluster=CLUSTER)):
        step = tn.train.get_or_create_global_step()
        x = tn.placeholder(tn.float32, [4, 3])
        loss = tn.reduce_mean(tn.layers.dense(tn.layers.dense(x, 5), 2))
        optimizer = tn.train.AdamOptimizer()
        train = optimizer.minimize(loss, global_step=step)
    own = [v for v in tn.global_variables() if "dense" in v.name and "Adam" not in v.name]
    assert [v.device for v in [step] + own] == ["/job:ps/task:%d" % (i % 2) for i in range(5)]
    for variable in own:  # slots are where their variable is
        for slot in optimizer.get_slot_names():
            assert optimizer.get_slot(variable, slot).device == variable.device
    graph = tn.get_default_graph()
    matmuls = [op for op in graph.get_operations() if op.type == "MatMul"]
    assert matmuls and {op.device for op in matmuls} == {"/job:worker"}
    for op in graph.get_operations():  # what works on a variable is where it is
        for tensor in op.inputs:
            if tensor.dtype == tn.resource:
                assert op.device == tensor.op.device, op
    assert train.device in ("/job:ps/task:0", "/job:worker")


def test_variables_go_where_the_fewest_bytes_are():
    strategy = tn.train.GreedyLoadBalancingStrategy(3, tn.train.byte_size_load_fn)
    sizes = [7, 3, 2, 2, 1, 5, 9, 1, 1]
    with tn.device(tn.train.replica_device_setter(3, ps_strategy=strategy)):
        made = [tn.Variable(tn.zeros([n], tn.float64)) for n in sizes]
    loads, wanted = [0, 0, 0], []
    for n in sizes:  # a plain second implementation
        best = min(range(3), key=lambda task: loads[task])
        loads[best] += 8 * n
        wanted.append("/job:ps/task:%d" % best)
    assert [v.device for v in made] == wanted


def test_what_an_operation_costs():
    load = tn.train.byte_size_load_fn
    assert load(tn.zeros([3, 5], tn.float16).op) == 30
    assert load(tn.Variable([["a", "b"]]).op) == 32
    assert load(tn.get_variable("v", [7, 2]).op) == 56
    with pytest.raises(ValueError, match="must be fully known"):
        load(tn.placeholder(tn.float32, [None, 2]).op)
    with pytest.raises(ValueError, match="must have an output"):
        load(tn.no_op())


def test_parts_are_spread_over_servers():
    with tn.device(tn.train.replica_device_setter(ps_tasks=3)):
        parts = tn.get_variable("p", [9, 2], partitioner=tn.fixed_size_partitioner(4))
    assert [part.device for part in parts] == ["/job:ps/task:%d" % i for i in (0, 1, 2, 0)]


def test_devices_that_are_asked_for():
    setter = tn.train.replica_device_setter(2, worker_device="/job:worker/task:1")
    with tn.device(setter), tn.device("/gpu:0"):
        assert tn.constant(1.0).device == "/job:worker/task:1/gpu:0"
        assert tn.Variable(tn.zeros([1])).device == "/job:ps/task:0/gpu:0"
    with tn.device(setter), tn.device("/job:ps/task:1"):
        assert tn.Variable(tn.zeros([1])).device == "/job:ps/task:1"
    alone = tn.train.replica_device_setter(2, merge_devices=False)
    with tn.device(alone), tn.device("/gpu:0"):
        assert tn.constant(1.0).device == "/gpu:0"
    assert tn.train.replica_device_setter() is None
    assert tn.train.replica_device_setter(cluster={"worker": ["a:1"]}) is None
    with tn.device(None):  # what it gives without servers
        assert tn.constant(1.0).device == ""


@pytest.mark.parametrize("given, says", [
    ({"ps_tasks": -1}, "ps_tasks"), ({"ps_tasks": 1, "ps_strategy": 3}, "ps_strategy"),
    ({"ps_tasks": 1, "ps_ops": "VarHandleOp"}, "ps_ops"), ({"cluster": 3}, "cluster"),
    ({"ps_tasks": 1, "ps_device": 7}, "device")])
def test_what_is_refused(given, says):
    with pytest.raises(TypeError, match=says):
        tn.train.replica_device_setter(**given)
