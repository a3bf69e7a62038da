// SPDX-License-Identifier: Apache-2.0
// Regular expressions, RE2's: matching takes time linear in the text, whatever the pattern.
#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

void pattern_shape(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) c.with_rank(i, 0);
  unchanged_shape(c);
}

constexpr char kReplaceDoc[] =
    "Each string with the first match of a pattern (replace_global: with every match) replaced by "
    "`rewrite`, where \\1 to \\9 stand for\nthe groups of the match and \\0 for all of it.";
constexpr char kMatchDoc[] = "Whether the pattern matches the whole of each string.";
constexpr char kErrors[] =
    "\nPatterns: github.com/google/re2/wiki/Syntax, over UTF-8.\n\nErrors: InvalidArgument for a "
    "pattern that is none or too large, and for a rewrite that names a group the pattern lacks; "
    "Unimplemented\nwithout RE2.";

}  // namespace

void register_regex_ops(OpRegistry& r) {
  r.op("RegexReplace", HostAccess::kNone)
      .input("input: string")
      .input("pattern: string")
      .input("rewrite: string")
      .output("output: string")
      .attr("replace_global: bool = true")
      .shape(pattern_shape)
      .not_differentiable()
      .doc(concat(kReplaceDoc, kErrors));
  r.op("StaticRegexReplace", HostAccess::kNone)
      .input("input: string")
      .output("output: string")
      .attr("pattern: string")
      .attr("rewrite: string")
      .attr("replace_global: bool = true")
      .shape(pattern_shape)
      .not_differentiable()
      .doc(concat(kReplaceDoc, " Pattern and rewrite are compiled once.", kErrors));
  r.op("RegexFullMatch", HostAccess::kNone)
      .input("input: string")
      .input("pattern: string")
      .output("output: bool")
      .shape(pattern_shape)
      .not_differentiable()
      .doc(concat(kMatchDoc, kErrors));
  r.op("StaticRegexFullMatch", HostAccess::kNone)
      .input("input: string")
      .output("output: bool")
      .attr("pattern: string")
      .shape(pattern_shape)
      .not_differentiable()
      .doc(concat(kMatchDoc, " The pattern is compiled once.", kErrors));
  r.finish("regex");
}

}  // namespace treenail
