// SPDX-License-Identifier: Apache-2.0
// Values that pass between the tasks of a step: what placement/partition.h puts where an edge of
// the graph leads from one task to another. No graph of a user has them.
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

void receive_shape(ShapeContext& c) { c.set_output(0, c.op().get<PartialShape>("shape")); }

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
  r.finish("exchange");
}

}  // namespace treenail
