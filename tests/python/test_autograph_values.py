# SPDX-License-Identifier: Apache-2.0
"""Expressions and lists that grow in converted functions, on tensors as on numbers."""

import numpy as np

import treenail as tn
from converted_runs import COUNTS, NUMBERS, agrees, on_tensors


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
