# SPDX-License-Identifier: Apache-2.0
"""A sequence-to-sequence model as translation tutorials build it: an encoder in both directions, a
decoder of stacked LSTMs with dropout and normalised attention, clipped gradients, and beam search
with both penalties in a scope that is reused. It learns to copy."""

import numpy as np

import treenail as tn

VOCABULARY, EMBEDDED, UNITS, BEAMS, BATCH, LONGEST = 9, 12, 24, 4, 32, 5
GO, EOS = 0, 1

source = tn.placeholder(tn.int32, [None, None], name="source")
source_length = tn.placeholder(tn.int32, [None], name="source_length")
target = tn.placeholder(tn.int32, [None, None], name="target")
target_length = tn.placeholder(tn.int32, [None], name="target_length")
keep_prob = tn.placeholder(tn.float32)
batch_size = tn.size(source_length)

tn.set_random_seed(1)
cells = tn.nn.rnn_cell
embedding = tn.get_variable("embedding", [VOCABULARY, EMBEDDED])
with tn.variable_scope("encoder"):
    outputs, states = tn.nn.bidirectional_dynamic_rnn(
        cells.LSTMCell(UNITS // 2), cells.LSTMCell(UNITS // 2),
        tn.nn.embedding_lookup(embedding, source), source_length, dtype=tn.float32,
        swap_memory=True)
    encoded = tn.concat(outputs, 2)
    encoder_state = cells.LSTMStateTuple(*[tn.concat([states[0][i], states[1][i]], 1)
                                           for i in (0, 1)])


def decoder_cell(memory, lengths, state, rows):
    stack = cells.MultiRNNCell([cells.DropoutWrapper(cells.LSTMCell(UNITS),
                                                     output_keep_prob=keep_prob)
                                for _ in range(2)])
    attention = tn.seq2seq.BahdanauAttention(UNITS, memory, lengths, normalize=True)
    cell = tn.seq2seq.AttentionWrapper(stack, attention, attention_layer_size=UNITS,
                                       alignment_history=True, name="attention")
    return cell, cell.zero_state(rows, tn.float32).clone(cell_state=(state, state))


projection = tn.layers.Dense(VOCABULARY, use_bias=False, name="projection")
with tn.variable_scope("decoder") as scope:
    cell, first = decoder_cell(encoded, source_length, encoder_state, batch_size)
    inputs = tn.concat([tn.fill([batch_size, 1], GO), target[:, :-1]], 1)
    helper = tn.seq2seq.TrainingHelper(tn.nn.embedding_lookup(embedding, inputs), target_length)
    decoder = tn.seq2seq.BasicDecoder(cell, helper, first, output_layer=projection)
    decoded, last, _ = tn.seq2seq.dynamic_decode(decoder, swap_memory=True, scope=scope)
with tn.variable_scope("decoder", reuse=True) as scope:
    memory, lengths, state = (tn.seq2seq.tile_batch(part, multiplier=BEAMS)
                              for part in (encoded, source_length, encoder_state))
    cell, first = decoder_cell(memory, lengths, state, batch_size * BEAMS)
    search = tn.seq2seq.BeamSearchDecoder(
        cell, embedding, tn.fill([batch_size], GO), EOS, first, BEAMS, output_layer=projection,
        length_penalty_weight=0.6, coverage_penalty_weight=0.1)
    found, search_state, _ = tn.seq2seq.dynamic_decode(
        search, maximum_iterations=tn.reduce_max(source_length) * 2, scope=scope)

longest = tn.reduce_max(target_length)
loss = tn.seq2seq.sequence_loss(decoded.rnn_output, target[:, :longest],
                                tn.sequence_mask(target_length, longest, tn.float32))
variables = tn.trainable_variables()
assert len(variables) == 16, "the search shares the variables of the training"
gradients, _ = tn.clip_by_global_norm(tn.gradients(loss, variables), 5.0)
train = tn.train.AdamOptimizer(0.01).apply_gradients(zip(gradients, variables))


def batch(random, size=BATCH):
    length = random.randint(1, LONGEST + 1, size)
    words = random.randint(2, VOCABULARY, (size, LONGEST + 1))
    words[np.arange(LONGEST + 1) >= length[:, None]] = EOS
    return {source: words[:, :-1], source_length: length, target: words,
            target_length: length + 1, keep_prob: 0.9}


numbers = np.random.RandomState(2)
with tn.Session() as session:
    session.run(tn.global_variables_initializer())
    losses = [session.run([loss, train], batch(numbers))[0] for _ in range(300)]
    test = {**batch(np.random.RandomState(3), 100), keep_prob: 1.0}
    ids, history = session.run([found.predicted_ids, search_state.cell_state.alignment_history],
                               test)
right = np.mean([row[:n + 1, 0].tolist() == wanted[:n + 1].tolist()
                 for row, n, wanted in zip(ids, test[source_length], test[target])])
print("loss %.2f, then %.2f; %.2f of the beam search is right" % (losses[0], losses[-1], right))
assert losses[-1] < 0.2 and right > 0.9, (losses[-1], right)
assert history.shape == (ids.shape[1], 100, BEAMS, LONGEST)
