# SPDX-License-Identifier: Apache-2.0
"""tn.seq2seq's decoders and helpers against recurrences in NumPy and dynamic_rnn."""

import inspect

import numpy as np
import pytest

import treenail as tn

S = tn.seq2seq
BATCH, TIME, WORDS, UNITS, END = 4, 5, 6, 7, 1
LENGTHS = [5, 0, 2, 1]


def ran(fetches, rng, feeds=None, scale=1.0):
    """(values, weights): all variables are set to random numbers."""
    with tn.Session() as session:
        for v in tn.global_variables():
            session.run(v.assign(rng.uniform(-scale, scale, v.shape.as_list())))
        weights = {v.op.name.split("/")[-2] + "/" + v.op.name.split("/")[-1]: session.run(v)
                   for v in tn.global_variables()}
        return session.run(fetches, feeds), weights


def network():
    """(cell, output layer)."""
    return tn.nn.rnn_cell.BasicRNNCell(UNITS), tn.layers.Dense(WORDS, name="words")


def step(x, h, w):
    """(logits, state) of the network."""
    h = np.tanh(np.concatenate([x, h], 1) @ w["basic_rnn_cell/kernel"] + w["basic_rnn_cell/bias"])
    return h @ w["words/kernel"] + w["words/bias"], h


@pytest.mark.parametrize("impute", [False, True])
@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("lengths", [LENGTHS, [5, 5, 5, 5], [1, 1, 1, 1]])
def test_given_inputs(rng, impute, time_major, lengths):
    x = rng.uniform(-1, 1, (TIME, BATCH, 3))
    x = x if time_major else np.swapaxes(x, 0, 1)
    given, rows = tn.placeholder(tn.float64, [None, None, 3]), tn.placeholder(tn.int32, [None])
    cell, layer = network()
    helper = S.TrainingHelper(given, rows, time_major)
    decoder = S.BasicDecoder(cell, helper, cell.zero_state(tn.size(rows), tn.float64), layer)
    outputs, state, found_lengths = S.dynamic_decode(decoder, time_major, impute)
    assert outputs.rnn_output.shape.as_list() == [None, None, WORDS]
    with tn.variable_scope("decoder", reuse=True):
        wanted, last = tn.nn.dynamic_rnn(cell, given, rows, dtype=tn.float64,
                                         time_major=time_major, scope="unused")
        wanted = layer(wanted)
    variables = tn.trainable_variables()
    assert [v.op.name for v in variables] == ["decoder/basic_rnn_cell/kernel",
                                              "decoder/basic_rnn_cell/bias",
                                              "decoder/words/kernel", "decoder/words/bias"]
    steps = max(lengths)
    inside = (np.arange(steps) < np.array(lengths)[:, None]).astype(float)
    inside = (inside.T if time_major else inside)[..., None]
    wanted = (wanted[:steps] if time_major else wanted[:, :steps])
    losses = [tn.reduce_sum(y * y * inside) for y in (outputs.rnn_output, wanted)]
    gradients = [tn.gradients(loss, variables) for loss in losses]
    (a, ids, n, b, da, db, ends), _ = ran(
        [outputs.rnn_output, outputs.sample_id, found_lengths, wanted, gradients[0], gradients[1],
         [state, last]], rng, {given: x, rows: lengths})
    assert n.tolist() == lengths and a.shape == b.shape
    np.testing.assert_allclose(a * inside, b * inside, rtol=1e-12)
    np.testing.assert_array_equal((ids * inside[..., 0]), b.argmax(-1) * inside[..., 0])
    if impute:
        assert not (a * (1 - inside)).any() and not (ids * (1 - inside[..., 0])).any()
        np.testing.assert_allclose(*ends, rtol=1e-12)
    for ours, theirs in zip(da, db):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_nothing_to_decode(rng):
    cell, layer = network()
    for lengths in ([0, 0], []):
        helper = S.TrainingHelper(tn.zeros([len(lengths), TIME, 3]), lengths)
        decoder = S.BasicDecoder(cell, helper, cell.zero_state(len(lengths), tn.float32), layer)
        outputs, _, found = S.dynamic_decode(decoder, scope="decoder%d" % len(lengths))
        (y, ids, found), _ = ran([outputs.rnn_output, outputs.sample_id, found], rng)
        assert y.shape == (len(lengths), 0, WORDS) and ids.shape == (len(lengths), 0)
        assert found.tolist() == lengths


@pytest.mark.parametrize("maximum", [1, 4, 12])
def test_greedy(rng, maximum):
    start = rng.randint(2, WORDS, 20)
    cell, layer = network()
    words = tn.get_variable("some/embedding", [WORDS, 3], tn.float64)
    starts = tn.placeholder(tn.int32, [None])
    decoder = S.BasicDecoder(cell, S.GreedyEmbeddingHelper(words, starts, END),
                             cell.zero_state(tn.size(starts), tn.float64), layer)
    outputs, _, lengths = S.dynamic_decode(decoder, maximum_iterations=tn.constant(maximum))
    (ids, lengths, logits), w = ran([outputs.sample_id, lengths, outputs.rnn_output], rng,
                                    {starts: start}, 3.0)
    word, h, ended, wanted = start, np.zeros((20, UNITS)), np.zeros(20, bool), np.zeros(20, int)
    for t in range(ids.shape[1]):
        y, h = step(w["some/embedding"][word], h, w)
        word = y.argmax(1)
        wanted += ~ended
        np.testing.assert_array_equal(ids[~ended, t], word[~ended])
        np.testing.assert_allclose(logits[~ended, t], y[~ended], rtol=1e-9)
        ended |= word == END
    assert lengths.tolist() == wanted.tolist() and ids.shape[1] == max(wanted)
    assert ids.shape[1] == maximum or ended.all()


def test_samples(rng):
    """Of words that cannot be told apart all are drawn; at low temperature the likeliest are."""
    class Constant(tn.nn.rnn_cell.RNNCell):
        state_size = output_size = WORDS

        def call(self, inputs, state):
            return state, state
    logits = np.zeros((300, WORDS), np.float32)
    logits[:, 3] = 0.5
    logits[:, END] = -50
    counts = []
    for temperature in (None, 0.01):
        decoder = S.BasicDecoder(Constant(), S.SampleEmbeddingHelper(
            lambda ids: tn.zeros([300, 1]), np.zeros(300, int), END, temperature, 3),
            tn.constant(logits))
        outputs, _, lengths = S.dynamic_decode(decoder, maximum_iterations=20)
        (ids, n), _ = ran([outputs.sample_id, lengths], rng)
        assert ids.shape == (300, 20) and (n == 20).all()
        assert not (ids[:, :-1] == ids[:, 1:]).all() or temperature
        counts.append(np.bincount(ids.ravel(), minlength=WORDS) / ids.size)
    p = np.exp(logits[0]) / np.exp(logits[0]).sum()
    np.testing.assert_allclose(counts[0], p, atol=0.02)
    assert counts[1][3] == 1


def counting(finished_at):
    """A cell that counts, and the functions of helpers around it."""
    class Counts(tn.nn.rnn_cell.RNNCell):
        state_size = output_size = 1

        def call(self, inputs, state):
            return state + inputs, state + 1
    first = tn.zeros([2, 1])
    return Counts(), first, lambda samples: samples[:, 0] >= finished_at


def test_inference(evaluate):
    cell, first, end = counting([3.0, 6.0])
    helper = S.InferenceHelper(lambda outputs: outputs * 2, [1], tn.float32, first, end,
                               lambda samples: samples / 2)
    outputs, state, lengths = S.dynamic_decode(S.BasicDecoder(cell, helper, tn.zeros([2, 1])))
    y, samples, n = evaluate([outputs.rnn_output, outputs.sample_id, lengths])
    # 0, then the number of the step and the output before: 0 1 3 6
    assert y[1, :, 0].tolist() == [0, 1, 3] and samples[1, :, 0].tolist() == [0, 2, 6]
    assert n.tolist() == [3, 3]


def test_a_helper_of_ones_own(evaluate):
    def initialize():
        return [False, False], {"x": tn.ones([2, 1])}

    def following(time, outputs, state, sample_ids):
        return time >= tn.constant([0, 2]), {"x": outputs * 1.0}, state

    class Nested(tn.nn.rnn_cell.RNNCell):
        state_size = output_size = 1

        def call(self, inputs, state):
            return inputs["x"] + state, state + 1
    helper = S.CustomHelper(initialize, lambda time, outputs, state: tn.as_string(outputs[:, 0]),
                            following, sample_ids_dtype=tn.string)
    with pytest.raises(ValueError, match="before initialize"):
        getattr(helper, "batch_size")
    outputs, _, lengths = S.dynamic_decode(S.BasicDecoder(Nested(), helper, tn.zeros([2, 1])))
    y, ids, n = evaluate([outputs.rnn_output, outputs.sample_id, lengths])
    assert y[1, :, 0].tolist() == [1, 2, 4] and n.tolist() == [1, 3]
    assert [float(text) for text in ids[1]] == [1, 2, 4]


@pytest.mark.parametrize("probability", [0.0, 1.0, [0.0, 0.0, 1.0, 1.0], 0.5])
def test_scheduled_words(rng, probability):
    x = tn.constant(rng.rand(BATCH, TIME, 3))
    cell, layer = network()
    words = tn.get_variable("some/embedding", [WORDS, 3], tn.float64)
    helper = S.ScheduledEmbeddingTrainingHelper(x, LENGTHS, words, probability, seed=1,
                                                scheduling_seed=2)
    outputs, _, _ = S.dynamic_decode(S.BasicDecoder(
        cell, helper, cell.zero_state(BATCH, tn.float64), layer))
    (y, ids, inputs), w = ran([outputs.rnn_output, outputs.sample_id, x], rng)
    h, following = np.zeros((BATCH, UNITS)), inputs[:, 0]
    for t in range(TIME):
        logits, h = step(following, h, w)
        np.testing.assert_allclose(y[:, t], logits, rtol=1e-9)
        own = w["some/embedding"][np.maximum(ids[:, t], 0)]
        if t + 1 < TIME:
            following = np.where(ids[:, t:t + 1] < 0, inputs[:, t + 1], own)
    assert ids.min() >= -1 and ids.max() < WORDS
    if probability != 0.5:
        np.testing.assert_array_equal(ids >= 0, np.broadcast_to(
            np.array(probability).reshape(-1, 1) == 1, ids.shape))


@pytest.mark.parametrize("auxiliary", [False, True])
@pytest.mark.parametrize("own", [None, lambda y: y * 2])
def test_scheduled_outputs(rng, auxiliary, own):
    x, more = rng.rand(BATCH, TIME, 3), rng.rand(BATCH, TIME, 2)
    cell = tn.nn.rnn_cell.BasicRNNCell(3)
    helper = S.ScheduledOutputTrainingHelper(
        tn.constant(x), LENGTHS, 0.5, seed=1, next_inputs_fn=own,
        auxiliary_inputs=tn.constant(more) if auxiliary else None)
    outputs, _, _ = S.dynamic_decode(S.BasicDecoder(cell, helper,
                                                    cell.zero_state(BATCH, tn.float64)))
    (y, taken), w = ran([outputs.rnn_output, outputs.sample_id], rng)
    h, following = np.zeros((BATCH, 3)), x[:, 0]
    for t in range(TIME):
        joined = np.concatenate([following, more[:, t]], 1) if auxiliary else following
        h = np.tanh(np.concatenate([joined, h], 1) @ w["basic_rnn_cell/kernel"]
                    + w["basic_rnn_cell/bias"])
        np.testing.assert_allclose(y[:, t], h, rtol=1e-9)
        if t + 1 < TIME:
            following = np.where(taken[:, t:t + 1], h * 2 if own else h, x[:, t + 1])
    assert 0 < taken.mean() < 1


# --- The loss -------------------------------------------------------------------------------------

def entropies(logits, targets):
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return -np.take_along_axis(log_p, targets[..., None], -1)[..., 0]


@pytest.mark.parametrize("average", [(), (0,), (1,), (0, 1)])
@pytest.mark.parametrize("total", [(), (0,), (1,), (0, 1)])
def test_the_loss_of_sequences(rng, evaluate, average, total):
    if set(average) & set(total):
        pytest.skip("refused")
    logits, targets = rng.rand(BATCH, TIME, WORDS), rng.randint(0, WORDS, (BATCH, TIME))
    weights = rng.rand(BATCH, TIME) * (np.arange(TIME) < np.array(LENGTHS)[:, None])
    given = tn.placeholder(tn.float64, [None, None, None])
    loss = S.sequence_loss(given, targets, weights, 1 in average, 0 in average, 1 in total,
                           0 in total)
    wanted = entropies(logits, targets) * weights
    axes = average or total
    if axes:
        count = (weights if average else weights != 0).sum(axes)
        wanted = wanted.sum(axes) / np.where(count == 0, 1, count)
    with tn.Session() as session:
        np.testing.assert_allclose(session.run(loss, {given: logits}), wanted, rtol=1e-10)


def test_a_loss_of_ones_own(rng, evaluate):
    logits, targets = rng.rand(BATCH, TIME, WORDS), rng.randint(0, WORDS, (BATCH, TIME))
    loss = S.sequence_loss(logits, targets, np.ones((BATCH, TIME)),
                           softmax_loss_function=lambda labels, logits: tn.cast(
                               labels, tn.float64) + logits[:, 0])
    np.testing.assert_allclose(evaluate(loss), (targets + logits[..., 0]).mean(), rtol=1e-12)


# --- Misuse ---------------------------------------------------------------------------------------

def zeros(*shape):
    return tn.zeros(shape)


def basic(helper=None, **more):
    cell = tn.nn.rnn_cell.GRUCell(2)
    return S.BasicDecoder(cell, helper or S.TrainingHelper(zeros(2, 3, 1), [1, 2]),
                          cell.zero_state(2, tn.float32), **more)


@pytest.mark.parametrize("make, message", [
    (lambda: S.TrainingHelper(zeros(2, 3, 4), 3), r"vector, but received shape: \(\)"),
    (lambda: S.GreedyEmbeddingHelper(zeros(3, 2), 0, 1), r"start_tokens must be a vector"),
    (lambda: S.GreedyEmbeddingHelper(zeros(3, 2), [0], [1]), r"end_token must be a scalar"),
    (lambda: S.ScheduledEmbeddingTrainingHelper(zeros(2, 3, 4), [1, 2], zeros(3, 2), [[0.5]]),
     r"scalar or a vector. saw shape: \(1, 1\)"),
    (lambda: S.dynamic_decode(basic(), maximum_iterations=[1]), r"must be a scalar.* \(1,\)"),
    (lambda: S.sequence_loss(zeros(2, 3), zeros(2, 3), zeros(2, 3)), r"Logits must be .*\(2, 3\)"),
    (lambda: S.sequence_loss(zeros(2, 3, 4), zeros(2), zeros(2, 3)), r"Targets must be .*\(2,\)"),
    (lambda: S.sequence_loss(zeros(2, 3, 4), zeros(2, 3), zeros(2)), r"Weights must be .*\(2,\)"),
    (lambda: S.sequence_loss(zeros(2, 3, 4), zeros(2, 3), zeros(2, 3), sum_over_batch=True),
     "average_across_batch and sum_over_batch"),
    (lambda: S.tile_batch(tn.placeholder(tn.float32), 3), "statically known rank"),
    (lambda: S.tile_batch(tn.constant(1), 3), r"rank of at least 1, its shape is \(\)"),
])
def test_misuse(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("make, message", [
    (lambda: S.dynamic_decode("decoder"), "to be type Decoder, but saw: str"),
    (lambda: S.BasicDecoder("cell", None, None), "not an RNNCell: 'cell'"),
    (lambda: basic("helper"), "helper must be a Helper, received: str"),
    (lambda: basic(output_layer="layer"), "output_layer is not a Layer: str"),
    (lambda: S.CustomHelper(1, 2, 3), "initialize_fn must be callable, not 1"),
    (lambda: S.InferenceHelper(1, [], tn.int32, zeros(2, 1), 2), "sample_fn must be callable"),
])
def test_what_is_of_another_kind(make, message):
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize("base", [S.Decoder, S.Helper, S.AttentionMechanism])
def test_bases_do_nothing(base):
    for name, value in list(vars(base).items()):
        if name.startswith("_") or name == "tracks_own_finished":
            continue
        with pytest.raises(NotImplementedError):
            if isinstance(value, property):
                getattr(base(), name)
            else:
                count = len(inspect.signature(value).parameters) - 1
                value(base(), *[None] * count)
