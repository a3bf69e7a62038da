# SPDX-License-Identifier: Apache-2.0
"""tn.seq2seq's attention against plain NumPy."""

import numpy as np
import pytest

import treenail as tn

S = tn.seq2seq
BATCH, TIME, SIZE, UNITS, DEPTH = 3, 5, 4, 6, 6
LENGTHS = [5, 1, 3]


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def ran(fetches, rng, feeds=None):
    """(values, {last two parts of a name: weight}): all variables are set to random numbers."""
    with tn.Session() as session:
        for v in tn.global_variables():
            session.run(v.assign(rng.uniform(-1, 1, v.shape.as_list())))
        weights = {"/".join(v.op.name.split("/")[-2:]): session.run(v)
                   for v in tn.global_variables()}
        return session.run(fetches, feeds), weights


def test_hardmax(evaluate, rng):
    x = rng.rand(3, 4, 5)
    x[0, 0, 1:3] = 2
    wanted = np.eye(5)[x.argmax(-1)]
    for given in (tn.constant(x), tn.placeholder(tn.float64, [None, None, None])):
        result = S.hardmax(given)
        assert result.shape.as_list() == given.shape.as_list()
        with tn.Session() as session:
            np.testing.assert_array_equal(
                session.run(result, {given: x}), wanted)


@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("more", [False, True])
def test_the_additive_score(rng, lengths, more):
    memory, query = rng.rand(BATCH, TIME, SIZE), rng.rand(BATCH, DEPTH)
    mechanism = S.BahdanauAttention(UNITS, tn.constant(memory), lengths, normalize=more,
                                    dtype=tn.float64)
    alignments, state = mechanism(tn.constant(query), mechanism.initial_state(BATCH, tn.float64))
    assert alignments.shape.as_list() == [BATCH, TIME] and state is alignments
    (found, values), w = ran([alignments, mechanism.values], rng)
    inside = np.arange(TIME) < np.array(lengths or [TIME] * BATCH)[:, None]
    np.testing.assert_array_equal(values, memory * inside[..., None])
    v, bias, scope = w["bahdanau_attention/attention_v"], 0, "bahdanau_attention/attention_"
    if more:
        v, bias = w[scope + "g"] * v / np.linalg.norm(v), w[scope + "b"]
    keys = values @ w["memory_layer/kernel"]
    score = np.tanh(keys + (query @ w["query_layer/kernel"])[:, None] + bias) @ v
    np.testing.assert_allclose(found, softmax(np.where(inside, score, -np.inf)), rtol=1e-10)


@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("more", [False, True])
def test_the_multiplicative_score(rng, lengths, more):
    memory, query = rng.rand(BATCH, TIME, SIZE), rng.rand(BATCH, UNITS)
    given = tn.placeholder(tn.float64, [None, None, SIZE])
    mechanism = S.LuongAttention(UNITS, given, lengths, scale=more, dtype=tn.float64)
    alignments, _ = mechanism(tn.constant(query), mechanism.initial_state(BATCH, tn.float64))
    found, w = ran(alignments, rng, {given: memory})
    inside = np.arange(TIME) < np.array(lengths or [TIME] * BATCH)[:, None]
    keys = (memory * inside[..., None]) @ w["memory_layer/kernel"]
    score = np.einsum("bd,btd->bt", query, keys) * (w["luong_attention/attention_g"] if more else 1)
    np.testing.assert_allclose(found, softmax(np.where(inside, score, -np.inf)), rtol=1e-10)


def test_functions_of_ones_own(rng, evaluate):
    memory = tn.constant(rng.rand(BATCH, TIME, SIZE), tn.float32)
    mechanism = S.LuongAttention(
        UNITS, memory, probability_fn=S.hardmax,
        custom_key_value_fn=lambda keys, values: (keys * 0 + tn.range(5.0)[:, None], values * 2))
    alignments, _ = mechanism(tn.ones([BATCH, UNITS]), None)
    found, values = evaluate([alignments, mechanism.values])
    assert found.argmax(1).tolist() == [4] * BATCH and (found.sum(1) == 1).all()
    np.testing.assert_allclose(values, 2 * evaluate(memory))


# --- Monotonic ------------------------------------------------------------------------------------

def stops(p, previous):
    """The probability of stopping at each row: begin where the step before stopped, and at each row
    stop with its p or go on."""
    out = np.zeros_like(p)
    for b, k in np.ndindex(*p.shape):
        going = previous[b, k]
        for j in range(k, p.shape[1]):
            out[b, j] += going * p[b, j]
            going *= 1 - p[b, j]
    return out


@pytest.mark.parametrize("mode", ["recursive", "parallel"])
def test_monotonic_attention_is_a_walk(rng, evaluate, mode):
    p, previous = rng.rand(4, 7), softmax(rng.rand(4, 7))
    previous[0] = np.eye(7)[0]
    found = evaluate(S.monotonic_attention(p, previous, mode))
    np.testing.assert_allclose(found, stops(p, previous), rtol=1e-9)


def test_hard_monotonic_attention(rng, evaluate):
    p = rng.randint(0, 2, (20, 7)).astype(float)
    previous = np.eye(7)[rng.randint(0, 7, 20)]
    previous[0] = 0
    for mode in ("hard", "recursive"):
        found = evaluate(S.monotonic_attention(p, previous, mode))
        np.testing.assert_allclose(found, stops(p, previous), atol=1e-12)


def test_safe_cumprod(rng, evaluate):
    x = rng.rand(3, 5)
    for options in ({}, {"exclusive": True}, {"reverse": True}):
        np.testing.assert_allclose(evaluate(S.safe_cumprod(x, axis=1, **options)),
                                   evaluate(tn.cumprod(x, axis=1, **options)), rtol=1e-12)
    x[:, 1:3] = 0
    given = tn.constant(x)
    value, (gradient,) = evaluate([S.safe_cumprod(given, 1), tn.gradients(
        S.safe_cumprod(given, 1), given)])
    np.testing.assert_allclose(value, np.cumprod(x, 1), atol=1e-300)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("mode", ["recursive", "parallel", "hard"])
@pytest.mark.parametrize("make", [S.BahdanauMonotonicAttention, S.LuongMonotonicAttention])
def test_monotonic_mechanisms_go_forwards(rng, make, mode):
    memory = tn.constant(rng.rand(BATCH, TIME, SIZE))
    mechanism = make(UNITS, memory, LENGTHS, score_bias_init=-0.5, mode=mode, dtype=tn.float64)
    state = mechanism.initial_state(BATCH, tn.float64)
    plain = (S.BahdanauAttention if "Bahdanau" in make.__name__ else S.LuongAttention)
    steps = [state]
    for step in range(3):
        with tn.variable_scope(tn.get_variable_scope(), reuse=step > 0):
            with tn.variable_scope("step"):
                alignments, state = mechanism(tn.constant(rng.rand(BATCH, UNITS)), state)
        steps.append(alignments)
    found, w = ran(steps, rng)
    assert [v for v in w if v.endswith("attention_score_bias")] and plain is not make
    places = [np.where(a.sum(1) > 0, (a * np.arange(TIME)).sum(1) / np.maximum(a.sum(1), 1e-9),
                       TIME) for a in found]
    assert (found[0] == np.eye(TIME)[0]).all()
    for before, after, alignments in zip(places, places[1:], found[1:]):
        assert (alignments >= 0).all() and (alignments.sum(1) <= 1 + 1e-9).all()
        assert not (alignments * (np.arange(TIME) >= np.array(LENGTHS)[:, None])).any()
        if mode == "hard":
            assert (after >= before).all()


def test_noise_and_where_the_bias_begins(evaluate):
    memory = tn.zeros([2, 400, SIZE])
    mechanism = S.LuongMonotonicAttention(UNITS, memory, sigmoid_noise=3.0, sigmoid_noise_seed=1,
                                          score_bias_init=2.0, mode="hard")
    alignments, _ = mechanism(tn.zeros([2, UNITS]), mechanism.initial_alignments(2, tn.float32))
    bias, = [v for v in tn.global_variables() if v.op.name.endswith("score_bias")]
    assert evaluate(bias) == 2 and evaluate(alignments).sum() == 2


# --- AttentionWrapper -----------------------------------------------------------------------------

def wrapped(memory, lengths=None, **more):
    mechanism = S.LuongAttention(UNITS, memory, lengths, dtype=tn.float64)
    return S.AttentionWrapper(tn.nn.rnn_cell.BasicRNNCell(UNITS), mechanism, **more)


@pytest.mark.parametrize("output_attention", [True, False])
@pytest.mark.parametrize("layer", [None, 3])
def test_a_wrapped_cell(rng, layer, output_attention):
    """A recurrence in NumPy, through dynamic_rnn, with all alignments."""
    memory, x = rng.rand(BATCH, TIME, SIZE), rng.rand(BATCH, 4, 2)
    given = tn.placeholder(tn.float64, [None, None, SIZE])
    cell = wrapped(given, LENGTHS, attention_layer_size=layer, alignment_history=True,
                   output_attention=output_attention)
    outputs, state = tn.nn.dynamic_rnn(cell, tn.constant(x), dtype=tn.float64)
    width = layer or SIZE
    assert cell.output_size == (width if output_attention else UNITS)
    (found, last, history), w = ran([outputs, state.cell_state, state.alignment_history.stack()],
                                    rng, {given: memory})
    inside = np.arange(TIME) < np.array(LENGTHS)[:, None]
    values = memory * inside[..., None]
    keys = values @ w["memory_layer/kernel"]
    h, attention = np.zeros((BATCH, UNITS)), np.zeros((BATCH, width))
    for t in range(4):
        h = np.tanh(np.concatenate([x[:, t], attention, h], 1) @ w["basic_rnn_cell/kernel"]
                    + w["basic_rnn_cell/bias"])
        a = softmax(np.where(inside, np.einsum("bd,btd->bt", h, keys), -np.inf))
        attention = np.einsum("bt,btd->bd", a, values)
        if layer:
            attention = np.concatenate([h, attention], 1) @ w["attention_layer/kernel"]
        np.testing.assert_allclose(history[t], a, rtol=1e-9)
        np.testing.assert_allclose(found[:, t], attention if output_attention else h, rtol=1e-9)
    np.testing.assert_allclose(last, h, rtol=1e-9)
    assert len(cell.trainable_variables) == 3 + bool(layer)


def test_a_loop_has_the_gradients_of_the_unrolled_cell(rng):
    memory, x = tn.constant(rng.rand(BATCH, TIME, SIZE)), tn.constant(rng.rand(BATCH, 4, 2))
    cell = wrapped(memory, [4, 1, 5], attention_layer_size=UNITS)
    outputs, state = tn.nn.dynamic_rnn(cell, x, [4, 0, 2], dtype=tn.float64)
    parts, last = tn.nn.static_rnn(cell, tn.unstack(x, axis=1), dtype=tn.float64,
                                   sequence_length=[4, 0, 2])
    variables, results = tn.trainable_variables() + [memory], []
    for ys, end in ((outputs, state), (tn.stack(parts, 1), last)):
        loss = tn.reduce_sum(ys ** 2) + tn.reduce_sum(end.cell_state) + tn.reduce_sum(
            end.attention * 3)
        results.append([ys, end.cell_state, end.alignments] + tn.gradients(loss, variables))
    (found, wanted), _ = ran(results, rng)
    for a, b in zip(found, wanted):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_two_mechanisms(rng):
    memories = [tn.constant(rng.rand(BATCH, t, SIZE)) for t in (TIME, 2)]
    cell = S.AttentionWrapper(
        tn.nn.rnn_cell.GRUCell(UNITS),
        [S.LuongAttention(UNITS, memories[0], dtype=tn.float64),
         S.BahdanauMonotonicAttention(4, memories[1], dtype=tn.float64)],
        attention_layer_size=[3, 2], alignment_history=True)
    outputs, state = tn.nn.dynamic_rnn(cell, tn.constant(rng.rand(BATCH, 4, 1)), dtype=tn.float64)
    assert outputs.shape.as_list() == [BATCH, 4, 5]
    (found, history), _ = ran([state.alignments, [a.stack() for a in state.alignment_history]], rng)
    for alignments, all_of_them, time in zip(found, history, (TIME, 2)):
        assert all_of_them.shape == (4, BATCH, time)
        np.testing.assert_array_equal(alignments, all_of_them[-1])


def test_functions_of_the_wrapper(rng, evaluate):
    memory = tn.constant(rng.rand(2, TIME, SIZE), tn.float32)
    first = tn.constant(rng.rand(2, UNITS), tn.float32)
    cell = S.AttentionWrapper(
        tn.nn.rnn_cell.BasicRNNCell(UNITS), S.LuongAttention(UNITS, memory),
        cell_input_fn=lambda inputs, attention: inputs, initial_cell_state=first,
        attention_fn=lambda mechanism, output, state, layer: (
            output[:, :SIZE] * 2, mechanism.initial_alignments(2, tn.float32), state))
    state = cell.zero_state(2, tn.float32)
    output, after = cell(tn.ones([2, 3]), state)
    found = evaluate([state.cell_state, first, output, after.cell_state, after.time])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[2], 2 * found[3][:, :SIZE])
    assert found[4] == 1
    kernel, = [v for v in cell.variables if v.op.name.endswith("basic_rnn_cell/kernel")]
    assert kernel.shape.as_list() == [3 + UNITS, UNITS]


def test_a_state_is_cloned(evaluate):
    cell = wrapped(tn.zeros([2, TIME, SIZE], tn.float64))
    state = cell.zero_state(2, tn.float64).clone(cell_state=tn.ones([2, UNITS], tn.float64))
    assert isinstance(state, S.AttentionWrapperState) and evaluate(state.cell_state).all()
    with pytest.raises(ValueError, match=r"self.shape: \(2, 6\), input.shape: \(3, 6\)"):
        state.clone(cell_state=tn.ones([3, UNITS], tn.float64))


# --- Misuse ---------------------------------------------------------------------------------------

def zeros(*shape):
    return tn.zeros(shape)


def doubles(*shape):
    return tn.zeros(shape, tn.float64)


@pytest.mark.parametrize("make, message", [
    (lambda: S.LuongAttention(UNITS, tn.placeholder(tn.float32, [2, 3, None])),
     r"fully defined inner dims, but saw shape: \(2, 3, \?\)"),
    (lambda: S.LuongAttention(UNITS, zeros(3)), r"must be \[batch, time, ...\].* is \(3,\)"),
    (lambda: S.LuongAttention(0, zeros(2, 3, 4)), "num_units must be a positive int, not 0"),
    (lambda: S.LuongAttention(5, zeros(2, 3, 4))(zeros(2, 4), None),
     r"has units: 4.  Keys .* have units: 5"),
    (lambda: S.monotonic_attention(zeros(2, 3), zeros(2, 3), "soft"), "not 'soft'"),
    (lambda: S.LuongMonotonicAttention(5, zeros(2, 3, 4), mode="soft"), "not 'soft'"),
    (lambda: wrapped(doubles(2, 3, 4), attention_layer_size=[1, 2]), "one integer .* saw: 2 vs 1"),
    (lambda: wrapped(doubles(2, 3, 4), attention_layer=[tn.layers.Dense(2)] * 2), "saw: 2 vs 1"),
    (lambda: wrapped(doubles(2, 3, 4), attention_layer_size=2, attention_layer=tn.layers.Dense(2)),
     "Only one of attention_layer_size and attention_layer"),
])
def test_misuse(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("make, message", [
    (lambda: S.LuongAttention(UNITS, zeros(2, 3, 4), probability_fn=3), "saw type: int"),
    (lambda: S.AttentionWrapper("cell", None), "not an RNNCell: 'cell'"),
    (lambda: S.AttentionWrapper(tn.rnn.GRUCell(2), "luong"), "multiple .* saw type: str"),
    (lambda: S.AttentionWrapper(tn.rnn.GRUCell(2), [3]), "contain only .* saw type: int"),
    (lambda: wrapped(doubles(2, 3, 4), cell_input_fn=3), "cell_input_fn must be callable"),
    (lambda: wrapped(doubles(2, 3, 4))(doubles(2, 1), doubles(2, 2)), "AttentionWrapperState. R"),
])
def test_what_is_of_another_kind(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_batches_that_differ():
    cell = wrapped(tn.zeros([2, 3, 4], tn.float64))
    with pytest.raises(tn.errors.InvalidArgumentError, match="Non-matching batch sizes"):
        cell.zero_state(4, tn.float64)
    memory = tn.placeholder(tn.float64, [None, 3, 4])
    cell = wrapped(memory)
    state = cell.zero_state(3, tn.float64)
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        with pytest.raises(tn.errors.InvalidArgumentError, match="tile_batch"):
            session.run(state.cell_state, {memory: np.zeros((2, 3, 4))})


def test_lengths_must_be_positive(evaluate):
    mechanism = S.LuongAttention(UNITS, zeros(2, 3, 4), [2, 0])
    alignments, _ = mechanism(zeros(2, UNITS), None)
    with pytest.raises(tn.errors.InvalidArgumentError, match="must greater than zero"):
        evaluate(alignments)
