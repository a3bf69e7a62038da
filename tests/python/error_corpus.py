# SPDX-License-Identifier: Apache-2.0
"""Mistakes and what they get: (name, what is done, class, expected text as a regular expression).

Each entry is a function of a session on a fresh default graph. The text must say what was given and
what is needed, and name the operation where there is one. test_errors.py runs them all.
"""

import numpy as np

import treenail as tn

E = tn.errors


def _run(build, feed=None):
    def call(sess):
        fetch = build()
        sess.run(fetch, feed(fetch) if feed else None)
    return call


def _fed(dtype, shape, value, use=lambda x: x * 1):
    """Feeds `value` to a placeholder called x."""
    def call(sess):
        x = tn.placeholder(dtype, shape, name="x")
        sess.run(use(x), {x: value})
    return call


def _unfed(sess):
    x = tn.placeholder(tn.float32, [None, 784], name="images")
    sess.run(tn.reduce_sum(x) + 1)


def _uninitialised(sess):
    sess.run(tn.Variable(1.0, name="net/weights") * 2)


def _foreign_feed(sess):
    x = tn.constant(1.0)
    with tn.Graph().as_default():
        other = tn.placeholder(tn.float32, name="other")
    sess.run(x, {other: 1.0})


def _foreign_fetch(sess):
    with tn.Graph().as_default():
        other = tn.constant(1.0, name="other")
    sess.run(other)


def _fed_twice(sess):
    x = tn.placeholder(tn.float32, [], name="x")
    sess.run(x * 1, {x: 1.0, "x:0": 2.0})


def _closed(sess):
    x = tn.constant(1)
    sess.close()
    sess.run(x)


def _assign_of_another_shape(sess):
    v = tn.Variable([1.0, 2.0], name="v")
    x = tn.placeholder(tn.float32, [None], name="x")
    sess.run(v.initializer)
    sess.run(v.assign(x), {x: [1, 2, 3]})


def _finalized(sess):
    tn.get_default_graph().finalize()
    tn.constant(1)


def _on_a_device_of_another_kind(sess):
    x = tn.placeholder(tn.float32, [])
    with tn.device("/device:XPU:0"):
        y = tn.negative(x, name="far")
    sess.run(y, {x: 1.0})


SHAPES = [
    ("matmul of different inner dimensions",
     lambda s: tn.matmul(tn.zeros([64, 784]), tn.zeros([512, 10]), name="h1/MatMul"), ValueError,
     r'\[MatMul node "h1/MatMul"\] inner dimensions differ: a is \[64,784\], b is \[512,10\]'),
    ("operands that do not broadcast", lambda s: tn.zeros([2, 3]) + tn.zeros([4]), ValueError,
     r'\[Add node "add"\]|Incompatible shapes: \[2,3\] vs. \[4\]'),
    ("a feed of another shape", _fed("float32", [None, 784], np.zeros((3, 28))), ValueError,
     r'Cannot feed value of shape \[3,28\] for tensor "x:0", which has shape \[\?,784\]'),
    ("a feed of another rank", _fed("float32", [2], 1.0), ValueError,
     r'Cannot feed value of shape \[\] for tensor "x:0", which has shape \[2\]'),
    ("a negative extent", lambda s: tn.placeholder(tn.float32, [-5]), ValueError, "-5"),
    ("an extent beyond 64 bits", lambda s: tn.placeholder(tn.float32, [2**64]), ValueError,
     "extent 18446744073709551616 does not fit 64 bits"),
    ("a product beyond 64 bits", lambda s: tn.zeros([2**62, 4]), ValueError, "4611686018427387904"),
    ("a product beyond 64 bits at run time", _fed(
        "int64", [2], [2**62, 4], lambda x: tn.fill(x, 1.0)), ValueError, "4611686018427387904"),
    ("a negative extent at run time", _fed("int32", [1], [-3], lambda x: tn.fill(x, 1.0)),
     ValueError, "-3"),
    ("more memory than there is", _fed("int64", [2], [2**30, 2**30], lambda x: tn.fill(x, 1.0)),
     MemoryError, r"\[Fill node"),
    ("too many axes", lambda s: tn.placeholder(tn.float32, [1] * 33), ValueError,
     "rank 33 is above 32"),
    ("a reshape to another size at run time", _fed(
        "float32", [None], [1, 2, 3], lambda x: tn.reshape(x, [2, 2], name="r")), ValueError,
     r'\[Reshape node "r"\]'),
    ("an assignment of another shape", _assign_of_another_shape, ValueError,
     r'\[AssignVariableOp node "Assign"\].*\[2\].*\[3\]'),
]

DTYPES = [("operands of different dtypes", lambda s: tn.constant(1.0) + tn.constant(1), ValueError,
           r'\[Add node ".*"\] input "y" has dtype int32, but input "x" has float32; both are T'),
          ("a number that does not fit the operand", lambda s: tn.constant(1) + 1.5, TypeError,
           "Input 'y' of 'Add' Op: Expected int32, got 1.5 of type 'float' instead"),
          ("a string for a number", lambda s: tn.constant("a", tn.float32), TypeError,
           "Expected float32, got 'a' of type 'str' instead"),
          ("a feed that cannot be cast", _fed("int32", [2], np.float32([1.5, 2.5])), TypeError,
           "Cannot feed value for tensor 'x:0', which has dtype int32: an array of dtype float32 "
           "was " "given where int32 is needed"),
          ("a fed integer that does not fit", _fed("uint8", [1], [300]), ValueError,
           "Cannot feed value for tensor 'x:0', which has dtype uint8: integer 300 does not fit "
           "uint8"), ("a dtype that an op does not take", lambda s: tn.exp(tn.constant(1)),
                      ValueError, r'\[Exp node "exp"\]|int32'),
          ("a name that is no dtype", lambda s: tn.placeholder("float33"), TypeError,
           "no dtype is called 'float33'"), ("an object that is no dtype",
                                             lambda s: tn.placeholder(object()), TypeError,
                                             "for a dtype"),
          ("an attribute of another kind", lambda s: tn.raw_ops.MatMul([[1.0]], [[1.0]], "yes"),
           TypeError, r'attribute "transpose_a" must be bool, not \'yes\''),
          ("an attribute out of its set", lambda s: tn.raw_ops.MaxPool(tn.zeros([1, 2, 2, 1]),
                                                                       ksize=[1, 1, 1, 1],
                                                                       strides=[1, 1, 1, 1],
                                                                       padding="same"), ValueError,
           'attribute "padding" = "same" is not one of "SAME", "VALID"'),
          ("an attribute that is missing", lambda s: tn.raw_ops.MaxPool(tn.zeros([1, 2, 2, 1])),
           ValueError, r'attribute "(ksize|strides|padding)" is missing'),]

NAMES = [
    ("an op nobody registered", lambda s: tn.get_default_graph().create_op("MatMull", [1, 2]),
     LookupError, "MatMull.*MatMul"),
    ("a name with a space", lambda s: tn.constant(1, name="a b"), ValueError,
     r'\[Const node "a b"\] not a valid node name'),
    ("a name that holds a zero byte", lambda s: tn.constant(1, name="a\0b"), ValueError,
     r'\[Const node "a\\0b"\] not a valid node name'),
    ("a name that is no str", lambda s: tn.constant(1, name=3), TypeError, "name must be a str"),
    ("a name that is no device", lambda s: tn.device("/foo:bar").__enter__(), ValueError,
     '"/foo:bar" is not a device name: needed is /job:NAME/replica:N/task:N/device:TYPE:N'),
    ("a device that is not here", _on_a_device_of_another_kind, E.InvalidArgumentError,
     r'\[.* node "far"\] cannot be placed on "/device:XPU:0": this session has /job:localhost'),
    ("a scope name that is no str", lambda s: tn.name_scope(3), TypeError,
     "a scope name must be a str, not 3 of type 'int'"),
    ("a fetch of an unknown operation", lambda s: s.run("nothing"), ValueError,
     "Fetch argument 'nothing' cannot be interpreted as a Tensor. .*not in the graph"),
    ("a fetch of an unknown output", lambda s: s.run([tn.constant(1).op.name + ":3"]), ValueError,
     "Fetch argument 'Const:3' cannot be interpreted as a Tensor"),
    ("a fetch of another graph", _foreign_fetch, ValueError, "other:0 is not an element of this"),
    ("a fetch of nothing", lambda s: s.run(None), TypeError,
     "Fetch argument None has invalid type 'NoneType', must be a string, Tensor, Operation"),
    ("a fetch of a number", lambda s: s.run([1.5]), TypeError, "Fetch argument 1.5 has invalid"),
    ("a feed of an unknown name", lambda s: s.run(tn.constant(1), {"y:0": 1}), TypeError,
     "Cannot interpret feed_dict key as Tensor: The name 'y:0' refers to a Tensor which does not"),
    ("a feed of another graph", _foreign_feed, TypeError,
     "Cannot interpret feed_dict key as Tensor: .* is not an element of this graph"),
    ("a feed of an operation", lambda s: s.run(tn.constant(1), {tn.constant(1).op: 1}), TypeError,
     "Cannot interpret feed_dict key as Tensor"),
    ("a feed with a tensor as value", lambda s: s.run(tn.constant(1), {
        tn.placeholder(tn.float32, name="x"): tn.constant(1.0)}), TypeError,
     "The value of a feed cannot be a symbolic Tensor .given for x:0"),
    ("a value fed twice", _fed_twice, ValueError, '"x:0" is fed more than once'),
    ("feeds that are no dict", lambda s: s.run(tn.constant(1), [1]), TypeError, "must be a dict"),
    ("an argument run() has not", lambda s: s.run(tn.constant(1), feeds={}), TypeError,
     "unexpected keyword argument 'feeds'"),
    ("a function with too few arguments", lambda s: tn.raw_ops.MatMul([[1.0]]), TypeError,
     "mat_mul.. misses the argument 'b'"),
    ("an attribute the op has not", lambda s: tn.raw_ops.MatMul([[1.0]], [[1.0]], trans=True),
     TypeError, "mat_mul.. got an unexpected keyword argument 'trans'"),
]

STATE = [
    ("a placeholder that is not fed", _unfed, E.InvalidArgumentError,
     r'\[Placeholder node "images"\] You must feed a value for placeholder tensor "images" with '
     r'dtype float32 and shape \[\?,784\]'),
    ("a variable without a value", _uninitialised, E.FailedPreconditionError, "net/weights"),
    ("a closed session", _closed, E.FailedPreconditionError, "the session is closed"),
    ("a finalized graph", _finalized, E.FailedPreconditionError, "the graph is finalized"),
    ("a checkpoint that is not there", lambda s: tn.train.load_checkpoint("/nonexistent/model"),
     E.NotFoundError, "/nonexistent/model"),
    ("a graph file that is not there", lambda s: tn.load_graph("/nonexistent/graph"),
     E.NotFoundError, "/nonexistent/graph"),
    ("a graph saved where nothing can be", lambda s: tn.get_default_graph().save("/nonexistent/g"),
     E.NotFoundError, "/nonexistent"),
]

VALUES = [
    ("an index outside", _run(lambda: tn.gather([1.0, 2.0, 3.0], tn.placeholder(
        tn.int32, [2], name="i"), name="g"), lambda y: {y.op.inputs[1]: [0, 7]}),
     E.InvalidArgumentError, r'\[Gather node "g"\] indices\[1\] = 7 is not in \[0, 3\)'),
    ("a division of integers by zero", _fed("int32", [2], [1, 0], lambda x: 5 // x), ValueError,
     r'\[FloorDiv node ".*"\] Integer division by zero'),
    ("a label outside", _fed(
        "int32", [1], [12], lambda x: tn.nn.sparse_softmax_cross_entropy_with_logits(
            labels=x, logits=tn.zeros([1, 10]))), ValueError,
     r"Received a label value of 12 which is outside the valid range of \[0, 10\)"),
    ("a negative power of an integer", _fed("int32", [1], [-1], lambda x: 2 ** x), ValueError,
     r"\[Pow node"),
    ("NaN where it is checked", _fed("float32", [1], [np.nan], lambda x: tn.check_numerics(
        x, "the loss")), ValueError, "the loss.*NaN|NaN.*the loss|the loss"),
]

CORPUS = SHAPES + DTYPES + NAMES + STATE + VALUES
