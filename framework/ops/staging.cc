// SPDX-License-Identifier: Apache-2.0
// Staging areas: queues of tuples without a handle. Operations of one shared_name use one area.
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/staging_rules.h"

namespace treenail {
namespace {

constexpr char kDoc[] =
    "\n\ncapacity: how many tuples fit, memory_limit: how many bytes; 0 for any number. "
    "container and shared_name: the staging area, shared_name being the operation's own name "
    "when it is empty; it is made at first use.\n"
    "Errors: InvalidArgument for other dtypes, capacity or memory_limit than the area's.";

void staged_shape(ShapeContext&) {}

void peek_shape(ShapeContext& c) { c.with_rank(0, 0); }

void register_waiting(OpRegistry& r) {
  with_area(r.op("Stage", HostAccess::kNone).input("values: dtypes"), kStagedTypes)
      .stored("values")
      .asynchronous()
      .stateful()
      .shape(no_outputs_shape)
      .doc(std::string("Puts a tuple of tensors into a staging area, once there is room.") + kDoc +
           "\nErrors also: ResourceExhausted for a tuple larger than memory_limit.");
  with_area(r.op("Unstage", HostAccess::kNone).output("values: dtypes"), kStagedTypes)
      .asynchronous()
      .stateful()
      .shape(staged_shape)
      .doc(std::string("Takes the tuple that was put first out of a staging area, once there is "
                       "one. Who waits longest is served first.") +
           kDoc);
  with_area(r.op("StagePeek", HostAccess::kNone).input("index: int32").output("values: dtypes"),
            kStagedTypes)
      .asynchronous()
      .stateful()
      .shape(peek_shape)
      .doc(std::string("The tuple in place `index`, a scalar, of a staging area, where it stays, "
                       "once there is one.") +
           kDoc);
}

}  // namespace

void register_staging_ops(OpRegistry& r) {
  register_waiting(r);
  with_area(r.op("StageSize", HostAccess::kNone).output("size: int32"), kAnyStagedTypes)
      .stateful()
      .shape(scalar_shape)
      .doc(std::string("How many tuples a staging area holds, a scalar.") + kDoc);
  auto clear = r.op("StageClear", HostAccess::kNone);
  with_area(clear, kAnyStagedTypes)
      .stateful()
      .shape(no_outputs_shape)
      .doc(std::string("Empties a staging area.") + kDoc);
  r.finish("staging");
}

}  // namespace treenail
