# SPDX-License-Identifier: Apache-2.0
"""The networks and the single operations as ONNX models in onnxruntime.

A result is fresh, from the session's arena: a bound output would be written again by each run.
Images have channels first, as ONNX has them, and weights are initialisers, which the session brings
into its own order once.
"""

import networks
import numpy as np
import onnx
import onnxruntime
import works
from onnx import helper, numpy_helper

OPSET = 20      # the first with Gelu
IR_VERSION = 9  # of that opset
FLOAT = onnx.TensorProto.FLOAT


class Model:
    """Nodes and initialisers, added one by one; a value is its name."""

    def __init__(self) -> None:
        self.nodes, self.constants = [], []

    def constant(self, array) -> str:
        name = "constant_%d" % len(self.constants)
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def op(self, kind: str, *inputs, results: int = 1, **attributes):
        """The result, or a list of several."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        out = ["%s_%d_%d" % (kind, len(self.nodes), i) for i in range(results)]
        self.nodes.append(helper.make_node(kind, names, out, **attributes))
        return out[0] if results == 1 else out

    def serialized(self, result: str, **shapes) -> bytes:
        """`shapes` of the inputs by name."""
        graph = helper.make_graph(
            self.nodes, "bench",
            [helper.make_tensor_value_info(name, FLOAT, list(shape))
             for name, shape in shapes.items()],
            [helper.make_tensor_value_info(result, FLOAT, None)], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                                  ir_version=IR_VERSION)
        return model.SerializeToString()


def dense_layers(m, x, w, count):
    for i in range(1, count + 1):
        x = m.op("Gemm", x, w["w%d" % i].T, w["b%d" % i])
        if i < count:
            x = m.op("Relu", x)
    return x


def pooled(m, x, weight, bias, padding):
    x = m.op("Relu", m.op("Conv", x, weight, bias, pads=[padding] * 4))
    return m.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])


def convolutional(m, x, w, paddings, count):
    for i, padding in enumerate(paddings, 1):
        x = pooled(m, x, w["f%d" % i], w["c%d" % i], padding)
    return dense_layers(m, m.op("Flatten", x), w, count)


def lstm(m, x, w):
    def in_order(value):  # from the gates i, f, g, o to ONNX's i, o, f, c
        return value.reshape((4, -1))[[0, 3, 1, 2]].reshape(value.shape)[None]

    bias = np.concatenate([in_order(w["b1"]), np.zeros((1, 512), np.float32)], 1)
    _, last, _ = m.op("LSTM", x, in_order(w["wx"]), in_order(w["wh"]), bias, hidden_size=128,
                      results=3)
    last = m.op("Squeeze", last, np.array([0], np.int64))
    return m.op("Gemm", last, w["w2"].T, w["b2"])


def resnet(m, x, w):
    def normalized(y, scale, offset):
        return m.op("BatchNormalization", y, scale, offset, np.zeros(64, np.float32),
                    np.ones(64, np.float32), epsilon=networks.EPSILON)

    y = m.op("Conv", x, w["f1"], pads=[1] * 4)
    y = m.op("Relu", normalized(y, w["g1"], w["o1"]))
    y = normalized(m.op("Conv", y, w["f2"], pads=[1] * 4), w["g2"], w["o2"])
    return m.op("Relu", m.op("Add", y, x))


def transformer(m, x, w):
    batch, length, width = networks.INPUTS["transformer"]
    heads = networks.HEADS

    def dense(y, weight, bias):
        return m.op("Add", m.op("MatMul", y, weight.T), bias)

    def norm(y, scale, offset):
        return m.op("LayerNormalization", y, scale, offset, axis=-1, epsilon=networks.EPSILON)

    def by_head(y, order):
        y = m.op("Reshape", y, np.array([batch, length, heads, width // heads]))
        return m.op("Transpose", y, perm=order)

    query, key, value = m.op("Split", dense(x, w["wqkv"], w["bqkv"]), results=3, axis=-1,
                             num_outputs=3)
    scores = m.op("MatMul", by_head(query, [0, 2, 1, 3]), by_head(key, [0, 2, 3, 1]))
    scores = m.op("Mul", scores, np.float32((width // heads) ** -0.5))
    y = m.op("MatMul", m.op("Softmax", scores, axis=-1), by_head(value, [0, 2, 1, 3]))
    y = m.op("Reshape", m.op("Transpose", y, perm=[0, 2, 1, 3]), np.array([batch, length, width]))
    x = norm(m.op("Add", x, dense(y, w["wo"], w["bo"])), w["g1"], w["o1"])
    y = dense(m.op("Relu", dense(x, w["w1"], w["b1"])), w["w2"], w["b2"])
    return norm(m.op("Add", x, y), w["g2"], w["o2"])


BUILDERS = {"mlp": lambda m, x, w: dense_layers(m, x, w, 3),
            "lenet": lambda m, x, w: convolutional(m, x, w, (2, 0), 3),
            "cnn": lambda m, x, w: convolutional(m, x, w, (2, 2), 2),
            "lstm": lstm, "resnet": resnet, "transformer": transformer}


def call_of(model: bytes, feed, threads: int):
    """A function that runs it and returns the result."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feed)[0]


def network(name: str, inputs, threads: int):
    """Inference: a function of nothing."""
    model = Model()
    result = BUILDERS[name](model, "x", networks.channels_first_weights(name))
    return call_of(model.serialized(result, x=inputs.shape), {"x": inputs}, threads)


def chain(m, work, x):
    y = m.op("Relu", m.op("Add", m.op("Mul", x, np.float32(1.1)), np.float32(0.5)))
    y = m.op("Sub", m.op("Add", m.op("Mul", y, np.float32(0.9)), x), np.float32(0.3))
    return m.op("Mul", m.op("Tanh", y), np.float32(2))


def layer_norm(m, work, x):
    return m.op("LayerNormalization", x, np.ones(1024, np.float32), np.zeros(1024, np.float32))


OPERATIONS = {
    "add": lambda m, work, x, y: m.op("Add", x, y),
    "chain": chain,
    "tanh": lambda m, work, x: m.op("Tanh", x),
    "gelu": lambda m, work, x: m.op("Gelu", x, approximate="tanh"),
    "softmax": lambda m, work, x: m.op("Softmax", x),
    "layer_norm": layer_norm,
    "sum": lambda m, work, x: m.op("ReduceSum", x, keepdims=0),
    "transpose": lambda m, work, x: m.op("Transpose", x),
    "matmul": lambda m, work, x, y: m.op("MatMul", x, y),
    "conv": lambda m, work, x, f: m.op("Conv", x, f, strides=[work.stride] * 2,
                                       pads=[f.shape[2] // 2] * 4),
}


def operation(work: works.Work, threads: int):
    """A function of nothing; raises NotImplementedError where ONNX has no such operation. A second
    factor and a filter are weights."""
    if work.kind not in OPERATIONS:
        raise NotImplementedError(work.kind)
    arrays = works.channels_first_inputs(work)
    model = Model()
    feed = {"x": arrays[0]}
    if work.kind == "add":
        feed["y"] = arrays[1]
    values = [*feed, *arrays[len(feed):]]
    result = OPERATIONS[work.kind](model, work, *values)
    shapes = {name: array.shape for name, array in feed.items()}
    return call_of(model.serialized(result, **shapes), feed, threads)
