# SPDX-License-Identifier: Apache-2.0
"""Sequences from sequences: attention over an encoder's outputs, and decoding by the words that are
given, by the likeliest, by samples or by beam search. TensorFlow 1's contrib.seq2seq.

    attention = tn.seq2seq.LuongAttention(64, encoder_outputs, lengths)
    cell = tn.seq2seq.AttentionWrapper(tn.nn.rnn_cell.GRUCell(64), attention, 64)
    helper = tn.seq2seq.TrainingHelper(embedded_targets, target_lengths)
    decoder = tn.seq2seq.BasicDecoder(cell, helper, cell.zero_state(batch, tn.float32),
                                      tn.layers.Dense(words))
    outputs, state, lengths = tn.seq2seq.dynamic_decode(decoder)
    loss = tn.seq2seq.sequence_loss(outputs.rnn_output, targets, weights)
"""

from treenail._names import no_attribute as _no_attribute
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail.raw_ops import GatherTree as gather_tree
from treenail.seq2seq._attention import (AttentionMechanism, BahdanauAttention, LuongAttention,
                                         hardmax)
from treenail.seq2seq._basic import BasicDecoder, BasicDecoderOutput
from treenail.seq2seq._beam import BeamSearchDecoder, gather_tree_from_array, tile_batch
from treenail.seq2seq._beam_step import (BeamSearchDecoderOutput, BeamSearchDecoderState,
                                         FinalBeamSearchDecoderOutput)
from treenail.seq2seq._decoder import Decoder, dynamic_decode
from treenail.seq2seq._helpers import (CustomHelper, GreedyEmbeddingHelper, Helper,
                                       InferenceHelper, SampleEmbeddingHelper, TrainingHelper)
from treenail.seq2seq._loss import sequence_loss
from treenail.seq2seq._monotonic import (BahdanauMonotonicAttention, LuongMonotonicAttention,
                                         monotonic_attention, safe_cumprod)
from treenail.seq2seq._scheduled import (ScheduledEmbeddingTrainingHelper,
                                         ScheduledOutputTrainingHelper)
from treenail.seq2seq._wrapper import AttentionWrapper, AttentionWrapperState

__all__ = ["AttentionMechanism", "AttentionWrapper", "AttentionWrapperState", "BahdanauAttention",
           "BahdanauMonotonicAttention", "BasicDecoder", "BasicDecoderOutput", "BeamSearchDecoder",
           "BeamSearchDecoderOutput", "BeamSearchDecoderState", "CustomHelper", "Decoder",
           "FinalBeamSearchDecoderOutput", "GreedyEmbeddingHelper", "Helper", "InferenceHelper",
           "LuongAttention", "LuongMonotonicAttention", "SampleEmbeddingHelper",
           "ScheduledEmbeddingTrainingHelper", "ScheduledOutputTrainingHelper", "TrainingHelper",
           "dynamic_decode", "gather_tree", "gather_tree_from_array", "hardmax",
           "monotonic_attention", "safe_cumprod", "sequence_loss", "tile_batch"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
