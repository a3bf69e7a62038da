// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/barrier.h"

#include <algorithm>
#include <memory>

#include "framework/base/error.h"
#include "framework/runtime/state/queue_batch.h"
#include "framework/runtime/state/resource_manager.h"

namespace treenail {
namespace {

template <class T>
std::string list_text(std::span<const T> values) {
  std::string text = "[";
  for (const T& value : values) text += concat(text.size() > 1 ? ", " : "", value);
  return text + "]";
}

}  // namespace

// --- Taking -------------------------------------------------------------------------------------

// Where it is closed already, a small batch is what is there; a request that waited for it to close
// waits on for elements that may get complete.
class Barrier::Take final : public Request {
 public:
  Take(const RunContext& context, const Done& done, Barrier& barrier, const Demand& demand)
      : Request(context, done), barrier_(barrier), demand_(demand) {}

 private:
  void admit() override {
    if (demand_.count < 0) {
      throw invalid_argument("num_elements must not be negative, it is ", demand_.count,
                             " for barrier ", barrier_.name());
    }
    if (!barrier_.closed_) return;
    at_once_ = demand_.allow_small_batch && !demand_.wait_for_incomplete;
    const int64_t available =
        std::ssize(barrier_.ready_) + (at_once_ ? 0 : std::ssize(barrier_.incomplete_));
    if (available < least()) barrier_.throw_too_few(demand_.count, available);
  }

  Progress attempt() override {
    const int64_t ready = std::ssize(barrier_.ready_);
    const int64_t incomplete = std::ssize(barrier_.incomplete_);
    if (barrier_.closed_ && ready + incomplete < least())
      barrier_.throw_too_few(demand_.count, ready + incomplete);
    if (ready >= demand_.count) return give(demand_.count);
    const bool small = demand_.allow_small_batch && barrier_.closed_ && ready > 0;
    if (small && (at_once_ || incomplete == 0)) return give(ready);
    return Progress::kNone;
  }

  Progress give(int64_t count) {
    barrier_.give(context(), count);
    return Progress::kEnded;
  }
  // What a closed barrier must have.
  int64_t least() const {
    return demand_.allow_small_batch ? 1 : std::max<int64_t>(demand_.count, 1);
  }

  Barrier& barrier_;  // the request is in its line
  const Demand demand_;
  bool at_once_ = false;
};

Barrier::~Barrier() = default;

void Barrier::take(const RunContext& context, const Done& done, const Demand& demand) {
  submit(0, std::make_unique<Take>(context, done, *this, demand));
}

void Barrier::throw_too_few(int64_t wanted, int64_t available) const {
  throw out_of_range("Barrier '", name(), "' is closed and has insufficient elements (requested ",
                     wanted, ", total size ", available, ")");
}

Tensor Barrier::component_batch(std::span<const QueueElement> elements, size_t component) const {
  const DType type = options_.types[component];
  if (elements.empty()) return batch_of(elements, component, type, options_.shapes[component]);
  const Tensor& first = elements.front().values[component];
  for (const QueueElement& element : elements) {
    if (element.values[component].shape() == first.shape()) continue;
    throw invalid_argument("component ", component, " of barrier ", name(), " is ", first,
                           " in one element and ", element.values[component], " in another of the ",
                           elements.size(), " that are taken as one batch");
  }
  return batch_of(elements, component, type, first.shape());
}

void Barrier::give(RunContext& context, int64_t count) {
  Tensor indices(DType::kInt64, Shape({count})), keys(DType::kString, Shape({count}));
  std::vector<QueueElement> elements;
  auto end = ready_.begin();
  for (int64_t i = 0; i < count; ++i, ++end) {
    indices.data<int64_t>()[i] = end->first.first;
    keys.data<StringElement>()[i] = StringElement(end->second.key);
    elements.push_back({end->second.components});
  }
  std::vector<Tensor> batches;
  for (size_t k = 0; k < options_.types.size(); ++k)
    batches.push_back(component_batch(elements, k));
  ready_.erase(ready_.begin(), end);
  context.set_output(0, std::move(indices));
  context.set_output(1, std::move(keys));
  for (size_t k = 0; k < batches.size(); ++k)
    context.set_output(static_cast<int>(k) + 2, std::move(batches[k]));
}

// --- Inserting ----------------------------------------------------------------------------------

void Barrier::check_types(std::span<const DType> types) const {
  if (std::ranges::equal(types, options_.types)) return;
  throw invalid_argument("barrier ", name(), " has component types ",
                         list_text<DType>(options_.types), ", the operation has ",
                         list_text<DType>(types));
}

void Barrier::check_values(int64_t component, const Tensor& keys, const Tensor& values) const {
  if (component < 0 || component >= std::ssize(options_.types)) {
    throw invalid_argument("component_index = ", component, " is not in [0, ",
                           options_.types.size(), "), the components of barrier ", name());
  }
  const auto k = static_cast<size_t>(component);
  if (values.dtype() != options_.types[k]) {
    throw invalid_argument("component ", component, " of barrier ", name(), " has dtype ",
                           options_.types[k], ", the values are ", values);
  }
  if (keys.num_elements() > 0 && values.num_elements() == 0) {
    throw invalid_argument("Tensors with no elements are not supported by barrier ", name(),
                           ", the values are ", values);
  }
  if (options_.shapes[k].compatible(values.shape().removed(0))) return;
  throw invalid_argument("Shape mismatch: component ", component, " of barrier ", name(),
                         " has shape ", options_.shapes[k], ", the values are ", values);
}

void Barrier::check_open(int64_t insertions) const {
  if (!closed_ || (!cancelled_ && (insertions == 0 || !incomplete_.empty()))) return;
  throw treenail::cancelled("Barrier ", name(),
                            " is closed. Pending enqueues cancelled: ", cancelled_,
                            ". Number of new insertions: ", insertions,
                            ". Number of incomplete keys: ", incomplete_.size(), ".");
}

Barrier::Left Barrier::left_of(std::string_view key, size_t component) const {
  const auto at = incomplete_.find(std::string(key));
  if (at == incomplete_.end()) return {};
  return {at->second.missing, at->second.components[component].defined()};
}

// A key may occur twice: the first may complete an element, and the second begin another.
void Barrier::check_keys(std::span<const StringElement> keys, size_t component) const {
  std::unordered_map<std::string_view, Left> seen;
  for (const StringElement& element : keys) {
    const std::string_view key = element.view();
    const auto [at, first] = seen.try_emplace(key);
    Left& left = at->second;
    if (first) left = left_of(key, component);
    if (left.missing == 0) {
      if (closed_) {
        throw treenail::cancelled("Barrier ", name(),
                                  " is closed, but attempted to insert a brand new key: ", key,
                                  ". Number of incomplete keys: ", incomplete_.size(), ".");
      }
      left = {options_.types.size(), false};
    }
    if (left.given) {
      throw invalid_argument("Key ", key, " already has a value for component ", component,
                             " in barrier ", name());
    }
    left.given = --left.missing > 0;
  }
}

// Whether an element begins with it.
bool Barrier::put(std::string_view key, size_t component, Tensor value) {
  const auto [at, made] = incomplete_.try_emplace(std::string(key));
  Incomplete& element = at->second;
  if (made) element = {next_index_, options_.types.size(), {}};
  element.components.resize(options_.types.size());
  element.components[component] = std::move(value);
  if (--element.missing == 0) {
    ready_.emplace(std::pair(element.index, completed_++),
                   Ready{at->first, std::move(element.components)});
    incomplete_.erase(at);
  }
  return made;
}

void Barrier::insert(int64_t component, const Tensor& keys, const Tensor& values) {
  check_values(component, keys, values);
  const std::span<const StringElement> names = keys.values<StringElement>();
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < keys.num_elements(); ++i)
    rows.push_back(std::move(element_of({&values, 1}, i).values[0]));
  change([&] {
    check_open(keys.num_elements());
    check_keys(names, static_cast<size_t>(component));
    bool begun = false;
    for (size_t i = 0; i < names.size(); ++i)
      begun = put(names[i].view(), static_cast<size_t>(component), std::move(rows[i])) || begun;
    if (begun) ++next_index_;
  });
}

// --- The whole ----------------------------------------------------------------------------------

void Barrier::close(bool cancel_pending) {
  change([&] {
    if (closed_ && (cancelled_ || !cancel_pending))
      throw treenail::cancelled("Barrier '", name(), "' is already closed.");
    closed_ = true;
    cancelled_ = cancel_pending;
    if (cancel_pending) incomplete_.clear();
  });
}

int64_t Barrier::ready_size() const {
  return look([&] { return std::ssize(ready_); });
}

int64_t Barrier::incomplete_size() const {
  return look([&] { return std::ssize(incomplete_); });
}

void Barrier::begin_state_anew() {
  begin_anew(incomplete_);
  begin_anew(ready_);
}

IntrusivePtr<Barrier> named_barrier(ResourceManager& resources, std::string_view container,
                                    std::string_view name, const BarrierOptions& options) {
  const auto make = [&] { return make_counted<Barrier>(std::string(name), options); };
  if (name.empty()) return make();
  auto found = resources.lookup_or_create<Barrier>(container, name, make);
  const BarrierOptions& there = found->options();
  if (there == options) return found;
  throw invalid_argument(
      "Shared barrier ", name, " has component types ", list_text<DType>(there.types),
      " and shapes ", list_text<PartialShape>(there.shapes), "; it is asked for with types ",
      list_text<DType>(options.types), " and shapes ", list_text<PartialShape>(options.shapes));
}

}  // namespace treenail
