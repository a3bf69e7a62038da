# SPDX-License-Identifier: Apache-2.0
"""tn.Assert, tn.Print and the assert_* family: what a run says, and what building says at once."""

import re
import threading

import numpy as np
import pytest

import treenail as tn


@pytest.fixture(name="sess")
def _sess():
    with tn.Session() as session:
        yield session


def fails(session, operation, feed_dict=None):
    with pytest.raises(tn.errors.InvalidArgumentError) as caught:
        session.run(operation, feed_dict)
    return caught.value.message


# --- Assert and Print -----------------------------------------------------------------------------

def test_an_assertion_that_holds_does_nothing(sess):
    given = tn.placeholder(tn.bool, [])
    check = tn.Assert(given, ["never seen", 1])
    assert sess.run(check, {given: True}) is None


def test_an_assertion_that_fails_shows_its_data(sess):
    given = tn.placeholder(tn.bool, [])
    values = [tn.constant([[1, 2], [3, 4]]), "text", 2.5, tn.constant([True, False]),
              tn.constant([], tn.float32), tn.constant(b"\x1b[31m\nred"), tn.constant(1 + 2j),
              tn.constant([1.5], tn.float16)]
    text = fails(sess, tn.Assert(given, values, name="check"), {given: False})
    assert text.startswith('[Assert node "check"] assertion failed: [[1 2][3...]...] [text] [2.5] '
                           '[1 0] [] [\\x1b[31m\\nred] [(1,2)] [1.5]')
    text = fails(sess, tn.Assert(given, values[0], summarize=-1), {given: False})
    assert "[[1 2][3 4]]" in text
    text = fails(sess, tn.Assert(given, values[0], summarize=0), {given: False})
    assert "failed: [...]" in text


def test_what_waits_for_an_assertion_does_not_run(sess):
    x = tn.placeholder(tn.float32, [None])
    v = tn.Variable(0.0)
    sess.run(v.initializer)
    with tn.control_dependencies([tn.assert_positive(x)]):
        step = v.assign_add(tn.reduce_sum(x))
    assert sess.run(step, {x: [1, 2]}) == 3
    fails(sess, step, {x: [1, -2]})
    assert sess.run(v) == 3


def test_an_assertion_known_to_fail_is_told_at_once():
    with pytest.raises(tn.errors.InvalidArgumentError, match=r"assertion failed:.*x == y did not"):
        tn.assert_equal([1, 2], [1, 3])
    with pytest.raises(tn.errors.InvalidArgumentError, match="assertion failed: too small"):
        tn.Assert(False, ["too small"])


def test_print_hands_on_and_writes_lines(sess, capfd):
    x = tn.placeholder(tn.float32, [None])
    y = tn.Print(x * 2.0, [x, "is x", tn.shape(x)], message="look: ", name="look")
    np.testing.assert_array_equal(sess.run(y + 1.0, {x: [1, 2, 3, 4]}), [3, 5, 7, 9])
    assert capfd.readouterr().err == "look: [1 2 3...][is x][4]\n"
    z = tn.Print(x, [x], first_n=2, summarize=-1)
    for _ in range(4):
        sess.run(z, {x: [0.5, -1, np.inf, np.nan]})
    assert capfd.readouterr().err == "[0.5 -1 inf nan]\n" * 2
    gradient, = tn.gradients(tn.reduce_sum(y * y), x)
    np.testing.assert_array_equal(sess.run(gradient, {x: [1, 2]}), [8, 16])


def test_prints_of_strings_and_of_nothing(sess, capfd):
    assert sess.run(tn.Print(tn.constant([b"a", b"bc"]), [])).tolist() == [b"a", b"bc"]
    assert sess.run(tn.Print(tn.zeros([0, 3]), [tn.zeros([0, 3])], "empty ")).shape == (0, 3)
    assert sorted(capfd.readouterr().err.splitlines()) == ["", "empty []"]


def test_lines_of_several_threads_do_not_mix(sess, capfd):
    x = tn.placeholder(tn.int32, [200])
    y = tn.Print(x, [x], summarize=-1)
    threads = [threading.Thread(target=lambda: [sess.run(y, {x: np.arange(200)})
                                                for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = "[%s]" % " ".join(map(str, range(200)))
    assert capfd.readouterr().err.splitlines() == [wanted] * 80


# --- The family -----------------------------------------------------------------------------------

PAIRS = [
    (tn.assert_equal, np.equal, "=="), (tn.assert_none_equal, np.not_equal, "!="),
    (tn.assert_less, np.less, "<"), (tn.assert_less_equal, np.less_equal, "<="),
    (tn.assert_greater, np.greater, ">"), (tn.assert_greater_equal, np.greater_equal, ">="),
]


@pytest.mark.parametrize("function, oracle, symbol", PAIRS, ids=[p[2] for p in PAIRS])
@pytest.mark.parametrize("dtype", [tn.float32, tn.int64])
def test_pairs(sess, function, oracle, symbol, dtype):
    if dtype == tn.int64 and symbol not in ("==", "<"):
        pytest.skip("the same code")
    x, y = tn.placeholder(dtype, name="x"), tn.placeholder(dtype, name="y")
    check = function(x, y, message="they differ")
    for a, b in [([1, 2], [1, 2]), ([1, 2], [2, 3]), ([2, 3], [1, 1]), ([1, 2], 2), ([], []),
                 ([[1], [2]], [3, 4])]:
        if np.all(oracle(a, b)):
            sess.run(check, {x: a, y: b})
            continue
        text = fails(sess, check, {x: a, y: b})
        assert ("[they differ] [Condition x %s y did not hold element-wise:] [x (%s) = ]"
                % (symbol, x.name)) in text


SIGNS = [(tn.assert_negative, "<"), (tn.assert_positive, ">"), (tn.assert_non_negative, ">="),
         (tn.assert_non_positive, "<=")]


@pytest.mark.parametrize("function, symbol", SIGNS, ids=[s[1] for s in SIGNS])
def test_signs(sess, function, symbol):
    x = tn.placeholder(tn.float32, [None])
    check = function(x)
    for values in ([-1.0, -2], [1, 2], [0, 1], [0, -1], [0], []):
        if all({"<": v < 0, ">": v > 0, ">=": v >= 0, "<=": v <= 0}[symbol] for v in values):
            sess.run(check, {x: values})
        else:
            assert "Condition x %s 0 did not hold" % symbol in fails(sess, check, {x: values})


def test_near(sess):
    x = tn.placeholder(tn.float32, [None])
    sess.run(tn.assert_near(x, [1.0, 2.0]), {x: [1.0000005, 2]})
    assert "tolerance rtol" in fails(sess, tn.assert_near(x, [1.0, 2.0]), {x: [1.01, 2]})
    sess.run(tn.assert_near(x, [1.0, 2.0], atol=0.1), {x: [1.01, 2]})
    z = tn.placeholder(tn.complex64, [])
    sess.run(tn.assert_near(z, 1 + 1j), {z: 1 + 1j})
    fails(sess, tn.assert_near(z, 1 + 1j), {z: 1 + 1.1j})
    with pytest.raises(TypeError, match="compares floating-point"):
        tn.assert_near(tn.constant(1), 1)


def test_ranks_known_when_the_graph_is_built():
    x = tn.placeholder(tn.float32, [2, 3], name="known")
    for operation in (tn.assert_rank(x, 2), tn.assert_rank_at_least(x, 1),
                      tn.assert_rank_in(x, (1, 2))):
        assert operation.type == "NoOp"
    with pytest.raises(ValueError, match=r"known:0 must have rank equal to 1.  Received rank 2"):
        tn.assert_rank(x, 1)
    with pytest.raises(ValueError, match="must have rank at least 3"):
        tn.assert_rank_at_least(x, 3)
    with pytest.raises(ValueError, match="must have rank in 0 or 1"):
        tn.assert_rank_in(x, (0, 1))
    with pytest.raises(ValueError, match="Rank must be a scalar"):
        tn.assert_rank(x, [1, 2])


def test_ranks_that_only_a_run_tells(sess):
    x, rank = tn.placeholder(tn.float32), tn.placeholder(tn.int32, [])
    feeds = {x: np.zeros((2, 3)), rank: 2}
    for check in (tn.assert_rank(x, 2), tn.assert_rank(x, rank), tn.assert_rank_at_least(x, 1),
                  tn.assert_rank_in(x, (1, 2))):
        sess.run(check, feeds)
    for check in (tn.assert_rank(x, 3), tn.assert_rank_at_least(x, 3),
                  tn.assert_rank_in(x, [0, 1])):
        assert "Received shape: ] [2 3]" in fails(sess, check, feeds)


def test_types():
    x, i = tn.placeholder(tn.float32), tn.placeholder(tn.int32)
    assert tn.assert_type(x, tn.float32).type == "NoOp" and tn.assert_integer(i).type == "NoOp"
    with pytest.raises(TypeError, match="must be of type int32, not float32"):
        tn.assert_type(x, tn.int32)
    with pytest.raises(TypeError, match='Expected "x" to be integer type'):
        tn.assert_integer(x)
    assert tn.assert_same_float_dtype([x, x]) == tn.float32 == tn.assert_same_float_dtype()
    with pytest.raises(ValueError, match="expected dtype float32, got int32"):
        tn.assert_same_float_dtype([x, i])
    with pytest.raises(ValueError, match="Expected floating point type, got int32"):
        tn.assert_same_float_dtype([i])
    with pytest.raises(ValueError, match="Expected scalar shape"):
        tn.assert_scalar(tn.zeros([2]))
    assert tn.assert_scalar(3.0).shape == []
    assert tn.is_numeric_tensor(x) and not tn.is_numeric_tensor(tn.constant("a"))
    assert not tn.is_numeric_tensor(3)
    tn.assert_proper_iterable([1, 2])
    for wrong in (x, np.zeros(3), "abc", 3):
        with pytest.raises(TypeError, match="proper"):
            tn.assert_proper_iterable(wrong)


def test_order_of_elements(sess):
    x = tn.placeholder(tn.float32)
    steps = [tn.is_non_decreasing(x), tn.is_strictly_increasing(x)]
    for values in ([], [1], [1, 2, 3], [1, 1, 2], [2, 1], [[1, 2], [2, 3]]):
        flat = np.ravel(values)
        wanted = [bool((np.diff(flat) >= 0).all()), bool((np.diff(flat) > 0).all())]
        assert sess.run(steps, {x: values}) == wanted


def test_variables_that_have_no_value(sess):
    v = tn.Variable(1.0, name="late")
    check = tn.assert_variables_initialized()
    with pytest.raises(tn.errors.FailedPreconditionError, match="uninitialized value late"):
        sess.run(check)
    sess.run(v.initializer)
    sess.run(check)


def test_errors_name_the_line_that_made_the_assertion(sess):
    x = tn.placeholder(tn.float32, [None])
    check = tn.assert_positive(x)
    with pytest.raises(tn.errors.InvalidArgumentError) as caught:
        sess.run(check, {x: [-1]})
    assert re.search(r"test_assertions\.py\", line \d+, in test_errors_name", str(caught.value))


def test_assertions_at_once():
    with tn.eager():
        x = tn.constant([1.0, 2.0])
        for holds in (lambda: tn.assert_positive(x), lambda: tn.assert_less(x, 3.0),
                      lambda: tn.assert_near(x, x), lambda: tn.assert_rank(x, 1),
                      lambda: tn.assert_type(x, tn.float32), lambda: tn.assert_scalar(1.0)):
            holds()
        with pytest.raises(tn.errors.InvalidArgumentError, match=r"x \(shape=\(2,\) dtype=float32"):
            tn.assert_negative(x)
        with pytest.raises(tn.errors.InvalidArgumentError, match="x == y did not hold"):
            tn.assert_equal(x, 1.0)
        with pytest.raises(ValueError, match="must have rank equal to 2"):
            tn.assert_rank(x, 2)
        with pytest.raises(ValueError, match=r"scalar shape for shape=\(2,\)"):
            tn.assert_scalar(x)
        with pytest.raises(TypeError, match="must be of type int32"):
            tn.assert_type(x, tn.int32)
        with pytest.raises(TypeError, match="integer type"):
            tn.assert_integer(x)
        with pytest.raises(ValueError, match="expected dtype float64"):
            tn.assert_same_float_dtype([x], tn.float64)
