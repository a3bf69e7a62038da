// SPDX-License-Identifier: Apache-2.0
// Random numbers, counter-based (Philox4x32-10): element i of a result depends on the seeds, on how
// many numbers the op gave before, and on i alone. Seeds and streams are TensorFlow 1's; the
// stateless forms depend on their `seed` input only.
#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"

namespace treenail {
namespace {

void shape_from_input(ShapeContext& c) { c.set_output(0, extents_from_value(c, 0)); }

void check_range(const ShapeContext& c, int minval, int maxval) {
  c.with_rank(minval, 0);
  c.with_rank(maxval, 0);
  const std::optional<int64_t> low = known_scalar(c, minval);
  const std::optional<int64_t> high = known_scalar(c, maxval);
  if (low && high && *low >= *high)
    throw invalid_argument("Need minval < maxval, got ", *low, " >= ", *high);
}

void uniform_int_shape(ShapeContext& c) {
  check_range(c, 1, 2);
  shape_from_input(c);
}

// Two integers, or a place in a stream.
void check_seed(const ShapeContext& c) {
  const PartialShape seed = c.with_rank(1, 1);
  const bool stream = c.op().input_type(1) == DType::kUInt32 && seed[0] == 6;
  if (seed[0] != kUnknown && seed[0] != 2 && !stream)
    throw invalid_argument("seed must have shape [2], not ", c.input(1));
}

void stream_shape(ShapeContext& c) {
  extents_from_value(c, 0);  // for its errors
  c.set_output(0, Shape{6});
}

void stateless_shape(ShapeContext& c) {
  check_seed(c);
  shape_from_input(c);
}

void stateless_int_shape(ShapeContext& c) {
  check_seed(c);
  check_range(c, 2, 3);
  shape_from_input(c);
}

void multinomial_shape(ShapeContext& c) {
  const PartialShape logits = c.with_rank(0, 2);
  c.with_rank(1, 0);
  const std::optional<int64_t> samples = known_scalar(c, 1);
  if (samples && *samples < 0)
    throw invalid_argument("num_samples should be non-negative, got ", *samples);
  if (logits[1] == 0)
    throw invalid_argument("num_classes should be positive, logits has shape ", logits);
  check_positions_fit(c.op().output_type(0), logits[1], "a row of logits");
  c.set_output(0, PartialShape{logits[0], samples.value_or(kUnknown)});
}

constexpr char kSeedDoc[] =
    "\nseed, seed2: the graph-level and the op-level seed; both 0: seeded by the operating system. "
    "Each execution continues the "
    "stream.\nGenerator: Philox4x32-10 (Salmon et al., SC 2011), TensorFlow 1's stream.";
constexpr char kStatelessDoc[] =
    "\nseed: two integers, taken modulo 2^64, or what RandomStream gives; equal seeds and shapes "
    "give "
    "equal results.\nGenerator: Philox4x32-10 "
    "(Salmon et al., SC 2011), keyed as "
    "by TensorFlow 1.";

void register_stateful(OpRegistry& r) {
  const struct {
    const char* name;
    const char* doc;
  } reals[] = {
      {"RandomUniform", "Numbers uniform in [0, 1)."},
      {"RandomStandardNormal",
       "Numbers from the normal distribution of mean 0 and standard deviation 1 (Box-Muller "
       "transform)."},
      {"TruncatedNormal",
       "Numbers from the standard normal distribution, those of magnitude 2 and more drawn again."},
  };
  for (const auto& real : reals) {
    r.op(real.name, HostAccess::kNone)
        .input("shape: T")
        .output("output: dtype")
        .attr("seed: int = 0")
        .attr("seed2: int = 0")
        .attr("dtype: {half, bfloat16, float, double}")
        .attr("T: {int32, int64}")
        .host("shape")
        .random()
        .shape(shape_from_input)
        .not_differentiable()
        .doc(concat(real.doc, "\n", kSeedDoc));
  }
  r.op("RandomUniformInt", HostAccess::kNone)
      .input("shape: T")
      .input("minval: Tout")
      .input("maxval: Tout")
      .output("output: Tout")
      .attr("seed: int = 0")
      .attr("seed2: int = 0")
      .attr("Tout: {int32, int64}")
      .attr("T: {int32, int64}")
      .host("shape")
      .host("minval")
      .host("maxval")
      .random()
      .shape(uniform_int_shape)
      .not_differentiable()
      .doc(concat("Integers from [minval, maxval), each about equally likely: the bias is (maxval "
                  "- minval) / 2^32 (2^64 for int64) "
                  "at most.\n\nErrors: InvalidArgument unless minval < maxval.",
                  kSeedDoc));
  r.op("RandomStream", HostAccess::kNone)
      .input("shape: T")
      .output("stream: uint32")
      .attr("seed: int = 0")
      .attr("seed2: int = 0")
      .attr("T: {int32, int64}")
      .host("shape")
      .random()
      .shape(stream_shape)
      .not_differentiable()
      .doc(
          concat("Where the numbers of the next tensor of that shape begin in a stream, six words: "
                 "a stateless operation gives them for it as `seed`.\n",
                 kSeedDoc));
  r.op("RandomShuffle", HostAccess::kNone)
      .input("value: T")
      .output("output: T")
      .attr("seed: int = 0")
      .attr("seed2: int = 0")
      .attr("T: type")
      .random()
      .shape(unchanged_shape)
      .not_differentiable()
      .doc(
          concat("The rows of `value` (slices along its first axis) in random order.\n", kSeedDoc));
  r.op("Multinomial", HostAccess::kNone)
      .input("logits: T")
      .input("num_samples: int32")
      .output("output: output_dtype")
      .attr("seed: int = 0")
      .attr("seed2: int = 0")
      .attr("T: {half, bfloat16, float, double}")
      .attr("output_dtype: {int32, int64} = int64")
      .host("num_samples")
      .random()
      .shape(multinomial_shape)
      .not_differentiable()
      .doc(concat("Classes drawn with the probabilities softmax(logits): `num_samples` for each "
                  "row of logits [batch, classes].\n\n"
                  "A logit that is not finite gives its class probability 0.",
                  kSeedDoc));
}

void register_stateless(OpRegistry& r) {
  const struct {
    const char* name;
    const char* doc;
  } reals[] = {
      {"StatelessRandomUniform", "Numbers uniform in [0, 1), a function of `seed`."},
      {"StatelessRandomNormal",
       "Numbers from the standard normal distribution, a function of `seed`."},
      {"StatelessTruncatedNormal",
       "Standard normal numbers, those of magnitude 2 and more drawn again; a function of `seed`."},
  };
  for (const auto& real : reals) {
    r.op(real.name, HostAccess::kNone)
        .input("shape: T")
        .input("seed: Tseed")
        .output("output: dtype")
        .attr("dtype: {half, bfloat16, float, double} = float")
        .attr("T: {int32, int64} = int32")
        .attr("Tseed: {int32, int64, uint32, uint64} = int64")
        .host("shape")
        .shape(stateless_shape)
        .not_differentiable()
        .doc(concat(real.doc, "\n", kStatelessDoc));
  }
  r.op("StatelessRandomUniformInt", HostAccess::kNone)
      .input("shape: T")
      .input("seed: Tseed")
      .input("minval: dtype")
      .input("maxval: dtype")
      .output("output: dtype")
      .attr("dtype: {int32, int64}")
      .attr("T: {int32, int64} = int32")
      .attr("Tseed: {int32, int64, uint32, uint64} = int64")
      .host("shape")
      .host("minval")
      .host("maxval")
      .shape(stateless_int_shape)
      .not_differentiable()
      .doc(concat("Integers from [minval, maxval), a function of `seed`.\n\nErrors: "
                  "InvalidArgument unless minval < maxval.",
                  kStatelessDoc));
}

}  // namespace

void register_random_ops(OpRegistry& r) {
  register_stateful(r);
  register_stateless(r);
  r.finish("random");
}

}  // namespace treenail
