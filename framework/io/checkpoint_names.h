// SPDX-License-Identifier: Apache-2.0
// Where tensors lie in a checkpoint: names as paths of groups and datasets, made unique.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace treenail {

class CheckpointNames {
 public:
  // A free path for the tensor. Errors: InvalidArgument (empty, with a zero byte, longer than
  // kMaxBytes).
  std::string place(std::string_view name);

  static constexpr size_t kMaxBytes = 8192;

 private:
  std::set<std::string> groups_;
  std::set<std::string> datasets_;
};

}  // namespace treenail
