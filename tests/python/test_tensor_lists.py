# SPDX-License-Identifier: Apache-2.0
"""Lists of tensors, against NumPy and Python's own lists."""

import ctypes

import numpy as np
import pytest

import treenail as tn
from running import run
from treenail import raw_ops

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def empty(dtype=tn.float32, shape=-1, most=-1):
    return raw_ops.EmptyTensorList(shape, most, element_dtype=dtype)


def reserve(size, dtype=tn.float32, shape=-1):
    return raw_ops.TensorListReserve(shape, size, element_dtype=dtype)


def from_tensor(value, shape=-1):
    return raw_ops.TensorListFromTensor(tn.convert_to_tensor(value), shape)


def get(values, index, dtype=tn.float32, shape=-1):
    return raw_ops.TensorListGetItem(values, index, shape, element_dtype=dtype)


def put(values, index, item):
    return raw_ops.TensorListSetItem(values, index, tn.convert_to_tensor(item))


def push(values, item):
    return raw_ops.TensorListPushBack(values, tn.convert_to_tensor(item))


def pop(values, dtype=tn.float32, shape=-1):
    return raw_ops.TensorListPopBack(values, shape, element_dtype=dtype)


def stack(values, dtype=tn.float32, shape=-1, **attrs):
    return raw_ops.TensorListStack(values, shape, element_dtype=dtype, **attrs)


def gather(values, indices, dtype=tn.float32, shape=-1):
    return raw_ops.TensorListGather(values, indices, shape, element_dtype=dtype)


def concat(values, dtype=tn.float32, shape=-1, leading=()):
    return raw_ops.TensorListConcatV2(values, shape, tn.constant(leading, tn.int64, [len(leading)]),
                                      element_dtype=dtype)


def split(value, lengths, shape=-1):
    return raw_ops.TensorListSplit(tn.convert_to_tensor(value), shape,
                                   tn.constant(lengths, tn.int64))


length = raw_ops.TensorListLength

# --- Operations -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "uint16",
                                   "bool", "complex64"])
def test_a_tensor_as_a_list_and_back(dtype):
    value = np.arange(6).reshape(3, 2).astype(dtype)
    np.testing.assert_array_equal(run(stack(from_tensor(value), dtype)), value)


def test_lists_of_strings():
    values = put(reserve(3, tn.string, []), 1, b"b")
    assert run(stack(values, tn.string, [])).tolist() == [b"", b"b", b""]
    assert run(concat(from_tensor([[b"a", b"b"], [b"c", b"d"]]), tn.string)[0]).tolist() == [
        b"a", b"b", b"c", b"d"]


def test_lists_hold_lists():
    inner = from_tensor(np.float32([1, 2]))
    outer = push(empty(tn.variant, []), inner)
    outer = push(outer, push(inner, np.float32(3)))
    assert run([length(get(outer, i, tn.variant)) for i in (0, 1)]) == [2, 3]


def test_pushing_and_popping_are_a_stack():
    values, expected, got = empty(), [], []
    random = np.random.default_rng(5)
    for i in range(40):
        if expected and random.random() < 0.4:
            values, last = pop(values)
            got.append((last, expected.pop()))
        else:
            values = push(values, np.float32([i]))
            expected.append([i])
    found = run([value for value, _ in got] + [stack(values)])
    for value, (_, wanted) in zip(found, got):
        assert value.tolist() == wanted
    assert found[-1].tolist() == expected


def test_elements_may_differ_in_shape():
    values = push(push(empty(), X), X[0, :2])
    a, b, n = run([get(values, 0), get(values, 1), length(values)])
    np.testing.assert_array_equal(a, X)
    assert b.tolist() == X[0, :2].tolist() and n == 2


def test_what_is_not_set_is_zero_where_the_shape_is_known():
    known, other = reserve(2, tn.int32, [2]), put(reserve(3), 2, np.float32([5, 6, 7]))
    assert run(get(known, 0, tn.int32)).tolist() == [0, 0]
    assert run(get(reserve(2), 1, shape=[1, 2])).tolist() == [[0, 0]]
    assert run(get(other, 0)).tolist() == [0, 0, 0]  # as the other elements
    assert run(stack(other)).tolist() == [[0] * 3, [0] * 3, [5, 6, 7]]
    assert run(gather(other, [2, 0])).tolist() == [[5, 6, 7], [0] * 3]
    assert run(pop(raw_ops.TensorListResize(other, 4))[1]).tolist() == [0, 0, 0]


def test_resizing():
    values = from_tensor(X)
    assert run(length(raw_ops.TensorListResize(values, 6))) == 6
    np.testing.assert_array_equal(run(stack(raw_ops.TensorListResize(values, 2))), X[:2])
    again = raw_ops.TensorListResize(raw_ops.TensorListResize(values, 1), 2)
    np.testing.assert_array_equal(run(stack(again)), [X[0], np.zeros(3)])


def test_elements_are_unset():
    values = raw_ops.TensorListUnset(from_tensor(X), [2, 0])
    np.testing.assert_array_equal(run(stack(values)), [np.zeros(3), X[1], np.zeros(3), X[3]])
    assert run(stack(raw_ops.TensorListUnset(from_tensor(X[:1]), 0), shape=[3])).tolist() == [
        [0] * 3]


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 3, 1], [3, 0, 4]])
def test_elements_are_written_in_any_order(order):
    values, expected = reserve(5, shape=[]), np.zeros(5, np.float32)
    for i in order:
        values = put(values, i, i + 1.0)
        expected[i] = i + 1
    assert run(stack(values)).tolist() == expected.tolist()
    shorter = raw_ops.TensorListResize(raw_ops.TensorListResize(values, 2), 5)
    assert run(stack(shorter)).tolist() == [*expected[:2], 0, 0, 0]


def test_gather_and_scatter():
    values = from_tensor(X)
    np.testing.assert_array_equal(run(gather(values, [3, 1, 3])), X[[3, 1, 3]])
    assert run(gather(values, np.zeros(0, np.int32))).shape == (0, 3)
    made = raw_ops.TensorListScatter(X, [2, 0, 1, 2], -1)
    np.testing.assert_array_equal(run(stack(made)), X[[1, 2, 3]])
    made = raw_ops.TensorListScatterV2(X[:2], [3, 1], [3], 5)
    np.testing.assert_array_equal(run(stack(made)), [np.zeros(3), X[1], np.zeros(3), X[0],
                                                     np.zeros(3)])
    made = raw_ops.TensorListScatterIntoExistingList(values, X[:2] + 100, [1, 5])
    np.testing.assert_array_equal(run(stack(made)), [X[0], X[0] + 100, X[2], X[3], np.zeros(3),
                                                     X[1] + 100])


def test_concat_and_split():
    parts = split(X, [1, 0, 3])
    assert run(length(parts)) == 3
    np.testing.assert_array_equal(run(get(parts, 2)), X[1:])
    whole, lengths = run(list(concat(parts)))
    np.testing.assert_array_equal(whole, X)
    assert lengths.tolist() == [1, 0, 3] and lengths.dtype == np.int64
    first = raw_ops.TensorListConcat(parts, element_dtype=tn.float32)
    np.testing.assert_array_equal(run(first[0]), X)
    unset = put(reserve(3), 1, X[:2])
    whole, lengths = run(list(concat(unset, leading=[1, 7, 2])))
    assert lengths.tolist() == [1, 2, 2]
    np.testing.assert_array_equal(whole, [[0] * 3, X[0], X[1], [0] * 3, [0] * 3])
    assert run(concat(empty(), shape=[-1, 2])[0]).shape == (0, 2)


def test_lists_are_joined():
    joined = raw_ops.TensorListConcatLists(from_tensor(X[:1]), from_tensor(X), tn.float32)
    np.testing.assert_array_equal(run(stack(joined)), X[[0, 0, 1, 2, 3]])


def test_the_shape_of_elements():
    def shape(values, kind=tn.int32):
        return run(raw_ops.TensorListElementShape(values, shape_type=kind)).tolist()
    assert shape(empty()) == -1
    assert shape(empty(shape=[])) == []
    assert shape(reserve(2, shape=[-1, 3]), tn.int64) == [-1, 3]


def test_static_shapes():
    values = reserve(2, shape=[-1, 3])
    assert get(values, 0).shape.as_list() == [None, 3]
    assert get(values, 0, shape=[4, -1]).shape.as_list() == [4, 3]
    assert stack(values, num_elements=2).shape.as_list() == [2, None, 3]
    assert gather(put(values, 0, X), [0]).shape.as_list() == [1, None, 3]
    assert get(from_tensor(X), 0).shape.as_list() == [3]
    assert concat(values)[0].shape.as_list() == [None, 3]
    assert get(empty(), 0).shape.rank is None
    assert length(values).shape.as_list() == []


# --- What a list is shared by ---------------------------------------------------------------------


def test_a_list_in_two_places_changes_in_one():
    before = from_tensor(X)
    after = put(before, 1, np.float32([7, 8, 9]))
    longer = push(before, np.float32([1, 2, 3]))
    shorter = pop(before)[0]
    got = run([stack(v) for v in (before, after, longer, shorter)])
    np.testing.assert_array_equal(got[0], X)
    np.testing.assert_array_equal(got[1], [X[0], [7, 8, 9], X[2], X[3]])
    np.testing.assert_array_equal(got[2], [*X, [1, 2, 3]])
    np.testing.assert_array_equal(got[3], X[:3])


def test_a_list_survives_the_runs_of_a_session():
    values = reserve(3, shape=[])  # one node, whatever changes its value in place
    at, item = tn.placeholder(tn.int32, []), tn.placeholder(tn.float32, [])
    written = stack(put(values, at, item))
    with tn.Session() as sess:
        for i in (0, 1, 2, 1):
            wanted = [0.0] * 3
            wanted[i] = i + 0.5
            assert sess.run(written, {at: i, item: i + 0.5}).tolist() == wanted


def test_a_fed_array_is_copied_before_it_is_kept():
    """It is the caller's, who may write to it while a loop goes on."""
    fed = np.ones(1000, np.float32)
    x = tn.placeholder(tn.float32, [1000])
    values = push(empty(), x)

    def spoil():
        fed[:] = 5
        return np.int32(0)
    with tn.control_dependencies([values]):
        spoilt = tn.py_func(spoil, [], tn.int32)
    with tn.control_dependencies([spoilt]):
        got = get(values, 0)
    assert run(got, {x: fed}).tolist() == [1.0] * 1000


def test_what_a_list_holds_of_a_variable_stays():
    v = tn.Variable(np.float32([1, 2]), use_resource=True)
    values = push(empty(), v.read_value())
    with tn.control_dependencies([values]):
        assigned = v.assign_add([10, 10])
    with tn.control_dependencies([assigned]):
        got = get(values, 0)
    assert run([got, assigned])[0].tolist() == [1, 2]


def test_what_is_read_is_not_worked_on_in_place():
    values = from_tensor(X + tn.placeholder_with_default(np.float32(0), []))
    changed = tn.exp(-get(values, 1))
    with tn.control_dependencies([changed]):
        again = get(values, 1)
    got = run([changed, again])
    np.testing.assert_allclose(got[0], np.exp(-X[1]), rtol=1e-6)
    np.testing.assert_array_equal(got[1], X[1])


def test_a_loop_leaves_the_list_it_began_with():
    first = reserve(4, shape=[])
    i, last = tn.while_loop(lambda i, _: i < 4, lambda i, v: (i + 1, put(v, i, 1.0)), [0, first])
    got = run([stack(first), stack(last)])
    assert got[0].tolist() == [0] * 4 and got[1].tolist() == [1] * 4


def test_a_body_may_keep_the_list_of_the_last_iteration():
    first = reserve(3, shape=[])

    def body(i, now, before):
        return i + 1, put(now, i, 1.0), now
    _, now, before = tn.while_loop(lambda i, *_: i < 3, body, [0, first, first])
    got = run([stack(now), stack(before)])
    assert got[0].tolist() == [1, 1, 1] and got[1].tolist() == [1, 1, 0]


# --- Cost -----------------------------------------------------------------------------------------


def copied_elements(fetches, feeds=None):
    """Elements of lists that a second run copies: counted, for times tell little."""
    with open("/proc/self/maps") as maps:
        path = next(line.split()[-1] for line in maps if "/libtreenail.so" in line)
    count = ctypes.CDLL(path)["_ZN8treenail10TensorList15elements_copiedEv"]
    count.restype = ctypes.c_int64
    with tn.Session() as sess:
        sess.run(fetches, feeds)
        before = count()
        sess.run(fetches, feeds)
        return count() - before


def written_in_a_loop(n, write, first):
    return tn.while_loop(lambda i, _: i < n, write, [0, first])[1]


N = 20000


@pytest.mark.parametrize("kind", ["write", "push", "dynamic", "unknown shape", "read and write",
                                  "cond", "inner loop", "read outside"])
def test_writing_in_a_loop_copies_no_list(kind):
    p = tn.placeholder(tn.float32, None if kind == "unknown shape" else [])
    yes = tn.placeholder(tn.bool, [])
    grows = kind == "dynamic"
    array = tn.TensorArray(tn.float32, 1 if grows else N, dynamic_size=grows, infer_shape=False)
    if kind == "read and write":
        array = array.write(0, p)
    outside = tn.TensorArray(tn.float32, N).unstack(tn.range(float(N)))

    def write(i, array):
        value = tn.cast(i, tn.float32) + p
        if kind == "read and write":
            value = array.read(tn.maximum(i - 1, 0)) + 1.0
        if kind == "read outside":
            value = outside.read(i)
        if kind == "cond":
            return i + 1, tn.cond(yes, lambda: array.write(i, value), lambda: array)
        if kind == "inner loop":
            return tn.while_loop(lambda k, _: k < i + 10,
                                 lambda k, a: (k + 1, a.write(k, value)), [i, array])
        return i + 1, array.write(i, value)
    if kind == "push":
        last = written_in_a_loop(N, lambda i, v: (i + 1, push(v, tn.cast(i, tn.float32))),
                                 empty())
    else:
        last = written_in_a_loop(N, write, array).flow
    # The list that a loop begins with may be shared.
    assert copied_elements(length(last), {p: 1.5, yes: True}) <= N


def test_copies_are_counted():
    """Where the old list is still there a write cannot but copy."""
    first = reserve(10, shape=[])
    _, now, before = tn.while_loop(lambda i, *_: i < 10,
                                   lambda i, now, before: (i + 1, put(now, i, 1.0), now),
                                   [0, first, first])
    assert copied_elements(length(now) + length(before)) >= 45


def test_writes_without_a_loop_copy_no_list():
    x = tn.placeholder(tn.float32, [])
    values = reserve(300)
    for i in range(300):
        values = put(values, i, x + i)
    assert copied_elements(stack(values, shape=[]), {x: 0.5}) <= 300


# --- Gradients ------------------------------------------------------------------------------------


def check_gradient(function, *values, step=1e-5):
    """Of the weighted sum of what function(*tensors) gives, against central differences."""
    xs = [tn.placeholder(tn.float64, v.shape) for v in values]
    random = np.random.default_rng(3)
    ys = function(*xs)
    ys = ys if isinstance(ys, (list, tuple)) else [ys]
    total = tn.add_n([tn.reduce_sum(tn.square(y) * random.normal()) for y in ys])
    gradients = tn.gradients(total, xs)
    with tn.Session() as sess:
        def at(changed):
            return sess.run(total, dict(zip(xs, changed)))
        got = sess.run(gradients, dict(zip(xs, values)))
        for k, value in enumerate(values):
            for place in np.ndindex(value.shape):
                up, down = [[v.copy() for v in values] for _ in range(2)]
                up[k][place] += step
                down[k][place] -= step
                expected = (at(up) - at(down)) / (2 * step)
                np.testing.assert_allclose(got[k][place], expected, rtol=1e-6, atol=1e-7,
                                           err_msg="input %d at %s" % (k, place))


A = np.random.default_rng(1).normal(size=(4, 3))
B = np.random.default_rng(2).normal(size=(2, 3))
F = tn.float64


@pytest.mark.parametrize("function,values", [
    (lambda x: stack(from_tensor(x), F), [A]),
    (lambda x: get(from_tensor(x), 2, F), [A]),
    (lambda x: [get(from_tensor(x), 2, F), get(from_tensor(x), 0, F)], [A]),
    (lambda x, y: stack(put(from_tensor(x), 1, y[0]), F), [A, B]),
    (lambda x, y: stack(put(put(reserve(3, F), 1, y[0]), 1, x[2]), F), [A, B]),
    (lambda x: stack(push(push(empty(F), x), x * 2.0), F, [4, 3]), [A]),
    (lambda x: pop(from_tensor(x), F)[1], [A]),
    (lambda x: stack(pop(from_tensor(x), F)[0], F), [A]),
    (lambda x: [pop(pop(from_tensor(x), F)[0], F)[1], pop(from_tensor(x), F)[1]], [A]),
    (lambda x: pop(pop(push(push(empty(F), x[0]), x[1]), F)[0], F)[1], [A]),
    (lambda x: gather(from_tensor(x), [3, 1, 3], F), [A]),
    (lambda x: stack(raw_ops.TensorListScatter(x, [2, 0, 1, 2], -1), F), [A]),
    (lambda x: stack(raw_ops.TensorListScatterV2(x, [5, 0, 1, 2], [3], 7), F), [A]),
    (lambda x, y: stack(raw_ops.TensorListScatterIntoExistingList(from_tensor(x), y, [1, 6]), F),
     [A, B]),
    (lambda x, y: stack(raw_ops.TensorListScatterIntoExistingList(from_tensor(x), y, [1, 1]), F),
     [A, B]),
    (lambda x: concat(from_tensor(x), F)[0], [A]),
    (lambda x, y: concat(push(push(empty(F), x), y), F)[0], [A, B]),
    (lambda x: get(split(x, [1, 3]), 1, F), [A]),
    (lambda x: concat(split(x, [1, 0, 3]), F)[0], [A]),
    (lambda x: stack(raw_ops.TensorListResize(from_tensor(x), 2), F), [A]),
    (lambda x: stack(raw_ops.TensorListResize(from_tensor(x), 6), F), [A]),
    (lambda x: get(tn.identity(from_tensor(x)), 1, F), [A]),
    (lambda x: stack(push(from_tensor(x), get(from_tensor(x), 1, F)), F), [A]),
])
def test_gradients(function, values):
    check_gradient(function, *values)


def test_gradients_where_shapes_are_unknown():
    x = tn.placeholder(tn.float64, None)
    values = from_tensor(x)
    y = tn.reduce_sum(tn.square(gather(put(values, 0, get(values, 1, F) * 3.0), [0, 2], F)))
    got = run(tn.gradients(y, x)[0], {x: A})
    np.testing.assert_allclose(got, [np.zeros(3), 18 * A[1], 2 * A[2], np.zeros(3)])


def test_gradients_of_gradients():
    x = tn.placeholder(tn.float64, [4, 3])
    y = tn.reduce_sum(get(from_tensor(x), 2, F) ** 3.0)
    first = tn.gradients(y, x)[0]
    second = tn.gradients(tn.reduce_sum(first * first), x)[0]  # of 9 x^4
    expected = np.zeros((4, 3))
    expected[2] = 36 * A[2] ** 3
    np.testing.assert_allclose(run(second, {x: A}), expected)


def test_gradients_through_a_tensor_array():
    def function(x, y):
        array = tn.TensorArray(F, 5).unstack(x).write(0, y[1])
        array = array.scatter([1], y[:1])
        return [array.stack(), array.read(2), array.gather([0, 3])]
    check_gradient(function, A, B)
    check_gradient(lambda x: tn.TensorArray(F, 2, infer_shape=False).split(x, [1, 3]).concat(), A)


def test_joined_lists_have_no_gradient():
    x = tn.placeholder(F, [4, 3])
    joined = raw_ops.TensorListConcatLists(from_tensor(x), from_tensor(x), F)
    with pytest.raises(tn.errors.UnimplementedError, match="joined"):
        tn.gradients(stack(joined, F), x)


def test_gradients_of_unsetting():
    check_gradient(lambda x: stack(raw_ops.TensorListUnset(from_tensor(x), [1, 3]), F), A)


def test_gradients_of_many_reads_cost_as_many():
    """Each gives a list of one element, and none of them is copied."""
    n = 400
    x = tn.placeholder(F, [n])
    values = from_tensor(x)
    y = tn.add_n([tn.square(get(values, i, F)) for i in range(n)])
    gradient = tn.gradients(y, x)[0]
    given = np.arange(float(n))
    np.testing.assert_array_equal(run(gradient, {x: given}), 2 * given)
    assert copied_elements(gradient, {x: given}) <= n


def test_sums_in_a_loop_change_one_list_in_place():
    n = 2000
    total = tn.while_loop(lambda i, _: i < n, lambda i, total: (
        i + 1, raw_ops.AddN([total, put(reserve(n), n - 1 - i, tn.cast(i, tn.float32)),
                             put(reserve(n), 0, tn.cast(i, tn.float32))])), [0, reserve(n)])[1]
    expected = np.arange(n - 1.0, -1, -1, np.float32)
    expected[0] += np.arange(float(n)).sum()
    np.testing.assert_allclose(run(stack(total, shape=[])), expected)
    assert copied_elements(length(total)) <= n


def test_the_sum_of_lists_does_not_depend_on_who_holds_them():
    parts = [np.float32([1e8, 1]), np.float32([1, 2]), np.float32([-1e8, 3])]
    lists = [from_tensor(tn.placeholder_with_default(p, [2])) for p in parts]
    total = raw_ops.AddN(lists)
    expected = (parts[0] + parts[1]) + parts[2]
    for held in range(-1, 3):
        fetches = [stack(total)] + ([] if held < 0 else [stack(lists[held])])
        got = run(fetches)
        np.testing.assert_array_equal(got[0], expected)
        if held >= 0:
            np.testing.assert_array_equal(got[1], parts[held])


def test_the_sum_of_lists():
    a, b = put(reserve(3), 0, X[0]), put(put(reserve(2), 0, X[1]), 1, X[2])
    total = raw_ops.AddN([a, b])
    np.testing.assert_array_equal(run(stack(total)), [X[0] + X[1], X[2], np.zeros(3)])
    halves = [from_tensor(X.astype(np.float16)) for _ in range(3)]
    np.testing.assert_array_equal(run(stack(raw_ops.AddN(halves), tn.float16)), 3 * X)
    wrong = raw_ops.AddN([a, put(reserve(3), 0, X[0, :2])])
    with pytest.raises(tn.errors.InvalidArgumentError, match=r"\[3\] and \[2\]"):
        run(stack(wrong))


# --- Refusals -------------------------------------------------------------------------------------


def unknown(value):
    """A tensor of which the graph does not know the shape."""
    return tn.placeholder_with_default(value, None)


def hidden(values):
    """A list of which only the run tells dtype and shape."""
    return tn.while_loop(lambda i, _: i < 1, lambda i, v: (i + 1, v), [0, values])[1]


NO_INDEX = r"element -1 in a list with 4 elements"


@pytest.mark.parametrize("build,message", [
    (lambda: get(from_tensor(X), -1), "access " + NO_INDEX),
    (lambda: get(from_tensor(X), 4), r"access element 4 in a list with 4 elements"),
    (lambda: stack(put(from_tensor(X), -1, X[0])), "modify " + NO_INDEX),
    (lambda: gather(from_tensor(X), [0, 9]), r"element 9 in a list with 4 elements"),
    (lambda: length(push(empty(most=0), 1.0)), "full list, list size: 0 max_num_elements: 0"),
    (lambda: pop(empty())[1], "empty list"),
    (lambda: pop(empty())[0], "empty list"),
    (lambda: get(reserve(1), 0), r"uninitialized tensor.*not fully defined"),
    (lambda: stack(reserve(1)), r"uninitialized tensor.*not fully defined"),
    (lambda: stack(empty()), "empty list with non-fully-defined element_shape"),
    (lambda: stack(from_tensor(X), num_elements=3), "3 elements but got a list with 4"),
    (lambda: stack(push(push(empty(), X), X[0])), r"row 1 has shape \[3\].*\[4,3\]"),
    (lambda: length(push(hidden(empty(shape=[2])), X)), r"\[4,3\] list shape: \[2\]"),
    (lambda: length(put(hidden(reserve(1, shape=[2])), 0, X)), r"\[4,3\] list shape: \[2\]"),
    (lambda: get(push(empty(), X), 0, shape=unknown(np.int32([5, -1]))),
     r"has shape \[4,3\], element_shape is \[5,\?\]"),
    (lambda: length(reserve(unknown(-1))), "num_elements must not be negative"),
    (lambda: length(raw_ops.TensorListResize(empty(), unknown(-2))), "size must not be negative"),
    (lambda: length(from_tensor(unknown(X), [2])), r"\[2\] and \[3\]"),
    (lambda: length(raw_ops.TensorListScatter(X, [0, -1, 1, 2], -1)), "non-negative, got -1"),
    (lambda: length(raw_ops.TensorListScatterV2(X, [0, 7, 1, 2], -1, 5)), "7 in list with size 5"),
    (lambda: length(split(X, [1, 2])), "Unused values in tensor"),
    (lambda: length(split(X, [3, 2])), "from tensor with length 4"),
    (lambda: length(split(X, [5, -1])), "from tensor|Invalid value in lengths"),
    (lambda: concat(push(empty(), 1.0))[0], "at least vectors"),
    (lambda: concat(push(push(empty(), X), X[:, :2]))[0], r"\[3\] and \[2\]"),
    (lambda: concat(reserve(2, shape=[-1, 3]))[0], "at index 0 but leading_dims has only 0"),
    (lambda: concat(empty())[0], "must be fully defined"),
    (lambda: get(empty(shape=unknown(np.int32(7))), 0), "only valid scalar shape"),
    (lambda: length(get(reserve(1, tn.variant, []), 0, tn.variant)), "not a list. Saw: variant"),
    (lambda: get(hidden(from_tensor(X)), 0, tn.int32),
     "op elements int32 but list elements float32"),
    (lambda: length(push(hidden(from_tensor(X)), np.int32(1))),
     "op elements int32 but list elements float32"),
    (lambda: length(raw_ops.TensorListConcatLists(
        from_tensor(X), hidden(from_tensor([1])), tn.float32)),
     "op elements float32 but list elements int32"),
])
def test_what_a_run_refuses(build, message):
    y = build()
    with pytest.raises(tn.errors.InvalidArgumentError, match=message):
        run(y)


@pytest.mark.parametrize("build,message", [
    (lambda: get(from_tensor(X), 0, tn.int32), "element dtype int32 .* element dtype float32"),
    (lambda: push(from_tensor(X), np.int32([1, 2, 3])), "element dtype int32"),
    (lambda: push(reserve(1, shape=[2]), X), r"\[2\] and \[4,3\]"),
    (lambda: get(from_tensor(X), 0, shape=[2]), r"\[3\] and \[2\]"),
    (lambda: get(from_tensor(X), [0]), "index must have rank 0"),
    (lambda: from_tensor(1.0), "rank at least 1"),
    (lambda: raw_ops.TensorListScatter(X, [0, 1], -1), r"saw: 2 and 4"),
    (lambda: empty(shape=7), "only valid scalar shape tensor"),
    (lambda: concat(from_tensor(X[0]))[0], "at least vectors"),
    (lambda: stack(from_tensor(X), num_elements=-2), "num_elements"),
    (lambda: get(tn.ones([2]), 0), "variant"),
])
def test_what_the_graph_refuses(build, message):
    with pytest.raises((ValueError, TypeError), match=message):
        build()


def test_a_list_beyond_memory_is_refused():
    most = 2**31 - 1
    values = put(reserve(unknown(most)), most - 1, 1.0)  # takes no memory between
    assert run([length(values), get(values, most - 1)]) == [most, 1]
    with pytest.raises(tn.errors.ResourceExhaustedError):
        run(length(put(values, 0, 1.0)))


def test_lists_in_lists_have_a_depth():
    outer = tn.while_loop(lambda i, _: i < 100000,
                          lambda i, v: (i + 1, push(empty(tn.variant), v)), [0, empty()])[1]
    with pytest.raises(tn.errors.ResourceExhaustedError, match="1000 deep"):
        run(length(outer))


def test_a_list_is_fetched_and_fed_as_it_is():
    values = from_tensor(X)
    changed = stack(put(values, 0, X[3]))
    with tn.Session() as sess:
        fetched = sess.run(push(values, X[0]))
        assert isinstance(fetched, tn.Tensor) and fetched.dtype == tn.variant
        for _ in range(2):
            np.testing.assert_array_equal(sess.run(changed, {values: fetched}),
                                          X[[3, 1, 2, 3, 0]])
        with pytest.raises((TypeError, ValueError)):
            sess.run(changed, {values: X})
