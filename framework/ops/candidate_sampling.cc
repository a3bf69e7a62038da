// SPDX-License-Identifier: Apache-2.0
// Drawing classes to compare the true ones with, for losses over very many classes (Python: nn's
// nce_loss and sampled_softmax_loss). Kernels: kernels/host/random/candidate_sampling.cc.
#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

void sampler_shape(ShapeContext& c) {
  const OpInstance& op = c.op();
  const int64_t num_true = op.get_int("num_true"), num_sampled = op.get_int("num_sampled");
  const PartialShape true_classes = c.with_rank(0, 2);
  if (true_classes[1] != kUnknown && true_classes[1] != num_true) {
    throw invalid_argument("true_classes must have num_true = ", num_true,
                           " columns, its shape is ", true_classes);
  }
  if (op.def().attr_index("range_max") >= 0 && op.get_bool("unique") &&
      num_sampled > op.get_int("range_max")) {
    throw invalid_argument("Sampler's range is too small: num_sampled = ", num_sampled,
                           " different classes are wanted, range_max = ", op.get_int("range_max"));
  }
  c.set_output(0, PartialShape{num_sampled});
  c.set_output(1, PartialShape{true_classes[0], num_true});
  c.set_output(2, PartialShape{num_sampled});
}

void accidental_hits_shape(ShapeContext& c) {
  const PartialShape true_classes = c.with_rank(0, 2);
  const int64_t num_true = c.op().get_int("num_true");
  if (true_classes[1] != kUnknown && true_classes[1] != num_true) {
    throw invalid_argument("true_classes must have num_true = ", num_true,
                           " columns, its shape is ", true_classes);
  }
  c.with_rank(1, 1);
  for (int i = 0; i < 3; ++i) c.set_output(i, PartialShape{kUnknown});
}

constexpr char kSamplerDoc[] =
    "\n\nsampled_candidates, [num_sampled], are drawn anew in each run, without repetition when "
    "unique. true_classes is [batch, num_true]. The other outputs say how often a class is "
    "expected among the drawn, for the true classes and for the drawn ones: num_sampled times its "
    "probability p, or 1 - (1 - p)^n when unique, where n numbers had to be drawn to find "
    "num_sampled different ones.\n"
    "Errors: InvalidArgument for a true class outside [0, range_max), or when there are fewer than "
    "num_sampled classes to choose from and unique.\n"
    "seed, seed2: the graph-level and the op-level seed; both 0: seeded by the operating system. "
    "Generator: Philox4x32-10 (Salmon et al., SC 2011).";

void declare_sampler(OpRegistry& r, const char* name, bool range, const char* doc,
                     std::initializer_list<const char*> more = {},
                     HostAccess access = HostAccess::kNone) {
  OpDeclaration op = r.op(name, access);
  op.input("true_classes: int64")
      .output("sampled_candidates: int64")
      .output("true_expected_count: float")
      .output("sampled_expected_count: float")
      .attr("num_true: int >= 1")
      .attr("num_sampled: int >= 1")
      .attr("unique: bool");
  if (range) op.attr("range_max: int >= 1");
  for (const char* attr : more) op.attr(attr);
  op.attr("seed: int = 0").attr("seed2: int = 0");
  if (range) {
    op.random();
  } else {
    op.stateful();
  }
  op.shape(sampler_shape).not_differentiable().doc(range ? concat(doc, kSamplerDoc) : doc);
}

}  // namespace

void register_candidate_sampling_ops(OpRegistry& r) {
  declare_sampler(r, "UniformCandidateSampler", true,
                  "Draws classes from [0, range_max), all equally likely.");
  declare_sampler(r, "LogUniformCandidateSampler", true,
                  "Draws classes from [0, range_max) with probability log((c + 2) / (c + 1)) / "
                  "log(range_max + 1).\n\nThis is about Zipf's law: for classes numbered by "
                  "falling frequency, as words mostly are.");
  declare_sampler(r, "LearnedUnigramCandidateSampler", true,
                  "Draws classes from [0, range_max) as often as they were true so far.\n\nEach "
                  "class begins with a count of 1, and each run adds its true classes after "
                  "drawing. The counts belong to the session; in immediate execution every call "
                  "begins anew.");
  declare_sampler(
      r, "FixedUnigramCandidateSampler", true,
      "Draws classes from [0, range_max) with probabilities in proportion to given "
      "weights, each raised to the power of `distortion`.\n\n"
      "unigrams: the weights of the classes, in order; or vocab_file: a text file with a line for "
      "each, whose last field, separated by commas, is the weight. num_reserved_ids: so many "
      "classes come first that are never drawn. num_shards, shard: only reserved classes whose "
      "number is `shard` modulo num_shards count, then weights whose number, counted on from "
      "there, is; and all are numbered anew. There must be range_max of both together.",
      {"vocab_file: string = ''", "distortion: float = 1.0", "num_reserved_ids: int >= 0 = 0",
       "num_shards: int >= 1 = 1", "shard: int >= 0 = 0", "unigrams: list(float) = []"},
      HostAccess::kFiles);
  declare_sampler(r, "AllCandidateSampler", false,
                  "Gives all classes [0, num_sampled), each of them expected once.\n\n"
                  "For tests, and losses that are to be compared with sampled ones. seed, seed2 "
                  "and unique have no effect. true_classes is [batch, num_true].\n"
                  "Errors: InvalidArgument for a true class outside [0, num_sampled).");

  r.op("ComputeAccidentalHits", HostAccess::kNone)
      .input("true_classes: int64")
      .input("sampled_candidates: int64")
      .output("indices: int32")
      .output("ids: int64")
      .output("weights: float")
      .attr("num_true: int")
      .attr("seed: int = 0")
      .attr("seed2: int = 0")
      .data_dependent_shape()
      .shape(accidental_hits_shape)
      .not_differentiable()
      .doc(
          "Finds true classes among sampled ones.\n\n"
          "true_classes is [batch, num_true], sampled_candidates [num_sampled]. For each true "
          "class in turn, and each place where it was sampled, there is an element of every "
          "output: the row of true_classes, the place in sampled_candidates, and the lowest "
          "float, which added to a logit takes the class out of a softmax. seed and seed2 have no "
          "effect.\n"
          "Errors: InvalidArgument where true_classes has not num_true columns.");
  r.finish("candidate_sampling");
}

}  // namespace treenail
