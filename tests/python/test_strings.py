# SPDX-License-Identifier: Apache-2.0
"""tn.strings: TensorFlow 1's names and parameters, locales, hostile inputs. Values: tests/cases."""

import locale
import os
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import treenail as tn

needs_re2 = pytest.mark.skipif("re2" not in tn.build_info()["features"], reason="built without RE2")


def test_older_names():
    assert tn.string_join is tn.strings.join and tn.substr is tn.strings.substr
    assert tn.as_string is tn.strings.as_string and tn.reduce_join is tn.strings.reduce_join
    assert tn.regex_replace is tn.strings.regex_replace
    assert tn.string_to_number is tn.strings.to_number
    assert tn.string_to_hash_bucket_fast is tn.strings.to_hash_bucket_fast
    for name in tn.strings.__all__:
        assert getattr(tn.strings, name).__doc__


def test_joining(evaluate):
    parts = [tn.constant(["a", "b"]), "-", tn.constant(["c", "d"])]
    assert evaluate(tn.strings.join(parts, separator=".")).tolist() == [b"a.-.c", b"b.-.d"]
    words = tn.constant([["a", "b"], ["c", "d"]])
    assert evaluate(tn.reduce_join(words)) == b"abcd"
    assert evaluate(tn.reduce_join(words, [0, 1])) == b"acbd"
    assert evaluate(tn.reduce_join(words, 0, keep_dims=True)).tolist() == [[b"ac", b"bd"]]
    assert evaluate(tn.reduce_join(words, reduction_indices=-1, separator="+")).tolist() == [
        b"a+b", b"c+d"]
    anything = tn.placeholder(tn.string)
    assert evaluate(tn.reduce_join(anything), {anything: [["x", "y"], ["z", "!"]]}) == b"xyz!"
    with pytest.raises(ValueError, match="both 'axis' and 'reduction_indices'"):
        tn.reduce_join(words, 0, reduction_indices=0)


def test_splitting(evaluate):
    parts = evaluate(tn.strings.split(["a b", " c  d e "]))
    assert isinstance(parts, tn.SparseTensorValue)
    assert parts.values.tolist() == [b"a", b"b", b"c", b"d", b"e"]
    assert parts.dense_shape.tolist() == [2, 3]
    assert parts.indices.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]]
    assert evaluate(tn.strings.split(source=["a,,b"], sep=",", maxsplit=1)).values.tolist() == [
        b"a", b",b"]
    assert evaluate(tn.string_split(["a b,c "], " ,")).values.tolist() == [b"a", b"b", b"c"]
    assert evaluate(tn.string_split(["a b,c "], " ,", skip_empty=False)).values.tolist() == [
        b"a", b"b", b"c", b""]
    assert evaluate(tn.string_split(["ab"], delimiter="")).values.tolist() == [b"a", b"b"]
    assert evaluate(tn.string_split(["hello world", "a b c"])).dense_shape.tolist() == [2, 3]
    with pytest.raises(NotImplementedError, match="no ragged tensors"):
        tn.strings.split(["a"], result_type="RaggedTensor")
    with pytest.raises(ValueError, match="result_type must be"):
        tn.string_split(["a"], result_type="List")
    with pytest.raises(ValueError, match="needs an input"):
        tn.strings.split()


def test_parts_letters_and_numbers(evaluate):
    word = tn.constant("caf\u00e9 ")
    assert evaluate([tn.strings.length(word), tn.strings.length(word, unit="UTF8_CHAR")]) == [6, 5]
    assert evaluate(tn.substr(word, 3, 2, unit="UTF8_CHAR")) == "\u00e9 ".encode()
    assert evaluate(tn.strings.upper(word)) == "CAF\u00e9 ".encode()
    assert evaluate(tn.strings.upper(word, encoding="utf-8")) == "CAF\u00c9 ".encode()
    assert evaluate(tn.strings.lower("ABC")) == b"abc"
    assert evaluate(tn.strings.strip(word)) == "caf\u00e9".encode()
    assert evaluate(tn.string_to_number(["1.5", "-2"])).tolist() == [1.5, -2]
    assert evaluate(tn.strings.to_number("7", tn.int64)) == 7
    assert evaluate(tn.as_string([1.0], precision=2)).tolist() == [b"1.00"]
    assert evaluate(tn.as_string(True)) == b"true"


def test_buckets(evaluate):
    """The examples of TensorFlow's documentation and tests."""
    fast = tn.strings.to_hash_bucket_fast(["Hello", "TensorFlow", "2.x"], 3)
    assert evaluate(fast).tolist() == [0, 2, 2]
    strong = tn.string_to_hash_bucket_strong(["a", "b", "c"], 10, key=[98765, 132])
    assert evaluate(strong).tolist() == [4, 2, 8]
    assert evaluate(tn.string_to_hash_bucket(["a", "b", "c"], 10)).tolist() == [8, 0, 7]


def test_bytes(evaluate):
    assert evaluate(tn.decode_raw(["\x01\x00", "\x02\x00"], tn.int16)).tolist() == [[1], [2]]
    assert evaluate(tn.decode_base64(tn.encode_base64("any"))) == b"any"
    again = tn.parse_tensor(tn.serialize_tensor([[1.0, 2.0]]), tn.float32)
    assert evaluate(again).tolist() == [[1, 2]]


def test_the_programs_locale_does_not_matter():
    for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "tr_TR.UTF-8"):
        try:
            before = locale.setlocale(locale.LC_ALL)
            locale.setlocale(locale.LC_ALL, name)
            break
        except locale.Error:
            continue
    else:
        pytest.skip("no locale with a decimal comma is installed")
    try:
        assert tn.execute("AsString", [[1.5]]).numpy().tolist() == [b"1.500000"]
        assert tn.execute("StringToNumber", [["1.5"]]).numpy().tolist() == [1.5]
    finally:
        locale.setlocale(locale.LC_ALL, before)


@needs_re2
def test_patterns(evaluate):
    words = tn.constant(["abba", "bb"])
    assert evaluate(tn.strings.regex_full_match(words, "b+")).tolist() == [False, True]
    starts = tn.strings.regex_full_match(words, tn.constant("a.*"))
    assert evaluate(starts).tolist() == [True, False]
    assert evaluate(tn.regex_replace(words, "b(.)", "<\\1>")).tolist() == [b"a<b>a", b"<b>"]
    dynamic = tn.regex_replace(words, tn.constant("b"), "", replace_global=False)
    assert evaluate(dynamic).tolist() == [b"aba", b"b"]
    assert tn.regex_replace(words, "a", "b").op.type == "StaticRegexReplace"


@needs_re2
@pytest.mark.parametrize("text, pattern, rewrite, wanted", [
    # RE2's own rules for empty matches (re2_test.cc): none directly behind a match.
    ("ababababab", "b*", "bb", "bbabbabbabbabbabb"), ("bbbbbb", "b*", "bb", "bb"),
    ("aaaaa", "b*", "bb", "bbabbabbabbabbabb"), ("aba", "a.*a", "(\\0)", "(aba)"),
    ("", "a*", "b", "b"), ("\u20ac\u20ac", "x*", "-", "-\u20ac-\u20ac-"),
    ("a\nb\n", "$", "<", "a\nb\n<"),
    ("a\nb\n", "(?m)$", "<", "a<\nb<\n<")])
def test_empty_matches(text, pattern, rewrite, wanted):
    result = tn.execute("RegexReplace", [text, pattern, rewrite]).numpy()
    assert result.decode() == wanted


@needs_re2
@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|aa)+$b", "(x+x+)+y", "(a?){50}a{50}c",
                                     "(.*)(.*)(.*)(.*)z"])
def test_no_pattern_is_a_catastrophe(pattern):
    text = "a" * 20000 + "x" * 20000
    begin = time.monotonic()
    assert tn.execute("RegexReplace", [text, pattern, ""]).numpy() == text.encode()
    assert not tn.execute("RegexFullMatch", [text, pattern]).numpy()
    assert time.monotonic() - begin < 30


def test_without_re2_the_error_names_the_package(without_adapters):
    program = "import treenail as tn; tn.execute('RegexFullMatch', ['a', 'a'])"
    done = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True,
                          check=False, env=without_adapters)
    assert done.returncode == 1 and "UnimplementedError" in done.stderr
    assert "libre2-dev" in done.stderr and "re2-devel" in done.stderr


def limited(program):
    """Runs it under a limit of 256 MiB; what it prints."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=120,
                          env=dict(os.environ, TREENAIL_MEMORY_LIMIT="256M"))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("call", [
    "tn.execute('ReduceJoin', [many, [0]])", "tn.execute('StringJoin', [[many] * 3000])",
    "tn.execute('ReduceJoin', [tn.execute('Fill', [[2**20], 'x']), [0]], separator=big)",
    "tn.execute('StringSplit', [[8 * big], ''], any_of=True)",
    "tn.execute('ParseTensor', [b'\\x08\\x01\\x12\\x08\\x12\\x06\\x08' + b'\\x80' * 4 + b'\\x01'],"
    " out_type='float32')",
    pytest.param("tn.execute('RegexReplace', [big, '.', big])", marks=needs_re2),
    pytest.param("tn.execute('StaticRegexReplace', [big], pattern='.', rewrite='\\\\0' * 1000)",
                 marks=needs_re2)])
def test_what_memory_does_not_hold_is_refused(call):
    assert limited("""
        import treenail as tn
        big = "x" * (1 << 20)
        many = tn.execute("Fill", [[1000], big])
        try:
            %s
        except tn.errors.ResourceExhaustedError:
            print("refused")
        """ % call) == "refused\n"


def test_huge_empty_tensors():
    """Axes without elements beside axes of 2^40."""
    empty = np.zeros((0, 1 << 40), object)
    assert tn.execute("StringLength", [empty]).shape.as_list() == [0, 1 << 40]
    assert tn.execute("ReduceJoin", [empty, [1]]).shape.as_list() == [0]
    assert tn.execute("Substr", [empty, 0, 1]).shape.as_list() == [0, 1 << 40]
    assert tn.execute("StringUpper", [empty], encoding="utf-8").shape.as_list() == [0, 1 << 40]
    with pytest.raises(tn.errors.OpError):
        tn.execute("ReduceJoin", [np.zeros((1 << 40, 0), object), [1]])
    zeros = tn.execute("ReduceJoin", [np.zeros((1000, 0, 1 << 40), object), [1, 2]])
    assert zeros.numpy().tolist() == [b""] * 1000


def test_the_table_of_letters_is_fresh():
    """Where Python's data are of the version that the table was made from."""
    import importlib.util
    import unicodedata
    top = os.environ.get("TREENAIL_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(
        os.path.abspath(__file__))))
    table = os.path.join(top, "kernels/host/strings/letter_case_table.h")
    with open(table, encoding="utf-8") as stream:
        table = stream.read()
    if "from Unicode %s:" % unicodedata.unidata_version not in table:
        pytest.skip("Python knows Unicode %s" % unicodedata.unidata_version)
    spec = importlib.util.spec_from_file_location("letter_case",
                                                  os.path.join(top, "python/tools/letter_case.py"))
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.text() == table
