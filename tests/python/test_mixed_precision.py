# SPDX-License-Identifier: Apache-2.0
"""tn.train.mixed_precision, against NumPy that rounds as the narrow dtypes do."""

import threading

import numpy as np
import pytest

import treenail as tn

NARROW = ["bfloat16", "float16"]
scope = tn.train.mixed_precision


def rounded(x, dtype):
    """Float32 values as the narrow dtype has them, to nearest, ties to even."""
    x = np.asarray(x, np.float32)
    if dtype == "float16":
        return x.astype(np.float16).astype(np.float32)
    bits = x.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000).astype(np.uint32).view(np.float32)


def ulp(dtype):
    """Of one."""
    return 2.0 ** -7 if dtype == "bfloat16" else 2.0 ** -10


def product(a, b, dtype):
    """a b of narrow values, summed exactly, rounded."""
    exact = rounded(a, dtype).astype(np.float64) @ rounded(b, dtype).astype(np.float64)
    return rounded(exact, dtype)


def wide(x):
    """As NumPy can show it."""
    return tn.cast(x, tn.float32)


def casts(graph=None):
    graph = graph or tn.get_default_graph()
    return [op for op in graph.get_operations() if op.type == "Cast"]


@pytest.fixture
def x(rng):
    return rng.standard_normal((5, 7)).astype(np.float32)


@pytest.fixture
def w(rng):
    return rng.standard_normal((7, 4)).astype(np.float32)


# --- What is cast ---------------------------------------------------------------------------------

IMAGE = np.linspace(-1, 1, 2 * 6 * 6 * 3).reshape(2, 6, 6, 3).astype(np.float32)
FILTERS = np.linspace(-1, 1, 3 * 3 * 3 * 4).reshape(3, 3, 3, 4).astype(np.float32)
GAINS = {
    "matmul": lambda: tn.matmul(tn.ones([2, 3]), tn.ones([3, 2])),
    "operator": lambda: tn.ones([2, 3]) @ tn.ones([3, 2]),
    "lists": lambda: tn.raw_ops.MatMul([[1.0, 2.0]], [[1.0], [2.0]]),
    "array": lambda: tn.raw_ops.MatMul(tn.ones([2, 3]), np.ones((3, 2), np.float32)),
    "batches": lambda: tn.matmul(tn.ones([5, 2, 3]), tn.ones([5, 3, 2])),
    "tensordot": lambda: tn.tensordot(tn.ones([5, 2, 3]), tn.ones([3, 2]), 1),
    "einsum": lambda: tn.einsum("bij,bjk->bik", tn.ones([5, 2, 3]), tn.ones([5, 3, 2])),
    "conv2d": lambda: tn.nn.conv2d(IMAGE, FILTERS, [1, 1, 1, 1], "SAME"),
    "transposed": lambda: tn.nn.conv2d_transpose(IMAGE, FILTERS.transpose(0, 1, 3, 2),
                                                 [2, 12, 12, 4], [1, 2, 2, 1]),
    "depthwise": lambda: tn.nn.depthwise_conv2d(IMAGE, FILTERS, [1, 1, 1, 1], "SAME"),
    "conv3d": lambda: tn.nn.conv3d(tn.ones([1, 4, 4, 4, 2]), tn.ones([3, 3, 3, 2, 2]),
                                   [1, 1, 1, 1, 1], "SAME"),
    "conv1d": lambda: tn.nn.conv1d(tn.ones([1, 8, 2]), tn.ones([3, 2, 2]), 1, "SAME"),
}
NEEDS = {
    "sum": tn.reduce_sum, "mean": tn.reduce_mean, "softmax": tn.nn.softmax,
    "log_softmax": tn.nn.log_softmax, "exp": tn.exp, "log": lambda x: tn.log(tn.abs(x)),
    "square": tn.square, "pow": lambda x: x ** 2, "l2_loss": tn.nn.l2_loss, "norm": tn.norm,
    "l2_normalize": lambda x: tn.nn.l2_normalize(x, 1), "softplus": tn.nn.softplus,
    "cumsum": tn.cumsum, "rsqrt": lambda x: tn.rsqrt(tn.abs(x) + 1), "moments":
    lambda x: tn.nn.moments(x, [0])[1], "layer_norm":
    lambda x: tn.nn.layer_norm(x, tn.ones([2]), tn.zeros([2])), "logsumexp": tn.reduce_logsumexp,
    "batch_normalization": lambda x: tn.nn.batch_normalization(x, tn.zeros([2]), tn.ones([2]), None,
                                                               None, 1e-3),
    "cross_entropy": lambda x: tn.nn.softmax_cross_entropy_with_logits_v2(tn.zeros([2, 2]), x),
    "sparse_cross_entropy": lambda x: tn.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tn.zeros([2], tn.int32), logits=x),
    "sigmoid_cross_entropy": lambda x: tn.nn.sigmoid_cross_entropy_with_logits(
        labels=tn.zeros([2, 2]), logits=x),
    "squared_error": lambda x: tn.losses.mean_squared_error(tn.zeros([2, 2]), x),
    "log_loss": lambda x: tn.losses.log_loss(tn.zeros([2, 2]), tn.nn.sigmoid(x)),
    "weighted": lambda x: tn.losses.compute_weighted_loss(x),
}
FOLLOWS = {
    "relu": tn.nn.relu, "tanh": tn.tanh, "sigmoid": tn.sigmoid, "number": lambda x: 2.0 * x + 1.0,
    "array": lambda x: x * np.ones(2, np.float32), "reshape": lambda x: tn.reshape(x, [4]),
    "transpose": tn.transpose, "maximum": lambda x: tn.maximum(x, 0.0), "slice": lambda x: x[:1],
    "concat": lambda x: tn.concat([x, x], 0), "max": tn.reduce_max, "identity": tn.identity,
    "bias": lambda x: tn.nn.bias_add(x, tn.ones([2])), "select": lambda x: tn.where(x > 0, x, -x),
    "gather": lambda x: tn.gather(x, [0]), "dropout": lambda x: tn.nn.dropout(x, rate=0.5),
    "max_pool": lambda x: tn.nn.max_pool(tn.reshape(x, [1, 2, 2, 1]), [1, 2, 2, 1], [1, 1, 1, 1],
                                         "VALID"),
}
JOINS = {
    "add": lambda a, b: a + b, "mul": lambda a, b: b * a,
    "concat": lambda a, b: tn.concat([a, b], 0), "stack": lambda a, b: tn.stack([a, b]),
    "add_n": lambda a, b: tn.add_n([b, a]), "select": lambda a, b: tn.where(a > 0, a, b),
    "divide": lambda a, b: a / (b + 3), "truediv": tn.truediv, "div": lambda a, b: tn.div(b, a),
    "scalar_mul": lambda a, b: tn.scalar_mul(b[0, 0], a),
    "list": lambda a, b: tn.convert_to_tensor([a[0, 0], b[0, 0]]),
}


def dtype_of(function, dtype):
    """What the function gives in a scope, in a graph, which is run, and at once."""
    with scope(dtype):
        result = function()
    with tn.Session() as session:
        assert np.all(np.isfinite(session.run(wide(result))))
    with tn.eager(), scope(dtype):
        at_once = function()
    assert at_once.dtype == result.dtype
    return result.dtype.name


def narrow_value(dtype):
    return tn.cast(tn.constant([[1.0, -2.0], [0.5, 0.25]]), dtype)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", GAINS)
def test_what_gains_is_narrow(name, dtype):
    assert dtype_of(GAINS[name], dtype) == dtype
    assert GAINS[name]().dtype == tn.float32


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", NEEDS)
def test_what_needs_range_is_float32(name, dtype):
    assert dtype_of(lambda: NEEDS[name](narrow_value(dtype)), dtype) == "float32"


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", FOLLOWS)
def test_the_rest_follows_its_inputs(name, dtype):
    assert dtype_of(lambda: FOLLOWS[name](narrow_value(dtype)), dtype) == dtype
    assert dtype_of(lambda: FOLLOWS[name](tn.constant([[1.0, -2.0], [0.5, 0.25]])),
                    dtype) == "float32"


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", JOINS)
def test_of_two_dtypes_the_wider_one_counts(name, dtype):
    def joined():
        return JOINS[name](narrow_value(dtype), tn.constant([[1.0, 2.0], [3.0, 4.0]]))
    assert dtype_of(joined, dtype) == "float32"
    with pytest.raises((TypeError, ValueError, tn.errors.InvalidArgumentError)):
        joined()


@pytest.mark.parametrize("dtype", NARROW)
def test_other_dtypes_stay_as_they_are(dtype):
    other = "float16" if dtype == "bfloat16" else "bfloat16"
    with scope(dtype):
        for kind in ("float64", "int32", "complex64", other):
            ones = tn.cast(tn.ones([2, 2]), kind)
            assert tn.matmul(ones, ones).dtype == kind
        with pytest.raises((ValueError, tn.errors.InvalidArgumentError)):
            tn.matmul(tn.ones([2, 2], tn.float64), tn.ones([2, 2]))


@pytest.mark.parametrize("dtype", NARROW)
def test_matmul_has_the_narrow_bits(x, w, dtype, evaluate):
    with scope(dtype):
        found = evaluate(wide(tn.matmul(x, w)))
    # One unit in the last place, for a sum in float32 may fall on the other side of a half.
    np.testing.assert_allclose(found, product(x, w, dtype), rtol=ulp(dtype))
    assert np.mean(found == product(x, w, dtype)) > 0.9
    assert np.array_equal(rounded(found, dtype), found)


def test_a_value_is_cast_once():
    x = tn.placeholder(tn.float32, [None, 3], name="x")
    w = tn.get_variable("w", [3, 3])
    with scope("bfloat16"):
        y = tn.matmul(tn.matmul(x, w), w) + tn.matmul(x, w)
        with tn.control_dependencies([y]), tn.name_scope("elsewhere"):
            tn.matmul(x, tn.identity(x))
    names = sorted(op.name for op in casts())
    assert len(names) == 3 and names[-1] == "x/Cast", names
    assert not any(op.control_inputs for op in casts())
    with scope("bfloat16"):
        tn.matmul(x, w)
    assert len(casts()) == 5


def test_a_bias_joins_what_it_is_added_to(evaluate):
    b = tn.get_variable("b", [2], initializer=tn.ones_initializer())
    with scope("bfloat16"):
        y = tn.nn.bias_add(tn.matmul(tn.ones([1, 2]), tn.ones([2, 2])), b)
        z = tn.nn.bias_add(tn.ones([1, 2]), b)
    assert y.dtype == tn.bfloat16 and z.dtype == tn.float32
    assert evaluate(wide(y)).tolist() == [[3.0, 3.0]]


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_nothing_is_multiplied(shape, evaluate):
    with scope("float16"):
        y = tn.matmul(tn.zeros(shape), tn.zeros([shape[1], 2]))
    assert evaluate(y).tolist() == np.zeros((shape[0], 2)).tolist() and y.dtype == tn.float16


def test_what_is_beyond_the_range_is_infinite(evaluate):
    big = np.array([[1e5, np.nan, 1.0]], np.float32)
    with scope("float16"):
        y = tn.matmul(big.T, tn.ones([1, 1]))
    found = evaluate(y)[:, 0]
    assert np.isinf(found[0]) and np.isnan(found[1]) and found[2] == 1


# --- Scopes ---------------------------------------------------------------------------------------

def made():
    return tn.matmul(tn.ones([1, 1]), tn.ones([1, 1])).dtype.name


def test_scopes_nest_and_end():
    assert made() == "float32"
    with scope("bfloat16"):
        with scope("float16"):
            with scope("float32"):
                assert made() == "float32"
            assert made() == "float16"
        with pytest.raises(ZeroDivisionError), scope(tn.float16):
            1 / 0
        assert made() == "bfloat16"
    assert made() == "float32"


def test_a_scope_may_be_entered_again():
    again = scope("float16")
    with again, again:
        assert made() == "float16"
    assert made() == "float32" and repr(again) == "<tn.train.mixed_precision float16>"


def test_a_thread_begins_outside():
    found = []
    with scope("bfloat16"):
        thread = threading.Thread(target=lambda: found.append(made()))
        thread.start()
        thread.join()
        assert made() == "bfloat16"
    assert found == ["float32"]


@pytest.mark.parametrize("given, error", [("int8", ValueError), ("double", ValueError),
                                          ("narrow", TypeError), (None, TypeError)])
def test_a_scope_of_another_dtype(given, error):
    with pytest.raises(error, match="dtype is .*; needed is 'bfloat16' or 'float16', or 'float32'"):
        scope(given)


# --- Variables and gradients ----------------------------------------------------------------------

@pytest.mark.parametrize("dtype", NARROW)
def test_variables_are_float32(dtype):
    with scope(dtype):
        h = tn.layers.dense(tn.ones([2, 3]), 4, activation=tn.nn.relu)
        layer = tn.layers.Dense(5)
        y = layer(h)
        image = tn.layers.conv2d(tn.ones([1, 6, 6, 3]), 4, 3)
        tn.layers.conv2d_transpose(image, 4, 3)
        tn.layers.batch_normalization(image, training=True)
        tn.get_variable("asked", [2], dtype)
        tn.get_variable("given", initializer=tn.ones([2]))
        with tn.variable_scope("inner", dtype=dtype):
            tn.get_variable("of_scope", [2])
    assert h.dtype == y.dtype == image.dtype == dtype and layer.dtype == tn.float32
    assert {v.dtype for v in tn.global_variables()} == {tn.float32}
    own = tn.get_variable("outside", [2], dtype)
    assert own.dtype == dtype


def test_initial_values_are_computed_in_float32(evaluate):
    def initial(shape, dtype=None, partition_info=None):
        return tn.matmul(tn.constant([[1.0 + 2.0 ** -20]]), tn.ones([1, 1]))
    with scope("bfloat16"):
        v = tn.get_variable("v", [1, 1], initializer=initial)
    assert evaluate(v)[0, 0] == np.float32(1 + 2.0 ** -20)


@pytest.mark.parametrize("dtype", NARROW)
def test_a_narrow_value_is_assigned_to_a_float32_variable(dtype, evaluate):
    v = tn.get_variable("v", [1, 1], initializer=tn.zeros_initializer())
    with scope(dtype):
        change = v.assign_add(tn.matmul(tn.ones([1, 2]), tn.ones([2, 1])))
    assert evaluate(change) == 2
    with pytest.raises(ValueError, match="requested dtype float32"):
        v.assign(narrow_value(dtype))


@pytest.mark.parametrize("dtype", NARROW)
def test_gradients_are_float32_and_computed_narrow(x, w, dtype, evaluate):
    v = tn.get_variable("w", initializer=w)
    given = tn.placeholder(tn.float32, x.shape)
    arriving = np.linspace(-1, 1, 20).reshape(5, 4).astype(np.float32)
    with scope(dtype):
        loss = tn.reduce_sum(tn.matmul(given, v) * arriving)
    by_w, by_x = tn.gradients(loss, [v, given])
    assert by_w.dtype == by_x.dtype == tn.float32
    by_w, by_x = evaluate([by_w, by_x], {given: x})
    g = rounded(arriving, dtype)
    np.testing.assert_allclose(by_w, product(x.T, g, dtype), rtol=ulp(dtype), atol=1e-6)
    np.testing.assert_allclose(by_x, product(g, w.T, dtype), rtol=ulp(dtype), atol=1e-6)


def test_a_gradient_of_a_gradient(evaluate):
    v = tn.get_variable("v", initializer=np.float32([[0.5, -1.0], [2.0, 0.25]]))
    with scope("bfloat16"):
        y = tn.reduce_sum(tn.tanh(tn.matmul(v, v)) * tn.matmul(v, tn.ones([2, 2])))
    first = tn.gradients(y, v)[0]
    second = tn.gradients(first, v)[0]
    outside = tn.gradients(tn.reduce_sum(tn.tanh(tn.matmul(v, v)) * tn.matmul(v, tn.ones([2, 2]))),
                           v)[0]
    wanted = tn.gradients(outside, v)[0]
    assert second.dtype == tn.float32
    found = evaluate([first, outside, second, wanted])
    np.testing.assert_allclose(found[0], found[1], rtol=0.05, atol=0.05)
    np.testing.assert_allclose(found[2], found[3], rtol=0.1, atol=0.1)


def test_a_gradient_that_is_one_s_own(evaluate):
    v = tn.get_variable("v", initializer=np.float32([[3.0]]))

    @tn.custom_gradient
    def doubled(x):
        y = tn.matmul(x, v)
        return y, lambda dy, variables=None: (tn.matmul(dy, v) * 2, [tn.matmul(dy, x)])
    x = tn.placeholder(tn.float32, [1, 1])
    with scope("float16"):
        y = doubled(x)
    assert y.dtype == tn.float16
    found = tn.gradients(wide(y), [x, v])
    assert [g.dtype for g in found] == [tn.float32] * 2
    assert [float(g) for g in evaluate(found, {x: [[5.0]]})] == [6.0, 5.0]


def test_a_gradient_that_is_one_s_own_at_once():
    @tn.custom_gradient
    def doubled(x):
        return tn.matmul(x, x), lambda dy: tn.matmul(dy, x) * 4
    with tn.eager():
        x = tn.constant([[5.0]])
        with tn.GradientTape() as tape:
            tape.watch(x)
            with scope("float16"):
                y = doubled(x)
        gradient = tape.gradient(y, x)
    assert y.dtype == tn.float16 and gradient.dtype == tn.float32
    assert gradient.numpy().tolist() == [[20.0]]


def test_statistics_of_batch_normalisation_are_float32(evaluate):
    rng = np.random.RandomState(3)
    images = (100 + rng.standard_normal((8, 4, 4, 3))).astype(np.float32)
    for number, training in enumerate((True, tn.placeholder_with_default(True, []))):
        for fused in (True, False):
            with scope("bfloat16"), tn.variable_scope("bn%d%s" % (number, fused)):
                narrow = tn.cast(images, tn.bfloat16)
                y = tn.layers.batch_normalization(narrow, training=training, fused=fused)
            assert y.dtype == tn.bfloat16
            found = evaluate(wide(y))
            seen = rounded(images, "bfloat16")
            centred = seen - seen.mean((0, 1, 2))
            wanted = centred / np.sqrt((centred ** 2).mean((0, 1, 2)) + 1e-3)
            np.testing.assert_allclose(found, wanted, rtol=0.02, atol=0.02)
    assert {v.dtype for v in tn.global_variables()} == {tn.float32}


# --- Branches, loops, functions -------------------------------------------------------------------

def test_branches_of_two_dtypes(evaluate):
    x = tn.placeholder(tn.float32, [1, 1])
    with scope("bfloat16"):
        y = tn.cond(x[0, 0] > 0, lambda: tn.matmul(x, x), lambda: x)
        z = tn.switch_case(tn.cast(x[0, 0], tn.int32), [lambda: x, lambda: tn.matmul(x, x)])
        both = tn.cond(x[0, 0] > 0, lambda: tn.matmul(x, x), lambda: tn.matmul(-x, x))
    assert y.dtype == z.dtype == tn.float32 and both.dtype == tn.bfloat16
    assert [float(v) for v in evaluate([y, z, wide(both), tn.gradients(y, x)[0]], {
        x: [[3.0]]})] == [9, 9, 9, 6]
    with pytest.raises(TypeError, match="the same dtype"):
        tn.cond(x[0, 0] > 0, lambda: tn.cast(x, tn.bfloat16), lambda: x)


@pytest.mark.parametrize("dtype", NARROW)
def test_a_loop_keeps_the_dtypes_of_its_variables(dtype, evaluate):
    w = tn.get_variable("w", initializer=np.float32([[0.5, 0.25], [1.0, -0.5]]))
    x = tn.placeholder(tn.float32, [2, 2])
    with scope(dtype):
        _, y, rows = tn.while_loop(
            lambda i, *_: i < 3,
            lambda i, y, rows: (i + 1, tn.matmul(y, w), rows.write(i, tn.matmul(y, w))),
            (0, x, tn.TensorArray(tn.float32, 3)))
    assert y.dtype == rows.stack().dtype == tn.float32
    by_w = tn.gradients(tn.reduce_sum(y), w)[0]
    assert by_w.dtype == tn.float32
    wanted = given = np.float32([[1, 2], [3, 4]])
    for _ in range(3):
        wanted = product(wanted, np.float32([[0.5, 0.25], [1.0, -0.5]]), dtype)
    found, all_rows, gradient = evaluate([y, rows.stack(), by_w], {x: given})
    assert np.array_equal(found, wanted) and np.array_equal(all_rows[2], wanted)
    step = 2.0 ** -6
    outside = tn.gradients(tn.reduce_sum(tn.matmul(tn.matmul(tn.matmul(x, w), w), w)), w)[0]
    np.testing.assert_allclose(gradient, evaluate(outside, {x: given}), rtol=step, atol=step)


def test_map_and_scan(evaluate):
    x = tn.placeholder(tn.float32, [4, 2, 2])
    with scope("bfloat16"):
        mapped = tn.map_fn(lambda row: tn.matmul(row, row), x)
        scanned = tn.scan(lambda a, row: tn.matmul(a, row), x)
    assert mapped.dtype == scanned.dtype == tn.float32
    found = evaluate([mapped, scanned], {x: np.broadcast_to(2 * np.eye(2), (4, 2, 2))})
    assert found[0][0, 0, 0] == 4 and found[1][3, 0, 0] == 16


def test_a_function_is_traced_for_each_precision():
    traced = []

    @tn.function
    def f(x):
        traced.append(made())
        return tn.matmul(x, x)
    with tn.eager():
        x = tn.ones([2, 2])
        assert f(x).dtype == tn.float32
        with scope("bfloat16"):
            assert f(x).dtype == f(x).dtype == tn.bfloat16
        with scope("float16"):
            assert f(x).dtype == tn.float16
        assert f(x).dtype == tn.float32
    assert traced == ["float32", "bfloat16", "float16"]


def test_a_function_takes_what_its_signature_says():
    @tn.function(input_signature=[tn.TensorSpec([2, 2])])
    def f(x):
        return x + 1
    with tn.eager(), scope("bfloat16"):
        assert f(tn.matmul(tn.ones([2, 2]), tn.ones([2, 2]))).numpy().tolist() == [[3, 3], [3, 3]]
        found = f.get_concrete_function(tn.TensorSpec([2, 2]))
        assert found(tn.cast(tn.ones([2, 2]), tn.bfloat16)).dtype == tn.float32
    with tn.eager(), pytest.raises(ValueError, match="does not fit"):
        f(tn.cast(tn.ones([2, 2]), tn.bfloat16))


def test_python_s_own_branches_and_loops():
    @tn.function
    def f(x):
        y = x
        for _ in tn.range(3):
            y = tn.matmul(y, x)
        if tn.reduce_sum(x) > 0:
            z = tn.matmul(x, x)
        else:
            z = x
        return y, z
    with tn.eager(), scope("bfloat16"):
        y, z = f(2 * tn.eye(2))
    assert y.dtype == z.dtype == tn.float32
    assert y.numpy()[0, 0] == 16 and z.numpy()[0, 0] == 4


@pytest.mark.parametrize("recompute", [False, True])
def test_a_tape_sees_casts(x, w, recompute):
    def product_of(v, given):
        return tn.reduce_sum(tn.matmul(given, v) ** 2)
    f = tn.recompute_grad(product_of) if recompute else product_of
    with tn.eager():
        v = tn.Variable(w)
        with tn.GradientTape() as tape, scope("bfloat16"):
            value = f(v, tn.constant(x))
        gradient = tape.gradient(value, v)
    assert value.dtype == gradient.dtype == tn.float32
    y = product(x, w, "bfloat16")
    np.testing.assert_allclose(value.numpy(), (y ** 2).sum(), rtol=1e-2)
    np.testing.assert_allclose(gradient.numpy(), product(x.T, 2 * y, "bfloat16"), rtol=0.02,
                               atol=0.05)


CELLS = [tn.rnn.BasicRNNCell, tn.rnn.GRUCell, tn.rnn.BasicLSTMCell, tn.rnn.LSTMCell,
         tn.rnn.LSTMBlockCell, tn.rnn.GRUBlockCellV2,
         lambda units: tn.rnn.ResidualWrapper(tn.rnn.GRUCell(units))]


@pytest.mark.parametrize("lengths", [None, [2, 5, 0]])
@pytest.mark.parametrize("cell", range(len(CELLS)))
def test_recurrent_layers(cell, lengths, rng):
    inputs = rng.standard_normal((3, 5, 4)).astype(np.float32)

    def run(dtype):
        with tn.Graph().as_default(), scope(dtype):
            tn.set_random_seed(7)
            made = CELLS[cell](4)
            outputs, _ = tn.nn.dynamic_rnn(made, tn.constant(inputs), lengths, dtype=tn.float32)
            loss = tn.reduce_sum(outputs ** 2)
            found = tn.gradients(loss, tn.trainable_variables())
            assert {g.dtype for g in found} == {v.dtype for v in tn.global_variables()} \
                == {tn.float32}
            values = np.random.RandomState(2)
            start = [v.assign(0.3 * values.standard_normal(v.shape.as_list()).astype(np.float32))
                     for v in tn.trainable_variables()]
            with tn.Session() as session:
                session.run(start)
                return session.run([wide(outputs), *found])
    for narrow, full in zip(run("bfloat16"), run("float32")):
        np.testing.assert_allclose(narrow, full, atol=0.03 * max(1, np.abs(full).max()))


def test_layers_over_each_other_and_attention(rng):
    memory = rng.standard_normal((2, 6, 4)).astype(np.float32)
    with scope("float16"):
        cells = tn.rnn.MultiRNNCell([tn.rnn.GRUCell(4), tn.rnn.LSTMCell(4)])
        attention = tn.seq2seq.LuongAttention(4, tn.constant(memory), scale=True)
        cell = tn.seq2seq.AttentionWrapper(cells, attention, attention_layer_size=4)
        outputs, _ = tn.nn.dynamic_rnn(cell, tn.constant(memory), dtype=tn.float32)
        loss = tn.reduce_mean(tn.square(outputs))
    found = tn.gradients(loss, tn.trainable_variables())
    assert {g.dtype for g in found} == {tn.float32}
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        assert all(np.all(np.isfinite(g)) for g in session.run(found))
