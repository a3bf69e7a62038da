# SPDX-License-Identifier: Apache-2.0
"""tn.distributed: joining by hand and by what launchers say, training on several processes as on
one, and processes that end. Collective operations themselves: test_collectives.py."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import process_group
import treenail as tn
from treenail.distributed import _launcher
from treenail.distributed._optimizer import buckets_of

MODEL = """
def model(images, labels):
    x, y = tn.constant(images), tn.constant(labels)
    w1 = tn.get_variable("w1", [8, 16], initializer=tn.random_normal_initializer(seed=rank + 1))
    w2 = tn.get_variable("w2", [16, 3], initializer=tn.random_normal_initializer(seed=rank + 2))
    hidden = tn.nn.relu(tn.matmul(x, w1))
    return tn.losses.sparse_softmax_cross_entropy(labels=y, logits=tn.matmul(hidden, w2))

random = np.random.RandomState(5)
IMAGES = random.randn(24, 8).astype(np.float32)
LABELS = random.randint(0, 3, 24).astype(np.int64)
"""

TRAINING = MODEL + """
D = tn.distributed
join()
shard = slice(24 // size * rank, 24 // size * (rank + 1))
found = {}
for name, more in {"buckets": {}, "one each": {"bucket_bytes": 1},
                   "half": {"compression": "float16"},
                   "sum": {"reduction": "sum"}}.items():
    with tn.Graph().as_default(), tn.Session() as session:
        loss = model(IMAGES[shard], LABELS[shard])
        optimizer = D.DistributedOptimizer(tn.train.MomentumOptimizer(0.1, 0.9), **more)
        train = optimizer.minimize(loss)
        hook = D.BroadcastVariablesHook()
        hook.begin()
        session.run(tn.global_variables_initializer())
        hook.after_create_session(session, None)
        begun = session.run(tn.trainable_variables())
        for _ in range(5):
            session.run(train)
        found[name] = begun, session.run(tn.trainable_variables())
        found["slots"] = sorted(v.op.name for v in optimizer.variables())

with tn.Graph().as_default(), tn.Session() as session:
    table = tn.get_variable("table", [6, 2], initializer=tn.zeros_initializer())
    rows = tn.gather(table, tn.constant([rank, 2]))
    optimizer = D.DistributedOptimizer(tn.train.GradientDescentOptimizer(1.0))
    (gradient, _), = optimizer.compute_gradients(tn.reduce_sum(rows))
    train = optimizer.apply_gradients([(gradient, table)])
    session.run(tn.global_variables_initializer())
    session.run(train)
    found["sparse"] = session.run(table)

with tn.eager():
    v = tn.Variable([1.0, 2.0])
    optimizer = D.DistributedOptimizer(tn.train.GradientDescentOptimizer(0.5))
    optimizer.minimize(lambda: tn.reduce_sum(v * (rank + 1.0)), var_list=[v])
    found["eager"] = np.asarray(v.read_value())
leave(found)
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return process_group.run(tmp_path_factory.mktemp("trained"), TRAINING, 2)


def alone(begun, share):
    """The same training in one process: the mean of the parts' losses."""
    space = {"tn": tn, "np": np, "rank": 0}
    exec(MODEL, space)
    with tn.Graph().as_default(), tn.Session() as session:
        losses = []
        for part in range(2):
            with tn.variable_scope("m", reuse=part > 0):
                at = slice(12 * part, 12 * part + 12)
                losses.append(space["model"](space["IMAGES"][at], space["LABELS"][at]))
        loss = (losses[0] + losses[1]) * share
        train = tn.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
        session.run(tn.global_variables_initializer())
        for variable, value in zip(tn.trainable_variables(), begun):
            variable.load(value, session)
        for _ in range(5):
            session.run(train)
        return session.run(tn.trainable_variables())


@pytest.mark.parametrize("name, share, tolerance", [
    ("buckets", 0.5, 1e-5), ("one each", 0.5, 1e-5), ("sum", 1.0, 1e-5), ("half", 0.5, 2e-3)])
def test_two_processes_train_as_one(trained, name, share, tolerance):
    begun, ended = trained[0][name]
    for a, b in zip(begun + ended, trained[1][name][0] + trained[1][name][1]):
        assert a.tobytes() == b.tobytes()
    for got, wanted in zip(ended, alone(begun, share)):
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)
    assert trained[0]["slots"] == ["w1/Momentum", "w2/Momentum"]


def test_buckets_do_not_change_a_bit(trained):
    for a, b in zip(trained[0]["buckets"][1], trained[0]["one each"][1]):
        assert a.tobytes() == b.tobytes()


def test_sparse_gradients_are_gathered(trained):
    for found in trained:
        np.testing.assert_array_equal(found["sparse"], -np.array(
            [[0.5] * 2, [0.5] * 2, [1.0] * 2] + [[0.0] * 2] * 3))


def test_immediate_training(trained):
    for found in trained:
        np.testing.assert_array_equal(found["eager"], [0.25, 1.25])


def test_buckets_follow_dtype_and_size():
    with tn.Graph().as_default():
        f, d = tn.zeros([10]), tn.zeros([10], tn.float64)
        some = [f, None, d, f, tn.IndexedSlices(f, tn.constant([1]), None), f, d]
        assert buckets_of(some, 1) == [[6], [5], [3], [2], [0]]
        assert buckets_of(some, 80) == [[6], [5, 3], [2], [0]]
        assert buckets_of(some, 1000) == [[6, 2], [5, 3, 0]]
        unknown = tn.placeholder(tn.float32, [None])
        assert buckets_of([f, unknown, f], 1000) == [[2, 0], [1]]


def test_arguments_of_the_optimizer_are_checked():
    inner = tn.train.GradientDescentOptimizer(0.1)
    for more, words in (({"reduction": "max"}, "'mean' or 'sum'"),
                        ({"compression": "int8"}, "needed is None"),
                        ({"bucket_bytes": 0}, "positive number of bytes")):
        with pytest.raises(ValueError, match=words):
            tn.distributed.DistributedOptimizer(inner, **more)
    with pytest.raises(TypeError, match="needed is an Optimizer"):
        tn.distributed.DistributedOptimizer(0.1)


LAUNCHED = [
    ({}, None),
    ({"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}, None),  # a batch script, no step
    ({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
      "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "77"}, (2, 4, 0, 2, "--77")),
    ({"PMI_SIZE": "2", "PMI_RANK": "1", "MPI_LOCALNRANKS": "2", "MPI_LOCALRANKID": "1"},
     (1, 2, 1, 2, "")),
    ({"SLURM_STEP_NUM_TASKS": "3", "SLURM_PROCID": "2", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "9",
      "SLURM_STEP_ID": "0"}, (2, 3, 1, None, "9-0")),
]


@pytest.mark.parametrize("environment, wanted", LAUNCHED)
def test_what_launchers_say(environment, wanted):
    found = _launcher.announced(environment)
    assert (found if wanted is None else found[1:]) == wanted


def test_what_launchers_say_wrongly():
    with pytest.raises(ValueError, match="PMI_RANK is 'x'; needed is a number"):
        _launcher.announced({"PMI_SIZE": "2", "PMI_RANK": "x"})
    with pytest.raises(ValueError, match=r"rank 2 \(PMI_RANK\) of 2 \(PMI_SIZE\)"):
        _launcher.announced({"PMI_SIZE": "2", "PMI_RANK": "2"})


JOINING = """
import sys
import treenail as tn
tn.distributed.init(join_timeout=20)
with tn.Session() as session:
    total = session.run(tn.distributed.all_reduce(tn.constant(tn.distributed.rank() + 1)))
print(tn.distributed.rank(), tn.distributed.size(), tn.distributed.transport(), total)
"""


def test_groups_by_treenails_own_variables(tmp_path):
    processes = [subprocess.Popen(
        [sys.executable, "-c", JOINING], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TREENAIL_RANK": str(rank), "TREENAIL_SIZE": "2",
             "TREENAIL_GROUP_DIRECTORY": str(tmp_path / "group")}) for rank in range(2)]
    assert [p.communicate(timeout=60)[0] for p in processes] == [
        "0 2 shared_memory 3\n", "1 2 shared_memory 3\n"]


def said(environment, program=JOINING):
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
                          env={**os.environ, **environment})
    return done.stdout


def test_a_process_alone_is_a_group_of_one():
    assert said({}) == "0 1 none 1\n"


def test_what_keeps_a_process_from_joining():
    own = {"TREENAIL_RANK": "0", "TREENAIL_SIZE": "2"}
    assert "TREENAIL_GROUP_DIRECTORY, where the ranks meet, is needed" in said(own)
    assert "TREENAIL_COLLECTIVE_TIMEOUT is 'soon'; needed" in said(
        {"TREENAIL_COLLECTIVE_TIMEOUT": "soon"})
    stated = "import treenail as tn; tn.distributed.init(%s)"
    assert "rank, size and directory belong together: given are 0, None and None" in said(
        {}, stated % "rank=0")
    assert "'tcp'; needed is one of 'auto'" in said({}, stated % "'tcp'")
    assert "state rank, size and directory" in said({}, stated % "'shared_memory'")
    before = "import treenail as tn; tn.distributed.rank()"
    assert "FailedPreconditionError" in said({}, before)


DYING = """
join(timeout=30)
group = tn.distributed
with tn.Graph().as_default(), tn.Session() as session:
    fetch = group.all_reduce(tn.constant([1.0]))
    session.run(fetch)
    open(os.path.join(where, "ready%d" % rank), "w").close()
    begin = time.time()
    if rank == 1:
        time.sleep(60)
    found = error_of(lambda: session.run(fetch)), time.time()
    with tn.Graph().as_default(), tn.Session() as other:
        cancelled = error_of(lambda: other.run(group.barrier(), options=None))
leave((found, cancelled))
"""


def test_a_killed_process_is_noticed_within_a_second(tmp_path):
    group = process_group.Group(tmp_path, DYING, 3)
    until = time.time() + 60
    while time.time() < until and not all(
            os.path.exists(str(tmp_path / ("ready%d" % rank))) for rank in range(3)):
        time.sleep(0.02)
    time.sleep(0.2)
    killed = time.time()
    group.processes[1].send_signal(signal.SIGKILL)
    results = group.wait()
    for rank in (0, 2):
        ((kind, text), noticed), (later, _) = results[rank]
        assert kind == "UnavailableError" and "rank 1 (process " in text, group.outputs[rank]
        assert noticed - killed < 1
        assert later == "UnavailableError"


TIMING = """
join(timeout=1.0)
D = tn.distributed

def told(name):
    open(os.path.join(where, name), "w").close()

def await_file(name):
    until = time.time() + 30
    while time.time() < until and not os.path.exists(os.path.join(where, name)):
        time.sleep(0.01)

with tn.Graph().as_default(), tn.Session() as session:
    keyed = D.all_reduce(tn.constant([1.0 + rank]), key="k")
    found = []
    if rank == 0:
        found.append(error_of(lambda: session.run(keyed)))  # nobody else comes
        options = tn.RunOptions(timeout_in_ms=50)
        found.append(error_of(lambda: session.run(keyed, options=options)))
        told("gave up")
        await_file("caught up")
    else:
        await_file("gave up")
        session.run([keyed])
        session.run([keyed])
        told("caught up")
    found.append(session.run(keyed).tolist())
leave(found)
"""


def test_who_gives_up_has_given_its_part(tmp_path):
    first, second = process_group.run(tmp_path, TIMING, 2)
    assert first[0][0] == "DeadlineExceededError"
    assert "all_reduce 'k' (execution 0): rank 1 has not asked for it within 1 s" in first[0][1]
    assert first[1][0] == "DeadlineExceededError"
    assert first[2] == second[0] == [3.0]
