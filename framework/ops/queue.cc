// SPDX-License-Identifier: Apache-2.0
// Queues: elements that wait between runs, and runs that wait for them. No order is put between
// operations on one queue in one run: one may wait for another.
#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "framework/op/queue_components.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"

namespace treenail {
namespace {

using Components = std::vector<HandleInfo>;

void queue_shape(ShapeContext& c) {
  c.set_output(0, Shape());
  c.set_handle(0, HandleInfo{.components = queue_components(c.op())});
}

// What the handle, input 0, tells of its queue's components; null: nothing. Errors: other dtypes.
const Components* components_of(const ShapeContext& c, std::span<const DType> dtypes) {
  c.with_rank(0, 0);
  if (c.handle(0) == nullptr || c.handle(0)->components.empty()) return nullptr;
  const Components& components = c.handle(0)->components;
  if (components.size() != dtypes.size()) {
    throw invalid_argument("Wrong number of components in tuple. Expected ", components.size(),
                           ", got ", dtypes.size());
  }
  for (size_t i = 0; i < dtypes.size(); ++i) {
    if (components[i].dtype == dtypes[i]) continue;
    throw invalid_argument("Type mismatch in tuple component ", i, ". Expected ",
                           components[i].dtype, ", got ", dtypes[i]);
  }
  return &components;
}

void check_component(int i, const PartialShape& wanted, const PartialShape& given) {
  if (wanted.compatible(given)) return;
  throw invalid_argument("Shape mismatch in tuple component ", i, ". Expected ", wanted, ", got ",
                         given);
}

void enqueue_shape(ShapeContext& c) {
  const Components* components = components_of(c, c.op().input_types().subspan(1));
  if (components == nullptr) return;
  for (int i = 1; i < c.num_inputs(); ++i)
    check_component(i - 1, (*components)[static_cast<size_t>(i) - 1].shape, c.input(i));
}

PartialShape batched(const PartialShape& shape, int64_t n) {
  return shape.rank_known() ? shape.inserted(0, n) : PartialShape();
}

void enqueue_many_shape(ShapeContext& c) {
  const Components* components = components_of(c, c.op().input_types().subspan(1));
  int64_t rows = kUnknown;
  for (int i = 1; i < c.num_inputs(); ++i) {
    const PartialShape batch = c.with_rank_at_least(i, 1);
    if (batch.rank_known()) {
      rows = ShapeContext::merge_dim(
          rows, batch[0], "All input tensors must have the same size in the 0th dimension: they");
    }
    if (components == nullptr) continue;
    const PartialShape& row = (*components)[static_cast<size_t>(i) - 1].shape;
    check_component(i - 1, batched(row, kUnknown), batch);
  }
}

void dequeue_shape(ShapeContext& c) {
  const Components* components = components_of(c, c.op().output_types());
  if (components == nullptr) return;
  for (int i = 0; i < c.num_outputs(); ++i)
    c.set_output(i, (*components)[static_cast<size_t>(i)].shape);
}

void dequeue_rows(ShapeContext& c, bool all) {
  const Components* components = components_of(c, c.op().output_types());
  c.with_rank(1, 0);
  const std::optional<int64_t> n = known_scalar(c, 1);
  if (n && *n < 0)
    throw invalid_argument("n = ", *n, " elements are asked for; 0 or more are needed");
  if (components == nullptr) return;
  for (int i = 0; i < c.num_outputs(); ++i) {
    const PartialShape& row = (*components)[static_cast<size_t>(i)].shape;
    c.set_output(i, batched(row, all && n ? *n : kUnknown));
  }
}

void dequeue_many_shape(ShapeContext& c) { dequeue_rows(c, true); }
void dequeue_up_to_shape(ShapeContext& c) { dequeue_rows(c, false); }

void of_handle_shape(ShapeContext& c) {
  c.with_rank(0, 0);
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, Shape());
}

constexpr char kOfAll[] =
    "\n\ncapacity: how many elements it holds; -1: as many as come. shapes: of the components, or "
    "none.\n"
    "The queue is that of the name `shared_name` in `container`, or of this operation's name where "
    "it is empty; in immediate execution an empty name gives a new queue each time.\n"
    "Errors: InvalidArgument when the name belongs to a queue that is another in any respect.";

void register_queues(OpRegistry& r) {
  const auto declare = [&](const char* name, const char* types, const std::string& doc) {
    return r.op(name, HostAccess::kNone)
        .output("handle: resource")
        .attr(types)
        .attr("shapes: list(shape) >= 0 = []")
        .attr("capacity: int = -1")
        .attr("container: string = ''")
        .attr("shared_name: string = ''")
        .stateful()
        .not_differentiable()
        .shape(queue_shape)
        .doc(doc + kOfAll);
  };
  declare("FIFOQueueV2", "component_types: list(type) >= 1",
          "The handle of a queue whose elements leave as they came.");
  declare("PaddingFIFOQueueV2", "component_types: list(type) >= 1",
          "The handle of a queue whose elements leave as they came, and are filled up to the "
          "largest where several leave in one batch.\n\n"
          "shapes may have unknown extents.");
  declare("RandomShuffleQueueV2", "component_types: list(type) >= 1",
          "The handle of a queue whose elements leave in random order.\n\n"
          "min_after_dequeue: so many stay while it is open. seed, seed2: both 0 give an order of "
          "its own each time.")
      .attr("min_after_dequeue: int = 0")
      .attr("seed: int = 0")
      .attr("seed2: int = 0");
  declare("PriorityQueueV2", "component_types: list(type) >= 0 = []",
          "The handle of a queue whose elements leave the lowest priority first, of equal ones as "
          "they came.\n\n"
          "The first component, which component_types and shapes do not count, is the priority, a "
          "scalar int64.");
}

constexpr char kEnqueued[] =
    "\n\ntimeout_ms: -1; others are not implemented.\n"
    "Errors: Cancelled when the queue is closed, InvalidArgument for components that are not the "
    "queue's.";
constexpr char kDequeued[] =
    "\n\ntimeout_ms: -1; others are not implemented.\n"
    "Errors: OutOfRange when the queue is closed and has too few, InvalidArgument for components "
    "that are not the queue's.";

void register_enqueues(OpRegistry& r) {
  const auto declare = [&](const char* name, ShapeFn rule, const char* doc) {
    return r.op(name, HostAccess::kNone)
        .input("handle: resource")
        .input("components: Tcomponents")
        .attr("Tcomponents: list(type) >= 1")
        .attr("timeout_ms: int = -1")
        .asynchronous()
        .stateful()
        .not_differentiable()
        .shape(rule)
        .doc(concat(doc, kEnqueued));
  };
  declare("QueueEnqueueV2", enqueue_shape, "Puts an element into a queue, and waits for room.")
      .stored("components");
  declare("QueueEnqueueManyV2", enqueue_many_shape,
          "Puts the rows of `components` into a queue as its elements, each as soon as there is "
          "room.");
}

void register_dequeues(OpRegistry& r) {
  const auto declare = [&](const char* name, ShapeFn rule, bool many, const char* doc) {
    OpDeclaration op = r.op(name, HostAccess::kNone);
    op.input("handle: resource");
    if (many) op.input("n: int32").host("n");
    op.output("components: component_types")
        .attr("component_types: list(type) >= 1")
        .attr("timeout_ms: int = -1")
        .asynchronous()
        .stateful()
        .data_dependent_shape()
        .not_differentiable()
        .shape(rule)
        .doc(concat(doc, kDequeued));
  };
  declare("QueueDequeueV2", dequeue_shape, false,
          "Takes an element out of a queue, and waits for one.");
  declare("QueueDequeueManyV2", dequeue_many_shape, true,
          "Takes n elements out of a queue, as they come, and gives them as rows.\n\n"
          "What it has taken goes back when the queue is closed before there are n.");
  declare("QueueDequeueUpToV2", dequeue_up_to_shape, true,
          "Takes n elements out of a queue, as they come, and gives them as rows; when the queue "
          "is closed it gives what there is, but one element at least.");
}

void register_rest(OpRegistry& r) {
  r.op("QueueCloseV2", HostAccess::kNone)
      .input("handle: resource")
      .attr("cancel_pending_enqueues: bool = false")
      .asynchronous()
      .stateful()
      .not_differentiable()
      .shape(of_handle_shape)
      .doc(
          "Closes a queue: later enqueues fail, and dequeues that would wait for more than there "
          "is.\n\n"
          "cancel_pending_enqueues: enqueues that wait for room fail, too; else this waits until "
          "they are done.\n"
          "Errors: Cancelled when it is closed already, unless they are cancelled.");
  r.op("QueueIsClosedV2", HostAccess::kNone)
      .input("handle: resource")
      .output("is_closed: bool")
      .stateful()
      .not_differentiable()
      .shape(of_handle_shape)
      .doc("Whether a queue is closed, a scalar.");
  r.op("QueueSizeV2", HostAccess::kNone)
      .input("handle: resource")
      .output("size: int32")
      .stateful()
      .not_differentiable()
      .shape(of_handle_shape)
      .doc("How many elements a queue holds, a scalar.");
}

}  // namespace

void register_queue_ops(OpRegistry& r) {
  register_queues(r);
  register_enqueues(r);
  register_dequeues(r);
  register_rest(r);
  r.finish("queue");
}

}  // namespace treenail
