# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: saving, restoring, keeping and deleting, state files, damaged files."""

import os
import pathlib
import stat

import numpy as np
import pytest

import treenail as tn
from needs import needs_hdf5

pytestmark = needs_hdf5


@pytest.fixture
def model():
    """Two variables and a session with them."""
    v = tn.Variable(np.arange(6, dtype=np.float32).reshape(2, 3), name="net/v")
    w = tn.Variable([1, 2], name="w")
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        yield v, w, sess


def test_saving_and_restoring(model, tmp_path):
    v, w, sess = model
    saver = tn.train.Saver()
    path = saver.save(sess, str(tmp_path / "model"), global_step=7)
    assert path == str(tmp_path / "model-7") and os.path.isfile(path)
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "model-7"]
    sess.run([v.assign(v * 0), w.assign([9, 9])])
    saver.restore(sess, path)
    assert sess.run(v).tolist() == [[0, 1, 2], [3, 4, 5]] and sess.run(w).tolist() == [1, 2]
    with tn.Session() as other:  # nothing needs to be initialised
        saver.restore(other, path)
        assert other.run(w).tolist() == [1, 2]


def test_another_reader_reads_it(model, tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tn.train.Saver().save(model[2], str(tmp_path / "model"))
    with h5py.File(path, "r") as file:
        np.testing.assert_array_equal(file["net/v"][()], [[0, 1, 2], [3, 4, 5]])
        assert file["w"].dtype == np.int32


def test_readers(model, tmp_path):
    path = tn.train.Saver().save(model[2], str(tmp_path / "model"))
    assert tn.train.list_variables(path) == [("net/v", [2, 3]), ("w", [2])]
    assert tn.train.load_variable(str(tmp_path), "w").tolist() == [1, 2]
    reader = tn.train.load_checkpoint(path)
    assert reader.has_tensor("w") and not reader.has_tensor("x")
    assert reader.get_variable_to_dtype_map() == {"net/v": tn.float32, "w": tn.int32}
    with pytest.raises(tn.errors.NotFoundError, match="net/v"):
        reader.get_tensor("x")
    with pytest.raises(tn.errors.NotFoundError, match="Couldn't find 'checkpoint' file"):
        tn.train.load_checkpoint(str(tmp_path / ".."))


def test_a_reader_keeps_the_checkpoint_that_it_opened(model, tmp_path):
    v, w, sess = model
    saver = tn.train.Saver()
    path = saver.save(sess, str(tmp_path / "model"))
    reader = tn.train.load_checkpoint(path)
    sess.run(w.assign([9, 9]))
    saver.save(sess, path)
    assert reader.get_tensor("w").tolist() == [1, 2]
    assert tn.train.load_checkpoint(path).get_tensor("w").tolist() == [9, 9]


def test_every_dtype_survives(tmp_path):
    names = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
             "uint32", "uint64", "bool", "complex64", "complex128"]
    variables = [tn.Variable(np.array([1, 0, 3]).astype(n), name=n, trainable=False) for n in names]
    variables.append(tn.Variable(["a", "bä", ""], name="string", trainable=False))
    variables.append(tn.Variable(tn.cast([1.5, -2.0], tn.bfloat16), name="b16", trainable=False))
    saver = tn.train.Saver()
    with tn.Session() as one, tn.Session() as two:
        one.run(tn.global_variables_initializer())
        saver.restore(two, saver.save(one, str(tmp_path / "model")))
        for before, after in zip(*[s.run(variables) for s in (one, two)]):
            assert before.dtype == after.dtype
            np.testing.assert_array_equal(before, after)


def test_which_checkpoints_are_kept(model, tmp_path):
    saver = tn.train.Saver(max_to_keep=2)
    paths = [saver.save(model[2], str(tmp_path / "model"), i) for i in range(4)]
    assert saver.last_checkpoints == paths[2:]
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "model-2", "model-3"]
    assert tn.train.latest_checkpoint(str(tmp_path)) == paths[3]
    state = tn.train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path == paths[3]
    assert state.all_model_checkpoint_paths == paths[2:]
    later = tn.train.Saver(max_to_keep=2)  # a process that goes on
    later.recover_last_checkpoints(state.all_model_checkpoint_paths)
    later.save(model[2], str(tmp_path / "model"), 4)
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "model-3", "model-4"]
    everything = tn.train.Saver(max_to_keep=None)
    for i in range(5, 12):
        everything.save(model[2], str(tmp_path / "model"), i)
    assert len(os.listdir(tmp_path)) == 10


def test_one_checkpoint_per_so_many_hours_is_kept_for_good(model, tmp_path):
    saver = tn.train.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=0)
    for i in range(3):
        saver.save(model[2], str(tmp_path / "model"), i)
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "model-0", "model-1", "model-2"]


def test_names_and_steps(model, tmp_path):
    v, w, sess = model
    step = tn.train.get_or_create_global_step()
    sess.run(step.initializer)
    saver = tn.train.Saver({"other/name": v}, pad_step_number=True)
    path = saver.save(sess, str(tmp_path / "model"), global_step=step, latest_filename="state",
                      write_meta_graph=False)
    assert path.endswith("model-00000000")
    assert tn.train.list_variables(path) == [("other/name", [2, 3])]
    assert tn.train.latest_checkpoint(str(tmp_path), "state") == path
    assert tn.train.latest_checkpoint(str(tmp_path)) is None
    saver.save(sess, str(tmp_path / "plain"), write_state=False)
    assert tn.train.get_checkpoint_state(str(tmp_path), "state").model_checkpoint_path == path


def test_slots_and_their_variables_share_a_file(tmp_path):
    v = tn.Variable([1.0], name="v")
    tn.train.AdamOptimizer().minimize(v * v)
    saver = tn.train.Saver()
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        path = saver.save(sess, str(tmp_path / "model"))
        names = [name for name, _ in tn.train.list_variables(path)]
        assert names == ["beta1_power", "beta2_power", "v", "v/Adam", "v/Adam_1"]
        saver.restore(sess, path)


def test_reshape(model, tmp_path):
    path = tn.train.Saver().save(model[2], str(tmp_path / "model"))
    with tn.Graph().as_default():
        v = tn.Variable(tn.zeros([6]), name="net/v")
        with tn.Session() as sess:
            tn.train.Saver(reshape=True).restore(sess, path)
            assert sess.run(v).tolist() == [0, 1, 2, 3, 4, 5]
            with pytest.raises(ValueError, match=r"variable net/v has shape \(6,\), in checkpoint "
                               r".* it has shape \(2, 3\)"):
                tn.train.Saver().restore(sess, path)


def test_a_restore_that_fails_changes_nothing(model, tmp_path):
    path = tn.train.Saver().save(model[2], str(tmp_path / "model"))
    with tn.Graph().as_default():
        w = tn.Variable([7, 7], name="w")
        tn.Variable(tn.zeros([5]), name="net/v")
        with tn.Session() as sess:
            sess.run(tn.global_variables_initializer())
            with pytest.raises(tn.errors.InvalidArgumentError):
                tn.train.Saver().restore(sess, path)
            assert sess.run(w).tolist() == [7, 7]


def test_what_is_missing_is_named(model, tmp_path):
    path = tn.train.Saver([model[0]]).save(model[2], str(tmp_path / "model"))
    with pytest.raises(tn.errors.NotFoundError, match="net/v"):
        tn.train.Saver().restore(model[2], path)


def test_a_checkpoint_of_another_dtype(model, tmp_path):
    path = tn.train.Saver([model[1]]).save(model[2], str(tmp_path / "model"))
    with tn.Graph().as_default():
        tn.Variable([1.0, 2.0], name="w")
        with tn.Session() as sess, pytest.raises(tn.errors.InvalidArgumentError,
                                                 match="int32.*float32|float32.*int32"):
            tn.train.Saver().restore(sess, path)


def test_damaged_files(model, tmp_path):
    saver = tn.train.Saver()
    path = saver.save(model[2], str(tmp_path / "model"))
    with open(path, "rb") as stream:
        whole = stream.read()
    for length in (0, 1, 100, 512, 600, len(whole) // 2, len(whole) - 1):
        with open(path, "wb") as stream:
            stream.write(whole[:length])
        with pytest.raises((tn.errors.DataLossError, tn.errors.InvalidArgumentError)) as info:
            saver.restore(model[2], path)
        assert path in str(info.value)
    for place in range(0, len(whole), max(1, len(whole) // 25)):
        with open(path, "wb") as stream:
            stream.write(whole[:place] + bytes([whole[place] ^ 0x40]) + whole[place + 1:])
        with pytest.raises((tn.errors.DataLossError, tn.errors.InvalidArgumentError,
                            tn.errors.UnimplementedError)):
            saver.restore(model[2], path)


def test_a_save_that_fails_leaves_the_old_checkpoint(model, tmp_path):
    v, w, sess = model
    saver = tn.train.Saver()
    path = saver.save(sess, str(tmp_path / "model"))
    before = os.stat(path).st_ino, os.listdir(tmp_path)
    u = tn.Variable(1.0, name="u")  # never initialised
    with pytest.raises(tn.errors.FailedPreconditionError, match="u"):
        tn.train.Saver([v, u]).save(sess, str(tmp_path / "model"))
    assert (os.stat(path).st_ino, os.listdir(tmp_path)) == before
    saver.restore(sess, path)


@pytest.mark.parametrize("call,error,text", [
    (lambda s, d: tn.train.Saver([]), ValueError, "No variables to save"),
    (lambda s, d: tn.train.Saver([3]), TypeError, "is not a Variable"),
    (lambda s, d: tn.train.Saver({"a": 3}), TypeError, "is not a Variable"),
    (lambda s, d: tn.train.Saver().save(s, d + "/none/model"), ValueError,
     "Parent directory of .* doesn't exist"),
    (lambda s, d: tn.train.Saver().save(s, d + "/checkpoint"), ValueError, "collides"),
    (lambda s, d: tn.train.Saver().save(s, d + "/m", latest_filename="a/b"), ValueError,
     "must not contain path components"),
    (lambda s, d: tn.train.Saver().restore(s, None), ValueError, "save_path when it is None"),
    (lambda s, d: tn.train.Saver().restore(s, d + "/none"), ValueError,
     "not a valid checkpoint: .*none")])
def test_what_is_refused(call, error, text, model, tmp_path):
    with pytest.raises(error, match=text):
        call(model[2], str(tmp_path))


def test_an_empty_saver(tmp_path):
    saver = tn.train.Saver(allow_empty=True)
    with tn.Session() as sess:
        assert saver.save(sess, str(tmp_path / "model")) is None
        saver.restore(sess, "nothing")


def test_state_files(tmp_path):
    assert tn.train.get_checkpoint_state(str(tmp_path)) is None
    assert tn.train.latest_checkpoint(str(tmp_path)) is None
    odd = str(tmp_path / 'odd "name"\\')
    tn.train.update_checkpoint_state(str(tmp_path), odd, ["/elsewhere/model"])
    state = tn.train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path == odd
    assert state.all_model_checkpoint_paths == ["/elsewhere/model", odd]
    assert tn.train.latest_checkpoint(str(tmp_path)) is None  # none of them is there
    for text in (b"nonsense", b'model_checkpoint_path: "open', b"\xff\xfe", b"other: \"x\""):
        (tmp_path / "checkpoint").write_bytes(text)
        with pytest.raises(tn.errors.DataLossError, match="is no checkpoint state file"):
            tn.train.get_checkpoint_state(str(tmp_path))


@pytest.mark.parametrize("path", [os.fsencode, pathlib.Path], ids=["bytes", "PathLike"])
def test_paths_of_other_kinds(path, model, tmp_path):
    saver = tn.train.Saver()
    saved = saver.save(model[2], path(str(tmp_path / "model")), global_step=np.int64(3))
    assert saved == str(tmp_path / "model-3")
    saver.restore(model[2], path(saved))
    assert tn.train.latest_checkpoint(path(str(tmp_path))) == saved
    assert tn.train.load_checkpoint(path(saved)).has_tensor("w")
    with pytest.raises(TypeError, match="str, bytes or os.PathLike"):
        saver.save(model[2], 3)
    with pytest.raises(ValueError, match="cannot be encoded as UTF-8"):
        saver.save(model[2], os.fsencode(str(tmp_path)) + b"/\xff")
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "model-3"]


def test_a_pipe_is_not_replaced(model, tmp_path):
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    for write in (lambda: tn.train.Saver().save(model[2], pipe),
                  lambda: tn.get_default_graph().save(pipe)):
        with pytest.raises(tn.errors.FailedPreconditionError, match="it is a named pipe, which a "
                                                                    "file would replace"):
            write()
    assert stat.S_ISFIFO(os.stat(pipe).st_mode) and os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize("make,kind", [(os.mkdir, "a directory"), (os.mkfifo, "no regular file")])
def test_a_state_file_that_is_none(make, kind, model, tmp_path):
    make(str(tmp_path / "checkpoint"))
    for use in (lambda: tn.train.Saver().save(model[2], str(tmp_path / "model")),
                lambda: tn.train.latest_checkpoint(str(tmp_path)),
                lambda: tn.train.get_checkpoint_state(str(tmp_path)),
                lambda: tn.train.load_checkpoint(str(tmp_path)),
                lambda: tn.train.update_checkpoint_state(str(tmp_path), "model")):
        with pytest.raises(tn.errors.FailedPreconditionError,
                           match="checkpoint is %s; needed in its place" % kind):
            use()
    assert os.listdir(tmp_path) == ["checkpoint"]
    tn.train.Saver().save(model[2], str(tmp_path / "model"), write_state=False)


def test_a_graph_file_is_no_checkpoint(model, tmp_path):
    tn.get_default_graph().save(tmp_path / "graph")
    with pytest.raises(tn.errors.InvalidArgumentError,
                       match="is a graph file, no checkpoint: tn.load_graph reads it"):
        tn.train.load_checkpoint(tmp_path / "graph")


@pytest.mark.parametrize("step", [1.5, [1, 2], np.array([3]), "a"])
def test_steps_that_are_no_numbers(step, model, tmp_path):
    if not isinstance(step, str):
        with pytest.raises(TypeError, match="global_step must be an int or a scalar integer tenso"):
            tn.train.Saver().save(model[2], str(tmp_path / "model"), global_step=step)
        step = tn.constant(step)
    with pytest.raises((TypeError, ValueError)):
        tn.train.Saver().save(model[2], str(tmp_path / "model"), global_step=step)
    assert not os.listdir(tmp_path)


def test_a_negative_number_of_checkpoints_to_keep(model):
    with pytest.raises(ValueError, match="max_to_keep must be at least 0, or None, not -1"):
        tn.train.Saver(max_to_keep=-1)
    with pytest.raises(TypeError):
        tn.train.Saver(max_to_keep="5")
