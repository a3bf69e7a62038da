// SPDX-License-Identifier: Apache-2.0
// Blocks of shared memory that one peer is lent, reused when it has given them back. Unlike
// SharedPool (for groups whose members come and go together) it has a bound, gives back to the
// system what has lain unused when there is need of other sizes, and goes as a whole with the peer:
// whatever a peer that died had borrowed is freed by that, and one that lives keeps its mapping.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "framework/base/function_ref.h"
#include "framework/distributed/shared_memory/shared_pool.h"

namespace treenail {

// What this process lends at most, over all its pools: TREENAIL_SHARED_MEMORY_LIMIT, else a quarter
// of the memory that it may have.
int64_t most_lent_bytes();

class LendingPool {
 public:
  // Of segments, by number: what the peer is told of them, in this order.
  using Made = FunctionRef<void(uint32_t number, const IntrusivePtr<Segment>& segment)>;
  using Dropped = FunctionRef<void(uint32_t number)>;

  explicit LendingPool(int64_t most_bytes) : most_bytes_(most_bytes) {}
  ~LendingPool();
  LendingPool(const LendingPool&) = delete;
  LendingPool& operator=(const LendingPool&) = delete;

  // A block with one user. Thread-safe; the functions are called with the pool's lock held. Errors:
  // ResourceExhausted (beyond the bound, or the system has no more).
  SharedBlock allocate(size_t bytes, Made made, Dropped dropped);
  int64_t bytes() const;

 private:
  struct Block {
    uint64_t offset;
    uint32_t segment;
    uint64_t used;  // when: counts allocations
  };
  SharedBlock block_at(const Block& block, size_t bytes) const;
  Block carve(size_t size, Made made, Dropped dropped);
  uint32_t add_segment(size_t bytes, Made made, Dropped dropped);
  IntrusivePtr<Segment> create(size_t bytes, Dropped dropped);
  bool drop_oldest(Dropped dropped);

  const int64_t most_bytes_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<uint32_t, IntrusivePtr<Segment>> segments_;
  std::map<size_t, std::vector<Block>> blocks_;  // by size
  int64_t bytes_ = 0;
  uint64_t allocations_ = 0;
  uint32_t next_segment_ = 0;
  uint32_t open_segment_ = 0;  // where small blocks are cut from
  size_t open_offset_ = 0;
  bool has_open_ = false;
};

}  // namespace treenail
