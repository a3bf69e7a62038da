// SPDX-License-Identifier: Apache-2.0
// Strings to numbers and back: decimal text, and hash buckets.
#include "framework/base/error.h"
#include "framework/base/quoted.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

constexpr int64_t kWidest = 1000;

// What printf would take and what makes no sense for the dtype.
void as_string_shape(ShapeContext& c) {
  const OpInstance& op = c.op();
  const DType dtype = op.input_type(0);
  const bool scientific = op.get_bool("scientific");
  const bool shortest = op.get_bool("shortest");
  const int64_t precision = op.get_int("precision");
  const std::string& fill = op.get_string("fill");
  const bool real = is_floating(dtype) || is_complex(dtype);
  if (scientific && shortest)
    throw invalid_argument("Cannot select both scientific and shortest notation");
  if (!real && (scientific || shortest))
    throw invalid_argument("scientific and shortest format not supported for datatype ", dtype);
  if (!real && precision >= 0)
    throw invalid_argument("precision not supported for datatype ", dtype);
  if (precision > kWidest || op.get_int("width") > kWidest)
    throw invalid_argument("precision and width must be at most ", kWidest);
  if (fill.size() > 1)
    throw invalid_argument("Fill string must be one or fewer characters, got ", quoted(fill));
  if (!fill.empty() && std::string_view(" +-0#").find(fill[0]) == std::string_view::npos)
    throw invalid_argument("Fill argument not supported: ", quoted(fill));
  unchanged_shape(c);
}

void strong_hash_shape(ShapeContext& c) {
  if (c.op().get_ints("key").size() != 2) throw invalid_argument("Key must have 2 elements");
  unchanged_shape(c);
}

void register_text(OpRegistry& r) {
  r.op("StringToNumber", HostAccess::kNone)
      .input("string_tensor: string")
      .output("output: out_type")
      .attr("out_type: {float, double, int32, int64} = float")
      .shape(unchanged_shape)
      .not_differentiable()
      .doc(
          "The number that each string spells, in decimal, whitespace around it ignored; of real "
          "numbers also inf, nan and hexadecimal\nones, and what is too large becomes infinity. "
          "The "
          "program's locale does not matter.\n\nErrors: InvalidArgument for what is no number, and "
          "for integers that do not fit.");
  r.op("AsString", HostAccess::kNone)
      .input("input: T")
      .output("output: string")
      .attr(
          "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, half, bfloat16, float, "
          "double, complex64, complex128, bool}")
      .attr("precision: int = -1")
      .attr("scientific: bool = false")
      .attr("shortest: bool = false")
      .attr("width: int = -1")
      .attr("fill: string = ''")
      .shape(as_string_shape)
      .not_differentiable()
      .doc(
          "Each number as text: as C's printf with %d or %f (scientific: %e, shortest: %g), "
          "complex "
          "ones as (re,im), bool as true or\nfalse. precision: digits behind the point, 6 where it "
          "is negative. width: at least so many characters. fill: one of\nprintf's flags, like "
          "\"0\". The program's locale does not matter.\n\nErrors: InvalidArgument for what does "
          "not go with the dtype, and for width or precision beyond 1000.");
}

void register_hashes(OpRegistry& r) {
  r.op("StringToHashBucketFast", HostAccess::kNone)
      .input("input: string")
      .output("output: int64")
      .attr("num_buckets: int >= 1")
      .shape(unchanged_shape)
      .not_differentiable()
      .doc(
          "A number in [0, num_buckets) for each string: FarmHash's Fingerprint64, which never "
          "changes, modulo num_buckets. Who may\nchoose the strings may choose the bucket, too.");
  r.op("StringToHashBucketStrong", HostAccess::kNone)
      .input("input: string")
      .output("output: int64")
      .attr("num_buckets: int >= 1")
      .attr("key: list(int)")
      .shape(strong_hash_shape)
      .not_differentiable()
      .doc(
          "A number in [0, num_buckets) for each string: SipHash-2-4 under a key of two integers "
          "(Aumasson, Bernstein: SipHash, 2012),\nmodulo num_buckets. Without the key nobody can "
          "choose buckets.");
  r.op("StringToHashBucket", HostAccess::kNone)
      .input("string_tensor: string")
      .output("output: int64")
      .attr("num_buckets: int >= 1")
      .shape(unchanged_shape)
      .not_differentiable()
      .doc(
          "A number in [0, num_buckets) for each string, by TensorFlow's older hash "
          "(MurmurHash64A). "
          "New programs take\nStringToHashBucketFast or StringToHashBucketStrong.");
}

}  // namespace

void register_string_conversion_ops(OpRegistry& r) {
  register_text(r);
  register_hashes(r);
  r.finish("string_conversion");
}

}  // namespace treenail
