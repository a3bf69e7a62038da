# SPDX-License-Identifier: Apache-2.0
"""Loading models: what load takes and gives, functions, weights in other files, and what is
refused."""

import io
import os

import numpy as np
import pytest
import writer
from writer import blob, function, model, node, number, operator_set, tensor, value_info

import treenail as tn

X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)


def affine(**more):
    """relu(x w + b)"""
    return model([node("MatMul", ["x", "w"], ["xw"]), node("Add", ["xw", "b"], ["sum"], name="add"),
                  node("Relu", ["sum"], ["y"])], [value_info("x", shape=["n", 3])], ["y"],
                 [tensor(np.ones((3, 2), np.float32), "w"),
                  tensor(np.array([1, -20], np.float32), "b")], **more)


WANTED = np.maximum(X @ np.ones((3, 2)) + [1, -20], 0)


def external(location, **entries):
    """A float32 [2] tensor whose data lie elsewhere."""
    out = number(1, 2) + number(2, 1) + blob(8, "w") + number(14, 1)
    for key, text in dict(location=location, **entries).items():
        out += blob(13, blob(1, key) + blob(2, text))
    return model([node("Neg", ["w"], ["y"])], [], ["y"], [out])


# --- What load takes and gives --------------------------------------------------------------------

def test_from_a_path_bytes_or_a_file(tmp_path):
    data = affine()
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    for source in (str(path), path, data, bytearray(data), memoryview(data), io.BytesIO(data)):
        with tn.onnx.load(source) as loaded:
            np.testing.assert_allclose(loaded.run({"x": X})["y"], WANTED)
            np.testing.assert_allclose(loaded.run([X])["y"], WANTED)


def test_what_a_model_says_of_itself():
    extra = (blob(3, "1.2") + number(5, 7) + blob(6, "notes")
             + blob(14, blob(1, "k") + blob(2, "v")) + blob(8, operator_set(3, "other")))
    loaded = tn.onnx.load(affine(extra=extra))
    assert (loaded.opset, loaded.opsets) == (17, {"": 17, "other": 3})
    assert (loaded.producer, loaded.producer_version, loaded.ir_version) == ("the tests", "1.2", 8)
    assert (loaded.model_version, loaded.doc_string, loaded.metadata) == (7, "notes", {"k": "v"})
    assert list(loaded.inputs) == ["x"] and list(loaded.outputs) == ["y"]
    assert loaded.inputs["x"].shape.as_list() == [None, 3]
    assert loaded.inputs["x"].dtype == tn.float32
    assert set(loaded.values) == {"x", "w", "b", "xw", "sum", "y"}
    assert "x" in repr(loaded)


def test_the_graph_can_be_built_on_and_differentiated():
    loaded = tn.onnx.load(affine())
    with loaded.graph.as_default(), tn.Session() as session:
        loss = tn.reduce_sum(tn.square(loaded.outputs["y"]))
        gradient, = tn.gradients(loss, [loaded.inputs["x"]])
        got = session.run(gradient, {loaded.inputs["x"]: X})
    np.testing.assert_allclose(got, (2 * WANTED) @ np.ones((2, 3)))


def test_the_graph_can_be_saved(tmp_path):
    loaded = tn.onnx.load(affine())
    loaded.graph.save(tmp_path / "model.tng")
    graph = tn.load_graph(tmp_path / "model.tng")
    with tn.Session(graph=graph) as session:
        got = session.run(loaded.outputs["y"].name, {loaded.inputs["x"].name: X})
    np.testing.assert_allclose(got, WANTED)


def test_values_between_can_be_fetched():
    got = tn.onnx.load(affine()).run({"x": X}, fetches=["xw", "y"])
    np.testing.assert_allclose(got["xw"], X @ np.ones((3, 2)))
    assert list(got) == ["xw", "y"]


def test_into_a_graph_in_the_place_of_inputs():
    graph = tn.Graph()
    with graph.as_default():
        x = tn.constant(X) * 2.0
        loaded = tn.onnx.load(affine(), graph=graph, input_map={"x": x}, name="imported")
        assert loaded.graph is graph and loaded.inputs["x"] is x
        assert loaded.outputs["y"].name.startswith("imported/")
        with tn.Session() as session:
            got = session.run(loaded.outputs["y"])
    np.testing.assert_allclose(got, np.maximum(2 * X @ np.ones((3, 2)) + [1, -20], 0))


def test_shapes_may_be_given():
    loaded = tn.onnx.load(affine(), shapes={"x": [2, 3]})
    assert loaded.inputs["x"].shape.as_list() == [2, 3]
    assert loaded.outputs["y"].shape.as_list() == [2, 2]


def test_weights_that_are_listed_as_inputs_are_no_inputs():
    data = model([node("Add", ["x", "w"], ["y"])], [value_info("x", shape=[2]), value_info("w")],
                 ["y"], [tensor(np.array([1, 2], np.float32), "w")])
    assert list(tn.onnx.load(data).inputs) == ["x"]


@pytest.mark.parametrize("feeds, text", [
    ({}, "no value was given for input 'x'"), ({"x": X, "z": 1}, "no input 'z'"),
    ([X, X], "2 values were given for the inputs"),
])
def test_feeds_must_be_the_inputs(feeds, text):
    with pytest.raises(ValueError, match=text):
        tn.onnx.load(affine()).run(feeds)


def test_fetches_and_maps_must_be_there():
    with pytest.raises(ValueError, match="no value 'q'"):
        tn.onnx.load(affine()).run({"x": X}, ["q"])
    for words in ({"input_map": {"q": 1.0}}, {"shapes": {"q": [1]}}):
        with pytest.raises(ValueError, match="names 'q', but the inputs are 'x'"):
            tn.onnx.load(affine(), **words)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(tn.errors.NotFoundError, match="nothing.onnx"):
        tn.onnx.load(tmp_path / "nothing.onnx")
    with pytest.raises(tn.errors.InvalidArgumentError):
        tn.onnx.load(tmp_path)
    with pytest.raises(TypeError, match="binary"):
        tn.onnx.load(io.StringIO("x"))


# --- Tensors --------------------------------------------------------------------------------------

TENSORS = [
    (b"".join(writer.real(4, v) for v in (1.5, 2.5)) + number(2, 1), np.float32([1.5, 2.5])),
    (blob(5, b"\x01\x02") + number(2, 2), np.uint8([1, 2])),
    (number(5, -3) + number(5, 4) + number(2, 3), np.int8([-3, 4])),
    (number(5, 1) + number(5, 0) + number(2, 9), np.array([True, False])),
    (number(5, 0x3C00) + number(5, 0xC000) + number(2, 10), np.float16([1, -2])),
    (number(7, -5) + number(7, 2 ** 40) + number(2, 7), np.int64([-5, 2 ** 40])),
    (number(11, -1) + number(11, 3) + number(2, 13), np.uint64([2 ** 64 - 1, 3])),
    (number(11, 2 ** 32 - 1) + number(11, 3) + number(2, 12), np.uint32([2 ** 32 - 1, 3])),
    (blob(6, "a") + blob(6, "bc") + number(2, 8), np.array([b"a", b"bc"], object)),
    (b"".join(writer.real(4, v) for v in (1, 2, 3, 4)) + number(2, 14),
     np.complex64([1 + 2j, 3 + 4j])),
]


@pytest.mark.parametrize("body, wanted", TENSORS, ids=[str(w.dtype) for _, w in TENSORS])
def test_elements_in_typed_fields_and_raw(body, wanted):
    for message in (number(1, 2) + body + blob(8, "w"), tensor(wanted, "w")):
        loaded = tn.onnx.load(model([node("Identity", ["w"], ["y"])], [], ["y"], [message]))
        got = loaded.run()["y"]
        np.testing.assert_array_equal(got, wanted)
        assert np.asarray(got).dtype == wanted.dtype


def test_bfloat16_weights():
    raw = number(1, 2) + number(2, 16) + blob(9, b"\x80\x3f\x20\xc0") + blob(8, "w")
    typed = number(1, 2) + number(2, 16) + number(5, 0x3F80) + number(5, 0xC020) + blob(8, "w")
    for message in (raw, typed):
        data = model([node("Cast", ["w"], ["y"], to=1)], [], ["y"], [message])
        assert tn.onnx.load(data).run()["y"].tolist() == [1.0, -2.5]


def test_a_sparse_weight_is_filled_in():
    values, indices = tensor(np.float32([5, 7]), "w"), tensor(np.int64([[0, 1], [1, 2]]))
    sparse = blob(1, values) + blob(2, indices) + number(3, 2) + number(3, 3)
    proto = writer.graph([node("Identity", ["w"], ["y"])], [], ["y"]) + blob(15, sparse)
    data = number(1, 8) + blob(7, proto) + blob(8, operator_set(17))
    assert tn.onnx.load(data).run()["y"].tolist() == [[0, 5, 0], [0, 0, 7]]


BAD_TENSORS = [
    (number(1, 3) + number(2, 1) + blob(9, bytes(8)), "8 bytes were given, shape \\[3\\] of"),
    (number(1, 2 ** 62) * 2 + number(2, 1) + blob(9, bytes(8)), "8 bytes were given"),
    (number(1, -1) + number(2, 1) + blob(9, b""), "extent -1 is negative"),
    (number(1, 2) + number(2, 99) + blob(9, bytes(8)), "element type 99 is none of ONNX's"),
    (number(1, 2) + blob(9, bytes(8)), "element type None"),
    (number(1, 2) + number(2, 1) + writer.real(4, 1.0), "1 elements were given, its shape needs 2"),
    (number(1, 2) + number(2, 8) + blob(6, "a"), "1 elements were given"),
    (number(1, 0) + number(1, 2 ** 62) * 4 + number(2, 1) + blob(9, b""), "shape"),
    (number(1, 1) * 65 + number(2, 1) + blob(9, bytes(4)), "65 axes; 32 are the most"),
    (number(1, 1) + number(2, 1) + blob(9, bytes(4)) + blob(3, number(1, 0)), "segments"),
]


@pytest.mark.parametrize("message, text", BAD_TENSORS, ids=range(len(BAD_TENSORS)))
def test_bad_tensors_are_refused(message, text):
    with pytest.raises((tn.errors.InvalidArgumentError, tn.errors.UnimplementedError), match=text):
        tn.onnx.load(model([node("Neg", ["w"], ["y"])], [], ["y"], [message + blob(8, "w")]))


# --- Weights in other files -----------------------------------------------------------------------

def test_external_data_beside_the_model(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w.bin").write_bytes(bytes(4) + np.float32([1, 2]).tobytes())
    data = external("sub/w.bin", offset="4", length="8")
    (tmp_path / "model.onnx").write_bytes(data)
    assert tn.onnx.load(tmp_path / "model.onnx").run()["y"].tolist() == [-1, -2]
    assert tn.onnx.load(data, directory=tmp_path).run()["y"].tolist() == [-1, -2]
    with pytest.raises(ValueError, match="not loaded from a path; give directory="):
        tn.onnx.load(data)


@pytest.mark.parametrize("location", ["../secret", "sub/../../secret", "link", "away/secret", ""])
def test_external_data_stay_below_the_folder(tmp_path, location):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(8))
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "away").symlink_to(tmp_path)
    for where in (location, str(tmp_path / "secret")):
        with pytest.raises(ValueError, match="must lie below the model's folder"):
            tn.onnx.load(external(where), directory=folder)


BAD_EXTERNAL = [
    ({"location": "nothing"}, "cannot be read: No such file"),
    ({"location": "pipe"}, "no regular file"),
    ({"location": "."}, "cannot be read|no regular file"),
    ({"location": "w", "offset": "4"}, "bytes 4 to 12 of external data 'w' were asked for"),
    ({"location": "w", "offset": "-1"}, "offset of external data must be a number of bytes"),
    ({"location": "w", "offset": "1" * 30}, "offset of external data must be a number of bytes"),
    ({"location": "w", "length": "4"}, "external data of 4 bytes were given"),
    ({"location": "w\0x"}, "must lie below"),
]


@pytest.mark.parametrize("entries, text", BAD_EXTERNAL)
def test_bad_external_data_are_refused(tmp_path, entries, text):
    (tmp_path / "w").write_bytes(bytes(8))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=text):
        tn.onnx.load(external(**entries), directory=tmp_path)


# --- Functions ------------------------------------------------------------------------------------

def test_functions_are_inlined_with_their_attributes():
    scaled = function("Leak", ["a"], ["c"], [
        node("LeakyRelu", ["a"], ["b"], raw=[writer.reference("alpha", "slope")]),
        node("Neg", ["b"], ["c"])], attributes=["slope"])
    twice = function("Twice", ["x"], ["y"], [
        node("Leak", ["x"], ["b"], domain="local", slope=0.5), node("Add", ["b", "b"], ["y"])])
    data = model([node("Twice", ["x"], ["h"], domain="local"),
                  node("Leak", ["h"], ["y"], domain="local")],
                 [value_info("x", shape=[3])], ["y"], functions=[scaled, twice],
                 extra=blob(8, operator_set(1, "local")))
    x = np.float32([1, -2, 3])
    inner = -2 * np.where(x > 0, x, 0.5 * x)
    got = tn.onnx.load(data).run([x])["y"]
    np.testing.assert_allclose(got, -np.where(inner > 0, inner, 0.01 * inner), rtol=1e-6)


def test_functions_that_call_themselves_are_refused():
    loop = function("F", ["x"], ["y"], [node("F", ["x"], ["y"], domain="local")])
    data = model([node("F", ["x"], ["y"], domain="local")], [value_info("x", shape=[1])], ["y"],
                 functions=[loop], extra=blob(8, operator_set(1, "local")))
    with pytest.raises(ValueError, match="more than 64 deep"):
        tn.onnx.load(data)


def test_functions_that_multiply_are_refused(monkeypatch):
    from treenail.onnx import _importer
    monkeypatch.setattr(_importer, "MAX_NODES", 100)
    functions = [function("F0", ["x"], ["y"], [node("Neg", ["x"], ["y"])])]
    for i in range(1, 12):
        call = "F%d" % (i - 1)
        functions.append(function("F%d" % i, ["x"], ["y"], [
            node(call, ["x"], ["h"], domain="local"), node(call, ["h"], ["y"], domain="local")]))
    data = model([node("F11", ["x"], ["y"], domain="local")], [value_info("x", shape=[1])], ["y"],
                 functions=functions, extra=blob(8, operator_set(1, "local")))
    with pytest.raises(ValueError, match="more than 100 nodes"):
        tn.onnx.load(data)


# --- What is refused ------------------------------------------------------------------------------

ONE = [value_info("x", shape=[1])]
BAD_MODELS = [
    (b"", "not an ONNX model: it has no graph"),
    (b"\xff\xff", "not an ONNX model: the data end"),
    (model([], [], ["y"]), "output 'y' is given by no node"),
    (model([node("Neg", ["q"], ["y"])], ONE, ["y"]), "input 'q' is given by no node before it"),
    (model([node("Neg", ["x"], ["y"])] * 2, ONE, ["y"]), "value 'y' is given twice"),
    (model([node("Neg", [""], ["y"])], ONE, ["y"]), "input 0 is missing"),
    (model([node("Neg", ["x"], ["y"], name="n")], [value_info("x", "bool", [1])], ["y"]),
     '\\[Neg node "n"\\]'),
    (model([node("Concat", ["x"], ["y"])], ONE, ["y"]), "attribute 'axis' is missing"),
    (model([node("Concat", ["x"], ["y"], axis=1.0)], ONE, ["y"]),
     "attribute 'axis' must be of kind 'i', but is 'f'"),
    (model([node("Flatten", ["x"], ["y"], axis=5)], ONE, ["y"]), "axis = 5 is not in \\[-1, 1\\)"),
    (model([node("Neg", ["x"], ["y", "z"])], ONE, ["y"]), "gives 1 outputs, 2 are asked for"),
    (model([node("Neg", ["x"], ["y"])], [value_info("x", shape=[-1])], ["y"]),
     "input 'x': extent -1 is negative"),
    (model([node("Neg", ["x"], ["y"], domain="who")], ONE, ["y"]),
     "no converter for op 'Neg' of domain 'who'"),
    (model([node("Bell\x07", ["x"], ["y"])], ONE, ["y"]), "no converter for op 'Bell.x07'"),
    (model([node("Neg", ["x"], ["y"])], [value_info("x", shape=[1] * 33)], ["y"]),
     "input 'x'.*rank 33"),
    (model([node("Neg", ["x"], ["y"])], ONE, ["y"], opset=18), "operator set 18"),
    (model([node("Tile", ["x", "x"], ["y"])], ONE, ["y"], opset=5),
     "is of operator set 5; the oldest that is understood is 6"),
    (model([node("Neg", ["x"], ["y"])], ONE, ["y"], opset=-1), "-1 is no version"),
    (model([node("Identity", ["x"], ["y"])], [blob(1, "x") + blob(2, blob(5, b""))], ["y"]),
     "input 'x' is no tensor"),
    (model([node("Identity", ["x"], ["y"])], [blob(1, "x") + blob(2, blob(4, b""))], ["y"]),
     "input 'x' is a sequence of something other than tensors"),
    (writer.of_arrays("Conv", [np.ones((1, 2, 5), "f"), np.ones((1, 3, 3), "f")]), "1 groups"),
    (writer.of_arrays("Conv", [np.ones((1, 2, 5), "f"), np.ones((1, 2, 3), "f")], strides=[0]),
     "strides = \\[0\\] must be 1 numbers"),
    (writer.of_arrays("LSTM", [np.ones((1, 1, 1), "f")] * 3, hidden_size=1), "LSTM"),
    (writer.of_arrays("MaxPool", [np.ones((1, 1, 4, 4), "f")], kernel_shape=[2 ** 40, 2]),
     "kernel_shape"),
    (writer.of_arrays("DepthToSpace", [np.ones((1, 4, 1, 1), "f")], blocksize=0), "blocksize"),
]


@pytest.mark.parametrize("data, text", BAD_MODELS, ids=range(len(BAD_MODELS)))
def test_bad_models_are_refused(data, text):
    with pytest.raises((tn.errors.InvalidArgumentError, tn.errors.UnimplementedError), match=text):
        tn.onnx.load(data)


def test_what_must_be_known_is_named():
    data = writer.of_arrays("LSTM", [np.ones((2, 1, 1), "f"), np.ones((1, 4, 1), "f"),
                                     np.ones((1, 4, 1), "f")], unknown=(0,), hidden_size=1,
                            clip=1.0)
    with pytest.raises(tn.errors.UnimplementedError, match="length of the sequences must be known"):
        tn.onnx.load(data)


def test_supported_ops_are_listed():
    listed = tn.onnx.supported_ops()
    assert listed == sorted(listed) and {"Conv", "LSTM", "Resize"} <= set(listed)
    assert len(listed) > 150


# --- Constants ------------------------------------------------------------------------------------

def test_what_constants_determine_is_computed_once():
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "first"], ["rows"]),
             node("Concat", ["rows", "rest"], ["wanted"], axis=0),
             node("Reshape", ["x", "wanted"], ["y"])]
    weights = [tensor(np.int64([0]), "first"), tensor(np.int64([-1]), "rest")]
    loaded = tn.onnx.load(model(nodes, [value_info("x", shape=[2, 3, 4])], ["y"], weights))
    assert loaded.outputs["y"].shape.as_list() == [2, 12]
    assert loaded.values["wanted"].op.type == "Const"
    loaded = tn.onnx.load(model(nodes, [value_info("x", shape=["n", 3, 4])], ["y"], weights))
    assert loaded.values["wanted"].op.type != "Const"
    assert loaded.run([np.zeros((2, 3, 4), "f")])["y"].shape == (2, 12)


def test_large_results_stay_operations(monkeypatch):
    from treenail.onnx._constants import Constants
    monkeypatch.setattr(Constants.fixed, "__defaults__", (10,))
    nodes = [node("Expand", ["w", "shape"], ["y"]), node("Neg", ["w"], ["z"])]
    loaded = tn.onnx.load(model(nodes, [], ["y", "z"], [
        tensor(np.float32([1, 2]), "w"), tensor(np.int64([10, 2]), "shape")]))
    assert loaded.values["z"].op.type == "Const" and loaded.values["y"].op.type != "Const"
    assert loaded.run()["y"].shape == (10, 2)


def test_a_constant_that_takes_too_long_stays_an_operation():
    from treenail.onnx._constants import Constants
    with tn.Graph().as_default() as graph:
        constants = Constants(graph)
        value = tn.ones([1500, 1500])
        for _ in range(20):
            value = tn.matmul(value, value)
        corner = value[0, 0]
        constants._left = 0.005
        assert constants.value(corner) is None
        assert constants._left < 0
        constants.close()


def test_weights_are_turned_once_but_not_without_end():
    w = tensor(np.ones((4, 4, 3, 3), "f"), "w")
    nodes = [node("Conv", ["x", "w"], ["y%d" % i]) for i in range(5)]
    loaded = tn.onnx.load(model(nodes, [value_info("x", shape=[1, 4, 5, 5])],
                                ["y%d" % i for i in range(5)], [w]))
    filters = [loaded.outputs["y%d" % i].op.inputs[1].op.type for i in range(5)]
    assert filters == ["Const"] * 2 + ["Transpose"] * 3
    results = list(loaded.run([np.ones((1, 4, 5, 5), "f")]).values())
    assert all((r == 36).all() for r in results)
