// SPDX-License-Identifier: Apache-2.0
#include "framework/eager/record.h"

#include <atomic>
#include <utility>

#include "framework/base/small_vector.h"

namespace treenail {
namespace {

uint64_t next_number() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

const Resource* resource_behind(const Tensor& tensor) {
  if (tensor.dtype() != DType::kResource || tensor.rank() != 0) return nullptr;
  return tensor.data<ResourceElement>()->object.get();
}

// Dtype and shape alone.
Tensor outline(const Tensor& tensor) {
  return Tensor(tensor.dtype(), tensor.shape(), static_cast<void*>(nullptr));
}

}  // namespace

RecordedRule::~RecordedRule() = default;

Record::Record() : id_(next_number()) {}

int64_t Record::find(const ImmediateTensor& tensor) const {
  if (tensor.record == id_) return tensor.value;
  if (tensor.watch_key != 0) {
    const auto found = watched_.find(tensor.watch_key);
    if (found != watched_.end()) return found->second;
  }
  if (handles_.empty() || tensor.tensor.dtype() != DType::kResource) return kNone;
  const auto found = handles_.find(resource_behind(tensor.tensor));
  return found != handles_.end() ? found->second : kNone;
}

int64_t Record::watch(ImmediateTensor& tensor) {
  const int64_t known = find(tensor);
  if (known != kNone) return known;
  const int64_t value = add_value(tensor.tensor, false, kNone);
  if (const Resource* resource = resource_behind(tensor.tensor)) {
    values_.back() = tensor.tensor;
    handles_.emplace(resource, value);
  } else {
    if (tensor.watch_key == 0) tensor.watch_key = next_number();
    watched_.emplace(tensor.watch_key, value);
  }
  return value;
}

int64_t Record::add_value(const Tensor& tensor, bool whole, int64_t step) {
  values_.push_back(whole ? tensor : outline(tensor));
  made_by_.push_back(step);
  return static_cast<int64_t>(values_.size()) - 1;
}

int64_t Record::input_of(const ImmediateTensor& tensor, int64_t known, bool read) {
  if (known == kNone) return add_value(tensor.tensor, read, kNone);
  Tensor& kept = values_[static_cast<size_t>(known)];
  if (read && kept.raw() == nullptr) kept = tensor.tensor;
  return known;
}

void Record::append(const OpInstance& op, std::span<const ImmediateTensor* const> inputs,
                    std::span<ImmediateTensor> outputs, std::shared_ptr<RecordedRule> rule) {
  if (outputs.empty() || op.def().non_differentiable) return;
  SmallVector<int64_t, 6> known(inputs.size());
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    known[i] = find(*inputs[i]);
    any = any || known[i] != kNone;
  }
  if (!any) return;
  // Other rules than the op's own may read everything.
  const bool all = rule != nullptr && rule->reads_values();
  Step step{op, static_cast<int64_t>(inputs_.size()), 0, std::move(rule)};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ArgDef& def = op.input_def(static_cast<int>(i));
    inputs_.push_back(input_of(*inputs[i], known[i], all || def.gradient_reads || def.host));
  }
  step.first_output = static_cast<int64_t>(values_.size());
  const int64_t number = steps();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool read = all || op.output_def(static_cast<int>(i)).gradient_reads;
    outputs[i].value = add_value(outputs[i].tensor, read, number);
    outputs[i].record = id_;
  }
  steps_.push_back(std::move(step));
}

}  // namespace treenail
