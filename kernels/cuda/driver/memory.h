// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU, for one queue: what is given back serves the next request at once, for whatever
// is queued then comes later. Regions are taken from the driver as they are needed, each twice as
// large as the one before up to a limit, and cut into blocks; neighbours that are free are joined.
// Requests find the smallest block that has room (best fit with coalescing, as TensorFlow's).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "framework/base/function_ref.h"
#include "framework/device/allocator.h"

namespace treenail::cuda {

class Memory {
 public:
  // Where regions come from: null where there is no more, and their way back.
  struct Source {
    void* (*take)(void* owner, size_t bytes);
    void (*give_back)(void* owner, void* region);
    void* owner;
  };
  // limit: of all regions together; <= 0: none but the device's. `name`: of errors.
  Memory(std::string name, Source source, int64_t limit);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // 256-byte aligned; a block of its own for 0 bytes, too. Errors: ResourceExhausted, with what is
  // in use and the largest blocks.
  void* allocate(size_t bytes);
  void deallocate(void* memory) noexcept;
  AllocatorStats stats() const;
  // Regions that hold nothing go back to the driver.
  void release_unused();

 private:
  struct Block {
    size_t bytes = 0;
    size_t asked = 0;  // 0: free
    void* region = nullptr;
  };
  using Blocks = std::map<std::byte*, Block>;

  // The mutex is held by the callers of these.
  void* place(size_t bytes, size_t asked);
  bool add_region(size_t bytes);
  void join_next(Blocks::iterator block);
  size_t release();
  std::string largest() const;

  const std::string name_;
  const Source source_;
  const int64_t limit_;
  mutable std::mutex mutex_;
  Blocks blocks_;                                 // by address, over all regions without a gap
  std::set<std::pair<size_t, std::byte*>> free_;  // by size
  std::map<void*, size_t> regions_;
  size_t next_region_;
  int64_t reserved_ = 0, in_use_ = 0, peak_ = 0, calls_ = 0;
};

}  // namespace treenail::cuda
