# SPDX-License-Identifier: Apache-2.0
"""What no graph can do for Python's control flow: refused by an error that names the line, says
why, and what to write instead."""

import re

import numpy as np
import pytest

import treenail as tn
from converted_runs import on_tensors, placeholder_for
from treenail.autograph._entry import converted


class Box:
    """Something with an attribute."""

    value = 0

    def grow(self):
        self.value += 1  # CALLED


STEPS = 0


def unassigned(x):
    if x > 0:
        y = 1
    return y  # HERE


def two_dtypes(x):
    if x > 0:
        y = 1.5
    else:
        y = x
    return y  # HERE


def two_structures(x):
    y = (x, x)
    if x > 0:
        y = [x]
    return y[0]  # HERE


def no_tensor(x):
    y = Box()
    if x > 0:
        y = Box()
    return y.value  # HERE


def none_or_a_tensor(x):
    y = None
    if x > 0:
        y = x
    return y  # HERE


def results_of_two_structures(x):
    if x > 0:  # HERE
        return x, x
    return x


def results_of_two_dtypes(x):
    if x > 0:  # HERE
        return x
    return 1.5


def a_result_on_one_way_only(x):
    if x > 0:  # HERE
        return x


def only_in_the_loop(x):
    for i in range(x):
        y = i
    return y  # HERE


def of_another_dtype(x):
    y = x
    while y < 5:  # HERE
        y = tn.cast(y, tn.float32) + 1.5
    return y


def none_at_first(x):
    best = None
    for i in range(x):  # HERE
        best = i if best is None else best + i
    return best


def text_in_a_loop(x):
    text = "a"
    for _ in range(x):  # HERE
        text = text + "b"
    return text


def another_structure(x):
    y = (x, x)
    for _ in range(x):  # HERE
        y = y + (x,)
    return y[0]


def an_attribute(x):
    box = Box()
    if x > 0:
        box.value = 1  # HERE
    return x


def an_attribute_in_a_called_method(x):
    box = Box()
    while x < 5:
        box.grow()
        x += 1
    return x


def an_item(x):
    box = Box()
    box.value = {}
    if x > 0:
        box.value["a"] = 1  # HERE
    return x


def an_arguments_item(x, values=[1]):  # noqa: B006
    if x > 0:
        values[0] = 2  # HERE
    return x


def an_arguments_list(x, values=[]):  # noqa: B006
    for i in range(x):
        values.append(i)  # HERE
    return x


def a_list_of_an_object(x):
    box = Box()
    box.value = []
    if x > 0:
        box.value.append(1)  # HERE
    return x


def an_arrays_item(x):
    values = np.zeros(3)
    if x > 0:
        values[0] = 2  # HERE
    return x


def a_list_of_two_names(x):
    values = others = []
    for i in range(x):
        values.append(i)  # HERE
    return others


def a_list_within_another(x):
    row = [1]
    rows = []
    rows.append(row)
    for i in range(x):
        row.append(i)  # HERE
    return rows


def a_deque(x):
    import collections
    values = collections.deque()
    for i in range(x):
        values.append(i)  # HERE
    return values


def a_variable_of_the_function_around(x):
    count = 0

    def one_more():
        nonlocal count
        count += 1  # HERE
    for _ in range(x):
        one_more()
    return count


def an_exception_that_is_handled(x):
    try:
        if x > 0:
            y = {}["k"]
        else:
            y = 1
    except KeyError:  # HERE
        y = 2
    return y


def an_item_that_a_tensor_chooses(x):
    values = [1, 2]
    values[x] = 3  # HERE
    return values


def an_object_that_a_tensor_chooses(x):
    return [Box(), Box()][x].value  # HERE


def a_global(x):
    global STEPS
    for _ in range(x):
        STEPS += 1  # HERE
    return x


def a_raise(x):
    if x > 0:
        raise ValueError("positive")  # HERE
    return x


def a_raise_in_a_loop(x):
    for i in tn.range(x):
        if 1 == 1:
            raise KeyError(i)  # HERE
    return x


def a_generator(x):
    def rows():
        if x > 0:  # HERE
            yield 1
    return list(rows())


def a_comprehension_of_a_condition(x):
    return [i for i in range(3) if x > i]  # HERE


def a_comprehension_over_a_tensor(x):
    return [i for i in tn.range(x)]  # HERE


def a_walrus(x):
    if x > 0 and (y := x) > 2:  # HERE
        return y
    return x


def an_endless_iterator(x):
    import itertools
    for i in itertools.count():  # HERE
        if x < i:
            break
    return x


def a_condition_of_many_elements(x):
    if tn.stack([x, x]) > 0:  # HERE
        return x
    return -x


def a_condition_of_text(x):
    if tn.as_string(x):  # HERE
        return x
    return -x


def a_loop_over_a_scalar(x):
    for i in x:  # HERE
        x = i
    return x


def print_to_a_file(x):
    import sys
    print(x, file=sys.stdout)  # HERE
    return x


def lists_of_two_dtypes(x):
    values = [1.5]
    if x > 0:
        values.append(x)
    return tn.stack(values)  # HERE


def a_list_that_takes_another_dtype(x):
    values = []
    for i in range(x):  # noqa: B007
        values.append(i)
    values.append(1.5)  # HERE
    return values


REFUSALS = [
    (unassigned, ValueError, "only one way gives it a value"),
    (two_dtypes, TypeError, "leaves its value open: it is 1.5 on one way and a tensor of int32"),
    (two_structures, ValueError, "its structures differ"),
    (no_tensor, ValueError, "which no tensor can be"),
    (none_or_a_tensor, ValueError, "it is a tensor of int32, shape () on one way and None"),
    (results_of_two_structures, ValueError, "its structures differ"),
    (results_of_two_dtypes, TypeError, "a tensor of int32, shape () on one way and 1.5"),
    (a_result_on_one_way_only, ValueError, "returns"),
    (only_in_the_loop, ValueError, "may run no iteration"),
    (of_another_dtype, TypeError, "begins with 'y' as a tensor of int32"),
    (none_at_first, ValueError, "it begins as None and is a tensor of int32"),
    (text_in_a_loop, ValueError, "it begins as 'a' and is 'ab' after one iteration"),
    (another_structure, ValueError, "hands 'y' on to its next iteration"),
    (an_attribute, NotImplementedError, "the attribute 'value' of an object is changed within"),
    (an_attribute_in_a_called_method, NotImplementedError, "the attribute 'value' of an object"),
    (an_item, NotImplementedError, "an item of an object is changed within the `if` at"),
    (an_arguments_item, NotImplementedError, "'values' is changed within the `if` at"),
    (an_arguments_list, NotImplementedError, "'values' is changed within the `for` at"),
    (a_list_of_an_object, NotImplementedError, "an object's list, by append(), is changed"),
    (an_arrays_item, NotImplementedError, "'values' is changed within the `if` at"),
    (a_list_of_two_names, NotImplementedError, "or is known by another name, too"),
    (a_list_within_another, NotImplementedError, "'row' is changed within the `for` at"),
    (a_deque, NotImplementedError, "'values' is changed within the `for` at"),
    (a_variable_of_the_function_around, NotImplementedError, "the variable 'count' of the func"),
    (an_exception_that_is_handled, NotImplementedError, "`except` around the `if` at"),
    (an_item_that_a_tensor_chooses, NotImplementedError, "a tensor chooses which item"),
    (an_object_that_a_tensor_chooses, TypeError, "a tensor chooses among"),
    (a_global, NotImplementedError, "the global variable 'STEPS' is changed within the `for`"),
    (a_raise, NotImplementedError, "`raise` within the `if` at"),
    (a_raise_in_a_loop, NotImplementedError, "`raise` within the `for` at"),
    (a_generator, TypeError, "a tensor decides here, in a generator"),
    (a_comprehension_of_a_condition, TypeError, "a tensor decides here"),
    (a_comprehension_over_a_tensor, TypeError, "a comprehension or generator cannot go through"),
    (a_walrus, TypeError, "a tensor decides here"),
    (an_endless_iterator, NotImplementedError, "whose length is not known"),
    (a_condition_of_many_elements, ValueError, "a condition must be a scalar, not a tensor of"),
    (a_condition_of_text, TypeError, "a condition must be a bool or a number"),
    (a_loop_over_a_scalar, TypeError, "a tensor of shape () has no elements"),
    (print_to_a_file, NotImplementedError, "writes to standard error"),
    (lists_of_two_dtypes, ValueError, "not all are tensors of one dtype"),
    (a_list_that_takes_another_dtype, TypeError, "a list of tensors of int32 cannot take 1.5"),
]


def line_of(function, mark):
    lines = open(__file__, encoding="utf-8").read().splitlines()
    first = function.__code__.co_firstlineno
    return next(n for n in range(first, first + 20) if "# " + mark in lines[n - 1])


@pytest.mark.parametrize("function,kind,text", REFUSALS, ids=[row[0].__name__ for row in REFUSALS])
def test_refusal(function, kind, text):
    with tn.Graph().as_default():
        with pytest.raises(kind, match=re.escape(text)) as info:
            converted(function)(tn.placeholder(tn.int32, []))
    said = str(info.value)
    line = (line_of(Box.grow, "CALLED") if "called_method" in function.__name__ else
            line_of(function, "HERE"))
    assert said.startswith("%s:%d: " % (__file__, line)), said
    assert "tn.cond or tn.while_loop" in said


def test_python_values_are_never_refused():
    for function in (an_attribute, an_attribute_in_a_called_method, an_item, a_list_of_an_object,
                     a_global, two_structures, no_tensor, text_in_a_loop, another_structure):
        for x in (0, 2):
            converted(function)(x)
    assert converted(a_comprehension_of_a_condition)(2) == [0, 1]


def test_a_value_left_open_hurts_only_who_reads_it():
    def f(x):
        if x > 0:
            extra = "text"  # noqa: F841
            t = 1.5
        else:
            t = 2
        t = x
        return t
    assert on_tensors(f, (3,), (-3,)) == [3, -3]


def test_errors_of_operations_name_the_programs_line():
    def f(x):
        y = tn.zeros([2])
        if x > 0:
            y = tn.matmul(y, y)
        return y
    with pytest.raises(ValueError, match="MatMul"):
        converted(f)(placeholder_for(np.int32(1)))


def test_a_failed_trace_leaves_nothing_behind():
    def f(x):
        if x > 0:
            raise ValueError("never")
        return x

    def g(x):
        box = Box()
        box.value = 3
        return x + box.value
    with tn.Graph().as_default():
        x = tn.placeholder(tn.int32, [])
        with pytest.raises(NotImplementedError):
            converted(f)(x)
        converted(g)(x)
