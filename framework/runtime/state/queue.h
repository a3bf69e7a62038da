// SPDX-License-Identifier: Apache-2.0
// Queues: elements of one or more tensors, put in by some runs and taken out by others, which wait
// for room and for elements. Kernel-side header. Line 0 has what enqueues and closes, line 1 what
// dequeues: each is served first come, first served, and an operation on many elements moves them
// as they fit and as they come.
//
// A queue is closed once its close stands first in line 0: what was enqueued before it goes in,
// what comes after it fails. From then on what dequeues gets what is left, and fails when that is
// not enough.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/op/shape_context.h"
#include "framework/runtime/state/waiting_resource.h"
#include "framework/tensor/tensor.h"

namespace treenail {

class QueueElements;
class ResourceManager;
struct QueueElement;

struct QueueSpec {
  enum class Order : uint8_t { kFifo, kPaddingFifo, kRandomShuffle, kPriority };
  Order order = Order::kFifo;
  // One per component. kPaddingFifo: ranks are known; kPriority: the first is the priority.
  std::vector<HandleInfo> components = {};
  int64_t capacity = -1;  // in elements; below 0: as many as come
  // Of kRandomShuffle. So many elements stay while the queue is open, for a good mixture.
  int64_t min_after_dequeue = 0;
  int64_t seed = 0, seed2 = 0;  // both 0: a random seed
};

class Queue final : public WaitingResource {
 public:
  // Errors: InvalidArgument (capacity, min_after_dequeue, shapes).
  Queue(std::string name, QueueSpec spec);
  ~Queue() override;
  const char* kind() const override;
  const QueueSpec& spec() const { return spec_; }

  // What kernels do when they are started: they end by `done`, or throw before that. Inputs 1...
  // are the values, as many as `values`; outputs are the components, of these dtypes.
  //
  // Errors of all: InvalidArgument (components, dtypes, shapes).
  //
  // Errors: Cancelled when the queue is closed.
  void enqueue(const RunContext& c, Done done, int values);
  // Rows of the values are elements.
  void enqueue_many(const RunContext& c, Done done, int values);
  // Errors: OutOfRange when the queue is closed and empty.
  void dequeue(const RunContext& c, Done done, std::span<const DType> dtypes);
  // n elements as rows of the outputs; up_to: what is left, but one at least, once the queue is
  // closed. Errors: OutOfRange when the queue is closed and has too few.
  void dequeue_many(const RunContext& c, Done done, std::span<const DType> dtypes, int64_t n,
                    bool up_to);
  // Nothing is enqueued any more; what waits to be is put in first, or, `cancel`, fails. Errors:
  // Cancelled when the queue is closed already, unless `cancel`.
  void close(const RunContext& c, Done done, bool cancel);

  bool closed() const;
  int64_t size() const;

 protected:
  void begin_state_anew() override;

 private:
  class Enqueue;
  class EnqueueMany;
  class Dequeue;
  class DequeueMany;
  class Close;

  std::vector<Tensor> given(const RunContext& c, int values) const;
  void check_element(std::span<const Tensor> values) const;
  int64_t check_batches(std::span<const Tensor> batches) const;
  void check_dtypes(std::span<const DType> dtypes) const;
  void check_batches_can_be_made() const;

  // All with the lock held.
  bool full() const;
  int64_t available() const;  // may leave now
  void put(QueueElement element);
  void check_open() const;
  [[noreturn]] void throw_insufficient(int64_t requested, int64_t there) const;

  std::string called() const;  // "FIFOQueue 'q'"

  const QueueSpec spec_;
  std::unique_ptr<QueueElements> elements_;
  uint64_t put_ = 0;  // how many came
  bool closed_ = false;
};

// The queue behind a handle tensor. Errors: InvalidArgument (not a scalar resource, empty handle,
// another kind), naming what it is.
Queue& queue_from(const Tensor& handle);

// The queue of that name in a session's state, made at first use. Errors: as of Queue;
// InvalidArgument when the name belongs to something else, or to a queue that is another in any
// respect.
IntrusivePtr<Queue> named_queue(ResourceManager& resources, std::string_view container,
                                std::string_view name, const QueueSpec& spec);

}  // namespace treenail
