# SPDX-License-Identifier: Apache-2.0
"""raw_rnn: dynamic_rnn written with it, and what only it can do."""

import numpy as np
import pytest

import treenail as tn

UNITS, SIZE, TIME, BATCH = 3, 2, 5, 4
CELLS = tn.nn.rnn_cell


def over(inputs, lengths, cell, dtype=tn.float64):
    """loop_fn of TensorFlow's documentation: dynamic_rnn over [time, batch, size]."""
    rows = tn.TensorArray(dtype, tn.shape(inputs)[0], element_shape=inputs.shape[1:]).unstack(
        inputs)

    def loop_fn(time, cell_output, cell_state, _loop_state):
        state = cell.zero_state(BATCH, dtype) if cell_output is None else cell_state
        finished = time >= lengths
        following = tn.cond(tn.reduce_all(finished), lambda: tn.zeros([BATCH, SIZE], dtype),
                            lambda: rows.read(time))
        return finished, following, state, cell_output, None
    return loop_fn


@pytest.mark.parametrize("lengths", [[5, 5, 5, 5], [1, 0, 5, 2], [1, 1, 0, 1], [0, 0, 0, 0]])
@pytest.mark.parametrize("make", [lambda: CELLS.BasicRNNCell(UNITS),
                                  lambda: CELLS.LSTMCell(UNITS, num_proj=UNITS)])
def test_as_dynamic_rnn(rng, lengths, make):
    x, cell = tn.constant(rng.uniform(-1, 1, (TIME, BATCH, SIZE))), make()
    emitted, state, loop_state = tn.nn.raw_rnn(cell, over(x, tn.constant(lengths), cell))
    assert loop_state is None and isinstance(emitted, tn.TensorArray)
    outputs, wanted = tn.nn.dynamic_rnn(cell, x, lengths, dtype=tn.float64, time_major=True)
    variables = tn.trainable_variables()
    ours, steps = emitted.stack(), max(lengths)
    weights = rng.rand(steps, BATCH, UNITS)
    losses = [tn.reduce_sum(outputs[:steps] * weights), tn.reduce_sum(ours * weights)]
    with tn.Session() as session:
        for v in variables:
            session.run(v.assign(rng.uniform(-1, 1, v.shape.as_list())))
        a = session.run([outputs, wanted, tn.gradients(losses[0], variables)])
        b = session.run([ours, state, tn.gradients(losses[1], variables)])
    assert len(b[0]) == steps
    np.testing.assert_array_equal(b[0], a[0][:steps])
    for one, other in zip(np.ravel(a[1]), np.ravel(b[1])):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(a[2], b[2]):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


class Adds(CELLS.RNNCell):
    """Adds its inputs up; its outputs are the sums."""

    state_size = output_size = 1

    def call(self, inputs, state):
        return state + inputs, state + inputs


def test_outputs_are_fed_back_until_rows_finish(evaluate):
    """Each row doubles from its own beginning until it is above 10."""
    first = tn.constant([[1.0], [3.0], [20.0]])

    def loop_fn(_time, output, state, loop_state):
        if output is None:
            return tn.constant([False, False, True]), first, tn.zeros([3, 1]), tn.zeros(
                [1], tn.int32), tn.constant(0)
        return (output[:, 0] > 10, output, state, tn.cast(output, tn.int32), loop_state + 1)
    emitted, state, count = tn.nn.raw_rnn(Adds(), loop_fn)
    assert emitted.dtype == tn.int32
    found, last, count = evaluate([emitted.stack(), state, count])
    # 1 + 0, then the sum of itself and the state: 1 2 4 8 16; 3 6 12
    assert found[..., 0].tolist() == [[1, 3, 0], [2, 6, 0], [4, 12, 0], [8, 0, 0], [16, 0, 0]]
    assert last[:, 0].tolist() == [16, 12, 0] and count == 5


def test_a_loop_state_may_be_an_array(evaluate):
    kept = tn.TensorArray(tn.float32, 0, dynamic_size=True, element_shape=[2, 1])

    def loop_fn(time, output, state, array):
        if output is None:
            return False, tn.ones([2, 1]), tn.zeros([2, 1]), None, (kept,)
        array, = array
        return time >= 3, tn.ones([2, 1]), state, output, (array.write(time - 1, state * 10),)
    emitted, _, (array,) = tn.nn.raw_rnn(Adds(), loop_fn)
    found = evaluate([emitted.stack(), array.stack()])
    assert found[0][:, 0, 0].tolist() == [1, 2, 3] and found[1][:, 1, 0].tolist() == [10, 20, 30]


def test_nests_are_emitted(evaluate):
    def loop_fn(time, output, state, _):
        emit = {"a": tn.zeros([2, 2]), "b": tn.constant("")}
        if output is not None:
            emit = {"a": tn.fill([2, 2, 2], tn.cast(time, tn.float32)),
                    "b": tn.constant(["x", "y"])}
        state = tn.zeros([2, 1]) if state is None else state
        return time >= tn.constant([1, 2]), tn.ones([2, 1]), state, emit, None
    emitted, _, _ = tn.nn.raw_rnn(Adds(), loop_fn)
    a, b = evaluate([emitted["a"].stack(), emitted["b"].stack()])
    assert a[:, :, 0, 0].tolist() == [[1, 1], [0, 2]]
    assert b.tolist() == [[b"x", b"y"], [b"", b"y"]]


def first(*returned):
    return lambda time, output, state, loop_state: returned


def then(**changed):
    """A loop_fn whose later answers differ in one value from what they should be."""
    def loop_fn(_time, output, state, _loop_state):
        answer = {"finished": False, "inputs": tn.ones([2, 1]), "state": state, "emit": output,
                  "loop": None}
        if output is None:
            answer.update(state=tn.zeros([2, 1]))
        else:
            answer.update(changed)
        return tuple(answer.values())
    return loop_fn


@pytest.mark.parametrize("loop_fn, message", [
    (first(1, 2), r"loop_fn must give \(finished, .*\), not \(1, 2\)"),
    (first(False, 1.0, (1, 2), None, None), "first state and cell.state_size"),
    (then(inputs=(1, 2)), "inputs and what loop_fn gives"),
    (then(state=(1, 2)), "the state and what loop_fn gives"),
    (then(emit=(1, 2)), "what is emitted first and then"),
    (then(emit=np.zeros([2, 3], np.float32)), r"saw \(2, 3\) but expected \(2, 1\)"),
    (then(state=np.zeros([2, 2], np.float32)), r"\(2, 1\) goes into the step, .* \(2, 2\)"),
    (then(inputs=np.ones([2, 5], np.float32)), r"\[2,5\]|\(2, 5\)"),
])
def test_misuse(loop_fn, message):
    with pytest.raises(ValueError, match=message):
        tn.nn.raw_rnn(Adds(), loop_fn)


def test_what_is_of_another_kind():
    with pytest.raises(TypeError, match="not an RNNCell: 'cell'"):
        tn.nn.raw_rnn("cell", then())
    with pytest.raises(TypeError, match="loop_fn must be a callable, not 3"):
        tn.nn.raw_rnn(Adds(), 3)
    with pytest.raises(TypeError, match="Expected bool, got 3.0"):
        tn.nn.raw_rnn(Adds(), then(finished=3.0))
