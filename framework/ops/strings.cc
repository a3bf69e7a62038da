// SPDX-License-Identifier: Apache-2.0
// Ops that join, cut and measure strings. Strings are bytes; where characters are meant, they are
// UTF-8. Numbers in text: string_conversion.cc. Patterns: regex.cc.
#include "framework/base/error.h"
#include "framework/base/quoted.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/reduction_shape.h"

namespace treenail {
namespace {

// Scalars go with anything; all others have one shape.
void string_join_shape(ShapeContext& c) {
  PartialShape all = Shape();
  bool unknown = false;
  bool found = false;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const PartialShape& input = c.input(i);
    if (!input.rank_known()) unknown = true;
    if (!input.rank_known() || input.rank() == 0) continue;
    all = found ? ShapeContext::merge(all, input, "inputs") : input;
    found = true;
  }
  c.set_output(0, unknown && !found ? PartialShape() : all);
}

void string_split_shape(ShapeContext& c) {
  c.with_rank(0, 1);
  c.with_rank(1, 0);
  if (c.op().get_int("maxsplit") != -1 && c.op().get_bool("any_of"))
    throw invalid_argument("maxsplit does not go with any_of");
  c.set_output(0, PartialShape{kUnknown, 2});
  c.set_output(1, PartialShape{kUnknown});
  c.set_output(2, Shape{2});
}

void substr_shape(ShapeContext& c) {
  const PartialShape where = ShapeContext::merge(c.input(1), c.input(2), "pos and len");
  c.set_output(0, ShapeContext::broadcast(c.input(0), where));
}

void letter_case_shape(ShapeContext& c) {
  const std::string& encoding = c.op().get_string("encoding");
  if (!encoding.empty() && encoding != "utf-8")
    throw invalid_argument("encoding must be \"utf-8\" or \"\", got ", quoted(encoding));
  unchanged_shape(c);
}

void register_joining(OpRegistry& r) {
  r.op("StringJoin", HostAccess::kNone)
      .input("inputs: N * string")
      .output("output: string")
      .attr("N: int >= 1")
      .attr("separator: string = ''")
      .shape(string_join_shape)
      .not_differentiable()
      .doc(
          "The strings of all inputs at each place one after the other, `separator` between them. "
          "Inputs have one shape; scalars\ngo with each place.");
  r.op("ReduceJoin", HostAccess::kNone)
      .input("inputs: string")
      .input("reduction_indices: int32")
      .output("output: string")
      .attr("keep_dims: bool = false")
      .attr("separator: string = ''")
      .host("reduction_indices")
      .shape(reduction_shape)
      .not_differentiable()
      .doc(
          "Strings joined along axes, `separator` between them. The first of reduction_indices is "
          "joined first, so along it neighbours\nstay neighbours: [[\"a\", \"b\"], [\"c\", \"d\"]] "
          "gives \"acbd\" for [0, 1] and \"abcd\" for [1, 0]. Negative axes count from\nthe end; "
          "keep_dims: they stay, with extent 1.");
  r.op("StringSplit", HostAccess::kNone)
      .input("input: string")
      .input("sep: string")
      .output("indices: int64")
      .output("values: string")
      .output("shape: int64")
      .attr("maxsplit: int >= -1 = -1")
      .attr("any_of: bool = false")
      .attr("skip_empty: bool = false")
      .data_dependent_shape()
      .shape(string_split_shape)
      .not_differentiable()
      .doc(
          "The parts of each string of a vector, as a sparse matrix: indices [parts, 2] of row and "
          "place, values [parts], and shape\n[strings, most parts].\n\nsep: what stands between "
          "parts; \"\": runs of whitespace, also at either end. maxsplit: of each string, split "
          "only so often;\n-1: wherever possible. any_of: each character of sep stands between "
          "parts, and \"\" means every byte is a part. skip_empty:\nempty parts are left out.");
}

void register_parts(OpRegistry& r) {
  r.op("StringLength", HostAccess::kNone)
      .input("input: string")
      .output("output: int32")
      .attr("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
      .shape(unchanged_shape)
      .not_differentiable()
      .doc(
          "The length of each string, in bytes or in UTF-8 characters (bytes that continue none "
          "count).\n\nErrors: InvalidArgument for 2^31 and more.");
  r.op("Substr", HostAccess::kNone)
      .input("input: string")
      .input("pos: T")
      .input("len: T")
      .output("output: string")
      .attr("T: {int32, int64}")
      .attr("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
      .shape(substr_shape)
      .not_differentiable()
      .doc(
          "Of each string `len` bytes (or UTF-8 characters) from position `pos` on, fewer where it "
          "ends before, all that follow where\nlen is negative. A negative pos counts from the "
          "end. "
          "pos and len have one shape, which broadcasts with the input's.\n\nErrors: "
          "InvalidArgument where pos lies outside the string.");
}

void register_letters(OpRegistry& r) {
  for (const auto& [name, what] : {std::pair{"StringLower", "lower"}, {"StringUpper", "upper"}}) {
    r.op(name, HostAccess::kNone)
        .input("input: string")
        .output("output: string")
        .attr("encoding: string = ''")
        .shape(letter_case_shape)
        .not_differentiable()
        .doc(concat("Each string in ", what,
                    " case. encoding \"\": the ASCII letters alone; \"utf-8\": Unicode's full case "
                    "mapping (version 14,\nno language's own rules); what is no UTF-8 becomes "
                    "U+FFFD."));
  }
  r.op("StringStrip", HostAccess::kNone)
      .input("input: string")
      .output("output: string")
      .shape(unchanged_shape)
      .not_differentiable()
      .doc("Each string without ASCII whitespace at either end.");
}

}  // namespace

void register_strings_ops(OpRegistry& r) {
  register_joining(r);
  register_parts(r);
  register_letters(r);
  r.finish("strings");
}

}  // namespace treenail
