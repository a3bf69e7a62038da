# SPDX-License-Identifier: Apache-2.0
"""Modules of Python's own library, every function of them converted, do what they did."""

import importlib.util
import sys
from types import FunctionType

import pytest

from treenail.autograph import _helpers
from treenail.autograph._conversion import converted_function
from treenail.autograph._places import mark_of
from treenail.autograph._source import NoSource

TEXT = """Every public function, called with what its parameters may not be:
refused by an exception as the rule asks.  Never does the process end.
    The calls are the same each time; more of them are asked for by "40".
"""


def difflib_work(module):
    lines, others = TEXT.splitlines(), TEXT.replace("calls", "words").upper().splitlines()
    return (list(module.unified_diff(lines, others)), list(module.ndiff(lines, others)),
            module.SequenceMatcher(None, TEXT, TEXT[5:90:2]).ratio(),
            module.get_close_matches("appel", ["ape", "apple", "peach", "puppy"]))


def textwrap_work(module):
    return [module.wrap(TEXT, width) for width in (17, 40)], module.dedent("  a\n   b\n"), \
        module.shorten(TEXT, 30), module.indent(TEXT, "> ", lambda line: "a" in line)


def shlex_work(module):
    return module.split("a 'b c' \"d\\\"e\" f\\ g # h", comments=True), list(
        module.shlex("x = 'y' + 1;", punctuation_chars=True))


def decimal_work(module):
    number = module.Decimal
    return [str(value) for value in (
        number("1.1") ** 5, number(2).sqrt(), number("1e5").ln(), number("-3.7") // 2,
        number("10").exp(), number("1.23456").quantize(number("0.01")), number("NaN") + 1,
        number("7").fma(2, 3), number(1) / 3, number("1e-7").normalize(), hash(number("2.5")))]


def statistics_work(module):
    data = [3, 1.5, 2, 8, 8]
    return (module.median(data), module.stdev(data), module.mode(data), module.quantiles(data),
            module.geometric_mean(data), module.NormalDist(1, 2).cdf(1.5))


def configparser_work(module):
    parser = module.ConfigParser()
    parser.read_string("[a]\nx = 1\ny = %(x)s2\n  more\n[b]\nz: q\nno = off\n")
    return {name: dict(parser[name]) for name in parser.sections()}, parser.getboolean("b", "no")


WORK = {"difflib": difflib_work, "textwrap": textwrap_work, "shlex": shlex_work,
        "_pydecimal": decimal_work, "statistics": statistics_work,
        "configparser": configparser_work}


def copy_of(name):
    """The module once more, under a name of its own."""
    origin = importlib.util.find_spec(name).origin
    spec = importlib.util.spec_from_file_location("copy_of_" + name, origin)
    module = sys.modules["copy_of_" + name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def converted(function):
    if type(function) is not FunctionType or mark_of(function.__code__) is not None:
        return function
    try:
        return converted_function(function, _helpers)
    except NoSource:  # made by exec
        return function


def convert_all(module):
    """Every function and method of the module; how many."""
    spaces = [module, *[value for value in vars(module).values() if isinstance(
        value, type) and value.__module__ in (module.__name__, "copy_of_" + module.__name__)]]
    count = 0
    for space in spaces:
        for name, value in list(vars(space).items()):
            made = converted_member(value, module.__file__)
            if made is not value:
                setattr(space, name, made)
                count += 1
    return count


def converted_member(value, file):
    if isinstance(value, (staticmethod, classmethod)):
        return type(value)(converted(value.__func__))
    if isinstance(value, property):
        return property(converted(value.fget), converted(value.fset), value.fdel)
    code = getattr(value, "__code__", None)
    return converted(value) if code is not None and code.co_filename == file else value


@pytest.mark.parametrize("name", WORK)
def test_a_module_of_pythons_library(name):
    module = copy_of(name)
    wanted = WORK[name](module)
    assert convert_all(module) > 5
    assert WORK[name](module) == wanted
