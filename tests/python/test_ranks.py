# SPDX-License-Identifier: Apache-2.0
"""Tensors of more axes than are common: up to 32, as NumPy 1's arrays and HDF5's datasets."""

import numpy as np
import pytest

import treenail as tn

SHAPE = (2, 1, 3, 2, 1, 2, 2, 3, 1, 2, 2)  # eleven axes
DEEP = (2,) + (1,) * 14 + (3,) + (1,) * 15 + (2,)
AXES = len(SHAPE)
PERM = [7, 0, 10, 3, 2, 9, 1, 8, 6, 5, 4]
BORDERS = [(axis % 2, int(axis % 3 == 1)) for axis in range(AXES)]


def array(shape=SHAPE, dtype=np.float32, seed=5):
    return np.random.RandomState(seed).randint(-4, 5, shape).astype(dtype)


def crossed(shape, odd):
    """Extents of 1 at each second axis: nothing merges."""
    return tuple(1 if axis % 2 == odd else 2 for axis in range(len(shape)))


ROWS = {
    "transpose": (lambda x: tn.transpose(x, PERM), lambda x: x.transpose(PERM)),
    "transpose_reversed": (tn.transpose, np.transpose),
    "slice": (lambda x: tn.slice(x, [0, 0, 1] + [0] * 8, [1, 1, 2] + [-1] * 8),
              lambda x: x[:1, :, 1:]),
    "strided_slice": (lambda x: x[::-1, 0, ..., ::2, :, None],) * 2,
    "pad": (lambda x: tn.pad(x[..., 0, :2], BORDERS[:9] + [(1, 1)]),
            lambda x: np.pad(x[..., 0, :2], BORDERS[:9] + [(1, 1)])),
    "mirror_pad": (lambda x: tn.pad(x, [(0, 0)] * 9 + [(1, 0), (1, 1)], "REFLECT"),
                   lambda x: np.pad(x, [(0, 0)] * 9 + [(1, 0), (1, 1)], "reflect")),
    "tile": (lambda x: tn.tile(x, [1, 2] * 5 + [1]), lambda x: np.tile(x, [1, 2] * 5 + [1])),
    "reverse": (lambda x: tn.reverse(x, [0, 3, -1]), lambda x: np.flip(x, (0, 3, -1))),
    "roll": (lambda x: tn.roll(x, [1, 2], [2, 7]), lambda x: np.roll(x, [1, 2], [2, 7])),
    "concat": (lambda x: tn.concat([x, x + 1], 6), lambda x: np.concatenate([x, x + 1], 6)),
    "stack": (lambda x: tn.stack([x, x + 1], 9), lambda x: np.stack([x, x + 1], 9)),
    "unstack": (lambda x: tn.unstack(x, 3, axis=7)[2], lambda x: x[:, :, :, :, :, :, :, 2]),
    "split": (lambda x: tn.split(x, 3, axis=2)[1], lambda x: x[:, :, 1:2]),
    "gather": (lambda x: tn.gather(x, [[2, 0], [1, 1]], axis=7),
               lambda x: x.take([[2, 0], [1, 1]], 7)),
    "gather_nd": (lambda x: tn.gather_nd(x, [[1, 0, 2, 1, 0, 1, 1, 2, 0, 1, 0]]),
                  lambda x: x[1, 0, 2, 1, 0, 1, 1, 2, 0, 1, 0][None]),
    "sum": (lambda x: tn.reduce_sum(x, [0, 2, 5, 9]), lambda x: x.sum((0, 2, 5, 9))),
    "max": (lambda x: tn.reduce_max(x, [1, 3, 7], keepdims=True),
            lambda x: x.max((1, 3, 7), keepdims=True)),
    "sum_of_all": (tn.reduce_sum, np.sum),
    "any": (lambda x: tn.reduce_any(x > 3, [7, 10]), lambda x: (x > 3).any((7, 10))),
    "argmax": (lambda x: tn.argmax(x, 7), lambda x: x.argmax(7)),
    "cumsum": (lambda x: tn.cumsum(x, 2), lambda x: x.cumsum(2)),
    "sort": (lambda x: tn.sort(x, 7), lambda x: np.sort(x, 7)),
    "where": (lambda x: tn.where(x > 3), lambda x: np.argwhere(x > 3)),
    "select": (lambda x: tn.where(x > 0, x, -x), abs),
    "one_hot": (lambda x: tn.one_hot(tn.cast(x, tn.int32), 3, axis=4),
                lambda x: np.moveaxis(x[..., None] == np.arange(3), -1, 4).astype(np.float32)),
    "broadcast_to": (lambda x: tn.broadcast_to(x[:, :, :1], (2, 4, 3) + SHAPE[3:]),
                     lambda x: np.broadcast_to(x[:, :, :1], (2, 4, 3) + SHAPE[3:])),
    "shapes": (lambda x: tn.reshape(x, tn.shape(x)[::-1]), lambda x: x.reshape(SHAPE[::-1])),
    "squeeze": (tn.squeeze, np.squeeze),
    "expand_dims": (lambda x: tn.expand_dims(x, 5), lambda x: np.expand_dims(x, 5)),
    "broadcast": (lambda x: x * x[:, :, :1, :, :, :1, :, :, :, :1] + x[0, :, 0],
                  lambda x: x * x[:, :, :1, :, :, :1, :, :, :, :1] + x[0, :, 0]),
    "chain": (lambda x: tn.nn.relu(x - 1) * 2 + tn.abs(x),
              lambda x: np.maximum(x - 1, 0) * 2 + abs(x)),
    "matmul": (lambda x: tn.matmul(x, x[:, :, 1:2], transpose_b=True),
               lambda x: x @ x[:, :, 1:2].swapaxes(-1, -2)),
    "tensordot": (lambda x: tn.tensordot(x, x, [[2, 5, 7], [2, 5, 7]])[..., 0, 0, 0, 0, 0, 0, 0, 0],
                  lambda x: np.tensordot(x, x, [[2, 5, 7]] * 2)[..., 0, 0, 0, 0, 0, 0, 0, 0]),
    "einsum": (lambda x: tn.einsum("abcdefghijk,kc->abdefghijc", x, [[1., 2, 3], [4, 5, 6]]),
               lambda x: np.einsum("abcdefghijk,kc->abdefghijc", x, [[1., 2, 3], [4, 5, 6]])),
    "strings": (lambda x: tn.strings.length(tn.as_string(tn.cast(x, tn.int32))),
                lambda x: 1 + (x < 0)),
    "unravelled": (lambda x: tn.unravel_index([7], SHAPE),
                   lambda x: np.stack(np.unravel_index([7], SHAPE))),
}


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("name", ROWS)
def test_an_op_on_eleven_axes(name, static, evaluate):
    call, oracle = ROWS[name]
    x = tn.placeholder(tn.float32, SHAPE if static else [None] * AXES)
    given = array()
    wanted = np.asarray(oracle(given))
    result = call(x)
    got = evaluate(result, {x: given})
    assert got.shape == wanted.shape
    np.testing.assert_array_equal(got, wanted)
    assert result.shape.is_compatible_with(wanted.shape)


LINEAR = [name for name in ROWS if name not in (
    "any", "argmax", "where", "one_hot", "strings", "unravelled", "sort", "max", "chain", "select")]


@pytest.mark.parametrize("name", LINEAR)
def test_a_gradient_on_eleven_axes(name, evaluate):
    """All of them are sums of products: the oracle is the difference that one step makes."""
    call = ROWS[name][0]
    x = tn.placeholder(tn.float64, SHAPE)
    y = tn.cast(call(tn.cast(x, tn.float32)), tn.float64) if name == "einsum" else call(x)
    weights = array(tuple(y.shape.as_list()), np.float64, 7)
    loss = tn.reduce_sum(y * weights)
    step = array(SHAPE, np.float64, 9)
    slope = evaluate(tn.reduce_sum(tn.gradients(loss, x)[0] * step), {x: array(dtype=np.float64)})
    ends = [evaluate(loss, {x: array(dtype=np.float64) + sign * step}) for sign in (1, -1)]
    assert slope == pytest.approx((ends[0] - ends[1]) / 2)


@pytest.mark.parametrize("rank", [7, 9, 15, 16, 17, 20])
def test_nothing_merges(rank, evaluate):
    """Operands that broadcast against each other along alternating axes."""
    a, b = (array(crossed((2,) * rank, odd)) for odd in (0, 1))
    np.testing.assert_array_equal(evaluate(tn.constant(a) * b - 1), a * b - 1)
    np.testing.assert_array_equal(evaluate(tn.maximum(tn.constant(a), b) * a + b),
                                  np.maximum(a, b) * a + b)
    perm = np.random.RandomState(rank).permutation(rank)
    whole = np.arange(2 ** rank).reshape((2,) * rank)
    np.testing.assert_array_equal(evaluate(tn.transpose(whole, perm)), whole.transpose(perm))
    odd = tuple(range(1, rank, 2))
    np.testing.assert_array_equal(evaluate(tn.reduce_sum(tn.constant(whole), odd)), whole.sum(odd))
    turned = tuple(slice(None, None, -1) if axis % 2 else slice(None) for axis in range(rank))
    np.testing.assert_array_equal(evaluate(tn.constant(whole)[turned]), whole[turned])


def test_thirty_two_axes_pass_every_border(tmp_path):
    given = array(DEEP)
    assert given.ndim == 32
    x = tn.placeholder(tn.float32, DEEP, name="x")
    v = tn.Variable(given, name="deep")
    y = tn.identity(v * 2 + tn.transpose(tn.transpose(x)), name="y")
    wanted = given * 3
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        np.testing.assert_array_equal(session.run(y, {x: given}), wanted)
        np.testing.assert_array_equal(session.run(tn.constant(given.tolist())), given)
        path = tn.train.Saver().save(session, str(tmp_path / "deep"))
        session.run(v.assign(tn.zeros(DEEP)))
        tn.train.Saver().restore(session, path)
        np.testing.assert_array_equal(session.run(y, {x: given}), wanted)
    tn.get_default_graph().save(str(tmp_path / "deep.tng"))
    loaded = tn.load_graph(str(tmp_path / "deep.tng"))
    assert loaded.get_tensor_by_name("y:0").shape == DEEP
    parsed = tn.parse_tensor(tn.serialize_tensor(tn.constant(given)), tn.float32)
    np.testing.assert_array_equal(tn.Session().run(parsed), given)


def test_a_part_of_a_variable_with_many_axes_is_saved_as_such(tmp_path):
    shape = (4,) + (1,) * 8 + (3,)
    with tn.variable_scope("w", partitioner=tn.fixed_size_partitioner(2)):
        w = tn.get_variable("w", shape, initializer=tn.constant_initializer(3.))
    whole = tn.convert_to_tensor(w)
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        path = tn.train.Saver().save(session, str(tmp_path / "parts"))
        tn.train.Saver().restore(session, path)
        np.testing.assert_array_equal(session.run(whole), np.full(shape, 3, np.float32))


@pytest.mark.parametrize("call", [
    lambda x: tn.expand_dims(x, 0), lambda x: tn.stack([x, x]), lambda x: x[None],
    lambda x: tn.one_hot(tn.cast(x, tn.int32), 2), lambda x: tn.reshape(x, DEEP + (1,)),
    lambda x: tn.tensordot(x, x, 0), lambda x: tn.gather(x, [[0]], axis=0)])
def test_one_axis_too_many_is_refused_with_the_limit(call):
    with pytest.raises(ValueError, match="32"):
        call(tn.placeholder(tn.float32, DEEP))
