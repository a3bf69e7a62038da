# SPDX-License-Identifier: Apache-2.0
"""Graphs in files together with their collections."""

import os

import numpy as np
import pytest

import treenail as tn


def model():
    """A small training; its initialiser has a name."""
    x = tn.placeholder(tn.float32, [None, 3], name="x")
    y = tn.layers.dense(x, 2, name="top")
    parts = tn.get_variable("parts", [5, 2], partitioner=tn.fixed_size_partitioner(2),
                            initializer=tn.random_normal_initializer(seed=2))
    loss = tn.reduce_sum(y) + tn.reduce_sum(parts)
    step = tn.train.get_or_create_global_step()
    with tn.device("/cpu:0"):
        train = tn.train.AdamOptimizer().minimize(loss, global_step=step)
    tn.summary.scalar("loss", loss)
    tn.add_to_collection("mine", y)
    tn.add_to_collection("mine", 7)
    tn.add_to_collection("mine", "text")
    tn.add_to_collection("mine", object())
    return train, loss


def shown(graph):
    """What the collections hold, by name."""
    def text(item):
        if isinstance(item, tn.Variable):
            return "variable", item.name, item.trainable, item.shape.as_list(), item._slice_info
        return (getattr(item, "name", item),)
    return {key: [text(item) for item in graph.get_collection(key) if type(item) is not object]
            for key in graph.get_all_collection_keys() if graph.get_collection(key)}


def test_a_graph_comes_back_with_its_collections(tmp_path):
    train, _ = model()
    wanted = shown(tn.get_default_graph())
    tn.get_default_graph().finalize()
    count = len(tn.get_default_graph().get_operations())
    path = str(tmp_path / "model.meta")
    tn.train.export_meta_graph(path)
    assert os.listdir(tmp_path) == ["model.meta"]
    assert len(tn.get_default_graph().get_operations()) == count
    with tn.Graph().as_default() as graph:
        assert isinstance(tn.train.import_meta_graph(path), tn.train.Saver)
        assert shown(graph) == wanted
        assert tn.trainable_variables()[0] is tn.global_variables()[0]
        assert [op.name for op in tn.get_collection(tn.GraphKeys.TRAIN_OP)] == [train.name]
        with tn.Session() as session:
            session.run(tn.global_variables_initializer())
            session.run(train.name, {"x:0": np.ones((4, 3))})
            assert session.run(tn.train.get_global_step()) == 1


def test_values_go_on_where_they_were(tmp_path):
    if "hdf5" not in tn.build_info()["features"]:
        pytest.skip("this build has no HDF5")
    train, loss = model()
    saver = tn.train.Saver(sharded=True)
    batch = {"x:0": np.arange(6).reshape(2, 3)}
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        session.run(train, batch)
        path = saver.save(session, str(tmp_path / "model"))
        saver.export_meta_graph(path + ".meta")
        session.run(train, batch)
        wanted = session.run(loss, batch)
    for scope in (None, "within"):
        with tn.Graph().as_default(), tn.Session() as session:
            again = tn.train.import_meta_graph(path + ".meta", import_scope=scope, max_to_keep=9)
            again.restore(session, path)
            prefix = scope + "/" if scope else ""
            fed = {prefix + "x:0": batch["x:0"]}
            session.run(prefix + train.name, fed)
            assert session.run(prefix + loss.name, fed) == wanted
            assert not session.run(tn.report_uninitialized_variables()).size


def test_some_collections_and_devices(tmp_path):
    model()
    path = str(tmp_path / "model.meta")
    tn.train.export_meta_graph(path, collection_list=["mine", tn.GraphKeys.GLOBAL_STEP],
                               clear_devices=True)
    with tn.Graph().as_default() as graph:
        assert tn.train.import_meta_graph(path) is None  # no variables to save
        assert sorted(graph.get_all_collection_keys()) == ["global_step", "mine"]
        assert tn.get_collection("mine")[1:] == [7, "text"]
        assert not any(op.device for op in graph.get_operations())
    tn.train.export_meta_graph(path)
    for clear in (False, True):
        with tn.Graph().as_default() as graph:
            tn.train.import_meta_graph(path, clear_devices=clear)
            own = [op for op in graph.get_operations() if not op.name.startswith("save/")]
            assert any(op.device for op in own) is not clear


def test_a_plain_graph_file_and_none(tmp_path):
    tn.constant(1.0)
    tn.get_default_graph().save(str(tmp_path / "plain.tng"))
    with pytest.raises(ValueError, match="without collections: tn.import_graph reads it"):
        tn.train.import_meta_graph(str(tmp_path / "plain.tng"))
    with pytest.raises(tn.errors.NotFoundError):
        tn.train.import_meta_graph(str(tmp_path / "none"))
    with pytest.raises(tn.errors.NotFoundError):
        tn.train.export_meta_graph(str(tmp_path / "none" / "x"))
    tn.train.export_meta_graph(str(tmp_path / "meta"))
    assert tn.load_graph(str(tmp_path / "meta")).get_operation_by_name("Const")
