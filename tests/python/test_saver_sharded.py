# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in shards: what is in them, what is refused, and that none that was acknowledged is
lost or torn, however the process that saves ends."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest

import treenail as tn
from needs import needs_hdf5
from small_disk import small_disk

DEVICES = 3


pytestmark = needs_hdf5


def session():
    return tn.Session(config=tn.ConfigProto(device_count={"CPU": DEVICES}))


def variables():
    """One on each of three devices, and one in parts on two of them."""
    made = []
    for i in range(DEVICES):
        with tn.device("/cpu:%d" % i):
            made.append(tn.Variable(np.full((2, 3), i + 1.0, np.float32), name="v%d" % i))
    turns = iter([1, 2])
    with tn.device(lambda op: "/cpu:%d" % next(turns) if op.type == "VarHandleOp" else op.device):
        made.append(tn.get_variable("parts", [5, 2], partitioner=tn.fixed_size_partitioner(2),
                                    initializer=tn.random_normal_initializer(seed=3)))
    return made


def shards_of(path):
    folder, leaf = os.path.split(path)
    return sorted(name for name in os.listdir(folder) if name.startswith(leaf + ".shard-"))


def equal(got, wanted):
    for a, b in zip(got, wanted):
        np.testing.assert_array_equal(a, b)


def test_there_is_a_file_for_each_device_and_an_index(tmp_path):
    made = variables()
    saver = tn.train.Saver(sharded=True)
    with session() as sess:
        sess.run(tn.global_variables_initializer())
        values = sess.run(made)
        path = saver.save(sess, str(tmp_path / "model"), global_step=7)
        assert path == str(tmp_path / "model-7")
        names = shards_of(path)
        assert [name[-15:] for name in names] == ["-%05d-of-00003" % i for i in range(DEVICES)]
        assert sorted(os.listdir(tmp_path)) == ["checkpoint", "model-7"] + names
        held = [dict(tn.train.list_variables(str(tmp_path / name))) for name in names]
        assert [sorted(shard) for shard in held] == [["v0"], ["parts", "v1"], ["parts", "v2"]]
        assert dict(tn.train.list_variables(path)) == {
            "v0": [2, 3], "v1": [2, 3], "v2": [2, 3], "parts": [5, 2]}
        np.testing.assert_array_equal(tn.train.load_variable(path, "parts"), values[3])
        sess.run([v.assign(np.zeros(v.shape.as_list(), np.float32)) for v in made])
        saver.restore(sess, path)
        equal(sess.run(made), values)


def test_any_saver_restores_either_kind(tmp_path):
    made = variables()
    sharded, whole = tn.train.Saver(sharded=True), tn.train.Saver()
    some = tn.train.Saver({"v1": made[1], "parts": made[3]})
    with session() as sess:
        sess.run(tn.global_variables_initializer())
        values = sess.run(made)
        one, many = whole.save(sess, str(tmp_path / "one")), sharded.save(sess,
                                                                          str(tmp_path / "many"))
        for saver, path in ((sharded, one), (whole, many)):
            sess.run([v.assign(np.zeros(v.shape.as_list(), np.float32)) for v in made])
            saver.restore(sess, path)
            equal(sess.run(made), values)
        sess.run([v.assign(np.zeros(v.shape.as_list(), np.float32)) for v in made])
        some.restore(sess, many)
        got = sess.run(made)
        equal([got[1], got[3]], [values[1], values[3]])
        assert not got[0].any() and not got[2].any()


def test_parts_are_restored_into_another_number_of_parts(tmp_path):
    made = variables()
    with session() as sess:
        sess.run(tn.global_variables_initializer())
        wanted = sess.run(made[3])
        path = tn.train.Saver(sharded=True).save(sess, str(tmp_path / "model"))
    for count in (1, 3, 5):
        with tn.Graph().as_default(), tn.Session() as sess:
            again = tn.get_variable("parts", [5, 2],
                                    partitioner=tn.fixed_size_partitioner(count))
            tn.train.Saver(sharded=True).restore(sess, path)
            np.testing.assert_array_equal(sess.run(again), wanted)


def test_old_checkpoints_go_with_their_shards(tmp_path):
    variables()
    saver = tn.train.Saver(sharded=True, max_to_keep=2)
    with session() as sess:
        sess.run(tn.global_variables_initializer())
        paths = [saver.save(sess, str(tmp_path / "model"), step) for step in range(4)]
        assert saver.last_checkpoints == paths[2:]
        assert not shards_of(paths[0]) and not shards_of(paths[1])
        assert len(os.listdir(tmp_path)) == 1 + 2 * (DEVICES + 1)
        before = shards_of(paths[3])
        saver.save(sess, paths[3])  # again, under the same name
        assert len(shards_of(paths[3])) == DEVICES and not set(before) & set(shards_of(paths[3]))
        tn.train.Saver().save(sess, paths[3])  # in one file
        assert shards_of(paths[3]) == []
        tn.train.remove_checkpoint(paths[2])
        assert sorted(os.listdir(tmp_path)) == ["checkpoint", "model-3"]


def test_what_was_opened_stays_what_is_read(tmp_path):
    made = variables()
    saver = tn.train.Saver(sharded=True)
    with session() as sess:
        sess.run(tn.global_variables_initializer())
        path = saver.save(sess, str(tmp_path / "model"))
        reader = tn.train.load_checkpoint(path)
        sess.run(made[0].assign(np.full((2, 3), 9, np.float32)))
        saver.save(sess, path)
    assert reader.get_tensor("v0").tolist() == [[1.0] * 3] * 2
    assert tn.train.load_variable(path, "v0").tolist() == [[9.0] * 3] * 2


# --- What is refused ------------------------------------------------------------------------------


@pytest.fixture
def two_steps(tmp_path):
    """A session, its variables and values, a saver, and the paths of steps 1 and 2."""
    made = variables()
    saver = tn.train.Saver(sharded=True)
    with session() as sess:
        sess.run(tn.global_variables_initializer())
        first = saver.save(sess, str(tmp_path / "model"), 1)
        sess.run([v.assign(np.full(v.shape.as_list(), 5, np.float32)) for v in made])
        second = saver.save(sess, str(tmp_path / "model"), 2)
        yield sess, made, saver, first, second


def shard(path, number):
    return os.path.join(os.path.dirname(path), shards_of(path)[number])


def test_shards_without_an_index_are_no_checkpoint(two_steps):
    sess, _, saver, first, second = two_steps
    os.remove(second)
    assert not tn.train.checkpoint_exists(second)
    assert tn.train.latest_checkpoint(os.path.dirname(first)) == first
    with pytest.raises(ValueError, match="not a valid checkpoint"):
        saver.restore(sess, second)


@pytest.mark.parametrize("damage, says", [
    (lambda a, b: os.remove(a), "incomplete: its shard .* is missing"),
    (lambda a, b: shutil.copyfile(b, a), "not the shard that was saved with it"),
    (lambda a, b: os.truncate(a, os.path.getsize(a) - 7), "truncated"),
    (lambda a, b: os.truncate(a, 0), "empty"),
    (lambda a, b: _flip(a, 600), "checksum of its .* bytes is wrong"),
    (lambda a, b: _flip(a, os.path.getsize(a) - 3), "checksum of its .* bytes is wrong"),
    (lambda a, b: _flip(a, 20), "checksum of its first 512"),
], ids=["missing", "of another step", "truncated", "empty", "early bit", "late bit", "header"])
@pytest.mark.parametrize("number", range(DEVICES))
def test_a_shard_that_is_not_whole_is_found(two_steps, damage, says, number):
    sess, made, saver, first, second = two_steps
    damage(shard(second, number), shard(first, number))
    before = sess.run(made)
    sess.run([v.assign(np.full(v.shape.as_list(), 8, np.float32)) for v in made])
    with pytest.raises(tn.errors.DataLossError, match=says):
        saver.restore(sess, second)
    assert all((value == 8).all() for value in sess.run(made)), "some were restored"
    saver.restore(sess, first)
    assert all((value == 5).all() for value in before)


def _flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 4]))


def test_every_bit_of_an_index_is_checked(two_steps):
    path = two_steps[4]
    with open(path, "rb") as file:
        data = file.read()
    for at in list(range(0, 512, 31)) + list(range(512, len(data), 97)):
        _flip(path, at)
        with pytest.raises(tn.errors.OpError):
            tn.train.load_checkpoint(path)
        _flip(path, at)
    tn.train.load_checkpoint(path)


def test_the_merge_refuses_what_is_no_set_of_shards(two_steps, tmp_path):
    first, second = two_steps[3:]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def merged(files, path):
        tn.execute("MergeCheckpoints", [files, path], by_reference=True)
    for files, path, says in (
            ([shard(first, 0)], str(elsewhere / "m"), "must lie in the directory"),
            ([shard(first, 0), shard(second, 0)], str(tmp_path / "m"), "is saved twice"),
            ([shard(first, 1), shard(second, 1)], str(tmp_path / "m"), "saved twice|overlap"),
            ([first], str(tmp_path / "m"), "is an index itself"),
            ([str(tmp_path / "none")], str(tmp_path / "m"), "none"),
            (np.zeros(0, object), str(tmp_path / "m"), "no shards")):
        with pytest.raises(tn.errors.OpError, match=says):
            merged(np.array(files, object), path)
        assert not os.path.exists(path)


# --- However the process ends ---------------------------------------------------------------------

SAVING = r"""
import os, sys
import numpy as np
import treenail as tn
folder, sharded = sys.argv[1], sys.argv[2] == "sharded"
step = tn.placeholder(tn.float32, [])
made = []
for i in range(3):
    with tn.device("/cpu:%d" % i):
        made.append(tn.Variable(np.zeros((200, 500), np.float32), name="v%d" % i))
advance = tn.group(*[v.assign(tn.fill([200, 500], step)) for v in made])
saver = tn.train.Saver(sharded=sharded, max_to_keep=1)
with tn.Session(config=tn.ConfigProto(device_count={"CPU": 3})) as sess:
    at = 0
    latest = tn.train.latest_checkpoint(folder)
    if latest:
        saver.restore(sess, latest)
        saver.recover_last_checkpoints([latest])
        values = [np.unique(v) for v in sess.run(made)]
        assert all(len(v) == 1 and v[0] == values[0][0] for v in values), values
        at = int(values[0][0])
    print("begins", at, flush=True)
    while True:
        at += 1
        sess.run(advance, {step: at})
        saver.save(sess, os.path.join(folder, "model"), at)
        print("saved", at, flush=True)
"""


def begin_saving(folder, kind="sharded"):
    return subprocess.Popen([sys.executable, "-c", SAVING, str(folder), kind],
                            stdout=subprocess.PIPE, text=True)


def last_of(output, word):
    return [int(at) for at in re.findall(word + r" (\d+)\n", output)][-1]


@pytest.mark.parametrize("kind", ["sharded", "whole"])
def test_a_kill_at_any_moment_loses_nothing_acknowledged(tmp_path, kind):
    rng = random.Random(kind)
    saved = 0
    for turn in range(5):
        process = begin_saving(tmp_path, kind)
        first = process.stdout.readline()
        assert first.startswith("begins"), first
        begun = int(first.split()[1])
        assert saved <= begun <= saved + 1, "a step that was acknowledged is lost"
        time.sleep(rng.uniform(0.0, 0.12))
        process.send_signal(signal.SIGTERM if turn % 2 else signal.SIGKILL)
        output, _ = process.communicate(timeout=60)
        assert process.returncode < 0
        saved = last_of("saved %d\n" % begun + output, "saved")
    names = os.listdir(tmp_path)
    assert len(names) < 20, "what killed processes left is never removed: %s" % names


@pytest.fixture(name="disk")
def disk_fixture():
    folder = tempfile.mkdtemp()
    try:
        with small_disk(folder, "400k"):
            yield folder
    finally:
        os.rmdir(folder)


def test_a_full_disk_leaves_the_checkpoint_before(disk):
    made = [tn.Variable(np.ones((50, 500), np.float32), name="a")]  # 100 KB each
    with tn.device("/cpu:1"):
        made.append(tn.Variable(np.ones((50, 500), np.float32), name="b"))
    saver = tn.train.Saver(sharded=True)
    with session() as sess:
        sess.run(tn.global_variables_initializer())
        path = saver.save(sess, os.path.join(disk, "model"), 1)
        there = sorted(os.listdir(disk))
        sess.run([v.assign(v * 2) for v in made])
        for _ in range(3):
            with pytest.raises(tn.errors.ResourceExhaustedError, match="model-2"):
                saver.save(sess, os.path.join(disk, "model"), 2)
            assert sorted(os.listdir(disk)) == there, "something is left of the failed save"
        assert tn.train.latest_checkpoint(disk) == path
        saver.restore(sess, path)
        assert all((value == 1).all() for value in sess.run(made))


def test_a_directory_that_may_not_be_written(two_steps, tmp_path):
    sess, _, saver, first, second = two_steps
    folder = tmp_path / "closed"
    shutil.copytree(tmp_path, folder, ignore=lambda *_: ["closed"])
    os.chmod(folder, 0o500)
    try:
        if os.access(folder, os.W_OK):
            pytest.skip("root may write everywhere")
        with pytest.raises(tn.errors.PermissionDeniedError):
            saver.save(sess, str(folder / "model"), 3)
        assert tn.train.latest_checkpoint(str(folder)) == str(folder / "model-2")
    finally:
        os.chmod(folder, 0o700)


def test_a_directory_that_is_mounted_to_be_read_alone(two_steps, tmp_path, disk):
    sess, made, saver, first, second = two_steps
    path = saver.save(sess, os.path.join(disk, "model"), 3)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    try:
        with pytest.raises(tn.errors.OpError, match="[Rr]ead-only"):
            saver.save(sess, os.path.join(disk, "model"), 4)
        assert tn.train.latest_checkpoint(disk) == path
        saver.restore(sess, path)
    finally:
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)


def _before(op):
    """All that runs before an operation."""
    found, waiting = set(), [op]
    while waiting:
        at = waiting.pop()
        for other in [tensor.op for tensor in at.inputs] + list(at.control_inputs):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


@pytest.mark.parametrize("error", [tn.errors.UnavailableError, tn.errors.DeadlineExceededError])
def test_a_save_whose_answer_was_lost_is_there(tmp_path, error):
    """The tasks have saved it, in place of the one that had its name, of which nothing is left."""
    class Losing:
        def __init__(self, sess):
            self.run_all = sess.run

        def run(self, *args, **kwargs):
            self.run_all(*args, **kwargs)
            raise error(None, None, "lost")
    made = variables()
    saver = tn.train.Saver(sharded=True)
    with session() as sess:
        sess.run(tn.global_variables_initializer())
        path = saver.save(sess, str(tmp_path / "model"))
        sess.run([v.assign(v + 1) for v in made[:DEVICES]])
        values = sess.run(made)
        with pytest.raises(error):
            saver.save(Losing(sess), path)
        sess.run(tn.global_variables_initializer())
        saver.restore(sess, path)
        equal(sess.run(made), values)
        saver.save(sess, path)
        assert len(shards_of(path)) == DEVICES


def test_an_index_is_not_written_before_every_shard_is(tmp_path):
    variables()
    saver = tn.train.Saver(sharded=True)
    with session() as sess:
        sess.run(tn.global_variables_initializer())
        assert saver._save_op.type == "MergeCheckpoints"
        saves = [op for op in _before(saver._save_op) if op.type == "Save"]
        assert sorted(op.device for op in saves) == ["/device:CPU:0"] * DEVICES
        with pytest.raises(ValueError, match="Parent directory"):
            saver.save(sess, str(tmp_path / "none" / "model"))
        os.mkdir(tmp_path / "model-1")  # a directory has the index's name
        with pytest.raises(tn.errors.FailedPreconditionError):
            saver.save(sess, str(tmp_path / "model"), 1)
        assert os.listdir(tmp_path) == ["model-1"]


def test_shards_of_tasks_are_written_by_them():
    with tn.device("/job:ps/task:1/cpu:2"):
        tn.Variable(1.0, name="b")
    with tn.device("/job:ps/task:0/gpu:0"):
        tn.Variable(1.0, name="a")
    saver = tn.train.Saver(sharded=True)
    saves = sorted((op for op in _before(saver._save_op) if op.type == "Save"),
                   key=lambda op: op.name)
    assert [op.device for op in saves] == ["/job:ps/task:0/device:CPU:0",
                                           "/job:ps/task:1/device:CPU:0"]
    assert saver._save_op.device == "/job:ps/task:0/device:CPU:0"
    reads = [op for op in _before(saver._restore_op) if op.type == "Restore"]
    assert sorted(op.device for op in reads) == [op.device for op in saves]
    for op in _before(saver._restore_op):
        if op.type == "AssignVariableOp":  # by the task that has the variable, when all are read
            assert op.device == op.inputs[0].device
            assert {read for read in _before(op) if read.type == "Restore"} == set(reads)
