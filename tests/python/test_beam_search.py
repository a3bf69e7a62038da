# SPDX-License-Identifier: Apache-2.0
"""tn.seq2seq.BeamSearchDecoder against all sequences there are, and against a plain beam search."""

import itertools

import numpy as np
import pytest

import treenail as tn

S = tn.seq2seq
UNITS, START, END = 6, 0, 1


def log_softmax(x):
    return x - x.max() - np.log(np.exp(x - x.max()).sum())


class Model:
    """A recurrent network over words in NumPy: step(word, state) gives (log-probabilities,
    state)."""

    def __init__(self, weights):
        self.w = weights

    def step(self, word, h):
        x = np.concatenate([self.w["embedding"][word], h])
        h = np.tanh(x @ self.w["kernel"] + self.w["bias"])
        return log_softmax(h @ self.w["words"]), h

    def log_prob(self, words, h):
        """Of a sequence, which may have ended: then nothing follows."""
        total, before = 0.0, START
        for word in words:
            p, h = self.step(before, h)
            total, before = total + p[word], word
            if word == END:
                break
        return total


def penalty(length, weight):
    return ((5 + length) / 6) ** weight


def plain_search(model, h, width, steps, weight):
    """[(score, words, log-probability)] of the best beams, by lists: TensorFlow 1's rules."""
    beams = [(0.0, [], h, 0)]  # log-probability, words, state, length
    for _ in range(steps):
        continued = []
        for p, words, h_, length in beams:
            if END in words:
                continued.append((p / penalty(length, weight), p, words + [END], h_, length))
                continue
            each, after = model.step(words[-1] if words else START, h_)
            for word, more in enumerate(each):
                # The score of an end does not count the end.
                counted = length + (word != END)
                continued.append(((p + more) / penalty(counted, weight), p + more, words + [word],
                                  after, length + 1))
        continued.sort(key=lambda beam: -beam[0])
        beams = [beam[1:] for beam in continued[:width]]
        scores = [beam[0] for beam in continued[:width]]
    return [(score, words, p) for score, (p, words, _, _) in zip(scores, beams)]


def decoded(rng, words, width, steps, batch=3, scale=2.0, known=True, **more):
    """(outputs, state, lengths, model, first states) of a search with random weights."""
    cell = tn.nn.rnn_cell.BasicRNNCell(UNITS)
    embedding = tn.get_variable("embedding", [words, 2], tn.float64)
    layer = tn.layers.Dense(words, use_bias=False, name="words")
    h = rng.uniform(-1, 1, (batch, UNITS))
    given = tn.placeholder(tn.float64, [batch if known else None, UNITS])
    starts = tn.fill([tn.shape(given)[0]], START) if not known else tn.constant([START] * batch)
    decoder = S.BeamSearchDecoder(cell, embedding, starts, END, S.tile_batch(given, width), width,
                                  layer, **more)
    results = S.dynamic_decode(decoder, maximum_iterations=steps)
    with tn.Session() as session:
        for v in tn.global_variables():
            session.run(v.assign(rng.uniform(-scale, scale, v.shape.as_list())))
        weights = {v.op.name.split("/")[-1] if "words" not in v.op.name else "words":
                   session.run(v) for v in tn.global_variables()}
        outputs, state, lengths = session.run(results, {given: h})
    return outputs, state, lengths, Model(weights), h


@pytest.mark.parametrize("words, steps", [(3, 3), (4, 2), (2, 4)])
def test_a_beam_as_wide_as_all_sequences_finds_the_best(rng, words, steps):
    width = words ** steps
    outputs, state, _, model, h = decoded(rng, words, width, steps)
    for row in range(3):
        everything = {}
        for sequence in itertools.product(range(words), repeat=steps):
            cut = sequence[:sequence.index(END) + 1] if END in sequence else sequence
            everything[cut] = model.log_prob(sequence, h[row])
        ranked = sorted(everything, key=lambda cut: -everything[cut])
        found = outputs.predicted_ids[row]
        for place, cut in enumerate(ranked):
            padded = list(cut) + [END] * (found.shape[0] - len(cut))
            assert found[:, place].tolist() == padded
            assert state.lengths[row, place] == len(cut)
            np.testing.assert_allclose(state.log_probs[row, place], everything[cut], rtol=1e-9)
        # What is left of the beams stands for no sequence.
        assert (state.log_probs[row, len(ranked):] < -1e30).all()


@pytest.mark.parametrize("weight", [0.0, 0.6, 1.5])
@pytest.mark.parametrize("width, words, steps", [(1, 5, 6), (2, 5, 6), (3, 7, 5), (4, 3, 8)])
@pytest.mark.parametrize("known", [True, False])
def test_a_plain_beam_search(rng, weight, width, words, steps, known):
    outputs, state, lengths, model, h = decoded(rng, words, width, steps, known=known,
                                                length_penalty_weight=weight)
    taken = outputs.predicted_ids.shape[1]
    assert taken <= steps and lengths.shape == (3, width)
    for row in range(3):
        wanted = plain_search(model, h[row], width, taken, weight)
        for place, (score, sequence, p) in enumerate(wanted):
            assert outputs.predicted_ids[row, :, place].tolist() == sequence
            np.testing.assert_allclose(state.log_probs[row, place], p, rtol=1e-9)
            np.testing.assert_allclose(
                outputs.beam_search_decoder_output.scores[row, -1, place], score, rtol=1e-9)
            length = sequence.index(END) + 1 if END in sequence else taken
            assert state.lengths[row, place] == length
            assert state.finished[row, place] == (END in sequence)


def test_one_beam_is_the_greedy_choice(rng):
    outputs, _, _, model, h = decoded(rng, 6, 1, 7, batch=8)
    for row in range(8):
        word, state, ended = START, h[row], False
        for found in outputs.predicted_ids[row, :, 0]:
            p, state = model.step(word, state)
            word = END if ended else int(p.argmax())
            ended = ended or word == END
            assert found == word


def test_rows_are_repeated(evaluate, rng):
    x, state = rng.rand(2, 3, 1), (np.arange(2), rng.rand(2, 0))
    tiled, (numbers, empty) = S.tile_batch((x, state), 3)
    assert tiled.shape.as_list() == [6, 3, 1]
    a, b, c = evaluate([tiled, numbers, empty])
    np.testing.assert_array_equal(a, np.repeat(x, 3, 0))
    assert b.tolist() == [0, 0, 0, 1, 1, 1] and c.shape == (6, 0)
    unknown = S.tile_batch(tn.placeholder(tn.float32, [None, None]), 2)
    assert unknown.shape.as_list() == [None, None]


# --- Attention ------------------------------------------------------------------------------------

BATCH, WIDTH, WORDS, STEPS, TIME = 2, 3, 5, 6, 4


def attending(memory, lengths, history=True, start=None, rows=1):
    mechanism = S.LuongAttention(UNITS, S.tile_batch(tn.constant(memory), rows),
                                 S.tile_batch(tn.constant(lengths), rows), dtype=tn.float64)
    cell = S.AttentionWrapper(tn.nn.rnn_cell.BasicRNNCell(UNITS), mechanism, UNITS,
                              alignment_history=history)
    return cell, cell.zero_state(BATCH * rows, tn.float64)


def searched(rng, coverage=0.0, **more):
    """(outputs, state, what forced decoding along the found sequences gives for each beam)."""
    memory, lengths = rng.rand(BATCH, TIME, 3), [4, 2]
    embedding = tn.get_variable("embedding", [WORDS, 2], tn.float64)
    with tn.variable_scope("net"):
        cell, first = attending(memory, lengths, rows=WIDTH)
        layer = tn.layers.Dense(WORDS, use_bias=False, name="words")
        decoder = S.BeamSearchDecoder(cell, embedding, [START] * BATCH, END, first, WIDTH, layer,
                                      coverage_penalty_weight=coverage, **more)
        results = S.dynamic_decode(decoder, maximum_iterations=STEPS)
    with tn.variable_scope("net", reuse=True):
        cell, first = attending(memory, lengths)
        words = tn.placeholder(tn.int32, [BATCH, None])
        inputs = tn.concat([tn.fill([BATCH, 1], START), words[:, :-1]], 1)
        helper = S.TrainingHelper(tn.nn.embedding_lookup(embedding, inputs),
                                  tn.fill([BATCH], tn.shape(words)[1]))
        forced, state, _ = S.dynamic_decode(S.BasicDecoder(cell, helper, first, tn.layers.Dense(
            WORDS, use_bias=False, name="words")))
        again = [tn.nn.log_softmax(forced.rnn_output), state.alignment_history.stack()]
    with tn.Session() as session:
        for v in tn.global_variables():
            session.run(v.assign(rng.uniform(-2, 2, v.shape.as_list())))
        outputs, state, _ = session.run(results)
        beams = [session.run(again, {words: outputs.predicted_ids[:, :, k]}) for k in range(WIDTH)]
    return outputs, state, beams


def test_alignments_of_the_sequences_that_were_found(rng):
    outputs, state, beams = searched(rng)
    history = state.cell_state.alignment_history
    assert history.shape[1:] == (BATCH, WIDTH, TIME)
    for k, (log_p, alignments) in enumerate(beams):
        for row in range(BATCH):
            length = state.lengths[row, k]
            np.testing.assert_allclose(history[:length, row, k], alignments[:length, row],
                                       rtol=1e-9)
            ids = outputs.predicted_ids[row, :length, k]
            np.testing.assert_allclose(state.log_probs[row, k],
                                       log_p[row, np.arange(length), ids].sum(), rtol=1e-9)


def test_arrays_may_stay_as_they_were_written(rng):
    memory, lengths = rng.rand(BATCH, TIME, 3), [4, 2]
    cell, first = attending(memory, lengths, rows=WIDTH)
    decoder = S.BeamSearchDecoder(cell, tn.zeros([WORDS, 2], tn.float64), [START] * BATCH, END,
                                  first, WIDTH, tn.layers.Dense(WORDS),
                                  reorder_tensor_arrays=False)
    _, state, _ = S.dynamic_decode(decoder, maximum_iterations=2)
    assert isinstance(state.cell_state.alignment_history, tn.TensorArray)


def test_coverage(rng):
    """Of beams that had ended before the last step the score says what of the memory was read."""
    outputs, state, beams = searched(rng, coverage=0.4)
    steps, checked = outputs.predicted_ids.shape[1], 0
    scores = outputs.beam_search_decoder_output.scores[:, -1]
    for k, (_, alignments) in enumerate(beams):
        for row in range(BATCH):
            length = state.lengths[row, k]
            seen = alignments[:length, row].sum(0)
            np.testing.assert_allclose(state.accumulated_attention_probs[row, k], seen, rtol=1e-9)
            wanted = state.log_probs[row, k]
            if length < steps:  # it had ended before
                wanted += 0.4 * np.log(np.minimum(np.where(seen == 0, 1, seen), 1)).sum()
                checked += 1
            np.testing.assert_allclose(scores[row, k], wanted, rtol=1e-9)
    assert checked, "no beam ended early: other weights are needed"


def test_gather_tree_from_array(rng, evaluate):
    time, batch, width = 5, 2, 3
    parents = rng.randint(0, width, (time, batch, width)).astype(np.int32)
    values = rng.rand(time, batch, width, 2)
    lengths = np.array([[5, 3, 5], [2, 2, 1]])
    found = evaluate(S.gather_tree_from_array(tn.constant(values), parents, lengths))
    for row, k in np.ndindex(batch, width):
        beam, longest = k, lengths[row].max()
        chain = {}
        for t in reversed(range(longest)):
            chain[t], beam = beam, parents[t, row, beam]
        for t in range(time):
            place = chain[t] if t < lengths[row, k] else k
            np.testing.assert_array_equal(found[t, row, k], values[t, row, place])


# --- Misuse ---------------------------------------------------------------------------------------

def beams(state=None, start=(0, 0), end=1, width=3, **more):
    cell = tn.nn.rnn_cell.GRUCell(2)
    state = tn.zeros([6, 2]) if state is None else state
    return S.BeamSearchDecoder(cell, tn.zeros([4, 2]), start, end, state, width,
                               tn.layers.Dense(4), **more)


@pytest.mark.parametrize("make, message", [
    (lambda: beams(start=0), r"start_tokens must be a vector, its shape is \(\)"),
    (lambda: beams(end=[1]), r"end_token must be a scalar, its shape is \(1,\)"),
    (lambda: beams(width=0), "beam_width must be a positive int, not 0"),
    (lambda: beams(tn.zeros([2, 2])), r"has shape: \(2, 2\).*batch_size=encoder_batch_size"),
    (lambda: beams(tn.placeholder(tn.float32)), "known rank, but ndims == None"),
    (lambda: beams(coverage_penalty_weight=[0.5]), r"a scalar, but saw shape: \(1,\)"),
    (lambda: S.dynamic_decode(beams(coverage_penalty_weight=0.5)), "no cell is attentional.* 0.5"),
])
def test_misuse(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_what_is_of_another_kind():
    with pytest.raises(TypeError, match="not an RNNCell: 'cell'"):
        S.BeamSearchDecoder("cell", tn.zeros([4, 2]), [0], 1, tn.zeros([3, 2]), 3)
    with pytest.raises(TypeError, match="output_layer is not a Layer: int"):
        S.BeamSearchDecoder(tn.nn.rnn_cell.GRUCell(2), tn.zeros([4, 2]), [0], 1, tn.zeros([3, 2]),
                            3, 4)
