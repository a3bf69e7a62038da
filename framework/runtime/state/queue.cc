// SPDX-License-Identifier: Apache-2.0
// Operations on a queue as requests: queue_requests.cc.
#include "framework/runtime/state/queue.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/runtime/state/queue_elements.h"
#include "framework/runtime/state/resource_handle.h"
#include "framework/runtime/state/resource_manager.h"

namespace treenail {
namespace {

using Order = QueueSpec::Order;

const char* kind_of(Order order) {
  switch (order) {
    case Order::kPaddingFifo:
      return "PaddingFIFOQueue";
    case Order::kRandomShuffle:
      return "RandomShuffleQueue";
    case Order::kPriority:
      return "PriorityQueue";
    case Order::kFifo:
      break;
  }
  return "FIFOQueue";
}

std::unique_ptr<QueueElements> elements_for(const QueueSpec& spec) {
  switch (spec.order) {
    case Order::kRandomShuffle:
      return shuffled_elements(spec.seed, spec.seed2);
    case Order::kPriority:
      return priority_elements();
    case Order::kFifo:
    case Order::kPaddingFifo:
      break;
  }
  return fifo_elements();
}

void check_spec(const QueueSpec& spec) {
  if (spec.capacity == 0)
    throw invalid_argument("capacity = 0 has room for no element; 1 or more, or -1, is needed");
  if (spec.min_after_dequeue < 0) {
    throw invalid_argument("min_after_dequeue = ", spec.min_after_dequeue, " must not be negative");
  }
  if (spec.capacity > 0 && spec.min_after_dequeue >= spec.capacity) {
    throw invalid_argument("min_after_dequeue = ", spec.min_after_dequeue,
                           " must be < capacity = ", spec.capacity,
                           ": nothing could leave the queue");
  }
  for (size_t i = 0; i < spec.components.size(); ++i) {
    const HandleInfo& component = spec.components[i];
    if (spec.order == Order::kPaddingFifo && !component.shape.rank_known()) {
      throw invalid_argument("component ", i,
                             " has no shape: a PaddingFIFOQueue needs the rank of each component");
    }
  }
}

// The same in what `value` gives of each component, for messages.
template <class Value>
std::string listed(const QueueSpec& spec, Value value) {
  std::string text = "[";
  for (const HandleInfo& component : spec.components) {
    if (text.size() > 1) text += ", ";
    text += to_text(value(component));
  }
  return text + "]";
}

std::string dtypes_of(const QueueSpec& spec) {
  return listed(spec, [](const HandleInfo& component) { return component.dtype; });
}

std::string shapes_of(const QueueSpec& spec) {
  return listed(spec, [](const HandleInfo& component) { return component.shape; });
}

template <class Value>
void check_same(const Queue& queue, const char* what, const Value& there, const Value& wanted) {
  if (there == wanted) return;
  throw invalid_argument("Shared queue '", queue.name(), "' has ", what, " ", there,
                         " but requested ", what, " was ", wanted);
}

void check_same_spec(const Queue& queue, const QueueSpec& wanted) {
  const QueueSpec& there = queue.spec();
  check_same(queue, "type", std::string(kind_of(there.order)), std::string(kind_of(wanted.order)));
  check_same(queue, "capacity", there.capacity, wanted.capacity);
  check_same(queue, "component types", dtypes_of(there), dtypes_of(wanted));
  check_same(queue, "component shapes", shapes_of(there), shapes_of(wanted));
  check_same(queue, "min_after_dequeue", there.min_after_dequeue, wanted.min_after_dequeue);
  if (wanted.seed == 0 && wanted.seed2 == 0) return;  // as good as another
  check_same(queue, "seed", concat(there.seed, " and ", there.seed2),
             concat(wanted.seed, " and ", wanted.seed2));
}

}  // namespace

Queue::Queue(std::string name, QueueSpec spec)
    : WaitingResource(std::move(name), 2), spec_(std::move(spec)), elements_(elements_for(spec_)) {
  check_spec(spec_);
}

Queue::~Queue() = default;

const char* Queue::kind() const { return kind_of(spec_.order); }

std::string Queue::called() const {
  return concat(kind(), " '", name().empty() ? "<unnamed>" : name(), "'");
}

void Queue::begin_state_anew() {
  static_cast<void>(elements_.release());
  elements_ = elements_for(spec_);
  closed_ = false;
}

bool Queue::closed() const {
  return look([this] { return closed_; });
}

int64_t Queue::size() const {
  return look([this] { return elements_->size(); });
}

bool Queue::full() const { return spec_.capacity >= 0 && elements_->size() >= spec_.capacity; }

int64_t Queue::available() const {
  const int64_t there = elements_->size();
  return closed_ ? there : std::max<int64_t>(there - spec_.min_after_dequeue, 0);
}

void Queue::put(QueueElement element) {
  element.number = put_++;
  elements_->put(std::move(element));
}

void Queue::check_open() const {
  if (closed_) throw treenail::cancelled(called(), " is closed");
}

void Queue::throw_insufficient(int64_t requested, int64_t there) const {
  throw out_of_range(called(), " is closed and has insufficient elements (requested ", requested,
                     ", current size ", there, ")");
}

void Queue::check_dtypes(std::span<const DType> dtypes) const {
  if (dtypes.size() != spec_.components.size()) {
    throw invalid_argument(called(), ": Wrong number of components in tuple. Expected ",
                           spec_.components.size(), ", got ", dtypes.size());
  }
  for (size_t i = 0; i < dtypes.size(); ++i) {
    if (dtypes[i] == spec_.components[i].dtype) continue;
    throw invalid_argument(called(), ": Type mismatch in tuple component ", i, ". Expected ",
                           spec_.components[i].dtype, ", got ", dtypes[i]);
  }
}

std::vector<Tensor> Queue::given(const RunContext& c, int values) const {
  std::vector<Tensor> given;
  std::vector<DType> dtypes;
  for (int i = 1; i <= values; ++i) {
    given.push_back(c.input(i));
    dtypes.push_back(c.input(i).dtype());
  }
  check_dtypes(dtypes);
  return given;
}

void Queue::check_element(std::span<const Tensor> values) const {
  for (size_t i = 0; i < values.size(); ++i) {
    const PartialShape& wanted = spec_.components[i].shape;
    if (wanted.compatible(values[i].shape())) continue;
    throw invalid_argument(called(), ": Shape mismatch in tuple component ", i, ". Expected ",
                           wanted, ", got ", values[i].shape());
  }
}

// How many elements they have.
int64_t Queue::check_batches(std::span<const Tensor> batches) const {
  for (size_t i = 0; i < batches.size(); ++i) {
    const Shape& shape = batches[i].shape();
    const PartialShape& row = spec_.components[i].shape;
    const PartialShape wanted = row.rank_known() ? row.inserted(0, kUnknown) : PartialShape();
    if (shape.rank() == 0 || !wanted.compatible(shape)) {
      throw invalid_argument(called(), ": Shape mismatch in tuple component ", i, ". Expected ",
                             wanted, " with one row per element, got ", shape);
    }
    if (shape.dim(0) == batches[0].dim(0)) continue;
    throw invalid_argument(called(),
                           ": All input tensors must have the same size in the 0th dimension. "
                           "Component ",
                           i, " has ", shape.dim(0), ", and should have ", batches[0].dim(0));
  }
  return batches[0].dim(0);
}

void Queue::check_batches_can_be_made() const {
  if (spec_.order == Order::kPaddingFifo) return;
  for (const HandleInfo& component : spec_.components) {
    if (component.shape.fully_known()) continue;
    throw invalid_argument(called(),
                           ": DequeueMany and DequeueUpTo require the components to have specified "
                           "shapes, and these have ",
                           shapes_of(spec_));
  }
}

Queue& queue_from(const Tensor& handle) { return resource_from<Queue>(handle, "a queue's handle"); }

IntrusivePtr<Queue> named_queue(ResourceManager& resources, std::string_view container,
                                std::string_view name, const QueueSpec& spec) {
  auto make = [&] { return make_counted<Queue>(std::string(name), spec); };
  IntrusivePtr<Queue> queue = resources.lookup_or_create<Queue>(container, name, make);
  check_same_spec(*queue, spec);
  return queue;
}

}  // namespace treenail
