// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/queue.cc: what a queue does is its own (runtime/state/queue.h).
#include "framework/runtime/state/queue.h"

#include <limits>
#include <utility>

#include "framework/base/error.h"
#include "framework/op/queue_components.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/state/async_lambda.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;
using Order = QueueSpec::Order;

template <Order order>
KernelPtr prepare_queue(const PrepareContext& p) {
  const OpInstance& op = p.op();
  QueueSpec spec{order, queue_components(op), op.get_int("capacity")};
  if (spec.capacity < 0) spec.capacity = -1;
  if constexpr (order == Order::kRandomShuffle) {
    spec.min_after_dequeue = op.get_int("min_after_dequeue");
    spec.seed = op.get_int("seed");
    spec.seed2 = op.get_int("seed2");
  }
  const std::string& shared = op.get_string("shared_name");
  const std::string name = shared.empty() ? std::string(p.node_name()) : shared;
  if (name.empty()) {
    return make_kernel(
        [spec](RunContext& c) {
          c.output(0).data<ResourceElement>()->object = make_counted<Queue>("", spec);
        },
        100);
  }
  IntrusivePtr<Queue> queue = named_queue(p.resources(), op.get_string("container"), name, spec);
  return make_kernel(
      [queue](RunContext& c) { c.output(0).data<ResourceElement>()->object = queue; }, 10);
}

void check_timeout(const OpInstance& op) {
  const int64_t timeout = op.get_int("timeout_ms");
  if (timeout == -1) return;
  throw unimplemented("timeout_ms = ", timeout,
                      ": only -1 is implemented; give the run a timeout instead");
}

KernelPtr prepare_enqueue(const PrepareContext& p) {
  check_timeout(p.op());
  return make_async_kernel([values = p.num_inputs() - 1](const RunContext& c, Done done) {
    queue_from(c.input(0)).enqueue(c, done, values);
  });
}

KernelPtr prepare_enqueue_many(const PrepareContext& p) {
  check_timeout(p.op());
  return make_async_kernel([values = p.num_inputs() - 1](const RunContext& c, Done done) {
    queue_from(c.input(0)).enqueue_many(c, done, values);
  });
}

KernelPtr prepare_dequeue(const PrepareContext& p) {
  check_timeout(p.op());
  return make_async_kernel([op = p.op()](const RunContext& c, Done done) {
    queue_from(c.input(0)).dequeue(c, done, op.output_types());
  });
}

template <bool up_to>
KernelPtr prepare_dequeue_many(const PrepareContext& p) {
  check_timeout(p.op());
  const int64_t n = scalar_int64(p.host_value(1));
  return make_async_kernel([op = p.op(), n](const RunContext& c, Done done) {
    queue_from(c.input(0)).dequeue_many(c, done, op.output_types(), n, up_to);
  });
}

KernelPtr prepare_close(const PrepareContext& p) {
  return make_async_kernel(
      [cancel = p.op().get_bool("cancel_pending_enqueues")](const RunContext& c, Done done) {
        queue_from(c.input(0)).close(c, done, cancel);
      });
}

KernelPtr prepare_is_closed(const PrepareContext&) {
  return make_kernel(
      [](RunContext& c) { *c.output(0).data<bool>() = queue_from(c.input(0)).closed(); }, 20);
}

KernelPtr prepare_size(const PrepareContext&) {
  return make_kernel(
      [](RunContext& c) {
        const int64_t size = queue_from(c.input(0)).size();
        if (size > std::numeric_limits<int32_t>::max())
          throw out_of_range("the queue has ", size, " elements, which does not fit into int32");
        *c.output(0).data<int32_t>() = static_cast<int32_t>(size);
      },
      20);
}

}  // namespace

void register_queue_kernels(KernelRegistry& r) {
  r.add("FIFOQueueV2", {}, prepare_queue<Order::kFifo>);
  r.add("PaddingFIFOQueueV2", {}, prepare_queue<Order::kPaddingFifo>);
  r.add("RandomShuffleQueueV2", {}, prepare_queue<Order::kRandomShuffle>);
  r.add("PriorityQueueV2", {}, prepare_queue<Order::kPriority>);
  r.add("QueueEnqueueV2", {}, prepare_enqueue);
  r.add("QueueEnqueueManyV2", {}, prepare_enqueue_many);
  r.add("QueueDequeueV2", {}, prepare_dequeue);
  r.add("QueueDequeueManyV2", {}, prepare_dequeue_many<false>);
  r.add("QueueDequeueUpToV2", {}, prepare_dequeue_many<true>);
  r.add("QueueCloseV2", {}, prepare_close);
  r.add("QueueIsClosedV2", {}, prepare_is_closed);
  r.add("QueueSizeV2", {}, prepare_size);
}

}  // namespace treenail::host
