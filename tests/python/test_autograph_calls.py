# SPDX-License-Identifier: Apache-2.0
"""What converted functions do on the way, and the functions that they call."""

import numpy as np
import pytest

import treenail as tn
from converted_runs import NUMBERS, agrees, on_tensors
from treenail._function_graph import Traced
from treenail.autograph._entry import converted


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
