# SPDX-License-Identifier: Apache-2.0
"""Python's control flow over tensors, construct by construct: a converted function gives on tensors
what the plain one gives on numbers."""

import numpy as np
import pytest

import treenail as tn
from converted_runs import agrees, on_tensors
from running import run
from treenail._function_graph import Traced
from treenail.autograph._entry import converted

NUMBERS = [(n,) for n in (-7, -1, 0, 1, 2, 3, 5, 8, 13)]
COUNTS = [(n,) for n in (1, 2, 3, 6, 9)]


# --- Branches -------------------------------------------------------------------------------------

def test_if():
    def f(x):
        y = x
        if x > 2:
            y = x * 2
        return y
    agrees(f, *NUMBERS)


def test_else_and_elif():
    def f(x):
        if x < 0:
            y = -x
        elif x == 0:
            y = 100
        elif x < 5:
            y = x + 10
        else:
            y = x - 10
        return y
    agrees(f, *NUMBERS)


def test_nested_branches():
    def f(x):
        y = 0
        if x > 0:
            if x > 4:
                y = 1
                if x > 10:
                    y += 5
            else:
                y = 2
        return y * x
    agrees(f, *NUMBERS)


def test_a_condition_of_python_stays_one():
    def f(x, mode):
        if mode == "twice":
            return x * 2
        return x
    with tn.Graph().as_default() as graph:
        x = tn.placeholder(tn.int32, [])
        converted(f)(x, "twice")
        assert [op.type for op in graph.get_operations()] == ["Placeholder", "Const", "Mul"]


def test_a_number_is_a_condition():
    def f(x):
        return 1 if x else 2
    agrees(f, *NUMBERS)


def test_only_the_branch_that_is_chosen_runs():
    def f(x):
        if x > 0:
            y = 12 // x
        else:
            y = -1
        return y
    agrees(f, (0,), (5,))


def test_a_variable_is_a_condition():
    enabled = tn.Variable(True)
    results = tn.autograph.to_graph(lambda: 1 if enabled else 2)()
    assert run(results) == 1


def test_branches_of_tuples_lists_and_dictionaries():
    def f(x):
        pair = (x, [x, 1])
        named = {"a": x}
        if x > 0:
            pair = (x + 1, [x, x])
            named = {"a": -x}
        return pair[0] + pair[1][1] * named["a"]
    agrees(f, *NUMBERS)


def test_a_variable_that_only_one_branch_needs():
    def f(x):
        if x > 0:
            t = x * x
            y = t + 1
        else:
            y = x
        return y
    agrees(f, *NUMBERS)


# --- Ways out -------------------------------------------------------------------------------------

def test_early_return():
    def f(x):
        if x > 10:
            return x
        if x < 0:
            return -x
        return x * 100
    agrees(f, *NUMBERS)


def test_return_from_within_both():
    def f(x):
        if x > 0:
            if x > 5:
                return 1
            x = x + 1
        else:
            if x < -3:
                return 2
        return x
    agrees(f, *NUMBERS)


def test_return_from_a_loop():
    def f(n):
        for i in range(n):
            if i * i > 10:
                return i
        return -1
    agrees(f, *COUNTS)


def test_return_from_a_loop_and_its_else():
    def f(n):
        for i in range(n):
            if i > 3:
                return i
        else:
            return -n
    agrees(f, *COUNTS)


def test_return_of_a_structure():
    def f(n):
        for i in range(n):
            if i > 3:
                return {"found": (i, [i * 2])}
        return {"found": (-1, [n])}
    with tn.Graph().as_default():
        n = tn.placeholder(tn.int32, [])
        result = converted(f)(n)
        with tn.Session() as session:
            assert session.run(result, {n: 9}) == {"found": (4, [8])}
            assert session.run(result, {n: 2}) == {"found": (-1, [2])}


def test_break():
    def f(n):
        total = 0
        for i in range(n):
            if total > 6:
                break
            total += i
        return total
    agrees(f, *COUNTS)


def test_continue():
    def f(n):
        total = 0
        for i in range(n):
            if i % 3 == 0:
                continue
            total += i
            if i % 4 == 1:
                continue
            total *= 2
        return total
    agrees(f, *COUNTS)


def test_break_and_continue_of_nested_loops():
    def f(n):
        total = 0
        for i in range(n):
            j = 0
            while True:
                j += 1
                if j > i:
                    break
                if j == 2:
                    continue
                total += i * j
            if total > 50:
                break
        return total
    agrees(f, *COUNTS)


def test_else_of_loops():
    def f(n):
        for i in range(n):
            if i == 4:
                found = i
                break
        else:
            found = -1
        return found
    with pytest.raises(ValueError, match="found"):
        on_tensors(f, (3,))

    def g(n):
        found = 0
        for i in range(n):
            if i == 4:
                found = i
                break
        else:
            found = -1
        return found
    agrees(g, *COUNTS)


def test_a_break_that_a_tensor_decides_in_a_loop_over_a_list():
    def f(n):
        total = 0
        for k in [3, 1, 4, 1, 5]:
            if total > n:
                break
            total += k
        else:
            total = -total
        return total
    agrees(f, *NUMBERS)


# --- Loops ----------------------------------------------------------------------------------------

def test_while():
    def f(n):
        steps = 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps
    agrees(f, *COUNTS)


def test_euclid():
    def f(a, b):
        while b:
            a, b = b, a % b
        return a
    agrees(f, (12, 18), (7, 5), (0, 4), (4, 0))


def test_text():
    def f(n):
        word = ""
        if n % 3 == 0:
            word += "Fizz"
        if n % 5 == 0:
            word += "Buzz"
        return word
    assert on_tensors(f, (9,), (10,), (15,), (7,)) == [b"Fizz", b"Buzz", b"FizzBuzz", b""]


def test_while_true_with_a_break():
    def f(n):
        i = 0
        while True:
            i += 1
            if i * i > n:
                break
        return i
    agrees(f, *NUMBERS)


def test_a_loop_that_becomes_a_tensors_on_the_way():
    def f(n):
        x = 0
        count = 0
        while x < 20 and count < 9:
            count += 1
            x = n * count
        return x + count
    agrees(f, *NUMBERS)


def test_for_over_the_rows_of_a_tensor():
    def f(rows):
        total = rows[0] * 0.0
        for row in rows:
            total = total * 0.5 + row
        return total
    agrees(f, (np.float32([[1, 2], [3, 4], [5, 6]]),), (np.float32([[7, 8]]),))


def test_for_over_an_empty_tensor():
    def f(values):
        count = 0
        for _ in values:
            count += 1
        return count
    with tn.Graph().as_default():
        x = tn.placeholder(tn.float32, [None])
        count = converted(f)(x)
        with tn.Session() as session:
            assert session.run(count, {x: []}) == 0 and session.run(count, {x: [1, 2]}) == 2


@pytest.mark.parametrize("arguments", ["(n)", "(1, n)", "(n, 0, -2)", "(0, 10, n + 1)"])
def test_for_over_range(arguments):
    space = {"tn": tn}
    for name, function in (("plain", "range"), ("tensor", "tn.range")):
        source = ("def f(n):\n    t = 0\n    for i in %s%s:\n        t = t * 3 + i\n    return t\n"
                  % (function, arguments))
        space[name] = made(source)
    wanted = [space["plain"](n) for n, in COUNTS]
    assert on_tensors(space["tensor"], *COUNTS) == wanted
    assert on_tensors(space["plain"], *COUNTS) == wanted


def made(source):
    """A function whose source linecache knows."""
    import linecache
    name = "<test %d>" % len(linecache.cache)
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"tn": tn, "np": np}
    exec(compile(source, name, "exec"), space)
    return space["f"]


def test_enumerate_and_zip():
    def f(xs, ys):
        total = xs[0] * 0.0
        for i, (x, y) in enumerate(zip(xs, ys)):
            total += tn.cast(i, tn.float32) * x + y
        for i, x in enumerate(xs, 3):
            total += tn.cast(i, tn.float32) * x
        return total
    xs, ys = np.float32([1, 2, 3]), np.float32([10, 20])
    want = sum(i * x + y for i, (x, y) in enumerate(zip(xs, ys))) + sum(
        i * x for i, x in enumerate(xs, 3))
    assert on_tensors(f, (xs, ys)) == [want]


def test_a_shape_that_varies():
    def f(n):
        row = tn.zeros([1])
        for _ in range(n):
            row = tn.concat([row, [1.0]], 0)
        return row
    np.testing.assert_array_equal(on_tensors(f, (3,))[0], [0, 1, 1, 1])


def test_a_number_takes_the_dtype_that_the_loop_gives_it():
    def f(x):
        total = 0
        for _ in range(3):
            total = total + x
        best = 0
        while best < x:
            best += 1
        return total, best
    with tn.Graph().as_default():
        x = tn.placeholder(tn.int64, [])
        total, best = converted(f)(x)
        assert total.dtype == best.dtype == tn.int64
        with tn.Session() as session:
            assert session.run([total, best], {x: 5}) == [15, 5]


def test_a_loop_changes_a_number_of_another_dtype():
    def f(x, n):
        total = 0
        for _ in range(n):
            total += x
        return total
    assert on_tensors(f, (np.float64(1.5), 4)) == [6.0]


def test_a_value_of_the_iteration_is_no_matter_to_the_next():
    def f(n):
        t = "text"
        total = 0
        for i in range(n):
            t = i * 2
            total += t
        return total
    agrees(f, *COUNTS)


# --- Operators ------------------------------------------------------------------------------------

def test_and_or_not():
    def f(x):
        a = x > 1 and x < 6
        b = x < 0 or x > 4
        return 1 * (1 if a else 0) + 2 * (1 if b else 0) + 4 * (1 if not a else 0)
    agrees(f, *NUMBERS)


def test_the_second_operand_waits_for_the_first():
    def f(xs, i):
        return 1 if i < 3 and xs[i] > 1.5 else 0
    agrees(f, (np.float32([1, 2, 3]), 1), (np.float32([1, 2, 3]), 7))


def test_values_of_and_and_or():
    def f(x):
        return (x and 7) + (x or 5)
    agrees(f, *NUMBERS)


def test_comparison_chains():
    def f(x):
        return 1 if -1 < x <= 5 != x else 0
    agrees(f, *NUMBERS)


def test_equality_and_membership():
    def f(x):
        return (1 if x == 3 else 0) + (2 if x != 2 else 0) + (4 if x in (1, 5) else 0) + (
            8 if x not in [8, 13] else 0)
    agrees(f, *NUMBERS)


def test_conditional_expressions():
    def f(x):
        return x if x > 0 else (-x if x < -3 else 50)
    agrees(f, *NUMBERS)


def test_max_min_len_int_float_any_all():
    def f(x, values):
        return max(x, 2) + min(x, 3, 5) + len(values) + int(float(x) * 1.5) + (
            1 if any([x > 5, x < 0]) else 0) + (2 if all([x > 1, x < 7]) else 0)
    agrees(f, (4, np.int32([1, 2])), (9, np.int32([1, 2])), (-3, np.int32([5])))


def test_max_and_any_of_generators():
    def f(x):
        return max(v * 2 for v in (x, 3)) + (1 if any(v > 4 for v in (x, 0)) else 0) + (
            2 if all(v < 9 for v in [x]) else 0)
    agrees(f, *NUMBERS)


def test_a_tensor_chooses_an_item_of_a_list():
    def f(x):
        return [x, 10, x + 20][x % 3] + (4, 5, 6)[-1 - x % 2]
    agrees(f, *NUMBERS)


# --- Lists ----------------------------------------------------------------------------------------

def test_a_list_that_grows():
    def f(n):
        squares = []
        for i in tn.range(n):
            squares.append(i * i)
        return tn.stack(squares)
    np.testing.assert_array_equal(on_tensors(f, (4,))[0], [0, 1, 4, 9])


def test_a_list_that_grows_sometimes():
    def f(n):
        even = [0]
        for i in range(n):
            if i % 2 == 0:
                even.append(i)
        total = len(even)
        for x in even:
            total += x
        return total + even[-1] * 100
    agrees(f, *COUNTS)


def test_two_lists():
    def f(n):
        even, odd = [], [7]
        for i in range(n):
            if i % 2 == 0:
                even.append(i)
            else:
                odd.append(i)
        return len(even) * 10 + len(odd) + odd[-1]
    agrees(f, *COUNTS)


def test_a_list_that_grows_in_a_branch():
    def f(x):
        found = []
        found.append(x)
        if x > 2:
            found.append(x * 2)
        total = 0
        for value in found:
            total += value
        return total
    agrees(f, *NUMBERS)


def test_lists_of_tensors_of_varying_shapes():
    def f(n):
        rows = []
        for i in tn.range(n):
            rows.append(tn.range(i))
        return tn.concat(rows, 0)
    np.testing.assert_array_equal(on_tensors(f, (4,))[0], [0, 0, 1, 0, 1, 2])


def test_lists_that_shrink():
    def f(n):
        stack = []
        for i in range(n):
            stack.append(i)
            if i % 3 == 2:
                stack.pop()
        total = 0
        for x in stack:
            total = total * 10 + x
        return total
    agrees(f, *COUNTS)


def test_a_stack_that_a_loop_empties():
    def f(n):
        todo = [n]
        seen = 0
        while todo:
            x = todo.pop()
            seen = seen * 2 + x
            if x > 1:
                todo.append(x // 2)
                if x % 3 == 0:
                    todo.append(x // 3)
        return seen + sum([1, 2])
    agrees(f, *COUNTS)


def test_sums():
    def f(n):
        values = [n]
        for i in range(n):
            values.append(i)
        return sum(values) + sum(values, 10) + sum([n, 1])
    agrees(f, *COUNTS)


def test_items_of_lists_that_grew():
    def f(n):
        seen = []
        for i in range(n):
            seen.append(i)
        seen[n // 2] = n * 10
        seen += [n]
        return tn.reduce_sum(tn.stack(seen) * tn.range(len(seen)))

    def plain(n):
        seen = []
        for i in range(n):
            seen.append(i)
        seen[n // 2] = n * 10
        return sum(i * x for i, x in enumerate(seen + [n]))
    assert on_tensors(f, *COUNTS) == [plain(n) for n, in COUNTS]


def test_items_of_a_dictionary_made_here():
    def f(n):
        counts = {"even": 0, "odd": 0}
        for i in range(n):
            if i % 2 == 0:
                counts["even"] += 1
            else:
                counts["odd"] += i
        return counts["even"] * 100 + counts["odd"]
    agrees(f, *COUNTS)


# --- What is done on the way ----------------------------------------------------------------------

def test_print(capfd):
    def f(x):
        print("before", x)
        if x > 0:
            print("positive", x, "and", x * 2)
        for i in tn.range(2):
            print("loop", i)
        print("after")
        return x
    on_tensors(f, (5,), (-5,))
    lines = capfd.readouterr()
    assert lines.err.splitlines() == [
        "before [5]", "positive [5][and][10]", "loop [0]", "loop [1]", "before [-5]", "loop [0]",
        "loop [1]"]
    assert lines.out == "after\n"


def test_functions_of_one_graph_do_not_wait_for_each_other(capfd):
    def f(x):
        print("x", x)
        return x
    with tn.Graph().as_default(), tn.Session() as session:
        first, second = tn.placeholder(tn.int32, []), tn.placeholder(tn.int32, [])
        converted(f)(first)
        result = converted(f)(second)
        assert session.run(result, {second: 3}) == 3
    assert capfd.readouterr().err == "x [3]\n"


def test_assert():
    def f(x):
        assert x > 0, "x must be positive"
        if x > 5:
            assert x < 10
        return x * 2
    assert on_tensors(f, (1,), (7,)) == [2, 14]
    with pytest.raises(tn.errors.InvalidArgumentError, match="x must be positive"):
        on_tensors(f, (-1,))
    with pytest.raises(tn.errors.InvalidArgumentError, match=r"assertion failed: \[x < 10\]"):
        on_tensors(f, (11,))


def test_an_assert_that_python_decides_within_a_branch():
    def f(x):
        if x > 0:
            assert False, "never positive"
        return x
    assert on_tensors(f, (-1,)) == [-1]
    with pytest.raises(tn.errors.InvalidArgumentError, match="never positive"):
        on_tensors(f, (1,))


def test_assignments_happen_in_the_branch_and_loop():
    def f(n, count):
        if n > 2:
            count.assign_add(10)
        for _ in range(n):
            count.assign_add(1)
        return n + 0
    with tn.Graph().as_default():
        count = tn.Variable(0, name="count")
        n = tn.placeholder(tn.int32, [])
        done = converted(f)(n, count)
        with tn.Session() as session:
            session.run(count.initializer)
            session.run(done, {n: 2})
            assert session.run(count) == 2
            session.run(done, {n: 3})
            assert session.run(count) == 15


def test_what_the_program_makes_itself_is_its_own_to_run():
    def f(x):
        weight = tn.get_variable("weight", initializer=1.0)
        loss = weight * x
        if x > 0.0:
            print("positive", x)
        return loss, weight.assign_add(1.0)
    with tn.Graph().as_default():
        x = tn.placeholder(tn.float32, [])
        loss, train = converted(f)(x)
        with tn.Session() as session:
            session.run(tn.global_variables_initializer())
            assert [session.run(loss, {x: 2.0}) for _ in range(2)] == [2.0, 2.0]
            session.run(train, {x: 2.0})
            assert session.run(loss, {x: 2.0}) == 4.0


def test_a_variable_read_behind_what_changed_it():
    def f(n, count):
        while count < n:
            count.assign_add(2)
        return count.read_value()
    with tn.Graph().as_default():
        count = tn.Variable(0)
        n = tn.placeholder(tn.int32, [])
        result = converted(f)(n, count)
        with tn.Session() as session:
            session.run(count.initializer)
            assert session.run(result, {n: 5}) == 6 and session.run(result, {n: 9}) == 10


# --- Functions ------------------------------------------------------------------------------------

def _half_or_third(x):
    if x % 2 == 0:
        return x // 2
    return x // 3


def test_functions_that_are_called_are_converted():
    def f(x):
        return _half_or_third(x) + _half_or_third(x + 1)
    agrees(f, *NUMBERS)


def _fibonacci(n, x):
    if n < 2:
        return x * n
    return _fibonacci(n - 1, x) + _fibonacci(n - 2, x)


def test_recursion_of_a_global_function():
    agrees(lambda x: _fibonacci(6, x) if x > 0 else x, *NUMBERS)


def test_recursion_on_python_values():
    def power(x, n):
        if n == 0:
            return x * 0 + 1
        half = power(x, n // 2)
        return half * half * x if n % 2 else half * half

    def f(x):
        return power(x, 5)
    agrees(f, *NUMBERS)


def test_a_variable_of_the_function_around():
    def f(x):
        total = 0

        def add(y):
            nonlocal total
            if y > 2:
                total += y
            for i in range(y):
                total = total + i
        add(x)
        add(x + 1)
        return total
    agrees(f, *NUMBERS)


def test_functions_and_lambdas_within():
    def f(x):
        def clipped(y, top=5):
            if y > top:
                return top
            return y
        twice = lambda y: y * 2 if y > 0 else y  # noqa: E731
        return clipped(x) + clipped(x, 7) + twice(x)
    agrees(f, *NUMBERS)


def test_methods_and_callable_objects():
    class Clip:
        def __init__(self, top):
            self.top = top

        def clipped(self, x):
            if x > self.top:
                return self.top
            return x

        def __call__(self, x):
            return self.clipped(x) if x > 0 else -x
    clip = Clip(4)
    agrees(lambda x: clip(x) + clip.clipped(x), *NUMBERS)
    agrees(clip.clipped, *NUMBERS)


def test_functions_handed_to_map_fn():
    def step(x):
        if x > 2:
            return x * 10
        return x
    np.testing.assert_array_equal(on_tensors(lambda xs: tn.map_fn(step, xs), (np.int32(
        [1, 2, 3, 4]),))[0], [1, 2, 30, 40])


def test_gradients_through_converted_control_flow():
    def f(x):
        y = x
        for i in tn.range(3):
            if i % 2 == 0:
                y = y * x
            else:
                y = y + x
        parts = []
        for _ in tn.range(2):
            parts.append(y * x)
        return tn.reduce_sum(tn.stack(parts))
    with tn.Graph().as_default():
        x = tn.placeholder(tn.float32, [])
        gradient, = tn.gradients(converted(f)(x), [x])
        with tn.Session() as session:  # 2 x (x² + x) x
            assert abs(session.run(gradient, {x: 3.0}) - (8 * 27 + 6 * 9)) < 1e-3


def test_a_function_traced_into_a_body_of_its_own(capfd):
    def f(x):
        total = 0
        for i in range(x):
            if i % 2 == 0:
                print("even", i)
                total += i
        assert total < 100
        return total
    with tn.Graph().as_default() as graph:
        x = tn.placeholder(tn.int32, [])
        arguments = []
        body = Traced("f", lambda: converted(f)(*arguments), lambda _: arguments.append(
            tn.placeholder(tn.int32, [])) or arguments)
        name, _ = body.add_to(graph)
        y, = tn.raw_ops.StatefulPartitionedCall([x] + body.graph.captured, Tout=[tn.int32], f=name)
        with tn.Session() as session:
            assert session.run(y, {x: 5}) == 6
            assert capfd.readouterr().err == "even [0]\neven [2]\neven [4]\n"
            with pytest.raises(tn.errors.InvalidArgumentError, match="total < 100"):
                session.run(y, {x: 50})


def test_immediate_execution_stays_pythons():
    def f(n):
        total = 0
        trace = []
        while n > 0:
            total += n
            trace.append(int(n))
            n = n - 1
        return total, trace
    with tn.eager():
        total, trace = converted(f)(tn.constant(4))
        assert int(total) == 10 and trace == [4, 3, 2, 1]
