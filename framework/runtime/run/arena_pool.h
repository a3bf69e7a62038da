// SPDX-License-Identifier: Apache-2.0
// The arenas of a session's runs in the memory of one device. A run takes one and gives it back, so
// that runs of different plans (a training step, an evaluation), one after the other, share memory:
// a session holds what its largest plan needs, not the sum. Runs at the same time have one each.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <vector>

#include "framework/base/fork.h"
#include "framework/device/device.h"
#include "framework/device/memory_account.h"

namespace treenail {

struct Arena {
  std::byte* data = nullptr;
  size_t bytes = 0;
  MemoryAccount* account = nullptr;  // that it is charged to
};

class ArenaPool {
 public:
  explicit ArenaPool(Device& device = cpu_device()) : device_(device) {}
  ~ArenaPool();
  ArenaPool(const ArenaPool&) = delete;
  ArenaPool& operator=(const ArenaPool&) = delete;

  // At least `bytes`; the one at `preferred` if it is free and fits. Where none fits, a new one
  // takes the place of a free one, and counts for the thread's account as long as it is there.
  // Errors: ResourceExhausted.
  Arena take(size_t bytes, const std::byte* preferred);
  // One far larger than what was lately asked for is given back to the system.
  void give_back(Arena arena);
  // Gives those that are free to the device.
  void clear();

 private:
  static constexpr size_t kRemembered = 16;  // requests
  static constexpr size_t kMostFree = 64;    // the others are the device's allocator's to keep

  Arena make(size_t bytes);
  void release(const Arena& arena);

  Device& device_;
  ForkMutex mutex_;
  std::vector<Arena> free_;
  std::array<size_t, kRemembered> asked_ = {};
  size_t next_ = 0;
};

}  // namespace treenail
