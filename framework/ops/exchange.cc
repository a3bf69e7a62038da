// SPDX-License-Identifier: Apache-2.0
// Values that pass between the tasks of a step: what placement/partition.h puts where an edge of
// the graph leads from one task to another, and what stands in a function's body for the nodes of
// it that another task runs (distributed/planning/cut_body.h). No graph of a user has them.
#include <vector>

#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

void receive_shape(ShapeContext& c) { c.set_output(0, c.op().get<PartialShape>("shape")); }

void run_piece_shapes(ShapeContext& c) {
  const auto& shapes = c.op().get<std::vector<PartialShape>>("shapes");
  if (shapes.size() != static_cast<size_t>(c.num_outputs()))
    throw invalid_argument("shapes has ", shapes.size(), " shapes for ", c.num_outputs(),
                           " outputs");
  for (size_t i = 0; i < shapes.size(); ++i) c.set_output(static_cast<int>(i), shapes[i]);
}

}  // namespace

void register_exchange_ops(OpRegistry& r) {
  r.op("_Send", HostAccess::kNetwork)
      .input("value: T")
      .attr("T: type")
      .attr("key: string")
      .attr("to: string")
      .shape(no_outputs_shape)
      .stored("value")
      .stateful()
      .asynchronous()
      .not_differentiable()
      .doc("Gives the value to the task `to`, which asks for it by `key`.");
  r.op("_Recv", HostAccess::kNetwork)
      .output("value: T")
      .attr("T: type")
      .attr("shape: shape")
      .attr("key: string")
      .attr("from: string")
      .shape(receive_shape)
      .stateful()
      .asynchronous()
      .data_dependent_shape()
      .not_differentiable()
      .doc("The value that the task `from` sends under `key`.");
  r.op("_RunPiece", HostAccess::kNetwork)
      .input("args: Tin")
      .output("output: Tout")
      .attr("Tin: list(type) >= 0")
      .attr("Tout: list(type) >= 0")
      .attr("shapes: list(shape) >= 0")
      .attr("task: string")
      .attr("piece: int")
      .attr("incarnation: int")
      .shape(run_piece_shapes)
      .stored("args")
      .allocates_outputs()
      .data_dependent_shape()
      .stateful()
      .asynchronous()
      .not_differentiable()
      .doc("What the task `task` makes of the values by its piece number `piece`.");
  r.finish("exchange");
}

}  // namespace treenail
