// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/driver/registrations.h"

#include "framework/op/op_registry.h"
#include "framework/runtime/kernel/kernel_types.h"
#include "kernels/cuda/driver/device.h"

namespace treenail::cuda {

void KernelRegistrations::add(std::string op, std::vector<TypeConstraint> constraints,
                              PrepareFn prepare) {
  all_.push_back({std::move(op), std::move(constraints), prepare, kKind});
}

void KernelRegistrations::add_plain(const std::string& op, PrepareFn prepare) {
  if (auto constraints = plain_constraints(*OpRegistry::instance().find(op), {}))
    add(op, std::move(*constraints), prepare);
}

}  // namespace treenail::cuda
