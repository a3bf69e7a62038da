// SPDX-License-Identifier: Apache-2.0
#include "framework/eager/placed_call.h"

#include <algorithm>
#include <string>

#include "framework/base/error.h"
#include "framework/base/logging.h"
#include "framework/eager/immediate_options.h"
#include "framework/op/op_cache.h"
#include "framework/placement/device_choice.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/state/variable.h"
#include "framework/tensor/transfer.h"

namespace treenail {
namespace {

OpInstance resolved(const ImmediateCall& call) {
  static thread_local OpCache ops;
  std::vector<DType> types;
  types.reserve(call.inputs.size());
  for (const Tensor* input : call.inputs) types.push_back(input->dtype());
  return ops.resolve(call.def, types, call.attrs, call.arg_sizes);
}

bool has_kernel(const OpInstance& op, const Device& device) {
  return op.def().view_of >= 0 || op.def().any_device ||
         KernelRegistry::instance().serves(op, device.kind());
}

bool on_accelerator(const Tensor* tensor) { return tensor->device() != nullptr; }

// The CPU for none.
const Device& device_of(Device* device) { return device != nullptr ? *device : cpu_device(); }

std::string name_of_state(const Tensor& handle) {
  const Variable* const variable = variable_behind(handle);
  return variable != nullptr ? variable->name() : std::string();
}

// Copies that the process's policy speaks against; Identity is how a program asks for one.
void check_policy(const OpInstance& op, size_t input, const Tensor& source, Device* memory,
                  Device* runs) {
  const DevicePolicy policy = immediate_options()->policy;
  if (policy == DevicePolicy::kSilent || source.rank() == 0 || op.name() == "Identity") return;
  if (policy == DevicePolicy::kSilentForInt32 && source.dtype() == DType::kInt32) return;
  const std::string text =
      concat("cannot compute ", op.name(), " as input #", input, " was expected to be on ",
             to_text(device_of(memory).name()), " but is actually on ",
             to_text(device_of(source.device()).name()), " (operation running on ",
             to_text(device_of(runs).name()), ")");
  if (policy == DevicePolicy::kWarn) {
    return write_log(LogLevel::kWarning,
                     concat("before copying a tensor to another device: ", text));
  }
  throw invalid_argument("Tensors on conflicting devices: ", text,
                         ". Copy them by tn.identity() under tn.device(), or Tensor.cpu(), or let "
                         "them be copied: the device_policy of tn.enable_eager_execution()");
}

}  // namespace

PlacedCall::PlacedCall(const ImmediateCall& call, std::string_view request) : given_(call) {
  Device* const asked = request.empty() ? nullptr : requested_device(request);
  go_to_state();
  const bool any_there = std::ranges::any_of(call.inputs, on_accelerator);
  if (handle_ == nullptr) device_ = asked;
  if (device_ == nullptr && !any_there) return;
  const OpInstance op = resolved(call);
  place(op, request);
  plan_copies(op);
}

void PlacedCall::go_to_state() {
  for (const Tensor* input : given_.inputs) {
    if (input->dtype() != DType::kResource) continue;
    Device* const home = home_of(*input);
    if (handle_ == nullptr) {
      handle_ = input;
      device_ = home;
    } else if (home != device_) {
      throw invalid_argument(state_in_two_memories(name_of_state(*handle_),
                                                   device_of(device_).name(), name_of_state(*input),
                                                   device_of(home).name()));
    }
  }
}

void PlacedCall::place(const OpInstance& op, std::string_view request) {
  if (device_ != nullptr) {
    if (has_kernel(op, *device_)) return;
    const bool may_move = op.def().computes_sizes || immediate_options()->allow_soft_placement;
    if (handle_ != nullptr || !may_move)
      throw invalid_argument(no_kernel_there(op, device_->name(), handle_ != nullptr));
    device_ = nullptr;
  } else if (handle_ == nullptr && request.empty()) {
    for (size_t i = 0; i < given_.inputs.size(); ++i) {
      Device* const there = given_.inputs[i]->device();
      if (there == nullptr || op.input_def(static_cast<int>(i)).host) continue;
      if (has_kernel(op, *there)) device_ = there;
      return;
    }
  }
}

void PlacedCall::plan_copies(const OpInstance& op) {
  inputs_.assign(given_.inputs.begin(), given_.inputs.end());
  copies_.reserve(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const ArgDef& def = op.input_def(static_cast<int>(i));
    const Tensor& input = *inputs_[i];
    if (def.anywhere || !is_plain(input.dtype())) continue;
    Device* const memory = def.host ? nullptr : device_;
    if (input.device() == memory) continue;
    check_policy(op, i, input, memory, device_);
    inputs_[i] = copy_of(input, memory);
  }
}

const Tensor* PlacedCall::copy_of(const Tensor& source, Device* memory) {
  const auto same = [&](const Copy& copy) {
    return copy.memory == memory && copy.source->raw() == source.raw() &&
           copy.source->dtype() == source.dtype() && copy.source->shape() == source.shape();
  };
  const auto known = std::ranges::find_if(copies_, same);
  if (known != copies_.end()) return &known->made;
  return &copies_.emplace_back(Copy{&source, memory, Tensor()}).made;
}

void PlacedCall::bring_inputs() {
  for (Copy& copy : copies_) copy.made = in_memory_of(*copy.source, copy.memory);
}

ImmediateCall PlacedCall::call() const {
  const std::span<const Tensor* const> inputs =
      inputs_.empty() ? given_.inputs : std::span<const Tensor* const>(inputs_);
  return {given_.def, inputs, given_.attrs, given_.arg_sizes, given_.resources, device_};
}

}  // namespace treenail
