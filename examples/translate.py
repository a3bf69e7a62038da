#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An encoder, attention and a decoder that learn to say sequences backwards; then greedy and beam
search for sequences that they have not seen."""

import argparse

import numpy as np

import treenail as tn

WORDS, UNITS, BATCH, LONGEST, BEAMS = 12, 64, 64, 8, 4
START, END = 0, 1  # the other numbers are words


def some_pairs(random, batch=BATCH):
    """(sources, their lengths, targets with END behind): zeros lie behind a row's length."""
    lengths = random.randint(1, LONGEST + 1, batch)
    sources = np.zeros((batch, LONGEST), np.int32)
    targets = np.zeros((batch, LONGEST + 1), np.int32)
    for source, target, length in zip(sources, targets, lengths):
        source[:length] = random.randint(2, WORDS, length)
        target[:length + 1] = [*source[:length][::-1], END]
    return sources, lengths, targets


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(";", maxsplit=1)[0])
    parser.add_argument("--steps", type=int, default=400, help="of training (%(default)s)")
    steps = parser.parse_args().steps
    tn.set_random_seed(1)
    source, target = tn.placeholder(tn.int32, [None, None]), tn.placeholder(tn.int32, [None, None])
    length = tn.placeholder(tn.int32, [None])
    batch, embedding = tn.shape(source)[0], tn.get_variable("embedding", [WORDS, UNITS])
    encoded, state = tn.nn.dynamic_rnn(tn.nn.rnn_cell.GRUCell(UNITS), tn.nn.embedding_lookup(
        embedding, source), length, dtype=tn.float32)
    to_words = tn.layers.Dense(WORDS, name="words")
    cell_within = tn.nn.rnn_cell.GRUCell(UNITS, name="decoder_cell")

    def decode(decoder, rows=1):
        """A decoder with the same weights as others, over `rows` copies of what was encoded."""
        memory, lengths, first = tn.seq2seq.tile_batch((encoded, length, state), rows)
        with tn.variable_scope("decode", reuse=tn.AUTO_REUSE):
            attention = tn.seq2seq.BahdanauAttention(UNITS, memory, lengths)
            cell = tn.seq2seq.AttentionWrapper(cell_within, attention, UNITS)
            first = cell.zero_state(batch * rows, tn.float32).clone(cell_state=first)
            return tn.seq2seq.dynamic_decode(decoder(cell, first), maximum_iterations=20)[0]

    starts = tn.fill([batch], START)
    inputs = tn.concat([starts[:, None], target[:, :-1]], 1)
    helper = tn.seq2seq.TrainingHelper(tn.nn.embedding_lookup(embedding, inputs), length + 1)
    logits = decode(lambda cell, first: tn.seq2seq.BasicDecoder(
        cell, helper, first, to_words)).rnn_output
    most = tn.shape(logits)[1]
    loss = tn.seq2seq.sequence_loss(logits, target[:, :most], tn.sequence_mask(
        length + 1, most, tn.float32))
    train = tn.train.AdamOptimizer(0.005).minimize(loss)
    greedy = decode(lambda cell, first: tn.seq2seq.BasicDecoder(
        cell, tn.seq2seq.GreedyEmbeddingHelper(embedding, starts, END), first, to_words)).sample_id
    beams = decode(lambda cell, first: tn.seq2seq.BeamSearchDecoder(
        cell, embedding, starts, END, first, BEAMS, to_words), BEAMS).predicted_ids[:, :, 0]

    random, test = np.random.RandomState(2), some_pairs(np.random.RandomState(3), 200)
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        losses = [session.run([loss, train], dict(zip((source, length, target), some_pairs(
            random))))[0] for _ in range(steps)]
        print("loss", " ".join("%.2f" % x for x in losses[::max(1, steps // 10)]))
        right = {}
        for name, found in (("greedy", greedy), ("beam search", beams)):
            found = session.run(found, {source: test[0], length: test[1]})
            same = [row[:n + 1].tolist() == wanted[:n + 1].tolist()
                    for row, n, wanted in zip(found, test[1], test[2])]
            right[name] = np.mean(same)
            print("%s: %.3f right; %s -> %s" % (name, right[name], test[0][0], found[0]))
    assert losses[-1] < 0.95 * losses[0] and (steps < 400 or min(right.values()) > 0.9), right


if __name__ == "__main__":
    main()
