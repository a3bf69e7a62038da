# SPDX-License-Identifier: Apache-2.0
"""Python values and arrays to tensors and back."""

import decimal
import fractions
import gc
import sys

import numpy as np
import pytest

import treenail as tn

PLAIN = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
         "uint32", "uint64", "bool", "complex64", "complex128"]


def nested(depth):
    return [nested(depth - 1)] if depth else 1


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4), (70, 70)])
def test_arrays_of_every_dtype_come_back_unchanged(name, shape, evaluate, rng):
    array = np.asarray(rng.randint(0, 2, shape) * 3).astype(name)
    x = tn.placeholder(name, shape)
    assert x.dtype == name
    result = evaluate(tn.identity(x), {x: array})
    assert result.dtype == array.dtype and result.shape == array.shape
    np.testing.assert_array_equal(result, array)
    np.testing.assert_array_equal(evaluate(tn.constant(array)), array)


@pytest.mark.parametrize("change", [lambda a: a.T, lambda a: a[::2], lambda a: a[:, ::-1],
                                    lambda a: a.astype(">f4"), lambda a: np.asfortranarray(a),
                                    lambda a: np.broadcast_to(a[0], a.shape),
                                    lambda a: np.frombuffer(b"\0" + a.tobytes(),
                                                            np.uint8)[1:].view("f4")])
def test_layouts_that_kernels_do_not_take_are_copied(change, evaluate, rng):
    array = change(rng.rand(60, 40).astype(np.float32))
    x = tn.placeholder(tn.float32)
    np.testing.assert_array_equal(evaluate(x * 2, {x: array}), array * 2)


def test_scalars_are_fetched_as_numpy_scalars(evaluate):
    value = evaluate(tn.constant(1.5))
    assert isinstance(value, np.float32) and value == 1.5
    assert evaluate(tn.constant(True)) is np.True_
    assert evaluate(tn.constant("Hölz")) == "Hölz".encode()


@pytest.mark.parametrize("value,dtype,shape",
                         [(1, "int32", ()), (-2**31, "int32", ()), (2**31, "int64", ()),
                          (2**63, "uint64", ()), (1.0, "float32", ()), (True, "bool", ()),
                          (1j, "complex128", ()), ("a", "string", ()), (b"a", "string", ()),
                          ([], "float32", (0,)), ([[], []], "float32", (2, 0)),
                          ([1, 2.5], "float32", (2,)), ([[1], [2]], "int32", (2, 1)),
                          ([1, 2**40], "int64", (2,)), ([True, False], "bool", (2,)),
                          (["a", b"b"], "string", (2,)), ((1, 2), "int32", (2,)),
                          (np.float64(1), "float64", ()), ([np.float64(1), 2], "float64", (2,)),
                          ([np.ones(2), np.zeros(2)], "float64", (2, 2)), (range(3), "int64", (3,)),
                          (np.int8(1), "int8", ())])
def test_natural_dtypes(value, dtype, shape):
    tensor = tn.constant(value)
    assert tensor.dtype == dtype
    assert tensor.shape.as_list() == list(shape)


@pytest.mark.parametrize("value,dtype,error,text",
                         [(1.5, "int32", TypeError, "Expected int32, got "
                           "1.5 of type 'float' instead"),
                          (True, "int32", TypeError,
                           "Expected int32, got True of type 'bool' instead"),
                          (1, "bool", TypeError, "Expected bool, got 1 of type 'int' instead"),
                          ("a", "float32", TypeError,
                           "Expected float32, got 'a' of type 'str' instead"),
                          (1, "string", TypeError, "Expected string, got 1 of type 'int' instead"),
                          (1j, "float32", TypeError,
                           "Expected float32, got 1j of type 'complex' instead"),
                          (300, "uint8", ValueError, "integer 300 does not fit uint8"),
                          (-1, "uint64", ValueError, "integer -1 does not fit uint64"),
                          (2**64, None, ValueError, "does not fit 64 bits"),
                          (None, None, ValueError, "None values not supported"),
                          ([[1, 2], [3]], None, ValueError, "Argument must be a dense tensor: a "
                           "list on level 1 has 1 elements where earlier ones have 2"),
                          ([1, [2]], None, ValueError, "Argument must be a dense tensor"),
                          (["a", 1], None, TypeError, "mixes strings and numbers"),
                          (object(), None, TypeError,
                           "Failed to convert object of type 'object' to Tensor"),
                          (nested(33), None, ValueError, "nested more than 32 deep"),
                          (np.zeros(2, "M8[s]"), None, TypeError,
                           "has no counterpart among tensor dtypes"),
                          (np.array([None]), None, TypeError,
                           "only str and bytes make a string tensor")])
def test_values_that_do_not_convert(value, dtype, error, text):
    with pytest.raises(error, match=text.replace("(", r"\(").replace(")", r"\)")):
        tn.constant(value, dtype)


def test_self_containing_list_is_refused():
    value = []
    value.append(value)
    with pytest.raises(ValueError, match="nested more than 32 deep"):
        tn.constant(value)


@pytest.mark.parametrize("given,needed,error",
                         [("float64", "float32", None), ("int64", "int32", None),
                          ("int32", "float32", None), ("bool", "float32", None),
                          ("float32", "int32", TypeError), ("float32", "bool", TypeError),
                          ("complex64", "float32", TypeError)])
def test_feeds_of_another_dtype(given, needed, error, evaluate):
    x = tn.placeholder(needed, [2])
    array = np.array([0, 1]).astype(given)
    if error is None:
        result = evaluate(tn.identity(x), {x: array})
        assert result.dtype == needed
        np.testing.assert_array_equal(result, [0, 1])
    else:
        with pytest.raises(error, match="an array of dtype %s was given where %s is needed"
                           % (given, needed)):
            evaluate(tn.identity(x), {x: array})


D = decimal.Decimal


@pytest.mark.parametrize("value,dtype", [
    (1, "bool"), (0, "bool"), ([1, 0], "bool"), (np.array([0, 1]), "bool"), (np.int8(1), "bool"),
    (True, "int32"), (True, "float32"), ([True, 2], "int64"), ([True, 2.5], "float64"),
    ([[True], [False]], "uint8"), (True, "complex64"), (D("1.5"), "float32"), (D(7), "int32"),
    ([D("0.5"), 2, 1.5], "float64"), ([D(1), True], "int8"), (D(1), "bool"),
    (fractions.Fraction(1, 4), "float16"), (np.array([[1.5], [2]], object), "float32"),
    (np.array([1, D(3)], object)[::-1], "int64")])
def test_feeds_that_numpy_converts_exactly(value, dtype, evaluate):
    x = tn.placeholder(dtype)
    result = evaluate(tn.identity(x), {x: value})
    expected = np.asarray(value, dtype)
    assert result.dtype == expected.dtype and result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("value,dtype,error,text", [
    (2, "bool", ValueError, "integers other than 0 and 1 were given where bool is needed: 2"),
    (np.array([0, 2]), "bool", ValueError, "other than 0 and 1 were given where bool is needed"),
    (1.0, "bool", TypeError, "Expected bool, got 1.0 of type 'float' instead"),
    (1.0, "int32", TypeError, "Expected int32, got 1.0 of type 'float' instead"),
    ([True, 1.5], "int32", TypeError, "Expected int32, got True of type 'bool' instead"),
    ([True, 300], "uint8", ValueError, "values that do not fit the needed dtype uint8"),
    (D("1.5"), "int32", ValueError, r"Decimal\('1.5'\).* that do not fit the needed dtype int32"),
    (D(2**70), "int64", ValueError, "does not fit int64"),
    (D(2), "bool", ValueError, "do not fit the needed dtype bool"),
    (True, "string", TypeError, "Expected string, got True"),
    (np.array([1.5, "a"], object), "float32", TypeError, "an object array was given, whose element "
     "1 is 'a' of type 'str'; needed is dtype float32"),
    (np.array([None]), "int32", TypeError, "an object array was given, whose element 0 is None of "
     "type 'NoneType'; needed is dtype int32"),
    (object(), "float32", TypeError, "Failed to convert object of type 'object' to Tensor"),
    ("\ud800", "string", ValueError, r"'\\ud800' cannot be encoded as UTF-8"),
    (["a", "\ud800"], "string", ValueError, r"'\\ud800' cannot be encoded as UTF-8"),
    (nested(33), "float32", ValueError, "nested more than 32 deep")])
def test_feeds_that_do_not_convert(value, dtype, error, text, evaluate):
    x = tn.placeholder(dtype, name="x")
    with pytest.raises(error, match="Cannot feed value for tensor 'x:0', which has dtype %s: .*%s"
                       % (dtype, text)):
        evaluate(tn.identity(x), {x: value})


def test_constants_of_objects_say_what_they_hold():
    with pytest.raises(TypeError, match="an object array was given, whose element 0 is None of type"
                                        " 'NoneType'; needed is dtype float32"):
        tn.constant(np.array([[None, 1.0]]), tn.float32)


def test_an_empty_result_of_a_shape_that_numpy_has_not(evaluate):
    shape = tn.placeholder(tn.int64, [2])
    empty = tn.fill(shape, 1.0, name="big")
    with pytest.raises(tn.errors.InvalidArgumentError,
                       match=r'\[Fill node "big"\] its result of shape \[0,4611686018427387904\]'):
        evaluate(empty, {shape: [0, 2**62]})
    assert evaluate(empty, {shape: [0, 2**40]}).shape == (0, 2**40)


@pytest.mark.parametrize("kind", [tn.constant, lambda v: tn.Variable(v)])
def test_searching_a_symbolic_tensor(kind):
    with pytest.raises(TypeError, match="cannot be iterated over|not iterable"):
        1.0 in kind([1.0])
    with pytest.raises(TypeError, match="A symbolic Tensor .* cannot be iterated over"):
        1.0 in tn.constant([1.0])
    assert 2.0 in tn.execute("Add", [[1.0, 2.0], 0.0])
    assert 3.0 not in tn.execute("Add", [[1.0, 2.0], 0.0])


def test_integers_that_do_not_fit_are_refused(evaluate):
    x = tn.placeholder(tn.int32, [2])
    with pytest.raises(ValueError, match="holds values that do not fit the needed dtype int32"):
        evaluate(tn.identity(x), {x: np.array([1, 2**40])})


def test_strings(evaluate):
    for array in (np.array(["a", "bä", ""]), np.array([b"a", "bä".encode(), b""]),
                  np.array(["a", "bä", b""], object)):
        x = tn.placeholder(tn.string, [3])
        assert evaluate(tn.identity(x), {x: array}).tolist() == [b"a", "bä".encode(), b""]


def test_bfloat16_crosses_as_bits(evaluate):
    bits = np.array([0x3f80, 0xc000, 0x7f80], np.uint16)  # 1, -2, inf
    x = tn.placeholder(tn.bfloat16, [3])
    wide = evaluate(tn.cast(x, tn.float32), {x: bits})
    np.testing.assert_array_equal(wide, [1, -2, np.inf])
    assert evaluate(tn.cast(tn.constant([1.0, -2.0, np.inf]),
                            tn.bfloat16)).tolist() == bits.tolist()
    # Numbers are rounded to nearest, ties to even.
    np.testing.assert_array_equal(evaluate(tn.identity(x),
                                           {x: np.float32([1 + 2**-9, 1 + 3 * 2**-8, 2])}),
                                  [0x3f80, 0x3f82, 0x4000])
    result, = tn._core.execute("Neg", [bits], {"T": "bfloat16"})
    assert result.dtype == np.uint16 and result[0] == 0xbf80


def test_a_large_result_takes_over_its_memory(evaluate):
    x = tn.placeholder(tn.float32)
    result = evaluate(x + 1, {x: np.ones((1000, 100))})
    assert type(result.base).__name__ == "PyCapsule" and result.flags.writeable
    result += 1
    assert result.sum() == 3e5


def test_a_variable_is_fetched_as_a_copy():
    v = tn.Variable(tn.ones([100, 100]))
    with tn.Session() as sess:
        sess.run(v.initializer)
        first = sess.run(v)
        first += 5
        np.testing.assert_array_equal(sess.run(v), np.ones((100, 100)))


def test_a_fetched_array_does_not_change_with_the_variable():
    v = tn.Variable(tn.zeros([100, 100]))
    with tn.Session() as sess:
        sess.run(v.initializer)
        first = sess.run(v)
        sess.run(v.assign_add(np.ones((100, 100), np.float32)))
        assert first.sum() == 0


def test_a_fed_array_is_given_back_and_not_shared(evaluate):
    x = tn.placeholder(tn.float32)
    array = np.ones((100, 100), np.float32)
    count = sys.getrefcount(array)
    result = evaluate(tn.identity(x), {x: array})
    result[:] = 7
    assert array.sum() == 10000
    assert sys.getrefcount(array) == count


def test_a_fed_array_does_not_change_a_variable():
    v = tn.Variable(tn.zeros([100, 100]))
    x = tn.placeholder(tn.float32)
    assign = v.assign(x, read_value=False)
    array = np.ones((100, 100), np.float32)
    with tn.Session() as sess:
        sess.run(assign, {x: array})
        array[:] = 9
        assert sess.run(v).sum() == 10000
    del array
    gc.collect()


def test_whatever_offers_an_array_is_taken():
    class Offers:
        def __array__(self, dtype=None):
            return np.arange(3, dtype=np.float32)
    assert tn.constant(Offers()).shape.as_list() == [3]


def test_shapes_are_integer_vectors(evaluate):
    assert evaluate(tn.reshape(tn.zeros([6]), tn.TensorShape([2, 3]))).shape == (2, 3)
    with pytest.raises(ValueError, match="partially known TensorShape"):
        tn.convert_to_tensor(tn.TensorShape([2, None]))


def test_lists_with_tensors_are_stacked(evaluate):
    n = tn.constant(2)
    assert evaluate(tn.convert_to_tensor([n, 3, [4][0]])).tolist() == [2, 3, 4]
    assert evaluate(tn.convert_to_tensor([[n, 1], [2, n]])).tolist() == [[2, 1], [2, 2]]
    assert evaluate(tn.reshape(tn.zeros([6]), [n, -1])).shape == (2, 3)


def test_concrete_tensors():
    t = tn.execute("Add", [[1.0, 2.0], 3.0])
    assert t.shape.as_list() == [2] and t.dtype == tn.float32
    np.testing.assert_array_equal(t.numpy(), [4, 5])
    assert (t * 2).op.type == "Mul"  # the context decides, not what the operands are
    with tn.eager():
        np.testing.assert_array_equal(np.asarray(t * 2), [8, 10])
        assert [float(row) for row in t] == [4, 5]
    assert float(tn.execute("Sum", [t, [0]])) == 9.0 and len(t) == 2
    with pytest.raises(AttributeError, match="concrete tensor has no name"):
        t.name
    values, indices = tn.execute("SoftmaxCrossEntropyWithLogits", [[[0.0, 0.0]], [[1.0, 0.0]]])
    assert values.numpy() == pytest.approx(np.log(2))
    x = tn.placeholder(tn.float32, [2])
    assert not hasattr(x, "graph") or (x + t).op.type == "Add"


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                                   "uint64"])
@pytest.mark.parametrize("given", ["float32", "float64"])
def test_floats_beyond_an_integer_type_become_its_ends(given, dtype):
    """Folded, alone and in a fused group, whatever the place in a vector: one law
    (docs/decisions/float-to-integer.md)."""
    values = np.resize([np.nan, np.inf, -np.inf, 1e30, -1e30, 3e9, -3e9, 2.5, -2.5], 1003)
    limits = np.iinfo(dtype)
    wanted = [0 if np.isnan(v) else limits.max if v >= limits.max else max(int(v), limits.min)
              if np.isfinite(v) else limits.min for v in values]
    x = tn.placeholder(given, [None])
    folded = tn.cast(tn.constant(values, given), dtype)
    alone, fused = tn.cast(x, dtype), tn.cast(tn.maximum(x * 1, x), dtype)
    narrow = tn.saturate_cast(x, dtype)
    with tn.Session() as sess:
        for result in sess.run([folded, alone, fused, narrow], {x: values}):
            assert result.dtype == dtype
            np.testing.assert_array_equal(result, np.array(wanted, dtype))
