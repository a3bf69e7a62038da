# SPDX-License-Identifier: Apache-2.0
"""tn.TensorArray, against NumPy and Python's own lists."""

import numpy as np
import pytest

import treenail as tn
from running import run

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def test_a_tensor_array_reads_what_was_written():
    array = tn.TensorArray(tn.float32, 3)
    assert array.dtype == tn.float32 and array.element_shape.rank is None
    array = array.write(1, [1.0, 2.0]).write(0, [3.0, 4.0])
    assert array.element_shape.as_list() == [2] and array.read(0).shape.as_list() == [2]
    got = run([array.read(1), array.stack(), array.size(), array.gather([1, 0])])
    assert got[0].tolist() == [1, 2] and got[2] == 3
    assert got[1].tolist() == [[3, 4], [1, 2], [0, 0]] and got[3].tolist() == [[1, 2], [3, 4]]
    assert array.flow.dtype == tn.variant and array.handle is array.flow


def test_the_rest_of_its_methods():
    array = tn.TensorArray(tn.float32, 1, clear_after_read=True, tensor_array_name="kept",
                           colocate_with_first_write_call=False, name="array")
    rows = array.unstack(X)
    np.testing.assert_array_equal(run(rows.identity().stack()), X)
    np.testing.assert_array_equal(run(rows.scatter([0, 5], X[2:]).stack()),
                                  [X[2], X[1], X[2], X[3], np.zeros(3), X[3]])
    parts = tn.TensorArray(tn.float32, 2, infer_shape=False).split(X, [1, 3])
    np.testing.assert_array_equal(run(parts.read(1)), X[1:])
    np.testing.assert_array_equal(run(parts.concat()), X)
    even = tn.TensorArray(tn.float32, 2).split(X, [2, 2])
    assert even.read(0).shape.as_list() == [2, 3]
    assert run(rows.close()) is None
    assert "element_shape=(3,)" in repr(rows)


def test_an_array_of_a_flow():
    flow = tn.TensorArray(tn.float32, 2).unstack(X).flow
    for array in (tn.TensorArray(tn.float32, flow=flow), tn.TensorArray(tn.float32, handle=flow)):
        np.testing.assert_array_equal(run(array.stack()), X)


@pytest.mark.parametrize("dynamic", [True, False])
def test_a_dynamic_array_grows(dynamic):
    array = tn.TensorArray(tn.int32, 0, dynamic_size=dynamic, element_shape=[])
    assert array.dynamic_size is dynamic
    array = array.write(3, 7).write(1, 5)
    if dynamic:
        assert run(array.stack()).tolist() == [0, 5, 0, 7]
    else:
        with pytest.raises(tn.errors.InvalidArgumentError, match="0 elements"):
            run(array.stack())


def test_shapes_of_elements_must_agree():
    array = tn.TensorArray(tn.float32, 3)
    array.write(0, [1.0])
    with pytest.raises(ValueError, match=r"Inconsistent shapes: saw \(2,\) but expected \(1,\)"):
        array.write(1, [1.0, 2.0])
    loose = tn.TensorArray(tn.float32, 2, infer_shape=False).write(0, [1.0]).write(1, [1.0, 2.0])
    assert run(loose.concat()).tolist() == [1, 1, 2]
    fixed = tn.TensorArray(tn.float32, 2, infer_shape=False, element_shape=[None])
    with pytest.raises(ValueError, match="Inconsistent shapes"):
        fixed.write(0, 1.0)


@pytest.mark.parametrize("build,error,message", [
    (lambda: tn.TensorArray(tn.float32), ValueError, "size or a flow"),
    (lambda: tn.TensorArray(tn.float32, 2, flow=tn.TensorArray(tn.float32, 1).flow), ValueError,
     "size or a flow"),
    (lambda: tn.TensorArray(tn.float32, flow=tn.ones([])), TypeError, "flow of a TensorArray"),
    (lambda: tn.TensorArray(tn.float32, 2).write(0, tn.ones([], tn.int32)), ValueError, "int32"),
    (lambda: tn.TensorArray(tn.float32, 2).write(0, "a"), (TypeError, ValueError), "float32|float"),
    (lambda: tn.TensorArray(tn.float32, 2).unstack(1.0), ValueError, "rank"),
    (lambda: tn.TensorArray(tn.float32, 2).grad("gradients"), NotImplementedError, "gradients"),
    (lambda: tn.TensorArray(tn.float32, 1.5), (TypeError, ValueError), "1.5|int32"),
    (lambda: tn.TensorArray("no dtype", 1), TypeError, "no dtype"),
])
def test_what_an_array_refuses(build, error, message):
    with pytest.raises(error, match=message):
        build()


def test_an_array_is_a_loop_variable():
    n = tn.placeholder(tn.int32, [])

    def body(i, state):
        return i + 1, {"total": state["total"] + i, "seen": state["seen"].write(i, state["total"])}
    _, state = tn.while_loop(lambda i, _: i < n, body, (0, {
        "total": 0, "seen": tn.TensorArray(tn.int32, n)}))
    stacked = state["seen"].stack()
    assert stacked.shape.as_list() == [None]
    assert run([stacked, state["total"]], {n: 5})[0].tolist() == [0, 0, 1, 3, 6]
    assert run(stacked, {n: 0}).tolist() == []


def test_an_array_stays_one_in_a_loop():
    array = tn.TensorArray(tn.int32, 3)
    with pytest.raises(TypeError, match="TensorArray stays one"):
        tn.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a.stack()), [0, array])
    with pytest.raises(TypeError, match="TensorArray stays one"):
        tn.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, array), [0, 1])


def test_shape_invariants_beside_an_array():
    array = tn.TensorArray(tn.float32, 3, infer_shape=False)
    _, x, array = tn.while_loop(
        lambda i, *_: i < 3, lambda i, x, a: (i + 1, tn.concat([x, x], 0), a.write(i, x)),
        [0, tn.ones([1]), array], shape_invariants=[[], [None], None])
    assert run([array.concat(), x])[0].shape == (7,)


@pytest.mark.parametrize("pred", [True, False])
def test_a_branch_gives_an_array(pred):
    p = tn.placeholder(tn.bool, [])
    array = tn.TensorArray(tn.float32, 2, element_shape=[]).write(0, 1.0)
    got = tn.cond(p, lambda: array.write(1, 2.0), lambda: array)
    assert isinstance(got, tn.TensorArray)
    assert run([got.stack(), array.stack()], {p: pred})[0].tolist() == [1, 2.0 if pred else 0]
    with pytest.raises((TypeError, ValueError)):
        tn.cond(p, lambda: array, lambda: tn.constant(1))


def test_programs_by_chance():
    """Writes, reads, pushes and branches, against Python's lists."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        arrays, models = [tn.TensorArray(tn.float32, 4, element_shape=[2])], [[np.zeros(2)] * 4]
        wanted, got = [], []
        for _ in range(30):
            at, i = int(random.integers(len(arrays))), int(random.integers(4))
            array, model = arrays[at], list(models[at])
            value = random.normal(size=2).astype(np.float32)
            if random.random() < 0.3:
                got.append(array.read(i) * 2.0)
                wanted.append(model[i] * 2)
                continue
            array = array.write(i, tn.placeholder_with_default(value, [2]) + 1.0)
            model[i] = value + np.float32(1)
            if random.random() < 0.4:
                arrays.append(array)
                models.append(model)
            else:
                arrays[at], models[at] = array, model
        got += [array.stack() for array in arrays]
        for value, expected in zip(run(got), wanted + [np.stack(m) for m in models]):
            np.testing.assert_array_equal(value, np.float32(expected))
        tn.reset_default_graph()
