// SPDX-License-Identifier: Apache-2.0
// Connectionist temporal classification: the loss of label sequences without alignment, and the two
// usual decoders. The blank is the last class. How they are computed: kernels/host/ctc/ctc_loss.cc
// and ctc_decoders.cc.
#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

// inputs [max_time, batch, classes] and sequence_length [batch] (input `lengths`): checked, the
// batch.
int64_t checked_inputs(ShapeContext& c, int lengths) {
  const PartialShape inputs = c.with_rank(0, 3);
  if (inputs[2] == 0) throw invalid_argument("inputs must have at least one class, got ", inputs);
  return ShapeContext::merge_dim(inputs[1], c.with_rank(lengths, 1)[0],
                                 "the batch of inputs and the length of sequence_length");
}

void ctc_loss_shape(ShapeContext& c) {
  const int64_t batch = checked_inputs(c, 3);
  const PartialShape indices = c.with_rank(1, 2);
  if (indices[1] != kUnknown && indices[1] != 2) {
    throw invalid_argument("labels_indices must have shape [n, 2], got ", indices);
  }
  ShapeContext::merge_dim(indices[0], c.with_rank(2, 1)[0],
                          "the rows of labels_indices and the length of labels_values");
  c.set_output(0, PartialShape({batch}));
  const PartialShape inputs = c.with_rank(0, 3);
  c.set_output(1, inputs.with_dim(1, batch));
}

void ctc_loss_gradient(GradientContext& c) {
  Emitter& e = c.e;
  // Output 1 holds the derivatives; its own are not known.
  const Value derivatives =
      e.call("PreventGradient", {c.output(1)},
             {{"message",
               "CTCLoss has no second derivative: its gradient is computed together "
               "with the loss"}});
  const Value axis = e.const_tensor(Tensor::scalar<int32_t>(1));
  c.set(0, e.mul(e.call("ExpandDims", {c.gradient(0), axis}), derivatives));
}

// Indices [n, 2], values [n] and dense shape [2] of each of `paths` sparse matrices.
void set_sparse_outputs(ShapeContext& c, int paths) {
  for (int i = 0; i < paths; ++i) {
    c.set_output(i, PartialShape({kUnknown, 2}));
    c.set_output(paths + i, PartialShape({kUnknown}));
    c.set_output(2 * paths + i, PartialShape({2}));
  }
}

void greedy_decoder_shape(ShapeContext& c) {
  const int64_t batch = checked_inputs(c, 1);
  set_sparse_outputs(c, 1);
  c.set_output(3, PartialShape({batch, 1}));
}

void beam_search_shape(ShapeContext& c) {
  const int64_t batch = checked_inputs(c, 1);
  const int64_t paths = c.op().get_int("top_paths"), width = c.op().get_int("beam_width");
  constexpr int64_t kWidest = 1 << 20;
  if (width > kWidest) {
    throw invalid_argument("beam_width must be at most ", kWidest, ", got ", width);
  }
  if (paths > width) {
    throw invalid_argument("top_paths must not exceed beam_width, got ", paths, " and ", width);
  }
  set_sparse_outputs(c, static_cast<int>(paths));
  c.set_output(static_cast<int>(3 * paths), PartialShape({batch, paths}));
}

constexpr const char* kInputs =
    "inputs: logits [max_time, batch, classes], the last class being the blank; sequence_length "
    "[batch]: how many steps of each count.";

}  // namespace

void register_ctc_ops(OpRegistry& r) {
  r.op("CTCLoss", HostAccess::kNone)
      .input("inputs: T")
      .input("labels_indices: int64")
      .input("labels_values: int32")
      .input("sequence_length: int32")
      .output("loss: T")
      .output("gradient: T")
      .attr("preprocess_collapse_repeated: bool = false")
      .attr("ctc_merge_repeated: bool = true")
      .attr("ignore_longer_outputs_than_inputs: bool = false")
      .attr("T: {float, double} = float")
      .shape(ctc_loss_shape)
      .gradient(ctc_loss_gradient, {"gradient"})
      .doc(concat(
          "Connectionist temporal classification: the negative log-probability of label sequences, "
          "summed over all alignments, [batch].\n\n",
          kInputs,
          " labels_indices [n, 2] (batch, place, ascending) and labels_values [n] are the labels "
          "as a sparse matrix; labels of classes - 1 or more end a sequence. "
          "preprocess_collapse_repeated: equal neighbours among the labels count once. "
          "ctc_merge_repeated = false: equal classes at consecutive steps stay several labels. "
          "ignore_longer_outputs_than_inputs: a sequence with more labels than steps has loss 0 "
          "instead of being an error. Labels that fit but have no alignment have an infinite "
          "loss.\n\ngradient [max_time, batch, classes]: the derivatives of the losses.\n\n"
          "Errors: InvalidArgument for a length beyond max_time, labels out of order or negative, "
          "or more labels than steps. Source: Graves et al., Connectionist Temporal "
          "Classification, 2006."));
  r.op("CTCGreedyDecoder", HostAccess::kNone)
      .input("inputs: T")
      .input("sequence_length: int32")
      .output("decoded_indices: int64")
      .output("decoded_values: int64")
      .output("decoded_shape: int64")
      .output("log_probability: T")
      .attr("merge_repeated: bool = false")
      .attr("T: {float, double} = float")
      .data_dependent_shape()
      .shape(greedy_decoder_shape)
      .not_differentiable()
      .doc(concat("The most probable class of each step, without blanks.\n\n", kInputs,
                  " merge_repeated: a class counts once while it stays the most probable. The "
                  "labels are a sparse matrix [batch, longest]; log_probability [batch, 1] is the "
                  "negative sum of the largest logits.\n\n"
                  "Errors: InvalidArgument for a length beyond max_time."));
  r.op("CTCBeamSearchDecoder", HostAccess::kNone)
      .input("inputs: T")
      .input("sequence_length: int32")
      .output("decoded_indices: top_paths * int64")
      .output("decoded_values: top_paths * int64")
      .output("decoded_shape: top_paths * int64")
      .output("log_probability: T")
      .attr("beam_width: int >= 1")
      .attr("top_paths: int >= 1")
      .attr("merge_repeated: bool = true")
      .attr("T: {float, double} = float")
      .data_dependent_shape()
      .shape(beam_search_shape)
      .not_differentiable()
      .doc(concat("The most probable label sequences that a beam search over prefixes finds.\n\n",
                  kInputs,
                  " beam_width: prefixes kept from step to step. The top_paths best sequences, the "
                  "best first, are sparse matrices [batch, longest]; log_probability [batch, "
                  "top_paths] holds their log-probabilities as far as the beam saw them. "
                  "merge_repeated: equal neighbours in a result are written once, even where "
                  "a blank parted them.\n\n"
                  "Errors: InvalidArgument for a length beyond max_time, and where there are fewer "
                  "than top_paths sequences. Source: Graves, Sequence Transduction with Recurrent "
                  "Neural Networks, 2012; Hannun et al., First-Pass Large Vocabulary Continuous "
                  "Speech Recognition, 2014."));
  r.finish("ctc");
}

}  // namespace treenail
