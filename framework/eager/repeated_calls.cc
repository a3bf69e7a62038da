// SPDX-License-Identifier: Apache-2.0
#include "framework/eager/repeated_calls.h"

#include <algorithm>

namespace treenail {

RepeatedCalls& RepeatedCalls::of_this_thread() {
  static thread_local RepeatedCalls calls;
  return calls;
}

bool RepeatedCalls::Entry::answers(const ImmediateCall& call) const {
  if (&op.def() != &call.op || shapes.size() != call.inputs.size()) return false;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (op.input_type(static_cast<int>(i)) != call.inputs[i].dtype() ||
        !(shapes[i] == call.inputs[i].shape())) {
      return false;
    }
  }
  return attrs == call.attrs && std::equal(arg_sizes.begin(), arg_sizes.end(),
                                           call.arg_sizes.begin(), call.arg_sizes.end());
}

bool RepeatedCalls::may_keep(const ImmediateCall& call) {
  return std::none_of(call.attrs.begin(), call.attrs.end(), [](const NamedAttr& attr) {
    const AttrKind kind = attr.second.kind();
    return kind == AttrKind::kTensor || kind == AttrKind::kTensorList;
  });
}

uint64_t RepeatedCalls::hash(const ImmediateCall& call) {
  uint64_t hash = reinterpret_cast<uintptr_t>(&call.op);
  const auto mix = [&hash](uint64_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15; };
  for (const Tensor& input : call.inputs) {
    mix(static_cast<uint64_t>(input.dtype()));
    for (const int64_t extent : input.shape().dims()) mix(static_cast<uint64_t>(extent));
  }
  for (const NamedAttr& attr : call.attrs) mix(attr.second.hash());
  return hash;
}

std::shared_ptr<const RepeatedCalls::Entry> RepeatedCalls::find(const ImmediateCall& call,
                                                                uint64_t hash) const {
  const std::shared_ptr<const Entry>& entry = places_[hash >> 56];
  return entry != nullptr && entry->answers(call) ? entry : nullptr;
}

void RepeatedCalls::keep(const ImmediateCall& call, uint64_t hash, std::shared_ptr<Entry> entry) {
  for (const Tensor& input : call.inputs) entry->shapes.push_back(input.shape());
  entry->attrs = call.attrs;
  entry->arg_sizes.assign(call.arg_sizes.begin(), call.arg_sizes.end());
  places_[hash >> 56] = std::move(entry);
}

}  // namespace treenail
