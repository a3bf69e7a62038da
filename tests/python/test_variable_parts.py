# SPDX-License-Identifier: Apache-2.0
"""Writing to parts of variables: v[...].assign, scatter_nd; values of other shapes."""

import numpy as np
import pytest

import treenail as tn


@pytest.fixture(name="sess")
def session():
    with tn.Session() as sess:
        yield sess


def made(sess, value, **options):
    v = tn.Variable(np.array(value, np.float32), **options)
    sess.run(v.initializer)
    return v


KEYS = [np.s_[1], np.s_[0, 2], np.s_[1:, ::2], np.s_[::-1], np.s_[..., -1], np.s_[...], np.s_[:, 1],
        np.s_[()]]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_assigning_a_part(sess, key):
    start = np.arange(12.0).reshape(3, 4)
    v = made(sess, start)
    wanted = start.copy()
    part = -1 - np.arange(wanted[key].size, dtype=np.float32).reshape(wanted[key].shape)
    wanted[key] = part
    np.testing.assert_array_equal(sess.run(v[key]), start[key])
    np.testing.assert_array_equal(sess.run(v[key].assign(part)), wanted)
    np.testing.assert_array_equal(sess.run(v), wanted)


def test_a_part_chosen_by_tensors(sess):
    v, i = made(sess, [1, 2, 3]), tn.placeholder(tn.int32, [])
    write = v[i:i + 2].assign([8.0, 9.0])
    np.testing.assert_array_equal(sess.run(write, {i: 1}), [1, 8, 9])
    np.testing.assert_array_equal(sess.run(write, {i: 0}), [8, 9, 9])


def test_a_part_in_order_with_other_accesses(sess):
    v = made(sess, [0, 0, 0])
    with tn.control_dependencies([v[1].assign(5.0)]):
        with tn.control_dependencies([v[0].assign(v[1] + 1)]):
            total = tn.reduce_sum(v)
    assert sess.run(total) == 11


def test_parts_that_cannot_be_assigned(sess):
    v = made(sess, [[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="the slice of the variable has shape"):
        v[0].assign([1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="a bool mask chooses cannot be assigned"):
        v[tn.constant([True, False])].assign([[1.0, 2.0]])
    with pytest.raises(AttributeError):
        tn.constant([1.0])[0].assign(2.0)


def test_scatter_nd(sess):
    """The examples of TensorFlow's documentation of scatter_nd_update, _add and _sub."""
    indices, updates = tn.constant([[4], [3], [1], [7]]), tn.constant([9.0, 10.0, 11.0, 12.0])
    for function, wanted in [(tn.scatter_nd_update, [1, 11, 3, 10, 9, 6, 7, 12]),
                             (tn.scatter_nd_add, [1, 13, 3, 14, 14, 6, 7, 20]),
                             (tn.scatter_nd_sub, [1, -9, 3, -6, -4, 6, 7, -4])]:
        v = made(sess, [1, 2, 3, 4, 5, 6, 7, 8])
        np.testing.assert_array_equal(sess.run(function(v, indices, updates)), wanted)
        np.testing.assert_array_equal(sess.run(v), wanted)
    v = made(sess, np.zeros((2, 3)))
    np.testing.assert_array_equal(sess.run(v.scatter_nd_update([[1, 2], [0, 0]], [5.0, 6.0])),
                                  [[6, 0, 0], [0, 0, 5]])
    np.testing.assert_array_equal(sess.run(v.scatter_nd_add([[1], [1]], np.ones((2, 3)))),
                                  [[6, 0, 0], [2, 2, 7]])
    with pytest.raises(tn.errors.InvalidArgumentError, match=r"indices\[0\] = \[2, 0\] does not"):
        sess.run(v.scatter_nd_sub([[2, 0]], [1.0]))


def test_two_scatters_of_one_run_both_count(sess):
    v = made(sess, np.zeros(3))
    sess.run([v.scatter_nd_add([[0]], [1.0]), v.scatter_nd_add([[0]], [2.0]), v[1].assign(4.0)])
    np.testing.assert_array_equal(sess.run(v), [3, 4, 0])


def test_values_of_other_shapes(sess):
    v = made(sess, [1, 2], validate_shape=False)
    twice, longer = v * 2, tn.assign(v, [[1.0, 2.0, 3.0]], validate_shape=False)
    np.testing.assert_array_equal(sess.run(twice), [2, 4])
    sess.run(longer)
    np.testing.assert_array_equal(sess.run(twice), [[2, 4, 6]])


@pytest.mark.parametrize("before", [True, False], ids=["run before", "first run"])
def test_a_variable_made_for_one_shape_takes_another_where_shapes_are_not_validated(sess, before):
    v = made(sess, [1, 2], name="fixed")
    twice, mean = v * 2, tn.reduce_mean(v)
    if before:
        np.testing.assert_array_equal(sess.run(twice), [2, 4])
    with pytest.raises(ValueError, match=r"Shapes \(2,\) of variable fixed and \(4,\)"):
        tn.assign(v, [1.0, 2.0, 3.0, 4.0])
    assert v.shape == [2]
    longer = tn.assign(v, [1.0, 2.0, 3.0, 6.0], validate_shape=False)
    assert longer.shape == [4] and v.shape.ndims is None and twice.shape == [2]
    np.testing.assert_array_equal(sess.run(twice), [2, 4])
    np.testing.assert_array_equal(sess.run(longer), [1, 2, 3, 6])
    np.testing.assert_array_equal(sess.run(twice), [2, 4, 6, 12])
    assert sess.run(mean) == 3
    given = tn.placeholder(tn.float32)
    late = tn.assign(v, given, validate_shape=False)
    np.testing.assert_array_equal(sess.run(late, {given: [[5.0], [7.0]]}), [[5], [7]])
    assert sess.run(mean) == 6
    np.testing.assert_array_equal(sess.run(v.read_value() + 1), [[6], [8]])
    now = v.read_value()
    slope, = tn.gradients(tn.reduce_sum(now * now), now)
    np.testing.assert_array_equal(sess.run(slope), [[10], [14]])
    sess.run(v.initializer)
    np.testing.assert_array_equal(sess.run(twice), [2, 4])


def test_a_value_of_the_same_shape_leaves_the_variable_its_shape(sess):
    v = made(sess, [1, 2])
    np.testing.assert_array_equal(sess.run(tn.assign(v, [3.0, 4.0], validate_shape=False)), [3, 4])
    assert v.shape == [2]
