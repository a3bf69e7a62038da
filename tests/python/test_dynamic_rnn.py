# SPDX-License-Identifier: Apache-2.0
"""dynamic_rnn over cells without an op of their own, against the recurrence in NumPy."""

import numpy as np
import pytest

import treenail as tn

UNITS, SIZE = 3, 2
CELLS = tn.nn.rnn_cell


def recurrence(x, h, kernel, bias, lengths):
    """BasicRNNCell over x [time, batch, size]: (outputs, final state), a row at a time."""
    time, batch, _ = x.shape
    outputs, last = np.zeros((time, batch, h.shape[1])), h.copy()
    for row in range(batch):
        for t in range(min(lengths[row], time)):
            last[row] = np.tanh(np.concatenate([x[t, row], last[row]]) @ kernel + bias)
            outputs[t, row] = last[row]
    return outputs, last


def with_weights(session, rng):
    for v in tn.trainable_variables():
        session.run(v.assign(rng.uniform(-1, 1, v.shape.as_list())))
    return [session.run(v) for v in tn.trainable_variables()]


def ran(fetches, feeds, rng):
    """(values, weights): all variables are set to random numbers."""
    with tn.Session() as session:
        weights = with_weights(session, rng)
        return session.run(fetches, feeds), weights


@pytest.mark.parametrize("lengths", [None, [5, 5, 5, 5], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 5, 3],
                                     [9, 0, 7, 2], [-1, 2, -4, 0]])
@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_against_the_recurrence(rng, lengths, time_major, known):
    x, h = rng.uniform(-1, 1, (5, 4, SIZE)), rng.uniform(-1, 1, (4, UNITS))
    fed = x if time_major else np.swapaxes(x, 0, 1)
    given = tn.placeholder(tn.float64, fed.shape if known else [None, None, SIZE])
    rows = None if lengths is None else tn.placeholder(tn.int32, [None])
    outputs, state = tn.nn.dynamic_rnn(CELLS.BasicRNNCell(UNITS), given, rows, tn.constant(h),
                                       time_major=time_major)
    assert outputs.shape.as_list() == ([*fed.shape[:2], UNITS] if known else [
        None if time_major else 4, 4 if time_major else None, UNITS])
    feeds = {given: fed} if rows is None else {given: fed, rows: lengths}
    (found, last), (kernel, bias) = ran([outputs, state], feeds, rng)
    wanted, wanted_last = recurrence(x, h, kernel, bias, lengths or [5] * 4)
    np.testing.assert_allclose(found if time_major else np.swapaxes(found, 0, 1), wanted,
                               rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(last, wanted_last, rtol=1e-12)


def test_one_graph_for_any_time_and_batch(rng):
    given, rows = tn.placeholder(tn.float64, [None, None, SIZE]), tn.placeholder(tn.int64, [None])
    outputs, state = tn.nn.dynamic_rnn(CELLS.BasicRNNCell(UNITS), given, rows, dtype=tn.float64,
                                       time_major=True)
    loss = tn.reduce_sum(outputs ** 2) + tn.reduce_sum(state)
    gradients = tn.gradients(loss, tn.trainable_variables())
    with tn.Session() as session:
        kernel, bias = with_weights(session, rng)
        for time, batch in ((4, 3), (1, 1), (0, 2), (3, 0), (0, 0), (7, 2)):
            x, lengths = rng.uniform(-1, 1, (time, batch, SIZE)), rng.randint(0, time + 1, batch)
            found, last, d_kernel, d_bias = session.run([outputs, state] + gradients,
                                                        {given: x, rows: lengths})
            wanted, wanted_last = recurrence(x, np.zeros((batch, UNITS)), kernel, bias, lengths)
            assert found.shape == (time, batch, UNITS)
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)
            np.testing.assert_allclose(last, wanted_last, rtol=1e-12, atol=1e-15)
            if not lengths.any():
                assert not d_kernel.any() and not d_bias.any()


def test_gradients_against_finite_differences(rng):
    x = tn.constant(rng.uniform(-1, 1, (2, 4, SIZE)))
    outputs, state = tn.nn.dynamic_rnn(CELLS.BasicRNNCell(UNITS), x, [4, 2], dtype=tn.float64)
    loss = tn.reduce_sum(outputs * rng.rand(2, 4, UNITS)) + tn.reduce_sum(state ** 2)
    kernel = tn.trainable_variables()[0]
    gradient, = tn.gradients(loss, [kernel])
    again, = tn.gradients(tn.reduce_sum(gradient ** 2), [kernel])
    with tn.Session() as session:
        at = with_weights(session, rng)[0]

        def differences(fetch):
            slopes = np.zeros_like(at)
            for place in np.ndindex(*at.shape):
                step = np.zeros_like(at)
                step[place] = 1e-5
                slopes[place] = (moved(fetch, at + step) - moved(fetch, at - step)) / 2e-5
            moved(fetch, at)
            return slopes

        def moved(fetch, value):
            session.run(kernel.assign(value))
            return session.run(fetch)
        found, second = session.run([gradient, again])
        np.testing.assert_allclose(found, differences(loss), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(second, differences(tn.reduce_sum(gradient ** 2)), rtol=1e-6,
                                   atol=1e-8)


# --- Nests ----------------------------------------------------------------------------------------

class Pair(CELLS.RNNCell):
    """Two running sums, of two inputs, and how many steps there were."""

    state_size = {"sums": (SIZE, tn.TensorShape([2, 2])), "steps": 1}
    output_size = (tn.TensorShape([2, 2]), SIZE)

    def call(self, inputs, state):
        weight = tn.get_variable("weight", [], tn.float64, tn.constant_initializer(2.0))
        a, b = state["sums"]
        a, b = a + inputs["a"] * weight, b + inputs["b"]
        return (b * 10, a), {"sums": (a, b), "steps": state["steps"] + 1}


@pytest.mark.parametrize("time_major", [False, True])
def test_nested_inputs_states_and_outputs(rng, evaluate, time_major):
    axis = 0 if time_major else 1
    a, b = rng.rand(4, 3, SIZE), rng.rand(4, 3, 2, 2)
    inputs = {"a": np.moveaxis(a, 0, axis), "b": np.moveaxis(b, 0, axis)}
    (first, second), state = tn.nn.dynamic_rnn(Pair(), inputs, [4, 0, 2], dtype=tn.float64,
                                               time_major=time_major)
    on = np.arange(4)[:, None] < [4, 0, 2]
    sums_a = np.cumsum(2 * a * on[..., None], 0)
    sums_b = np.cumsum(b * on[..., None, None], 0)
    found = evaluate([first, second, state["sums"][0], state["sums"][1], state["steps"]])
    np.testing.assert_allclose(np.moveaxis(found[0], axis, 0),
                               10 * sums_b * on[..., None, None])
    np.testing.assert_allclose(np.moveaxis(found[1], axis, 0), sums_a * on[..., None])
    np.testing.assert_allclose(found[2], sums_a[-1])
    np.testing.assert_allclose(found[3], sums_b[-1])
    assert found[4].ravel().tolist() == [4, 0, 2]
    assert [v.op.name for v in tn.global_variables()] == ["rnn/pair/weight"]


@pytest.mark.parametrize("lengths", [None, [3, 1]])
def test_nests_in_two_directions(rng, evaluate, lengths):
    a, b = rng.rand(2, 3, SIZE), rng.rand(2, 3, 2, 2)
    cells = [Pair(), Pair()]
    outputs, state = tn.nn.bidirectional_dynamic_rnn(*cells, {"a": a, "b": b}, lengths,
                                                     dtype=tn.float64)
    steps = [{"a": tn.constant(a[:, t]), "b": tn.constant(b[:, t])} for t in range(3)]
    joined, *states = tn.nn.static_bidirectional_rnn(*cells, steps, dtype=tn.float64,
                                                     sequence_length=lengths)
    for part in (0, 1):
        found, wanted = evaluate([tn.concat([outputs[0][part], outputs[1][part]], 2),
                                  tn.stack([y[part] for y in joined], 1)])
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    for ours, theirs in zip(state, states):
        ours, theirs = evaluate([ours, theirs])
        np.testing.assert_allclose(ours["sums"][0], theirs["sums"][0], rtol=1e-12)


class Counter(CELLS.RNNCell):
    """Counts steps in a state of another dtype than the outputs, in a scalar, and in an array."""

    state_size = (1, 1)
    output_size = 1

    def zero_state(self, batch_size, dtype):
        return tn.zeros([batch_size, 1], tn.int32), tn.constant(0)

    def call(self, inputs, state):
        return inputs * 2, (state[0] + 1, state[1] + 1)


def test_what_has_no_rows_goes_on_behind_the_lengths(evaluate):
    outputs, (counts, scalar) = tn.nn.dynamic_rnn(Counter(), tn.ones([2, 5, 1]), [1, 4],
                                                  dtype=tn.float32)
    found = evaluate([outputs, counts, scalar])
    assert found[0].sum(1).ravel().tolist() == [2, 8]
    assert found[1].ravel().tolist() == [1, 4] and found[2] == 4  # no step behind the longest


# --- What belongs to a cell -----------------------------------------------------------------------

def test_losses_and_dropout_in_a_loop(evaluate):
    with tn.variable_scope("rnn", regularizer=tn.regularizers.l2(0.5)):
        cell = CELLS.DropoutWrapper(CELLS.BasicRNNCell(200), output_keep_prob=0.5)
    outputs, _ = tn.nn.dynamic_rnn(cell, tn.ones([2, 6, 3]), dtype=tn.float32)
    dropped = evaluate(outputs) == 0
    assert 0.4 < dropped.mean() < 0.6
    assert not (dropped[:, 0] == dropped[:, 1]).all()


def test_losses_of_variables_are_of_the_graph_around(evaluate):
    with tn.variable_scope("net", regularizer=tn.regularizers.l2(0.5)):
        tn.nn.dynamic_rnn(CELLS.BasicRNNCell(4), tn.ones([2, 6, 3]), dtype=tn.float32)
    loss, kernel = evaluate([tn.losses.get_regularization_losses()[0], tn.trainable_variables()[0]])
    np.testing.assert_allclose(loss, 0.25 * (kernel ** 2).sum(), rtol=1e-5)


def test_a_cell_is_used_again_with_its_variables(rng):
    cell, x = CELLS.BasicRNNCell(UNITS), tn.constant(rng.rand(2, 3, SIZE))
    tn.nn.dynamic_rnn(cell, x, dtype=tn.float64)
    tn.nn.dynamic_rnn(cell, x, dtype=tn.float64)
    with tn.variable_scope(tn.get_variable_scope(), reuse=True):
        tn.nn.dynamic_rnn(CELLS.BasicRNNCell(UNITS), x, dtype=tn.float64)
    assert [v.op.name for v in tn.global_variables()] == ["rnn/basic_rnn_cell/kernel",
                                                          "rnn/basic_rnn_cell/bias"]


@pytest.mark.parametrize("make", [lambda: CELLS.GRUCell(UNITS), lambda: CELLS.BasicRNNCell(UNITS)])
def test_it_trains(make):
    """The sum of a sequence's numbers, of lengths that differ."""
    x, rows = tn.placeholder(tn.float32, [None, None, 1]), tn.placeholder(tn.int32, [None])
    tn.set_random_seed(1)
    _, state = tn.nn.dynamic_rnn(make(), x, rows, dtype=tn.float32)
    sums = tn.reduce_sum(x[:, :, 0] * tn.sequence_mask(rows, tn.shape(x)[1], tn.float32), 1)
    loss = tn.reduce_mean(tn.squared_difference(tn.layers.dense(state, 1)[:, 0], sums))
    train = tn.train.AdamOptimizer(0.02).minimize(loss)
    rng, losses = np.random.RandomState(2), []
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        for step in range(200):
            steps = 2 + step % 4
            feeds = {x: rng.uniform(-1, 1, (16, steps, 1)), rows: rng.randint(0, steps + 1, 16)}
            losses.append(session.run([loss, train], feeds)[0])
    assert np.mean(losses[-20:]) < 0.2 * np.mean(losses[:20])


# --- Misuse ---------------------------------------------------------------------------------------

def basic(inputs, lengths=None, state=None, dtype=tn.float32, **more):
    return tn.nn.dynamic_rnn(CELLS.BasicRNNCell(UNITS), inputs, lengths, state, dtype, **more)


def p(*shape):
    return tn.placeholder(tn.float32, shape)


@pytest.mark.parametrize("make, message", [
    (lambda: basic(p(2, 3, SIZE), dtype=None), "no initial_state, you must give a dtype"),
    (lambda: basic(p(2, 3, None)), r"must be accessible .* saw value None in shape \(3, 2, \?\)"),
    (lambda: basic(tn.placeholder(tn.float32)), "known rank of at least 2, their shape is <unk"),
    (lambda: basic(p(3)), r"known rank of at least 2, their shape is \(3,\)"),
    (lambda: basic(()), "inputs must be a tensor or a nest of tensors"),
    (lambda: basic((p(2, 3, 1), p(2, 4, 1))), r"Time steps is not the same .*\(3, 2, 1\) and \(4"),
    (lambda: basic((p(2, 3, 1), p(5, 3, 1))), r"batch_size is not the same .*\(3, 2, 1\) and \(3"),
    (lambda: basic(p(2, 3, 1), [[1, 2]]), r"must be a vector .* saw shape: \(1, 2\)"),
    (lambda: basic(p(2, 3, 1), [1, 2, 3]), r"which is 2, but saw shape: \(3,\)"),
    (lambda: basic(p(2, 3, 1), state=tn.zeros([2, UNITS + 1])), r"a is \[2,5\], b is \[4,3\]"),
    (lambda: basic(p(2, 3, 1), state=(tn.zeros([2, 1]),) * 2), "nested structure|shape"),
    (lambda: tn.nn.dynamic_rnn(Counter(), p(2, 3, 1), None, (tn.zeros([2, 1]), tn.constant(0))),
     "different inferred_dtypes.*float32, int32"),
    (lambda: basic(p(2, 3, 1), state=tn.zeros([2, UNITS]), dtype=tn.float64), "float64"),
])
def test_misuse(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("make, message", [
    (lambda: tn.nn.dynamic_rnn("GRU", p(2, 3, 1), dtype=tn.float32), "not an RNNCell: 'GRU'"),
    (lambda: tn.nn.bidirectional_dynamic_rnn(CELLS.GRUCell(1), 3, p(2, 3, 1)), "cell_bw is not an"),
    (lambda: basic(p(2, 3, 1), parallel_iterations=2.5), "parallel_iterations must be a positive"),
])
def test_what_is_of_another_kind(make, message):
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize("cell", [CELLS.BasicRNNCell, CELLS.GRUCell])
@pytest.mark.parametrize("lengths", [[3], [1, 2, 3], []])
def test_lengths_of_another_number(rng, cell, lengths):
    x, rows = p(None, None, SIZE), tn.placeholder(tn.int32, [None])
    outputs, state = tn.nn.dynamic_rnn(cell(UNITS), x, rows, dtype=tn.float32)
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        with pytest.raises(tn.errors.InvalidArgumentError,
                           match="Expected shape for Tensor|Shapes of all inputs"):
            session.run([outputs, state], {x: np.zeros((2, 3, SIZE)), rows: lengths})
