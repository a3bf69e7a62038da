// SPDX-License-Identifier: Apache-2.0
// Ops that tell a person something: a condition that does not hold, values on the way.
#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

void assert_shape(ShapeContext& c) { c.with_rank(0, 0); }

void print_gradient(GradientContext& c) { c.set(0, c.gradient()); }

}  // namespace

void register_logging_ops(OpRegistry& r) {
  r.op("Assert", HostAccess::kNone)
      .input("condition: bool")
      .input("data: T")
      .attr("T: list(type)")
      .attr("summarize: int = 3")
      .stateful()
      .shape(assert_shape)
      .not_differentiable()
      .doc(R"(Ends the run unless `condition`, a scalar, holds.

data are shown in the error, the first `summarize` elements of each; all where it is below 0.
Errors: InvalidArgument where the condition is false.)");
  r.op("Print", HostAccess::kProcess)
      .input("input: T")
      .input("data: U")
      .output("output: T")
      .attr("T: type")
      .attr("U: list(type)")
      .attr("message: string = ''")
      .attr("first_n: int = -1")
      .attr("summarize: int = 3")
      .stateful()
      .in_place("input", "output")
      .shape(unchanged_shape)
      .gradient(print_gradient)
      .doc(R"(Hands its input on and writes a line to standard error.

The line is `message` and, in brackets, the first `summarize` elements of each of data; all where it is below 0. Only the
first first_n executions in a session write one; all where it is below 0.)");
  r.finish("logging");
}

}  // namespace treenail
