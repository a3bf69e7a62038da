# SPDX-License-Identifier: Apache-2.0
"""A program with Horovod's calls, on two processes."""

import numpy as np
import pytest

import process_group

PROGRAM = """
os.environ.update(TREENAIL_RANK=str(rank), TREENAIL_SIZE=str(size),
                  TREENAIL_GROUP_DIRECTORY=os.path.join(where, "group"))
import treenail.compat.horovod as hvd

hvd.init()
found = {"place": (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(),
                   hvd.is_initialized())}
with tn.Graph().as_default(), tn.Session() as session:
    x = tn.constant([1.0 + rank, 2.0])
    slices = tn.IndexedSlices(tn.constant([[1.0 + rank]]), tn.constant([rank]), None)
    gathered = hvd.allreduce(slices)
    found["values"] = session.run([
        hvd.allreduce(x), hvd.allreduce(x, average=False), hvd.allreduce(x, op=hvd.Sum),
        hvd.allreduce(x, compression=hvd.Compression.fp16),
        hvd.allreduce(tn.constant([3, 4 + rank])),
        hvd.allgather(x[:rank + 1]), hvd.broadcast(x, 1), gathered.values, gathered.indices])
    found["both"] = error_of(lambda: hvd.allreduce(x, average=True, op=hvd.Sum))
    found["comm"] = error_of(lambda: hvd.init(comm=[0]))
    found["passes"] = error_of(lambda: hvd.DistributedOptimizer(
        tn.train.AdamOptimizer(), backward_passes_per_step=2))

with tn.Graph().as_default():
    w = tn.get_variable("w", [2], initializer=tn.constant_initializer(float(rank)))
    step = tn.train.get_or_create_global_step()
    loss = tn.reduce_sum(w * (1.0 + rank))
    optimizer = hvd.DistributedOptimizer(tn.train.GradientDescentOptimizer(1.0),
                                         compression=hvd.Compression.fp16)
    train = optimizer.minimize(loss, global_step=step)
    hook = hvd.BroadcastGlobalVariablesHook(1)
    hook.begin()
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        hook.after_create_session(session, None)
        found["begun"] = session.run(w)
        session.run(train)
        found["stepped"] = session.run([w, step])
        session.run(hvd.broadcast_global_variables(0))
hvd.shutdown()
found["left"] = hvd.is_initialized()
leave(found)
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return process_group.run(tmp_path_factory.mktemp("horovod"), PROGRAM, 2)


def test_operations(results):
    for rank, found in enumerate(results):
        assert found["place"] == (rank, 2, rank, 2, True) and not found["left"]
        wanted = [[1.5, 2], [3, 4], [3, 4], [1.5, 2], [3, 4], [1, 1 + 1, 2], [2, 2],
                  [[0.5], [1.0]], [0, 1]]
        for got, right in zip(found["values"], wanted):
            np.testing.assert_array_equal(got, right)


def test_training(results):
    for found in results:
        np.testing.assert_array_equal(found["begun"], [1.0, 1.0])
        np.testing.assert_array_equal(found["stepped"][0], [-0.5, -0.5])
        assert found["stepped"][1] == 1


def test_what_is_not_served_is_said(results):
    for found in results:
        assert found["both"][0] == found["comm"][0] == found["passes"][0] == "ValueError"
        assert "supersedes average" in found["both"][1]
        assert "only 1 is served" in found["passes"][1]
