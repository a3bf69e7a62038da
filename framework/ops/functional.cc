// SPDX-License-Identifier: Apache-2.0
// Ops that call functions of the graph: calls, branches, loops. Their inputs are stored: a function
// may return an argument, whose memory the caller then holds for longer.
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

// As declared for the outputs, of which nothing else is known.
void declared_shapes(ShapeContext& c) {
  const auto& shapes = c.op().get<std::vector<PartialShape>>("output_shapes");
  if (!shapes.empty() && shapes.size() != static_cast<size_t>(c.num_outputs())) {
    throw invalid_argument("output_shapes has ", shapes.size(), " shapes for ", c.num_outputs(),
                           " outputs");
  }
  for (size_t i = 0; i < shapes.size(); ++i) c.set_output(static_cast<int>(i), shapes[i]);
}

// A loop value that no output_shapes speaks of may change its shape; a handle stays what it is, but
// that of a list may be another's after an iteration.
void loop_shapes(ShapeContext& c) {
  declared_shapes(c);
  for (int i = 0; i < c.num_outputs(); ++i) {
    const bool stays = c.op().input_type(i) == DType::kResource;
    if (stays && c.handle(i) != nullptr) c.set_handle(i, *c.handle(i));
  }
}

void choice_shapes(ShapeContext& c) {
  if (c.op().input_type(0) != DType::kBool) c.with_rank(0, 0);
  declared_shapes(c);
}

// In a graph its functions are differentiated (graph/function_gradients.h).
void no_graph(GradientContext& c) {
  throw unimplemented("op \"", c.op().name(), "\" has a gradient only in a graph");
}

constexpr const char* kCallDoc =
    R"(The results of the function `f` for the arguments `args`.

recompute: its gradient computes what the function does again, instead of keeping it. output_shapes:
what is known of the results' shapes, or nothing. Errors: of the function's
operations, which they name.)";
constexpr const char* kIfDoc =
    R"(The results of `then_branch` for the inputs where `cond` is true, else those of `else_branch`.

cond: a scalar; numbers other than 0 and strings that are not empty count as true, as an array with
elements does. output_shapes: what is known of both branches' results, or nothing. Errors: of the
branch's operations, which they name.)";
constexpr const char* kCaseDoc =
    R"(The results of branch number `branch_index` for the inputs, of the last one where there is no such.

output_shapes: what is known of all branches' results, or nothing. Errors: of the branch's
operations, which they name.)";
constexpr const char* kWhileDoc =
    R"(`input`, replaced by what `body` makes of it as long as `cond` is true of it.

cond: a function with one result, as that of If. output_shapes: what holds for the values in every
iteration, or nothing. parallel_iterations: how many may be under way at once; the results are the
same for any number. Errors: of the functions' operations, which they name, with the iteration;
InvalidArgument for a value that leaves its shape.)";

void finish(OpDeclaration& op, ShapeFn shape, const char* doc, bool stateful) {
  op.attr("output_shapes: list(shape) = []")
      .allocates_outputs()
      .data_dependent_shape()
      .shape(shape)
      .gradient(no_graph)
      .doc(doc);
  if (stateful) op.stateful();
}

void declare_call(OpRegistry& r, const char* name, bool stateful) {
  OpDeclaration op = r.op(name, HostAccess::kNone);
  op.input("args: Tin")
      .output("output: Tout")
      .attr("Tin: list(type) >= 0")
      .attr("Tout: list(type) >= 0")
      .attr("f: func")
      .attr("recompute: bool = false")
      .stored("args");
  finish(op, declared_shapes, kCallDoc, stateful);
}

void declare_if(OpRegistry& r, const char* name, bool stateful) {
  OpDeclaration op = r.op(name, HostAccess::kNone);
  op.input("cond: Tcond")
      .input("input: Tin")
      .output("output: Tout")
      .attr("Tcond: type")
      .stored("input")
      .attr("Tin: list(type) >= 0")
      .attr("Tout: list(type) >= 0")
      .attr("then_branch: func")
      .attr("else_branch: func");
  finish(op, choice_shapes, kIfDoc, stateful);
}

void declare_case(OpRegistry& r, const char* name, bool stateful) {
  OpDeclaration op = r.op(name, HostAccess::kNone);
  op.input("branch_index: int32")
      .input("input: Tin")
      .output("output: Tout")
      .stored("input")
      .attr("Tin: list(type) >= 0")
      .attr("Tout: list(type) >= 0")
      .attr("branches: list(func) >= 1");
  finish(op, choice_shapes, kCaseDoc, stateful);
}

void declare_while(OpRegistry& r, const char* name, bool stateful) {
  OpDeclaration op = r.op(name, HostAccess::kNone);
  op.input("input: T")
      .stored("input")
      .output("output: T")
      .attr("T: list(type) >= 0")
      .attr("cond: func")
      .attr("body: func")
      .attr("parallel_iterations: int = 10");
  finish(op, loop_shapes, kWhileDoc, stateful);
}

}  // namespace

void register_functional_ops(OpRegistry& r) {
  declare_call(r, "PartitionedCall", false);
  declare_call(r, "StatefulPartitionedCall", true);
  declare_if(r, "StatelessIf", false);
  declare_if(r, "If", true);
  declare_case(r, "StatelessCase", false);
  declare_case(r, "Case", true);
  declare_while(r, "StatelessWhile", false);
  declare_while(r, "While", true);
  r.finish("functional");
}

}  // namespace treenail
