# SPDX-License-Identifier: Apache-2.0
"""tn.cond, tn.case, tn.switch_case and tn.while_loop, against Python's own control flow."""

import collections
import threading

import numpy as np
import pytest

import treenail as tn
from treenail import _treenail as _core
from treenail._framework import _DefaultGraph
from treenail._function_graph import FunctionGraph
from running import run


# --- Branches -------------------------------------------------------------------------------------

@pytest.mark.parametrize("pred", [True, False])
def test_cond_gives_what_the_chosen_branch_does(pred):
    x, p = tn.placeholder(tn.float32, [3]), tn.placeholder(tn.bool, [])
    y = tn.cond(p, lambda: x * 2.0, lambda: x - 1.0)
    value = np.float32([1, -2, 3])
    expected = value * 2 if pred else value - 1
    np.testing.assert_array_equal(run(y, {x: value, p: pred}), expected)
    assert y.shape.as_list() == [3] and y.dtype == tn.float32


def test_branches_give_nests():
    p, x = tn.placeholder(tn.bool, []), tn.placeholder(tn.float32, [])
    pair = collections.namedtuple("pair", "first second")
    got = tn.cond(p, lambda: {"b": pair(x, [x + 1.0]), "a": tn.constant(1)},
                  lambda: {"a": tn.constant(2), "b": pair(-x, [-x])})
    assert isinstance(got["b"], pair) and isinstance(got["b"].second, list)
    value = run([got["a"], got["b"].first, got["b"].second[0]], {p: True, x: 5.0})
    assert value == [1, 5.0, 6.0]
    assert run([got["a"], got["b"].first, got["b"].second[0]], {p: False, x: 5.0}) == [2, -5, -5]


def test_lists_of_one_are_unpacked_unless_strict():
    p = tn.placeholder(tn.bool, [])
    assert isinstance(tn.cond(p, lambda: [tn.constant(1)], lambda: [tn.constant(2)]), tn.Tensor)
    strict = tn.cond(p, lambda: [tn.constant(1)], lambda: [tn.constant(2)], strict=True)
    assert isinstance(strict, list) and run(strict[0], {p: False}) == 2


def test_sparse_values_leave_a_branch():
    p = tn.placeholder(tn.bool, [])

    def sparse(at):
        return lambda: tn.SparseTensor([[at]], tn.constant([1.5]), [4])
    got = tn.cond(p, sparse(1), sparse(3))
    np.testing.assert_array_equal(run(tn.sparse.to_dense(got), {p: False}), [0, 0, 0, 1.5])


def test_only_the_chosen_branch_runs():
    p = tn.placeholder(tn.bool, [])
    calls = []

    def note(name):
        return lambda: tn.py_func(lambda: calls.append(name) or np.int64(len(name)), [], tn.int64)
    y = tn.cond(p, note("yes"), note("no"))
    with tn.Session() as sess:
        assert [sess.run(y, {p: value}) for value in (True, False, True)] == [3, 2, 3]
    assert calls == ["yes", "no", "yes"]


def test_an_operation_counts_as_a_value_that_is_there_when_it_has_run():
    p, v = tn.placeholder(tn.bool, []), tn.Variable(1.0)
    done = tn.cond(p, lambda: tn.group(v.assign(7.0)), lambda: tn.no_op())
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        assert sess.run(done, {p: False}) and sess.run(v) == 1.0
        assert sess.run(done, {p: True}) and sess.run(v) == 7.0


def test_a_branch_knows_the_values_of_constants_around():
    axis, p = tn.constant(1), tn.placeholder(tn.bool, [])
    x = tn.placeholder(tn.float32, [2, 3])
    y = tn.cond(p, lambda: tn.reduce_sum(x, axis), lambda: tn.zeros([2]))
    assert y.shape.as_list() == [2]
    np.testing.assert_array_equal(run(y, {p: True, x: np.ones((2, 3))}), [3, 3])


def test_branches_within_branches_read_all_graphs_around():
    x, y = tn.placeholder(tn.float32, []), tn.placeholder(tn.float32, [])
    z = tn.cond(x > 0.0, lambda: tn.cond(y > 0.0, lambda: x + y, lambda: x - y),
                lambda: tn.cond(y > x, lambda: tn.cond(y > -1.0, lambda: y * 2.0, lambda: x),
                                lambda: x * y))
    for a, b in [(1, 2), (1, -2), (-1, 3), (-3, -2), (-1, -2)]:
        expected = (a + b if b > 0 else a - b) if a > 0 else (
            (b * 2 if b > -1 else a) if b > a else a * b)
        assert run(z, {x: a, y: b}) == expected


def test_shapes_of_branches_are_merged():
    p, n = tn.placeholder(tn.bool, []), tn.placeholder(tn.int32, [])
    assert tn.cond(p, lambda: tn.ones([2, 3]), lambda: tn.ones([2, 4])).shape.as_list() == [2, None]
    other = tn.cond(p, lambda: tn.ones([2]), lambda: tn.ones([2, 4]))
    assert other.shape.rank is None
    assert run(tn.shape(other), {p: True}).tolist() == [2]
    filled = tn.cond(p, lambda: tn.ones([n]), lambda: tn.zeros([5]))
    assert run(tn.reduce_sum(filled), {p: True, n: 3}) == 3


@pytest.mark.parametrize("index", range(-1, 5))
def test_switch_case(index):
    x, i = tn.placeholder(tn.float32, []), tn.placeholder(tn.int32, [])
    functions = [lambda: x, lambda: x * 10.0, lambda: x * 100.0]
    with_default = tn.switch_case(i, dict(enumerate(functions)), default=lambda: tn.constant(-1.0))
    plain = tn.switch_case(i, functions)
    inside = 0 <= index < 3
    assert run([plain, with_default], {x: 2.0, i: index}) == [
        2.0 * 10 ** index if inside else 200.0, 2.0 * 10 ** index if inside else -1.0]


def test_case_takes_the_first_that_is_true():
    x = tn.placeholder(tn.float32, [])
    y = tn.case([(x > 3.0, lambda: tn.constant(1)), (x > 2.0, lambda: tn.constant(2))],
                default=lambda: tn.constant(3))
    assert [run(y, {x: value}) for value in (4.0, 2.5, 0.0)] == [1, 2, 3]


def test_case_holds_to_its_rules():
    x = tn.placeholder(tn.float32, [])
    pairs = [(x > 3.0, lambda: tn.constant(1)), (x > 2.0, lambda: tn.constant(2))]
    exclusive = tn.case(dict(pairs), exclusive=True)
    assert run(exclusive, {x: 2.5}) == 2
    with pytest.raises(tn.errors.InvalidArgumentError, match="more than one"):
        run(exclusive, {x: 4.0})
    with pytest.raises(tn.errors.InvalidArgumentError, match="none of the conditions"):
        run(exclusive, {x: 0.0})


# --- Loops ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("n", [0, 1, 2, 17, 1000])
def test_while_loop_counts(n):
    limit = tn.placeholder(tn.int32, [])
    i, total = tn.while_loop(lambda i, _: i < limit, lambda i, total: (i + 1, total + i), [0, 0])
    assert run([i, total], {limit: n}) == [n, n * (n - 1) // 2]


def test_one_loop_variable_is_returned_as_it_is():
    single = tn.while_loop(lambda i: i < 3, lambda i: i + 1, [tn.constant(0)])
    assert isinstance(single, tn.Tensor) and run(single) == 3
    same = tn.while_loop(lambda i: i < 3, lambda i: [i + 1], [0], return_same_structure=True)
    assert isinstance(same, list) and run(same[0]) == 3
    assert run(tn.while_loop(lambda i: i < 3, lambda i: (i + 1,), (0,))) == 3


def test_loop_variables_nest():
    state = collections.namedtuple("state", "c h")
    start = [tn.constant(0), state(tn.zeros([2]), {"x": tn.ones([2])})]

    def body(i, s):
        return [i + 1, state(s.c + s.h["x"], {"x": s.h["x"] * 2.0})]
    i, s = tn.while_loop(lambda i, _: i < 4, body, start)
    got = run([i, s.c, s.h["x"]])
    assert got[0] == 4 and got[1].tolist() == [15, 15] and got[2].tolist() == [16, 16]


def test_loops_within_loops_and_branches():
    n = tn.placeholder(tn.int32, [])

    def inner(i, total):
        return tn.while_loop(lambda k, t: k < i, lambda k, t: (k + 1, tn.cond(
            tn.equal(k % 2, 0), lambda: t + k, lambda: t - i)), [0, total])[1]
    _, total = tn.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, inner(i, t)), [0, 0])
    for count in (0, 1, 5, 20):
        expected = 0
        for i in range(count):
            for k in range(i):
                expected = expected + k if k % 2 == 0 else expected - i
        assert run(total, {n: count}) == expected


@pytest.mark.parametrize("maximum", [0, 3, 100])
def test_maximum_iterations(maximum):
    i = tn.while_loop(lambda i: i < 10, lambda i: i + 1, [0], maximum_iterations=maximum)
    assert run(i) == min(maximum, 10)


def test_a_value_may_grow_where_its_invariant_allows_it():
    _, x = tn.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, tn.concat([x, x[-1:] * 2.0], 0)),
                         [0, tn.constant([1.0])], shape_invariants=[[], [None]])
    assert x.shape.as_list() == [None]
    assert run(x).tolist() == [1, 2, 4, 8, 16, 32]


def test_what_a_loop_reads_of_its_surroundings_is_computed_once():
    calls = []
    x = tn.py_func(lambda: calls.append(1) or np.int32(2), [], tn.int32)
    x.set_shape([])
    total = tn.while_loop(lambda t: t < 100, lambda t: t + x, [0])
    assert run(total) == 100 and calls == [1]


def test_loop_values_are_updated_where_they_lie():
    big = tn.placeholder(tn.float32, [1 << 20])
    loop = tn.while_loop(lambda i, _: i < 50, lambda i, x: (i + 1, x + 1.0), [0, big])
    assert run(loop[1], {big: np.zeros(1 << 20)})[::1 << 18].tolist() == [50] * 4


class Program:
    """A random program over four integers, nested to some depth, as Python runs it and as a graph.

    A statement is (kind, ...): "set", target, operator, two operands; "if", condition, block,
    block; "while", condition, number of iterations at most, block.
    """

    OPERATORS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}

    def __init__(self, seed):
        self._rng = np.random.RandomState(seed)
        self.block = self._block(3)

    def _block(self, depth):
        return [self._statement(depth) for _ in range(self._rng.randint(1, 4))]

    def _statement(self, depth):
        rng = self._rng
        kind = "set" if depth == 0 else rng.choice(["set", "if", "while"])
        if kind == "set":
            return (kind, rng.randint(4), rng.choice(list(self.OPERATORS)), rng.randint(4),
                    rng.randint(4))
        condition = (rng.randint(4), rng.randint(-20, 20))
        if kind == "if":
            return kind, condition, self._block(depth - 1), self._block(depth - 1)
        return kind, condition, rng.randint(5), self._block(depth - 1)

    def run(self, values, block=None):
        for statement in self.block if block is None else block:
            if statement[0] == "set":
                _, target, operator, a, b = statement
                values[target] = self.OPERATORS[operator](values[a], values[b]) % 97 - 40
            elif statement[0] == "if":
                _, (which, bound), yes, no = statement
                self.run(values, yes if values[which] < bound else no)
            else:
                _, (which, bound), most, inner = statement
                for _ in range(most):
                    if not values[which] < bound:
                        break
                    self.run(values, inner)
        return values

    def build(self, values, block=None):
        for statement in self.block if block is None else block:
            values = list(values)
            if statement[0] == "set":
                _, target, operator, a, b = statement
                values[target] = self.OPERATORS[operator](values[a], values[b]) % 97 - 40
            elif statement[0] == "if":
                _, (which, bound), yes, no = statement
                values = self._cond(values, which, bound, yes, no)
            else:
                _, (which, bound), most, inner = statement
                values = self._while(values, which, bound, most, inner)
        return values

    def _cond(self, values, which, bound, yes, no):
        return tn.cond(values[which] < int(bound), lambda: self.build(values, yes),
                       lambda: self.build(values, no))

    def _while(self, values, which, bound, most, inner):
        return tn.while_loop(lambda *v: v[which] < int(bound), lambda *v: self.build(v, inner),
                             values, maximum_iterations=int(most))


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_do_what_python_does(seed):
    program = Program(seed)
    inputs = [tn.placeholder(tn.int32, []) for _ in range(4)]
    outputs = program.build(inputs)
    with tn.Session() as sess:
        for start in np.random.RandomState(seed).randint(-40, 57, [8, 4]):
            expected = program.run([int(value) for value in start])
            assert sess.run(outputs, dict(zip(inputs, start))) == expected


# --- State ----------------------------------------------------------------------------------------

def test_variables_are_read_and_written_in_the_order_of_the_program():
    v = tn.Variable(1.0)
    with tn.control_dependencies([v.assign(3.0)]):
        i = tn.while_loop(lambda i: i < 5, lambda i: tn.tuple([i + 1], control_inputs=[
            v.assign_add(2.0)])[0], [0])
    with tn.control_dependencies([i]):
        after = v.read_value()
    assert run([i, after]) == [5, 13.0]


def test_a_loop_sees_what_it_wrote_itself():
    v = tn.Variable(1.0)

    def body(i, seen):
        with tn.control_dependencies([v.assign(v * 2.0)]):
            return i + 1, seen + v.read_value()
    _, seen = tn.while_loop(lambda i, _: i < 4, body, [0, 0.0])
    assert run(seen) == 2 + 4 + 8 + 16


def test_reads_outside_of_a_branch_that_writes_keep_their_order():
    v, p = tn.Variable(tn.zeros([1000])), tn.placeholder(tn.bool, [])
    before = v.read_value()
    with tn.control_dependencies([before]):
        written = tn.cond(p, lambda: v.assign_add(tn.ones([1000])), lambda: v.read_value())
    with tn.control_dependencies([written]):
        after = v.read_value()
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        for count in range(1, 4):
            a, b, c = sess.run([before, written, after], {p: True})
            assert (a == count - 1).all() and (b == count).all() and (c == count).all()
        a, b, c = sess.run([before, written, after], {p: False})
        assert (a == 3).all() and (b == 3).all() and (c == 3).all()


def test_a_variable_made_in_a_branch_is_the_graphs():
    p = tn.placeholder(tn.bool, [])
    y = tn.cond(p, lambda: tn.get_variable("w", initializer=tn.constant_initializer(4.0), shape=[]),
                lambda: tn.constant(0.0))
    assert [v.name for v in tn.global_variables()] == ["w:0"]
    assert run(y, {p: True}) == 4.0
    with tn.variable_scope(tn.get_variable_scope(), reuse=True):
        assert tn.get_variable("w", shape=[]).graph is tn.get_default_graph()


def test_random_numbers_differ_by_iteration_and_place():
    def draws():
        return tn.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, tn.concat(
            [x, tn.random_uniform([1], seed=7)], 0)), [0, tn.zeros([0])],
            shape_invariants=[[], [None]])[1]
    with tn.Session() as sess:
        a, b = sess.run([draws(), draws()])
    assert len(set(a)) == 3
    np.testing.assert_array_equal(a, b)  # each place has the stream of its seed
    with tn.Session() as sess:
        np.testing.assert_array_equal(sess.run(draws()), a)


def test_queues_in_branches():
    queue, p = tn.FIFOQueue(10, tn.int32, [[]]), tn.placeholder(tn.bool, [])
    moved = tn.cond(p, lambda: tn.group(queue.enqueue(5)), tn.no_op)
    with tn.Session() as sess:
        sess.run(moved, {p: True})
        sess.run(moved, {p: False})
        assert sess.run(queue.size()) == 1


# --- Sessions -------------------------------------------------------------------------------------

def test_other_shapes_other_plans():
    x = tn.placeholder(tn.float32, [None])
    y = tn.cond(tn.reduce_sum(x) > 0.0, lambda: tn.reduce_max(x * 2.0), lambda: tn.reduce_min(x))
    with tn.Session() as sess:
        for n in list(range(1, 40)) * 2:
            value = np.arange(n) - n / 3
            expected = value.max() * 2 if value.sum() > 0 else value.min()
            np.testing.assert_allclose(sess.run(y, {x: value}), expected, rtol=1e-6)


def test_two_threads_run_one_loop():
    n = tn.placeholder(tn.int32, [])
    total = tn.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t + i * n), [0, 0])[1]
    errors = []
    with tn.Session() as sess:
        def work(count):
            for _ in range(50):
                if sess.run(total, {n: count}) != count * count * (count - 1) // 2:
                    errors.append(count)
        threads = [threading.Thread(target=work, args=[count]) for count in (3, 30, 300)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors


def test_a_graph_is_saved_and_loaded_with_its_functions(tmp_path):
    x = tn.placeholder(tn.float32, [], name="x")
    tn.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tn.cond(
        y > 10.0, lambda: y - x, lambda: y * x)), [0, x], name="loop")[1]
    tn.get_default_graph().save(tmp_path / "graph")
    expected = run("loop:1", {x: 3.0})
    with tn.Session(graph=tn.load_graph(tmp_path / "graph")) as sess:
        assert sess.run("loop:1", {"x:0": 3.0}) == expected == 24.0


def test_a_loop_without_an_end_is_ended():
    i = tn.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 1000, [0])
    with tn.Session() as sess, pytest.raises(tn.errors.DeadlineExceededError):
        sess.run(i, options=tn.RunOptions(timeout_in_ms=200))


def test_a_closed_session_ends_its_loops():
    i = tn.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 1000, [0])
    sess = tn.Session()
    timer = threading.Timer(0.2, sess.close)
    timer.start()
    with pytest.raises(tn.errors.CancelledError):
        sess.run(i)
    timer.join()


# --- Bad input ------------------------------------------------------------------------------------

def test_errors_name_operation_and_iteration():
    x = tn.placeholder(tn.float32, [None, None])

    def body(i, y):
        return i + 1, tn.matmul(y, x, name="product")
    y = tn.while_loop(lambda i, _: i < 3, body, [0, tn.ones([2, 2])],
                      shape_invariants=[[], [None, None]], name="loop")[1]
    with pytest.raises(tn.errors.InvalidArgumentError,
                       match='While node "loop".*iteration 1: .*MatMul node "product"'):
        run(y, {x: np.ones((2, 3))})


def test_refused_branches():
    p, x = tn.placeholder(tn.bool, []), tn.placeholder(tn.float32, [])
    with pytest.raises(TypeError, match="Python bool"):
        tn.cond(True, lambda: x, lambda: x)
    with pytest.raises(TypeError, match="callable"):
        tn.cond(p, x, lambda: x)
    with pytest.raises(TypeError, match="same dtype.*float32.*int32"):
        tn.cond(p, lambda: x, lambda: tn.constant(1))
    with pytest.raises(ValueError, match="same structure"):
        tn.cond(p, lambda: x, lambda: [x, x])
    with pytest.raises(ValueError, match="return value"):
        tn.cond(p, lambda: None, lambda: None)
    with pytest.raises(ValueError, match="scalar"):
        tn.cond(tn.placeholder(tn.bool, [2]), lambda: x, lambda: x)
    with pytest.raises(ValueError, match="0 to 1"):
        tn.switch_case(tn.constant(0), {0: lambda: x, 2: lambda: x})


def test_refused_loops():
    with pytest.raises(TypeError, match="enters the loop with dtype int32.*float32"):
        tn.while_loop(lambda i: i < 3, lambda i: tn.cast(i, tn.float32), [0])
    with pytest.raises(ValueError, match=r"shape \(1,\).*shape \(2,\).*shape_invariants"):
        tn.while_loop(lambda x: True, lambda x: tn.concat([x, x], 0), [tn.constant([1.0])])
    with pytest.raises(ValueError, match="same nested structure"):
        tn.while_loop(lambda i, j: i < 3, lambda i, j: i, [0, 0])
    with pytest.raises(ValueError, match="No loop variables"):
        tn.while_loop(lambda: True, lambda: (), [])
    with pytest.raises(ValueError, match="scalar"):
        tn.while_loop(lambda i: tn.constant([True, False]), lambda i: i, [0])
    with pytest.raises(ValueError, match="not compatible with the initial shape"):
        tn.while_loop(lambda x: True, lambda x: x, [tn.ones([2])], shape_invariants=[[3]])


def test_a_value_that_leaves_its_shape_at_run_time():
    x = tn.placeholder(tn.float32)

    def body(i, y):
        y = tn.concat([y, x], 0)
        y.set_shape([4])
        return i + 1, y
    y = tn.while_loop(lambda i, _: i < 2, body, [0, tn.ones([4])])[1]
    assert run(y, {x: np.zeros(0)}).tolist() == [1] * 4
    with pytest.raises(tn.errors.OpError, match=r"\[5\]"):
        run(y, {x: np.zeros(1)})


def test_a_tensor_of_a_body_stays_there():
    leaked = []
    p, x = tn.placeholder(tn.bool, []), tn.placeholder(tn.float32, [])
    tn.cond(p, lambda: leaked.append(x * 2.0) or x, lambda: x, name="choice")
    with pytest.raises(ValueError, match="choice/true_fn.*return it from there"):
        tn.cond(p, lambda: leaked[0] + 1.0, lambda: x)
    with pytest.raises(ValueError, match="choice/true_fn.*return it"):
        leaked[0] + x
    with tn.Session() as sess, pytest.raises(ValueError, match="choice/true_fn.*return it"):
        sess.run(leaked[0], {p: True, x: 1.0})
    with tn.Session() as sess, pytest.raises(TypeError, match="choice/true_fn.*return it"):
        sess.run(x, {leaked[0]: 1.0})


# --- Functions that call themselves ---------------------------------------------------------------

def recursive_sum(limit):
    """What 0 + 1 + ... + limit is, by a function of the graph that calls itself."""
    root = tn.get_default_graph()

    def function(name, make):
        body = FunctionGraph(name, root)
        with _DefaultGraph(body):
            n = tn.placeholder(tn.int32, [])
            result = make(n)
        return _core.add_function(root, name, body, [n], [result])

    def call(n):
        return tn.raw_ops.StatelessIf(n > 0, [n], Tout=[tn.int32], then_branch="step",
                                      else_branch="end")[0]
    function("end", lambda n: tn.identity(n))
    function("step", lambda n: n + call(n - 1))
    return call(limit)


def test_a_function_may_call_itself():
    n = tn.placeholder(tn.int32, [])
    total = recursive_sum(n)
    with tn.Session() as sess:
        for count in (0, 1, 7, 300, 2):
            assert sess.run(total, {n: count}) == count * (count + 1) // 2


@pytest.mark.parametrize("stack", [0, 1 << 20])
def test_recursion_without_an_end_is_ended(stack):
    n = tn.placeholder(tn.int32, [])
    total, found = recursive_sum(n), []

    def work():
        with tn.Session() as sess:
            found.append(sess.run(total, {n: 100}))
            with pytest.raises(tn.errors.ResourceExhaustedError, match='"step" is called'):
                sess.run(total, {n: 1000000})
            found.append(sess.run(total, {n: 3}))
    before = threading.stack_size(stack)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert found == [5050, 6]


def test_what_a_body_waits_for_though_it_reads_the_graph_around_first():
    """An argument that is made under control_dependencies is no node that waits."""
    counter, x, p = tn.Variable(0.0), tn.placeholder(tn.float32, []), tn.placeholder(tn.bool, [])

    def counted():
        with tn.control_dependencies([counter.assign_add(1.0)]):
            return tn.exp(x)
    y = tn.cond(p, counted, lambda: x)
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        sess.run(y, {p: True, x: 0.0})
        sess.run(y, {p: False, x: 0.0})
        assert sess.run(counter) == 1
