# SPDX-License-Identifier: Apache-2.0
"""Static shapes of tn.nn and tn.layers (tensorflow/core/framework/common_shape_fns.cc,
tensorflow/core/ops/nn_ops.cc, python/ops/nn_ops.py, python/layers)."""

import treenail as tn
from static_shapes import ANY, row, rows

# --- Activations and what keeps the shape
KEEPS = ("nn.relu nn.relu6 nn.elu nn.selu nn.leaky_relu nn.gelu nn.softplus nn.softsign nn.swish "
         "nn.softmax nn.log_softmax")
rows(KEEPS, lambda f, p: f(p.f(None, 3)), [None, 3])
rows("nn.relu nn.elu nn.softplus nn.leaky_relu", lambda f, p: f(p.u(2, 3)), ANY)
rows("nn.softmax nn.log_softmax", lambda f, p: f(p.f(None, 3, 4), 1), [None, 3, 4])
rows("nn.softmax nn.log_softmax", lambda f, p: f(p.f(None, 3, 4), p.n(1)), [None, 3, 4])
row("nn.crelu", lambda p: tn.nn.crelu(p.f(None, 3)), [None, 6])
row("nn.l2_normalize", lambda p: tn.nn.l2_normalize(p.f(None, 3), 1), [None, 3])
row("nn.l2_normalize", lambda p: tn.nn.l2_normalize(p.f(None, 3)), [None, 3])
row("nn.local_response_normalization",
    lambda p: tn.nn.local_response_normalization(p.f(None, 4, 4, 3)), [None, 4, 4, 3])
row("nn.dropout", lambda p: tn.nn.dropout(p.f(None, 3), 0.5), [None, 3])
row("nn.dropout", lambda p: tn.nn.dropout(p.f(None, 3), p.u()), [None, 3])
row("nn.dropout", lambda p: tn.nn.dropout(p.f(None, 3), rate=p.f()), [None, 3])
row("nn.dropout", lambda p: tn.nn.dropout(p.f(None, 3, 4), 0.5, [None, 1, 4]), [None, 3, 4])
row("nn.dropout", lambda p: tn.nn.dropout(p.f(None, 3), 0.5, p.v([2, 1])), [None, 3])
row("nn.dropout", lambda p: tn.nn.dropout(p.u(2, 3), 0.5), ANY)

# --- Sums with a bias
row("nn.bias_add", lambda p: tn.nn.bias_add(p.f(None, 3), p.f(3)), [None, 3])
row("nn.bias_add", lambda p: tn.nn.bias_add(p.f(None, 4, 4, 3), p.f(3)), [None, 4, 4, 3])
row("nn.bias_add", lambda p: tn.nn.bias_add(p.f(None, 3, 4, 4), p.f(3), "NCHW"), [None, 3, 4, 4])
rows("nn.xw_plus_b nn.relu_layer", lambda f, p: f(p.f(None, 3), p.f(3, 4), p.f(4)), [None, 4])

# --- Normalisation
row("nn.moments", lambda p: tn.nn.moments(p.f(None, 4, 4, 3), [0, 1, 2]), ([3], [3]))
row("nn.moments", lambda p: tn.nn.moments(p.f(None, 3), [0], keep_dims=True), ([1, 3], [1, 3]))
row("nn.moments", lambda p: tn.nn.moments(p.f(None, 3), [1]), ([None], [None]))
row("nn.weighted_moments", lambda p: tn.nn.weighted_moments(p.f(None, 3), [0], p.f(None, 1)),
    ([3], [3]))
row("nn.batch_normalization",
    lambda p: tn.nn.batch_normalization(p.f(None, 3), p.f(3), p.f(3), p.f(3), p.f(3), 1e-3),
    [None, 3])
row("nn.fused_batch_norm", lambda p: tn.nn.fused_batch_norm(p.f(None, 4, None, 3), p.f(3), p.f(3)),
    ([None, 4, None, 3], [3], [3]))
row("nn.layer_norm", lambda p: tn.nn.layer_norm(p.f(None, 4, 3), p.f(3), p.f(3)), [None, 4, 3])

# --- Convolution
IMAGES, FILTER = (None, 8, None, 3), (3, 3, 3, 5)
row("nn.conv2d", lambda p: tn.nn.conv2d(p.f(*IMAGES), p.f(*FILTER), [1, 2, 2, 1], "SAME"),
    [None, 4, None, 5])
row("nn.conv2d", lambda p: tn.nn.conv2d(p.f(None, 8, 8, 3), p.f(*FILTER), [1, 2, 2, 1], "VALID"),
    [None, 3, 3, 5])
row("nn.conv2d", lambda p: tn.nn.conv2d(p.f(None, 3, 8, 8), p.f(*FILTER), 1, "VALID",
                                        data_format="NCHW"), [None, 5, 6, 6])
row("nn.conv2d", lambda p: tn.nn.conv2d(p.f(None, 8, 8, 3), p.f(*FILTER), 1, "VALID",
                                        dilations=2), [None, 4, 4, 5])
row("nn.conv2d", lambda p: tn.nn.conv2d(p.u(2, 8, 8, 3), p.f(*FILTER), 1, "SAME"),
    [None, None, None, 5])
row("nn.conv2d", lambda p: tn.nn.conv2d(p.f(None, 8, 8, 3), p.u(*FILTER), 1, "SAME"),
    [None, 8, 8, None])
row("nn.conv1d", lambda p: tn.nn.conv1d(p.f(None, 8, 3), p.f(3, 3, 5), 2, "SAME"), [None, 4, 5])
row("nn.conv3d", lambda p: tn.nn.conv3d(p.f(None, 8, 8, None, 3), p.f(3, 3, 3, 3, 5),
                                        [1, 2, 2, 2, 1], "SAME"), [None, 4, 4, None, 5])
row("nn.convolution", lambda p: tn.nn.convolution(p.f(None, 8, 8, 3), p.f(*FILTER), "VALID"),
    [None, 6, 6, 5])
row("nn.convolution", lambda p: tn.nn.convolution(p.f(None, 8, 8, 3), p.f(*FILTER), "SAME",
                                                  dilation_rate=[2, 2]), [None, 8, 8, 5])
row("nn.atrous_conv2d", lambda p: tn.nn.atrous_conv2d(p.f(None, 9, 9, 3), p.f(*FILTER), 2, "VALID"),
    [None, 5, 5, 5])
row("nn.depthwise_conv2d", lambda p: tn.nn.depthwise_conv2d(p.f(*IMAGES), p.f(3, 3, 3, 2),
                                                            [1, 1, 1, 1], "SAME"),
    [None, 8, None, 6])
row("nn.depthwise_conv2d_native",
    lambda p: tn.nn.depthwise_conv2d_native(p.f(*IMAGES), p.f(3, 3, 3, 2), [1, 2, 2, 1], "SAME"),
    [None, 4, None, 6])
row("nn.separable_conv2d",
    lambda p: tn.nn.separable_conv2d(p.f(None, 8, 8, 3), p.f(3, 3, 3, 2), p.f(1, 1, 6, 5),
                                     [1, 1, 1, 1], "VALID"), [None, 6, 6, 5])
TRANSPOSED = (3, 3, 5, 3)


def batch_and(x, *rest):
    return tn.stack([tn.shape(x)[0], *rest])


def transposed(p):
    x = p.f(None, 4, 4, 3)
    return tn.nn.conv2d_transpose(x, p.f(*TRANSPOSED), batch_and(x, 8, 8, 5), [1, 2, 2, 1])


row("nn.conv2d_transpose", transposed, [None, 8, 8, 5])
row("nn.conv2d_transpose", lambda p: tn.nn.conv2d_transpose(
    p.f(None, 4, 4, 3), p.f(*TRANSPOSED), [2, 8, 8, 5], [1, 2, 2, 1]), [2, 8, 8, 5])
row("nn.conv2d_transpose", lambda p: tn.nn.conv2d_transpose(
    p.f(None, 4, 4, 3), p.f(*TRANSPOSED), p.v([2, 8, 8, 5]), [1, 2, 2, 1]),
    [None, None, None, 5])


def transposed_volumes(p):
    x = p.f(None, 4, 4, 4, 3)
    return tn.nn.conv3d_transpose(x, p.f(3, 3, 3, 5, 3), batch_and(x, 8, 8, 8, 5), [1, 2, 2, 2, 1])


row("nn.conv3d_transpose", transposed_volumes, [None, 8, 8, 8, 5])


def transposed_sequences(p):
    x = p.f(None, 4, 3)
    return tn.nn.conv1d_transpose(x, p.f(3, 5, 3), batch_and(x, 8, 5), 2)


row("nn.conv1d_transpose", transposed_sequences, [None, 8, 5])


def atrous_transposed(p):
    x = p.f(None, 5, 5, 3)
    return tn.nn.atrous_conv2d_transpose(x, p.f(*TRANSPOSED), batch_and(x, 9, 9, 5), 2, "VALID")


row("nn.atrous_conv2d_transpose", atrous_transposed, [None, 9, 9, 5])
row("nn.conv2d_backprop_input", lambda p: tn.nn.conv2d_backprop_input(
    [p.n(2), 8, 8, 3], p.f(*FILTER), p.f(None, 8, 8, 5), [1, 1, 1, 1], "SAME"), [None, 8, 8, 3])
row("nn.conv2d_backprop_filter", lambda p: tn.nn.conv2d_backprop_filter(
    p.f(None, 8, 8, 3), FILTER, p.f(None, 8, 8, 5), [1, 1, 1, 1], "SAME"), list(FILTER))
row("nn.conv3d_backprop_filter_v2", lambda p: tn.nn.conv3d_backprop_filter_v2(
    p.f(None, 4, 4, 4, 3), [3, 3, 3, 3, 5], p.f(None, 4, 4, 4, 5), [1] * 5, "SAME"),
    [3, 3, 3, 3, 5])
row("nn.depthwise_conv2d_native_backprop_input",
    lambda p: tn.nn.depthwise_conv2d_native_backprop_input(
        [p.n(2), 8, 8, 3], p.f(3, 3, 3, 2), p.f(None, 8, 8, 6), [1, 1, 1, 1], "SAME"),
    [None, 8, 8, 3])
row("nn.depthwise_conv2d_native_backprop_filter",
    lambda p: tn.nn.depthwise_conv2d_native_backprop_filter(
        p.f(None, 8, 8, 3), [3, 3, 3, 2], p.f(None, 8, 8, 6), [1, 1, 1, 1], "SAME"), [3, 3, 3, 2])
row("nn.with_space_to_batch", lambda p: tn.nn.with_space_to_batch(
    p.f(None, 8, 8, 3), [2, 2], "VALID",
    lambda x, *_: tn.nn.conv2d(x, tn.ones(FILTER), 1, "VALID"), [3, 3]), [None, 4, 4, 5])

# --- Pooling
rows("nn.max_pool nn.avg_pool", lambda f, p: f(p.f(*IMAGES), [1, 2, 2, 1], [1, 2, 2, 1], "SAME"),
     [None, 4, None, 3])
rows("nn.max_pool nn.avg_pool", lambda f, p: f(p.f(None, 7, 7, 3), [1, 2, 2, 1], [1, 2, 2, 1],
                                               "VALID"), [None, 3, 3, 3])
rows("nn.max_pool1d nn.avg_pool1d", lambda f, p: f(p.f(None, 8, 3), 2, 2, "VALID"), [None, 4, 3])
rows("nn.max_pool3d nn.avg_pool3d", lambda f, p: f(p.f(None, 8, 8, 8, 3), 2, 2, "VALID"),
     [None, 4, 4, 4, 3])
row("nn.max_pool", lambda p: tn.nn.max_pool(p.f(None, 4, 4, 6), [1, 1, 1, 3], [1, 1, 1, 3],
                                            "VALID"), [None, 4, 4, 2])
row("nn.max_pool_with_argmax", lambda p: tn.nn.max_pool_with_argmax(
    p.f(None, 8, 8, 3), [1, 2, 2, 1], [1, 2, 2, 1], "VALID"), ([None, 4, 4, 3], [None, 4, 4, 3]))
row("nn.pool", lambda p: tn.nn.pool(p.f(None, 8, 8, 3), [2, 2], "MAX", "VALID"), [None, 7, 7, 3])
row("nn.pool", lambda p: tn.nn.pool(p.f(None, 8, 8, 3), [2, 2], "AVG", "SAME",
                                    dilation_rate=[2, 2]), [None, 8, 8, 3])

# --- Losses, choosing, embeddings
rows("nn.softmax_cross_entropy_with_logits nn.softmax_cross_entropy_with_logits_v2",
     lambda f, p: f(labels=p.f(None, 3), logits=p.f(None, 3)), [None])
rows("nn.softmax_cross_entropy_with_logits nn.softmax_cross_entropy_with_logits_v2",
     lambda f, p: f(labels=p.f(None, 4, 3), logits=p.f(None, 4, 3)), [None, 4])
row("nn.sparse_softmax_cross_entropy_with_logits",
    lambda p: tn.nn.sparse_softmax_cross_entropy_with_logits(labels=p.i(None), logits=p.f(None, 3)),
    [None])
row("nn.sparse_softmax_cross_entropy_with_logits",
    lambda p: tn.nn.sparse_softmax_cross_entropy_with_logits(labels=p.i(None, 4),
                                                             logits=p.f(None, 4, 3)), [None, 4])
row("nn.sigmoid_cross_entropy_with_logits",
    lambda p: tn.nn.sigmoid_cross_entropy_with_logits(labels=p.f(None, 3), logits=p.f(2, 3)),
    [2, 3])
row("nn.weighted_cross_entropy_with_logits",
    lambda p: tn.nn.weighted_cross_entropy_with_logits(p.f(None, 3), p.f(None, 3), 2.0), [None, 3])
row("nn.l2_loss", lambda p: tn.nn.l2_loss(p.u(2, 3)), [])
row("nn.zero_fraction", lambda p: tn.nn.zero_fraction(p.u(2, 3)), [])
row("nn.top_k", lambda p: tn.nn.top_k(p.f(None, 5), 2), ([None, 2], [None, 2]))
row("nn.top_k", lambda p: tn.nn.top_k(p.f(None, 5), p.n(2)), ([None, None], [None, None]))
row("nn.in_top_k", lambda p: tn.nn.in_top_k(p.f(None, 5), p.i(None), 2), [None])
row("nn.embedding_lookup", lambda p: tn.nn.embedding_lookup(p.f(7, 4), p.i(None, 5)),
    [None, 5, 4])
row("nn.embedding_lookup", lambda p: tn.nn.embedding_lookup([p.f(7, 4), p.f(7, 4)], p.i(None)),
    [None, 4])
row("nn.embedding_lookup_sparse", lambda p: tn.nn.embedding_lookup_sparse(
    p.f(7, 4), tn.SparseTensor([[0, 0], [1, 0]], tn.constant([1, 2], tn.int64), [2, 1]), None,
    combiner="sum"), [None, 4])


def sequences(p):
    return tn.SparseTensor([[0, 0], [1, 0]], tn.constant([1, 0]), [2, 1])


row("nn.ctc_loss", lambda p: tn.nn.ctc_loss(sequences(p), p.f(5, 2, 4), p.v([5, 5])), [2])
row("nn.ctc_greedy_decoder", lambda p: tn.nn.ctc_greedy_decoder(p.f(5, 2, 4), p.v([5, 5])),
    ([None, 2], [None], [2], [2, 1]))
row("nn.ctc_beam_search_decoder", lambda p: tn.nn.ctc_beam_search_decoder(p.f(5, 2, 4),
                                                                          p.v([5, 5])),
    ([None, 2], [None], [2], [2, 1]))

# --- Recurrent networks


def cell():
    return tn.nn.rnn_cell.BasicLSTMCell(6)


def static(p):
    outputs, state = tn.nn.static_rnn(cell(), [p.f(None, 3), p.f(None, 3)], dtype=tn.float32)
    return outputs + list(state)


row("nn.static_rnn", static, tuple([None, 6] for _ in range(4)))


def dynamic(p):
    outputs, state = tn.nn.dynamic_rnn(cell(), p.f(None, 4, 3), dtype=tn.float32)
    return [outputs] + list(state)


row("nn.dynamic_rnn", dynamic, ([None, 4, 6], [None, 6], [None, 6]))
row("nn.dynamic_rnn", lambda p: tn.nn.dynamic_rnn(tn.nn.rnn_cell.BasicRNNCell(6), p.f(None, 4, 3),
                                                  dtype=tn.float32), ([None, 4, 6], [None, 6]))
row("nn.dynamic_rnn", lambda p: tn.nn.dynamic_rnn(
    tn.nn.rnn_cell.BasicRNNCell(6), p.f(None, 2, 3), p.v([1, 2]), dtype=tn.float32,
    time_major=True), ([None, 2, 6], [2, 6]))


def steered(p):
    def loop_fn(time, output, state, _):
        state = p.f(2, 6) if state is None else state
        return time >= 3, tn.ones([2, 3]), state, output, None
    emitted, state, _ = tn.nn.raw_rnn(tn.nn.rnn_cell.BasicRNNCell(6), loop_fn)
    return [emitted.stack(), state]


row("nn.raw_rnn", steered, ([None, 2, 6], [2, 6]))


def both_ways(p):
    outputs, _, _ = tn.nn.static_bidirectional_rnn(cell(), cell(), [p.f(None, 3)],
                                                   dtype=tn.float32)
    return outputs


row("nn.static_bidirectional_rnn", both_ways, [None, 12])


def dynamic_both_ways(p):
    outputs, _ = tn.nn.bidirectional_dynamic_rnn(cell(), cell(), p.f(None, 4, 3), dtype=tn.float32)
    return list(outputs)


row("nn.bidirectional_dynamic_rnn", dynamic_both_ways, ([None, 4, 6], [None, 4, 6]))

# --- Candidates
for name in ("uniform_candidate_sampler log_uniform_candidate_sampler "
             "learned_unigram_candidate_sampler").split():
    row("nn." + name, lambda p, f=getattr(tn.nn, name): f(p.v([[1], [2]], [None, 1], tn.int64), 1,
                                                          4, True, 9), ([4], [None, 1], [4]))
row("nn.fixed_unigram_candidate_sampler", lambda p: tn.nn.fixed_unigram_candidate_sampler(
    p.v([[1], [2]], [None, 1], tn.int64), 1, 4, True, 9, unigrams=[1] * 9), ([4], [None, 1], [4]))
row("nn.all_candidate_sampler", lambda p: tn.nn.all_candidate_sampler(
    p.v([[1], [2]], [None, 1], tn.int64), 1, 4, True), ([4], [None, 1], [4]))
row("nn.compute_accidental_hits", lambda p: tn.nn.compute_accidental_hits(
    p.v([[1], [2]], [None, 1], tn.int64), tn.constant([1, 2, 3], tn.int64), 1),
    ([None], [None], [None]))
rows("nn.nce_loss nn.sampled_softmax_loss", lambda f, p: f(
    p.f(9, 3), p.f(9), p.v([[1], [2]], [None, 1], tn.int64), p.f(None, 3), 4, 9), [None])

# --- Layers
L = "layers."
row(L + "dense", lambda p: tn.layers.dense(p.f(None, 3), 4), [None, 4])
row(L + "dense", lambda p: tn.layers.dense(p.f(None, 5, 3), 4), [None, 5, 4])
row(L + "dropout", lambda p: tn.layers.dropout(p.f(None, 3), training=True), [None, 3])
row(L + "dropout", lambda p: tn.layers.dropout(p.f(None, 3), training=p.of(tn.bool, None, ())),
    [None, 3])
row(L + "flatten", lambda p: tn.layers.flatten(p.f(None, 4, 3)), [None, 12])
row(L + "flatten", lambda p: tn.layers.flatten(p.f(2, None, 3)), [2, None])
row(L + "batch_normalization", lambda p: tn.layers.batch_normalization(p.f(None, 3), training=True),
    [None, 3])
for shape in (None, 3), (None, 4, 4, 3), (None, None, None, 3):
    row(L + "batch_normalization", lambda p, shape=shape: tn.layers.batch_normalization(
        p.f(*shape), training=p.of(tn.bool, None, ())), list(shape))
row(L + "conv1d", lambda p: tn.layers.conv1d(p.f(None, 8, 3), 5, 3), [None, 6, 5])
row(L + "conv2d", lambda p: tn.layers.conv2d(p.f(None, 8, None, 3), 5, 3, 2, "same"),
    [None, 4, None, 5])
row(L + "conv3d", lambda p: tn.layers.conv3d(p.f(None, 8, 8, 8, 3), 5, 3), [None, 6, 6, 6, 5])
row(L + "conv2d_transpose", lambda p: tn.layers.conv2d_transpose(p.f(None, 4, 4, 3), 5, 3, 2,
                                                                 "same"), [None, 8, 8, 5])
row(L + "conv2d_transpose", lambda p: tn.layers.conv2d_transpose(p.f(None, 4, None, 3), 5, 3, 2),
    [None, 9, None, 5])
row(L + "conv3d_transpose", lambda p: tn.layers.conv3d_transpose(p.f(None, 4, 4, 4, 3), 5, 3, 2),
    [None, 9, 9, 9, 5])
row(L + "separable_conv1d", lambda p: tn.layers.separable_conv1d(p.f(None, 8, 3), 5, 3),
    [None, 6, 5])
row(L + "separable_conv2d", lambda p: tn.layers.separable_conv2d(p.f(None, 8, 8, 3), 5, 3),
    [None, 6, 6, 5])
rows(L + "max_pooling1d " + L + "average_pooling1d", lambda f, p: f(p.f(None, 8, 3), 2, 2),
     [None, 4, 3])
rows(L + "max_pooling2d " + L + "average_pooling2d", lambda f, p: f(p.f(None, 8, None, 3), 2, 2),
     [None, 4, None, 3])
rows(L + "max_pooling3d " + L + "average_pooling3d", lambda f, p: f(p.f(None, 8, 8, 8, 3), 2, 2),
     [None, 4, 4, 4, 3])
