# SPDX-License-Identifier: Apache-2.0
"""TensorShape."""

import pickle

import pytest

import treenail as tn

S = tn.TensorShape


def test_making():
    assert S([2, None]).as_list() == [2, None]
    assert S(3).as_list() == [3]
    assert S([]).ndims == 0
    assert S(None).ndims is None
    assert S(S([1])) == S([1]) == [1] and S((2, 3)) != S([3, 2]) and S(None) == S(None)
    with pytest.raises(ValueError, match="at least 0"):
        S([-1])
    with pytest.raises(TypeError, match="int or None"):
        S(["a"])
    with pytest.raises(ValueError, match="unknown TensorShape"):
        S(None).as_list()


def test_parts():
    s = S([2, None, 4])
    assert s[0] == 2
    assert s[1] is None
    assert s[-1] == 4
    assert s[1:] == [None, 4]
    assert len(s) == 3
    assert list(s) == [2, None, 4]
    assert S(None)[1] is None and S(None)[:2].as_list() == [None, None] and not S(None) and S([])
    with pytest.raises(ValueError):
        len(S(None))
    with pytest.raises(ValueError):
        iter(S(None))


def test_combining():
    assert S([2, None]).merge_with([None, 3]) == [2, 3]
    assert S([2]).concatenate(S([3])) == [2, 3]
    assert S([2]) + [3] == [2, 3]
    assert (S([2]) + S(None)).ndims is None
    assert S(None).with_rank(2) == [None, None]
    assert S([2, 3]).num_elements() == 6
    assert S([2, None]).num_elements() is None
    assert S([2, None]).is_compatible_with([2, 3]) and not S([2]).is_compatible_with([3])
    for broken in (lambda: S([2]).merge_with([3]), lambda: S([2]).with_rank(2),
                   lambda: S([2]).assert_has_rank(1 + 1),
                   lambda: S([None]).assert_is_fully_defined(),
                   lambda: S([2]).with_rank_at_least(2), lambda: S([2, 3]).with_rank_at_most(1),
                   lambda: S([2]).assert_same_rank([2, 3])):
        with pytest.raises(ValueError):
            broken()


def test_text_and_pickle():
    assert str(S([2, None])) == "(2, ?)"
    assert str(S([2])) == "(2,)"
    assert str(S(None)) == "<unknown>"
    assert str(S([])) == "()"
    assert repr(S([2, None])) == "TensorShape([2, None])"
    assert pickle.loads(pickle.dumps(S([2, None]))) == [2, None]


def test_broadcast():
    assert tn.broadcast_static_shape(S([2, 1]), S([3])) == [2, 3]
    assert tn.broadcast_static_shape(S([None, 1]), S([1, 5])) == [None, 5]
    with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
        tn.broadcast_static_shape(S([2]), S([3]))


def test_of_tensors():
    x = tn.placeholder(tn.float32, [None, 3])
    assert x.shape == [None, 3] and x.get_shape().as_list() == [None, 3]
    x.set_shape([5, None])
    assert x.shape.as_list() == [5, 3]
    with pytest.raises(tn.errors.InvalidArgumentError):
        x.set_shape([6, 3])
    assert tn.placeholder(tn.float32).shape.ndims is None
