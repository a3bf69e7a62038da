# SPDX-License-Identifier: Apache-2.0
"""tn.function: when it traces, what it gives, its gradients, its side effects. Oracles: the same
Python function with immediate execution, closed forms, and the same graph in a session."""

import gc
import resource
import threading
import warnings
import weakref

import numpy as np
import pytest
import treenail as tn


@pytest.fixture(autouse=True)
def at_once():
    with tn.eager():
        yield


def counted(f):
    """(tn.function of f, a list that grows with each trace)"""
    traces = []

    def traced(*args, **kwargs):
        traces.append(args)
        return f(*args, **kwargs)
    return tn.function(traced, autograph=False), traces


def test_one_trace_for_each_kind_of_arguments():
    f, traces = counted(lambda x, n: x * n)
    x = tn.constant([1.0, 2.0])
    np.testing.assert_array_equal(f(x, 2), [2, 4])
    np.testing.assert_array_equal(f(x + 1.0, 2), [4, 6])
    assert len(traces) == 1
    np.testing.assert_array_equal(f(x, 3), [3, 6])  # a Python number is a part of the kind
    np.testing.assert_array_equal(f(tn.constant([1, 2]), 2), [2, 4])
    np.testing.assert_array_equal(f(tn.constant([1.0]), 2), [2])
    assert len(traces) == 4
    assert f(x, 3.0).dtype == tn.float32 and len(traces) == 5  # 3 and 3.0 are two values


def test_arrays_are_tensors():
    f, traces = counted(lambda x: x + 1.0)
    for value in (1.0, 2.0, 3.0):
        np.testing.assert_array_equal(f(np.full(2, value, np.float32)), [value + 1] * 2)
    assert len(traces) == 1


def test_structures():
    f, traces = counted(lambda d, rest: {"sum": d["a"] + rest[0], "none": None, "rest": list(rest)})
    found = f({"a": tn.constant(1.0)}, (tn.constant(2.0), tn.constant(3.0)))
    assert float(found["sum"]) == 3.0 and found["none"] is None
    assert [float(r) for r in found["rest"]] == [2.0, 3.0]
    f({"a": tn.constant(5.0)}, (tn.constant(2.0), tn.constant(3.0)))
    assert len(traces) == 1
    with pytest.raises(KeyError):
        f({"b": tn.constant(1.0)}, (tn.constant(2.0),))


def test_keywords_and_defaults():
    f, traces = counted(lambda x, scale=2.0: x * scale)
    assert float(f(tn.constant(3.0))) == 6.0
    assert float(f(x=tn.constant(3.0), scale=3.0)) == 9.0
    with pytest.raises(TypeError, match="nothing"):
        f(tn.constant(1.0), nothing=1)


def test_input_signature():
    traces = []

    @tn.function(input_signature=[tn.TensorSpec([None], tn.float32)])
    def f(x):
        traces.append(x.shape.as_list())
        return tn.reduce_sum(x)
    assert float(f(tn.constant([1.0, 2.0]))) == 3.0
    assert float(f([1.0, 2.0, 3.0])) == 6.0
    assert traces == [[None]]
    with pytest.raises(ValueError, match="incompatible with input_signature"):
        f(tn.constant([[1.0]]))
    with pytest.raises(TypeError, match="too many positional arguments"):
        f(tn.constant([1.0]), tn.constant([1.0]))
    with pytest.raises(TypeError, match="TensorSpec"):
        tn.function(lambda x: x, input_signature=[3])


def test_relaxed_shapes():
    traces = []

    @tn.function(experimental_relax_shapes=True)
    def f(x):
        traces.append(x.shape.as_list())
        return tn.reduce_sum(x)
    for n in (1, 2, 3, 4, 5):
        assert float(f(tn.ones([n, 3]))) == 3.0 * n
    assert traces == [[1, 3], [None, 3]]


def test_a_warning_where_it_traces_often():
    f, _ = counted(lambda x, n: x * n)
    with pytest.warns(UserWarning, match=r"was traced \d+ times.*Pass tensors"):
        for n in range(10):
            f(tn.constant(1.0), n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        g, _ = counted(lambda x: x)
        for n in range(10):
            g(tn.constant(float(n)))


def test_writes_to_variables_keep_the_order_of_the_program():
    v = tn.Variable(1.0)

    @tn.function
    def f(x):
        before = v.read_value()
        v.assign_add(x)
        middle = v.read_value()
        v.assign(v * 2.0)
        return before, middle, v.read_value()
    assert [float(r) for r in f(tn.constant(3.0))] == [1.0, 4.0, 8.0]
    assert float(v) == 8.0
    assert [float(r) for r in f(tn.constant(1.0))] == [8.0, 9.0, 18.0]


def test_what_nobody_uses_is_done_all_the_same():
    v, seen = tn.Variable(0.0), []

    @tn.function
    def f(x):
        v.assign_add(1.0)
        tn.py_func(lambda a: seen.append(float(a)), [x], [])
        tn.py_func(lambda a: seen.append(-float(a)), [x], [])
        x * 100.0  # noqa: B018 (nothing asks for it)
    assert f(tn.constant(3.0)) is None
    assert f(tn.constant(4.0)) is None
    assert float(v) == 2.0 and seen == [3.0, -3.0, 4.0, -4.0]


@pytest.mark.parametrize("autograph", [False, True])
def test_branches_whose_results_nobody_takes_run_in_their_order(autograph):
    v = tn.Variable(0)

    def with_cond(x):
        tn.cond(x > 0.0, lambda: v.assign(v * 10 + 1), lambda: v.assign(v * 10 + 9))
        v.assign(v * 10 + 2)
        tn.cond(x > 0.0, lambda: v.assign(v * 10 + 3), lambda: 0)
        tn.cond(x > 0.0, lambda: v.assign(v * 10 + 4), lambda: 0)

    def with_if(x):
        if x > 0.0:
            v.assign(v * 10 + 1)
        else:
            v.assign(v * 10 + 9)
        v.assign(v * 10 + 2)
        if x > 0.0:
            v.assign(v * 10 + 3)
        if x > 0.0:
            v.assign(v * 10 + 4)
    f = tn.function(with_if if autograph else with_cond, autograph=autograph)
    f(tn.constant(1.0))
    assert int(v) == 1234
    v.assign(0)
    f(tn.constant(-1.0))
    assert int(v) == 92


def test_assertions_run():
    @tn.function
    def f(x):
        tn.Assert(x > 0.0, ["x is not positive:", x])
        return x
    assert float(f(tn.constant(1.0))) == 1.0
    with pytest.raises(tn.errors.InvalidArgumentError, match="x is not positive"):
        f(tn.constant(-1.0))


def test_variables_are_made_in_the_first_trace_only():
    class Counter:
        def __init__(self):
            self.v = None

        @tn.function
        def add(self, x):
            if self.v is None:
                self.v = tn.Variable(0.0)
            self.v.assign_add(x)
            return self.v.read_value()
    one, two = Counter(), Counter()
    assert float(one.add(tn.constant(1.0))) == 1.0
    assert float(one.add(tn.constant(2.0))) == 3.0
    assert float(two.add(tn.constant(5.0))) == 5.0  # every instance has its own

    @tn.function
    def bad(x, n):
        return tn.Variable(1.0) * x * n
    bad(tn.constant(1.0), 1.0)
    with pytest.raises(ValueError, match="create variables on non-first call"):
        bad(tn.constant(1.0), 2.0)


def test_an_instance_is_not_kept():
    class Holder:
        @tn.function
        def f(self, x):
            return x + 1.0
    holder = Holder()
    holder.f(tn.constant(1.0))
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None


def test_gradients_of_arguments_variables_and_what_is_captured():
    v, c = tn.Variable(2.0), tn.constant([3.0, 4.0])
    f = tn.function(lambda x: tn.reduce_sum(x * x * v * c))
    x = tn.constant([1.0, 2.0])
    with tn.GradientTape() as tape:
        tape.watch([x, c])
        y = f(x)
    of_x, of_v, of_c = tape.gradient(y, [x, v, c])
    np.testing.assert_array_equal(of_x, [12.0, 32.0])
    assert float(of_v) == 3.0 + 16.0
    np.testing.assert_array_equal(of_c, [2.0, 8.0])


def test_gradients_through_calls_and_around_them():
    f = tn.function(lambda x: tn.sin(x) * x)
    x = tn.constant(1.5)
    with tn.GradientTape() as tape:
        tape.watch(x)
        y = f(x * 2.0) * x
    z = 3.0
    wanted = np.sin(z) * z + 1.5 * 2 * (np.cos(z) * z + np.sin(z))
    assert float(tape.gradient(y, x)) == pytest.approx(wanted, rel=1e-6)


def test_gradients_of_any_order():
    f = tn.function(lambda x: x**5)

    def derivative(g):
        return lambda x: tn.gradients_function(g)(x)[0]
    g = f
    for wanted in (5 * 2.0**4, 20 * 2.0**3, 60 * 2.0**2, 120 * 2.0):
        g = derivative(g)
        assert float(g(tn.constant(2.0))) == pytest.approx(wanted, rel=1e-6)


def test_several_results_of_which_some_have_gradients():
    f = tn.function(lambda x: (x * 2.0, tn.cast(x, tn.int32), x * x))
    x = tn.constant(3.0)
    with tn.GradientTape(persistent=True) as tape:
        tape.watch(x)
        a, _, c = f(x)
    assert float(tape.gradient(a, x)) == 2.0
    assert float(tape.gradient(c, x)) == 6.0
    assert float(tape.gradient([a, c], x)) == 8.0


def test_gathered_rows_have_slices():
    table = tn.Variable(np.ones((4, 2), np.float32))
    f = tn.function(lambda i: tn.reduce_sum(tn.nn.embedding_lookup(table, i)))
    with tn.GradientTape() as tape:
        y = f(tn.constant([1, 1, 2]))
    found = tape.gradient(y, table)
    assert isinstance(found, tn.IndexedSlices)
    np.testing.assert_array_equal(tn.convert_to_tensor(found), [[0, 0], [2, 2], [1, 1], [0, 0]])


def test_the_backward_part_sees_the_same_random_numbers():
    f = tn.function(lambda x: tn.nn.dropout(x, rate=0.5) * x)
    x = tn.constant(np.arange(1.0, 101.0, dtype=np.float32))
    with tn.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    found = tape.gradient(y, x).numpy()
    np.testing.assert_allclose(found, 2.0 * y.numpy() / x.numpy(), rtol=1e-6)


def test_a_variable_that_changes_between_forward_and_backward():
    v = tn.Variable(2.0)
    f = tn.function(lambda x: v * v * x)
    x = tn.constant(3.0)
    with tn.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    v.assign(100.0)
    of_v, of_x = tape.gradient(y, [v, x])
    assert float(of_v) == 12.0 and float(of_x) == 4.0


def test_python_control_flow_is_converted():
    @tn.function
    def collatz(n):
        steps = 0
        while n > 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        return steps
    assert [int(collatz(tn.constant(n))) for n in (1, 2, 3, 27)] == [0, 1, 7, 111]


def test_gradients_through_converted_loops():
    @tn.function
    def power(x, n):
        result = tn.ones_like(x)
        for _ in tn.range(n):
            result = result * x
        return result
    x = tn.constant(1.5)
    with tn.GradientTape() as tape:
        tape.watch(x)
        y = power(x, tn.constant(4))
    assert float(y) == 1.5**4
    assert float(tape.gradient(y, x)) == 4 * 1.5**3


def test_a_tape_inside_of_the_function():
    v = tn.Variable(3.0)

    @tn.function
    def f(x):
        with tn.GradientTape() as tape:
            tape.watch(x)
            y = x * x * v
        assert tape.watched_variables() == (v,)
        return tape.gradient(y, [x, v])
    assert [float(g) for g in f(tn.constant(2.0))] == [12.0, 4.0]


def trained(kind, steps=20):
    """The weights after some steps, and the losses."""
    tn.set_random_seed(3)
    rng = np.random.RandomState(0)
    xs, ys = rng.randn(32, 4).astype(np.float32), rng.randn(32, 1).astype(np.float32)
    starts = [rng.randn(4, 8).astype(np.float32), np.zeros(8, np.float32),
              rng.randn(8, 1).astype(np.float32)]
    optimizer = tn.train.AdamOptimizer(0.01)
    w, b, u = [tn.Variable(s) for s in starts]

    def loss_of(x, y):
        return tn.reduce_mean(tn.square(tn.matmul(tn.nn.relu(tn.matmul(x, w) + b), u) - y))
    if kind == "graph":
        x, y = tn.placeholder(tn.float32, xs.shape), tn.placeholder(tn.float32, ys.shape)
        loss = loss_of(x, y)
        step = optimizer.minimize(loss)
        with tn.Session() as session:
            session.run(tn.global_variables_initializer())
            losses = [session.run([loss, step], {x: xs, y: ys})[0] for _ in range(steps)]
            return session.run([w, b, u]), losses

    def step(x, y):
        with tn.GradientTape() as tape:
            loss = loss_of(x, y)
        optimizer.apply_gradients(zip(tape.gradient(loss, [w, b, u]), [w, b, u]))
        return loss
    step = tn.function(step) if kind == "function" else step
    losses = [step(tn.constant(xs), tn.constant(ys)).numpy() for _ in range(steps)]
    return [v.numpy() for v in (w, b, u)], losses


def test_training_has_the_same_bits_in_every_mode():
    with tn.Graph().as_default():
        weights, losses = trained("graph")
    for kind in ("eager", "function"):
        got, seen = trained(kind)
        np.testing.assert_array_equal(seen, losses)
        for a, b in zip(got, weights):
            np.testing.assert_array_equal(a, b)


def test_functions_call_functions():
    inner = tn.function(lambda x: x * x)
    outer = tn.function(lambda x: inner(x) + inner(x + 1.0))
    x = tn.constant(2.0)
    with tn.GradientTape() as tape:
        tape.watch(x)
        y = outer(x)
    assert float(y) == 13.0 and float(tape.gradient(y, x)) == 10.0


def test_in_a_graph_it_is_a_call():
    f = tn.function(lambda x: x * x)
    with tn.Graph().as_default():
        x = tn.placeholder(tn.float32, [2])
        y = f(x)
        g, = tn.gradients(y, x)
        with tn.Session() as session:
            got = session.run([y, g], {x: [2.0, 3.0]})
    np.testing.assert_array_equal(got, [[4.0, 9.0], [4.0, 6.0]])


def test_a_tensor_that_leaves_its_function():
    kept = []

    @tn.function
    def f(x):
        kept.append(x * 2.0)
        return x
    f(tn.constant(1.0))
    with pytest.raises(TypeError, match="runs at once, which it cannot on the symbolic tensor"):
        kept[0] + 1.0

    @tn.function
    def g(x):
        return x + kept[0]
    with pytest.raises(ValueError, match="belongs to the body of 'f'"):
        g(tn.constant(1.0))


def test_recursion_without_an_end():
    @tn.function(autograph=False)
    def f(x):
        return f(x)
    with pytest.raises(RuntimeError, match="calls itself"):
        f(tn.constant(1.0))


def test_recursion_on_python_values():
    @tn.function(autograph=False)
    def factorial(x, n):
        return x if n <= 1 else factorial(x * float(n), n - 1)
    assert float(factorial(tn.constant(1.0), 5)) == 120.0


def test_errors_name_the_line_of_the_program():
    @tn.function
    def f(x, i):
        return tn.gather(x, i)  # the line
    with pytest.raises(tn.errors.InvalidArgumentError, match=r"(?s)indices = 7 is not in \[0, 3\)"):
        f(tn.constant([1.0, 2.0, 3.0]), tn.constant(7))
    with pytest.raises(tn.errors.InvalidArgumentError) as caught:
        f(tn.constant([1.0, 2.0, 3.0]), tn.constant(7))
    assert "test_function.py" in str(caught.value)


def test_several_threads_share_the_traces():
    f, traces = counted(lambda x, n: x * n)
    results, errors = [], []

    def work(seed):
        try:
            with tn.eager():
                for n in range(20):
                    k = (n * seed) % 5
                    with tn.GradientTape() as tape:
                        x = tn.constant(float(n))
                        tape.watch(x)
                        y = f(x, k)
                    results.append(float(y) == n * k and float(tape.gradient(y, x)) == k)
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=work, args=(s,)) for s in (1, 2, 3, 4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not errors and len(results) == 80 and all(results)
    assert len(traces) == 5


def test_recompute_grad_at_once():
    calls = []

    def f(x):
        calls.append(1)
        return tn.tanh(tn.nn.dropout(x, rate=0.5))
    again = tn.recompute_grad(f)
    x = tn.constant(np.linspace(-1, 1, 50).astype(np.float32))
    with tn.GradientTape() as tape:
        tape.watch(x)
        y = again(x)
    found = tape.gradient(y, x).numpy()
    mask = np.where(y.numpy() == 0, 0, 2)
    np.testing.assert_allclose(found, mask * (1 - y.numpy()**2), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("call, error, text", [
    (lambda: tn.function(3), TypeError, "needs a function"),
    (lambda: tn.function(lambda x: x, autograph=False)(), TypeError, "missing|argument"),
    (lambda: tn.function(lambda: object())(), TypeError, "object"),
])
def test_bad_uses(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_concrete_functions():
    f = tn.function(lambda x: x + 1.0)
    trace = f.get_concrete_function(tn.TensorSpec([None], tn.float32))
    np.testing.assert_array_equal(trace(tn.constant([1.0, 2.0])), [2, 3])
    assert trace.outputs[0].shape.as_list() == [None]
    with pytest.raises(ValueError, match="takes TensorSpec"):
        trace(tn.constant([[1.0]]))


def test_traces_end_with_their_holders():
    def many(times):
        for _ in range(times):
            v = tn.Variable(np.ones((64, 64), np.float32))

            @tn.function
            def f(x, v=v):
                if tn.reduce_sum(x) > 0:
                    x = x * 2.0
                return tn.nn.dropout(tn.py_func(lambda a: a, [tn.matmul(x, v)], tn.float32), 0.5)
            with tn.GradientTape() as tape:
                y = tn.reduce_sum(f(tn.ones([64, 64])))
            tape.gradient(y, v)
        gc.collect()

    def resident():
        with open("/proc/self/statm", encoding="ascii") as stream:
            return int(stream.read().split()[1]) * resource.getpagesize()
    many(30)
    before = resident()
    many(150)
    assert resident() - before < 12 << 20  # a trace and its gradient take 0.2 MiB


def test_inputs_without_a_gradient_that_nobody_asks_for():
    @tn.RegisterGradient("RefusedInFunction")
    def refused(op, gradient):
        raise LookupError("this gradient is not there")
    graph_of = {"Identity": "RefusedInFunction"}

    @tn.function
    def f(a, x):
        with tn.get_default_graph().gradient_override_map(graph_of):
            a = tn.identity(a)
        return a * tn.nn.dropout(x, 0.5)
    a, x = tn.constant(3.0), tn.constant(np.ones(100, np.float32))
    for _ in range(2):
        with tn.GradientTape() as tape:
            tape.watch(x)
            y = f(a, x)
        np.testing.assert_array_equal(tape.gradient(y, x), y)  # the same places are dropped
        with pytest.raises(LookupError, match="is not there"), tn.GradientTape() as tape:
            tape.watch(a)
            f(a, x)
