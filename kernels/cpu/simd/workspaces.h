// SPDX-License-Identifier: Apache-2.0
// Working memory for chunks that run at the same time: the lowest free workspace is taken, which is
// the one still in the cache. Which one a chunk gets changes nothing in its results.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

namespace treenail::cpu {

class Workspaces {
 public:
  static constexpr int kMost = 64;  // chunks of one run must not be more
  class Use {
   public:
    explicit Use(Workspaces& w) : w_(w) {
      uint64_t free = w_.free_.load(std::memory_order_relaxed);
      while (!w_.free_.compare_exchange_weak(free, free & (free - 1), std::memory_order_acquire)) {
      }
      index_ = std::countr_zero(free);
    }
    ~Use() { w_.free_.fetch_or(uint64_t{1} << index_, std::memory_order_release); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    int64_t index() const { return index_; }

   private:
    Workspaces& w_;
    int index_;
  };

 private:
  std::atomic<uint64_t> free_{~uint64_t{0}};
};

}  // namespace treenail::cpu
