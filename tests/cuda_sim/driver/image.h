// SPDX-License-Identifier: Apache-2.0
// A fat binary as the driver is given it. Its code is not looked at, for the kernels are those that
// the simulation was built with, from the same sources; but which ones it has is, so that a kernel
// is only found where the real driver finds it.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace treenail::cuda_sim {

class Image {
 public:
  static bool is_fat_binary(const void* code);
  explicit Image(const void* code);

  // Also where it cannot be told: cubins may be compressed, and PTX is.
  bool may_have(std::string_view kernel) const;

 private:
  std::set<std::string, std::less<>> kernels_;
};

}  // namespace treenail::cuda_sim
