# SPDX-License-Identifier: Apache-2.0
"""Branches, loops and ways out of them over tensors: a converted function gives on tensors what the
plain one gives on numbers."""

import numpy as np
import pytest

import treenail as tn
from converted_runs import COUNTS, NUMBERS, agrees, on_tensors
from running import run
from treenail.autograph._entry import converted


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
