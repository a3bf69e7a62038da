// SPDX-License-Identifier: Apache-2.0
// Staging areas: queues of tuples without a handle. Operations of one shared_name use one area.
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

constexpr char kDoc[] =
    "\n\ncapacity: how many tuples fit, memory_limit: how many bytes; 0 for any number. "
    "container and shared_name: the staging area, shared_name being the operation's own name "
    "when it is empty; it is made at first use.\n"
    "Errors: InvalidArgument for other dtypes, capacity or memory_limit than the area's.";

void staged_shape(ShapeContext&) {}

void peek_shape(ShapeContext& c) { c.with_rank(0, 0); }

// An operation on a staging area, less its inputs and outputs.
OpDeclaration& with_area(OpDeclaration& op, std::string_view types) {
  return op.attr("capacity: int >= 0 = 0")
      .attr("memory_limit: int >= 0 = 0")
      .attr(types)
      .attr("container: string = ''")
      .attr("shared_name: string = ''")
      .not_differentiable();
}

constexpr char kTypes[] = "dtypes: list(type) >= 1";
constexpr char kAnyTypes[] = "dtypes: list(type) = []";

void register_waiting(OpRegistry& r) {
  with_area(r.op("Stage").input("values: dtypes"), kTypes)
      .stored("values")
      .asynchronous()
      .shape(no_outputs_shape)
      .doc(std::string("Puts a tuple of tensors into a staging area, once there is room.") + kDoc +
           "\nErrors also: ResourceExhausted for a tuple larger than memory_limit.");
  with_area(r.op("Unstage").output("values: dtypes"), kTypes)
      .asynchronous()
      .shape(staged_shape)
      .doc(std::string("Takes the tuple that was put first out of a staging area, once there is "
                       "one. Who waits longest is served first.") +
           kDoc);
  with_area(r.op("StagePeek").input("index: int32").output("values: dtypes"), kTypes)
      .asynchronous()
      .shape(peek_shape)
      .doc(std::string("The tuple in place `index`, a scalar, of a staging area, where it stays, "
                       "once there is one.") +
           kDoc);
}

}  // namespace

void register_staging_ops(OpRegistry& r) {
  register_waiting(r);
  with_area(r.op("StageSize").output("size: int32"), kAnyTypes)
      .stateful()
      .shape(scalar_shape)
      .doc(std::string("How many tuples a staging area holds, a scalar.") + kDoc);
  auto clear = r.op("StageClear");
  with_area(clear, kAnyTypes)
      .stateful()
      .shape(no_outputs_shape)
      .doc(std::string("Empties a staging area.") + kDoc);
  r.finish("staging");
}

}  // namespace treenail
