// SPDX-License-Identifier: Apache-2.0
// Ops that exist only in a session's private copy of a graph: where feeds enter and fetches leave,
// and where values and order pass from one device to another. They never reach a saved graph or a
// gradient.
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

void arg_shape(ShapeContext& c) { c.set_output(0, c.op().get<PartialShape>("shape")); }

}  // namespace

void register_internal_ops(OpRegistry& r) {
  r.op("_Arg", HostAccess::kNone)
      .output("value: T")
      .attr("index: int >= 0")
      .attr("T: type")
      .attr("shape: shape")
      .shape(arg_shape)
      .any_device()
      .host("value")
      .stateful()
      .not_differentiable()
      .doc("A fed value: the run's argument number `index`.");
  r.op("_Retval", HostAccess::kNone)
      .input("value: T")
      .attr("index: int >= 0")
      .attr("T: type")
      .shape(no_outputs_shape)
      .stateful()
      .not_differentiable()
      .doc("A fetched value: the run's result number `index`.");
  r.op("_Copy", HostAccess::kNone)
      .input("value: T")
      .output("copy: T")
      .attr("T: type")
      .shape(identity_shape)
      .anywhere("value")
      .any_device()
      .asynchronous()
      .not_differentiable()
      .doc("The value in the memory of the device that the operation is placed on.");
  r.op("_Wait", HostAccess::kNone)
      .shape(no_outputs_shape)
      .any_device()
      .asynchronous()
      .stateful()
      .not_differentiable()
      .doc(
          "Ends when the device that the operation is placed on has done what was queued there "
          "before.");
  r.finish("internal");
}

}  // namespace treenail
