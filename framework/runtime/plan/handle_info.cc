// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/plan/handle_info.h"

#include "framework/runtime/state/variable.h"

namespace treenail {

std::shared_ptr<const HandleInfo> handle_info_of(const Tensor& handle) {
  if (handle.dtype() != DType::kResource || handle.num_elements() != 1) return nullptr;
  const auto* variable =
      dynamic_cast<const Variable*>(handle.data<ResourceElement>()->object.get());
  if (variable == nullptr) return nullptr;
  if (!variable->declared_shape().fully_known() && variable->initialized()) {
    return std::make_shared<const HandleInfo>(
        HandleInfo{variable->dtype(), variable->read().shape()});
  }
  return std::make_shared<const HandleInfo>(
      HandleInfo{variable->dtype(), variable->declared_shape()});
}

}  // namespace treenail
