// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_sim/driver/kernel_table.h"

#include <map>

#include "framework/base/error.h"
#include "tests/simulated/violation.h"

namespace treenail::cuda_sim {
namespace {

// Made by whichever file registers first.
std::map<std::string_view, KernelEntry>& table() {
  static auto* const made = new std::map<std::string_view, KernelEntry>;
  return *made;
}

}  // namespace

void register_kernel(const KernelEntry& entry) {
  if (!table().emplace(entry.name, entry).second)
    simulated::violation(concat("simulated CUDA: two kernels are called ", entry.name));
}

const KernelEntry* find_kernel(std::string_view name) {
  const auto found = table().find(name);
  return found == table().end() ? nullptr : &found->second;
}

}  // namespace treenail::cuda_sim
