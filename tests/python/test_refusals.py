# SPDX-License-Identifier: Apache-2.0
"""Who is refused is told which function it was, and what was given where no parameter is named."""

import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest

import treenail as tn


def refusal(call, *args, **kwargs):
    with tn.Graph().as_default(), pytest.raises(Exception) as caught:
        call(*args, **kwargs)
    return caught.value


@pytest.mark.parametrize("call,arguments,text", [
    (tn.nn.conv2d, {"input": 1.0, "filter": 1.0, "strides": 1, "padding": 7}, "conv2d(): "),
    (tn.image.random_brightness, {"image": np.zeros((2, 2, 3)), "max_delta": "much"},
     "random_brightness(): '<' not supported between instances of 'str' and 'int' "
     "(given: image=array of float64, shape [2, 2, 3], max_delta: float='much')"),
    (tn.train.AdamOptimizer().minimize, {"loss": 3}, "AdamOptimizer.minimize(): "),
    (tn.layers.Dense, {"units": "many"}, "Dense(): "),
    (tn.name_scope("a b").__enter__, {}, "name_scope(): 'a b' is not a valid scope name"),
    (tn.string_split, {"source": ["a b"], "result_type": "list"}, "string_split(): "),
    (tn.exp, {"x": 1.0, "name": 3}, "exp(): name must be a str, not 3 of type 'int'"),
    (tn.raw_ops.Cast, {"x": 1.0, "DstT": 99},
     "cast(): attribute \"DstT\": no dtype has the number 99"),
    (tn.raw_ops.LeakyRelu, {"features": 1.0, "alpha": [1]},
     "leaky_relu(): attribute \"alpha\" must be float, not [1] of type 'list'"),
    (tn.exp, {"x": np.zeros(2, "M8[s]")}, "Input 'x' of 'Exp' Op: an array of NumPy dtype"),
])
def test_the_function_is_named(call, arguments, text):
    assert str(refusal(call, **arguments)).startswith(text)


def test_data_formats_that_are_no_strings():
    for wrong in ({"a": 1}, np.zeros((2, 3)), 3, "NHW", ["N", "C"]):
        text = str(refusal(tn.nn.with_space_to_batch, np.zeros((1, 4, 4, 1)), [2, 2], "VALID",
                           lambda *given: given[0], data_format=wrong))
        assert text.startswith("with_space_to_batch(): data_format must be None or one of 'NWC', ")


def test_an_array_spells_a_shape():
    x = tn.placeholder(tn.float32, np.array([2, 3]))
    assert x.shape.as_list() == [2, 3]
    y = tn.placeholder(tn.float32)
    y.set_shape(np.array([4]))
    assert y.shape.as_list() == [4]
    error = refusal(tn.raw_ops.Placeholder, dtype=tn.float32, shape=np.array(2.5))
    assert str(error).startswith("placeholder(): shape: ")


@pytest.mark.parametrize("shape", [[2, 3], None])
def test_axes_that_are_no_pair(shape):
    for axes in ([0], [0, 1, 0], object()):
        with tn.Graph().as_default(), pytest.raises((TypeError, ValueError), match="axes"):
            tn.tensordot(tn.zeros([2, 3]), tn.placeholder(tn.float32, shape), axes)


def test_scalar_logits_of_labels_of_unknown_rank():
    with tn.Graph().as_default(), pytest.raises(ValueError, match="Rank mismatch"):
        tn.nn.sparse_softmax_cross_entropy_with_logits(labels=tn.placeholder(tn.int32), logits=1.0)


def test_variables_of_a_layer_that_was_not_applied():
    with tn.Graph().as_default():
        for layer in (tn.layers.Dense(2), tn.layers.BatchNormalization()):
            assert "has no variables yet" in str(refusal(layer.call, np.zeros((2, 3))))
        cell = tn.rnn.GRUBlockCellV2(2)
        assert "has no variables yet" in str(refusal(cell.call, np.zeros((2, 3)), np.zeros((2, 2))))
        layer = tn.layers.Dense(2)
        layer.build((None, 3))
        assert layer.call(tn.zeros([4, 3])).shape.as_list() == [4, 2]


def test_what_is_no_session():
    with tn.Graph().as_default():
        v = tn.Variable(1.0)
        saver = tn.train.Saver()
        for call in (lambda: saver.save(3, "x"), lambda: saver.restore(v, "x"), lambda: v.eval(3)):
            with pytest.raises(TypeError, match="must be a Session, not"):
                call()


def test_session_run_names_its_arguments():
    with tn.Graph().as_default(), tn.Session() as session:
        x = tn.constant(1.0)
        with pytest.raises(TypeError, match=r"^Session.run\(\): run_metadata must be"):
            session.run(x, run_metadata=[])
        with pytest.raises(TypeError, match=r"^Session.run\(\): options must be a RunOptions"):
            session.run(x, options=3)
        with pytest.raises(TypeError, match=r"^Session.run\(\): Fetch argument 3"):
            session.run(3)


def test_a_value_that_names_no_dtype():
    assert str(refusal(tn.as_dtype, 99)) == "as_dtype(): no dtype has the number 99"
    assert str(refusal(tn.float32.is_compatible_with, 99)) == (
        "DType.is_compatible_with(): no dtype has the number 99")
    assert tn.errors.exception_type_from_error_code(3) is tn.errors.InvalidArgumentError
    error = refusal(tn.errors.exception_type_from_error_code, [3])
    assert type(error) is KeyError and "no error has the code [3]" in str(error)


def test_an_array_where_an_int_is_needed_is_shown():
    error = refusal(tn.raw_ops.OneHot, [1], 3, 1.0, 0.0, axis=np.arange(2))
    assert str(error).startswith("one_hot(): attribute \"axis\" must be int, not array([0, 1])")


def test_an_array_is_shown_that_came_before_any_other():
    """Looking at the first array loads parts of NumPy, which fails while an error is on its way."""
    program = """
import numpy, treenail as tn
try:
    tn.FIFOQueue(numpy.zeros([2, 3], int), tn.float32)
except TypeError as error:
    print("not array([[0" in str(error))
"""
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True,
                          universal_newlines=True)
    assert done.stdout == "True\n"


def test_what_was_given_is_shown_where_the_text_names_no_parameter():
    long = ["x" * 50] * 50
    text = str(refusal(tn.train.get_checkpoint_mtimes, long + [3]))
    assert text.startswith("get_checkpoint_mtimes(): ") and len(text) < 250
    assert "(given: checkpoint_prefixes: Sequence=['xxx" in text


def test_the_outermost_function_of_the_package_is_named_once():
    text = str(refusal(tn.layers.dense, [[1.0]], units="many"))
    assert text.startswith("dense(): ") and text.count("(): ") == 1


def test_exceptions_of_a_program_stay_as_they_are():
    def broken(x):
        raise ValueError("mine")

    def calling(x):
        return tn.image.random_hue(x, "much")
    assert str(refusal(tn.layers.dense, [[1.0]], 2, activation=broken)) == "mine"
    text = str(refusal(tn.layers.dense, [[1.0]], 2, activation=calling))
    assert text.startswith("random_hue(): ")

    def dividing(x):
        return 1 // 0
    assert type(refusal(tn.layers.dense, [[1.0]], 2, activation=dividing)) is ZeroDivisionError

    class Mine(tn.layers.Layer):
        def call(self, inputs):
            raise TypeError("mine")
    assert str(refusal(Mine(), [[1.0]])) == "mine"


def test_the_class_and_the_place_of_an_exception_stay():
    error = refusal(tn.image.random_hue, np.zeros((2, 2, 3)), "much")
    assert type(error) is TypeError
    assert [frame.f_code.co_name for frame in frames(error)][-1] == "random_hue"


def test_arithmetic_with_a_wrong_value_is_a_wrong_value():
    error = refusal(tn.TensorShape([2]).with_rank, 10 ** 30)
    assert type(error) is ValueError and "must be between 0 and 254" in str(error)
    error = refusal(tn.layers.Dense(2).build, [None, 10 ** 400])
    assert type(error) is ValueError and str(error).startswith("Dense.build(): ")
    assert type(error.__cause__) is OverflowError


def frames(error):
    traceback = error.__traceback__
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next


def test_a_function_is_one_object_by_all_its_names():
    assert tn.math.reduce_sum is tn.reduce_sum and tn.math.arg_max is tn.arg_max
    assert tn.tanh is tn.nn.tanh and tn.random.normal is tn.random_normal
    assert pickle.loads(pickle.dumps(tn.reduce_sum)) is tn.reduce_sum
    assert pickle.loads(pickle.dumps(tn.nn.relu6)) is tn.nn.relu6
    assert tn.rnn.BasicLSTMCell(3, activation=tn.tanh)._activation is tn.nn.tanh
    assert "axis" in inspect.signature(tn.reduce_sum).parameters
    assert tn.reduce_sum.__doc__ and tn.reduce_sum.__module__ == "treenail._math"
