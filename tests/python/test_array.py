# SPDX-License-Identifier: Apache-2.0
"""Functions on the arrangement of elements, against NumPy."""

import numpy as np
import pytest

import treenail as tn

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
V = np.array([3, 1, 2], np.int32)

CASES = [(lambda: tn.shape(A), [2, 3, 4]), (lambda: tn.shape(A, out_type=tn.int64), [2, 3, 4]),
         (lambda: tn.size(A), 24), (lambda: tn.rank(A), 3),
         (lambda: tn.reshape(A, [4, -1]), A.reshape(4, -1)),
         (lambda: tn.reshape(A, -1), A.reshape(-1)), (lambda: tn.expand_dims(A, 1), A[:, None]),
         (lambda: tn.expand_dims(A, dim=-1), A[..., None]),
         (lambda: tn.squeeze(A[:1, :, :1]), A[0, :, 0]),
         (lambda: tn.squeeze(A[:1, :, :1], [0]), A[0, :, :1]),
         (lambda: tn.squeeze(A[:1], axis=0), A[0]), (lambda: tn.zeros([2, 3]), np.zeros((2, 3))),
         (lambda: tn.ones([2], tn.int32), [1, 1]), (lambda: tn.zeros([]), 0.0),
         (lambda: tn.zeros(tn.shape(A)), np.zeros((2, 3, 4))),
         (lambda: tn.zeros([2], tn.bool), [False, False]),
         (lambda: tn.zeros([2], tn.string), np.array([b"", b""], object)),
         (lambda: tn.ones(3), [1.0, 1, 1]), (lambda: tn.zeros_like(A), 0 * A),
         (lambda: tn.ones_like(V, tn.float32), [1.0, 1, 1]),
         (lambda: tn.fill([2, 2], 7), [[7, 7], [7, 7]]), (lambda: tn.range(5), np.arange(5)),
         (lambda: tn.range(1, 10, 3), np.arange(1, 10, 3)), (lambda: tn.range(3.0), [0.0, 1, 2]),
         (lambda: tn.range(5, 0, -2), [5, 3, 1]),
         (lambda: tn.range(3, dtype=tn.float64), [0.0, 1, 2]),
         (lambda: tn.linspace(0.0, 1.0, 5), np.linspace(0, 1, 5)),
         (lambda: tn.one_hot([0, 2, -1], 3), [[1.0, 0, 0], [0, 0, 1], [0, 0, 0]]),
         (lambda: tn.one_hot([1], 2, 5, 3), [[3, 5]]),
         (lambda: tn.one_hot([0, 1], 3, axis=0), [[1.0, 0], [0, 1], [0, 0]]),
         (lambda: tn.eye(2, 3), np.eye(2, 3)),
         (lambda: tn.eye(2, batch_shape=[3]), np.broadcast_to(np.eye(2), (3, 2, 2))),
         (lambda: tn.concat([A, A], 1), np.concatenate([A, A], 1)), (lambda: tn.concat([A], 0), A),
         (lambda: tn.concat([V, [9]], axis=-1), [3, 1, 2, 9]), (lambda: tn.stack([V, V]), [V, V]),
         (lambda: tn.stack([V, V], axis=1), np.stack([V, V], 1)), (lambda: tn.unstack(A)[1], A[1]),
         (lambda: tn.unstack(A, axis=-1)[3], A[..., 3]), (lambda: tn.split(A, 2, 2)[1], A[..., 2:]),
         (lambda: tn.split(A, [1, 2], 1)[1], A[:, 1:]),
         (lambda: tn.split(A, [1, -1], 1)[1], A[:, 1:]), (lambda: tn.tile(V, [2]), np.tile(V, 2)),
         (lambda: tn.transpose(A), A.T), (lambda: tn.transpose(A, [1, 0, 2]), A.transpose(1, 0, 2)),
         (lambda: tn.matrix_transpose(A), A.transpose(0, 2, 1)),
         (lambda: tn.pad(V, [[1, 2]]), [0, 3, 1, 2, 0, 0]),
         (lambda: tn.pad(V, [[1, 1]], constant_values=9), [9, 3, 1, 2, 9]),
         (lambda: tn.pad(tn.constant([True]), [[1, 1]]), [False, True, False]),
         (lambda: tn.pad(tn.constant(["a"]), [[1, 0]]), np.array([b"", b"a"], object)),
         (lambda: tn.pad(V, [[2, 0]], "reflect"), [2, 1, 3, 1, 2]),
         (lambda: tn.pad(V, [[2, 0]], "SYMMETRIC"), [1, 3, 3, 1, 2]),
         (lambda: tn.slice(A, [0, 1, 0], [1, 2, -1]), A[:1, 1:3]),
         (lambda: tn.strided_slice(V, [0], [3], [2]), V[::2]),
         (lambda: tn.reverse(A, [1]), A[:, ::-1]), (lambda: tn.reverse(V, 0), V[::-1]),
         (lambda: tn.roll(V, 1, 0), np.roll(V, 1)),
         (lambda: tn.meshgrid(V, [1, 2])[0], np.meshgrid(V, [1, 2])[0]),
         (lambda: tn.meshgrid(V, [1, 2], indexing="ij")[1],
          np.meshgrid(V, [1, 2], indexing="ij")[1]),
         (lambda: tn.gather(A, [1, 0, 1]), A[[1, 0, 1]]),
         (lambda: tn.gather(A, [[0, 2]], axis=1), A[:, [[0, 2]]]),
         (lambda: tn.gather(A, [[0], [1]], batch_dims=1, axis=1), A[[0, 1], [0, 1]][:, None]),
         (lambda: tn.gather_nd(A, [[0, 1], [1, 2]]), A[[0, 1], [1, 2]]),
         (lambda: tn.scatter_nd([[1], [1]], [2, 3], [3]), [0, 5, 0]),
         (lambda: tn.boolean_mask(V, [True, False, True]), [3, 2]),
         (lambda: tn.boolean_mask(A, [[True, False, True], [False] * 3]), A[0, [0, 2]]),
         (lambda: tn.boolean_mask(A, [True, False, False, True], axis=2), A[..., [0, 3]]),
         (lambda: tn.where([True, False, True]), [[0], [2]]),
         (lambda: tn.where(A > 5, A, -A), np.where(A > 5, A, -A)),
         (lambda: tn.where([True, False], A[0, :2], A[1, :2]), np.stack([A[0, 0], A[1, 1]])),
         (lambda: tn.sequence_mask([1, 3]), [[True, False, False], [True] * 3]),
         (lambda: tn.sequence_mask([1], 2, tn.float32), [[1.0, 0]]),
         (lambda: tn.broadcast_to(V, [2, 3]), [V, V]), (lambda: tn.repeat(V, 2), np.repeat(V, 2)),
         (lambda: tn.repeat(A, 2, 1), np.repeat(A, 2, 1)), (lambda: tn.sort(V), [1, 2, 3]),
         (lambda: tn.sort(A, 0, "DESCENDING"), A[::-1]),
         (lambda: tn.argsort([3.0, 1, 2]), [1, 2, 0]),
         (lambda: tn.sort(np.uint8([3, 250, 1])), np.uint8([1, 3, 250])),
         (lambda: tn.argsort([1, 1, 0]), [2, 0, 1]), (lambda: tn.unique([5, 3, 5]).idx, [0, 1, 0]),
         (lambda: tn.dynamic_stitch([[2], [0, 1]], [[7], [8, 9]]), [8, 9, 7]),
         (lambda: tn.dynamic_partition(V, [1, 0, 1], 2)[1], [3, 2]),
         (lambda: tn.diag([1, 2]), [[1, 0], [0, 2]]),
         (lambda: tn.tensor_scatter_update(V, [[1]], [9]), [3, 9, 2]), (lambda: tn.identity(V), V),
         (lambda: tn.broadcast_dynamic_shape([2, 1], [3]), [2, 3]),
         (lambda: tn.constant(3, shape=[2, 2]), [[3, 3], [3, 3]]),
         (lambda: tn.constant([1, 2], shape=[4]), [1, 2, 2, 2]),
         (lambda: tn.constant([1, 2, 3, 4], shape=[2, 2]), [[1, 2], [3, 4]]),
         (lambda: tn.constant(np.arange(3.0), tn.int32), [0, 1, 2]),
         (lambda: tn.space_to_depth(np.arange(4.0).reshape(1, 2, 2, 1), 2), [[[[0, 1, 2, 3.0]]]]),]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_against_numpy(number, evaluate):
    build, expected = CASES[number]
    result, expected = evaluate(build()), np.asarray(expected)
    assert result.shape == expected.shape and (result.dtype.kind == expected.dtype.kind
                                               or result.dtype == np.int64)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("key", [0, -1, slice(None), slice(1, None), slice(None, -1),
                                 slice(None, None, 2), slice(None, None, -1), (0, 1), (0, 1, 2),
                                 (slice(None), 1), (Ellipsis, 0), (0, Ellipsis),
                                 (slice(None), None, 1), (None, 0), (Ellipsis, slice(1, 3)),
                                 (1, slice(0, 2), slice(3, None)), (), Ellipsis, None,
                                 (slice(5, 2),), (slice(-100, 100), slice(2, 0, -1)), np.int64(1)])
def test_subscripts(key, evaluate):
    result = evaluate(tn.constant(A)[key])
    np.testing.assert_array_equal(result, A[key])


def test_subscripts_with_tensors(evaluate):
    x, n = tn.constant(A), tn.constant(1)
    wide = tn.constant(1, tn.int64)
    for result, expected in ((x[n], A[1]), (x[:, n], A[:, 1]), (x[:, :n + 1], A[:, :2]),
                             (x[0, n:, wide], A[0, 1:, 1]), (x[x > 20], A[A > 20]),
                             (x[np.array([True, False])], A[:1])):
        np.testing.assert_array_equal(evaluate(result), expected)


@pytest.mark.parametrize("call,error,text", [(lambda: tn.constant(A)["a"], TypeError,
                                              "valid indices"),
                                             (lambda: tn.constant(A)[1.5], TypeError,
                                              "valid indices"),
                                             (lambda: tn.constant(A)[0, 0, 0, 0], ValueError,
                                              "Index out of range using input dim 3"),
                                             (lambda: tn.constant(A)[5], ValueError,
                                              "out of bounds|is not in|5"),
                                             (lambda: tn.constant(A)[::0], ValueError,
                                              "stride|zero|non-zero"),
                                             (lambda: tn.reshape(A, [5, -1]), ValueError,
                                              "5|reshape"),
                                             (lambda: tn.reshape(A, [-1, -1]), ValueError,
                                              "-1|unknown"),
                                             (lambda: tn.concat([A, [[[1]]]], 0), ValueError,
                                              "should match"),
                                             (lambda: tn.concat([tn.constant(A), tn.constant(V)],
                                                                0), ValueError, "dtype"),
                                             (lambda: tn.concat([A, A[:, :2]], 0), ValueError,
                                              "shape|Dimension|extents"),
                                             (lambda: tn.stack([V, V[:2]]), ValueError, "shape"),
                                             (lambda: tn.unstack(tn.placeholder(tn.float32)),
                                              ValueError, "Cannot infer num"),
                                             (lambda: tn.unstack(A, axis=3), ValueError,
                                              r"axis = 3 not in \[-3, 3\)"),
                                             (lambda: tn.split(A, 5, 1), ValueError, "5"),
                                             (lambda: tn.expand_dims(A), ValueError,
                                              "Must specify an axis"),
                                             (lambda: tn.expand_dims(A, 1, dim=1), ValueError,
                                              "Cannot specify both"),
                                             (lambda: tn.where(A > 0, A), ValueError,
                                              "x and y must both be"),
                                             (lambda: tn.pad(V, [[1, 1]], "WRAP"), ValueError,
                                              "Unknown padding mode"),
                                             (lambda: tn.boolean_mask(A, True), ValueError,
                                              "mask cannot be scalar"),
                                             (lambda: tn.boolean_mask(A, [True] * 3), ValueError,
                                              "incompatible"),
                                             (lambda: tn.stack([]), ValueError,
                                              "values is an empty list; needed is at least one"),
                                             (lambda: tn.concat(1, [A, A]), TypeError,
                                              "a list of tensors and then the axis"),
                                             (lambda: tn.concat(1, tn.constant(A)), ValueError,
                                              "has dtype float32, needed is one of"),
                                             (lambda: tn.concat([A], 3), ValueError,
                                              r"axis = 3 not in \[-3, 3\)"),
                                             (lambda: tn.concat([A], -4), ValueError,
                                              r"axis = -4 not in \[-3, 3\)"),
                                             (lambda: tn.concat([A], tn.constant(3)), ValueError,
                                              r"3 is not in \[-3, 3\)"),
                                             (lambda: tn.concat([A], 1.0), ValueError,
                                              "needed is one of int32, int64"),
                                             (lambda: tn.concat([], 0), ValueError,
                                              "values is an empty list; needed is at least one"),
                                             (lambda: tn.constant([1, 2, 3], shape=[2]), ValueError,
                                              "Too many elements provided. Needed at most 2, but "
                                              "received 3"),
                                             (lambda: tn.constant([1, 2], shape=[None]), ValueError,
                                              "must be fully known"),
                                             (lambda: tn.zeros([-1]), ValueError, "-1"),
                                             (lambda: tn.zeros([2**62, 2**62]), ValueError,
                                              "overflow|2\\^63|exceeds|4611686018427387904"),
                                             (lambda: tn.placeholder(tn.float32, [2**62, 4]),
                                              ValueError, "4611686018427387904"),
                                             (lambda: tn.placeholder(tn.float32, [-5]), ValueError,
                                              "-5"),
                                             (lambda: tn.placeholder(tn.float32, (-1, 10)),
                                              ValueError, "must be at least 0, or None"),
                                             (lambda: tn.placeholder(tn.float32, -1), ValueError,
                                              "must be at least 0, or None"),
                                             (lambda: tn.placeholder_with_default(A, [-1, 3, 4]),
                                              ValueError, "must be at least 0, or None"),
                                             (lambda: tn.sparse_placeholder(tn.float32, [-1, 3]),
                                              ValueError, "must be at least 0"),
                                             (lambda: tn.constant(A).set_shape([-1, 3, 4]),
                                              ValueError, "must be at least 0, or None"),
                                             (lambda: tn.placeholder(tn.float32, "ab"), TypeError,
                                              "must be a shape"),
                                             (lambda: tn.placeholder(tn.float32, [1] * 33),
                                              ValueError, "rank 33 is above 32"),
                                             (lambda: tn.one_hot([1], -1), ValueError, "-1"),
                                             (lambda: tn.transpose(A, [0, 0, 1]), ValueError,
                                              "perm"),
                                             (lambda: tn.argsort(A, -4), ValueError,
                                              r"axis = -4 is not in \[-3, 3\)"),
                                             (lambda: tn.sort(A, "0"), TypeError,
                                              "axis must be an integer"),
                                             (lambda: tn.sort(A, direction="UP"), ValueError,
                                              "direction must be")])
def test_what_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_iteration_truth_and_length_are_refused():
    x = tn.constant(A)
    for call in (lambda: iter(x), lambda: bool(x), lambda: len(x), lambda: int(x), lambda: float(x),
                 lambda: x in [1],):
        try:
            call()
        except TypeError as error:
            assert "ymbolic Tensor" in str(error) or "not allowed" in str(error)
        else:
            assert call() is False  # `in` compares identity
    with pytest.raises(NotImplementedError, match="Cannot convert a symbolic Tensor"):
        np.array(x)


def test_static_values_flow_through_shape_arithmetic():
    x = tn.placeholder(tn.float32, [None, 6])
    n = tn.shape(x)
    y = tn.reshape(x, tn.stack([n[0], 2, 3]))
    assert y.shape.as_list() == [None, 2, 3]
    assert tn.reshape(x, [-1, tn.shape(x)[1]]).shape.as_list() == [None, 6]
    assert tn.zeros(tn.shape(tn.zeros([2, 3]))).shape == [2, 3]


def test_functions_for_every_registered_op():
    assert "MatMul" in dir(tn.raw_ops) and "mat_mul" in dir(tn.raw_ops)
    assert tn.raw_ops.MatMul is tn.raw_ops.mat_mul and tn.raw_ops.MatMul.op_name == "MatMul"
    for name in dir(tn.raw_ops):
        function = getattr(tn.raw_ops, name)
        assert callable(function) and function.__doc__
    with pytest.raises(AttributeError, match="raw_ops' has no attribute 'Nothing'"):
        tn.raw_ops.Nothing
    import inspect
    assert str(inspect.signature(tn.raw_ops.MatMul)) == (
        "(a, b, transpose_a=False, transpose_b=False, name=None)")
    for call, text in ((lambda: tn.raw_ops.Add(1.0), "misses the argument 'y'"),
                       (lambda: tn.raw_ops.Add(1.0, 2.0, z=3), "unexpected keyword argument 'z'"),
                       (lambda: tn.raw_ops.Add(1.0, x=2.0), "several values for 'x'"),
                       (lambda: tn.raw_ops.Relu(1.0, "n", 3), "at most 2 positional")):
        with pytest.raises(TypeError, match=text):
            call()


@pytest.mark.parametrize("shape,mask,axis", [((4, 2), (3,), 0), ((4, 2), (5,), 0),
                                             ((4, 2), (2, 4), 0), ((4, 2), (1,), 1),
                                             ((6, 2), (3, 4), 0)])
def test_masks_of_another_shape_are_refused_at_run_time(shape, mask, axis, evaluate):
    x = tn.placeholder(tn.float32)
    m = tn.placeholder(tn.bool, [None] * len(mask))
    with pytest.raises(tn.errors.InvalidArgumentError, match="boolean_mask"):
        evaluate(tn.boolean_mask(x, m, axis=axis), {x: np.zeros(shape), m: np.ones(mask, bool)})


@pytest.mark.parametrize("shape,axes,axis", [((4, 2), 1, 0), ((4, 2), 2, 0), ((2, 3, 4), 2, 1),
                                             ((0, 2), 1, 0)])
def test_masks_of_unknown_shape(shape, axes, axis, evaluate, rng):
    array = rng.rand(*shape).astype(np.float32)
    chosen = rng.rand(*shape[axis:axis + axes]) > 0.5
    x, m = tn.placeholder(tn.float32), tn.placeholder(tn.bool, [None] * axes)
    np.testing.assert_array_equal(evaluate(tn.boolean_mask(x, m, axis=axis), {x: array, m: chosen}),
                                  array[(slice(None),) * axis + (chosen,)])


@pytest.mark.parametrize("values", [[0, 3, 0, -1], [[0.0, -0.0], [np.nan, 2.5]], [1 + 0j, 0j],
                                    [True, False], np.array([0, 255], np.uint8)])
def test_where_of_numbers(values, evaluate):
    np.testing.assert_array_equal(evaluate(tn.where(values)), np.argwhere(values))
    assert tn.where(tn.constant(values)).shape.as_list() == [None, np.ndim(values)]


@pytest.mark.parametrize("shape", [[0], [2, 0], [0, 3]])
def test_empty_constants_of_a_scalar(shape, evaluate):
    empty = evaluate(tn.constant(1.0, shape=shape))
    assert empty.shape == tuple(shape) and empty.dtype == np.float32
    with pytest.raises(ValueError, match="Too many elements"):
        tn.constant([1.0], shape=shape)


def test_space_to_batch_of_images(evaluate):
    images = np.arange(24.0).reshape(1, 4, 6, 1)
    spread = tn.space_to_batch(images, [[0, 0], [0, 0]], 2)
    assert spread.shape.as_list() == [4, 2, 3, 1]
    wanted = [images[0, i::2, j::2] for i in (0, 1) for j in (0, 1)]
    np.testing.assert_array_equal(evaluate(spread), wanted)
    np.testing.assert_array_equal(evaluate(tn.batch_to_space(spread, [[0, 0], [0, 0]], 2)), images)
    np.testing.assert_array_equal(evaluate(tn.batch_to_space(spread, [[1, 0], [0, 2]], 2)),
                                  images[:, 1:, :-2])
    padded = tn.space_to_batch(images[:, :3, :5], [[0, 1], [1, 0]], block_size=2)
    assert evaluate(padded).shape == (4, 2, 3, 1)
    for size in 1, 2.0, None:
        with pytest.raises(ValueError, match="block_size must be"):
            tn.space_to_batch(images, [[0, 0], [0, 0]], size)


# Longer than what the shape rules pass on from op to op: 4,096 elements.
LONG = 5000


@pytest.mark.parametrize("given", ["constant", "fed"])
@pytest.mark.parametrize("name, call, message", [
    ("Roll", lambda x, v: tn.roll(x, tn.zeros([LONG], tn.int32), v), "axis = 100 is not in"),
    ("Reverse", lambda x, v: tn.reverse(x, v), "axis = 100 is not in|at most 32 numbers"),
    ("Sum", lambda x, v: tn.reduce_sum(x, v), "axis = 100 is not in|at most 32 numbers"),
    ("ReduceJoin", lambda x, v: tn.reduce_join(tn.as_string(x), v), "axis = 100 is not in"),
    ("SplitV", lambda x, v: tn.split(tn.reshape(x, [-1]), v, num=LONG), "Determined shape must"),
    ("Transpose", lambda x, v: tn.transpose(x, v), "vector of size 2|at most 32"),
    ("Tile", lambda x, v: tn.tile(x, v), "length 2|at most 32")])
def test_long_lists_of_axes_are_looked_at_whole(name, call, message, given):
    x = tn.placeholder(tn.float32, [4, 4] if given == "constant" else None)
    values = np.full(LONG, 100, np.int32)
    feeds = {x: np.ones((4, 4))}
    v = tn.constant(values)
    if given == "fed":
        v = tn.placeholder(tn.int32, [LONG])
        feeds[v] = values
    with pytest.raises((ValueError, tn.errors.InvalidArgumentError), match=message):
        with tn.Session() as sess:
            sess.run(call(x, v), feeds)


def test_a_split_into_many_parts(evaluate):
    x = tn.placeholder(tn.float32, [2 * LONG])
    sizes = np.arange(LONG) % 4
    sizes[-1] += 2 * LONG - sizes.sum()
    parts = tn.split(x, tn.constant(sizes.astype(np.int32)))
    assert parts[2].shape.as_list() == [2] and len(parts) == LONG
    value = np.arange(2 * LONG, dtype=np.float32)
    found = evaluate(parts + tn.gradients([parts[2], parts[-1]], x), {x: value})
    assert np.array_equal(np.concatenate(found[:-1]), value)
    starts = np.cumsum(sizes) - sizes
    wanted = np.zeros(2 * LONG)
    for part in (2, LONG - 1):
        wanted[starts[part]:starts[part] + sizes[part]] = 1
    assert np.array_equal(found[-1], wanted)


@pytest.mark.parametrize("wanted", [[1000], [2], [], [3, 1], [-1, 2], [-1, 3]])
def test_what_is_counted_when_it_is_there_keeps_its_elements(wanted):
    """A reshape of a value whose shape no rule can tell before the run."""
    x = tn.placeholder(tn.float32, [None])
    picked = tn.boolean_mask(x, x > 0.5)
    shaped = tn.reshape(picked, wanted)
    fetches = [shaped, tn.reshape(shaped, [-1]) + 1.0, tn.expand_dims(shaped, 0)]
    value = np.array([0.9, 0.1, 0.8, 0.7], np.float32)
    for fetch in fetches:
        with tn.Session() as sess:
            for _ in range(2):
                if wanted in ([3, 1], [-1, 3]):
                    assert np.allclose(np.ravel(sess.run(fetch, {x: value})) % 1,
                                       [0.9, 0.8, 0.7], atol=1e-6)
                    continue
                with pytest.raises(tn.errors.InvalidArgumentError, match="with 3 values|multiple"):
                    sess.run(fetch, {x: value})
