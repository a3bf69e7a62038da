// SPDX-License-Identifier: Apache-2.0
// Page-locked host memory: plain memory that copies may use after the call that asks for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace treenail::cuda_sim {

class Pinned {
 public:
  // Null where a test asked for the failure.
  void* allocate(size_t bytes);
  // False, with a violation, for no block. From now on no copy may use it.
  bool retire(void* memory);
  // No stream uses it any more.
  void release(void* memory);

  // Whether the range lies in one block that is not retired; `overlaps`: in any block at all.
  bool holds(const void* at, size_t bytes) const;
  bool overlaps(const void* at, size_t bytes) const;

  int64_t blocks() const;  // not retired
  void fail_allocation(int64_t nth);

 private:
  struct Block {
    size_t bytes = 0;
    bool retired = false;
  };
  mutable std::mutex mutex_;
  std::map<uintptr_t, Block> blocks_;
  int64_t fail_in_ = 0;
};

}  // namespace treenail::cuda_sim
