// SPDX-License-Identifier: Apache-2.0
// Host memory that a GPU copies to while the host goes on: pinned, and so dear to make and few.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

namespace treenail::cuda {

class Staging {
 public:
  static constexpr size_t kMost = size_t{64} << 20;  // of all pieces together

  // At least so many bytes of pinned memory, or null where they are too many, or all are in use.
  // The device's context is current.
  void* take(size_t bytes);
  void give_back(void* piece) noexcept;

 private:
  std::mutex mutex_;
  std::multimap<size_t, void*> free_;
  std::map<void*, size_t> pieces_;
  size_t reserved_ = 0;
};

}  // namespace treenail::cuda
