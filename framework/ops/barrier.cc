// SPDX-License-Identifier: Apache-2.0
// Barriers: what belongs together comes one component at a time, and is taken when it is complete.
#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

void handle_shape(ShapeContext& c) {
  const auto& types = c.op().get<std::vector<DType>>("component_types");
  const auto& shapes = c.op().get<std::vector<PartialShape>>("shapes");
  if (!shapes.empty() && shapes.size() != types.size()) {
    throw invalid_argument("All of the component shapes must be specified: there are ",
                           types.size(), " component_types and ", shapes.size(), " shapes");
  }
  if (c.op().get_int("capacity") != -1) {
    throw invalid_argument("Barrier only accepts capacity=-1, got ", c.op().get_int("capacity"),
                           ": a queue before it limits what it holds");
  }
  c.set_output(0, Shape());
}

void insert_shape(ShapeContext& c) {
  c.with_rank(0, 0);
  const PartialShape keys = c.with_rank(1, 1);
  const PartialShape values = c.with_rank_at_least(2, 1);
  if (values.rank_known()) ShapeContext::merge_dim(keys.dim(0), values.dim(0), "keys and values");
}

void take_shape(ShapeContext& c) {
  c.with_rank(0, 0);
  c.with_rank(1, 0);
  if (c.op().get_int("timeout_ms") != -1) {
    throw invalid_argument("timeout_ms must be -1, got ", c.op().get_int("timeout_ms"),
                           ": a run has a timeout as a whole (RunOptions)");
  }
  c.set_output(0, PartialShape{kUnknown});
  c.set_output(1, PartialShape{kUnknown});
}

void handle_alone_shape(ShapeContext& c) {
  c.with_rank(0, 0);
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, Shape());
}

void register_making_and_closing(OpRegistry& r) {
  r.op("Barrier", HostAccess::kNone)
      .output("handle: resource")
      .attr("component_types: list(type) >= 1")
      .attr("shapes: list(shape) = []")
      .attr("capacity: int = -1")
      .attr("container: string = ''")
      .attr("shared_name: string = ''")
      .stateful()
      .not_differentiable()
      .shape(handle_shape)
      .doc(R"(The handle of the barrier called `shared_name`, or as this operation when it is empty.

It is made at first use, open and empty. An element has a key and one component of each of component_types, and is
complete once all of them are inserted. shapes: of the components, unknown extents allowed; [] for any. capacity: -1, for
barriers hold as much as they are given.
container: barriers of the same name in different containers are different.
In immediate execution an empty name gives a new barrier each time, which lives as long as its handle.
Errors: InvalidArgument when the name belongs to a barrier of other components.)");
  r.op("BarrierClose", HostAccess::kNone)
      .input("handle: resource")
      .attr("cancel_pending_enqueues: bool = false")
      .stateful()
      .access("handle", Access::kOpaque)
      .shape(handle_alone_shape)
      .not_differentiable()
      .doc(R"(Closes a barrier: no element begins any more.

cancel_pending_enqueues: nor does one get complete, and incomplete ones are dropped. Takers get what is complete.
Errors: Cancelled when it is closed already, unless only now with cancel_pending_enqueues.)");
}

void register_moving(OpRegistry& r) {
  r.op("BarrierInsertMany", HostAccess::kNone)
      .input("handle: resource")
      .input("keys: string")
      .input("values: T")
      .attr("T: type")
      .attr("component_index: int")
      .stateful()
      .access("handle", Access::kOpaque)
      .shape(insert_shape)
      .not_differentiable()
      .doc(
          R"(Inserts one component of several elements: values[i] [...] for keys[i]; all of them, or none.

keys: [n]. values: [n, ...], n > 0 of elements that are not empty.
Errors: InvalidArgument for a component that is there already, another dtype or shape; Cancelled when the barrier is
closed, unless the elements have begun and pending insertions are not cancelled.)");
  r.op("BarrierTakeMany", HostAccess::kNone)
      .input("handle: resource")
      .input("num_elements: int32")
      .output("indices: int64")
      .output("keys: string")
      .output("values: component_types")
      .attr("component_types: list(type) >= 1")
      .attr("allow_small_batch: bool = false")
      .attr("wait_for_incomplete: bool = false")
      .attr("timeout_ms: int = -1")
      .asynchronous()
      .stateful()
      .access("handle", Access::kOpaque)
      .shape(take_shape)
      .not_differentiable()
      .doc(
          R"(Takes num_elements complete elements, a scalar, once there are so many: [num_elements, ...] of each component.

Elements come in the order in which their first components were inserted. indices: numbers that ascend with the
insertions that began the elements. Who waits longest is served first. Once the barrier is closed, allow_small_batch takes
what is there, at least one; wait_for_incomplete: not before all that has begun is complete. timeout_ms: -1.
Errors: OutOfRange when the barrier is closed and will not have enough; InvalidArgument for components whose shapes differ
between elements.)");
}

void register_sizes(OpRegistry& r) {
  const auto declare = [&](const char* name, const char* doc) {
    r.op(name, HostAccess::kNone)
        .input("handle: resource")
        .output("size: int32")
        .stateful()
        .access("handle", Access::kOpaque)
        .shape(handle_alone_shape)
        .not_differentiable()
        .doc(doc);
  };
  declare("BarrierReadySize", "How many complete elements a barrier holds, a scalar.");
  declare("BarrierIncompleteSize", "How many elements of a barrier lack a component, a scalar.");
}

}  // namespace

void register_barrier_ops(OpRegistry& r) {
  register_making_and_closing(r);
  register_moving(r);
  register_sizes(r);
  r.finish("barrier");
}

}  // namespace treenail
