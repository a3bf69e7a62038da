# SPDX-License-Identifier: Apache-2.0
"""tn.gradients and gradient rules in Python. What each op's rule computes: tests/cases."""

import numpy as np
import pytest

import treenail as tn


def test_of_a_scalar_function(evaluate):
    x, y = tn.constant(3.0), tn.constant(4.0)
    z = x * x * y + tn.exp(y) / x
    gx, gy = tn.gradients(z, [x, y])
    np.testing.assert_allclose(evaluate([gx, gy]), [24 - np.exp(4) / 9, 9 + np.exp(4) / 3],
                               rtol=1e-5)


def test_ys_are_summed_and_grad_ys_weigh_them(evaluate):
    x = tn.constant([1.0, 2.0])
    assert evaluate(tn.gradients([x * 2, x * 3], x)[0]).tolist() == [5, 5]
    assert evaluate(tn.gradients([x * 2, x * 3], x, [[1.0, 0.0], None])[0]).tolist() == [5, 3]
    assert evaluate(tn.gradients(x * x, x, grad_ys=[[10.0, 1.0]])[0]).tolist() == [20, 4]


def test_none_where_no_path_leads():
    x, y = tn.constant(1.0), tn.constant(2.0)
    assert tn.gradients(y * 2, [x]) == [None]
    assert tn.gradients(tn.stop_gradient(x) * 2, x) == [None]
    assert tn.gradients(tn.cast(tn.cast(x, tn.int32), tn.float32), x) == [None]
    assert tn.gradients(y, []) == []


def test_stop_gradients(evaluate):
    a = tn.constant(2.0)
    b = a * 3
    plain, stopped = tn.gradients(a + b, [a, b]), tn.gradients(a + b, [a, b], stop_gradients=[a, b])
    assert evaluate([plain, stopped]) == [[4, 1], [1, 1]]


def test_with_respect_to_inner_values_and_itself(evaluate):
    x = tn.constant(2.0)
    y = x * x
    z = y * y
    assert evaluate(tn.gradients(z, [y, x, z])) == [8, 32, 1]


def test_of_variables(evaluate):
    v = tn.Variable([1.0, 2.0])
    loss = tn.reduce_sum(v * v) + tn.reduce_sum(3 * v.read_value())  # every read counts
    assert evaluate(tn.gradients(loss, v)[0]).tolist() == [5, 7]


def test_gathers_give_slices(evaluate):
    v = tn.Variable(np.ones((4, 2), np.float32))
    rows = tn.nn.embedding_lookup(v, [1, 3, 1])
    gradient = tn.gradients(tn.reduce_sum(rows * [[1.0], [2.0], [3.0]]), v)[0]
    assert isinstance(gradient, tn.IndexedSlices) and gradient.shape == [4, 2]
    assert gradient.dtype == tn.float32
    dense = evaluate(tn.convert_to_tensor(gradient))
    np.testing.assert_array_equal(dense, [[0, 0], [4, 4], [0, 0], [2, 2]])
    value = evaluate(gradient)
    assert value.indices.tolist() == [1, 3, 1] and value.values[:, 0].tolist() == [1, 2, 3]
    mixed = tn.gradients(tn.reduce_sum(rows) + tn.reduce_sum(v), v)[0]
    np.testing.assert_array_equal(evaluate(tn.convert_to_tensor(mixed)),
                                  [[1, 1], [3, 3], [1, 1], [2, 2]])


def test_second_derivatives(evaluate):
    x = tn.constant([1.0, 2.0])
    first = tn.gradients(x ** 3, x)[0]
    assert evaluate(tn.gradients(first, x)[0]).tolist() == [6, 12]
    y = tn.reduce_sum(x * x * x[::-1])
    np.testing.assert_allclose(evaluate(tn.hessians(y, x)[0]), [[4, 6], [6, 2]])


def test_rules_in_python(evaluate):
    name = "Scaled%d" % np.random.randint(1 << 30)

    @tn.RegisterGradient(name)
    def rule(op, gradient):
        assert op.type == "Mul" and op.outputs[0].shape == [2]
        return [gradient * 100, None]

    x = tn.constant([1.0, 2.0])
    with tn.get_default_graph().gradient_override_map({"Mul": name}):
        y = x * [3.0, 4.0]
    gx = tn.gradients(y, x)[0]
    assert evaluate(gx).tolist() == [100, 100]
    assert "gradients/Mul_grad" in gx.name
    with pytest.raises(KeyError, match="Registering two gradient with name"):
        tn.RegisterGradient(name)(rule)
    with pytest.raises(KeyError):
        tn.RegisterGradient("MatMul")(rule)


def test_an_error_in_a_rule_comes_out(evaluate):
    name = "Broken%d" % np.random.randint(1 << 30)

    @tn.RegisterGradient(name)
    def rule(op, gradient):
        raise ZeroDivisionError("in the rule")

    wrong = name + "Count"
    tn.RegisterGradient(wrong)(lambda op, gradient: [gradient, gradient])
    x = tn.constant(1.0)
    with tn.get_default_graph().gradient_override_map({"Relu": name, "Tanh": wrong}):
        y, z = tn.nn.relu(x), tn.tanh(x)
    with pytest.raises(ZeroDivisionError, match="in the rule"):
        tn.gradients(y, x)
    with pytest.raises(ValueError, match="Num gradients 2 generated for op .* do not match"):
        tn.gradients(z, x)
    assert evaluate(tn.gradients(x * 2, x)[0]) == 2  # the graph is still good


@pytest.mark.parametrize("call,error,text", [
    (lambda x: tn.gradients(x, [x], grad_ys=[1.0, 2.0]), ValueError, "Passed 2 grad_ys for 1 ys"),
    (lambda x: tn.gradients(x, [3]), TypeError, "needed is a Tensor"),
    (lambda x: tn.gradients(x, [x], grad_ys=[[1.0, 2.0, 3.0]]), ValueError, "must agree"),
    (lambda x: tn.gradients(x, [x], grad_ys=["a"]), TypeError, "Expected float32"),
    (lambda x: tn.RegisterGradient(3), TypeError, "op_type must be a string")])
def test_what_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(tn.constant([1.0, 2.0]))


def test_gradient_nodes_carry_the_place_of_their_origin():
    x = tn.placeholder(tn.float32, [None])
    y = tn.gather(x, [7])  # the place
    gradient = tn.gradients(tn.reduce_sum(y * y), x)[0]
    places = [op._creation for op in tn.get_default_graph().get_operations()
              if op.name.startswith("gradients/Gather")]
    assert places and all(place == y.op._creation for place in places)
    assert gradient is not None


def test_gradients_through_broadcasting_with_unknown_extents():
    """Summing an inner axis leaves a leading one of extent 1 that is not the operand's own."""
    a, b = tn.placeholder(tn.float32, [None, 1]), tn.placeholder(tn.float32, [None, 1])
    y = (a * b) * tn.constant([[[1.0, 2.0, 3.0]]])
    gradient = tn.gradients(y, a)[0]
    with tn.Session() as sess:
        got = sess.run(gradient, {a: np.ones((3, 1)), b: [[1], [2], [3]]})
    np.testing.assert_array_equal(got, [[6], [12], [18]])


@pytest.mark.parametrize("small, large", [
    ((3, 1), (1, 1, 5)), ((3, 1), (2, 1, 5)), ((1, 4), (3, 1, 1)), ((1,), (1, 1)),
    ((2, 1, 1), (1, 5)), ((4, 1), (1, 4, 1)), ((1, 1), (5,)), ((3, 1, 2), (1, 4, 1))])
@pytest.mark.parametrize("known", [True, False])
def test_gradients_of_broadcast_sums_are_counts(small, large, known):
    value = np.ones(small, np.float32)
    x = tn.constant(value) if known else tn.placeholder(tn.float32, [None] * len(small))
    gradient = tn.gradients(x + tn.ones(large), x)[0]
    repeats = np.broadcast(value, np.ones(large)).size / value.size
    with tn.Session() as sess:
        got = sess.run(gradient, {} if known else {x: value})
    np.testing.assert_array_equal(got, np.full(small, repeats, np.float32))
