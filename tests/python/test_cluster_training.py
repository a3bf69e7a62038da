# SPDX-License-Identifier: Apache-2.0
"""Training over parameter servers that goes on when one of them is killed."""

import numpy as np
import pytest

import treenail as tn
from cluster_processes import Cluster

pytestmark = pytest.mark.skipif(
    not {"grpc", "hdf5"} <= set(tn.build_info()["features"]),
    reason="this build has no gRPC, or no checkpoints")
STEPS, KILLED_AT = 100, 57


class KillOnce(tn.train.SessionRunHook):
    """Kills a parameter server after a step, and starts it anew."""

    def __init__(self, cluster, step):
        self.cluster, self.step, self.killed = cluster, step, 0

    def before_run(self, run_context):
        return tn.train.SessionRunArgs(self.step)

    def after_run(self, run_context, run_values):
        if not self.killed and run_values.results >= KILLED_AT:
            self.killed = run_values.results
            self.cluster.kill("ps", 1)
            self.cluster.start("ps", 1)
            self.cluster.wait("ps", 1)


def network():
    """(training step, global step, weights after it) on fixed examples."""
    tn.set_random_seed(2)
    rng = np.random.RandomState(0)
    x, y = tn.constant(rng.randn(16, 8).astype(np.float32)), tn.constant(np.arange(16) % 3)
    step = tn.train.get_or_create_global_step()
    hidden = tn.layers.dense(tn.nn.dropout(x, keep_prob=0.8, seed=4), 6, activation=tn.nn.tanh)
    loss = tn.losses.sparse_softmax_cross_entropy(y, tn.layers.dense(hidden, 3))
    train = tn.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step)
    with tn.control_dependencies([train]):
        return train, step, [v.read_value() for v in tn.trainable_variables()]


def trained(scaffold=None, **arguments):
    """The last weights and the number of steps made."""
    train, step, weights = network()
    hooks = [tn.train.StopAtStepHook(last_step=STEPS), *arguments.pop("hooks", lambda _: [])(step)]
    made, last = 0, None
    with tn.train.MonitoredTrainingSession(hooks=hooks, log_step_count_steps=None,
                                           **arguments) as session:
        while not session.should_stop():
            last = session.run([train, weights])[1]
            made += 1
    return last, made


def test_a_killed_parameter_server_costs_the_steps_since_the_checkpoint(tmp_path):
    with Cluster(ps=2, worker=1) as cluster:
        spec = tn.train.ClusterSpec(cluster.spec)
        killer = []

        def hooks(step):
            killer.append(KillOnce(cluster, step))
            return killer
        with tn.Graph().as_default(), tn.device(tn.train.replica_device_setter(cluster=spec)):
            found, made = trained(master=cluster.target("worker"), checkpoint_dir=str(tmp_path),
                                  save_checkpoint_steps=10, hooks=hooks)
    assert killer[0].killed == KILLED_AT
    assert STEPS < made <= STEPS + 12
    assert all(np.isfinite(each).all() for each in found)
    with tn.Graph().as_default():
        reader = tn.train.load_checkpoint(str(tmp_path))
        assert reader.get_tensor("global_step") == STEPS
        saved = reader.get_tensor("dense/kernel")
    assert (saved == found[0]).all()


def test_servers_train_with_the_bits_of_one_process(tmp_path):
    with tn.Graph().as_default():
        expected, _ = trained()
    with Cluster(ps=2, worker=1) as cluster:
        spec = tn.train.ClusterSpec(cluster.spec)
        with tn.Graph().as_default(), tn.device(tn.train.replica_device_setter(cluster=spec)):
            found, made = trained(master=cluster.target("worker"))
    assert made == STEPS
    assert all((a == b).all() for a, b in zip(expected, found))
