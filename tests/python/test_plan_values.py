# SPDX-License-Identifier: Apache-2.0
"""What a plan computes in whichever way it changes its copy of the graph: fed constants and what
hangs on them, feeds that cut, merged nodes with the bits of each."""

import itertools

import numpy as np
import pytest

import treenail as tn


def levels():
    """Sessions that change their copy of the graph in each way."""
    for fold, merge, fuse in itertools.product([False, True], repeat=3):
        yield tn.ConfigProto(graph_options=tn.GraphOptions(optimizer_options=tn.OptimizerOptions(
            do_constant_folding=fold, do_common_subexpression_elimination=merge,
            do_elementwise_fusion=fuse)))


def on_all_levels(fetches, feeds):
    """What they give, which is the same bytes."""
    found = []
    for config in levels():
        with tn.Session(config=config) as sess:
            found.append(sess.run(fetches, feeds))
    for other in found[1:]:
        for a, b in zip(found[0], other):
            assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return found[0]


HAND_ON = {
    "itself": lambda c: c,
    "identity": tn.identity,
    "stop": tn.stop_gradient,
    "prevented": lambda c: tn.raw_ops.PreventGradient(c, message="never"),
    "many": lambda c: tn.identity_n([c, tn.zeros([2])])[0],
    "default": lambda c: tn.placeholder_with_default(c, [3]),
    "partial default": lambda c: tn.placeholder_with_default(c, [None]),
    "cast": lambda c: tn.cast(tn.cast(c, tn.int64), tn.int32),
    "reshaped": lambda c: tn.reshape(tn.expand_dims(c, 0), [3]),
    "parts": lambda c: tn.stack(tn.unstack(c)),
    "sliced": lambda c: tn.concat([c[:1], c[1:]], 0),
    "split": lambda c: tn.concat(tn.split(c, 3), 0),
    "gathered": lambda c: tn.gather(c, [0, 1, 2]),
    "packed": lambda c: tn.stack([c[0], c[1], c[2]]),
}


@pytest.mark.parametrize("name", sorted(HAND_ON))
def test_a_fed_constant_is_what_is_fed(name):
    c = tn.constant([1, 2, 3])
    through = HAND_ON[name](HAND_ON[name](c))
    fetches = [through + 1, tn.identity(through) * 2, tn.reduce_sum(through), through, c]
    value = np.array([10, 20, 30], np.int32)
    found = on_all_levels(fetches, {c: value})
    for result, right in zip(found, [value + 1, value * 2, 60, value, value]):
        assert np.array_equal(result, right)
    assert np.array_equal(on_all_levels([through + 1], {})[0], [2, 3, 4])
    if name != "itself":
        assert np.array_equal(on_all_levels([through + 1, c], {through: value})[0], value + 1)


def test_what_hangs_on_a_fed_constant_has_its_shape():
    shape = tn.constant([2, 3])
    n, start = tn.constant(4), tn.constant(1)
    x = tn.placeholder(tn.float32, [6])
    reshaped = tn.reshape(x, tn.identity(shape))
    filled = tn.fill(tn.identity(shape), 2.0) + 1.0
    counted = tn.range(tn.identity(start), tn.identity(n)) * 2
    assert reshaped.shape.as_list() == [2, 3] and filled.shape.as_list() == [2, 3]
    assert counted.shape.as_list() == [3]
    fetches = [reshaped * 2.0, tn.shape(reshaped), tn.size(filled), filled, counted,
               tn.shape(counted), tn.tile([1.0, 2.0], [tn.identity(n)]), tn.rank(reshaped),
               tn.zeros_like(reshaped), tn.transpose(reshaped), tn.one_hot([0, 1], n),
               tn.reduce_sum(tn.ones(shape)), tn.broadcast_to([1.0], shape),
               tn.strided_slice(tn.range(10), [start], [n])]
    value = np.arange(6, dtype=np.float32)
    for extents, count in (([2, 3], 4), ([3, 2], 7), ([6, 1], 2), ([1, 6], 3)):
        found = on_all_levels(fetches, {x: value, shape: extents, n: count, start: 1})
        here = value.reshape(extents)
        for result, right in zip(found, [
                here * 2, extents, 6, np.full(extents, 3), np.arange(1, count) * 2, [count - 1],
                [1, 2] * count, 2, here * 0, here.T, np.eye(count)[:2], 6, np.ones(extents),
                np.arange(1, count)]):
            assert np.array_equal(result, right)


def test_a_fed_constant_keeps_its_shape():
    c = tn.constant([1.0, 2, 3])
    y = tn.identity(c) + 1
    for config in levels():
        with tn.Session(config=config) as sess:
            with pytest.raises(ValueError, match="Cannot feed value of shape"):
                sess.run(y, {c: [1.0, 2.0]})
            assert sess.run(y, {c: [5, 6, 7]}).tolist() == [6, 7, 8]


def test_feeds_cut_what_stands_before_them():
    x = tn.placeholder(tn.float32, [2])
    a = tn.identity(tn.constant([1.0, 2.0]) + 1.0)
    first, second = tn.split(tn.constant([1.0, 2.0, 3.0, 4.0]), 2)
    y = [a * x, first + second, tn.reshape(first, tn.shape(second))]
    found = on_all_levels(y + [a, second], {x: [1, 1], a: [7, 8], second: [0, 1]})
    assert [f.tolist() for f in found] == [[7, 8], [1, 3], [1, 2], [7, 8], [0, 1]]
    v = tn.Variable([1.0, 2.0])
    read = v.read_value()
    with tn.Session() as sess:
        sess.run(v.initializer)
        assert sess.run([read + 1, v + 1], {read: [5, 6]})[0].tolist() == [6, 7]


def test_a_fed_placeholder_is_done_for_who_waits_for_it():
    x = tn.placeholder(tn.float32, [2], name="x")
    other = tn.placeholder(tn.float32, name="other")
    with tn.control_dependencies([x]):
        y = tn.constant(3.0) * 2
    group = tn.group(x, y.op)
    pair = tn.tuple([x, y])
    v = tn.Variable(0.0)
    with tn.control_dependencies([x.op, y]):
        step = v.assign_add(1.0)
    with tn.control_dependencies([other]):
        lost = tn.identity(y)
    for config in levels():
        with tn.Session(config=config) as sess:
            sess.run(v.initializer)
            feeds = {x: [1, 2]}
            assert sess.run(y, feeds) == 6 and sess.run(group, feeds) is None
            assert [np.asarray(p).tolist() for p in sess.run(pair, feeds)] == [[1, 2], 6]
            assert sess.run(step, feeds) == 1 and sess.run(x.op, feeds) is None
            assert sess.run([x, y], feeds)[0].tolist() == [1, 2]
            for fetch, feed, name in ((y, {}, "x"), (group, {}, "x"), (lost, feeds, "other")):
                with pytest.raises(tn.errors.InvalidArgumentError, match='"%s"' % name):
                    sess.run(fetch, feed)


def test_a_node_whose_value_is_fed_runs_for_who_waits_for_it():
    v = tn.Variable(0.0)
    raised = v.assign_add(1.0)
    with tn.control_dependencies([raised]):
        y = tn.identity(tn.constant(2.0))
    with tn.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(y, {raised: 9.0}) == 2 and sess.run(v) == 1


COMMUTATIVE = ["Add", "Mul", "Maximum", "Minimum", "SquaredDifference", "Equal", "NotEqual",
               "ApproximateEqual", "LogicalAnd", "LogicalOr"]
# Words of a half, float or double whose sign, exponent and first bits of fraction are those of:
# zeros, one, infinities, NaNs, quiet and not, with other fractions and either sign.
SPECIAL_HALVES = [0x0000, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0xfe00, 0x7e15, 0x7d01]


def special_values(dtype):
    """Values of which pairs are likely to tell f(x, y) from f(y, x)."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        halves = np.array(SPECIAL_HALVES, np.uint16)
        if dtype.itemsize == 2:
            return halves.view(np.float16)
        with np.errstate(invalid="ignore"):
            return halves.view(np.float16).astype(dtype)
    if dtype.kind == "c":
        parts = special_values(np.float32 if dtype.itemsize == 8 else np.float64)
        pairs = np.array(list(itertools.product(parts, parts)))
        return np.ascontiguousarray(pairs).view(dtype)[:, 0]
    if dtype.kind == "b":
        return np.array([False, True])
    ends = np.iinfo(dtype)
    return np.array([0, 1, 3, ends.max, ends.max - 1, ends.min, ends.min + 1], dtype)


@pytest.mark.parametrize("op", COMMUTATIVE)
def test_what_is_computed_once_has_the_bits_of_both(op):
    compute, types = getattr(tn.raw_ops, op), 0
    for name in ("float16", "float32", "float64", "complex64", "complex128", "bool", "int8",
                 "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        with tn.Graph().as_default():
            x, y = tn.placeholder(name, [None]), tn.placeholder(name, [None])
            try:
                both = [compute(x, y), compute(y, x)]
            except tn.errors.InvalidArgumentError:
                continue
            values = special_values(name)
            a, b = (side.ravel() for side in np.meshgrid(values, values))
            of_a, of_b = tn.constant(a), tn.constant(b)
            both += [compute(of_a, of_b), compute(of_b, of_a)]
            found = on_all_levels(both, {x: a, y: b})
            assert found[0].tobytes() == found[2].tobytes()
            assert found[1].tobytes() == found[3].tobytes()
            types += 1
    assert types == 1 if op.startswith("Logical") else types > 5


def test_zeros_keep_their_signs():
    x, y = tn.placeholder(tn.float32, [2]), tn.placeholder(tn.float32, [2])
    found = on_all_levels([tn.maximum(x, y), tn.maximum(y, x), tn.minimum(x, y), tn.minimum(y, x),
                           x + y, x * 1.0], {x: [0.0, -0.0], y: [-0.0, 0.0]})
    assert np.array_equal(np.signbit(found[4]), [False, False])
    assert np.array_equal(np.signbit(found[5]), [False, True])
