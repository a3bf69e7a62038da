// SPDX-License-Identifier: Apache-2.0
// Ops that exist only in a session's private copy of a graph: where feeds enter and fetches leave.
// They never reach a saved graph or a gradient.
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

void arg_shape(ShapeContext& c) { c.set_output(0, c.op().get<PartialShape>("shape")); }

}  // namespace

void register_internal_ops(OpRegistry& r) {
  r.op("_Arg")
      .output("value: T")
      .attr("index: int >= 0")
      .attr("T: type")
      .attr("shape: shape")
      .shape(arg_shape)
      .stateful()
      .not_differentiable()
      .doc("A fed value: the run's argument number `index`.");
  r.op("_Retval")
      .input("value: T")
      .attr("index: int >= 0")
      .attr("T: type")
      .shape(no_outputs_shape)
      .stateful()
      .not_differentiable()
      .doc("A fetched value: the run's result number `index`.");
  r.finish("internal");
}

}  // namespace treenail
