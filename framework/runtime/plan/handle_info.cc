// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/plan/handle_info.h"

#include "framework/runtime/state/lookup_table.h"
#include "framework/runtime/state/queue.h"
#include "framework/runtime/state/variable.h"

namespace treenail {

std::shared_ptr<const HandleInfo> handle_info_of(const Tensor& handle) {
  if (handle.dtype() != DType::kResource || handle.num_elements() != 1) return nullptr;
  const Resource* const resource = handle.data<ResourceElement>()->object.get();
  if (const auto* queue = dynamic_cast<const Queue*>(resource)) {
    return std::make_shared<const HandleInfo>(HandleInfo{.components = queue->spec().components});
  }
  if (const auto* table = dynamic_cast<const LookupTable*>(resource)) {
    const LookupSpec& spec = table->spec();
    return std::make_shared<const HandleInfo>(
        HandleInfo{.components = {{spec.key, Shape()}, {spec.value, spec.value_shape}}});
  }
  const auto* variable = dynamic_cast<const Variable*>(resource);
  if (variable == nullptr) return nullptr;
  if (!variable->declared_shape().fully_known() && variable->initialized()) {
    return std::make_shared<const HandleInfo>(
        HandleInfo{variable->dtype(), variable->read().shape()});
  }
  return std::make_shared<const HandleInfo>(
      HandleInfo{variable->dtype(), variable->declared_shape()});
}

}  // namespace treenail
