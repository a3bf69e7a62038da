# SPDX-License-Identifier: Apache-2.0
"""tn.custom_gradient and rules of Python's, also where branches and loops hold them. Oracles:
closed forms and differences of NumPy functions."""

import itertools

import numpy as np
import pytest

import treenail as tn

_numbers = itertools.count()


def name_of_rule():
    return "TestRule%d" % next(_numbers)


def run(fetches, feeds=None):
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        return sess.run(fetches, feeds)


@tn.custom_gradient
def log1pexp(x):
    """log(1 + exp(x))."""
    e = tn.exp(x)
    return tn.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# --- In a graph -----------------------------------------------------------------------------------

def test_a_stable_gradient():
    x = tn.placeholder(tn.float32, [])
    (ours,) = tn.gradients(log1pexp(x), x)
    (naive,) = tn.gradients(tn.log(1 + tn.exp(x)), x)
    assert run([ours, naive], {x: 0.0}) == [0.5, 0.5]
    assert run(ours, {x: 100.0}) == 1.0 != run(naive, {x: 100.0})  # where exp(x) is infinite
    assert log1pexp.__name__ == "log1pexp" and "exp" in log1pexp.__doc__


def test_higher_derivatives_are_those_of_the_gradient_function():
    x = tn.placeholder(tn.float64, [3])
    first = tn.gradients(log1pexp(x), x)[0]
    second = tn.gradients(first, x)[0]
    third = tn.gradients(second, x)[0]
    value = np.array([-1.0, 0.3, 2.0])
    s = sigmoid(value)
    for ours, expected in zip(run([first, second, third], {x: value}),
                              [s, s * (1 - s), s * (1 - s) * (1 - 2 * s)]):
        np.testing.assert_allclose(ours, expected, rtol=1e-12)


def test_several_arguments_and_nests_of_results():
    @tn.custom_gradient
    def f(a, b):
        def grad(dproduct, dsum):  # in the order of sorted keys
            return 10 * dsum + dproduct * b, [20 * dsum + dproduct * a]
        return {"sum": a + b, "product": (a * b,)}, grad
    a, b = tn.constant(3.0), tn.constant(4.0)
    y = f(a, b)
    assert set(y) == {"sum", "product"} and isinstance(y["product"], tuple)
    assert run([y["sum"], y["product"][0]]) == [7, 12]
    assert run(tn.gradients(y["product"][0], [a, b])) == [4, 3]
    assert run(tn.gradients([y["sum"], y["product"][0]], [a, b])) == [14, 23]


def test_results_nobody_uses_have_a_gradient_of_zeros():
    @tn.custom_gradient
    def f(a):
        return [a, a * 2], lambda d1, d2: d1 + 100 * d2
    a = tn.constant([1.0, 2.0])
    assert run(tn.gradients(f(a)[0], a)[0]).tolist() == [1, 1]
    assert run(tn.gradients(f(a)[1], a)[0]).tolist() == [100, 100]


def test_none_is_no_gradient():
    @tn.custom_gradient
    def f(a, b):
        return a * b, lambda dy: (dy, None)
    a, b = tn.constant(2.0), tn.constant(3.0)
    assert tn.gradients(f(a, b), b) == [None]
    assert run(tn.gradients(f(a, b), a)[0]) == 1


def test_what_is_read_besides_has_no_gradient():
    c, x = tn.constant(5.0), tn.constant(2.0)

    @tn.custom_gradient
    def f(x):
        return x * c, lambda dy: dy * c
    assert tn.gradients(f(x), c) == [None]
    assert run(tn.gradients(tn.gradients(f(x), x)[0], c)[0]) == 1


def test_variables():
    with tn.variable_scope("scope"):
        @tn.custom_gradient
        def f(x):
            w = tn.get_variable("w", [], initializer=tn.constant_initializer(3.0))
            b = tn.get_variable("b", [], initializer=tn.constant_initializer(1.0))

            def grad(dy, variables=None):
                assert variables == [w, b]
                return dy * w * 100, [dy * x * 10, dy]
            return w * x + b, grad
        x = tn.constant(2.0)
        y = f(x)
    w, b = tn.trainable_variables()
    assert run([y, *tn.gradients(y, [x, w, b])]) == [7, 300, 20, 1]


def test_a_variable_read_in_a_branch_or_by_its_snapshot():
    v, unused = tn.Variable(3.0), tn.Variable(4.0)
    p = tn.placeholder(tn.bool, [])
    seen = []

    @tn.custom_gradient
    def f(x):
        def grad(dy, variables):
            seen.extend(variables)
            return dy, [dy * 7]
        return tn.cond(p, lambda: x * v, lambda: x), grad
    x = tn.constant(1.0) + unused
    dx, dv = tn.gradients(f(x), [x, v])
    assert seen == [v] and run([dx, dv], {p: True}) == [1, 7]


def test_a_variable_as_argument():
    v = tn.Variable([1.0, 2.0])

    @tn.custom_gradient
    def f(x):
        return x * x, lambda dy: 5 * dy
    assert run(tn.gradients(f(v), v)[0]).tolist() == [5, 5]


def test_rows_of_a_variable_as_gradient():
    table = tn.Variable(np.ones((4, 2), np.float32))

    @tn.custom_gradient
    def rows(ids):
        def grad(dy, variables):
            return None, [tn.IndexedSlices(dy * 3, ids, tn.constant([4, 2]))]
        return tn.gather(table, ids), grad
    gradient = tn.gradients(rows(tn.constant([1, 3])), table)[0]
    assert isinstance(gradient, tn.IndexedSlices)
    assert run(tn.convert_to_tensor(gradient))[:, 0].tolist() == [0, 3, 0, 3]


def test_functions_that_are_each_others_gradient():
    @tn.custom_gradient
    def sin(x):
        return tn.sin(x), lambda dy: dy * cos(x)

    @tn.custom_gradient
    def cos(x):
        return tn.cos(x), lambda dy: -dy * sin(x)
    x = tn.placeholder(tn.float64, [])
    y, derivatives = sin(x), []
    for _ in range(4):
        y = tn.gradients(y, x)[0]
        derivatives.append(y)
    np.testing.assert_allclose(run(derivatives, {x: 0.7}),
                               [np.cos(0.7), -np.sin(0.7), -np.cos(0.7), np.sin(0.7)], rtol=1e-12)


def test_a_gradient_function_may_take_gradients():
    @tn.custom_gradient
    def clipped(x):
        y = x ** 3
        return y, lambda dy: tn.clip_by_value(tn.gradients(y, x, dy)[0], -1.0, 1.0)
    x = tn.placeholder(tn.float32, [2])
    assert run(tn.gradients(clipped(x), x)[0], {x: [0.5, 9]}).tolist() == [0.75, 1]
    p = tn.placeholder(tn.bool, [])
    y = tn.cond(p, lambda: clipped(x), lambda: x)
    assert run(tn.gradients(y, x)[0], {x: [0.5, 9], p: True}).tolist() == [0.75, 1]


def test_a_run_computes_no_arguments_for_it():
    @tn.custom_gradient
    def f(x, y):
        return tn.constant(1.0), lambda dy: (dy, dy)
    bad = tn.check_numerics(tn.constant(np.nan), "not this")
    assert run(f(bad, bad)) == 1


def test_graphs_with_custom_gradients_are_collected():
    import gc
    import weakref

    def made():
        graph = tn.Graph()
        with graph.as_default():
            x = tn.constant(1.0)
            tn.gradients(tn.cond(x > 0, lambda: log1pexp(x), lambda: x), x)
        return weakref.ref(graph)
    reference = made()
    gc.collect()
    assert reference() is None


def test_a_loaded_graph_has_no_gradient_function(tmp_path):
    x = tn.placeholder(tn.float32, [], name="x")
    y = log1pexp(x)
    tn.get_default_graph().save(tmp_path / "graph")
    loaded = tn.load_graph(tmp_path / "graph")
    with tn.Session(graph=loaded) as sess:
        assert sess.run(y.name, {"x:0": 0.0}) == np.log(np.float32(2))
    from treenail import _custom_gradient
    _custom_gradient._calls.clear()
    with pytest.raises(LookupError, match="No gradient defined for operation"):
        tn.gradients(loaded.get_tensor_by_name(y.name), loaded.get_tensor_by_name("x:0"))


# --- In branches and loops ------------------------------------------------------------------------

@pytest.mark.parametrize("pred", [True, False])
def test_in_a_branch(pred):
    p, x = tn.placeholder(tn.bool, []), tn.placeholder(tn.float64, [])
    y = tn.cond(p, lambda: log1pexp(2 * x), lambda: -x)
    first = tn.gradients(y, x)[0]
    second = tn.gradients(first, x)[0]
    s = sigmoid(0.6)
    expected = [2 * s, 4 * s * (1 - s)] if pred else [-1, 0]
    np.testing.assert_allclose(run([first, second], {p: pred, x: 0.3}), expected, rtol=1e-12)
    if pred:
        assert run(first, {p: True, x: 500.0}) == 2


def test_in_a_switch():
    i, x = tn.placeholder(tn.int32, []), tn.placeholder(tn.float32, [])
    y = tn.switch_case(i, [lambda: x, lambda: log1pexp(x), lambda: log1pexp(x) * 3])
    gradient = tn.gradients(y, x)[0]
    with tn.Session() as sess:
        assert [sess.run(gradient, {i: n, x: 0.0}) for n in range(3)] == [1, 0.5, 1.5]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_in_a_loop(count):
    x = tn.placeholder(tn.float64, [])

    def repeated(v):
        for _ in range(count):
            v = np.log1p(np.exp(v))
        return v
    y = tn.while_loop(lambda i, _: i < count, lambda i, y: (i + 1, log1pexp(y)), [0, x])[1]
    first = tn.gradients(y, x)[0]
    second = tn.gradients(first, x)[0]
    h = 1e-4
    got = run([first, second], {x: 0.3})
    a, b, c = repeated(0.3 - h), repeated(0.3), repeated(0.3 + h)
    np.testing.assert_allclose(got, [(c - a) / (2 * h), (a + c - 2 * b) / h ** 2], atol=1e-5)


def test_loops_in_branches_in_loops():
    x, p = tn.placeholder(tn.float64, []), tn.placeholder(tn.bool, [])

    def inner(y):
        return tn.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, log1pexp(y)), [0, y])[1]
    y = tn.while_loop(lambda i, _: i < 2, lambda i, y: (
        i + 1, tn.cond(p, lambda: inner(y), lambda: log1pexp(y))), [0, x])[1]
    plain = x
    for _ in range(4):
        plain = log1pexp(plain)
    for _ in range(2):
        y, plain = tn.gradients(y, x)[0], tn.gradients(plain, x)[0]
        np.testing.assert_allclose(*run([y, plain], {x: 0.3, p: True}), rtol=1e-12)


def test_gradient_functions_read_the_graphs_around():
    """What only the gradient reads becomes an argument of the backward part."""
    scale, x = tn.placeholder(tn.float64, []), tn.placeholder(tn.float64, [])
    v = tn.Variable(10.0, dtype=tn.float64)

    @tn.custom_gradient
    def f(x):
        return tn.identity(x), lambda dy: dy * scale * v
    p = tn.placeholder(tn.bool, [])
    y = tn.cond(p, lambda: f(x), lambda: f(f(x)))
    z = tn.while_loop(lambda i, _: i < 3, lambda i, y: (
        i + 1, tn.cond(p, lambda: f(y), lambda: y)), [0, x])[1]
    first = [tn.gradients(y, x)[0], tn.gradients(z, x)[0]]
    feeds = {scale: 0.5, x: 1.0, p: True}
    assert run(first, feeds) == [5, 125]
    assert run(first, {**feeds, p: False}) == [25, 1]
    by_scale = [tn.gradients(g, [scale, v]) for g in first]
    np.testing.assert_allclose(run(by_scale, feeds), [[10, 0.5], [750, 37.5]])


def test_variables_read_in_a_loop():
    w = tn.Variable(2.0, dtype=tn.float64)

    @tn.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            assert variables == [w]
            return dy * w, [dy * x * 10]
        return w * x, grad
    x = tn.placeholder(tn.float64, [])
    y = tn.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, f(y)), [0, x])[1]
    dx, dw = run(tn.gradients(y, [x, w]), {x: 3.0})
    assert dx == 8 and dw == 10 * 3 * 3 * 4


def test_mutual_gradients_in_a_loop():
    @tn.custom_gradient
    def sin(x):
        return tn.sin(x), lambda dy: dy * cos(x)

    @tn.custom_gradient
    def cos(x):
        return tn.cos(x), lambda dy: -dy * sin(x)
    x = tn.placeholder(tn.float64, [])
    ours = tn.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, sin(y)), [0, x])[1]
    plain = tn.sin(tn.sin(x))
    for _ in range(3):
        ours, plain = tn.gradients(ours, x)[0], tn.gradients(plain, x)[0]
        np.testing.assert_allclose(*run([ours, plain], {x: 0.7}), rtol=1e-12)


def test_a_function_with_variables_within_a_gradient_function():
    w = tn.Variable(2.0, dtype=tn.float64)

    @tn.custom_gradient
    def scaled(x):
        def grad(dy, variables=None):
            assert variables == [w]
            return dy * w, [dy * x * 100]
        return x * w, grad

    @tn.custom_gradient
    def f(x):
        return x * w, lambda dy, variables: (scaled(dy), [dy * x])
    x, v = tn.placeholder(tn.float64, []), tn.placeholder(tn.float64, [])
    y = tn.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, f(y)), [0, x])[1]
    first = tn.gradients(y, x, v)[0]  # scaled(scaled(v))
    by_w = tn.gradients(first, w)[0]  # 100 of each scaled: what it is given, times what comes
    assert run([y, first, by_w], {x: 3.0, v: 5.0}) == [12, 20, 100 * 10 + 2 * 100 * 5]


def test_a_gradient_of_a_gradient_reads_what_only_it_needs():
    """The first gradient has no use for `late`, which is kept for the second."""
    x, p = tn.placeholder(tn.float64, []), tn.placeholder(tn.bool, [])

    @tn.custom_gradient
    def f(x):
        late = tn.exp(x)

        def grad(dy):
            @tn.custom_gradient
            def passed(dy):
                return dy * 2, lambda ddy: ddy * late
            return passed(dy)
        return x * 3, grad
    weight = tn.placeholder(tn.float64, [])
    y = tn.cond(p, lambda: f(x), lambda: x)
    first = tn.gradients(y, x, weight)[0]
    second = tn.gradients(first, weight)[0]
    got = run([first, second], {x: 0.5, p: True, weight: 5.0})
    np.testing.assert_allclose(got, [10, np.exp(0.5)], rtol=1e-12)


def test_control_flow_in_a_gradient_function():
    x = tn.placeholder(tn.float64, [])

    @tn.custom_gradient
    def f(x):
        def grad(dy):
            power = tn.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t * x), [0, dy])[1]
            return tn.cond(x > 0, lambda: power, lambda: dy)
        return x * 1, grad
    y = tn.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, f(y)), [0, x])[1]
    gradient = tn.gradients(y, x)[0]
    assert run(gradient, {x: 1.5}) == 1.5 ** 6 and run(gradient, {x: -1.5}) == 1
    second = tn.gradients(gradient, x)[0]
    # Of u^3 x^3, where u = f(x) = x has the derivative x^3 here.
    np.testing.assert_allclose(run(second, {x: 1.5}), 3 * 1.5 ** 8 + 3 * 1.5 ** 5, rtol=1e-12)


def test_control_dependencies_of_a_gradient_function():
    counter = tn.Variable(0.0)
    x = tn.placeholder(tn.float32, [])
    count = counter.assign_add(1.0)

    @tn.custom_gradient
    def f(x):
        def grad(dy):
            with tn.control_dependencies([count]):
                return tn.identity(dy)
        return x * 1, grad
    y = tn.while_loop(lambda i, _: i < 5, lambda i, y: (i + 1, f(y)), [0, x])[1]
    gradient = tn.gradients(y, x)[0]
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        assert sess.run(y, {x: 1.0}) == 1 and sess.run(counter) == 0
        assert sess.run(gradient, {x: 1.0}) == 1 and sess.run(counter) == 1


# --- Rules for operations -------------------------------------------------------------------------

def test_override_maps_reach_into_bodies():
    """Guided back propagation."""
    rule = name_of_rule()

    @tn.RegisterGradient(rule)
    def guided(op, dy):
        return tn.where(dy > 0, ops_relu_grad(dy, op.outputs[0]), tn.zeros_like(dy))

    def ops_relu_grad(dy, y):
        return dy * tn.cast(y > 0, dy.dtype)
    x, p = tn.placeholder(tn.float32, [3]), tn.placeholder(tn.bool, [])
    weights = tn.constant([1.0, -1.0, 1.0])
    with tn.get_default_graph().gradient_override_map({"Relu": rule}):
        straight = tn.nn.relu(x)

    def guided_relu():
        with tn.get_default_graph().gradient_override_map({"Relu": rule}):
            return tn.nn.relu(x)
    chosen = tn.cond(p, guided_relu, lambda: tn.nn.relu(x))
    looped = tn.while_loop(lambda i, _: i < 1, lambda i, _: (i + 1, guided_relu()), [0, x])[1]
    expected = [[1, 0, 0], [1, 0, 0], [1, 0, 0]]
    feeds = {x: [1, 2, -3], p: True}
    found = [tn.gradients(y * weights, x)[0] for y in (straight, chosen, looped)]
    assert [g.tolist() for g in run(found, feeds)] == expected
    assert run(found[1], {**feeds, p: False}).tolist() == [1, -1, 0]


def test_second_derivatives_of_a_rule_in_a_loop():
    rule = name_of_rule()
    tn.RegisterGradient(rule)(lambda op, dy: dy * tn.exp(op.inputs[0]))
    x = tn.placeholder(tn.float64, [])

    def step(i, y):
        with tn.get_default_graph().gradient_override_map({"Sin": rule}):
            return i + 1, tn.sin(y)
    y = tn.while_loop(lambda i, _: i < 2, step, [0, x])[1]
    plain = x
    for _ in range(2):
        plain = step(0, plain)[1]
    for _ in range(2):
        y, plain = tn.gradients(y, x)[0], tn.gradients(plain, x)[0]
        np.testing.assert_allclose(*run([y, plain], {x: 0.4}), rtol=1e-12)


def test_a_rule_that_asks_for_the_gradient_it_is_asked_for():
    x = tn.placeholder(tn.float32, [])
    found = []
    f = tn.custom_gradient(lambda x: (x * 2, lambda dy: dy if found[0] is None else
                                      tn.gradients(found[0], x) and dy))
    found.append(tn.cond(x > 0, lambda: f(x), lambda: x))
    with pytest.raises((RecursionError, ValueError, tn.errors.OpError)):
        tn.gradients(found[0], x)
    found[0] = None


def test_gradients_by_several_threads_at_once():
    from concurrent.futures import ThreadPoolExecutor
    x = tn.placeholder(tn.float64, [])
    graph = tn.get_default_graph()
    y = tn.while_loop(lambda i, _: i < 3, lambda i, y: (
        i + 1, tn.cond(y > 0, lambda: log1pexp(y), lambda: y)), [0, x])[1]

    def ask(_):
        with graph.as_default():
            return tn.gradients(y, x)[0]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(12)))
    values = run(found, {x: 0.3})
    assert values == [values[0]] * 12 and 0 < values[0] < 1


def test_an_error_in_a_rule_of_a_body_comes_out():
    rule, wrong = name_of_rule(), name_of_rule()

    @tn.RegisterGradient(rule)
    def broken(op, dy):
        raise ZeroDivisionError("in the rule")
    tn.RegisterGradient(wrong)(lambda op, dy: [dy, dy])
    x = tn.placeholder(tn.float32, [])

    def under(name):
        def function():
            with tn.get_default_graph().gradient_override_map({"Tanh": name}):
                return tn.tanh(x)
        return tn.cond(x > 0, function, lambda: x)
    with pytest.raises(ZeroDivisionError, match="in the rule"):
        tn.gradients(under(rule), x)
    with pytest.raises(ValueError, match="Num gradients 2 generated for op"):
        tn.gradients(under(wrong), x)
    assert run(tn.gradients(x * 2, x)[0], {x: 1.0}) == 2


# --- What is refused ------------------------------------------------------------------------------

def custom(grad, y=lambda x: x * 2):
    return tn.custom_gradient(lambda x: (y(x), grad))


@pytest.mark.parametrize("body", [False, True])
@pytest.mark.parametrize("grad, text", [
    (lambda dy: (dy, dy), "gives 2 gradients for 1 argument"),
    (lambda dy: [], "gives 0 gradients for 1 argument"),
    (lambda dy: tn.cast(dy, tn.float64), "gives float64 for input"),
    (lambda dy: tn.ones([7]), "Incompatible shapes between op input and calculated input gradient"),
])
def test_gradients_that_do_not_fit(grad, text, body):
    x, p = tn.placeholder(tn.float32, [2]), tn.placeholder(tn.bool, [])
    f = custom(grad)
    y = tn.cond(p, lambda: f(x), lambda: x) if body else f(x)
    with pytest.raises(ValueError, match=text):
        tn.gradients(y, x)


def test_wrong_functions():
    x = tn.constant(1.0)
    for wrong in (lambda x: x, lambda x: (x, 3), lambda x: (x, None, None)):
        with pytest.raises(TypeError, match="must return a value and a gradient function"):
            tn.custom_gradient(wrong)(x)
    with pytest.raises(TypeError, match="must return a tensor"):
        tn.custom_gradient(lambda x: ([], lambda: x))(x)
    with pytest.raises(TypeError, match="f must be a function"):
        tn.custom_gradient(3)
    with pytest.raises(ValueError, match="no keyword arguments"):
        log1pexp(x=x)
    with pytest.raises(TypeError, match="positional argument"):
        tn.gradients(custom(lambda: 1)(x), x)


def test_wrong_gradients_of_variables():
    v = tn.Variable(1.0)
    x = tn.constant(1.0)
    with pytest.raises(TypeError, match="must accept a 'variables' keyword argument"):
        custom(lambda dy: dy, lambda x: x * v)(x)
    with pytest.raises(ValueError, match="gradient for each variable"):
        tn.gradients(custom(lambda dy, variables: (dy, []), lambda x: x * v)(x), x)
    with pytest.raises(ValueError, match="two lists"):
        tn.gradients(custom(lambda dy, variables: dy, lambda x: x * v)(x), x)
    with pytest.raises(ValueError, match="Incompatible shapes"):
        tn.gradients(custom(lambda dy, variables: (dy, [tn.ones([3])]), lambda x: x * v)(x), v)


def test_tensors_that_leak_out_of_a_body():
    leaked = []

    @tn.custom_gradient
    def f(x):
        def grad(dy):
            leaked.append(dy * 2)
            return dy
        return x * 1, grad
    x = tn.placeholder(tn.float32, [])
    tn.gradients(tn.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, f(y)), [0, x])[1], x)
    with pytest.raises(ValueError, match="it belongs to the body of 'gradients'"):
        leaked[0] + 1
    with tn.Session() as sess, pytest.raises(ValueError, match="is not an element of this graph"):
        sess.run(leaked[0])
    with pytest.raises(ValueError, match="it belongs to the body of 'gradients'"):
        tn.gradients(tn.cond(x > 0, lambda: custom(lambda dy: leaked[0])(x), lambda: x), x)


def test_a_value_that_the_first_gradient_did_not_keep():
    """A gradient function hides what it reads in an object."""
    class Holder:
        pass
    x, p = tn.placeholder(tn.float64, []), tn.placeholder(tn.bool, [])

    @tn.custom_gradient
    def f(x):
        holder = Holder()
        holder.late = tn.exp(x)

        def grad(dy):
            return tn.custom_gradient(lambda dy: (dy * 2, lambda ddy: ddy * holder.late))(dy)
        return x * 3, grad
    weight = tn.placeholder(tn.float64, [])
    first = tn.gradients(tn.cond(p, lambda: f(x), lambda: x), x, weight)[0]
    with pytest.raises(ValueError, match="must take it as an argument"):
        tn.gradients(first, weight)
