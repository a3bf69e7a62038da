# SPDX-License-Identifier: Apache-2.0
"""Static shapes of tn.seq2seq (tensorflow/contrib/seq2seq/python/ops)."""

import treenail as tn
from static_shapes import excuse, row

S = "seq2seq."
row(S + "hardmax", lambda p: tn.seq2seq.hardmax(p.f(None, 4, 3)), [None, 4, 3])
row(S + "safe_cumprod", lambda p: tn.seq2seq.safe_cumprod(p.f(None, 3), 1), [None, 3])
for mode in ("recursive", "parallel", "hard"):
    row(S + "monotonic_attention", lambda p, mode=mode: tn.seq2seq.monotonic_attention(
        p.f(None, 3), p.f(None, 3), mode), [None, 3])
row(S + "tile_batch", lambda p: tn.seq2seq.tile_batch(p.f(2, None, 3), 4), [8, None, 3])
row(S + "tile_batch", lambda p: tn.seq2seq.tile_batch(p.f(None, 3), 4), [None, 3])
row(S + "sequence_loss", lambda p: tn.seq2seq.sequence_loss(p.f(None, None, 5), p.i(None, None),
                                                            p.f(None, None)), [])
row(S + "sequence_loss", lambda p: tn.seq2seq.sequence_loss(
    p.f(2, None, 5), p.i(2, None), p.f(2, None), True, False), [2])
row(S + "gather_tree_from_array", lambda p: tn.seq2seq.gather_tree_from_array(
    p.f(None, 2, 3, 4), p.v([[[0, 1, 2]] * 2] * 2, (None, 2, 3)), p.i(2, 3)), [None, 2, 3, 4])
excuse(S + "gather_tree", "an op: tests/cases/beam_search.py")


def decoded(p, search):
    cell, first = tn.nn.rnn_cell.GRUCell(6), p.f(2, 6)
    words, starts = tn.zeros([5, 3]), tn.constant([0, 0])
    layer = tn.layers.Dense(5)
    if search:
        decoder = tn.seq2seq.BeamSearchDecoder(cell, words, starts, 1, tn.seq2seq.tile_batch(
            first, 4), 4, layer)
    else:
        decoder = tn.seq2seq.BasicDecoder(cell, tn.seq2seq.GreedyEmbeddingHelper(
            words, starts, 1), first, layer)
    outputs, state, lengths = tn.seq2seq.dynamic_decode(decoder, maximum_iterations=3)
    if search:
        return [outputs.predicted_ids, state.cell_state, lengths]
    return [outputs.rnn_output, outputs.sample_id, state, lengths]


row(S + "dynamic_decode", lambda p: decoded(p, False), ([2, None, 5], [2, None], [2, 6], [2]))
row(S + "dynamic_decode", lambda p: decoded(p, True), ([2, None, 4], [2, 4, 6], [2, 4]))
