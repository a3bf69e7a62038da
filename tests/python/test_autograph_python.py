# SPDX-License-Identifier: Apache-2.0
"""Converted functions on Python values: what the plain ones do, with the same results, exceptions,
side effects, tracebacks and lines."""

import ast
import functools
import inspect
import subprocess
import sys
import textwrap
import time
import traceback

import pytest

import treenail as tn
from converted_runs import agrees, on_tensors
from treenail.autograph import _conversion
from treenail.autograph._entry import converted


def test_short_circuits_and_else_and_side_effects():
    def f(log):
        for i in range(5):
            if i and log.append(i) or i == 3:
                break
            elif not i:
                continue
        else:
            log.append("else")
        while log and log[-1] != 1:
            log.pop()
        else:
            log.append("done")
        return 0 < len(log) < log.append("seen") if False else log
    assert converted(f)([]) == f([]) == [1, "done"]


def test_values_of_operators():
    def f(a, b):
        return [a and b, a or b, not a, a if b else b, a == b, a != b, a in [b], 1 < 2 < b]
    for a, b in ((0, 3), ("", "x"), ([], [1])):
        if not isinstance(b, int):
            with pytest.raises(TypeError, match="not supported between"):
                converted(f)(a, b)
        else:
            assert converted(f)(a, b) == f(a, b)


def test_generators():
    def f(n):
        for i in range(n):
            if i % 2:
                got = yield i
                if got:
                    return "ended"
        while n:
            n -= 1
            yield -n
    assert list(converted(f)(5)) == list(f(5))
    running = converted(f)(4)
    next(running)
    with pytest.raises(StopIteration, match="ended"):
        running.send(True)


def test_exceptions_and_finally():
    def f(x, log):
        for i in range(3):
            try:
                if i == x:
                    raise KeyError(i)
                if i == x + 1:
                    continue
                if x == 7:
                    return "seven"
            except KeyError as error:
                log.append(error.args)
                if x == 2:
                    break
            else:
                log.append("else")
            finally:
                log.append(i)
        return log
    for x in range(-1, 8):
        assert converted(f)(x, []) == f(x, [])


def test_with_and_return():
    class Context:
        def __init__(self, log):
            self.log = log

        def __enter__(self):
            self.log.append("in")

        def __exit__(self, kind, *unused):
            self.log.append(kind)
            return kind is KeyError

    def f(x):
        log = []
        with Context(log):
            if x == 1:
                return log
            if x == 2:
                raise KeyError
            log.append("body")
        log.append("behind")
        return log
    for x in range(3):
        assert converted(f)(x) == f(x)


def test_unbound_variables():
    def f(x):
        if x:
            y = 1
        return y  # noqa: F821

    def g(x):
        y = 1
        if x:
            del y
        return y
    assert converted(f)(True) == 1 and converted(g)(False) == 1
    for function, argument in ((f, False), (g, True)):
        with pytest.raises(NameError, match="y"):
            converted(function)(argument)


COUNT = 0


def test_globals_and_nonlocals():
    total = 0

    def f(n):
        global COUNT
        nonlocal total
        for i in range(n):
            if i % 2:
                COUNT += 1
            total += i
    converted(f)(5)
    f(5)
    assert COUNT == 4 and total == 20


def test_closures_defaults_and_keywords():
    factor = 3

    def f(a, /, b=2, *args, c, d=5, **kwargs):
        if a > 0:
            a = a + factor
        return a, b, args, c, d, kwargs
    assert converted(f)(1, c=4) == f(1, c=4)
    assert converted(f)(1, 7, 8, c=4, e=6) == f(1, 7, 8, c=4, e=6)
    assert inspect.signature(converted(f)) == inspect.signature(f)
    assert converted(f).__name__ == "f" and converted(f).__wrapped__ is f
    factor = 10
    assert converted(f)(1, c=4)[0] == 11


def test_super_and_private_names():
    class Base:
        def value(self, x):
            if x > 3:
                return 3
            return x

    class Derived(Base):
        __private = 100

        def value(self, x):
            if x > 0:
                x = super().value(x) + self.__private
            return x
    agrees(Derived().value, *[(n,) for n in (-1, 1, 5)])


def test_decorated_functions():
    def twice(function):
        @functools.wraps(function)
        def call(x):
            return function(function(x))
        return call

    @twice
    def f(x):
        if x > 10:
            return x - 10
        return x + 4
    agrees(f, *[(n,) for n in (0, 5, 8, 30)])


def test_lambdas_on_one_line():
    pair = [lambda x: 1 if x > 0 else 2, lambda x: 3 if x > 0 else 4]
    assert on_tensors(pair[0], (1,), (-1,)) == [1, 2]
    assert on_tensors(pair[1], (1,), (-1,)) == [3, 4]


def test_partial_functions():
    def f(a, x):
        return a if x > 0 else x
    agrees(functools.partial(f, 5), (1,), (-2,))


def test_walrus():
    def f(n):
        total = 0
        while (n := n - 1) > 0:
            total += n
            if (half := n // 2) > 1:
                total += half
        return total
    agrees(f, *[(n,) for n in range(8)])


def test_comprehensions_keep_their_names():
    def f(n):
        x = 0
        for i in range(n):
            x = sum([x + i for x in range(i)]) + x
        return [x for x in range(3)], x, {x: n for x in range(2)}
    assert converted(f)(4) == f(4)


def test_annotated_names_and_docstrings():
    def f(x: int) -> int:
        """Doc."""
        y: int
        if x > 0:
            y: int = 3
        else:
            y = 4
        return y
    assert converted(f)(1) == 3 and converted(f).__doc__ == "Doc."
    agrees(f, (1,), (-1,))


def test_imports_within():
    def f(x):
        if x > 0:
            import math
            y = math.floor(2.5)
        else:
            from os import path
            y = len(path.basename("a/bcd"))
        return y
    agrees(f, (1,), (-1,))


def test_lists_stay_the_same_object():
    def f(values, n):
        for i in range(n):
            if i % 2:
                values.append(i)
            values += [0]
        return values
    mine = []
    assert converted(f)(mine, 4) is mine and mine == [0, 1, 0, 0, 3, 0]


def test_a_function_without_source_is_left_alone():
    space = {}
    exec("def f(x):\n    return 1 if x else 2", space)
    assert converted(space["f"]) is space["f"]
    with pytest.raises(ValueError, match="the source of f, line 1 of <string>, cannot be found"):
        tn.autograph.to_graph(space["f"])


def test_libraries_are_left_alone():
    assert converted(tn.reduce_sum) is tn.reduce_sum and converted(sorted) is sorted
    assert converted(textwrap.fill) is textwrap.fill


def test_functions_of_installed_packages(tmp_path, monkeypatch):
    package = tmp_path / "site-packages"
    package.mkdir()
    (package / "installed_for_test.py").write_text("def f(x):\n    return 1 if x > 0 else 2\n")
    monkeypatch.syspath_prepend(str(package))
    from installed_for_test import f
    assert on_tensors(f, (1,), (-1,)) == [1, 2]  # asked for
    with pytest.raises(TypeError, match="as a Python `bool`"):
        on_tensors(lambda x: f(x), (1,))


def test_do_not_convert():
    @tn.autograph.do_not_convert
    def kept(x):
        return 1 if x > 0 else 2

    @tn.autograph.experimental.do_not_convert()
    def also(x):
        return 1 if x > 0 else 2
    assert kept(1) == 1 and converted(kept) is kept
    for function in (kept, also):
        with pytest.raises(TypeError, match="as a Python `bool`"):
            on_tensors(lambda x: function(x), (1,))  # noqa: B023


def test_to_graph_without_recursion():
    def inner(x):
        return 1 if x > 0 else 2

    def f(x):
        if x > 5:
            x = x + 1
        return inner(x)
    with pytest.raises(TypeError, match="as a Python `bool`"):
        tn.autograph.to_graph(f, recursive=False)(tn.placeholder(tn.int32, []))
    tn.autograph.to_graph(f)(tn.placeholder(tn.int32, []))


def test_to_graph_again():
    def f(x):
        return 1 if x > 0 else 2
    once = tn.autograph.to_graph(f)
    assert tn.autograph.to_graph(once) is once and converted(once) is once
    assert tn.autograph.to_code(once) == tn.autograph.to_code(f)


def test_to_code():
    def f(x):
        if x > 0:
            return 1
        return 2
    code = tn.autograph.to_code(f)
    assert code.startswith("def f(x):") and "ag__.branch(x > 0, " in code
    with pytest.raises(NotImplementedError, match="the class int"):
        tn.autograph.to_code(int)
    with pytest.raises(TypeError, match="needed|must be a function"):
        tn.autograph.to_graph(3)


def fails_within(x):
    for i in range(3):
        if i == 2:
            x = x // (i - 2)
    return x


def test_tracebacks_show_the_programs_lines():
    first = fails_within.__code__.co_firstlineno
    with pytest.raises(ZeroDivisionError) as info:
        converted(fails_within)(1)
    frames = [f for f in traceback.extract_tb(info.value.__traceback__) if f.filename == __file__]
    assert [(f.lineno - first, f.name) for f in frames[1:]] == [
        (1, "fails_within"), (2, "fails_within"), (3, "fails_within")]


def made_on_lines(x):
    if x > 0:
        y = tn.log(x)
    else:
        y = x
    return y


def test_nodes_are_created_on_the_programs_lines():
    first = made_on_lines.__code__.co_firstlineno
    with tn.Graph().as_default() as graph:
        converted(made_on_lines)(tn.placeholder(tn.float32, []))
        branch = [op for op in graph.get_operations() if op.type.endswith("If")][0]
        assert (__file__, first + 1, "made_on_lines") in branch._creation
        assert not [file for file, *_ in branch._creation if "autograph/_" in file]


def test_conversion_happens_once():
    _conversion._codes.clear()

    def f(x):
        return 1 if x > 0 else 2
    converted(f)
    count = len(_conversion._codes)
    begin = time.perf_counter()
    for _ in range(100):
        converted(f)(3)
    assert len(_conversion._codes) == count
    assert time.perf_counter() - begin < 0.5


def test_what_others_hang_on_syntax_trees():
    # As IPython does to show a traceback; ast.Load() is one object in all trees.
    shared = ast.parse("a").body[0].value.ctx

    def f(a):
        return a if a > 0 else -a
    shared.parent = ast.parse("a.b")
    shared.parent.child = shared
    try:
        assert converted(f)(-2) == 2
    finally:
        del shared.parent


def test_importing_the_package_does_not_import_the_parser():
    program = ("import sys; before = set(sys.modules); import treenail; print(sorted("
               "{'ast', 'inspect', 'treenail.autograph'} & (set(sys.modules) - before)))")
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert done.stdout.strip() == b"[]"
