// SPDX-License-Identifier: Apache-2.0
// Where each family of kernels/cuda says which ops it computes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/runtime/kernel/kernel_registry.h"

namespace treenail::cuda {

class KernelRegistrations {
 public:
  void add(std::string op, std::vector<TypeConstraint> constraints, PrepareFn prepare);
  // On all plain dtypes that the op knows.
  void add_plain(const std::string& op, PrepareFn prepare);
  std::vector<KernelRegistration> take() { return std::move(all_); }

 private:
  std::vector<KernelRegistration> all_;
};

// Generated: calls all of them.
void register_all(KernelRegistrations& registrations);

}  // namespace treenail::cuda
